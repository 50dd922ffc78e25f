//! Lists of rows, and settings: what is read and written.

use anyhow::ensure;
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{Feature, noun, say};
use serde_json::{Map, Value, json};

use super::fields::{self, Field, ID, ID_NAME, PLACE, payload_name, plain_text};
use super::grammar::{Maker, address, joined, operation};
use super::overlay::{Item, Menu};

const DANGERS: [&str; 3] = ["normal", "destructive", "catastrophic"];
/// The key of rows that people tell apart by a remark alone, which many have none of.
const COMMENT: &str = "comment";
/// Stands before the name of a field that is taken away.
const CLEAR_MARK: &str = "!";

/// What can be done with a row.
struct Can {
    create: bool,
    update: bool,
    delete: bool,
}

impl Maker<'_> {
    /// A list of rows.
    pub(super) fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let menu = self.menu(&item.menu)?;
        ensure!(menu.list, "it is no list");
        let may = |word: &str, has: bool| has && !item.without.iter().any(|without| without == word);
        let can = Can {
            create: may("create", menu.create),
            update: may("update", menu.update),
            delete: may("delete", menu.delete),
        };
        let fields = fields::all(&menu.fields, item, id);
        let key: Vec<String> = item.key.iter().map(|name| payload_name(name)).collect();
        ensure!(!key.is_empty(), "it has no key");
        // Rows that are only taken away are shown with all that the router tells of them, unless nothing but their id names
        // them.
        let is_whole = !can.create && !can.update && key != [ID_NAME];
        self.routes.read(format!("GET {}", item.menu));
        let binding = kind(menu, item, &key, if is_whole { &[] } else { &fields });
        self.rows.add_kind(id, &menu.area, &item.title, binding)?;
        let mut binding = json!({ "kind": id });
        let by_id = json!({ ID: "{id}" });
        if can.create {
            self.routes.write(format!("PUT {}", item.menu));
            binding["create"] =
                json!({ "method": "PUT", "path": address(&item.menu), "id": { "answer": format!("/{ID}") } });
        }
        if can.update {
            self.routes.write(format!("PATCH {}/{{id}}", item.menu));
            binding["update"] = json!({
                "path": address(&joined(&item.menu, "set")), "sends": "changed", "clear-mark": CLEAR_MARK,
                "with": by_id,
            });
        }
        if can.delete {
            self.routes.write(format!("DELETE {}/{{id}}", item.menu));
            binding["delete"] = json!({
                "method": "POST", "path": address(&joined(&item.menu, "remove")), "with": by_id,
            });
        }
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        say(&mut binding, "danger-if", switched_off(item, &fields, &can));
        let operations = operations(item, &key, &fields, &can);
        if operations.is_empty() {
            return Ok(());
        }
        let (area, title) = (&menu.area, &item.title);
        self.rows.add_feature(Feature { id, area, title, kind: Some(id), key: &key, operations, binding })?;
        if menu.commands.contains_key("move") && can.update {
            let is_needed = |name: &&String| {
                key.len() == 1 || fields.iter().any(|one| one.name == **name && one.is_required)
            };
            let required: Vec<&str> =
                key.iter().filter(is_needed).map(String::as_str).chain([PLACE]).collect();
            self.order(id, item, menu, (&key, &required))?;
        }
        Ok(())
    }

    /// Puts a row before another one.
    fn order(
        &mut self,
        id: &str,
        item: &Item,
        menu: &Menu,
        (key, required): (&[String], &[&str]),
    ) -> anyhow::Result<()> {
        let path = joined(&item.menu, "move");
        self.routes.write(format!("POST {path}"));
        let feature = format!("{id}-order");
        let moves = json!({ "numbers": "{id}" });
        let mut binding = json!({
            "kind": id,
            "action": {
                "path": address(&path), "summary": "move", "with": moves,
                "fields": { PLACE: { "at": "destination" } },
                "effect": { "field": PLACE, "from": PLACE },
                // The adapter tells which row stood behind it.
                "back": { "path": address(&path), "with": { "numbers": "{id}", "destination": "{next?}" } },
                "inverse": self.rows.id(&feature),
            },
        });
        say(&mut binding, "lockout", item.lockout);
        let danger = danger_of(item, "update");
        if danger != DANGERS[0] {
            binding["danger"] = json!({ "create": danger });
        }
        let mut properties: Map<String, Value> =
            key.iter().map(|name| (name.clone(), plain_text())).collect();
        properties.insert(PLACE.to_owned(), heddle_adapter_kit::schema::nullable(plain_text()));
        let schema = object(properties, required);
        self.rows.add_feature(Feature {
            id: &feature,
            area: &menu.area,
            title: &format!("{}: place", item.title),
            kind: Some(id),
            key,
            operations: vec![operation("create", danger, schema, true)],
            binding,
        })
    }

    /// Settings of a menu.
    pub(super) fn settings(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let menu = self.menu(&item.menu)?;
        ensure!(menu.read && menu.set, "it has no settings");
        self.routes.read(format!("GET {}", item.menu));
        self.routes.write(format!("POST {}/set", item.menu));
        let fields = fields::all(&menu.fields, item, id);
        let binding = json!({
            "noun": noun(&item.title), "shape": "object", "sparse": true,
            "get": { "path": address(&item.menu) }, "fields": by_name(&fields),
        });
        self.rows.add_kind(id, &menu.area, &item.title, binding)?;
        let path = address(&joined(&item.menu, "set"));
        let mut binding = json!({
            "kind": id, "update": { "path": path, "sends": "changed", "clear-mark": CLEAR_MARK },
        });
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        let properties = fields.iter().map(|field| (field.name.clone(), field.schema.clone())).collect();
        let mut schema = object::<&str>(properties, &[]);
        schema["minProperties"] = json!(1);
        let operations = vec![operation("update", danger_of(item, "update"), schema, true)];
        let (area, title) = (&menu.area, &item.title);
        self.rows.add_feature(Feature { id, area, title, kind: Some(id), key: &[], operations, binding })
    }
}

fn by_name(fields: &[Field]) -> Map<String, Value> {
    fields.iter().map(|field| (field.name.clone(), field.binding.clone())).collect()
}

fn kind(menu: &Menu, item: &Item, key: &[String], fields: &[Field]) -> Value {
    let mut binding = json!({
        "noun": noun(&item.title), "shape": "items", "sparse": true,
        "list": { "path": address(&item.menu), "id": ID }, "key": key,
    });
    if !fields.is_empty() {
        // What the router made is shown and not written.
        binding["list"]["fixed"] = json!({ "dynamic": "true", "builtin": "true" });
    }
    if menu.commands.contains_key("move") && !fields.is_empty() {
        binding["list"]["behind"] = json!(PLACE);
    }
    say(&mut binding, "key-or-id", key == [COMMENT]);
    say(&mut binding, "fields", by_name(fields));
    binding
}

fn danger_of<'i>(item: &'i Item, word: &str) -> &'i str {
    item.danger.get(word).and_then(Value::as_str).unwrap_or(DANGERS[0])
}

/// To switch a row off does what a delete does.
fn switched_off(item: &Item, fields: &[Field], can: &Can) -> Option<Value> {
    let rank = |word: &str| DANGERS.iter().position(|known| *known == danger_of(item, word));
    let is_switched = fields.iter().any(|field| field.name == "disabled") && can.update;
    (can.delete && is_switched && rank("delete") > rank("update"))
        .then(|| json!([{ "field": "disabled", "is": true, "danger": item.danger["delete"] }]))
}

fn operations<'i>(
    item: &'i Item,
    key: &[String],
    fields: &[Field],
    can: &Can,
) -> Vec<heddle_adapter_kit::Operation<'i>> {
    let schema = |is_meant: &dyn Fn(&Field) -> bool, required: &[String]| {
        let meant = fields.iter().filter(|field| is_meant(field));
        object(meant.map(|field| (field.name.clone(), field.schema.clone())).collect(), required)
    };
    let is_key = |field: &Field| key.contains(&field.name);
    // What has one name needs it; of several parts a row may have some.
    let named: Vec<String> = if key.len() == 1 { key.to_vec() } else { Vec::new() };
    let needed = |field: &&Field| field.is_required && (!is_key(field) || key.len() > 1);
    let needed_of_key = |field: &&Field| field.is_required && is_key(field) && key.len() > 1;
    let with = |others: Vec<&Field>| -> Vec<String> {
        let others = others.into_iter().map(|field| field.name.clone());
        named.iter().cloned().chain(others).collect()
    };
    let mut out = Vec::new();
    if can.create {
        let required = with(fields.iter().filter(needed).collect());
        let schema = schema(&|field| !field.is_shown, &required);
        out.push(operation("create", danger_of(item, "create"), schema, can.delete));
    }
    let named = with(fields.iter().filter(needed_of_key).collect());
    if can.update {
        let schema = schema(&|field| !field.is_create_only, &named);
        out.push(operation("update", danger_of(item, "update"), schema, true));
    }
    if can.delete {
        let is_lost = fields.iter().any(|field| field.is_unread) || !can.create;
        let mut schema = schema(&is_key, &named);
        if named.is_empty() {
            schema["minProperties"] = json!(1);
        }
        out.push(operation("delete", danger_of(item, "delete"), schema, !is_lost));
    }
    out
}
