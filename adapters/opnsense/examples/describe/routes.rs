//! How much of the API the description covers.

use anyhow::Context as _;
use heddle_adapter_kit::{Access, Coverage, Routes};

use super::overlay::{Facts, Overlay};

/// Operations of the facts that only read. The facts call much of what only reads an action.
const READS: [&str; 3] = ["list", "read", "download"];

/// Takes the classes of the overlay.
pub(super) fn judge(routes: &mut Routes, overlay: &Overlay, facts: &Facts) -> anyhow::Result<()> {
    routes.take_same(&overlay.same, |route| known(facts, route))?;
    routes.leave_out(&overlay.left_out, |route| known(facts, route))
}

/// Counts the routes of all areas.
pub(super) fn coverage(routes: &Routes, overlay: &Overlay, facts: &Facts) -> Coverage {
    let mut coverage = Coverage::default();
    for area in overlay.areas.keys() {
        for (path, controller) in facts.controllers.iter().filter(|(_, found)| found.area == *area) {
            for (name, command) in &controller.commands {
                let route = format!("/api/{path}/{name}");
                let usual = if READS.contains(&command.op.as_str()) { Access::Read } else { Access::Write };
                routes.count(&mut coverage, area, &route, routes.access(&route, usual));
            }
        }
    }
    coverage
}

/// A route's path without its values.
pub(super) fn plain(route: &str) -> String {
    route.split('/').take(5).collect::<Vec<_>>().join("/")
}

fn known(facts: &Facts, route: &str) -> anyhow::Result<String> {
    let mut parts = route.trim_start_matches("/api/").splitn(3, '/');
    let controller = [parts.next(), parts.next()].into_iter().flatten().collect::<Vec<_>>().join("/");
    let found = facts.controllers.get(&controller);
    found
        .filter(|found| parts.next().is_some_and(|name| found.commands.contains_key(name)))
        .with_context(|| format!("there is no route {route}"))?;
    Ok(plain(route))
}
