//! Sets of changes over several controllers: a saga, whose parts are applied one after the other and are taken back in the
//! reverse order where one fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Timestamp, UserId};

stored_words! {
    /// What is known of a set over several controllers after its last attempt.
    pub enum SagaState {
        /// Never attempted since it was planned.
        None = "none",
        /// Being applied, or being taken back.
        Applying = "applying",
        /// In effect at every controller, and taken back unless it is confirmed in time.
        AwaitingConfirm = "awaiting_confirm",
        /// In effect at every controller, read back, and permanent.
        Committed = "committed",
        /// In effect at no controller: each device reads as before.
        Compensated = "compensated",
        /// In effect at some controllers and not at others, or not known at one.
        Stuck = "stuck",
        /// Discarded by the service because its time had run out.
        Expired = "expired",
    }
}

stored_words! {
    /// Where the work on a set over several controllers stands, kept so that a restart goes on from here.
    pub enum SagaStep {
        /// Nothing is under way.
        Idle = "idle",
        /// Its parts are being applied, in their order.
        Applying = "applying",
        /// In effect at every controller; waiting for a person to confirm.
        Holding = "holding",
        /// Its parts are being made permanent, in their order.
        Confirming = "confirming",
        /// Its parts are being taken back, in the reverse order.
        Compensating = "compensating",
    }
}

stored_words! {
    /// What was decided on for a part of the set in the present attempt.
    pub enum PartPhase {
        /// Nothing yet.
        Waiting = "waiting",
        /// It was begun: its own outcome says how far it came.
        Begun = "begun",
        /// It was begun to be taken back.
        TakenBack = "taken_back",
    }
}

/// One attempt to apply a set over several controllers, kept permanently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SagaAttempt {
    pub number: u32,
    pub plan_hash: String,
    pub started_at: Timestamp,
    pub started_by: UserId,
    /// The API key or app that acted for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub via: Option<Value>,
    pub ended_at: Option<Timestamp>,
    pub state: SagaState,
    pub message: Option<String>,
}

impl SagaAttempt {
    /// Says how it ended.
    pub fn end(&mut self, state: SagaState, message: Option<&str>, now: Timestamp) {
        self.ended_at = Some(now);
        self.state = state;
        self.message = message.map(str::to_owned);
    }
}
