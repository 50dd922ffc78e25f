//! Brings sets over several controllers forward, one step after the other.
//!
//! A step is one transaction. It locks the set, looks at where its parts stand, decides on what comes next
//! ([`crate::decide`]), and writes that: with it the intent to apply a part, to confirm it or to take it back. Only then is
//! the part driven, and its own outcome says what came of it. So a set that was left by a process that was killed goes on in
//! any other, from where its parts are: no step is lost, and none is done twice.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use heddle_changes::parts::{self, Moved};
use heddle_core::ChangeId;
use heddle_core::Timestamp;
use heddle_core::change::ChangeStatus;
use heddle_core::saga::{PartPhase, SagaState, SagaStep};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_store::changes::Window;
use heddle_store::sagas::{self, Transition};
use heddle_store::{Set, Tx};

use crate::decide::{Next, Standing, Why};
use crate::declarations::{
    SET_AWAITING_CONFIRM, SET_COMMITTED, SET_COMPENSATED, SET_COMPENSATING, SET_STUCK,
};
use crate::record::{Actor, record};
use crate::saga::{Names, Part, Saga, get, lock};

/// Shortest and longest pause before a set is looked at again.
const NAP: std::ops::RangeInclusive<u64> = 20..=500;
/// Longest pause before a waiting request looks at its set again.
const RESTED_NAP_MAX: u64 = 200;
/// Shortest and longest pause before a part is read again that could not be read to be confirmed.
const READ_AGAIN: std::ops::RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_secs(15);
/// How often sets are looked for that no task of this process brings forward.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before a set is looked at again whose work ended with an error.
const RETRY: Duration = Duration::from_secs(2);
/// The window of a part is this much longer than that of its set: the set decides, and where no process lives to do that, the
/// part is taken back by itself.
pub(crate) const PART_MARGIN_SECS: i64 = 30;

/// Sets that a task of this process brings forward.
#[derive(Debug, Default)]
pub(crate) struct Workers(Mutex<HashSet<ChangeId>>);

/// The right of one task of this process to bring a set forward.
struct Claim {
    app: SharedApp,
    id: ChangeId,
}

impl Claim {
    fn new(app: &SharedApp, id: ChangeId) -> Option<Self> {
        let workers: &Workers = app.part();
        let is_free = workers.0.lock().expect("no holder of this lock panics").insert(id);
        is_free.then(|| Self { app: app.clone(), id })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let workers: &Workers = self.app.part();
        workers.0.lock().expect("no holder of this lock panics").remove(&self.id);
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing is under way.
    Rests,
    /// A part, a person or the clock has to move first.
    Waits,
    Moved,
}

/// When a part that is to be confirmed may be read next: each reading is a login at its device.
struct Reading {
    not_before: Instant,
    pause: Duration,
}

impl Reading {
    fn new() -> Self {
        Self { not_before: Instant::now(), pause: *READ_AGAIN.start() }
    }

    /// Waits longer each time, but not near the end of the window.
    fn failed(&mut self, deadline: Option<Timestamp>, now: Timestamp) {
        let left = deadline.and_then(|deadline| (deadline - now).to_std().ok());
        let is_near = left.is_some_and(|left| left < self.pause * 2);
        let pause = if is_near { *READ_AGAIN.start() } else { self.pause };
        self.not_before = Instant::now() + pause;
        self.pause = (self.pause * 2).min(*READ_AGAIN.end());
    }
}

/// Brings a set forward in the background until it rests, unless a task of this process does so already.
pub(crate) fn spawn(app: &SharedApp, id: ChangeId) {
    let Some(claim) = Claim::new(app, id) else { return };
    app.tasks.spawn("sets.work", async move {
        let app = &claim.app;
        if let Err(error) = work(app, id).await {
            tracing::warn!(set.id = %id, error = %error, "set {id} was not brought forward; it is taken up again");
            let stop = app.tasks.stopping();
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    });
}

async fn work(app: &SharedApp, id: ChangeId) -> Result<(), Error> {
    let stop = app.tasks.stopping();
    let mut nap = *NAP.start();
    let mut reading = Reading::new();
    while !stop.is_cancelled() {
        match step(app, id, &mut reading).await? {
            Progress::Rests => return Ok(()),
            Progress::Moved => nap = *NAP.start(),
            Progress::Waits => {
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(Duration::from_millis(nap)) => {}
                }
                nap = (nap * 3 / 2).min(*NAP.end());
            }
        }
    }
    Ok(())
}

/// Takes up every set on which work is under way, and discards those whose time has run out.
pub(crate) async fn look_loop(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        if let Err(error) = look(&app).await {
            tracing::warn!(error = %error, "sets under way cannot be read; tried again later");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
        }
    }
}

pub(crate) async fn look(app: &SharedApp) -> Result<(), Error> {
    if app.tasks.stopping().is_cancelled() || app.membership.term().is_err() {
        return Ok(());
    }
    let mut tx = app.db.read().await?;
    let under_way = sagas::under_way(&mut tx).await?;
    let expired = sagas::expired(&mut tx, app.clock.now()).await?;
    drop(tx);
    under_way.into_iter().for_each(|id| spawn(app, id));
    for id in expired {
        crate::leave::expire(app, id).await?;
    }
    Ok(())
}

/// Takes the next step of a set.
async fn step(app: &SharedApp, id: ChangeId, reading: &mut Reading) -> Result<Progress, Error> {
    let saga = get(app, id).await?;
    let now = app.clock.now();
    if saga.is_idle() {
        return Ok(Progress::Rests);
    }
    match saga.next(now) {
        Next::Wait if !has_news(&saga, now) => Ok(Progress::Waits),
        next @ (Next::Begin(at) | Next::Confirm(at) | Next::TakeBack(at)) => {
            move_part(app, &saga, (next, at), reading).await
        }
        next => {
            let mut tx = app.db.write().await?;
            let mut saga = lock(&mut tx, id).await?;
            // Another process, or a person, may have been faster.
            if saga.next(now) != next {
                return Ok(Progress::Moved);
            }
            decided(&mut tx, app, &mut saga, next).await?;
            tx.commit().await?;
            Ok(if saga.is_idle() { Progress::Rests } else { Progress::Moved })
        }
    }
}

/// Whether the set itself has to be written although no part is to be moved.
fn has_news(saga: &Saga, now: Timestamp) -> bool {
    saga.row.step == SagaStep::Compensating
        && (saga.row.state != compensating_state(saga, now) || settled(saga, now).next().is_some())
}

/// What a set is while it is being taken back: stuck, as long as a device that is to be taken back gives no answer.
fn compensating_state(saga: &Saga, now: Timestamp) -> SagaState {
    let is_silent = |part: &Part| part.standing(now) == Standing::Silent;
    if saga.parts.iter().any(is_silent) { SagaState::Stuck } else { SagaState::Applying }
}

/// The parts whose controllers are still locked although their devices read as before.
fn settled(saga: &Saga, now: Timestamp) -> impl Iterator<Item = ChangeId> {
    let is_settled = move |part: &&Part| part.of.is_locked && part.standing(now).is_back();
    saga.parts.iter().filter(is_settled).map(|part| part.row.id)
}

/// Moves a part, and drives it once that is committed.
async fn move_part(
    app: &SharedApp,
    saga: &Saga,
    (next, at): (Next, usize),
    reading: &mut Reading,
) -> Result<Progress, Error> {
    let part = &saga.parts[at];
    if matches!(next, Next::Confirm(_)) && Instant::now() < reading.not_before {
        return Ok(Progress::Waits);
    }
    let ready = match parts::ready(app, &part.row).await {
        Ok(Some(ready)) => ready,
        // The task that drove it last has not ended yet.
        Ok(None) => return Ok(Progress::Waits),
        Err(error) => return refused(app, saga, next, error).await,
    };
    let seen = match next {
        Next::Confirm(_) => match parts::read_held(app, &part.row).await {
            Ok(seen) => {
                reading.pause = *READ_AGAIN.start();
                seen
            }
            // Its window, or the device's own timer, takes it back if that lasts.
            Err(error) => {
                tracing::warn!(set.id = %saga.row.id, change.id = %part.row.id, error = %error, "not readable, so not confirmed yet");
                reading.failed(part.row.confirm_deadline, app.clock.now());
                return Ok(Progress::Waits);
            }
        },
        _ => Set::Keep,
    };
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let locked = lock(&mut tx, saga.row.id).await?;
    if locked.next(now) != next {
        return Ok(Progress::Moved);
    }
    let (part, starter) = (&locked.parts[at], locked.starter());
    let (id, row) = (part.row.id, &part.row);
    let moved: Result<Option<Moved>, Error> = match next {
        Next::Begin(_) => {
            let window = window_of(&locked, now);
            sagas::set_phase(&mut tx, locked.row.id, id, PartPhase::Begun).await?;
            parts::begin(&mut tx, app, ready, &starter, window).await.map(Some)
        }
        Next::Confirm(_) => parts::confirm(&mut tx, app, ready, row, (&seen, &starter)).await,
        _ => {
            sagas::set_phase(&mut tx, locked.row.id, id, PartPhase::TakenBack).await?;
            let back: Vec<ChangeId> = settled(&locked, now).collect();
            for part in back {
                sagas::unlock(&mut tx, locked.row.id, Some(part)).await?;
            }
            let reason = locked.row.message.clone().unwrap_or_default();
            parts::take_back(&mut tx, app, ready, row, (&reason, &starter)).await
        }
    };
    match moved {
        Ok(Some(moved)) => {
            tx.commit().await?;
            moved.drive(app);
            Ok(Progress::Moved)
        }
        Ok(None) => Ok(Progress::Waits),
        Err(error) => {
            drop(tx);
            refused(app, saga, next, error).await
        }
    }
}

/// The window of a part: what is left of that of its set, and a margin.
fn window_of(saga: &Saga, now: Timestamp) -> Window {
    let Some(deadline) = saga.row.confirm_deadline else { return Window::default() };
    let left = (deadline - now).num_seconds() + PART_MARGIN_SECS;
    let elapsed = saga.row.started_at.map_or(0, |started| (now - started).num_seconds());
    let extendable = saga.row.extendable_to_secs.map(|secs| secs - elapsed + PART_MARGIN_SECS);
    Window { confirm_within_secs: Some(left), extendable_to_secs: extendable.map(|secs| secs.max(left)) }
}

/// A part that may not be applied now turns the set around, and one that cannot be taken back now leaves it stuck. All else is
/// tried again.
async fn refused(app: &SharedApp, saga: &Saga, next: Next, error: Error) -> Result<Progress, Error> {
    let is_of_service = matches!(error, Error::Internal(_) | Error::Unavailable(_));
    let (Next::Begin(at) | Next::TakeBack(at)) = next else { return Err(error) };
    if is_of_service || saga.parts[at].standing(app.clock.now()) == Standing::Held {
        return Err(error);
    }
    let mut tx = app.db.write().await?;
    let mut saga = lock(&mut tx, saga.row.id).await?;
    if saga.next(app.clock.now()) != next {
        return Ok(Progress::Moved);
    }
    let names = Names::load(&mut tx, &saga).await?;
    let name = saga.name_of(at, &names);
    if let Next::Begin(_) = next {
        let message = format!("{name} was not applied: {error}");
        turn(&mut tx, app, &mut saga, message, None).await?;
    } else {
        let (id, part) = (saga.row.id, saga.parts[at].row.id);
        sagas::set_phase(&mut tx, id, part, PartPhase::TakenBack).await?;
        let before = saga.row.message.as_deref().map(|message| format!("{message}; ")).unwrap_or_default();
        let message = Set::To(format!("{before}{name} could not be taken back: {error}"));
        let to = Transition { message, ..Transition::default() };
        sagas::advance(&mut tx, id, SagaStep::Compensating, &to, app.clock.now()).await?;
    }
    tx.commit().await?;
    Ok(Progress::Moved)
}

/// From now on the parts of a set are taken back.
pub(crate) async fn turn(
    tx: &mut Tx,
    app: &App,
    saga: &mut Saga,
    message: String,
    by: Option<&Actor>,
) -> Result<(), Error> {
    tracing::warn!(set.id = %saga.row.id, "set {} is taken back: {message}", saga.row.id);
    let to = Transition {
        state: Some(SagaState::Applying),
        message: Set::To(message),
        confirm_deadline: Set::Clear,
        ..Transition::default()
    };
    saga.row = sagas::advance(tx, saga.row.id, SagaStep::Compensating, &to, app.clock.now()).await?;
    let service = Actor::service(saga);
    let step = ("change_set.compensating", Some(SET_COMPENSATING));
    record(tx, app, saga, step, by.unwrap_or(&service)).await
}

/// Writes what was decided on for the set itself.
async fn decided(tx: &mut Tx, app: &App, saga: &mut Saga, next: Next) -> Result<(), Error> {
    let now = app.clock.now();
    match next {
        Next::Hold => {
            let to = Transition { state: Some(SagaState::AwaitingConfirm), ..Transition::default() };
            saga.row = sagas::advance(tx, saga.row.id, SagaStep::Holding, &to, now).await?;
            let step = ("change_set.awaiting_confirm", Some(SET_AWAITING_CONFIRM));
            record(tx, app, saga, step, &Actor::service(saga)).await
        }
        Next::Commit | Next::Compensated | Next::Stuck => end(tx, app, saga, next).await,
        Next::Compensate(why) => {
            let names = Names::load(tx, saga).await?;
            let message = reason(saga, why, &names);
            turn(tx, app, saga, message, None).await
        }
        // The set is being taken back: its state, and the controllers that it keeps.
        _ => {
            let ids: Vec<ChangeId> = settled(saga, now).collect();
            for id in ids {
                sagas::unlock(tx, saga.row.id, Some(id)).await?;
            }
            let state = compensating_state(saga, now);
            if saga.row.state == state {
                return Ok(());
            }
            let to = Transition { state: Some(state), ..Transition::default() };
            saga.row = sagas::advance(tx, saga.row.id, SagaStep::Compensating, &to, now).await?;
            if state != SagaState::Stuck {
                return Ok(());
            }
            record(tx, app, saga, ("change_set.stuck", Some(SET_STUCK)), &Actor::service(saga)).await
        }
    }
}

/// Why a set is taken back, for people.
fn reason(saga: &Saga, why: Why, names: &Names) -> String {
    match why {
        Why::NotConfirmed => "not confirmed in time".to_owned(),
        Why::Silent(at) => format!("{} gives no answer", saga.name_of(at, names)),
        Why::Failed(at) => {
            let row = &saga.parts[at].row;
            let said = row.outcome_message.clone().filter(|message| !message.is_empty());
            let said = said.unwrap_or_else(|| row.outcome_state.to_string());
            format!("{}: {said}", saga.name_of(at, names))
        }
    }
}

/// Ends the work on a set: its parts decide its state, and all of its controllers are unlocked.
pub(crate) async fn end(tx: &mut Tx, app: &App, saga: &mut Saga, verdict: Next) -> Result<(), Error> {
    let now = app.clock.now();
    let (state, step) = match verdict {
        Next::Commit => (SagaState::Committed, ("change_set.committed", SET_COMMITTED)),
        Next::Compensated => (SagaState::Compensated, ("change_set.compensated", SET_COMPENSATED)),
        _ => (SagaState::Stuck, ("change_set.stuck", SET_STUCK)),
    };
    let message = match state {
        SagaState::Committed => None,
        SagaState::Stuck => {
            let names = Names::load(tx, saga).await?;
            let began = saga.row.message.as_deref().map(|message| format!("{message}; ")).unwrap_or_default();
            Some(format!("{began}{}", standings(saga, &names, now)))
        }
        _ => saga.row.message.clone(),
    };
    let mut attempts = saga.row.attempts.clone();
    if let Some(last) = attempts.last_mut() {
        // Of one that was stuck, the attempt keeps why.
        let was_stuck = saga.row.state == SagaState::Stuck && last.ended_at.is_some();
        let why = if was_stuck { last.message.clone() } else { message.clone() };
        last.end(state, why.as_deref(), now);
    }
    let starter = saga.starter();
    let is_committed = state == SagaState::Committed;
    let to = Transition {
        state: Some(state),
        status: is_committed.then_some(ChangeStatus::Applied),
        message: message.map_or(Set::Clear, Set::To),
        attempts: Some(attempts),
        confirm_deadline: Set::Clear,
        applied_by: if is_committed { Set::To(starter.user) } else { Set::Keep },
        applied_at: if is_committed { Set::To(now) } else { Set::Keep },
        ..Transition::default()
    };
    saga.row = sagas::advance(tx, saga.row.id, SagaStep::Idle, &to, now).await?;
    sagas::unlock(tx, saga.row.id, None).await?;
    tracing::info!(set.id = %saga.row.id, outcome = %state, "set {} ended: {state}", saga.row.id);
    // Sets are locked before the head of the audit log, as everywhere.
    if is_committed && let Some(original) = saga.row.reverts {
        mark_reverted(tx, app, original, saga.row.id).await?;
    }
    record(tx, app, saga, (step.0, Some(step.1)), &Actor::service(saga)).await
}

/// The set that this one takes back is in effect no more.
async fn mark_reverted(tx: &mut Tx, app: &App, original: ChangeId, by: ChangeId) -> Result<(), Error> {
    let Some(row) = sagas::lock(tx, original).await? else { return Ok(()) };
    let to = Transition { reverted_by: Set::To(by), ..Transition::default() };
    let step = row.step;
    sagas::advance(tx, original, step, &to, app.clock.now()).await?;
    Ok(())
}

/// Has a stuck set say where its parts stand now. Why it was taken back stays in its attempt.
pub(crate) async fn tell_standings(tx: &mut Tx, app: &App, saga: &mut Saga) -> Result<(), Error> {
    let (names, now) = (Names::load(tx, saga).await?, app.clock.now());
    let to = Transition { message: Set::To(standings(saga, &names, now)), ..Transition::default() };
    saga.row = sagas::advance(tx, saga.row.id, SagaStep::Idle, &to, now).await?;
    Ok(())
}

/// Says for people in which state each controller is.
fn standings(saga: &Saga, names: &Names, now: Timestamp) -> String {
    let mut told = Vec::new();
    for (at, part) in saga.parts.iter().enumerate() {
        let what = match part.standing(now) {
            Standing::InEffect | Standing::Held => "in effect".to_owned(),
            Standing::Waiting | Standing::Unchanged => "as before".to_owned(),
            Standing::Running | Standing::Silent => "no answer".to_owned(),
            Standing::InDoubt => {
                let said = part.row.outcome_message.as_deref().unwrap_or_default();
                format!("{}, {said}", part.row.outcome_state)
            }
        };
        told.push(format!("{}: {what}", saga.name_of(at, names)));
    }
    told.join("; ")
}

/// Waits until nothing is under way for a set, or it waits for a person, and returns it; after `limit` as it stands.
pub(crate) async fn rested(app: &SharedApp, id: ChangeId, limit: Duration) -> Result<Saga, Error> {
    spawn(app, id);
    let until = tokio::time::Instant::now() + limit;
    let mut nap = *NAP.start();
    loop {
        let saga = get(app, id).await?;
        let is_at_rest = matches!(saga.row.step, SagaStep::Idle | SagaStep::Holding);
        if is_at_rest || tokio::time::Instant::now() >= until || app.tasks.stopping().is_cancelled() {
            return Ok(saga);
        }
        tokio::time::sleep(Duration::from_millis(nap)).await;
        nap = (nap * 5 / 4).min(RESTED_NAP_MAX);
    }
}
