//! Files that need each other: no circle of them is large.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Module, arrows};
use super::rooms::{host, members};

/// Most files that may need each other in a circle.
const CIRCLE_FILES_MAX: usize = 12;

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
    let mut files = 0;
    for room in members().into_keys() {
        let arrows = arrows(&host().join(&room).join("src"));
        files += arrows.len();
        let circles = circles(&arrows);
        let large: Vec<_> = circles.iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX).collect();
        assert!(large.is_empty(), "files of {room} that need each other: {large:#?}");
    }
    assert!(files > 400, "the sources were found: {files}");
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
