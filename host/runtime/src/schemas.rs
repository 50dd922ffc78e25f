//! Schemas that are compiled when they are first asked for: they were judged when the package was first loaded.

use std::hash::Hash;
use std::sync::Arc;

use heddle_core::Document;
use heddle_core::adapter::Description;
use heddle_core::change::Operation;
use heddle_marketplace::{Schema, SchemaError};
use moka::future::Cache;

/// Compiled schemas that are kept. One takes some hundred kilobytes, and a package may have thousands.
const KEPT_MAX: u64 = 64;

/// The compiled ones of many schemas: few are kept, those that are asked for.
#[derive(Debug)]
pub struct CompiledSchemas<K: Hash + Eq + Send + Sync + 'static>(Cache<K, Arc<Schema>>);

impl<K: Hash + Eq + Send + Sync + 'static> CompiledSchemas<K> {
    /// Compiles a schema that is not kept. A large one takes long, so that never happens on a thread of the API.
    pub async fn get(&self, key: K, document: &Document) -> Result<Arc<Schema>, Arc<SchemaError>> {
        let compile = async {
            let document = document.clone();
            let compiled = tokio::task::spawn_blocking(move || Schema::compile(&document.value())).await;
            compiled.unwrap_or_else(|ended| Err(SchemaError::Unusable(ended.to_string()))).map(Arc::new)
        };
        self.0.try_get_with(key, compile).await
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Default for CompiledSchemas<K> {
    fn default() -> Self {
        Self(Cache::new(KEPT_MAX))
    }
}

/// What a controller's settings and the payloads of changes are checked against.
#[derive(Debug)]
pub(crate) struct Schemas {
    pub(crate) settings: Schema,
    /// By feature and operation.
    payloads: CompiledSchemas<(String, Operation)>,
}

impl Schemas {
    pub(crate) fn new(settings: Schema) -> Self {
        Self { settings, payloads: CompiledSchemas::default() }
    }

    /// The payload schema of an operation of a feature; `None` where there is no such operation.
    pub(crate) async fn payload(
        &self,
        description: &Description,
        feature: &str,
        operation: Operation,
    ) -> Result<Option<Arc<Schema>>, Arc<SchemaError>> {
        let found = description.feature(feature);
        let Some(declared) = found.and_then(|found| found.operation(operation)) else { return Ok(None) };
        let key = (feature.to_owned(), operation);
        self.payloads.get(key, &declared.payload_schema).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::adapter::{Feature, FeatureOperation};
    use heddle_core::change::Danger;
    use serde_json::json;

    use super::*;

    fn description(features: usize) -> Description {
        let feature = |at: usize| Feature {
            id: format!("acme.lab.thing{at}"),
            area: "lab".into(),
            title: "Thing".into(),
            kind: None,
            is_of_site: true,
            natural_key: vec![],
            operations: vec![FeatureOperation {
                operation: Operation::Update,
                danger: Danger::Normal,
                payload_schema: Document::from(&json!({ "required": [format!("field{at}")] })),
                time_limit_ms: None,
                invertible: false,
            }],
            model: None,
            releases: None,
        };
        Description {
            vendor: "acme".into(),
            title: "Acme".into(),
            areas: vec![],
            kinds: vec![],
            features: (0..features).map(feature).collect(),
            model: vec![],
        }
    }

    fn schemas() -> Schemas {
        Schemas::new(Schema::compile(&json!({})).unwrap())
    }

    #[tokio::test]
    async fn schemas_are_found_by_feature_and_operation() {
        let (schemas, description) = (schemas(), description(2));
        let of = |feature: &'static str, operation| schemas.payload(&description, feature, operation);
        let schema = of("acme.lab.thing1", Operation::Update).await.unwrap().unwrap();
        assert!(!schema.validator().is_valid(&json!({ "field0": 1 })));
        assert!(schema.validator().is_valid(&json!({ "field1": 1 })));
        assert!(of("acme.lab.thing1", Operation::Create).await.unwrap().is_none());
        assert!(of("acme.lab.thing7", Operation::Update).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn few_compiled_schemas_are_kept() {
        let (schemas, description) = (schemas(), description(500));
        for feature in &description.features {
            let found = schemas.payload(&description, &feature.id, Operation::Update).await.unwrap();
            assert!(found.is_some(), "{}", feature.id);
        }
        schemas.payloads.0.run_pending_tasks().await;
        assert!((1..=KEPT_MAX).contains(&schemas.payloads.0.entry_count()));
    }
}
