//! Has runs carried out that wait: a few at a time, each by one process and once.
//!
//! A process that ends in the middle of a run leaves it interrupted: nobody knows how far its step came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use heddle_core::OrgId;
use heddle_core::operation::{ConnectionState, RunKind, RunState, StepErrorCode, StepOutline, StepRecord};
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::runs::{self, Progress, RunRow};
use heddle_store::{Scope, events};

use super::author::author_of;
use super::run::{Work, carry_out, end};
use super::steps;
use crate::app::SharedApp;
use crate::http::error::Error;
use crate::process::Term;

/// How often it is looked although nobody called.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// Runs that a process carries out at once.
const PLACES: usize = 8;
/// Those of one organization, so that it does not hold up the others.
const PLACES_OF_ORG: usize = 4;
/// Tries to get a run that another process takes at the same moment.
const CLAIM_TRIES: u32 = 3;

/// Who is being served.
#[derive(Debug, Default)]
struct Places(Mutex<HashMap<OrgId, usize>>);

/// A place, given back however the run ends.
struct Place {
    places: Arc<Places>,
    org: OrgId,
    app: SharedApp,
}

impl Places {
    fn taken(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Organizations that have all that they get.
    fn full(&self) -> Vec<OrgId> {
        let served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        served.iter().filter(|(_, count)| **count >= PLACES_OF_ORG).map(|(org, _)| *org).collect()
    }

    fn take(self: &Arc<Self>, app: &SharedApp, org: OrgId) -> Place {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(org).or_default() += 1;
        Place { places: self.clone(), org, app: app.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut served = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = served.get_mut(&self.org) {
            *count -= 1;
            if *count == 0 {
                served.remove(&self.org);
            }
        }
        drop(served);
        self.app.fabric.wake.notify_one();
    }
}

/// Has runs carried out until the service stops.
pub(crate) async fn execute(app: SharedApp) {
    let stop = app.tasks.stopping();
    let places = Arc::new(Places::default());
    loop {
        if let Err(error) = start_queued(&app, &places).await {
            tracing::warn!(error = %error, "runs that wait cannot be read; tried again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.fabric.wake.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}

/// Starts as many runs as there are places.
async fn start_queued(app: &SharedApp, places: &Arc<Places>) -> Result<(), Error> {
    let Ok(term) = app.membership.term() else { return Ok(()) };
    let mut tx = app.db.read().await?;
    let gone = runs::gone(&mut tx, term.id).await?;
    let waiting = runs::backlog(&mut tx).await?.queued;
    drop(tx);
    if !gone.is_empty() {
        let mut tx = app.db.write().await?;
        for process in gone {
            let count = runs::interrupt(&mut tx, process, app.clock.now()).await?;
            app.metrics.runs_ended(RunState::Interrupted, usize::try_from(count).unwrap_or_default());
        }
        tx.commit().await?;
    }
    let mut tries = CLAIM_TRIES;
    let mut started = 0;
    while started < waiting && places.taken() < PLACES && tries > 0 {
        if app.tasks.stopping().is_cancelled() || term.is_over() {
            return Ok(());
        }
        let mut tx = app.db.write().await?;
        let run = runs::claim(&mut tx, term.id, &places.full(), app.clock.now()).await?;
        tx.commit().await?;
        let Some(run) = run else {
            tries -= 1;
            continue;
        };
        started += 1;
        let place = places.take(app, run.org_id);
        let (inner, term) = (app.clone(), term.clone());
        app.tasks.spawn("fabric.run", async move {
            let _place = place;
            serve(&inner, &run, &term).await;
        });
    }
    Ok(())
}

/// Carries out a run that was claimed.
async fn serve(app: &SharedApp, run: &RunRow, term: &Term) {
    match prepare(app, run).await {
        Ok(Prepared::Ready(work)) => carry_out(app, run, *work, term).await,
        Ok(Prepared::Idle(reason)) => {
            end(app, run, &ended(app, RunState::Skipped, &reason), None, term).await;
        }
        Ok(Prepared::Denied(connection, reason)) => {
            let steps: Vec<StepRecord> =
                connection.steps.iter().take(1).map(|step| refused(step, &reason)).collect();
            let progress = Progress { steps: &steps, ..ended(app, RunState::Failed, &reason) };
            end(app, run, &progress, Some((&connection, &reason)), term).await;
        }
        Err(error) => {
            tracing::error!(run.id = %run.id, error = %error, "run {} cannot be carried out", run.id);
            end(app, run, &ended(app, RunState::Failed, "it could not be read"), None, term).await;
        }
    }
}

fn ended<'a>(app: &SharedApp, state: RunState, reason: &'a str) -> Progress<'a> {
    Progress { state, reason: Some(reason), steps: &[], secret: None, ended_at: Some(app.clock.now()) }
}

/// The step that its author may not have run.
fn refused(step: &StepOutline, reason: &str) -> StepRecord {
    StepRecord {
        operation_id: step.operation_id.clone(),
        output: None,
        success: false,
        error_code: Some(StepErrorCode::PermissionDenied),
        message: Some(reason.to_owned()),
        duration_ms: 0,
    }
}

enum Prepared {
    Ready(Box<Work>),
    /// There is nothing to do any more.
    Idle(String),
    /// Its author may not do it.
    Denied(Box<ConnectionRow>, String),
}

async fn prepare(app: &SharedApp, run: &RunRow) -> Result<Prepared, Error> {
    let mut tx = app.db.read().await?;
    let found = match run.connection_id {
        Some(id) => connections::find_any(&mut tx, &Scope::organization(run.org_id), id).await?,
        None => None,
    };
    let Some(connection) = found.filter(|row| row.deleted_at.is_none()) else {
        return Ok(Prepared::Idle("it was removed before the run began".to_owned()));
    };
    if connection.state != ConnectionState::Enabled {
        return Ok(Prepared::Idle(format!("it was {} before the run began", connection.state)));
    }
    if connection.author_id != run.author_id {
        // The run would show one author what another wrote.
        return Ok(Prepared::Idle("somebody else wrote its steps anew before the run began".to_owned()));
    }
    let author = match author_of(&mut tx, run.org_id, connection.author_id, connection.id).await? {
        Ok(author) => author,
        Err(reason) => return Ok(Prepared::Denied(Box::new(connection), reason)),
    };
    let event = match run.kind {
        RunKind::Event => {
            let stretch = events::list(&mut tx, run.org_id, run.event_seq - 1, &[], 1).await?;
            stretch.events.into_iter().next().filter(|stored| Some(stored.event.id) == run.event_id)
        }
        RunKind::Test | RunKind::Schedule | RunKind::Action => None,
    };
    drop(tx);
    let event = event.map(|stored| crate::events::Published::from(stored).event);
    if let Some(Err(error)) = event.as_ref().map(|event| steps::may_read(&author, event.event_type)) {
        return Ok(Prepared::Denied(
            Box::new(connection),
            format!("its author may not read the event: {error}"),
        ));
    }
    let steps = steps::open(&app.keys, connection.id, &connection.steps, &connection.secret)?;
    Ok(Prepared::Ready(Box::new(Work { author, steps, event, connection: Some(connection) })))
}
