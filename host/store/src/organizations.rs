//! Organizations. Removing one hides it; its rows stay.

use heddle_core::organization_settings::OrganizationSettings;
use heddle_core::{OrgId, Tier, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope};
use crate::sort::{InOrder, Key, Sorted};

/// An organization: its users, sites and other objects are kept apart from those of all others.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Organization {
    pub id: OrgId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
    pub name: String,
    /// Unique among the organizations that are not removed.
    pub slug: String,
    /// How much it may have.
    pub tier: Tier,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub settings: Value,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Organization {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(organization.name)"),
        Key::of("slug", "LOWER(organization.slug)"),
        Key::of("tier", "CASE organization.tier WHEN 'free' THEN 0 WHEN 'standard' THEN 1 ELSE 2 END"),
        Key::of("created_at", "organization.created_at"),
        Key::of("updated_at", "organization.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["organization.id"];
}

/// A row of `organization` about to be written.
/// Its slug must be free among all organizations that are not removed.
#[derive(Debug, Clone)]
pub struct NewOrganization {
    pub id: OrgId,
    pub name: String,
    pub slug: String,
    pub settings: Value,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct OrganizationUpdate {
    pub name: Option<String>,
    pub slug: Option<String>,
    pub tier: Option<Tier>,
    pub settings: Option<Value>,
}

/// Narrows a list of organizations within its scope. A field that is `None` has no effect.
/// All others must hold.
#[derive(Debug, Clone, Default)]
pub struct OrganizationFilter {
    pub tier: Option<Tier>,
    /// Part of the name or the slug.
    pub search: Option<String>,
}

revised!(Organization);

impl Object for Organization {
    type Id = OrgId;
    const TABLE: Table = table!(
        "organization",
        "organization.id, organization.revision, organization.name, organization.slug, organization.tier, organization.settings,
        organization.created_at, organization.updated_at, organization.deleted_at",
        org: "id"
    );

    fn organization(&self) -> OrgId {
        self.id
    }
}

/// A new organization is of the tier `standard`.
///
/// # Errors
/// [`crate::error::Error::Unique`] with `organization_slug` when the slug is taken.
pub async fn insert(tx: &mut Tx, new: &NewOrganization) -> Result<Organization> {
    let columns =
        Columns::default().with("name", &new.name).with("slug", &new.slug).with("settings", &new.settings);
    object::insert(tx, new.id, columns, new.now).await
}

/// Returns a page of the scope's organizations that are not removed, and how many there are on all pages.
/// The oldest come first unless the page names another order.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &OrganizationFilter,
    page: impl Into<InOrder<Organization>>,
) -> Result<(Vec<Organization>, i64)> {
    object::live::<Organization>(scope)
        .and_some("organization.tier = ?", filter.tier.map(|tier| Bind::Text(tier.to_string())))
        .search(&["organization.name", "organization.slug"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// # Errors
/// [`crate::error::Error::Unique`] with `organization_slug` when the slug is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: OrgId,
    update: &OrganizationUpdate,
    now: Timestamp,
) -> Result<Option<Organization>> {
    let columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .or_keep("slug", update.slug.as_ref())
        .or_keep("tier", update.tier.map(|tier| tier.to_string()))
        .or_keep("settings", update.settings.as_ref());
    object::update(tx, scope, id, columns, now).await
}

/// Every organization's settings, also of those that were removed.
pub async fn settings(tx: &mut Tx) -> Result<Vec<(OrgId, OrganizationSettings)>> {
    let rows: Vec<(OrgId, serde_json::Value)> = on!(tx, conn => sqlx::query_as("SELECT id, settings FROM organization ORDER BY id")
            .fetch_all(conn)
            .await)?;
    Ok(rows.into_iter().map(|(org, stored)| (org, OrganizationSettings::read(&stored))).collect())
}

/// The settings of one organization. The defaults where it is removed or never was.
pub async fn settings_of(tx: &mut Tx, org: OrgId) -> Result<OrganizationSettings> {
    let row: Option<(serde_json::Value,)> = on!(tx, conn =>
        sqlx::query_as("SELECT settings FROM organization WHERE id = $1 AND deleted_at IS NULL")
            .bind(org)
            .fetch_optional(conn)
            .await)?;
    Ok(row.map(|(stored,)| OrganizationSettings::read(&stored)).unwrap_or_default())
}

#[cfg(test)]
mod tests;
