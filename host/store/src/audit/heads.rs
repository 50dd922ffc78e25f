//! Heads: the number and the hash of an organization's last entry, with a code that only the service can compute.

use heddle_core::OrgId;
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;

use super::AuditKey;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select};

/// In place of the code of a head that follows one that was not right. Nothing makes it right again.
const BROKEN: &str = "broken";

/// The end of an organization's log.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "AuditHead")]
pub struct Head {
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    /// How many entries there are.
    pub seq: i64,
    /// Hash of the last entry.
    pub hash: String,
    /// The first entry with a keyed hash; null when there is none yet.
    pub keyed_from_seq: Option<i64>,
    #[serde(skip)]
    pub code: Option<String>,
}

impl Head {
    /// Whether the service wrote it. A head from before codes were introduced has none.
    pub fn is_authentic(&self, key: &AuditKey) -> bool {
        match (&self.code, self.keyed_from_seq) {
            (Some(code), Some(_)) => *code == key.code(self),
            (None, None) => true,
            _ => false,
        }
    }

    /// Makes the head behind this one. What follows a head that is not right is marked as well.
    pub(super) fn followed_by(&self, key: &AuditKey, hash: &str) -> Self {
        let seq = self.seq + 1;
        let mut head = Self {
            org_id: self.org_id,
            seq,
            hash: hash.to_owned(),
            keyed_from_seq: Some(self.keyed_from_seq.unwrap_or(seq)),
            code: None,
        };
        head.code = Some(if self.is_authentic(key) { key.code(&head) } else { BROKEN.to_owned() });
        head
    }
}

/// Takes the next number, and answers the head before it. Writers of one organization wait for each other here.
pub(super) async fn advance(tx: &mut Tx, org: OrgId) -> Result<Head> {
    let taken: Head = on!(tx, conn => sqlx::query_as("
        INSERT INTO audit_head (org_id, seq, hash) VALUES ($1, 1, '')
        ON CONFLICT (org_id) DO UPDATE SET seq = audit_head.seq + 1
        RETURNING org_id, seq, hash, keyed_from_seq, code")
        .bind(org)
        .fetch_one(conn)
        .await)?;
    Ok(Head { seq: taken.seq - 1, ..taken })
}

const SELECT: &str = "SELECT h.org_id, h.seq, h.hash, h.keyed_from_seq, h.code";
const FROM: &str = "FROM audit_head h";

/// Returns the end of the organization's log, without a lock. `None` means that the log has no entry.
pub async fn head(tx: &mut Tx, org: OrgId) -> Result<Option<Head>> {
    let found: Vec<Head> =
        Select::new(SELECT, FROM).and_bind("h.org_id = ?", Bind::Id(org.0)).all(tx, "h.org_id", 1).await?;
    Ok(found.into_iter().next())
}

/// Up to `limit` heads behind an organization, in the order of their ids.
pub async fn heads_behind(tx: &mut Tx, after: Option<OrgId>, limit: i64) -> Result<Vec<Head>> {
    Select::new(SELECT, FROM)
        .and_some("h.org_id > ?", after.map(|org| Bind::Id(org.0)))
        .all(tx, "h.org_id", limit)
        .await
}
