//! How much of the API the description covers.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{Access, Coverage, Routes};

use super::facts::{Facts, Route};
use super::overlay::{Class, Overlay};

/// Operations that only read.
const READS: [&str; 4] = ["list", "read", "settings-read", "pending-read"];

/// Takes the classes of the overlay.
pub(super) fn judge(routes: &mut Routes, overlay: &Overlay, facts: &Facts) -> anyhow::Result<()> {
    let named: BTreeSet<String> =
        overlay.same.iter().chain(&overlay.left_out).flat_map(|class| class.named(facts)).collect();
    let all = |classes: &[Class]| -> anyhow::Result<Vec<heddle_adapter_kit::Class>> {
        classes.iter().map(|class| class.routes_of(facts, &named)).collect()
    };
    routes.take_same(&all(&overlay.same)?, |route| known(facts, route))?;
    routes.leave_out(&all(&overlay.left_out)?, |route| known(facts, route))
}

/// Counts the routes of all areas.
pub(super) fn coverage(routes: &Routes, overlay: &Overlay, facts: &Facts) -> Coverage {
    let mut coverage = Coverage::default();
    for area in overlay.areas.keys() {
        for (name, found, route) in every(facts) {
            if found == area.as_str() {
                let usual = if READS.contains(&route.op.as_str()) { Access::Read } else { Access::Write };
                routes.count(&mut coverage, area, &name, routes.access(&name, usual));
            }
        }
    }
    coverage
}

impl Class {
    /// The routes that it names one by one, or by their model.
    fn named<'f>(&'f self, facts: &'f Facts) -> impl Iterator<Item = String> + 'f {
        let of_model = every(facts).filter(move |(_, _, route)| self.models.contains(&route.model));
        self.routes.iter().cloned().chain(of_model.map(|(name, _, _)| name))
    }

    /// All its routes; those of an operation that no other class names.
    fn routes_of(
        &self,
        facts: &Facts,
        named: &BTreeSet<String>,
    ) -> anyhow::Result<heddle_adapter_kit::Class> {
        let of_operation = every(facts)
            .filter(|(name, _, route)| self.operations.contains(&route.op) && !named.contains(name));
        let routes: Vec<String> = self.named(facts).chain(of_operation.map(|(name, _, _)| name)).collect();
        ensure!(!routes.is_empty(), "no route is meant by '{}'", self.why);
        Ok(heddle_adapter_kit::Class { name: None, why: self.why.clone(), access: self.access, routes })
    }
}

/// Every route with its area.
fn every(facts: &Facts) -> impl Iterator<Item = (String, &str, &Route)> {
    facts.paths.iter().flat_map(|(path, known)| {
        let methods = known.methods.iter();
        methods.map(move |(method, route)| (format!("{method} {path}"), known.area.as_str(), route))
    })
}

/// A route of the overlay, as the facts have it.
pub(super) fn known(facts: &Facts, route: &str) -> anyhow::Result<String> {
    let (method, path) = route.split_once(' ').context("a route is a method and a path")?;
    let found = facts.paths.get(path).and_then(|known| known.methods.get(method));
    found.with_context(|| format!("there is no route {route}"))?;
    Ok(route.to_owned())
}
