//! What messages of a controller ask for: a reading of its devices, of lists of its objects, or of both.
//!
//! It begins by itself, or between two lists of a reading of all. It moves no time of the controller's own readings, and takes
//! at most half of the time however much the controller tells: after each one rests for as long as it took.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::adapter::DeviceStatus;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::controllers::{self, ControllerTarget};
use heddle_store::push::wanted::{self, Row};

use super::model::{self, ListName, Reach};
use super::reading::{self, Failed, Sites};
use super::slots::Slot;
use super::{Scope, Start, known_after, record, take_devices};

/// Shortest pause behind a reading for messages.
const REST_MIN: TimeDelta = TimeDelta::seconds(1);
/// Longest one. No reading takes longer.
const REST_MAX: TimeDelta = TimeDelta::minutes(5);
/// How long what was told waits when the controller takes no calls now, or is offline.
pub(super) const REFUSED_WAIT: TimeDelta = TimeDelta::seconds(10);

/// How a reading for messages went.
struct Round {
    reach: Reach,
    lists: Vec<ListName>,
    /// What is not asked for any longer, although it was not read.
    dropped: Vec<Row>,
}

impl Round {
    fn ended(reach: Reach) -> Self {
        Self { reach, lists: Vec::new(), dropped: Vec::new() }
    }
}

/// Reads what messages ask for, and gives the controller free.
pub(super) async fn read(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    told: &[Row],
    slot: &Slot,
) -> Result<(), Error> {
    let until = Instant::now() + model::MODEL_LIMIT;
    let round = round(app, controller, start, told, (until, Some(slot))).await?;
    let mut tx = app.db.write().await?;
    end(&mut tx, app, controller, start, &round).await?;
    controllers::release(&mut tx, controller.id, start.owner).await?;
    Ok(tx.commit().await?)
}

/// Reads what messages ask for between two lists of a reading of all. Returns the lists that it read; `None` where the
/// reading of the controller is over. That devices could not be read ends nothing: the lists may answer.
pub(super) async fn between(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    until: Instant,
) -> Result<Option<Vec<ListName>>, Error> {
    let told = wanted::during(&mut app.db.single().await?, controller.id, app.clock.now()).await?;
    if told.is_empty() {
        return Ok(Some(Vec::new()));
    }
    take_devices(app, &told, start.owner).await?;
    let start = Start { at: app.clock.now(), instant: Instant::now(), scope: Scope::Part, ..start };
    let round = round(app, controller, start, &told, (until, None)).await?;
    let mut tx = app.db.write().await?;
    end(&mut tx, app, controller, start, &round).await?;
    tx.commit().await?;
    Ok(matches!(round.reach, Reach::All | Reach::Part).then_some(round.lists))
}

/// Reads the devices that are asked for, then the lists until that time. The devices take no time of the lists: those of a
/// controller that is slow, and tells much of its devices, are read too.
async fn round(
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    told: &[Row],
    (until, slot): (Instant, Option<&Slot>),
) -> Result<Round, Error> {
    let of_devices = record::of_devices(told);
    let mut known = controller.clone();
    let begun = Instant::now();
    if !of_devices.is_empty() {
        let outcome = reading::read(app, controller, start, &sites(&of_devices)).await;
        known = known_after(controller, &outcome);
        let reach = match outcome {
            Ok(reading) => record::record_part(app, &known, reading, start, told).await?,
            Err(failed) => fail(app, &known, &failed, (start, told)).await?,
        };
        if reach != Reach::All {
            return Ok(Round::ended(reach));
        }
    }
    // Without a place the lists wait for one.
    if slot.is_some_and(|slot| !slot.move_on()) {
        return Ok(Round::ended(Reach::Part));
    }
    let lists = model::read_told(app, &known, start, until + begun.elapsed()).await?;
    Ok(Round { reach: lists.reach, lists: lists.read, dropped: lists.unplaced })
}

/// Records that the devices could not be read; nothing where the controller takes no calls now. The lists that are asked for
/// wait for the next reading.
async fn fail(
    app: &SharedApp,
    controller: &ControllerTarget,
    failed: &Failed,
    asked: (Start, &[Row]),
) -> Result<Reach, Error> {
    if matches!(&failed.error, Error::Adapter(error) if model::is_refused(error)) {
        return Ok(Reach::Refused);
    }
    failed.log(controller);
    let status = record::record_failure(app, controller, failed, asked).await?;
    Ok(reach_after(status))
}

/// Only a controller that is offline, or another process's by now, is read no further.
fn reach_after(status: Option<DeviceStatus>) -> Reach {
    match status {
        None | Some(DeviceStatus::Offline) => Reach::Over,
        Some(_) => Reach::Part,
    }
}

/// The sites whose devices are asked for; `None` where one row asks for all of them.
fn sites(told: &[Row]) -> Sites {
    let is_of_all = told.iter().any(|row| row.site_ref.is_empty());
    (!is_of_all).then(|| told.iter().map(|row| row.site_ref.clone()).collect::<HashSet<String>>())
}

/// Ends a reading for messages, unless another process reads the controller by now: the next one rests, and what could not be
/// read waits or is left to the interval.
async fn end(
    tx: &mut heddle_store::Tx,
    app: &SharedApp,
    controller: &ControllerTarget,
    start: Start,
    round: &Round,
) -> Result<(), Error> {
    let now = app.clock.now();
    let rested = now + rest_after(start.instant.elapsed());
    // The controller's row is held before those of what is wanted.
    if !wanted::rest(tx, controller.id, start.owner, rested).await? {
        return Ok(());
    }
    wanted::settle(tx, &round.dropped, start.at).await?;
    if round.reach == Reach::Refused {
        wanted::postpone(tx, controller.id, now + REFUSED_WAIT).await?;
    }
    Ok(())
}

/// How long readings for messages rest behind one that took so long.
fn rest_after(took: Duration) -> TimeDelta {
    TimeDelta::from_std(took).unwrap_or(REST_MAX).clamp(REST_MIN, REST_MAX)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn row(site_ref: &str) -> Row {
        let clock = Clock::default();
        let (kind, site_ref) = (wanted::DEVICES.to_owned(), site_ref.to_owned());
        let (controller_id, told_at) = (clock.new_id(), clock.now());
        Row { controller_id, kind, site_ref, number: 1, told_at, taken_at: None, taken_by: None }
    }

    #[test]
    fn one_row_without_a_site_asks_for_all_sites() {
        assert_eq!(sites(&[row("a"), row("")]), None);
        let of_two = sites(&[row("a"), row("b")]).unwrap();
        assert_eq!(of_two, HashSet::from(["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn devices_that_cannot_be_read_end_a_reading_only_where_nothing_answers() {
        assert_eq!(reach_after(Some(DeviceStatus::Online)), Reach::Part);
        assert_eq!(reach_after(Some(DeviceStatus::Unknown)), Reach::Part);
        assert_eq!(reach_after(Some(DeviceStatus::Offline)), Reach::Over);
        assert_eq!(reach_after(None), Reach::Over, "another process reads it");
    }

    #[test]
    fn readings_for_messages_take_half_of_the_time_at_most() {
        assert_eq!(rest_after(Duration::from_millis(300)), TimeDelta::seconds(1));
        assert_eq!(rest_after(Duration::from_secs(4)), TimeDelta::seconds(4));
    }
}
