//! Items and settings: what is read by get and written by set.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{noun, say};
use serde_json::{Map, Value, json};

use super::fields::{self, Field, payload_name};
use super::grammar::{Maker, grid, operation};
use super::overlay::{Command, FieldFacts, Item};
use super::routes::plain;

const DANGERS: [&str; 3] = ["normal", "destructive", "catastrophic"];

impl<'f> Maker<'f> {
    /// A command of the item's controller, or of another one that it names.
    fn command(&self, item: &Item, name: &str) -> anyhow::Result<(String, &'f Command)> {
        let (controller, command) = name.rsplit_once('/').unwrap_or((item.controller.as_str(), name));
        let found = self.facts.controllers.get(controller).and_then(|found| found.commands.get(command));
        let found = found.with_context(|| format!("there is no route {controller}/{command}"))?;
        Ok((format!("/api/{controller}/{command}"), found))
    }

    pub(super) fn fields_key(&self, item: &Item) -> Option<&'f str> {
        self.command(item, &item.update).ok()?.1.fields.as_deref()
    }

    fn fields_of(&self, item: &Item) -> anyhow::Result<&'f [FieldFacts]> {
        match self.fields_key(item) {
            Some(key) => Ok(self.facts.fields.get(key).context("its fields are unknown")?),
            None if item.fields.extra.is_empty() => anyhow::bail!("the facts do not say which fields it has"),
            None => Ok(&[]),
        }
    }

    pub(super) fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let facts = self.fields_of(item)?;
        let area = self.facts.controllers[&item.controller].area.clone();
        let fields = fields::all(facts, &item.fields, &item.key, &self.kinds_by_list);
        let names: BTreeSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        ensure!(names.len() == fields.len(), "two fields have one name in payloads");
        let key: Vec<String> = item.key.iter().map(|name| payload_name(name)).collect();
        let is_known = |name: &String| item.any_id || names.contains(name.as_str());
        ensure!(key.iter().all(is_known), "its key {key:?} is no field");
        let kind = self.item_kind(item, &key, &fields)?;
        self.rows.add_kind(id, &area, &item.title, kind)?;
        let has_update =
            fields.iter().any(|field| !key.contains(&field.name) && !field.is_create_only && !field.is_shown);
        let feature = self.item_feature(id, item, &fields, has_update)?;
        let mut described = json!({ "area": area, "title": item.title, "kind": id });
        say(&mut described, "natural-key", key.clone());
        described["operations"] = json!(operations(item, &key, &fields, has_update));
        described["binding"] = feature;
        self.add_feature(id, described)
    }

    fn item_kind(&mut self, item: &Item, key: &[String], fields: &[Field]) -> anyhow::Result<Value> {
        let by_name: Map<String, Value> =
            fields.iter().map(|field| (field.name.clone(), field.binding.clone())).collect();
        let mut binding = json!({ "noun": noun(&item.title), "shape": "object" });
        if let Some(list) = &item.list {
            let (path, command) = self.command(item, list)?;
            self.routes.read(plain(&path));
            binding["shape"] = json!("items");
            binding["list"] = grid(&path);
            if command.live || item.live {
                binding["list"]["method"] = json!("POST");
            } else {
                ensure!(command.get, "{path} is not listed by GET");
            }
            binding["list"]["id"] = json!(item.id);
            if !item.any_id {
                binding["list"]["writable"] = json!("uuid");
            }
            binding["key"] = json!(key);
        }
        if let Some(get) = &item.get {
            let (path, get) = self.command(item, get)?;
            self.routes.read(plain(&path));
            let root = get.root.as_deref().or(self.command(item, &item.update)?.1.root.as_deref());
            let object = match (&item.pointer, root) {
                (Some(pointer), _) => pointer.clone(),
                (None, Some(root)) => format!("/{root}"),
                (None, None) => anyhow::bail!("the facts do not say under which key it is read"),
            };
            binding["get"] = json!({ "path": path, "item": object });
            if item.list.is_some() {
                binding["get"]["path"] = json!(format!("{path}/{{id}}"));
                if get.needed == 0 {
                    binding["get"]["template"] = json!(path);
                }
            }
        }
        say(&mut binding, "params", item.params.clone());
        binding["fields"] = Value::Object(by_name);
        Ok(binding)
    }

    fn item_feature(
        &mut self,
        id: &str,
        item: &Item,
        fields: &[Field],
        has_update: bool,
    ) -> anyhow::Result<Value> {
        let (update_path, update) = self.command(item, &item.update)?;
        let root = item.root.as_deref().or(update.root.as_deref());
        let root = root.context("the facts do not say under which key it is written")?;
        let rooted = |mut write: Value, with: &Map<String, Value>| {
            say(&mut write, "root", root);
            say(&mut write, "with", with.clone());
            write
        };
        let mut binding = json!({ "kind": id });
        if has_update || item.new_id.is_none() {
            self.routes.write(plain(&update_path));
        }
        let set_path =
            if item.list.is_some() { format!("{update_path}/{{id}}") } else { update_path.clone() };
        if let Some(create) = &item.create {
            let path = self.command(item, create)?.0;
            // A set with an id of its own makes the item: then the way back is known before anything is sent.
            let (call, new_id) = if let Some(new_id) = &item.new_id {
                self.routes.write(plain(&path));
                (path, new_id.clone())
            } else {
                self.routes.same(plain(&path), "create: the update makes an item under an id of its own");
                (set_path.clone(), json!("chosen"))
            };
            binding["create"] = rooted(json!({ "path": call, "id": new_id }), &item.create_with);
        }
        if has_update {
            let write = json!({ "path": set_path, "sends": "changed" });
            binding["update"] = rooted(write, &Map::new());
        }
        self.delete_of(item, &mut binding)?;
        if let Some(toggle) = &item.toggle {
            let path = self.command(item, toggle)?.0;
            self.routes.same(plain(&path), "switch: an update of the field does it, and says to which state");
        }
        if let Some(apply) = item.apply.as_ref().or(update.apply.as_ref()) {
            binding["activate"] = json!([self.activation(apply)]);
            self.routes.write(plain(apply));
        }
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        say(&mut binding, "danger-if", switched_off(item, fields));
        Ok(binding)
    }

    fn delete_of(&mut self, item: &Item, binding: &mut Value) -> anyhow::Result<()> {
        let Some(delete) = &item.delete else { return Ok(()) };
        let path = self.command(item, delete)?.0;
        self.routes.write(plain(&path));
        binding["delete"] = json!({ "method": "POST", "path": format!("{path}/{{id}}") });
        if !item.takes.is_empty() {
            let takes = item.takes.iter().map(|takes| json!({ "kind": takes.item, "field": takes.field }));
            binding["delete"]["takes"] = json!(takes.collect::<Vec<_>>());
        }
        say(&mut binding["delete"], "final", item.is_final);
        Ok(())
    }
}

/// To switch an item off does what a delete does.
fn switched_off(item: &Item, fields: &[Field]) -> Option<Value> {
    let rank = |word: &str| {
        let danger = item.danger.get(word).and_then(Value::as_str).unwrap_or(DANGERS[0]);
        DANGERS.iter().position(|known| *known == danger).unwrap_or_default()
    };
    if item.delete.is_none() || rank("delete") <= rank("update") {
        return None;
    }
    let switch =
        |name: &str| fields.iter().any(|field| field.name == name && field.schema["type"] == "boolean");
    let (field, off) = match (switch("enabled"), switch("disabled")) {
        (true, _) => ("enabled", false),
        (_, true) => ("disabled", true),
        _ => return None,
    };
    Some(json!([{ "field": field, "is": off, "danger": item.danger["delete"] }]))
}

fn operations(item: &Item, key: &[String], fields: &[Field], has_update: bool) -> Vec<Value> {
    let danger = |word: &str| item.danger.get(word).and_then(Value::as_str).unwrap_or(DANGERS[0]);
    let needed_key: Vec<&String> = key
        .iter()
        .enumerate()
        .filter(|(at, name)| {
            let field = fields.iter().find(|field| field.name == **name);
            *at == 0 || field.is_some_and(|field| !field.is_optional_in_key)
        })
        .map(|(_, name)| name)
        .collect();
    let schema = |is_meant: &dyn Fn(&Field) -> bool, required: &[&String]| {
        let named = fields.iter().filter(|field| is_meant(field) && !field.is_shown);
        let mut properties: Map<String, Value> =
            named.map(|field| (field.name.clone(), field.schema.clone())).collect();
        for name in key.iter().filter(|name| !fields.iter().any(|field| field.name == **name)) {
            properties.insert(name.clone(), fields::plain_text());
        }
        object(properties, required)
    };
    let mut out = Vec::new();
    if item.create.is_some() {
        let mut required = needed_key.clone();
        let others = fields
            .iter()
            .filter(|field| (field.is_required || field.new_is.is_some()) && !key.contains(&field.name));
        required.extend(others.map(|field| &field.name));
        let mut schema = schema(&|_| true, &required);
        for field in fields.iter().filter(|field| field.new_is.is_some()) {
            schema["properties"][field.name.as_str()] = json!(field.new_is);
        }
        out.push(operation("create", danger("create"), schema, item.delete.is_some()));
    }
    if has_update {
        let schema = schema(&|field| !field.is_create_only, &needed_key);
        out.push(operation("update", danger("update"), schema, true));
    }
    if item.delete.is_some() {
        let is_lost = item.is_final || fields.iter().any(|field| field.is_unread);
        let schema = schema(&|field| key.contains(&field.name), &needed_key);
        out.push(operation("delete", danger("delete"), schema, !is_lost && item.create.is_some()));
    }
    out
}
