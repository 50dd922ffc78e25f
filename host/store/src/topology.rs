//! What the topology of a site is made of: its controllers with how their lists were read, its devices, and the objects of the
//! model that say how they are connected. Each is one statement, however large the site is.

use heddle_core::adapter::Completeness;
use heddle_core::{ControllerId, DeviceId, OrgId, SiteId, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::model_objects::ModelObjectId;
use crate::select::{Bind, Scope, Select};

/// Most lists of all controllers of a site.
const SOURCES_MAX: i64 = 20_000;

/// A controller that has something at the site, and how one of its lists there was read.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Source {
    pub controller_id: ControllerId,
    pub name: String,
    pub url: String,
    /// When its devices were last read.
    pub last_sync_at: Option<Timestamp>,
    /// Kind of the list; empty where no list of it was read.
    pub kind: Option<String>,
    /// The vendor's id of the site of the list.
    pub site_ref: Option<String>,
    /// When a reading last came to the end of the list.
    pub read_at: Option<Timestamp>,
    pub complete: Option<Completeness>,
    pub error: Option<String>,
    pub objects: Option<i64>,
}

/// What the vendor knows an object by.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NativeName {
    pub kind: String,
    pub key: String,
}

/// An object of the model, with its fields as text: the reader takes out of them what it needs.
#[derive(Debug, FromRow)]
pub struct SiteObject {
    pub id: ModelObjectId,
    pub controller_id: ControllerId,
    pub kind: String,
    /// The vendor's id of the site; empty where the object is the controller's.
    pub site_ref: String,
    pub key: String,
    pub label: String,
    /// Identity of the device that it belongs to.
    pub device_key: Option<String>,
    #[sqlx(json(nullable))]
    pub native: Option<NativeName>,
    #[sqlx(json)]
    pub fields: Box<RawValue>,
}

/// A device that objects of the model belong to.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct SiteDevice {
    pub id: DeviceId,
    pub controller_id: ControllerId,
    pub identity: String,
    /// As people call it.
    pub name: String,
    pub kind: String,
    pub mac: Option<String>,
    #[sqlx(json)]
    pub addresses: Vec<String>,
}

/// The controllers of a site, each with its lists there; one row without a list where it has none.
pub async fn sources(tx: &mut Tx, org: OrgId, site: SiteId) -> Result<Vec<Source>> {
    Select::new(
        "SELECT c.id AS controller_id, c.name, c.url, c.last_sync_at, r.kind, r.site_ref, r.read_at, r.complete, r.error,
            r.objects",
        "FROM controller c LEFT JOIN model_reading r ON r.controller_id = c.id
            LEFT JOIN vendor_site v ON v.controller_id = r.controller_id AND v.site_ref = r.site_ref
            LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL",
    )
    .and("c.deleted_at IS NULL")
    .and_bind("c.org_id = ?", Bind::Id(org.0))
    .and_bind("COALESCE(s.id, c.site_id) = ?", Bind::Id(site.0))
    .all(tx, "c.id, r.kind, r.site_ref", SOURCES_MAX)
    .await
}

/// The objects of these kinds at a site, of controllers that are there; at most so many.
pub async fn objects(
    tx: &mut Tx,
    org: OrgId,
    site: SiteId,
    (kinds, limit): (&[&str], i64),
) -> Result<Vec<SiteObject>> {
    Select::new(
        "SELECT o.id, o.controller_id, o.kind, o.site_ref, o.key, o.label, o.device_key, o.native, o.fields",
        "FROM model_object o JOIN controller c ON c.id = o.controller_id AND c.deleted_at IS NULL",
    )
    .and_bind("o.org_id = ?", Bind::Id(org.0))
    .and_bind("o.site_id = ?", Bind::Id(site.0))
    .and_in("o.kind", kinds.iter().map(|kind| Bind::Text((*kind).to_owned())))
    .all(tx, "o.controller_id, o.kind, o.site_ref, o.key", limit)
    .await
}

/// The devices of a site that have something of their own, such as ports; clients of the network have nothing.
pub async fn devices(tx: &mut Tx, org: OrgId, site: SiteId, limit: i64) -> Result<Vec<SiteDevice>> {
    Select::new(
        "SELECT d.id, d.controller_id, d.identity, COALESCE(d.display_name, d.name) AS name, d.kind, d.mac, d.addresses",
        "FROM device d",
    )
    .and("d.deleted_at IS NULL")
    .and_bind("d.org_id = ?", Bind::Id(org.0))
    .and_bind("d.site_id = ?", Bind::Id(site.0))
    .and(
        "EXISTS (SELECT 1 FROM model_object o WHERE o.controller_id = d.controller_id AND o.device_key = d.identity
            AND o.kind IN ('system', 'interface', 'port', 'radio'))",
    )
    .all(tx, "d.controller_id, d.identity", limit)
    .await
}

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct ObjectPlace {
    pub org_id: OrgId,
    pub site_id: SiteId,
}

/// Where an object of any kind is; `None` where it is outside of the scope, or there is none.
pub async fn place_of(tx: &mut Tx, scope: &Scope, id: ModelObjectId) -> Result<Option<ObjectPlace>> {
    Select::new(
        "SELECT o.org_id, o.site_id",
        "FROM model_object o JOIN controller c ON c.id = o.controller_id AND c.deleted_at IS NULL",
    )
    .within(scope, "o.org_id", Some("o.site_id"))
    .and_bind("o.id = ?", Bind::Id(id.0))
    .one(tx)
    .await
}

#[cfg(test)]
mod tests;
