//! The grammar of `OPNsense`: lists of items with search, get, set and delete, settings with get and set, and calls that
//! apply what was saved.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{Access, Coverage, Made, State, noun, parsed};
use serde_json::{Map, Value, json};

use super::fields::{self, Field, payload_name};
use super::overlay::{Command, Facts, FieldFacts, Item, Overlay, Read};

/// Operations that only read.
const READS: [&str; 3] = ["list", "read", "download"];
const PREFIX: &str = "opnsense";
/// Rows that one request asks for.
const PAGE_ROWS_MAX: u32 = 1000;
/// An apply may take tens of seconds.
const TIME_LIMIT_MS: u32 = 120_000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let mut maker = Maker {
        facts,
        overlay,
        kinds_by_list: BTreeMap::new(),
        kinds: Vec::new(),
        features: Vec::new(),
        routes: Routes::default(),
    };
    let items = parsed::<Item>(&overlay.items)?;
    let settings = parsed::<Item>(&overlay.settings)?;
    for (id, item) in &items {
        if let Some(list) = maker.fields_key(item) {
            let known = (id.clone(), noun(&item.title));
            maker.kinds_by_list.entry(list.to_lowercase()).or_insert(known);
        }
    }
    for (id, item) in items.iter().chain(&settings) {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    for left in &overlay.left_out {
        ensure!(!left.why.is_empty(), "routes are left out without a reason: {:?}", left.routes);
        maker.routes.left_out.extend(left.routes.iter().map(|route| plain_path(route)));
    }
    let used: BTreeSet<&str> = maker.kinds.iter().filter_map(|kind| kind["area"].as_str()).collect();
    let areas: Vec<Value> = overlay
        .areas
        .iter()
        .filter(|(id, _)| used.contains(id.as_str()))
        .map(|(id, title)| json!({ "id": id, "title": title }))
        .collect();
    Ok(Made {
        coverage: maker.routes.coverage(facts, &overlay.areas),
        description: json!({ "areas": areas, "kinds": maker.kinds, "features": maker.features }),
    })
}

/// Routes that something is made of, or that are left out.
#[derive(Default)]
struct Routes {
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
    left_out: BTreeSet<String>,
}

impl Routes {
    fn read(&mut self, path: &str) {
        self.reads.insert(path.to_owned());
    }

    fn write(&mut self, path: &str) {
        self.writes.insert(path.to_owned());
    }

    fn coverage(&self, facts: &Facts, areas: &Map<String, Value>) -> Coverage {
        let mut coverage = Coverage::default();
        for area in areas.keys() {
            for (path, controller) in facts.controllers.iter().filter(|(_, found)| found.area == *area) {
                for (name, command) in &controller.commands {
                    let route = format!("/api/{path}/{name}");
                    let is_read = READS.contains(&command.op.as_str());
                    let (access, used) =
                        if is_read { (Access::Read, &self.reads) } else { (Access::Write, &self.writes) };
                    let state = match () {
                        () if used.contains(&route) => State::Covered,
                        () if self.left_out.contains(&route) => State::LeftOut,
                        () => State::Open,
                    };
                    coverage.add(area, access, state);
                }
            }
        }
        coverage
    }
}

/// A route's path without its values.
fn plain_path(route: &str) -> String {
    route.split('/').take(5).collect::<Vec<_>>().join("/").split('[').next().unwrap_or_default().to_owned()
}

struct Maker<'f> {
    facts: &'f Facts,
    overlay: &'f Overlay,
    /// Kind and noun by the list of items, in lower case.
    kinds_by_list: BTreeMap<String, (String, String)>,
    kinds: Vec<Value>,
    features: Vec<Value>,
    routes: Routes,
}

impl<'f> Maker<'f> {
    /// A command of the item's controller, or of another one that it names.
    fn command(&self, item: &Item, name: &str) -> anyhow::Result<(String, &'f Command)> {
        let (controller, command) = name.rsplit_once('/').unwrap_or((item.controller.as_str(), name));
        let found = self.facts.controllers.get(controller).and_then(|found| found.commands.get(command));
        let found = found.with_context(|| format!("there is no route {controller}/{command}"))?;
        Ok((format!("/api/{controller}/{command}"), found))
    }

    fn fields_key(&self, item: &Item) -> Option<&'f str> {
        self.command(item, &item.update).ok()?.1.fields.as_deref()
    }

    fn fields_of(&self, item: &Item) -> anyhow::Result<&'f [FieldFacts]> {
        let key = self.fields_key(item).context("the facts do not say which fields it has")?;
        Ok(self.facts.fields.get(key).context("its fields are unknown")?)
    }

    fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let facts = self.fields_of(item)?;
        let area = self.facts.controllers[&item.controller].area.clone();
        let fields = fields::all(facts, &item.fields, &item.key, &self.kinds_by_list);
        let names: BTreeSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        ensure!(names.len() == fields.len(), "two fields have one name in payloads");
        let key: Vec<String> = item.key.iter().map(|name| payload_name(name)).collect();
        for name in &key {
            ensure!(names.contains(name.as_str()), "its key '{name}' is no field");
        }
        let kind = self.kind(item, &key, &fields)?;
        if !item.read_only.is_empty() {
            self.kinds.push(json!({ "id": id, "area": area, "title": item.title, "binding": kind }));
            return self.leave_writes_out(item);
        }
        let is_all_key = fields.iter().all(|field| key.contains(&field.name));
        let feature = self.feature(id, item, !is_all_key)?;
        self.kinds.push(json!({ "id": id, "area": area, "title": item.title, "binding": kind }));
        let operations = operations(item, &key, &fields);
        let mut described = json!({
            "id": format!("{PREFIX}.{id}"), "area": area, "title": item.title, "kind": id,
        });
        if !key.is_empty() {
            described["natural-key"] = json!(key);
        }
        described["operations"] = json!(operations);
        described["binding"] = feature;
        self.features.push(described);
        Ok(())
    }

    fn leave_writes_out(&mut self, item: &Item) -> anyhow::Result<()> {
        let others = [&item.create, &item.delete, &item.toggle];
        for name in others.into_iter().flatten().chain([&item.update]) {
            let path = self.command(item, name)?.0;
            self.routes.left_out.insert(path);
        }
        Ok(())
    }

    fn kind(&mut self, item: &Item, key: &[String], fields: &[Field]) -> anyhow::Result<Value> {
        let by_name: Map<String, Value> =
            fields.iter().map(|field| (field.name.clone(), field.binding.clone())).collect();
        let (get_path, get) = self.command(item, &item.get)?;
        let root = get.root.as_deref().or(self.command(item, &item.update)?.1.root.as_deref());
        let object = format!("/{}", root.context("the facts do not say under which key it is read")?);
        self.routes.read(&get_path);
        let mut binding = json!({ "noun": noun(&item.title) });
        if let Some(list) = &item.list {
            let (path, command) = self.command(item, list)?;
            self.routes.read(&path);
            ensure!(command.get, "{path} is not listed by GET");
            binding["shape"] = json!("items");
            binding["list"] = list_of(&path, true);
            binding["get"] =
                json!({ "path": format!("{get_path}/{{id}}"), "item": object, "template": get_path });
            binding["key"] = json!(key);
        } else {
            binding["shape"] = json!("object");
            binding["get"] = json!({ "path": get_path, "item": object });
        }
        binding["fields"] = Value::Object(by_name);
        Ok(binding)
    }

    fn feature(&mut self, id: &str, item: &Item, has_update: bool) -> anyhow::Result<Value> {
        let (update_path, update) = self.command(item, &item.update)?;
        let root = update.root.as_deref().context("the facts do not say under which key it is written")?;
        let mut binding = json!({ "kind": id });
        self.routes.write(&update_path);
        let set_path =
            if item.list.is_some() { format!("{update_path}/{{id}}") } else { update_path.clone() };
        if let Some(create) = item.create.as_ref().filter(|_| !item.answers_id) {
            // A set with an id of its own makes the item: then the way back is known before anything is sent.
            self.routes.write(&self.command(item, create)?.0);
            binding["create"] = json!({ "path": set_path, "root": root, "id": "chosen" });
        }
        if has_update {
            binding["update"] = json!({ "path": set_path, "root": root, "sends": "changed" });
        }
        if let Some(delete) = &item.delete {
            let path = self.command(item, delete)?.0;
            self.routes.write(&path);
            binding["delete"] = json!({ "path": format!("{path}/{{id}}") });
            if !item.takes.is_empty() {
                let takes =
                    item.takes.iter().map(|takes| json!({ "kind": takes.item, "field": takes.field }));
                binding["delete"]["takes"] = json!(takes.collect::<Vec<_>>());
            }
            if item.is_final {
                binding["delete"]["final"] = json!(true);
            }
        }
        if let Some(toggle) = &item.toggle {
            // An update of the field does the same, and says to which state.
            self.routes.write(&self.command(item, toggle)?.0);
        }
        if let Some(apply) = item.apply.as_ref().or(update.apply.as_ref()) {
            let mut activation = json!({ "path": apply });
            let reach = self.overlay.reach.iter().find(|(begin, _)| apply[5..].starts_with(begin.as_str()));
            if let Some((_, reach)) = reach {
                activation["reach"] = reach.clone();
            }
            binding["activate"] = json!([activation]);
            self.routes.write(apply);
        }
        if item.lockout {
            binding["lockout"] = json!(true);
        }
        if !item.danger.is_empty() {
            binding["danger"] = Value::Object(item.danger.clone());
        }
        Ok(binding)
    }

    fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        let (controller, command) = read.route.rsplit_once('/').context("its route has no command")?;
        let owner = self.facts.controllers.get(controller).context("its controller is unknown")?;
        let found = owner.commands.get(command).context("its command is unknown")?;
        ensure!(found.needed == 0, "its path needs {:?}", found.params);
        let path = format!("/api/{}", read.route);
        self.routes.read(&path);
        let mut binding = json!({ "noun": noun(&read.title) });
        if found.op == "list" {
            binding["shape"] = json!("rows");
            binding["list"] = list_of(&path, found.get);
            binding["key"] = json!(read.key);
        } else {
            binding["shape"] = json!("answer");
            binding["get"] = json!({ "path": path });
        }
        self.kinds.push(json!({ "id": id, "area": owner.area, "title": read.title, "binding": binding }));
        Ok(())
    }
}

/// A grid; its rows have the label of a choice beside its value.
fn list_of(path: &str, is_get: bool) -> Value {
    let mut list = json!({
        "path": path, "rows": "/rows", "id": "uuid", "writable": "uuid", "label": "%{field}",
        "page": {
            "by": "number", "at": "current", "size": "rowCount", "size-max": PAGE_ROWS_MAX, "first": 1,
            "total": "/total",
        },
    });
    if !is_get {
        list["method"] = json!("POST");
    }
    list
}

fn operations(item: &Item, key: &[String], fields: &[Field]) -> Vec<Value> {
    let danger = |word: &str| item.danger.get(word).cloned().unwrap_or_else(|| json!("normal"));
    let needed_key: Vec<&String> = key
        .iter()
        .enumerate()
        .filter(|(at, name)| {
            let field = fields.iter().find(|field| field.name == **name);
            *at == 0 || field.is_some_and(|field| !field.is_optional_in_key)
        })
        .map(|(_, name)| name)
        .collect();
    let operation = |word: &str, schema: Value, invertible: bool| {
        json!({
            "operation": word, "danger": danger(word), "payload-schema": schema,
            "time-limit-ms": TIME_LIMIT_MS, "invertible": invertible,
        })
    };
    let schema = |named: Vec<&Field>, required: Vec<&String>| {
        let properties: Map<String, Value> =
            named.into_iter().map(|field| (field.name.clone(), field.schema.clone())).collect();
        let mut schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    };
    let mut out = Vec::new();
    if item.create.is_some() && !item.answers_id {
        let mut required = needed_key.clone();
        let others = fields.iter().filter(|field| field.is_required && !key.contains(&field.name));
        required.extend(others.map(|field| &field.name));
        out.push(operation("create", schema(fields.iter().collect(), required), item.delete.is_some()));
    }
    if fields.iter().any(|field| !key.contains(&field.name)) {
        out.push(operation("update", schema(fields.iter().collect(), needed_key.clone()), true));
    }
    if item.delete.is_some() {
        let named = fields.iter().filter(|field| key.contains(&field.name)).collect();
        let is_lost = item.is_final || item.answers_id || fields.iter().any(|field| field.is_unread);
        let is_invertible = !is_lost && item.create.is_some();
        out.push(operation("delete", schema(named, needed_key), is_invertible));
    }
    out
}
