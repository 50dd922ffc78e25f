//! Which file names which, read from the sources, with the unit tests left out.
//!
//! Every path of an import, an expression, an attribute or a macro that leads into another module counts. A method that another
//! file gives a type does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemMod, ItemUse, UseTree};

/// A module by its path from the root of the crate, which is empty.
pub(super) type Module = Vec<String>;

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

pub(super) fn is_test(attributes: &[Attribute]) -> bool {
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

/// The sources in a folder, at any depth.
pub(super) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn module_of(sources: &Path, file: &Path) -> Module {
    let relative = file.strip_prefix(sources).unwrap().with_extension("");
    let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    module
}

/// The modules that each module of a crate names, all of them files of it.
pub(super) fn arrows(sources: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut found = Vec::new();
    files(sources, &mut found);
    let module_of = |file: &Path| module_of(sources, file);
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
