//! All objects of some kinds at a site, whichever controller has them, and what is known of their lists: for views over all
//! of its controllers. Two statements, however many controllers there are.

use heddle_core::adapter::{Completeness, Origin};
use heddle_core::{ControllerId, SiteId, Timestamp};
use serde_json::Value;
use sqlx::FromRow;

use super::ModelObjectId;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select};

/// Most objects that are loaded of a site. With more, none of its lists is known to be whole.
pub const OBJECTS_MAX: usize = 50_000;
/// Most lists that are loaded of a site.
const LISTS_MAX: i64 = 20_000;

/// An object at the site, with what views compare.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct AtSite {
    pub id: ModelObjectId,
    pub controller_id: ControllerId,
    /// The vendor's id of the site; empty where the object is the controller's.
    pub site_ref: String,
    pub kind: String,
    pub key: String,
    pub label: String,
    pub origin: Origin,
    pub device_key: Option<String>,
    pub fields: Value,
}

/// A controller of the site, and how the last reading of one of its lists went. A controller without any such list has one
/// row without a kind.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ListAtSite {
    pub controller_id: ControllerId,
    pub name: String,
    pub vendor: String,
    pub kind: Option<String>,
    pub site_ref: Option<String>,
    /// What the vendor calls that site.
    pub site_name: Option<String>,
    /// When a reading last came to the end of the list.
    pub read_at: Option<Timestamp>,
    pub complete: Option<Completeness>,
    /// Objects of the last reading that could not be stored.
    pub left_out: Option<i64>,
}

impl ListAtSite {
    /// Whether the list was read to its end, and everything in it is stored.
    pub fn is_whole(&self) -> bool {
        self.read_at.is_some() && self.complete == Some(Completeness::Complete) && self.left_out == Some(0)
    }
}

/// The objects of these kinds at a site, and whether these are all.
pub async fn objects(
    tx: &mut Tx,
    scope: &Scope,
    site: SiteId,
    kinds: &[&'static str],
) -> Result<(Vec<AtSite>, bool)> {
    let limit = i64::try_from(OBJECTS_MAX).unwrap_or(i64::MAX);
    let mut found: Vec<AtSite> = Select::new(
        "SELECT o.id, o.controller_id, o.site_ref, o.kind, o.key, o.label, o.origin, o.device_key, o.fields",
        "FROM model_object o JOIN controller c ON c.id = o.controller_id AND c.deleted_at IS NULL",
    )
    .within(scope, "o.org_id", Some("o.site_id"))
    .and_bind("o.site_id = ?", Bind::Id(site.0))
    .and_in("o.kind", kinds.iter().map(|kind| Bind::Text((*kind).to_owned())))
    .all(tx, "o.kind, o.controller_id, o.site_ref, o.key", limit + 1)
    .await?;
    let are_all = found.len() <= OBJECTS_MAX;
    found.truncate(OBJECTS_MAX);
    Ok((found, are_all))
}

/// The controllers that have something at a site, by their names, with the lists of these kinds there. The kinds are those
/// that views of VLANs compare.
pub async fn lists(tx: &mut Tx, scope: &Scope, site: SiteId) -> Result<Vec<ListAtSite>> {
    Select::new(
        "SELECT c.id AS controller_id, c.name, c.vendor, r.kind, r.site_ref, v.name AS site_name, r.read_at, r.complete,
            r.left_out",
        "FROM controller c
            LEFT JOIN model_reading r ON r.controller_id = c.id
                AND r.kind IN ('vlan', 'port', 'ssid', 'neighbour', 'interface', 'system')
            LEFT JOIN vendor_site v ON v.controller_id = c.id AND v.site_ref = r.site_ref
            LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL",
    )
    .within(scope, "c.org_id", Some("COALESCE(s.id, c.site_id)"))
    .and("c.deleted_at IS NULL")
    .and_bind("COALESCE(s.id, c.site_id) = ?", Bind::Id(site.0))
    .all(tx, "LOWER(c.name), c.id, r.site_ref, r.kind", LISTS_MAX)
    .await
}
