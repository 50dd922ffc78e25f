//! The grammar of the REST API package: models, each with a path for one object and a path for the list of all; settings;
//! calls that make active what was stored; actions, and what is only read.

use anyhow::Context as _;
use heddle_adapter_kit::{Made, Routes, Rows, parsed};
use serde_json::{Value, json};

use super::facts::{Facts, Model};
use super::overlay::{Action, Item, Overlay, Read};
use super::routes;

const PREFIX: &str = "pfsense";
/// An apply goes on within its call.
pub(super) const TIME_LIMIT_MS: u32 = 120_000;
/// Packages are fetched, and certificates are issued.
pub(super) const LONG_TIME_LIMIT_MS: u32 = 900_000;
/// What a write is asked that activates itself.
pub(super) const INLINE: &str = "inline";

pub(super) struct Maker<'f> {
    pub(super) facts: &'f Facts,
    overlay: &'f Overlay,
    pub(super) routes: Routes,
    pub(super) rows: Rows,
}

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let mut maker = Maker { facts, overlay, routes: Routes::default(), rows: Rows::new(PREFIX) };
    routes::judge(&mut maker.routes, overlay, facts)?;
    let settings = parsed::<Item>(&overlay.settings)?;
    for (id, item) in parsed::<Item>(&overlay.items)?.iter().chain(&settings) {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    let coverage = routes::coverage(&maker.routes, overlay, facts);
    Ok(Made { coverage, description: maker.rows.sorted().description(&overlay.areas)? })
}

impl<'f> Maker<'f> {
    pub(super) fn model(&self, name: &str) -> anyhow::Result<&'f Model> {
        self.facts.models.get(name).with_context(|| format!("there is no model {name}"))
    }

    /// Method, path, area and model of a route of the overlay.
    pub(super) fn route<'r>(&self, route: &'r str) -> anyhow::Result<(&'r str, &'r str, &'f str, &'f str)> {
        routes::known(self.facts, route)?;
        let (method, path) = route.split_once(' ').context("a route is a method and a path")?;
        let known = &self.facts.paths[path];
        Ok((method, path, &known.area, &known.methods[method].model))
    }

    /// The calls that make active what was stored, in their order.
    pub(super) fn activations(&mut self, paths: &[String]) -> Vec<Value> {
        let one = |path: &String| {
            self.routes.write(format!("POST {path}"));
            let mut call = json!({ "path": path, "with": { "async": false } });
            if let Some(reach) = self.overlay.reach.get(path) {
                call["reach"] = reach.clone();
            }
            call
        };
        paths.iter().map(one).collect()
    }
}
