//! Registration of apps, by users of the organization that the apps are for.
//!
//! A secret is shown once, when it is made, and only its hash is stored. A removed app does not come back, so that the
//! end of its grants is certain.

use std::collections::BTreeSet;

use axum::Json as Answer;
use axum::response::Response;
use heddle_core::oauth2::ClientType;
use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::secret::{Secret, random_secret};
use heddle_core::{Role, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::{Caller, hold_caller};
use heddle_kernel::checks::{Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SCOPE_CHARS_MAX, SCOPES_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::keyed_hash;
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, Verbs, actions};
use heddle_store::oauth2::{self, AppUpdate, NewApp, OauthApp, OauthAppId};
use heddle_store::{Scope, SiteScope, Tx};
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

list_query! {
    /// Part of the name or the description.
    pub(super) struct ListQuery of OauthApp {}
}

/// Apps that users registered. Their users manage them, and administrators of the organization.
pub(super) struct Apps;

impl Resource for Apps {
    type Row = OauthApp;
    const NOUN: &'static str = "app";
    const PATH: &'static str = "/oauth2/apps";
    const ACTIONS: Actions = actions!("oauth2_app");
    type View = OauthApp;

    fn view(app: OauthApp, _: &App) -> Result<OauthApp, Error> {
        Ok(app)
    }

    fn detail(app: &OauthApp) -> Value {
        json!({ "name": app.name, "client_type": app.client_type, "redirect_uris": app.redirect_uris,
            "scopes": app.scopes })
    }

    fn admit(caller: &Caller) -> Result<(), Error> {
        caller.session().map(drop)
    }

    async fn find(tx: &mut Tx, caller: &Caller, id: OauthAppId) -> Result<Option<OauthApp>, Error> {
        let (scope, owner) = managed(caller);
        Ok(oauth2::find(tx, &scope, owner, id).await?)
    }

    async fn lock(tx: &mut Tx, by: &By, id: OauthAppId) -> Result<Option<OauthApp>, Error> {
        let (scope, owner) = managed(&by.caller);
        hold_caller(tx, &by.app, &by.caller).await?;
        Ok(oauth2::lock(tx, &scope, owner, id).await?)
    }

    async fn end_with(app: &OauthApp, tx: &mut Tx, by: &By) -> Result<Value, Error> {
        let ended = oauth2::end_grants(tx, app.id, by.app.clock.now()).await?;
        Ok(json!({ "name": app.name, "grants_ended": ended }))
    }
}

impl Listed for Apps {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, _: ListQuery, asked: Listing<OauthApp>) -> Rows<OauthApp> {
        let (scope, owner) = managed(caller);
        Ok(oauth2::list(tx, &scope, owner, asked.search.as_deref(), asked.order).await?)
    }
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
    let access = Access::Authenticated(FOR_APPS);
    Verbs::<Apps>::of("app_id", access, access)
        .listed("The caller's apps; for org_admin all of the organization")
        .create_as::<NewBody, WithSecret, _, _>(create, "Register an app; its secret is in this answer only")
        .get(resource::get::<Apps>, "One app")
        .update::<UpdateBody, _, _>(update, "Change an app")
        .remove(resource::remove::<Apps>, "Remove an app for good, with all that it was allowed")
        .routes()
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

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.session()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.description(body.description.as_deref());
    check_redirect_uris(&mut checks, &body.redirect_uris, body.client_type);
    check_scopes(&mut checks, &app.declared().permissions, &body.scopes);
    checks.done()?;
    may_hand_on(caller, &app.declared().permissions, &body.scopes)?;
    let id: OauthAppId = app.clock.new_id();
    let secret = (body.client_type == ClientType::Confidential).then(|| new_secret(id));
    let mut tx = app.db.write().await?;
    // Concurrent registrations of one user are serialized here, so each sees the count of the one before.
    hold_caller(&mut tx, app, caller).await?;
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
    let detail = Apps::detail(&made);
    resource::created_as::<Apps, _>(tx, &by, creation, made, detail, |made| with_secret(made, secret)).await
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
    by: By,
    At(id): At<OauthAppId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<OauthApp>, Error> {
    let By { app, caller, .. } = &by;
    caller.session()?;
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Apps>(&mut tx, &by, id, &if_match).await?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    checks.description(body.description.as_ref().and_then(Option::as_deref));
    if let Some(uris) = &body.redirect_uris {
        check_redirect_uris(&mut checks, uris, current.client_type);
    }
    if let Some(scopes) = &body.scopes {
        check_scopes(&mut checks, &app.declared().permissions, scopes);
    }
    checks.done()?;
    let added = body.scopes.iter().flatten().filter(|scope| !current.scopes.contains(scope));
    may_hand_on(caller, &app.declared().permissions, &added.cloned().collect::<Vec<_>>())?;
    let change = AppUpdate {
        name,
        description: body.description.into(),
        redirect_uris: body.redirect_uris,
        scopes: body.scopes,
    };
    let updated = oauth2::update(&mut tx, id, &change, app.clock.now()).await?;
    let name = updated.as_ref().map(|app| app.name.clone());
    let detail = json!({ "name": name, "redirect_uris": change.redirect_uris, "scopes": change.scopes });
    resource::updated::<Apps>(tx, &by, (current, updated), detail).await
}

async fn rotate_secret(by: By, At(id): At<OauthAppId>) -> Result<Answer<WithSecret>, Error> {
    let By { app, caller, .. } = &by;
    caller.session()?;
    let mut tx = app.db.write().await?;
    let current = Apps::lock(&mut tx, &by, id).await?.ok_or(NOT_FOUND)?;
    if current.client_type == ClientType::Public {
        return Err(Error::Conflict {
            kind: "public_app",
            message: "a public app has no secret: it proves itself by the code verifier alone".to_owned(),
        });
    }
    let secret = new_secret(id);
    let hash = keyed_hash(&app.keys.app_secret_key(), &secret);
    let rotated = oauth2::rotate_secret(&mut tx, id, &hash, app.clock.now()).await?.ok_or(NOT_FOUND)?;
    by.record::<Apps>(&mut tx, &rotated, "oauth2_app.secret_rotated", json!({ "name": rotated.name }))
        .await?;
    tx.commit().await?;
    Ok(Answer(with_secret(rotated, Some(secret))))
}
