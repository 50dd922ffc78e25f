//! The parameters of a request, apart from its body.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::vocabulary::Vocabulary;
use crate::http::access::Access;
use crate::http::routes::{Mark, Route};

/// Most characters of a word in a path: longer ones are beyond what a request line may have.
const TEXT_CHARS_MAX: u32 = 2000;

/// Parameters of the path, of the query, and of the headers.
pub(super) fn of(route: &Route, schemas: &mut Schemas, vocabulary: &Vocabulary) -> Vec<Value> {
    let mut parameters: Vec<Value> =
        path_names(&route.path).map(|name| path_parameter(route, name, vocabulary)).collect();
    if let Some(query) = route.doc.query {
        parameters.extend(query_parameters(route, &schemas.asked(query), vocabulary));
    }
    if honours_if_match(route) {
        parameters.push(json!({ "$ref": "#/components/parameters/IfMatch" }));
    }
    if honours_idempotency_key(route) {
        parameters.push(json!({ "$ref": "#/components/parameters/IdempotencyKey" }));
    }
    parameters
}

pub(super) fn components() -> Value {
    json!({
        "IfMatch": {
            "name": "If-Match", "in": "header", "required": false,
            "description": "The ETag that the object was read with: 412 when it was changed since",
            "schema": { "type": "string" },
        },
        "IdempotencyKey": {
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "A text of the client's own: sent again within 24 hours, the same answer is given and nothing is created",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        },
    })
}

pub(super) fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// Whether the route changes or removes one object.
pub(super) fn honours_if_match(route: &Route) -> bool {
    let changes = (route.method == Method::PATCH || route.method == Method::DELETE)
        && route.path.ends_with('}')
        && !route.doc.has(Mark::Untagged);
    changes || route.doc.has(Mark::AsSeen)
}

fn honours_idempotency_key(route: &Route) -> bool {
    let creates = route.method == Method::POST
        && route.doc.status == 201
        && route.access != Access::Public
        && !route.doc.has(Mark::Streams);
    creates || route.doc.has(Mark::Keyed)
}

fn path_parameter(route: &Route, name: &str, vocabulary: &Vocabulary) -> Value {
    let schema = if name.ends_with("_id") || name == "id" {
        json!({ "type": "string", "format": "uuid" })
    } else {
        json!({ "type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX })
    };
    let mut parameter = json!({ "name": name, "in": "path", "required": true, "schema": schema });
    if let Some(about) = vocabulary.of_parameter("path", name) {
        parameter["description"] = json!(about);
    }
    if let Some(example) = example(route, name) {
        parameter["example"] = json!(example);
    }
    parameter
}

fn example<'a>(route: &'a Route, name: &str) -> Option<&'a str> {
    let found = route.doc.examples.iter().find(|(parameter, _)| *parameter == name);
    found.map(|(_, example)| example.as_str())
}

/// The names that a query may have.
pub(super) fn query_names(schema: &Value) -> Vec<String> {
    schema["properties"].as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

fn query_parameters(route: &Route, schema: &Value, vocabulary: &Vocabulary) -> Vec<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    properties
        .into_iter()
        .map(|(name, mut schema)| {
            let is_required = required.iter().any(|r| r.as_str() == Some(&name));
            let mut parameter = Map::new();
            parameter.insert("name".to_owned(), json!(name));
            parameter.insert("in".to_owned(), json!("query"));
            parameter.insert("required".to_owned(), json!(is_required));
            let own = schema.as_object_mut().and_then(|fields| fields.remove("description"));
            if let Some(about) = own.or_else(|| vocabulary.of_parameter("query", &name).map(Value::from)) {
                parameter.insert("description".to_owned(), about);
            }
            if let Some(example) = example(route, &name) {
                parameter.insert("example".to_owned(), json!(example));
            }
            parameter.insert("schema".to_owned(), schema);
            Value::Object(parameter)
        })
        .collect()
}
