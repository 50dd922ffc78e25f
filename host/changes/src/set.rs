//! Sets of changes of one controller: one plan, one review, one apply; each member has its own outcome.
//!
//! A set has its own row among the changes, which is planned and applied like a change. Its members follow it in the
//! same transaction. While they are in it, they are not handled alone.

use axum::response::Response;
use heddle_core::change::{Attempt, ChangeSpec, ChangeStatus, Danger, OutcomeState, Plan, Stage};
use heddle_core::fault::Effect;
use heddle_core::file::GivenFile;
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::conditional::{Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_runtime::{Adapter, SecretBook};
use heddle_store::Tx;
use heddle_store::changes::{self, ChangeRow, Followed, NewChange, SetStanding};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::apply::{find_row, get, under_way};
use super::detail::{ChangeResult, Detail};
use super::job::has_left;
use super::outcome::{Actor, Step, record};
use super::place::{caller_may_write, place_is_the_same, used_place_of};
use super::plan::{self, secrets_of, specs_of, ttl};
use super::view::{Beside, ChangeView, Outcome, masked_plan, outcome_of, view};
use super::{expressed, files, gates, new_key, settle};

/// How many changes a set may have.
pub(super) const MEMBERS: std::ops::RangeInclusive<usize> = 2..=50;

/// Changes that are planned, reviewed and applied as one.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChangeSet {
    pub(super) id: ChangeId,
    pub(super) organization_id: OrgId,
    pub(super) site_id: SiteId,
    /// The vendor's id of the site, where the controller has sites.
    pub(super) site_ref: Option<String>,
    pub(super) controller_id: ControllerId,
    pub(super) vendor: String,
    pub(super) status: ChangeStatus,
    /// Danger of the most dangerous member.
    pub(super) danger: Danger,
    pub(super) created_by: UserId,
    pub(super) created_at: Timestamp,
    pub(super) applied_by: Option<UserId>,
    pub(super) applied_at: Option<Timestamp>,
    /// When the first of its members expires.
    pub(super) expires_at: Timestamp,
    /// The calls of all members together; their hash is what is reviewed.
    pub(super) plan: Option<Plan>,
    /// Why there is no plan.
    #[schemars(with = "Option<super::view::PlanError>")]
    pub(super) plan_error: Option<Value>,
    pub(super) outcome: Outcome,
    pub(super) attempts: Vec<Attempt>,
    /// The change that took the set back.
    pub(super) reverted_by: Option<ChangeId>,
    /// The members in their order, each with its own outcome.
    pub(super) changes: Vec<ChangeView>,
}

/// The tag covers the reviewed fields.
impl Tagged for ChangeSet {
    fn tag(&self) -> Result<Tag, Error> {
        Tag::of_shown(self, &["status"])
    }
}

/// Returns the set, if the caller may see it.
pub(super) async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<ChangeRow, Error> {
    find_row(app, caller, id).await?.filter(|row| row.is_set).ok_or(Error::NotFound("change set"))
}

/// Returns a set as clients see it.
pub(super) async fn shown(app: &App, row: ChangeRow) -> Result<ChangeSet, Error> {
    let mut tx = app.db.read().await?;
    shown_in(&mut tx, row).await
}

async fn shown_in(tx: &mut Tx, mut row: ChangeRow) -> Result<ChangeSet, Error> {
    let members = changes::members(tx, row.id).await?;
    let mut conflicts = changes::conflicts_among(tx, &members).await?;
    let standing = SetStanding {
        id: row.id,
        apply_step: row.apply_step,
        confirm_deadline: row.confirm_deadline,
        attempts: row.attempts.clone(),
    };
    let outcome = outcome_of(&mut row);
    let shown = members.into_iter().map(|member| {
        let conflicts_with = conflicts.remove(&member.id).unwrap_or_default();
        view(member, Beside { conflicts_with, set: Some(standing.clone()) })
    });
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
        changes: shown.collect::<Result<_, _>>()?,
    })
}

/// Makes a set of pending changes, in the given order, and plans it.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    creation: Creation,
    ids: &[ChangeId],
) -> Result<Response, Error> {
    let members = eligible(app, caller, ids).await?;
    let first = &members[0];
    let place = used_place_of(app, caller, first).await?;
    let controller = &place.controller;
    let adapter = app.adapter(&controller.vendor)?;
    let mut secrets = SecretBook::default();
    for member in &members {
        secrets.entries.extend(secrets_of(app, member)?.entries);
    }
    members.iter().try_for_each(|member| is_expressed(&adapter, member))?;
    let specs: Vec<ChangeSpec> = members.iter().flat_map(specs_of).collect();
    let given: Vec<GivenFile> = members.iter().flat_map(files::named::given_by).collect();
    let planned = plan::ask(&adapter, controller, &origin.request_id, (&specs, &given), &secrets).await?;
    let worst = members.iter().map(|member| member.danger).max().unwrap_or(first.danger);
    let danger = expressed::permitted(caller, &adapter, &planned, worst)?;

    let id: ChangeId = app.clock.new_id();
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let settings = place_is_the_same(&mut tx, &place).await?;
    let first_to_expire = members.iter().map(|member| member.expires_at).min();
    let mut also = specs.into_iter();
    let own = also.next().ok_or_else(|| Error::internal("a set has members"))?;
    let new = NewChange {
        id,
        org_id: controller.org_id,
        site_id: place.site_id,
        site_ref: place.site_ref.clone(),
        controller_id: controller.id,
        vendor: controller.vendor.clone(),
        area: first.area.clone(),
        feature: own.feature,
        operation: own.operation,
        payload: own.payload,
        also: also.collect(),
        notes: None,
        staged_by: caller.user_id,
        expires_at: first_to_expire.unwrap_or(now + ttl(app, &settings)),
        planned: plan::record_of(app, id, planned, danger),
        now,
        reverts: None,
        run: None,
        is_set: true,
    };
    let row = changes::insert(&mut tx, &new).await?;
    let read: Vec<_> = members.iter().map(|member| (member.id, member.updated_at)).collect();
    if !changes::join(&mut tx, id, &read, now).await? {
        return Err(Error::conflict("a change was moved on meanwhile; read them again"));
    }
    record(&mut tx, app, &row, &Step::new("change_set.created", Actor::caller(caller, origin))).await?;
    let path = format!("/gateway-vpn/changes/sets/{id}");
    let view = shown_in(&mut tx, row).await?;
    creation.finish(tx, app, &path, &view).await
}

/// Refuses a change in the words of the model of which it is not known what it is in the vendor's own: what the device says
/// of the set could not be told apart by its members.
fn is_expressed(adapter: &Adapter, member: &ChangeRow) -> Result<(), Error> {
    if member.expressed_as.is_some() || !expressed::is_in_model(adapter, &specs_of(member)) {
        return Ok(());
    }
    Err(Error::Conflict {
        kind: "not_planned",
        message: format!(
            "the controller could not be read when change {} was planned; plan it again first",
            member.id
        ),
    })
}

/// Returns the changes in the given order, when they can form a set.
async fn eligible(app: &App, caller: &Caller, ids: &[ChangeId]) -> Result<Vec<ChangeRow>, Error> {
    if !MEMBERS.contains(&ids.len()) {
        return Err(Error::field("change_ids", "a set has from 2 to 50 changes"));
    }
    let mut found = {
        let mut tx = app.db.read().await?;
        changes::find_many(&mut tx, &caller.scope(), ids).await?
    };
    let mut members = Vec::with_capacity(ids.len());
    for (at, id) in ids.iter().enumerate() {
        if ids[..at].contains(id) {
            return Err(Error::field("change_ids", format!("change {id} is named twice")));
        }
        let place = found.iter().position(|row| row.id == *id && !row.is_set);
        let row = found.swap_remove(place.ok_or(Error::NotFound("change"))?);
        gates::change_is_permitted(caller, &row)?;
        gates::change_is_pending(row.status)?;
        gates::change_is_its_own(&row)?;
        gates::change_has_not_expired(&row, app.clock.now())?;
        gates::outcome_is_settled(&row)?;
        if row.apply_step != heddle_core::change::ApplyStep::Idle {
            return Err(under_way(&row));
        }
        members.push(new_key::current(app, row).await?);
    }
    if members.iter().any(|row| row.controller_id != members[0].controller_id) {
        return Err(Error::field("change_ids", "the changes of a set are all of one controller"));
    }
    if members.iter().any(|row| row.site_ref != members[0].site_ref) {
        return Err(Error::field("change_ids", "the changes of a set are all of one site of the controller"));
    }
    Ok(members)
}

/// Gives up a set. Its members are discarded with it, or become separate changes again.
pub(super) async fn discard(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    row: ChangeRow,
    (force, keep_changes): (bool, bool),
) -> Result<ChangeRow, Error> {
    if keep_changes {
        gates::change_is_permitted(caller, &row)?;
        gates::change_is_pending(row.status)?;
        gates::outcome_is_settled(&row)?;
        let now = app.clock.now();
        let mut tx = app.db.write().await?;
        let row = get(&mut tx, row.id).await?;
        caller_may_write(&mut tx, caller, &row).await?;
        // The set first, as an apply does, then its members: so the two do not wait for each other.
        changes::lock(&mut tx, row.id).await?;
        changes::free_members(&mut tx, &row, None, now).await?;
        let discarded =
            changes::discard(&mut tx, &caller.scope(), row.id, Some("set dissolved"), now).await?;
        let row = discarded.ok_or_else(|| under_way(&row))?;
        record(&mut tx, app, &row, &Step::new("change_set.dissolved", Actor::caller(caller, origin))).await?;
        tx.commit().await?;
        return Ok(row);
    }
    settle::discard(app, caller, origin, row, force).await
}

/// Returns every user that staged a member of the set.
pub(super) async fn stagers(tx: &mut Tx, row: &ChangeRow) -> Result<Vec<UserId>, Error> {
    if !row.is_set {
        return Ok(vec![row.staged_by]);
    }
    Ok(changes::members(tx, row.id).await?.into_iter().map(|member| member.staged_by).collect())
}

/// Updates the members of a set in the transaction that moved the set. Does nothing when the row is no set.
pub(super) async fn follow(tx: &mut Tx, row: &ChangeRow, now: Timestamp) -> Result<(), Error> {
    if !row.is_set {
        return Ok(());
    }
    let detail = Detail::of(row);
    let items = &detail.items;
    let members = changes::members(tx, row.id).await?;
    let told_apart = items.len() == members.iter().map(parts_of).sum::<usize>();
    let mut at = 0;
    for member in &members {
        let count = parts_of(member);
        let words = if told_apart { &items[at..at + count] } else { &[] };
        let of_member = |result: &&ChangeResult| (at..at + count).contains(&(result.index as usize));
        let results: Vec<&ChangeResult> = detail.results.iter().filter(of_member).collect();
        at += count;
        let (status, state, message) = standing_of_member(row, words, (&results, count));
        let is_applied = status == ChangeStatus::Applied;
        let told = Followed {
            ids: vec![member.id],
            status,
            state,
            message,
            applied_by: row.attempts.last().filter(|_| is_applied).map(|attempt| attempt.started_by),
            applied_at: row.applied_at.or(Some(now)).filter(|_| is_applied),
            reverted_by: row.reverted_by,
        };
        changes::follow(tx, row.id, &told, now).await?;
    }
    Ok(())
}

/// How many changes of the vendor's own features a member is.
fn parts_of(member: &ChangeRow) -> usize {
    member.expressed_as.as_ref().map_or(1 + member.also.len(), Vec::len)
}

/// Returns the state of a member from what the device shows; where that is not known, from what the device said of it,
/// else the state of its set. What was said of the apply does not count once calls of the way back left.
fn standing_of_member(
    set: &ChangeRow,
    words: &[String],
    (results, count): (&[&ChangeResult], usize),
) -> (ChangeStatus, OutcomeState, Option<String>) {
    let message = set.outcome_message.clone();
    let is_taken_back = has_left(set, Stage::Undo) || has_left(set, Stage::Restore);
    let results = if is_taken_back { &[] } else { results };
    let failure = results.iter().find_map(|result| result.failed.as_ref());
    let is_said = words.is_empty() && results.len() == count;
    let all = |wanted: &[&str]| !words.is_empty() && words.iter().all(|word| wanted.contains(&word.as_str()));
    if set.outcome_state != OutcomeState::Partial {
        return (set.status, set.outcome_state, message);
    }
    if all(&["after", "adjusted", "stored"]) || (is_said && failure.is_none()) {
        // The member stays on the device, whatever happens to the others.
        let status = if set.status == ChangeStatus::Discarded { ChangeStatus::Applied } else { set.status };
        return (
            status,
            OutcomeState::Applied,
            Some("in effect, unlike other changes of its set".to_owned()),
        );
    }
    let is_unchanged =
        |result: &&ChangeResult| result.failed.as_ref().is_some_and(|failed| failed.effect == Effect::None);
    if all(&["before"]) || (is_said && results.iter().all(is_unchanged)) {
        let why = failure.map(|failed| format!(": {}", failed.message)).unwrap_or_default();
        let message = format!("not on the device, unlike others of its set{why}");
        return (set.status, OutcomeState::Failed, Some(message));
    }
    let message = failure.map(|failed| failed.message.clone()).or(message);
    (set.status, OutcomeState::Partial, message)
}
