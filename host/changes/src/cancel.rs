//! Ends a job that runs at the device, when a person asks for it.
//!
//! The call that ends it was planned and reviewed with the others. The request is recorded first; the process that gets it
//! then owns the change, and its drive sends the call, at most once. The job is polled on until it ends, however that is.

use heddle_core::change::{ApplyStep, Cancellation, HoleSource, NativeCall, Stage, StageSent};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_runtime::holes_of;
use heddle_store::changes::{self, ChangeRow};
use serde_json::json;

use super::apply::get;
use super::drive::{self, Start, held_message};
use super::drivers::Drivers;
use super::job::{calls_that_end, has_left, running_call};
use super::outcome::{Actor, Step, record};
use super::place::place_of;
use super::{gates, set};
use crate::declarations::CHANGE_CANCEL_REQUESTED;

/// Records the request to end the job that the change waits for, and has it carried out. Returns at once: how the job
/// ended, the outcome tells.
pub async fn cancel(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
    let By { app, caller, origin } = by;
    let id = row.id;
    gates::change_may_be_moved_on(caller, &row)?;
    gates::platform_is_writable(app)?;
    place_of(app, caller, &row).await?;
    // What cannot be cancelled does not take the claim from the task that drives the change.
    call_to_end(app, &row)?;
    let term = app.membership.term()?;
    drive::prepare(app, &row).await?;
    // Claimed before other tasks of this process see that it must be driven; without a claim, this process drives it.
    let driver = Drivers::of(app).claim(id);
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    changes::lock(&mut tx, id).await?;
    let row = get(&mut tx, id).await?;
    let call = call_to_end(app, &row)?;
    let cancellation = Cancellation {
        call: call.clone(),
        requested_at: now,
        requested_by: caller.user_id,
        via: caller.credential.via(),
    };
    let mut attempts = row.attempts.clone();
    if let Some(last) = attempts.last_mut() {
        last.cancellations.push(cancellation);
    }
    // What was sent to end an earlier job says nothing of this one.
    let sent: Vec<StageSent> =
        row.sent.iter().flatten().filter(|sent| sent.stage != Stage::Abort).copied().collect();
    let held_by = row.apply_owner;
    let asked = changes::begin_cancel(&mut tx, id, term.id, (&attempts, &sent), now).await?;
    let row = asked.ok_or_else(|| nothing_runs(&row))?;
    set::follow(&mut tx, &row, now).await?;
    let mut step =
        Step::new("change.cancel_requested", Actor::caller(caller, origin)).event(CHANGE_CANCEL_REQUESTED);
    step.detail = json!({ "call": call });
    record(&mut tx, app, &row, &step).await?;
    tx.commit().await?;
    if held_by != Some(term.id) {
        app.runtime.forget_write_session(row.controller_id);
    }
    match driver {
        Some(driver) => drop(drive::spawn_claimed(app, driver, term, Start::Again)),
        None => Drivers::of(app).wake(id),
    }
    Ok(row)
}

/// Returns the id of the call whose job runs, when the plan can end it and no call for that is on its way or has left.
fn call_to_end(app: &App, row: &ChangeRow) -> Result<String, Error> {
    let started = match row.apply_step {
        ApplyStep::Polling | ApplyStep::Cancelling => running_call(row),
        _ => return Err(nothing_runs(row)),
    };
    let no_way = |why: String| Error::Conflict {
        kind: "not_cancellable",
        message: format!("{why}; wait until it has ended"),
    };
    let started = started.ok_or_else(|| no_way("the plan has no call that ends this job".to_owned()))?;
    let named = format!("'{} {}'", started.method, started.path);
    let id = started.id.as_deref().unwrap_or_default();
    if let Some(asked) = asked_before(row, id) {
        let at = asked.requested_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let is_refused = row.apply_step == ApplyStep::Polling && row.sent(Stage::Abort).is_in_doubt();
        let message = if is_refused {
            format!(
                "the job was to be cancelled at {at}, and the device did not take the request, or did not answer; it is \
                 sent only once: wait until the job has ended"
            )
        } else {
            format!("the job was cancelled already, at {at}; the outcome shows how it ends")
        };
        return Err(Error::Conflict { kind: "already_cancelled", message });
    }
    let calls: Vec<&NativeCall> = calls_that_end(row, id).collect();
    if calls.is_empty() {
        return Err(no_way(format!("the plan has no call that ends the job of {named}")));
    }
    let adapter = app.adapter(&row.vendor)?;
    if row.plan.as_ref().is_none_or(|plan| plan.made_by != adapter.identity()) {
        return Err(no_way("the adapter was replaced since the change was planned".to_owned()));
    }
    let is_open = |name: &String| {
        let holes = row.plan.iter().flat_map(|plan| &plan.holes);
        let is_read_fresh = holes
            .filter(|hole| hole.name == *name)
            .any(|hole| matches!(hole.source, HoleSource::Fresh { .. }));
        !is_read_fresh && !row.hole_values.iter().any(|values| values.contains_key(name))
    };
    match calls.into_iter().flat_map(holes_of).find(is_open) {
        Some(name) => Err(no_way(format!("'{name}' is not known from the answer to {named}"))),
        None => Ok(id.to_owned()),
    }
}

/// The last request to end the job of this call, when it is being carried out or one of its calls left. One that never
/// left may be repeated.
fn asked_before<'r>(row: &'r ChangeRow, id: &str) -> Option<&'r Cancellation> {
    let asked = row.attempts.last()?.cancellations.last().filter(|asked| asked.call == id)?;
    (row.apply_step == ApplyStep::Cancelling || has_left(row, Stage::Abort)).then_some(asked)
}

/// The refusal where no job runs that could be ended.
fn nothing_runs(row: &ChangeRow) -> Error {
    let message = match row.apply_step {
        ApplyStep::Idle => "change is not being applied, so there is nothing to cancel".to_owned(),
        ApplyStep::Holding => format!("{}; 'revert' takes it back now", held_message(row)),
        step => format!("change is being applied, at step '{step}', and no job runs that could be cancelled"),
    };
    Error::Conflict { kind: "nothing_runs", message }
}
