//! What a step can do. The host, an adapter or a plugin offers it.

use std::sync::Arc;

use futures::future::BoxFuture;
use heddle_core::change::Danger;
use heddle_core::event::Event;
use heddle_core::operation::{OperationKind, OperationTier, StepErrorCode};
use heddle_core::{Document, Permission, RunId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::connections::ConnectionRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A Connection to begin with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ConnectionTemplate")]
pub struct Template {
    /// Such as `plugin.acme-tickets.outages`.
    pub id: String,
    pub tier: OperationTier,
    /// Id of the plugin.
    pub owner: String,
    pub title: String,
    /// What it is good for, and what to change first.
    pub description: String,
    /// A body for `POST /fabric/connections`.
    pub connection: Map<String, Value>,
}

/// An operation in the catalogue.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Declaration {
    /// `fabric.webhook`, `acme.firewall.rule.create`.
    pub id: String,
    /// For people.
    pub title: String,
    /// What it does, in words.
    pub description: String,
    pub tier: OperationTier,
    pub kind: OperationKind,
    /// How bad it is when what it does goes wrong; of an operation that stages a change, once the change is applied.
    pub danger: Danger,
    /// Module, vendor or plugin that offers it.
    pub owner: String,
    /// What the author of a step must hold, when it is written and when it runs.
    pub permission: Option<Permission>,
    /// JSON Schema of the parameters, after templates were filled in.
    #[serde(skip)]
    pub params_schema: ParamsSchema,
    /// JSON Schema of what following steps may read.
    #[serde(skip)]
    pub output_schema: Arc<Value>,
    /// Described by an installed package; there are thousands of these.
    #[serde(skip)]
    pub of_adapter: bool,
    /// Some organizations only have it: its [`Provider`](crate::provided::Provider) says which.
    #[serde(skip)]
    pub is_switched: bool,
}

/// JSON Schema of an operation's parameters.
#[derive(Debug, Clone)]
pub enum ParamsSchema {
    /// It is kept.
    Whole(Document),
    /// Made of a part that somebody else keeps, whenever it is asked for. Packages have thousands of operations, whose
    /// schemas differ in that part alone.
    Around { part: Document, whole: fn(&Document) -> Document },
}

impl ParamsSchema {
    /// The whole schema.
    #[must_use]
    pub fn document(&self) -> Document {
        match self {
            ParamsSchema::Whole(document) => document.clone(),
            ParamsSchema::Around { part, whole } => whole(part),
        }
    }
}

impl From<&Value> for ParamsSchema {
    fn from(schema: &Value) -> Self {
        Self::Whole(schema.into())
    }
}

/// What an operation is given and gives, made up from its schemas.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "OperationExample")]
pub(crate) struct Example {
    /// Parameters that fit the operation's schema.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(crate) params: Document,
    /// An output that fits the operation's schema.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(crate) output: Document,
}

/// Returns the JSON Schema of an object that has these fields and no others.
pub(crate) fn object_schema(fields: Value, required: &[&str]) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": false,
    })
}

/// Why a step runs, and for which author.
pub struct StepCall<'a> {
    pub app: &'a SharedApp,
    /// The author of the step, with the author's rights at this moment.
    pub author: &'a Caller,
    /// What started it; a test or a schedule has no stored event.
    pub event: Option<&'a Event>,
    pub run_id: RunId,
    /// Idempotency key of this step of this run: the same key means the same step.
    pub key: &'a str,
    /// Which step of the run it is; steps count from 0.
    pub step: usize,
    /// The Connection, rule or schedule that the run belongs to; an action has none.
    pub connection: Option<&'a ConnectionRow>,
}

/// Why a step failed, and what it has to show for it.
#[derive(Debug)]
pub struct StepError {
    pub code: StepErrorCode,
    /// For people. Never a secret.
    pub message: String,
    pub output: Option<Value>,
}

impl StepError {
    pub fn new(code: StepErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), output: None }
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Forbidden(_) | Error::ForbiddenRole(_) | Error::Refused { .. } => {
                StepErrorCode::PermissionDenied
            }
            Error::NotFound(_) => StepErrorCode::NotFound,
            Error::Validation(_) | Error::BadRequest { .. } | Error::Conflict { .. } => {
                StepErrorCode::InvalidParams
            }
            Error::RateLimited(_) => StepErrorCode::RateLimited,
            Error::Adapter(_) => match error.kind() {
                "adapter_timeout" => StepErrorCode::Timeout,
                "adapter_rate_limit" => StepErrorCode::RateLimited,
                "adapter_not_found" => StepErrorCode::NotFound,
                _ => StepErrorCode::AdapterError,
            },
            _ => StepErrorCode::Internal,
        };
        let message = match &error {
            Error::Validation(details) => {
                let faults = details.iter().map(|detail| format!("{}: {}", detail.field, detail.message));
                faults.collect::<Vec<_>>().join("; ")
            }
            Error::Internal(source) => {
                tracing::error!(error = %source, "a step failed by a fault of ours");
                error.to_string()
            }
            other => other.to_string(),
        };
        Self::new(code, message)
    }
}

impl From<heddle_store::Error> for StepError {
    fn from(error: heddle_store::Error) -> Self {
        Error::from(error).into()
    }
}

/// One thing that a step can do.
pub trait Operation: Send + Sync {
    /// What the catalogue says of it.
    fn declaration(&self) -> &Declaration;

    /// Values that it can never take although they fit the schema, by parameter. Texts with references are not judged.
    fn value_faults(&self, _params: &Value) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Executes the operation. The parameters fit the declared schema, and the author holds the declared permission.
    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>>;
}

/// Parameters as an operation's own type.
pub(crate) fn params_of<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, StepError> {
    serde_json::from_value(params)
        .map_err(|error| StepError::new(StepErrorCode::InvalidParams, error.to_string()))
}
