//! The whole surface at once: what must hold for every route, whichever feature added it.

mod bounds;
mod clients;
mod document;
mod examples;
mod fuzz;
mod limits;
mod lists;
mod marks;
mod readme;
mod snapshots;
mod stale;
mod statements;
mod tools;
mod walk;
mod world;

pub(crate) use self::examples::with_ids;
pub(crate) use self::walk::{admits, filled};
pub(crate) use self::world::ABSENT;
use crate::support::{Adapters, Options};

/// Serves two adapters, whose areas between them are those of every family of routes that is not a vendor's own.
pub(super) fn described() -> Options {
    Options::default().serving(Adapters::Of(vec!["openwrt".to_owned(), "opnsense".to_owned()]))
}

/// Limits that hundreds of requests of one test stay below.
pub(crate) fn unlimited() -> Options {
    described().with("RATE_LIMIT_RPM", "1000000").with("RATE_LIMIT_BURST", "1000000")
}
