//! Stored roles: named sets of permissions of an organization.
//!
//! They decide nothing. What a user may do follows from their own role and its
//! static permissions; a stored role is a list to copy into the scopes of an API key.

use heddle_core::{OrgId, RoleId, Timestamp, UserId};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::select::{Bind, Select, Set, affected};
use crate::sort::{Key, Sort, Sorted};
use crate::{Result, Scope, Tx};

/// A role that an organization made for itself.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct StoredRole {
    pub id: RoleId,
    pub org_id: OrgId,
    pub name: String,
    pub description: Option<String>,
    #[sqlx(json)]
    pub permissions: Vec<String>,
    pub created_by: UserId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for StoredRole {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(r.name)"),
        Key::of("created_at", "r.created_at"),
        Key::of("updated_at", "r.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["r.id"];
}

#[derive(Debug, Clone)]
pub struct NewRole {
    pub id: RoleId,
    pub org_id: OrgId,
    pub name: String,
    pub description: Option<String>,
    pub permissions: Vec<String>,
    pub created_by: UserId,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct RoleUpdate {
    pub name: Option<String>,
    pub description: Set<String>,
    pub permissions: Option<Vec<String>>,
}

const SELECT: &str = "SELECT r.id, r.org_id, r.name, r.description, r.permissions, r.created_by,
    r.created_at, r.updated_at, r.deleted_at";
const FROM: &str = "FROM stored_role r";

/// # Errors
/// [`crate::Error::Unique`] with `stored_role_name` when the name is taken.
pub async fn insert(tx: &mut Tx, new: &NewRole) -> Result<StoredRole> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO stored_role (id, org_id, name, description, permissions, created_by, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
        RETURNING id, org_id, name, description, permissions, created_by, created_at, updated_at, deleted_at")
        .bind(new.id).bind(new.org_id).bind(&new.name).bind(new.description.as_ref())
        .bind(Json(&new.permissions)).bind(new.created_by).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: RoleId) -> Result<Option<StoredRole>> {
    live(scope).and_bind("r.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The role as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: RoleId) -> Result<Option<StoredRole>> {
    live(scope).and_bind("r.id = ?", Bind::Id(id.0)).one_locked(tx, "r").await
}

/// Roles from an offset, in the given order, and how many there are in all.
pub async fn slice(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    sort: Option<Sort<StoredRole>>,
    (limit, offset): (i64, i64),
) -> Result<(Vec<StoredRole>, i64)> {
    live(scope)
        .search(&["r.name", "r.description"], search)
        .slice(tx, &sort.unwrap_or_default().order(), limit, offset)
        .await
}

/// # Errors
/// [`crate::Error::Unique`] with `stored_role_name` when the name is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: RoleId,
    update: &RoleUpdate,
    now: Timestamp,
) -> Result<Option<StoredRole>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE stored_role
        SET name = COALESCE($2, name), description = CASE WHEN $3 THEN $4 ELSE description END,
            permissions = COALESCE($5, permissions), updated_at = $6
        WHERE id = $1 AND deleted_at IS NULL AND ($7 OR org_id = $8)
        RETURNING id, org_id, name, description, permissions, created_by, created_at, updated_at, deleted_at")
        .bind(id).bind(update.name.as_ref()).bind(update.description.is_set()).bind(update.description.value())
        .bind(update.permissions.as_ref().map(Json)).bind(now).bind(scope.org.is_none()).bind(scope.org)
        .fetch_optional(conn)
        .await)?)
}

/// Hides the role; false when there is none to hide. Its name is free again.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: RoleId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE stored_role SET deleted_at = $2, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL AND ($3 OR org_id = $4)"
        )
        .bind(id)
        .bind(now)
        .bind(scope.org.is_none())
        .bind(scope.org)
    );
    Ok(rows == 1)
}

/// Brings a removed role back.
///
/// # Errors
/// [`crate::Error::Unique`] with `stored_role_name` when its name was taken since.
pub async fn restore(tx: &mut Tx, scope: &Scope, id: RoleId, now: Timestamp) -> Result<Option<StoredRole>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE stored_role SET deleted_at = NULL, updated_at = $2
        WHERE id = $1 AND deleted_at IS NOT NULL AND ($3 OR org_id = $4)
        RETURNING id, org_id, name, description, permissions, created_by, created_at, updated_at, deleted_at")
        .bind(id).bind(now).bind(scope.org.is_none()).bind(scope.org)
        .fetch_optional(conn)
        .await)?)
}

fn live(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "r.org_id", None).and("r.deleted_at IS NULL")
}

#[cfg(test)]
mod tests;
