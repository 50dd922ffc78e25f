//! Changes of every vendor: their lists, and the operations on one change.

use std::collections::{BTreeMap, HashMap};

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use heddle_core::change::{ChangeStatus, OutcomeState};
use heddle_core::page::{Page, PageRequest};
use heddle_core::{ChangeId, ControllerId, SiteId, UserId};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::changes::{self, ChangeFilter, ChangeRow};
use heddle_store::{InOrder, Sort, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::apply::{self, ApplyRequest, CONFIRM_SECS};
use super::plan::{self, controller_on_path};
use super::view::{Beside, ChangeView, view};
use super::{revert, settle, vendors, window};

/// Hex digits of a plan's hash.
const PLAN_HASH_CHARS_MAX: usize = 64;
const CHANGE: &str = "/gateway-vpn/changes/{change_id}";
/// Most changes of a list without pages.
const LIST_MAX: u32 = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Counts from 1.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    /// Only changes of this status.
    status: Option<ChangeStatus>,
    /// Only changes whose last attempt had this outcome.
    outcome: Option<OutcomeState>,
    /// Only changes at this site.
    site_id: Option<SiteId>,
    /// Only changes of this controller.
    controller_id: Option<ControllerId>,
    /// Only changes of controllers of this vendor: the id of its adapter.
    vendor: Option<String>,
    /// Only changes of this feature: `acme.firewall.rule`.
    feature: Option<String>,
    /// Only changes that this user staged.
    author: Option<UserId>,
    /// Only changes of this set.
    set: Option<ChangeId>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<ChangeRow>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByGatewayQuery {
    /// The controller's vendor.
    vendor: String,
    /// Only changes of this status.
    status: Option<ChangeStatus>,
}

/// How many changes there are. The filters `status` and `outcome` of the list do not apply.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeCounts {
    /// By status.
    status: BTreeMap<String, i64>,
    /// By the state of the outcome.
    outcome: BTreeMap<String, i64>,
}

/// A page of changes, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeList {
    #[serde(flatten)]
    page: Page<ChangeView>,
    counts: ChangeCounts,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyBody {
    /// Must be true.
    force: Option<bool>,
    /// Hash of the reviewed plan, 64 hex digits: the change is applied only while the plan still has this hash.
    #[schemars(length(max = PLAN_HASH_CHARS_MAX))]
    plan_hash: Option<String>,
    /// From 10 to 600: the change is taken back unless it is confirmed within these seconds.
    #[schemars(range(min = *CONFIRM_SECS.start(), max = *CONFIRM_SECS.end()))]
    confirm_within_secs: Option<u32>,
    /// From `confirm_within_secs` to 600: how far the window may be extended later. The device's own timer is set to
    /// this value, so a device that can no longer be reached takes the change back that much later.
    #[schemars(range(min = *CONFIRM_SECS.start(), max = *CONFIRM_SECS.end()))]
    extendable_to_secs: Option<u32>,
}

impl ApplyBody {
    pub(super) fn into_request(self, seen: Option<String>) -> Result<ApplyRequest, Error> {
        refuse_longer("plan_hash", self.plan_hash.as_deref().unwrap_or_default(), PLAN_HASH_CHARS_MAX)?;
        Ok(ApplyRequest {
            force: self.force,
            plan_hash: self.plan_hash.or(seen),
            confirm_within_secs: self.confirm_within_secs,
            extendable_to_secs: self.extendable_to_secs,
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendBody {
    /// Seconds to add to the window, which may be 600 s long in total.
    #[schemars(range(min = 1, max = 600))]
    pub(super) secs: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiscardQuery {
    /// Also gives up a change whose device gives no answer while it is being applied. The state of the device then
    /// stays unknown.
    force: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Verified {
    change: ChangeView,
    #[schemars(with = "StandingView")]
    standing: Value,
}

/// The state of the device, compared with the plan.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of what verifying answers")]
struct StandingView {
    /// `before`, `after`, `stored` or `other`.
    state: String,
    /// Changes that others made at the device since the plan was made.
    foreign: Vec<String>,
    /// Steps that are still needed before the change is in effect.
    #[schemars(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<String>>,
    /// Differences from the plan.
    #[schemars(skip_serializing_if = "Option::is_none")]
    difference: Option<Value>,
}

pub(super) fn routes(routes: Routes) -> Routes {
    acting(reading(routes))
}

fn reading(routes: Routes) -> Routes {
    let read = Access::Permission(CONTROLLER_READ);
    routes
        .get(
            "/gateway-vpn/changes",
            read,
            list,
            doc("Changes of the organization").query::<ListQuery>().answers::<ChangeList>(200),
        )
        .get(CHANGE, read, get_change, doc("One change").answers::<ChangeView>(200).tagged())
        .get(
            "/gateway-vpn/changes/by-gateway/{gateway_id}",
            read,
            by_gateway,
            doc("Changes of a gateway across areas")
                .named("list_changes_of_gateway")
                .query::<ByGatewayQuery>()
                .answers::<Vec<ChangeView>>(200),
        )
}

fn acting(routes: Routes) -> Routes {
    let act = |verb: &str| format!("{CHANGE}/{verb}");
    routes
        .post(
            &act("plan"),
            Access::ByFeature,
            plan_again,
            doc("Plan again").answers::<ChangeView>(200).calls_adapter().as_seen(),
        )
        .post(
            &act("apply"),
            Access::ByFeature,
            apply_change,
            doc("Apply to the live device")
                .body::<ApplyBody>()
                .answers::<ChangeView>(200)
                .calls_adapter()
                .switched()
                .as_seen(),
        )
        .post(
            &act("confirm"),
            Access::ByFeature,
            confirm,
            doc("Confirm in time").answers::<ChangeView>(200).calls_adapter(),
        )
        .post(
            &act("extend"),
            Access::ByFeature,
            extend,
            doc("Give the confirm window more time").body::<ExtendBody>().answers::<ChangeView>(200),
        )
        .post(
            &act("verify"),
            Access::ByFeature,
            verify,
            doc("Read the device back").answers::<Verified>(200).calls_adapter(),
        )
        .post(
            &act("discard"),
            Access::ByFeature,
            discard,
            doc("Give a pending change up").query::<DiscardQuery>().answers::<ChangeView>(200).as_seen(),
        )
        .post(
            &act("revert"),
            Access::ByFeature,
            revert,
            doc("Take back: at once in the confirm window (200), else by staging the inverse (201)")
                .answers::<ChangeView>(201)
                .also_answers::<ChangeView>(200)
                .calls_adapter()
                .switched(),
        )
}

/// Returns the change as clients see it, with its conflicts and the state of its set.
async fn shown(app: &App, row: ChangeRow) -> Result<ChangeView, Error> {
    let mut tx = app.db.read().await?;
    Ok(shown_in(&mut tx, vec![row]).await?.remove(0))
}

async fn shown_in(tx: &mut Tx, rows: Vec<ChangeRow>) -> Result<Vec<ChangeView>, Error> {
    let mut conflicts = changes::conflicts_among(tx, &rows).await?;
    let mut sets: Vec<ChangeId> = rows.iter().filter_map(|row| row.set_id).collect();
    sets.sort_unstable();
    sets.dedup();
    let standings: HashMap<_, _> =
        changes::standings(tx, &sets).await?.into_iter().map(|set| (set.id, set)).collect();
    let views = rows.into_iter().map(|row| {
        let beside = Beside {
            conflicts_with: conflicts.remove(&row.id).unwrap_or_default(),
            set: row.set_id.and_then(|set| standings.get(&set).cloned()),
        };
        view(row, beside)
    });
    views.collect()
}

pub(super) async fn listed(
    app: &App,
    caller: &Caller,
    filter: &ChangeFilter,
) -> Result<Answer<Vec<ChangeView>>, Error> {
    let mut tx = app.db.read().await?;
    let page = PageRequest { page: 1, per_page: LIST_MAX };
    let (rows, _) = changes::list(&mut tx, &caller.scope(), filter, page).await?;
    shown_in(&mut tx, rows).await.map(Answer)
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<ChangeList>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let filter = ChangeFilter {
        controller_id: query.controller_id,
        site_id: query.site_id,
        area: None,
        status: query.status,
        outcome: query.outcome,
        vendor: query.vendor,
        feature: query.feature,
        author: query.author,
        set_id: query.set,
    };
    let mut tx = app.db.read().await?;
    let (rows, total) =
        changes::list(&mut tx, &caller.scope(), &filter, InOrder::by(page, query.sort)).await?;
    let mut counts = ChangeCounts {
        status: ChangeStatus::ALL.iter().map(|status| (status.to_string(), 0)).collect(),
        outcome: OutcomeState::ALL.iter().map(|state| (state.to_string(), 0)).collect(),
    };
    for counted in changes::counts(&mut tx, &caller.scope(), &filter).await? {
        *counts.status.entry(counted.status.to_string()).or_default() += counted.count;
        *counts.outcome.entry(counted.outcome_state.to_string()).or_default() += counted.count;
    }
    let items = shown_in(&mut tx, rows).await?;
    Ok(Answer(ChangeList { page: page.of(items, total), counts }))
}

async fn by_gateway(
    State(app): State<SharedApp>,
    caller: Caller,
    At(controller): At<ControllerId>,
    Params(query): Params<ByGatewayQuery>,
) -> Result<Answer<Vec<ChangeView>>, Error> {
    let installed = app.vendors();
    let mut known: Vec<&str> = installed.iter().chain(vendors::gateways()).map(String::as_str).collect();
    known.sort_unstable();
    known.dedup();
    if !known.contains(&query.vendor.as_str()) {
        return Err(Error::BadRequest {
            kind: "unknown_vendor",
            message: format!("vendor '{}' is not one of {}", query.vendor, known.join(", ")),
        });
    }
    let controller = controller_on_path(&app, &caller, controller, None, Some(&query.vendor)).await?;
    let filter =
        ChangeFilter { controller_id: Some(controller.id), status: query.status, ..ChangeFilter::default() };
    listed(&app, &caller, &filter).await
}

async fn get_change(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ChangeId>,
) -> Result<One<ChangeView>, Error> {
    let row = apply::find(&app, &caller, id).await?;
    shown(&app, row).await.map(One)
}

/// Returns the hash of the plan that the client saw, where `If-Match` names the state; 412 when the client saw another
/// state.
async fn plan_as_seen(
    app: &SharedApp,
    caller: &Caller,
    id: ChangeId,
    if_match: &IfMatch,
) -> Result<Option<String>, Error> {
    if !if_match.is_given() {
        return Ok(None);
    }
    let row = apply::find(app, caller, id).await?;
    let seen = shown(app, row).await?;
    if_match.check(&seen)?;
    // A client that saw no plan did not see a plan that was made since.
    Ok(Some(seen.plan.map(|plan| plan.hash).unwrap_or_default()))
}

async fn plan_again(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    if_match: IfMatch,
) -> Result<Answer<ChangeView>, Error> {
    plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = apply::find(&app, &caller, id).await?;
    let row = plan::plan_again(&app, &caller, &origin, row).await?;
    shown(&app, row).await.map(Answer)
}

async fn apply_change(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    if_match: IfMatch,
    Json(body): Json<ApplyBody>,
) -> Result<Answer<ChangeView>, Error> {
    // The hash protects the state that the entity tag named until the apply has begun, even if the change is planned
    // again meanwhile.
    let seen = plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = apply::find(&app, &caller, id).await?;
    let row = apply::apply(&app, &caller, &origin, row, body.into_request(seen)?).await?;
    shown(&app, row).await.map(Answer)
}

async fn confirm(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
) -> Result<Answer<ChangeView>, Error> {
    let row = apply::find(&app, &caller, id).await?;
    let row = window::confirm(&app, &caller, &origin, row).await?;
    shown(&app, row).await.map(Answer)
}

async fn extend(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    Json(body): Json<ExtendBody>,
) -> Result<Answer<ChangeView>, Error> {
    let row = apply::find(&app, &caller, id).await?;
    let row = window::extend(&app, &caller, &origin, row, body.secs).await?;
    shown(&app, row).await.map(Answer)
}

async fn verify(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
) -> Result<Answer<Verified>, Error> {
    let row = apply::find(&app, &caller, id).await?;
    let (row, mut standing) = settle::verify(&app, &caller, &origin, row).await?;
    heddle_core::redact::mask(&mut standing);
    Ok(Answer(Verified { change: shown(&app, row).await?, standing }))
}

async fn discard(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    Params(query): Params<DiscardQuery>,
    if_match: IfMatch,
) -> Result<Answer<ChangeView>, Error> {
    plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = apply::find(&app, &caller, id).await?;
    let row = settle::discard(&app, &caller, &origin, row, query.force.unwrap_or(false)).await?;
    shown(&app, row).await.map(Answer)
}

async fn revert(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    At(id): At<ChangeId>,
) -> Result<Response, Error> {
    let row = apply::find(&app, &caller, id).await?;
    match revert::revert(&app, &caller, &origin, creation, row).await? {
        revert::Reverted::Staged(response) => Ok(response),
        revert::Reverted::TakenBack(row) => Ok(Answer(shown(&app, *row).await?).into_response()),
    }
}
