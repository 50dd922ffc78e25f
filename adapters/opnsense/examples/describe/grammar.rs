//! The grammar of `OPNsense`: lists of items with search, get, set and delete, settings with get and set, calls that
//! apply what was saved, and calls that do something.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_adapter_kit::{Made, Operation, Routes, Rows, noun, parsed};
use serde_json::{Value, json};

use super::judged::{Action, Apply, File, Read, Service};
use super::overlay::{Command, Facts, Item, Overlay};
use super::routes;

pub(super) const PREFIX: &str = "opnsense";
/// Rows that one request asks for.
const PAGE_ROWS_MAX: u32 = 1000;
/// An apply may take tens of seconds.
pub(super) const TIME_LIMIT_MS: u32 = 120_000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let mut maker = Maker {
        facts,
        overlay,
        kinds_by_list: BTreeMap::new(),
        rows: Rows::new(PREFIX),
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
    for (id, file) in &parsed::<File>(&overlay.files)? {
        maker.file(id, file).with_context(|| format!("file '{id}'"))?;
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
    routes::judge(&mut maker.routes, overlay, facts)?;
    let coverage = routes::coverage(&maker.routes, overlay, facts);
    coverage.require_judged()?;
    Ok(Made { coverage, description: maker.rows.sorted().description(&overlay.areas)? })
}

pub(super) struct Maker<'f> {
    pub(super) facts: &'f Facts,
    pub(super) overlay: &'f Overlay,
    /// Kind and noun by the list of items, in lower case.
    pub(super) kinds_by_list: BTreeMap<String, (String, String)>,
    pub(super) rows: Rows,
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

    pub(super) fn add_feature(&mut self, id: &str, mut feature: Value) -> anyhow::Result<()> {
        feature["id"] = json!(self.rows.id(id));
        self.rows.add_row(feature)
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
pub(super) fn operation(word: &str, danger: &str, schema: Value, is_invertible: bool) -> Value {
    Operation { word, danger, schema, time_limit_ms: Some(TIME_LIMIT_MS), is_invertible }.row()
}
