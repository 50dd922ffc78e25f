//! Sets of changes, of one controller or over several: created, reviewed, applied, confirmed and taken back as one. What a
//! request does depends on which kind of set its id names.

use axum::Json as Answer;
use axum::response::Response;
use heddle_changes::acts::{self, Acts, Summaries};
use heddle_changes::apply::{self, ApplyRequest};
use heddle_changes::revert::{self, Reverted};
use heddle_changes::{cancel, parts, plan, settle, window};
use heddle_core::ChangeId;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
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

use crate::form::{self, MEMBERS};
use crate::leave::{self, Discard};
use crate::saga::{self, Saga};
use crate::view::{AnySet, Inverse};
use crate::{moves, one, view};

/// Most characters of the reason why a set is given up.
const REASON_CHARS_MAX: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSet {
    /// From 2 to 50 pending changes. Those of one controller are planned and sent together, in this order; controllers follow
    /// each other in an order that the topology gives, the far side first.
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
    /// Why it is given up, at most 500 characters. Needed where a set is in effect at some controllers and not at others.
    #[schemars(length(max = REASON_CHARS_MAX))]
    reason: Option<String>,
}

/// A set of either kind.
pub(crate) enum AnyRow {
    OfOne(Box<ChangeRow>),
    OfSeveral(Box<Saga>),
}

impl From<ChangeRow> for AnyRow {
    fn from(row: ChangeRow) -> Self {
        AnyRow::OfOne(Box::new(row))
    }
}

impl From<Saga> for AnyRow {
    fn from(saga: Saga) -> Self {
        AnyRow::OfSeveral(Box::new(saga))
    }
}

/// Sets of changes.
struct Sets;

#[async_trait::async_trait]
impl Acts for Sets {
    const ONE: &'static str = "/gateway-vpn/changes/sets/{set_id}";
    type Row = AnyRow;
    type View = AnySet;
    type Inverse = Inverse;

    async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<AnyRow, Error> {
        // A part of a set over several controllers is reached through that one only.
        let row = apply::find_row(app, caller, id).await?;
        if let Some(row) = row.filter(|row| row.is_set && row.saga_id.is_none()) {
            return Ok(row.into());
        }
        let saga = saga::find(app, caller, id).await?;
        saga.map(AnyRow::from).ok_or(Error::NotFound("change set"))
    }

    async fn shown(app: &App, row: AnyRow) -> Result<AnySet, Error> {
        Ok(match row {
            AnyRow::OfOne(row) => AnySet::OfOne(Box::new(one::shown(app, *row).await?)),
            AnyRow::OfSeveral(saga) => AnySet::OfSeveral(Box::new(view::shown(app, *saga).await?)),
        })
    }

    fn plan_hash(seen: AnySet) -> Option<String> {
        seen.plan_hash()
    }

    async fn plan(by: &By, row: AnyRow) -> Result<AnyRow, Error> {
        match row {
            AnyRow::OfOne(row) => {
                Box::pin(plan::plan_again(&by.app, &by.caller, &by.origin, *row)).await.map(AnyRow::from)
            }
            AnyRow::OfSeveral(saga) => moves::plan(by, *saga).await.map(AnyRow::from),
        }
    }

    async fn apply(by: &By, row: AnyRow, request: ApplyRequest) -> Result<AnyRow, Error> {
        match row {
            AnyRow::OfOne(row) => {
                apply::apply(&by.app, &by.caller, &by.origin, *row, request).await.map(AnyRow::from)
            }
            AnyRow::OfSeveral(saga) => moves::apply(by, *saga, request).await.map(AnyRow::from),
        }
    }

    async fn confirm(by: &By, row: AnyRow) -> Result<AnyRow, Error> {
        match row {
            AnyRow::OfOne(row) => window::confirm(by, *row).await.map(AnyRow::from),
            AnyRow::OfSeveral(saga) => moves::confirm(by, *saga).await.map(AnyRow::from),
        }
    }

    async fn extend(by: &By, row: AnyRow, secs: u32) -> Result<AnyRow, Error> {
        match row {
            AnyRow::OfOne(row) => window::extend(by, *row, secs).await.map(AnyRow::from),
            AnyRow::OfSeveral(saga) => moves::extend(by, *saga, secs).await.map(AnyRow::from),
        }
    }

    async fn cancel(by: &By, row: AnyRow) -> Result<AnyRow, Error> {
        match row {
            AnyRow::OfOne(row) => cancel::cancel(by, *row).await.map(AnyRow::from),
            AnyRow::OfSeveral(saga) => moves::cancel(by, *saga).await.map(AnyRow::from),
        }
    }

    async fn revert(by: &By, creation: Creation, row: AnyRow) -> Result<Reverted<AnyRow>, Error> {
        let saga = match row {
            AnyRow::OfOne(row) => {
                return Ok(match Box::pin(revert::revert(by, creation, *row)).await? {
                    Reverted::TakenBack(row) => Reverted::TakenBack(Box::new(AnyRow::OfOne(row))),
                    Reverted::Staged(response) => Reverted::Staged(response),
                });
            }
            AnyRow::OfSeveral(saga) => *saga,
        };
        match Box::pin(moves::revert(by, saga)).await? {
            moves::Reverted::TakenBack(saga) => Ok(Reverted::TakenBack(Box::new(AnyRow::OfSeveral(saga)))),
            moves::Reverted::Staged(staged) => {
                let (mut tx, saga) = *staged;
                let path = format!("/gateway-vpn/changes/sets/{}", saga.row.id);
                let shown = AnySet::OfSeveral(Box::new(view::shown_in(&mut tx, saga).await?));
                creation.finish(tx, &by.app, &path, &shown).await.map(Reverted::Staged)
            }
        }
    }
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post(
            "/gateway-vpn/changes/sets",
            Access::ByFeature,
            create,
            doc("Make a set of pending changes, of one controller or of several, and plan it")
                .body::<NewSet>()
                .answers::<AnySet>(201)
                .calls_adapter(),
        )
        .get(
            Sets::ONE,
            Access::Permission(CONTROLLER_READ),
            acts::get::<Sets>,
            doc("One set of changes").answers::<AnySet>(200).tagged(),
        )
        .merge(acts::routes::<Sets>(Summaries {
            plan: "Plan the set again",
            apply: "Apply the set to the live devices; where one controller fails, the others are taken back",
            confirm: "Confirm the set in time",
            extend: "Give the set's confirm window more time",
            cancel: "End the job of the set that runs at a device; the outcome shows what came of it",
            revert: "Take the set back: at once while it is not in effect for good (200), else by staging the inverse (201)",
        }))
        .post(
            &format!("{}/verify", Sets::ONE),
            Access::ByFeature,
            verify,
            doc("Read the devices back and settle the set").answers::<AnySet>(200).calls_adapter(),
        )
        .post(
            &format!("{}/discard", Sets::ONE),
            Access::ByFeature,
            discard,
            doc("Give the set up").query::<DiscardQuery>().answers::<AnySet>(200).as_seen(),
        )
}

async fn create(by: By, creation: Creation, Json(body): Json<NewSet>) -> Result<Response, Error> {
    form::create(&by, creation, &body.change_ids).await
}

async fn verify(by: By, At(id): At<ChangeId>) -> Result<Answer<AnySet>, Error> {
    let By { app, caller, origin } = &by;
    let row: AnyRow = match Sets::find(app, caller, id).await? {
        AnyRow::OfOne(row) => settle::verify(app, caller, origin, *row).await?.0.into(),
        AnyRow::OfSeveral(saga) => Box::pin(moves::verify(&by, *saga)).await?.into(),
    };
    Sets::shown(app, row).await.map(Answer)
}

async fn discard(
    by: By,
    At(id): At<ChangeId>,
    Params(query): Params<DiscardQuery>,
    if_match: IfMatch,
) -> Result<Answer<AnySet>, Error> {
    let app = &by.app;
    refuse_longer("reason", query.reason.as_deref().unwrap_or_default(), REASON_CHARS_MAX)?;
    acts::plan_as_seen::<Sets>(&by, id, &if_match).await?;
    let how = Discard {
        force: query.force.unwrap_or(false),
        keep_changes: query.keep_changes.unwrap_or(false),
        reason: query.reason,
    };
    let row = discard_as(&by, id, how).await?;
    Sets::shown(app, row).await.map(Answer)
}

async fn discard_as(by: &By, id: ChangeId, how: Discard) -> Result<AnyRow, Error> {
    let By { app, caller, origin } = by;
    Ok(match Sets::find(app, caller, id).await? {
        AnyRow::OfOne(_) if how.reason.is_some() => {
            return Err(Error::field(
                "reason",
                "only a set over several controllers keeps a reason; leave it out",
            ));
        }
        AnyRow::OfOne(row) if how.keep_changes => parts::dissolve(by, *row).await?.into(),
        AnyRow::OfOne(row) => settle::discard(app, caller, origin, *row, how.force).await?.into(),
        AnyRow::OfSeveral(saga) => leave::discard(by, *saga, how).await?.into(),
    })
}

/// Discards a set that a rule of a room above has made, and that is not applied, with its changes.
///
/// # Errors
/// As for a request of a client.
pub async fn give_up(by: &By, id: ChangeId) -> Result<(), Error> {
    let how = Discard { force: false, keep_changes: false, reason: None };
    discard_as(by, id, how).await.map(drop)
}
