//! What steps do, in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Conditions;

stored_words! {
    /// Where an operation comes from.
    pub enum OperationTier {
        Native = "native",
        Plugin = "plugin",
    }
}

stored_words! {
    /// What an operation does to the world.
    pub enum OperationKind {
        /// Asks, and changes nothing.
        Read = "read",
        /// Stages a change, which a person reviews and applies.
        Write = "write",
        /// Notifies a receiver at once.
        Sink = "sink",
        /// Steers the steps themselves, such as a wait.
        Control = "control",
    }
}

stored_words! {
    /// Why a step failed.
    pub enum StepErrorCode {
        SsrfBlocked = "SSRF_BLOCKED",
        BadStatus = "BAD_STATUS",
        DeliveryError = "DELIVERY_ERROR",
        PermissionDenied = "PERMISSION_DENIED",
        UnknownOperation = "UNKNOWN_OPERATION",
        InvalidParams = "INVALID_PARAMS",
        TemplateError = "TEMPLATE_ERROR",
        NotFound = "NOT_FOUND",
        AdapterError = "ADAPTER_ERROR",
        RateLimited = "RATE_LIMITED",
        Timeout = "TIMEOUT",
        Internal = "INTERNAL",
    }
}

stored_words! {
    /// What wires operations together.
    pub enum ConnectionKind {
        /// Starts by an event, in the Fabric.
        Connection = "connection",
        /// The same among the rules of automation.
        Rule = "rule",
        /// Starts by the clock.
        Schedule = "schedule",
    }
}

stored_words! {
    pub enum ConnectionState {
        Draft = "draft",
        Enabled = "enabled",
        Paused = "paused",
        /// Its author no longer has the rights that it needs.
        Broken = "broken",
    }
}

stored_words! {
    /// What started a run.
    pub enum RunKind {
        Event = "event",
        Test = "test",
        Schedule = "schedule",
        /// A caller asked for one operation.
        Action = "action",
        /// A person repeated an earlier run.
        Rerun = "rerun",
        /// An event, a timer or a request of others called a plugin.
        Trigger = "trigger",
    }
}

stored_words! {
    pub enum RunState {
        Queued = "queued",
        Running = "running",
        /// A step waits for a time or an event.
        Waiting = "waiting",
        /// Every step succeeded.
        Success = "success",
        /// It went through all steps, and at least one failed that the next may follow.
        Partial = "partial",
        Failed = "failed",
        /// It did not fire, and says why.
        Skipped = "skipped",
        /// Its process ended in the middle. It is not run again.
        Interrupted = "interrupted",
    }
}

stored_words! {
    /// How the times of a schedule are handled at which no process was running.
    pub enum MissedPolicy {
        Skip = "skip",
        /// Once, however many were missed.
        RunOnce = "run_once",
    }
}

/// One step of a run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepRecord {
    pub operation_id: String,
    /// What it gave, without secrets; cut when it is long.
    pub output: Option<Value>,
    pub success: bool,
    pub error_code: Option<StepErrorCode>,
    pub message: Option<String>,
    pub duration_ms: i64,
    /// Its own conditions did not hold; it was passed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

/// Most items that one step is done for.
pub const EACH_MAX: u16 = 100;

/// Most characters of the reference to the list.
pub const EACH_ITEMS_CHARS_MAX: usize = 500;

/// Has a step done once for each item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForEach {
    /// A reference to a list, such as `{{steps.0.output.items}}`. The step's parameters name the item as `{{item}}` and
    /// its place, from 0, as `{{index}}`. Up to 500 characters.
    #[schemars(length(min = 1, max = EACH_ITEMS_CHARS_MAX))]
    pub items: String,
    /// The step fails before it does anything where the list has more items than this.
    #[serde(default = "each_max")]
    #[schemars(range(min = 1, max = EACH_MAX))]
    pub max: u16,
}

fn each_max() -> u16 {
    EACH_MAX
}

/// What a step does, without its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepOutline {
    pub operation_id: String,
    pub continue_on_error: bool,
    /// What must hold of the trigger and of earlier steps for it to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Conditions>,
    /// The list whose items it is done for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// It runs only behind a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_error: bool,
}
