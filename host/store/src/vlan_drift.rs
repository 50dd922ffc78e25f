//! Where controllers of a site differ from the intent of its VLANs, as the last comparison found it.

use heddle_core::vlan::VlanFault;
use heddle_core::{ControllerId, SiteId, Timestamp};
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};

/// Rows of one statement.
const ROWS_PER_STATEMENT: usize = 500;
/// Most differences of one site.
pub const DRIFT_MAX: usize = 20_000;

/// One difference. All fields before `expected` tell it from others of its site.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct VlanDrift {
    pub controller_id: ControllerId,
    /// The vendor's id of the site; empty where the VLANs are the controller's.
    pub site_ref: String,
    pub class: VlanFault,
    pub vlan_id: i64,
    /// The end of the link that it is about; empty where it is about none.
    pub place: String,
    pub expected: Option<String>,
    pub found: Option<String>,
    pub since: Timestamp,
    /// When what resolves it was last staged by policy, or was found to be nothing that can be staged.
    pub staged_at: Option<Timestamp>,
}

impl VlanDrift {
    /// What tells it from the others of its site.
    pub fn identity(&self) -> (ControllerId, &str, VlanFault, i64, &str) {
        (self.controller_id, &self.site_ref, self.class, self.vlan_id, &self.place)
    }
}

/// The differences of a site that are known.
pub async fn of_site(tx: &mut Tx, site: SiteId) -> Result<Vec<VlanDrift>> {
    let limit = i64::try_from(DRIFT_MAX).unwrap_or(i64::MAX);
    Select::new(
        "SELECT d.controller_id, d.site_ref, d.class, d.vlan_id, d.place, d.expected, d.found, d.since, d.staged_at",
        "FROM vlan_drift d",
    )
    .and_bind("d.site_id = ?", Bind::Id(site.0))
    .all(tx, "d.controller_id, d.site_ref, d.class, d.vlan_id, d.place", limit)
    .await
}

/// Puts these differences in the place of those that are known of the site; each identity is there once.
pub async fn replace(tx: &mut Tx, site: SiteId, rows: &[VlanDrift]) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM vlan_drift WHERE site_id = $1").bind(site));
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO vlan_drift (site_id, controller_id, site_ref, class, vlan_id, place, expected, found, since,
                    staged_at) ",
            );
            insert.push_values(rows, |mut row, drift| {
                row.push_bind(site)
                    .push_bind(drift.controller_id)
                    .push_bind(&drift.site_ref)
                    .push_bind(drift.class)
                    .push_bind(drift.vlan_id)
                    .push_bind(&drift.place)
                    .push_bind(drift.expected.as_ref())
                    .push_bind(drift.found.as_ref())
                    .push_bind(drift.since)
                    .push_bind(drift.staged_at);
            });
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Notes that nothing is to be staged any more for these differences of a site.
pub async fn note_staged(tx: &mut Tx, site: SiteId, done: &[VlanDrift], now: Timestamp) -> Result<()> {
    for rows in done.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut update = QueryBuilder::new("UPDATE vlan_drift SET staged_at = ");
            update.push_bind(now).push(" WHERE site_id = ").push_bind(site);
            update.push(" AND staged_at IS NULL AND (controller_id, site_ref, class, vlan_id, place) IN (");
            update.push_values(rows, |mut row, drift| {
                row.push_bind(drift.controller_id)
                    .push_bind(&drift.site_ref)
                    .push_bind(drift.class)
                    .push_bind(drift.vlan_id)
                    .push_bind(&drift.place);
            });
            update.push(")");
            update.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
