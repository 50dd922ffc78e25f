//! What a feature is to the rest of the program, which knows none by name.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::{Future, ready};
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::OrgId;
use heddle_runtime::Vault;
use heddle_store::{Db, Tx};
use uuid::Uuid;

use crate::app::{App, SharedApp};
use crate::http::error::Error;
use crate::http::routes::Routes;
use crate::keys::Keys;

/// One room of the product, as a unit struct. `features.rs` lists them all, and nothing else does.
///
/// Everything has a default: a feature says only what it has.
pub trait Feature: Send + Sync + 'static {
    /// For messages.
    fn name(&self) -> &'static str;

    /// What opens credentials for components. One feature has it.
    fn vault(&self, _db: &Db, _keys: &Keys) -> Option<Arc<dyn Vault>> {
        None
    }

    /// Opens what the feature owns. The features before it in the list are open, and their parts are in `parts`.
    fn open<'a>(&'a self, _app: &'a SharedApp, _parts: &'a mut Parts) -> BoxFuture<'a, anyhow::Result<()>> {
        ready(Ok(())).boxed()
    }

    /// Its routes below the prefix.
    fn routes(&self, _app: &SharedApp) -> Routes {
        Routes::default()
    }

    /// What it answers outside of the table of routes: pages for people, the event stream.
    fn pages(&self) -> Pages {
        Pages::default()
    }

    /// What of it can be down while the process serves. Readiness needs none of it.
    fn subsystems(&self) -> &'static [Subsystem] {
        &[]
    }

    /// What keeps objects of other features from being removed, by the noun of the object.
    fn guards(&self) -> &'static [(&'static str, Guard)] {
        &[]
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

/// Refuses to remove an object of an organization that something needs; the error names what. It is asked in the
/// transaction that removes.
pub type Guard = for<'a> fn(&'a mut Tx, &'a App, OrgId, Uuid) -> BoxFuture<'a, Result<(), Error>>;

/// Something of a feature that works or does not.
#[derive(Debug)]
pub struct Subsystem {
    pub(crate) name: &'static str,
    pub(crate) is_up: for<'a> fn(&'a SharedApp) -> BoxFuture<'a, bool>,
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

/// What features own, found by its type: only code that can name the type reaches it.
///
/// A part must not hold the app, which holds the parts.
#[derive(Default)]
pub struct Parts(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Parts {
    pub(crate) fn add<T: Any + Send + Sync>(&mut self, part: T) {
        let before = self.0.insert(TypeId::of::<T>(), Box::new(part));
        debug_assert!(before.is_none(), "two features own a part of the same type");
    }

    pub(crate) fn find<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("count", &self.0.len()).finish()
    }
}
