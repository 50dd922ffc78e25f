//! Registration of apps, by users of the organization that the apps are for.
//!
//! A secret is shown once, when it is made, and only its hash is stored. A removed app does not come back, so that the
//! end of its grants is certain.

use std::collections::BTreeSet;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::oauth2::ClientType;
use heddle_core::page::Page;
use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::secret::{Secret, random_secret};
use heddle_core::{OauthAppId, Role, UserId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{Caller, hold_caller};
use heddle_kernel::checks::{
    Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SCOPE_CHARS_MAX, SCOPES_MAX, search,
};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::keyed_hash;
use heddle_store::oauth2::{self, AppUpdate, NewApp, OauthApp};
use heddle_store::{InOrder, Scope, SiteScope, Sort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::redirect::URI_CHARS_MAX;
use super::{FOR_APPS, mark, redirect};

/// Prefix of every secret of an app.
const SECRET_MARK: &str = "hds";
/// Most apps of one user.
const APPS_MAX: i64 = 50;
const REDIRECT_URIS_MAX: usize = 10;

const NOT_FOUND: Error = Error::NotFound("app");

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewOAuth2App")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Up to 2000 characters. The consent page shows it to users.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    client_type: ClientType,
    /// 1 to 10, compared character for character: `https`, or `http` for 127.0.0.1, `[::1]` and localhost; public
    /// apps may also have a scheme of their own with a dot in it.
    #[schemars(length(min = 1, max = REDIRECT_URIS_MAX), inner(length(min = 1, max = URI_CHARS_MAX)))]
    redirect_uris: Vec<String>,
    /// The most that the app can be allowed: 1 to 32 permissions such as `device:read`, or `device:*`.
    #[schemars(length(min = 1, max = SCOPES_MAX), inner(length(max = SCOPE_CHARS_MAX)))]
    scopes: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OAuth2AppUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = DESCRIPTION_CHARS_MAX), extend("x-nullable" = true))]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = REDIRECT_URIS_MAX), inner(length(min = 1, max = URI_CHARS_MAX)))]
    redirect_uris: Option<Vec<String>>,
    /// Existing grants shrink with it at once.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = SCOPES_MAX), inner(length(max = SCOPE_CHARS_MAX)))]
    scopes: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    /// Part of the name or the description.
    search: Option<String>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<OauthApp>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OAuth2AppWithSecret")]
struct WithSecret {
    #[serde(flatten)]
    app: OauthApp,
    /// It is shown this once: a replay under the same `Idempotency-Key` answers without it. Public apps have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
}

impl Tagged for WithSecret {
    fn tag(&self) -> Result<Tag, Error> {
        self.app.tag()
    }
}

pub(super) fn routes() -> Routes {
    let (all, one) = ("/oauth2/apps", "/oauth2/apps/{app_id}");
    let access = Access::Authenticated(FOR_APPS);
    Routes::default()
        .get(
            all,
            access,
            list,
            doc("The caller's apps; for org_admin all of the organization")
                .query::<ListQuery>()
                .answers::<Page<OauthApp>>(200),
        )
        .post(
            all,
            access,
            create,
            doc("Register an app; its secret is in this answer only")
                .body::<NewBody>()
                .answers::<WithSecret>(201),
        )
        .get(one, access, get, doc("One app").answers::<OauthApp>(200))
        .patch(one, access, update, doc("Change an app").body::<UpdateBody>().answers::<OauthApp>(200))
        .delete(one, access, remove, doc("Remove an app for good, with all that it was allowed").empty(204))
        .post(
            "/oauth2/apps/{app_id}/secret",
            access,
            rotate_secret,
            doc("Make an app's secret anew; the one before is worthless at once")
                .named("rotate_app_secret")
                .answers::<WithSecret>(200),
        )
}

/// Returns the apps that the caller manages: their own, or all apps of the organizations that they administer as a
/// whole.
fn managed(caller: &Caller) -> (Scope, Option<UserId>) {
    if caller.require_unscoped_role(Role::OrgAdmin).is_ok() && caller.require_all_sites().is_ok() {
        return (Scope { org: caller.scope().org, sites: SiteScope::All }, None);
    }
    (Scope::organization(caller.org_id), Some(caller.user_id))
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<OauthApp>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let search = search(query.search)?;
    let (scope, owner) = managed(&caller);
    let mut tx = app.db.read().await?;
    let (items, total) =
        oauth2::list(&mut tx, &scope, owner, search.as_deref(), InOrder::by(page, query.sort)).await?;
    Ok(Answer(page.of(items, total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<OauthAppId>,
) -> Result<One<OauthApp>, Error> {
    let (scope, owner) = managed(&caller);
    let mut tx = app.db.single().await?;
    oauth2::find(&mut tx, &scope, owner, id).await?.map(One).ok_or(NOT_FOUND)
}

async fn create(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    Json(body): Json<NewBody>,
) -> Result<Response, Error> {
    caller.session()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.description(body.description.as_deref());
    check_redirect_uris(&mut checks, &body.redirect_uris, body.client_type);
    check_scopes(&mut checks, &app.declared.permissions, &body.scopes);
    checks.done()?;
    may_hand_on(&caller, &app.declared.permissions, &body.scopes)?;
    let id: OauthAppId = app.clock.new_id();
    let secret = (body.client_type == ClientType::Confidential).then(|| new_secret(id));
    let mut tx = app.db.write().await?;
    // Concurrent registrations of one user are serialized here, so each sees the count of the one before.
    hold_caller(&mut tx, &app, &caller).await?;
    if oauth2::count_of(&mut tx, caller.user_id).await? >= APPS_MAX {
        return Err(Error::Conflict {
            kind: "limit_reached",
            message: format!("you have {APPS_MAX} apps already: remove one first"),
        });
    }
    let new = NewApp {
        id,
        org_id: caller.org_id,
        owner_id: caller.user_id,
        name,
        description: body.description,
        client_type: body.client_type,
        secret_hash: secret.as_ref().map(|secret| keyed_hash(&app.keys.app_secret_key(), secret)),
        redirect_uris: body.redirect_uris,
        scopes: body.scopes,
        now: app.clock.now(),
    };
    let made = oauth2::insert(&mut tx, &new).await?;
    let detail = json!({ "name": made.name, "client_type": made.client_type,
        "redirect_uris": made.redirect_uris, "scopes": made.scopes });
    entry::record(&mut tx, &app, &origin, audit_entry(&caller, &made, "oauth2_app.created", detail)).await?;
    creation.finish(tx, &app, &format!("/oauth2/apps/{id}"), &with_secret(made, secret)).await
}

fn with_secret(app: OauthApp, secret: Option<Secret>) -> WithSecret {
    WithSecret { app, client_secret: secret.map(|secret| secret.expose().to_owned()) }
}

fn new_secret(id: OauthAppId) -> Secret {
    Secret::new(format!("{SECRET_MARK}_{}_{}", mark(id.0), random_secret().expose()))
}

fn check_redirect_uris(checks: &mut Checks, uris: &[String], kind: ClientType) {
    checks.require(
        (1..=REDIRECT_URIS_MAX).contains(&uris.len()),
        "redirect_uris",
        &format!("must have 1 to {REDIRECT_URIS_MAX} entries"),
    );
    let mut seen = BTreeSet::new();
    for (at, uri) in uris.iter().enumerate().take(REDIRECT_URIS_MAX) {
        let field = format!("redirect_uris[{at}]");
        if let Err(message) = redirect::check(uri, kind) {
            checks.require(false, &field, message);
        }
        checks.require(seen.insert(uri), &field, "must not be there twice");
    }
}

fn check_scopes(checks: &mut Checks, all: &Permissions, scopes: &[String]) {
    let fits = (1..=SCOPES_MAX).contains(&scopes.len());
    checks.require(fits, "scopes", &format!("must have 1 to {SCOPES_MAX} entries"));
    for (at, scope) in scopes.iter().enumerate().take(SCOPES_MAX) {
        let field = format!("scopes[{at}]");
        if scope.chars().count() > SCOPE_CHARS_MAX {
            checks.chars(&field, scope, SCOPE_CHARS_MAX);
        } else if let Err(unknown) = KeyScope::parse(scope, all) {
            checks.add(vec![Detail::new(field, unknown.to_string(), "unknown_permission")]);
        } else {
            checks.require(
                scope != "*",
                &field,
                "must name permissions, such as 'device:read' or 'device:*'",
            );
        }
    }
}

/// Refuses scopes that the caller does not hold: only held rights can be handed on.
fn may_hand_on(caller: &Caller, all: &Permissions, scopes: &[String]) -> Result<(), Error> {
    let is_held =
        |scope: &&String| KeyScope::parse(scope, all).is_ok_and(|scope| scope.is_held_by(caller.role));
    match scopes.iter().find(|scope| !is_held(scope)) {
        None => Ok(()),
        Some(scope) => Err(Error::Refused {
            kind: "scope_not_held",
            message: format!("scope '{scope}' goes beyond what your role '{}' holds", caller.role),
        }),
    }
}

async fn update(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<OauthAppId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<OauthApp>, Error> {
    caller.session()?;
    let (scope, owner) = managed(&caller);
    let mut tx = app.db.write().await?;
    hold_caller(&mut tx, &app, &caller).await?;
    let current = oauth2::lock(&mut tx, &scope, owner, id).await?.ok_or(NOT_FOUND)?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    checks.description(body.description.as_ref().and_then(Option::as_deref));
    if let Some(uris) = &body.redirect_uris {
        check_redirect_uris(&mut checks, uris, current.client_type);
    }
    if let Some(scopes) = &body.scopes {
        check_scopes(&mut checks, &app.declared.permissions, scopes);
    }
    checks.done()?;
    if_match.check(&current)?;
    let added = body.scopes.iter().flatten().filter(|scope| !current.scopes.contains(scope));
    may_hand_on(&caller, &app.declared.permissions, &added.cloned().collect::<Vec<_>>())?;
    let change = AppUpdate {
        name,
        description: body.description.into(),
        redirect_uris: body.redirect_uris,
        scopes: body.scopes,
    };
    let updated = oauth2::update(&mut tx, id, &change, app.clock.now()).await?.ok_or(NOT_FOUND)?;
    let detail =
        json!({ "name": updated.name, "redirect_uris": change.redirect_uris, "scopes": change.scopes });
    let detail = entry::with_difference(detail, &current, &updated);
    entry::record(&mut tx, &app, &origin, audit_entry(&caller, &updated, "oauth2_app.updated", detail))
        .await?;
    tx.commit().await?;
    Ok(One(updated))
}

async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<OauthAppId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    caller.session()?;
    let (scope, owner) = managed(&caller);
    let mut tx = app.db.write().await?;
    hold_caller(&mut tx, &app, &caller).await?;
    let current = oauth2::lock(&mut tx, &scope, owner, id).await?.ok_or(NOT_FOUND)?;
    if_match.check(&current)?;
    let ended = oauth2::remove(&mut tx, id, app.clock.now()).await?;
    let detail = json!({ "name": current.name, "grants_ended": ended });
    entry::record(&mut tx, &app, &origin, audit_entry(&caller, &current, "oauth2_app.removed", detail))
        .await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn rotate_secret(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<OauthAppId>,
) -> Result<Answer<WithSecret>, Error> {
    caller.session()?;
    let (scope, owner) = managed(&caller);
    let mut tx = app.db.write().await?;
    hold_caller(&mut tx, &app, &caller).await?;
    let current = oauth2::lock(&mut tx, &scope, owner, id).await?.ok_or(NOT_FOUND)?;
    if current.client_type == ClientType::Public {
        return Err(Error::Conflict {
            kind: "public_app",
            message: "a public app has no secret: it proves itself by the code verifier alone".to_owned(),
        });
    }
    let secret = new_secret(id);
    let hash = keyed_hash(&app.keys.app_secret_key(), &secret);
    let rotated = oauth2::rotate_secret(&mut tx, id, &hash, app.clock.now()).await?.ok_or(NOT_FOUND)?;
    let detail = json!({ "name": rotated.name });
    entry::record(
        &mut tx,
        &app,
        &origin,
        audit_entry(&caller, &rotated, "oauth2_app.secret_rotated", detail),
    )
    .await?;
    tx.commit().await?;
    Ok(Answer(with_secret(rotated, Some(secret))))
}

fn audit_entry<'a>(caller: &'a Caller, made: &OauthApp, action: &'static str, detail: Value) -> NewEntry<'a> {
    NewEntry { org: made.org_id, actor: caller.actor(), action, target: ("oauth2_app", made.id.0), detail }
}
