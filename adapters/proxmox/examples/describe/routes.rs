//! Which routes something is made of.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_adapter_kit::{Access, Class, Coverage};
use serde_json::{Map, Value};

use super::overlay::{Facts, FieldFacts, Route};

/// The routes of the facts, and what became of each.
pub(super) struct Routes<'f> {
    facts: &'f Facts,
    /// Names of routes, by their form without the names of variables.
    forms: BTreeMap<String, &'f str>,
    became: heddle_adapter_kit::Routes,
}

impl<'f> Routes<'f> {
    pub(super) fn new(facts: &'f Facts, same: &[Class], left_out: &[Class]) -> anyhow::Result<Self> {
        let forms = facts.routes.keys().map(|route| (form(route), route.as_str())).collect();
        let all = Self { facts, forms, became: heddle_adapter_kit::Routes::default() };
        let mut became = heddle_adapter_kit::Routes::default();
        let known = |route: &str| Ok(all.find(route)?.0.to_owned());
        became.take_same(same, known)?;
        became.leave_out(left_out, known)?;
        Ok(Self { became, ..all })
    }

    /// The route of a method and path; names of variables and a query do not count.
    pub(super) fn find(&self, route: &str) -> anyhow::Result<(&'f str, &'f Route)> {
        let asked = form(route);
        let found = self
            .forms
            .get(&asked)
            .or_else(|| self.forms.iter().find(|(known, _)| fits(known, &asked)).map(|(_, name)| name));
        let name = found.with_context(|| format!("there is no route {route}"))?;
        Ok((name, &self.facts.routes[*name]))
    }

    pub(super) fn has(&self, route: &str) -> bool {
        self.forms.contains_key(&form(route))
    }

    pub(super) fn cover(&mut self, route: &str) -> anyhow::Result<()> {
        let name = self.find(route)?.0;
        if access(name) == Access::Read {
            self.became.read(name);
        } else {
            self.became.write(name);
        }
        Ok(())
    }

    pub(super) fn fields(&self, route: &Route) -> Vec<&'f FieldFacts> {
        route.fields.iter().map(|place| &self.facts.fields[*place]).collect()
    }

    /// The path of one object of a collection.
    pub(super) fn item_of(&self, path: &str) -> Option<&'f str> {
        let prefix = format!("{path}/{{");
        self.facts.routes.keys().find_map(|route| {
            let found = route.split_once(' ')?.1;
            found.strip_prefix(&prefix)?.strip_suffix('}').filter(|rest| !rest.contains('/'))?;
            Some(found)
        })
    }

    pub(super) fn coverage(&self, areas: &Map<String, Value>) -> Coverage {
        let mut coverage = Coverage::default();
        for area in areas.keys() {
            for (name, _) in self.facts.routes.iter().filter(|(_, route)| route.area == *area) {
                let access = self.became.access(name, access(name));
                self.became.count(&mut coverage, area, name, access);
            }
        }
        coverage
    }
}

fn access(route: &str) -> Access {
    if route.starts_with("GET ") { Access::Read } else { Access::Write }
}

/// Whether a route is of a form, where it has a value for a variable.
fn fits(form: &str, route: &str) -> bool {
    let (known, asked): (Vec<&str>, Vec<&str>) = (form.split('/').collect(), route.split('/').collect());
    known.len() == asked.len()
        && known.iter().zip(asked).all(|(known, asked)| *known == "{}" || *known == asked)
}

/// A route without its query and the names of its variables.
fn form(route: &str) -> String {
    let path = route.split('?').next().unwrap_or_default();
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}
