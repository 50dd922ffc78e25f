//! Sets of changes: created, reviewed, applied, confirmed and taken back as one.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use heddle_core::ChangeId;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, Params};
use heddle_kernel::http::routes::{Routes, doc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change_routes::{ApplyBody, ExtendBody};
use super::set::{self, ChangeSet, MEMBERS};
use super::view::ChangeView;
use super::{apply, plan, revert, settle, window};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSet {
    /// From 2 to 50 pending changes of one controller, in the order in which they are planned and sent.
    #[schemars(length(min = *MEMBERS.start(), max = *MEMBERS.end()))]
    change_ids: Vec<ChangeId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiscardQuery {
    /// Also gives up a set whose device gives no answer while it is being applied. The state of the device then stays
    /// unknown.
    force: Option<bool>,
    /// Gives up the set alone: its members become separate pending changes again.
    keep_changes: Option<bool>,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let one = "/gateway-vpn/changes/sets/{set_id}";
    let act = |verb: &str| format!("{one}/{verb}");
    routes
        .post(
            "/gateway-vpn/changes/sets",
            Access::ByFeature,
            create,
            doc("Make a set of pending changes and plan it")
                .body::<NewSet>()
                .answers::<ChangeSet>(201)
                .calls_adapter(),
        )
        .get(
            one,
            Access::Permission(CONTROLLER_READ),
            get,
            doc("One set of changes").answers::<ChangeSet>(200).tagged(),
        )
        .post(
            &act("plan"),
            Access::ByFeature,
            plan_again,
            doc("Plan the set again").answers::<ChangeSet>(200).calls_adapter().as_seen(),
        )
        .post(
            &act("apply"),
            Access::ByFeature,
            apply_set,
            doc("Apply the set to the live device")
                .body::<ApplyBody>()
                .answers::<ChangeSet>(200)
                .calls_adapter()
                .switched()
                .as_seen(),
        )
        .post(
            &act("confirm"),
            Access::ByFeature,
            confirm,
            doc("Confirm the set in time").answers::<ChangeSet>(200).calls_adapter(),
        )
        .post(
            &act("extend"),
            Access::ByFeature,
            extend,
            doc("Give the set's confirm window more time").body::<ExtendBody>().answers::<ChangeSet>(200),
        )
        .post(
            &act("verify"),
            Access::ByFeature,
            verify,
            doc("Read the device back and settle the set").answers::<ChangeSet>(200).calls_adapter(),
        )
        .post(
            &act("discard"),
            Access::ByFeature,
            discard,
            doc("Give the set up").query::<DiscardQuery>().answers::<ChangeSet>(200).as_seen(),
        )
        .post(
            &act("revert"),
            Access::ByFeature,
            revert,
            doc("Take the set back: at once in the confirm window (200), else by staging the inverse (201)")
                .answers::<ChangeView>(201)
                .also_answers::<ChangeSet>(200)
                .calls_adapter()
                .switched(),
        )
}

async fn create(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    Json(body): Json<NewSet>,
) -> Result<Response, Error> {
    set::create(&app, &caller, &origin, creation, &body.change_ids).await
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ChangeId>,
) -> Result<One<ChangeSet>, Error> {
    let row = set::find(&app, &caller, id).await?;
    set::shown(&app, row).await.map(One)
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
    let row = set::find(app, caller, id).await?;
    let seen = set::shown(app, row).await?;
    if_match.check(&seen)?;
    Ok(Some(seen.plan.map(|plan| plan.hash).unwrap_or_default()))
}

async fn plan_again(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    if_match: IfMatch,
) -> Result<Answer<ChangeSet>, Error> {
    plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = set::find(&app, &caller, id).await?;
    let row = plan::plan_again(&app, &caller, &origin, row).await?;
    set::shown(&app, row).await.map(Answer)
}

async fn apply_set(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    if_match: IfMatch,
    Json(body): Json<ApplyBody>,
) -> Result<Answer<ChangeSet>, Error> {
    let seen = plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = set::find(&app, &caller, id).await?;
    let row = apply::apply(&app, &caller, &origin, row, body.into_request(seen)?).await?;
    set::shown(&app, row).await.map(Answer)
}

async fn confirm(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
) -> Result<Answer<ChangeSet>, Error> {
    let row = set::find(&app, &caller, id).await?;
    let row = window::confirm(&app, &caller, &origin, row).await?;
    set::shown(&app, row).await.map(Answer)
}

async fn extend(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    Json(body): Json<ExtendBody>,
) -> Result<Answer<ChangeSet>, Error> {
    let row = set::find(&app, &caller, id).await?;
    let row = window::extend(&app, &caller, &origin, row, body.secs).await?;
    set::shown(&app, row).await.map(Answer)
}

async fn verify(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
) -> Result<Answer<ChangeSet>, Error> {
    let row = set::find(&app, &caller, id).await?;
    let (row, _) = settle::verify(&app, &caller, &origin, row).await?;
    set::shown(&app, row).await.map(Answer)
}

async fn discard(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    Params(query): Params<DiscardQuery>,
    if_match: IfMatch,
) -> Result<Answer<ChangeSet>, Error> {
    plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = set::find(&app, &caller, id).await?;
    let how = (query.force.unwrap_or(false), query.keep_changes.unwrap_or(false));
    let row = set::discard(&app, &caller, &origin, row, how).await?;
    set::shown(&app, row).await.map(Answer)
}

async fn revert(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    At(id): At<ChangeId>,
) -> Result<Response, Error> {
    let row = set::find(&app, &caller, id).await?;
    match revert::revert(&app, &caller, &origin, creation, row).await? {
        revert::Reverted::Staged(response) => Ok(response),
        revert::Reverted::TakenBack(row) => Ok(Answer(set::shown(&app, *row).await?).into_response()),
    }
}
