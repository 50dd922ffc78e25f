//! Lists of objects, and settings, that are written.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::noun;
use serde_json::{Map, Value, json};

use super::facts::{Leaf, Name};
use super::fields::{payload, secret};
use super::grammar::{Maker, PREFIX, page, within};
use super::overlay::Item;
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
        self.add_kind(id, &area, &item.title, binding);
        if item.create.is_some() || item.update.is_some() || item.delete.is_some() {
            let feature = self.feature(id, item)?;
            let operations = self.operations(item, &key, &fields);
            self.add_feature(id, &area, &item.title, Some(id), &key, operations, feature);
        }
        for (suffix, setter) in &item.setters {
            let route = self.facts.route(&setter.route)?;
            let mut names = self.facts.body(route, None);
            names.retain(|(name, _)| !setter.omit.contains(name));
            let mut binding = json!({
                "kind": id,
                "update": {
                    "method": Name::parse(&setter.route)?.method, "path": self.path(item, &setter.route)?,
                    "sends": "changed",
                },
            });
            if !setter.with.is_empty() {
                binding["update"]["with"] = Value::Object(setter.with.clone());
            }
            if item.lockout {
                binding["lockout"] = json!(true);
            }
            let mut properties = self.key_properties(&key, &fields);
            properties.extend(names.iter().map(|(name, leaf)| (name.clone(), self.schemas.of(name, leaf))));
            let update = operation("update", &json!("normal"), payload(properties, &key), true);
            self.routes.used.insert(setter.route.clone());
            let name = format!("{id}-{suffix}");
            self.add_feature(&name, &area, &setter.title, Some(id), &key, vec![update], binding);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a feature, each named once")]
    pub(super) fn add_feature(
        &mut self,
        id: &str,
        area: &str,
        title: &str,
        kind: Option<&str>,
        key: &[String],
        operations: Vec<Value>,
        binding: Value,
    ) {
        let mut feature = json!({ "id": format!("{PREFIX}.{id}"), "area": area, "title": title });
        if let Some(kind) = kind {
            feature["kind"] = json!(kind);
        }
        if !key.is_empty() {
            feature["natural-key"] = json!(key);
        }
        feature["operations"] = json!(operations);
        feature["binding"] = binding;
        self.features.push(feature);
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
            if let Some(page) = page(route, &[]) {
                binding["list"]["page"] = page;
            }
            if !item.list_only.is_empty() {
                binding["list"]["only"] = Value::Object(item.list_only.clone());
            }
            binding["key"] = json!(item.key);
            self.routes.used.insert(list.clone());
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
            if let Some(pointer) = &item.object {
                binding["get"]["item"] = json!(pointer);
            }
            self.routes.used.insert(get.clone());
        }
        if let Some(parent) = self.parent(item.within.as_ref())? {
            binding["within"] = within(parent);
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
        let with = |call: &mut Value, with: &Map<String, Value>| {
            if !with.is_empty() {
                call["with"] = Value::Object(with.clone());
            }
        };
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
            with(&mut call, &item.create_with);
            binding["create"] = call;
            self.routes.used.insert(create.clone());
        }
        if let Some(update) = &item.update {
            let mut body = self.facts.body(self.facts.route(update)?, item.root.as_deref());
            body.retain(|(name, _)| !item.omit.contains(name));
            let is_whole = self.sends_whole(item, &body, self.shown(item)?.as_deref());
            let sends = if is_whole { "whole" } else { "changed" };
            let method = Name::parse(update)?.method;
            let mut call = json!({ "method": method, "path": self.path(item, update)?, "sends": sends });
            with(&mut call, &item.update_with);
            binding["update"] = call;
            self.routes.used.insert(update.clone());
        }
        if let Some(delete) = &item.delete {
            let method = Name::parse(delete)?.method;
            let mut call = json!({ "method": method, "path": self.path(item, delete)? });
            with(&mut call, &item.delete_with);
            if item.is_final || item.create.is_none() {
                call["final"] = json!(true);
            }
            binding["delete"] = call;
            self.routes.used.insert(delete.clone());
        }
        if item.lockout {
            binding["lockout"] = json!(true);
        }
        if !item.danger.is_empty() {
            binding["danger"] = Value::Object(item.danger.clone());
        }
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

    fn operations(&self, item: &Item, key: &[String], fields: &[Field]) -> Vec<Value> {
        let danger = |word: &str| item.danger.get(word).cloned().unwrap_or_else(|| json!("normal"));
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
            out.push(operation("create", &danger("create"), create, item.delete.is_some()));
        }
        if item.update.is_some() {
            let is_meant = |field: &Field| field.in_update.is_some();
            // What is replaced as a whole and cannot be read has to be said each time.
            let is_replaced = item.keeps == Some(false);
            let is_required = |field: &Field| {
                field.is_unread && (field.in_update == Some(true) || is_replaced && field.in_update.is_some())
            };
            let update = schema(&is_meant, &is_required);
            out.push(operation("update", &danger("update"), update, true));
        }
        if item.delete.is_some() {
            let is_lost = item.is_final
                || item.create.is_none()
                || fields.iter().any(|field| field.is_unread || field.is_secret);
            let delete = payload(self.key_properties(key, fields), &needed);
            out.push(operation("delete", &danger("delete"), delete, !is_lost));
        }
        out
    }
}

pub(super) fn operation(word: &str, danger: &Value, schema: Value, invertible: bool) -> Value {
    json!({ "operation": word, "danger": danger, "payload-schema": schema, "invertible": invertible })
}
