//! Calls that do something.

use anyhow::Context as _;
use heddle_adapter_kit::{Feature, say};
use serde_json::{Map, Value, json};

use super::facts::{Name, params};
use super::fields::payload;
use super::grammar::Maker;
use super::items::operation;
use super::overlay::Action;

impl Maker<'_> {
    pub(super) fn action(&mut self, id: &str, action: &Action) -> anyhow::Result<()> {
        let route = self.facts.route(&action.route)?;
        let name = Name::parse(&action.route)?;
        let (kind, path) = self.object(action, &name.path())?;
        let key = match &kind {
            Some(kind) => {
                self.keys.get(kind).cloned().with_context(|| format!("there is no kind '{kind}'"))?
            }
            None => Vec::new(),
        };
        let mut body = self.facts.body(route, None);
        body.retain(|(name, _)| !action.omit.contains(name) && !action.with.contains_key(name));
        let fields: Map<String, Value> = body
            .iter()
            .map(|(name, leaf)| {
                (name.clone(), json!(if self.schemas.is_secret(name, leaf) { "secret" } else { "json" }))
            })
            .collect();
        let mut call = json!({ "path": path, "summary": action.summary });
        if name.method != "POST" {
            call["method"] = json!(name.method);
        }
        say(&mut call, "fields", fields);
        say(&mut call, "with", action.with.clone());
        say(&mut call, "effect", action.effect.clone());
        say(&mut call, "inverse", action.inverse.as_deref().map(|inverse| self.rows.id(inverse)));
        let mut binding = json!({ "action": call });
        say(&mut binding, "kind", kind.clone());
        say(&mut binding, "lockout", action.lockout);
        let danger = action.danger.as_deref().unwrap_or("normal");
        if let Some(danger) = &action.danger {
            binding["danger"] = json!({ "create": danger });
        }
        let mut properties: Vec<(String, Value)> =
            key.iter().map(|name| (name.clone(), json!({ "type": ["string", "integer"] }))).collect();
        let mut required = key.clone();
        // What else stands in the path is said by the payload.
        let known = self.known_params(kind.as_deref());
        for name in params(&path).into_iter().filter(|name| !known.iter().any(|known| known == name)) {
            properties.push((name.to_owned(), json!({ "type": ["string", "integer"] })));
            required.push(name.to_owned());
        }
        for (name, leaf) in &body {
            properties.retain(|(known, _)| known != name);
            properties.push((name.clone(), self.schemas.of(name, leaf)));
            if leaf.is_required && !required.contains(name) {
                required.push(name.clone());
            }
        }
        let create = operation("create", danger, payload(properties, &required), action.inverse.is_some());
        self.routes.write(action.route.clone());
        self.rows.add_feature(Feature {
            id,
            area: &route.area,
            title: &action.title,
            kind: None,
            key: &key,
            operations: vec![create],
            binding,
        })
    }

    /// The parameters that a path of a kind has without a payload.
    fn known_params(&self, kind: Option<&str>) -> Vec<String> {
        let mut known: Vec<String> = ["omadacId", "siteId", "id"].map(str::to_owned).to_vec();
        let found = kind.and_then(|kind| self.rows.kind(kind));
        for pointer in ["/binding/within/params", "/binding/params"] {
            let params = found.and_then(|kind| kind.pointer(pointer)?.as_object());
            known.extend(params.into_iter().flat_map(Map::keys).cloned());
        }
        known
    }

    /// The kind of the object that an action is about, and its path with the id of that.
    fn object(&self, action: &Action, path: &str) -> anyhow::Result<(Option<String>, String)> {
        let Some(of) = &action.of else { return Ok((None, path.to_owned())) };
        let (kind, param) = if let Some(kind) = of.strip_prefix('@') {
            (kind.to_owned(), action.param.clone().context("its parameter is not named")?)
        } else {
            let parent = self.parents.get(of).with_context(|| format!("there is no parent '{of}'"))?;
            let own = params(path).into_iter().rfind(|name| parent.params.contains_key(*name));
            (parent.kind.clone(), own.context("its path does not name the object")?.to_owned())
        };
        Ok((Some(kind), path.replace(&format!("{{{param}}}"), "{id}")))
    }
}
