//! The cookies that a login sets for browsers. They are read in `caller::cookies`.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use cookie::time::Duration;
use cookie::{Cookie, SameSite};
use heddle_core::secret::Secret;
use heddle_kernel::app::App;
use heddle_kernel::caller::cookies::{ACCESS, CSRF, csrf_token, is_secure, value};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;

use super::session::Tokens;
use crate::declarations::SignInSettings;

const REFRESH: &str = "svc_refresh";
/// Ties the forms of a log-in page to the browser that it was shown in.
const FORM: &str = "svc_form";
const FORM_PATH: &str = "/api/v1/oauth2";
/// The only path where the refresh token is of use.
const REFRESH_PATH: &str = "/api/v1/auth";

/// The refresh token of the cookie channel.
pub(super) fn refresh_token(headers: &HeaderMap) -> Option<Secret> {
    value(headers, REFRESH).map(Secret::new)
}

/// Returns the value that the browser received together with a log-in form.
pub fn form(headers: &HeaderMap) -> Option<String> {
    value(headers, FORM)
}

/// Sets the cookie that the browser's forms are tied to.
pub fn set_form(app: &App, origin: &Origin, value: &str, mut response: Response) -> Result<Response, Error> {
    let cookie = Cookie::build((FORM, value))
        .http_only(true)
        .path(FORM_PATH)
        .same_site(SameSite::Strict)
        .secure(is_secure(app, origin))
        .build();
    append(&mut response, &cookie)?;
    Ok(response)
}

/// Sets the cookies of a session that was opened or prolonged.
pub fn set(app: &App, origin: &Origin, tokens: &Tokens, mut response: Response) -> Result<Response, Error> {
    let access = Duration::minutes(i64::from(app.config.of::<SignInSettings>().access_token_minutes));
    let session = Duration::days(i64::from(app.config.of::<SignInSettings>().refresh_token_days));
    let csrf = csrf_token(app, tokens.session);
    for cookie in [
        Cookie::build((ACCESS, tokens.access_token.as_str())).http_only(true).path("/").max_age(access),
        Cookie::build((REFRESH, tokens.refresh_token.as_str()))
            .http_only(true)
            .path(REFRESH_PATH)
            .max_age(session),
        Cookie::build((CSRF, csrf.as_str())).path("/").max_age(session),
    ] {
        let cookie = cookie.same_site(SameSite::Strict).secure(is_secure(app, origin)).build();
        append(&mut response, &cookie)?;
    }
    Ok(response)
}

/// Removes the cookies of a session that ended.
pub(super) fn clear(app: &App, origin: &Origin, mut response: Response) -> Result<Response, Error> {
    for (name, path, is_hidden) in [(ACCESS, "/", true), (REFRESH, REFRESH_PATH, true), (CSRF, "/", false)] {
        let cookie = Cookie::build((name, ""))
            .http_only(is_hidden)
            .path(path)
            .max_age(Duration::ZERO)
            .same_site(SameSite::Strict)
            .secure(is_secure(app, origin))
            .build();
        append(&mut response, &cookie)?;
    }
    Ok(response)
}

fn append(response: &mut Response, cookie: &Cookie<'_>) -> Result<(), Error> {
    let line = HeaderValue::from_str(&cookie.to_string()).map_err(Error::internal)?;
    response.headers_mut().append(header::SET_COOKIE, line);
    Ok(())
}
