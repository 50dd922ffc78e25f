//! The catalogue: operations, events, and operations as tools for language models.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::event::{EventType, Priority};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::operation::Declaration;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::http::access::Access;
use crate::http::routes::{Routes, doc};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricCatalog")]
struct Catalog {
    /// What the caller could have a step do.
    operations: Vec<Declaration>,
    events: Vec<Declared>,
    ai_tools: Vec<Tool>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventDeclaration")]
struct Declared {
    event_type: &'static str,
    category: &'static str,
    priority: Priority,
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload_schema: Value,
}

/// An operation in the form that language models are told of tools.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AiTool")]
struct Tool {
    /// The operation's id with `_` for `.`, as tools are named.
    name: String,
    operation_id: String,
    description: String,
    #[schemars(with = "serde_json::Map<String, Value>")]
    input_schema: Value,
}

pub(super) fn routes() -> Routes {
    Routes::default().get(
        "/fabric/catalog",
        Access::Member,
        catalog,
        doc("Operations that the caller could use in steps, events, and the same as tools for language models")
            .answers::<Catalog>(200),
    )
}

async fn catalog(State(app): State<SharedApp>, caller: Caller) -> Answer<Catalog> {
    let may = |declaration: &&Declaration| declaration.permission.is_none_or(|needed| caller.holds(needed));
    let operations: Vec<Declaration> =
        app.operations.all().map(|operation| operation.declaration()).filter(may).cloned().collect();
    let ai_tools = operations
        .iter()
        .map(|operation| Tool {
            name: operation.id.replace('.', "_"),
            operation_id: operation.id.clone(),
            description: format!("{}. {}", operation.title, operation.description),
            input_schema: operation.params_schema.clone(),
        })
        .collect();
    let events = EventType::ALL
        .iter()
        .map(|event| Declared {
            event_type: event.as_str(),
            category: event.category(),
            priority: event.priority(),
            payload_schema: event.payload_schema(),
        })
        .collect();
    Answer(Catalog { operations, events, ai_tools })
}
