//! The grammar of Proxmox VE: collections whose objects are listed, read, created, updated and deleted by paths of one
//! form, settings with one path, actions, and what is only read.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_adapter_kit::{Made, Rows, parsed};
use serde_json::{Map, Value};

use super::fields::{self, Field};
use super::overlay::{Action, Facts, Item, Overlay, Parent, Read};
use super::places::parent_of;
use super::routes::Routes;

const PREFIX: &str = "proxmox";
const TIME_LIMIT_MS: u32 = 120_000;
/// Copies, backups and moves.
const LONG_TIME_LIMIT_MS: u32 = 1_800_000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let routes = Routes::new(facts, &overlay.same, &overlay.left_out)?;
    let items = parsed::<Item>(&overlay.items)?;
    let settings = parsed::<Item>(&overlay.settings)?;
    let mut maker = Maker { overlay, routes, keys: BTreeMap::new(), rows: Rows::new(PREFIX) };
    for (id, item) in items.iter().chain(&settings) {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    let coverage = maker.routes.coverage(&overlay.areas);
    coverage.require_judged()?;
    Ok(Made { coverage, description: maker.rows.description(&overlay.areas)? })
}

pub(super) struct Maker<'f> {
    pub(super) overlay: &'f Overlay,
    pub(super) routes: Routes<'f>,
    /// How payloads name the objects of each kind, in the order of the natural key.
    pub(super) keys: BTreeMap<String, Vec<(String, Value)>>,
    pub(super) rows: Rows,
}

impl<'f> Maker<'f> {
    pub(super) fn parent(&self, path: &str) -> Option<&'f Parent> {
        parent_of(&self.overlay.within, path)
    }
}

/// Wall time of a write; `time` is what the overlay says of it.
pub(super) fn time_limit(time: Option<&str>) -> u32 {
    if time.is_some() { LONG_TIME_LIMIT_MS } else { TIME_LIMIT_MS }
}

/// The schema of a payload: what names the object, and fields.
pub(super) fn schema<'a>(
    given: &[(String, Value)],
    fields: impl Iterator<Item = &'a Field>,
    required: &[String],
    empties: bool,
) -> Value {
    let mut properties: Map<String, Value> = given.iter().cloned().collect();
    let mut definitions = BTreeMap::new();
    for field in fields {
        let schema = if empties { fields::emptied(field) } else { field.schema.clone() };
        properties.entry(field.name.clone()).or_insert(schema);
        definitions.extend(field.definition.clone());
    }
    fields::schema_of(properties, required, definitions)
}
