//! What is done instead of written: services, applies, and everything else that acts.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::{bounded, object, text};
use heddle_adapter_kit::{noun, say};
use serde_json::{Map, Value, json};

use super::fields::{self, LIST_ITEMS_MAX, TEXT_CHARS_MAX, plain_text};
use super::grammar::{Maker, operation};
use super::judged::{Action, Apply, Input, Service};
use super::overlay::FieldJudgements;
use super::routes::plain;

/// A file in a body, in characters.
const FILE_CHARS_MAX: u32 = 900_000;
const NORMAL: &str = "normal";

impl Maker<'_> {
    /// A service: whether it runs, and what starts and stops it.
    pub(super) fn service(&mut self, id: &str, service: &Service) -> anyhow::Result<()> {
        let controller = &service.controller;
        let status = self.route(&format!("{controller}/status"))?;
        self.routes.read(plain(&status.path));
        let kind = format!("{id}.service");
        let binding = json!({
            "noun": noun(&service.title), "shape": "object", "get": { "path": status.path },
            "fields": { "status": "text" },
        });
        self.rows.add_kind(&kind, status.area, &format!("{}: state", service.title), binding)?;
        let danger = service.danger.as_deref().unwrap_or(NORMAL);
        let feature = |word: &str| format!("{id}.service-{word}");
        for (word, state, other) in
            [("start", Some("running"), "stop"), ("stop", Some("stopped"), "start"), ("restart", None, "")]
        {
            let path = self.route(&format!("{controller}/{word}"))?.path;
            self.routes.write(plain(&path));
            let mut action = json!({ "path": path, "summary": word });
            if let Some(state) = state {
                action["effect"] = json!({ "field": "status", "is": state });
                action["back"] = json!({ "path": format!("/api/{controller}/{other}") });
                action["inverse"] = json!(self.rows.id(&feature(other)));
            }
            let danger = if word == "start" { NORMAL } else { danger };
            let mut binding = json!({ "kind": kind, "action": action });
            binding["lockout"] = json!(service.lockout && word != "start");
            let created = operation("create", danger, nothing(), state.is_some());
            let described = json!({
                "area": status.area, "title": format!("{}: {word}", service.title), "kind": kind,
                "operations": [created], "binding": dangerous(binding, danger),
            });
            self.add_feature(&feature(word), described)?;
        }
        Ok(())
    }

    /// Makes active what was saved before.
    pub(super) fn apply(&mut self, id: &str, apply: &Apply) -> anyhow::Result<()> {
        let route = self.route(&apply.route)?;
        self.routes.write(plain(&route.path));
        let danger = apply.danger.as_deref().unwrap_or(NORMAL);
        let reach = self.reach(&route.path).and_then(Value::as_str).unwrap_or("what belongs to this call");
        let summary = format!("make active what was saved: {reach}");
        let mut binding = json!({ "action": { "path": route.path, "summary": summary } });
        binding["lockout"] = json!(apply.lockout);
        let created = operation("create", danger, nothing(), false);
        let described = json!({
            "area": route.area, "title": apply.title, "operations": [created],
            "binding": dangerous(binding, danger),
        });
        self.add_feature(id, described)
    }

    pub(super) fn action(&mut self, id: &str, action: &Action) -> anyhow::Result<()> {
        let route = self.route(&action.route)?;
        self.routes.write(plain(&route.path));
        let area = route.area;
        let danger = action.danger.as_deref().unwrap_or(NORMAL);
        let (schema, key) = self.payload(action, &route.named)?;
        let mut binding = json!({ "lockout": action.lockout });
        if let Some(kind) = &action.kind {
            binding["kind"] = json!(kind);
        }
        let word = if action.deletes {
            binding["delete"] = json!({ "method": "POST", "path": route.path, "final": true });
            "delete"
        } else {
            ensure!(!action.does.is_empty(), "nothing says what it does");
            binding["action"] = self.call(action, &route.path)?;
            "create"
        };
        if let Some(apply) = &action.apply {
            binding["activate"] = json!([self.activation(apply)]);
            self.routes.write(plain(apply));
        }
        say(&mut binding, "danger-if", action.danger_if.clone());
        let mut binding = dangerous(binding, danger);
        if action.deletes && danger != NORMAL {
            binding["danger"] = json!({ "delete": danger });
        }
        let operation = operation(word, danger, schema, action.inverse.is_some());
        let mut described = json!({
            "area": area, "title": action.title, "operations": [operation], "binding": binding,
        });
        if let Some(kind) = action.kind.as_ref().or(action.parent.as_ref()) {
            described["kind"] = json!(kind);
        }
        say(&mut described, "natural-key", key);
        self.add_feature(id, described)
    }

    fn call(&mut self, action: &Action, path: &str) -> anyhow::Result<Value> {
        let mut call = json!({ "path": path, "summary": action.does });
        let mut root = action.root.clone();
        let mut inputs: Map<String, Value> =
            action.fields.iter().map(|(name, input)| (name.clone(), input_binding(input))).collect();
        if action.form {
            let command = self.route(&action.route)?.command;
            root.clone_from(&command.root);
            inputs.extend(self.form(action)?.into_iter().map(|field| (field.name, field.binding)));
        }
        say(&mut call, "root", root);
        say(&mut call, "with", action.with.clone());
        say(&mut call, "fields", inputs);
        say(&mut call, "effect", action.effect.clone());
        if let Some(back) = &action.back {
            let path = self.route(back)?.path;
            self.routes.write(plain(&path));
            call["back"] = json!({ "path": path });
            say(&mut call["back"], "with", action.back_with.clone());
        }
        say(&mut call, "inverse", action.inverse.as_deref().map(|inverse| self.rows.id(inverse)));
        Ok(call)
    }

    /// The fields of a body that the facts know.
    fn form(&self, action: &Action) -> anyhow::Result<Vec<fields::Field>> {
        let command = self.route(&action.route)?.command;
        let key = command.fields.as_deref().context("the facts do not say which fields it has")?;
        let facts = self.facts.fields.get(key).context("its fields are unknown")?;
        let mut form = fields::all(facts, &FieldJudgements::default(), &[], &self.kinds_by_list);
        // Nothing tells the choices of a form that is not read.
        for field in &mut form {
            if let Some(binding) = field.binding.as_object_mut() {
                binding.remove("choice");
                binding.remove("of");
            }
        }
        Ok(form)
    }

    /// The schema of the payload, and the fields that name the object.
    fn payload(&self, action: &Action, in_path: &[String]) -> anyhow::Result<(Value, Vec<String>)> {
        let mut properties = Map::new();
        let mut required: Vec<String> = Vec::new();
        let mut key: Vec<String> = Vec::new();
        if let Some(kind) = action.kind.as_ref().or(action.parent.as_ref()) {
            let known = self.rows.kind(kind).with_context(|| format!("kind '{kind}' is unknown"))?;
            let binding = &known["binding"];
            let names = [&binding["within"]["key"], &binding["key"]];
            let texts = names.into_iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
            key.extend(texts.map(str::to_owned));
            for name in &key {
                properties.insert(name.clone(), key_schema(&binding["fields"][name]));
                required.push(name.clone());
            }
            let params = binding["params"].as_object().into_iter().flatten().map(|(name, _)| name);
            let own: Vec<&String> = params.collect();
            let rest: Vec<&String> = in_path.iter().filter(|name| !own.contains(name)).collect();
            self.in_path(action, &rest, (&mut properties, &mut required));
        } else {
            self.in_path(action, &in_path.iter().collect::<Vec<_>>(), (&mut properties, &mut required));
        }
        for (name, input) in &action.fields {
            properties.insert(name.clone(), input_schema(input));
            if input.required && !required.contains(name) {
                required.push(name.clone());
            }
        }
        if action.form {
            for field in self.form(action)? {
                if field.is_required {
                    required.push(field.name.clone());
                }
                properties.insert(field.name, field.schema);
            }
        }
        let mut schema = object(properties, &required);
        if let Some(least) = action.least {
            schema["minProperties"] = json!(least);
        }
        Ok((schema, key))
    }

    #[expect(clippy::unused_self, reason = "reads as the other parts of a payload")]
    fn in_path(
        &self,
        action: &Action,
        names: &[&String],
        (properties, required): (&mut Map<String, Value>, &mut Vec<String>),
    ) {
        for name in names {
            let schema = action.params.get(*name).map_or_else(plain_text, input_schema);
            properties.entry((*name).clone()).or_insert(schema);
            if !required.contains(name) {
                required.push((*name).clone());
            }
        }
    }
}

/// The schema of a payload that says nothing.
fn nothing() -> Value {
    object::<&str>(Map::new(), &[])
}

fn dangerous(mut binding: Value, danger: &str) -> Value {
    if danger != NORMAL {
        binding["danger"] = json!({ "create": danger });
    }
    if binding["lockout"] == false {
        binding.as_object_mut().map(|binding| binding.remove("lockout"));
    }
    binding
}

/// Numbers name some objects.
fn key_schema(field: &Value) -> Value {
    let kind = field.as_str().or(field["type"].as_str());
    if kind == Some("number") { json!({ "type": "integer" }) } else { plain_text() }
}

fn input_binding(input: &Input) -> Value {
    let kind = match input.kind.as_str() {
        _ if input.schema.is_some() => "json",
        "array" => "json",
        other => other,
    };
    match &input.at {
        None => json!(kind),
        Some(at) => json!({ "type": kind, "at": at }),
    }
}

fn input_schema(input: &Input) -> Value {
    if let Some(schema) = &input.schema {
        return schema.clone();
    }
    match input.kind.as_str() {
        "flag" => json!({ "type": "boolean" }),
        "number" => bounded(json!({ "type": "integer" }), [("minimum", input.min), ("maximum", input.max)]),
        "list" | "array" => {
            json!({ "type": "array", "minItems": 1, "maxItems": LIST_ITEMS_MAX, "items": plain_text() })
        }
        _ if !input.options.is_empty() => json!({ "type": "string", "enum": input.options }),
        _ => {
            let longest = if input.long { FILE_CHARS_MAX } else { TEXT_CHARS_MAX };
            let mut schema = text(longest);
            say(&mut schema, "pattern", input.pattern.clone());
            schema
        }
    }
}
