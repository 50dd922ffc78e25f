//! Timers of plugins: set by these, and called when their time has come.

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::fault::{Fault, FaultKind};
use heddle_fabric::automation::timetable::Timetable;
use heddle_fabric::occasion::{self, Begun, Occasion};
use heddle_fabric::operation::StepError;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_runtime::{CallError, StandingTimer, Timer, TimerTimes};
use heddle_store::plugins::organizations;
use heddle_store::plugins::timers::{self, TimerRow};
use heddle_store::plugins::values::Keeper;
use serde::{Deserialize, Serialize};

use super::ready::{Callee, Ready, SOON, What, ready};
use super::{
    ATTEMPTS_MAX, LEASE, Occasions, RATE_PAUSE, id_in_chains, is_final, is_unmade, pause, take_call,
};
use crate::left_out;
use crate::operations::Behalf;

/// Timers of a plugin in one organization.
const TIMERS_MAX: usize = 64;
/// Times that are compared with the least interval.
const COMPARED: usize = 8;
/// The latest time, in milliseconds since 1970: the end of the year 9999.
const AT_MS_MAX: u64 = 253_402_300_799_999;

/// When a timer comes, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Times {
    /// In milliseconds since 1970.
    AtMs(u64),
    EverySecs(u32),
    Cron {
        expression: String,
        time_zone: String,
    },
}

impl From<TimerTimes> for Times {
    fn from(times: TimerTimes) -> Self {
        match times {
            TimerTimes::At(at) => Self::AtMs(at),
            TimerTimes::Every(secs) => Self::EverySecs(secs),
            TimerTimes::Cron { expression, time_zone } => Self::Cron { expression, time_zone },
        }
    }
}

impl From<Times> for TimerTimes {
    fn from(times: Times) -> Self {
        match times {
            Times::AtMs(at) => Self::At(at),
            Times::EverySecs(secs) => Self::Every(secs),
            Times::Cron { expression, time_zone } => Self::Cron { expression, time_zone },
        }
    }
}

impl Times {
    /// When it comes for the first time after it was set.
    fn first(&self, now: Timestamp, min_interval: TimeDelta) -> Result<Timestamp, String> {
        let soonest = now + min_interval;
        match self {
            Self::AtMs(at) if *at > AT_MS_MAX => Err("its time is after the year 9999".to_owned()),
            Self::AtMs(at) => {
                let at = i64::try_from(*at).ok().and_then(Timestamp::from_timestamp_millis);
                Ok(at.unwrap_or(soonest).max(soonest))
            }
            Self::EverySecs(secs) => Ok(now + TimeDelta::seconds(i64::from(*secs))),
            Self::Cron { expression, time_zone } => {
                let table = Timetable::parse(expression, time_zone).map_err(|(field, problem)| {
                    let field = if field == "cron" { "expression" } else { "time-zone" };
                    format!("'{field}' {problem}")
                })?;
                let upcoming = table.upcoming(now, COMPARED);
                let close = upcoming.windows(2).find(|pair| pair[1] - pair[0] < min_interval);
                if let Some(pair) = close {
                    let secs = (pair[1] - pair[0]).num_seconds();
                    let least = min_interval.num_seconds();
                    return Err(format!(
                        "'{expression}' has times {secs} s apart; 'min-interval-s' of the manifest is {least}"
                    ));
                }
                upcoming.first().copied().ok_or_else(|| format!("'{expression}' never comes"))
            }
        }
    }

    /// When it comes next, after it came; times that passed meanwhile are not made up for. `None` where it came for the last
    /// time.
    fn next(&self, scheduled_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::AtMs(_) => None,
            Self::EverySecs(secs) => {
                let secs = i64::from(*secs).max(1);
                let passed = (now - scheduled_at).num_seconds().max(0) / secs;
                Some(scheduled_at + TimeDelta::seconds(secs.saturating_mul(passed + 1)))
            }
            Self::Cron { expression, time_zone } => {
                Timetable::parse(expression, time_zone).ok()?.next(now.max(scheduled_at))
            }
        }
    }
}

fn times_of(row: &TimerRow) -> Option<Times> {
    Times::deserialize(&row.times).ok()
}

fn refused(message: String) -> Fault {
    Fault::new(FaultKind::Invalid, message).with_code("timer")
}

/// Sets timers of a plugin, all or none.
pub(crate) async fn set(
    app: &App,
    keeper: Keeper,
    new: Vec<Timer>,
    min_interval_secs: u32,
) -> Result<Result<(), Fault>, Error> {
    let now = app.clock.now();
    let min_interval = TimeDelta::seconds(i64::from(min_interval_secs));
    if new.len() > TIMERS_MAX {
        return Ok(Err(too_many(new.len())));
    }
    // The database is not held while times are computed.
    let mut rows = Vec::with_capacity(new.len());
    for timer in new {
        let times = Times::from(timer.times);
        let first = match times.first(now, min_interval) {
            Ok(first) => first,
            Err(problem) => return Ok(Err(refused(format!("timer '{}': {problem}", timer.name)))),
        };
        rows.push(TimerRow {
            org_id: keeper.org,
            plugin_uid: keeper.plugin,
            name: timer.name,
            trigger_id: timer.trigger,
            times: serde_json::to_value(&times).map_err(Error::internal)?,
            scheduled_at: first,
            due_at: first,
            attempts: 0,
            problem: None,
        });
    }
    let mut tx = app.db.write().await?;
    // Two calls of the plugin count one after the other.
    if organizations::lock(&mut tx, keeper.org, keeper.plugin).await?.is_none_or(|set| !set.is_enabled) {
        return Ok(Err(refused("the plugin is not switched on in the organization any more".to_owned())));
    }
    let there = timers::list(&mut tx, keeper).await?;
    // A time that has come is over: the same time again is another one.
    let stays = |row: &TimerRow| {
        there.iter().any(|old| {
            let is_same =
                (&old.name, &old.trigger_id, &old.times) == (&row.name, &row.trigger_id, &row.times);
            is_same && (old.scheduled_at > now || !matches!(times_of(old), Some(Times::AtMs(_))))
        })
    };
    rows.retain(|row| !stays(row));
    let added = rows.iter().filter(|row| !there.iter().any(|other| other.name == row.name)).count();
    if there.len() + added > TIMERS_MAX {
        return Ok(Err(too_many(there.len() + added)));
    }
    timers::put(&mut tx, keeper, &rows).await?;
    tx.commit().await?;
    Ok(Ok(()))
}

fn too_many(count: usize) -> Fault {
    let message =
        format!("a plugin has at most {TIMERS_MAX} timers in an organization; this would be {count}");
    Fault::new(FaultKind::Generic, message).with_code("quota")
}

/// Removes timers of a plugin, where there are any.
pub(crate) async fn cancel(app: &App, keeper: Keeper, names: &[String]) -> Result<(), Error> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut tx = app.db.write().await?;
    timers::remove(&mut tx, keeper, &names).await?;
    Ok(tx.commit().await?)
}

/// The timers of a plugin.
pub(crate) async fn list(app: &App, keeper: Keeper) -> Result<Vec<StandingTimer>, Error> {
    let rows = timers::list(&mut app.db.single().await?, keeper).await?;
    let standing = |row: TimerRow| {
        let times = times_of(&row)?.into();
        let next_at_ms = u64::try_from(row.scheduled_at.timestamp_millis()).unwrap_or_default();
        Some(StandingTimer { timer: Timer { name: row.name, trigger: row.trigger_id, times }, next_at_ms })
    };
    Ok(rows.into_iter().filter_map(standing).collect())
}

/// Calls the trigger of a timer that is due, and writes when it comes next.
pub(super) async fn fire(app: &SharedApp, row: TimerRow) -> Result<(), Error> {
    let (until, term) = (app.clock.now() + LEASE, app.membership.term()?);
    let mut tx = app.db.write().await?;
    if !timers::claim(&mut tx, &row, term.id, until).await? {
        return Ok(());
    }
    tx.commit().await?;
    let row = TimerRow { due_at: until, ..row };
    let keeper = Keeper { org: row.org_id, plugin: row.plugin_uid };
    let mut tx = app.db.read().await?;
    let ready = ready(app, &mut tx, keeper, What::Other).await?;
    drop(tx);
    let callee = match ready {
        Ready::Yes(callee) => callee,
        Ready::Off => {
            let mut tx = app.db.write().await?;
            timers::end(&mut tx, &row).await?;
            return Ok(tx.commit().await?);
        }
        Ready::Later(problem, after) => return later(app, &row, after, &problem).await,
        Ready::Elsewhere(problem) => return later(app, &row, SOON, &problem).await,
    };
    let manifest = callee.plugin.manifest();
    if manifest.trigger(&row.trigger_id).is_none() || manifest.capabilities.schedule.is_none() {
        // The package that serves now has no such trigger, or has no capability for timers.
        let mut tx = app.db.write().await?;
        timers::end(&mut tx, &row).await?;
        return Ok(tx.commit().await?);
    }
    if !take_call(app, &callee).await {
        return later(app, &row, RATE_PAUSE, "it was called too often in this minute").await;
    }
    let id = id_in_chains(row.org_id, row.plugin_uid);
    let at_ms = u64::try_from(row.scheduled_at.timestamp_millis()).unwrap_or_default();
    let key = format!("{id}:timer:{}:{at_ms}", row.name);
    let occasion = Occasion { due_at: Some(row.scheduled_at), ..callee.occasion(&row.trigger_id, key) };
    let begun = occasion::begin(app, callee.author.clone(), occasion).await?;
    let call = callee.call(Behalf::of(&begun.step(app), callee.generation()), begun.request_id());
    let calling = callee.plugin.on_schedule(&call, &row.trigger_id, (&row.name, at_ms));
    let Some(outcome) = begun.during(calling).await else { return Ok(()) };
    ended(app, &row, &callee, &begun, outcome).await
}

/// Puts off what was not tried.
async fn later(app: &SharedApp, row: &TimerRow, after: TimeDelta, problem: &str) -> Result<(), Error> {
    let due_at = app.clock.now() + after;
    let mut tx = app.db.write().await?;
    timers::moved(&mut tx, row, (row.scheduled_at, due_at), (row.attempts, Some(problem))).await?;
    Ok(tx.commit().await?)
}

async fn ended(
    app: &SharedApp,
    row: &TimerRow,
    callee: &Callee,
    begun: &Begun,
    outcome: Result<(), CallError>,
) -> Result<(), Error> {
    let now = app.clock.now();
    let attempts = row.attempts + i64::from(!outcome.as_ref().is_err_and(is_unmade));
    let next = times_of(row).and_then(|times| times.next(row.scheduled_at, now));
    // The package that serves now may have agreed to longer intervals.
    let has = callee.plugin.manifest().capabilities.schedule.as_ref();
    let soonest = now + TimeDelta::seconds(has.map_or(0, |has| i64::from(has.min_interval_s)));
    let is_often = next.is_some_and(|next| next - row.scheduled_at < soonest - now);
    let next = if is_often { next.map(|next| next.max(soonest)) } else { next };
    // A time is not tried again once the next one has come.
    let is_last = attempts >= ATTEMPTS_MAX || next.is_some_and(|next| now + pause(attempts) >= next);
    let is_over = outcome.as_ref().is_ok() || is_last || outcome.as_ref().is_err_and(is_final);
    let result = outcome.map_err(|error| StepError::from(Error::from(error)));
    let problem = result.as_ref().err().map(|error| error.message.clone());
    let mut tx = app.db.write().await?;
    if !begun.end(&mut tx, app, &result).await? {
        return Ok(());
    }
    match next {
        _ if !is_over => {
            let times = (row.scheduled_at, now + pause(attempts));
            timers::moved(&mut tx, row, times, (attempts, problem.as_deref())).await?;
        }
        Some(next) => {
            timers::moved(&mut tx, row, (next, next), (0, problem.as_deref())).await?;
        }
        None => {
            timers::end(&mut tx, row).await?;
        }
    }
    if let Some(problem) = problem.filter(|_| is_over) {
        let what = format!("the time {} of its timer '{}'", row.scheduled_at.to_rfc3339(), row.name);
        left_out::tell(&mut tx, app, callee, &row.trigger_id, (&what, &problem)).await?;
    }
    tx.commit().await?;
    Occasions::of(app).wake.notify_one();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cron(expression: &str) -> Times {
        Times::Cron { expression: expression.to_owned(), time_zone: "Europe/Berlin".to_owned() }
    }

    #[test]
    fn a_timer_comes_no_sooner_than_the_least_interval() {
        let (now, least) = (at("2026-11-26T12:00:00Z"), TimeDelta::seconds(300));
        let soonest = at("2026-11-26T12:05:00Z");
        for early in [0, 1, u64::try_from(now.timestamp_millis()).unwrap()] {
            assert_eq!(Times::AtMs(early).first(now, least), Ok(soonest));
        }
        let hour = now + TimeDelta::hours(1);
        let late = Times::AtMs(u64::try_from(hour.timestamp_millis()).unwrap());
        assert_eq!(late.first(now, least), Ok(hour));
        assert!(Times::AtMs(u64::MAX).first(now, least).is_err());
        assert_eq!(cron("0 14 * * *").first(now, least), Ok(at("2026-11-26T13:00:00Z")));
        for (expression, problem) in [
            ("* * * * *", "60 s apart"),
            ("0,3 9 * * *", "180 s apart"),
            ("0 0 30 2 *", "never comes"),
            ("x", "five"),
        ] {
            let refused = cron(expression).first(now, least).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn times_that_passed_come_once() {
        let (scheduled, now) = (at("2026-11-26T12:00:00Z"), at("2026-11-26T12:11:00Z"));
        assert_eq!(Times::EverySecs(300).next(scheduled, now), Some(at("2026-11-26T12:15:00Z")));
        assert_eq!(Times::EverySecs(300).next(scheduled, scheduled), Some(at("2026-11-26T12:05:00Z")));
        assert_eq!(cron("*/5 * * * *").next(scheduled, now), Some(at("2026-11-26T12:15:00Z")));
        assert_eq!(Times::AtMs(0).next(scheduled, now), None);
    }

    #[test]
    fn times_are_kept_as_they_are_set() {
        for times in [Times::AtMs(7), Times::EverySecs(60), cron("0 22 * * *")] {
            let kept = serde_json::to_value(&times).unwrap();
            assert_eq!(Times::deserialize(&kept).unwrap(), times);
            assert_eq!(Times::from(TimerTimes::from(times.clone())), times);
        }
    }
}
