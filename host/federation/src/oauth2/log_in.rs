//! The log-in pages on the way to a consent: a password, then the second factor of users that have one.
//!
//! The rules of a login are not here. A form is valid only in the browser in which it was shown: a cookie and a token
//! in the form belong together.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use heddle_core::secret::{Secret, random_secret};
use heddle_identity::admission::{Admission, Opened};
use heddle_identity::login::LOGIN_CHARS_MAX;
use heddle_identity::{cookies, login, mfa};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::routes::{Routes, doc};
use schemars::JsonSchema;

use super::fields::{self, FIELD_BYTES_MAX, Fields};
use super::refusal::OauthRefusal;
use super::{consent, page, redirect, request};

const STALE: &str = "This page was too old, or cookies are switched off. Try again.";

#[derive(JsonSchema)]
#[schemars(rename = "OAuth2Login")]
#[expect(dead_code, reason = "says in the document what is read field by field")]
struct PasswordForm {
    /// The request, as the page has it. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    request: String,
    /// Token of the page that was shown. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    form_token: String,
    /// User name or email, in any case.
    #[schemars(length(max = LOGIN_CHARS_MAX))]
    login: String,
    /// At most 32768 bytes.
    #[schemars(extend("maxLength" = FIELD_BYTES_MAX))]
    password: Secret,
}

#[derive(JsonSchema)]
#[schemars(rename = "OAuth2LoginCode")]
#[expect(dead_code, reason = "says in the document what is read field by field")]
struct CodeForm {
    /// The request, as the page has it. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    request: String,
    /// Token of the page that was shown. At most 32768 bytes.
    #[schemars(length(max = FIELD_BYTES_MAX))]
    form_token: String,
    /// At most 32768 bytes.
    #[schemars(extend("maxLength" = FIELD_BYTES_MAX))]
    mfa_token: Secret,
    /// Code of the authenticator, or a backup code. At most 32768 bytes.
    #[schemars(extend("maxLength" = FIELD_BYTES_MAX))]
    code: Secret,
}

pub(super) fn routes() -> Routes {
    let shown = |doc: heddle_kernel::http::routes::Doc| {
        doc.redirects()
            .limited_as_login()
            .own_proof()
            .checks_credential()
            .shows(200)
            .shows(400)
            .shows(401)
            .shows(403)
            .shows(423)
            .also_answers::<OauthRefusal>(400)
    };
    Routes::default()
        .post(
            "/oauth2/login",
            Access::Public,
            password,
            shown(
                doc("Log in on the way to a consent, as the page's form sends it")
                    .named("log_in_for_app")
                    .form::<PasswordForm>(),
            ),
        )
        .post(
            "/oauth2/login/mfa",
            Access::Public,
            second_factor,
            shown(
                doc("The second factor on the way to a consent")
                    .named("log_in_for_app_with_second_factor")
                    .form::<CodeForm>(),
            ),
        )
}

/// Returns the binding of the forms on a browser's log-in pages.
fn binding<'a>(browser: &'a str, request: &'a str) -> [&'a str; 3] {
    ["log_in", browser, request]
}

/// The log-in page, and the cookie that its form is tied to.
pub(super) fn form(
    app: &App,
    origin: &Origin,
    headers: &HeaderMap,
    status: StatusCode,
    request: &str,
    problem: Option<&str>,
) -> Result<Response, Error> {
    // An existing cookie is kept: another tab may be logging in, too.
    let browser = cookies::form(headers).unwrap_or_else(|| random_secret().expose().to_owned());
    let token = fields::form_token(app, &binding(&browser, request));
    cookies::set_form(app, origin, &browser, page::log_in(status, request, &token, problem))
}

fn is_ours(app: &App, headers: &HeaderMap, request: &str, fields: &Fields) -> bool {
    cookies::form(headers).is_some_and(|browser| {
        fields::is_ours(app, headers, &binding(&browser, request), fields.get("form_token"))
    })
}

async fn password(
    State(app): State<SharedApp>,
    origin: Origin,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, Error> {
    let asked = match request::read(&app, fields.require("request")?).await? {
        Ok(asked) => asked,
        Err(fault) => return Ok(consent::shown(&fault)),
    };
    let request = asked.text.as_str();
    let again = |status, problem: &str| form(&app, &origin, &headers, status, request, Some(problem));
    if !is_ours(&app, &headers, request, &fields) {
        return again(StatusCode::FORBIDDEN, STALE);
    }
    let (Some(name), Some(password)) = (fields.get("login"), fields.secret("password")) else {
        return again(StatusCode::BAD_REQUEST, "Give a user name or email, and the password.");
    };
    if name.chars().count() > LOGIN_CHARS_MAX {
        return again(StatusCode::BAD_REQUEST, "This user name or email is too long.");
    }
    match login::login(&app, &origin, name, password).await {
        Ok(Admission::Session(opened)) => logged_in(&app, &origin, &opened, request),
        Ok(Admission::SecondFactor(challenge)) => {
            Ok(ask_code(&app, &headers, StatusCode::OK, request, &challenge.mfa_token, None))
        }
        Err(error) if is_told(&error) => again(error.status(), &error.to_string()),
        Err(error) => Err(error),
    }
}

/// Whether the page shows the error: it concerns the user's input or account.
fn is_told(error: &Error) -> bool {
    matches!(error.status().as_u16(), 400 | 401 | 403 | 423)
}

fn logged_in(app: &App, origin: &Origin, opened: &Opened, request: &str) -> Result<Response, Error> {
    let on = redirect::see_other(&page::authorize_path(request, "here"))?;
    cookies::set(app, origin, &opened.tokens, on)
}

fn ask_code(
    app: &App,
    headers: &HeaderMap,
    status: StatusCode,
    request: &str,
    mfa_token: &str,
    problem: Option<&str>,
) -> Response {
    let browser = cookies::form(headers).unwrap_or_default();
    let token = fields::form_token(app, &binding(&browser, request));
    page::second_factor(status, request, &token, mfa_token, problem)
}

async fn second_factor(
    State(app): State<SharedApp>,
    origin: Origin,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, Error> {
    let asked = match request::read(&app, fields.require("request")?).await? {
        Ok(asked) => asked,
        Err(fault) => return Ok(consent::shown(&fault)),
    };
    let request = asked.text.as_str();
    if !is_ours(&app, &headers, request, &fields) {
        return form(&app, &origin, &headers, StatusCode::FORBIDDEN, request, Some(STALE));
    }
    let mfa_token = fields.require("mfa_token")?;
    let code = fields.secret("code").unwrap_or_default();
    match mfa::complete(&app, &origin, &Secret::new(mfa_token), &code).await {
        Ok(opened) => logged_in(&app, &origin, &opened, request),
        Err(error) if is_told(&error) => {
            let problem = error.to_string();
            Ok(ask_code(&app, &headers, error.status(), request, mfa_token, Some(&problem)))
        }
        Err(error) => Err(error),
    }
}
