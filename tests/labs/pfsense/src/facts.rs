//! What the vendor's contract says about routes, models and fields, loaded from `facts.json`.
//!
//! The file is made by `facts.py`. It decides everything that is the same for all models; what a model does by itself
//! is code.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::release::Release;

/// What a value is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    #[default]
    String,
    Boolean,
    Integer,
    /// A number with a decimal point.
    Number,
    Object,
    Base64,
    Port,
    Interface,
    FilterAddress,
    SpecialNetwork,
    UnixTime,
    Datetime,
}

/// The objects that a field names.
#[derive(Deserialize)]
pub(crate) struct Reference {
    pub(crate) models: Vec<String>,
    pub(crate) field: String,
    /// Values that name no object.
    #[serde(default)]
    pub(crate) words: Vec<String>,
    /// The field whose value is stored, when it is not the one that is shown.
    pub(crate) stored: Option<String>,
    /// Only objects that fit this filter.
    #[serde(default)]
    pub(crate) of: Map<String, Value>,
}

/// A check that the vendor makes of a single value.
#[derive(Deserialize)]
pub(crate) struct Check {
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) takes: Vec<String>,
    #[serde(default)]
    pub(crate) words: Vec<String>,
    #[serde(default)]
    pub(crate) pattern: String,
    /// The pattern must not match.
    #[serde(default)]
    pub(crate) forbids: bool,
    #[serde(default)]
    pub(crate) length: usize,
    #[serde(default)]
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) field: String,
}

/// One field of a model.
#[expect(clippy::struct_excessive_bools, reason = "flags of the contract, each of its own")]
#[derive(Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type", default)]
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) many: bool,
    #[serde(default)]
    pub(crate) required: bool,
    #[serde(default)]
    pub(crate) unique: bool,
    #[serde(default)]
    pub(crate) allow_empty: bool,
    #[serde(default)]
    pub(crate) allow_null: bool,
    #[serde(default)]
    pub(crate) read_only: bool,
    #[serde(default)]
    pub(crate) write_only: bool,
    #[serde(default)]
    pub(crate) sensitive: bool,
    /// Computed, never stored.
    #[serde(default)]
    pub(crate) representation_only: bool,
    /// Keeps the value that it got on creation.
    #[serde(default)]
    pub(crate) fixed: bool,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) min_items: Option<usize>,
    pub(crate) max_items: Option<usize>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    #[serde(default)]
    pub(crate) options: Vec<Value>,
    pub(crate) default: Option<Value>,
    /// Other fields and the values with which this one exists.
    #[serde(default)]
    pub(crate) when: Map<String, Value>,
    #[serde(default)]
    pub(crate) takes: Vec<String>,
    #[serde(default)]
    pub(crate) denies: Vec<String>,
    #[serde(default)]
    pub(crate) words: Vec<String>,
    /// The model of the children that it lists.
    pub(crate) nested: Option<String>,
    #[serde(rename = "ref")]
    pub(crate) refers: Option<Reference>,
    #[serde(default)]
    pub(crate) checks: Vec<Check>,
    /// `add`: the time of creation; `update`: that of the last write.
    pub(crate) now: Option<String>,
    /// Gets a unique id.
    #[serde(default)]
    pub(crate) uid: bool,
    /// The text between the entries of a list where it is stored, when it is no comma.
    split: Option<String>,
    /// The entries of a list are stored one by one.
    #[serde(default)]
    whole: bool,
    /// Models and fields that keep the object from being deleted.
    #[serde(default)]
    pub(crate) referenced_by: Vec<(String, String)>,
    from: Option<String>,
    until: Option<String>,
}

/// One model: a kind of object, or settings.
#[expect(clippy::struct_excessive_bools, reason = "flags of the contract, each of its own")]
#[derive(Deserialize)]
pub(crate) struct Model {
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) many: bool,
    /// Its ids are names; others are places in a list.
    #[serde(default)]
    pub(crate) named: bool,
    /// It has a place in the configuration.
    #[serde(default)]
    pub(crate) stored: bool,
    pub(crate) parent: Option<String>,
    pub(crate) subsystem: Option<String>,
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// Each write makes itself active.
    #[serde(default)]
    pub(crate) immediate: bool,
    /// A write becomes active only with `apply`, and no route does it afterwards.
    #[serde(default)]
    pub(crate) inline: bool,
    /// The route that makes what was written active.
    pub(crate) apply: Option<String>,
    /// Fields that must not be the same together.
    #[serde(default)]
    pub(crate) unique: Vec<String>,
    #[serde(default)]
    pub(crate) min: usize,
    pub(crate) max_objects: Option<usize>,
    /// The list is sorted by these fields on each write.
    #[serde(default)]
    pub(crate) sort: Vec<String>,
    /// Objects that fit this filter cannot be deleted.
    #[serde(default)]
    pub(crate) keeps: Map<String, Value>,
    /// An update stores the object anew, without what the API does not know.
    #[serde(default)]
    pub(crate) replace: bool,
    pub(crate) fields: Vec<Field>,
}

/// One path of the API.
#[expect(clippy::struct_excessive_bools, reason = "flags of the contract, each of its own")]
#[derive(Deserialize)]
pub(crate) struct Route {
    pub(crate) model: String,
    pub(crate) methods: Vec<String>,
    /// It reads or writes lists.
    #[serde(default)]
    pub(crate) many: bool,
    from: Option<String>,
    #[serde(default)]
    pub(crate) auth_methods: Vec<String>,
    #[serde(default)]
    pub(crate) ignore_read_only: bool,
    #[serde(default)]
    pub(crate) ignore_enabled: bool,
    #[serde(default)]
    pub(crate) ignore_interfaces: bool,
    #[serde(default)]
    pub(crate) limit: usize,
    /// The content handlers that may answer; all when empty.
    #[serde(default)]
    pub(crate) answers: Vec<String>,
    /// Only users with every privilege may call it.
    #[serde(default)]
    pub(crate) page_all: bool,
}

/// All facts.
#[derive(Deserialize)]
pub(crate) struct Facts {
    pub(crate) models: BTreeMap<String, Model>,
    pub(crate) routes: BTreeMap<String, Route>,
    #[serde(skip)]
    patterns: HashMap<String, Regex>,
}

impl Facts {
    pub(crate) fn get() -> &'static Self {
        static FACTS: OnceLock<Facts> = OnceLock::new();
        FACTS.get_or_init(|| {
            let mut facts: Self = serde_json::from_str(include_str!("../facts.json"))
                .expect("facts.json is a part of this program and well-formed");
            for (name, model) in &mut facts.models {
                model.name.clone_from(name);
            }
            let checks =
                facts.models.values().flat_map(|model| &model.fields).flat_map(|field| &field.checks);
            let patterns = checks.filter(|check| !check.pattern.is_empty()).map(|check| &check.pattern);
            let compiled = patterns.filter_map(|text| Some((text.clone(), Regex::new(text).ok()?)));
            facts.patterns = compiled.collect();
            facts
        })
    }

    pub(crate) fn model(&self, name: &str) -> Option<&Model> {
        self.models.get(name)
    }

    /// Whether a pattern of a check matches. A pattern that does not compile matches nothing.
    pub(crate) fn matches(&self, pattern: &str, value: &str) -> bool {
        self.patterns.get(pattern).is_some_and(|pattern| pattern.is_match(value))
    }

    /// The patterns that do not compile.
    #[cfg(test)]
    pub(crate) fn broken_patterns(&self) -> Vec<&str> {
        let checks = self.models.values().flat_map(|model| &model.fields).flat_map(|field| &field.checks);
        let patterns = checks.map(|check| check.pattern.as_str()).filter(|pattern| !pattern.is_empty());
        patterns.filter(|pattern| !self.patterns.contains_key(*pattern)).collect()
    }

    /// The models that one apply makes active.
    pub(crate) fn covered(&self, apply: &str) -> impl Iterator<Item = &str> {
        let own = self.models.values().filter(move |model| model.apply.as_deref() == Some(apply));
        own.map(|model| model.name.as_str())
    }
}

impl Model {
    /// The fields that a release has, in the vendor's order.
    pub(crate) fn fields(&self, release: Release) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.exists_in(release))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    fn exists_in(&self, release: Release) -> bool {
        let has_come = self.from.as_ref().is_none_or(|from| release.is_from(from));
        has_come && !self.until.as_ref().is_some_and(|until| release.is_from(until))
    }

    /// The text between the entries of a list where it is stored; `None` where they are stored one by one.
    pub(crate) fn separator(&self) -> Option<&str> {
        (!self.whole).then(|| self.split.as_deref().unwrap_or(","))
    }
}

impl Route {
    pub(crate) fn exists_in(&self, release: Release) -> bool {
        self.from.as_ref().is_none_or(|from| release.is_from(from))
    }
}
