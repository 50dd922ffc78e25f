//! Staged changes: the request, the calls that will be sent, the users that may send them, the outcome.
//!
//! Nothing reaches a device outside [`apply`]. Staging and planning only read; the runtime enforces it.

mod apply;
mod change_routes;
pub(crate) mod declarations;
mod detail;
mod diagnostics;
mod drive;
mod ending;
mod gates;
mod live;
mod measures;
mod new_key;
mod outcome;
mod payload;
mod plan;
mod revert;
mod routes;
mod set;
mod set_routes;
mod settle;
mod view;
mod window;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use heddle_core::change::ApplyStep;
use heddle_core::declared::SubscriptionAccess;
use heddle_core::event::EventType;
use heddle_core::{ChangeId, Permission};
pub(crate) use plan::{Request, controller_on_path, stage_for_run};

use self::measures::Measures;
use crate::app::{App, SharedApp};
use crate::feature::{Diagnostic, Feature, Parts, Sealing, Worker};
use crate::http::error::Error;
use crate::http::routes::Routes;
use heddle_store::sealed::SealedColumn;

/// Most characters of the notes on a change.
pub(crate) const NOTES_CHARS_MAX: usize = 2000;

/// How often pending changes are checked for their expiry.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);

/// How often orphaned applies are looked for: a process that drove one may be gone.
const TAKE_UP_INTERVAL: Duration = Duration::from_secs(1);

/// Pause before the next drive of a change whose drive ended with an error.
const REST: Duration = Duration::from_secs(30);

const SEALED: &[Sealing] = &[Sealing {
    column: SealedColumn::of("change"),
    rekey: Some(|tx, keys, clock, id| new_key::rekey(tx, keys, clock, ChangeId(id)).boxed()),
}];

/// Staged changes.
pub(crate) struct Changes;

#[async_trait::async_trait]
impl Feature for Changes {
    fn name(&self) -> &'static str {
        "staging"
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    fn permissions(&self) -> &'static [Permission] {
        declarations::PERMISSIONS
    }

    fn events(&self) -> &'static [EventType] {
        declarations::EVENTS
    }

    fn subscriptions(&self) -> &'static [(&'static str, SubscriptionAccess)] {
        declarations::SUBSCRIPTIONS
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Drivers::default());
        parts.add(Measures::new(&app.metrics.families()));
    }

    async fn measure(&self, app: &SharedApp) {
        Measures::of(app).measure(app).await;
    }

    fn routes(&self, app: &SharedApp) -> Routes {
        routes::routes(app)
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("staging.expire", expire_loop(app.clone())),
            Worker::new("staging.take_up", take_up_loop(app.clone())),
        ]
    }

    async fn term_begun(&self, app: &SharedApp) -> Result<(), Error> {
        drive::recover(app).await
    }
}

/// Changes that this process is driving now.
#[derive(Debug, Default, Clone)]
pub(crate) struct Drivers {
    under_way: Claims,
    holding: Claims,
    /// Until when a change is not driven again, because its drive ended with an error.
    resting: Arc<Mutex<HashMap<ChangeId, Instant>>>,
}

type Claims = Arc<Mutex<HashSet<ChangeId>>>;

impl Drivers {
    /// Returns the drivers of this process.
    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Returns a claim on one change, or `None` while another task has it.
    fn claim(&self, change: ChangeId) -> Option<DriverClaim> {
        DriverClaim::new(&self.under_way, change)
    }

    /// Pauses the change: its drive ended with an error, which would occur again at once.
    fn rest(&self, change: ChangeId) {
        self.resting.lock().expect("no holder of this lock panics").insert(change, Instant::now() + REST);
    }

    /// Whether a task is executing it, or it is paused.
    fn has(&self, change: ChangeId, step: ApplyStep) -> bool {
        let mut resting = self.resting.lock().expect("no holder of this lock panics");
        resting.retain(|_, until| *until > Instant::now());
        if resting.contains_key(&change) {
            return true;
        }
        drop(resting);
        let has = |claims: &Claims| claims.lock().expect("no holder of this lock panics").contains(&change);
        has(&self.under_way) || (step == ApplyStep::Holding && has(&self.holding))
    }

    /// Returns a claim on the confirm window of one change.
    fn claim_hold(&self, change: ChangeId) -> Option<DriverClaim> {
        DriverClaim::new(&self.holding, change)
    }
}

/// Only the holder of this claim drives the change.
#[derive(Debug)]
struct DriverClaim {
    claims: Claims,
    change: ChangeId,
}

impl DriverClaim {
    fn new(claims: &Claims, change: ChangeId) -> Option<Self> {
        let is_new = claims.lock().expect("no holder of this lock panics").insert(change);
        is_new.then(|| Self { claims: claims.clone(), change })
    }
}

impl Drop for DriverClaim {
    fn drop(&mut self) {
        self.claims.lock().expect("no holder of this lock panics").remove(&self.change);
    }
}

/// Takes up orphaned applies: their process is gone or has released them, or a database outage ended their drive.
async fn take_up_loop(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(TAKE_UP_INTERVAL) => {}
        }
        if let Err(error) = drive::recover(&app).await {
            tracing::warn!(error = %error, "applies under way cannot be read; tried again later");
        }
    }
}

/// Discards pending changes that have expired.
async fn expire_loop(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        if let Err(error) = expire(&app).await {
            tracing::warn!(error = %error, "expired changes were not discarded; tried again later");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EXPIRY_INTERVAL) => {}
        }
    }
}

async fn expire(app: &SharedApp) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    let now = app.clock.now();
    let expired = heddle_store::changes::expire_due(&mut tx, now).await?;
    for change in &expired {
        set::follow(&mut tx, change, now).await?;
        outcome::record(&mut tx, app, change, &outcome::Step::expired()).await?;
    }
    tx.commit().await?;
    Ok(())
}
