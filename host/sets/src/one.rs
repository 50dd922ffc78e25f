//! Sets of changes of one controller: one plan, one review, one apply; each member has its own outcome.
//!
//! A set has its own row among the changes, which is planned and applied like a change. Its members follow it in the same
//! transaction (`heddle_changes`). While they are in it, they are not handled alone.

use std::collections::HashMap;

use heddle_changes::view::{Beside, ChangeView, Outcome, masked_plan, outcome_of, view};
use heddle_changes::{Cause, parts};
use heddle_core::change::{Attempt, ChangeStatus, Danger, Plan};
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::conditional::{Tag, Tagged};
use heddle_kernel::http::error::Error;
use heddle_store::Tx;
use heddle_store::changes::{self, ChangeRow, SetStanding};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Changes of one controller that are planned, reviewed and applied as one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeSet {
    pub(crate) id: ChangeId,
    pub(crate) organization_id: OrgId,
    pub(crate) site_id: SiteId,
    /// The vendor's id of the site, where the controller has sites.
    pub(crate) site_ref: Option<String>,
    pub(crate) controller_id: ControllerId,
    pub(crate) vendor: String,
    pub(crate) status: ChangeStatus,
    /// Danger of the most dangerous member.
    pub(crate) danger: Danger,
    pub(crate) created_by: UserId,
    pub(crate) created_at: Timestamp,
    pub(crate) applied_by: Option<UserId>,
    pub(crate) applied_at: Option<Timestamp>,
    /// When the first of its members expires.
    pub(crate) expires_at: Timestamp,
    /// The calls of all members together; their hash is what is reviewed.
    pub(crate) plan: Option<Plan>,
    /// Why there is no plan.
    #[schemars(with = "Option<heddle_changes::view::PlanError>")]
    pub(crate) plan_error: Option<Value>,
    pub(crate) outcome: Outcome,
    pub(crate) attempts: Vec<Attempt>,
    /// The change that took the set back.
    pub(crate) reverted_by: Option<ChangeId>,
    /// The members in their order, each with its own outcome.
    pub(crate) changes: Vec<ChangeView>,
}

/// The tag covers the reviewed fields.
impl Tagged for ChangeSet {
    fn tag(&self) -> Result<Tag, Error> {
        Tag::of_shown(self, &["status"])
    }
}

/// Returns a set as clients see it.
pub(crate) async fn shown(app: &App, row: ChangeRow) -> Result<ChangeSet, Error> {
    let mut tx = app.db.read().await?;
    shown_in(&mut tx, row).await
}

pub(crate) async fn shown_in(tx: &mut Tx, mut row: ChangeRow) -> Result<ChangeSet, Error> {
    let changes = members_of(tx, &row).await?;
    let outcome = outcome_of(&mut row);
    Ok(ChangeSet {
        id: row.id,
        organization_id: row.org_id,
        site_id: row.site_id,
        site_ref: row.site_ref,
        controller_id: row.controller_id,
        vendor: row.vendor,
        status: row.status,
        danger: row.danger,
        created_by: row.staged_by,
        created_at: row.staged_at,
        applied_by: row.applied_by,
        applied_at: row.applied_at,
        expires_at: row.expires_at,
        plan: row.plan.map(masked_plan).transpose()?,
        plan_error: row.plan_error,
        outcome,
        attempts: row.attempts,
        reverted_by: row.reverted_by,
        changes,
    })
}

/// Returns the members of a set of one controller in their order, as clients see them.
pub(crate) async fn members_of(tx: &mut Tx, row: &ChangeRow) -> Result<Vec<ChangeView>, Error> {
    let members = changes::members(tx, row.id).await?;
    let mut conflicts = changes::conflicts_among(tx, &members).await?;
    views_of(row, members, &mut conflicts)
}

/// The same of members that were read already.
pub(crate) fn views_of(
    row: &ChangeRow,
    members: Vec<ChangeRow>,
    conflicts: &mut HashMap<ChangeId, Vec<ChangeId>>,
) -> Result<Vec<ChangeView>, Error> {
    let standing = SetStanding {
        id: row.id,
        apply_step: row.apply_step,
        confirm_deadline: row.confirm_deadline,
        attempts: row.attempts.clone(),
    };
    let shown = members.into_iter().map(|member| {
        let conflicts_with = conflicts.remove(&member.id).unwrap_or_default();
        view(member, Beside { conflicts_with, set: Some(standing.clone()) })
    });
    shown.collect()
}

/// Makes a set of pending changes of one site of one controller, in the given order, and plans it; it is not committed yet.
pub(crate) async fn form(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    members: Vec<ChangeRow>,
) -> Result<(Tx, ChangeRow), Error> {
    let gathered = parts::gather(app, caller, cause, members).await?;
    let mut tx = app.db.write().await?;
    let row = gathered.insert(&mut tx, app, caller).await?;
    parts::record(&mut tx, app, &row, "change_set.created", (caller, cause)).await?;
    Ok((tx, row))
}
