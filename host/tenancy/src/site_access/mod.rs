//! Which users of an organization may access which of its sites.
//!
//! A user without grants accesses every site: the first grant narrows the access, and the removal of the last one
//! widens it. The meaning of a level is not decided here.

mod bulk;
mod refusal;

use axum::Json as Answer;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use heddle_core::event::NewEvent;
use heddle_core::page::Page;
use heddle_core::{OrgId, Role, SiteId, SiteLevel, UserId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::grants::{self, GrantFilter, NewGrant, SiteAccess};
use heddle_store::object::Object as _;
use heddle_store::{Organization, Scope, Tx, User, events, sites};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::bulk::{BulkBody, BulkResult};
use self::refusal::Refusal;
use crate::declarations::{ACCESS_WIDENED, USER_READ, USER_WRITE};

/// One grant to make.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewSiteAccess")]
struct GrantBody {
    /// A user whose role is below the caller's.
    user_id: UserId,
    site_id: SiteId,
    level: SiteLevel,
}

list_query! {
    struct ListQuery of SiteAccess {
        user_id: Option<UserId>,
        site_id: Option<SiteId>,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevokeQuery {
    /// True permits the removal of the user's last grant, which opens every site to the user.
    widen: Option<bool>,
}

/// Path parameters. A malformed id is 400 on these routes, where it is 422 elsewhere.
#[derive(Debug)]
struct Segments<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<SharedApp> for Segments<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Error> {
        let refused = |_| Error::BadRequest {
            kind: "invalid_uuid",
            message: "path holds an id that is not a UUID".to_owned(),
        };
        At::<T>::from_request_parts(parts, app).await.map(|At(value)| Self(value)).map_err(refused)
    }
}

/// As clients see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct View(SiteAccess);

impl Tagged for View {
    fn tag(&self) -> Result<Tag, Error> {
        // The names of the user and the site are edited by other routes.
        Tag::of_shown(&self.0, &["username", "site_name", "site_deleted_at"])
    }
}

pub(super) fn routes() -> Routes {
    let all = "/organizations/{organization_id}/site-access";
    let one = format!("{all}/{{user_id}}/{{site_id}}");
    let read = Access::Permission(USER_READ);
    let write = Access::RoleWith(Role::OrgAdmin, USER_WRITE);
    Routes::default()
        .get(
            all,
            read,
            list,
            doc("Grants of sites. A user without one accesses every site")
                .named("list_site_access")
                .query::<ListQuery>()
                .answers::<Page<SiteAccess>>(200),
        )
        .post(
            all,
            write,
            grant,
            doc("Grant a site to a user, who then accesses granted sites only; 200 where there was a grant")
                .named("grant_site_access")
                .body::<GrantBody>()
                .answers::<SiteAccess>(201)
                .also_answers::<SiteAccess>(200),
        )
        .post(
            &format!("{all}/bulk"),
            write,
            bulk::grant_all,
            doc("Grant many sites; each item by itself")
                .named("grant_site_access_in_bulk")
                .body::<BulkBody>()
                .answers::<BulkResult>(200),
        )
        .get(&one, read, get, doc("One grant").named("get_site_access").answers::<SiteAccess>(200))
        .delete(
            &one,
            write,
            revoke,
            doc("Take a grant away; the last one of a user only with `widen=true`")
                .named("revoke_site_access")
                .query::<RevokeQuery>()
                .empty(204),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Segments(org): Segments<OrgId>,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<SiteAccess>>, Error> {
    let Listing { page, order, .. } = query.listing()?;
    let filter = GrantFilter { user_id: query.user_id, site_id: query.site_id };
    let mut tx = app.db.read().await?;
    let scope = scope_of(&mut tx, &caller, org).await?;
    let (items, total) = grants::page(&mut tx, &scope, &filter, order).await?;
    Ok(Answer(page.of(items, total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    Segments((org, user, site)): Segments<(OrgId, UserId, SiteId)>,
) -> Result<One<View>, Error> {
    let mut tx = app.db.read().await?;
    let scope = scope_of(&mut tx, &caller, org).await?;
    found(&mut tx, &scope, user, site).await.map(|granted| One(View(granted)))
}

/// Returns the scope of the organization's rows that the caller may see.
async fn scope_of(tx: &mut Tx, caller: &Caller, org: OrgId) -> Result<Scope, Error> {
    let found = Organization::find(tx, &caller.scope(), org).await?;
    found.ok_or(Error::NotFound("organization"))?;
    Ok(Scope { org: Some(org), sites: caller.sites.clone() })
}

async fn found(tx: &mut Tx, scope: &Scope, user: UserId, site: SiteId) -> Result<SiteAccess, Error> {
    grants::find(tx, scope, user, site).await?.ok_or(Error::NotFound("site access"))
}

/// Locks the grants of the whole organization until the transaction ends.
///
/// So of two requests that remove a user's last two grants, the second sees the first.
async fn locked(tx: &mut Tx, caller: &Caller, org: OrgId) -> Result<Scope, Error> {
    caller.require_all_sites()?;
    let found = Organization::lock(tx, &caller.scope(), org).await?;
    found.ok_or(Error::NotFound("organization"))?;
    Ok(Scope::organization(org))
}

async fn grant(
    by: By,
    creation: Creation,
    Segments(org): Segments<OrgId>,
    Json(body): Json<GrantBody>,
) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    let mut tx = app.db.write().await?;
    let scope = locked(&mut tx, caller, org).await?;
    let user = User::find(&mut tx, &scope, body.user_id).await?;
    let is_site = !sites::visible(&mut tx, &scope, &[body.site_id]).await?.is_empty();
    refusal::judge(caller, &body, user.as_ref(), is_site).map_err(Refusal::into_error)?;
    let before = grants::find(&mut tx, &scope, body.user_id, body.site_id).await?;
    grants::upsert(&mut tx, &[body.by(caller, app)]).await?;
    let granted = found(&mut tx, &scope, body.user_id, body.site_id).await?;
    let action = if before.is_some() { "site_access.updated" } else { "site_access.granted" };
    let detail = json!({ "site_id": granted.site_id, "level": granted.level, "level_before": before.as_ref().map(|b| b.level) });
    entry::record(&mut tx, app, origin, audit_entry(caller, &granted, action, detail)).await?;
    if before.is_some() {
        tx.commit().await?;
        return Ok(One(View(granted)).into_response());
    }
    let path = format!("/organizations/{org}/site-access/{}/{}", granted.user_id, granted.site_id);
    creation.finish(tx, app, &path, &View(granted)).await
}

async fn revoke(
    by: By,
    Segments((org, user, site)): Segments<(OrgId, UserId, SiteId)>,
    Params(query): Params<RevokeQuery>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    let By { app, caller, origin } = &by;
    let mut tx = app.db.write().await?;
    let scope = locked(&mut tx, caller, org).await?;
    let granted = View(found(&mut tx, &scope, user, site).await?);
    let holder = User::find(&mut tx, &scope, user).await?.ok_or(Error::NotFound("site access"))?;
    refusal::judge_user(caller, &holder).map_err(Refusal::into_error)?;
    if_match.check(&granted)?;
    let View(granted) = granted;
    let widens = grants::count(&mut tx, user).await? == 1;
    if widens && query.widen != Some(true) {
        return Err(Error::Conflict {
            kind: "would_widen",
            message: format!(
                "this is the last grant of user '{}', who would then access every site: send 'widen=true' if that is meant",
                granted.username
            ),
        });
    }
    grants::revoke(&mut tx, user, site).await?;
    let detail = json!({ "site_id": site, "level": granted.level, "widened": widens });
    entry::record(&mut tx, app, origin, audit_entry(caller, &granted, "site_access.revoked", detail)).await?;
    if widens {
        tell_widened(&mut tx, app, caller, &granted).await?;
    }
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Notifies subscribers of security events that a user now accesses every site.
async fn tell_widened(tx: &mut Tx, app: &App, caller: &Caller, last: &SiteAccess) -> Result<(), Error> {
    let event = NewEvent::of(
        ACCESS_WIDENED,
        last.org_id,
        json!({
            "user_id": last.user_id,
            "username": last.username,
            "site_id": last.site_id,
            "actor_id": caller.user_id,
        }),
    );
    events::append(tx, &event, &app.clock).await?;
    Ok(())
}

impl GrantBody {
    fn by(self, caller: &Caller, app: &App) -> NewGrant {
        NewGrant {
            user_id: self.user_id,
            site_id: self.site_id,
            level: self.level,
            granted_by: caller.user_id,
            now: app.clock.now(),
        }
    }
}

fn audit_entry<'a>(
    caller: &'a Caller,
    granted: &SiteAccess,
    action: &'static str,
    detail: Value,
) -> NewEntry<'a> {
    NewEntry {
        org: granted.org_id,
        actor: caller.actor(),
        action,
        target: ("user", granted.user_id.0),
        detail,
    }
}
