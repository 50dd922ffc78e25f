//! Reads every controller at its interval, on demand, and in parts when it tells that something changed; stores what it saw.
//!
//! The worker here only starts readings. Each reading is its own task, so that one that hangs or panics delays no
//! other. Of the processes that serve a database, the one that claims a controller reads it.

mod looks;
mod measures;
mod model;
mod part;
mod reading;
mod record;
mod slots;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use heddle_core::{ControllerId, ProcessId, Timestamp};
use heddle_inventory::sync::{Bell, SyncSettings};
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Feature, Forget, Names, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_store::Tx;
use heddle_store::controllers::{self, ControllerTarget, syncs};
use heddle_store::push::hooks;
use heddle_store::push::wanted::{self, Of, Row};
use measures::{Delays, Ended, ReadingOutcome};
use model::Follows;
use reading::{Before, Failed, Reading};
use slots::{Seat, Slot, Slots, Stage};

/// When a reading began.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// By the clock that decides when controllers are due.
    at: Timestamp,
    instant: Instant,
    /// The process that claimed the reading.
    owner: ProcessId,
    scope: Scope,
}

/// What of a controller is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of it: its time has come, or a user asked.
    Whole,
    /// What its messages ask for.
    Part,
}

/// Readings of controllers.
pub struct Readings;

#[async_trait::async_trait]
impl Feature for Readings {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn declares(&self) -> &'static Names {
        const { &Names { settings: &[SettingsOf::the::<SyncSettings>()], ..Names::NONE } }
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Bell::default());
        parts.add(Ended::new(&app.metrics.families()));
        parts.add(Delays::new(&app.metrics.families()));
    }

    fn forgets(&self) -> &'static [Forget] {
        // A controller that is restored soon is still read for what it told, and for a month what proves its requests is kept.
        const {
            &[
                Forget { days: 1, batch: |tx, before, rows| wanted::trim(tx, before, rows).boxed() },
                Forget { days: 1, batch: |tx, before, rows| hooks::trim_heard(tx, before, rows).boxed() },
                Forget { days: 30, batch: |tx, before, rows| hooks::trim_secrets(tx, before, rows).boxed() },
            ]
        }
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("sync", run(app.clone()))]
    }
}

/// Starts readings until the service stops.
async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let bell = Bell::of(&app).rung();
    let slots = Slots::new(bell.clone());
    loop {
        let looked_at = app.clock.now();
        let rest = match start_due(&app, &slots).await {
            // There may be more: the first ones may all have belonged to one organization.
            Ok(started) if started > 0 => continue,
            Ok(_) => looks::REST,
            Err(error) => {
                tracing::warn!(error = %error, "controllers that are due cannot be read; tried again");
                looks::INTERVAL
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = looks::next(&app, &bell, looked_at, rest) => {}
        }
    }
}

/// A controller that is read next, and its place.
struct Placed {
    controller: ControllerTarget,
    scope: Scope,
    slot: Slot,
}

/// Starts as many readings as there are places; returns how many.
async fn start_due(app: &SharedApp, slots: &Arc<Slots>) -> Result<usize, Error> {
    if app.tasks.stopping().is_cancelled() {
        return Ok(0);
    }
    let Ok(term) = app.membership.term() else { return Ok(0) };
    let (at, owner) = (app.clock.now(), term.id);
    let mut tx = app.db.read().await?;
    let gone = controllers::abandoned(&mut tx, owner).await?;
    if !gone.is_empty() {
        drop(tx);
        return free_readings(app, &gone).await;
    }
    // Places are taken first: a claimed controller must be read.
    let placed = place_due(&mut tx, slots, owner, at).await?;
    drop(tx);
    if placed.is_empty() {
        return Ok(0);
    }
    let claimed = claim(app, &placed, owner, at).await;
    let begun = of_claimed(placed, claimed)?;
    let started = begun.len();
    for Placed { controller, scope, slot } in begun {
        let (app, term) = (app.clone(), term.clone());
        let start = Start { at, instant: Instant::now(), owner, scope };
        let tasks = app.tasks.clone();
        let read = async move { sync(&app, &controller, start, slot, &term).await };
        tasks.spawn("sync.reading", read);
    }
    Ok(started)
}

/// The places of those that were claimed. The places of the others are free again, and do not pause them: another process
/// reads them, or the next look takes them.
fn of_claimed(
    placed: Vec<Placed>,
    claimed: Result<HashSet<ControllerId>, Error>,
) -> Result<Vec<Placed>, Error> {
    let is_claimed = |one: &Placed| claimed.as_ref().is_ok_and(|ids| ids.contains(&one.controller.id));
    let (begun, left): (Vec<Placed>, Vec<Placed>) = placed.into_iter().partition(is_claimed);
    left.into_iter().for_each(|one| one.slot.settle());
    claimed.map(|_| begun)
}

/// Finds controllers that are due, and takes their places: those with messages first, which have a share of the places only.
async fn place_due(
    tx: &mut Tx,
    slots: &Arc<Slots>,
    owner: ProcessId,
    at: Timestamp,
) -> Result<Vec<Placed>, Error> {
    let part = |stage| Seat { stage, scope: Scope::Part };
    let mut placed = Vec::new();
    for (seat, of) in [
        (part(Stage::Devices), Some(Of::Devices)),
        (part(Stage::Model), Some(Of::Model)),
        (Seat::WHOLE, None),
    ] {
        let free = slots.free(seat);
        if free == 0 {
            continue;
        }
        let except = slots.except(seat, Instant::now());
        let due = match of {
            Some(of) => wanted::due(tx, owner, at, &except, (of, free)).await?,
            None => controllers::due(tx, owner, at, &except, free).await?,
        };
        placed.extend(due.into_iter().filter_map(|controller| {
            let slot = slots.take(controller.id, controller.org_id, seat)?;
            Some(Placed { controller, scope: seat.scope, slot })
        }));
    }
    Ok(placed)
}

/// Claims controllers for this process. Returns those that it got.
async fn claim(
    app: &SharedApp,
    placed: &[Placed],
    owner: ProcessId,
    at: Timestamp,
) -> Result<HashSet<ControllerId>, Error> {
    let of = |scope| placed.iter().filter(move |placed| placed.scope == scope).map(|one| one.controller.id);
    let (wholes, parts): (Vec<_>, Vec<_>) = (of(Scope::Whole).collect(), of(Scope::Part).collect());
    let mut tx = app.db.write().await?;
    let mut claimed = controllers::claim(&mut tx, &wholes, owner, at).await?;
    syncs::begin(&mut tx, &claimed.iter().copied().collect::<Vec<_>>(), at).await?;
    claimed.extend(wanted::claim(&mut tx, &parts, owner, at).await?);
    tx.commit().await?;
    Ok(claimed)
}

/// Releases orphaned readings of processes that are gone; returns the number of processes.
async fn free_readings(app: &SharedApp, gone: &[ProcessId]) -> Result<usize, Error> {
    let mut tx = app.db.write().await?;
    for process in gone {
        controllers::release_all(&mut tx, *process).await?;
    }
    tx.commit().await?;
    Ok(gone.len())
}

/// Reads one controller and records the result. A slot that is not settled pauses the controller.
async fn sync(app: &SharedApp, controller: &ControllerTarget, start: Start, slot: Slot, term: &Term) {
    let read = match (told(app, controller, start).await, start.scope) {
        (Err(error), _) => Some(Err(error)),
        (Ok(told), Scope::Whole) => whole(app, controller, (start, &told), &slot, term).await,
        (Ok(told), Scope::Part) => tokio::select! {
            () = app.tasks.stopping().cancelled_owned() => None,
            () = term.over().cancelled() => None,
            read = part::read(app, controller, start, &told, &slot) => Some(read),
        },
    };
    match read {
        Some(Ok(())) => slot.settle(),
        Some(Err(error)) => {
            tracing::error!(controller.id = %controller.id, error = %error, "reading of controller {} is lost", controller.id);
        }
        // The service stops, or another process reads the controller now.
        None => {}
    }
}

/// What messages asked for when the reading began.
async fn told(app: &SharedApp, controller: &ControllerTarget, start: Start) -> Result<Vec<Row>, Error> {
    let told = wanted::of(&mut app.db.single().await?, controller.id, start.at).await?;
    take_devices(app, &told, start.owner).await?;
    Ok(told)
}

/// Notes that the devices are about to be read that messages ask for.
async fn take_devices(app: &SharedApp, told: &[Row], owner: ProcessId) -> Result<(), Error> {
    let of_devices = record::of_devices(told);
    if of_devices.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    wanted::take(&mut tx, &of_devices, owner, app.clock.now()).await?;
    Ok(tx.commit().await?)
}

/// Reads the devices of a controller and then its objects; `None` where another process goes on.
async fn whole(
    app: &SharedApp,
    controller: &ControllerTarget,
    (start, told): (Start, &[Row]),
    slot: &Slot,
    term: &Term,
) -> Option<Result<(), Error>> {
    let stop = app.tasks.stopping();
    let outcome = tokio::select! {
        () = stop.cancelled() => return None,
        () = term.over().cancelled() => return None,
        outcome = reading::read(app, controller, start, &None) => outcome,
    };
    let read = known_after(controller, &outcome);
    let controller = &read;
    match keep(app, controller, outcome, (start, told), slot).await {
        Ok(None) => Some(Ok(())),
        Ok(Some(follows)) => tokio::select! {
            () = stop.cancelled() => None,
            () = term.over().cancelled() => None,
            read = model::read(app, controller, start, follows) => Some(read),
        },
        Err(error) => Some(Err(error)),
    }
}

/// The controller with what the reading says of its release.
fn known_after(controller: &ControllerTarget, outcome: &Result<Reading, Failed>) -> ControllerTarget {
    let mut known = controller.clone();
    let release = match outcome {
        Ok(reading) => Some(&reading.release),
        Err(failed) => failed.before.release.as_ref(),
    };
    if let Some(release) = release {
        known.product = Some(release.product.clone());
        known.firmware = Some(release.version.clone());
    }
    known
}

/// Records a reading; when that fails, records the failure. Returns what is to be read after it.
async fn keep(
    app: &SharedApp,
    controller: &ControllerTarget,
    outcome: Result<Reading, Failed>,
    (start, told): (Start, &[Row]),
    slot: &Slot,
) -> Result<Option<Follows>, Error> {
    let (failed, ended) = match outcome {
        Ok(reading) => match record::record(app, controller, reading, (start, told), slot).await {
            Ok(follows) => {
                Ended::of(app).count(&controller.vendor, ReadingOutcome::Read);
                return Ok(follows);
            }
            Err(error) => (Failed { error, before: Before::default() }, ReadingOutcome::Lost),
        },
        Err(failed) => (failed, ReadingOutcome::Failed),
    };
    Ended::of(app).count(&controller.vendor, ended);
    failed.log(controller);
    record::record_failure(app, controller, &failed, (start, told)).await?;
    Ok(None)
}

#[cfg(test)]
mod tests;
