//! What an adapter owes: the calls of its cassette again, and the right fault to each mutant of each answer.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use super::format::{Call, Cassette};
use super::gives;
use super::mutants::{Damage, Envelope, Mutant, mutants};
use super::player::Player;
use crate::testing::Package;
use crate::{Adapter, Effect, Fault, FaultExt};

/// Values of one answer that are spoiled for one call; see [`mutants`].
const BUDGET: usize = 40;
/// Problems that a failing check shows.
const SHOWN: usize = 60;

/// Mutants that are answered otherwise, for a reason.
pub struct Spared {
    /// Looks at the call, at method and path of the spoiled exchange, at what was done, and at the fault where there is one.
    pub when: fn(&Call, &str, &Damage, Option<&Fault>) -> bool,
    /// Why it is right.
    pub why: &'static str,
}

impl std::fmt::Debug for Spared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.why)
    }
}

/// Plays every call again.
///
/// # Panics
///
/// Where a call gives something else than what was recorded, or asks what was not recorded.
pub fn replays<A: Adapter>(cassette: &Cassette, package: &Package) {
    assert!(!cassette.calls.is_empty(), "nothing was recorded");
    let player = Player { cassette, package };
    let mut problems = Vec::new();
    for (at, recorded) in cassette.calls.iter().enumerate() {
        let host = player.host(at);
        let gives = player.play::<A>(at, &host).unwrap_or_else(|failed| gives::fault(&failed));
        let call = format!("call {at} {:?}", recorded.call);
        for request in host.unrecorded.take() {
            problems.push(format!("{call} asks {request}, which was not recorded"));
        }
        if gives != recorded.gives {
            problems.push(format!("{call} gives {gives} instead of {}", recorded.gives));
        }
    }
    fail(&problems);
}

fn fail(problems: &[String]) {
    let shown = problems.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(problems.is_empty(), "{} problems:\n{shown}", problems.len());
}

/// A call, and the place of one of its exchanges that is spoiled.
struct Task {
    at: usize,
    place: usize,
}

/// Plays every call with every mutant of each of its answers; returns how many there were.
///
/// An adapter answers a mutant by a fault of the right kind, or reads less; it never panics, and never takes a write for
/// done whose answer does not prove it.
///
/// # Panics
///
/// Where it does something else, which the text names; where an exception is needed by no mutant.
pub fn every_mutant<A: Adapter>(
    cassette: &Cassette,
    package: &Package,
    envelope: &Envelope,
    spared: &[Spared],
) -> usize {
    let tape = Player { cassette, package };
    let tasks = tasks(cassette);
    let (next, played) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (problems, needed) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
    let work = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let check = Check { player: tape, envelope, spared, task, played: Cell::new(0) };
            let (found, used) = check.run::<A>();
            played.fetch_add(check.played.get(), Ordering::Relaxed);
            problems.lock().expect("no check panics with it").extend(found);
            needed.lock().expect("no check panics with it").extend(used);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut problems = problems.into_inner().expect("no check panics with it");
    problems.sort();
    let needed = needed.into_inner().expect("no check panics with it");
    let idle = (0..spared.len()).filter(|at| !needed.contains(at));
    problems.extend(idle.map(|at| format!("no mutant needs the exception: {}", spared[at].why)));
    fail(&problems);
    played.into_inner()
}

fn tasks(cassette: &Cassette) -> Vec<Task> {
    let mut seen = BTreeSet::new();
    let mut tasks = Vec::new();
    for (at, recorded) in cassette.calls.iter().enumerate() {
        let sort = format!("{:?}", std::mem::discriminant(&recorded.call));
        for (place, number) in recorded.exchanges.iter().enumerate() {
            let exchange = &cassette.exchanges[*number];
            let path = exchange.path.split('?').next().unwrap_or_default();
            let body = exchange.body.as_ref().map(ToString::to_string);
            // In each sort of call a read has its turn once.
            if seen.insert((sort.clone(), exchange.method.clone(), path.to_owned(), body)) {
                tasks.push(Task { at, place });
            }
        }
    }
    tasks
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Right,
    /// Too good for such an answer, or a fault of another kind.
    Wrong,
}

struct Check<'c> {
    player: Player<'c>,
    envelope: &'c Envelope,
    spared: &'c [Spared],
    task: &'c Task,
    played: Cell<usize>,
}

impl Check<'_> {
    /// Problems, and the exceptions that were needed.
    fn run<A: Adapter>(&self) -> (Vec<String>, BTreeSet<usize>) {
        let (cassette, at) = (self.player.cassette, self.task.at);
        let recorded = &cassette.calls[at];
        let number = recorded.exchanges[self.task.place];
        let exchange = &cassette.exchanges[number];
        let name = format!("{} {}", exchange.method, exchange.path);
        let (mut problems, mut needed) = (BTreeMap::new(), BTreeSet::new());
        for mutant in mutants(&exchange.answer, self.envelope, number as u64, BUDGET) {
            self.played.set(self.played.get() + 1);
            let Mutant { damage, name: done, answer } = mutant;
            let host = self.player.host(at).with(self.task.place, answer);
            let gives = panic::catch_unwind(AssertUnwindSafe(|| self.player.play::<A>(at, &host)));
            let problem = match gives {
                Err(_) => "it panics".to_owned(),
                Ok(gives) if self.verdict(&damage, &gives) == Verdict::Right => continue,
                Ok(gives) => {
                    match self
                        .spared
                        .iter()
                        .position(|one| (one.when)(&recorded.call, &name, &damage, gives.as_ref().err()))
                    {
                        Some(one) => {
                            needed.insert(one);
                            continue;
                        }
                        None => told(&gives),
                    }
                }
            };
            // One of each sort is enough to read.
            let sort = format!("{:?} {problem}", std::mem::discriminant(&damage));
            problems
                .entry(sort)
                .or_insert_with(|| format!("{problem} to {name} of call {at} {:?}: {done}", recorded.call));
        }
        (problems.into_values().collect(), needed)
    }

    fn verdict(&self, damage: &Damage, gives: &Result<Value, Fault>) -> Verdict {
        let recorded = &self.player.cassette.calls[self.task.at];
        let is_right = match gives {
            Err(fault) => is_right_fault(damage, fault.word()) && self.is_right_effect(damage, fault),
            Ok(_) if self.is_judged() => !self.spoils_proof(damage),
            Ok(gives) => is_right_success(damage, gives, &recorded.gives),
        };
        if is_right { Verdict::Right } else { Verdict::Wrong }
    }

    /// The device carried the write out when it was recorded: an answer that proves nothing is no promise that it did not.
    fn is_right_effect(&self, damage: &Damage, fault: &Fault) -> bool {
        let is_open = matches!(
            damage,
            Damage::Body | Damage::Hollow | Damage::Status(500..) | Damage::Relabelled(500..)
        );
        !(self.is_judged() && is_open) || fault.info().effect != Effect::None
    }

    /// Whether the spoiled answer is the one that a judgement is about.
    fn is_judged(&self) -> bool {
        matches!(self.player.cassette.calls[self.task.at].call, Call::Judge { .. }) && self.task.place == 0
    }

    /// Whether what proves a success is spoiled.
    fn spoils_proof(&self, damage: &Damage) -> bool {
        match damage {
            Damage::Status(_) | Damage::Relabelled(_) | Damage::Body | Damage::Hollow | Damage::Turned => {
                true
            }
            Damage::Value(place) => self
                .envelope
                .proof
                .iter()
                .any(|proof| *proof == place || proof.starts_with(&format!("{place}/"))),
            Damage::Twice(_) => false,
        }
    }
}

fn told(gives: &Result<Value, Fault>) -> String {
    match gives {
        Ok(gives) => format!("it gives {gives}"),
        Err(fault) => {
            let (word, info) = (fault.word(), fault.info());
            format!("it is '{word}' with effect {:?}: {}", info.effect, info.message)
        }
    }
}

/// Whether a fault tells what happened.
fn is_right_fault(damage: &Damage, word: &str) -> bool {
    match damage {
        Damage::Status(401 | 403) | Damage::Relabelled(401 | 403) => {
            ["authentication", "denied"].contains(&word)
        }
        Damage::Status(404) | Damage::Relabelled(404) => {
            ["not_found", "unsupported", "not_ready", "generic", "state_moved"].contains(&word)
        }
        Damage::Status(429) | Damage::Relabelled(429) => word == "rate_limit",
        Damage::Status(_) | Damage::Relabelled(_) => {
            ["not_ready", "connection", "generic", "busy", "timeout"].contains(&word)
        }
        // What is wrong with the answer is not the user's to mend.
        Damage::Body => ["not_ready", "generic", "connection"].contains(&word),
        Damage::Hollow | Damage::Turned | Damage::Value(_) | Damage::Twice(_) => true,
    }
}

/// Whether an answer that is spoiled so may give this.
fn is_right_success(damage: &Damage, gives: &Value, recorded: &Value) -> bool {
    let says_less = || {
        let keys = |value: &Value| -> BTreeSet<String> {
            let items = value["items"].as_array().into_iter().flatten().filter_map(Value::as_str);
            items.filter_map(|item| Some(item.rsplit_once(' ')?.0.to_owned())).collect()
        };
        keys(gives).is_subset(&keys(recorded))
    };
    match damage {
        // What cannot be read is missing, and the list says so.
        Damage::Status(_) | Damage::Relabelled(_) | Damage::Body | Damage::Turned => {
            says_less() && gives["complete"].as_str().is_some_and(|complete| complete != "complete")
        }
        Damage::Hollow => says_less(),
        Damage::Value(_) | Damage::Twice(_) => true,
    }
}
