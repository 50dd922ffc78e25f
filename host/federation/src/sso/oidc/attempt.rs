//! A sign-in in progress: bound to the browser that began it, usable once, valid for ten minutes.

use axum::Json as Answer;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use chrono::TimeDelta;
use cookie::time::Duration;
use cookie::{Cookie, SameSite};
use heddle_core::secret::{Secret, random_secret};
use heddle_kernel::app::App;
use heddle_kernel::caller::cookies::{self, is_secure};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::keys::keyed_hash;
use heddle_store::sso::{self, IdentityProviderId, NewAttempt, SsoAttemptId};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::super::secret::Proofs;

const MINUTES: i64 = 10;
/// Expired attempts that each new one removes.
const SWEEP: u32 = 20;
/// The only path where the cookie is of use.
const PATH: &str = "/api/v1/auth/sso";

const UNKNOWN: Error = Error::Unauthenticated(
    "this sign-in was not begun in this browser, has expired or was ended already; start it again",
);

/// A sign-in that was begun.
pub(super) struct Began {
    pub(super) state: Secret,
    pub(super) proofs: Proofs,
    browser: Secret,
}

/// A sign-in whose browser has returned.
pub(super) struct Taken {
    pub(super) provider_id: IdentityProviderId,
    pub(super) redirect_uri: String,
    pub(super) proofs: Proofs,
}

pub(super) async fn begin(
    app: &App,
    provider_id: IdentityProviderId,
    redirect_uri: &str,
) -> Result<Began, Error> {
    let began = Began {
        state: random_secret(),
        proofs: Proofs { verifier: random_secret(), nonce: random_secret() },
        browser: random_secret(),
    };
    let id: SsoAttemptId = app.clock.new_id();
    let now = app.clock.now();
    let new = NewAttempt {
        id,
        provider_id,
        state_hash: hash(app, "state", &began.state),
        browser_hash: hash(app, "browser", &began.browser),
        redirect_uri: redirect_uri.to_owned(),
        secret: began.proofs.seal(&app.keys, id),
        expires_at: now + TimeDelta::minutes(MINUTES),
    };
    let mut tx = app.db.write().await?;
    sso::trim_attempts(&mut tx, now, SWEEP).await?;
    sso::insert_attempt(&mut tx, &new).await?;
    tx.commit().await?;
    Ok(began)
}

impl Began {
    /// Returns the answer with the cookie that binds the sign-in to this browser.
    pub(super) fn respond<T: Serialize>(
        &self,
        app: &App,
        origin: &Origin,
        answer: &T,
    ) -> Result<Response, Error> {
        let name = cookie_name(&self.state);
        let cookie = Cookie::build((name, self.browser.expose())).max_age(Duration::minutes(MINUTES));
        with_cookie(app, origin, cookie, Answer(answer).into_response())
    }
}

/// Takes the sign-in that this browser began. It can be taken only once.
pub(super) async fn take(app: &App, headers: &HeaderMap, state: &Secret) -> Result<Taken, Error> {
    let browser = cookies::value(headers, &cookie_name(state)).map(Secret::new).ok_or(UNKNOWN)?;
    let (state_hash, browser_hash) = (hash(app, "state", state), hash(app, "browser", &browser));
    let mut tx = app.db.write().await?;
    let attempt = sso::take_attempt(&mut tx, &state_hash, &browser_hash, app.clock.now()).await?;
    tx.commit().await?;
    let attempt = attempt.ok_or(UNKNOWN)?;
    Ok(Taken {
        provider_id: attempt.provider_id,
        redirect_uri: attempt.redirect_uri,
        proofs: Proofs::open(&app.keys, attempt.id, &attempt.secret)?,
    })
}

/// Removes the cookie of a sign-in that has ended.
pub(super) fn forget(
    app: &App,
    origin: &Origin,
    state: &Secret,
    response: Response,
) -> Result<Response, Error> {
    let cookie = Cookie::build((cookie_name(state), "")).max_age(Duration::ZERO);
    with_cookie(app, origin, cookie, response)
}

fn with_cookie(
    app: &App,
    origin: &Origin,
    cookie: cookie::CookieBuilder<'_>,
    mut response: Response,
) -> Result<Response, Error> {
    let cookie =
        cookie.http_only(true).path(PATH).same_site(SameSite::Strict).secure(is_secure(app, origin)).build();
    let line = HeaderValue::from_str(&cookie.to_string()).map_err(Error::internal)?;
    response.headers_mut().append(header::SET_COOKIE, line);
    Ok(response)
}

/// Each sign-in has its own cookie, so that sign-ins in two tabs do not disturb each other.
fn cookie_name(state: &Secret) -> String {
    let digest = Sha256::digest(state.expose().as_bytes());
    format!("svc_sso_{}", hex::encode(&digest[..8]))
}

fn hash(app: &App, what: &str, value: &Secret) -> String {
    keyed_hash(&app.keys.sso_attempt_key(), &Secret::new(format!("{what}:{}", value.expose())))
}
