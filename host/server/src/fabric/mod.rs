//! The Fabric: operations from any provider that steps may do, and the Connections that wire events to them.
//!
//! What an event starts is decided in [`negotiator`], and written in the transaction that advances past the event.
//! What was started is executed in [`executor`], at most once. Nothing here reaches a device: writes are staged.

mod adapter_operations;
mod author;
mod authors;
mod catalog;
pub(crate) mod connections;
pub(crate) mod declarations;
pub(crate) mod declared;
mod each;
mod executor;
pub(crate) mod hands;
mod host_operations;
mod ingest;
mod log_lines;
pub(crate) mod measures;
mod negotiator;
pub(crate) mod operation;
pub(crate) mod restoring;
pub(crate) mod run;
pub(crate) mod runs;
mod signing;
mod sinks;
mod standing;
pub(crate) mod steps;
mod suggest;
mod telling;
pub(crate) mod trial;
mod uses;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::Permission;
use heddle_core::event::EventType;
use heddle_core::operation::ConnectionKind;
use heddle_marketplace::Schema;
use heddle_runtime::Adapter;
use serde_json::Value;

use self::author::author_of;
use self::measures::Measures;
use self::negotiator::Negotiator;
pub(crate) use self::negotiator::WAITING_MAX;
use self::operation::{Declaration, Example, Operation};
pub(crate) use self::standing::Standing;
use crate::app::{App, SharedApp};
use crate::events::consumer::consume;
use crate::feature::{Feature, Forget, Guard, Parts, Sealing, Subsystem, Worker};
use crate::http::error::Error;
use crate::http::routes::Routes;
use crate::sample::{self, Extent};
use heddle_store::sealed::SealedColumn;

/// The operations of the host itself.
fn native() -> Vec<Arc<dyn Operation>> {
    let mut operations: Vec<Arc<dyn Operation>> = vec![
        Arc::new(sinks::webhook::Webhook::new()),
        Arc::new(sinks::notify::Notify::new()),
        Arc::new(sinks::log::Log::new()),
        Arc::new(wait::Pause::new()),
    ];
    operations.extend(host_operations::all());
    operations
}

/// Everything that a step can do, by id.
pub(crate) struct Operations {
    by_id: BTreeMap<String, Arc<dyn Operation>>,
    /// What their parameters are checked against, compiled once.
    params: BTreeMap<String, Schema>,
    /// Made once: an adapter's schemas can be large.
    examples: BTreeMap<String, Example>,
}

impl Operations {
    /// Those of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(crate) fn new(adapters: &[Adapter]) -> Self {
        let of_adapters = adapters.iter().flat_map(adapter_operations::of);
        let (mut by_id, mut params) = (BTreeMap::new(), BTreeMap::new());
        for operation in of_adapters.chain(native()) {
            let declaration = operation.declaration();
            match Schema::compile(&declaration.params_schema) {
                Ok(schema) => {
                    params.insert(declaration.id.clone(), schema);
                    by_id.insert(declaration.id.clone(), operation);
                }
                // Adapters' schemas were judged when they were loaded, and the others are the host's own.
                Err(error) => {
                    tracing::error!(operation = %declaration.id, error = %error, "an operation is left out, its parameters cannot be checked");
                }
            }
        }
        let example = |declaration: &Declaration| Example {
            params: sample::of(&declaration.params_schema, Extent::Required),
            output: sample::of(&declaration.output_schema, Extent::Whole),
        };
        let examples =
            by_id.iter().map(|(id, operation)| (id.clone(), example(operation.declaration()))).collect();
        Self { by_id, params, examples }
    }

    /// What the parameters of an operation are checked against; `None` when there is no such operation.
    pub(crate) fn params_schema(&self, id: &str) -> Option<&Schema> {
        self.params.get(id)
    }

    /// Whether these parameters fit an operation. One that does not exist takes any: that is reported elsewhere.
    pub(crate) fn check_params(&self, id: &str, params: &Value) -> Result<(), Error> {
        self.params_schema(id).map_or(Ok(()), |schema| crate::adapters::validate(schema, params, "params"))
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<dyn Operation>> {
        self.by_id.get(id)
    }

    /// An example of what the operation is given and gives.
    pub(crate) fn example(&self, id: &str) -> Example {
        let nothing = || Example { params: serde_json::json!({}), output: serde_json::json!({}) };
        self.examples.get(id).cloned().unwrap_or_else(nothing)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Operation>> {
        self.by_id.values()
    }
}

/// Events start their Connections, and what they start is executed.
const SUBSYSTEMS: &[Subsystem] = &[Subsystem { name: "fabric", is_up }];

fn is_up(app: &SharedApp) -> BoxFuture<'_, bool> {
    let judged = async {
        let backlog = Measures::of(app).backlog(app).await;
        Standing::of(app).is_up(app.clock.now(), backlog)
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
pub(crate) struct Fabric;

#[async_trait::async_trait]
impl Feature for Fabric {
    fn name(&self) -> &'static str {
        "fabric"
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    fn permissions(&self) -> &'static [Permission] {
        declarations::PERMISSIONS
    }

    fn events(&self) -> &'static [EventType] {
        declarations::EVENTS
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Operations::new(&app.runtime.adapters()));
        parts.add(Standing::default());
        parts.add(Measures::new(&app.metrics.families()));
    }

    async fn measure(&self, app: &SharedApp) {
        Measures::of(app).measure(app).await;
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        catalog::routes()
            .merge(suggest::routes())
            .merge(connections::routes("/fabric/connections", "connection_id", ConnectionKind::Connection))
            .merge(trial::routes("/fabric/connections", "connection_id", ConnectionKind::Connection))
            .merge(connections::routes("/automation/rules", "rule_id", ConnectionKind::Rule))
            .merge(trial::routes("/automation/rules", "rule_id", ConnectionKind::Rule))
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
