//! The registry of operations: what a step can do, by id.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use heddle_core::Document;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::sample::{self, Extent};
use heddle_marketplace::Schema;
use heddle_runtime::CompiledSchemas;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::operation::{Example, Operation};
use super::provided::Provider;

/// The operations of this process. They are replaced as a whole when what is installed has changed.
pub(crate) struct Registry {
    all: ArcSwap<Operations>,
    sources: Mutex<Sources>,
    provider: OnceLock<Arc<dyn Provider>>,
}

/// Where the operations come from.
struct Sources {
    /// The host and its adapters.
    own: Vec<Arc<dyn Operation>>,
    /// The provider.
    provided: Vec<Arc<dyn Operation>>,
}

impl Registry {
    pub(super) fn new(own: Vec<Arc<dyn Operation>>) -> Self {
        Self {
            all: ArcSwap::from_pointee(Operations::new(own.clone())),
            sources: Mutex::new(Sources { own, provided: Vec::new() }),
            provider: OnceLock::new(),
        }
    }

    pub(super) fn replace(&self, own: Vec<Arc<dyn Operation>>) {
        self.change(|sources| sources.own = own);
    }

    pub(super) fn provide(&self, provided: Vec<Arc<dyn Operation>>) {
        self.change(|sources| sources.provided = provided);
    }

    fn change(&self, change: impl FnOnce(&mut Sources)) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut sources);
        let all = sources.own.iter().chain(&sources.provided).cloned();
        self.all.store(Arc::new(Operations::new(all)));
    }

    pub(super) fn set_provider(&self, provider: Arc<dyn Provider>) {
        // Named again after the process registered again.
        let _ = self.provider.set(provider);
    }

    pub(super) fn provider(&self) -> Option<Arc<dyn Provider>> {
        self.provider.get().cloned()
    }
}

/// Everything that a step can do, by id.
pub(crate) struct Operations {
    by_id: BTreeMap<String, Arc<dyn Operation>>,
    has_switched: bool,
    /// What their parameters are checked against.
    params: CompiledSchemas<String>,
    /// Examples of the host's own, which are few and in every answer of the catalogue.
    own_examples: OnceCell<BTreeMap<String, Example>>,
}

impl Operations {
    /// Those of this process, at this moment.
    pub(crate) fn of(app: &App) -> Arc<Self> {
        app.part::<Registry>().all.load_full()
    }

    pub(super) fn new(all: impl IntoIterator<Item = Arc<dyn Operation>>) -> Self {
        let by_id = all.into_iter().map(|operation| (operation.declaration().id.clone(), operation));
        let by_id: BTreeMap<_, _> = by_id.collect();
        let has_switched = by_id.values().any(|operation| operation.declaration().is_switched);
        Self { by_id, has_switched, params: CompiledSchemas::default(), own_examples: OnceCell::new() }
    }

    /// What the parameters of an operation are checked against; `None` when there is no such operation.
    pub(crate) async fn params_schema(&self, id: &str) -> Result<Option<Arc<Schema>>, Error> {
        let Some(operation) = self.by_id.get(id) else { return Ok(None) };
        let compiled =
            self.params.get(id.to_owned(), &operation.declaration().params_schema.document()).await;
        // Adapters' schemas were judged when they were loaded, and the others are the host's own.
        compiled.map(Some).map_err(Error::internal)
    }

    /// Whether these parameters fit an operation. One that does not exist takes any: that is reported elsewhere.
    pub(crate) async fn check_params(&self, id: &str, params: &Value) -> Result<(), Error> {
        match self.params_schema(id).await? {
            Some(schema) => heddle_inventory::adapters::validate(&schema, params, "params"),
            None => Ok(()),
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<dyn Operation>> {
        self.by_id.get(id).cloned()
    }

    /// Examples of what these operations are given and give, by id. Those of the host's own are made once.
    pub(crate) async fn examples(
        &self,
        operations: Vec<Arc<dyn Operation>>,
    ) -> Result<BTreeMap<String, Example>, Error> {
        let is_of_adapter = |operation: &Arc<dyn Operation>| operation.declaration().of_adapter;
        let (others, own): (Vec<_>, Vec<_>) = operations.into_iter().partition(is_of_adapter);
        let all_own = || async {
            let all = self.all().filter(|operation| !is_of_adapter(operation)).cloned().collect();
            made_up_apart(all).await
        };
        let known = self.own_examples.get_or_try_init(all_own).await?;
        let mut examples = if others.is_empty() { BTreeMap::new() } else { made_up_apart(others).await? };
        for operation in own {
            let id = &operation.declaration().id;
            examples.extend(known.get(id).map(|example| (id.clone(), example.clone())));
        }
        Ok(examples)
    }

    /// Whether there is an operation that not every organization has.
    pub(crate) fn has_switched(&self) -> bool {
        self.has_switched
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Operation>> {
        self.by_id.values()
    }
}

async fn made_up_apart(operations: Vec<Arc<dyn Operation>>) -> Result<BTreeMap<String, Example>, Error> {
    tokio::task::spawn_blocking(move || made_up(&operations)).await.map_err(Error::internal)
}

/// An example for each operation. Those that give the same share it.
fn made_up(operations: &[Arc<dyn Operation>]) -> BTreeMap<String, Example> {
    let mut outputs: HashMap<*const Value, Document> = HashMap::new();
    let example = |operation: &Arc<dyn Operation>| {
        let declaration = operation.declaration();
        let schema = &declaration.output_schema;
        let output = outputs
            .entry(Arc::as_ptr(schema))
            .or_insert_with(|| Document::from(&sample::of(schema, Extent::Whole)))
            .clone();
        let params = sample::of(&declaration.params_schema.document().value(), Extent::Required);
        (declaration.id.clone(), Example { params: Document::from(&params), output })
    };
    operations.iter().map(example).collect()
}
