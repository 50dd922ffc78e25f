//! The schemas of bodies: what is asked and what is answered are not the same.
//!
//! A field that may be left out of a request can be one that every answer has,
//! so requests and answers have a generator each.

use std::collections::BTreeSet;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use schemars::transform::ReplaceBoolSchemas;
use serde_json::{Map, Value};

use super::answers;
use crate::http::routes::SchemaOf;

const PREFIX: &str = "#/components/schemas/";
/// Where the schemas of requests stand until it is known which of them answers share.
const ASKED_PREFIX: &str = "#/components/asked/";

pub(super) struct Schemas {
    asked: SchemaGenerator,
    answered: SchemaGenerator,
    settled: Map<String, Value>,
}

impl Schemas {
    pub(super) fn new() -> Self {
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
        }
    }

    /// Schema of what a client sends.
    pub(super) fn asked(&mut self, schema: SchemaOf) -> Value {
        opened(schema(&mut self.asked).to_value())
    }

    /// Schema of what the server answers.
    pub(super) fn answered(&mut self, schema: SchemaOf) -> Value {
        opened(schema(&mut self.answered).to_value())
    }

    /// Gives every schema its place: one that requests and answers share has one, others have two.
    pub(super) fn settle(&mut self, paths: Map<String, Value>) -> Map<String, Value> {
        let asked = self.asked.take_definitions(true);
        let answered = self.answered.take_definitions(true);
        let apart = differing(&asked, &answered);
        let name = |name: &str| if apart.contains(name) { format!("{name}Input") } else { name.to_owned() };
        for (key, mut schema) in asked {
            rename(&mut schema, &name);
            self.settled.insert(name(&key), schema);
        }
        self.settled.extend(answered);
        self.settled.extend(answers::schemas());
        self.settled.sort_keys();
        let mut paths = Value::Object(paths);
        rename(&mut paths, &name);
        match paths {
            Value::Object(paths) => paths,
            _ => Map::new(),
        }
    }

    pub(super) fn into_components(self) -> Map<String, Value> {
        self.settled
    }
}

/// A schema as an object also where anything goes.
fn opened(schema: Value) -> Value {
    if schema == Value::Bool(true) { Value::Object(Map::new()) } else { schema }
}

/// Names that mean one thing in requests and another in answers, by themselves or by what they refer to.
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
