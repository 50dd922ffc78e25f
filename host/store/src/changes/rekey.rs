//! A change whose secrets another key seals from now on.

use heddle_core::change::{ApplyStep, ChangeSpec};
use heddle_core::{ChangeId, Timestamp};
use serde_json::Value;
use sqlx::types::Json;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// The parts of a change that depend on the key.
#[derive(Debug)]
pub struct Rekeyed {
    pub secret: Vec<u8>,
    /// With references to the secrets under the new key.
    pub payload: Value,
    pub also: Vec<ChangeSpec>,
    pub expressed_as: Option<Vec<ChangeSpec>>,
    pub plan_inverse: Option<Vec<ChangeSpec>>,
    /// Why the plan is dropped; `None` keeps it.
    pub plan_error: Option<Value>,
}

/// Replaces what depends on the key, unless the change is being applied or its secrets are no longer `old`; says
/// whether it happened.
pub async fn rekey(tx: &mut Tx, id: ChangeId, old: &[u8], new: &Rekeyed, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE change
        SET secret = $3, payload = $4, also = $5, plan_inverse = $6,
            plan = CASE WHEN $7 THEN NULL ELSE plan END,
            plan_token = CASE WHEN $7 THEN NULL ELSE plan_token END,
            plan_error = CASE WHEN $7 THEN $8 ELSE plan_error END,
            updated_at = $9, expressed_as = $11
        WHERE id = $1 AND secret = $2 AND apply_step = $10"
        )
        .bind(id)
        .bind(old)
        .bind(&new.secret)
        .bind(&new.payload)
        .bind(Json(&new.also))
        .bind(new.plan_inverse.as_ref().map(Json))
        .bind(new.plan_error.is_some())
        .bind(new.plan_error.as_ref())
        .bind(now)
        .bind(ApplyStep::Idle)
        .bind(new.expressed_as.as_ref().map(Json))
    );
    Ok(rows == 1)
}
