//! Calls that do something.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{Access, Feature, Operation, say};
use serde_json::{Map, Value, json};

use super::facts::{Name, params};
use super::grammar::{LONG_TIME_LIMIT_MS, Maker, TIME_LIMIT_MS, with_query};
use super::overlay::Action;

const NORMAL: &str = "normal";

impl Maker<'_> {
    pub(super) fn action(&mut self, id: &str, action: &Action) -> anyhow::Result<()> {
        ensure!(!action.does.is_empty(), "nothing says what it does");
        let name = Name::parse(&action.route)?;
        let (body, file) = (self.body(&action.route)?, self.route(&action.route)?.file.clone());
        let mut path = with_query(name.path, action.query.as_ref());
        if let Some(param) = &action.param {
            path = path.replace(&format!("{{{param}}}"), "{id}");
        }
        let key = self.key_of(action)?;
        let mut with = action.with.clone();
        if let Some(command) = name.command {
            with.insert("cmd".to_owned(), json!(command));
        }
        let mut properties: Map<String, Value> =
            key.iter().map(|name| (name.clone(), json!({ "type": ["string", "integer"] }))).collect();
        let (mut required, mut fields) = (key.clone(), Map::new());
        // What else stands in the path is said by the payload. Its site is the one that a change is for; a body may name
        // another one.
        let in_path: Vec<&str> =
            params(&path).into_iter().filter(|name| !["site", "siteId", "id"].contains(name)).collect();
        for name in in_path.iter().filter(|name| !key.iter().any(|key| key == **name)) {
            properties.insert((*name).to_owned(), json!({ "type": ["string", "integer"] }));
            required.push((*name).to_owned());
        }
        for (name, schema) in &body.properties {
            if with.contains_key(name) || action.omit.contains(name) {
                continue;
            }
            let is_secret = self.secrets.has(name, schema, &action.secrets);
            properties.insert(name.clone(), self.secrets.marked(name, schema, &action.secrets));
            if body.required.contains(name) && !required.contains(name) {
                required.push(name.clone());
            }
            if !in_path.contains(&name.as_str()) {
                fields.insert(name.clone(), json!(if is_secret { "secret" } else { "json" }));
            }
        }
        let mut call = json!({ "path": &path, "summary": action.does });
        if let Some(part) = file {
            call["multipart"] = json!(true);
            fields.insert(part.clone(), json!("file"));
            properties.insert(part.clone(), json!({ "type": "string", "x-file": true }));
            required.push(part);
        }
        if name.method != "POST" {
            call["method"] = json!(name.method);
        }
        say(&mut call, "fields", fields);
        say(&mut call, "with", with);
        say(&mut call, "inverse", action.inverse.as_deref().map(|inverse| self.rows.id(inverse)));
        let danger = action.danger.as_deref().unwrap_or(NORMAL);
        let binding = binding(action, call, danger);
        let operation = operation(action, danger, object(properties, &required));
        self.claim(&action.route, Access::Write);
        if action.per.is_some() {
            self.of_controller.insert(("features", id.to_owned()));
        }
        let (title, area, kind) = (&action.title, &action.area, action.of.as_deref());
        self.rows.add_feature(Feature {
            id,
            area,
            title,
            kind,
            key: &key,
            operations: vec![operation],
            binding,
        })
    }

    /// What names an object of the kind that an action is about.
    fn key_of(&self, action: &Action) -> anyhow::Result<Vec<String>> {
        let Some(kind) = &action.of else { return Ok(Vec::new()) };
        self.keys.get(kind).cloned().with_context(|| format!("there is no kind '{kind}'"))
    }
}

fn operation<'a>(action: &Action, danger: &'a str, schema: Value) -> Operation<'a> {
    Operation {
        word: "create",
        danger,
        schema,
        time_limit_ms: Some(if action.slow { LONG_TIME_LIMIT_MS } else { TIME_LIMIT_MS }),
        is_invertible: action.inverse.is_some() && action.effect.is_some(),
    }
}

fn binding(action: &Action, mut call: Value, danger: &str) -> Value {
    say(&mut call, "effect", action.effect.clone());
    let mut binding = json!({ "action": call });
    say(&mut binding, "kind", action.of.clone());
    say(&mut binding, "lockout", action.lockout);
    if danger != NORMAL {
        binding["danger"] = json!({ "create": danger });
    }
    say(&mut binding, "danger-if", action.danger_if.clone());
    binding
}
