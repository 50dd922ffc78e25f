//! The schemas of bodies: requests and answers have different ones.
//!
//! A field that may be left out of a request can be present in every answer, so requests and answers have separate
//! generators.

use std::collections::BTreeSet;

use heddle_core::Declared;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use schemars::transform::ReplaceBoolSchemas;
use serde_json::{Map, Value, json};

use super::vocabulary::Vocabulary;
use super::{answers, nulls};
use crate::http::routes::SchemaOf;
use crate::sample::{Extent, Sampler};

const PREFIX: &str = "#/components/schemas/";
/// Where the schemas of requests stand until it is known which of them answers share.
const ASKED_PREFIX: &str = "#/components/asked/";

pub(super) struct Schemas {
    asked: SchemaGenerator,
    answered: SchemaGenerator,
    settled: Map<String, Value>,
    /// Names that features declare, by the schema that has them as its values.
    words: [(&'static str, Vec<&'static str>); 2],
}

impl Schemas {
    pub(super) fn new(declared: &Declared) -> Self {
        let settings = |path: &str| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = path.to_owned().into();
            settings.meta_schema = None;
            let mut open = ReplaceBoolSchemas::default();
            open.skip_additional_properties = true;
            settings.with_transform(open)
        };
        Self {
            asked: settings("/components/asked").into_generator(),
            answered: settings("/components/schemas").for_serialize().into_generator(),
            settled: Map::new(),
            words: declared.words(),
        }
    }

    /// Schema of what a client sends.
    pub(super) fn asked(&mut self, schema: SchemaOf) -> Value {
        let mut schema = opened(schema(&mut self.asked).to_value());
        nulls::as_asked(&mut schema);
        schema
    }

    /// Schema of what the server answers.
    pub(super) fn answered(&mut self, schema: SchemaOf) -> Value {
        let mut schema = opened(schema(&mut self.answered).to_value());
        nulls::as_answered(&mut schema);
        schema
    }

    /// Places every schema: a schema that requests and answers share once, others twice.
    pub(super) fn settle(
        &mut self,
        paths: Map<String, Value>,
        vocabulary: &Vocabulary,
    ) -> Map<String, Value> {
        let mut asked = self.asked.take_definitions(true);
        let mut answered = self.answered.take_definitions(true);
        for (name, words) in &self.words {
            for schemas in [&mut asked, &mut answered] {
                if let Some(schema) = schemas.get_mut(*name) {
                    // Plugins bring names of their own while the server runs.
                    schema["anyOf"] = json!([{ "enum": words }, { "pattern": "^plugin\\." }]);
                }
            }
        }
        asked.values_mut().for_each(nulls::as_asked);
        answered.values_mut().for_each(nulls::as_answered);
        let apart = differing(&asked, &answered);
        let name = |name: &str| if apart.contains(name) { format!("{name}Input") } else { name.to_owned() };
        for (key, mut schema) in asked {
            rename(&mut schema, &name);
            self.settled.insert(name(&key), schema);
        }
        let shown: Vec<String> =
            answered.keys().filter(|key| !self.settled.contains_key(*key)).cloned().collect();
        self.settled.extend(answered);
        self.settled.extend(answers::schemas());
        self.settled.sort_keys();
        self.settled.values_mut().for_each(gather_words);
        self.settled.values_mut().for_each(name_items);
        self.settled.iter_mut().for_each(|(name, schema)| vocabulary.describe(name, schema));
        self.show_answers(&shown);
        let mut paths = Value::Object(paths);
        rename(&mut paths, &name);
        match paths {
            Value::Object(paths) => paths,
            _ => Map::new(),
        }
    }

    /// Gives an example to every object that occurs only in answers.
    fn show_answers(&mut self, names: &[String]) {
        let all = self.settled.clone();
        let resolve = |reference: &str| all.get(reference.strip_prefix(PREFIX)?);
        let sampler = Sampler::new(&resolve, Extent::Whole);
        for name in names {
            let Some(Value::Object(schema)) = self.settled.get_mut(name) else { continue };
            let sample = sampler.of("", &all[name]).filter(Value::is_object);
            if let Some(sample) = sample {
                schema.insert("examples".to_owned(), json!([sample]));
            }
        }
    }

    pub(super) fn into_components(self) -> Map<String, Value> {
        self.settled
    }
}

/// Merges a set of words, some of them described, into one set: client generators make one type of it.
fn gather_words(schema: &mut Value) {
    let words = |choice: &Value| match (&choice["const"], &choice["enum"]) {
        (Value::String(word), _) => Some(vec![json!(word)]),
        (_, Value::Array(words)) if choice["type"] == "string" => Some(words.clone()),
        _ => None,
    };
    let gathered: Option<Vec<Vec<Value>>> =
        schema["oneOf"].as_array().and_then(|choices| choices.iter().map(words).collect());
    let (Some(gathered), Some(fields)) = (gathered, schema.as_object_mut()) else { return };
    let Some(Value::Array(choices)) = fields.remove("oneOf") else { return };
    let mut about: Vec<String> =
        fields.get("description").and_then(Value::as_str).map(str::to_owned).into_iter().collect();
    for choice in &choices {
        if let (Some(word), Some(text)) = (choice["const"].as_str(), choice["description"].as_str()) {
            about.push(format!("- `{word}`: {text}"));
        }
    }
    if !about.is_empty() {
        fields.insert("description".to_owned(), json!(about.join("\n")));
    }
    fields.insert("type".to_owned(), json!("string"));
    fields.insert("enum".to_owned(), json!(gathered.concat()));
}

/// Gives every array its `items`. A tuple of one kind becomes an array of it: not every tool reads `prefixItems`.
fn name_items(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|kind| kind == "array") && !fields.contains_key("items") {
                let tuple = fields.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
                let items = match tuple.split_first() {
                    Some((first, rest)) if rest.iter().all(|item| item == first) => {
                        fields.remove("prefixItems");
                        first.clone()
                    }
                    Some(_) => json!(false),
                    None => json!({}),
                };
                fields.insert("items".to_owned(), items);
            }
            fields.values_mut().for_each(name_items);
        }
        Value::Array(items) => items.iter_mut().for_each(name_items),
        _ => {}
    }
}

/// Returns the schema as an object, also where any value is valid.
fn opened(schema: Value) -> Value {
    if schema == Value::Bool(true) { Value::Object(Map::new()) } else { schema }
}

/// Returns names whose schema, or a schema that it refers to, differs between requests and answers.
fn differing(asked: &Map<String, Value>, answered: &Map<String, Value>) -> BTreeSet<String> {
    let mut apart = BTreeSet::new();
    loop {
        let found = asked.iter().find(|(name, schema)| {
            let Some(other) = answered.get(*name) else { return false };
            let mut same = (*schema).clone();
            rename(&mut same, &str::to_owned);
            let differs = same != *other || references(schema).iter().any(|inner| apart.contains(inner));
            differs && !apart.contains(*name)
        });
        match found {
            Some((name, _)) => apart.insert(name.clone()),
            None => return apart,
        };
    }
}

fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match value {
                Value::String(text) if key == "$ref" => {
                    text.strip_prefix(ASKED_PREFIX).map(str::to_owned).into_iter().collect()
                }
                other => references(other),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Makes references to the schemas of requests final.
fn rename(schema: &mut Value, name: &impl Fn(&str) -> String) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "$ref" => {
                        if let Some(inner) = text.strip_prefix(ASKED_PREFIX) {
                            *text = format!("{PREFIX}{}", name(inner));
                        }
                    }
                    other => rename(other, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, name)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_words_are_one_set() {
        let mut schema = json!({ "description": "State.", "oneOf": [
            { "type": "string", "enum": ["a", "b"] },
            { "type": "string", "const": "c", "description": "The last." },
        ] });
        gather_words(&mut schema);
        let about = "State.\n- `c`: The last.";
        assert_eq!(schema, json!({ "description": about, "type": "string", "enum": ["a", "b", "c"] }));
        let other = json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] });
        let mut same = other.clone();
        gather_words(&mut same);
        assert_eq!(same, other);
    }

    #[test]
    fn an_array_says_what_its_items_are() {
        let text = json!({ "type": "string" });
        let mut pairs = json!({ "type": "array", "items": { "type": "array", "prefixItems": [text, text], "minItems": 2 } });
        name_items(&mut pairs);
        assert_eq!(pairs["items"], json!({ "type": "array", "items": text, "minItems": 2 }));
        let mut mixed = json!({ "type": "array", "prefixItems": [text, { "type": "integer" }] });
        name_items(&mut mixed);
        assert_eq!(mixed["items"], false);
    }

    #[test]
    fn a_schema_is_apart_when_what_it_refers_to_is() {
        let inner = |required: Value| json!({ "type": "object", "required": required });
        let outer = |prefix: &str| json!({ "properties": { "inner": { "$ref": format!("{prefix}Inner") } } });
        let map = |fields: Value| fields.as_object().cloned().unwrap_or_default();
        let asked = map(json!({ "Inner": inner(json!([])), "Outer": outer(ASKED_PREFIX), "Same": {} }));
        let answered = map(json!({ "Inner": inner(json!(["a"])), "Outer": outer(PREFIX), "Same": {} }));
        let apart: Vec<String> = differing(&asked, &answered).into_iter().collect();
        assert_eq!(apart, ["Inner", "Outer"]);
    }
}
