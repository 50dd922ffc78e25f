//! The question whether an app may act for a user, and the answer (RFC 6749 section 4.1).
//!
//! The routes are public because they answer browsers with pages: a user who is not logged in sees a form and not an
//! error. Consent is given only by a form that was shown to the same session.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::permission::KeyScope;
use heddle_core::secret::{Secret, random_secret};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{Caller, authenticate, hold_caller};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::oauth2::{self, NewGrant, OauthGrantId};
use heddle_store::sessions::SessionId;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::fields::{self, FIELD_BYTES_MAX, Fields};
use super::metadata::Issuer;
use super::page::{self, Question};
use super::refusal::OauthRefusal;
use super::request::{self, Asked, Fault, Parameters, Refusal};
use super::token::{code_hash, words};
use super::{log_in, redirect};

/// Most grants of one user to one app, one for each place where the app is used; a further grant ends the oldest.
const GRANTS_MAX: u32 = 20;
/// How long a code can be exchanged.
const CODE_SECS: i64 = 60;

/// The query with which an app sends a browser. It is only documented here: its errors are reported in other ways.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "says in the document what is read parameter by parameter")]
struct AuthorizeQuery {
    /// `code`
    response_type: String,
    /// Id of the app.
    client_id: String,
    /// A redirect URI of the app, character for character.
    redirect_uri: String,
    /// Challenge of the code verifier: base64url of its SHA-256 (RFC 7636).
    code_challenge: String,
    /// `S256`
    code_challenge_method: String,
    /// Scopes, separated by spaces; without it, all that the app is registered for.
    scope: Option<String>,
    /// Returned unchanged.
    state: Option<String>,
    /// Set by this service's own pages: how the browser came here.
    step: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "OAuth2Decision")]
#[expect(dead_code, reason = "says in the document what is read field by field")]
struct DecisionForm {
    /// The request, as the page has it. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    request: String,
    /// Token of the page that was shown. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    form_token: String,
    /// `allow` or `deny`.
    #[schemars(extend("enum" = ["allow", "deny"]))]
    decision: String,
}

pub(super) fn routes() -> Routes {
    let path = "/oauth2/authorize";
    Routes::default()
        .get(
            path,
            Access::Public,
            ask,
            doc("The page that asks a user whether an app may act for them (RFC 6749, with PKCE)")
                .named("show_app_consent")
                .query::<AuthorizeQuery>()
                .answers_text("text/html")
                .shows(303)
                .shows(400)
                .fails_with(501),
        )
        .post(
            path,
            Access::Public,
            decide,
            doc("The user's answer, as the page's form sends it; leads back to the app")
                .named("decide_app_consent")
                .form::<DecisionForm>()
                .own_proof()
                .redirects()
                .shows(200)
                .shows(400)
                .shows(403)
                .fails_with(501)
                .also_answers::<OauthRefusal>(400),
        )
}

/// How a browser came to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// From the app: cookies may be missing.
    First,
    /// From a page of ours.
    Here,
    /// To log in as another user.
    LogIn,
}

impl Step {
    fn of(query: &str) -> Self {
        match Parameters::parse(query).last("step") {
            Some("log_in") => Step::LogIn,
            Some("here") => Step::Here,
            _ => Step::First,
        }
    }
}

/// Returns the user of the browser's session. A key or an app does not count as a user here.
async fn person(app: &App, headers: &HeaderMap) -> Result<Option<(Caller, SessionId)>, Error> {
    match authenticate(app, headers).await {
        Ok(caller) => Ok(caller.session().ok().map(|session| (caller, session))),
        Err(error) if error.status().is_client_error() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn ask(
    State(app): State<SharedApp>,
    origin: Origin,
    Issuer(issuer): Issuer,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Error> {
    let query = uri.query().unwrap_or_default();
    let asked = match request::read(&app, query).await? {
        Ok(asked) => asked,
        Err(fault) => return told(&app, &issuer, &headers, query, fault).await,
    };
    let step = Step::of(query);
    if step == Step::LogIn {
        return log_in::form(&app, &origin, &headers, StatusCode::OK, &asked.text, None);
    }
    match person(&app, &headers).await? {
        Some((caller, session)) => Ok(question(&app, &asked, &caller, session)),
        None if step == Step::Here => {
            log_in::form(&app, &origin, &headers, StatusCode::OK, &asked.text, None)
        }
        None => Ok(page::hop(&asked.text)),
    }
}

/// Answers a request that cannot be shown as a question.
///
/// Only a logged-in user of the app's organization is redirected with the error. Otherwise an attacker could register
/// an app and use our address as an open redirect (RFC 9700 section 4.11.2).
async fn told(
    app: &App,
    issuer: &str,
    headers: &HeaderMap,
    query: &str,
    fault: Fault,
) -> Result<Response, Error> {
    let Fault::Told(org, reply, refusal) = &fault else { return Ok(shown(&fault)) };
    match person(app, headers).await? {
        Some((caller, _)) if caller.org_id == *org => redirect::see_other(&reply.refusing(issuer, refusal)),
        None if Step::of(query) == Step::First => Ok(page::hop(query)),
        _ => Ok(shown(&fault)),
    }
}

/// Shows the error without a redirect: in answer to a form, the request was one that this service had shown.
pub(super) fn shown(fault: &Fault) -> Response {
    let message = match fault {
        Fault::Shown(message) => message,
        Fault::Told(_, _, refusal) => &refusal.description,
    };
    page::fault(StatusCode::BAD_REQUEST, message)
}

/// An app of another organization looks like one that does not exist.
fn foreign(asked: &Asked, caller: &Caller) -> Option<Response> {
    let is_foreign = caller.org_id != asked.registered.app.org_id;
    is_foreign.then(|| page::fault_for_user(request::UNKNOWN_APP, &caller.username, &asked.text))
}

fn question(app: &App, asked: &Asked, caller: &Caller, session: SessionId) -> Response {
    if let Some(refused) = foreign(asked, caller) {
        return refused;
    }
    let scopes = request::held(&asked.scopes, caller.role);
    page::consent(&Question {
        registered: &asked.registered,
        username: &caller.username,
        redirect_uri: &asked.reply.redirect_uri,
        scopes: &scopes,
        is_narrowed: asked.scopes.iter().any(|scope| !scope.is_held_by(caller.role)),
        request: &asked.text,
        form_token: &fields::form_token(app, &binding(asked, session, &scopes)),
    })
}

/// Binds an answer to the contents of the page: it is not valid for anything that changed since.
fn binding(asked: &Asked, session: SessionId, scopes: &[KeyScope]) -> [String; 6] {
    let app = &asked.registered.app;
    let about = app.description.clone().unwrap_or_default();
    let scopes = request::joined(scopes);
    ["consent".to_owned(), session.to_string(), asked.text.clone(), scopes, app.name.clone(), about]
}

async fn decide(
    State(app): State<SharedApp>,
    origin: Origin,
    Issuer(issuer): Issuer,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, Error> {
    let asked = match request::read(&app, fields.require("request")?).await? {
        Ok(asked) => asked,
        Err(fault) => return Ok(shown(&fault)),
    };
    let again = || log_in::form(&app, &origin, &headers, StatusCode::OK, &asked.text, Some("Log in again."));
    let Some((caller, session)) = person(&app, &headers).await? else { return again() };
    if let Some(refused) = foreign(&asked, &caller) {
        return Ok(refused);
    }
    let scopes = request::held(&asked.scopes, caller.role);
    if !fields::is_ours(&app, &headers, &binding(&asked, session, &scopes), fields.get("form_token")) {
        return Ok(page::fault(StatusCode::FORBIDDEN, "this page is too old, or was not shown to you"));
    }
    let answer = match fields.require("decision")? {
        "allow" if scopes.is_empty() => {
            asked.reply.refusing(&issuer, &denied("the user holds none of these scopes"))
        }
        "allow" => {
            match allow(&app, &origin, &asked, &caller, &scopes).await {
                Ok(code) => asked.reply.with(&issuer, &[("code", code.expose())]),
                // The session has just ended.
                Err(error) if error.status().is_client_error() => return again(),
                Err(error) => return Err(error),
            }
        }
        _ => {
            deny(&app, &origin, &asked, &caller).await?;
            asked.reply.refusing(&issuer, &denied("the user did not allow it"))
        }
    };
    redirect::see_other(&answer)
}

fn denied(description: &str) -> Refusal {
    Refusal::new("access_denied", description)
}

/// Returns a code that the app can exchange once.
async fn allow(
    app: &App,
    origin: &Origin,
    asked: &Asked,
    caller: &Caller,
    scopes: &[KeyScope],
) -> Result<Secret, Error> {
    let now = app.clock.now();
    let code = random_secret();
    let mut tx = app.db.write().await?;
    let new = NewGrant {
        id: app.clock.new_id(),
        app_id: asked.registered.app.id,
        user_id: caller.user_id,
        scopes: words(scopes),
        token_version: hold_caller(&mut tx, app, caller).await?.token_version,
        code_hash: code_hash(app, &code),
        code_challenge: asked.code_challenge.clone(),
        redirect_uri: asked.reply.redirect_uri.clone(),
        code_expires_at: now + TimeDelta::seconds(CODE_SECS),
        now,
    };
    let ended = oauth2::revoke_older(&mut tx, new.app_id, new.user_id, GRANTS_MAX - 1, now).await?;
    for id in &ended {
        let detail = json!({ "app_id": new.app_id, "user_id": new.user_id, "by": "newer_grants" });
        entry::record(&mut tx, app, origin, audit_entry(caller, "oauth2_grant.revoked", *id, detail)).await?;
    }
    oauth2::insert_grant(&mut tx, &new).await?;
    let detail = json!({ "app_id": new.app_id, "app_name": asked.registered.app.name, "scopes": new.scopes });
    entry::record(&mut tx, app, origin, audit_entry(caller, "oauth2_grant.allowed", new.id, detail)).await?;
    tx.commit().await?;
    if !ended.is_empty() {
        app.callers.forget();
    }
    Ok(code)
}

fn audit_entry<'a>(
    caller: &'a Caller,
    action: &'static str,
    grant: OauthGrantId,
    detail: Value,
) -> NewEntry<'a> {
    NewEntry { org: caller.org_id, actor: caller.actor(), action, target: ("oauth2_grant", grant.0), detail }
}

async fn deny(app: &App, origin: &Origin, asked: &Asked, caller: &Caller) -> Result<(), Error> {
    let registered = &asked.registered.app;
    let mut tx = app.db.write().await?;
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action: "oauth2_grant.denied",
        target: ("oauth2_app", registered.id.0),
        detail: json!({ "app_name": registered.name, "scopes": words(&asked.scopes) }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(())
}
