//! Sets a new password by a link from a mail. It does not log in: the login asks for a second factor as always.

use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::secret::Secret;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::checks::{PRESENTED_CHARS_MAX, refuse_long_secret};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::object::Object as _;
use heddle_store::users::{self, Login};
use heddle_store::{Organization, Scope, Tx, User, password_resets};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::password::{self, PASSWORD_BYTES_MAX};
use super::Way;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PasswordReset")]
struct ResetBody {
    /// The text after `#token=` in the link.
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    token: Secret,
    /// Meets the password rules. A password that does not meet them does not spend the link. At most 1024 bytes.
    #[schemars(extend("maxLength" = PASSWORD_BYTES_MAX))]
    new_password: Secret,
}

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/auth/password/reset",
        Access::Public,
        reset,
        doc("Set a new password by a link, which ends all sessions and API keys of the user")
            .named("reset_password")
            .body::<ResetBody>()
            .empty(204)
            .changes_callers()
            .own_proof(),
    )
}

async fn reset(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<ResetBody>,
) -> Result<StatusCode, Error> {
    refuse_long_secret("token", &body.token)?;
    let token_hash = super::token_hash(&app.keys, &body.token);
    let known = find(&app, &token_hash).await?;
    let names = [known.user.username.as_str(), known.user.email.as_str()];
    let faults = password::faults(&app.config, "new_password", &body.new_password, &names);
    if !faults.is_empty() {
        return Err(Error::Validation(faults));
    }
    let place = app.hashing.place().await?;
    // Of many requests with one link, all but the first few find it spent here, and cost no hash.
    find(&app, &token_hash).await?;
    let password_hash = place.hash(body.new_password).await?;

    let mut tx = app.db.write().await?;
    // Locks the user before the link, as every transaction that changes both does.
    User::lock(&mut tx, &Scope::everything(), known.user.id).await?.ok_or_else(not_good)?;
    let taken = password_resets::take(&mut tx, &token_hash, app.clock.now()).await?.ok_or_else(not_good)?;
    let user = holder(&app, &mut tx, &taken).await?.user;
    super::renew(&mut tx, &app, &origin, &user, password_hash, Way::Reset).await?;
    tx.commit().await?;
    tracing::info!(user.id = %user.id, "user {} has set a new password by a link", user.id);
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the user of the link, if it is still valid.
async fn find(app: &App, token_hash: &str) -> Result<Login, Error> {
    let mut tx = app.db.read().await?;
    let found = password_resets::find(&mut tx, token_hash, app.clock.now()).await?.ok_or_else(not_good)?;
    holder(app, &mut tx, &found).await
}

/// Returns the user of the link, who must be as they were when the link was made.
async fn holder(app: &App, tx: &mut Tx, link: &password_resets::PasswordReset) -> Result<Login, Error> {
    let login = users::find_login(tx, link.user_id).await?.ok_or_else(not_good)?;
    let org = login.user.org_id;
    Organization::find(tx, &Scope::organization(org), org).await?.ok_or_else(not_good)?;
    if !login.user.is_active || super::bound_to(&app.keys, &login) != link.bound_to {
        return Err(not_good());
    }
    Ok(login)
}

/// The same for every reason: the holder of an old mail must not learn the state of the account.
fn not_good() -> Error {
    Error::BadRequest {
        kind: "reset_token_invalid",
        message: "link is not valid any more or was used already: ask for a new one".to_owned(),
    }
}
