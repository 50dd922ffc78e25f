//! A new password for a user who knows the old one. The user's API keys and other sessions end; the current session is
//! renewed.

use axum::Json as Answer;
use axum::response::{IntoResponse as _, Response};
use heddle_core::secret::Secret;
use heddle_kernel::app::App;
use heddle_kernel::caller::{Caller, REVOKED, hold_caller};
use heddle_kernel::checks::{Checks, PRESENTED_CHARS_MAX, refuse_long_secret};
use heddle_kernel::hashing;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::Json;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::users::{self, Login};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::login::Step;
use super::super::password::{self, PASSWORD_BYTES_MAX};
use super::super::session::{self, Tokens};
use super::super::{cookies, login};
use super::Way;
use crate::declarations::SIGNING_IN;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PasswordChange")]
struct ChangeBody {
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    current_password: Secret,
    /// Meets the password rules, and differs from the current password. At most 1024 bytes.
    #[schemars(extend("maxLength" = PASSWORD_BYTES_MAX))]
    new_password: Secret,
}

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/auth/password/change",
        Access::Authenticated(SIGNING_IN),
        change,
        doc("Change the own password, which ends all own sessions and API keys; answers a new session")
            .named("change_password")
            .body::<ChangeBody>()
            .answers::<Tokens>(200)
            .fails_with(423)
            .personal()
            .changes_callers(),
    )
}

async fn change(by: By, Json(body): Json<ChangeBody>) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    caller.session()?;
    refuse_long_secret("current_password", &body.current_password)?;
    let known = find(app, caller).await?;
    if !hashing::is_set(&known.password_hash) {
        let message = "account has no password: it logs in by single sign-on";
        return Err(Error::Conflict { kind: "no_password", message: message.to_owned() });
    }
    login::refuse_locked(known.user.locked_until, app.clock.now())?;
    check(app, &known, &body)?;
    let fits = app.hashing.verify(body.current_password, known.password_hash.clone()).await?;
    let password_hash = if fits { Some(app.hashing.hash(body.new_password).await?) } else { None };

    let mut tx = app.db.write().await?;
    let current = hold_caller(&mut tx, app, caller).await?;
    // Many attempts can happen between the first read and here; only those before the lock count.
    login::refuse_locked(current.user.locked_until, app.clock.now())?;
    let Some(password_hash) = password_hash else {
        return Err(login::fail(tx, app, origin, &current.user, Step::Password, wrong()).await?);
    };
    if current.token_version != known.token_version {
        return Err(REVOKED);
    }
    if current.password_hash != known.password_hash {
        return Err(Error::conflict("password was changed meanwhile; try again"));
    }
    let ended = super::renew(&mut tx, app, origin, &current.user, password_hash, Way::Changed).await?;
    let tokens = session::open(&mut tx, app, origin, &current.user, ended.token_version).await?;
    tx.commit().await?;
    cookies::set(app, origin, &tokens, Answer(&tokens).into_response())
}

async fn find(app: &App, caller: &Caller) -> Result<Login, Error> {
    let mut tx = app.db.read().await?;
    users::find_login(&mut tx, caller.user_id).await?.ok_or(REVOKED)
}

fn check(app: &App, known: &Login, body: &ChangeBody) -> Result<(), Error> {
    let names = [known.user.username.as_str(), known.user.email.as_str()];
    let mut checks = Checks::default();
    checks.add(password::faults(&app.config, "new_password", &body.new_password, &names));
    if body.new_password == body.current_password {
        let message = "new password must be another than the current one";
        checks.add(vec![Detail::new("new_password", message, "unchanged")]);
    }
    checks.done()
}

/// Not 401: the session is good, and a client would try to refresh it.
fn wrong() -> Error {
    let message = "current password is not correct";
    Error::Validation(vec![Detail::new("current_password", message, "wrong_password")])
}
