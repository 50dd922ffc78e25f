//! The audit log: a chain of hashes per organization, so that a change of the past shows.
//!
//! An entry's hash is the HMAC-SHA256, in hex, with a key of the service, of its predecessor's hash (empty for the
//! first) followed by the canonical JSON of an object with the fields `id`, `org_id`, `seq`, `actor_id`, `actor_name`, `action`, `target_type`,
//! `target_id`, `detail`, `request_id`, `ip` and `occurred_at` (RFC 3339, UTC,
//! six digits of a second). Canonical means: keys sorted by their bytes, no
//! white space, and a number without fraction as an integer where 53 bits hold it. Entries of `hash_version` 1, from
//! before there was a key, have the SHA-256 of the same text; none follows a keyed one.
//!
//! A writer of the database without the key can remove entries and put an old head in place of the new one. Only a head
//! that is kept outside of the database shows this ([`Known`]).

use heddle_core::event::format_time;
use heddle_core::page::{WalkRequest, Walked};
use heddle_core::{Clock, OrgId, Timestamp, UserId};
use hmac::{Hmac, Mac as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::FromRow;
use uuid::Uuid;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{Key, Sorted};

mod heads;

pub use heads::{Head, head, heads_behind};

heddle_core::ids! {
    pub AuditId,
}

/// `hash_version` of entries whose hash can be computed without a key.
const PLAIN: i64 = 1;
/// `hash_version` of entries whose hash only the service can compute.
const KEYED: i64 = 2;

/// One entry of an organization's audit log. Its hash covers the entry before it: a change of the past shows.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct AuditEntry {
    pub id: AuditId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    /// Gapless within the organization, from 1.
    pub seq: i64,
    pub actor_id: Option<UserId>,
    pub actor_name: String,
    pub action: String,
    pub target_type: String,
    pub target_id: Option<Uuid>,
    pub detail: Value,
    pub request_id: Option<String>,
    pub ip: Option<String>,
    pub occurred_at: Timestamp,
    pub previous_hash: String,
    pub hash: String,
    /// How the hash was made: 1 is SHA-256, which needs no key, 2 is keyed.
    pub hash_version: i64,
}

impl Sorted for AuditEntry {
    const KEYS: &'static [Key] = &[Key::of("occurred_at", "a.occurred_at")];
    const DEFAULT: &'static str = "-occurred_at";
    const LAST: &'static [&'static str] = &["a.seq", "a.id"];
}

/// The key of hashes and codes that cannot be made without it.
#[derive(Clone)]
pub struct AuditKey([u8; 32]);

impl AuditKey {
    /// Takes the key in the clear. All processes on one database need the same key.
    /// What was written with another one counts as not written by the service.
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// HMAC-SHA256 in hex; `label` keeps what is made for one purpose from serving another.
    pub fn mac(&self, label: &str, text: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any key length is accepted");
        mac.update(label.as_bytes());
        mac.update(&[0]);
        mac.update(text.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    fn code(&self, head: &Head) -> String {
        let from = head.keyed_from_seq.unwrap_or_default();
        self.mac("audit-head-v1", &format!("{}.{}.{}.{from}", head.org_id, head.seq, head.hash))
    }
}

impl std::fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// A head as it is known from outside of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub seq: i64,
    pub hash: String,
}

/// An entry about to be written, in the transaction of its cause.
#[derive(Debug, Clone)]
pub struct NewAudit {
    pub org_id: OrgId,
    /// `None` when the host itself acted.
    pub actor_id: Option<UserId>,
    pub actor_name: String,
    pub action: String,
    pub target_type: String,
    pub target_id: Option<Uuid>,
    pub detail: Value,
    pub request_id: Option<String>,
    pub ip: Option<String>,
}

/// What an entry says was done, and to what.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Done {
    pub seq: i64,
    pub action: String,
    pub target_type: String,
    pub target_id: Option<Uuid>,
}

/// Narrows a walk along the audit log. A field that is `None` has no effect; all others must hold.
/// Texts are compared as a whole, with their case.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub actor_id: Option<UserId>,
    pub action: Option<String>,
    pub target_type: Option<String>,
    pub target_id: Option<Uuid>,
    /// From this instant.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
}

/// Whether the chain holds, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Validation {
    /// Whether nothing that was read is wrong.
    pub valid: bool,
    /// How many entries were read.
    pub entries: i64,
    /// The first entry that is not what was written, or the first missing one.
    pub first_invalid_seq: Option<i64>,
    /// False when entries are missing at the end, or the end was not written by the service; null when the end was not
    /// reached.
    pub head_matches: Option<bool>,
    /// False when the log does not continue the last end that the service keeps outside of the database: entries behind
    /// it were removed or replaced. Null when the end was not reached.
    pub kept_head_matches: Option<bool>,
    /// The number of the last entry that was read; send it as `after_seq` to go on behind it.
    pub checked_to_seq: i64,
    /// Whether the end of the chain was reached.
    pub is_complete: bool,
}

/// A walk along the chain of an organization, from which the next entry follows.
#[derive(Debug)]
pub struct ChainWalk {
    org: OrgId,
    key: AuditKey,
    /// What is known of the chain from outside.
    known: Option<Known>,
    last: Last,
    /// The first keyed entry that was read.
    keyed_from_seq: Option<i64>,
    entries: i64,
    first_invalid_seq: Option<i64>,
    head_matches: Option<bool>,
    known_matches: Option<bool>,
}

/// The entry that the next one follows.
#[derive(Debug, FromRow)]
struct Last {
    seq: i64,
    hash: String,
    hash_version: i64,
}

const SELECT: &str =
    "SELECT a.id, a.org_id, a.seq, a.actor_id, a.actor_name, a.action, a.target_type, a.target_id,
    a.detail, a.request_id, a.ip, a.occurred_at, a.previous_hash, a.hash, a.hash_version";
const FROM: &str = "FROM audit a";

macro_rules! insert_entry {
    () => {
        "INSERT INTO audit (id, org_id, seq, actor_id, actor_name, action, target_type, target_id, detail,
            request_id, ip, occurred_at, previous_hash, hash, hash_version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
    };
}
macro_rules! set_head {
    () => {
        "UPDATE audit_head SET hash = $14, keyed_from_seq = $16, code = $17 WHERE org_id = $2"
    };
}
/// An entry and the head behind it, in one round trip: the other writers of the organization wait for it. `SQLite` runs the
/// statements one after the other; `PostgreSQL` takes one statement, of which the first is a part.
const WRITE_SQLITE: &str = concat!(insert_entry!(), "; ", set_head!());
const WRITE_POSTGRES: &str = concat!("WITH entry AS (", insert_entry!(), ") ", set_head!());

/// Organizations of one statement.
const ORGANIZATIONS_PER_STATEMENT: usize = 500;
/// Entries that [`ChainWalk::step`] holds in memory at once.
const VALIDATE_BATCH: i64 = 1_000;

/// The organization's newest entries, the newest first.
pub async fn latest(tx: &mut Tx, org: OrgId, limit: u32) -> Result<Vec<AuditEntry>> {
    Select::new(SELECT, FROM)
        .and_bind("a.org_id = ?", Bind::Id(org.0))
        .all(tx, "a.seq DESC", i64::from(limit))
        .await
}

/// Writes the organization's next entry. Writers of one organization wait for each other here.
pub async fn append(tx: &mut Tx, new: &NewAudit, clock: &Clock, key: &AuditKey) -> Result<AuditEntry> {
    let previous = heads::advance(tx, new.org_id).await?;
    let mut entry = AuditEntry {
        id: clock.new_id(),
        org_id: new.org_id,
        seq: previous.seq + 1,
        actor_id: new.actor_id,
        actor_name: new.actor_name.clone(),
        action: new.action.clone(),
        target_type: new.target_type.clone(),
        target_id: new.target_id,
        detail: new.detail.clone(),
        request_id: new.request_id.clone(),
        ip: new.ip.clone(),
        occurred_at: clock.now(),
        previous_hash: previous.hash.clone(),
        hash: String::new(),
        hash_version: KEYED,
    };
    entry.hash = hash_of(&entry, key);
    let head = previous.followed_by(key, &entry.hash);
    let write = match tx {
        Tx::Sqlite(_) => WRITE_SQLITE,
        Tx::Postgres(_) => WRITE_POSTGRES,
    };
    affected!(
        tx,
        sqlx::query(write)
            .bind(entry.id)
            .bind(entry.org_id)
            .bind(entry.seq)
            .bind(entry.actor_id)
            .bind(&entry.actor_name)
            .bind(&entry.action)
            .bind(&entry.target_type)
            .bind(entry.target_id)
            .bind(&entry.detail)
            .bind(entry.request_id.as_ref())
            .bind(entry.ip.as_ref())
            .bind(entry.occurred_at)
            .bind(&entry.previous_hash)
            .bind(&entry.hash)
            .bind(entry.hash_version)
            .bind(head.keyed_from_seq)
            .bind(&head.code)
    );
    Ok(entry)
}

/// The newest number of each of these organizations that has one.
pub async fn heads(tx: &mut Tx, orgs: &[OrgId]) -> Result<Vec<(OrgId, i64)>> {
    let mut heads = Vec::new();
    for orgs in orgs.chunks(ORGANIZATIONS_PER_STATEMENT) {
        let found: Vec<(OrgId, i64)> = Select::new("SELECT h.org_id, h.seq", "FROM audit_head h")
            .and_in("h.org_id", orgs.iter().map(|org| Bind::Id(org.0)))
            .all(tx, "h.org_id", i64::try_from(orgs.len()).unwrap_or(i64::MAX))
            .await?;
        heads.extend(found);
    }
    Ok(heads)
}

/// What was done behind a number of an organization, in order.
pub async fn done_behind(tx: &mut Tx, org: OrgId, after_seq: i64, limit: u32) -> Result<Vec<Done>> {
    Select::new("SELECT a.seq, a.action, a.target_type, a.target_id", FROM)
        .and_bind("a.org_id = ?", Bind::Id(org.0))
        .and_bind("a.seq > ?", Bind::Number(after_seq))
        .all(tx, "a.seq", i64::from(limit))
        .await
}

/// Entries that fit, the newest first.
pub async fn walk(
    tx: &mut Tx,
    scope: &Scope,
    filter: &AuditFilter,
    request: WalkRequest,
) -> Result<Walked<AuditEntry>> {
    Select::new(SELECT, FROM)
        .within(scope, "a.org_id", None)
        .and_some("a.actor_id = ?", filter.actor_id.map(|id| Bind::Id(id.0)))
        .and_some("a.action = ?", filter.action.clone().map(Bind::Text))
        .and_some("a.target_type = ?", filter.target_type.clone().map(Bind::Text))
        .and_some("a.target_id = ?", filter.target_id.map(Bind::Id))
        .and_some("a.occurred_at >= ?", filter.since.map(Bind::Time))
        .and_some("a.occurred_at < ?", filter.until.map(Bind::Time))
        .walk::<_, AuditEntry>(tx, request)
        .await
}

/// The hash of an entry; `None` when there is none of this number.
pub async fn hash_at(tx: &mut Tx, org: OrgId, seq: i64) -> Result<Option<String>> {
    Ok(on!(tx, conn => sqlx::query_scalar("SELECT hash FROM audit WHERE org_id = $1 AND seq = $2")
        .bind(org).bind(seq)
        .fetch_optional(conn)
        .await)?)
}

impl ChainWalk {
    /// Begins behind an entry, which is believed; `None` when there is no such entry. 0 is the beginning.
    ///
    /// `known` is the head that is known from outside of the database.
    pub async fn begin(
        tx: &mut Tx,
        org: OrgId,
        after_seq: i64,
        key: &AuditKey,
        known: Option<Known>,
    ) -> Result<Option<Self>> {
        let last = if after_seq == 0 {
            Some(Last { seq: 0, hash: String::new(), hash_version: PLAIN })
        } else {
            on!(tx, conn => sqlx::query_as("SELECT seq, hash, hash_version FROM audit WHERE org_id = $1 AND seq = $2")
                .bind(org).bind(after_seq)
                .fetch_optional(conn)
                .await)?
        };
        Ok(last.map(|last| Self {
            org,
            key: key.clone(),
            known,
            last,
            keyed_from_seq: None,
            entries: 0,
            first_invalid_seq: None,
            head_matches: None,
            known_matches: None,
        }))
    }

    /// Checks the next thousand entries; false when the end was reached.
    ///
    /// Each step may be a transaction of its own: what was read does not change.
    pub async fn step(&mut self, tx: &mut Tx) -> Result<bool> {
        let batch: Vec<AuditEntry> = Select::new(SELECT, FROM)
            .and_bind("a.org_id = ?", Bind::Id(self.org.0))
            .and_bind("a.seq > ?", Bind::Number(self.last.seq))
            .all(tx, "a.seq", VALIDATE_BATCH)
            .await?;
        let is_full = i64::try_from(batch.len()).is_ok_and(|length| length == VALIDATE_BATCH);
        for entry in batch {
            self.check(entry);
        }
        if is_full {
            return Ok(true);
        }
        let head = heads::head(tx, self.org).await?;
        self.head_matches = Some(match head {
            Some(head) => self.ends_at(&head),
            None => self.last.seq == 0,
        });
        self.known_matches = Some(match &self.known {
            None => true,
            Some(known) => hash_at(tx, self.org, known.seq).await?.as_ref() == Some(&known.hash),
        });
        Ok(false)
    }

    /// Whether the service wrote this head, and behind the last entry.
    fn ends_at(&self, head: &Head) -> bool {
        let is_keyed = self.last.hash_version == KEYED;
        let same_start =
            self.keyed_from_seq.is_none_or(|first| head.keyed_from_seq.is_some_and(|from| from <= first));
        head.seq == self.last.seq
            && head.hash == self.last.hash
            && head.is_authentic(&self.key)
            && head.keyed_from_seq.is_some() == is_keyed
            && same_start
    }

    fn check(&mut self, entry: AuditEntry) {
        self.entries += 1;
        let expected = self.last.seq + 1;
        let is_next = entry.seq == expected
            && entry.previous_hash == self.last.hash
            && (PLAIN..=KEYED).contains(&entry.hash_version)
            && entry.hash_version >= self.last.hash_version;
        if entry.hash_version == KEYED && self.keyed_from_seq.is_none() {
            self.keyed_from_seq = Some(entry.seq);
        }
        if self.first_invalid_seq.is_none() && !(is_next && hash_of(&entry, &self.key) == entry.hash) {
            self.first_invalid_seq = Some(if entry.seq == expected { entry.seq } else { expected });
        }
        self.last = Last { seq: entry.seq, hash: entry.hash, hash_version: entry.hash_version };
    }

    /// What was found so far.
    pub fn result(&self) -> Validation {
        Validation {
            valid: self.first_invalid_seq.is_none()
                && self.head_matches != Some(false)
                && self.known_matches != Some(false),
            entries: self.entries,
            first_invalid_seq: self.first_invalid_seq,
            head_matches: self.head_matches,
            kept_head_matches: self.known_matches,
            checked_to_seq: self.last.seq,
            is_complete: self.head_matches.is_some(),
        }
    }
}

fn hash_of(entry: &AuditEntry, key: &AuditKey) -> String {
    let fields = json!({
        "id": entry.id,
        "org_id": entry.org_id,
        "seq": entry.seq,
        "actor_id": entry.actor_id,
        "actor_name": entry.actor_name,
        "action": entry.action,
        "target_type": entry.target_type,
        "target_id": entry.target_id,
        "detail": entry.detail,
        "request_id": entry.request_id,
        "ip": entry.ip,
        "occurred_at": format_time(entry.occurred_at),
    });
    let text = format!("{}{}", entry.previous_hash, canonical(&fields));
    if entry.hash_version == PLAIN {
        hex::encode(Sha256::digest(text.as_bytes()))
    } else {
        key.mac("audit-entry-v2", &text)
    }
}

/// The same value in the one form that does not depend on the database it went
/// through: one keeps the order of keys and the spelling of numbers, the other does not.
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            Value::Object(
                names.into_iter().map(|name| (name.clone(), canonical(&fields[name]))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Number(number) => canonical_number(number),
        other => other.clone(),
    }
}

fn canonical_number(number: &serde_json::Number) -> Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT_MAX => {
            // Whole and within 53 bits, so its decimal digits are exactly the integer's.
            let digits = format!("{float:.0}");
            digits.parse::<i64>().map_or_else(|_| Value::Number(number.clone()), Value::from)
        }
        _ => Value::Number(number.clone()),
    }
}

#[cfg(test)]
mod tests;
