//! What is configured: lists of objects, settings, and the children inside of objects.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::facts::Model;

/// Fields of one object, as they are stored.
pub(crate) type Object = Map<String, Value>;

/// The name of an object whose id is no place in a list.
pub(crate) const NAME: &str = "@id";

/// The key under which an object keeps its children.
pub(crate) fn children_key(model: &str) -> String {
    format!("@{model}")
}

/// All that is configured, by model. Settings are a list of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Config(BTreeMap<String, Vec<Object>>);

impl Config {
    pub(crate) fn list(&self, model: &str) -> &[Object] {
        self.0.get(model).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn list_mut(&mut self, model: &str) -> &mut Vec<Object> {
        self.0.entry(model.to_owned()).or_default()
    }

    /// The settings of a model; empty before the first write.
    pub(crate) fn single(&self, model: &str) -> Object {
        self.list(model).first().cloned().unwrap_or_default()
    }

    pub(crate) fn put_single(&mut self, model: &str, object: Object) {
        *self.list_mut(model) = vec![object];
    }

    /// One value of settings.
    pub(crate) fn setting(&self, model: &str, field: &str) -> Option<&Value> {
        self.list(model).first()?.get(field)
    }

    /// The children of an object.
    pub(crate) fn children(parent: &Object, model: &str) -> Vec<Object> {
        let items = parent.get(&children_key(model)).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_object).cloned().collect()
    }

    pub(crate) fn put_children(parent: &mut Object, model: &str, children: Vec<Object>) {
        let items: Vec<Value> = children.into_iter().map(Value::Object).collect();
        parent.insert(children_key(model), json!(items));
    }

    /// The object of a list whose field has a value.
    pub(crate) fn having(&self, model: &str, field: &str, value: &str) -> Option<&Object> {
        self.list(model).iter().find(|object| text(object, field) == value)
    }

    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Takes a list over from another configuration.
    pub(crate) fn take_over(&mut self, model: &str, from: &Self) {
        match from.0.get(model) {
            Some(list) => drop(self.0.insert(model.to_owned(), list.clone())),
            None => drop(self.0.remove(model)),
        }
    }

    /// Models whose lists differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let models: BTreeSet<&str> = self.models().chain(other.models()).collect();
        let differ = models.into_iter().filter(|model| self.list(model) != other.list(model));
        differ.map(str::to_owned).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!(self)
    }

    /// The file of the configuration: an element for each model, object and value.
    pub(crate) fn to_xml(&self) -> String {
        let mut out = "<?xml version=\"1.0\"?>\n<pfsense>\n\t<version>23.3</version>\n".to_owned();
        for (model, list) in &self.0 {
            for object in list {
                out += &format!("\t<{model}>\n");
                for (name, value) in object {
                    let value = match value {
                        Value::String(text) => text.clone(),
                        value => value.to_string(),
                    };
                    let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                    let name = name.replace('@', "_");
                    out += &format!("\t\t<{name}>{value}</{name}>\n");
                }
                out += &format!("\t</{model}>\n");
            }
        }
        out + "</pfsense>\n"
    }
}

/// The id of an object at a place of a list.
pub(crate) fn id_of(model: &Model, at: usize, object: &Object) -> Value {
    match object.get(NAME) {
        Some(name) if model.named => name.clone(),
        _ => json!(at),
    }
}

/// The place of an id in a list. Digits in a text are a number.
pub(crate) fn place_of(model: &Model, id: &Value, list: &[Object]) -> Option<usize> {
    if model.named {
        return list.iter().position(|object| object.get(NAME) == Some(id));
    }
    let at = match id {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    usize::try_from(at).ok().filter(|at| *at < list.len())
}

/// A text of an object; empty when it is absent or no text.
pub(crate) fn text<'o>(object: &'o Object, field: &str) -> &'o str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_true(object: &Object, field: &str) -> bool {
    object.get(field) == Some(&Value::Bool(true))
}
