//! Lists of objects, and settings, that are written.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{Access, Feature, Operation, noun, say};
use serde_json::{Map, Value, json};

use super::facts::{Api, Body, Name};
use super::fields::{self, Field, Known, Written, fits, keeps, properties};
use super::grammar::{Maker, TIME_LIMIT_MS, listed, with_query};
use super::overlay::{Item, Part};

const NORMAL: &str = "normal";

impl Maker<'_> {
    pub(super) fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let api = api(item)?;
        let body = match &item.kind {
            Some(kind) => {
                self.shapes.get(kind).with_context(|| format!("there is no item '{kind}'"))?.clone()
            }
            None => self.body_of(item)?,
        };
        let mut key: Vec<String> = match (&item.kind, self.parent(item.within.as_ref())?) {
            (Some(kind), _) => self.keys[kind].clone(),
            (None, Some(parent)) => parent.key.clone(),
            (None, None) => Vec::new(),
        };
        key.extend(item.key.iter().cloned());
        let known = Known { secrets: &self.secrets, absent: &self.overlay.absent };
        let fields = fields::all(item, &body, known, keeps(api));
        if item.kind.is_none() {
            self.kind(id, item, &fields)?;
            self.keys.insert(id.to_owned(), key.clone());
            self.shapes.insert(id.to_owned(), body.clone());
        }
        if item.per.is_some() {
            self.of_controller.extend([("kinds", id.to_owned()), ("features", id.to_owned())]);
        }
        if item.create.is_none() && item.update.is_none() && item.delete.is_none() {
            return Ok(());
        }
        let kind = item.kind.as_deref().unwrap_or(id);
        let binding = self.feature(kind, item, api)?;
        let is_offered = |field: &&Field| {
            (item.offers.is_empty() || fits(&item.offers, &field.name)) && !fits(&item.withholds, &field.name)
        };
        let offered: Vec<&Field> = fields.iter().filter(is_offered).collect();
        let operations = match &item.part {
            Some(part) => vec![self.of_part(item, part, &body, &mut key)?],
            None => operations(item, &key, &fields, &offered),
        };
        let (title, area) = (&item.title, &item.area);
        self.rows.add_feature(Feature { id, area, title, kind: Some(kind), key: &key, operations, binding })
    }

    /// What an object is written with: by its update, or else by its create.
    fn body_of(&self, item: &Item) -> anyhow::Result<Body> {
        let mut out = Body::default();
        for route in [&item.create, &item.update].into_iter().flatten() {
            let body = self.body(route)?;
            for (name, schema) in body.properties {
                if name != "_id" {
                    out.properties.entry(name).or_insert(schema);
                }
            }
            if item.create.as_ref() == Some(route) {
                out.required = body.required;
            }
        }
        Ok(out)
    }

    fn kind(&mut self, id: &str, item: &Item, fields: &[Field]) -> anyhow::Result<()> {
        let mut binding = json!({ "noun": noun(&item.title), "sparse": true });
        if let Some(list) = &item.list {
            let name = Name::parse(list)?;
            binding["shape"] = json!("items");
            binding["list"] = listed(&name, name.path);
            binding["list"]["id"] = json!(item.row.as_deref().unwrap_or(match name.api() {
                Api::Official => "id",
                Api::First | Api::Second => "_id",
            }));
            say(&mut binding["list"], "only", item.list_only.clone());
            say(&mut binding["list"], "fixed", item.fixed.clone());
            binding["key"] = json!(item.key);
            ensure!(!item.key.is_empty(), "a list without a key");
            self.route(list)?;
            self.claim(list, Access::Read);
        } else {
            binding["shape"] = json!("object");
        }
        if let Some(get) = &item.get {
            let path = self.path(item, "get", get)?;
            binding["get"] = json!({ "path": path });
            if Name::parse(get)?.api() == Api::First {
                binding["get"]["item"] = json!("/data/0");
            }
            self.claim(get, Access::Read);
        }
        if let Some(parent) = self.parent(item.within.as_ref())? {
            binding["within"] = parent.within();
        }
        say(&mut binding, "params", json!(item.params));
        let shown = fields.iter().map(|field| (field.name.clone(), field.binding.clone()));
        binding["fields"] = Value::Object(shown.collect());
        self.rows.add_kind(id, &item.area, &item.title, binding)
    }

    /// The path of a call, in which the last parameter of the route is the id.
    fn path(&self, item: &Item, word: &str, route: &str) -> anyhow::Result<String> {
        self.route(route)?;
        let name = Name::parse(route)?;
        let mut path = item.paths.get(word).map_or(name.path, String::as_str).to_owned();
        if item.list.is_some() && path.ends_with('}') {
            let at = path.rfind('{').context("a parameter begins with a brace")?;
            path.replace_range(at.., "{id}");
        }
        Ok(with_query(&path, item.query.get(word)))
    }

    fn feature(&mut self, kind: &str, item: &Item, api: Api) -> anyhow::Result<Value> {
        let mut binding = json!({ "kind": kind });
        if let Some(create) = &item.create {
            let pointer = item.new.as_deref().unwrap_or(match api {
                Api::Official => "/id",
                Api::First => "/data/0/_id",
                Api::Second => "/_id",
            });
            let path = self.path(item, "create", create)?;
            binding["create"] = json!({ "path": path, "id": { "answer": pointer } });
            say(&mut binding["create"], "with", item.create_with.clone());
            self.claim(create, Access::Write);
        }
        if let Some(update) = &item.update {
            let sends = if keeps(api) { "changed" } else { "whole" };
            let (method, path) = (Name::parse(update)?.method, self.path(item, "update", update)?);
            binding["update"] = json!({ "method": method, "path": path, "sends": sends });
            let mut with = item.update_with.clone();
            if item.list.is_some() && api != Api::Official && with.is_empty() {
                with.insert("_id".to_owned(), json!("{id}"));
            }
            if let Some(key) = update.split_once("/set/setting/").map(|(_, key)| key) {
                with.insert("key".to_owned(), json!(key));
            }
            say(&mut binding["update"], "with", with);
            self.claim(update, Access::Write);
        }
        if let Some(delete) = &item.delete {
            let (method, path) = (Name::parse(delete)?.method, self.path(item, "delete", delete)?);
            binding["delete"] = json!({ "method": method, "path": path });
            say(&mut binding["delete"], "with", item.delete_with.clone());
            say(&mut binding["delete"], "final", item.is_final || item.create.is_none());
            self.claim(delete, Access::Write);
        }
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        say(&mut binding, "danger-if", item.danger_if.clone());
        Ok(binding)
    }

    /// The update of an element of a list, which the adapter writes into the whole list.
    fn of_part<'i>(
        &self,
        item: &'i Item,
        part: &Part,
        body: &Body,
        key: &mut Vec<String>,
    ) -> anyhow::Result<Operation<'i>> {
        let list = body.properties.get(&part.list).with_context(|| format!("no list '{}'", part.list))?;
        let element = list.pointer("/items/properties").and_then(Value::as_object);
        let element = element.context("its elements are not described")?;
        let mut named: Map<String, Value> = key.iter().map(|name| (name.clone(), name_schema())).collect();
        key.push(part.by.clone());
        for (name, schema) in element {
            let mut schema = self.secrets.marked(name, schema, &[]);
            if *name != part.by && schema["type"].is_string() {
                schema = heddle_adapter_kit::schema::nullable(schema);
            }
            named.insert(name.clone(), schema);
        }
        ensure!(named.contains_key(&part.by), "its elements have no '{}'", part.by);
        Ok(operation(item, "update", object(named, key), true))
    }
}

fn operation<'i>(item: &'i Item, word: &'i str, schema: Value, is_invertible: bool) -> Operation<'i> {
    let danger = item.danger.get(word).and_then(Value::as_str).unwrap_or(NORMAL);
    Operation { word, danger, schema, time_limit_ms: Some(TIME_LIMIT_MS), is_invertible }
}

fn operations<'i>(
    item: &'i Item,
    key: &[String],
    fields: &[Field],
    offered: &[&Field],
) -> Vec<Operation<'i>> {
    let own = |name: &String| match fields.iter().find(|field| field.name == *name) {
        Some(field) if field.written != Written::Never => field.schema.clone(),
        _ => name_schema(),
    };
    let named: Map<String, Value> = key.iter().map(|name| (name.clone(), own(name))).collect();
    let with_key = |fields: Map<String, Value>| {
        let mut all = fields;
        all.extend(named.clone());
        object(all, key)
    };
    let written = |field: &&&Field| field.written != Written::Never;
    let mut out = Vec::new();
    if item.create.is_some() {
        let mut all = properties(offered.iter().filter(written).copied());
        let needed = offered.iter().filter(|field| field.is_required && !key.contains(&field.name));
        let required: Vec<String> =
            key.iter().cloned().chain(needed.map(|field| field.name.clone())).collect();
        all.extend(named.clone());
        out.push(operation(item, "create", object(all, &required), item.delete.is_some() && !item.is_final));
    }
    if item.update.is_some() {
        let changing = offered.iter().filter(|field| field.written == Written::Always);
        out.push(operation(item, "update", with_key(properties(changing.copied())), true));
    }
    if item.delete.is_some() {
        let is_lost = item.is_final || item.create.is_none() || fields.iter().any(|field| field.is_secret);
        out.push(operation(item, "delete", with_key(Map::new()), !is_lost));
    }
    out
}

/// The schema of what names an object and is written by nothing.
fn name_schema() -> Value {
    json!({ "type": ["string", "integer"] })
}

/// The interface that an item belongs to.
fn api(item: &Item) -> anyhow::Result<Api> {
    let first = item.list.as_ref().or(item.get.as_ref()).or(item.update.as_ref());
    Ok(Name::parse(first.context("it has no route")?)?.api())
}
