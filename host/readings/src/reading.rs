//! One reading of a controller: its identity, its sites, and every device that it lists.
//!
//! The devices of each of the vendor's sites are a list of their own. One that fails spoils no other.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use heddle_core::adapter::{Completeness, SeenDevice, VendorSite};
use heddle_core::bounds::is_small;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::storable;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_runtime::{Adapter, Call, CallError, LIGHT_BYTES};
use heddle_store::controllers::{ControllerTarget, syncs};
use heddle_store::devices::DEVICES_MAX;
use heddle_store::vendor_sites::{self, VENDOR_SITES_MAX};

use super::{Scope, Start};
use heddle_inventory::adapters::call_for;

/// Most pages of a list of sites, or of the devices of one site; with more, the component would never end.
const PAGES_MAX: usize = 1000;
/// How many sites an error names.
const NAMED_MAX: usize = 3;
/// Time limit of all calls of one reading together.
const READING_LIMIT: Duration = Duration::from_mins(2);

/// How often a reading of many pages reports its progress.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// What a controller runs, ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) product: String,
    pub(super) version: String,
}

/// The result of one reading, ready to be stored.
pub(super) struct Reading {
    pub(super) release: Release,
    /// The vendor's sites; none where the vendor has no sites.
    pub(super) sites: Vec<VendorSite>,
    /// Ids of the sites whose devices were not read, because a person wants that or because the list failed.
    pub(super) unread: HashSet<String>,
    /// Why sites could not be read, although others were.
    pub(super) error: Option<String>,
    pub(super) devices: Vec<SeenDevice>,
    pub(super) complete: Completeness,
    /// Those of them that were not read because no message asked for them.
    pub(super) left_out: BTreeSet<String>,
}

impl Reading {
    /// Whether it lists all devices of the sites that it is of.
    pub(super) fn lists_all(&self) -> bool {
        self.complete == Completeness::Complete && self.error.is_none()
    }

    /// Whether it is of some sites only.
    pub(super) fn is_of_some(&self) -> bool {
        !self.left_out.is_empty()
    }
}

/// Which sites are read; `None` reads all of them.
pub(super) type Sites = Option<HashSet<String>>;

/// Why there is no reading.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: Error,
    pub(super) before: Before,
}

impl Failed {
    /// Logs it, with what the client is not told.
    pub(super) fn log(&self, controller: &ControllerTarget) {
        let error = &self.error;
        tracing::warn!(
            controller.id = %controller.id, error = %error, cause = ?std::error::Error::source(error),
            "controller {} cannot be read", controller.id
        );
    }
}

/// What a controller said before its reading failed.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// What it runs: a release whose devices cannot be listed is noticed too.
    pub(super) release: Option<Release>,
    /// The vendor's sites: a person can ignore one that is to blame.
    pub(super) sites: Option<Vec<VendorSite>>,
}

pub(super) async fn read(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    only: &Sites,
) -> Result<Reading, Failed> {
    let mut before = Before::default();
    let read = read_storable(app, controller, (start, only), &mut before).await;
    read.map_err(|error| Failed { error, before })
}

async fn read_storable(
    app: &SharedApp,
    controller: &ControllerTarget,
    asked: (Start, &Sites),
    before: &mut Before,
) -> Result<Reading, Error> {
    let took_too_long =
        || Error::from(Fault::new(FaultKind::Generic, "reading the controller took more than 2 minutes"));
    let mut reading = tokio::time::timeout(READING_LIMIT, read_all(app, controller, asked, before))
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

async fn read_all(
    app: &SharedApp,
    controller: &ControllerTarget,
    (start, only): (Start, &Sites),
    before: &mut Before,
) -> Result<Reading, Error> {
    let adapter = app.adapter(&controller.vendor)?;
    let call = call_for(controller, &format!("sync-{}", controller.id))?;
    let profile = adapter.check(&call).await?;
    let release =
        Release { product: storable::line(&profile.product), version: storable::version(&profile.version) };
    before.release = Some(release.clone());
    let sites = read_sites(&adapter, &call).await?;
    before.sites = Some(sites.clone());
    let mut reading = Reading {
        release,
        unread: HashSet::new(),
        error: None,
        sites,
        devices: Vec::new(),
        complete: Completeness::Complete,
        left_out: BTreeSet::new(),
    };
    let mut pages = Pages { app, controller, adapter, call, noted: Instant::now(), scope: start.scope };
    if reading.sites.is_empty() {
        pages.read(None, &mut reading).await?;
        return Ok(reading);
    }
    reading.unread = ignored_sites(app, controller).await?;
    if let Some(only) = only {
        let others = reading.sites.iter().map(|site| &site.id).filter(|id| !only.contains(*id));
        reading.left_out = others.filter(|id| !reading.unread.contains(*id)).cloned().collect();
        reading.unread.extend(reading.left_out.iter().cloned());
    }
    let sites: Vec<VendorSite> =
        reading.sites.iter().filter(|site| !reading.unread.contains(&site.id)).cloned().collect();
    let mut failed = Vec::new();
    for site in &sites {
        if let Err(fault) = pages.read_site(site, &mut reading).await? {
            failed.push(fault);
            reading.unread.insert(site.id.clone());
        }
    }
    let has_read_none = failed.len() == sites.len();
    reading.error = summary(&failed);
    match of_controller(failed, has_read_none, &reading) {
        Some(fault) => Err(fault.into()),
        None => Ok(reading),
    }
}

/// The fault of a controller no site of which could be read. Where sites were left out, the faults of the others say nothing of
/// the controller: it answered, and one site may be slow for long.
fn of_controller(failed: Vec<Fault>, has_read_none: bool, reading: &Reading) -> Option<Fault> {
    failed.into_iter().next().filter(|_| has_read_none && !reading.is_of_some())
}

/// Returns what is told of the sites that could not be read; `None` where all were.
fn summary(failed: &[Fault]) -> Option<String> {
    let mut told: Vec<String> = failed.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = failed.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        told.push(format!("{more} more sites could not be read"));
    }
    (!told.is_empty()).then(|| storable::message(&told.join("; ")))
}

/// The fault of a call where it says something of one site; the error where it says something of the controller.
fn of_site(error: Error, site: &VendorSite) -> Result<Fault, Error> {
    match error {
        Error::Adapter(CallError::Fault(fault))
            if !matches!(
                fault.kind,
                FaultKind::Connection
                    | FaultKind::NotReady
                    | FaultKind::Authentication
                    | FaultKind::RateLimit
            ) =>
        {
            Ok(Fault { message: format!("site '{}': {}", site.name, fault.message), ..fault })
        }
        error => Err(error),
    }
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
    noted: Instant,
    scope: Scope,
}

impl Pages<'_> {
    /// Reads the devices of a site. The inner error is a fault of this site alone: the reading is as it was before.
    async fn read_site(
        &mut self,
        site: &VendorSite,
        reading: &mut Reading,
    ) -> Result<Result<(), Fault>, Error> {
        let (devices, complete) = (reading.devices.len(), reading.complete);
        let Err(error) = self.read(Some(&site.id), reading).await else { return Ok(Ok(())) };
        let fault = of_site(error, site)?;
        reading.devices.truncate(devices);
        reading.complete = complete;
        tracing::warn!(
            controller.id = %self.controller.id, site_ref = %site.id, error = %fault,
            "a site of controller {} cannot be read", self.controller.id
        );
        Ok(Err(fault))
    }

    /// Reads the devices of a site, or of a controller without sites.
    async fn read(&mut self, site: Option<&str>, reading: &mut Reading) -> Result<(), Error> {
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
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
            let is_long = self.noted.elapsed() >= NOTE_INTERVAL && self.scope == Scope::Whole;
            if (cursor.is_some() || site.is_some()) && is_long {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, "no")
    }

    fn reading() -> Reading {
        Reading {
            release: Release { product: String::new(), version: String::new() },
            sites: Vec::new(),
            unread: HashSet::new(),
            error: None,
            devices: Vec::new(),
            complete: Completeness::Complete,
            left_out: BTreeSet::new(),
        }
    }

    #[test]
    fn a_fault_says_something_of_its_site_or_of_the_controller() {
        let site = VendorSite { id: "1".to_owned(), name: "Branch".to_owned() };
        for kind in [FaultKind::Denied, FaultKind::NotFound, FaultKind::Timeout, FaultKind::Generic] {
            assert_eq!(of_site(fault(kind).into(), &site).unwrap().message, "site 'Branch': no");
        }
        for kind in
            [FaultKind::Connection, FaultKind::NotReady, FaultKind::Authentication, FaultKind::RateLimit]
        {
            of_site(fault(kind).into(), &site).unwrap_err();
        }
        of_site(CallError::Overload.into(), &site).unwrap_err();
    }

    #[test]
    fn sites_that_are_told_of_do_not_make_their_controller_offline() {
        let mut reading = reading();
        let failed = || vec![fault(FaultKind::Timeout)];
        assert!(of_controller(failed(), true, &reading).is_some());
        assert!(of_controller(failed(), false, &reading).is_none());
        reading.left_out.insert("b".to_owned());
        assert!(of_controller(failed(), true, &reading).is_none(), "site b may answer");
    }

    #[test]
    fn a_reading_in_which_sites_failed_does_not_list_all_devices() {
        let mut reading = reading();
        assert!(reading.lists_all());
        reading.error = summary(&[fault(FaultKind::Timeout)]);
        assert!(!reading.lists_all());
        (reading.error, reading.complete) = (None, Completeness::RightsLimited);
        assert!(!reading.lists_all());
    }

    #[test]
    fn few_sites_that_failed_are_named() {
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[fault(FaultKind::Denied)]).as_deref(), Some("no"));
        let many: Vec<Fault> = (0..5).map(|_| fault(FaultKind::Denied)).collect();
        assert_eq!(summary(&many).as_deref(), Some("no; no; no; 2 more sites could not be read"));
    }
}
