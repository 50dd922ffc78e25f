//! What the vendor's contract says about routes, lists of items and fields, loaded from `facts.json`.
//!
//! The file is made by `facts.py`. It decides everything that is the same for all models; what a controller does by
//! itself is code.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde::Deserialize;

use crate::release::Release;

/// What a route does with its list of items, or with the settings of its model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    List,
    Read,
    Create,
    Update,
    Delete,
    Toggle,
    Move,
    SettingsWrite,
    Apply,
    Action,
    Import,
    Download,
    TableAdd,
    TableDelete,
    TableFlush,
}

/// One route: the last word of its path, and what it takes.
#[expect(clippy::struct_excessive_bools, reason = "flags of the contract, each of its own")]
#[derive(Deserialize)]
pub(crate) struct Command {
    pub(crate) op: Operation,
    /// The list of items or the settings that it reads or writes.
    pub(crate) node: Option<String>,
    /// The key that wraps the fields in the body or in the answer.
    pub(crate) root: Option<String>,
    /// How many path values are required.
    #[serde(default)]
    pub(crate) need: usize,
    /// Only POST acts.
    #[serde(default)]
    pub(crate) post: bool,
    /// The route that makes what was written active.
    pub(crate) apply: Option<String>,
    /// A delete is refused while the item is referred to.
    #[serde(default)]
    pub(crate) safe: bool,
    /// Pages of the list are only taken from a body.
    #[serde(default)]
    pub(crate) live: bool,
    /// Needs the full administrator privilege.
    #[serde(default)]
    pub(crate) full: bool,
    #[serde(default)]
    from: bool,
    #[serde(default)]
    until: bool,
}

/// One field of an item or of the settings.
#[expect(clippy::struct_excessive_bools, reason = "flags of the contract, each of its own")]
#[derive(Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) required: bool,
    #[serde(default)]
    pub(crate) options: Vec<String>,
    pub(crate) default: Option<String>,
    pub(crate) min: Option<String>,
    pub(crate) max: Option<String>,
    pub(crate) pattern: Option<String>,
    /// Several values, joined by comma.
    #[serde(default)]
    pub(crate) multiple: bool,
    /// Shown or computed, not stored by itself.
    #[serde(default)]
    pub(crate) volatile: bool,
    /// Read as a map of options.
    #[serde(default)]
    pub(crate) map: bool,
    /// Chosen options are shown in their order.
    #[serde(default)]
    pub(crate) sorted: bool,
    /// Lists that hold the items that it refers to.
    #[serde(default, rename = "ref")]
    pub(crate) refers: Vec<String>,
    #[serde(default)]
    from: bool,
    #[serde(default)]
    until: bool,
}

/// One controller of the API.
#[derive(Deserialize)]
pub(crate) struct Controller {
    pub(crate) plugin: Option<String>,
    pub(crate) commands: HashMap<String, Command>,
}

/// All facts.
#[derive(Deserialize)]
pub(crate) struct Facts {
    nodes: BTreeMap<String, Vec<Field>>,
    pub(crate) controllers: HashMap<String, Controller>,
    unique: HashMap<String, Vec<Vec<String>>>,
    #[serde(skip)]
    patterns: HashMap<String, Validator>,
}

impl Command {
    pub(crate) fn exists_in(&self, release: Release) -> bool {
        exists(self.from, self.until, release)
    }
}

impl Field {
    pub(crate) fn exists_in(&self, release: Release) -> bool {
        exists(self.from, self.until, release)
    }

    /// Fields that hold a tree of items have their own routes.
    pub(crate) fn is_items(&self) -> bool {
        self.kind == "array-of-items"
    }
}

fn exists(from: bool, until: bool, release: Release) -> bool {
    match release {
        Release::V26_1 => !from,
        Release::V26_7 => !until,
    }
}

impl Facts {
    /// The facts, parsed once for the process.
    pub(crate) fn get() -> &'static Self {
        static FACTS: OnceLock<Facts> = OnceLock::new();
        FACTS.get_or_init(|| {
            let mut facts: Self = serde_json::from_str(include_str!("../facts.json"))
                .expect("facts.json is made by facts.py and read by the tests");
            let patterns = facts.nodes.values().flatten().filter_map(|field| field.pattern.clone());
            facts.patterns = patterns
                .filter_map(|text| {
                    let schema = serde_json::json!({ "pattern": text });
                    jsonschema::validator_for(&schema).ok().map(|validator| (text, validator))
                })
                .collect();
            facts
        })
    }

    /// The node's own name and its fields in a release. Empty for lists whose fields the contract does not know.
    pub(crate) fn fields(&self, node: &str, release: Release) -> impl Iterator<Item = &Field> {
        self.nodes.get(node).into_iter().flatten().filter(move |field| field.exists_in(release))
    }

    /// A field by name, in any release.
    pub(crate) fn field(&self, node: &str, name: &str) -> Option<&Field> {
        self.nodes.get(node)?.iter().find(|field| field.name == name)
    }

    /// Whether the contract does not know the fields: any scalar is stored then.
    pub(crate) fn is_free_form(&self, node: &str) -> bool {
        self.nodes.get(node).is_none_or(Vec::is_empty)
    }

    /// The names of all lists and settings.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &String> {
        self.nodes.keys()
    }

    /// Groups of fields that no two items of a list share.
    pub(crate) fn unique(&self, node: &str) -> &[Vec<String>] {
        self.unique.get(node).map_or(&[], Vec::as_slice)
    }

    /// Whether the text fits. A pattern that cannot be compiled fits everything.
    pub(crate) fn fits(&self, pattern: &str, text: &str) -> bool {
        self.patterns.get(pattern).is_none_or(|validator| validator.is_valid(&serde_json::json!(text)))
    }

    /// How many patterns could not be compiled.
    #[cfg(test)]
    pub(crate) fn broken_patterns(&self) -> Vec<&str> {
        let patterns = self.nodes.values().flatten().filter_map(|field| field.pattern.as_deref());
        patterns.filter(|text| !self.patterns.contains_key(*text)).collect()
    }

    /// Every list or settings that an apply makes active, and those that are active at once.
    pub(crate) fn applies(&self) -> &'static HashMap<String, Vec<String>> {
        static APPLIES: OnceLock<HashMap<String, Vec<String>>> = OnceLock::new();
        APPLIES.get_or_init(|| {
            let mut applies: HashMap<String, Vec<String>> = HashMap::new();
            for command in self.controllers.values().flat_map(|controller| controller.commands.values()) {
                if let (Some(apply), Some(node)) = (&command.apply, &command.node) {
                    let nodes = applies.entry(apply.clone()).or_default();
                    if !nodes.contains(node) {
                        nodes.push(node.clone());
                    }
                }
            }
            applies
        })
    }
}
