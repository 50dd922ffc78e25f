//! The catalogue: operations, events, what starts steps, and operations as tools for language models.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::Document;
use heddle_core::event::{Event, Priority};
use heddle_core::operation::ConnectionKind;
use heddle_core::shape::schedule_schema;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::routes::{Routes, doc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::operation::{Declaration, Example, schema_of};
use super::operations::Operations;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricCatalog")]
struct Catalog {
    /// The operations that the caller could use in a step.
    operations: Vec<Offered>,
    /// The declared event types.
    events: Vec<TypeView>,
    /// What `{{trigger.…}}` and `{{event.…}}` are, by what starts the steps.
    triggers: Vec<Trigger>,
    /// The operations in the form in which tools are described to language models.
    ai_tools: Vec<Tool>,
}

/// An operation, with an example of its parameters and of its output.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricOperation")]
struct Offered {
    #[serde(flatten)]
    declaration: Declaration,
    example: Example,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventDeclaration")]
struct TypeView {
    /// Such as `device.status.changed`.
    event_type: &'static str,
    /// Group of types, such as `device`.
    category: &'static str,
    priority: Priority,
    /// JSON Schema of the payload: what `{{trigger.…}}` reads.
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload_schema: Value,
}

/// What starts steps, and what they can read of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricTrigger")]
struct Trigger {
    kind: ConnectionKind,
    /// In words.
    description: &'static str,
    /// JSON Schema of `trigger`; null where each event type declares its own.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    payload_schema: Option<Value>,
    /// JSON Schema of `event`; null where there is no event.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    event_schema: Option<Value>,
}

/// An operation in the form in which tools are described to language models.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AiTool")]
struct Tool {
    /// The operation's id with `_` for `.`, as tools are named.
    name: String,
    /// Id of the operation that the tool stands for.
    operation_id: String,
    /// What the tool does, in words.
    description: String,
    /// JSON Schema of the parameters.
    #[schemars(with = "serde_json::Map<String, Value>")]
    input_schema: Document,
}

pub(super) fn routes() -> Routes {
    Routes::default().get(
        "/fabric/catalog",
        Access::Member,
        catalog,
        doc("Operations that the caller could use in steps, events, what starts steps, and operations as tools for language models").named("get_fabric_catalog")
            .answers::<Catalog>(200),
    )
}

async fn catalog(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<Catalog>, Error> {
    let may = |declaration: &&Declaration| declaration.permission.is_none_or(|needed| caller.holds(needed));
    let operations = Operations::of(&app);
    let examples = operations.examples().await?;
    let offered: Vec<&Declaration> =
        operations.all().map(|operation| operation.declaration()).filter(may).collect();
    let ai_tools = offered
        .iter()
        .map(|operation| Tool {
            name: operation.id.replace('.', "_"),
            operation_id: operation.id.clone(),
            description: format!("{}. {}", operation.title, operation.description),
            input_schema: operation.params_schema.clone(),
        })
        .collect();
    let operations = offered
        .into_iter()
        .filter_map(|declaration| {
            let example = examples.get(&declaration.id)?.clone();
            Some(Offered { declaration: declaration.clone(), example })
        })
        .collect();
    let events = app
        .declared
        .events
        .iter()
        .map(|event| TypeView {
            event_type: event.as_str(),
            category: event.category(),
            priority: event.priority(),
            payload_schema: event.payload_schema(),
        })
        .collect();
    Ok(Answer(Catalog { operations, events, triggers: triggers(), ai_tools }))
}

fn triggers() -> Vec<Trigger> {
    let mut envelope = schema_of::<Event>();
    envelope["properties"]["payload"] =
        json!({ "type": "object", "description": "As the type declares it." });
    let by_event = |kind, description| Trigger {
        kind,
        description,
        payload_schema: None,
        event_schema: Some(envelope.clone()),
    };
    vec![
        by_event(
            ConnectionKind::Connection,
            "An event that its pattern covers: 'trigger' is the payload as the event's type declares it, 'event' the \
             event itself.",
        ),
        by_event(ConnectionKind::Rule, "The same as for a Connection."),
        Trigger {
            kind: ConnectionKind::Schedule,
            description: "The clock: 'trigger' says which schedule was due and when. There is no 'event'.",
            payload_schema: Some(schedule_schema()),
            event_schema: None,
        },
    ]
}
