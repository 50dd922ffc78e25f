//! Objects that others belong to.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A parent as `overlay.json` has it, in the words of `within` of a binding.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    pub kind: String,
    /// Places in the parent's row, by parameter of paths.
    pub params: BTreeMap<String, String>,
    /// The parameters by which people know the parent.
    pub key: Vec<String>,
    /// Values that a parent has at these places: only such parents count.
    #[serde(default)]
    pub only: Map<String, Value>,
}

impl Parent {
    /// Returns the `within` of a binding.
    #[must_use]
    pub fn within(&self) -> Value {
        let mut within = json!({ "kind": self.kind, "params": self.params, "key": self.key });
        if !self.only.is_empty() {
            within["only"] = Value::Object(self.only.clone());
        }
        within
    }
}
