//! Resolves an outcome that is in doubt: compares again, or gives the change up with a true record.

use heddle_core::adapter::{Comparison, Standing};
use heddle_core::change::{ApplyStep, ChangeStatus, OutcomeState};
use heddle_inventory::adapters::call_for;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_runtime::{Call, Urgency};
use heddle_store::changes::{self, Advance, ChangeRow};
use heddle_store::{Set, Tx};
use serde_json::{Value, json};

use super::apply::{get, under_way};
use super::detail::{Detail, named};
use super::ending::finish_in;
use super::outcome::{Actor, Step, record};
use super::place::{caller_may_write, place_of};
use super::plan::specs_of;
use super::{drive, gates, set};
use crate::declarations::CHANGE_DISCARDED;
use crate::job::may_be_inactive;

pub(super) async fn compare_now(app: &App, caller: &Caller, row: &ChangeRow) -> Result<Comparison, Error> {
    let controller = place_of(app, caller, row).await?.controller;
    let adapter = app.adapter(&controller.vendor)?;
    let is_under_way = row.apply_step != ApplyStep::Idle || gates::must_be_verified(row);
    let urgency = if is_under_way { Urgency::UnderWay } else { Urgency::Ordinary };
    let call = Call { urgency, ..call_for(&controller, &format!("change-{}", row.id))? };
    let token = row.plan_token.as_deref().ok_or_else(|| Error::Conflict {
        kind: "not_planned",
        message: "change has no plan to compare with; plan it again first".to_owned(),
    })?;
    Ok(adapter.compare(&call, &specs_of(row), token).await?)
}

/// Returns the change's detail with the result of a comparison.
pub(super) fn seen(row: &ChangeRow, found: &Comparison) -> Set<Value> {
    let mut detail = Detail::of(row);
    detail.saw(found);
    detail.to_set()
}

/// Compares the device with the plan; settles an outcome that was in doubt.
pub async fn verify(
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    row: ChangeRow,
) -> Result<(ChangeRow, Value), Error> {
    gates::change_is_permitted(caller, &row)?;
    gates::change_is_its_own(&row)?;
    let found = compare_now(app, caller, &row).await?;
    let shown = shown(&found);
    if row.apply_step == ApplyStep::Holding {
        // Changes of others are stored, because a rollback may take them back, too.
        let advance = Advance { outcome_detail: seen(&row, &found), ..Advance::default() };
        let (now, held) = (app.clock.now(), ApplyStep::Holding);
        let mut tx = app.db.write().await?;
        let moved = changes::advance(&mut tx, row.id, row.apply_owner, held, held, &advance, now).await?;
        tx.commit().await?;
        return Ok((moved.unwrap_or(row), shown));
    }
    if row.apply_step != ApplyStep::Idle {
        // A process is already settling it; a drive that stopped is started again.
        drive::recover(app).await?;
        drive::spawn(app, row.id, drive::Start::Again);
        return Ok((row, shown));
    }
    let read_at = row.updated_at;
    let mut tx = app.db.write().await?;
    let row = get(&mut tx, row.id).await?;
    let step = Step {
        detail: json!({ "standing": shown }),
        ..Step::new("change.verified", Actor::caller(caller, origin))
    };
    record(&mut tx, app, &row, &step).await?;
    // The reading settles the change only if the change has not moved meanwhile.
    if row.updated_at != read_at || row.apply_step != ApplyStep::Idle {
        tx.commit().await?;
        return Ok((row, shown));
    }
    let mut detail = Detail::of(&row);
    let needed = !detail.needs.is_empty();
    detail.saw(&found);
    if !gates::must_be_verified(&row) {
        let is_in_effect_now = needed && matches!(found.standing, Standing::After | Standing::Adjusted(_));
        if row.status == ChangeStatus::Applied && is_in_effect_now {
            let now = app.clock.now();
            let advance = Advance {
                outcome_message: Set::To("in effect: what it still needed has happened".to_owned()),
                outcome_detail: detail.to_set(),
                ..Advance::default()
            };
            let idle = ApplyStep::Idle;
            let moved = changes::advance(&mut tx, row.id, None, idle, idle, &advance, now).await?;
            let row = moved.unwrap_or(row);
            set::follow(&mut tx, &row, now).await?;
            tx.commit().await?;
            return Ok((row, shown));
        }
        tx.commit().await?;
        return Ok((row, shown));
    }
    if found.standing == Standing::Unseen {
        // Reading tells nothing, so nothing becomes settled by it: the change stays unknown, and is not sent again.
        tx.commit().await?;
        return Ok((row, shown));
    }
    let (state, message) = verdict(&row, &found.standing);
    if state == OutcomeState::Applied {
        detail.warn_of_foreign();
    }
    let now = app.clock.now();
    let advance = Advance { verified_at: Some(now), ..Advance::default() };
    let idle = ApplyStep::Idle;
    let row = changes::advance(&mut tx, row.id, None, idle, idle, &advance, now).await?.unwrap_or(row);
    Ok((finish_in(tx, app, &row, (state, Some(message)), &detail).await?, shown))
}

fn shown(found: &Comparison) -> Value {
    let mut shown = json!({ "state": found.standing.as_str(), "foreign": found.foreign });
    match &found.standing {
        Standing::Stored(needs) => shown["needs"] = json!(needs),
        Standing::Adjusted(difference) | Standing::MovedOn(difference) | Standing::Other(difference) => {
            shown["difference"] = difference.clone();
        }
        Standing::Before | Standing::After | Standing::Unseen => {}
    }
    shown
}

fn verdict(row: &ChangeRow, standing: &Standing) -> (OutcomeState, String) {
    match standing {
        Standing::After | Standing::Adjusted(_) | Standing::Stored(_) if may_be_inactive(row) => {
            let message = "verified: stored at the device, and perhaps not in effect, because a call that activates it did \
                           not leave or was not answered; revert the change, or plan it again";
            (OutcomeState::Partial, message.to_owned())
        }
        Standing::After => (OutcomeState::Applied, "verified: the device is as planned".to_owned()),
        Standing::Adjusted(_) => {
            let message = "verified: the device is as planned, and writes some values in its own way";
            (OutcomeState::Applied, message.to_owned())
        }
        Standing::MovedOn(_) => {
            let message = "verified: others changed what this change wrote; plan again, revert or discard";
            (OutcomeState::Partial, message.to_owned())
        }
        Standing::Stored(needs) => {
            let message =
                format!("verified: stored at the device; in effect only after: {}", needs.join(", "));
            (OutcomeState::Applied, message)
        }
        Standing::Before => (OutcomeState::Failed, "verified: the device is as it was before".to_owned()),
        Standing::Other(_) => {
            let message =
                "verified: the device is neither as before nor as planned; plan again, revert or discard";
            (OutcomeState::Partial, message.to_owned())
        }
        Standing::Unseen => (OutcomeState::Unknown, "nothing of this change can be read".to_owned()),
    }
}

/// Gives up a pending change. Nothing is sent. Its record says what may remain on the device.
///
/// With `force`, also gives up one that is being applied and gets no answer from its device.
pub async fn discard(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    row: ChangeRow,
    force: bool,
) -> Result<ChangeRow, Error> {
    let id = row.id;
    gates::change_is_permitted(caller, &row)?;
    gates::change_is_its_own(&row)?;
    gates::change_is_pending(row.status)?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let mut row = get(&mut tx, id).await?;
    caller_may_write(&mut tx, caller, &row).await?;
    if force && row.apply_step != ApplyStep::Idle {
        let message = "given up while the device gave no answer";
        let given_up = changes::give_up_unknown(&mut tx, &row, message, now).await?;
        row = given_up.ok_or_else(|| under_way(&row))?;
    }
    // It may have joined a set meanwhile.
    gates::change_is_its_own(&row)?;
    let row = discard_in(&mut tx, app, row, Actor::caller(caller, origin)).await?;
    tx.commit().await?;
    Ok(row)
}

/// Discards a change that is pending and not being applied, also a part of a set over several controllers.
pub(super) async fn discard_in(
    tx: &mut Tx,
    app: &App,
    row: ChangeRow,
    actor: Actor,
) -> Result<ChangeRow, Error> {
    let now = app.clock.now();
    let remains = remaining(&row);
    let discarded = changes::discard_part(tx, row.id, row.saga_id, remains.as_deref(), now).await?;
    let row = discarded.ok_or_else(|| under_way(&row))?;
    set::follow(tx, &row, now).await?;
    if row.is_set {
        // A member that is in effect becomes a separate change: it can be taken back.
        changes::free_members(tx, &row, Some(ChangeStatus::Applied), now).await?;
    }
    let step = Step::new("change.discarded", actor).event(CHANGE_DISCARDED);
    let step = match &remains {
        Some(remains) => step.message(remains.clone()),
        None => step,
    };
    record(tx, app, &row, &step).await?;
    Ok(row)
}

/// Returns what a discarded change may have left on the device; `None` when nothing.
fn remaining(row: &ChangeRow) -> Option<String> {
    let so_far = row.outcome_message.as_deref().unwrap_or("no reason is known");
    match row.outcome_state {
        OutcomeState::Partial => {
            let detail = Detail::of(row);
            let others = if detail.foreign.is_empty() {
                String::new()
            } else {
                format!("; others changed: {}", named(&detail.foreign))
            };
            Some(format!(
                "discarded; the device still holds a part of this change, or another state of what it wrote: \
                 {so_far}{others}; the difference is in the detail"
            ))
        }
        OutcomeState::Unknown => Some(format!("discarded; what the device holds is not known: {so_far}")),
        _ => None,
    }
}
