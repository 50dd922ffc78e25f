//! What became of each route of an API.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use serde::Deserialize;

use crate::{Access, Coverage, State};

/// Routes that one reason stands for, as an overlay has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// A name for the reason, where one is shorter.
    #[serde(default, rename = "class")]
    pub name: Option<String>,
    /// The reason, in a sentence.
    pub why: String,
    /// What the routes do, where their method does not tell.
    #[serde(default)]
    pub access: Option<Access>,
    /// The routes, as the facts name them.
    pub routes: Vec<String>,
}

/// What became of routes, by their names in the facts.
#[derive(Debug, Default)]
pub struct Routes {
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
    same: BTreeMap<String, (Option<Access>, String)>,
    left_out: BTreeMap<String, (Option<Access>, String)>,
}

impl Routes {
    /// A kind is read by this route.
    pub fn read(&mut self, route: impl Into<String>) {
        self.reads.insert(route.into());
    }

    /// A feature sends this route.
    pub fn write(&mut self, route: impl Into<String>) {
        self.writes.insert(route.into());
    }

    /// Another call leads to the same as this write, for this reason.
    pub fn same(&mut self, route: impl Into<String>, why: &str) {
        self.same.insert(route.into(), (Some(Access::Write), why.to_owned()));
    }

    /// Another call tells the same as this read, for this reason.
    pub fn same_read(&mut self, route: impl Into<String>, why: &str) {
        self.same.insert(route.into(), (Some(Access::Read), why.to_owned()));
    }

    /// Whether a feature sends this route.
    pub fn is_written(&self, route: &str) -> bool {
        self.writes.contains(route)
    }

    /// Takes routes that other calls make needless. `known` finds a route of an overlay among the facts.
    pub fn take_same(
        &mut self,
        classes: &[Class],
        known: impl FnMut(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        judged(classes, known, &mut self.same)
    }

    /// Takes routes of which nothing is made. `known` finds a route of an overlay among the facts.
    pub fn leave_out(
        &mut self,
        classes: &[Class],
        known: impl FnMut(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        judged(classes, known, &mut self.left_out)
    }

    /// What a route does: what something is made of it for, or else the overlay, or else `usual`.
    pub fn access(&self, route: &str, usual: Access) -> Access {
        let judged = self.same.get(route).or_else(|| self.left_out.get(route));
        match judged.and_then(|(access, _)| *access) {
            _ if self.writes.contains(route) => Access::Write,
            _ if self.reads.contains(route) => Access::Read,
            access => access.unwrap_or(usual),
        }
    }

    /// What became of a route.
    pub fn state(&self, route: &str) -> State<'_> {
        if self.reads.contains(route) || self.writes.contains(route) {
            State::Covered
        } else if let Some((_, why)) = self.same.get(route) {
            State::Same(why)
        } else if let Some((_, why)) = self.left_out.get(route) {
            State::LeftOut(why)
        } else {
            State::Open
        }
    }

    /// Counts a route of an area.
    pub fn count(&self, coverage: &mut Coverage, area: &str, route: &str, access: Access) {
        coverage.add(area, route, access, self.state(route));
    }
}

fn judged(
    classes: &[Class],
    mut known: impl FnMut(&str) -> anyhow::Result<String>,
    into: &mut BTreeMap<String, (Option<Access>, String)>,
) -> anyhow::Result<()> {
    for Class { name, why, access, routes } in classes {
        ensure!(!why.is_empty(), "nothing says why of the routes {routes:?}");
        for route in routes {
            into.insert(known(route)?, (*access, name.as_ref().unwrap_or(why).clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(why: &str) -> Class {
        Class {
            name: None,
            why: why.to_owned(),
            access: Some(Access::Read),
            routes: vec!["GET /a".to_owned(), "GET /b".to_owned()],
        }
    }

    #[test]
    fn what_something_is_made_of_counts_before_a_judgement() {
        let mut routes = Routes::default();
        routes.leave_out(&[class("no JSON")], |route| Ok(route.to_owned())).unwrap();
        routes.read("GET /a");
        assert_eq!(routes.state("GET /a"), State::Covered);
        assert_eq!(routes.state("GET /b"), State::LeftOut("no JSON"));
        assert_eq!(routes.access("GET /b", Access::Write), Access::Read);
        assert_eq!(routes.state("GET /c"), State::Open);
    }

    #[test]
    fn reason_that_is_empty_and_route_that_is_not_known_are_refused() {
        let unknown = |_: &str| anyhow::bail!("there is no such route");
        assert!(Routes::default().leave_out(&[class("")], |route| Ok(route.to_owned())).is_err());
        assert!(Routes::default().leave_out(&[class("no JSON")], unknown).is_err());
    }
}
