//! Executes queued runs: a few at a time, each by one process and once.
//!
//! A process that ends in the middle of a run leaves it interrupted: it is not known how far its step came.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use heddle_core::RunId;
use heddle_core::operation::{ConnectionState, RunKind, RunState, StepErrorCode, StepOutline, StepRecord};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::runs::{self, Progress, RunRow};
use heddle_store::{Scope, events};

use super::author::author_of;
use super::measures::Measures;
use super::run::{Work, carry_out, end};
use super::state::FabricState;
use super::{in_flight, steps, telling};

/// Time to the next look without a call.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// Due runs that one look resumes.
const DUE_MAX: u32 = 500;

/// Executes queued runs until the service stops.
pub(super) async fn execute(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut sweep = Sweep::default();
    loop {
        match start_queued(&app, &mut sweep).await {
            // Other processes may have taken some of the runs that were seen.
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(error = %error, "runs that wait cannot be read; tried again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = FabricState::of(&app).wake.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}

/// What this process has to look after in addition to the runs that it executes.
#[derive(Debug, Default)]
struct Sweep {
    done: Option<Instant>,
    /// Runs that may be claimed: the answer of the database did not come. None of them has begun.
    doubtful: HashSet<RunId>,
}

/// Starts the runs that there is room for. Returns whether there may be more, and room for them.
async fn start_queued(app: &SharedApp, sweep: &mut Sweep) -> Result<bool, Error> {
    let Ok(term) = app.membership.term() else { return Ok(false) };
    if sweep.done.is_none_or(|at| at.elapsed() >= IDLE_INTERVAL) {
        end_lost(app, &term, sweep).await?;
        wake_due(app).await?;
        sweep.done = Some(Instant::now());
    }
    let mut tx = app.db.read().await?;
    let waiting = runs::waiting(&mut tx).await?;
    drop(tx);
    FabricState::of(app).let_on(&waiting);
    let mut shares = FabricState::of(app).in_flight.shares(&waiting);
    if shares.is_empty() || app.tasks.stopping().is_cancelled() || term.is_over() {
        return Ok(false);
    }
    // In one order, so that two processes cannot deadlock.
    shares.sort_unstable();
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let mut claimed = Vec::new();
    for (org, share) in shares {
        claimed.extend(runs::claim(&mut tx, term.id, org, share, now).await?);
    }
    sweep.doubtful.extend(claimed.iter().map(|run| run.id));
    tx.commit().await?;
    let has_claimed = !claimed.is_empty();
    for run in claimed {
        sweep.doubtful.remove(&run.id);
        let in_flight = in_flight::take(app, run.org_id, run.id);
        let (inner, term) = (app.clone(), term.clone());
        app.tasks.spawn("fabric.run", async move {
            let _in_flight = in_flight;
            serve(&inner, &run, &term).await;
        });
    }
    Ok(has_claimed)
}

/// Puts the runs that are due to go on back into the queue.
async fn wake_due(app: &SharedApp) -> Result<(), Error> {
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let is_any_due = runs::is_any_due(&mut tx, now).await?;
    drop(tx);
    if is_any_due {
        let mut tx = app.db.write().await?;
        runs::resume_due(&mut tx, now, DUE_MAX).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Ends the runs of processes that are gone, and the orphaned runs of this one. Runs that never began are queued again.
async fn end_lost(app: &SharedApp, term: &Term, sweep: &mut Sweep) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    let gone = runs::gone(&mut tx, term.id).await?;
    let mut lost = runs::running(&mut tx, term.id).await?;
    drop(tx);
    // Read after the database: a run that is written as running was marked as executing before.
    let held = FabricState::of(app).in_flight.runs();
    lost.retain(|run| !held.contains(run));
    if gone.is_empty() && lost.is_empty() {
        return Ok(());
    }
    let (unbegun, lost): (Vec<RunId>, Vec<RunId>) =
        lost.into_iter().partition(|run| sweep.doubtful.contains(run));
    let mut tx = app.db.write().await?;
    let mut ended = Vec::new();
    for process in gone {
        ended.extend(runs::interrupt(&mut tx, process, app.clock.now()).await?);
    }
    if !lost.is_empty() {
        tracing::error!(runs = ?lost, "{} runs were lost on the way", lost.len());
        ended.extend(runs::interrupt_lost(&mut tx, &lost, term.id, app.clock.now()).await?);
    }
    runs::give_back(&mut tx, &unbegun, term.id).await?;
    // In one order, so that two processes cannot deadlock.
    ended.sort_by_key(|run| (run.org_id, run.id));
    for run in &ended {
        let reason = run.reason.as_deref().unwrap_or("interrupted");
        telling::of_failure(&mut tx, app, run, (RunState::Interrupted, reason, &run.steps)).await?;
    }
    tx.commit().await?;
    Measures::of(app).runs_ended(RunState::Interrupted, ended.len());
    Ok(())
}

/// Executes a run that was claimed.
async fn serve(app: &SharedApp, run: &RunRow, term: &Term) {
    match prepare(app, run).await {
        Ok(Prepared::Ready(work)) => carry_out(app, run, *work, term).await,
        Ok(Prepared::Idle(reason)) => {
            // A user did that on purpose: it is no failure. What was done before the run waited stays in its steps.
            end(app, run, &ended(app, run, RunState::Skipped, &reason), None, term).await;
        }
        Ok(Prepared::Denied(connection, reason)) => {
            let mut steps = run.steps.clone();
            steps.extend(connection.steps.get(steps.len()).map(|step| refused(step, &reason)));
            let progress = Progress { steps: &steps, ..ended(app, run, RunState::Failed, &reason) };
            end(app, run, &progress, Some((&connection, &reason)), term).await;
        }
        Err(error) => {
            tracing::error!(run.id = %run.id, error = %error, "run {} cannot be carried out", run.id);
            end(app, run, &ended(app, run, RunState::Failed, "it could not be read"), None, term).await;
        }
    }
}

fn ended<'a>(app: &SharedApp, run: &'a RunRow, state: RunState, reason: &'a str) -> Progress<'a> {
    Progress { state, reason: Some(reason), steps: &run.steps, secret: None, ended_at: Some(app.clock.now()) }
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
        skipped: false,
    }
}

enum Prepared {
    Ready(Box<Work>),
    /// There is nothing left to do.
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
    // A test also tries what is not enabled.
    if connection.state != ConnectionState::Enabled && run.kind != RunKind::Test {
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
        RunKind::Event | RunKind::Rerun if run.event_seq > 0 => {
            let stretch =
                events::list(&mut tx, &app.declared().events, run.org_id, run.event_seq - 1, None, 1).await?;
            stretch.events.into_iter().next().filter(|stored| stored.event.seq == run.event_seq)
        }
        RunKind::Event
        | RunKind::Rerun
        | RunKind::Test
        | RunKind::Schedule
        | RunKind::Action
        | RunKind::Trigger => None,
    };
    drop(tx);
    let event = event.map(|stored| heddle_kernel::events::Published::from(stored).event);
    if let Some(Err(error)) = event.as_ref().map(|event| steps::may_read(app, &author, event.event_type)) {
        return Ok(Prepared::Denied(
            Box::new(connection),
            format!("its author may not read the event: {error}"),
        ));
    }
    let (done, steps) = match (&run.wait, &run.secret) {
        (Some(_), Some(sealed)) => steps::open_resting(&app.keys, run.id, sealed)?,
        _ => (Vec::new(), steps::open(&app.keys, connection.id, &connection.steps, &connection.secret)?),
    };
    Ok(Prepared::Ready(Box::new(Work { author, steps, done, event, connection: Some(connection) })))
}
