//! Sets of changes: created, reviewed, applied, confirmed and taken back as one.

use axum::Json as Answer;
use axum::response::Response;
use heddle_core::ChangeId;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::IfMatch;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::ChangeRow;
use schemars::JsonSchema;
use serde::Deserialize;

use super::acts::{self, Planned, Summaries};
use super::set::{self, ChangeSet, MEMBERS};
use super::settle;

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

/// Sets of changes.
struct Sets;

impl Planned for Sets {
    const ONE: &'static str = "/gateway-vpn/changes/sets/{set_id}";
    type View = ChangeSet;

    async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<ChangeRow, Error> {
        set::find(app, caller, id).await
    }

    async fn shown(app: &App, row: ChangeRow) -> Result<ChangeSet, Error> {
        set::shown(app, row).await
    }

    fn plan_hash(seen: ChangeSet) -> Option<String> {
        seen.plan.map(|plan| plan.hash)
    }
}

pub(super) fn routes() -> Routes {
    Routes::default()
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
            Sets::ONE,
            Access::Permission(CONTROLLER_READ),
            acts::get::<Sets>,
            doc("One set of changes").answers::<ChangeSet>(200).tagged(),
        )
        .merge(acts::routes::<Sets>(Summaries {
            plan: "Plan the set again",
            apply: "Apply the set to the live device",
            confirm: "Confirm the set in time",
            extend: "Give the set's confirm window more time",
            cancel: "End the job of the set that runs at the device; the outcome shows what came of it",
            revert: "Take the set back: at once in the confirm window (200), else by staging the inverse (201)",
        }))
        .post(
            &format!("{}/verify", Sets::ONE),
            Access::ByFeature,
            verify,
            doc("Read the device back and settle the set").answers::<ChangeSet>(200).calls_adapter(),
        )
        .post(
            &format!("{}/discard", Sets::ONE),
            Access::ByFeature,
            discard,
            doc("Give the set up").query::<DiscardQuery>().answers::<ChangeSet>(200).as_seen(),
        )
}

async fn create(by: By, creation: Creation, Json(body): Json<NewSet>) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    set::create(app, caller, origin, creation, &body.change_ids).await
}

async fn verify(by: By, At(id): At<ChangeId>) -> Result<Answer<ChangeSet>, Error> {
    let By { app, caller, origin } = &by;
    let row = set::find(app, caller, id).await?;
    let (row, _) = settle::verify(app, caller, origin, row).await?;
    set::shown(app, row).await.map(Answer)
}

async fn discard(
    by: By,
    At(id): At<ChangeId>,
    Params(query): Params<DiscardQuery>,
    if_match: IfMatch,
) -> Result<Answer<ChangeSet>, Error> {
    let By { app, caller, origin } = &by;
    acts::plan_as_seen::<Sets>(&by, id, &if_match).await?;
    let row = set::find(app, caller, id).await?;
    let how = (query.force.unwrap_or(false), query.keep_changes.unwrap_or(false));
    let row = set::discard(app, caller, origin, row, how).await?;
    set::shown(app, row).await.map(Answer)
}
