//! Fires a Connection once with a payload that the caller gives, or only shows what it would send.

use axum::Json as Answer;
use heddle_changes::declarations::CHANGE_STAGED;
use heddle_core::ConnectionId;
use heddle_core::event::{Event, EventType, EventTypes, matches};
use heddle_core::operation::{ConnectionKind, RunKind, RunState, StepErrorCode, StepRecord};
use heddle_core::redact::sanitize;
use heddle_core::template::{Reference, Values, fill, references};
use heddle_identity::declarations::{REFRESH_REUSE, USER_CREATED};
use heddle_inventory::devices::declarations::DEVICE_STATE_CHANGED;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::runs::{self, RunRow};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::author::author_of;
use super::declarations::{INGEST_EXTERNAL, RUN_FAILED};
use super::in_flight::take_for_person;
use super::kinds::{Kind, WRITE};
use super::operation::StepError;
use super::operations::Operations;
use super::run::{Work, begin, carry_out_apart};
use super::runs::{RunView, view};
use super::steps::{self, Step};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trial")]
struct Body {
    /// The payload: what `{{trigger.…}}` reads.
    #[serde(default)]
    payload: Map<String, Value>,
    /// Shows what would be sent, and does nothing: every step is `skipped`, or `failed` where its parameters cannot be
    /// filled in.
    #[serde(default)]
    dry_run: bool,
}

/// The route of one kind.
pub(crate) fn routes<K: Kind>() -> Routes {
    Routes::default().post(
        &format!("{}/test", K::ONE),
        WRITE,
        test::<K>,
        doc("Fire it once with this payload: writes are staged, sinks are told")
            .body::<Body>()
            .answers::<RunView>(200),
    )
}

async fn test<K: Kind>(
    by: By,
    At(id): At<ConnectionId>,
    Json(body): Json<Body>,
) -> Result<Answer<RunView>, Error> {
    let (By { app, caller, .. }, kind) = (&by, K::KIND);
    let mut tx = app.db.read().await?;
    let row = connections::find(&mut tx, &caller.organization_scope(), kind, id).await?;
    let row = row.ok_or(Error::NotFound(kind.as_str()))?;
    caller.require_all_sites()?;
    if !body.dry_run && !caller.is_author(row.author_id) {
        // With the payload the tester could send what the author keeps hidden to any destination.
        return Err(not_author(
            "only its author fires it by hand: try it with 'dry_run', or send its steps anew",
        ));
    }
    let unfit = |why: String| Error::Conflict { kind: "author_unfit", message: why };
    let author = author_of(&mut tx, row.org_id, row.author_id, row.id).await?.map_err(unfit)?;
    drop(tx);
    let mut payload = Value::Object(body.payload);
    sanitize(&mut payload);
    let event = event(app, &row, payload.clone());
    let steps = steps::open(&app.keys, row.id, &row.steps, &row.secret)?;
    let term = app.membership.term()?;
    let mut run = begin(app, &term, RunKind::Test, row.org_id, &author);
    run.connection_id = Some(row.id);
    run.event_type = (kind != ConnectionKind::Schedule).then(|| event.event_type.to_string());
    run.chain = vec![row.id];
    run.payload = payload;
    if body.dry_run {
        run.reason = Some(match row.conditions.check(&event, &Value::Null) {
            Ok(()) => "dry run: nothing was done".to_owned(),
            Err(reason) => format!("dry run: nothing was done; an event like this would not fire: {reason}"),
        });
        return view(app, caller, resolved(app, run, &steps, &event).await).map(Answer);
    }
    let in_flight = take_for_person(app, run.org_id, run.id)?;
    let mut tx = app.db.write().await?;
    runs::insert_all(&mut tx, std::slice::from_ref(&run)).await?;
    let target = (row.org_id, K::ACTIONS.target, row.id.0);
    by.record_of(&mut tx, target, K::TESTED, json!({ "run_id": run.id })).await?;
    tx.commit().await?;
    let work = Work { author, steps, done: Vec::new(), event: Some(event), connection: Some(row) };
    let ended = carry_out_apart(app, run, work, (term, in_flight)).await?;
    view(app, caller, ended).map(Answer)
}

pub(super) fn not_author(message: &str) -> Error {
    Error::Refused { kind: "not_author", message: message.to_owned() }
}

/// The type of the event that a Connection is tried with: the first of these that its pattern covers, else the first by
/// name. For a pattern that covers one of these it stays the same when features declare more types.
fn tried_type(types: &EventTypes, pattern: &str) -> EventType {
    const FIRST: [EventType; 5] =
        [CHANGE_STAGED, DEVICE_STATE_CHANGED, USER_CREATED, REFRESH_REUSE, RUN_FAILED];
    let preferred = FIRST.into_iter().find(|one| matches(pattern, one.as_str()));
    preferred.or_else(|| types.covered(pattern).next()).unwrap_or(INGEST_EXTERNAL)
}

/// The event that the payload would have come with.
fn event(app: &App, row: &ConnectionRow, payload: Value) -> Event {
    let event_type = tried_type(&app.declared().events, &row.source_event);
    Event {
        id: app.clock.new_id(),
        seq: 0,
        event_type,
        category: event_type.category().to_owned(),
        priority: event_type.priority(),
        organization_id: row.org_id,
        occurred_at: app.clock.now(),
        causation_id: None,
        schema_version: 1,
        payload,
    }
}

/// The run as it would be, as far as that is known before any step ran.
async fn resolved(app: &App, mut run: RunRow, steps: &[Step], event: &Event) -> RunRow {
    let event = json!(event);
    // A run that the clock starts has no event.
    let event = run.event_type.is_some().then_some(&event);
    let mut sent = Vec::new();
    for step in steps {
        let (params, fault) = resolve(app, step, &run.payload, event).await;
        sent.push(params);
        run.steps.push(StepRecord {
            operation_id: step.operation_id.clone(),
            output: None,
            success: fault.is_none(),
            error_code: fault.as_ref().map(|fault| fault.code),
            message: fault.map(|fault| fault.message),
            duration_ms: 0,
            skipped: false,
        });
    }
    run.secret = Some(steps::seal_run(&app.keys, run.id, &sent));
    run.state = RunState::Skipped;
    run.ended_at = run.started_at;
    run
}

/// A step's parameters as they would be sent; as they are written where they need the output of another step.
async fn resolve(
    app: &App,
    step: &Step,
    payload: &Value,
    event: Option<&Value>,
) -> (Value, Option<StepError>) {
    let written = Value::Object(step.params.clone());
    let depends = |one: &Reference| one.step().is_some() || one.own().is_some();
    if references(&written).is_ok_and(|found| found.iter().any(depends)) {
        return (written, None);
    }
    match fill(&written, &Values { trigger: payload, event, outputs: &[], own: None }) {
        Ok(params) => {
            let fault = misfit(app, step, &params).await;
            (params, fault)
        }
        Err(error) => (written, Some(StepError::new(StepErrorCode::TemplateError, error.to_string()))),
    }
}

async fn misfit(app: &App, step: &Step, params: &Value) -> Option<StepError> {
    if Operations::of(app).find(&step.operation_id).is_none() {
        let message = format!("operation '{}' does not exist any more", step.operation_id);
        return Some(StepError::new(StepErrorCode::UnknownOperation, message));
    }
    Operations::of(app).check_params(&step.operation_id, params).await.err().map(StepError::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FEATURES;

    #[test]
    fn a_pattern_is_tried_with_the_same_type_whatever_else_is_declared() {
        let types = FEATURES.declared().events;
        for (pattern, expected) in [
            ("*", "controller.change.staged"),
            ("controller.*", "controller.change.staged"),
            ("device.*", "device.state_changed"),
            ("device.status.*", "device.status.changed"),
            ("user.*", "user.created"),
            ("security.*", "security.refresh_reuse"),
            ("automation.*", "automation.run.failed"),
            ("ingest.external", "ingest.external"),
        ] {
            assert_eq!(tried_type(&types, pattern).as_str(), expected, "{pattern}");
        }
    }
}
