//! The grammar of UniFi: three interfaces with a form each for lists, objects and updates, and commands of managers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use heddle_adapter_kit::{Access, Coverage, Made, Parent, Routes, Rows, parsed};
use serde_json::{Value, json};

use super::facts::{Api, Body, Facts, Name, Route};
use super::fields::Secrets;
use super::overlay::{Action, File, Item, Overlay, Read};

const PREFIX: &str = "unifi";
/// Devices are provisioned after a write, which the controller does not wait for.
pub(super) const TIME_LIMIT_MS: u32 = 30_000;
/// A backup is answered when it is written.
pub(super) const LONG_TIME_LIMIT_MS: u32 = 300_000;
/// Rows that one request of the official interface asks for.
const PAGE_ROWS_MAX: u32 = 200;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let mut maker = Maker {
        facts,
        overlay,
        secrets: Secrets { names: &overlay.secret_names },
        keys: BTreeMap::new(),
        shapes: BTreeMap::new(),
        of_controller: BTreeSet::new(),
        rows: Rows::new(PREFIX),
        routes: Routes::default(),
    };
    let items = parsed::<Item>(&overlay.items)?;
    // What writes the objects of another item comes behind it.
    let (own, of_others): (Vec<_>, Vec<_>) = items.iter().partition(|(_, item)| item.kind.is_none());
    for (id, item) in own.into_iter().chain(of_others) {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, read) in &parsed::<Read>(&overlay.reads)? {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    for (id, file) in &parsed::<File>(&overlay.files)? {
        maker.file(id, file).with_context(|| format!("file '{id}'"))?;
    }
    let coverage = coverage(&mut maker.routes, facts, overlay)?;
    coverage.require_judged()?;
    let mut description = maker.rows.sorted().description(&overlay.areas)?;
    for list in ["kinds", "features"] {
        for row in description[list].as_array_mut().into_iter().flatten() {
            let id = row["id"].as_str().unwrap_or_default();
            let id = if list == "kinds" { id } else { id.trim_start_matches("unifi.") };
            if maker.of_controller.contains(&(list, id.to_owned())) {
                row["per"] = json!("controller");
            }
        }
    }
    Ok(Made { coverage, description })
}

fn coverage(routes: &mut Routes, facts: &Facts, overlay: &Overlay) -> anyhow::Result<Coverage> {
    let known = |route: &str| {
        facts.routes.get(route).with_context(|| format!("there is no route '{route}'"))?;
        Ok(route.to_owned())
    };
    routes.take_same(&overlay.same, known)?;
    routes.leave_out(&overlay.left_out, known)?;
    let mut coverage = Coverage::default();
    for area in overlay.areas.keys() {
        for (route, told) in facts.routes.iter().filter(|(_, told)| told.area == *area) {
            let usual = match told {
                Route { session: true, .. } => Access::Session,
                Route { reads: true, .. } => Access::Read,
                _ => Access::Write,
            };
            let access = routes.access(route, usual);
            routes.count(&mut coverage, area, route, access);
        }
    }
    Ok(coverage)
}

pub(super) struct Maker<'f> {
    pub(super) facts: &'f Facts,
    pub(super) overlay: &'f Overlay,
    pub(super) secrets: Secrets<'f>,
    /// The fields of the natural key, with those of the parents, by kind.
    pub(super) keys: BTreeMap<String, Vec<String>>,
    /// The body that objects of a kind are written with.
    pub(super) shapes: BTreeMap<String, Body>,
    /// Kinds and features that belong to no site, by their list.
    pub(super) of_controller: BTreeSet<(&'static str, String)>,
    pub(super) rows: Rows,
    pub(super) routes: Routes,
}

impl<'f> Maker<'f> {
    /// What is known of a route.
    pub(super) fn route(&self, name: &str) -> anyhow::Result<&'f Route> {
        let found = self.overlay.bodies.get(name).or_else(|| self.facts.routes.get(name));
        found.with_context(|| format!("there is no route '{name}'"))
    }

    /// The body of a route.
    pub(super) fn body(&self, name: &str) -> anyhow::Result<Body> {
        let route = self.route(name)?;
        match (&route.body, &route.like) {
            (Some(body), _) => Ok(body.clone()),
            (None, Some(like)) => self.body(like),
            (None, None) => Ok(Body::default()),
        }
    }

    pub(super) fn parent(&self, name: Option<&String>) -> anyhow::Result<Option<&'f Parent>> {
        name.map(|name| {
            self.overlay.parents.get(name).with_context(|| format!("there is no parent '{name}'"))
        })
        .transpose()
    }

    /// Notes a route that something is made of.
    pub(super) fn claim(&mut self, route: &str, access: Access) {
        match access {
            Access::Write => self.routes.write(route.to_owned()),
            Access::Read | Access::Session => self.routes.read(route.to_owned()),
        }
    }

    fn file(&mut self, id: &str, file: &File) -> anyhow::Result<()> {
        let binding = json!({
            "noun": heddle_adapter_kit::noun(&file.title),
            "file": { "path": file.path },
        });
        let shown = json!({ "name": file.name, "content-type": file.content_type });
        self.rows.add_file((id, &file.area), &file.title, (&file.per, shown), binding)
    }
}

/// How a list of an interface is read.
pub(super) fn listed(name: &Name<'_>, path: &str) -> Value {
    let mut list = json!({ "path": path });
    if name.method != "GET" {
        list["method"] = json!(name.method);
    }
    if let Some(command) = name.command {
        list["body"] = json!({ "cmd": command });
    }
    match name.api() {
        Api::Official => {
            list["rows"] = json!("/data");
            list["page"] = json!({
                "by": "offset", "at": "offset", "size": "limit", "size-max": PAGE_ROWS_MAX, "total": "/totalCount",
            });
        }
        Api::First => list["rows"] = json!("/data"),
        Api::Second => list["rows"] = json!(""),
    }
    list
}

/// A path with a query.
pub(super) fn with_query(path: &str, query: Option<&String>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}
