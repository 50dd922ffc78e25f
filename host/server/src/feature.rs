//! What a feature is to the rest of the program, which knows none by name.

use axum::Router;

use crate::app::SharedApp;
use crate::http::routes::Routes;

/// One room of the product, as a unit struct. `features.rs` lists them all, and nothing else does.
///
/// Everything has a default: a feature says only what it has.
pub trait Feature: Send + Sync + 'static {
    /// Its routes below the prefix.
    fn routes(&self, _app: &SharedApp) -> Routes {
        Routes::default()
    }

    /// What it answers outside of the table of routes: pages for people, the event stream.
    fn pages(&self) -> Pages {
        Pages::default()
    }
}

/// Routes that are not in the table.
#[derive(Debug, Default)]
pub struct Pages {
    pub(crate) router: Router<SharedApp>,
    /// Templates whose requests have counters of their own; requests of others are counted as `other`.
    pub(crate) counted: &'static [&'static str],
}

impl Pages {
    pub(crate) fn new(router: Router<SharedApp>, counted: &'static [&'static str]) -> Self {
        Self { router, counted }
    }
}
