//! Records the result of a reading, with the events that follow from it.
//!
//! The controller's row is locked first. The reading is dropped when the controller was removed, or is reached in
//! another way now. When the controller was moved, the reading is recorded at its new place.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use heddle_core::adapter::DeviceStatus;
use heddle_core::device::DeviceState;
use heddle_core::event::{EventType, NewEvent};
use heddle_core::fault::FaultKind;
use heddle_core::release::ReleaseState;
use heddle_core::{ControllerId, DeviceId, ProcessId, SiteId, Timestamp, storable};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_runtime::CallError;
use heddle_store::controllers::syncs::{self, SyncEnd};
use heddle_store::controllers::{self, ControllerTarget, Held, SyncResult};
use heddle_store::devices::{self, Novelty, Open, Seen, Sighting};
use heddle_store::push::wanted::{self, Row, Want};
use heddle_store::{Tx, events, vendor_sites};
use serde_json::{Value, json};

use super::measures::Delays;
use super::model::{self, Follows, Reach, is_refused};
use super::reading::{Failed, Reading};
use super::slots::Slot;
use super::{Scope, Start, part};
use heddle_inventory::controllers::declarations::{CONTROLLER_STATUS_CHANGED, CONTROLLER_SYNCED};
use heddle_inventory::controllers::releases::{self, Place};
use heddle_inventory::devices::declarations::{DEVICE_OFFLINE, DEVICE_STATE_CHANGED, DEVICE_STATUS_CHANGED};

/// Where the controller is now.
fn place_of(controller: &ControllerTarget, held: &Held) -> Place {
    Place { org: controller.org_id, site: held.site_id, controller: controller.id }
}

/// The devices of a reading, as they are stored.
fn seen<'r>(place: Place, reading: &'r Reading, sites: &'r HashMap<String, SiteId>) -> Seen<'r> {
    Seen {
        org_id: place.org,
        site_id: place.site,
        controller_id: place.controller,
        devices: &reading.devices,
        sites,
        unread: &reading.unread,
        complete: reading.complete,
    }
}

/// Returns what is to be read of the controller's objects: then this process goes on with the controller.
pub(super) async fn record(
    app: &SharedApp,
    controller: &ControllerTarget,
    mut reading: Reading,
    (start, told): (Start, &[Row]),
    slot: &Slot,
) -> Result<Option<Follows>, Error> {
    let mut tx = app.db.write().await?;
    let Some(held) = controllers::hold(&mut tx, controller, start.owner).await? else {
        drop_reading(tx, controller, start).await?;
        return Ok(None);
    };
    let place = place_of(controller, &held);
    let sites = record_sites(&mut tx, place.controller, &mut reading, app.clock.now()).await?;
    let seen = seen(place, &reading, &sites);
    let sightings = devices::upsert_seen(&mut tx, &seen, &app.clock).await?;
    controllers::note_lists(&mut tx, place.controller, reading.lists_all()).await?;
    let devices_seen = i64::try_from(reading.devices.len()).unwrap_or(i64::MAX);
    let is_requested = held.was_requested(start.at);
    let wanted = Follows { is_requested, devices_seen, error: reading.error.clone() };
    let follows = model::follow(&mut tx, app, controller, (start.owner, wanted), slot).await?;
    let release_state = judged(app, controller, &held);
    let owner = follows.as_ref().map(|_| start.owner);
    let result = result_of(app, controller, &reading, (release_state, owner), start);
    let has_status_changed = controllers::record_sync(&mut tx, place.controller, &result).await?;
    let states = (held.release_state, release_state.unwrap_or(held.release_state));
    let (mut news, changed) = news_of(place, has_status_changed, (&reading, states), &sightings);
    let is_first = held.last_sync_at.is_none();
    if changed > 0 || has_status_changed || is_first || is_requested {
        news.push(synced_event(place, start, (devices_seen, changed)));
    }
    events::append_all(&mut tx, place.org, &news, &app.clock).await?;
    if follows.is_none() {
        let end = SyncEnd { devices_seen, is_read: true, error: reading.error.as_deref(), now: result.now };
        syncs::end(&mut tx, place.controller, &end).await?;
    }
    let told = wanted::settle(&mut tx, &of_devices(told), start.at).await?;
    tx.commit().await?;
    Delays::of(app).note(app, controller, &told);
    Ok(follows)
}

/// Records the devices of the sites that messages ask for. Of the others nothing is known, and nothing is said.
///
/// What only a reading of all sites can say is asked for.
pub(super) async fn record_part(
    app: &SharedApp,
    controller: &ControllerTarget,
    mut reading: Reading,
    start: Start,
    told: &[Row],
) -> Result<Reach, Error> {
    let mut tx = app.db.write().await?;
    let Some(held) = controllers::hold(&mut tx, controller, start.owner).await? else {
        return Ok(Reach::Over);
    };
    let place = place_of(controller, &held);
    let sites = record_sites(&mut tx, place.controller, &mut reading, app.clock.now()).await?;
    let seen = seen(place, &reading, &sites);
    let (sightings, open) = devices::upsert_some(&mut tx, &seen, &reading.left_out, &app.clock).await?;
    if !reading.is_of_some() {
        controllers::note_lists(&mut tx, place.controller, reading.lists_all()).await?;
    }
    let release_state = judged(app, controller, &held);
    let result = result_of(app, controller, &reading, (release_state, Some(start.owner)), start);
    let is_told = reading.error.is_some() || !reading.is_of_some();
    let has_status_changed = controllers::record_part(&mut tx, place.controller, &result, is_told).await?;
    let is_back = has_status_changed && reading.is_of_some();
    if asks_for_all(open, held.lists_all_devices, is_back) {
        let (kind, due_at) = (wanted::DEVICES.to_owned(), app.clock.now());
        let all = Want { kind, site_ref: String::new(), due_at, told_at: due_at, again_at: None };
        wanted::want(&mut tx, place.controller, &[all]).await?;
    }
    let states = (held.release_state, release_state.unwrap_or(held.release_state));
    let (mut news, changed) = news_of(place, has_status_changed, (&reading, states), &sightings);
    if changed > 0 {
        let devices_seen = i64::try_from(reading.devices.len()).unwrap_or(i64::MAX);
        news.push(synced_event(place, start, (devices_seen, changed)));
    }
    events::append_all(&mut tx, place.org, &news, &app.clock).await?;
    let told = wanted::settle(&mut tx, &of_devices(told), start.at).await?;
    tx.commit().await?;
    Delays::of(app).note(app, controller, &told);
    Ok(Reach::All)
}

/// Whether a reading of some sites leaves something to one of all sites.
///
/// A device that a list lacks may be at a site that was left out. Where the last reading of all sites could not see everything,
/// the next one could not say it either. Of a controller that answers again, the devices at the other sites are unknown.
fn asks_for_all(open: Open, lists_all_devices: bool, is_back: bool) -> bool {
    is_back || open.is_any_elsewhere || open.is_any_missing && lists_all_devices
}

/// What messages ask for of devices.
pub(super) fn of_devices(told: &[Row]) -> Vec<Row> {
    told.iter().filter(|row| row.is_of_devices()).cloned().collect()
}

/// What is recorded of the controller itself where it was read.
fn result_of(
    app: &SharedApp,
    controller: &ControllerTarget,
    reading: &Reading,
    (release_state, owner): (Option<ReleaseState>, Option<ProcessId>),
    start: Start,
) -> SyncResult {
    SyncResult {
        status: DeviceStatus::Online,
        is_read: true,
        error: reading.error.clone(),
        firmware: Some(reading.release.version.clone()),
        product: Some(reading.release.product.clone()),
        release_state,
        started_at: start.at,
        next_sync_at: next_sync(app, controller),
        owner,
        now: app.clock.now(),
    }
}

/// The events of a reading, and how many of its devices changed. That of the controller comes first, as when it was lost: the
/// events of its devices follow from it.
fn news_of(
    place: Place,
    has_status_changed: bool,
    (reading, states): (&Reading, (ReleaseState, ReleaseState)),
    sightings: &[Sighting],
) -> (Vec<NewEvent>, usize) {
    let mut news: Vec<NewEvent> = Vec::new();
    if has_status_changed {
        news.push(status_event(place, DeviceStatus::Online, None));
    }
    news.extend(releases::changed(place, &reading.release.version, states));
    let mut changed = 0;
    for sighting in sightings {
        let of_device = sighting_events(place, sighting);
        changed += usize::from(!of_device.is_empty());
        news.extend(of_device);
    }
    (news, changed)
}

fn synced_event(place: Place, start: Start, (seen, changed): (i64, usize)) -> NewEvent {
    let payload = json!({
        "controller_id": place.controller,
        "site_id": place.site,
        "devices_seen": seen,
        "devices_changed": changed,
        "duration_ms": u64::try_from(start.instant.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    event(place, CONTROLLER_SYNCED, None, payload)
}

/// What the adapter says of the release that was read; an adapter that is gone now says nothing.
fn judged(app: &SharedApp, controller: &ControllerTarget, held: &Held) -> Option<ReleaseState> {
    let adapter = app.adapter(&controller.vendor).ok()?;
    let (product, firmware) = (controller.product.as_deref(), controller.firmware.as_deref());
    Some(releases::judge(adapter.releases(), product, firmware, held.allowed_release.as_deref()))
}

/// Records the vendor's sites, and returns the sites of ours that they are. The devices of a site that a person has ignored
/// since the reading began leave it.
async fn record_sites(
    tx: &mut Tx,
    controller: ControllerId,
    reading: &mut Reading,
    now: Timestamp,
) -> Result<HashMap<String, SiteId>, Error> {
    vendor_sites::record(tx, controller, &reading.sites, now).await?;
    if reading.sites.is_empty() {
        return Ok(HashMap::new());
    }
    let known = vendor_sites::present(tx, controller).await?;
    let ignored: HashSet<&String> =
        known.iter().filter(|site| site.is_ignored).map(|site| &site.site_ref).collect();
    reading.devices.retain(|device| device.site.as_ref().is_none_or(|site| !ignored.contains(site)));
    Ok(known.into_iter().map(|site| (site.site_ref, site.site_id)).collect())
}

/// Records that the controller was not read. It keeps its known data, and shows the reason. When it no longer answers,
/// its own device is offline and the other devices are unknown, each with its event, in the same transaction.
///
/// What it runs and the vendor's sites are recorded where it said them before. A reading of a part moves no time, and the
/// controller stays this process's, whatever becomes of the reading.
///
/// Returns how the controller stands now; `None` where the reading says nothing of it.
pub(super) async fn record_failure(
    app: &SharedApp,
    controller: &ControllerTarget,
    Failed { error, before }: &Failed,
    (start, told): (Start, &[Row]),
) -> Result<Option<DeviceStatus>, Error> {
    let message = public_message(error);
    let mut tx = app.db.write().await?;
    let Some(held) = controllers::hold(&mut tx, controller, start.owner).await? else {
        if start.scope == Scope::Whole {
            drop_reading(tx, controller, start).await?;
        }
        return Ok(None);
    };
    let place = place_of(controller, &held);
    if let Some(sites) = &before.sites {
        vendor_sites::record(&mut tx, place.controller, sites, app.clock.now()).await?;
    }
    let status = status_after(error, held.status, held.last_sync_at.is_some());
    let release = before.release.as_ref();
    let release_state = release.and_then(|_| judged(app, controller, &held));
    let is_part = start.scope == Scope::Part;
    let result = SyncResult {
        status,
        is_read: false,
        error: Some(message.clone()),
        firmware: release.map(|release| release.version.clone()),
        product: release.map(|release| release.product.clone()),
        release_state,
        started_at: start.at,
        next_sync_at: next_sync(app, controller),
        owner: is_part.then_some(start.owner),
        now: app.clock.now(),
    };
    let mut news: Vec<NewEvent> = Vec::new();
    let has_status_changed = if is_part {
        controllers::record_part(&mut tx, place.controller, &result, true).await?
    } else {
        controllers::record_sync(&mut tx, place.controller, &result).await?
    };
    if has_status_changed {
        news.push(status_event(place, status, Some(&message)));
        if status == DeviceStatus::Offline {
            let host = host_of(controller);
            let lost = devices::lose_sight(&mut tx, place.controller, host.as_deref(), result.now).await?;
            news.extend(lost.iter().flat_map(|sighting| sighting_events(place, sighting)));
        }
    }
    if let (Some(release), Some(state)) = (release, release_state) {
        news.extend(releases::changed(place, &release.version, (held.release_state, state)));
    }
    events::append_all(&mut tx, place.org, &news, &app.clock).await?;
    if !is_part {
        let end = SyncEnd { devices_seen: 0, is_read: false, error: Some(&message), now: result.now };
        syncs::end(&mut tx, place.controller, &end).await?;
    }
    settle_failed(&mut tx, place.controller, (error, status), (start, told), result.now).await?;
    tx.commit().await?;
    Ok(Some(status))
}

/// Removes what was asked for and could not be read: the interval goes on. A controller that took no call is asked again.
///
/// Of one that is offline nothing is read that was told before. What was told during the reading stays and waits a moment:
/// its channel may have been opened again.
async fn settle_failed(
    tx: &mut Tx,
    controller: ControllerId,
    (error, status): (&Error, DeviceStatus),
    (start, told): (Start, &[Row]),
    now: Timestamp,
) -> Result<(), Error> {
    if matches!(error, Error::Adapter(error) if is_refused(error)) {
        return Ok(());
    }
    if status == DeviceStatus::Offline {
        wanted::settle(tx, told, start.at).await?;
        wanted::postpone(tx, controller, now + part::REFUSED_WAIT).await?;
    } else {
        wanted::settle(tx, &of_devices(told), start.at).await?;
    }
    Ok(())
}

fn host_of(controller: &ControllerTarget) -> Option<String> {
    let url = url::Url::parse(&controller.url).ok()?;
    url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned())
}

/// Drops a reading that is stale for the controller as it is now, and releases the controller for the next reading.
async fn drop_reading(mut tx: Tx, controller: &ControllerTarget, start: Start) -> Result<(), Error> {
    controllers::release(&mut tx, controller.id, start.owner).await?;
    Ok(tx.commit().await?)
}

/// Only a controller that gives no answer is offline. Any other failure does not change its status.
fn status_after(error: &Error, known: DeviceStatus, was_ever_read: bool) -> DeviceStatus {
    match error {
        Error::Adapter(CallError::Fault(fault))
            if matches!(fault.kind, FaultKind::Connection | FaultKind::Timeout | FaultKind::NotReady) =>
        {
            DeviceStatus::Offline
        }
        _ if was_ever_read => known,
        _ => DeviceStatus::Unknown,
    }
}

/// Returns the message that every user who sees the controller may read.
fn public_message(error: &Error) -> String {
    storable::message(&error.to_string())
}

fn next_sync(app: &SharedApp, controller: &ControllerTarget) -> Timestamp {
    app.clock.now() + TimeDelta::seconds(controller.sync_interval_secs.max(1))
}

fn status_event(place: Place, status: DeviceStatus, message: Option<&str>) -> NewEvent {
    let payload = json!({
        "controller_id": place.controller,
        "site_id": place.site,
        "new_status": status,
        "message": message,
    });
    event(place, CONTROLLER_STATUS_CHANGED, None, payload)
}

/// Returns the events of one device; none when it has not changed. They are at the site of the device, which one of the
/// vendor's sites may be, and not at the controller's own.
fn sighting_events(of: Place, sighting: &Sighting) -> Vec<NewEvent> {
    let place = Place { site: sighting.site_id, ..of };
    let ids = json!({
        "device_id": sighting.device_id,
        "controller_id": place.controller,
        "site_id": sighting.site_id,
    });
    let with = |name: &str, value: Value| {
        let mut payload = ids.clone();
        payload[name] = value;
        payload
    };
    let device = Some(sighting.device_id);
    let mut news = Vec::new();
    if sighting.novelty == Novelty::Created || !sighting.changed.is_empty() {
        let payload = with("changed", json!(sighting.changed));
        news.push(event(place, DEVICE_STATE_CHANGED, device, payload));
    }
    if let Some(status) = sighting.status {
        let payload = with("new_status", json!(status));
        news.push(event(place, DEVICE_STATUS_CHANGED, device, payload));
        let is_expected = sighting.state == DeviceState::Maintenance;
        if status == DeviceStatus::Offline && sighting.novelty == Novelty::Known && !is_expected {
            let payload = with("name", json!(sighting.name));
            news.push(event(place, DEVICE_OFFLINE, device, payload));
        }
    }
    news
}

fn event(place: Place, event_type: EventType, device_id: Option<DeviceId>, payload: Value) -> NewEvent {
    NewEvent {
        event_type,
        org_id: place.org,
        site_id: Some(place.site),
        controller_id: Some(place.controller),
        device_id,
        causation_id: None,
        run_id: None,
        payload,
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::fault::Fault;

    use super::*;

    fn fault(kind: FaultKind) -> Error {
        Fault::new(kind, "no").into()
    }

    #[test]
    fn only_a_controller_without_an_answer_is_offline() {
        for kind in [FaultKind::Connection, FaultKind::Timeout, FaultKind::NotReady] {
            assert_eq!(status_after(&fault(kind), DeviceStatus::Online, true), DeviceStatus::Offline);
            assert_eq!(status_after(&fault(kind), DeviceStatus::Unknown, false), DeviceStatus::Offline);
        }
        for error in [fault(FaultKind::Authentication), CallError::Overload.into(), Error::internal("disk")] {
            assert_eq!(status_after(&error, DeviceStatus::Online, true), DeviceStatus::Online);
            assert_eq!(status_after(&error, DeviceStatus::Offline, true), DeviceStatus::Offline);
            assert_eq!(status_after(&error, DeviceStatus::Offline, false), DeviceStatus::Unknown);
        }
    }

    #[test]
    fn a_part_leaves_to_all_sites_what_it_cannot_say() {
        let nothing = Open::default();
        assert!(!asks_for_all(nothing, true, false));
        assert!(asks_for_all(nothing, false, true), "the other sites are unknown");
        let missing = Open { is_any_missing: true, ..nothing };
        assert!(asks_for_all(missing, true, false));
        assert!(!asks_for_all(missing, false, false), "no list says where it is");
        assert!(asks_for_all(Open { is_any_elsewhere: true, ..nothing }, false, false));
    }

    #[test]
    fn events_of_a_device_are_at_its_site() {
        let clock = Clock::default();
        let place = Place { org: clock.new_id(), site: clock.new_id(), controller: clock.new_id() };
        let sighting = Sighting {
            device_id: clock.new_id(),
            site_id: clock.new_id(),
            name: "ap".to_owned(),
            state: DeviceState::Active,
            novelty: Novelty::Known,
            changed: vec!["firmware"],
            status: Some(DeviceStatus::Offline),
        };
        let told = sighting_events(place, &sighting);
        assert_eq!(told.len(), 3);
        for event in told {
            assert_eq!(
                (event.site_id, event.controller_id),
                (Some(sighting.site_id), Some(place.controller))
            );
            assert_eq!(event.payload["site_id"], json!(sighting.site_id));
        }
    }

    #[test]
    fn the_hosts_own_faults_are_not_told() {
        assert_eq!(public_message(&CallError::Host("/var/lib/x".to_owned()).into()), "internal error");
        assert_eq!(public_message(&Error::internal("SELECT")), "internal error");
        let with_nul = Error::from(Fault::new(FaultKind::Generic, "a\0b"));
        assert_eq!(public_message(&with_nul), "ab");
    }
}
