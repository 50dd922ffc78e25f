//! The `/auth` routes.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use heddle_core::page::Page;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role, Timestamp, UserId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::{Caller, Credential, REVOKED};
use heddle_kernel::checks::{PRESENTED_CHARS_MAX, refuse_long_secret, refuse_longer};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{One, Tag, Tagged};
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::{At, Form, Json, Origin, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_store::grants::{self, SiteGrant};
use heddle_store::object::Object as _;
use heddle_store::sessions::SessionId;
use heddle_store::{Organization, Scope, Session, sessions, users};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admission::{Admission, AdmissionAnswer};
use super::login::LOGIN_CHARS_MAX;
use super::session::{self, Tokens};
use super::{cookies, login};
use crate::declarations::SIGNING_IN;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Login")]
struct LoginBody {
    /// User name or email, in upper or lower case.
    #[schemars(length(max = LOGIN_CHARS_MAX))]
    login: String,
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    password: Secret,
}

/// The only grant that `POST /auth/token` has.
const PASSWORD_GRANT: &str = "password";

/// The form of RFC 6749, section 4.3.2. Other fields that OAuth 2.0 clients send have no effect.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PasswordGrant")]
struct TokenForm {
    /// `password`.
    #[schemars(extend("enum" = [PASSWORD_GRANT]))]
    grant_type: String,
    /// User name or email, in upper or lower case.
    #[schemars(length(max = LOGIN_CHARS_MAX))]
    username: String,
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    password: Secret,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Refresh")]
struct RefreshBody {
    /// The token of the cookie `svc_refresh` when absent.
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    refresh_token: Option<Secret>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OwnOrganization {
    id: OrgId,
    name: String,
    slug: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Profile {
    id: UserId,
    username: String,
    email: String,
    full_name: Option<String>,
    organization_id: OrgId,
    organization: OwnOrganization,
    role: Role,
    /// The effective set; `["*"]` for `super_admin`. Under an API key with scopes, what both allow.
    permissions: Vec<&'static str>,
    /// Empty means every site.
    site_grants: Vec<SiteGrant>,
    is_active: bool,
    token_version: i64,
    mfa_enabled: bool,
    created_at: Timestamp,
}

impl Tagged for Profile {
    fn tag(&self) -> Result<Tag, Error> {
        Tag::of_shown(self, &["token_version"])
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
struct SessionView {
    id: SessionId,
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
    ip: String,
    user_agent: String,
    /// Whether it is the session of this request.
    current: bool,
}

list_query! {
    struct SessionQuery of Session {}
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post(
            "/auth/login",
            Access::Public,
            log_in,
            doc("Log in with a password")
                .named("log_in")
                .body::<LoginBody>()
                .answers::<AdmissionAnswer>(200)
                .checks_credential()
                .limited_as_login()
                .own_proof(),
        )
        .post(
            "/auth/token",
            Access::Public,
            token,
            doc("Log in with the password grant of OAuth 2.0")
                .named("create_token")
                .form::<TokenForm>()
                .answers::<Tokens>(200)
                .checks_credential()
                .limited_as_login()
                .own_proof(),
        )
        .post(
            "/auth/refresh",
            Access::Public,
            refresh,
            doc("Spend a refresh token for a new pair")
                .named("refresh_tokens")
                .body::<RefreshBody>()
                .answers::<Tokens>(200)
                .fails_with(401)
                .own_proof(),
        )
        .post(
            "/auth/logout",
            Access::Authenticated(SIGNING_IN),
            log_out,
            doc("End this session").named("log_out").empty(204).personal().changes_callers(),
        )
        .post(
            "/auth/logout-all",
            Access::Authenticated(SIGNING_IN),
            log_out_all,
            doc("End all own sessions").named("log_out_everywhere").empty(204).personal().changes_callers(),
        )
        .get(
            "/auth/me",
            Access::Member,
            me,
            doc("The caller's profile").named("get_own_profile").answers::<Profile>(200).tagged(),
        )
        .get(
            "/auth/sessions",
            Access::Authenticated(SIGNING_IN),
            list_sessions,
            doc("The caller's active sessions, last used first")
                .query::<SessionQuery>()
                .answers::<Page<SessionView>>(200)
                .personal(),
        )
        .delete(
            "/auth/sessions/{session_id}",
            Access::Authenticated(SIGNING_IN),
            revoke_session,
            doc("End one own session").empty(204).untagged().personal().changes_callers(),
        )
}

async fn log_in(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<LoginBody>,
) -> Result<Response, Error> {
    refuse_longer("login", &body.login, LOGIN_CHARS_MAX)?;
    refuse_long_secret("password", &body.password)?;
    login::login(&app, &origin, &body.login, body.password).await?.respond(&app, &origin)
}

/// Only for accounts without a second factor: the grant has no place to ask for it.
async fn token(
    State(app): State<SharedApp>,
    origin: Origin,
    Form(form): Form<TokenForm>,
) -> Result<Answer<Tokens>, Error> {
    if form.grant_type != PASSWORD_GRANT {
        return Err(Error::BadRequest {
            kind: "unsupported_grant_type",
            message: "grant_type is not accepted: send 'password'".to_owned(),
        });
    }
    refuse_longer("username", &form.username, LOGIN_CHARS_MAX)?;
    refuse_long_secret("password", &form.password)?;
    match login::login(&app, &origin, &form.username, form.password).await? {
        // No cookies: the clients of this grant are not browsers.
        Admission::Session(opened) => Ok(Answer(opened.tokens)),
        Admission::SecondFactor(_) => Err(Error::BadRequest {
            kind: "mfa_required",
            message: "account has a second factor: log in with POST /auth/login".to_owned(),
        }),
    }
}

async fn refresh(
    State(app): State<SharedApp>,
    origin: Origin,
    headers: HeaderMap,
    body: Option<Json<RefreshBody>>,
) -> Result<Response, Error> {
    let given = body.and_then(|Json(body)| body.refresh_token);
    let token = given.or_else(|| cookies::refresh_token(&headers)).ok_or_else(|| {
        Error::Validation(vec![Detail::new("refresh_token", "missing field 'refresh_token'", "missing")])
    })?;
    refuse_long_secret("refresh_token", &token)?;
    let tokens = session::refresh(&app, &origin, &token).await?;
    cookies::set(&app, &origin, &tokens, Answer(&tokens).into_response())
}

async fn log_out(State(app): State<SharedApp>, caller: Caller, origin: Origin) -> Result<Response, Error> {
    session::revoke(&app, &caller, &origin, caller.session()?, "user.logout").await?;
    cookies::clear(&app, &origin, StatusCode::NO_CONTENT.into_response())
}

async fn log_out_all(by: By) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    caller.session()?;
    session::revoke_all(app, caller, origin).await?;
    cookies::clear(app, origin, StatusCode::NO_CONTENT.into_response())
}

async fn me(State(app): State<SharedApp>, caller: Caller) -> Result<One<Profile>, Error> {
    let mut tx = app.db.read().await?;
    let login = users::find_login(&mut tx, caller.user_id).await?.ok_or(REVOKED)?;
    let scope = Scope::organization(caller.org_id);
    let organization = Organization::find(&mut tx, &scope, caller.org_id).await?.ok_or(REVOKED)?;
    let user = login.user;
    Ok(One(Profile {
        id: user.id,
        username: user.username,
        email: user.email,
        full_name: user.full_name,
        organization_id: user.org_id,
        organization: OwnOrganization {
            id: organization.id,
            name: organization.name,
            slug: organization.slug,
        },
        role: user.role,
        permissions: caller.permissions(&app.declared().permissions),
        site_grants: grants::list(&mut tx, caller.user_id).await?,
        is_active: user.is_active,
        token_version: login.token_version,
        mfa_enabled: user.mfa_enabled,
        created_at: user.created_at,
    }))
}

async fn list_sessions(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(mut query): Params<SessionQuery>,
) -> Result<Answer<Page<SessionView>>, Error> {
    let Listing { page, order, .. } = query.listing()?;
    let mut tx = app.db.read().await?;
    let (active, total) = sessions::list_active(&mut tx, caller.user_id, app.clock.now(), order).await?;
    let view = |session: sessions::Session| SessionView {
        id: session.id,
        created_at: session.created_at,
        last_used_at: session.last_used_at,
        expires_at: session.expires_at,
        ip: session.ip,
        user_agent: session.user_agent,
        current: caller.credential == Credential::Session(session.id),
    };
    Ok(Answer(page.of(active.into_iter().map(view).collect(), total)))
}

async fn revoke_session(by: By, At(id): At<SessionId>) -> Result<StatusCode, Error> {
    let By { app, caller, origin } = &by;
    caller.session()?;
    session::revoke(app, caller, origin, id, "session.revoked").await?;
    Ok(StatusCode::NO_CONTENT)
}
