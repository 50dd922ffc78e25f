//! Plugins: extensions of third parties that a `super_admin` installs, agrees to, and organizations switch on.
//!
//! The database says how each plugin stands, and every process serves what it says: [`service`] and [`follow`]. Actions of
//! plugins are operations of the Fabric ([`operations`]), and run with the rights of the author of the step. What a plugin
//! asks of the server comes through [`services`]. A plugin never writes to a device: it stages.

mod calls;
mod change;
mod consent;
mod declarations;
mod diagnostics;
mod follow;
mod glossary;
mod hooks;
mod index;
mod install;
mod keeping;
mod keys;
mod left_out;
mod operations;
mod organization;
mod revoke;
mod routes;
mod service;
mod services;
mod storage;
mod transition;
mod triggers;
mod turns;
mod upload;
mod view;

use std::sync::Arc;

use futures::FutureExt as _;
use heddle_fabric::provided;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::events::consumer::consume;
use heddle_kernel::feature::{Diagnostic, Feature, Forget, Names, Sealing, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_packages::Pauses;
use heddle_store::plugins::{storage as stored, values};
use heddle_store::sealed::SealedColumn;

pub use self::declarations::{PLUGIN_MANAGE, PLUGIN_READ};
use self::index::{Index, Switched};
pub use self::index::{Standing, standing, was_sent};
pub use self::install::install_listed;
pub use self::revoke::{revoke, take_up};
use self::services::Services;
pub use self::transition::{Actor, note};
use self::triggers::{Follower, Occasions};
use self::turns::Turns;
pub use self::view::{ItemView, Outcome, in_words};

const SEALED: &[Sealing] = &[Sealing::of(SealedColumn::of("plugin_secret"))];

const FORGETS: &[Forget] = &[
    // Values have their own end.
    Forget { days: 0, batch: |tx, before, rows| values::forget_expired(tx, before, rows).boxed() },
    // Values of plugins, after these were removed.
    Forget { days: 30, batch: |tx, before, rows| values::forget_removed(tx, before, rows).boxed() },
    // Values from before a migration have their own end, too.
    Forget { days: 0, batch: |tx, before, rows| stored::forget_kept(tx, before, rows).boxed() },
    // Values that no call can read, such as those of a migration that failed.
    Forget { days: 0, batch: |tx, before, rows| stored::sweep(tx, before, rows).boxed() },
    // Keys by which events are the same.
    Forget { days: 1, batch: |tx, before, rows| values::trim_emitted(tx, before, rows).boxed() },
];

/// Installed plugins.
pub struct Plugins;

#[async_trait::async_trait]
impl Feature for Plugins {
    fn name(&self) -> &'static str {
        "plugins"
    }

    fn declares(&self) -> &'static Names {
        const { &Names::of(declarations::PERMISSIONS, declarations::EVENTS, declarations::SUBSCRIPTIONS) }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::PLUGINS
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(Index::default());
        parts.add(Turns::new());
        parts.add(Occasions::default());
    }

    fn installed(&self, app: &SharedApp) {
        provided::provide(app, operations::all(app));
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes().merge(keys::routes()).merge(triggers::routes()).merge(hooks::routes())
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }

    /// Puts every active plugin into service. One that cannot be loaded is absent, with its reason.
    async fn term_begun(&self, app: &SharedApp) -> Result<(), Error> {
        provided::set_provider(app, Arc::new(Switched));
        app.runtime.serves_plugins(Arc::new(Services(Arc::downgrade(app))));
        let mut pauses = Pauses::default();
        let prepared = service::prepare(app, &mut pauses).await?;
        let mut seen = Turns::of(app).take().await;
        service::take_over(app, &mut seen, &mut pauses, prepared).await
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("plugins.follow", follow::follow(app.clone())),
            Worker::new("plugins.events", consume(app.clone(), Follower)),
            Worker::new("plugins.triggers", triggers::work(app.clone())),
        ]
    }
}
