//! The grammar of Proxmox VE: collections whose objects are listed, read, created, updated and deleted by paths of one
//! form, settings with one path, actions, and what is only read.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{Made, parsed};
use serde_json::{Map, Value, json};

use super::fields::{self, Field};
use super::overlay::{Action, Facts, Item, Overlay, Parent, Read};
use super::places::parent_of;
use super::routes::Routes;

pub(super) const PREFIX: &str = "proxmox";
const TIME_LIMIT_MS: u32 = 120_000;
/// Copies, backups and moves.
const LONG_TIME_LIMIT_MS: u32 = 1_800_000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let routes = Routes::new(facts, &overlay.left_out)?;
    let items = parsed::<Item>(&overlay.items)?;
    let settings = parsed::<Item>(&overlay.settings)?;
    let mut maker = Maker { overlay, routes, keys: BTreeMap::new(), kinds: Vec::new(), features: Vec::new() };
    for (id, item) in items.iter().chain(&settings) {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    let open = maker.routes.open();
    ensure!(open.is_empty(), "nothing is said about {open:?}");
    let used: BTreeSet<&str> = maker.kinds.iter().filter_map(|kind| kind["area"].as_str()).collect();
    let areas = overlay.areas.iter().filter(|(id, _)| used.contains(id.as_str()));
    let areas: Vec<Value> = areas.map(|(id, title)| json!({ "id": id, "title": title })).collect();
    Ok(Made {
        coverage: maker.routes.coverage(&overlay.areas),
        description: json!({ "areas": areas, "kinds": maker.kinds, "features": maker.features }),
    })
}

pub(super) struct Maker<'f> {
    pub(super) overlay: &'f Overlay,
    pub(super) routes: Routes<'f>,
    /// How payloads name the objects of each kind, in the order of the natural key.
    pub(super) keys: BTreeMap<String, Vec<(String, Value)>>,
    pub(super) kinds: Vec<Value>,
    pub(super) features: Vec<Value>,
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
