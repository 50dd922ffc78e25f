//! Reads every controller at its interval and on demand, and stores what it saw.
//!
//! The worker here only starts readings. Each reading is its own task, so that one that hangs or panics delays no
//! other. Of the processes that serve a database, the one that claims a controller reads it.

mod model;
mod reading;
mod record;
mod slots;
mod storable;

use heddle_kernel::feature::Names;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::{ProcessId, Timestamp};
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Feature, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::metrics::Families;
use heddle_kernel::process::membership::Term;
use heddle_store::controllers::{self, ControllerTarget, syncs};
use model::Follows;
use prometheus::IntCounterVec;
use reading::{Before, Failed, Reading};
use slots::{Slot, Slots};
pub(crate) use storable::{VERSION_CHARS_MAX, is_whole, line, version};
use tokio::sync::Notify;

/// How often the queue is checked without a wake-up.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// When a reading began.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// By the clock that decides when controllers are due.
    at: Timestamp,
    instant: Instant,
    /// The process that claimed the reading.
    owner: ProcessId,
}

/// Wakes the worker when a controller became due.
#[derive(Debug, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Returns the bell of this process.
    pub fn of(app: &App) -> &Self {
        app.part()
    }

    pub fn ring(&self) {
        self.0.notify_one();
    }
}

heddle_core::words! {
    /// How one reading of a controller ended.
    pub enum ReadingOutcome {
        Read = "read",
        Failed = "failed",
        /// It was made, and could not be kept.
        Lost = "lost",
    }
}

/// Counters of readings that ended.
struct Ended(IntCounterVec);

impl Ended {
    fn new(families: &Families<'_>) -> Self {
        let help = "Readings of controllers that ended.";
        Self(families.counters("heddle_sync_readings_total", help, &["adapter", "outcome"]))
    }

    fn of(app: &App) -> &Self {
        app.part()
    }

    fn count(&self, adapter: &str, outcome: ReadingOutcome) {
        self.0.with_label_values(&[adapter, outcome.as_str()]).inc();
    }
}

/// Readings of controllers.
pub struct Readings;

heddle_kernel::settings! {
    /// How often controllers are read.
    pub struct SyncSettings {
        /// Seconds between two readings of a controller, where the controller does not say.
        interval_secs: u32 = "SYNC_INTERVAL_SECS", "60", from 1 to 86400;
    }
}

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
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("sync", run(app.clone()))]
    }
}

/// Starts readings until the service stops.
async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let bell = Bell::of(&app).0.clone();
    let slots = Slots::new(bell.clone());
    loop {
        match start_due(&app, &slots).await {
            // There may be more: the first ones may all have belonged to one organization.
            Ok(started) if started > 0 => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %error, "controllers that are due cannot be read; tried again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = bell.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}

/// Starts as many readings as there are places; returns how many.
async fn start_due(app: &SharedApp, slots: &Arc<Slots>) -> Result<usize, Error> {
    let free = slots.free();
    if free == 0 || app.tasks.stopping().is_cancelled() {
        return Ok(0);
    }
    let Ok(term) = app.membership.term() else { return Ok(0) };
    let (at, owner) = (app.clock.now(), term.id);
    let mut tx = app.db.read().await?;
    let gone = controllers::abandoned(&mut tx, owner).await?;
    let due = controllers::due(&mut tx, owner, at, &slots.except(Instant::now()), free).await?;
    drop(tx);
    if !gone.is_empty() {
        return free_readings(app, &gone).await;
    }
    // Places are taken first: a claimed controller must be read.
    let placed: Vec<(ControllerTarget, Slot)> = due
        .into_iter()
        .filter_map(|controller| {
            let slot = slots.take(controller.id, controller.org_id)?;
            Some((controller, slot))
        })
        .collect();
    if placed.is_empty() {
        return Ok(0);
    }
    let ids: Vec<_> = placed.iter().map(|(controller, _)| controller.id).collect();
    let mut tx = app.db.write().await?;
    let claimed = controllers::claim(&mut tx, &ids, owner, at).await?;
    syncs::begin(&mut tx, &claimed.iter().copied().collect::<Vec<_>>(), at).await?;
    tx.commit().await?;
    for (controller, slot) in placed {
        if !claimed.contains(&controller.id) {
            // Another process reads it.
            slot.settle();
            continue;
        }
        let (app, term) = (app.clone(), term.clone());
        let start = Start { at, instant: Instant::now(), owner };
        let tasks = app.tasks.clone();
        tasks.spawn("sync.reading", async move { sync(&app, &controller, start, slot, &term).await });
    }
    Ok(claimed.len())
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
    let stop = app.tasks.stopping();
    let outcome = tokio::select! {
        () = stop.cancelled() => return,
        // Another process reads the controller now.
        () = term.over().cancelled() => return,
        outcome = reading::read(app, controller) => outcome,
    };
    let read = known_after(controller, &outcome);
    let controller = &read;
    let kept = match keep(app, controller, outcome, start, &slot).await {
        Ok(None) => Ok(()),
        Ok(Some(follows)) => tokio::select! {
            () = stop.cancelled() => return,
            () = term.over().cancelled() => return,
            read = model::read(app, controller, start, follows) => read,
        },
        Err(error) => Err(error),
    };
    match kept {
        Ok(()) => slot.settle(),
        Err(error) => {
            tracing::error!(controller.id = %controller.id, error = %error, "reading of controller {} is lost", controller.id);
        }
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
    start: Start,
    slot: &Slot,
) -> Result<Option<Follows>, Error> {
    let (failed, ended) = match outcome {
        Ok(reading) => match record::record(app, controller, reading, start, slot).await {
            Ok(follows) => {
                Ended::of(app).count(&controller.vendor, ReadingOutcome::Read);
                return Ok(follows);
            }
            Err(error) => (Failed { error, before: Before::default() }, ReadingOutcome::Lost),
        },
        Err(failed) => (failed, ReadingOutcome::Failed),
    };
    let error = &failed.error;
    Ended::of(app).count(&controller.vendor, ended);
    tracing::warn!(
        controller.id = %controller.id, error = %error, cause = ?std::error::Error::source(error),
        "controller {} cannot be read", controller.id
    );
    record::record_failure(app, controller, &failed, start).await?;
    Ok(None)
}
