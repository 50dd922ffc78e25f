//! What clients do to a change and to a set of changes in the same way: plan again, apply, confirm, extend, cancel, take
//! back.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use heddle_core::ChangeId;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::apply::{ApplyRequest, CONFIRM_SECS};
use super::revert::Reverted;

/// Hex digits of a plan's hash.
const PLAN_HASH_CHARS_MAX: usize = 64;

/// Changes, or sets of changes, as a unit struct: what their routes find, show and do.
#[async_trait::async_trait]
pub trait Acts: Send + Sync + 'static {
    /// Where one of them is, below the prefix.
    const ONE: &'static str;
    type Row: Send;
    type View: Serialize + JsonSchema + Tagged + Send;
    /// What is staged to take one back.
    type Inverse: Serialize + JsonSchema;

    /// The row, if the caller may see it.
    async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<Self::Row, Error>;

    /// The row as clients see it.
    async fn shown(app: &App, row: Self::Row) -> Result<Self::View, Error>;

    /// The hash of the plan that a client saw.
    fn plan_hash(seen: Self::View) -> Option<String>;

    async fn plan(by: &By, row: Self::Row) -> Result<Self::Row, Error>;

    async fn apply(by: &By, row: Self::Row, request: ApplyRequest) -> Result<Self::Row, Error>;

    async fn confirm(by: &By, row: Self::Row) -> Result<Self::Row, Error>;

    /// Gives the window so many seconds more.
    async fn extend(by: &By, row: Self::Row, secs: u32) -> Result<Self::Row, Error>;

    async fn cancel(by: &By, row: Self::Row) -> Result<Self::Row, Error>;

    async fn revert(by: &By, creation: Creation, row: Self::Row) -> Result<Reverted<Self::Row>, Error>;
}

/// What the document says of each act.
pub struct Summaries {
    pub plan: &'static str,
    pub apply: &'static str,
    pub confirm: &'static str,
    pub extend: &'static str,
    pub cancel: &'static str,
    pub revert: &'static str,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
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
    fn into_request(self, seen: Option<String>) -> Result<ApplyRequest, Error> {
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
struct ExtendBody {
    /// Seconds to add to the window, which may be 600 s long in total.
    #[schemars(range(min = 1, max = 600))]
    secs: u32,
}

/// The routes of the acts.
pub fn routes<P: Acts>(say: Summaries) -> Routes {
    let act = |verb: &str| format!("{}/{verb}", P::ONE);
    Routes::default()
        .post(
            &act("plan"),
            Access::ByFeature,
            plan_again::<P>,
            doc(say.plan).answers::<P::View>(200).calls_adapter().as_seen(),
        )
        .post(
            &act("apply"),
            Access::ByFeature,
            apply::<P>,
            doc(say.apply).body::<ApplyBody>().answers::<P::View>(200).calls_adapter().switched().as_seen(),
        )
        .post(
            &act("confirm"),
            Access::ByFeature,
            confirm::<P>,
            doc(say.confirm).answers::<P::View>(200).calls_adapter(),
        )
        .post(
            &act("extend"),
            Access::ByFeature,
            extend::<P>,
            doc(say.extend).body::<ExtendBody>().answers::<P::View>(200),
        )
        .post(
            &act("cancel"),
            Access::ByFeature,
            cancel::<P>,
            doc(say.cancel).answers::<P::View>(202).switched(),
        )
        .post(
            &act("revert"),
            Access::ByFeature,
            revert::<P>,
            doc(say.revert)
                .answers::<P::Inverse>(201)
                .also_answers::<P::View>(200)
                .calls_adapter()
                .switched(),
        )
}

pub async fn get<P: Acts>(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ChangeId>,
) -> Result<One<P::View>, Error> {
    let row = P::find(&app, &caller, id).await?;
    P::shown(&app, row).await.map(One)
}

/// Returns the hash of the plan that the client saw, where `If-Match` names the state; 412 when the client saw another
/// state.
pub async fn plan_as_seen<P: Acts>(
    by: &By,
    id: ChangeId,
    if_match: &IfMatch,
) -> Result<Option<String>, Error> {
    if !if_match.is_given() {
        return Ok(None);
    }
    let row = P::find(&by.app, &by.caller, id).await?;
    let seen = P::shown(&by.app, row).await?;
    if_match.check(&seen)?;
    // A client that saw no plan did not see a plan that was made since.
    Ok(Some(P::plan_hash(seen).unwrap_or_default()))
}

async fn plan_again<P: Acts>(
    by: By,
    At(id): At<ChangeId>,
    if_match: IfMatch,
) -> Result<Answer<P::View>, Error> {
    let By { app, caller, .. } = &by;
    plan_as_seen::<P>(&by, id, &if_match).await?;
    let row = P::find(app, caller, id).await?;
    let row = P::plan(&by, row).await?;
    P::shown(app, row).await.map(Answer)
}

async fn apply<P: Acts>(
    by: By,
    At(id): At<ChangeId>,
    if_match: IfMatch,
    Json(body): Json<ApplyBody>,
) -> Result<Answer<P::View>, Error> {
    let By { app, caller, .. } = &by;
    // The hash protects the state that the entity tag named until the apply has begun, even if the change is planned
    // again meanwhile.
    let seen = plan_as_seen::<P>(&by, id, &if_match).await?;
    let row = P::find(app, caller, id).await?;
    let row = P::apply(&by, row, body.into_request(seen)?).await?;
    P::shown(app, row).await.map(Answer)
}

async fn confirm<P: Acts>(by: By, At(id): At<ChangeId>) -> Result<Answer<P::View>, Error> {
    let By { app, caller, .. } = &by;
    let row = P::find(app, caller, id).await?;
    let row = P::confirm(&by, row).await?;
    P::shown(app, row).await.map(Answer)
}

async fn extend<P: Acts>(
    by: By,
    At(id): At<ChangeId>,
    Json(body): Json<ExtendBody>,
) -> Result<Answer<P::View>, Error> {
    let By { app, caller, .. } = &by;
    let row = P::find(app, caller, id).await?;
    let row = P::extend(&by, row, body.secs).await?;
    P::shown(app, row).await.map(Answer)
}

async fn cancel<P: Acts>(by: By, At(id): At<ChangeId>) -> Result<(StatusCode, Answer<P::View>), Error> {
    let By { app, caller, .. } = &by;
    let row = P::find(app, caller, id).await?;
    let row = P::cancel(&by, row).await?;
    Ok((StatusCode::ACCEPTED, Answer(P::shown(app, row).await?)))
}

async fn revert<P: Acts>(by: By, creation: Creation, At(id): At<ChangeId>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    let row = P::find(app, caller, id).await?;
    match P::revert(&by, creation, row).await? {
        Reverted::Staged(response) => Ok(response),
        Reverted::TakenBack(row) => Ok(Answer(P::shown(app, *row).await?).into_response()),
    }
}
