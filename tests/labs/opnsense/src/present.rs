//! Items as the API shows them: nested with option maps in forms, flat with labels in lists.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::call::nest;
use crate::choices::{self, effective, parts};
use crate::config::{Config, Values};
use crate::facts::{Facts, Field};
use crate::release::Release;

/// The form of an item. Without values it is the template for a new one.
pub(crate) fn form(node: &str, values: &Values, config: &Config, release: Release) -> Value {
    let facts = Facts::get();
    let mut out = Map::new();
    if facts.is_free_form(node) {
        out.extend(values.iter().map(|(name, value)| (name.clone(), json!(value))));
    }
    for field in facts.fields(node, release) {
        let value = effective(node, &field.name, values);
        let shown = match field.kind.as_str() {
            "array-of-items" => items(node, &field.name, config, release),
            "secret-write-only" => json!(""),
            _ if field.map || field.kind == "AliasContentField" => option_map(node, field, value, config),
            _ => json!(value),
        };
        nest(&mut out, &field.name, shown);
    }
    Value::Object(out)
}

/// A tree of items inside the settings of a model: `[]` when there are none.
fn items(node: &str, path: &str, config: &Config, release: Release) -> Value {
    let list = format!("{}{path}", node.split_inclusive(':').next().unwrap_or_default());
    let rows: Map<String, Value> = config
        .rows(&list)
        .map(|(id, values)| (id.to_owned(), form(&list, values, config, release)))
        .collect();
    if rows.is_empty() { json!([]) } else { Value::Object(rows) }
}

/// `{key: {value, selected}}`, or `[]` when there is nothing to choose from.
fn option_map(node: &str, field: &Field, value: &str, config: &Config) -> Value {
    let selected = parts(field, value);
    let mut options = choices::of(node, field, config).unwrap_or_default();
    if field.kind == "AliasContentField" {
        options = config
            .rows(choices::ALIASES)
            .filter_map(|(_, values)| values.get("name"))
            .map(|name| (name.clone(), name.clone()))
            .collect();
    }
    if field.sorted {
        // Chosen ones stand first, in their order.
        let place = |key: &str| selected.iter().position(|part| *part == key).unwrap_or(usize::MAX);
        options.sort_by_key(|(key, _)| place(key));
    }
    for part in &selected {
        if !options.iter().any(|(key, _)| key == part) {
            options.push(((*part).to_owned(), (*part).to_owned()));
        }
    }
    let mut out = Map::new();
    if !field.required && !field.multiple && field.kind != "AliasContentField" {
        out.insert(String::new(), json!({ "value": "None", "selected": i32::from(selected.is_empty()) }));
    }
    for (key, label) in options.into_iter().filter(|(key, _)| !key.is_empty()) {
        let is_selected = selected.contains(&key.as_str());
        out.insert(key, json!({ "value": label, "selected": i32::from(is_selected) }));
    }
    if out.is_empty() { json!([]) } else { Value::Object(out) }
}

/// The columns of a list, with the labels of their options. Made once for all rows of an answer.
pub(crate) struct Table {
    columns: Vec<(&'static Field, Option<HashMap<String, String>>)>,
    is_free_form: bool,
}

impl Table {
    pub(crate) fn new(node: &str, config: &Config, release: Release) -> Self {
        let facts = Facts::get();
        let fields = facts.fields(node, release).filter(|field| !field.is_items());
        let columns = fields.map(|field| {
            let has_labels = field.map || field.kind == "enum";
            let labels = has_labels.then(|| choices::of(node, field, config)).flatten();
            (field, labels.map(|options| options.into_iter().collect()))
        });
        Self { columns: columns.collect(), is_free_form: facts.is_free_form(node) }
    }

    /// The row of an item: stored values, and labels under `%name` where they differ.
    pub(crate) fn row(&self, id: &str, values: &Values) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("uuid".to_owned(), json!(id));
        if self.is_free_form {
            out.extend(values.iter().map(|(name, value)| (name.clone(), json!(value))));
        }
        for (field, labels) in &self.columns {
            if field.kind == "secret-write-only" {
                out.insert(field.name.clone(), json!(""));
                continue;
            }
            let value =
                values.get(&field.name).map(String::as_str).or(field.default.as_deref()).unwrap_or_default();
            out.insert(field.name.clone(), json!(value));
            if let Some(label) = labels.as_ref().and_then(|labels| label(field, labels, value)) {
                out.insert(format!("%{}", field.name), json!(label));
            }
        }
        out
    }
}

/// The label of a value, when it has one that differs.
fn label(field: &Field, labels: &HashMap<String, String>, value: &str) -> Option<String> {
    let names = parts(field, value).into_iter().map(|part| labels.get(part).map_or(part, String::as_str));
    let label = names.collect::<Vec<_>>().join(", ");
    (label != value).then_some(label)
}

/// Whether every word stands in one of the row's values or labels.
pub(crate) fn matches(row: &Map<String, Value>, words: &[String]) -> bool {
    let text = row.values().filter_map(Value::as_str).collect::<Vec<_>>().join("\n").to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}
