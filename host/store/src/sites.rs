//! Sites, with how much is on them.

use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select};
use crate::sort::{InOrder, Key, Sorted};

/// A place of an organization, with how many controllers and devices it has; removed ones do not count.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Site {
    pub id: SiteId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub name: String,
    /// Unique among the organization's sites that are not removed.
    pub slug: String,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub settings: Value,
    pub controller_count: i64,
    pub device_count: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Site {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(site.name)"),
        Key::of("slug", "LOWER(site.slug)"),
        Key::of("created_at", "site.created_at"),
        Key::of("updated_at", "site.updated_at"),
        Key::of("controller_count", "controller_count"),
        Key::of("device_count", "device_count"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["site.id"];
}

/// A row of `site` about to be written.
/// Its slug must be free among the organization's sites that are not removed.
#[derive(Debug, Clone)]
pub struct NewSite {
    pub id: SiteId,
    pub org_id: OrgId,
    pub name: String,
    pub slug: String,
    pub settings: Value,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct SiteUpdate {
    pub name: Option<String>,
    pub slug: Option<String>,
    pub settings: Option<Value>,
}

revised!(Site);

impl Object for Site {
    type Id = SiteId;
    const TABLE: Table = table!(
        "site",
        "site.id, site.revision, site.org_id, site.name, site.slug, site.settings, site.created_at, site.updated_at, site.deleted_at,
        (SELECT COUNT(*) FROM controller c
            WHERE c.site_id = site.id AND c.deleted_at IS NULL) AS controller_count,
        (SELECT COUNT(*) FROM device d
            WHERE d.org_id = site.org_id AND d.site_id = site.id AND d.deleted_at IS NULL) AS device_count",
        org: "org_id",
        site: "id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// # Errors
/// [`crate::error::Error::Unique`] with `site_slug` when the slug is taken.
pub async fn insert(tx: &mut Tx, new: &NewSite) -> Result<Site> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("name", &new.name)
        .with("slug", &new.slug)
        .with("settings", &new.settings);
    object::insert(tx, new.id, columns, new.now).await
}

/// Those of these sites that are in the scope and not removed.
pub async fn visible(tx: &mut Tx, scope: &Scope, ids: &[SiteId]) -> Result<Vec<SiteId>> {
    let found: Vec<(SiteId,)> = Select::new("SELECT site.id", "FROM site")
        .within(scope, "site.org_id", Some("site.id"))
        .and("site.deleted_at IS NULL")
        .and_in("site.id", ids.iter().map(|id| Bind::Id(id.0)))
        .all(tx, "site.id", i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// A page of sites with their counts; they come with the rows, not row by row.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Site>>,
) -> Result<(Vec<Site>, i64)> {
    object::live::<Site>(scope).search(&["site.name", "site.slug"], search).page(tx, page).await
}

/// A page of the sites below a controller: its own, and those that a person chose for the vendor's sites.
pub async fn below(
    tx: &mut Tx,
    scope: &Scope,
    controller: ControllerId,
    page: impl Into<InOrder<Site>>,
) -> Result<(Vec<Site>, i64)> {
    object::live::<Site>(scope)
        .and_bind(
            "EXISTS (SELECT 1 FROM controller c
                LEFT JOIN vendor_site v ON v.controller_id = c.id AND v.is_present
                WHERE (site.id = c.site_id OR site.id = v.site_id) AND c.id = ?)",
            Bind::Id(controller.0),
        )
        .page(tx, page)
        .await
}

/// # Errors
/// [`crate::error::Error::Unique`] with `site_slug` when the slug is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: SiteId,
    update: &SiteUpdate,
    now: Timestamp,
) -> Result<Option<Site>> {
    let columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .or_keep("slug", update.slug.as_ref())
        .or_keep("settings", update.settings.as_ref());
    object::update(tx, scope, id, columns, now).await
}

#[cfg(test)]
mod tests;
