//! A change in its confirm window: a person confirms it, takes it back or extends the window.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::change::{ApplyStep, OutcomeState, Stage, StageSent};
use heddle_core::{ProcessId, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_kernel::resource::By;
use heddle_store::Tx;
use heddle_store::changes::{self, ChangeRow};
use serde_json::json;

use super::apply::{CONFIRM_SECS, answer, controller_busy, rest_within};
use super::drive::{self, Rest, Start, held_message};
use super::drivers::{DriverClaim, Drivers};
use super::outcome::{Actor, Step, record};
use super::place::place_of;
use super::settle::compare_now;
use super::{gates, set};

/// Longest time that a request waits for the end of the drive.
const REST_MAX: Duration = Duration::from_mins(1);

fn not_waiting() -> Error {
    Error::Conflict {
        kind: "not_awaiting_confirm",
        message: "change is not waiting for a confirmation".to_owned(),
    }
}

/// Confirms the change in time, after a reading of the device.
///
/// The process that gets the request takes over the change: the earlier owner only waited.
pub async fn confirm(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
    let By { app, caller, origin } = by;
    let id = row.id;
    gates::change_may_be_moved_on(caller, &row)?;
    if row.apply_step != ApplyStep::Holding {
        return Err(not_waiting());
    }
    let held_by = row.apply_owner;
    // Only a state that can be read through the real path, over a new connection, is confirmed.
    app.runtime.reconnect(row.controller_id);
    let found = compare_now(app, caller, &row).await?;
    let now = app.clock.now();
    if row.confirm_deadline.is_some_and(|deadline| now >= deadline) {
        return Err(not_waiting());
    }
    let term = app.membership.term()?;
    // Claimed before other tasks of this process see that it must be driven, so that this request can wait for the end.
    let driver = Drivers::of(app).claim(id);
    let mut tx = app.db.write().await?;
    let row = changes::take_held(&mut tx, id, term.id, &super::settle::seen(&row, &found), now)
        .await?
        .ok_or_else(not_waiting)?;
    set::follow(&mut tx, &row, now).await?;
    record(&mut tx, app, &row, &Step::new("change.confirmed", Actor::caller(caller, origin))).await?;
    tx.commit().await?;
    answer(driven(app, caller, &row, held_by, (term, driver)).await?)
}

/// Drives what was decided on, and waits for the end. The process before this one may hold the window's session.
async fn driven(
    app: &SharedApp,
    caller: &Caller,
    row: &ChangeRow,
    held_by: Option<ProcessId>,
    (term, driver): (Term, Option<DriverClaim>),
) -> Result<Rest, Error> {
    if held_by != Some(term.id) {
        // The state that the device holds belongs to the session of the process that wrote it.
        app.runtime.forget_write_session(row.controller_id);
    }
    let driving = match driver {
        Some(driver) => drive::spawn_claimed(app, driver, term, Start::Again),
        None => drive::spawn(app, row.id, Start::Again),
    };
    rest_within(app, caller, row.id, driving, REST_MAX).await
}

/// Takes the change back for a person: in its window, or after an attempt whose outcome is in doubt.
pub(super) async fn take_back(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
    let By { app, caller, origin } = by;
    let id = row.id;
    gates::platform_is_writable(app)?;
    place_of(app, caller, &row).await?;
    let held_by = row.apply_owner;
    let term = app.membership.term()?;
    drive::prepare(app, &row).await?;
    let driver = Drivers::of(app).claim(id);
    let (message, now) = (format!("taken back by {}", caller.username), app.clock.now());
    let is_held = row.apply_step == ApplyStep::Holding;
    let mut tx = app.db.write().await?;
    let taken = begin_back(&mut tx, &row, term.id, &message, now).await?;
    let (taken, _) = taken.ok_or_else(|| if is_held { not_waiting() } else { controller_busy() })?;
    set::follow(&mut tx, &taken, now).await?;
    record(&mut tx, app, &taken, &Step::new("change.take_back_started", Actor::caller(caller, origin)))
        .await?;
    tx.commit().await?;
    let rest = driven(app, caller, &taken, held_by, (term, driver)).await?;
    if rest.row.outcome_state == OutcomeState::Reverted { Ok(rest.row) } else { answer(rest) }
}

/// Begins to take a change back: in its window, after an outcome that is in doubt, or in effect and permanent. `None` when it
/// has left these states, or another change holds its controller.
pub(super) async fn begin_back(
    tx: &mut Tx,
    row: &ChangeRow,
    owner: ProcessId,
    reason: &str,
    now: Timestamp,
) -> Result<Option<(ChangeRow, Start)>, Error> {
    // What the apply sent is not forgotten: what it did not send is not taken back.
    let sent = row.sent.iter().flatten().filter(|sent| sent.stage == Stage::Apply).copied();
    let sent: Vec<StageSent> = sent.collect();
    let (taken, start) = if row.apply_step == ApplyStep::Holding {
        (changes::take_back_held(tx, row.id, owner, reason, now).await?, Start::Again)
    } else if row.outcome_state == OutcomeState::Applied {
        (changes::take_back_applied(tx, row.id, owner, reason, &sent, now).await?, Start::Back)
    } else {
        (changes::take_back_unsettled(tx, row.id, owner, reason, &sent, now).await?, Start::Again)
    };
    Ok(taken.map(|taken| (taken, start)))
}

/// Extends the window for a person, as long as the device can continue to hold the change.
pub async fn extend(by: &By, row: ChangeRow, secs: u32) -> Result<ChangeRow, Error> {
    let By { app, caller, origin } = by;
    gates::change_may_be_moved_on(caller, &row)?;
    let (Some(deadline), Some(started)) = (row.confirm_deadline, row.apply_started_at) else {
        return Err(not_waiting());
    };
    let now = app.clock.now();
    if row.apply_step != ApplyStep::Holding || now >= deadline {
        return Err(not_waiting());
    }
    if !(1..=*CONFIRM_SECS.end()).contains(&secs) {
        return Err(Error::field("secs", "secs must be from 1 to 600"));
    }
    let longest = longest_window_secs(&row);
    let extended = deadline + TimeDelta::seconds(i64::from(secs));
    if extended > started + TimeDelta::seconds(longest) {
        return Err(Error::Conflict {
            kind: "not_extendable",
            message: format!(
                "the window can be {longest} s long in all, because the device takes the change back by itself \
                 then; apply with extendable_to_secs, up to 600, to have it hold the change longer"
            ),
        });
    }
    let mut told = row.clone();
    told.confirm_deadline = Some(extended);
    let mut tx = app.db.write().await?;
    let row = changes::extend_window(&mut tx, row.id, deadline, extended, &held_message(&told), now)
        .await?
        .ok_or_else(not_waiting)?;
    set::follow(&mut tx, &row, now).await?;
    let mut step = Step::new("change.window_extended", Actor::caller(caller, origin));
    step.detail = json!({ "secs": secs, "confirm_deadline": extended });
    record(&mut tx, app, &row, &step).await?;
    tx.commit().await?;
    Ok(row)
}

/// Returns how long a change may wait for its confirmation in total.
fn longest_window_secs(row: &ChangeRow) -> i64 {
    let is_held_by_device = row.plan.as_ref().is_some_and(|plan| plan.holds);
    if is_held_by_device {
        row.extendable_to_secs.max(row.confirm_within_secs).unwrap_or_default()
    } else {
        i64::from(*CONFIRM_SECS.end())
    }
}
