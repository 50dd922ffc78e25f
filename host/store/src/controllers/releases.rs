//! What is known of the release that a controller runs, and whether a person allowed it.

use heddle_core::release::ReleaseState;
use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use sqlx::FromRow;

use super::{Controller, ControllerTarget};
use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns};
use crate::select::{Bind, Scope, Select, affected};

/// A controller that was read, with all that its release is judged by.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Running {
    pub id: ControllerId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub product: Option<String>,
    pub firmware: Option<String>,
    pub allowed_release: Option<String>,
    pub release_state: ReleaseState,
}

/// Controllers of a vendor that were read, by their ids from behind one on.
pub async fn running(
    tx: &mut Tx,
    vendor: &str,
    behind: Option<ControllerId>,
    limit: u32,
) -> Result<Vec<Running>> {
    Select::new(
        "SELECT id, org_id, site_id, product, firmware, allowed_release, release_state",
        "FROM controller",
    )
    .and("deleted_at IS NULL AND firmware IS NOT NULL")
    .and_bind("vendor = ?", Bind::Text(vendor.to_owned()))
    .and_some("id > ?", behind.map(|id| Bind::Id(id.0)))
    .all(tx, "id", i64::from(limit))
    .await
}

/// Writes another state; false where the controller runs or allows something else by now, or was judged meanwhile.
pub async fn judge(tx: &mut Tx, judged: &Running, state: ReleaseState, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller SET release_state = $2, updated_at = $3
        WHERE id = $1 AND deleted_at IS NULL AND release_state = $4 AND firmware IS NOT DISTINCT FROM $5
            AND product IS NOT DISTINCT FROM $6 AND allowed_release IS NOT DISTINCT FROM $7"
        )
        .bind(judged.id)
        .bind(state)
        .bind(now)
        .bind(judged.release_state)
        .bind(&judged.firmware)
        .bind(&judged.product)
        .bind(&judged.allowed_release)
    );
    Ok(rows == 1)
}

/// Holds the row of a controller that was asked for its version until the transaction ends, and returns what is known of
/// its release now.
///
/// `None` when it was removed, or has another address, credential or settings than the one that was asked: the answer says
/// nothing of it.
pub async fn hold(tx: &mut Tx, asked: &ControllerTarget) -> Result<Option<Running>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE controller SET updated_at = updated_at
        WHERE id = $1 AND deleted_at IS NULL AND url = $2 AND credential_id = $3 AND settings = $4
        RETURNING id, org_id, site_id, product, firmware, allowed_release, release_state")
        .bind(asked.id).bind(&asked.url).bind(asked.credential_id).bind(&asked.settings)
        .fetch_optional(conn)
        .await)?)
}

/// Writes what a controller said of its release, of which [`hold`] holds the row.
pub async fn learn(
    tx: &mut Tx,
    id: ControllerId,
    (product, version): (&str, &str),
    state: ReleaseState,
    now: Timestamp,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller SET product = $2, firmware = $3, release_state = $4, updated_at = $5
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(product)
        .bind(version)
        .bind(state)
        .bind(now)
    );
    Ok(())
}

/// Writes which version a person allows, if any, of a controller that the caller has locked.
pub async fn allow(
    tx: &mut Tx,
    scope: &Scope,
    id: ControllerId,
    version: Option<&str>,
    state: ReleaseState,
    now: Timestamp,
) -> Result<Option<Controller>> {
    let columns =
        Columns::default().or_null("allowed_release", version).with("release_state", state.to_string());
    object::update(tx, scope, id, columns, now).await
}
