//! Objects in the words of the model, as the last readings of their controllers found them: what lists show of them. How
//! readings write them is in [`record`], and how the readings went in [`crate::model_readings`].

pub mod of_site;
pub mod record;

use heddle_core::adapter::Origin;
use heddle_core::{ControllerId, DeviceId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub ModelObjectId,
}

/// An object in the words of the model, as the last reading of its controller found it.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct ModelObject {
    pub id: ModelObjectId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub site_id: SiteId,
    /// The vendor's id of the site that it is at, where its kind is of the vendor's sites.
    pub site_ref: Option<String>,
    pub controller_id: ControllerId,
    /// Kind of the model, such as `vlan`.
    pub kind: String,
    /// What the vendor knows it by; unique in its kind and site of the vendor's.
    pub key: String,
    /// As people call it.
    pub label: String,
    /// Who made it.
    pub origin: Origin,
    /// Identity of the device that it belongs to.
    pub device_key: Option<String>,
    /// That device, where the controller lists it.
    pub device_id: Option<DeviceId>,
    /// The vendor's own object that says most of it: its kind, key and locators.
    pub native: Option<Value>,
    /// As the schema of its kind says. What is not known is absent.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub fields: Value,
    pub first_seen_at: Timestamp,
    /// When a reading last found it changed; measured fields do not count.
    pub changed_at: Timestamp,
    /// When a reading last found it.
    pub observed_at: Timestamp,
}

impl Sorted for ModelObject {
    const KEYS: &'static [Key] = &[
        Key::of("label", "LOWER(model_object.label)"),
        Key::of("key", "model_object.key"),
        Key::of("changed_at", "model_object.changed_at"),
        Key::of("observed_at", "model_object.observed_at"),
    ];
    const DEFAULT: &'static str = "label";
    const LAST: &'static [&'static str] = &["model_object.id"];
}

/// Narrows a list of objects of a kind within its scope. A field that is `None` has no effect; all others must hold.
#[derive(Debug, Clone, Default)]
pub struct ModelFilter {
    pub site_id: Option<SiteId>,
    pub controller_id: Option<ControllerId>,
    /// Adapter of its controller.
    pub vendor: Option<String>,
    /// Identity of the device that it belongs to.
    pub device: Option<String>,
    pub origin: Option<Origin>,
    /// Part of its label, its key or a text among its fields.
    pub search: Option<String>,
}

const SELECT: &str = "SELECT model_object.id, model_object.org_id, model_object.site_id,
    NULLIF(model_object.site_ref, '') AS site_ref, model_object.controller_id, model_object.kind, model_object.key,
    model_object.label, model_object.origin, model_object.device_key, d.id AS device_id, model_object.native,
    model_object.fields, model_object.first_seen_at, model_object.changed_at, model_object.observed_at";
/// Objects of removed controllers are not listed.
const FROM: &str =
    "FROM model_object JOIN controller c ON c.id = model_object.controller_id AND c.deleted_at IS NULL
    LEFT JOIN device d ON d.controller_id = model_object.controller_id AND d.identity = model_object.device_key
        AND d.deleted_at IS NULL";

/// Returns a page of the objects of a kind, and how many there are on all pages.
/// They are ordered by their labels unless the page names another order.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    kind: &str,
    filter: &ModelFilter,
    page: impl Into<InOrder<ModelObject>>,
) -> Result<(Vec<ModelObject>, i64)> {
    let searched = filter.search.as_deref().map(str::to_lowercase);
    of_kind(scope, kind)
        .and_some("model_object.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .and_some("model_object.controller_id = ?", filter.controller_id.map(|id| Bind::Id(id.0)))
        .and_some("c.vendor = ?", filter.vendor.clone().map(Bind::Text))
        .and_some("model_object.device_key = ?", filter.device.clone().map(Bind::Text))
        .and_some("model_object.origin = ?", filter.origin.map(|origin| Bind::Text(origin.to_string())))
        .search(&["model_object.searched"], searched.as_deref())
        .page(tx, page)
        .await
}

/// Returns one object of a kind; `None` where it is outside of the scope, or there is none.
pub async fn find(tx: &mut Tx, scope: &Scope, kind: &str, id: ModelObjectId) -> Result<Option<ModelObject>> {
    of_kind(scope, kind).and_bind("model_object.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Objects of these kinds at a site, in an order that does not change: at most so many, behind so many others.
pub async fn slice_of_site(
    tx: &mut Tx,
    scope: &Scope,
    site: SiteId,
    kinds: &[&str],
    (limit, offset): (i64, i64),
) -> Result<Vec<ModelObject>> {
    let kinds = kinds.iter().map(|kind| Bind::Text((*kind).to_owned()));
    let order = "model_object.controller_id, model_object.site_ref, model_object.kind, model_object.key";
    let (found, _) = Select::new(SELECT, FROM)
        .within(scope, "model_object.org_id", Some("model_object.site_id"))
        .and_bind("model_object.site_id = ?", Bind::Id(site.0))
        .and_in("model_object.kind", kinds)
        .slice(tx, order, limit, offset)
        .await?;
    Ok(found)
}

fn of_kind(scope: &Scope, kind: &str) -> Select {
    Select::new(SELECT, FROM)
        .within(scope, "model_object.org_id", Some("model_object.site_id"))
        .and_bind("model_object.kind = ?", Bind::Text(kind.to_owned()))
}

/// How many objects of a kind there are.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct KindCount {
    pub kind: String,
    pub objects: i64,
}

/// Counts the objects of each kind that has any.
pub async fn counts(tx: &mut Tx, scope: &Scope) -> Result<Vec<KindCount>> {
    Select::new(
        "SELECT model_object.kind, COUNT(*) AS objects",
        "FROM model_object JOIN controller c ON c.id = model_object.controller_id AND c.deleted_at IS NULL",
    )
    .within(scope, "model_object.org_id", Some("model_object.site_id"))
    .grouped(tx, "model_object.kind")
    .await
}

/// Takes the objects of a controller along to its new site, with their drift, except those at a vendor's site for which a person chose one.
pub(crate) async fn follow_controller(tx: &mut Tx, controller: ControllerId, site: SiteId) -> Result<()> {
    crate::drift::follow_controller(tx, controller, site).await?;
    affected!(
        tx,
        sqlx::query(
            "UPDATE model_object SET site_id = $2
            WHERE controller_id = $1 AND site_id <> $2 AND site_ref NOT IN (
                SELECT v.site_ref FROM vendor_site v JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL
                WHERE v.controller_id = $1)"
        )
        .bind(controller)
        .bind(site)
    );
    Ok(())
}

/// Takes the objects of a vendor's site along to the site of ours that it is now.
pub(crate) async fn follow_vendor_site(
    tx: &mut Tx,
    controller: ControllerId,
    site_ref: &str,
    site: SiteId,
) -> Result<()> {
    crate::drift::follow_vendor_site(tx, controller, site_ref, site).await?;
    affected!(
        tx,
        sqlx::query(
            "UPDATE model_object SET site_id = $3 WHERE controller_id = $1 AND site_ref = $2 AND site_id <> $3"
        )
        .bind(controller)
        .bind(site_ref)
        .bind(site)
    );
    Ok(())
}

/// Removes the objects of a vendor's site that is ignored, without a trace: the next reading of it is the first one.
pub(crate) async fn forget_vendor_site(tx: &mut Tx, controller: ControllerId, site_ref: &str) -> Result<()> {
    for statement in [
        "DELETE FROM model_object WHERE controller_id = $1 AND site_ref = $2",
        "DELETE FROM model_difference WHERE controller_id = $1 AND site_ref = $2",
        "DELETE FROM model_reading WHERE controller_id = $1 AND site_ref = $2",
        "DELETE FROM wanted_object WHERE controller_id = $1 AND site_ref = $2",
        "DELETE FROM wanted_list WHERE controller_id = $1 AND site_ref = $2",
        "DELETE FROM drift WHERE controller_id = $1 AND site_ref = $2 AND closed_at IS NULL",
    ] {
        affected!(tx, sqlx::query(statement).bind(controller).bind(site_ref));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
