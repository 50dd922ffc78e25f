//! Kinds of objects and settings, and the features that write them.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{Feature, Operation, noun, say};
use serde_json::{Map, Value, json};

use super::fields::{self, Made};
use super::grammar::{INLINE, LONG_TIME_LIMIT_MS, Maker, TIME_LIMIT_MS};
use super::overlay::Item;

/// What names the parent of an object, in paths and bodies.
const PARENT: &str = "parent_id";
const NORMAL: &str = "normal";

/// What is written of an item: the paths of its three operations, and what makes them active.
struct Written {
    create: Option<String>,
    update: Option<String>,
    delete: Option<String>,
    apply: Vec<String>,
}

impl Maker<'_> {
    pub(super) fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let model = self.model(&item.model)?;
        let fields = fields::all(self.facts, model, &item.fields)?;
        for name in &item.key {
            ensure!(fields.iter().any(|field| field.name == *name), "its key '{name}' is no field");
        }
        let area = self.kind(id, item, &fields)?;
        let written = self.written(item)?;
        if item.reads || (written.create.is_none() && written.update.is_none() && written.delete.is_none()) {
            return Ok(());
        }
        let mut key: Vec<String> = item.within.iter().map(|_| PARENT.to_owned()).collect();
        key.extend(item.key.iter().cloned());
        let binding = self.feature(id, item, &written);
        self.rows.add_feature(Feature {
            id,
            area: &area,
            title: &item.title,
            kind: Some(id),
            key: &key,
            operations: operations(item, &written, (&fields, fields::beside(model)), &key),
            binding,
        })
    }

    fn kind(&mut self, id: &str, item: &Item, fields: &[Made]) -> anyhow::Result<String> {
        let op = if item.key.is_empty() { "settings-read" } else { "list" };
        let found = self.facts.path_of(&item.model, op).or_else(|| self.facts.path_of(&item.model, "read"));
        let (path, _) = found.context("no route reads it")?;
        self.routes.read(format!("GET {path}"));
        let area = self.facts.paths[path].area.clone();
        let mut binding = json!({ "noun": noun(&item.title), "sparse": true });
        if item.key.is_empty() {
            binding["shape"] = json!("object");
            binding["get"] = json!({ "path": path });
        } else {
            let mut path = path.to_owned();
            if let Some(parent) = &item.within {
                path = format!("{path}?{PARENT}={{{PARENT}}}");
                binding["within"] = json!({ "kind": parent, "params": { PARENT: "id" }, "key": [PARENT] });
            }
            binding["shape"] = json!("items");
            binding["key"] = json!(item.key);
            binding["list"] = json!({ "path": path, "id": "id" });
            say(&mut binding, "volatile", !item.lasting_id);
        }
        let shown = fields.iter().map(|field| (field.name.clone(), field.binding.clone()));
        binding["fields"] = Value::Object(shown.collect());
        self.rows.add_kind(id, &area, &item.title, binding)?;
        Ok(area)
    }

    fn written(&self, item: &Item) -> anyhow::Result<Written> {
        let mut apply = item.apply.clone();
        let mut path = |op: &str| {
            let (path, route) = self.facts.path_of(&item.model, op)?;
            if item.apply.is_empty() && apply.is_empty() {
                apply.extend(route.apply.clone());
            }
            Some(path.to_owned())
        };
        let update = if item.key.is_empty() { "settings-write" } else { "update" };
        let (create, update, delete) = (path("create"), path(update), path("delete"));
        ensure!(apply.len() == 1 || !apply.contains(&INLINE.to_owned()), "what is inline needs no call");
        Ok(Written { create, update, delete, apply })
    }

    fn feature(&mut self, id: &str, item: &Item, written: &Written) -> Value {
        let mut binding = json!({ "kind": id });
        let is_inline = written.apply.first().is_some_and(|apply| apply == INLINE);
        let mut with = Map::new();
        if item.within.is_some() {
            with.insert(PARENT.to_owned(), json!(format!("{{{PARENT}}}")));
        }
        if is_inline {
            with.insert("apply".to_owned(), json!(true));
            with.insert("async".to_owned(), json!(false));
        }
        if let Some(path) = &written.create {
            self.routes.write(format!("POST {path}"));
            binding["create"] = json!({ "path": path, "id": { "answer": "/data/id" } });
            say(&mut binding["create"], "with", with.clone());
        }
        if let Some(path) = &written.update {
            self.routes.write(format!("PATCH {path}"));
            binding["update"] = json!({ "method": "PATCH", "path": path, "sends": "changed" });
            let mut with = with.clone();
            if !item.key.is_empty() {
                let id = if item.lasting_id { "{id}" } else { "{id#}" };
                with.insert("id".to_owned(), json!(id));
            }
            say(&mut binding["update"], "with", with);
        }
        if let Some(path) = &written.delete {
            self.routes.write(format!("DELETE {path}"));
            let parent = item.within.as_ref().map(|_| format!("{PARENT}={{{PARENT}}}&")).unwrap_or_default();
            let inline = if is_inline { "&apply=true&async=false" } else { "" };
            binding["delete"] =
                json!({ "method": "DELETE", "path": format!("{path}?{parent}id={{id}}{inline}") });
            say(&mut binding["delete"], "final", item.is_final);
            say(&mut binding["delete"], "named-by", item.named_by.clone());
        }
        if !is_inline {
            let activations = self.activations(&written.apply);
            say(&mut binding, "activate", activations);
        }
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        binding
    }
}

fn operations<'i>(
    item: &'i Item,
    written: &Written,
    (fields, beside): (&[Made], Map<String, Value>),
    key: &[String],
) -> Vec<Operation<'i>> {
    let operation = |word: &'i str, schema: Value, is_invertible: bool| Operation {
        word,
        danger: item.danger.get(word).and_then(Value::as_str).unwrap_or(NORMAL),
        schema,
        time_limit_ms: Some(if item.slow { LONG_TIME_LIMIT_MS } else { TIME_LIMIT_MS }),
        is_invertible,
    };
    let named: Map<String, Value> = key.iter().map(|name| (name.clone(), key_schema(name, fields))).collect();
    let has_unread = fields.iter().any(|field| field.is_unread);
    let mut out = Vec::new();
    if written.create.is_some() {
        let needed = fields.iter().filter(|field| field.is_required && !key.contains(&field.name));
        let required: Vec<String> =
            key.iter().cloned().chain(needed.map(|field| field.name.clone())).collect();
        let mut schema = object(with_key(&named, fields.iter()), &required);
        say(&mut schema, "dependentRequired", beside);
        out.push(operation("create", schema, written.delete.is_some()));
    }
    if written.update.is_some() {
        let changing = fields.iter().filter(|field| !field.is_create_only);
        let schema = object(with_key(&named, changing), key);
        out.push(operation("update", schema, !has_unread));
    }
    if written.delete.is_some() {
        let is_invertible = written.create.is_some() && !item.is_final && !item.lasting_id && !has_unread;
        out.push(operation("delete", object(named.clone(), key), is_invertible));
    }
    out
}

/// What names an object, and fields.
fn with_key<'m>(named: &Map<String, Value>, fields: impl Iterator<Item = &'m Made>) -> Map<String, Value> {
    let mut properties = named.clone();
    for field in fields {
        properties.entry(field.name.clone()).or_insert_with(|| field.schema.clone());
    }
    properties
}

/// What names an object is never empty.
fn key_schema(name: &str, fields: &[Made]) -> Value {
    let Some(field) = fields.iter().find(|field| field.name == name) else {
        return json!({ "type": "string", "minLength": 1, "maxLength": 64 });
    };
    let mut schema = field.schema.clone();
    if let Some(kind) = schema["type"].as_array().and_then(|kinds| kinds.first()).cloned() {
        schema["type"] = kind;
    }
    if let Some(options) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        options.retain(|option| !option.is_null());
    } else if schema["type"] == "string" && schema.get("minLength").is_none() {
        schema["minLength"] = json!(1);
    }
    schema
}
