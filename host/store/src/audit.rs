//! The audit log: a chain of hashes per organization, so that a change of the past shows.
//!
//! An entry's hash is the SHA-256, in hex, of its predecessor's hash (empty
//! for the first) followed by the canonical JSON of an object with the fields
//! `id`, `org_id`, `seq`, `actor_id`, `actor_name`, `action`, `target_type`,
//! `target_id`, `detail`, `request_id`, `ip` and `occurred_at` (RFC 3339, UTC,
//! six digits of a second). Canonical means: keys sorted by their bytes, no
//! white space, and a number without fraction as an integer where 53 bits hold it.

use heddle_core::event::format_time;
use heddle_core::page::{WalkRequest, Walked};
use heddle_core::{AuditId, Clock, OrgId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use uuid::Uuid;

use crate::select::{Bind, Select, affected};
use crate::{Result, Scope, Tx};

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
    /// False when entries are missing at the end; null when the end was not reached.
    pub head_matches: Option<bool>,
    /// The number of the last entry that was read; send it as `after_seq` to go on behind it.
    pub checked_to_seq: i64,
    /// Whether the end of the chain was reached.
    pub is_complete: bool,
}

/// A walk along the chain of an organization, from which the next entry follows.
#[derive(Debug)]
pub struct ChainWalk {
    org: OrgId,
    last: Head,
    entries: i64,
    first_invalid_seq: Option<i64>,
    head_matches: Option<bool>,
}

#[derive(Debug, FromRow)]
struct Head {
    seq: i64,
    hash: String,
}

const SELECT: &str =
    "SELECT a.id, a.org_id, a.seq, a.actor_id, a.actor_name, a.action, a.target_type, a.target_id,
    a.detail, a.request_id, a.ip, a.occurred_at, a.previous_hash, a.hash";
const FROM: &str = "FROM audit a";

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
pub async fn append(tx: &mut Tx, new: &NewAudit, clock: &Clock) -> Result<AuditEntry> {
    let previous: Head = on!(tx, conn => sqlx::query_as("
        INSERT INTO audit_head (org_id, seq, hash) VALUES ($1, 1, '')
        ON CONFLICT (org_id) DO UPDATE SET seq = audit_head.seq + 1
        RETURNING seq, hash")
        .bind(new.org_id)
        .fetch_one(conn)
        .await)?;
    let mut entry = AuditEntry {
        id: clock.new_id(),
        org_id: new.org_id,
        seq: previous.seq,
        actor_id: new.actor_id,
        actor_name: new.actor_name.clone(),
        action: new.action.clone(),
        target_type: new.target_type.clone(),
        target_id: new.target_id,
        detail: new.detail.clone(),
        request_id: new.request_id.clone(),
        ip: new.ip.clone(),
        occurred_at: clock.now(),
        previous_hash: previous.hash,
        hash: String::new(),
    };
    entry.hash = hash_of(&entry);
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO audit (id, org_id, seq, actor_id, actor_name, action, target_type, target_id, detail,
            request_id, ip, occurred_at, previous_hash, hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
        )
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
    );
    affected!(
        tx,
        sqlx::query("UPDATE audit_head SET hash = $2 WHERE org_id = $1").bind(entry.org_id).bind(&entry.hash)
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
    let order = "a.occurred_at DESC, a.seq DESC, a.id DESC";
    Select::new(SELECT, FROM)
        .within(scope, "a.org_id", None)
        .and_some("a.actor_id = ?", filter.actor_id.map(|id| Bind::Id(id.0)))
        .and_some("a.action = ?", filter.action.clone().map(Bind::Text))
        .and_some("a.target_type = ?", filter.target_type.clone().map(Bind::Text))
        .and_some("a.target_id = ?", filter.target_id.map(Bind::Id))
        .and_some("a.occurred_at >= ?", filter.since.map(Bind::Time))
        .and_some("a.occurred_at < ?", filter.until.map(Bind::Time))
        .walk(tx, "a.occurred_at, a.seq, a.id", order, request)
        .await
}

impl ChainWalk {
    /// Begins behind an entry, which is believed; `None` when there is no such entry. 0 is the beginning.
    pub async fn begin(tx: &mut Tx, org: OrgId, after_seq: i64) -> Result<Option<Self>> {
        let last = if after_seq == 0 {
            Some(Head { seq: 0, hash: String::new() })
        } else {
            on!(tx, conn => sqlx::query_as("SELECT seq, hash FROM audit WHERE org_id = $1 AND seq = $2")
                .bind(org).bind(after_seq)
                .fetch_optional(conn)
                .await)?
        };
        Ok(last.map(|last| Self { org, last, entries: 0, first_invalid_seq: None, head_matches: None }))
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
        let head: Option<Head> = on!(tx, conn => sqlx::query_as("SELECT seq, hash FROM audit_head WHERE org_id = $1")
                .bind(self.org)
                .fetch_optional(conn)
                .await)?;
        self.head_matches = Some(match head {
            Some(head) => head.seq == self.last.seq && head.hash == self.last.hash,
            None => self.last.seq == 0,
        });
        Ok(false)
    }

    fn check(&mut self, entry: AuditEntry) {
        self.entries += 1;
        let expected = self.last.seq + 1;
        let is_next = entry.seq == expected && entry.previous_hash == self.last.hash;
        if self.first_invalid_seq.is_none() && !(is_next && hash_of(&entry) == entry.hash) {
            self.first_invalid_seq = Some(if entry.seq == expected { entry.seq } else { expected });
        }
        self.last = Head { seq: entry.seq, hash: entry.hash };
    }

    /// What was found so far.
    pub fn result(&self) -> Validation {
        Validation {
            valid: self.first_invalid_seq.is_none() && self.head_matches != Some(false),
            entries: self.entries,
            first_invalid_seq: self.first_invalid_seq,
            head_matches: self.head_matches,
            checked_to_seq: self.last.seq,
            is_complete: self.head_matches.is_some(),
        }
    }
}

fn hash_of(entry: &AuditEntry) -> String {
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
    let mut hash = Sha256::new();
    hash.update(&entry.previous_hash);
    hash.update(canonical(&fields).to_string());
    hex::encode(hash.finalize())
}

/// The same value in the one form that does not depend on the database it went
/// through: one keeps the order of keys and the spelling of numbers, the other does not.
pub(crate) fn canonical(value: &Value) -> Value {
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
