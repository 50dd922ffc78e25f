//! Rules of user management: a caller manages only users below their own role, never themselves, and never removes an
//! organization's last administrator.

use heddle_core::{Role, UserId};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::object::Object as _;
use heddle_store::users::{self, User};
use heddle_store::{Organization, Tx};

/// Reads a role as clients write it.
///
/// # Errors
/// 400 `unknown_role`, which lists what is accepted.
pub fn parse_role(text: &str) -> Result<Role, Error> {
    Role::parse_assigned(text).map_err(|unknown| Error::BadRequest {
        kind: "unknown_role",
        message: format!(
            "role '{}' is not one of {}, admin (the same as org_admin)",
            text.chars().take(50).collect::<String>(),
            unknown.accepted.join(", ")
        ),
    })
}

/// Every role that a caller can assign, as [`parse_role`] reads it. `super_admin` is the highest role, so no caller
/// assigns it.
pub fn assignable_words() -> Vec<&'static str> {
    let assignable = Role::ALL.iter().filter(|role| !role.is_at_least(Role::SuperAdmin));
    assignable.map(|role| role.as_str()).chain(["admin"]).collect()
}

/// Returns every word for a role: an update may also send back the highest role, where the user already has it.
pub(crate) fn role_words() -> Vec<&'static str> {
    Role::ALL.iter().map(|role| role.as_str()).chain(["admin"]).collect()
}

/// Requires a role strictly below the caller's own, so that no caller creates an equal.
pub fn require_assignable(caller: &Caller, role: Role) -> Result<(), Error> {
    if role.level() < caller.role.level() {
        return Ok(());
    }
    let below: Vec<&str> = Role::ALL
        .iter()
        .filter(|other| other.level() < caller.role.level())
        .map(|role| role.as_str())
        .collect();
    Err(too_high(format!(
        "role '{role}' is not below your own ('{}'): you may assign {}",
        caller.role,
        below.join(", ")
    )))
}

/// Requires that the user's role is strictly below the caller's.
pub fn require_below(caller: &Caller, user: &User) -> Result<(), Error> {
    if user.role.level() < caller.role.level() {
        return Ok(());
    }
    Err(too_high(format!(
        "user '{}' has role '{}', which is not below your own ('{}')",
        user.username, user.role, caller.role
    )))
}

fn too_high(message: String) -> Error {
    Error::Refused { kind: "role_too_high", message }
}

/// Requires another user than the caller: otherwise callers could lift their own limits, or lock themselves out.
pub(crate) fn require_another(caller: &Caller, user: UserId, what: &str) -> Result<(), Error> {
    if user != caller.user_id {
        return Ok(());
    }
    Err(Error::Refused { kind: "own_account", message: format!("{what}: ask another administrator") })
}

/// Returns the user, locked until the transaction ends.
///
/// The row of the user's organization is locked first, so other requests that manage its users wait: of two that remove
/// the last two administrators, the second sees the first.
pub(super) async fn locked(tx: &mut Tx, caller: &Caller, id: UserId) -> Result<User, Error> {
    let scope = caller.organization_scope();
    let found = User::find(tx, &scope, id).await?.ok_or(Error::NotFound("user"))?;
    lock_organization(tx, caller, &found).await?;
    User::lock(tx, &scope, id).await?.ok_or(Error::NotFound("user"))
}

pub async fn lock_organization(tx: &mut Tx, caller: &Caller, user: &User) -> Result<(), Error> {
    let found = Organization::lock(tx, &caller.organization_scope(), user.org_id).await?;
    if found.is_none() {
        return Err(Error::conflict("organization of the user was removed: restore it first"));
    }
    Ok(())
}

/// Requires that another administrator stays in the organization. Call it before this user loses that role or access.
///
/// The service's last `super_admin` needs no such guard: no user is above a `super_admin`, and users cannot change,
/// disable or remove themselves.
pub async fn keep_an_admin(tx: &mut Tx, user: &User) -> Result<(), Error> {
    let is_admin = user.is_active && user.role.is_at_least(Role::OrgAdmin);
    if !is_admin || users::other_admins(tx, user.org_id, user.id).await? > 0 {
        return Ok(());
    }
    Err(Error::Conflict {
        kind: "last_admin",
        message: format!(
            "user '{}' is the last active administrator of the organization: make another one first",
            user.username
        ),
    })
}
