//! The confirm window: waits for its end, also when the end is moved.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::change::ApplyStep;
use heddle_core::{ChangeId, ProcessId, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_store::Set;
use heddle_store::changes::{self, Advance, ChangeRow};

use super::{Start, get, give_up, spawn};
use crate::drivers::Drivers;
use crate::set;

/// How often the confirm window is checked.
const HOLD_NAP: Duration = Duration::from_millis(500);

/// Waits for the confirm window to end. The change is then taken back, unless it was confirmed or taken back before.
pub(super) fn hold(app: &SharedApp, row: &ChangeRow, term: &Term) {
    let Some(claim) = Drivers::of(app).claim_hold(row.id) else { return };
    let (app2, term, deadline) = (app.clone(), term.clone(), row.confirm_deadline);
    app.tasks.spawn("staging.hold", async move {
        let id = claim.change;
        if wait_for_window(&app2, id, &term, deadline).await {
            drop(claim);
            spawn(&app2, id, Start::Again);
        }
    });
}

/// Waits until the window is over and closed, and returns true. False when there is no longer anything to wait for.
async fn wait_for_window(
    app: &SharedApp,
    id: ChangeId,
    term: &Term,
    mut deadline: Option<Timestamp>,
) -> bool {
    let stop = app.tasks.stopping();
    loop {
        let left = deadline.map_or(TimeDelta::zero(), |deadline| deadline - app.clock.now());
        // Short pauses: tests move the clock, and machines sleep.
        let nap = left.to_std().unwrap_or_default().min(HOLD_NAP);
        tokio::select! {
            () = stop.cancelled() => {
                give_up(app, id, term).await;
                return false;
            }
            () = term.over().cancelled() => return false,
            () = tokio::time::sleep(nap) => {}
        }
        // Another process may have confirmed the change, taken it back, or moved the end.
        let next = match held_until(app, id, term.id).await {
            Ok(Some(until)) if until.is_none_or(|until| app.clock.now() >= until) => {
                close_window(app, id, term.id, until).await.map(|is_closed| is_closed.then_some(true))
            }
            Ok(Some(until)) => {
                deadline = until;
                Ok(None)
            }
            Ok(None) => Ok(Some(false)),
            Err(error) => Err(error),
        };
        match next {
            Ok(Some(is_closed)) => return is_closed,
            Ok(None) => {}
            Err(error) => {
                tracing::error!(change.id = %id, error = %error, "confirm window of change {id} cannot be looked at; trying again");
                tokio::time::sleep(HOLD_NAP).await;
            }
        }
    }
}

/// Returns the end of the window, while the change is held and this process waits for it.
async fn held_until(
    app: &SharedApp,
    id: ChangeId,
    owner: ProcessId,
) -> Result<Option<Option<Timestamp>>, Error> {
    let mut tx = app.db.single().await?;
    let row = get(&mut tx, id).await?;
    let is_held = row.apply_step == ApplyStep::Holding && row.apply_owner == Some(owner);
    Ok(is_held.then_some(row.confirm_deadline))
}

/// Ends a window with this end; false when the change was confirmed, taken back or extended in time.
async fn close_window(
    app: &SharedApp,
    id: ChangeId,
    owner: ProcessId,
    until: Option<Timestamp>,
) -> Result<bool, Error> {
    let message = Set::To("not confirmed in time".to_owned());
    let advance = Advance { outcome_message: message, ..Advance::default() };
    let mut tx = app.db.write().await?;
    if get(&mut tx, id).await?.confirm_deadline != until {
        return Ok(false);
    }
    let (from, to, now) = (ApplyStep::Holding, ApplyStep::Restoring, app.clock.now());
    let moved = changes::advance(&mut tx, id, Some(owner), from, to, &advance, now).await?;
    // The end may have been moved after it was read above: then the transaction is not committed.
    let Some(row) = moved.filter(|row| row.confirm_deadline == until) else { return Ok(false) };
    set::follow(&mut tx, &row, now).await?;
    tx.commit().await?;
    Ok(true)
}

/// Returns the message for people about a change in its window.
pub(crate) fn held_message(row: &ChangeRow) -> String {
    match row.confirm_deadline {
        Some(deadline) => format!(
            "change is in its confirm window until {}; confirm it in time, else it is taken back",
            deadline.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
        ),
        None => "change waits for its confirmation".to_owned(),
    }
}
