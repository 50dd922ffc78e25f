//! A body for every operation that takes one, as a person would send it. A test sends each.
//!
//! Features give them by the names of the operations.

use serde_json::{Map, Value};

use crate::http::routes::Routes;

/// Bodies by the names of operations.
pub(super) struct Examples(Map<String, Value>);

impl Examples {
    /// # Panics
    /// Where a feature's examples are no JSON object: every test that reads the document finds it.
    pub(super) fn of(table: &Routes) -> Self {
        let of_features = table.glossaries.iter().map(|glossary| {
            serde_json::from_str::<Map<String, Value>>(glossary.examples).expect("examples are a JSON object")
        });
        Self(of_features.flatten().collect())
    }

    /// The body to show for this operation.
    pub(super) fn body(&self, operation: &str) -> Option<&Value> {
        self.0.get(operation)
    }
}
