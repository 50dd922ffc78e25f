//! The Fabric: operations that steps may do, whoever offers them.

mod ingest;
pub(crate) mod operation;
mod sinks;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::operation::Operation;
use crate::http::routes::Routes;

pub(crate) fn routes() -> Routes {
    ingest::routes()
}

/// The operations of the host itself.
fn native() -> Vec<Arc<dyn Operation>> {
    vec![
        Arc::new(sinks::webhook::Webhook::new()),
        Arc::new(sinks::notify::Notify::new()),
        Arc::new(sinks::log::Log::new()),
    ]
}

/// Everything that a step can do, by id.
pub struct Operations {
    by_id: BTreeMap<String, Arc<dyn Operation>>,
}

impl Operations {
    pub(crate) fn new() -> Self {
        let by_id =
            native().into_iter().map(|operation| (operation.declaration().id.clone(), operation)).collect();
        Self { by_id }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<dyn Operation>> {
        self.by_id.get(id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Operation>> {
        self.by_id.values()
    }
}
