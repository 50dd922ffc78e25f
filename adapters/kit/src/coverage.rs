//! How much of an API a description covers, and of what nothing is made and why.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::ensure;
use serde::Deserialize;

/// What a route does with the device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// It changes nothing.
    Read,
    /// It may change something.
    #[default]
    Write,
    /// It opens a session or a stream of its own, such as a console, or belongs to one: nothing is configured by it, and
    /// nothing of the configuration is read. It counts as neither.
    Session,
}

impl Access {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Session => "session",
        }
    }
}

/// What became of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State<'s> {
    /// A kind is read by it, or a feature sends it.
    Covered,
    /// Another call leads to the same, for this reason.
    Same(&'s str),
    /// Nothing is made of it, for this reason.
    LeftOut(&'s str),
    /// Nobody judged it.
    Open,
}

/// Least parts of a thousand that are covered.
#[derive(Debug, Clone, Copy)]
pub struct Least {
    /// Of the routes that write.
    pub writes: usize,
    /// Of the routes that read.
    pub reads: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    all: usize,
    covered: usize,
    left_out: usize,
}

impl Count {
    fn add(&mut self, state: State<'_>) {
        self.all += 1;
        match state {
            State::Covered | State::Same(_) => self.covered += 1,
            State::LeftOut(_) => self.left_out += 1,
            State::Open => {}
        }
    }

    fn sum(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            covered: self.covered + other.covered,
            left_out: self.left_out + other.left_out,
        }
    }

    /// Whether so many parts of a thousand are covered.
    fn reaches(self, least: usize) -> bool {
        self.covered * 1000 >= self.all * least
    }
}

/// The routes of one area.
#[derive(Debug, Default, Clone)]
struct Area {
    name: String,
    reads: Count,
    writes: Count,
}

/// The routes of an API by area, in the order of the description.
#[derive(Debug, Default)]
pub struct Coverage {
    areas: Vec<Area>,
    /// How many routes have no call of their own, by access and reason.
    reasons: BTreeMap<(Access, String), usize>,
    /// Routes that nobody judged.
    open: Vec<String>,
}

impl Coverage {
    /// Counts a route of an area.
    pub fn add(&mut self, area: &str, route: &str, access: Access, state: State<'_>) {
        let at = self.areas.iter().position(|found| found.name == area).unwrap_or_else(|| {
            self.areas.push(Area { name: area.to_owned(), ..Area::default() });
            self.areas.len() - 1
        });
        let area = &mut self.areas[at];
        match access {
            Access::Read => area.reads.add(state),
            Access::Write => area.writes.add(state),
            Access::Session => {}
        }
        match state {
            State::Covered => {}
            State::Same(why) => self.reason(access, format!("another call leads to the same: {why}")),
            State::LeftOut(why) => self.reason(access, format!("left out: {why}")),
            State::Open => self.open.push(route.to_owned()),
        }
    }

    fn reason(&mut self, access: Access, why: String) {
        *self.reasons.entry((access, why)).or_default() += 1;
    }

    /// Fails where too little is covered, or where routes are neither covered nor left out for a reason.
    pub fn require(&self, least: Least) -> anyhow::Result<()> {
        self.require_judged()?;
        let all = self.all();
        let is_enough = all.writes.reaches(least.writes) && all.reads.reaches(least.reads);
        ensure!(is_enough, "less is covered than {least:?} parts of a thousand:\n{self}");
        Ok(())
    }

    /// Fails where a route is neither covered nor left out for a reason.
    pub fn require_judged(&self) -> anyhow::Result<()> {
        ensure!(self.open.is_empty(), "the overlay says nothing about {:?}", self.open);
        Ok(())
    }

    fn all(&self) -> Area {
        let sum = |all: Area, area: &Area| Area {
            reads: all.reads.sum(area.reads),
            writes: all.writes.sum(area.writes),
            ..all
        };
        self.areas.iter().fold(Area { name: "all".to_owned(), ..Area::default() }, sum)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.areas.iter().try_for_each(|area| line(f, area))?;
        if !self.areas.is_empty() {
            line(f, &self.all())?;
        }
        for ((access, why), count) in &self.reasons {
            writeln!(f, "{count} {} routes, {why}", access.word())?;
        }
        self.open.iter().try_for_each(|route| writeln!(f, "open: {route}"))
    }
}

fn line(f: &mut fmt::Formatter<'_>, area: &Area) -> fmt::Result {
    let of = |f: &mut fmt::Formatter<'_>, count: Count, word: &str| {
        let Count { all, covered, left_out } = count;
        write!(f, "{covered} of {all} {word} routes (left out {left_out}, open {})", all - covered - left_out)
    };
    write!(f, "{}: ", area.name)?;
    of(f, area.writes, "write")?;
    f.write_str("; ")?;
    of(f, area.reads, "read")?;
    f.write_str("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_their_sum_and_reasons_are_counted() {
        let mut coverage = Coverage::default();
        coverage.add("vpn", "a", Access::Write, State::Covered);
        coverage.add("vpn", "b", Access::Write, State::Open);
        coverage.add("dns", "c", Access::Read, State::LeftOut("no JSON"));
        coverage.add("dns", "d", Access::Read, State::Same("same rows"));
        coverage.add("dns", "e", Access::Session, State::LeftOut("a console"));
        assert_eq!(
            coverage.to_string(),
            "vpn: 1 of 2 write routes (left out 0, open 1); 0 of 0 read routes (left out 0, open 0)\n\
             dns: 0 of 0 write routes (left out 0, open 0); 1 of 2 read routes (left out 1, open 0)\n\
             all: 1 of 2 write routes (left out 0, open 1); 1 of 2 read routes (left out 1, open 0)\n\
             1 read routes, another call leads to the same: same rows\n\
             1 read routes, left out: no JSON\n\
             1 session routes, left out: a console\n\
             open: b\n"
        );
    }

    #[test]
    fn no_route_shows_nothing() {
        assert_eq!(Coverage::default().to_string(), "");
    }

    #[test]
    fn too_little_and_what_nobody_judged_are_refused() {
        let mut coverage = Coverage::default();
        coverage.add("vpn", "a", Access::Write, State::Covered);
        coverage.add("vpn", "b", Access::Write, State::LeftOut("a tool"));
        assert!(coverage.require(Least { writes: 500, reads: 1000 }).is_ok());
        assert!(coverage.require(Least { writes: 501, reads: 0 }).is_err());
        coverage.add("vpn", "c", Access::Read, State::Open);
        assert!(coverage.require(Least { writes: 0, reads: 0 }).is_err());
    }
}
