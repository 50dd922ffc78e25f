//! Takes a change back: at once while that is possible, by another change once it is permanent.

use axum::response::Response;
use heddle_core::change::{ApplyStep, ChangeStatus, OutcomeState};
use heddle_core::fault::FaultKind;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_runtime::CallError;
use heddle_store::changes::{self, ChangeRow};

use super::place::used_place_of;
use super::plan::{self, Inverse, Ready, Request, secrets_of};
use super::{gates, new_key, window};

/// The result of a revert.
pub enum Reverted<R> {
    /// It was taken back at the device.
    TakenBack(Box<R>),
    /// Another change was staged that takes it back.
    Staged(Response),
}

impl<R> std::fmt::Debug for Reverted<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::TakenBack(_)) { "TakenBack" } else { "Staged" })
    }
}

/// Takes back a change that is in its window or in doubt; stages the inverse of one that is applied.
pub async fn revert(by: &By, creation: Creation, row: ChangeRow) -> Result<Reverted<ChangeRow>, Error> {
    gates::change_may_be_moved_on(&by.caller, &row)?;
    let is_idle = row.apply_step == ApplyStep::Idle;
    if row.apply_step == ApplyStep::Holding || (is_idle && gates::must_be_verified(&row)) {
        let row = window::take_back(by, row).await?;
        return Ok(Reverted::TakenBack(Box::new(row)));
    }
    if !is_idle {
        return Err(super::apply::under_way(&row));
    }
    let ready = prepare_inverse(by, row).await?;
    let mut tx = by.app.db.write().await?;
    let staged = ready.write(&by.app, &by.caller, &mut tx).await?;
    plan::answer(&by.app, tx, staged, creation).await.map(Reverted::Staged)
}

/// Plans the change that takes this one back.
pub async fn prepare_inverse(by: &By, row: ChangeRow) -> Result<Ready, Error> {
    let By { app, caller, origin } = by;
    if row.status != ChangeStatus::Applied || row.outcome_state == OutcomeState::Reverted {
        return Err(Error::Conflict {
            kind: "not_applied",
            message: "only a change that is applied and not yet taken back can be reverted".to_owned(),
        });
    }
    let place = used_place_of(app, caller, &row).await?;
    let row = new_key::current(app, row).await?;
    let mut inverse = row.plan_inverse.clone().unwrap_or_default().into_iter();
    let first = inverse.next().ok_or_else(|| Error::Conflict {
        kind: "not_invertible",
        message: "change cannot be taken back by another change; its plan said so".to_owned(),
    })?;
    let later = {
        let mut tx = app.db.read().await?;
        changes::later_dependents(&mut tx, &row).await?
    };
    let warnings = later
        .iter()
        .map(|id| format!("change {id} was applied later in the same area and may depend on this one"));
    let inverse_of = Inverse { of: row.id, secrets: secrets_of(app, &row)?, warnings: warnings.collect() };
    let what = if row.is_set { "set" } else { "change" };
    let request = Request {
        controller_id: row.controller_id,
        site_id: None,
        site_ref: None,
        vendor: None,
        area: row.area.clone(),
        feature: first.feature,
        operation: first.operation,
        payload: first.payload,
        also: inverse.collect(),
        notes: Some(format!("takes back {what} {}", row.id)),
    };
    plan::prepare_inverse(app, caller, origin, place, request, inverse_of).await.map_err(object_is_gone)
}

/// The error when the object that a change wrote no longer exists.
fn object_is_gone(error: Error) -> Error {
    match error {
        Error::Adapter(CallError::Fault(fault))
            if matches!(fault.kind, FaultKind::NotFound | FaultKind::Invalid) =>
        {
            let message = if fault.kind == FaultKind::NotFound {
                format!("what this change wrote is not there to be taken back: {fault}")
            } else {
                format!("this change cannot be taken back as the device is now: {fault}")
            };
            Error::Conflict { kind: "not_revertible", message }
        }
        other => other,
    }
}
