//! Work that neither a Connection nor a person starts: what provides operations also has events, timers and requests of
//! others to follow. Each piece of it is a run of its own, with the rights of the user who set it up.
//!
//! The provider keeps what is to be done, and when; a run that ended as interrupted is begun anew by it.

use std::time::Instant;

use heddle_core::event::{Event, EventType};
use heddle_core::operation::{RunKind, RunState, StepRecord};
use heddle_core::{ConnectionId, OrgId, Timestamp, UserId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_store::Tx;
use heddle_store::runs::{self, Progress, RunRow};
use serde_json::json;

use crate::author::author_of;
use crate::in_flight::{self, RunInFlight};
use crate::measures::Measures;
use crate::operation::{StepCall, StepError};
use crate::{steps, telling};

/// Most Connections and the like in one chain, as for Connections.
pub use crate::negotiator::CHAIN_MAX;

/// Most characters that are kept of why it failed.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// A piece of work.
#[derive(Debug, Clone)]
pub struct Occasion {
    pub org: OrgId,
    /// Names what is started: it stands in the chain of what follows from the work, so that nothing starts itself.
    pub id: ConnectionId,
    /// What led to it, without itself.
    pub chain: Vec<ConnectionId>,
    /// What is shown in the place of an operation, such as `plugin.acme.outages`.
    pub name: String,
    /// The first event that it is about.
    pub event: Option<Event>,
    /// When the clock was to start it.
    pub due_at: Option<Timestamp>,
    /// The same again has the same key: what is staged with it is staged once.
    pub key: String,
}

/// Work that was begun.
pub struct Begun {
    run: RunRow,
    author: Caller,
    occasion: Occasion,
    term: Term,
    began: Instant,
    _in_flight: RunInFlight,
}

/// The user as a caller with the rights of this moment, for what has this id; or why nothing runs with them.
///
/// # Errors
/// The database gives no answer.
pub async fn author(
    tx: &mut Tx,
    (org, author): (OrgId, UserId),
    id: ConnectionId,
) -> Result<Result<Caller, String>, Error> {
    author_of(tx, org, author, id).await
}

/// Whether this caller may read events of a type.
#[must_use]
pub fn may_read(app: &App, caller: &Caller, event: EventType) -> bool {
    steps::may_read(app, caller, event).is_ok()
}

/// Begins work with the rights of [`author`]: it is written as running before anything is done.
///
/// # Errors
/// The database gives no answer, or this process has lost its place.
pub async fn begin(app: &SharedApp, author: Caller, occasion: Occasion) -> Result<Begun, Error> {
    match begin_with(app, author, occasion, None).await? {
        Once::Begun(begun) => Ok(*begun),
        Once::Before(_) => Err(Error::internal("the run of an occasion was not written")),
    }
}

/// How work began that is done once.
pub enum Once {
    /// It is written as running.
    Begun(Box<Begun>),
    /// The same was begun before: how that stands.
    Before(RunState),
}

/// The same for work that is done once under this key, of up to some hundred bytes. Where it was interrupted before, it is
/// begun anew; so it is after [`Begun::let_again`].
///
/// # Errors
/// As [`begin`].
pub async fn begin_once(
    app: &SharedApp,
    author: Caller,
    occasion: Occasion,
    key: &str,
) -> Result<Once, Error> {
    begin_with(app, author, occasion, Some(key)).await
}

async fn begin_with(
    app: &SharedApp,
    author: Caller,
    occasion: Occasion,
    key: Option<&str>,
) -> Result<Once, Error> {
    let term = app.membership.term()?;
    let mut run = crate::run::begin(app, &term, RunKind::Trigger, occasion.org, &author);
    run.chain = occasion.chain.clone();
    run.chain.push(occasion.id);
    run.due_at = occasion.due_at;
    if let Some(event) = &occasion.event {
        run.event_id = Some(event.id);
        run.event_type = Some(event.event_type.to_string());
        run.event_seq = event.seq;
    }
    run.run_key = key.map(str::to_owned);
    let in_flight = in_flight::take_for_occasion(app, run.org_id, run.id);
    let mut tx = app.db.write().await?;
    if let Some(key) = key {
        runs::forget_interrupted_key(&mut tx, key).await?;
    }
    if runs::insert_all(&mut tx, std::slice::from_ref(&run)).await? == 0 {
        let before = match key {
            Some(key) => runs::state_by_key(&mut tx, key).await?,
            None => None,
        };
        // Where it cannot be seen, another process has written it a moment ago.
        return Ok(Once::Before(before.unwrap_or(RunState::Running)));
    }
    tx.commit().await?;
    let author = Caller { credential: Credential::Action(run.id), ..author };
    let begun = Begun { run, author, occasion, term, began: Instant::now(), _in_flight: in_flight };
    Ok(Once::Begun(Box::new(begun)))
}

impl Begun {
    /// What is asked of the host on behalf of the work is asked as a step of a run.
    #[must_use]
    pub fn step<'a>(&'a self, app: &'a SharedApp) -> StepCall<'a> {
        StepCall {
            app,
            author: &self.author,
            event: self.occasion.event.as_ref(),
            run_id: self.run.id,
            key: &self.occasion.key,
            step: 0,
            connection: None,
        }
    }

    /// Names the work in logs, and to what it calls.
    #[must_use]
    pub fn request_id(&self) -> String {
        format!("run-{}", self.run.id)
    }

    /// Does the work. `None` where this process has lost its place meanwhile: another one may have begun it anew.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.term.over().cancelled() => None,
            done = work => Some(done),
        }
    }

    /// Has the same work begin again when it comes again: it was not done, or not to its end.
    ///
    /// # Errors
    /// The database gives no answer.
    pub async fn let_again(&self, tx: &mut Tx) -> Result<(), Error> {
        Ok(runs::give_key_up(tx, self.run.id).await?)
    }

    /// Writes how it ended. False where the run is no longer of this process: then nothing that was done counts, and the
    /// transaction is not committed.
    ///
    /// # Errors
    /// The database gives no answer.
    pub async fn end(&self, tx: &mut Tx, app: &App, result: &Result<(), StepError>) -> Result<bool, Error> {
        let error = result.as_ref().err();
        let message: Option<String> =
            error.map(|error| error.message.chars().filter(|c| *c != '\0').take(MESSAGE_CHARS_MAX).collect());
        let step = StepRecord {
            operation_id: self.occasion.name.clone(),
            output: error.is_none().then(|| json!({})),
            success: error.is_none(),
            error_code: error.map(|error| error.code),
            message: message.clone(),
            duration_ms: i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX),
            skipped: false,
        };
        let state = if error.is_none() { RunState::Success } else { RunState::Failed };
        let steps = [step];
        let progress = Progress {
            state,
            reason: message.as_deref(),
            steps: &steps,
            secret: None,
            ended_at: Some(app.clock.now()),
        };
        if !runs::record(tx, self.run.id, self.term.id, &progress).await? {
            return Ok(false);
        }
        let failure = (state, message.as_deref().unwrap_or("no reason"), steps.as_slice());
        telling::of_failure(tx, app, &self.run, failure).await?;
        Measures::of(app).runs_ended(state, 1);
        Ok(true)
    }
}
