//! Reads every controller on its interval and on demand, and keeps what it saw.
//!
//! The worker here only starts readings; each is a task of its own, so that
//! one that hangs or panics holds up nobody else.

mod reading;
mod record;
mod slots;
mod storable;

use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::Timestamp;
use heddle_store::controllers::{self, ControllerTarget};

use crate::app::SharedApp;
use crate::http::error::Error;
use crate::metrics::ReadingOutcome;
use reading::Reading;
use slots::{Slot, Slots};

/// How often the queue is looked at although nobody called.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// When a reading began.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// By the clock that says when controllers are due.
    at: Timestamp,
    instant: Instant,
}

/// Starts readings until the service stops.
pub(crate) async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let slots = Slots::new(app.sync_wake.clone());
    loop {
        match start_due(&app, &slots).await {
            // There may be more: those that came first can be all of one organization.
            Ok(started) if started > 0 => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %error, "controllers that are due cannot be read; tried again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.sync_wake.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}

/// Starts as many readings as there are places; tells how many.
async fn start_due(app: &SharedApp, slots: &Arc<Slots>) -> Result<usize, Error> {
    let free = slots.free();
    if free == 0 || app.tasks.stopping().is_cancelled() {
        return Ok(0);
    }
    let at = app.clock.now();
    let mut tx = app.db.read().await?;
    let due = controllers::due(&mut tx, at, &slots.except(Instant::now()), free).await?;
    drop(tx);
    let mut started = 0;
    for controller in due {
        if let Some(slot) = slots.take(controller.id, controller.org_id) {
            let (app, start) = (app.clone(), Start { at, instant: Instant::now() });
            let tasks = app.tasks.clone();
            tasks.spawn("sync.reading", async move { sync(&app, &controller, start, slot).await });
            started += 1;
        }
    }
    Ok(started)
}

/// Reads one controller and records how that went. A slot that is not settled lets the controller rest.
async fn sync(app: &SharedApp, controller: &ControllerTarget, start: Start, slot: Slot) {
    let stop = app.tasks.stopping();
    let outcome = tokio::select! {
        () = stop.cancelled() => return,
        outcome = reading::read(app, controller) => outcome,
    };
    match keep(app, controller, outcome, start).await {
        Ok(()) => slot.settle(),
        Err(error) => {
            tracing::error!(controller.id = %controller.id, error = %error, "reading of controller {} is lost", controller.id);
        }
    }
    app.hub.wake();
}

/// Records a reading; when that fails, that it failed.
async fn keep(
    app: &SharedApp,
    controller: &ControllerTarget,
    outcome: Result<Reading, Error>,
    start: Start,
) -> Result<(), Error> {
    let (error, ended) = match outcome {
        Ok(reading) => match record::record(app, controller, &reading, start).await {
            Ok(()) => {
                app.metrics.reading_ended(&controller.vendor, ReadingOutcome::Read);
                return Ok(());
            }
            Err(error) => (error, ReadingOutcome::Lost),
        },
        Err(error) => (error, ReadingOutcome::Failed),
    };
    app.metrics.reading_ended(&controller.vendor, ended);
    tracing::warn!(
        controller.id = %controller.id, error = %error, cause = ?std::error::Error::source(&error),
        "controller {} cannot be read", controller.id
    );
    record::record_failure(app, controller, &error, start).await
}
