//! Actions: what is done to an object, or to the whole.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{Feature, Operation, say};
use serde_json::{Map, Value, json};

use super::fields::{self, Field, STEERING, Uses};
use super::grammar::{Maker, schema, time_limit};
use super::overlay::{Action, FieldFacts, FieldJudgements};
use super::places::{self, BASE, name_schema, renamed, variables};

impl Maker<'_> {
    pub(super) fn action(&mut self, id: &str, action: &Action) -> anyhow::Result<()> {
        for route in action.covers.iter().chain([&action.route]) {
            self.routes.cover(route)?;
        }
        let (name, route) = self.routes.find(&action.route)?;
        let area = route.area.clone();
        let fields = self.fields_of_action(action, name)?;
        let (method, own) = action.route.split_once(' ').context("a route is a method and a path")?;
        let path = renamed(action.at.as_deref().unwrap_or(own), &action.rename);
        let key = match &action.kind {
            Some(kind) => self.keys.get(kind).with_context(|| format!("there is no kind '{kind}'"))?.clone(),
            None => Vec::new(),
        };
        let mut given = key.clone();
        let parents = self.parents_of(action.kind.as_deref());
        for variable in variables(&path) {
            let is_known = variable == "id"
                || parents.iter().any(|name| name == variable)
                || given.iter().any(|(name, _)| name == variable)
                || fields.iter().any(|field| field.name == variable);
            if !is_known {
                given.push((variable.to_owned(), name_schema(variable)));
            }
        }
        let mut required: Vec<String> = given.iter().map(|(name, _)| name.clone()).collect();
        let needed = fields.iter().filter(|field| field.is_required && !required.contains(&field.name));
        let needed: Vec<String> = needed.map(|field| field.name.clone()).collect();
        required.extend(needed);
        let binding = self.action_binding((method, &path, route.task), action, &fields);
        let names: Vec<String> = key.into_iter().map(|(name, _)| name).collect();
        let operation = Operation {
            word: "create",
            danger: action.danger.as_deref().unwrap_or("normal"),
            schema: schema(&given, fields.iter(), &required, false),
            time_limit_ms: Some(time_limit(action.time.as_deref())),
            is_invertible: action.inverse.is_some(),
        };
        self.rows.add_feature(Feature {
            id,
            area: &area,
            title: &action.title,
            kind: action.kind.as_deref(),
            key: &names,
            operations: vec![operation],
            binding,
        })
    }

    fn action_binding(
        &self,
        (method, path, is_task): (&str, &str, bool),
        action: &Action,
        fields: &[Field],
    ) -> Value {
        let by_name: Map<String, Value> =
            fields.iter().map(|field| (field.name.clone(), field.binding.clone())).collect();
        let mut act = json!({ "path": format!("{BASE}{path}"), "summary": action.summary });
        if method != "POST" {
            act["method"] = json!(method);
        }
        say(&mut act, "fields", by_name);
        say(&mut act, "with", action.with.clone());
        say(&mut act, "effect", action.effect.clone());
        if let Some(back) = &action.back {
            let mut back = back.clone();
            back["path"] = json!(format!("{BASE}{}", back["path"].as_str().unwrap_or_default()));
            act["back"] = back;
        }
        say(&mut act, "cancel", places::cancel(&format!("{BASE}{path}")).filter(|_| is_task));
        say(&mut act, "multipart", action.file.is_some());
        say(&mut act, "inverse-deletes", action.inverse_deletes);
        say(&mut act, "inverse", action.inverse.as_deref().map(|inverse| self.rows.id(inverse)));
        let mut binding = json!({ "action": act });
        say(&mut binding, "kind", action.kind.clone());
        if let Some(danger) = &action.danger {
            binding["danger"] = json!({ "create": danger });
        }
        say(&mut binding, "danger-if", action.danger_if.clone());
        say(&mut binding, "lockout", action.lockout);
        binding
    }

    /// Parameters of paths that the objects of a kind bring along.
    fn parents_of(&self, kind: Option<&str>) -> Vec<String> {
        let found = kind.and_then(|kind| self.rows.kind(kind));
        let Some(kind) = found else { return Vec::new() };
        let binding = &kind["binding"];
        let own = binding["params"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let within = &binding["within"];
        let of_parent = within["params"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let above = within["kind"].as_str().map(|parent| self.parents_of(Some(parent))).unwrap_or_default();
        own.chain(of_parent).chain(above).collect()
    }

    fn fields_of_action(&self, action: &Action, name: &str) -> anyhow::Result<Vec<Field>> {
        let route = self.routes.find(&action.route)?.1;
        let in_path = variables(name);
        let is_meant = |field: &&&FieldFacts| {
            let name = &field.name;
            !in_path.contains(&name.as_str())
                && !STEERING.contains(&name.as_str())
                && !action.omit.contains(name)
                && !action.with.contains_key(name)
                && !action.file.as_ref().is_some_and(|file| [&file.param, &file.checksum].contains(&name))
                && (action.only.is_empty() || action.only.contains(name))
        };
        let judged = FieldJudgements {
            secret: action.secret.clone(),
            require: action.require.clone(),
            describe: action.describe.clone(),
            ..FieldJudgements::default()
        };
        let facts = self.routes.fields(route);
        for name in action.only.iter().chain(&action.require).chain(&action.secret) {
            ensure!(facts.iter().any(|field| field.name == *name), "there is no field '{name}'");
        }
        let chosen: Vec<&FieldFacts> = facts.iter().filter(is_meant).copied().collect();
        let uses = |facts| Uses { create: Some(facts), update: None, has_update: false };
        let files = action.file.iter().map(fields::file);
        Ok(chosen.into_iter().flat_map(|facts| fields::all(uses(facts), &judged, &[])).chain(files).collect())
    }
}
