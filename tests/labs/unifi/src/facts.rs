//! What the contract says of the vendor's interface: routes, fields, limits. Read once from `facts.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

/// The contract, as far as the console decides by it.
#[derive(Deserialize)]
pub(crate) struct Facts {
    /// Tables of the first interface.
    pub(crate) rest: BTreeMap<String, Collection>,
    /// Settings by their key.
    pub(crate) settings: BTreeMap<String, Collection>,
    /// Collections of the second interface.
    pub(crate) v2: BTreeMap<String, Collection>,
    /// Routes of the official interface by their collection.
    official: BTreeMap<String, Vec<Route>>,
    patterns: Vec<String>,
    #[serde(skip)]
    compiled: Vec<Regex>,
    /// Method, path and command of each older route.
    #[cfg(test)]
    pub(crate) routes: Vec<Vec<String>>,
}

/// The fields of a table, and the releases that have it.
#[derive(Deserialize)]
pub(crate) struct Collection {
    pub(crate) fields: Vec<Field>,
    #[serde(default)]
    pub(crate) since: Option<String>,
    #[serde(default)]
    pub(crate) until: Option<String>,
}

/// One field; the heading of `facts.py` says what the letters stand for.
#[derive(Deserialize)]
pub(crate) struct Field {
    #[serde(rename = "n")]
    pub(crate) name: String,
    #[serde(rename = "t")]
    pub(crate) kind: Kind,
    #[serde(rename = "e", default)]
    pub(crate) values: Vec<String>,
    #[serde(rename = "p")]
    pattern: Option<usize>,
    #[serde(rename = "l")]
    pub(crate) low: Option<f64>,
    #[serde(rename = "h")]
    pub(crate) high: Option<f64>,
    #[serde(rename = "w", default)]
    when: String,
    #[serde(rename = "r", default)]
    pub(crate) is_required: bool,
    #[serde(default)]
    pub(crate) since: Option<String>,
    #[serde(rename = "f", default)]
    pub(crate) inside: Vec<Field>,
}

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Kind {
    pub(crate) is_list: bool,
    pub(crate) base: Base,
}

/// The type of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Text,
    Integer,
    Number,
    Boolean,
    Object,
    Uuid,
    Any,
}

/// A route of the official interface.
#[derive(Deserialize)]
pub(crate) struct Route {
    pub(crate) method: String,
    /// Below the site where it belongs to one, else below `v1`.
    pub(crate) path: String,
    pub(crate) since: String,
    #[serde(rename = "site", default)]
    pub(crate) is_of_site: bool,
    #[serde(default = "success")]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) body: Vec<Field>,
    /// Properties that a filter may name, with their type and operators.
    #[serde(default)]
    pub(crate) filter: BTreeMap<String, (String, String)>,
}

fn success() -> u16 {
    200
}

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (is_list, letter) = match text.strip_prefix('*') {
            Some(letter) => (true, letter),
            None => (false, text.as_str()),
        };
        let base = match letter {
            "s" => Base::Text,
            "i" => Base::Integer,
            "d" => Base::Number,
            "b" => Base::Boolean,
            "o" => Base::Object,
            "u" => Base::Uuid,
            "a" => Base::Any,
            _ => return Err(format!("'{text}' is no type")),
        };
        Ok(Self { is_list, base })
    }
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let mut facts: Facts =
        serde_json::from_str(include_str!("../facts.json")).expect("the facts are checked in as JSON");
    // The vendor matches a whole value.
    let whole = |pattern: &String| Regex::new(&format!("^(?:{pattern})$")).expect("the facts hold patterns");
    facts.compiled = facts.patterns.iter().map(whole).collect();
    facts
});

impl Facts {
    pub(crate) fn get() -> &'static Self {
        &FACTS
    }

    /// Routes of the official interface.
    pub(crate) fn official(&self) -> impl Iterator<Item = &Route> {
        self.official.values().flatten()
    }
}

impl Field {
    /// The pattern that a value does not match, if any.
    pub(crate) fn unmatched(&self, text: &str) -> Option<&'static str> {
        let facts = Facts::get();
        let number = self.pattern?;
        (!facts.compiled[number].is_match(text)).then(|| facts.patterns[number].as_str())
    }

    /// The enumeration or pattern of the field, for a refusal.
    pub(crate) fn pattern(&self) -> String {
        match self.pattern {
            Some(number) => Facts::get().patterns[number].clone(),
            None => self.values.join("|"),
        }
    }

    /// The parts of a path; a part that stands for a list ends with `[]`.
    pub(crate) fn parts(&self) -> Vec<&str> {
        parts(&self.name)
    }

    /// The conditions under which the field exists: paths and their values.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = (Vec<&str>, &str)> {
        let pairs = self.when.split(" & ").filter_map(|pair| pair.split_once('='));
        pairs.map(|(path, value)| (parts(path), value))
    }
}

/// Splits a path at its dots; the band of 2.4 GHz is one part.
fn parts(path: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = if rest.starts_with("2.4") { 3 } else { rest.find('.').unwrap_or(rest.len()) };
        found.push(&rest[..end]);
        rest = rest[end..].trim_start_matches('.');
    }
    found
}
