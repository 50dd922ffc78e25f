//! Lists of objects, and settings, that are written.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{Feature, Operation, noun, say};
use serde_json::{Map, Value, json};

use super::facts::{Leaf, Name};
use super::fields::{payload, secret};
use super::grammar::{Maker, page};
use super::overlay::{Item, Setter};
use super::shown::Field;

impl Maker<'_> {
    pub(super) fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let first = item.list.as_ref().or(item.get.as_ref()).context("it has neither list nor get")?;
        let area = self.facts.route(first)?.area.clone();
        let parent = self.parent(item.within.as_ref())?;
        let fields = self.fields(item)?;
        for name in &item.key {
            ensure!(fields.iter().any(|field| field.name == *name), "its key '{name}' is no field");
        }
        let mut key: Vec<String> = parent.map(|parent| parent.key.clone()).unwrap_or_default();
        key.extend(item.key.iter().cloned());
        ensure!(item.list.is_none() || !item.key.is_empty(), "a list without a key");
        let binding = self.kind(item, &fields)?;
        self.keys.insert(id.to_owned(), key.clone());
        self.rows.add_kind(id, &area, &item.title, binding)?;
        if item.create.is_some() || item.update.is_some() || item.delete.is_some() {
            let feature = self.feature(id, item)?;
            let operations = self.operations(item, &key, &fields);
            self.rows.add_feature(Feature {
                id,
                area: &area,
                title: &item.title,
                kind: Some(id),
                key: &key,
                operations,
                binding: feature,
            })?;
        }
        for (suffix, setter) in &item.setters {
            let binding = self.setter(id, item, setter)?;
            let mut names = self.facts.body(self.facts.route(&setter.route)?, None);
            names.retain(|(name, _)| !setter.omit.contains(name));
            let mut properties = self.key_properties(&key, &fields);
            properties.extend(names.iter().map(|(name, leaf)| (name.clone(), self.schemas.of(name, leaf))));
            self.routes.write(setter.route.clone());
            self.rows.add_feature(Feature {
                id: &format!("{id}-{suffix}"),
                area: &area,
                title: &setter.title,
                kind: Some(id),
                key: &key,
                operations: vec![operation("update", "normal", payload(properties, &key), true)],
                binding,
            })?;
        }
        Ok(())
    }

    /// The binding of another write of single fields.
    fn setter(&self, id: &str, item: &Item, setter: &Setter) -> anyhow::Result<Value> {
        let method = Name::parse(&setter.route)?.method;
        let path = self.path(item, &setter.route)?;
        let mut binding =
            json!({ "kind": id, "update": { "method": method, "path": path, "sends": "changed" } });
        say(&mut binding["update"], "with", setter.with.clone());
        say(&mut binding, "lockout", item.lockout);
        Ok(binding)
    }

    /// The path of a route, in which the item's own parameter is the id.
    fn path(&self, item: &Item, route: &str) -> anyhow::Result<String> {
        self.facts.route(route)?;
        let mut path = Name::parse(route)?.path();
        // A new object has no row yet: its parameters are named as the fields of the payload are.
        for (name, field) in &item.params {
            path = path.replace(&format!("{{{name}}}"), &format!("{{{field}}}"));
        }
        Ok(match &item.param {
            Some(param) => path.replace(&format!("{{{param}}}"), "{id}"),
            None => path,
        })
    }

    fn kind(&mut self, item: &Item, fields: &[Field]) -> anyhow::Result<Value> {
        let has_update = item.update.is_some() || !item.setters.is_empty();
        let by_name: Map<String, Value> =
            fields.iter().map(|field| (field.name.clone(), field.binding(has_update))).collect();
        let mut binding = json!({ "noun": noun(&item.title), "sparse": true });
        if let Some(list) = &item.list {
            let route = self.facts.route(list)?;
            let rows = item.rows.clone().or_else(|| self.facts.rows(route).map(str::to_owned));
            let mut path = Name::parse(list)?.path();
            let parent = self.parent(item.within.as_ref())?;
            let query = super::reads::constants(route, parent, item.list_query.as_deref());
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            binding["shape"] = json!("items");
            binding["list"] = json!({ "path": path, "rows": rows.context("its list has no rows")? });
            binding["list"]["id"] = json!(item.id.as_deref().context("its rows have no id")?);
            say(&mut binding["list"], "page", page(route, &[]));
            say(&mut binding["list"], "only", item.list_only.clone());
            binding["key"] = json!(item.key);
            self.routes.read(list.clone());
        } else {
            binding["shape"] = json!("object");
        }
        if let Some(get) = &item.get {
            let mut path = self.path(item, get)?;
            let parent = self.parent(item.within.as_ref())?;
            let query = super::reads::constants(self.facts.route(get)?, parent, None);
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            binding["get"] = json!({ "path": path });
            say(&mut binding["get"], "item", item.object.clone());
            self.routes.read(get.clone());
        }
        if let Some(parent) = self.parent(item.within.as_ref())? {
            binding["within"] = parent.within();
        }
        if !item.params.is_empty() {
            let own = item.params.values().map(|field| (field.clone(), json!(field)));
            binding["params"] = Value::Object(own.collect());
        }
        binding["fields"] = Value::Object(by_name);
        Ok(binding)
    }

    fn feature(&mut self, id: &str, item: &Item) -> anyhow::Result<Value> {
        let mut binding = json!({ "kind": id });
        if let Some(create) = &item.create {
            let id = match &item.new {
                Some(Value::String(pointer)) => json!({ "answer": pointer }),
                Some(other) => other.clone(),
                None => json!("found"),
            };
            let method = Name::parse(create)?.method;
            let mut call = json!({ "path": self.path(item, create)?, "id": id });
            if method != "POST" {
                call["method"] = json!(method);
            }
            say(&mut call, "with", item.create_with.clone());
            binding["create"] = call;
            self.routes.write(create.clone());
        }
        if let Some(update) = &item.update {
            let mut body = self.facts.body(self.facts.route(update)?, item.root.as_deref());
            body.retain(|(name, _)| !item.omit.contains(name));
            let is_whole = self.sends_whole(item, &body, self.shown(item)?.as_deref());
            let sends = if is_whole { "whole" } else { "changed" };
            let method = Name::parse(update)?.method;
            let mut call = json!({ "method": method, "path": self.path(item, update)?, "sends": sends });
            say(&mut call, "with", item.update_with.clone());
            binding["update"] = call;
            self.routes.write(update.clone());
        }
        if let Some(delete) = &item.delete {
            let method = Name::parse(delete)?.method;
            let mut call = json!({ "method": method, "path": self.path(item, delete)? });
            say(&mut call, "with", item.delete_with.clone());
            say(&mut call, "final", item.is_final || item.create.is_none());
            binding["delete"] = call;
            self.routes.write(delete.clone());
        }
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        Ok(binding)
    }

    /// The fields by which an object is named, with those of its parents.
    fn key_properties(&self, key: &[String], fields: &[Field]) -> Vec<(String, Value)> {
        let schema = |name: &String| match fields.iter().find(|field| field.name == *name) {
            Some(field) => self.schemas.of(name, &Leaf { values: Vec::new(), ..field.leaf.clone() }),
            None => json!({ "type": ["string", "integer"] }),
        };
        key.iter().map(|name| (name.clone(), schema(name))).collect()
    }

    fn operations<'i>(&self, item: &'i Item, key: &[String], fields: &[Field]) -> Vec<Operation<'i>> {
        let danger = |word: &str| item.danger.get(word).and_then(Value::as_str).unwrap_or("normal");
        // A field of the key may be empty where a create does not need it.
        let is_needed = |name: &&String| {
            let field = fields.iter().find(|field| field.name == **name);
            let is_optional = field.is_some_and(|field| field.in_create == Some(false));
            item.key.first() == Some(*name) || !is_optional
        };
        let needed: Vec<String> = key.iter().filter(is_needed).cloned().collect();
        let schema = |is_meant: &dyn Fn(&Field) -> bool, is_required: &dyn Fn(&Field) -> bool| {
            let mut properties = self.key_properties(key, fields);
            let mut required = needed.clone();
            for field in fields.iter().filter(|field| is_meant(field)) {
                let own = if field.is_secret { secret() } else { self.schemas.of(&field.name, &field.leaf) };
                match properties.iter_mut().find(|(name, _)| *name == field.name) {
                    Some((_, schema)) => *schema = own,
                    None => properties.push((field.name.clone(), own)),
                }
                if is_required(field) && !required.contains(&field.name) {
                    required.push(field.name.clone());
                }
            }
            payload(properties, &required)
        };
        let mut out = Vec::new();
        if item.create.is_some() {
            let chosen = item.new.as_ref().and_then(|new| new.get("field")?.as_str());
            let is_required =
                |field: &Field| field.in_create == Some(true) || chosen == Some(field.name.as_str());
            let create = schema(&|field| field.in_create.is_some(), &is_required);
            out.push(operation("create", danger("create"), create, item.delete.is_some()));
        }
        if item.update.is_some() {
            let is_meant = |field: &Field| field.in_update.is_some();
            // What is replaced as a whole and cannot be read has to be said each time.
            let is_replaced = item.keeps == Some(false);
            let is_required = |field: &Field| {
                field.is_unread && (field.in_update == Some(true) || is_replaced && field.in_update.is_some())
            };
            let update = schema(&is_meant, &is_required);
            out.push(operation("update", danger("update"), update, true));
        }
        if item.delete.is_some() {
            let is_lost = item.is_final
                || item.create.is_none()
                || fields.iter().any(|field| field.is_unread || field.is_secret);
            let delete = payload(self.key_properties(key, fields), &needed);
            out.push(operation("delete", danger("delete"), delete, !is_lost));
        }
        out
    }
}

pub(super) fn operation<'a>(
    word: &'a str,
    danger: &'a str,
    schema: Value,
    is_invertible: bool,
) -> Operation<'a> {
    Operation { word, danger, schema, time_limit_ms: None, is_invertible }
}
