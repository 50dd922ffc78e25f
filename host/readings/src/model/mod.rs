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

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use heddle_core::ProcessId;
use heddle_core::adapter::Filled;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_store::controllers::syncs::{self, SyncEnd};
use heddle_store::controllers::{self, ControllerTarget};
use heddle_store::push::wanted;
use heddle_store::{Tx, model_readings, vendor_sites};
pub(super) use list::is_refused;
use list::{After, ListReading};
use plan::{Due, Place, Plan};

use super::slots::Slot;
use super::{Scope, Start, part};
use heddle_inventory::adapters::call_for;
use heddle_inventory::controllers::releases::is_offered;
use heddle_inventory::model::InventorySettings;

/// Time limit of all calls for the model in one reading together.
pub(super) const MODEL_LIMIT: Duration = Duration::from_mins(2);

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
    (owner, wanted): (ProcessId, Follows),
    slot: &Slot,
) -> Result<Option<Follows>, Error> {
    if plan_for(tx, app, controller, (owner, Scope::Whole, wanted.is_requested)).await?.is_empty() {
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
    (owner, scope, is_requested): (ProcessId, Scope, bool),
) -> Result<Plan, Error> {
    let mut told = wanted::of(tx, controller.id, app.clock.now()).await?;
    told.retain(|row| !row.is_of_devices());
    // What another process took is taken anew: its clock may be another.
    for row in told.iter_mut().filter(|row| row.taken_by != Some(owner)) {
        row.taken_at = None;
    }
    // An adapter that is gone now reads nothing.
    let Ok(adapter) = app.adapter(&controller.vendor) else { return Ok(Plan::nothing(told)) };
    let version = controller.firmware.as_deref();
    let of_release = |filled: &&Filled| is_offered(filled.releases.as_ref(), version);
    let filled: Vec<Filled> = adapter.description().model.iter().filter(of_release).cloned().collect();
    let states = model_readings::of_controller(tx, controller.id).await?;
    if filled.is_empty() && states.is_empty() {
        return Ok(Plan::nothing(told));
    }
    let places = places(tx, controller).await?;
    let interval = app.config.of::<InventorySettings>().interval_secs;
    let when = plan::When { now: app.clock.now(), interval_secs: interval, is_requested, scope };
    Ok(plan::plan(&filled, &places, states, told, when))
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
pub(super) enum Reach {
    All,
    /// Some are left for the next reading.
    Part,
    /// The same, because the controller takes no calls now.
    Refused,
    /// The reading of the controller is over.
    Over,
}

/// Names a list: its kind, and the vendor's site.
pub(super) type ListName = (&'static str, Option<String>);

/// Lists that messages asked for, as far as they were read.
pub(super) struct Lists {
    pub(super) reach: Reach,
    pub(super) read: Vec<ListName>,
    /// What no list answers.
    pub(super) unplaced: Vec<wanted::Row>,
}

/// Makes the plan of a reading, and notes when it begins with what messages asked for: what they tell meanwhile becomes due at
/// its own time, and a reading of several lists that is cut short is not begun anew by the next one.
async fn planned(
    app: &SharedApp,
    controller: &ControllerTarget,
    (owner, scope, is_requested): (ProcessId, Scope, bool),
) -> Result<Plan, Error> {
    let mut tx = app.db.read().await?;
    let plan = plan_for(&mut tx, app, controller, (owner, scope, is_requested)).await?;
    drop(tx);
    if !plan.begun.is_empty() {
        let mut tx = app.db.write().await?;
        wanted::take(&mut tx, &plan.begun, owner, app.clock.now()).await?;
        tx.commit().await?;
    }
    Ok(plan)
}

/// Reads the lists that messages ask for, and nothing else.
pub(super) async fn read_told(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    until: Instant,
) -> Result<Lists, Error> {
    let plan = planned(app, controller, (start.owner, Scope::Part, false)).await?;
    let mut lists = Lists { reach: Reach::All, read: Vec::new(), unplaced: plan.unplaced };
    if plan.due.is_empty() {
        return Ok(lists);
    }
    let adapter = app.adapter(&controller.vendor)?;
    let call = call_for(controller, &format!("push-{}", controller.id))?;
    let mut stops = plan.stops;
    for due in plan.due {
        // In which the component was stopped too often counts for minutes: asking each second is of no use.
        if stops >= plan::STOPS_MAX {
            lists.reach = Reach::Refused;
            break;
        }
        let is_due = !lists.read.is_empty() && gives_way(app, controller).await?;
        if is_due || Instant::now() >= until {
            lists.reach = Reach::Part;
            break;
        }
        match ListReading::new(app, controller, start.owner, &due).read(&adapter, &call, until).await? {
            After::Next => {}
            After::Stopped => stops += 1,
            After::Nothing => lists.reach = Reach::Over,
            After::Refused => lists.reach = Reach::Refused,
        }
        if lists.reach != Reach::All {
            break;
        }
        lists.read.push(due.name());
    }
    Ok(lists)
}

/// Whether the controller's own time to be read has come.
async fn gives_way(app: &SharedApp, controller: &ControllerTarget) -> Result<bool, Error> {
    Ok(controllers::is_due(&mut app.db.single().await?, controller.id, app.clock.now()).await?)
}

async fn read_lists(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    is_requested: bool,
) -> Result<Reach, Error> {
    let mut until = Instant::now() + MODEL_LIMIT;
    let adapter = app.adapter(&controller.vendor)?;
    let call = call_for(controller, &format!("inventory-{}", controller.id))?;
    let plan = planned(app, controller, (start.owner, Scope::Whole, is_requested)).await?;
    for state in &plan.gone {
        if !record::forget(app, controller, start.owner, state).await? {
            return Ok(Reach::Part);
        }
    }
    let mut stops = plan.stops;
    let mut left: VecDeque<Due> = plan.due.into();
    let mut is_first = true;
    while !left.is_empty() {
        if stops >= plan::STOPS_MAX || Instant::now() >= until {
            return Ok(Reach::Part);
        }
        // Each reading reads at least one list, even when the devices are due again. So every list is read in the end.
        if !is_first {
            if gives_way(app, controller).await? {
                return Ok(Reach::Part);
            }
            let paused = Instant::now();
            let Some(read) = part::between(app, controller, start, until).await? else {
                return Ok(Reach::Part);
            };
            // What messages ask for takes no time of the other lists.
            until += paused.elapsed();
            left.retain(|due| !read.contains(&due.name()));
        }
        is_first = false;
        let Some(due) = left.pop_front() else { break };
        let mut reading = ListReading::new(app, controller, start.owner, &due);
        match reading.read(&adapter, &call, until).await? {
            After::Next => {}
            After::Stopped => stops += 1,
            After::Nothing | After::Refused => return Ok(Reach::Part),
        }
    }
    Ok(Reach::All)
}
