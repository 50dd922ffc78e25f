//! The Fabric: operations that steps may do, whoever offers them, and the Connections that wire events to them.
//!
//! What an event starts is decided in [`negotiator`], and written in the transaction that passes the event over.
//! What was started is carried out in [`executor`], at most once. Nothing here reaches a device: writes are staged.

mod adapter_operations;
mod author;
mod authors;
mod catalog;
pub(crate) mod connections;
mod executor;
pub(crate) mod hands;
mod host_operations;
mod ingest;
mod negotiator;
pub(crate) mod operation;
pub(crate) mod restoring;
pub(crate) mod run;
pub(crate) mod runs;
mod sinks;
mod standing;
pub(crate) mod steps;
mod suggest;
mod telling;
pub(crate) mod trial;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_core::operation::ConnectionKind;
use heddle_runtime::Adapter;

use self::operation::Operation;
use crate::http::routes::Routes;

use self::author::author_of;
pub(crate) use self::authors::watch as watch_authors;
pub(crate) use self::executor::execute;
pub(crate) use self::negotiator::{Negotiator, WAITING_MAX};
pub use self::standing::Standing;

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
pub struct Operations {
    by_id: BTreeMap<String, Arc<dyn Operation>>,
}

impl Operations {
    pub(crate) fn new(adapters: &[Adapter]) -> Self {
        let of_adapters = adapters.iter().flat_map(adapter_operations::of);
        let by_id = of_adapters
            .chain(native())
            .map(|operation| (operation.declaration().id.clone(), operation))
            .collect();
        Self { by_id }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<dyn Operation>> {
        self.by_id.get(id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Operation>> {
        self.by_id.values()
    }
}

pub(crate) fn routes() -> Routes {
    catalog::routes()
        .merge(suggest::routes())
        .merge(connections::routes("/fabric/connections", "connection_id", ConnectionKind::Connection))
        .merge(trial::routes("/fabric/connections", "connection_id", ConnectionKind::Connection))
        .merge(connections::routes("/automation/rules", "rule_id", ConnectionKind::Rule))
        .merge(trial::routes("/automation/rules", "rule_id", ConnectionKind::Rule))
        .merge(runs::routes())
        .merge(ingest::routes())
}
