//! Holds every answer that a test sees against the document of the server that gave it.
//!
//! Out of scope: the event stream, the paths outside the prefix, and the pages
//! that show the document.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::Answer;

/// Served below the prefix, and not in the table.
const OUTSIDE: &[&str] = &["", "/", "/openapi.json", "/docs", "/redoc", "/ws"];
/// What every response carries (interface, "Errors").
const SECURITY_HEADERS: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("x-xss-protection", "1; mode=block"),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("cache-control", "no-store, no-cache, must-revalidate"),
    ("pragma", "no-cache"),
];

/// One operation of the document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) method: String,
    /// Without the prefix: `/sites/{site_id}`.
    pub(crate) path: String,
    /// As the route declares it: `permission site:write`.
    pub(crate) access: String,
    pub(crate) definition: Value,
}

impl Operation {
    /// Names of the path's parameters.
    pub(crate) fn parameters(&self) -> Vec<&str> {
        self.path.split('/').filter_map(parameter).collect()
    }

    fn fits(&self, method: &str, path: &[&str]) -> bool {
        let template: Vec<&str> = self.path.split('/').collect();
        self.method == method
            && template.len() == path.len()
            && template.iter().zip(path).all(|(wanted, part)| {
                if parameter(wanted).is_some() { !part.is_empty() } else { wanted == part }
            })
    }

    /// Literal parts win over parameters from left to right, as in the router.
    fn precedence(&self) -> Vec<bool> {
        self.path.split('/').map(|part| parameter(part).is_some()).collect()
    }
}

fn parameter(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// A document, and the validators that were made of it so far.
pub(crate) struct Contract {
    document: Value,
    operations: Vec<Operation>,
    validators: Mutex<HashMap<(String, u16), Option<Arc<Validator>>>>,
}

/// A document that is known, or will be with the first request.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<OnceLock<Arc<Contract>>>);

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Known {
    /// Of a server in this process: nothing has to be asked. Servers with the same adapters have the same document.
    pub(crate) fn of_app(app: &heddle_kernel::app::SharedApp) -> Self {
        static KNOWN: LazyLock<Mutex<HashMap<Vec<String>, Known>>> = LazyLock::new(Mutex::default);
        let adapters = app.runtime.adapters();
        let adapters = adapters
            .iter()
            .map(|adapter| format!("{} {}", adapter.id(), adapter.component_sha256()))
            .collect();
        let known = KNOWN.lock().expect("no holder of this lock panics").entry(adapters).or_default().clone();
        known.0.get_or_init(|| {
            let table = heddle_kernel::http::routes(app);
            Contract::shared(heddle_kernel::http::openapi::document(&table, &app.declared()))
        });
        known
    }

    pub(crate) fn get(&self) -> Option<Arc<Contract>> {
        self.0.get().cloned()
    }

    /// Of a server in another process, asked once.
    pub(crate) async fn of(&self, http: &reqwest::Client, base: &str) -> reqwest::Result<Arc<Contract>> {
        if let Some(known) = self.0.get() {
            return Ok(known.clone());
        }
        let answer = http.get(format!("{base}/api/v1/openapi.json")).send().await?;
        // A server that hides its document is still held to headers and envelopes.
        let document = answer.error_for_status().map(reqwest::Response::text);
        let document = match document {
            Ok(text) => serde_json::from_str(&text.await?).expect("the document is JSON"),
            Err(_) => json!({ "paths": {}, "hidden": true }),
        };
        Ok(self.0.get_or_init(|| Contract::shared(document)).clone())
    }
}

impl Contract {
    /// Hundreds of servers have the same document: its validators are made once.
    fn shared(document: Value) -> Arc<Self> {
        static KNOWN: LazyLock<Mutex<HashMap<u64, Arc<Contract>>>> = LazyLock::new(Mutex::default);
        let mut hasher = DefaultHasher::new();
        document.to_string().hash(&mut hasher);
        let mut known = KNOWN.lock().expect("no holder of this lock panics");
        known.entry(hasher.finish()).or_insert_with(|| Arc::new(Self::new(document))).clone()
    }

    fn new(document: Value) -> Self {
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().expect("the document has paths") {
            for (method, definition) in item.as_object().expect("a path has methods") {
                let access = definition["x-access"].as_str().expect("every route says who may call it");
                operations.push(Operation {
                    method: method.to_uppercase(),
                    path: path.strip_prefix("/api/v1").expect("paths are below the prefix").to_owned(),
                    access: access.to_owned(),
                    definition: definition.clone(),
                });
            }
        }
        operations.sort_by_key(Operation::precedence);
        Self { document, operations, validators: Mutex::default() }
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operation of a method and the parts of a path below the prefix.
    pub(crate) fn operation(&self, method: &str, path: &[&str]) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.fits(method, path))
    }

    /// Follows one reference.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.referred(reference),
            None => value,
        }
    }

    fn referred(&self, reference: &str) -> &Value {
        let pointer = reference.strip_prefix('#').expect("references are local");
        self.document.pointer(pointer).unwrap_or_else(|| panic!("{reference} is defined"))
    }

    /// Panics when the document does not allow this answer.
    pub(crate) fn check(&self, method: &str, target: &str, answer: &Answer) {
        let complain = |what: &str| -> ! {
            let (status, text) = (answer.status, &answer.text);
            panic!("{method} {target} answered {status} {text}\nagainst the document: {what}")
        };
        let path = target.split('?').next().unwrap_or_default();
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        if matches!(method, "OPTIONS" | "TRACE") || OUTSIDE.contains(&path) || path.starts_with("/docs/") {
            return;
        }
        if let Err(what) = check_headers(answer) {
            complain(&what);
        }
        // HEAD is answered as GET, without the body.
        let asked = if method == "HEAD" { "GET" } else { method };
        let parts: Vec<&str> = path.split('/').collect();
        let Some(operation) = self.operation(asked, &parts) else {
            if self.document["hidden"] != true && !matches!(answer.status, 404 | 405 | 413 | 429 | 503) {
                complain("no operation has this method and path");
            }
            return;
        };
        if let Err(what) = self.check_answer(operation, method, answer) {
            complain(&what);
        }
    }

    fn check_answer(&self, operation: &Operation, method: &str, answer: &Answer) -> Result<(), String> {
        let responses = operation.definition["responses"].as_object().expect("an operation has responses");
        let response = responses.get(&answer.status.to_string()).ok_or_else(|| {
            let known: Vec<&String> = responses.keys().collect();
            format!("the status is not documented; documented are {known:?}")
        })?;
        let response = self.resolve(response);
        self.check_documented_headers(response, answer)?;
        if method == "HEAD" {
            return Ok(());
        }
        let Some(content) = response["content"].as_object() else {
            return if answer.text.is_empty() { Ok(()) } else { Err("no body is documented".to_owned()) };
        };
        let given = answer.header("content-type").split(';').next().unwrap_or_default().trim();
        if content.contains_key("application/octet-stream") {
            // Bytes whose kind is not known before.
            return Ok(());
        }
        if !content.contains_key(given) {
            let known: Vec<&String> = content.keys().collect();
            return Err(format!("content type '{given}' is not documented; documented are {known:?}"));
        }
        if given != "application/json" {
            return Ok(());
        }
        let Some(validator) = self.validator(operation, answer.status, &content[given]["schema"]) else {
            return Ok(());
        };
        let faults: Vec<String> = validator
            .iter_errors(&answer.body)
            .take(5)
            .map(|fault| format!("{fault} at '{}'", fault.instance_path()))
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }

    fn check_documented_headers(&self, response: &Value, answer: &Answer) -> Result<(), String> {
        let Some(headers) = response["headers"].as_object() else { return Ok(()) };
        for (name, header) in headers {
            let header = self.resolve(header);
            let Some(value) = answer.headers.get(name.as_str()) else {
                if header["required"] == true {
                    return Err(format!("header '{name}' is missing"));
                }
                continue;
            };
            let text = value.to_str().map_err(|_| format!("header '{name}' is not text"))?;
            let value = match header["schema"]["type"].as_str() {
                Some("integer") => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
                _ => json!(text),
            };
            if !jsonschema::is_valid(&header["schema"], &value) {
                return Err(format!("header '{name}: {text}' does not fit {}", header["schema"]));
            }
        }
        Ok(())
    }

    fn validator(&self, operation: &Operation, status: u16, schema: &Value) -> Option<Arc<Validator>> {
        let key = (format!("{} {}", operation.method, operation.path), status);
        let mut validators = self.validators.lock().expect("no holder of this lock panics");
        let made = validators.entry(key).or_insert_with(|| {
            if schema.is_null() {
                return None;
            }
            let mut root = closed(schema);
            root["components"] = json!({ "schemas": self.needed(schema) });
            let validator = jsonschema::options().should_validate_formats(true).build(&root);
            Some(Arc::new(validator.expect("the document's schemas are valid")))
        });
        made.clone()
    }

    /// The components that a schema refers to, directly or by others.
    fn needed(&self, schema: &Value) -> Map<String, Value> {
        let mut found: BTreeMap<String, Value> = BTreeMap::new();
        let mut open = references(schema);
        while let Some(reference) = open.pop_first() {
            let name = reference.rsplit('/').next().expect("a reference has a name").to_owned();
            if let Entry::Vacant(place) = found.entry(name) {
                let definition = self.referred(&reference);
                open.extend(references(definition));
                place.insert(closed(definition));
            }
        }
        found.into_iter().collect()
    }
}

fn references(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}

/// Clients must accept fields that they do not know; a test must not: an answer has what is documented.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), closed(value))).collect();
            let is_object = fields.get("type").is_some_and(|kind| kind == "object");
            let is_composed = ["allOf", "anyOf", "oneOf"].iter().any(|word| fields.contains_key(*word));
            if is_object && !is_composed && fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.iter().map(closed).collect()),
        other => other.clone(),
    }
}

/// What the interface asks of every response, whatever the document says.
fn check_headers(answer: &Answer) -> Result<(), String> {
    for (name, value) in SECURITY_HEADERS {
        if answer.header(name) != *value {
            return Err(format!("header '{name}' is '{}' and must be '{value}'", answer.header(name)));
        }
    }
    for name in ["x-request-id", "x-response-time", "content-security-policy", "permissions-policy"] {
        if answer.header(name).is_empty() {
            return Err(format!("header '{name}' is missing"));
        }
    }
    let error = &answer.body["error"];
    if answer.status >= 400 && error.is_object() {
        if error["code"] != answer.status {
            return Err("error.code is not the status".to_owned());
        }
        if error["request_id"] != answer.header("x-request-id") {
            return Err("error.request_id is not the header X-Request-ID".to_owned());
        }
    }
    Ok(())
}
