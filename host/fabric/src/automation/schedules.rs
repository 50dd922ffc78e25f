//! Schedules: steps that the clock starts, once for each time, however many processes there are.

use std::time::Duration;

use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::operation::{ConnectionKind, ConnectionState, MissedPolicy, RunKind, RunState};
use heddle_core::page::Page;
use heddle_core::shape::Shape;
use heddle_core::{ConnectionId, OrgId, Timestamp, UserId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{Actions, By, actions, owner};
use heddle_store::connections::ConnectionRow;
use heddle_store::runs::{self, RunRow};
use heddle_store::schedules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::timetable::{CRON_CHARS_MAX, TIME_ZONE_CHARS_MAX, Timetable};
use crate::connections::{WantedState, edited_state, refuse_more, refuse_more_of_pattern, refuse_unfit};
use crate::declarations::SHOWS_RUNS;
use crate::kinds::{self, Kind, ListQuery, READ, Schedules, WRITE};
use crate::measures::Measures;
use crate::provided::require_offered;
use crate::run::break_off;
use crate::runs::{ListQuery as RunsQuery, RunView, list_of};
use crate::steps::{self, STEPS_MAX, Step};
use crate::{FabricState, WAITING_MAX, declared};

/// Time between two looks for schedules that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// Schedules that one look reads.
const BATCH: u32 = 100;
/// A time that no process handled within so many seconds was missed.
const MISSED_AFTER: TimeDelta = TimeDelta::seconds(60);
/// Number of upcoming times that are shown.
const UPCOMING: usize = 5;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub(crate) struct View {
    id: ConnectionId,
    organization_id: OrgId,
    name: String,
    description: Option<String>,
    /// Five fields: minute, hour, day, month, weekday.
    cron: String,
    /// Of the IANA database: `Europe/Berlin`.
    time_zone: String,
    /// What is done about times that the service missed.
    missed: MissedPolicy,
    steps: Vec<Step>,
    state: ConnectionState,
    /// Why it is broken.
    state_reason: Option<String>,
    /// The user who last edited the steps; they run with this user's rights.
    author_id: UserId,
    /// Counts edits.
    revision: i64,
    /// Null unless it is enabled.
    next_due_at: Option<Timestamp>,
    /// The next times by its cron, enabled or not.
    upcoming: Vec<Timestamp>,
    last_fired_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

heddle_store::revised!(View);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewSchedule")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Up to 2000 characters.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// Five fields: minute, hour, day, month, weekday.
    #[schemars(length(min = 1, max = CRON_CHARS_MAX))]
    cron: String,
    /// Of the IANA database: `Europe/Berlin`.
    #[schemars(length(min = 1, max = TIME_ZONE_CHARS_MAX))]
    time_zone: String,
    /// What is done about times that the service missed: `skip`, or `run_once` for all of them.
    missed: MissedPolicy,
    #[schemars(length(min = 1, max = STEPS_MAX))]
    steps: Vec<Step>,
    /// `enabled` when absent.
    state: Option<WantedState>,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ScheduleUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = DESCRIPTION_CHARS_MAX), extend("x-nullable" = true))]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = CRON_CHARS_MAX))]
    cron: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = TIME_ZONE_CHARS_MAX))]
    time_zone: Option<String>,
    #[serde(default, deserialize_with = "given")]
    missed: Option<MissedPolicy>,
    /// All of them; the user who sends them is their author from then on.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = STEPS_MAX))]
    steps: Option<Vec<Step>>,
    #[serde(default, deserialize_with = "given")]
    state: Option<WantedState>,
}

impl Kind for Schedules {
    const KIND: ConnectionKind = ConnectionKind::Schedule;
    const PATH: &'static str = "/automation/schedules";
    const ONE: &'static str = "/automation/schedules/{schedule_id}";
    const ACTIONS: Actions = actions!("schedule");
    const TESTED: &'static str = "schedule.tested";
    type View = View;

    fn view(row: ConnectionRow, app: &App, caller: &Caller) -> Result<View, Error> {
        let steps = steps::views(app, caller, &row)?;
        let upcoming = timetable_of(&row).map(|table| table.upcoming(app.clock.now(), UPCOMING));
        Ok(View {
            id: row.id,
            organization_id: row.org_id,
            name: row.name,
            description: row.description,
            cron: row.cron.unwrap_or_default(),
            time_zone: row.time_zone.unwrap_or_default(),
            missed: row.missed.unwrap_or(MissedPolicy::Skip),
            steps,
            state: row.state,
            state_reason: row.state_reason,
            author_id: row.author_id,
            revision: row.revision,
            next_due_at: row.next_due_at,
            upcoming: upcoming.unwrap_or_default(),
            last_fired_at: row.last_fired_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }

    fn begin_again(row: &mut ConnectionRow, app: &App) {
        row.next_due_at = match row.state {
            ConnectionState::Enabled => timetable_of(row).and_then(|table| table.next(app.clock.now())),
            _ => None,
        };
    }
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(
            Schedules::PATH,
            READ,
            kinds::list::<Schedules>,
            doc("What the clock starts").query::<ListQuery>().answers::<Page<View>>(200),
        )
        .post(
            Schedules::PATH,
            WRITE,
            create,
            doc("Have the clock start steps; they run with the rights of who writes them")
                .body::<NewBody>()
                .answers::<View>(201),
        )
        .get(
            Schedules::ONE,
            READ,
            kinds::get::<Schedules>,
            doc("One schedule with its next times").answers::<View>(200),
        )
        .patch(
            Schedules::ONE,
            WRITE,
            update,
            doc("Change, enable or pause a schedule").body::<UpdateBody>().answers::<View>(200),
        )
        .delete(Schedules::ONE, WRITE, kinds::remove::<Schedules>, doc("Remove a schedule").empty(204))
        .post(
            &format!("{}/restore", Schedules::ONE),
            WRITE,
            kinds::restore::<Schedules>,
            doc("Bring a removed schedule back; times that passed meanwhile do not count as missed")
                .answers::<View>(200),
        )
        .get(
            "/automation/schedules/{schedule_id}/runs",
            Access::Authenticated(SHOWS_RUNS),
            |state, caller, id, query| list_of(Schedules::KIND, state, caller, id, query),
            doc("Its runs, the newest first")
                .query::<RunsQuery>()
                .answers::<heddle_core::page::CursorPage<RunView>>(200),
        )
}

fn timetable_of(row: &ConnectionRow) -> Option<Timetable> {
    Timetable::parse(row.cron.as_deref()?, row.time_zone.as_deref()?).ok()
}

/// The times, or what is wrong with them.
fn check_times(checks: &mut Checks, cron: &str, zone: &str, now: Timestamp) -> Option<Timestamp> {
    match Timetable::parse(cron, zone) {
        Ok(table) => {
            let next = table.next(now);
            checks.require(next.is_some(), "cron", "never comes; give times that there are");
            next
        }
        Err((field, message)) => {
            checks.require(false, field, &message);
            None
        }
    }
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    checks.description(body.description.as_deref());
    let next = check_times(&mut checks, &body.cron, &body.time_zone, app.clock.now());
    checks.add(steps::faults(app, &body.steps).await?);
    checks.add(declared::faults(app, &Shape::of_schedule(), None, &body.steps));
    checks.done()?;
    let outlines = steps::outlines(&body.steps);
    steps::require(app, caller, &outlines)?;
    let mut tx = app.db.write().await?;
    let org = owner(&mut tx, caller, body.organization_id).await?;
    declared::require_known_ids(&mut tx, app, org, &body.steps).await?;
    require_offered(&mut tx, app, org, &outlines).await?;
    refuse_more(&mut tx, org).await?;
    let mut row =
        ConnectionRow::draft(app.clock.new_id(), Schedules::KIND, org, caller.user_id, app.clock.now());
    row.name = name;
    row.description = body.description;
    row.secret = steps::seal(&app.keys, row.id, &body.steps);
    row.steps = outlines;
    row.state = body.state.map_or(ConnectionState::Enabled, ConnectionState::from);
    if row.state == ConnectionState::Enabled {
        refuse_more_of_pattern(&mut tx, org, &row.source_event).await?;
    }
    row.next_due_at = next.filter(|_| row.state == ConnectionState::Enabled);
    (row.cron, row.time_zone, row.missed) = (Some(body.cron), Some(body.time_zone), Some(body.missed));
    kinds::created::<Schedules>(tx, &by, creation, &row).await
}

async fn update(
    by: By,
    At(id): At<ConnectionId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    let By { app, caller, .. } = &by;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    checks.description(body.description.as_ref().and_then(Option::as_deref));
    if let Some(steps) = &body.steps {
        checks.add(steps::faults(app, steps).await?);
        checks.add(declared::faults(app, &Shape::of_schedule(), None, steps));
    }
    let mut tx = app.db.write().await?;
    let current = kinds::lock::<Schedules>(&mut tx, caller, id).await?;
    let mut row = current.clone();
    row.cron = body.cron.or(row.cron);
    row.time_zone = body.time_zone.or(row.time_zone);
    let (cron, zone) = (row.cron.clone().unwrap_or_default(), row.time_zone.clone().unwrap_or_default());
    let next = check_times(&mut checks, &cron, &zone, app.clock.now());
    checks.done()?;
    caller.require_all_sites()?;
    if_match.check(&current)?;
    row.name = name.unwrap_or(row.name);
    row.description = body.description.unwrap_or(row.description);
    row.missed = body.missed.or(row.missed);
    if let Some(steps) = &body.steps {
        declared::require_known_ids(&mut tx, app, row.org_id, steps).await?;
        (row.steps, row.secret) = (steps::outlines(steps), steps::seal(&app.keys, id, steps));
        row.author_id = caller.user_id;
    }
    edited_state(&mut row, body.state);
    if row.state == ConnectionState::Enabled || body.steps.is_some() {
        refuse_unfit(&mut tx, app, caller, &row).await?;
    }
    if row.state == ConnectionState::Enabled && current.state != ConnectionState::Enabled {
        refuse_more_of_pattern(&mut tx, row.org_id, &row.source_event).await?;
    }
    let has_same_times = (&current.cron, &current.time_zone) == (&row.cron, &row.time_zone);
    row.next_due_at = match row.state {
        // A time that is due stays due.
        ConnectionState::Enabled if has_same_times && current.next_due_at.is_some() => current.next_due_at,
        ConnectionState::Enabled => next,
        _ => None,
    };
    kinds::updated::<Schedules>(tx, &by, &row).await
}

/// Starts schedules that are due, until the service stops.
pub(super) async fn keep_time(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        match start_due(&app).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(error = %error, "schedules that are due cannot be read; tried again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Starts a batch of schedules that are due. Returns whether there may be more.
async fn start_due(app: &SharedApp) -> Result<bool, Error> {
    if app.tasks.stopping().is_cancelled() {
        return Ok(false);
    }
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let due = schedules::due(&mut tx, now, BATCH).await?;
    drop(tx);
    let mut is_full = due.len() >= usize::try_from(BATCH).unwrap_or(usize::MAX);
    for row in &due {
        // Each has its own transaction: its next time and its run, or neither. A failure does not hold up the others.
        if let Err(error) = start(app, row, now).await {
            tracing::warn!(error = %error, schedule.id = %row.id, "schedule {} cannot be started; tried again", row.id);
            is_full = false;
        }
    }
    if !due.is_empty() {
        FabricState::of(app).wake.notify_one();
    }
    Ok(is_full)
}

async fn start(app: &SharedApp, row: &ConnectionRow, now: Timestamp) -> Result<(), Error> {
    let Some(due_at) = row.next_due_at else { return Ok(()) };
    let is_missed = now - due_at > MISSED_AFTER;
    let next = timetable_of(row).and_then(|table| table.next(if is_missed { now } else { due_at }));
    let Some(next) = next else { return stop(app, row, due_at).await };
    let is_skipped = is_missed && row.missed != Some(MissedPolicy::RunOnce);
    let mut tx = app.db.write().await?;
    let skipped = if is_skipped {
        Some("missed: nobody was there when it was due, and its policy is to skip")
    } else if runs::are_waiting(&mut tx, row.org_id, WAITING_MAX).await? {
        Some("too many runs of the organization were waiting")
    } else {
        None
    };
    let fired_at = skipped.is_none().then_some(now);
    if !schedules::advance(&mut tx, (row.id, row.revision), due_at, Some(next), fired_at).await? {
        return Ok(());
    }
    runs::insert_all(&mut tx, &[run_of(app, row, due_at, skipped)]).await?;
    tx.commit().await?;
    if skipped.is_some() {
        Measures::of(app).runs_ended(RunState::Skipped, 1);
    }
    Ok(())
}

/// Stops a schedule whose times do not come again, or whose time zone is no longer known.
async fn stop(app: &SharedApp, row: &ConnectionRow, due_at: Timestamp) -> Result<(), Error> {
    let reason = "its cron and time zone name no time to come; give others";
    let mut tx = app.db.write().await?;
    if !schedules::advance(&mut tx, (row.id, row.revision), due_at, None, None).await? {
        return Ok(());
    }
    break_off(&mut tx, app, row, reason, None).await?;
    tx.commit().await?;
    Ok(())
}

fn run_of(app: &App, row: &ConnectionRow, due_at: Timestamp, skipped: Option<&str>) -> RunRow {
    let now = app.clock.now();
    RunRow {
        connection_id: Some(row.id),
        due_at: Some(due_at),
        chain: vec![row.id],
        payload: json!({ "schedule_id": row.id, "due_at": heddle_core::event::format_time(due_at) }),
        state: if skipped.is_some() { RunState::Skipped } else { RunState::Queued },
        reason: skipped.map(ToOwned::to_owned),
        ended_at: skipped.map(|_| now),
        ..RunRow::queued(app.clock.new_id(), RunKind::Schedule, row.org_id, row.author_id, now)
    }
}
