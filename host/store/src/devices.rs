//! Devices as they were last seen. What people write on them is in [`labels`].
//!
//! A whole controller's devices are written at once, in a number of statements
//! that does not grow with them, except that very long lists go in pieces.

mod labels;

use std::collections::{BTreeSet, HashMap, HashSet};

use heddle_core::adapter::{Completeness, DeviceStatus, SeenDevice};
use heddle_core::device::DeviceState;
use heddle_core::{Clock, ControllerId, DeviceId, OrgId, SiteId, Timestamp};
pub use labels::{Labels, lock_all, remove_all, set_labels};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, affected, bind_all};
use crate::sort::{InOrder, Key, Sorted};

/// A device as its controller last reported it, with what people wrote on it.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Device {
    pub id: DeviceId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub site_id: SiteId,
    /// The vendor's id of the site that it is at, where the vendor has sites.
    pub site_ref: Option<String>,
    pub controller_id: ControllerId,
    /// What the controller knows it by; unique there.
    pub identity: String,
    /// As the controller calls it.
    pub name: String,
    /// As people call it.
    pub display_name: Option<String>,
    pub kind: String,
    pub status: DeviceStatus,
    /// In `maintenance` it may go offline without an alarm.
    pub state: DeviceState,
    #[sqlx(json)]
    pub tags: Vec<String>,
    pub notes: Option<String>,
    pub model: Option<String>,
    pub serial: Option<String>,
    pub firmware: Option<String>,
    pub mac: Option<String>,
    #[sqlx(json)]
    pub addresses: Vec<String>,
    pub attributes: Value,
    /// Counters and gauges of the last reading.
    pub measurements: Value,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Device {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(device.name)"),
        Key::of("kind", "device.kind"),
        Key::of("status", "device.status"),
        Key::of("state", "device.state"),
        Key::nullable("model", "LOWER(device.model)"),
        Key::nullable("firmware", "LOWER(device.firmware)"),
        Key::of("first_seen_at", "device.first_seen_at"),
        Key::of("last_seen_at", "device.last_seen_at"),
        Key::of("updated_at", "device.updated_at"),
    ];
    const DEFAULT: &'static str = "first_seen_at";
    const LAST: &'static [&'static str] = &["device.id"];
}

/// Narrows a list of devices within its scope. A field that is `None` has no effect; all others must hold.
#[derive(Debug, Clone, Default)]
pub struct DeviceFilter {
    pub site_id: Option<SiteId>,
    pub controller_id: Option<ControllerId>,
    /// Adapter of its controller.
    pub vendor: Option<String>,
    pub kind: Option<String>,
    pub status: Option<DeviceStatus>,
    pub state: Option<DeviceState>,
    /// Exactly one of its tags.
    pub tag: Option<String>,
    /// Part of either name, identity, model, serial number or hardware address.
    pub search: Option<String>,
}

/// What one reading of a controller showed.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub controller_id: ControllerId,
    pub devices: &'a [SeenDevice],
    /// The sites of ours that the vendor's sites are; `site_id` where a device is at none of them.
    pub sites: &'a HashMap<String, SiteId>,
    /// The vendor's sites whose devices were not listed: nothing is known of those.
    pub unread: &'a HashSet<String>,
    /// Only a complete list says that a device which is not on it is gone.
    pub complete: Completeness,
}

impl Seen<'_> {
    fn site_of(&self, device: &SeenDevice) -> SiteId {
        let mapped = device.site.as_ref().and_then(|site_ref| self.sites.get(site_ref));
        mapped.copied().unwrap_or(self.site_id)
    }

    /// The devices with their numbers on the list, each identity once.
    ///
    /// Several of the vendor's sites may list one device, such as a phone that was seen at each of them. It is where it is
    /// online; else where it is stored, so that it does not move back and forth; else where it was listed last.
    fn each_once(&self, stored: &HashMap<&str, &Device>) -> HashMap<&str, (usize, &SeenDevice)> {
        let weight = |device: &SeenDevice| {
            let is_stored_here =
                stored.get(device.identity.as_str()).is_some_and(|d| d.site_ref == device.site);
            (device.status == DeviceStatus::Online, is_stored_here)
        };
        let mut each: HashMap<&str, (usize, &SeenDevice)> = HashMap::new();
        for (at, device) in self.devices.iter().enumerate() {
            let other = each.get(device.identity.as_str());
            if other.is_none_or(|(_, other)| weight(other) <= weight(device)) {
                each.insert(&device.identity, (at, device));
            }
        }
        each
    }

    /// The devices that complete lists would have if they were still there, those seen first coming first. One that is offline
    /// is not missing.
    fn missing<'d>(
        &self,
        stored: &HashMap<&str, &'d Device>,
        listed: &HashMap<&str, (usize, &SeenDevice)>,
    ) -> Vec<&'d Device> {
        if self.complete != Completeness::Complete {
            return Vec::new();
        }
        let is_missing = |device: &&Device| {
            device.deleted_at.is_none()
                && device.status != DeviceStatus::Offline
                && !listed.contains_key(device.identity.as_str())
                && !device.site_ref.as_ref().is_some_and(|site_ref| self.unread.contains(site_ref))
        };
        let mut missing: Vec<&Device> = stored.values().copied().filter(is_missing).collect();
        missing.sort_by_key(|device| (device.first_seen_at, device.id));
        missing
    }
}

impl Device {
    /// Whether it is there, and at one of these sites of the vendor's.
    fn is_at(&self, sites: &BTreeSet<String>) -> bool {
        self.deleted_at.is_none() && self.site_ref.as_ref().is_some_and(|site_ref| sites.contains(site_ref))
    }
}

/// Whether a reading created a device. A removed device that is reported again counts as created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    Created,
    Known,
}

/// What a reading meant for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub device_id: DeviceId,
    pub site_id: SiteId,
    pub name: String,
    /// Set by people, not by the reading.
    pub state: DeviceState,
    pub novelty: Novelty,
    /// Names of the fields with another value than before; not the status.
    pub changed: Vec<&'static str>,
    /// The new status, when it is another one or the device is new.
    pub status: Option<DeviceStatus>,
}

revised!(Device);

impl Object for Device {
    type Id = DeviceId;
    const TABLE: Table = table!(
        "device",
        "device.id, device.revision, device.org_id, device.site_id, device.site_ref, device.controller_id, device.identity, device.name,
        device.display_name, device.kind, device.status, device.state, device.tags, device.notes, device.model,
        device.serial, device.firmware, device.mac, device.addresses, device.attributes, device.measurements,
        device.first_seen_at, device.last_seen_at, device.updated_at, device.deleted_at",
        org: "org_id",
        site: "site_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// Rows of one statement; keeps its parameters below what both databases accept.
const ROWS_PER_STATEMENT: usize = 1_000;
/// Most devices of one controller.
pub const DEVICES_MAX: u32 = 100_000;

/// Returns a page of the devices that are not removed, and how many there are on all pages.
/// The ones seen first come first unless the page names another order.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &DeviceFilter,
    page: impl Into<InOrder<Device>>,
) -> Result<(Vec<Device>, i64)> {
    object::live::<Device>(scope)
        .and_some("device.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .and_some("device.controller_id = ?", filter.controller_id.map(|id| Bind::Id(id.0)))
        .and_some(
            "device.controller_id IN (SELECT c.id FROM controller c WHERE c.vendor = ?)",
            filter.vendor.clone().map(Bind::Text),
        )
        .and_some("device.kind = ?", filter.kind.clone().map(Bind::Text))
        .and_some("device.status = ?", filter.status.map(|status| Bind::Text(status.to_string())))
        .and_some("device.state = ?", filter.state.map(|state| Bind::Text(state.to_string())))
        .and_some(labels::HAS_TAG, filter.tag.as_deref().map(|tag| Bind::Text(labels::tag_in_list(tag))))
        .search(
            &[
                "device.name",
                "device.display_name",
                "device.identity",
                "device.model",
                "device.serial",
                "device.mac",
            ],
            filter.search.as_deref(),
        )
        .page(tx, page)
        .await
}

/// What only a reading of all sites can say, of devices that a reading of some of them is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// The sites that were read lack a device that is stored there: it may be at another one.
    pub is_any_missing: bool,
    /// A site lists a device as online that is stored at a site that was left out, and is not online there.
    pub is_any_elsewhere: bool,
}

/// Records a reading: new devices are created, others updated, and with a
/// complete list those that are missing go offline, except at sites that were not read.
///
/// Gives one sighting per seen device, then one per device that went offline.
pub async fn upsert_seen(tx: &mut Tx, seen: &Seen<'_>, clock: &Clock) -> Result<Vec<Sighting>> {
    Ok(upsert_some(tx, seen, &BTreeSet::new(), clock).await?.0)
}

/// The same of a reading that left sites out which it could have read; gives also what it leaves open.
///
/// A device that is stored at a site that was left out stays as it is: it is where it is online, which the others cannot
/// say of it. One that is missing stays as it is, too.
pub async fn upsert_some(
    tx: &mut Tx,
    seen: &Seen<'_>,
    left_out: &BTreeSet<String>,
    clock: &Clock,
) -> Result<(Vec<Sighting>, Open)> {
    let now = clock.now();
    let stored = stored_of(tx, seen, left_out).await?;
    let stored: HashMap<&str, &Device> = stored.iter().map(|d| (d.identity.as_str(), d)).collect();
    let mut open = Open::default();
    let mut fresh = seen.each_once(&stored);
    fresh.retain(|identity, (_, device)| {
        let known = stored.get(identity).filter(|known| known.is_at(left_out));
        open.is_any_elsewhere |= known.is_some_and(|known| is_online_only(device, known));
        known.is_none()
    });
    let mut in_order: Vec<(usize, &SeenDevice)> = fresh.values().copied().collect();
    in_order.sort_by_key(|(at, _)| *at);

    let mut sightings = Vec::with_capacity(in_order.len());
    let (mut to_write, mut unchanged) = (Vec::new(), Vec::new());
    for (_, device) in in_order {
        let known = stored.get(device.identity.as_str()).copied();
        let site_id = seen.site_of(device);
        let sighting = compare(known, device, site_id, clock);
        let is_new = sighting.novelty == Novelty::Created;
        let moved = known.is_some_and(|known| known.site_id != site_id || known.site_ref != device.site);
        let has_moved_on = known.is_some_and(|known| known.measurements != device.measurements);
        if is_new || moved || has_moved_on || !sighting.changed.is_empty() || sighting.status.is_some() {
            to_write.push((sighting.device_id, device));
        } else {
            unchanged.push(Bind::Id(sighting.device_id.0));
        }
        sightings.push(sighting);
    }
    for rows in to_write.chunks(ROWS_PER_STATEMENT) {
        write(tx, seen, rows, now).await?;
    }
    for ids in unchanged.chunks(ROWS_PER_STATEMENT * 10) {
        set_by_id(tx, "UPDATE device SET last_seen_at = $1 WHERE id IN (", vec![Bind::Time(now)], ids)
            .await?;
    }
    let missing = seen.missing(&stored, &fresh);
    if left_out.is_empty() {
        sightings.extend(mark_offline(tx, &missing, now).await?);
    } else {
        open.is_any_missing = !missing.is_empty();
    }
    Ok((sightings, open))
}

/// The stored devices that a reading is about. One that left sites out is about those at the sites that it read, those at no
/// site, and those that it lists: a message about a small site does not load all devices of a large controller.
async fn stored_of(tx: &mut Tx, seen: &Seen<'_>, left_out: &BTreeSet<String>) -> Result<Vec<Device>> {
    let order = "device.first_seen_at, device.id";
    let of_controller = || {
        Select::new(Device::TABLE.select, Device::TABLE.from)
            .and_bind("device.controller_id = ?", Bind::Id(seen.controller_id.0))
    };
    if left_out.is_empty() {
        return of_controller().all(tx, order, i64::from(DEVICES_MAX)).await;
    }
    let read = seen.sites.keys().filter(|site_ref| !seen.unread.contains(*site_ref));
    let mut stored: Vec<Device> = of_controller()
        .and_null_or_in("device.site_ref", read.map(|site_ref| Bind::Text(site_ref.clone())))
        .all(tx, order, i64::from(DEVICES_MAX))
        .await?;
    let known: HashSet<&str> = stored.iter().map(|device| device.identity.as_str()).collect();
    let listed: BTreeSet<&str> = seen.devices.iter().map(|device| device.identity.as_str()).collect();
    let others: Vec<&str> = listed.into_iter().filter(|identity| !known.contains(identity)).collect();
    for identities in others.chunks(ROWS_PER_STATEMENT) {
        let identities = identities.iter().map(|identity| Bind::Text((*identity).to_owned()));
        let select = of_controller().and_in("device.identity", identities);
        stored.extend(select.all::<Device>(tx, order, i64::from(DEVICES_MAX)).await?);
    }
    Ok(stored)
}

/// Whether a device that is stored elsewhere is online at the site that lists it, and not there.
fn is_online_only(listed: &SeenDevice, stored: &Device) -> bool {
    listed.status == DeviceStatus::Online && stored.status != DeviceStatus::Online
}

/// Finds what is new about a device. A removed device comes back as a new one, under its old id and with what people
/// wrote on it.
fn compare(known: Option<&Device>, seen: &SeenDevice, site_id: SiteId, clock: &Clock) -> Sighting {
    let name = seen.name.clone();
    let state = known.map_or(DeviceState::Active, |known| known.state);
    let Some(known) = known.filter(|known| known.deleted_at.is_none()) else {
        return Sighting {
            device_id: known.map_or_else(|| clock.new_id(), |known| known.id),
            site_id,
            name,
            state,
            novelty: Novelty::Created,
            changed: Vec::new(),
            status: Some(seen.status),
        };
    };
    let differs = [
        ("name", known.name != seen.name),
        ("kind", known.kind != seen.kind),
        ("model", known.model != seen.model),
        ("serial", known.serial != seen.serial),
        ("firmware", known.firmware != seen.firmware),
        ("mac", known.mac != seen.mac),
        ("addresses", known.addresses != seen.addresses),
        (
            "attributes",
            crate::audit::canonical(&known.attributes) != crate::audit::canonical(&seen.attributes),
        ),
    ];
    Sighting {
        device_id: known.id,
        site_id,
        name,
        state,
        novelty: Novelty::Known,
        changed: differs.iter().filter(|(_, differs)| *differs).map(|(field, _)| *field).collect(),
        status: (known.status != seen.status).then_some(seen.status),
    }
}

async fn write(tx: &mut Tx, seen: &Seen<'_>, rows: &[(DeviceId, &SeenDevice)], now: Timestamp) -> Result<()> {
    on!(tx, conn => {
        let mut insert = QueryBuilder::new(
            "INSERT INTO device (id, org_id, site_id, site_ref, controller_id, identity, name, kind, status, model, serial,
                firmware, mac, addresses, attributes, measurements, first_seen_at, last_seen_at, updated_at) ",
        );
        insert.push_values(rows, |mut row, (id, device)| {
            row.push_bind(*id)
                .push_bind(seen.org_id)
                .push_bind(seen.site_of(device))
                .push_bind(device.site.as_ref())
                .push_bind(seen.controller_id)
                .push_bind(&device.identity)
                .push_bind(&device.name)
                .push_bind(&device.kind)
                .push_bind(device.status)
                .push_bind(device.model.as_ref())
                .push_bind(device.serial.as_ref())
                .push_bind(device.firmware.as_ref())
                .push_bind(device.mac.as_ref())
                .push_bind(Json(&device.addresses))
                .push_bind(&device.attributes)
                .push_bind(&device.measurements)
                .push_bind(now)
                .push_bind(now)
                .push_bind(now);
        });
        insert.push(
            " ON CONFLICT (controller_id, identity) DO UPDATE SET
                site_id = excluded.site_id, site_ref = excluded.site_ref, name = excluded.name, kind = excluded.kind, status = excluded.status,
                model = excluded.model, serial = excluded.serial, firmware = excluded.firmware, mac = excluded.mac,
                addresses = excluded.addresses, attributes = excluded.attributes,
                measurements = excluded.measurements,
                last_seen_at = excluded.last_seen_at, updated_at = excluded.updated_at, deleted_at = NULL",
        );
        insert.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}

async fn mark_offline(tx: &mut Tx, missing: &[&Device], now: Timestamp) -> Result<Vec<Sighting>> {
    let ids: Vec<Bind> = missing.iter().map(|device| Bind::Id(device.id.0)).collect();
    for ids in ids.chunks(ROWS_PER_STATEMENT * 10) {
        let values = vec![Bind::Text(DeviceStatus::Offline.to_string()), Bind::Time(now)];
        set_by_id(tx, "UPDATE device SET status = $1, updated_at = $2 WHERE id IN (", values, ids).await?;
    }
    let gone = missing.iter().map(|device| Sighting {
        device_id: device.id,
        site_id: device.site_id,
        name: device.name.clone(),
        state: device.state,
        novelty: Novelty::Known,
        changed: Vec::new(),
        status: Some(DeviceStatus::Offline),
    });
    Ok(gone.collect())
}

/// Records that a controller no longer answers: its own device is offline, and every other device that was online is
/// unknown. Gives one sighting per device whose status changed, in the order of the devices' lists.
///
/// Two statements, however many devices there are.
///
/// `host` is the host part of the controller's URL, by which its own device is recognised.
pub async fn lose_sight(
    tx: &mut Tx,
    controller: ControllerId,
    host: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Sighting>> {
    let own = own_device(tx, controller, host).await?;
    let mut lost: Vec<Lost> = on!(tx, conn => sqlx::query_as("
        UPDATE device SET status = CASE WHEN id = $2 THEN $3 ELSE $4 END, updated_at = $5
        WHERE controller_id = $1 AND deleted_at IS NULL AND (status = $6 OR (id = $2 AND status <> $3))
        RETURNING id, site_id, name, state, status, first_seen_at")
        .bind(controller)
        .bind(own)
        .bind(DeviceStatus::Offline)
        .bind(DeviceStatus::Unknown)
        .bind(now)
        .bind(DeviceStatus::Online)
        .fetch_all(conn)
        .await)?;
    // The controller's own device first: the others are lost because of it.
    lost.sort_by_key(|device| (Some(device.id) != own, device.first_seen_at, device.id));
    Ok(lost.into_iter().map(Sighting::from).collect())
}

/// A device whose status a silent controller changed.
#[derive(FromRow)]
struct Lost {
    id: DeviceId,
    site_id: SiteId,
    name: String,
    state: DeviceState,
    status: DeviceStatus,
    first_seen_at: Timestamp,
}

impl From<Lost> for Sighting {
    fn from(lost: Lost) -> Self {
        Self {
            device_id: lost.id,
            site_id: lost.site_id,
            name: lost.name,
            state: lost.state,
            novelty: Novelty::Known,
            changed: Vec::new(),
            status: Some(lost.status),
        }
    }
}

/// Kinds of devices that carry others. A controller can itself be one of the first [`SELF_KINDS`] of them.
const CARRIER_KINDS: [&str; 7] =
    ["router", "gateway", "firewall", "hypervisor", "switch", "access-point", "access_point"];
/// How many of them can be their own controller.
const SELF_KINDS: usize = 4;
/// Carriers of one controller that are looked at.
const CARRIERS_MAX: i64 = 1_000;

/// The device that is the controller itself, such as a router that is managed directly: the one that has the
/// controller's address, or else the only device that carries others.
///
/// A controller that manages several such devices is a machine of its own, and the answer is `None`.
async fn own_device(tx: &mut Tx, controller: ControllerId, host: Option<&str>) -> Result<Option<DeviceId>> {
    #[derive(FromRow)]
    struct Carrier {
        id: DeviceId,
        kind: String,
        #[sqlx(json)]
        addresses: Vec<String>,
    }
    let carriers: Vec<Carrier> =
        Select::new("SELECT device.id, device.kind, device.addresses", Device::TABLE.from)
            .and_bind("device.controller_id = ?", Bind::Id(controller.0))
            .and("device.deleted_at IS NULL")
            .and_in("device.kind", CARRIER_KINDS.map(|kind| Bind::Text(kind.to_owned())))
            .all(tx, "device.first_seen_at, device.id", CARRIERS_MAX)
            .await?;
    let can_be = |carrier: &&Carrier| CARRIER_KINDS[..SELF_KINDS].contains(&carrier.kind.as_str());
    // Addresses can have the length of their network behind them.
    let has_host = |address: &String| address.split('/').next() == host;
    let addressed = carriers.iter().find(|carrier| host.is_some() && carrier.addresses.iter().any(has_host));
    let only = if let [carrier] = carriers.as_slice() { Some(carrier) } else { None };
    Ok(addressed.or(only.filter(can_be)).map(|carrier| carrier.id))
}

/// Runs an update that ends in `id IN (`.
async fn set_by_id(tx: &mut Tx, update: &'static str, mut values: Vec<Bind>, ids: &[Bind]) -> Result<()> {
    let first = values.len() + 1;
    let places: Vec<String> = (first..first + ids.len()).map(|at| format!("${at}")).collect();
    let sql = format!("{update}{})", places.join(", "));
    values.extend_from_slice(ids);
    affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values));
    Ok(())
}

#[cfg(test)]
mod tests;
