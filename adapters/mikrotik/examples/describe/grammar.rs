//! The grammar of `RouterOS`: menus that are lists of rows or settings, and commands of menus.

use anyhow::Context as _;
use heddle_adapter_kit::{Made, Operation, Routes, Rows, parsed};
use serde_json::Value;

use super::overlay::{Action, Facts, Item, Menu, Overlay, Read};
use super::routes;

pub(super) const PREFIX: &str = "mikrotik";
const BASE: &str = "/rest/";
/// The router cuts a request after a minute.
const TIME_LIMIT_MS: u32 = 75_000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let mut maker = Maker { facts, overlay, rows: Rows::new(PREFIX), routes: Routes::default() };
    for (id, item) in &parsed::<Item>(&overlay.items)? {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, item) in &parsed::<Item>(&overlay.settings)? {
        maker.settings(id, item).with_context(|| format!("settings '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    maker.stand_ins()?;
    routes::judge(&mut maker.routes, overlay, facts)?;
    let coverage = routes::coverage(&maker.routes, overlay, facts);
    coverage.require_judged()?;
    Ok(Made { coverage, description: maker.rows.sorted().description(&overlay.areas)? })
}

pub(super) struct Maker<'f> {
    pub(super) facts: &'f Facts,
    pub(super) overlay: &'f Overlay,
    pub(super) rows: Rows,
    pub(super) routes: Routes,
}

impl<'f> Maker<'f> {
    pub(super) fn menu(&self, path: &str) -> anyhow::Result<&'f Menu> {
        self.facts.menus.get(path).with_context(|| format!("there is no menu '{path}'"))
    }

    /// Why another call stands for a route of this sort.
    pub(super) fn reason(&self, sort: &str) -> &'f str {
        self.overlay.stands.get(sort).map_or("", String::as_str)
    }
}

/// The path of a menu or command below another.
pub(super) fn joined(menu: &str, name: &str) -> String {
    if menu.is_empty() { name.to_owned() } else { format!("{menu}/{name}") }
}

/// Where a menu or command is reached.
pub(super) fn address(path: &str) -> String {
    format!("{BASE}{path}")
}

/// One operation of a feature.
pub(super) fn operation<'a>(
    word: &'a str,
    danger: &'a str,
    schema: Value,
    is_invertible: bool,
) -> Operation<'a> {
    Operation { word, danger, schema, time_limit_ms: Some(TIME_LIMIT_MS), is_invertible }
}
