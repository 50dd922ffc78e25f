//! The `OpenAPI` 3.1 document, made from the route table.
//!
//! Nothing in it is written by hand for one route: statuses, headers and security are derived from the route table.

mod answers;
mod examples;
mod names;
mod nulls;
mod operations;
mod parameters;
mod schemas;
mod vocabulary;

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::http::{Method, header};
use axum::response::IntoResponse;
use examples::Examples;
use heddle_core::Declared;
use schemas::Schemas;
use serde_json::{Map, Value, json};
use vocabulary::Vocabulary;

use crate::config::{Config, Environment};
use crate::http::access::Access;
use crate::http::routes::{Mark, Route, Routes, doc};

/// Whether documentation is served here: never in production.
pub(crate) fn is_served(config: &Config) -> bool {
    config.enable_docs && config.environment != Environment::Production
}

/// The document as it is answered. It is built at the first request for it: most servers never get one.
#[derive(Clone)]
pub(crate) struct Written(Arc<LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>>);

impl Written {
    /// The document of these routes; `None` where documentation is not served.
    pub(crate) fn of(table: &Routes, declared: &Arc<Declared>, config: &Config) -> Option<Self> {
        if !is_served(config) {
            return None;
        }
        let (table, declared) = (table.clone(), declared.clone());
        let write = move || document(&table, &declared).to_string().into();
        Some(Self(Arc::new(LazyLock::new(Box::new(write)))))
    }

    pub(crate) fn answer(&self) -> impl IntoResponse + use<> {
        ([(header::CONTENT_TYPE, "application/json")], Bytes::clone(&self.0))
    }
}

/// The document's own route, where documentation is enabled.
pub(crate) fn routes(document: Option<&Written>) -> Routes {
    let Some(document) = document.cloned() else { return Routes::default() };
    Routes::default().get(
        "/openapi.json",
        Access::Public,
        move || {
            let document = document.clone();
            async move { document.answer() }
        },
        doc("This document"),
    )
}

/// The words that features add to the document.
struct Words {
    examples: Examples,
    vocabulary: Vocabulary,
}

/// The whole document.
pub fn document(table: &Routes, declared: &Declared) -> Value {
    let words = Words { examples: Examples::of(table), vocabulary: Vocabulary::of_table(table) };
    let mut schemas = Schemas::new(declared);
    let mut paths: Map<String, Value> = Map::new();
    let mut tags: Vec<Value> = Vec::new();
    for route in table.iter() {
        let path = format!("{}{}", super::prefix::PREFIX, route.path);
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation(table, route, &mut schemas, &words);
        let (tag, about) = operations::group(table, route);
        if !tags.iter().any(|known| known["name"] == tag.as_str()) {
            tags.push(json!({ "name": tag, "description": about }));
        }
    }
    let paths = schemas.settle(paths, &words.vocabulary);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Heddle",
            "version": crate::version::API_VERSION,
            "description": "Manages the network infrastructure of many organizations through their vendors' controllers. \
                            Nothing is written to a device unless it was staged, reviewed and applied.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This server" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.into_components(),
            "responses": answers::components(),
            "headers": answers::headers(),
            "parameters": parameters::components(),
            "securitySchemes": security_schemes(),
        },
    });
    names::rename(&mut document);
    document
}

fn operation(table: &Routes, route: &Route, schemas: &mut Schemas, words: &Words) -> Value {
    let name = operations::id(table, route);
    let mut operation = json!({
        "operationId": name,
        "summary": route.doc.summary,
        "description": format!("{}. Access: {}.", route.doc.summary, route.access),
        "tags": [operations::group(table, route).0],
        "parameters": parameters::of(route, schemas, &words.vocabulary),
        "x-access": route.access.to_string(),
        "security": security(route),
    });
    if let Some(body) = route.doc.body {
        let mut schema = schemas.asked(body);
        if let Some(payload) = &route.doc.payload {
            schema = json!({ "allOf": [schema, { "properties": { "payload": payload } }] });
        }
        let media =
            if route.doc.has(Mark::Form) { "application/x-www-form-urlencoded" } else { "application/json" };
        let mut content = json!({ "schema": schema });
        if let Some(example) = words.examples.body(&name).or(route.doc.sample.as_ref()) {
            content["example"] = example.clone();
        }
        operation["requestBody"] = json!({ "required": true, "content": { media: content } });
    }
    if let Some((media, bytes_max)) = route.doc.file {
        // No `maxLength`: it counts characters, and clients that are generated would apply it to the name of a file.
        let about = format!("A file of at most {bytes_max} bytes");
        let schema = json!({ "type": "string", "format": "binary", "description": about });
        // A body in JSON that may also be sent as the file stays the first.
        let mut content = operation.get_mut("requestBody").map_or(json!({}), |body| body["content"].take());
        // The form comes first: clients that are generated take the first, and some cannot take a form that is second.
        if let Some(form) = route.doc.file_form {
            content["multipart/form-data"]["schema"] = schemas.asked(form);
        }
        content[media]["schema"] = schema;
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation["responses"] = answers::of(table, route, schemas);
    operation
}

fn security(route: &Route) -> Value {
    if route.access == Access::Public {
        return json!([]);
    }
    let cookie = if route.method == Method::GET {
        json!({ "cookie": [] })
    } else {
        json!({ "cookie": [], "csrf": [] })
    };
    json!([{ "bearer": [] }, { "api_key": [] }, cookie])
}

fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "The access token of a login, or of an app (`hdo_…`)",
        },
        "api_key": {
            "type": "apiKey", "in": "header", "name": "X-API-Key",
            "description": "A scoped key",
        },
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": "svc_access",
            "description": "The access token of a login, as browsers keep it",
        },
        "csrf": {
            "type": "apiKey", "in": "header", "name": "X-CSRF-Token",
            "description": "The value of the cookie svc_csrf: needed by every write of a request with the access cookie",
        },
    })
}
