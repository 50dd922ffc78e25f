//! Reads every controller on its interval and on demand, and keeps what it saw.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use heddle_core::ControllerId;
use heddle_core::adapter::{Completeness, DeviceProfile, DeviceStatus, SeenDevice};
use heddle_core::event::{EventType, NewEvent};
use heddle_runtime::CallError;
use heddle_store::controllers::{self, ControllerTarget, SyncResult};
use heddle_store::devices::{self, Novelty, Seen, Sighting};
use heddle_store::events;
use serde_json::{Value, json};

use crate::adapters::call_for;
use crate::app::SharedApp;
use crate::http::error::Error;

/// Controllers read at the same time.
const PARALLEL: usize = 16;
/// Controllers of one look at the queue; more than can be read at once, so that
/// those under way do not hide the others.
const BATCH: u32 = 64;
/// How often the queue is looked at although nobody called.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// Pages of one controller's device list; more is a component that never ends.
const PAGES_MAX: usize = 1000;

/// What one reading saw.
struct Reading {
    profile: DeviceProfile,
    devices: Vec<SeenDevice>,
    complete: Completeness,
}

/// Until the service stops. A controller that hangs holds up nobody but itself.
pub(crate) async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut reading = FuturesUnordered::new();
    let mut under_way: HashSet<ControllerId> = HashSet::new();
    loop {
        for controller in due_or_none(&app).await {
            if under_way.len() < PARALLEL && under_way.insert(controller.id) {
                let app = app.clone();
                reading.push(async move {
                    sync(&app, &controller).await;
                    controller.id
                });
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            Some(id) = reading.next() => { under_way.remove(&id); }
            () = app.sync_wake.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}

async fn due_or_none(app: &SharedApp) -> Vec<ControllerTarget> {
    due(app).await.unwrap_or_else(|error| {
        tracing::warn!(error = %error, "controllers that are due cannot be read; tried again");
        Vec::new()
    })
}

async fn due(app: &SharedApp) -> Result<Vec<ControllerTarget>, Error> {
    let mut tx = app.db.read().await?;
    Ok(controllers::due(&mut tx, app.clock.now(), BATCH).await?)
}

async fn sync(app: &SharedApp, controller: &ControllerTarget) {
    let started = Instant::now();
    let reading = read(app, controller).await;
    let recorded = match &reading {
        Ok(reading) => record(app, controller, reading, started.elapsed()).await,
        Err(error) => record_failure(app, controller, error).await,
    };
    match (reading, recorded) {
        (_, Err(error)) => {
            tracing::error!(controller.id = %controller.id, error = %error, "reading of controller {} is lost", controller.id);
        }
        (Err(error), Ok(())) => {
            tracing::warn!(controller.id = %controller.id, error = %error, "controller {} cannot be read", controller.id);
        }
        (Ok(_), Ok(())) => {}
    }
    app.hub.wake();
}

async fn read(app: &SharedApp, controller: &ControllerTarget) -> Result<Reading, Error> {
    let adapter = app.adapter(&controller.vendor)?;
    let call = call_for(controller, &format!("sync-{}", controller.id))?;
    let profile = adapter.check(&call).await?;
    let mut devices = Vec::new();
    let mut complete = Completeness::Complete;
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = adapter.list_devices(&call, None, cursor.as_deref()).await?;
        devices.extend(page.items);
        if page.complete != Completeness::Complete {
            complete = page.complete;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(Reading { profile, devices, complete });
        }
    }
    Err(Error::Adapter(CallError::Host(format!("device list of {} did not end", adapter.id()))))
}

fn next_sync(app: &SharedApp, controller: &ControllerTarget) -> heddle_core::Timestamp {
    app.clock.now() + TimeDelta::seconds(controller.sync_interval_secs.max(1))
}

async fn record(
    app: &SharedApp,
    controller: &ControllerTarget,
    reading: &Reading,
    took: Duration,
) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    let seen = Seen {
        org_id: controller.org_id,
        site_id: controller.site_id,
        controller_id: controller.id,
        devices: &reading.devices,
        complete: reading.complete,
    };
    let sightings = devices::upsert_seen(&mut tx, &seen, &app.clock).await?;
    let mut news: Vec<NewEvent> = Vec::new();
    let mut changed = 0;
    for sighting in &sightings {
        let of_device = sighting_events(controller, sighting);
        changed += usize::from(!of_device.is_empty());
        news.extend(of_device);
    }
    let result = SyncResult {
        status: DeviceStatus::Online,
        error: None,
        firmware: Some(reading.profile.version.clone()),
        product: Some(reading.profile.product.clone()),
        next_sync_at: Some(next_sync(app, controller)),
        now: app.clock.now(),
    };
    if controllers::record_sync(&mut tx, controller.id, &result).await? {
        news.push(status_event(controller, DeviceStatus::Online, None));
    }
    let payload = json!({
        "controller_id": controller.id,
        "site_id": controller.site_id,
        "devices_seen": reading.devices.len(),
        "devices_changed": changed,
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    news.push(event(controller, EventType::ControllerSynced, None, payload));
    events::append_all(&mut tx, controller.org_id, &news, &app.clock).await?;
    tx.commit().await?;
    Ok(())
}

/// The controller gives no answer: it is offline, and says why.
async fn record_failure(app: &SharedApp, controller: &ControllerTarget, error: &Error) -> Result<(), Error> {
    let message = error.to_string();
    let mut tx = app.db.write().await?;
    let result = SyncResult {
        status: DeviceStatus::Offline,
        error: Some(message.clone()),
        firmware: None,
        product: None,
        next_sync_at: Some(next_sync(app, controller)),
        now: app.clock.now(),
    };
    if controllers::record_sync(&mut tx, controller.id, &result).await? {
        let news = [status_event(controller, DeviceStatus::Offline, Some(&message))];
        events::append_all(&mut tx, controller.org_id, &news, &app.clock).await?;
    }
    tx.commit().await?;
    Ok(())
}

fn status_event(controller: &ControllerTarget, status: DeviceStatus, message: Option<&str>) -> NewEvent {
    let payload = json!({
        "controller_id": controller.id,
        "site_id": controller.site_id,
        "new_status": status,
        "message": message,
    });
    event(controller, EventType::ControllerStatusChanged, None, payload)
}

/// What there is to say of one device; nothing when it is as it was.
fn sighting_events(controller: &ControllerTarget, sighting: &Sighting) -> Vec<NewEvent> {
    let ids = json!({
        "device_id": sighting.device_id,
        "controller_id": controller.id,
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
        news.push(event(controller, EventType::DeviceStateChanged, device, payload));
    }
    if let Some(status) = sighting.status {
        news.push(event(
            controller,
            EventType::DeviceStatusChanged,
            device,
            with("new_status", json!(status)),
        ));
        if status == DeviceStatus::Offline && sighting.novelty == Novelty::Known {
            let payload = with("name", json!(sighting.name));
            news.push(event(controller, EventType::DeviceOffline, device, payload));
        }
    }
    news
}

fn event(
    controller: &ControllerTarget,
    event_type: EventType,
    device_id: Option<heddle_core::DeviceId>,
    payload: Value,
) -> NewEvent {
    NewEvent {
        event_type,
        org_id: controller.org_id,
        site_id: Some(controller.site_id),
        controller_id: Some(controller.id),
        device_id,
        causation_id: None,
        payload,
    }
}
