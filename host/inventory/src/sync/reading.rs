//! One reading of a controller: its identity, and every device that it lists.

use std::time::{Duration, Instant};

use heddle_core::adapter::{Completeness, SeenDevice};
use heddle_core::bounds::is_small;
use heddle_core::fault::{Fault, FaultKind};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_runtime::LIGHT_BYTES;
use heddle_store::controllers::{ControllerTarget, syncs};
use heddle_store::devices::DEVICES_MAX;

use super::storable;
use crate::adapters::call_for;

/// Most pages of one controller's device list; with more, the component would never end.
const PAGES_MAX: usize = 1000;
/// Time limit of all calls of one reading together.
const READING_LIMIT: Duration = Duration::from_mins(2);

/// How often a reading of many pages reports its progress.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// The result of one reading, ready to be stored.
pub(super) struct Reading {
    pub(super) product: String,
    pub(super) version: String,
    pub(super) devices: Vec<SeenDevice>,
    pub(super) complete: Completeness,
}

pub(super) async fn read(app: &SharedApp, controller: &ControllerTarget) -> Result<Reading, Error> {
    let took_too_long =
        || Error::from(Fault::new(FaultKind::Generic, "reading the controller took more than 2 minutes"));
    let mut reading = tokio::time::timeout(READING_LIMIT, read_all(app, controller))
        .await
        .map_err(|_elapsed| took_too_long())??;
    let listed = reading.devices.len();
    let devices = std::mem::take(&mut reading.devices);
    let bytes = if is_small(&devices, LIGHT_BYTES) { 0 } else { usize::MAX };
    let work = move || devices.into_iter().filter_map(storable::device).collect();
    reading.devices = app.runtime.apart(controller.org_id, bytes, work).await?;
    let left_out = listed - reading.devices.len();
    if left_out > 0 {
        tracing::warn!(
            controller.id = %controller.id,
            "{left_out} devices of controller {} are left out: their identity is empty, longer than 300 bytes, \
             or has control characters", controller.id
        );
    }
    Ok(reading)
}

/// Reports the progress to clients that follow the reading.
async fn note(app: &SharedApp, controller: &ControllerTarget, seen: usize) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    syncs::advance(&mut tx, controller.id, i64::try_from(seen).unwrap_or(i64::MAX)).await?;
    Ok(tx.commit().await?)
}

async fn read_all(app: &SharedApp, controller: &ControllerTarget) -> Result<Reading, Error> {
    let adapter = app.adapter(&controller.vendor)?;
    let call = call_for(controller, &format!("sync-{}", controller.id))?;
    let profile = adapter.check(&call).await?;
    let mut devices = Vec::new();
    let mut complete = Completeness::Complete;
    let mut cursor: Option<String> = None;
    let mut noted = Instant::now();
    for _ in 0..PAGES_MAX {
        let page = adapter.list_devices(&call, None, cursor.as_deref()).await?;
        devices.extend(page.items);
        if devices.len() > usize::try_from(DEVICES_MAX).unwrap_or(usize::MAX) {
            let message = format!("controller lists more than {DEVICES_MAX} devices");
            return Err(Fault::new(FaultKind::Generic, message).into());
        }
        if page.complete != Completeness::Complete {
            complete = page.complete;
        }
        cursor = page.next;
        if cursor.is_some() && noted.elapsed() >= NOTE_INTERVAL {
            note(app, controller, devices.len()).await?;
            noted = Instant::now();
        }
        if cursor.is_none() {
            return Ok(Reading {
                product: storable::line(&profile.product),
                version: storable::line(&profile.version),
                devices,
                complete,
            });
        }
    }
    let message = format!("device list of adapter '{}' has more than {PAGES_MAX} pages", adapter.id());
    Err(Fault::new(FaultKind::Generic, message).into())
}
