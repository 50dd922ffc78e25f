//! Names that do not belong where they would be convenient: of vendors in the host, of features in the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use syn::visit::{self, Visit};
use syn::{Attribute, File, ImplItemFn, ItemFn, ItemMod};

use super::paths::{files, is_test};
use super::rooms::{host, members};

/// The words of the field among the segments that the interface gives a permission; all others are vendors.
const OF_FIELD: [&str; 6] = ["network", "hypervisor", "vpn", "firewall", "system", "monitoring"];
/// The first segments of routes that the kernel has itself.
const OF_KERNEL: [&str; 5] = ["audit", "events", "health", "logs", "ws"];

/// The strings and the tokens of macros of one file, without its unit tests.
#[derive(Default)]
struct Strings {
    found: Vec<String>,
    /// Comments that document an item count, too.
    with_comments: bool,
}

impl Strings {
    fn of(file: &Path, with_comments: bool) -> Vec<String> {
        let text = fs::read_to_string(file).unwrap();
        let parsed: File =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut strings = Self { with_comments, ..Self::default() };
        strings.visit_file(&parsed);
        strings.found
    }
}

impl Visit<'_> for Strings {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &ItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        if self.with_comments || !attribute.path().is_ident("doc") {
            visit::visit_attribute(self, attribute);
        }
    }

    fn visit_lit_str(&mut self, text: &syn::LitStr) {
        self.found.push(text.value());
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.found.push(call.tokens.to_string());
    }

    fn visit_meta_list(&mut self, list: &syn::MetaList) {
        self.found.push(list.tokens.to_string());
    }
}

/// The sources of a room, without files that hold unit tests only.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(folder, &mut found);
    let holds_tests = |file: &PathBuf| {
        file.strip_prefix(folder)
            .unwrap()
            .iter()
            .any(|part| ["tests", "tests.rs", "testing.rs"].iter().any(|name| part == *name))
    };
    found.retain(|file| !holds_tests(file));
    found
}

/// The vendors that have an adapter or a simulator, by their folders, and those of the tables that the interface fixes.
fn vendors() -> BTreeSet<String> {
    let root = host().join("..");
    let with = |folder: &str, file: &str| -> Vec<String> {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap);
        let entries = entries.filter(|entry| entry.path().join(file).is_file());
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let tables = fs::read_to_string(root.join("host/changes/assets/vendors.json")).unwrap();
    let tables: Value = serde_json::from_str(&tables).unwrap();
    let gateways = tables["gateways"].as_array().unwrap().iter().map(|id| id.as_str().unwrap());
    let segments = tables["permissions"].as_object().unwrap().keys().map(String::as_str);
    let fixed = gateways.chain(segments.filter(|segment| !OF_FIELD.contains(segment))).map(str::to_owned);
    let mut vendors: BTreeSet<String> = fixed.collect();
    vendors.extend(with("adapters", "manifest.json"));
    vendors.extend(with("tests/labs", "src/main.rs"));
    vendors
}

/// Whether a text in lower case has this word: with neither a letter nor a digit beside it.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_end = |beside: Option<char>| !beside.is_some_and(char::is_alphanumeric);
        is_end(text[..at].chars().next_back()) && is_end(text[at + word.len()..].chars().next())
    })
}

#[test]
fn no_vendor_is_named_outside_of_its_adapter() {
    let (root, vendors) = (host().join(".."), vendors());
    let mut folders: Vec<PathBuf> = members().keys().map(|room| host().join(room).join("src")).collect();
    folders.extend(["host/xtask/src", "marketplace/src", "plugins-sdk/src"].map(|folder| root.join(folder)));
    let (mut named, mut strings) = (Vec::new(), 0);
    for file in folders.iter().flat_map(|folder| sources(folder)) {
        for text in Strings::of(&file, true) {
            strings += 1;
            let lower = text.to_lowercase();
            if vendors.iter().any(|vendor| has_word(&lower, vendor)) {
                named.push(format!("{}: {text}", file.strip_prefix(&root).unwrap_or(&file).display()));
            }
        }
    }
    let mut texts = vec![root.join("Cargo.toml")];
    for folder in ["wit/adapter", "wit/host"] {
        texts.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    for file in texts {
        let text = fs::read_to_string(&file).unwrap().to_lowercase();
        let found = vendors.iter().filter(|vendor| has_word(&text, vendor));
        named.extend(found.map(|vendor| format!("{}: {vendor}", file.display())));
    }
    assert!(strings > 5_000, "the strings were found: {strings}");
    assert!(named.is_empty(), "a vendor is named: {named:#?}");
}

#[test]
fn a_word_is_found_whole() {
    for (text, is_there) in [
        ("acme", true),
        ("of acme's router", true),
        ("gateway-acme-vpn", true),
        ("lab_acme", true),
        ("acmenet, then acme.vlan", true),
        ("pacme", false),
        ("acme2", false),
        ("acmeé", false),
    ] {
        assert_eq!(has_word(text, "acme"), is_there, "{text}");
    }
}

#[test]
fn the_kernel_names_no_route_of_a_feature() {
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("surface/snapshots/routes.txt");
    let routes = fs::read_to_string(snapshot).unwrap();
    let paths = routes.lines().filter_map(|line| line.split_whitespace().nth(1)?.strip_prefix('/'));
    let segments: BTreeSet<&str> =
        paths.filter_map(|path| path.split('/').next()).filter(|first| !OF_KERNEL.contains(first)).collect();
    assert!(segments.len() > 15, "{segments:?}");
    let mut named = Vec::new();
    for file in sources(&host().join("kernel/src")) {
        for text in Strings::of(&file, false) {
            let words = text.split(|c: char| !(c.is_alphanumeric() || "/-_".contains(c)));
            let mut firsts = words.filter_map(|word| word.strip_prefix('/')?.split('/').next());
            if firsts.any(|first| segments.contains(first)) {
                named.push(format!("{}: {text}", file.display()));
            }
        }
    }
    assert!(named.is_empty(), "the kernel names a route of a feature: {named:#?}");
}

#[test]
fn a_name_is_found_in_strings_comments_and_macros_and_not_in_unit_tests() {
    let text = r#"
        /// Documented.
        #[name(of = "attribute")]
        fn shown() { call("argument", format!("{} in a macro", 1)); }
        #[cfg(test)]
        mod tests { fn hidden() { call("hidden"); } }
        #[cfg(test)]
        fn helper() { call("hidden"); }
    "#;
    let found = |with_comments| {
        let mut strings = Strings { with_comments, ..Strings::default() };
        strings.visit_file(&syn::parse_file(text).unwrap());
        strings.found.join("\n")
    };
    for (word, all, code) in [
        ("Documented", true, false),
        ("attribute", true, true),
        ("argument", true, true),
        ("in a macro", true, true),
    ] {
        assert_eq!((found(true).contains(word), found(false).contains(word)), (all, code), "{word}");
    }
    assert!(!found(true).contains("hidden"));
}
