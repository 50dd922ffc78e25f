//! What tells where a difference comes from: changes that were sent, and versions that run.

use heddle_core::{ControllerId, Timestamp};
use serde_json::Value;
use sqlx::FromRow;

use crate::changes::ChangeRow;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select};

/// Most changes that are looked at for one comparison.
const CHANGES_MAX: i64 = 500;
/// Most objects that say a version.
const VERSIONED_MAX: i64 = 2_000;

/// Changes of a controller of which a part may have reached it between these times, in the order in which they ended, with
/// the rows of sets.
pub async fn attempted_since(
    tx: &mut Tx,
    controller: ControllerId,
    since: Timestamp,
    until: Timestamp,
) -> Result<Vec<ChangeRow>> {
    let select = Select::new("SELECT g.*", "FROM change g")
        .and_bind("g.controller_id = ?", Bind::Id(controller.0))
        .and("g.outcome_state NOT IN ('none', 'expired', 'failed')");
    // An applied change counts by its time; one whose outcome is in doubt by when it was moved last.
    select
        .and_bind("COALESCE(g.applied_at, g.updated_at) >= ?", Bind::Time(since))
        .and_bind("COALESCE(g.applied_at, g.updated_at) < ?", Bind::Time(until))
        .all(tx, "COALESCE(g.applied_at, g.updated_at), g.set_position, g.id", CHANGES_MAX)
        .await
}

/// An object that says which version runs.
#[derive(Debug, Clone, FromRow)]
pub struct Versioned {
    pub kind: String,
    pub key: String,
    pub device_key: Option<String>,
    pub fields: Value,
}

/// The objects of a controller that say which version runs.
pub async fn versions(tx: &mut Tx, controller: ControllerId) -> Result<Vec<Versioned>> {
    Select::new("SELECT o.kind, o.key, o.device_key, o.fields", "FROM model_object o")
        .and_bind("o.controller_id = ?", Bind::Id(controller.0))
        .and("o.kind IN ('system', 'firmware')")
        .all(tx, "o.kind, o.key, o.site_ref", VERSIONED_MAX)
        .await
}
