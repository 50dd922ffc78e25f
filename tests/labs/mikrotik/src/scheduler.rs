//! Jobs at a time: the only timer that can take a change back without a client.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use crate::access::{self, Who};
use crate::device::Router;
use crate::duration;
use crate::refusal::Refusal;
use crate::script;
use crate::store::{Record, Row};

const MENU: &str = "system/scheduler";
/// Runs of one job that the clock may have passed over at once.
const CAUGHT_UP_MAX: u32 = 100;

/// When a job runs next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    next: Option<u64>,
}

/// Refuses a date, a time or an interval that cannot be read.
pub(crate) fn check(row: &mut Row) -> Result<(), Refusal> {
    let date = row.text("start-date").to_owned();
    date_of(&date).ok_or_else(|| Refusal::invalid("start-date"))?;
    let time = row.text("start-time").to_owned();
    if time == "startup" {
        return Ok(());
    }
    let shown = time_of(&time).ok_or_else(|| Refusal::invalid("start-time"))?;
    row.values.insert("start-time".to_owned(), shown.format("%H:%M:%S").to_string().into());
    Ok(())
}

/// Days as `2026-01-31`, or as older releases write them, `jan/31/2026`.
fn date_of(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").or_else(|_| NaiveDate::parse_from_str(text, "%b/%d/%Y")).ok()
}

fn time_of(text: &str) -> Option<NaiveTime> {
    NaiveTime::parse_from_str(text, "%H:%M:%S")
        .or_else(|_| NaiveTime::parse_from_str(text, "%H:%M"))
        .ok()
        .or_else(|| {
            let secs = u32::try_from(duration::secs(text)?).ok()?;
            NaiveTime::from_num_seconds_from_midnight_opt(secs, 0)
        })
}

fn interval(row: &Row) -> u64 {
    duration::secs(row.text("interval")).unwrap_or(0)
}

/// The first run behind a moment.
fn next_after(row: &Row, unix: u64) -> Option<u64> {
    if row.is_disabled() {
        return None;
    }
    let interval = interval(row);
    if row.text("start-time") == "startup" {
        return (interval > 0).then(|| unix + interval);
    }
    let start = NaiveDateTime::new(date_of(row.text("start-date"))?, time_of(row.text("start-time"))?);
    let start = u64::try_from(start.and_utc().timestamp()).ok()?;
    if start > unix {
        return Some(start);
    }
    (interval > 0).then(|| start + ((unix - start) / interval + 1) * interval)
}

/// A row was written.
pub(crate) fn planned(router: &mut Router, id: u64) {
    let next = router.store.find(MENU, id).and_then(|row| next_after(row, router.unix));
    router.schedules.insert(id, State { next });
}

/// Runs the jobs that are due, in the order of their times.
pub(crate) fn run_due(router: &mut Router) {
    let rows: Vec<u64> = router.store.rows(MENU).iter().map(|row| row.id).collect();
    for id in rows {
        if !router.schedules.contains_key(&id) {
            planned(router, id);
        }
    }
    for _ in 0..CAUGHT_UP_MAX {
        let due = router
            .schedules
            .iter()
            .filter_map(|(id, state)| Some((state.next.filter(|at| *at <= router.unix)?, *id)));
        let Some((at, id)) = due.min() else { break };
        let Some(row) = router.store.find(MENU, id).cloned() else {
            router.schedules.remove(&id);
            continue;
        };
        let next = if interval(&row) > 0 { next_after(&row, at) } else { None };
        router.schedules.insert(id, State { next });
        run(router, &row);
    }
}

/// Runs the jobs that wait for a start of the box.
pub(crate) fn at_startup(router: &mut Router) {
    let rows = router.store.rows(MENU).to_vec();
    for row in rows.iter().filter(|row| !row.is_disabled()) {
        planned(router, row.id);
        if row.text("start-time") == "startup" {
            run(router, row);
        }
    }
}

fn run(router: &mut Router, row: &Row) {
    let count = row.text("run-count").parse::<u64>().unwrap_or(0) + 1;
    router.store.set(MENU, row.id, "run-count", count.to_string());
    let owner =
        access::named(router, row.text("owner")).unwrap_or_else(|| Who::limited(row.text("owner"), ""));
    let policies = row.text("policy");
    let who =
        if policies.is_empty() { Who::everything(&owner.name) } else { Who::limited(&owner.name, policies) };
    let text = row.text("on-event").to_owned();
    // The event is the name of a script, or the script itself.
    let source = match router.store.having("system/script", "name", text.trim()) {
        Some(script) => script.text("source").to_owned(),
        None => text,
    };
    script::start(router, row.text("name"), &source, who);
}

pub(crate) fn fill(router: &Router, row: &Row, out: &mut Record) {
    let next = router.schedules.get(&row.id).and_then(|state| state.next);
    out.insert("next-run".to_owned(), next.map_or_else(String::new, crate::device::time_text));
    out.entry("run-count".to_owned()).or_insert_with(|| "0".to_owned());
}
