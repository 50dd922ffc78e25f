//! The catalogue: operations, events, what starts steps, Connections that are proposed, and operations as tools for language models.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::Document;
use heddle_core::change::Danger;
use heddle_core::event::{Event, Priority};
use heddle_core::operation::{ConnectionKind, OperationKind};
use heddle_core::shape::schedule_schema;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::schema::schema_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::operation::{Declaration, Example, Operation, Template};
use super::operations::Operations;
use super::provided::OfferedIn;
use super::templates;

/// Of how many operations the schemas are shown at once.
const WHOLE_MAX: usize = 200;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricCatalog")]
struct Catalog {
    /// The operations that the caller could use in a step.
    operations: Vec<Offered>,
    /// The declared event types.
    events: Vec<TypeView>,
    /// What `{{trigger.…}}` and `{{event.…}}` are, by what starts the steps.
    triggers: Vec<Trigger>,
    /// Connections that plugins propose, whose operations the caller could use. One is created by sending its `connection` to
    /// `POST /fabric/connections`, with or without changes.
    templates: Vec<Template>,
    /// The operations whose schemas are shown, in the form in which tools are described to language models.
    ai_tools: Vec<Tool>,
}

/// An operation. Those of adapters are many: the catalogue shows their schemas only when it is asked to, and
/// `GET /fabric/catalog/{operation_name}` shows those of one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricOperation")]
struct Offered {
    #[serde(flatten)]
    declaration: Declaration,
    #[serde(flatten)]
    schemas: Option<Schemas>,
}

/// What an operation is given and gives.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OperationSchemas")]
struct Schemas {
    /// JSON Schema of the parameters, after templates were filled in.
    #[schemars(with = "serde_json::Map<String, Value>")]
    params_schema: Document,
    /// JSON Schema of what following steps may read.
    #[schemars(with = "serde_json::Map<String, Value>")]
    output_schema: Arc<Value>,
    example: Example,
}

/// One operation, whole.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FabricOperationDetail")]
struct Whole {
    #[serde(flatten)]
    declaration: Declaration,
    #[serde(flatten)]
    schemas: Schemas,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CatalogQuery {
    /// Only operations and templates whose id or title has all of these words.
    #[schemars(length(max = 200))]
    search: Option<String>,
    /// Only operations and templates of this module, vendor or plugin.
    #[schemars(length(max = 100))]
    owner: Option<String>,
    /// Only operations of this kind.
    kind: Option<OperationKind>,
    /// Only operations of exactly this danger.
    danger: Option<Danger>,
    /// `true` for the schemas of adapters' operations, too: of 200 operations at most.
    schemas: Option<bool>,
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
    Routes::default()
        .get(
            "/fabric/catalog",
            Access::Member,
            catalog,
            doc("Operations that the caller could use in steps, events, what starts steps, Connections that plugins propose, and operations as tools for language models").named("get_fabric_catalog")
                .query::<CatalogQuery>()
                .answers::<Catalog>(200),
        )
        .get(
            "/fabric/catalog/{operation_name}",
            Access::Member,
            operation,
            doc("One operation with its schemas and an example").named("get_fabric_operation")
                .example("operation_name", Some("sites.list"))
                .answers::<Whole>(200),
        )
}

impl CatalogQuery {
    fn fits(&self, words: &[String], declaration: &Declaration) -> bool {
        self.names(words, (&declaration.owner, &declaration.id, &declaration.title))
            && self.kind.is_none_or(|kind| kind == declaration.kind)
            && self.danger.is_none_or(|danger| danger == declaration.danger)
    }

    fn names(&self, words: &[String], (owner, id, title): (&str, &str, &str)) -> bool {
        let has_words = || {
            let text = format!("{id} {title}").to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.owner.as_ref().is_none_or(|wanted| wanted == owner) && (words.is_empty() || has_words())
    }
}

fn may(caller: &Caller, declaration: &Declaration) -> bool {
    declaration.permission.is_none_or(|needed| caller.holds(needed))
}

async fn catalog(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<CatalogQuery>,
) -> Result<Answer<Catalog>, Error> {
    let registry = Operations::of(&app);
    let search = query.search.as_deref().unwrap_or_default().to_lowercase();
    let words: Vec<String> = search.split_whitespace().map(str::to_owned).collect();
    let here = OfferedIn::in_organization(&app, caller.org_id).await?;
    let offered: Vec<&Arc<dyn Operation>> = registry
        .all()
        .filter(|operation| {
            let declaration = operation.declaration();
            may(&caller, declaration) && query.fits(&words, declaration) && here.has(operation)
        })
        .collect();
    let has_all = query.schemas == Some(true);
    if has_all && offered.len() > WHOLE_MAX {
        let message = format!(
            "{} operations fit and the schemas of {WHOLE_MAX} are shown at most: narrow it by search, owner, kind or danger",
            offered.len()
        );
        return Err(Error::field("schemas", message));
    }
    let is_whole = |operation: &Arc<dyn Operation>| has_all || !operation.declaration().of_adapter;
    let whole: Vec<Arc<dyn Operation>> = offered
        .iter()
        .filter(|operation| is_whole(operation))
        .map(|operation| Arc::clone(operation))
        .collect();
    let ai_tools = whole.iter().map(|operation| tool(operation.declaration())).collect();
    let mut examples = registry.examples(whole).await?;
    let operations = offered
        .into_iter()
        .map(|operation| {
            let declaration = operation.declaration();
            let example = examples.remove(&declaration.id);
            let schemas = example.map(|example| schemas(declaration, example));
            Offered { declaration: declaration.clone(), schemas }
        })
        .collect();
    let events = app
        .declared()
        .events
        .iter()
        .map(|event| TypeView {
            event_type: event.as_str(),
            category: event.category(),
            priority: event.priority(),
            payload_schema: event.payload_schema(),
        })
        .collect();
    let mut templates = templates::offered(&app, &caller, &here).await?;
    templates.retain(|one| query.names(&words, (&one.owner, &one.id, &one.title)));
    Ok(Answer(Catalog { operations, events, triggers: triggers(), templates, ai_tools }))
}

async fn operation(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<String>,
) -> Result<Answer<Whole>, Error> {
    let registry = Operations::of(&app);
    let operation = registry.find(&id).ok_or(Error::NotFound("operation"))?;
    let declaration = operation.declaration().clone();
    if let Some(needed) = declaration.permission {
        caller.require(needed)?;
    }
    if !OfferedIn::in_organization(&app, caller.org_id).await?.has(&operation) {
        return Err(Error::NotFound("operation"));
    }
    let mut examples = registry.examples(vec![operation]).await?;
    let example = examples.remove(&id).ok_or(Error::NotFound("operation"))?;
    Ok(Answer(Whole { schemas: schemas(&declaration, example), declaration }))
}

fn schemas(declaration: &Declaration, example: Example) -> Schemas {
    Schemas {
        params_schema: declaration.params_schema.document(),
        output_schema: Arc::clone(&declaration.output_schema),
        example,
    }
}

fn tool(operation: &Declaration) -> Tool {
    Tool {
        name: operation.id.replace('.', "_"),
        operation_id: operation.id.clone(),
        description: format!("{}. {}", operation.title, operation.description),
        input_schema: operation.params_schema.document(),
    }
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
