//! Removes the second factor of a user that has lost it.

use heddle_core::UserId;
use heddle_identity::declarations::MFA_RESET;
use heddle_identity::security;
use heddle_kernel::http::conditional::One;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::resource::{By, Resource as _};
use heddle_store::object::Object as _;
use heddle_store::{User, second_factors, sessions, users};
use serde_json::json;

use super::{Account, Users, rules};

/// Needs a strictly higher role. The user's sessions and apps end, so that the holder of the lost device loses access,
/// too. API keys stay, because they never needed a second factor.
pub(super) async fn reset(by: By, At(id): At<UserId>) -> Result<One<Account>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let user = rules::locked(&mut tx, caller, id).await?;
    if user.id == caller.user_id {
        return Err(Error::Refused {
            kind: "own_account",
            message: "own second factor is taken away with POST /auth/mfa/disable".to_owned(),
        });
    }
    rules::require_below(caller, &user)?;
    if !user.mfa_enabled {
        return Err(Error::conflict(format!("user '{}' has no second factor", user.username)));
    }
    second_factors::remove(&mut tx, id, now).await?;
    users::bump_token_version(&mut tx, id, now).await?.ok_or(Error::NotFound("user"))?;
    let revoked = sessions::revoke_all(&mut tx, id, now).await?;
    let detail = json!({ "username": user.username, "sessions_revoked": revoked });
    by.record::<Users>(&mut tx, &user, "user.mfa_reset", detail).await?;
    let fields = json!({ "actor_id": caller.user_id });
    security::record(&mut tx, &app.clock, MFA_RESET, &user, fields).await?;
    let user = User::find(&mut tx, &caller.organization_scope(), id).await?.ok_or(Error::NotFound("user"))?;
    tx.commit().await?;
    Users::view(user, app).map(One)
}
