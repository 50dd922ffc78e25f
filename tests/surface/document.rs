//! The document is complete, closed and true of itself.

use std::collections::BTreeSet;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::support::{Answer, Contract, Server};

async fn start() -> (Server, std::sync::Arc<Contract>) {
    let server = Server::start_with(crate::support::Database::sqlite(), super::described()).await;
    let contract = server.contract();
    (server, contract)
}

#[tokio::test]
async fn the_served_document_is_the_table_and_every_reference_in_it_is_defined() {
    let (server, contract) = start().await;
    let document = server.nobody().get("/openapi.json").await.expect_status(200).body;
    assert_eq!(&document, contract.document());
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("references are local");
        assert!(document.pointer(pointer).is_some(), "{reference} is defined");
    }
}

/// Arrays that do not say what their items are: linters call it an error, and clients cannot be made of it.
fn arrays_without_items(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let is_one =
                fields.get("type").is_some_and(|kind| kind == "array") && !fields.contains_key("items");
            usize::from(is_one) + fields.values().map(arrays_without_items).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(arrays_without_items).sum(),
        _ => 0,
    }
}

#[tokio::test]
async fn every_array_says_what_its_items_are() {
    let (_server, contract) = start().await;
    assert_eq!(arrays_without_items(&contract.document()["components"]), 0);
    assert_eq!(arrays_without_items(&json!([{ "type": "array" }])), 1);
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.push(reference.clone());
            }
            fields.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

/// Public routes that check what their body proves.
const PROOFS: &[&str] = &[
    "/auth/login",
    "/auth/login/mfa",
    "/auth/refresh",
    "/auth/sso/ldap/authenticate",
    "/auth/sso/oidc/callback",
    "/auth/token",
    "/controllers/{controller_id}/push/{channel}",
    "/oauth2/introspect",
    "/oauth2/login",
    "/oauth2/login/mfa",
    "/oauth2/revoke",
    "/oauth2/token",
    "/plugins/{plugin}/hooks/{hook}/{organization_id}",
];

#[tokio::test]
async fn every_operation_says_all_that_it_answers() {
    let (_server, contract) = start().await;
    let mut ids = BTreeSet::new();
    for operation in contract.operations() {
        let (name, definition) = (format!("{} {}", operation.method, operation.path), &operation.definition);
        let id = definition["operationId"].as_str().expect("an operation has an id");
        assert!(ids.insert(id.to_owned()), "{name}: operationId '{id}' is used twice");
        for field in ["summary", "description"] {
            assert!(definition[field].as_str().is_some_and(|text| !text.is_empty()), "{name} has a {field}");
        }
        let responses = definition["responses"].as_object().expect("an operation has responses");
        assert!(!responses.contains_key("default"), "{name} names its statuses");
        let has = |status: &str| responses.contains_key(status);
        assert!(has("429") && has("500") && has("503"), "{name}: {:?}", responses.keys());
        let is_proof = PROOFS.contains(&operation.path.as_str());
        assert_eq!(has("401"), operation.access != "public" || is_proof, "{name}");
        assert_eq!(has("403"), operation.access != "public" || operation.method != "GET", "{name}");
        assert!(has("413"), "{name}");
        assert!(!operation.parameters().iter().any(|_| !(has("404") && has("422"))), "{name}");
        assert_eq!(has("412"), definition["parameters"].to_string().contains("IfMatch"), "{name}");
        for (status, response) in responses {
            let response = contract.resolve(response);
            let content = response["content"].as_object();
            assert_eq!(content.is_none(), status == "204", "{name}: {status} has a body unless it is 204");
            for media in content.into_iter().flat_map(serde_json::Map::values) {
                let is_said = media["schema"] != json!({});
                assert!(is_said, "{name}: {status} says what it answers");
            }
        }
    }
}

/// Names of classes that a language has, or that a generator of clients puts into every file, of lower-case spelling.
///
/// Java: `java.lang` and `java.util`. TypeScript: the globals of browsers and of Node.js. Python: built-ins, `typing` and
/// pydantic. Go: what clients are made of. C#, Swift, Kotlin, Rust and C++: their own types and words.
const TAKEN: &[&str] = &[
    "abstract",
    "action",
    "annotated",
    "any",
    "anyof",
    "apiclient",
    "apiexception",
    "apiresponse",
    "array",
    "arraylist",
    "attribute",
    "basemodel",
    "bigdecimal",
    "blob",
    "body",
    "boolean",
    "box",
    "byte",
    "bytes",
    "callable",
    "char",
    "character",
    "class",
    "client",
    "collection",
    "comparable",
    "configuration",
    "console",
    "context",
    "data",
    "date",
    "datetime",
    "decimal",
    "default",
    "delegate",
    "dict",
    "dictionary",
    "document",
    "double",
    "element",
    "enum",
    "error",
    "errors",
    "event",
    "exception",
    "false",
    "field",
    "file",
    "float",
    "formdata",
    "function",
    "generic",
    "guid",
    "hashmap",
    "headers",
    "http",
    "import",
    "infinity",
    "instant",
    "int",
    "integer",
    "interface",
    "iterable",
    "iterator",
    "json",
    "lambda",
    "list",
    "literal",
    "lock",
    "long",
    "map",
    "math",
    "model",
    "module",
    "namespace",
    "node",
    "none",
    "null",
    "nullable",
    "number",
    "object",
    "omit",
    "operator",
    "option",
    "optional",
    "package",
    "pair",
    "partial",
    "pick",
    "process",
    "promise",
    "property",
    "protocol",
    "proxy",
    "readonly",
    "record",
    "reflect",
    "regexp",
    "request",
    "required",
    "response",
    "result",
    "runnable",
    "self",
    "sequence",
    "set",
    "short",
    "stream",
    "string",
    "struct",
    "symbol",
    "system",
    "task",
    "text",
    "thread",
    "throwable",
    "time",
    "true",
    "tuple",
    "type",
    "typing",
    "undefined",
    "union",
    "unit",
    "unset",
    "url",
    "uuid",
    "validationerror",
    "vec",
    "vector",
    "version",
    "void",
    "warning",
];

#[tokio::test]
async fn no_schema_has_a_name_that_a_language_has_taken() {
    let (_server, contract) = start().await;
    let schemas = contract.document()["components"]["schemas"].as_object().expect("there are schemas");
    let mut seen = BTreeSet::new();
    for name in schemas.keys() {
        let folded = name.to_lowercase();
        assert!(
            !TAKEN.contains(&folded.as_str()),
            "no client can have a class '{name}'; see openapi/names.rs"
        );
        assert!(name.starts_with(|first: char| first.is_ascii_uppercase()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        assert!(
            seen.insert(folded),
            "two schemas differ only in the case of '{name}': one file on some systems"
        );
    }
}

#[tokio::test]
async fn request_bodies_are_closed() {
    let (_server, contract) = start().await;
    for operation in contract.operations() {
        let body = &operation.definition["requestBody"]["content"]["application/json"]["schema"];
        if body.is_null() {
            continue;
        }
        let schema = contract.resolve(body);
        assert_eq!(schema["additionalProperties"], false, "{} {}", operation.method, operation.path);
    }
}

/// Whether a text is a sentence or more, and not the empty word of a template.
fn is_prose(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().len() > 3 && !text.starts_with("Routes below"))
}

#[tokio::test]
async fn every_operation_is_named_by_verb_and_noun_in_a_described_group() {
    let (_server, contract) = start().await;
    let groups = contract.document()["tags"].as_array().expect("the document has groups");
    for group in groups {
        let name = group["name"].as_str().expect("a group has a name");
        assert!(name.starts_with(|first: char| first.is_ascii_uppercase()), "the group '{name}' is in words");
        assert!(is_prose(&group["description"]), "the group '{name}' is described");
    }
    for operation in contract.operations() {
        let id = operation.definition["operationId"].as_str().unwrap_or_default();
        let is_word = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        assert!(
            id.contains('_') && id.split('_').all(is_word),
            "{} {}: '{id}'",
            operation.method,
            operation.path
        );
        let verb = id.split('_').next().unwrap_or_default();
        assert!(
            !["post", "patch", "put"].contains(&verb) || id == "post_saml_callback",
            "'{id}' begins with a verb"
        );
        let tag = &operation.definition["tags"][0];
        assert!(groups.iter().any(|group| &group["name"] == tag), "{id}: {tag}");
    }
}

/// Properties without words below a schema, as `Schema.property`.
fn undescribed(place: &str, schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                if !is_prose(&property["description"]) {
                    found.push(format!("{place}.{name}"));
                }
            }
            fields.values().for_each(|inner| undescribed(place, inner, found));
        }
        Value::Array(items) => items.iter().for_each(|item| undescribed(place, item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_property_and_every_parameter_is_described() {
    let (_server, contract) = start().await;
    let mut found = Vec::new();
    for (name, schema) in contract.document()["components"]["schemas"].as_object().expect("there are schemas")
    {
        undescribed(name, schema, &mut found);
    }
    for operation in contract.operations() {
        for parameter in operation.definition["parameters"].as_array().into_iter().flatten() {
            let parameter = contract.resolve(parameter);
            if !is_prose(&parameter["description"]) {
                found.push(format!("{} {}: {}", operation.method, operation.path, parameter["name"]));
            }
        }
    }
    assert!(
        found.is_empty(),
        "a doc comment at the field, or a line in assets/vocabulary.txt of its room, for {found:#?}"
    );
}

/// Schemas of answers that no example can be made of, for their values follow a pattern.
const WITHOUT_EXAMPLE: &[&str] = &[];

#[tokio::test]
async fn every_answer_has_an_example_that_fits_it() {
    let (_server, contract) = start().await;
    let document = contract.document();
    let mut without = BTreeSet::new();
    for operation in contract.operations() {
        for (status, response) in operation.definition["responses"].as_object().into_iter().flatten() {
            let media = &contract.resolve(response)["content"]["application/json"]["schema"];
            let Some(name) = media["$ref"].as_str().and_then(|name| name.rsplit('/').next()) else {
                continue;
            };
            let schema = contract.resolve(media);
            let is_object = schema["type"] == "object" && status.starts_with('2');
            if is_object && schema["examples"].is_null() && !WITHOUT_EXAMPLE.contains(&name) {
                without.insert(name.to_owned());
            }
        }
    }
    assert!(without.is_empty(), "no example for {without:?}");
    let mut seen = 0;
    for (name, schema) in document["components"]["schemas"].as_object().expect("there are schemas") {
        let Some(example) = schema["examples"].get(0) else { continue };
        let components = json!({ "schemas": document["components"]["schemas"] });
        let root = json!({ "$ref": format!("#/components/schemas/{name}"), "components": components });
        let validator =
            jsonschema::options().should_validate_formats(true).build(&root).expect("a valid schema");
        let faults: Vec<String> = validator.iter_errors(example).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "the example of {name}: {faults:?}");
        seen += 1;
    }
    assert!(seen > 100, "{seen} examples");
}

/// An answer as the server could have given it.
fn answer(status: u16, body: &Value) -> Answer {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("x-xss-protection", "1; mode=block"),
        ("referrer-policy", "strict-origin-when-cross-origin"),
        ("cache-control", "no-store, no-cache, must-revalidate"),
        ("pragma", "no-cache"),
        ("content-security-policy", "default-src 'self'"),
        ("permissions-policy", "camera=()"),
        ("x-request-id", "r"),
        ("x-response-time", "1.000"),
        ("content-type", "application/json"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Answer { status, headers, text: body.to_string(), body: body.clone() }
}

#[tokio::test]
async fn an_answer_that_is_not_documented_is_noticed() {
    let (_server, contract) = start().await;
    let not_found =
        json!({ "error": { "code": 404, "message": "m", "request_id": "r", "type": "not_found" } });
    let site = answer(404, &not_found);
    let path = "/sites/01900000-0000-7000-8000-000000000000";
    contract.check("GET", path, &site);
    let complains = |method: &str, path: &str, answer: &Answer| {
        let check = std::panic::AssertUnwindSafe(|| contract.check(method, path, answer));
        std::panic::catch_unwind(check).is_err()
    };
    let is_wrong = |change: &dyn Fn(&mut Answer)| {
        let mut wrong = answer(404, &not_found);
        change(&mut wrong);
        complains("GET", path, &wrong)
    };
    assert!(is_wrong(&|answer| answer.status = 418), "a status");
    assert!(is_wrong(&|answer| answer.body["error"]["surprise"] = json!(1)), "a field");
    assert!(is_wrong(&|answer| answer.body["error"]["type"] = json!(1)), "a type");
    assert!(is_wrong(&|answer| answer.body["error"]["request_id"] = json!("other")), "another request");
    assert!(is_wrong(&|answer| drop(answer.headers.remove("x-request-id"))), "a missing header");
    assert!(
        is_wrong(&|answer| drop(
            answer.headers.insert("content-type", HeaderValue::from_static("text/html"))
        )),
        "a content type"
    );
    assert!(complains("GET", "/nowhere", &answer(200, &json!({}))), "an operation");
    let status = json!({ "status": "healthy", "degraded_subsystems": [] });
    contract.check("GET", "/health", &answer(200, &status));
    assert!(complains("GET", "/health", &answer(200, &json!({ "status": 1 }))), "a body");
}
