//! Connections that a plugin proposes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A Connection to begin with. A person looks at it, changes it, and creates it with rights of their own; by itself it does
/// nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConnectionTemplate {
    /// `^[a-z][a-z0-9-]{0,40}$`.
    pub id: String,
    /// For people.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The body of `POST /fabric/connections`, without `state` and `organization_id`.
    pub connection: Value,
}

impl ConnectionTemplate {
    /// Ids of the operations of its steps, in their order.
    #[must_use]
    pub fn operations(&self) -> Vec<&str> {
        let steps = self.connection["steps"].as_array();
        steps.into_iter().flatten().filter_map(|step| step["operation_id"].as_str()).collect()
    }
}
