//! One reading of a controller: its identity, its sites, and every device that it lists.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use heddle_core::adapter::{Completeness, SeenDevice, VendorSite};
use heddle_core::bounds::is_small;
use heddle_core::fault::{Fault, FaultKind};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_runtime::{Adapter, Call, LIGHT_BYTES};
use heddle_store::controllers::{ControllerTarget, syncs};
use heddle_store::devices::DEVICES_MAX;
use heddle_store::vendor_sites::{self, VENDOR_SITES_MAX};

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
    /// The vendor's sites; none where the vendor has no sites.
    pub(super) sites: Vec<VendorSite>,
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
    let sites = read_sites(&adapter, &call).await?;
    let mut reading = Reading {
        product: storable::line(&profile.product),
        version: storable::line(&profile.version),
        sites,
        devices: Vec::new(),
        complete: Completeness::Complete,
    };
    let mut pages = Pages { app, controller, adapter, call, read: 0, noted: Instant::now() };
    if reading.sites.is_empty() {
        pages.read(None, &mut reading).await?;
        return Ok(reading);
    }
    let ignored = ignored_sites(app, controller).await?;
    let read: Vec<String> =
        reading.sites.iter().filter(|site| !ignored.contains(&site.id)).map(|site| site.id.clone()).collect();
    for site in &read {
        pages.read(Some(site), &mut reading).await?;
    }
    Ok(reading)
}

/// The vendor's sites that a person wants nothing to be read of.
async fn ignored_sites(app: &SharedApp, controller: &ControllerTarget) -> Result<HashSet<String>, Error> {
    let mut tx = app.db.single().await?;
    let known = vendor_sites::list(&mut tx, controller.id).await?;
    Ok(known.into_iter().filter(|site| site.is_ignored).map(|site| site.site_ref).collect())
}

async fn read_sites(adapter: &Adapter, call: &Call) -> Result<Vec<VendorSite>, Error> {
    let mut sites: Vec<VendorSite> = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = adapter.list_sites(call, cursor.as_deref()).await?;
        sites.extend(page.items.into_iter().filter_map(storable::site));
        if sites.len() > VENDOR_SITES_MAX {
            let message = format!("controller lists more than {VENDOR_SITES_MAX} sites");
            return Err(Fault::new(FaultKind::Generic, message).into());
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(sites);
        }
    }
    let message = format!("site list of adapter '{}' has more than {PAGES_MAX} pages", adapter.id());
    Err(Fault::new(FaultKind::Generic, message).into())
}

/// The pages of a controller's device lists.
struct Pages<'a> {
    app: &'a SharedApp,
    controller: &'a ControllerTarget,
    adapter: Adapter,
    call: Call,
    /// How many were read, of all sites.
    read: usize,
    noted: Instant,
}

impl Pages<'_> {
    /// Reads the devices of a site, or of a controller without sites.
    async fn read(&mut self, site: Option<&str>, reading: &mut Reading) -> Result<(), Error> {
        let mut cursor: Option<String> = None;
        while self.read < PAGES_MAX {
            self.read += 1;
            let page = self.adapter.list_devices(&self.call, site, cursor.as_deref()).await?;
            let at_site = |device| SeenDevice { site: site.map(str::to_owned), ..device };
            reading.devices.extend(page.items.into_iter().map(at_site));
            if reading.devices.len() > usize::try_from(DEVICES_MAX).unwrap_or(usize::MAX) {
                let message = format!("controller lists more than {DEVICES_MAX} devices");
                return Err(Fault::new(FaultKind::Generic, message).into());
            }
            if page.complete != Completeness::Complete {
                reading.complete = page.complete;
            }
            cursor = page.next;
            if (cursor.is_some() || site.is_some()) && self.noted.elapsed() >= NOTE_INTERVAL {
                note(self.app, self.controller, reading.devices.len()).await?;
                self.noted = Instant::now();
            }
            if cursor.is_none() {
                return Ok(());
            }
        }
        let message =
            format!("device list of adapter '{}' has more than {PAGES_MAX} pages", self.adapter.id());
        Err(Fault::new(FaultKind::Generic, message).into())
    }
}
