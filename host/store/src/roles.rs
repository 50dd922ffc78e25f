//! Stored roles: named sets of permissions of an organization.
//!
//! They decide nothing. What a user may do follows from their own role and its
//! static permissions; a stored role is a list to copy into the scopes of an API key.

use heddle_core::{OrgId, Timestamp, UserId};
use serde_json::json;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Scope, Set};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub RoleId,
}

/// A role that an organization made for itself.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct StoredRole {
    pub id: RoleId,
    /// How often people have edited it.
    pub revision: i64,
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
        Key::of("name", "LOWER(stored_role.name)"),
        Key::of("created_at", "stored_role.created_at"),
        Key::of("updated_at", "stored_role.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["stored_role.id"];
}

/// A row of `stored_role` about to be written. Its name must be free in the organization, whatever its case.
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

revised!(StoredRole);

impl Object for StoredRole {
    type Id = RoleId;
    const TABLE: Table = table!(
        "stored_role",
        "stored_role.id, stored_role.revision, stored_role.org_id, stored_role.name, stored_role.description, stored_role.permissions,
        stored_role.created_by, stored_role.created_at, stored_role.updated_at, stored_role.deleted_at",
        org: "org_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// # Errors
/// [`crate::error::Error::Unique`] with `stored_role_name` when the name is taken.
pub async fn insert(tx: &mut Tx, new: &NewRole) -> Result<StoredRole> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("name", &new.name)
        .or_null("description", new.description.as_ref())
        .with("permissions", json!(new.permissions))
        .with("created_by", new.created_by.0);
    object::insert(tx, new.id, columns, new.now).await
}

/// Roles from an offset, in the given order, and how many there are in all.
pub async fn slice(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    order: &InOrder<StoredRole>,
    (limit, offset): (i64, i64),
) -> Result<(Vec<StoredRole>, i64)> {
    object::live::<StoredRole>(scope)
        .search(&["stored_role.name", "stored_role.description"], search)
        .slice(tx, &order.sort.order(), limit, offset)
        .await
}

/// # Errors
/// [`crate::error::Error::Unique`] with `stored_role_name` when the name is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: RoleId,
    update: &RoleUpdate,
    now: Timestamp,
) -> Result<Option<StoredRole>> {
    let columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .set("description", &update.description)
        .or_keep("permissions", update.permissions.as_ref().map(|words| json!(words)));
    object::update(tx, scope, id, columns, now).await
}

#[cfg(test)]
mod tests;
