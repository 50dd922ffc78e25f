//! A change as it is stored, and the part of it that leaves the service.

use heddle_core::change::{
    ApplyStep, Attempt, ChangeSpec, ChangeStatus, Danger, Operation, OutcomeState, Plan,
};
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

/// A change as people see it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    pub id: ChangeId,
    pub feature: String,
    pub operation: Operation,
    pub payload: Value,
    pub notes: Option<String>,
    /// The same as `staged_at`.
    pub created_at: Timestamp,
    pub status: ChangeStatus,
    pub organization_id: OrgId,
    pub controller_id: ControllerId,
    pub site_id: SiteId,
    pub staged_by: UserId,
    pub staged_at: Timestamp,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
    pub plan: Option<Plan>,
    /// Why there is no plan.
    pub plan_error: Option<Value>,
    pub outcome: Outcome,
    pub attempts: Vec<Attempt>,
    pub expires_at: Timestamp,
    /// Other pending changes of the same area of the controller.
    pub conflicts_with: Vec<ChangeId>,
    /// The change that this one takes back.
    pub reverts: Option<ChangeId>,
    pub reverted_by: Option<ChangeId>,
}

/// What is known of the device after the last attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    pub state: OutcomeState,
    pub message: Option<String>,
    pub detail: Option<Value>,
    pub step: ApplyStep,
    /// Without a confirmation until then, the state before is brought back.
    pub confirm_deadline: Option<Timestamp>,
}

/// A change with all that applying it needs. It does not serialize: it holds secrets and the adapter's token.
#[derive(Clone, FromRow)]
pub struct ChangeRow {
    pub id: ChangeId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub controller_id: ControllerId,
    pub vendor: String,
    pub area: String,
    pub feature: String,
    pub operation: Operation,
    pub payload: Value,
    pub notes: Option<String>,
    pub status: ChangeStatus,
    pub danger: Danger,
    pub staged_by: UserId,
    pub staged_at: Timestamp,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    #[sqlx(json(nullable))]
    pub plan: Option<Plan>,
    pub plan_token: Option<Vec<u8>>,
    #[sqlx(json(nullable))]
    pub plan_inverse: Option<Vec<ChangeSpec>>,
    pub plan_error: Option<Value>,
    pub secret: Option<Vec<u8>>,
    pub outcome_state: OutcomeState,
    pub outcome_message: Option<String>,
    pub outcome_detail: Option<Value>,
    pub apply_step: ApplyStep,
    pub apply_started_at: Option<Timestamp>,
    pub confirm_within_secs: Option<i64>,
    pub confirm_deadline: Option<Timestamp>,
    #[sqlx(json(nullable))]
    pub task: Option<heddle_core::adapter::Task>,
    #[sqlx(json)]
    pub attempts: Vec<Attempt>,
    pub reverts: Option<ChangeId>,
    pub reverted_by: Option<ChangeId>,
    pub updated_at: Timestamp,
}

impl std::fmt::Debug for ChangeRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeRow")
            .field("id", &self.id)
            .field("feature", &self.feature)
            .field("status", &self.status)
            .field("apply_step", &self.apply_step)
            .finish_non_exhaustive()
    }
}

impl ChangeRow {
    /// The part that leaves the service.
    pub fn into_change(self, conflicts_with: Vec<ChangeId>) -> Change {
        Change {
            id: self.id,
            feature: self.feature,
            operation: self.operation,
            payload: self.payload,
            notes: self.notes,
            created_at: self.staged_at,
            status: self.status,
            organization_id: self.org_id,
            controller_id: self.controller_id,
            site_id: self.site_id,
            staged_by: self.staged_by,
            staged_at: self.staged_at,
            applied_by: self.applied_by,
            applied_at: self.applied_at,
            plan: self.plan,
            plan_error: self.plan_error,
            outcome: Outcome {
                state: self.outcome_state,
                message: self.outcome_message,
                detail: self.outcome_detail,
                step: self.apply_step,
                confirm_deadline: self.confirm_deadline,
            },
            attempts: self.attempts,
            expires_at: self.expires_at,
            conflicts_with,
            reverts: self.reverts,
            reverted_by: self.reverted_by,
        }
    }
}
