//! A change as it is stored. What of it leaves the service, the server decides.

use heddle_core::change::{
    ApplyStep, Attempt, ChangeSpec, ChangeStatus, Danger, HoleValues, Operation, OutcomeState, Plan, Stage,
    StageSent, StagedVia,
};
use heddle_core::{ChangeId, ControllerId, OrgId, ProcessId, RunId, SiteId, Timestamp, UserId};
use serde_json::Value;
use sqlx::FromRow;

/// A change with all that applying it needs. It does not serialize: it holds secrets and the adapter's token.
#[derive(Clone, FromRow)]
pub struct ChangeRow {
    pub id: ChangeId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    /// The vendor's id of the site that it is for, where the vendor has sites.
    pub site_ref: Option<String>,
    pub controller_id: ControllerId,
    pub vendor: String,
    pub area: String,
    pub feature: String,
    pub operation: Operation,
    pub payload: Value,
    /// Further changes that are planned and applied together with this one.
    #[sqlx(json)]
    pub also: Vec<ChangeSpec>,
    /// What a change in the words of the model is in the vendor's own, since its last plan.
    #[sqlx(json(nullable))]
    pub expressed_as: Option<Vec<ChangeSpec>>,
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
    /// The process that brings the apply forward, while one does.
    pub apply_owner: Option<ProcessId>,
    pub apply_started_at: Option<Timestamp>,
    pub confirm_within_secs: Option<i64>,
    pub confirm_deadline: Option<Timestamp>,
    /// The device was told to hold the change for a window of so many seconds, if it was asked for more than one.
    pub extendable_to_secs: Option<i64>,
    #[sqlx(json(nullable))]
    pub task: Option<heddle_core::adapter::Task>,
    /// The step that the task belongs to.
    pub task_step: Option<ApplyStep>,
    /// How far the calls of each stage were sent, since the attempt began or a person took it back; a stage of which
    /// nothing was sent is absent. `None` where an earlier version began the attempt and recorded nothing.
    #[sqlx(json(nullable))]
    pub sent: Option<Vec<StageSent>>,
    /// Values of the plan's holes, since the attempt began.
    #[sqlx(json(nullable))]
    pub hole_values: Option<HoleValues>,
    /// When the device was last compared on request, after an attempt whose end was in doubt.
    pub verified_at: Option<Timestamp>,
    #[sqlx(json)]
    pub attempts: Vec<Attempt>,
    pub reverts: Option<ChangeId>,
    pub reverted_by: Option<ChangeId>,
    /// The run of a Connection that staged it.
    pub run_id: Option<RunId>,
    /// The row stands for a set of changes: it is planned and applied, and never listed as a change.
    pub is_set: bool,
    /// The set that the change is a member of, and its place in it.
    pub set_id: Option<ChangeId>,
    pub set_position: Option<i64>,
    /// The set over several controllers that it belongs to: as a part of it, or as a member of a part.
    pub saga_id: Option<ChangeId>,
    /// What staged it, where no person did by hand.
    #[sqlx(json(nullable))]
    pub staged_via: Option<StagedVia>,
    pub updated_at: Timestamp,
}

impl ChangeRow {
    /// How far the calls of a stage were sent in this attempt.
    pub fn sent(&self, stage: Stage) -> StageSent {
        let of_stage = self.sent.iter().flatten().find(|sent| sent.stage == stage);
        of_stage.copied().unwrap_or_else(|| StageSent::none(stage))
    }

    /// Notes how far the calls of a stage were sent; a transaction stores it.
    pub fn note_sent(&mut self, sent: StageSent) {
        let stages = self.sent.get_or_insert_default();
        stages.retain(|other| other.stage != sent.stage);
        stages.push(sent);
    }
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
