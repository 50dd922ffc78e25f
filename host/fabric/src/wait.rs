//! `fabric.wait`: a run waits until a time, or until an event comes.
//!
//! A run that waits is a row and nothing else: it has no task and no owner, and survives a restart. It goes on with the
//! steps that it began with, also where the Connection was edited meanwhile by the same author.

use chrono::TimeDelta;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::change::Danger;
use heddle_core::condition::Conditions;
use heddle_core::event::format_time;
use heddle_core::operation::{OperationKind, OperationTier, StepErrorCode};
use heddle_core::{OrgId, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::runs::{self, RunRow, Wait};
use heddle_store::{Tx, events};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Declaration, Operation, ParamsSchema, StepCall, StepError, object_schema, params_of};
use super::steps;

pub(crate) const ID: &str = "fabric.wait";
/// The longest wait, in seconds: thirty days.
pub(crate) const SECS_MAX: i64 = 30 * 86_400;
/// Most bytes of a wait's conditions, as JSON: all waits of an organization are read together.
const CONDITIONS_BYTES_MAX: usize = 4096;
/// Runs of one organization that wait at the same time.
pub(crate) const WAITS_MAX: i64 = 1_000;

pub(super) struct Pause(Declaration);

/// The parameters of a wait, after templates were filled in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    for_secs: Option<i64>,
    until: Option<Timestamp>,
    event: Option<String>,
    #[serde(default)]
    conditions: Conditions,
}

/// What a run is about to wait for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) resume_at: Timestamp,
    pub(super) event: Option<String>,
    pub(super) wait: Wait,
}

impl Pause {
    pub(super) fn new() -> Self {
        let output = json!({
            "came": { "type": "boolean", "description": "Whether the event came before the time was over" },
            "event": { "type": ["object", "null"], "description": "The payload of that event" },
            "waited_secs": { "type": "integer" },
        });
        Self(Declaration {
            id: ID.to_owned(),
            title: "Wait".to_owned(),
            description: "Rests until a time has come, or an event that fits, whichever is first. \
                          `output.came` tells following steps which it was."
                .to_owned(),
            tier: OperationTier::Native,
            kind: OperationKind::Control,
            danger: Danger::Normal,
            owner: "fabric".to_owned(),
            permission: None,
            params_schema: ParamsSchema::from(&json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "for_secs": {
                        "type": "integer", "minimum": 1, "maximum": SECS_MAX,
                        "description": "Goes on after so many seconds",
                    },
                    "until": {
                        "type": "string", "format": "date-time",
                        "description": "Goes on at this time (RFC 3339), at most thirty days from now",
                    },
                    "event": {
                        "type": "string", "minLength": 1, "maxLength": 200,
                        "description": "Goes on earlier when an event of this type or pattern comes",
                    },
                    "conditions": {
                        "type": "object",
                        "description": "What must hold of that event, as in a Connection; values may be references",
                    },
                },
                "oneOf": [{ "required": ["for_secs"] }, { "required": ["until"] }],
                "dependentRequired": { "conditions": ["event"] },
                "additionalProperties": false,
                "examples": [{ "for_secs": 300, "event": "device.status.changed" }],
            })),
            output_schema: Arc::new(object_schema(output, &["came", "event", "waited_secs"])),
            of_adapter: false,
            is_switched: false,
        })
    }
}

impl Operation for Pause {
    fn declaration(&self) -> &Declaration {
        &self.0
    }

    /// Never reached within the steps of a Connection: the run itself waits there.
    fn run<'a>(&'a self, _call: &'a StepCall<'a>, _params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        let message = "only the steps of a Connection, a rule or a schedule can wait";
        async move { Err(StepError::new(StepErrorCode::InvalidParams, message)) }.boxed()
    }
}

/// Checks the filled-in parameters.
pub(super) fn plan(app: &App, author: &Caller, params: Value) -> Result<Plan, StepError> {
    let invalid = |message: String| StepError::new(StepErrorCode::InvalidParams, message);
    let params: Params = params_of(params)?;
    let now = app.clock.now();
    let resume_at = match (params.for_secs, params.until) {
        (Some(secs), None) if (1..=SECS_MAX).contains(&secs) => now + TimeDelta::seconds(secs),
        (None, Some(until)) => until.max(now),
        _ => return Err(invalid(format!("give either 'for_secs', from 1 to {SECS_MAX}, or 'until'"))),
    };
    if resume_at > now + TimeDelta::seconds(SECS_MAX) {
        return Err(invalid(format!("'until' is more than {} days from now", SECS_MAX / 86_400)));
    }
    if let Some(pattern) = &params.event {
        if let Some(message) = steps::pattern_fault(app, pattern) {
            return Err(invalid(format!("'event': {message}")));
        }
        steps::require_readable(app, author, pattern)?;
    }
    if json!(params.conditions).to_string().len() > CONDITIONS_BYTES_MAX {
        return Err(invalid(format!(
            "'conditions' must not have more than {CONDITIONS_BYTES_MAX} bytes as JSON"
        )));
    }
    if let Some((field, message)) = params.conditions.faults().into_iter().next() {
        return Err(invalid(format!("'{field}' {message}")));
    }
    let wait = Wait { since: now, after_seq: 0, conditions: params.conditions, event: None };
    Ok(Plan { resume_at, event: params.event, wait })
}

/// Sets from which event on the wait counts, and refuses a wait beyond the limit of the organization.
///
/// No event is written until the transaction ends, so none is missed between the look and the wait.
pub(super) async fn begin(tx: &mut Tx, app: &App, org: OrgId, plan: &mut Plan) -> Result<bool, Error> {
    plan.wait.after_seq = events::hold_last_seq(tx, org, &app.clock).await?;
    Ok(runs::count_resting(tx, org).await? < WAITS_MAX)
}

/// What following steps may read of a wait that is over.
pub(super) fn output(app: &App, run: &RunRow, wait: &Wait) -> Value {
    let until = run.resume_at.unwrap_or_else(|| app.clock.now());
    json!({
        "came": wait.event.is_some(),
        "event": wait.event,
        "waited_secs": (until - wait.since).num_seconds().max(0),
    })
}

/// Why no further run can wait.
pub(super) fn too_many() -> StepError {
    let message = format!("{WAITS_MAX} runs of the organization wait already");
    StepError::new(StepErrorCode::RateLimited, message)
}

/// Returns the text that users read about a run that waits.
pub(super) fn words(resume_at: Timestamp, event: Option<&str>) -> String {
    match event {
        Some(event) => format!("waits for '{event}' until {}", format_time(resume_at)),
        None => format!("waits until {}", format_time(resume_at)),
    }
}
