//! A change as clients see it: secrets masked, conflicts named.

use heddle_core::change::{
    ApplyStep, Attempt, ChangeSpec, ChangeStatus, Danger, HoleValues, Operation, OutcomeState, Plan,
    StagedVia,
};
use heddle_core::redact::{mask, may_need_mask};
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use heddle_kernel::http::conditional::{Tag, Tagged};
use heddle_kernel::http::error::Error;
use heddle_store::changes::{ChangeRow, SetStanding};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The known state of the device after the last attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    pub state: OutcomeState,
    pub message: Option<String>,
    /// Warnings, differences, and what others changed meanwhile.
    #[schemars(with = "Option<super::detail::Detail>")]
    pub detail: Option<Value>,
    /// Current step of an apply that is in flight.
    pub step: ApplyStep,
    /// Until then the change must be confirmed; otherwise it is taken back.
    pub confirm_deadline: Option<Timestamp>,
    /// Values of the plan's holes in the last attempt, by name: those that answers gave and the adapter found. Absent
    /// where there are none.
    #[serde(skip_serializing_if = "HoleValues::is_empty")]
    pub hole_values: HoleValues,
}

/// Stored as JSON when the change was planned.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of what the store keeps as JSON")]
pub struct PlanError {
    /// Such as `adapter_connection_error`.
    #[schemars(rename = "type")]
    kind: String,
    message: String,
}

/// A pending change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeView {
    pub id: ChangeId,
    pub organization_id: OrgId,
    pub site_id: SiteId,
    /// The vendor's id of the site that it is for, where the controller has sites.
    pub site_ref: Option<String>,
    pub controller_id: ControllerId,
    pub vendor: String,
    pub area: String,
    pub feature: String,
    pub operation: Operation,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub payload: Value,
    /// Further changes that are planned and applied together with this one: a revert may need several.
    pub also: Vec<ChangeSpec>,
    /// Of a change in the words of the model: what it is in the vendor's own features.
    pub expressed_as: Option<Vec<ChangeSpec>>,
    pub notes: Option<String>,
    pub status: ChangeStatus,
    pub danger: Danger,
    pub created_at: Timestamp,
    pub staged_by: UserId,
    pub staged_at: Timestamp,
    /// Origin, when the change was staged on behalf of `staged_by`: a Connection, automation, a template or an agent.
    /// Null when a person staged it.
    pub staged_via: Option<StagedVia>,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    pub plan: Option<Plan>,
    /// Why there is no plan.
    #[schemars(with = "Option<PlanError>")]
    pub plan_error: Option<Value>,
    pub outcome: Outcome,
    pub attempts: Vec<Attempt>,
    /// Other pending changes of this controller that write, or depend on, something that this one writes.
    pub conflicts_with: Vec<ChangeId>,
    /// The change that this one takes back.
    pub reverts: Option<ChangeId>,
    /// The change that took this one back.
    pub reverted_by: Option<ChangeId>,
    /// The set of which it is a member: it is planned, applied and taken back only with the set.
    pub change_set_id: Option<ChangeId>,
}

/// The tag covers the reviewed fields. Conflicts and the progress are left out: the answer to the apply reports them.
impl Tagged for ChangeView {
    fn tag(&self) -> Result<Tag, Error> {
        Tag::of_shown(self, &["conflicts_with", "status"])
    }
}

/// Data of a change that is shown but not in its row.
#[derive(Debug, Default)]
pub struct Beside {
    pub conflicts_with: Vec<ChangeId>,
    /// State of the apply of its set.
    pub set: Option<SetStanding>,
}

/// Returns the known state of the device after the last attempt.
pub fn outcome_of(row: &mut ChangeRow) -> Outcome {
    let mut detail = row.outcome_detail.take();
    if let Some(detail) = &mut detail {
        mask(detail);
    }
    Outcome {
        state: row.outcome_state,
        message: row.outcome_message.take().filter(|message| !message.is_empty()),
        detail,
        step: row.apply_step,
        confirm_deadline: row.confirm_deadline.filter(|_| row.apply_step != ApplyStep::Idle),
        hole_values: row.hole_values.take().map(masked_values).unwrap_or_default(),
    }
}

fn masked_values(values: HoleValues) -> HoleValues {
    let mut values = Value::Object(values.into_iter().collect());
    mask(&mut values);
    serde_json::from_value(values).unwrap_or_default()
}

/// Masks secrets; a member of a set shows the state of its set.
pub fn view(mut row: ChangeRow, beside: Beside) -> Result<ChangeView, Error> {
    let mut outcome = outcome_of(&mut row);
    if let Some(set) = beside.set {
        outcome.step = set.apply_step;
        outcome.confirm_deadline = set.confirm_deadline.filter(|_| set.apply_step != ApplyStep::Idle);
        row.attempts.extend(set.attempts);
    }
    let mut payload = row.payload;
    mask(&mut payload);
    let mut also = row.also;
    let mut expressed_as = row.expressed_as;
    let further = also.iter_mut().chain(expressed_as.iter_mut().flatten());
    further.for_each(|spec| mask(&mut spec.payload));
    let plan = row.plan.map(masked_plan).transpose()?;
    Ok(ChangeView {
        id: row.id,
        organization_id: row.org_id,
        site_id: row.site_id,
        site_ref: row.site_ref,
        controller_id: row.controller_id,
        vendor: row.vendor,
        area: row.area,
        feature: row.feature,
        operation: row.operation,
        payload,
        also,
        expressed_as,
        notes: row.notes,
        status: row.status,
        danger: row.danger,
        created_at: row.staged_at,
        staged_by: row.staged_by,
        staged_at: row.staged_at,
        staged_via: row.staged_via,
        applied_by: row.applied_by,
        applied_at: row.applied_at,
        expires_at: row.expires_at,
        plan,
        plan_error: row.plan_error,
        outcome,
        attempts: row.attempts,
        conflicts_with: beside.conflicts_with,
        reverts: row.reverts,
        reverted_by: row.reverted_by,
        change_set_id: row.saga_id.or(row.set_id),
    })
}

/// Masks secrets in a plan. Most plans have none, which their text shows sooner than a walk through their values.
pub fn masked_plan(plan: Plan) -> Result<Plan, Error> {
    if !may_need_mask(&serde_json::to_string(&plan).map_err(Error::internal)?) {
        return Ok(plan);
    }
    let mut value = serde_json::to_value(plan).map_err(Error::internal)?;
    mask(&mut value);
    serde_json::from_value(value).map_err(Error::internal)
}
