//! The document states the limits of every text and every list of a request, and the server enforces them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::examples::with_ids;
use super::walk::{bytes, filled};
use super::world::World;
use crate::support::{Contract, Database, Server, on_both};

/// Any of these bounds a text; of the formats all but [`SECRET`].
const BOUNDS_OF_TEXT: &[&str] = &["maxLength", "pattern", "format", "enum", "const"];
/// The format of a text that is not shown, whatever its length.
const SECRET: &str = "password";
/// Schemas inside a schema that describe the same value.
const ALTERNATIVES: &[&str] = &["allOf", "anyOf", "oneOf"];
/// The property whose schema comes from an adapter, or that is free of form.
const FREE: &str = "payload";

/// Operations that refuse every body in the world of this test before they check it, and why.
const REFUSED_BEFORE_CHECKS: &[(&str, &str)] = &[
    ("complete_setup", "setup is completed"),
    ("register_organization", "registration is disabled"),
    ("reset_password", "the token of the example is not valid"),
];

fn is_of(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// Finds texts and lists without a bound.
struct Search<'a> {
    contract: &'a Contract,
    seen: BTreeSet<&'a str>,
    unbounded: Vec<String>,
}

impl<'a> Search<'a> {
    fn look(&mut self, schema: &'a Value, place: &str) {
        self.look_within(schema, place, false);
    }

    /// `is_bounded` where a schema around it bounds the same value.
    fn look_within(&mut self, schema: &'a Value, place: &str, is_bounded: bool) {
        let has = |word: &str| schema.get(word).is_some_and(|value| *value != SECRET);
        let is_bounded = is_bounded || BOUNDS_OF_TEXT.iter().any(|word| has(word));
        if let Some(reference) = schema["$ref"].as_str() {
            // A bound may stand next to the reference.
            if !is_bounded && self.seen.insert(reference) {
                let name = reference.rsplit('/').next().unwrap_or(reference);
                self.look(self.contract.resolve(schema), name);
            }
            return;
        }
        if is_of(schema, "string") && !is_bounded {
            self.unbounded.push(format!("{place}: a text needs one of {BOUNDS_OF_TEXT:?}"));
        }
        if is_of(schema, "array") && !has("maxItems") {
            self.unbounded.push(format!("{place}: a list needs maxItems"));
        }
        self.look_inside(schema, place, is_bounded);
    }

    fn look_inside(&mut self, schema: &'a Value, place: &str, is_bounded: bool) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if name != FREE {
                self.look(property, &format!("{place}.{name}"));
            }
        }
        for word in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(word).filter(|inner| inner.is_object()) {
                self.look(inner, &format!("{place}.{word}"));
            }
        }
        for inner in ALTERNATIVES.iter().filter_map(|word| schema[word].as_array()).flatten() {
            self.look_within(inner, place, is_bounded);
        }
    }
}

fn unbounded(contract: &Contract) -> Vec<String> {
    let mut search = Search { contract, seen: BTreeSet::new(), unbounded: Vec::new() };
    for operation in contract.operations() {
        let id = operation.definition["operationId"].as_str().unwrap_or_default();
        let contents = operation.definition["requestBody"]["content"].as_object();
        for content in contents.into_iter().flat_map(|contents| contents.values()) {
            search.look(&content["schema"], id);
        }
    }
    search.unbounded
}

#[tokio::test]
async fn every_text_and_every_list_of_a_request_has_a_bound() {
    let server = Server::start_with(Database::sqlite(), super::described()).await;
    let unbounded = unbounded(&server.contract());
    assert!(unbounded.is_empty(), "{unbounded:#?}");
}

/// The texts of an example that have a greatest length: their pointers and lengths.
fn bounded_texts(
    contract: &Contract,
    schema: &Value,
    example: &Value,
    at: &str,
    found: &mut Vec<(String, usize)>,
) {
    if let (Some(max), true) = (schema["maxLength"].as_u64(), example.is_string()) {
        let max = usize::try_from(max).expect("a length fits");
        if !found.iter().any(|(known, _)| known == at) {
            found.push((at.to_owned(), max));
        }
    }
    if schema.get("$ref").is_some() {
        bounded_texts(contract, contract.resolve(schema), example, at, found);
    }
    for inner in ALTERNATIVES.iter().filter_map(|word| schema[word].as_array()).flatten() {
        bounded_texts(contract, inner, example, at, found);
    }
    for (name, value) in example.as_object().into_iter().flatten() {
        if name != FREE
            && let Some(property) = schema["properties"].get(name)
        {
            bounded_texts(contract, property, value, &format!("{at}/{name}"), found);
        }
    }
    for (place, value) in example.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = schema.get("items") {
            bounded_texts(contract, items, value, &format!("{at}/{place}"), found);
        }
    }
}

/// The text with one character more than it may have. The characters of the world's texts have one byte each.
fn too_long(text: &str, max: usize) -> String {
    let missing = (max + 1).saturating_sub(text.chars().count());
    format!("{text}{}", "x".repeat(missing))
}

on_both! {
    async fn a_text_with_one_character_more_than_the_document_allows_is_refused_by_its_name(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let (mut sent, mut accepted) = (0, Vec::new());
        for operation in contract.operations() {
            let id = operation.definition["operationId"].as_str().unwrap_or_default();
            let content = &operation.definition["requestBody"]["content"]["application/json"];
            let Some(example) = content.get("example") else { continue };
            if REFUSED_BEFORE_CHECKS.iter().any(|(known, _)| *known == id) {
                continue;
            }
            let body = with_ids(example, "", &world.own);
            let mut texts = Vec::new();
            bounded_texts(&contract, &content["schema"], &body, "", &mut texts);
            for (pointer, max) in texts {
                let mut body = body.clone();
                let text = body.pointer_mut(&pointer).expect("the example has it");
                *text = json!(too_long(text.as_str().unwrap_or_default(), max));
                let path = filled(operation, &|name| world.own[name].clone());
                let answer = world.admin.send(&operation.method, &path, Some(bytes(&body))).await;
                let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
                if answer.status != 422 || !details.iter().any(|detail| detail["field"] == pointer.as_str()) {
                    accepted.push(format!("{id} {pointer} ({max}): {} {}", answer.status, answer.text));
                }
                sent += 1;
            }
        }
        assert!(accepted.is_empty(), "{accepted:#?}");
        assert!(sent > 50, "only {sent} texts have a greatest length");
    }
}
