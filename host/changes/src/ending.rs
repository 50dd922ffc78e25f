//! The end of an attempt: outcome, event and audit entry in one transaction.

use heddle_core::ChangeId;
use heddle_core::change::{ApplyStep, ChangeStatus, OutcomeState};
use heddle_inventory::sync::Bell;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::changes::{self, Advance, ChangeRow};
use heddle_store::{Set, Tx};
use serde_json::json;

use super::apply::get;
use super::detail::Detail;
use super::measures::Measures;
use super::outcome::{Actor, Step, record};
use super::set;
use crate::declarations::{CHANGE_APPLIED, CHANGE_FAILED, CHANGE_REVERTED};

/// Ends an attempt in its own transaction.
pub(super) async fn finish(
    app: &App,
    row: &ChangeRow,
    state: OutcomeState,
    message: Option<String>,
    detail: &Detail,
) -> Result<ChangeRow, Error> {
    finish_in(app.db.write().await?, app, row, (state, message), detail).await
}

/// Ends an attempt in an open transaction, and commits it.
pub(super) async fn finish_in(
    mut tx: Tx,
    app: &App,
    row: &ChangeRow,
    (state, message): (OutcomeState, Option<String>),
    detail: &Detail,
) -> Result<ChangeRow, Error> {
    let now = app.clock.now();
    let mut attempts = row.attempts.clone();
    if let Some(last) = attempts.last_mut() {
        last.end(state, message.as_deref(), now);
    }
    let applied_by = attempts.last().map(|attempt| attempt.started_by);
    let is_applied = state == OutcomeState::Applied;
    let advance = Advance {
        outcome_state: Some(state),
        outcome_message: message.clone().map_or(Set::Clear, Set::To),
        outcome_detail: detail.to_set(),
        attempts: Some(attempts),
        status: is_applied.then_some(ChangeStatus::Applied),
        applied_by: if is_applied { applied_by } else { None },
        applied_at: is_applied.then_some(now),
        ..Advance::default()
    };
    let Some(ended) =
        changes::advance(&mut tx, row.id, row.apply_owner, row.apply_step, ApplyStep::Idle, &advance, now)
            .await?
    else {
        return get(&mut tx, row.id).await;
    };
    set::follow(&mut tx, &ended, now).await?;
    record(&mut tx, app, &ended, &ending(&ended, state, message)).await?;
    if is_applied && let Some(original) = ended.reverts {
        mark_reverted(&mut tx, app, original, &ended).await?;
    }
    if state == OutcomeState::Reverted
        && let Some(original) = ended.reverts
    {
        unmark_reverted(&mut tx, app, original, &ended).await?;
    }
    tx.commit().await?;
    Measures::of(app).apply_ended(&ended.vendor, state);
    Bell::of(app).ring();
    tracing::info!(change.id = %ended.id, outcome = %state, "apply of change {} ended: {state}", ended.id);
    Ok(ended)
}

fn ending(row: &ChangeRow, state: OutcomeState, message: Option<String>) -> Step {
    let attempt = row.attempts.last();
    let actor = Actor {
        user: attempt.map(|attempt| attempt.started_by),
        via: attempt.and_then(|attempt| attempt.via.clone()),
        ..Actor::service()
    };
    let (action, event) = match state {
        OutcomeState::Applied => ("change.applied", CHANGE_APPLIED),
        OutcomeState::Reverted => ("change.reverted", CHANGE_REVERTED),
        _ => ("change.failed", CHANGE_FAILED),
    };
    let mut step = Step::new(action, actor).event(event).message(message.unwrap_or_default());
    step.detail = json!({ "state": state });
    let detail = Detail::of(row);
    if !detail.warnings.is_empty() {
        step.detail["warnings"] = json!(detail.warnings);
    }
    if !detail.lost.is_empty() {
        step.detail["lost"] = json!(detail.lost);
    }
    step
}

/// Marks a change as reverted, because its inverse is in effect.
async fn mark_reverted(tx: &mut Tx, app: &App, original: ChangeId, by: &ChangeRow) -> Result<(), Error> {
    let now = app.clock.now();
    if !changes::mark_reverted(tx, original, by.id, now).await? {
        return Ok(());
    }
    let original = get(tx, original).await?;
    set::follow(tx, &original, now).await?;
    let message = format!("taken back by change {}", by.id);
    record(tx, app, &original, &ending(&original, OutcomeState::Reverted, Some(message))).await
}

/// The inverse is no longer in effect, so what it took back is again.
async fn unmark_reverted(tx: &mut Tx, app: &App, original: ChangeId, by: &ChangeRow) -> Result<(), Error> {
    let now = app.clock.now();
    if !changes::unmark_reverted(tx, original, by.id, now).await? {
        return Ok(());
    }
    let original = get(tx, original).await?;
    set::follow(tx, &original, now).await?;
    let message = format!("in effect again: change {} was taken back", by.id);
    record(tx, app, &original, &ending(&original, OutcomeState::Applied, Some(message))).await
}
