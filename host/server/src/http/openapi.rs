//! The `OpenAPI` 3.1 document, made from the route table.

use std::sync::Arc;

use axum::Json;
use axum::http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::app::SharedApp;
use crate::config::{Config, Environment};
use crate::http::access::Access;
use crate::http::routes::{Route, Routes, doc};

/// Whether documentation exists here: never in production.
pub(crate) fn is_served(config: &Config) -> bool {
    config.enable_docs && config.environment != Environment::Production
}

/// The document's own route, where documentation is enabled.
pub(crate) fn routes(app: &SharedApp, document: &Arc<Value>) -> Routes {
    if !is_served(&app.config) {
        return Routes::default();
    }
    let document = document.clone();
    Routes::default().get(
        "/openapi.json",
        Access::Public,
        move || {
            let document = document.clone();
            async move { Json(Value::clone(&document)) }
        },
        doc("This document"),
    )
}

/// The whole document.
pub fn document(table: &Routes) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in table.iter() {
        let path = format!("{}{}", super::PREFIX, route.path);
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation(route, &mut generator);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Error".to_owned(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Heddle", "version": crate::API_VERSION, "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" } },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" } },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = path_parameters(&route.path);
    if let Some(query) = route.doc.query {
        parameters.extend(query_parameters(&query(generator).to_value()));
    }
    let mut success = json!({ "description": route.doc.summary });
    if let Some(answer) = route.doc.answer {
        success["content"]["application/json"]["schema"] = answer(generator).to_value();
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.doc.summary,
        "tags": [route.path.split('/').nth(1).unwrap_or_default()],
        "parameters": parameters,
        "responses": { route.doc.status.to_string(): success, "default": {
            "description": "An error",
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
        }},
        "x-access": route.access.to_string(),
        "security": if route.access == Access::Public { json!([]) } else { json!([{ "bearer": [] }]) },
    });
    if let Some(body) = route.doc.body {
        let mut schema = body(generator).to_value();
        if let Some(payload) = &route.doc.payload {
            schema = json!({ "allOf": [schema, { "properties": { "payload": payload } }] });
        }
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| {
            let schema = if name.ends_with("_id") || name == "id" {
                json!({ "type": "string", "format": "uuid" })
            } else {
                json!({ "type": "string" })
            };
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        })
        .collect()
}

fn query_parameters(schema: &Value) -> Vec<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    properties
        .into_iter()
        .map(|(name, schema)| {
            let is_required = required.iter().any(|r| r.as_str() == Some(&name));
            json!({ "name": name, "in": "query", "required": is_required, "schema": schema })
        })
        .collect()
}

fn operation_id(route: &Route) -> String {
    let verb = match route.method {
        Method::GET => "get",
        Method::POST => "post",
        Method::PATCH => "patch",
        _ => "delete",
    };
    let words = route.path.replace(['{', '}'], "").replace(['/', '-', '.'], "_");
    format!("{verb}{words}")
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "error": {
            "type": "object",
            "properties": {
                "code": { "type": "integer" },
                "message": { "type": "string" },
                "request_id": { "type": "string" },
                "type": { "type": "string" },
                "details": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "field": { "type": "string" }, "message": { "type": "string" }, "type": { "type": "string" } },
                }},
            },
            "required": ["code", "message", "request_id", "type"],
        }},
        "required": ["error"],
    })
}
