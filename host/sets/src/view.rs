//! Sets over several controllers as clients see them: one review of the native calls of all controllers, in the order in which
//! they are sent.

use std::collections::HashMap;

use heddle_changes::view::{Beside, ChangeView, Outcome, masked_plan, outcome_of, view};
use heddle_core::change::{ChangeStatus, Danger, Plan};
use heddle_core::saga::{SagaAttempt, SagaState, SagaStep};
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::http::conditional::{Tag, Tagged};
use heddle_kernel::http::error::Error;
use heddle_store::{ChangeRow, Tx, changes, sagas};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::decide::Standing;
use crate::one::{ChangeSet, views_of};
use crate::saga::{Names, Part, Saga};

/// A set of changes, of one controller or over several.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyChangeSet")]
pub(crate) enum AnySet {
    OfOne(Box<ChangeSet>),
    OfSeveral(Box<SetOverControllers>),
}

impl Tagged for AnySet {
    fn tag(&self) -> Result<Tag, Error> {
        match self {
            AnySet::OfOne(set) => set.tag(),
            AnySet::OfSeveral(set) => set.tag(),
        }
    }
}

impl AnySet {
    pub(crate) fn plan_hash(self) -> Option<String> {
        match self {
            AnySet::OfOne(set) => set.plan.map(|plan| plan.hash),
            AnySet::OfSeveral(set) => set.plan.map(|plan| plan.hash),
        }
    }
}

/// What is staged to take a set back: a change for a set of one controller, a set for one over several.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "InverseOfChangeSet")]
#[expect(dead_code, reason = "the shape of what taking back answers")]
pub(crate) enum Inverse {
    OfOne(Box<ChangeView>),
    OfSeveral(Box<SetOverControllers>),
}

/// Changes of several controllers that are planned and reviewed as one, and applied one controller after the other. Where one
/// fails, those before it are taken back in the reverse order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SetOverControllers {
    pub(crate) id: ChangeId,
    pub(crate) organization_id: OrgId,
    /// `applied` once it is in effect at every controller.
    pub(crate) status: ChangeStatus,
    /// Danger of the most dangerous change.
    pub(crate) danger: Danger,
    pub(crate) created_by: UserId,
    pub(crate) created_at: Timestamp,
    pub(crate) applied_by: Option<UserId>,
    pub(crate) applied_at: Option<Timestamp>,
    /// When the first of its changes expires.
    pub(crate) expires_at: Timestamp,
    /// Null where the plan of a controller is missing: its part says why.
    pub(crate) plan: Option<SetPlan>,
    pub(crate) outcome: SetOutcome,
    pub(crate) attempts: Vec<SagaAttempt>,
    /// What a person can do with it now: `plan`, `apply`, `confirm`, `extend`, `revert`, `verify`, `discard`.
    pub(crate) ways_out: Vec<&'static str>,
    /// Why a person gave it up.
    pub(crate) reason: Option<String>,
    /// The set that this one takes back.
    pub(crate) reverts: Option<ChangeId>,
    /// The set that took this one back.
    pub(crate) reverted_by: Option<ChangeId>,
    /// What it does at each controller, in the order in which the parts are applied.
    pub(crate) parts: Vec<SetPart>,
}

/// The review of a set over several controllers. Its calls are those of the parts, in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SetPlan {
    /// Hash over the plans of all parts and their order.
    pub(crate) hash: String,
    /// The controllers in the order in which their parts are applied: the far side first, and last what cannot be taken back.
    pub(crate) order: Vec<ControllerId>,
    pub(crate) danger: Danger,
    /// What a person should consider before applying, besides the warnings of each part.
    pub(crate) warnings: Vec<String>,
    /// Whether every part can be taken back when another one fails.
    pub(crate) compensable: bool,
}

/// What is known of a set over several controllers after its last attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SetOutcome {
    /// What the set is, by what its devices show.
    pub(crate) state: SagaState,
    /// Why it is so, for people.
    pub(crate) message: Option<String>,
    /// What is under way.
    pub(crate) step: SagaStep,
    /// Until then the set must be confirmed; otherwise it is taken back at every controller.
    pub(crate) confirm_deadline: Option<Timestamp>,
}

/// All changes of a set at one controller.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SetPart {
    pub(crate) controller_id: ControllerId,
    /// Name of the controller.
    pub(crate) controller_name: String,
    pub(crate) vendor: String,
    pub(crate) site_id: SiteId,
    /// The vendor's id of the site, where the controller has sites.
    pub(crate) site_ref: Option<String>,
    /// How many links lie between the service and the controller; null where that is not known.
    pub(crate) hops: Option<i64>,
    /// Whether the reviewed calls can take it back.
    pub(crate) compensable: bool,
    /// Where the part stands.
    pub(crate) standing: Standing,
    /// The calls of all of its changes together.
    pub(crate) plan: Option<Plan>,
    /// Why there is no plan.
    #[schemars(with = "Option<heddle_changes::view::PlanError>")]
    pub(crate) plan_error: Option<Value>,
    pub(crate) outcome: Outcome,
    /// The changes in their order, each with its own outcome.
    pub(crate) changes: Vec<ChangeView>,
}

/// The tag covers the reviewed fields.
impl Tagged for SetOverControllers {
    fn tag(&self) -> Result<Tag, Error> {
        Tag::of_shown(self, &["status", "ways_out"])
    }
}

/// Returns a set as clients see it.
pub(crate) async fn shown(app: &App, saga: Saga) -> Result<SetOverControllers, Error> {
    let mut tx = app.db.read().await?;
    shown_at(&mut tx, saga, app.clock.now()).await
}

/// The same in a transaction, of a set that nothing was done with yet.
pub(crate) async fn shown_in(tx: &mut Tx, saga: Saga) -> Result<SetOverControllers, Error> {
    let now = saga.row.updated_at;
    shown_at(tx, saga, now).await
}

async fn shown_at(tx: &mut Tx, saga: Saga, now: Timestamp) -> Result<SetOverControllers, Error> {
    let names = Names::load(tx, &saga).await?;
    let (danger, plan) = (saga.danger(), plan_of(&saga, &names));
    let ways_out = ways_out(&saga, now);
    let Saga { row, parts } = saga;
    let changes = sagas::changes(tx, row.id).await?;
    let conflicts = changes::conflicts_among(tx, &changes).await?;
    let mut read = Read { changes, conflicts };
    let mut shown = Vec::with_capacity(parts.len());
    for part in parts {
        let name = names.of(&part);
        shown.push(part_of(part, &mut read, name, now)?);
    }
    Ok(SetOverControllers {
        id: row.id,
        organization_id: row.org_id,
        status: row.status,
        danger,
        created_by: row.created_by,
        created_at: row.created_at,
        applied_by: row.applied_by,
        applied_at: row.applied_at,
        expires_at: row.expires_at,
        plan,
        outcome: SetOutcome {
            state: row.state,
            message: row.message,
            step: row.step,
            confirm_deadline: row.confirm_deadline,
        },
        attempts: row.attempts,
        ways_out,
        reason: row.reason,
        reverts: row.reverts,
        reverted_by: row.reverted_by,
        parts: shown,
    })
}

fn plan_of(saga: &Saga, names: &Names) -> Option<SetPlan> {
    let hash = saga.plan_hash()?;
    let lasting: Vec<String> = saga
        .parts
        .iter()
        .filter(|part| !heddle_changes::parts::is_compensable(&part.row))
        .map(|part| format!("'{}'", names.of(part)))
        .collect();
    let mut warnings = Vec::new();
    if !lasting.is_empty() {
        warnings.push(format!(
            "what is done at {} cannot be taken back once it is permanent; it is done last, and where it fails half way the \
             set is stuck",
            lasting.join(", ")
        ));
    }
    if saga.parts.iter().any(|part| part.of.hops.is_none()) {
        let message = "it is not known how far every controller is from the service, so the order may not be the \
                       far side first";
        warnings.push(message.to_owned());
    }
    Some(SetPlan {
        hash,
        order: saga.parts.iter().map(|part| part.of.controller_id).collect(),
        danger: saga.danger(),
        warnings,
        compensable: lasting.is_empty(),
    })
}

/// What is read of all parts at once.
struct Read {
    /// All changes of the set, and the rows of the sets of one controller.
    changes: Vec<ChangeRow>,
    conflicts: HashMap<ChangeId, Vec<ChangeId>>,
}

fn part_of(part: Part, read: &mut Read, controller_name: String, now: Timestamp) -> Result<SetPart, Error> {
    let standing = part.standing(now);
    let Part { of, mut row } = part;
    let compensable = heddle_changes::parts::is_compensable(&row);
    let changes = if row.is_set {
        let members = read.changes.extract_if(.., |change| change.set_id == Some(row.id)).collect();
        views_of(&row, members, &mut read.conflicts)?
    } else {
        let conflicts_with = read.conflicts.remove(&row.id).unwrap_or_default();
        vec![view(row.clone(), Beside { conflicts_with, set: None })?]
    };
    let outcome = outcome_of(&mut row);
    Ok(SetPart {
        controller_id: of.controller_id,
        controller_name,
        vendor: row.vendor,
        site_id: row.site_id,
        site_ref: row.site_ref,
        hops: of.hops,
        compensable,
        standing,
        plan: row.plan.map(masked_plan).transpose()?,
        plan_error: row.plan_error,
        outcome,
        changes,
    })
}

/// What a person can do with a set now.
fn ways_out(saga: &Saga, now: Timestamp) -> Vec<&'static str> {
    if saga.row.status == ChangeStatus::Discarded {
        return Vec::new();
    }
    let has = |wanted: Standing| saga.parts.iter().any(|part| part.standing(now) == wanted);
    match (saga.row.step, saga.row.state) {
        (SagaStep::Applying | SagaStep::Confirming, _) => vec!["revert"],
        (SagaStep::Holding, _) => vec!["confirm", "extend", "revert"],
        (SagaStep::Compensating, _) if has(Standing::Silent) => vec!["discard"],
        (SagaStep::Compensating, _) => Vec::new(),
        (SagaStep::Idle, SagaState::Committed) if saga.row.reverted_by.is_none() => vec!["revert"],
        (SagaStep::Idle, SagaState::Committed) => Vec::new(),
        (SagaStep::Idle, SagaState::Stuck) if has(Standing::InDoubt) => vec!["verify", "revert", "discard"],
        (SagaStep::Idle, SagaState::Stuck) => vec!["plan", "apply", "revert", "discard"],
        (SagaStep::Idle, _) => vec!["plan", "apply", "discard"],
    }
}
