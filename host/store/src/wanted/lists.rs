//! How far the readings of lists were compared with what is wanted.

use std::collections::BTreeMap;

use heddle_core::adapter::Completeness;
use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::Tx;
use crate::error::Result;
use crate::model_objects::record::List;
use crate::select::{Bind, Select, affected};

/// A list that was read since it was compared last.
#[derive(Debug, Clone, FromRow)]
pub struct Due {
    pub org_id: OrgId,
    /// The site of ours that its objects belong to.
    pub site_id: SiteId,
    pub controller_id: ControllerId,
    pub vendor: String,
    /// The version that the controller runs, as it was last read.
    pub firmware: Option<String>,
    pub kind: String,
    /// The vendor's id of the site; empty where the objects are the controller's.
    pub site_ref: String,
    /// When the reading began, and when it came to its end.
    pub begun_at: Timestamp,
    pub read_at: Timestamp,
    pub complete: Completeness,
}

impl Due {
    /// Names the list.
    pub fn list(&self) -> List<'_> {
        List { controller_id: self.controller_id, kind: &self.kind, site_ref: &self.site_ref }
    }
}

/// A kind of the model whose lists are compared, at the controllers of a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub vendor: String,
    pub kind: String,
}

/// Lists of these kinds that were read since they were compared last, the one that was read longest ago first.
///
/// A controller waits while it is read, while a change is applied there or a set over several controllers keeps it, and where
/// a change was sent after the reading began: such a reading may show a state in between.
pub async fn due(tx: &mut Tx, followed: &[Followed], limit: u32) -> Result<Vec<Due>> {
    waiting(followed).all(tx, "r.read_at, r.controller_id, r.kind, r.site_ref", i64::from(limit)).await
}

/// Whether a list still waits to be compared as it was read then.
pub async fn is_due(tx: &mut Tx, due: &Due) -> Result<bool> {
    let followed = Followed { vendor: due.vendor.clone(), kind: due.kind.clone() };
    let found: Vec<Due> = waiting(&[followed])
        .and_bind("r.controller_id = ?", Bind::Id(due.controller_id.0))
        .and_bind("r.site_ref = ?", Bind::Text(due.site_ref.clone()))
        .all(tx, "r.read_at", 1)
        .await?;
    Ok(found.first().is_some_and(|found| found.read_at == due.read_at && found.begun_at == due.begun_at))
}

fn waiting(followed: &[Followed]) -> Select {
    let pairs = followed.iter().map(|one| Bind::Text(format!("{} {}", one.vendor, one.kind)));
    Select::new(
        "SELECT c.org_id, COALESCE(s.id, c.site_id) AS site_id, r.controller_id, c.vendor, c.firmware, r.kind, r.site_ref,
            r.begun_at, r.read_at, r.complete",
        "FROM model_reading r
            JOIN controller c ON c.id = r.controller_id AND c.deleted_at IS NULL AND c.sync_owner IS NULL
            LEFT JOIN vendor_site v ON v.controller_id = r.controller_id AND v.site_ref = r.site_ref
            LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL
            LEFT JOIN wanted_list w ON w.controller_id = r.controller_id AND w.kind = r.kind
                AND w.site_ref = r.site_ref",
    )
    .and("r.begun_at IS NOT NULL AND r.read_at >= r.begun_at")
    .and("(w.read_at IS NULL OR w.read_at < r.read_at)")
    .and(
        "NOT EXISTS (SELECT 1 FROM change g WHERE g.controller_id = r.controller_id AND (g.apply_step <> 'idle'
            OR g.applied_at >= r.begun_at
            OR (g.outcome_state IN ('failed', 'partial', 'unknown', 'reverted') AND g.updated_at >= r.begun_at)))",
    )
    .and(
        "NOT EXISTS (SELECT 1 FROM change_saga_part part WHERE part.controller_id = r.controller_id AND part.is_locked)",
    )
    .and_in("c.vendor || ' ' || r.kind", pairs)
}

/// How a list was compared last.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Compared {
    pub begun_at: Timestamp,
    pub read_at: Timestamp,
    /// The package that read it.
    pub adapter: String,
    /// Versions of the controller and its devices then.
    #[sqlx(json)]
    pub versions: BTreeMap<String, String>,
    /// Objects that are not followed.
    pub left_out: i64,
}

/// Holds the list until the transaction ends, and says how it was compared last; `None` where it never was.
pub async fn hold(tx: &mut Tx, list: &List<'_>) -> Result<Option<Compared>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE wanted_list SET read_at = read_at WHERE controller_id = $1 AND kind = $2 AND site_ref = $3
        RETURNING begun_at, read_at, adapter, versions, left_out")
        .bind(list.controller_id).bind(list.kind).bind(list.site_ref)
        .fetch_optional(conn)
        .await)?)
}

/// Stores how a list was compared.
pub async fn save(tx: &mut Tx, list: &List<'_>, compared: &Compared) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO wanted_list (controller_id, kind, site_ref, begun_at, read_at, adapter, versions, left_out)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (controller_id, kind, site_ref) DO UPDATE SET
                begun_at = excluded.begun_at, read_at = excluded.read_at, adapter = excluded.adapter,
                versions = excluded.versions, left_out = excluded.left_out"
        )
        .bind(list.controller_id)
        .bind(list.kind)
        .bind(list.site_ref)
        .bind(compared.begun_at)
        .bind(compared.read_at)
        .bind(&compared.adapter)
        .bind(Json(&compared.versions))
        .bind(compared.left_out)
    );
    Ok(())
}

/// Forgets all that is wanted of a list: the next comparison of it is the first one.
pub async fn forget_list(tx: &mut Tx, list: &List<'_>) -> Result<()> {
    for statement in [
        "DELETE FROM wanted_object WHERE controller_id = $1 AND kind = $2 AND site_ref = $3",
        "DELETE FROM wanted_list WHERE controller_id = $1 AND kind = $2 AND site_ref = $3",
    ] {
        affected!(tx, sqlx::query(statement).bind(list.controller_id).bind(list.kind).bind(list.site_ref));
    }
    Ok(())
}
