//! Kinds of objects and settings, and the features that write them.

use anyhow::Context as _;
use heddle_adapter_kit::{Feature, Operation, noun, say};
use serde_json::{Map, Value, json};

use super::collect::Collected;
use super::fields::Field;
use super::grammar::{Maker, schema, time_limit};
use super::overlay::Item;
use super::places::{self, BASE};

impl<'f> Maker<'f> {
    pub(super) fn item(&mut self, id: &str, item: &Item) -> anyhow::Result<()> {
        let made = self.collect(item)?;
        let key = made.key_schemas();
        self.keys.insert(id.to_owned(), key.clone());
        let kind = self.kind(item, &made)?;
        self.rows.add_kind(id, &made.area, &item.title, kind)?;
        for route in &item.covers {
            self.routes.cover(route)?;
        }
        // Rows of the list are the same objects.
        if let Some(path) = self.one_of(&made) {
            self.routes.cover(&format!("GET {path}"))?;
        }
        if !made.is_written() {
            return Ok(());
        }
        let binding = self.feature(id, item, &made)?;
        let names: Vec<String> = key.into_iter().map(|(name, _)| name).collect();
        self.rows.add_feature(Feature {
            id,
            area: &made.area,
            title: &item.title,
            kind: Some(id),
            key: &names,
            operations: operations(item, &made),
            binding,
        })
    }

    fn kind(&mut self, item: &Item, made: &Collected<'f>) -> anyhow::Result<Value> {
        let mut binding = json!({ "noun": noun(&item.title), "sparse": true });
        if let Some(parent) = made.parent {
            binding["within"] = places::within(parent);
        }
        if item.key.is_empty() {
            binding["shape"] = json!("object");
            binding["get"] = json!({ "path": places::bound(&item.path, made.parent) });
            self.routes.cover(&format!("GET {}", item.path))?;
        } else {
            let list = item.list.as_deref().unwrap_or(&item.path);
            self.routes.cover(&format!("GET {list}"))?;
            let row_id = item.row_id.clone().or_else(|| item.key.last().cloned());
            binding["shape"] = json!("items");
            binding["key"] = json!(item.key);
            binding["list"] = json!({ "path": places::bound(list, made.parent), "id": row_id });
            say(&mut binding["list"], "rows", item.rows.as_str());
            say(&mut binding["list"], "only", item.only.clone());
            if let Some(path) = self.get_of(item, made) {
                self.routes.cover(&format!("GET {path}"))?;
                binding["get"] = json!({ "path": places::bound(&path, made.parent) });
            }
        }
        say(&mut binding, "volatile", item.volatile);
        say(&mut binding, "params", item.params.clone());
        binding["fields"] = kind_fields(item, &made.fields);
        Ok(binding)
    }

    fn feature(&mut self, id: &str, item: &Item, made: &Collected<'f>) -> anyhow::Result<Value> {
        let mut binding = json!({ "kind": id });
        for (written, word) in [(&made.create, "create"), (&made.update, "update"), (&made.delete, "delete")]
        {
            let Some(written) = written else { continue };
            self.routes.cover(&written.route())?;
            binding[word] = json!({ "path": written.path });
            if written.method != "POST" {
                binding[word]["method"] = json!(written.method);
            }
            let is_task = self.routes.find(&written.route())?.1.task;
            say(&mut binding[word], "cancel", places::cancel(&written.path).filter(|_| is_task));
        }
        if made.create.is_some() {
            binding["create"]["id"] = new_id(item);
            say(&mut binding["create"], "with", item.create_with.clone());
        }
        if made.update.is_some() {
            binding["update"]["sends"] = json!(item.sends.as_deref().unwrap_or("changed"));
            if made.clears {
                binding["update"]["clear"] = json!("delete");
            }
        }
        self.revisions(&mut binding, item, made)?;
        if made.delete.is_some() {
            say(&mut binding["delete"], "final", item.is_final);
            say(&mut binding["delete"], "with", item.delete_with.clone());
        }
        if let Some(name) = &item.activate {
            binding["activate"] = json!([self.activation(name)?]);
        }
        say(&mut binding, "lockout", item.lockout);
        say(&mut binding, "danger", item.danger.clone());
        say(&mut binding, "danger-if", item.danger_if.clone());
        Ok(binding)
    }

    fn activation(&mut self, name: &str) -> anyhow::Result<Value> {
        let mut activation =
            self.overlay.activations.get(name).context("there is no such activation")?.clone();
        let text = |field: &str| activation[field].as_str().unwrap_or_default().to_owned();
        let (method, path) = (text("method"), text("path"));
        self.routes.cover(&format!("{method} {path}"))?;
        activation["path"] = json!(format!("{BASE}{path}"));
        Ok(activation)
    }

    /// The digest that writes send along, where the vendor takes one: that of one object where it has a path of its own,
    /// else that of its list.
    fn revisions(&self, binding: &mut Value, item: &Item, made: &Collected<'f>) -> anyhow::Result<()> {
        if !made.has_digest {
            return Ok(());
        }
        let one = self.get_of(item, made).or_else(|| self.one_of(made)).filter(|_| !item.volatile);
        let revision = match one {
            _ if item.key.is_empty() => json!({ "at": "/data/digest", "as": "digest" }),
            Some(path) => {
                json!({ "path": places::bound(&path, made.parent), "at": "/data/digest", "as": "digest" })
            }
            None => {
                let list = item.list.as_deref().unwrap_or(&item.path);
                json!({ "path": places::bound(list, made.parent), "at": "/data/0/digest", "as": "digest" })
            }
        };
        let taken = self.body_of(made.delete.as_ref())?;
        if taken.iter().any(|field| field.name == "digest") {
            binding["delete"]["revision"] = revision.clone();
        }
        binding["update"]["revision"] = revision;
        Ok(())
    }
}

fn new_id(item: &Item) -> Value {
    let named = |name: &str| json!({ "field": name });
    match item.create_id.as_deref() {
        _ if item.volatile => json!("found"),
        Some("found") => json!("found"),
        Some(other) => named(other.trim_start_matches("field:")),
        None => named(item.key.last().map_or("id", String::as_str)),
    }
}

fn kind_fields(item: &Item, fields: &[Field]) -> Value {
    let mut out: Map<String, Value> =
        fields.iter().map(|field| (field.name.clone(), field.binding.clone())).collect();
    for (name, kind) in &item.fields.shown {
        let full = match item.fields.default.get(name) {
            Some(default) => json!({ "type": kind, "default": default }),
            None => kind.clone(),
        };
        out.entry(name.clone()).or_insert(full);
    }
    Value::Object(out)
}

fn operations<'i>(item: &'i Item, made: &Collected<'_>) -> Vec<Operation<'i>> {
    let danger = |word: &str| item.danger.get(word).and_then(Value::as_str).unwrap_or("normal");
    let time_limit_ms = Some(time_limit(item.time.as_deref()));
    let operation = |word, schema, is_invertible| Operation {
        word,
        danger: danger(word),
        schema,
        time_limit_ms,
        is_invertible,
    };
    let key = made.key_schemas();
    let names: Vec<String> = key.iter().map(|(name, _)| name.clone()).collect();
    let mut out = Vec::new();
    if made.create.is_some() {
        let mut required = names.clone();
        let needed = made.fields.iter().filter(|field| field.is_required && field.in_create);
        required.extend(needed.map(|field| field.name.clone()).filter(|name| !names.contains(name)));
        let mut given = key.clone();
        for (name, kind) in &item.fields.payload {
            given.push((name.clone(), json!({ "type": kind, "minLength": 1 })));
            required.push(name.clone());
        }
        let fields = made.fields.iter().filter(|field| field.in_create);
        out.push(operation("create", schema(&given, fields, &required, false), made.delete.is_some()));
    }
    if made.update.is_some() {
        let fields = made.fields.iter().filter(|field| field.in_update && !names.contains(&field.name));
        let loses = fields.clone().any(|field| field.binding["unread"] == true);
        let empties = made.clears || item.sends.is_some();
        out.push(operation("update", schema(&key, fields, &names, empties), !loses));
    }
    if made.delete.is_some() {
        let schema = schema(&key, std::iter::empty(), &names, false);
        out.push(operation("delete", schema, !item.is_final && made.create.is_some()));
    }
    out
}
