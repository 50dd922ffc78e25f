//! The grammar of Omada: lists and objects below a site, writes that replace or patch them, and calls that act.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{Access, Class, Coverage, Made, Parent, Routes, Rows, parsed};
use serde_json::{Value, json};

use super::facts::{Facts, Leaf, Name};
use super::fields::Schemas;
use super::overlay::{Action, Item, Overlay, Read};

const PREFIX: &str = "omada";
/// Rows that one request asks for.
pub(super) const PAGE_ROWS_MAX: i64 = 1000;

/// Makes the description.
pub(super) fn make(facts: &Facts, overlay: &Overlay) -> anyhow::Result<Made> {
    let mut maker = Maker {
        facts,
        schemas: Schemas { facts, secrets: &overlay.secret_names },
        parents: &overlay.parents,
        keys: BTreeMap::new(),
        rows: Rows::new(PREFIX),
        routes: Routes::default(),
    };
    for (id, item) in &parsed::<Item>(&overlay.items)? {
        maker.item(id, item).with_context(|| format!("item '{id}'"))?;
    }
    for (id, read) in parsed::<Read>(&overlay.kinds)?.iter().chain(&parsed::<Read>(&overlay.reads)?) {
        maker.read(id, read).with_context(|| format!("read '{id}'"))?;
    }
    for (id, action) in &parsed::<Action>(&overlay.actions)? {
        maker.action(id, action).with_context(|| format!("action '{id}'"))?;
    }
    for (part, why) in &overlay.not_considered {
        ensure!(!why.is_empty(), "'{part}' is not considered, and nothing says why");
    }
    maker.check_parents()?;
    let coverage = coverage(maker.routes, facts, overlay)?;
    coverage.require_judged()?;
    Ok(Made { coverage, description: maker.rows.description(&overlay.areas)? })
}

fn coverage(mut routes: Routes, facts: &Facts, overlay: &Overlay) -> anyhow::Result<Coverage> {
    let names = facts.routes.keys().map(|name| Name::parse(name)).collect::<Result<Vec<_>, _>>()?;
    let replaced = facts.routes.keys().zip(&names);
    let replaced = replaced.filter(|(_, name)| names.iter().any(|other| other.replaces(name)));
    let older = Class {
        name: None,
        why: "an older version does nothing that the newest does not".to_owned(),
        access: None,
        routes: replaced.map(|(route, _)| route.clone()).collect(),
    };
    routes.take_same(&[older], |route| Ok(route.to_owned()))?;
    let known = |route: &str| facts.route(route).map(|_| route.to_owned());
    routes.take_same(&overlay.same, known)?;
    routes.leave_out(&overlay.left_out, known)?;
    let mut coverage = Coverage::default();
    for area in overlay.areas.keys() {
        for ((route, facts), name) in facts.routes.iter().zip(&names) {
            if facts.area == *area {
                let is_read = name.method == "GET" || overlay.post_reads.contains(route);
                let access = if is_read { Access::Read } else { Access::Write };
                routes.count(&mut coverage, area, route, access);
            }
        }
    }
    Ok(coverage)
}

pub(super) struct Maker<'f> {
    pub(super) facts: &'f Facts,
    pub(super) schemas: Schemas<'f>,
    pub(super) parents: &'f BTreeMap<String, Parent>,
    /// The fields of the natural key, with those of the parents, by kind.
    pub(super) keys: BTreeMap<String, Vec<String>>,
    pub(super) rows: Rows,
    pub(super) routes: Routes,
}

impl<'f> Maker<'f> {
    pub(super) fn parent(&self, name: Option<&String>) -> anyhow::Result<Option<&'f Parent>> {
        name.map(|name| self.parents.get(name).with_context(|| format!("there is no parent '{name}'")))
            .transpose()
    }

    /// Every parent is a kind with a list.
    fn check_parents(&self) -> anyhow::Result<()> {
        for (name, parent) in self.parents {
            let kind = self.rows.kind(&parent.kind);
            let kind = kind.with_context(|| format!("the parent '{name}' is of no kind"))?;
            ensure!(kind["binding"]["list"].is_object(), "the parent '{name}' has no list");
        }
        Ok(())
    }
}

/// The parts of a list that it is asked for in. `body` has what a POST sends.
pub(super) fn page(route: &super::facts::Route, body: &[(String, Leaf)]) -> Option<Value> {
    let own = |name: &str| match body.iter().find(|(known, _)| known == name) {
        Some((_, leaf)) => Some(leaf.clone()),
        None => route.query.get(name).and_then(Value::as_str).map(Leaf::parse),
    };
    let names = [("page", "pageSize"), ("currentPage", "currentPageSize")];
    let (at, size, leaf) = names.into_iter().find_map(|(at, size)| Some((at, size, own(size)?)))?;
    Some(json!({
        "by": "number", "at": at, "size": size, "first": 1, "total": "/totalRows",
        "size-max": leaf.high.unwrap_or(PAGE_ROWS_MAX),
    }))
}
