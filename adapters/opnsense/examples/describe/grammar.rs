//! The grammar of `OPNsense`: lists of items with search, get, set and delete, settings with get and set, calls that
//! apply what was saved, and calls that do something.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_adapter_kit::{Made, parsed};
use serde_json::{Map, Value, json};

use super::judged::{Action, Apply, Read, Service};
use super::overlay::{Command, Facts, Item, Overlay};
use super::routes::{Routes, Shares};

pub(super) const PREFIX: &str = "opnsense";
/// Rows that one request asks for.
const PAGE_ROWS_MAX: u32 = 1000;
/// An apply may take tens of seconds.
pub(super) const TIME_LIMIT_MS: u32 = 120_000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<(Made, Shares)> {
    let mut maker = Maker {
        facts,
        overlay,
        kinds_by_list: BTreeMap::new(),
        kinds: BTreeMap::new(),
        features: BTreeMap::new(),
        routes: Routes::default(),
    };
    let items = parsed::<Item>(&overlay.items)?;
    for (id, item) in &items {
        if let Some(list) = maker.fields_key(item) {
            let known = (id.clone(), noun(&item.title));
            maker.kinds_by_list.entry(list.to_lowercase()).or_insert(known);
        }
    }
    for (id, item) in items.iter().chain(&parsed::<Item>(&overlay.settings)?) {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, service) in &parsed::<Service>(&overlay.services)? {
        maker.service(id, service).with_context(|| format!("service '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    for controller in &overlay.models {
        maker.model(controller).with_context(|| format!("model '{controller}'"))?;
    }
    for (id, apply) in &parsed::<Apply>(&overlay.applies)? {
        maker.apply(id, apply).with_context(|| format!("apply '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    maker.routes.judge(overlay, facts)?;
    maker.finish()
}

pub(super) struct Maker<'f> {
    pub(super) facts: &'f Facts,
    pub(super) overlay: &'f Overlay,
    /// Kind and noun by the list of items, in lower case.
    pub(super) kinds_by_list: BTreeMap<String, (String, String)>,
    /// By id, as the features.
    pub(super) kinds: BTreeMap<String, Value>,
    features: BTreeMap<String, Value>,
    pub(super) routes: Routes,
}

/// A route with values in its path.
pub(super) struct Route<'f> {
    pub(super) area: &'f str,
    pub(super) command: &'f Command,
    pub(super) path: String,
    /// Names in braces, but that of the object's id.
    pub(super) named: Vec<String>,
}

impl<'f> Maker<'f> {
    /// A route by module, controller, command and path values.
    pub(super) fn route(&self, route: &str) -> anyhow::Result<Route<'f>> {
        let parts: Vec<&str> = route.split('/').collect();
        anyhow::ensure!(parts.len() >= 3, "'{route}' has no command");
        let controller = parts[..2].join("/");
        let owner = self.facts.controllers.get(&controller);
        let owner = owner.with_context(|| format!("controller {controller} is unknown"))?;
        let command = owner.commands.get(parts[2]).with_context(|| format!("{route} is unknown"))?;
        let values = parts.len() - 3;
        anyhow::ensure!(
            (command.needed..=command.params.len()).contains(&values),
            "{route} has {values} path values, and takes {:?}",
            command.params
        );
        let braced = |part: &&str| part.strip_prefix('{')?.strip_suffix('}').map(str::to_owned);
        let named = parts[3..].iter().filter_map(braced).filter(|name| name != "id");
        Ok(Route { area: &owner.area, command, path: format!("/api/{route}"), named: named.collect() })
    }

    pub(super) fn add_kind(
        &mut self,
        id: &str,
        area: &str,
        title: &str,
        binding: &Value,
    ) -> anyhow::Result<()> {
        let kind = json!({ "id": id, "area": area, "title": title, "binding": binding });
        let old = self.kinds.insert(id.to_owned(), kind);
        anyhow::ensure!(old.is_none(), "there are two kinds '{id}'");
        Ok(())
    }

    pub(super) fn add_feature(&mut self, id: &str, mut feature: Value) -> anyhow::Result<()> {
        let full = format!("{PREFIX}.{id}");
        feature["id"] = json!(full);
        anyhow::ensure!(self.features.insert(full, feature).is_none(), "there are two features '{id}'");
        Ok(())
    }

    /// What a call makes active beyond what was written.
    pub(super) fn reach(&self, path: &str) -> Option<&'f Value> {
        let begins = |(begin, _): &(&String, &Value)| path["/api/".len()..].starts_with(begin.as_str());
        self.overlay.reach.iter().find(begins).map(|(_, reach)| reach)
    }

    pub(super) fn activation(&self, path: &str) -> Value {
        let mut activation = json!({ "path": path });
        if let Some(reach) = self.reach(path) {
            activation["reach"] = reach.clone();
        }
        activation
    }

    fn finish(self) -> anyhow::Result<(Made, Shares)> {
        let (coverage, shares) = self.routes.coverage(self.facts, self.overlay);
        let all = || self.kinds.values().chain(self.features.values());
        let areas: Vec<Value> = self
            .overlay
            .areas
            .iter()
            .filter(|(id, _)| all().any(|one| one["area"] == id.as_str()))
            .map(|(id, title)| json!({ "id": id, "title": title }))
            .collect();
        for (id, feature) in &self.features {
            let inverse = &feature["binding"]["action"]["inverse"];
            let is_known = inverse.as_str().is_none_or(|inverse| self.features.contains_key(inverse));
            anyhow::ensure!(is_known, "the inverse of '{id}' is no feature: {inverse}");
        }
        let kinds: Vec<&Value> = self.kinds.values().collect();
        let features: Vec<&Value> = self.features.values().collect();
        let description = json!({ "areas": areas, "kinds": kinds, "features": features });
        Ok((Made { coverage, description }, shares))
    }
}

/// A title within a sentence: `Port forward` is `port forward`, names such as `OpenVPN` stay.
pub(super) fn noun(title: &str) -> String {
    let first = title.split(' ').next().unwrap_or_default();
    let is_name = first.chars().skip(1).any(char::is_uppercase);
    if is_name { title.to_owned() } else { heddle_adapter_kit::noun(title) }
}

/// A grid; its rows have the label of a choice beside its value.
pub(super) fn grid(path: &str) -> Value {
    json!({
        "path": path, "rows": "/rows", "label": "%{field}",
        "page": {
            "by": "number", "at": "current", "size": "rowCount", "size-max": PAGE_ROWS_MAX, "first": 1,
            "total": "/total",
        },
        "filters": { "search": { "param": "searchPhrase" } },
    })
}

/// One operation of a feature.
pub(super) fn operation(word: &str, danger: &Value, schema: &Value, invertible: bool) -> Value {
    json!({
        "operation": word, "danger": danger, "payload-schema": schema,
        "time-limit-ms": TIME_LIMIT_MS, "invertible": invertible,
    })
}

/// A schema of an object that has these fields and no others.
pub(super) fn object(properties: Map<String, Value>, required: &[&String]) -> Value {
    let mut schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
