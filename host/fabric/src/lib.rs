//! The Fabric: operations from any provider that steps may do, and the Connections that wire events to them.
//!
//! What an event starts is decided in [`negotiator`], and written in the transaction that advances past the event.
//! What was started is executed in [`executor`], at most once. Nothing here reaches a device: writes are staged.

mod adapter_operations;
mod author;
mod authors;
pub mod automation;
mod catalog;
pub(crate) mod connections;
pub(crate) mod declarations;
pub(crate) mod declared;
mod each;
mod executor;
mod glossary;
mod host_operations;
pub(crate) mod in_flight;
mod ingest;
mod kinds;
mod log_lines;
pub(crate) mod measures;
mod negotiator;
mod network_operations;
pub mod occasion;
pub mod operation;
mod operations;
pub mod provided;
pub(crate) mod restoring;
pub(crate) mod run;
pub(crate) mod runs;
mod signing;
mod sinks;
mod state;
pub(crate) mod steps;
mod suggest;
mod telling;
pub mod templates;
#[cfg(test)]
mod testing;
pub(crate) mod trial;
mod uses;
mod wait;
mod write_schemas;

use heddle_kernel::feature::Names;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::events::consumer::consume;
use heddle_kernel::feature::{Feature, Features, Forget, Guard, Sealing, Subsystem, Worker};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_runtime::Adapter;
use heddle_store::sealed::SealedColumn;

use self::kinds::{Connections, Rules};
use self::measures::Measures;
use self::negotiator::Negotiator;
pub(crate) use self::negotiator::WAITING_MAX;
use self::operation::Operation;
pub(crate) use self::operations::Operations;
use self::operations::Registry;
pub(crate) use self::state::FabricState;

/// The operations of the adapters, of the Fabric itself, and those that features declare.
fn operations(adapters: &[Adapter], features: Features) -> Vec<Arc<dyn Operation>> {
    let own: [Arc<dyn Operation>; 6] = [
        Arc::new(sinks::webhook::Webhook::new()),
        Arc::new(sinks::notify::Notify::new()),
        Arc::new(sinks::log::Log::new()),
        Arc::new(wait::Pause::new()),
        Arc::new(network_operations::CompareVlans::new()),
        Arc::new(network_operations::DistributeVlans::new()),
    ];
    let of_adapters = adapters.iter().flat_map(adapter_operations::of);
    let declared = features.step_objects().flat_map(host_operations::of);
    of_adapters.chain(own).chain(declared).collect()
}

/// Events start their Connections, and what they start is executed.
const SUBSYSTEMS: &[Subsystem] = &[Subsystem { name: "fabric", is_up }];

fn is_up(app: &SharedApp) -> BoxFuture<'_, bool> {
    let judged = async {
        let backlog = Measures::of(app).backlog(app).await;
        FabricState::of(app).is_up(app.clock.now(), backlog)
    };
    judged.boxed()
}

const FORGETS: &[Forget] = &[
    // Runs, after they ended.
    Forget { days: 30, batch: |tx, before, rows| heddle_store::runs::trim(tx, before, rows).boxed() },
];

const SEALED: &[Sealing] =
    &[Sealing::of(SealedColumn::of("connection")), Sealing::of(SealedColumn::of("connection_run"))];

/// Operations, Connections and their runs.
pub struct Fabric;

#[async_trait::async_trait]
impl Feature for Fabric {
    fn name(&self) -> &'static str {
        "fabric"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                permissions: declarations::PERMISSIONS,
                events: declarations::EVENTS,
                settings: &[SettingsOf::the::<declarations::FabricSettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::FABRIC
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Registry::new(operations(&app.runtime.adapters(), parts.features())));
        parts.add(FabricState::default());
        parts.add(Measures::new(&app.metrics.families()));
    }

    fn installed(&self, app: &SharedApp) {
        app.part::<Registry>().replace(operations(&app.runtime.adapters(), app.features()));
    }

    async fn measure(&self, app: &SharedApp) {
        Measures::of(app).measure(app).await;
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        catalog::routes()
            .merge(suggest::routes())
            .merge(connections::routes::<Connections>())
            .merge(trial::routes::<Connections>())
            .merge(connections::routes::<Rules>())
            .merge(trial::routes::<Rules>())
            .merge(runs::routes())
            .merge(log_lines::routes())
            .merge(ingest::routes())
            .merge(signing::routes())
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("fabric.negotiate", consume(app.clone(), Negotiator::default())),
            Worker::new("fabric.authors", authors::watch(app.clone())),
            Worker::new("fabric.execute", executor::execute(app.clone())),
        ]
    }

    fn subsystems(&self) -> &'static [Subsystem] {
        SUBSYSTEMS
    }

    fn guards(&self) -> &'static [(&'static str, Guard)] {
        uses::GUARDS
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}
