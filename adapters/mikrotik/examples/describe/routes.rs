//! How much of the API the description covers. Routes are a method and a path: `PUT ip/pool`, `POST ip/pool/unset`.

use anyhow::ensure;
use heddle_adapter_kit::{Access, Class, Coverage, Routes};

use super::grammar::{Maker, joined};
use super::overlay::{Facts, Menu, Overlay};

/// Commands of lists for which an update stands, by the sort of the reason.
const STANDS: [(&str, &str); 4] =
    [("enable", "switch"), ("disable", "switch"), ("unset", "clear"), ("reset", "defaults")];

/// The routes of a menu with what they usually do.
fn of_menu(path: &str, menu: &Menu) -> Vec<(String, Access)> {
    let has = [
        (menu.list || menu.read, format!("GET {path}"), Access::Read),
        (menu.get, format!("GET {path}/{{id}}"), Access::Read),
        (menu.create, format!("PUT {path}"), Access::Write),
        (menu.update, format!("PATCH {path}/{{id}}"), Access::Write),
        (menu.delete, format!("DELETE {path}/{{id}}"), Access::Write),
        (menu.set, format!("POST {path}/set"), Access::Write),
    ];
    let own = has.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, route, access)| (route, access));
    let commands = menu.commands.keys().map(|name| (format!("POST {}", joined(path, name)), Access::Write));
    own.chain(commands).collect()
}

impl Maker<'_> {
    /// Tells of the routes that every list has which other calls stand for them, once the features are made.
    pub(super) fn stand_ins(&mut self) -> anyhow::Result<()> {
        let mut nothing = Vec::new();
        for (path, menu) in &self.facts.menus {
            if menu.get {
                let why = self.reason("row");
                self.routes.same_read(format!("GET {path}/{{id}}"), why);
            }
            let update = if menu.set { format!("POST {path}/set") } else { format!("PATCH {path}/{{id}}") };
            let is_written = self.routes.is_written(&update);
            for (name, sort) in STANDS.iter().filter(|(name, _)| menu.commands.contains_key(*name)) {
                let route = format!("POST {}", joined(path, name));
                if is_written {
                    let why = self.reason(sort);
                    self.routes.same(route, why);
                } else {
                    nothing.push(route);
                }
            }
        }
        let class =
            Class { name: None, why: self.reason("nothing").to_owned(), access: None, routes: nothing };
        self.routes.leave_out(&[class], |route| Ok(route.to_owned()))
    }
}

/// Takes the classes of the overlay.
pub(super) fn judge(routes: &mut Routes, overlay: &Overlay, facts: &Facts) -> anyhow::Result<()> {
    let known = |route: &str| {
        let mut menus = facts.menus.iter();
        let is_there = menus.any(|(path, menu)| of_menu(path, menu).iter().any(|(known, _)| known == route));
        ensure!(is_there, "there is no route {route}");
        Ok(route.to_owned())
    };
    routes.take_same(&overlay.same, known)?;
    routes.leave_out(&overlay.left_out, known)
}

/// Counts the routes of all areas.
pub(super) fn coverage(routes: &Routes, overlay: &Overlay, facts: &Facts) -> Coverage {
    let mut coverage = Coverage::default();
    for area in overlay.areas.keys() {
        for (path, menu) in facts.menus.iter().filter(|(_, menu)| menu.area == *area) {
            for (route, usual) in of_menu(path, menu) {
                routes.count(&mut coverage, area, &route, routes.access(&route, usual));
            }
        }
    }
    coverage
}
