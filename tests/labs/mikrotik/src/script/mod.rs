//! Scripts: jobs of the scheduler, of `execute` and of imports. A useful part of the language: commands of menus, `find`
//! and `get`, variables, conditions, loops, delays and messages.

mod lexer;
mod run;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::access::Who;
use crate::call::{Answered, Call, Done, Output};
use crate::device::{Due, Router};
use crate::refusal::Refusal;

pub(crate) use lexer::quoted;
pub(crate) use run::{Machine, Next};

/// A script that runs beside requests.
#[derive(Clone)]
pub(crate) struct Job {
    id: u64,
    name: String,
    statements: VecDeque<String>,
    machine: Machine,
}

/// Starts a script beside requests, and returns the number of its job.
pub(crate) fn start(router: &mut Router, name: &str, source: &str, who: Who) -> u64 {
    let id = 0x100 + router.next_serial();
    router.jobs.insert(id, (name.to_owned(), router.unix));
    let job = Job {
        id,
        name: name.to_owned(),
        statements: lexer::statements(source).into(),
        machine: Machine::new(who),
    };
    go_on(router, job);
    id
}

/// Runs a job up to its next delay, or to its end.
pub(crate) fn go_on(router: &mut Router, mut job: Job) {
    if !router.jobs.contains_key(&job.id) {
        // It was removed while it waited.
        return;
    }
    while let Some(statement) = job.statements.pop_front() {
        match job.machine.run(router, &statement) {
            Ok(Next::On) => {}
            Ok(Next::Wait(secs)) => {
                let at = router.now + Duration::from_secs(secs);
                router.due.at(at, Due::Job(job));
                return;
            }
            Err(why) => {
                let text = format!("executing script {} failed: {}", job.name, why.text());
                router.note("script,error", &text);
                break;
            }
        }
    }
    router.jobs.remove(&job.id);
}

/// A script within a request: what it printed, how long it waited, and why it stopped.
pub(crate) fn at_once(router: &mut Router, source: &str, who: Who) -> (String, u64, Option<Refusal>) {
    let mut machine = Machine::new(who);
    let mut secs = 0;
    for statement in lexer::statements(source) {
        match machine.run(router, &statement) {
            Ok(Next::On) => {}
            Ok(Next::Wait(more)) => secs += more,
            Err(why) => return (machine.output(), secs, Some(why)),
        }
    }
    (machine.output(), secs, None)
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("", "execute") => execute(router, call),
        ("system/script", "run") => run_named(router, call),
        _ => return None,
    })
}

/// The script of a text: that of a row with this name, or the text itself.
fn source_of(router: &Router, text: &str) -> String {
    let named = router.store.having("system/script", "name", text.trim());
    named.map_or_else(|| text.to_owned(), |row| row.text("source").to_owned())
}

/// Without `as-string` the answer is the number of a job; with it what the script printed, or why it stopped.
fn execute(router: &mut Router, call: &Call) -> Answered {
    let source = source_of(router, call.need("script")?);
    if !call.has("as-string") {
        let id = start(router, "execute", &source, call.who.clone());
        return Ok(Done::value(crate::store::shown_id(id)));
    }
    let (output, secs, why) = at_once(router, &source, call.who.clone());
    let text = why.map_or(output, |why| why.text());
    Ok(Done { output: Output::Value(text), secs: Some(secs) })
}

fn run_named(router: &mut Router, call: &Call) -> Answered {
    let id = call.id(router)?;
    let row = router.store.find("system/script", id).ok_or(Refusal::NoSuchItem)?.clone();
    let count = row.text("run-count").parse::<u64>().unwrap_or(0) + 1;
    let now = crate::device::time_text(router.unix);
    router.store.set("system/script", id, "run-count", count.to_string());
    router.store.set("system/script", id, "last-started", now);
    let (_, secs, why) = at_once(router, row.text("source"), call.who.clone());
    match why {
        Some(why) => Err(why),
        None => Ok(Done { output: Output::Nothing, secs: Some(secs) }),
    }
}

/// Values of variables: texts, and lists joined by comma.
pub(crate) type Variables = BTreeMap<String, String>;
