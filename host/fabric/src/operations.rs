//! The registry of operations: what a step can do, by id.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::sample::{self, Extent};
use heddle_marketplace::Schema;
use serde_json::Value;

use super::operation::{Declaration, Example, Operation};

/// The operations of this process. They are replaced as a whole when what is installed has changed.
pub(crate) struct Registry(ArcSwap<Operations>);

impl Registry {
    pub(super) fn new(operations: Operations) -> Self {
        Self(ArcSwap::from_pointee(operations))
    }

    pub(super) fn replace(&self, operations: Operations) {
        self.0.store(Arc::new(operations));
    }
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
    /// Those of this process, at this moment.
    pub(crate) fn of(app: &App) -> Arc<Self> {
        app.part::<Registry>().0.load_full()
    }

    pub(super) fn new(all: impl IntoIterator<Item = Arc<dyn Operation>>) -> Self {
        let (mut by_id, mut params) = (BTreeMap::new(), BTreeMap::new());
        for operation in all {
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
        self.params_schema(id)
            .map_or(Ok(()), |schema| heddle_inventory::adapters::validate(schema, params, "params"))
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<dyn Operation>> {
        self.by_id.get(id).cloned()
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
