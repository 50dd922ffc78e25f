//! Facts about the Open API, as `facts.json` has them.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_adapter_kit::{Surface, kind};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields of bodies that the controller fills in by itself.
const OWN: [&str; 5] = ["id", "omadacId", "siteId", "Site", "resource"];

/// `facts.json`, which `facts.py` makes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    /// Fields of objects, by number.
    shapes: Vec<Map<String, Value>>,
    /// By method, version and path below the site.
    pub(super) routes: BTreeMap<String, Route>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct Route {
    pub(super) area: String,
    #[serde(default)]
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) query: Map<String, Value>,
    #[serde(default)]
    pub(super) answer: Option<String>,
    /// The contract lists only the first fields of the answer.
    #[serde(default)]
    pub(super) cut: bool,
    #[serde(default, rename = "paged")]
    _paged: bool,
    #[serde(default, rename = "file")]
    _file: bool,
    #[serde(default, rename = "es")]
    _es: bool,
    #[serde(default, rename = "code")]
    _code: bool,
    #[serde(default, rename = "pro")]
    _pro: bool,
    #[serde(default, rename = "era")]
    _era: String,
    #[serde(default, rename = "risk")]
    _risk: String,
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// An object whose fields are not described, or anything.
    Any,
    Object(usize),
}

/// The type of a field and its limits.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) is_array: bool,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    pub(super) values: Vec<String>,
    pub(super) low: Option<i64>,
    pub(super) high: Option<i64>,
}

impl Leaf {
    /// Parses `*#12! 1..32`.
    pub(super) fn parse(text: &str) -> Self {
        let (head, limits) = text.split_once(' ').unwrap_or((text, ""));
        let bare = head.trim_start_matches('*').trim_end_matches('!');
        let kind = match bare {
            "s" => Kind::Text,
            "i" => Kind::Integer,
            "n" => Kind::Number,
            "b" => Kind::Boolean,
            other => {
                other.strip_prefix('#').and_then(|number| number.parse().ok()).map_or(Kind::Any, Kind::Object)
            }
        };
        let (low, high) = limits.split_once("..").unwrap_or_default();
        let is_range = limits.contains("..");
        Leaf {
            is_array: head.starts_with('*'),
            kind,
            is_required: head.ends_with('!'),
            values: if limits.is_empty() || is_range {
                Vec::new()
            } else {
                limits.split('|').map(str::to_owned).collect()
            },
            low: low.parse().ok(),
            high: high.parse().ok(),
        }
    }
}

impl Facts {
    pub(super) fn route(&self, name: &str) -> anyhow::Result<&Route> {
        self.routes.get(name).with_context(|| format!("there is no route '{name}'"))
    }

    /// The fields of an object, in the order of the contract; none where it is not described.
    pub(super) fn fields(&self, leaf: &Leaf) -> Vec<(String, Leaf)> {
        let Kind::Object(number) = leaf.kind else { return Vec::new() };
        let shape = self.shapes.get(number).into_iter().flatten();
        shape.map(|(name, text)| (name.clone(), Leaf::parse(text.as_str().unwrap_or_default()))).collect()
    }

    pub(super) fn field(&self, leaf: &Leaf, name: &str) -> Option<Leaf> {
        self.fields(leaf).into_iter().find(|(known, _)| known == name).map(|(_, leaf)| leaf)
    }

    /// The fields of a route's body that mean something; `root` names the fields, with bars between, one of which is
    /// the body in truth.
    pub(super) fn body(&self, route: &Route, root: Option<&str>) -> Vec<(String, Leaf)> {
        let Some(body) = route.body.as_deref().map(Leaf::parse) else { return Vec::new() };
        let inner = root.and_then(|root| root.split('|').find_map(|root| self.field(&body, root)));
        let mut fields = self.fields(&inner.unwrap_or(body));
        fields.retain(|(name, leaf)| leaf.is_required || !OWN.contains(&name.as_str()));
        fields
    }

    /// What stands at a pointer of a route's answer; none where the contract does not tell.
    pub(super) fn answer(&self, route: &Route, pointer: &str) -> Option<Leaf> {
        let whole = Leaf::parse(route.answer.as_deref()?);
        pointer.split('/').skip(1).try_fold(whole, |leaf, name| self.field(&leaf, name))
    }

    /// Where the rows of a route's answer stand; none where it answers an object.
    pub(super) fn rows(&self, route: &Route) -> Option<&'static str> {
        let Some(answer) = self.answer(route, "") else {
            // What is asked for in pages is answered in pages.
            return route.query.contains_key("page").then_some("/data");
        };
        if answer.is_array {
            return Some("");
        }
        ["data", "content"].into_iter().zip(["/data", "/content"]).find_map(|(name, pointer)| {
            self.field(&answer, name).filter(|data| data.is_array).map(|_| pointer)
        })
    }
}

/// A route's name in its parts.
pub(super) struct Name<'n> {
    pub(super) method: &'n str,
    version: &'n str,
    below: &'n str,
    rest: &'n str,
}

impl<'n> Name<'n> {
    pub(super) fn parse(name: &'n str) -> anyhow::Result<Self> {
        let mut parts = name.splitn(3, ' ');
        let (method, version) = parts.next().zip(parts.next()).with_context(|| format!("'{name}'"))?;
        let (version, below) = version.split_once('@').unwrap_or((version, ""));
        Ok(Name { method, version, below, rest: parts.next().unwrap_or_default() })
    }

    /// Whether another route is an older version of this one.
    pub(super) fn replaces(&self, older: &Name<'_>) -> bool {
        self.method == older.method
            && self.below == older.below
            && self.rest == older.rest
            && self.version > older.version
    }

    /// The whole path, with parameters in braces.
    pub(super) fn path(&self) -> String {
        let slash = |part: &str| if part.is_empty() { String::new() } else { format!("/{part}") };
        format!(
            "/openapi/{}/{{omadacId}}{}/sites/{{siteId}}{}",
            self.version,
            slash(self.below),
            slash(self.rest)
        )
    }
}

/// The parameters of a path.
pub(super) fn params(path: &str) -> Vec<&str> {
    path.split(['/', '?', '&', '=']).filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

/// How deep the fields of objects are compared.
const DEPTH_MAX: usize = 4;

/// The fields of each route's body, with those inside them, and the parameters of its query.
pub(super) fn surface(facts: &Facts) -> Surface {
    let of_route = |(name, route): (&String, &Route)| {
        let mut types = BTreeMap::new();
        if let Some(body) = &route.body {
            add_fields(facts, &Leaf::parse(body), "", 0, &mut types);
        }
        let query =
            route.query.iter().map(|(name, text)| (name, Leaf::parse(text.as_str().unwrap_or_default())));
        types.extend(query.map(|(name, leaf)| (format!("?{name}"), in_words(&leaf))));
        (name.clone(), types)
    };
    facts.routes.iter().map(of_route).collect()
}

fn add_fields(facts: &Facts, leaf: &Leaf, prefix: &str, depth: usize, types: &mut BTreeMap<String, String>) {
    if depth == DEPTH_MAX {
        return;
    }
    for (name, field) in facts.fields(leaf) {
        let name = format!("{prefix}{name}");
        types.insert(name.clone(), in_words(&field));
        add_fields(facts, &field, &format!("{name}."), depth + 1, types);
    }
}

fn in_words(leaf: &Leaf) -> String {
    let word = match leaf.kind {
        Kind::Text => "text",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::Any => "anything",
        Kind::Object(_) => "object",
    };
    let word = if leaf.is_array { format!("list of {word}") } else { word.to_owned() };
    kind(&word, leaf.is_required, &leaf.values)
}
