//! Executes a run: step by step, each recorded before the next begins.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use heddle_core::event::{Event, NewEvent};
use heddle_core::notification::Severity;
use heddle_core::operation::{RunKind, RunState, StepErrorCode, StepRecord};
use heddle_core::redact::{mask_text, sanitize};
use heddle_core::template::{Values, fill};
use heddle_core::{OrgId, RunId};
use heddle_delivery::notifications::message::Message;
use heddle_delivery::notifications::notices;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_store::audit::{self, NewAudit};
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::runs::{self, Progress, RunRow};
use heddle_store::{Tx, events};
use serde_json::{Value, json};

use super::author::author_of;
use super::each::{self, Done};
use super::in_flight::RunInFlight;
use super::measures::Measures;
use super::operation::{Operation, StepCall, StepError};
use super::operations::Operations;
use super::steps::{self, Step};
use super::{telling, wait};
use crate::declarations::CONNECTION_BROKEN;

/// The longest that a run takes.
const RUN_LIMIT: Duration = Duration::from_mins(5);
/// The longest that a step takes.
const STEP_LIMIT: Duration = Duration::from_mins(1);
/// Most bytes that are kept of a step's output, as JSON.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Most characters that are kept of a step's message.
const MESSAGE_CHARS_MAX: usize = 1000;
/// Attempts to write the end of a run while the database is unavailable.
const END_TRIES: u32 = 30;

/// What a run does, and for which author.
pub(crate) struct Work {
    pub(crate) author: Caller,
    pub(crate) steps: Vec<Step>,
    /// The parameters of the steps that were done before the run waited.
    pub(crate) done: Vec<Value>,
    pub(crate) event: Option<Event>,
    /// The Connection as it was read.
    pub(crate) connection: Option<ConnectionRow>,
}

/// Returns a new run that this process executes itself at once. It is not written yet.
pub(crate) fn begin(app: &SharedApp, term: &Term, kind: RunKind, org: OrgId, author: &Caller) -> RunRow {
    let now = app.clock.now();
    RunRow {
        state: RunState::Running,
        owner: Some(term.id),
        started_at: Some(now),
        ..RunRow::queued(app.clock.new_id(), kind, org, author.user_id, now)
    }
}

/// Executes a run that was written and counts as executing, in a task that goes on when the request that waits for it
/// goes away. Returns the run as it ended.
pub(crate) async fn carry_out_apart(
    app: &SharedApp,
    run: RunRow,
    work: Work,
    (term, in_flight): (Term, RunInFlight),
) -> Result<RunRow, Error> {
    let (id, scope) = (run.id, heddle_store::Scope::organization(run.org_id));
    let inner = app.clone();
    let task = app.tasks.spawn("fabric.run", async move {
        let _in_flight = in_flight;
        carry_out(&inner, &run, work, &term).await;
    });
    task.await.map_err(Error::internal)?;
    let mut tx = app.db.single().await?;
    runs::find(&mut tx, &scope, id).await?.ok_or(Error::NotFound("run"))
}

/// Executes a run of this process to its end.
pub(super) async fn carry_out(app: &SharedApp, run: &RunRow, work: Work, term: &Term) {
    let mut course = Course {
        app,
        run,
        work: &work,
        term,
        records: run.steps.clone(),
        outputs: run.steps.iter().map(|step| step.output.clone()).collect(),
        params: work.done.clone(),
        denied: None,
        has_failed: is_failed(&work.steps, &run.steps),
        deadline: Instant::now() + RUN_LIMIT,
    };
    let went = tokio::select! {
        biased;
        // Another process has written by now that the run was interrupted.
        () = term.over().cancelled() => return,
        went = course.go() => went,
    };
    let reason = match went {
        Went::Through => None,
        Went::Lost | Went::Rests => return,
        Went::Late => {
            course.has_failed = true;
            Some(format!("the run did not end within {} s", RUN_LIMIT.as_secs()))
        }
    };
    let state = course.state();
    let End { records, params, denied } = course.end();
    let reason = denied.clone().or(reason);
    let reason =
        reason.or_else(|| if state == RunState::Success { None } else { telling::reason_of(&records) });
    let secret = steps::seal_run(&app.keys, run.id, &params);
    let progress = Progress {
        state,
        reason: reason.as_deref(),
        steps: &records,
        secret: Some(&secret),
        ended_at: Some(app.clock.now()),
    };
    end(app, run, &progress, work.connection.as_ref().zip(denied.as_deref()), term).await;
}

/// Whether one of the steps that were done failed and ended the others.
fn is_failed(steps: &[Step], records: &[StepRecord]) -> bool {
    steps.iter().zip(records).any(|(step, record)| !record.success && !step.continue_on_error)
}

/// Writes how a run ended. Retries while the database is unavailable.
pub(super) async fn end(
    app: &SharedApp,
    run: &RunRow,
    progress: &Progress<'_>,
    broken: Option<(&ConnectionRow, &str)>,
    term: &Term,
) {
    for _ in 0..END_TRIES {
        match try_end(app, run, progress, broken, term).await {
            Ok(is_ours) => {
                if is_ours {
                    Measures::of(app).runs_ended(progress.state, 1);
                }
                return;
            }
            Err(error) => {
                tracing::warn!(error = %error, run.id = %run.id, "end of run {} cannot be written; tried again", run.id);
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // The run is orphaned from here on, and ends as interrupted.
    tracing::error!(run.id = %run.id, "end of run {} is lost", run.id);
}

async fn try_end(
    app: &SharedApp,
    run: &RunRow,
    progress: &Progress<'_>,
    broken: Option<(&ConnectionRow, &str)>,
    term: &Term,
) -> Result<bool, Error> {
    let mut tx = app.db.write().await?;
    let is_ours = runs::record(&mut tx, run.id, term.id, progress).await?;
    // The Connection first: other transactions that stop it take the locks in this order.
    if is_ours && let Some((connection, reason)) = broken {
        break_off(&mut tx, app, connection, reason, Some(run.id)).await?;
    }
    if is_ours {
        let failure = (progress.state, progress.reason.unwrap_or("no reason"), progress.steps);
        telling::of_failure(&mut tx, app, run, failure).await?;
    }
    tx.commit().await?;
    Ok(is_ours)
}

/// Stops a Connection whose author may not do what it does, and reports it.
pub(crate) async fn break_off(
    tx: &mut Tx,
    app: &App,
    connection: &ConnectionRow,
    reason: &str,
    run: Option<RunId>,
) -> Result<(), Error> {
    let now = app.clock.now();
    let broken = connections::break_off(tx, connection.id, connection.revision, reason, now).await?;
    let Some(row) = broken else { return Ok(()) };
    report_broken(tx, app, &row, reason, run).await
}

/// Reports a Connection that was broken: in the audit log, by an event and by a notice.
pub(crate) async fn report_broken(
    tx: &mut Tx,
    app: &App,
    row: &ConnectionRow,
    reason: &str,
    run: Option<RunId>,
) -> Result<(), Error> {
    let entry = NewAudit {
        org_id: row.org_id,
        actor_id: None,
        actor_name: "heddle".to_owned(),
        action: format!("{}.broken", row.kind),
        target_type: row.kind.to_string(),
        target_id: Some(row.id.0),
        detail: json!({ "name": row.name, "reason": reason, "run_id": run, "author_id": row.author_id }),
        request_id: None,
        ip: None,
    };
    audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
    let event = NewEvent {
        run_id: run,
        ..NewEvent::of(
            CONNECTION_BROKEN,
            row.org_id,
            json!({
                "connection_id": row.id, "kind": row.kind, "name": row.name, "reason": reason, "run_id": run,
            }),
        )
    };
    events::append(tx, &event, &app.clock).await?;
    let message = Message {
        severity: Severity::Warning,
        source: "fabric",
        subject: format!("{} '{}' is broken", row.kind, row.name),
        body: format!("It does not fire any more: {reason}"),
    };
    notices::tell_administrators(
        tx,
        app,
        row.org_id,
        &message,
        Some(format!("broken:{}:{}", row.id, row.revision)),
    )
    .await?;
    tracing::warn!(connection.id = %row.id, reason, "{} {} is broken: {reason}", row.kind, row.id);
    Ok(())
}

/// A run that is executing.
struct Course<'a> {
    app: &'a SharedApp,
    run: &'a RunRow,
    work: &'a Work,
    term: &'a Term,
    records: Vec<StepRecord>,
    /// What following steps may read.
    outputs: Vec<Option<Value>>,
    /// The parameters as they were sent.
    params: Vec<Value>,
    /// The author may not do it.
    denied: Option<String>,
    has_failed: bool,
    /// Time by which it has to end.
    deadline: Instant,
}

/// How a course ended.
enum Went {
    Through,
    /// Its time was over.
    Late,
    /// The run no longer belongs to this process.
    Lost,
    /// It waits, and belongs to no process.
    Rests,
}

/// The outcome of a step that waits.
enum Rest {
    Waits,
    Lost,
    Failed(StepError),
}

/// What a course leaves behind.
struct End {
    records: Vec<StepRecord>,
    params: Vec<Value>,
    denied: Option<String>,
}

impl Course<'_> {
    fn end(self) -> End {
        End { records: self.records, params: self.params, denied: self.denied }
    }

    fn state(&self) -> RunState {
        if self.has_failed {
            RunState::Failed
        } else if self.records.iter().any(|step| !step.success) {
            RunState::Partial
        } else {
            RunState::Success
        }
    }

    /// Executes the steps. A step that is in flight when the time is over is ended, and kept as it is.
    async fn go(&mut self) -> Went {
        let steps = &self.work.steps;
        if let (Some(wait), Some(step)) = (&self.run.wait, steps.get(self.records.len())) {
            let waited = wait::output(self.app, self.run, wait);
            self.keep(step, Ok(waited), Duration::ZERO);
        }
        for (at, step) in steps.iter().enumerate().skip(self.records.len()) {
            if at > 0 && !self.record().await {
                return if self.left().is_zero() { Went::Late } else { Went::Lost };
            }
            if self.left().is_zero() {
                return Went::Late;
            }
            let is_due = self.is_due(step);
            if let Err(reason) = is_due {
                self.pass_over(step, reason);
                continue;
            }
            let began = Instant::now();
            let result = if step.operation_id == wait::ID {
                match self.rest(at, step).await {
                    Rest::Waits => return Went::Rests,
                    Rest::Lost => return Went::Lost,
                    Rest::Failed(error) => Err(error),
                }
            } else {
                self.step(at, step).await
            };
            let has_ended = result.is_ok();
            self.keep(step, result, began.elapsed());
            // After a failure only the steps that handle it follow, and none after a failure of one of these.
            let is_over = step.on_error && !has_ended && !step.continue_on_error;
            if is_over || (self.has_failed && !steps[at + 1..].iter().any(|next| next.on_error)) {
                return Went::Through;
            }
            if self.left().is_zero() && !has_ended {
                return Went::Late;
            }
        }
        Went::Through
    }

    /// Whether a step's turn has come; if not, why it is skipped.
    fn is_due(&self, step: &Step) -> Result<(), String> {
        match (step.on_error, self.has_failed) {
            (true, false) => return Err("no step before it failed".to_owned()),
            (false, true) => return Err("a step before it failed".to_owned()),
            _ => {}
        }
        step.when.as_ref().map_or(Ok(()), |when| when.check_in(&self.context()))
    }

    /// Returns what a later step can read of the last failure.
    fn error(&self) -> Option<Value> {
        let (at, record) = self.records.iter().enumerate().rfind(|(_, record)| !record.success)?;
        let message = record.message.as_deref().unwrap_or_default();
        Some(json!({
            "step": at, "operation_id": record.operation_id, "code": record.error_code, "message": message,
        }))
    }

    /// Returns what the conditions of a step can read.
    fn context(&self) -> Value {
        let steps: Vec<Value> = self
            .records
            .iter()
            .zip(&self.outputs)
            .map(|(step, output)| json!({ "output": output, "success": step.success, "skipped": step.skipped }))
            .collect();
        json!({ "trigger": self.run.payload, "event": self.work.event, "steps": steps })
    }

    /// Skips a step whose own conditions do not hold.
    fn pass_over(&mut self, step: &Step, reason: String) {
        self.params.push(Value::Object(step.params.clone()));
        self.outputs.push(None);
        self.records.push(StepRecord {
            operation_id: step.operation_id.clone(),
            output: None,
            success: true,
            error_code: None,
            message: Some(reason.chars().take(MESSAGE_CHARS_MAX).collect()),
            duration_ms: 0,
            skipped: true,
        });
    }

    /// Makes the run wait at this step.
    async fn rest(&mut self, at: usize, step: &Step) -> Rest {
        let written = Value::Object(step.params.clone());
        self.params.push(written.clone());
        let mut plan = match self.plan_of(at, &written).await {
            Ok(plan) => plan,
            Err(error) => return Rest::Failed(error),
        };
        let params = &self.params[..=at];
        let secret = steps::seal_resting(&self.app.keys, self.run.id, params, &self.work.steps);
        let words = wait::words(plan.resume_at, plan.event.as_deref());
        let progress = Progress {
            state: RunState::Waiting,
            reason: Some(&words),
            steps: &self.records,
            secret: Some(&secret),
            ended_at: None,
        };
        match self.lay_down(&mut plan, &progress).await {
            Ok(Some(true)) => Rest::Waits,
            Ok(Some(false)) => Rest::Lost,
            Ok(None) => Rest::Failed(wait::too_many()),
            Err(error) => Rest::Failed(error.into()),
        }
    }

    async fn plan_of(&mut self, at: usize, written: &Value) -> Result<wait::Plan, StepError> {
        if self.work.connection.is_none() {
            let message = "only the steps of a Connection, a rule or a schedule can wait";
            return Err(StepError::new(StepErrorCode::InvalidParams, message));
        }
        let author = self.author().await?;
        let event = self.work.event.as_ref().map(|event| json!(event));
        let own = json!({ "error": self.error() });
        let values = self.values(event.as_ref(), &own);
        let params = filled(written, &values)?;
        self.params[at] = params.clone();
        Operations::of(self.app).check_params(wait::ID, &params).await?;
        wait::plan(self.app, &author, params)
    }

    /// Writes the wait. True when the run waits, false when it belongs to another process by now, `None` when too many
    /// wait already.
    async fn lay_down(&self, plan: &mut wait::Plan, progress: &Progress<'_>) -> Result<Option<bool>, Error> {
        let mut tx = self.app.db.write().await?;
        if !wait::begin(&mut tx, self.app, self.run.org_id, plan).await? {
            return Ok(None);
        }
        let rest = (plan.resume_at, plan.event.as_deref(), &plan.wait);
        let is_ours = runs::rest(&mut tx, self.run.id, self.term.id, progress, rest).await?;
        tx.commit().await?;
        Ok(Some(is_ours))
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Writes what was done so far before anything more is done; false when that is not possible.
    async fn record(&self) -> bool {
        let secret = steps::seal_run(&self.app.keys, self.run.id, &self.params);
        let progress = Progress {
            state: RunState::Running,
            reason: None,
            steps: &self.records,
            secret: Some(&secret),
            ended_at: None,
        };
        while !self.left().is_zero() {
            let writing = written(self.app, self.run.id, self.term, &progress);
            match tokio::time::timeout(self.left(), writing).await {
                Err(_elapsed) => return false,
                Ok(Ok(is_ours)) => return is_ours,
                Ok(Err(error)) => {
                    tracing::warn!(error = %error, run.id = %self.run.id, "steps of run {} cannot be written; tried again", self.run.id);
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        false
    }

    /// Returns the author that the step runs for, with the author's rights at this moment.
    async fn author(&self) -> Result<Caller, StepError> {
        let Some(connection) = &self.work.connection else { return Ok(self.work.author.clone()) };
        let unavailable = |error: Error| {
            tracing::warn!(error = %error, run.id = %self.run.id, "the author of a step cannot be read");
            StepError::new(StepErrorCode::Internal, "the author's rights cannot be read now")
        };
        let mut tx = self.app.db.read().await.map_err(|error| unavailable(error.into()))?;
        author_of(&mut tx, self.run.org_id, self.work.author.user_id, connection.id)
            .await
            .map_err(unavailable)?
            .map_err(|why| StepError::new(StepErrorCode::PermissionDenied, why))
    }

    fn values<'v>(&'v self, event: Option<&'v Value>, own: &'v Value) -> Values<'v> {
        Values { trigger: &self.run.payload, event, outputs: &self.outputs, own: Some(own) }
    }

    async fn step(&mut self, at: usize, step: &Step) -> Result<Value, StepError> {
        let written = Value::Object(step.params.clone());
        self.params.push(written.clone());
        let author = &self.author().await?;
        let operations = Operations::of(self.app);
        let operation = operations.find(&step.operation_id).ok_or_else(|| {
            let message = format!("operation '{}' does not exist any more", step.operation_id);
            StepError::new(StepErrorCode::UnknownOperation, message)
        })?;
        if let Some(permission) = operation.declaration().permission {
            author.require(permission)?;
        }
        let event = self.work.event.as_ref().map(|event| json!(event));
        let mut own = json!({ "error": self.error() });
        if let Some(each) = &step.for_each {
            let items = each::items(each, &self.values(event.as_ref(), &own))?;
            let mut done = Done::default();
            for (index, item) in items.into_iter().enumerate() {
                own["item"] = item;
                own["index"] = json!(index);
                let fitting = async {
                    let params = filled(&written, &self.values(event.as_ref(), &own))?;
                    operations.check_params(&step.operation_id, &params).await?;
                    Ok(params)
                };
                let result = match fitting.await {
                    Ok(params) => {
                        let key = format!("{}:{index}", key(self.run, at));
                        self.once((at, step, &operation), author, &key, params).await
                    }
                    Err(error) => Err(error),
                };
                done.keep(index, result);
                if self.left().is_zero() || (done.has_failed() && !step.continue_on_error) {
                    break;
                }
            }
            return done.end();
        }
        let params = filled(&written, &self.values(event.as_ref(), &own))?;
        self.params[at] = params.clone();
        operations.check_params(&step.operation_id, &params).await?;
        self.once((at, step, &operation), author, &key(self.run, at), params).await
    }

    /// Executes an operation once, with parameters that fit it. `key` is its idempotency key: the same key means the same operation.
    async fn once(
        &self,
        (at, step, operation): (usize, &Step, &Arc<dyn Operation>),
        author: &Caller,
        key: &str,
        params: Value,
    ) -> Result<Value, StepError> {
        let call = StepCall {
            app: self.app,
            author,
            event: self.work.event.as_ref(),
            run_id: self.run.id,
            key,
            step: at,
            connection: self.work.connection.as_ref(),
        };
        let running = AssertUnwindSafe(operation.run(&call, params)).catch_unwind();
        let limit = STEP_LIMIT.min(self.left());
        match tokio::time::timeout(limit, running).await {
            Ok(Ok(result)) => result,
            Ok(Err(_panic)) => {
                tracing::error!(run.id = %self.run.id, operation = %step.operation_id, "a step panicked");
                Err(StepError::new(StepErrorCode::Internal, "internal error"))
            }
            Err(_elapsed) => {
                let message = format!("the step did not end within {} s", limit.as_secs());
                Err(StepError::new(StepErrorCode::Timeout, message))
            }
        }
    }

    fn keep(&mut self, step: &Step, result: Result<Value, StepError>, took: Duration) {
        let (output, error) = match result {
            Ok(output) => (Some(output), None),
            Err(error) => (error.output.clone(), Some(error)),
        };
        let output = output.map(|mut output| {
            sanitize(&mut output);
            storable(output)
        });
        self.outputs.push(output.clone());
        let message = error.as_ref().map(|error| {
            let mut message: String =
                error.message.chars().filter(|c| *c != '\0').take(MESSAGE_CHARS_MAX).collect();
            mask_text(&mut message);
            message
        });
        if let Some(error) = &error {
            self.has_failed |= !step.continue_on_error;
            if error.code == StepErrorCode::PermissionDenied {
                self.denied = Some(format!("{}: {}", step.operation_id, error.message));
            }
        }
        self.records.push(StepRecord {
            operation_id: step.operation_id.clone(),
            output: output.map(cut),
            success: error.is_none(),
            error_code: error.map(|error| error.code),
            message,
            duration_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            skipped: false,
        });
    }
}

/// Parameters with their references filled in.
fn filled(written: &Value, values: &Values<'_>) -> Result<Value, StepError> {
    fill(written, values).map_err(|error| StepError::new(StepErrorCode::TemplateError, error.to_string()))
}

async fn written(
    app: &SharedApp,
    run: RunId,
    term: &Term,
    progress: &Progress<'_>,
) -> Result<bool, heddle_store::Error> {
    let mut tx = app.db.write().await?;
    let is_ours = runs::record(&mut tx, run, term.id, progress).await?;
    tx.commit().await?;
    Ok(is_ours)
}

/// Returns the idempotency key of a step of a run, whichever process executes it.
fn key(run: &RunRow, at: usize) -> String {
    match (run.connection_id, run.event_id) {
        (Some(connection), Some(event)) => format!("{event}:{connection}:{at}"),
        _ => format!("{}:{at}", run.id),
    }
}

/// Replaces the character that one of the databases cannot store in a text.
fn storable(value: Value) -> Value {
    let plain = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    match value {
        Value::String(text) => Value::String(plain(text)),
        Value::Array(items) => items.into_iter().map(storable).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (plain(name), storable(value))).collect()
        }
        other => other,
    }
}

/// An output as it is kept.
fn cut(output: Value) -> Value {
    let text = output.to_string();
    if text.len() <= OUTPUT_BYTES_MAX {
        return output;
    }
    let begin: String = text.chars().take(1000).collect();
    json!({ "is_cut": true, "bytes": text.len(), "begin": begin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_text_can_hold_is_replaced_at_any_depth() {
        let given = json!({ "a\u{0}": ["x\u{0}y", { "b": "\u{0}" }], "n": 1 });
        let kept = json!({ "a\u{fffd}": ["x\u{fffd}y", { "b": "\u{fffd}" }], "n": 1 });
        assert_eq!(storable(given), kept);
    }

    #[test]
    fn a_long_output_is_cut() {
        let long = json!({ "a": "x".repeat(OUTPUT_BYTES_MAX) });
        let kept = cut(long);
        assert_eq!(kept["is_cut"], true);
        assert!(kept.to_string().len() < 2000);
        assert_eq!(cut(json!([1])), json!([1]));
    }
}
