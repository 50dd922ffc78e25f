//! The rooms of the server, and who may name whom: a room names itself and the rooms below it.
//!
//! Read from the sources, with the unit tests left out: every path of an import or of an expression that leads into
//! another module counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemMod, ItemUse, UseTree};

/// From the bottom to the top, with the modules of each. What is not named here fails the test.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "kernel",
        &[
            "app",
            "audit",
            "bulk",
            "cache",
            "caller",
            "checks",
            "config",
            "events",
            "feature",
            "files",
            "hashing",
            "health",
            "http",
            "keys",
            "listener",
            "logs",
            "mail",
            "metrics",
            "misfit",
            "modules",
            "names",
            "nearest",
            "outgoing",
            "process",
            "retention",
            "sample",
            "slug",
            "task",
            "tls",
            "unreached",
            "version",
        ],
    ),
    ("access control", &["access_control"]),
    ("identity", &["auth"]),
    ("tenancy", &["setup", "tenancy"]),
    ("federation", &["oauth2", "sso"]),
    ("inventory", &["adapters", "controllers", "credentials", "devices", "sync"]),
    ("changes", &["staging"]),
    ("delivery", &["notifications", "webhooks"]),
    ("fabric", &["fabric"]),
    ("automation", &["automation"]),
    ("operate", &["operate"]),
    ("composition", &["features", "lib", "main"]),
];

/// A module by its path from the root of the crate, which is empty.
type Module = Vec<String>;

/// What one file names outside of itself.
#[derive(Default)]
struct Names {
    of: Module,
    /// Modules within this one, which a path can begin with.
    children: BTreeSet<String>,
    paths: Vec<Vec<String>>,
}

impl Names {
    /// From the root; `None` for a path into another crate or to something local.
    fn resolved(&self, path: &[String]) -> Option<Vec<String>> {
        let ups = path.iter().take_while(|segment| *segment == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(self.of.iter().chain(&path[1..]).cloned().collect()),
            "super" => {
                let base = &self.of[..self.of.len().saturating_sub(ups)];
                Some(base.iter().chain(&path[ups..]).cloned().collect())
            }
            first if self.children.contains(first) => Some(self.of.iter().chain(path).cloned().collect()),
            _ => None,
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String]) {
        let with = |ident: &syn::Ident| before.iter().cloned().chain([ident.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            UseTree::Name(name) if name.ident == "self" => self.paths.push(before.to_vec()),
            UseTree::Name(name) => self.paths.push(with(&name.ident)),
            UseTree::Rename(rename) => self.paths.push(with(&rename.ident)),
            UseTree::Glob(_) => self.paths.push(before.to_vec()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, before)),
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

impl Visit<'_> for Names {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, import: &ItemUse) {
        if !is_test(&import.attrs) {
            self.import(&import.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/server/src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn module_of(file: &Path) -> Module {
    let relative = file.strip_prefix(sources()).unwrap().with_extension("");
    let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    module
}

/// The modules that each module names, all of them files of the server.
fn arrows() -> BTreeMap<Module, BTreeSet<Module>> {
    let mut found = Vec::new();
    files(&sources(), &mut found);
    found.retain(|file| !module_of(file).iter().any(|part| part == "tests"));
    let modules: BTreeSet<Module> = found.iter().map(|file| module_of(file)).collect();
    let mut arrows = BTreeMap::new();
    for file in &found {
        let text = fs::read_to_string(file).unwrap();
        let parsed: File =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let of = module_of(file);
        let is_child = |module: &&Module| module.len() == of.len() + 1 && module.starts_with(&of);
        let children = modules.iter().filter(is_child).map(|module| module[of.len()].clone()).collect();
        let mut names = Names { of: of.clone(), children, paths: Vec::new() };
        names.visit_file(&parsed);
        let resolved = names.paths.iter().filter_map(|path| names.resolved(path));
        let module_in = |path: Vec<String>| {
            (0..=path.len()).rev().map(|n| path[..n].to_vec()).find(|m| modules.contains(m))
        };
        let targets: BTreeSet<Module> =
            resolved.filter_map(module_in).filter(|module| *module != of).collect();
        arrows.insert(of, targets);
    }
    arrows
}

/// The place of a module's room, from the bottom.
fn room(module: &Module) -> usize {
    let top = module.first().map_or("lib", String::as_str);
    let found = ROOMS.iter().position(|(_, modules)| modules.contains(&top));
    found.unwrap_or_else(|| panic!("module '{top}' stands in no room: name it in ROOMS"))
}

#[test]
fn no_room_names_one_above_it() {
    let arrows = arrows();
    assert!(arrows.len() > 200, "the sources were found: {}", arrows.len());
    let mut up = Vec::new();
    for (from, named) in &arrows {
        for to in named.iter().filter(|to| room(to) > room(from)) {
            up.push(format!(
                "{} ({}) names {} ({})",
                from.join("::"),
                ROOMS[room(from)].0,
                to.join("::"),
                ROOMS[room(to)].0
            ));
        }
    }
    assert!(up.is_empty(), "{}", up.join("\n"));
}

#[test]
fn every_room_has_its_modules() {
    let modules: BTreeSet<String> =
        arrows().into_keys().map(|module| module.first().map_or("lib".to_owned(), Clone::clone)).collect();
    for (room, named) in ROOMS {
        for module in *named {
            assert!(modules.contains(*module), "room '{room}' names '{module}', which there is not");
        }
    }
}

#[test]
fn every_way_to_name_a_module_is_followed() {
    let text = "
        use crate::fabric::{Standing, runs::{self, Run as One}};
        use super::super::webhooks::*;
        fn f() { crate::staging::Drivers::of(app); probe::test(); other_crate::sync(); }
        #[cfg(test)]
        mod tests { use crate::operate; }
    ";
    let (of, children) = (vec!["sso".to_owned(), "ldap".to_owned()], BTreeSet::from(["probe".to_owned()]));
    let mut names = Names { of, children, paths: Vec::new() };
    names.visit_file(&syn::parse_file(text).unwrap());
    let found: Vec<String> =
        names.paths.iter().filter_map(|path| names.resolved(path)).map(|path| path.join("::")).collect();
    assert_eq!(
        found,
        [
            "fabric::Standing",
            "fabric::runs",
            "fabric::runs::Run",
            "webhooks",
            "staging::Drivers::of",
            "sso::ldap::probe::test",
        ]
    );
}
