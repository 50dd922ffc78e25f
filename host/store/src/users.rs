//! Users, and what a login needs of them. A password's hash never serializes.

use heddle_core::name::fold;
use heddle_core::{OrgId, Role, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, Set, affected};
use crate::sort::{InOrder, Key, Sorted};

/// A user's account in one organization.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct User {
    pub id: UserId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub username: String,
    pub email: String,
    pub full_name: Option<String>,
    pub role: Role,
    pub is_active: bool,
    /// A token of another version is worthless.
    pub token_version: i64,
    pub locked_until: Option<Timestamp>,
    /// A login also needs a one-time code.
    pub mfa_enabled: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for User {
    const KEYS: &'static [Key] = &[
        Key::of("username", "app_user.username_folded"),
        Key::of("email", "app_user.email_folded"),
        Key::nullable("full_name", "LOWER(app_user.full_name)"),
        Key::of(
            "role",
            "CASE app_user.role WHEN 'guest' THEN 0 WHEN 'viewer' THEN 1 WHEN 'operator' THEN 2 WHEN 'site_admin' THEN 3
                WHEN 'org_admin' THEN 4 ELSE 5 END",
        ),
        Key::of("created_at", "app_user.created_at"),
        Key::of("updated_at", "app_user.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["app_user.id"];
}

/// A user together with what proves who they are.
#[derive(Clone, FromRow)]
pub struct Login {
    #[sqlx(flatten)]
    pub user: User,
    pub password_hash: String,
    pub token_version: i64,
    pub failed_logins: i64,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user.id).finish_non_exhaustive()
    }
}

/// A row of `app_user` about to be written. The user is active, is not locked, and has no second factor.
/// User name and email must be free in all organizations; those of removed users are.
#[derive(Clone)]
pub struct NewUser {
    pub id: UserId,
    pub org_id: OrgId,
    pub username: String,
    pub email: String,
    pub full_name: Option<String>,
    pub password_hash: String,
    pub role: Role,
    pub now: Timestamp,
}

/// What to change; `None` keeps. A new password also lifts a lock.
#[derive(Clone, Default)]
pub struct UserUpdate {
    pub email: Option<String>,
    pub full_name: Set<String>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
    pub password_hash: Option<String>,
}

/// Narrows a list of users within its scope. A field that is `None` has no effect; all others must hold.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    pub org_id: Option<OrgId>,
    pub role: Option<Role>,
    pub is_active: Option<bool>,
    /// Part of the user name, the email or the full name.
    pub search: Option<String>,
}

/// Where a user stands after a failed login.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct LoginState {
    pub failed_logins: i64,
    pub locked_until: Option<Timestamp>,
}

/// The columns of [`User`].
macro_rules! user {
    () => {
        "app_user.id, app_user.revision, app_user.org_id, app_user.username, app_user.email, app_user.full_name, app_user.role,
        app_user.is_active, app_user.token_version, app_user.locked_until, app_user.mfa_enabled, app_user.created_at,
        app_user.updated_at, app_user.deleted_at"
    };
}

revised!(User);

impl Object for User {
    type Id = UserId;
    const TABLE: Table = table!("app_user", user!(), org: "org_id");

    fn organization(&self) -> OrgId {
        self.org_id
    }

    /// The tokens of the user are worthless from then on. Grants of sites stay: without them a restored user would reach
    /// every site.
    async fn remove(tx: &mut Tx, scope: &Scope, id: UserId, now: Timestamp) -> Result<bool> {
        object::hide::<Self>(tx, scope, id, Columns::default().raised("token_version"), now).await
    }
}

/// The columns of [`Login`].
const SELECT_LOGIN: &str = concat!("SELECT ", user!(), ", app_user.password_hash, app_user.failed_logins");

/// # Errors
/// [`crate::error::Error::Unique`] with `app_user_username` or `app_user_email`.
pub async fn insert(tx: &mut Tx, new: &NewUser) -> Result<User> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("username", &new.username)
        .with("username_folded", fold(&new.username))
        .with("email", &new.email)
        .with("email_folded", fold(&new.email))
        .or_null("full_name", new.full_name.as_ref())
        .with("password_hash", &new.password_hash)
        .with("role", new.role.to_string())
        .with("is_active", true)
        .with("token_version", 0)
        .with("failed_logins", 0);
    object::insert(tx, new.id, columns, new.now).await
}

/// The user with their password's hash: for a change of the own password.
pub async fn find_login(tx: &mut Tx, id: UserId) -> Result<Option<Login>> {
    logins().and_bind("app_user.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The same, locked until the transaction ends: for functions that count failures or open sessions.
pub async fn lock_login(tx: &mut Tx, id: UserId) -> Result<Option<Login>> {
    logins().and_bind("app_user.id = ?", Bind::Id(id.0)).one_locked(tx, "app_user").await
}

/// The user with this user name or, when there is none, with this email, as [`fold`] compares them.
pub async fn find_by_login(tx: &mut Tx, text: &str) -> Result<Option<Login>> {
    let folded = fold(text);
    let by = |condition| logins().and_bind(condition, Bind::Text(folded.clone()));
    match by("app_user.username_folded = ?").one(tx).await? {
        Some(login) => Ok(Some(login)),
        None => by("app_user.email_folded = ?").one(tx).await,
    }
}

/// Those of these users that are in the scope and not removed.
pub async fn find_all(tx: &mut Tx, scope: &Scope, ids: &[UserId]) -> Result<Vec<User>> {
    object::live::<User>(scope)
        .and_in("app_user.id", ids.iter().map(|id| Bind::Id(id.0)))
        .all(tx, "app_user.created_at, app_user.id", i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await
}

/// How many others of the organization may administer it: active, `org_admin` or higher.
pub async fn other_admins(tx: &mut Tx, org: OrgId, but: UserId) -> Result<i64> {
    let admins = Role::ALL.iter().filter(|role| role.is_at_least(Role::OrgAdmin));
    object::live::<User>(&Scope::organization(org))
        .and_bind("app_user.is_active = ?", Bind::Flag(true))
        .and_bind("app_user.id <> ?", Bind::Id(but.0))
        .and_in("app_user.role", admins.map(|role| Bind::Text(role.to_string())))
        .count(tx)
        .await
}

/// Returns a page of the users that are not removed, active or not, and how many there are on all pages.
/// The oldest come first unless the page names another order.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &UserFilter,
    page: impl Into<InOrder<User>>,
) -> Result<(Vec<User>, i64)> {
    object::live::<User>(scope)
        .and_some("app_user.org_id = ?", filter.org_id.map(|id| Bind::Id(id.0)))
        .and_some("app_user.role = ?", filter.role.map(|role| Bind::Text(role.to_string())))
        .and_some("app_user.is_active = ?", filter.is_active.map(Bind::Flag))
        .search(&["app_user.username", "app_user.email", "app_user.full_name"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// # Errors
/// [`crate::error::Error::Unique`] with `app_user_email` when the email is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: UserId,
    update: &UserUpdate,
    now: Timestamp,
) -> Result<Option<User>> {
    let mut columns = Columns::default()
        .or_keep("email", update.email.as_ref())
        .or_keep("email_folded", update.email.as_deref().map(fold))
        .set("full_name", &update.full_name)
        .or_keep("role", update.role.map(|role| role.to_string()))
        .or_keep("is_active", update.is_active);
    if let Some(hash) = &update.password_hash {
        columns = columns.with("password_hash", hash).with("failed_logins", 0).null("locked_until");
    }
    object::update(tx, scope, id, columns, now).await
}

/// Counts a failed login, and locks the account when there were `lock_after` in a row; `None` while it is locked.
///
/// A lock that has run out starts the count again, so that one mistake later does not lock at once.
pub async fn record_failed_login(
    tx: &mut Tx,
    id: UserId,
    now: Timestamp,
    lock_after: i64,
    locked_until: Timestamp,
) -> Result<Option<LoginState>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE app_user
        SET failed_logins = CASE WHEN locked_until <= $2 THEN 1 ELSE failed_logins + 1 END,
            locked_until = CASE
                WHEN (CASE WHEN locked_until <= $2 THEN 1 ELSE failed_logins + 1 END) >= $3 THEN $4
                WHEN locked_until <= $2 THEN NULL
                ELSE locked_until END
        WHERE id = $1 AND deleted_at IS NULL AND (locked_until IS NULL OR locked_until <= $2)
        RETURNING failed_logins, locked_until")
        .bind(id).bind(now).bind(lock_after).bind(locked_until)
        .fetch_optional(conn)
        .await)?)
}

/// Forgets the failed logins; false when the user is gone.
pub async fn record_login_success(tx: &mut Tx, id: UserId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE app_user SET failed_logins = 0, locked_until = NULL, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Puts a hash of the same password in the place of this one; false when the password was changed meanwhile.
pub async fn rehash(tx: &mut Tx, id: UserId, old_hash: &str, new_hash: &str) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE app_user SET password_hash = $3 WHERE id = $1 AND password_hash = $2")
            .bind(id)
            .bind(old_hash)
            .bind(new_hash)
    );
    Ok(rows == 1)
}

/// Makes every token of the user worthless; gives the new version.
pub async fn bump_token_version(tx: &mut Tx, id: UserId, now: Timestamp) -> Result<Option<i64>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        UPDATE app_user SET token_version = token_version + 1, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL
        RETURNING token_version")
        .bind(id).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Makes every token of an organization's users worthless; tells how many users there are.
pub async fn bump_token_versions(tx: &mut Tx, org: OrgId, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "UPDATE app_user SET token_version = token_version + 1, updated_at = $2 WHERE org_id = $1"
        )
        .bind(org)
        .bind(now)
    ))
}

/// A user as far as their names go.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(crate) struct Names {
    pub(crate) id: UserId,
    pub(crate) username: String,
    pub(crate) email: String,
}

/// The names of users that are not removed, behind this id in the order of the ids.
pub(crate) async fn names(tx: &mut Tx, after: Option<UserId>, limit: i64) -> Result<Vec<Names>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT id, username, email FROM app_user
        WHERE deleted_at IS NULL AND ($1 IS NULL OR id > $1)
        ORDER BY id LIMIT CAST($2 AS BIGINT)")
        .bind(after).bind(limit)
        .fetch_all(conn)
        .await)?)
}

/// The names of users whose folded form is still to be made, removed ones included.
pub(crate) async fn unfolded(tx: &mut Tx, limit: i64) -> Result<Vec<Names>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT id, username, email FROM app_user WHERE username_folded IS NULL ORDER BY id LIMIT CAST($1 AS BIGINT)")
        .bind(limit)
        .fetch_all(conn)
        .await)?)
}

/// Keeps the folded form of a user's names.
pub(crate) async fn keep_folded(tx: &mut Tx, names: &Names) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE app_user SET username_folded = $2, email_folded = $3
        WHERE id = $1 AND username_folded IS NULL"
        )
        .bind(names.id)
        .bind(fold(&names.username))
        .bind(fold(&names.email))
    );
    Ok(())
}

/// Counts the scope's users that are not removed, active or not.
pub async fn count(tx: &mut Tx, scope: &Scope) -> Result<i64> {
    object::live::<User>(scope).count(tx).await
}

fn logins() -> Select {
    object::live_as::<User>(SELECT_LOGIN, &Scope::everything())
}

#[cfg(test)]
mod tests;
