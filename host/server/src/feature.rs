//! What a feature is to the rest of the program, which knows none by name.

use std::future::{Future, ready};
use std::net::SocketAddr;

use axum::Router;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::app::SharedApp;
use crate::http::error::Error;
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

    /// Loops that run beside the requests.
    fn workers(&self, _app: &SharedApp) -> Vec<Worker> {
        Vec::new()
    }

    /// Takes up work that other processes left. Called when this process has registered, before the workers start, and
    /// whenever it registers again.
    fn term_begun<'a>(&'a self, _app: &'a SharedApp) -> BoxFuture<'a, Result<(), Error>> {
        ready(Ok(())).boxed()
    }

    /// The address is bound, and no request is answered yet.
    fn listening<'a>(&'a self, _app: &'a SharedApp, _addr: SocketAddr) -> BoxFuture<'a, anyhow::Result<()>> {
        ready(Ok(())).boxed()
    }
}

/// A loop of a feature. It does nothing until it is spawned.
pub struct Worker {
    pub(crate) name: &'static str,
    pub(crate) run: BoxFuture<'static, ()>,
}

impl Worker {
    pub(crate) fn new(name: &'static str, run: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { name, run: run.boxed() }
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
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
