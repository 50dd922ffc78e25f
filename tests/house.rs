//! The rooms of the server: a room names itself and the rooms below it, and no circle of files is large.
//!
//! Read from the sources, with the unit tests left out: every path of an import, an expression, an attribute or a macro that
//! leads into another module counts. A method that another file gives a type does not. The rooms are those of the table in
//! ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemMod, ItemUse, UseTree};

/// Most files that may need each other in a circle.
const CIRCLE_FILES_MAX: usize = 12;

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
        let first = path.first()?;
        if first == "crate" {
            return Some(path[1..].to_vec());
        }
        let relative = path.iter().take_while(|segment| matches!(segment.as_str(), "self" | "super")).count();
        let ups = path[..relative].iter().filter(|segment| *segment == "super").count();
        if relative == 0 && !self.children.contains(first) {
            return None;
        }
        let base = &self.of[..self.of.len().saturating_sub(ups)];
        Some(base.iter().chain(&path[relative..]).cloned().collect())
    }

    /// Paths among tokens that are not parsed, and in their texts.
    fn tokens(&mut self, tokens: &impl ToString) {
        let text = tokens.to_string().replace(" :: ", "::");
        let is_of_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let words = text.split(|c| !is_of_path(c)).filter(|word| word.contains("::"));
        self.paths.extend(words.map(|word| word.split("::").map(str::to_owned).collect::<Vec<_>>()));
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
            assert!(
                module.content.is_none(),
                "module '{}' stands within a file: give it its own",
                module.ident
            );
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.tokens(&call.tokens);
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &syn::MetaList) {
        self.tokens(&list.tokens);
        visit::visit_meta_list(self, list);
    }

    fn visit_item_use(&mut self, import: &ItemUse) {
        if !is_test(&import.attrs) {
            self.import(&import.tree, &[]);
        }
    }

    /// That an item is visible in a module is no need of that module.
    fn visit_vis_restricted(&mut self, _: &syn::VisRestricted) {}

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

/// Each room with its modules, from the bottom to the top, as ARCHITECTURE.md lists them.
fn rooms() -> Vec<(String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| Room | Modules |\n|---|---|\n").expect("the table of rooms is there");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let mut rooms: Vec<(String, Vec<String>)> = rows
        .map(|row| {
            let (room, modules) = row.trim_matches('|').split_once('|').expect("a row has two cells");
            let modules = modules.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (room.trim().to_owned(), modules)
        })
        .collect();
    rooms.reverse();
    rooms
}

fn top(module: &Module) -> &str {
    module.first().map_or("lib", String::as_str)
}

#[test]
fn no_room_names_one_above_it() {
    let (arrows, rooms) = (arrows(), rooms());
    assert!(arrows.len() > 200, "the sources were found: {}", arrows.len());
    let room = |module: &Module| {
        let found = rooms.iter().position(|(_, modules)| modules.iter().any(|one| one == top(module)));
        found.unwrap_or_else(|| panic!("module '{}' stands in no room of ARCHITECTURE.md", top(module)))
    };
    let mut up = Vec::new();
    for (from, named) in &arrows {
        for to in named.iter().filter(|to| room(to) > room(from)) {
            let named = |module: &Module| format!("{} ({})", module.join("::"), rooms[room(module)].0);
            up.push(format!("{} names {}", named(from), named(to)));
        }
    }
    assert!(up.is_empty(), "{}", up.join("\n"));
}

/// The modules that each module leads to, in any number of steps.
fn reached(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let from = |module| {
        let mut found = BTreeSet::new();
        let mut left = vec![module];
        while let Some(named) = left.pop().and_then(|module| arrows.get(module)) {
            left.extend(named.iter().filter(|to| found.insert(*to)));
        }
        found
    };
    arrows.keys().map(|module| (module, from(module))).collect()
}

/// The sets of modules that lead to each other.
fn circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<String>> {
    let reached = reached(arrows);
    let circle = |module: &&Module| -> BTreeSet<String> {
        let back = |to: &&&Module| reached[*to].contains(*module);
        reached[*module].iter().filter(back).map(|module| module.join("::")).collect()
    };
    reached.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn no_circle_of_files_is_large() {
    let circles = circles(&arrows());
    let large: Vec<_> = circles.iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX).collect();
    assert!(large.is_empty(), "files that need each other: {large:#?}");
}

#[test]
fn a_circle_is_what_leads_back_to_itself() {
    let module = |name: &str| vec![name.to_owned()];
    let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")];
    let mut of: BTreeMap<Module, BTreeSet<Module>> =
        ["a", "b", "c", "d", "e"].map(|name| (module(name), BTreeSet::new())).into();
    for (from, to) in arrows {
        of.get_mut(&module(from)).unwrap().insert(module(to));
    }
    assert_eq!(circles(&of), BTreeSet::from([["a", "b", "c"].map(str::to_owned).into()]));
}

#[test]
fn each_room_has_its_modules_once() {
    let there: BTreeSet<String> = arrows().keys().map(|module| top(module).to_owned()).collect();
    let listed: Vec<String> = rooms().into_iter().flat_map(|(_, modules)| modules).collect();
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!((once.len(), &once), (listed.len(), &there));
}

#[test]
fn every_way_to_name_a_module_is_followed() {
    let text = "
        use crate::fabric::{Standing, runs::{self, Run as One}};
        use super::super::webhooks::*;
        #[schemars(with = \"Option<super::view::One>\")]
        fn f() { crate::staging::Drivers::of(app); probe::test(); other_crate::sync(); self::super::fault::of(); }
        fn g() { select! { () = crate::sync::run(app) => {} } }
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
            "sso::view::One",
            "staging::Drivers::of",
            "sso::ldap::probe::test",
            "sso::fault::of",
            "sync::run",
        ]
    );
}
