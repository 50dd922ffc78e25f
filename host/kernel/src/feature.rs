//! What a feature is to the rest of the program, which names no feature.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::declared::SubscriptionAccess;
use heddle_core::event::EventType;
use heddle_core::{Clock, Declared, OrgId, Permission, Timestamp};
use heddle_runtime::Vault;
use heddle_store::sealed::SealedColumn;
use heddle_store::{Db, Tx};
use uuid::Uuid;

use crate::app::{App, Parts, SharedApp};
use crate::audit::key::SERVICE_SECRET;
use crate::config::{Config, SettingsOf};
use crate::declarations;
use crate::findings::Findings;
use crate::http::error::Error;
use crate::http::glossary::Glossary;
use crate::http::routes::Routes;
use crate::keys::Keys;
use crate::resource::StepObject;

/// One part of the product, as a unit struct. `features.rs` lists them all, and nothing else does.
///
/// Everything but the name has a default: a feature says only what it has.
#[async_trait::async_trait]
pub trait Feature: Send + Sync {
    /// Names the feature in messages.
    fn name(&self) -> &'static str;

    /// Names that it adds to the product.
    fn declares(&self) -> &'static Names {
        &Names::NONE
    }

    /// Opens credentials for components. One feature has it.
    fn vault(&self, _db: &Db, _keys: &Keys) -> Option<Arc<dyn Vault>> {
        None
    }

    /// Adds the state that the feature owns. The features before it in the list have done so.
    async fn open(&self, _app: &App, _parts: &mut Parts) {}

    /// Takes up what is installed now, when that has changed and its routes could be built. It must not wait.
    fn installed(&self, _app: &SharedApp) {}

    /// Its routes below the prefix. Built at the start, and whenever what is installed has changed.
    fn routes(&self, _app: &SharedApp) -> Routes {
        Routes::default()
    }

    /// How the API document speaks of its routes.
    fn glossary(&self) -> &'static Glossary {
        &Glossary::EMPTY
    }

    /// What it answers outside of the table of routes: pages for people, the event stream.
    fn pages(&self) -> Pages {
        Pages::default()
    }

    /// Subsystems that can be down. Readiness does not depend on them.
    fn subsystems(&self) -> &'static [Subsystem] {
        &[]
    }

    /// Sets gauges that are measured only when metrics are read.
    async fn measure(&self, _app: &SharedApp) {}

    /// Its kinds of object that steps name by an id, or read.
    fn step_objects(&self) -> &'static [StepObject] {
        &[]
    }

    /// What keeps objects of other features from being removed, by the noun of their kind
    /// ([`Resource::NOUN`](crate::resource::Resource::NOUN)). The removal of one such object asks them.
    fn guards(&self) -> &'static [(&'static str, Guard)] {
        &[]
    }

    /// Columns whose bytes it seals.
    fn sealed(&self) -> &'static [Sealing] {
        &[]
    }

    /// What `heddle doctor` asks of it.
    fn diagnostics(&self) -> &'static [Diagnostic] {
        &[]
    }

    /// Rows that are kept for a while only.
    fn forgets(&self) -> &'static [Forget] {
        &[]
    }

    /// Background loops.
    fn workers(&self, _app: &SharedApp) -> Vec<Worker> {
        Vec::new()
    }

    /// Takes up work that other processes left. Called when this process has registered, before the workers start, and
    /// whenever it registers again. An error ends a start; later, the feature has to try again by itself.
    async fn term_begun(&self, _app: &SharedApp) -> Result<(), Error> {
        Ok(())
    }

    /// Called when the address is bound, before any request is answered.
    async fn listening(&self, _app: &SharedApp, _addr: SocketAddr) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Names that a feature adds to the product, each a list of the room's declarations.
pub struct Names {
    pub permissions: &'static [Permission],
    /// Types of events about what the feature owns. Features above it can emit them, too.
    pub events: &'static [EventType],
    /// What subscribing to events needs, by the first segment of a type or pattern. Others cannot be subscribed to.
    pub subscriptions: &'static [(&'static str, SubscriptionAccess)],
    pub settings: &'static [SettingsOf],
}

impl Names {
    /// No names; struct update syntax adds those that a feature has.
    pub const NONE: Self = Self { permissions: &[], events: &[], subscriptions: &[], settings: &[] };

    /// Returns the names of a feature that has all but settings; struct update syntax adds those.
    pub const fn of(
        permissions: &'static [Permission],
        events: &'static [EventType],
        subscriptions: &'static [(&'static str, SubscriptionAccess)],
    ) -> Self {
        Self { permissions, events, subscriptions, settings: &[] }
    }
}

/// The features of one program, in their order.
#[derive(Clone, Copy)]
pub struct Features(&'static [&'static dyn Feature]);

impl std::fmt::Debug for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(Feature::name)).finish()
    }
}

impl Features {
    /// Lists the features of a program. They open, take up work and start their workers in this order, so a
    /// feature that needs what another one opened stands behind it.
    pub const fn new(features: &'static [&'static dyn Feature]) -> Self {
        Self(features)
    }

    /// Goes through the features in the order of the list, which is the order in which they opened.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn Feature> {
        self.0.iter().copied()
    }

    /// The permissions and event types that they declare, and those that every server has.
    pub fn declared(self) -> Declared {
        let names = || self.iter().map(Feature::declares);
        let permissions = names().flat_map(|names| names.permissions);
        let events = names().flat_map(|names| names.events);
        let subscriptions = names().flat_map(|names| names.subscriptions);
        Declared::new(
            declarations::PERMISSIONS.iter().chain(permissions).copied(),
            events.copied(),
            declarations::SUBSCRIPTIONS.iter().chain(subscriptions).copied(),
        )
    }

    /// The settings that they declare, in their order.
    pub fn settings(self) -> Vec<SettingsOf> {
        self.iter().flat_map(|feature| feature.declares().settings).copied().collect()
    }

    /// The kinds of object that steps name by an id, or read.
    pub fn step_objects(self) -> impl Iterator<Item = &'static StepObject> {
        self.iter().flat_map(Feature::step_objects)
    }

    /// Every column with sealed bytes, and how its rows come under another key.
    pub fn sealed(self) -> impl Iterator<Item = Sealing> {
        // First: with it opens or fails everything that the service starts with.
        let own = std::iter::once(Sealing::of(SERVICE_SECRET));
        own.chain(self.iter().flat_map(Feature::sealed).copied())
    }

    /// Every column with sealed bytes.
    pub fn sealed_columns(self) -> impl Iterator<Item = SealedColumn> {
        self.sealed().map(|sealing| sealing.column)
    }
}

/// Refuses to remove an object of an organization that something needs; the error names what. It is asked in the
/// transaction that removes.
pub type Guard = for<'a> fn(&'a mut Tx, &'a App, OrgId, Uuid) -> BoxFuture<'a, Result<(), Error>>;

/// A column with sealed bytes, and how a row of it comes under another key.
#[derive(Clone, Copy)]
pub struct Sealing {
    pub column: SealedColumn,
    /// For what takes more than to seal the same bytes anew.
    pub rekey: Option<RekeyRow>,
}

impl Sealing {
    /// Describes a column whose bytes only have to be sealed anew under another key. A feature that has to do
    /// more for a row sets `rekey` instead.
    pub const fn of(column: SealedColumn) -> Self {
        Self { column, rekey: None }
    }
}

/// Puts the secrets of one row under the current key, and all that depends on them.
pub(crate) type RekeyRow =
    for<'a> fn(&'a mut Tx, &'a Keys, &'a Clock, Uuid) -> BoxFuture<'a, Result<Rekey, Error>>;

/// The outcome of a row in a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rekey {
    /// Its secrets are under the current key.
    Done,
    /// The same, with a consequence that rows share; the number of such rows stands before it in the report.
    Counted(&'static str),
    /// The same, with a consequence for this row.
    Noted(String),
    /// Its secrets are in use: it stays as it is until that has ended, for this reason.
    InUse(String),
    /// No key there is opens its secrets.
    Unopenable,
    /// Another process changed it meanwhile.
    Moved,
}

/// A question of `heddle doctor`. It changes nothing.
pub enum Diagnostic {
    /// About settings and what they name outside of the database.
    Settings(fn(&Config, &mut Findings)),
    /// About rows of the database.
    Rows(for<'a> fn(&'a mut Tx, &'a mut Findings) -> BoxFuture<'a, heddle_store::Result<()>>),
}

/// Rows that are kept for a while only.
pub struct Forget {
    /// Days that they are kept; 0 where each row has its own end.
    pub days: i64,
    /// Forgets up to so many rows of before this time, and returns their number. It is called again until there are none.
    pub batch: for<'a> fn(&'a mut Tx, Timestamp, u32) -> BoxFuture<'a, heddle_store::Result<u64>>,
}

/// A subsystem of a feature, and whether it works.
pub struct Subsystem {
    pub name: &'static str,
    pub is_up: for<'a> fn(&'a SharedApp) -> BoxFuture<'a, bool>,
}

/// A loop of a feature. It does nothing until it is spawned.
pub struct Worker {
    pub(crate) name: &'static str,
    pub(crate) run: BoxFuture<'static, ()>,
}

impl Worker {
    /// Names a loop for [`Feature::workers`]; its log lines carry the name. The loop has to end by itself
    /// when the tasks are asked to stop. It is not started again after its end, nor after a panic.
    pub fn new(name: &'static str, run: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { name, run: run.boxed() }
    }
}

/// Routes that are not in the table.
#[derive(Default)]
pub struct Pages {
    pub(crate) router: Router<SharedApp>,
    /// Templates whose requests have counters of their own; requests of others are counted as `other`.
    pub(crate) counted: &'static [&'static str],
    /// Templates that no limit counts.
    pub(crate) unlimited: &'static [&'static str],
}

impl Pages {
    /// Takes routes by their whole paths; no prefix is added. They have no guard: handlers that need a caller
    /// or a CSRF token have to check it by themselves. The limits of requests count them.
    pub fn new(router: Router<SharedApp>, counted: &'static [&'static str]) -> Self {
        Self { router, counted, unlimited: &[] }
    }

    pub(crate) fn unlimited(self, templates: &'static [&'static str]) -> Self {
        Self { unlimited: templates, ..self }
    }
}

impl Parts {
    /// The features of this program. For a feature that opens; others ask [`App::features`].
    ///
    /// # Panics
    /// Before the first feature opens.
    pub fn features(&self) -> Features {
        *self.find().expect("the list of features is the first part")
    }
}

impl App {
    /// The features of this program.
    ///
    /// # Panics
    /// While features open: only then is their list not there yet.
    pub fn features(&self) -> Features {
        *self.part()
    }

    /// Asks every feature whether an object can be removed.
    ///
    /// # Errors
    /// 409 that names what needs it.
    pub(crate) async fn require_unused(
        &self,
        tx: &mut Tx,
        noun: &str,
        org: OrgId,
        id: Uuid,
    ) -> Result<(), Error> {
        let guards = self.features().iter().flat_map(|feature| feature.guards());
        for (_, guard) in guards.filter(|(of, _)| *of == noun) {
            guard(tx, self, org, id).await?;
        }
        Ok(())
    }
}
