//! Changes of every vendor: their lists, and the operations on one change.

use std::collections::{BTreeMap, HashMap};

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::change::{ChangeStatus, OutcomeState};
use heddle_core::page::{Page, PageRequest};
use heddle_core::{ChangeId, ControllerId, SiteId, UserId};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::IfMatch;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::Tx;
use heddle_store::changes::{self, ChangeFilter, ChangeRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::acts::{self, Acts, Summaries};
use super::apply::{self, ApplyRequest};
use super::place::{Asked, controller_on_path};
use super::revert::Reverted;
use super::view::{Beside, ChangeView, view};
use super::{cancel, plan, revert, settle, vendors, window};

const CHANGE: &str = "/gateway-vpn/changes/{change_id}";
/// Most changes of a list without pages.
const LIST_MAX: u32 = 200;

list_query! {
    struct ListQuery of ChangeRow {
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
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByGatewayQuery {
    /// The controller's vendor: one of the five whose controllers the interface calls gateways. Changes of any other
    /// vendor are in the list of all changes, which has the filters `controller_id` and `vendor`.
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
    /// `before`, `after`, `adjusted`, `stored`, `moved_on`, `other` or `unseen`.
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

/// Changes, each by itself.
struct Changes;

#[async_trait::async_trait]
impl Acts for Changes {
    const ONE: &'static str = CHANGE;
    type Row = ChangeRow;
    type View = ChangeView;
    type Inverse = ChangeView;

    async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<ChangeRow, Error> {
        apply::find(app, caller, id).await
    }

    async fn shown(app: &App, row: ChangeRow) -> Result<ChangeView, Error> {
        shown(app, row).await
    }

    fn plan_hash(seen: ChangeView) -> Option<String> {
        seen.plan.map(|plan| plan.hash)
    }

    async fn plan(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
        Box::pin(plan::plan_again(&by.app, &by.caller, &by.origin, row)).await
    }

    async fn apply(by: &By, row: ChangeRow, request: ApplyRequest) -> Result<ChangeRow, Error> {
        apply::apply(&by.app, &by.caller, &by.origin, row, request).await
    }

    async fn confirm(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
        window::confirm(by, row).await
    }

    async fn extend(by: &By, row: ChangeRow, secs: u32) -> Result<ChangeRow, Error> {
        window::extend(by, row, secs).await
    }

    async fn cancel(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
        cancel::cancel(by, row).await
    }

    async fn revert(by: &By, creation: Creation, row: ChangeRow) -> Result<Reverted<ChangeRow>, Error> {
        Box::pin(revert::revert(by, creation, row)).await
    }
}

pub(super) fn routes() -> Routes {
    let read = Access::Permission(CONTROLLER_READ);
    Routes::default()
        .get(
            "/gateway-vpn/changes",
            read,
            list,
            doc("Changes of the organization").query::<ListQuery>().answers::<ChangeList>(200),
        )
        .get(CHANGE, read, acts::get::<Changes>, doc("One change").answers::<ChangeView>(200).tagged())
        .get(
            "/gateway-vpn/changes/by-gateway/{gateway_id}",
            read,
            by_gateway,
            doc("Changes of a gateway across areas")
                .named("list_changes_of_gateway")
                .query::<ByGatewayQuery>()
                .answers::<Vec<ChangeView>>(200),
        )
        .merge(acts::routes::<Changes>(Summaries {
            plan: "Plan again",
            apply: "Apply to the live device",
            confirm: "Confirm in time",
            extend: "Give the confirm window more time",
            cancel: "End the job that runs at the device; the outcome shows what came of it",
            revert: "Take back: at once in the confirm window (200), else by staging the inverse (201)",
        }))
        .post(
            &format!("{CHANGE}/verify"),
            Access::ByFeature,
            verify,
            doc("Read the device back").answers::<Verified>(200).calls_adapter(),
        )
        .post(
            &format!("{CHANGE}/discard"),
            Access::ByFeature,
            discard,
            doc("Give a pending change up").query::<DiscardQuery>().answers::<ChangeView>(200).as_seen(),
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
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<ChangeList>, Error> {
    let Listing { page, order, .. } = query.listing()?;
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
    let (rows, total) = changes::list(&mut tx, &caller.scope(), &filter, order).await?;
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
    let known = &vendors::TABLES.gateways;
    if !known.contains(&query.vendor) {
        return Err(Error::BadRequest {
            kind: "unknown_vendor",
            message: format!(
                "vendor '{}' is not one of {}; changes of every vendor are listed at \
                 /gateway-vpn/changes?controller_id={controller}",
                query.vendor,
                known.join(", ")
            ),
        });
    }
    let asked = Asked { vendor: Some(&query.vendor), ..Asked::of(controller, None) };
    let controller = controller_on_path(&app, &caller, asked).await?.controller;
    let filter =
        ChangeFilter { controller_id: Some(controller.id), status: query.status, ..ChangeFilter::default() };
    listed(&app, &caller, &filter).await
}

async fn verify(by: By, At(id): At<ChangeId>) -> Result<Answer<Verified>, Error> {
    let By { app, caller, origin } = &by;
    let row = apply::find(app, caller, id).await?;
    let (row, mut standing) = settle::verify(app, caller, origin, row).await?;
    heddle_core::redact::mask(&mut standing);
    Ok(Answer(Verified { change: shown(app, row).await?, standing }))
}

async fn discard(
    by: By,
    At(id): At<ChangeId>,
    Params(query): Params<DiscardQuery>,
    if_match: IfMatch,
) -> Result<Answer<ChangeView>, Error> {
    let By { app, caller, origin } = &by;
    acts::plan_as_seen::<Changes>(&by, id, &if_match).await?;
    let row = apply::find(app, caller, id).await?;
    let row = settle::discard(app, caller, origin, row, query.force.unwrap_or(false)).await?;
    shown(app, row).await.map(Answer)
}
