//! Staged changes: what is planned, what was reviewed, and how it ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::blast_radius::BlastRadius;
use crate::file::{SentFile, SentPart};
use crate::{ConnectionId, RunId};

stored_words! {
    pub enum Operation {
        Create = "create",
        Update = "update",
        Delete = "delete",
    }
}

stored_words! {
    /// How bad it is when this goes wrong. Ordered.
    pub enum Danger {
        Normal = "normal",
        Destructive = "destructive",
        Catastrophic = "catastrophic",
    }
}

stored_words! {
    /// What staged a change on behalf of a user.
    pub enum StagedByKind {
        /// A Connection of the Fabric.
        Connection = "connection",
        /// A rule, a schedule or an action.
        Automation = "automation",
        /// A template that is applied to devices.
        Template = "template",
        /// An agent.
        Agent = "agent",
    }
}

/// Where a change comes from that no person staged by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedVia {
    pub kind: StagedByKind,
    /// The Connection, rule or schedule; null for an action.
    pub connection_id: Option<ConnectionId>,
    /// The run that staged it; `GET /fabric/runs/{run_id}` shows what started it.
    pub run_id: Option<RunId>,
    /// The step of the run; steps count from 0.
    pub step: Option<u32>,
}

stored_words! {
    pub enum ChangeStatus {
        Pending = "pending",
        Applied = "applied",
        Discarded = "discarded",
    }
}

stored_words! {
    /// What is known of the device after the last attempt.
    pub enum OutcomeState {
        /// Never attempted since it was planned.
        None = "none",
        Applying = "applying",
        /// The device is proved unchanged.
        Failed = "failed",
        /// The device is neither as before nor as planned.
        Partial = "partial",
        /// The device gives no answer.
        Unknown = "unknown",
        /// In effect, and taken back unless it is confirmed in time.
        AwaitingConfirm = "awaiting_confirm",
        /// Read back, equal to the plan, and permanent.
        Applied = "applied",
        /// Was in effect and no longer is.
        Reverted = "reverted",
        /// Discarded by the service because its time had run out.
        Expired = "expired",
    }
}

stored_words! {
    /// Where an apply stands, kept so that a restart goes on from here.
    ///
    /// Each step is recorded before it begins; every one can be done again.
    pub enum ApplyStep {
        /// Nothing is under way.
        Idle = "idle",
        /// The calls of the `apply` stage are being sent.
        Sending = "sending",
        /// The device works on it; its task is polled.
        Polling = "polling",
        /// A person asked to end the task at the device; the reviewed call for that is being sent.
        Cancelling = "cancelling",
        /// It is not known whether the calls arrived; the device is read until it is.
        Resolving = "resolving",
        /// The calls were taken; the device is read back through the real path.
        ReadingBack = "reading_back",
        /// In effect; waiting for a person to confirm.
        Holding = "holding",
        /// Making it permanent.
        Confirming = "confirming",
        /// It was made permanent, or refused to be; the device is read and tells.
        Confirmed = "confirmed",
        /// It must go back: the device is read, and the way back is chosen.
        Restoring = "restoring",
        /// The device itself takes back what it holds.
        Undoing = "undoing",
        /// What the device holds is made permanent, so that only what the plan touched goes back.
        Keeping = "keeping",
        /// Writing the state before.
        WritingBack = "writing_back",
        /// The state before was written; the device is read and tells.
        Restored = "restored",
    }
}

stored_words! {
    /// When a native call is sent.
    pub enum Stage {
        Apply = "apply",
        Confirm = "confirm",
        Undo = "undo",
        Restore = "restore",
        /// Ends a job that is running, when a person asks for it.
        Abort = "abort",
    }
}

/// A change as it is passed to an adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSpec {
    pub feature: String,
    pub operation: Operation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub payload: Value,
}

stored_words! {
    /// Where the value of a hole comes from.
    pub enum HoleOrigin {
        /// The answer to an earlier call.
        Answer = "answer",
        /// A reading right before each call that names the hole.
        Fresh = "fresh",
        /// The adapter, which finds it at the device.
        Found = "found",
    }
}

/// [`HoleSource`] as clients see it: one shape for all origins, which every generator of clients knows.
#[derive(JsonSchema)]
#[schemars(rename = "HoleSource")]
#[expect(dead_code, reason = "the shape of a source in answers")]
struct HoleSourceShape {
    /// Origin of the value.
    from: HoleOrigin,
    /// Id of the call whose answer has the value; of `answer` alone.
    #[schemars(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// Path that is read by GET; of `fresh` alone.
    #[schemars(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// JSON pointer of the value, in the answer or in what is read.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

/// Where the value of a hole comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum HoleSource {
    /// The value at this JSON pointer in the answer to the call of this id.
    Answer { call: String, pointer: String },
    /// The value at this JSON pointer of what a GET of `path` reads right before each call that names the hole.
    Fresh { path: String, pointer: String },
    /// What the adapter finds at the device.
    Found,
}

/// A value that is not known when the plan is made. Calls name it as `{{hole.NAME}}`, and it is filled in when they are
/// sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hole {
    pub name: String,
    /// Source of the value.
    #[schemars(with = "HoleSourceShape")]
    pub source: HoleSource,
    /// Regular expression that the whole value must match.
    pub pattern: String,
    /// Most bytes of the value.
    pub max_bytes: u32,
}

/// One request, exactly as it will be sent; secrets are references that display as `***`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NativeCall {
    pub stage: Stage,
    /// Names the call where a later one needs a value of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call of the apply that this one takes back; it is left out where that one was never sent. Of the stage
    /// `abort`: the call whose job this one ends, and it is sent only while that job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_after: Option<String>,
    pub method: String,
    pub path: String,
    /// Headers beside those of the connection, the login and the body: name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body where it is JSON; null where it is something else, and where there is none.
    pub body: Option<Value>,
    /// The body where it is `application/x-www-form-urlencoded`: names and values in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Vec<(String, String)>>,
    /// The body where it is the bytes of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SentFile>,
    /// The body where it is `multipart/form-data`: its parts in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multipart: Option<Vec<SentPart>>,
    /// The session with the controller that it is sent in; without one no credential is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it may be sent once more when its answer was lost: a second one does nothing that the first did not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
}

impl NativeCall {
    /// A call without headers and body, which is sent once and outside of any session.
    pub fn new(stage: Stage, method: &str, path: impl Into<String>) -> Self {
        Self {
            stage,
            id: None,
            only_after: None,
            method: method.to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: None,
            form: None,
            file: None,
            multipart: None,
            session: None,
            repeatable: false,
        }
    }

    /// The files that it sends.
    pub fn files(&self) -> impl Iterator<Item = &SentFile> {
        let parts = self.multipart.iter().flatten().filter_map(|part| part.file.as_ref());
        self.file.iter().chain(parts)
    }

    /// The same, to complete what the host knows of them.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut SentFile> {
        let parts = self.multipart.iter_mut().flatten().filter_map(|part| part.file.as_mut());
        self.file.iter_mut().chain(parts)
    }
}

/// Values of a plan's holes, by name: each a text, a number or a truth value.
pub type HoleValues = BTreeMap<String, Value>;

/// How far the calls of a stage were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSent {
    pub stage: Stage,
    /// Calls that left, or were about to.
    pub left: u32,
    /// Calls whose answer came and was good.
    pub judged: u32,
}

impl StageSent {
    /// A stage of which nothing was sent yet.
    pub fn none(stage: Stage) -> Self {
        Self { stage, left: 0, judged: 0 }
    }

    /// Returns true when the last call that left has no good answer.
    pub fn is_in_doubt(self) -> bool {
        self.left > self.judged
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    pub summary: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// What a change will do, as it is reviewed and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not depend on each other, as clients read them"
)]
pub struct Plan {
    /// SHA-256, hex, of everything below but `blast_radius`, and of the changes that it is for.
    pub hash: String,
    /// SHA-256, hex, of the device state that the plan saw.
    pub base_fingerprint: String,
    /// The adapter that made it: `acme@1.4.0+0a1b2c3d4e5f`, with the beginning of its manifest's SHA-256. Only this one
    /// can apply it.
    #[serde(default)]
    pub made_by: String,
    pub steps: Vec<PlanStep>,
    pub native: Vec<NativeCall>,
    /// What the calls leave open until they are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
    pub danger: Danger,
    /// It may cut the path to the device: the adapter says so, or what is known of the site's topology does.
    pub lockout_risk: bool,
    pub warnings: Vec<String>,
    /// What happens beside what was asked for: other objects that the device changes too, what others have saved and
    /// this activates, what is interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    pub invertible: bool,
    /// The device itself takes the change back unless it is confirmed.
    pub holds: bool,
    /// The device's own way back also takes back what others wrote to it since the change was applied.
    #[serde(default)]
    pub undo_takes_all: bool,
    /// Names of what the plan writes and depends on; two plans that share one are in conflict.
    #[serde(default)]
    pub touches: Vec<String>,
    /// What lies behind what the plan changes. It is measured when the plan is made; the network goes on changing, so it
    /// is no part of what the hash covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
}

/// What an adapter answers to `plan`.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterPlan {
    pub steps: Vec<PlanStep>,
    pub native: Vec<NativeCall>,
    pub holes: Vec<Hole>,
    pub danger: Danger,
    pub lockout_risk: bool,
    pub warnings: Vec<String>,
    pub also: Vec<String>,
    pub base_digest: Vec<u8>,
    pub inverse: Option<Vec<ChangeSpec>>,
    pub holds: bool,
    pub undo_takes_all: bool,
    pub touches: Vec<String>,
    pub token: Vec<u8>,
}

impl Plan {
    /// The plan that people review, bound to the adapter version that made it
    /// and to the changes that it is for.
    pub fn of(adapter: &AdapterPlan, made_by: &str, changes: &[ChangeSpec]) -> Self {
        let mut plan = Plan {
            hash: String::new(),
            base_fingerprint: hex::encode(Sha256::digest(&adapter.base_digest)),
            made_by: made_by.to_owned(),
            steps: adapter.steps.clone(),
            native: adapter.native.clone(),
            holes: adapter.holes.clone(),
            danger: adapter.danger,
            lockout_risk: adapter.lockout_risk,
            warnings: adapter.warnings.clone(),
            also: adapter.also.clone(),
            invertible: adapter.inverse.is_some(),
            holds: adapter.holds,
            undo_takes_all: adapter.undo_takes_all,
            touches: adapter.touches.clone(),
            blast_radius: None,
        };
        let bytes =
            serde_json::to_vec(&(changes, &plan, &adapter.token)).expect("a plan has only string keys");
        plan.hash = hex::encode(Sha256::digest(bytes));
        plan
    }
}

/// One attempt to apply a change, kept permanently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub number: u32,
    pub plan_hash: String,
    pub started_at: crate::Timestamp,
    pub started_by: crate::UserId,
    /// The API key or app that acted for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub via: Option<serde_json::Value>,
    pub ended_at: Option<crate::Timestamp>,
    pub state: OutcomeState,
    pub message: Option<String>,
    /// Requests to end a job of the device while it ran; absent where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancellations: Vec<Cancellation>,
}

/// A person's request to end the job that a call started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cancellation {
    /// Id of the call in the plan.
    pub call: String,
    /// When it was asked for.
    pub requested_at: crate::Timestamp,
    /// The user that asked for it.
    pub requested_by: crate::UserId,
    /// The API key or app that acted for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub via: Option<serde_json::Value>,
}

impl Attempt {
    /// Says how it ended.
    pub fn end(&mut self, state: OutcomeState, message: Option<&str>, now: crate::Timestamp) {
        self.ended_at = Some(now);
        self.state = state;
        self.message = message.map(str::to_owned);
    }
}
