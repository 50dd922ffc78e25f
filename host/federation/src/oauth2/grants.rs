//! The grants of a user to apps, and how the user ends them.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::page::Page;
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{Caller, app_token};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged, UNEDITED};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::oauth2::{self, Grant, OauthGrantId};
use schemars::JsonSchema;
use serde::Serialize;
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

list_query! {
    struct ListQuery of Grant {}
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
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<View>>, Error> {
    let Listing { page, order, .. } = query.listing()?;
    let mut tx = app.db.read().await?;
    let (items, total) = oauth2::list_own(&mut tx, caller.user_id, app.clock.now(), order).await?;
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

async fn revoke(by: By, At(id): At<OauthGrantId>, if_match: IfMatch) -> Result<StatusCode, Error> {
    let By { app, caller, origin } = &by;
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
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
