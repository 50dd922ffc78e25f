//! The grants of a user to apps, and how the user ends them.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::OauthGrantId;
use heddle_core::page::Page;
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{Caller, app_token};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged, UNEDITED};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Origin, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::oauth2::{self, Grant};
use heddle_store::{InOrder, Sort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{FOR_APPS, mark};

const NOT_FOUND: Error = Error::NotFound("grant");

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OAuth2GrantView")]
struct View {
    #[serde(flatten)]
    grant: Grant,
    /// Begins every access token of the grant, so that the finder of a leaked token can end the grant.
    token_prefix: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<Grant>>,
}

impl Tagged for View {
    fn tag(&self) -> Result<Tag, Error> {
        Ok(Tag::of(self.grant.id, UNEDITED))
    }
}

impl From<Grant> for View {
    fn from(grant: Grant) -> Self {
        let token_prefix = format!("{}_{}", app_token::MARK, mark(grant.id.0));
        Self { grant, token_prefix }
    }
}

pub(super) fn routes() -> Routes {
    let (all, one) = ("/oauth2/grants", "/oauth2/grants/{grant_id}");
    let access = Access::Authenticated(FOR_APPS);
    Routes::default()
        .get(
            all,
            access,
            list,
            doc("What the caller allowed apps, newest first").query::<ListQuery>().answers::<Page<View>>(200),
        )
        .get(one, access, get, doc("One thing that the caller allowed an app").answers::<View>(200).tagged())
        .delete(
            one,
            access,
            revoke,
            doc("End what the caller allowed an app, with all its tokens").empty(204),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<View>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let mut tx = app.db.read().await?;
    let (items, total) =
        oauth2::list_own(&mut tx, caller.user_id, app.clock.now(), InOrder::by(page, query.sort)).await?;
    Ok(Answer(page.of(items.into_iter().map(View::from).collect(), total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<OauthGrantId>,
) -> Result<One<View>, Error> {
    let mut tx = app.db.single().await?;
    let grant = oauth2::find_own(&mut tx, caller.user_id, id, app.clock.now()).await?;
    grant.map(|grant| One(grant.into())).ok_or(NOT_FOUND)
}

async fn revoke(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<OauthGrantId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    caller.session()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let grant = oauth2::lock_own(&mut tx, caller.user_id, id, now).await?.ok_or(NOT_FOUND)?;
    let detail = json!({ "app_id": grant.app_id, "app_name": grant.app_name, "by": "user" });
    if_match.check(&View::from(grant))?;
    oauth2::revoke(&mut tx, id, now).await?;
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action: "oauth2_grant.revoked",
        target: ("oauth2_grant", id.0),
        detail,
    };
    entry::record(&mut tx, &app, &origin, entry).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
