//! Reads what the adapter of a controller fills of the model, after its devices were recorded.
//!
//! Lists are read one by one, and each is stored part by part as it comes: memory is bounded by a page. A list that
//! fails is noted with its reason and spoils no other. All of it ends after two minutes, behind the list in which the
//! devices became due again, and when the controller does not answer. What was not begun by then comes first at the next
//! reading.
//!
//! Between two parts nothing is open. A process that is killed there leaves what it stored, and the differences that
//! it found, in the database. The list is read anew, first among all, and its events tell of both readings.

mod difference;
mod list;
mod object;
mod plan;
mod record;
mod sorted;

use std::time::{Duration, Instant};

use heddle_core::adapter::Filled;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_store::controllers::syncs::{self, SyncEnd};
use heddle_store::controllers::{self, ControllerTarget};
use heddle_store::{Tx, model_readings, vendor_sites};
use list::{After, ListReading};
use plan::{Place, Plan};

use super::Start;
use super::slots::Slot;
use crate::adapters::call_for;
use crate::controllers::releases::is_offered;
use crate::model::InventorySettings;

/// Time limit of all calls for the model in one reading together.
const MODEL_LIMIT: Duration = Duration::from_mins(2);

/// What is read of the model after the devices of a controller.
#[derive(Debug, Clone)]
pub(super) struct Follows {
    /// A user asked for the reading: every list is read, however short ago it was.
    pub(super) is_requested: bool,
    /// Devices that the reading listed.
    pub(super) devices_seen: i64,
    /// Why sites could not be read, although others were.
    pub(super) error: Option<String>,
}

/// Says whether anything of the model is to be read now, in the transaction that records the devices. The controller has
/// left its place among the readings then.
pub(super) async fn follow(
    tx: &mut Tx,
    app: &App,
    controller: &ControllerTarget,
    wanted: Follows,
    slot: &Slot,
) -> Result<Option<Follows>, Error> {
    if plan_for(tx, app, controller, wanted.is_requested).await?.is_empty() {
        return Ok(None);
    }
    if slot.move_on() {
        return Ok(Some(wanted));
    }
    // What a user asked for comes with the next reading.
    if wanted.is_requested {
        model_readings::make_due(tx, controller.id, app.clock.now()).await?;
    }
    Ok(None)
}

async fn plan_for(
    tx: &mut Tx,
    app: &App,
    controller: &ControllerTarget,
    is_requested: bool,
) -> Result<Plan, Error> {
    // An adapter that is gone now reads nothing.
    let Ok(adapter) = app.adapter(&controller.vendor) else { return Ok(Plan::default()) };
    let version = controller.firmware.as_deref();
    let of_release = |filled: &&Filled| is_offered(filled.releases.as_ref(), version);
    let filled: Vec<Filled> = adapter.description().model.iter().filter(of_release).cloned().collect();
    let states = model_readings::of_controller(tx, controller.id).await?;
    if filled.is_empty() && states.is_empty() {
        return Ok(Plan::default());
    }
    let places = places(tx, controller).await?;
    let interval = app.config.of::<InventorySettings>().interval_secs;
    let when = plan::When { now: app.clock.now(), interval_secs: interval, is_requested };
    Ok(plan::plan(&filled, &places, states, when))
}

/// Where kinds that are of the vendor's sites are read: at each site that is there and not ignored, or at the
/// controller where the vendor has no sites.
async fn places(tx: &mut Tx, controller: &ControllerTarget) -> Result<Vec<Place>, Error> {
    let sites = vendor_sites::present(tx, controller.id).await?;
    if sites.is_empty() {
        return Ok(vec![Place { site_ref: None, site_id: controller.site_id }]);
    }
    let read = sites.into_iter().filter(|site| !site.is_ignored);
    Ok(read.map(|site| Place { site_ref: Some(site.site_ref), site_id: site.site_id }).collect())
}

/// Reads what is due, and ends the reading of the controller.
pub(super) async fn read(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    follows: Follows,
) -> Result<(), Error> {
    let begun_at = app.clock.now();
    let read = read_lists(app, controller, start, follows.is_requested).await;
    let mut tx = app.db.write().await?;
    if controllers::release(&mut tx, controller.id, start.owner).await? {
        // What a user asked for comes with the next reading.
        if follows.is_requested && !matches!(read, Ok(Reach::All)) {
            model_readings::make_due(&mut tx, controller.id, begun_at).await?;
        }
        let (devices_seen, error) = (follows.devices_seen, follows.error.as_deref());
        let end = SyncEnd { devices_seen, is_read: true, error, now: app.clock.now() };
        syncs::end(&mut tx, controller.id, &end).await?;
    }
    tx.commit().await?;
    read.map(|_| ())
}

/// How far the lists that were due were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    /// Some are left for the next reading.
    Part,
}

async fn read_lists(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    is_requested: bool,
) -> Result<Reach, Error> {
    let until = Instant::now() + MODEL_LIMIT;
    let adapter = app.adapter(&controller.vendor)?;
    let call = call_for(controller, &format!("inventory-{}", controller.id))?;
    let mut tx = app.db.read().await?;
    let plan = plan_for(&mut tx, app, controller, is_requested).await?;
    drop(tx);
    for state in &plan.gone {
        if !record::forget(app, controller, start.owner, state).await? {
            return Ok(Reach::Part);
        }
    }
    let mut stops = plan.stops;
    for (number, due) in plan.due.into_iter().enumerate() {
        if stops >= plan::STOPS_MAX || Instant::now() >= until {
            return Ok(Reach::Part);
        }
        // Each reading reads at least one list, even when the devices are due again. So every list is read in the end.
        if number > 0
            && controllers::is_due(&mut app.db.single().await?, controller.id, app.clock.now()).await?
        {
            return Ok(Reach::Part);
        }
        let mut reading = ListReading::new(app, controller, start.owner, &due);
        match reading.read(&adapter, &call, until).await? {
            After::Next => {}
            After::Stopped => stops += 1,
            After::Nothing => return Ok(Reach::Part),
        }
    }
    Ok(Reach::All)
}
