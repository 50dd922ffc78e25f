//! How much of the API the description covers, and of what nothing is made and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::ensure;
use heddle_adapter_kit::{Access, Coverage, State};

use super::overlay::{Class, Facts, Overlay, Reach};

/// Operations of the facts that only read.
const READS: [&str; 3] = ["list", "read", "download"];

/// What became of routes, by their paths without values.
#[derive(Default)]
pub(super) struct Routes {
    /// Kinds read by them.
    reads: BTreeSet<String>,
    /// Features send them.
    writes: BTreeSet<String>,
    /// A feature or kind leads to the same; with the class.
    same: BTreeMap<String, (Reach, String)>,
    /// Nothing is made of them; with the class.
    left_out: BTreeMap<String, (Reach, String)>,
}

/// The share of routes of one access.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Share {
    all: u32,
    /// By their own call.
    own: u32,
    /// Another call leads to the same.
    same: u32,
    left_out: u32,
}

/// What is covered, and the classes of what is not sent or read by itself.
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub(super) reads: Share,
    pub(super) writes: Share,
    /// By what became of the routes, access and class.
    classes: BTreeMap<(&'static str, &'static str, String), u32>,
    /// Routes without a judgement in the overlay.
    open: Vec<String>,
}

impl Share {
    /// Parts of a thousand that are covered.
    pub(super) fn covered(self) -> u32 {
        (self.own + self.same) * 1000 / self.all.max(1)
    }

    pub(super) fn is_judged(self) -> bool {
        self.own + self.same + self.left_out == self.all
    }
}

impl Routes {
    pub(super) fn read(&mut self, path: &str) {
        self.reads.insert(plain(path));
    }

    pub(super) fn write(&mut self, path: &str) {
        self.writes.insert(plain(path));
    }

    /// A write that another one makes needless.
    pub(super) fn same(&mut self, path: &str, class: &str) {
        self.same.insert(plain(path), (Reach::Write, class.to_owned()));
    }

    /// Takes the classes of the overlay.
    pub(super) fn judge(&mut self, overlay: &Overlay, facts: &Facts) -> anyhow::Result<()> {
        for (classes, into) in [(&overlay.same, &mut self.same), (&overlay.left_out, &mut self.left_out)] {
            for Class { name: class, why, access, routes } in classes {
                ensure!(!why.is_empty(), "routes of class '{class}' have no reason: {routes:?}");
                for route in routes {
                    ensure!(exists(facts, route), "class '{class}' names {route}, which does not exist");
                    into.insert(plain(route), (*access, class.clone()));
                }
            }
        }
        Ok(())
    }

    /// Counts the routes of all areas.
    pub(super) fn coverage(&self, facts: &Facts, overlay: &Overlay) -> (Coverage, Shares) {
        let (mut coverage, mut shares) = (Coverage::default(), Shares::default());
        for area in overlay.areas.keys() {
            for (path, controller) in facts.controllers.iter().filter(|(_, found)| found.area == *area) {
                for (name, command) in &controller.commands {
                    let route = format!("/api/{path}/{name}");
                    let access = self.access(&route, &command.op);
                    let state = shares.add(self, access, &route);
                    coverage.add(area, access, state);
                }
            }
        }
        (coverage, shares)
    }

    /// The facts call much of what only reads an action.
    fn access(&self, route: &str, op: &str) -> Access {
        let judged = self.same.get(route).or_else(|| self.left_out.get(route)).map(|(reach, _)| *reach);
        let is_read = match judged {
            _ if self.writes.contains(route) => false,
            _ if self.reads.contains(route) => true,
            Some(reach) => reach == Reach::Read,
            None => READS.contains(&op),
        };
        if is_read { Access::Read } else { Access::Write }
    }
}

impl Shares {
    fn add(&mut self, routes: &Routes, access: Access, route: &str) -> State {
        let (share, used, word) = match access {
            Access::Read => (&mut self.reads, &routes.reads, "read"),
            Access::Write => (&mut self.writes, &routes.writes, "write"),
        };
        share.all += 1;
        let mut note = |state: &'static str, class: &str| {
            *self.classes.entry((state, word, class.to_owned())).or_default() += 1;
        };
        if used.contains(route) {
            share.own += 1;
            State::Covered
        } else if let Some((_, class)) = routes.same.get(route) {
            share.same += 1;
            note("the same by another call", class);
            State::Covered
        } else if let Some((_, class)) = routes.left_out.get(route) {
            share.left_out += 1;
            note("left out", class);
            State::LeftOut
        } else {
            self.open.push(route.to_owned());
            State::Open
        }
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, share) in [("write", self.writes), ("read", self.reads)] {
            let Share { all, own, same, left_out } = share;
            let covered = share.covered();
            writeln!(
                f,
                "{word} routes: {}.{} % of {all} covered: {own} by their own call, {same} by another call that leads to the same; left out {left_out}, open {}",
                covered / 10,
                covered % 10,
                all - own - same - left_out
            )?;
        }
        for ((state, word, class), count) in &self.classes {
            writeln!(f, "{state}, {word}: {class}: {count}")?;
        }
        self.open.iter().try_for_each(|route| writeln!(f, "open: {route}"))
    }
}

/// A route's path without its values.
fn plain(route: &str) -> String {
    route.split('/').take(5).collect::<Vec<_>>().join("/")
}

fn exists(facts: &Facts, route: &str) -> bool {
    let mut parts = route.trim_start_matches("/api/").splitn(3, '/');
    let controller = [parts.next(), parts.next()].into_iter().flatten().collect::<Vec<_>>().join("/");
    let found = facts.controllers.get(&controller);
    found.is_some_and(|found| parts.next().is_some_and(|name| found.commands.contains_key(name)))
}
