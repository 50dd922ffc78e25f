//! What events are about, as it is now: devices, controllers and sites by their ids.

use std::collections::HashMap;

use heddle_core::{ControllerId, DeviceId, OrgId, SiteId};
use serde_json::{Value, json};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::events::StoredEvent;
use crate::select::{Bind, Select};

/// The objects that a stretch of events is about.
#[derive(Debug, Default)]
pub struct About {
    devices: HashMap<DeviceId, Value>,
    controllers: HashMap<ControllerId, Value>,
    sites: HashMap<SiteId, Value>,
}

#[derive(FromRow)]
struct DeviceRow {
    id: DeviceId,
    name: String,
    display_name: Option<String>,
    kind: String,
    status: String,
    state: String,
    model: Option<String>,
    firmware: Option<String>,
    mac: Option<String>,
    #[sqlx(json)]
    tags: Vec<String>,
}

#[derive(FromRow)]
struct ControllerRow {
    id: ControllerId,
    name: String,
    vendor: String,
    status: String,
}

#[derive(FromRow)]
struct SiteRow {
    id: SiteId,
    name: String,
    slug: String,
}

impl About {
    /// Reads what these events of an organization are about: one statement for each kind of object.
    pub async fn read(tx: &mut Tx, org: OrgId, events: &[StoredEvent]) -> Result<Self> {
        let devices: Vec<DeviceRow> = by_id(
            tx,
            ("SELECT t.id, t.name, t.display_name, t.kind, t.status, t.state, t.model, t.firmware, t.mac, t.tags",
             "FROM device t"),
            org,
            events.iter().filter_map(|stored| stored.device_id).map(|id| Bind::Id(id.0)).collect(),
        )
        .await?;
        let controllers: Vec<ControllerRow> = by_id(
            tx,
            ("SELECT t.id, t.name, t.vendor, t.status", "FROM controller t"),
            org,
            events.iter().filter_map(|stored| stored.controller_id).map(|id| Bind::Id(id.0)).collect(),
        )
        .await?;
        let sites: Vec<SiteRow> = by_id(
            tx,
            ("SELECT t.id, t.name, t.slug", "FROM site t"),
            org,
            events.iter().filter_map(|stored| stored.site_id).map(|id| Bind::Id(id.0)).collect(),
        )
        .await?;
        let device = |row: DeviceRow| {
            let about = json!({
                "name": row.name, "display_name": row.display_name, "kind": row.kind, "status": row.status,
                "state": row.state, "model": row.model, "firmware": row.firmware, "mac": row.mac, "tags": row.tags,
            });
            (row.id, about)
        };
        let controller = |row: ControllerRow| {
            (row.id, json!({ "name": row.name, "vendor": row.vendor, "status": row.status }))
        };
        Ok(Self {
            devices: devices.into_iter().map(device).collect(),
            controllers: controllers.into_iter().map(controller).collect(),
            sites: sites
                .into_iter()
                .map(|row| (row.id, json!({ "name": row.name, "slug": row.slug })))
                .collect(),
        })
    }

    /// `device`, `controller` and `site` of one event, as far as it has them and they are known.
    pub fn of(&self, stored: &StoredEvent) -> Value {
        let device = stored.device_id.and_then(|id| self.devices.get(&id));
        let controller = stored.controller_id.and_then(|id| self.controllers.get(&id));
        let site = stored.site_id.and_then(|id| self.sites.get(&id));
        let known = [("device", device), ("controller", controller), ("site", site)];
        let known = known.into_iter().filter_map(|(name, object)| Some((name.to_owned(), object?.clone())));
        Value::Object(known.collect())
    }
}

async fn by_id<T>(
    tx: &mut Tx,
    (select, from): (&'static str, &'static str),
    org: OrgId,
    ids: Vec<Bind>,
) -> Result<Vec<T>>
where
    T: crate::select::Row,
{
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    // A removed object is still what an event is about.
    Select::new(select, from)
        .and_bind("t.org_id = ?", Bind::Id(org.0))
        .and_in("t.id", ids)
        .all(tx, "t.id", limit)
        .await
}
