//! How much of an API a description covers.

use std::fmt;

/// What a route does with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// What became of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A kind or a feature is made of it.
    Covered,
    /// It is left out for a reason that the overlay says.
    LeftOut,
    /// Nothing is made of it yet.
    Open,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    all: usize,
    covered: usize,
    left_out: usize,
}

impl Count {
    fn add(&mut self, state: State) {
        self.all += 1;
        match state {
            State::Covered => self.covered += 1,
            State::LeftOut => self.left_out += 1,
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
}

impl Coverage {
    /// Counts a route of an area.
    pub fn add(&mut self, area: &str, access: Access, state: State) {
        let at = self.areas.iter().position(|found| found.name == area).unwrap_or_else(|| {
            self.areas.push(Area { name: area.to_owned(), ..Area::default() });
            self.areas.len() - 1
        });
        let area = &mut self.areas[at];
        match access {
            Access::Read => area.reads.add(state),
            Access::Write => area.writes.add(state),
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Area { name: "all".to_owned(), ..Area::default() };
        for area in &self.areas {
            line(f, area)?;
            all.reads = all.reads.sum(area.reads);
            all.writes = all.writes.sum(area.writes);
        }
        if self.areas.is_empty() { Ok(()) } else { line(f, &all) }
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
    fn areas_and_their_sum_are_counted() {
        let mut coverage = Coverage::default();
        coverage.add("vpn", Access::Write, State::Covered);
        coverage.add("vpn", Access::Write, State::Open);
        coverage.add("dns", Access::Read, State::LeftOut);
        assert_eq!(
            coverage.to_string(),
            "vpn: 1 of 2 write routes (left out 0, open 1); 0 of 0 read routes (left out 0, open 0)\n\
             dns: 0 of 0 write routes (left out 0, open 0); 0 of 1 read routes (left out 1, open 0)\n\
             all: 1 of 2 write routes (left out 0, open 1); 0 of 1 read routes (left out 1, open 0)\n"
        );
    }

    #[test]
    fn no_route_shows_nothing() {
        assert_eq!(Coverage::default().to_string(), "");
    }
}
