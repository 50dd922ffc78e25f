//! The API schema: every route with its parameters, read once from `facts.json`, which `facts.py` makes.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let source: Source = serde_json::from_str(include_str!("../facts.json")).expect("the file was generated");
    Facts::new(source)
});

/// The type of a parameter or an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Kind {
    #[default]
    #[serde(rename = "s")]
    Text,
    #[serde(rename = "i")]
    Integer,
    #[serde(rename = "n")]
    Number,
    #[serde(rename = "b")]
    Boolean,
    #[serde(rename = "a")]
    Array,
    #[serde(rename = "o")]
    Object,
    /// Null, or not stated.
    #[serde(rename = "z")]
    None,
}

/// A parameter, or a part of a property string.
#[derive(Debug, Deserialize)]
pub(crate) struct Field {
    #[serde(rename = "n")]
    pub(crate) name: String,
    #[serde(rename = "t", default)]
    pub(crate) kind: Kind,
    #[serde(rename = "r", default)]
    required: u8,
    #[serde(rename = "e", default)]
    pub(crate) words: Vec<String>,
    #[serde(rename = "lo")]
    pub(crate) minimum: Option<f64>,
    #[serde(rename = "hi")]
    pub(crate) maximum: Option<f64>,
    #[serde(rename = "ml")]
    pub(crate) length_min: Option<usize>,
    #[serde(rename = "xl")]
    pub(crate) length_max: Option<usize>,
    #[serde(rename = "p")]
    pub(crate) pattern: Option<String>,
    #[serde(rename = "f")]
    pub(crate) format: Option<String>,
    /// Another parameter that must come along.
    #[serde(rename = "q")]
    pub(crate) requires: Option<String>,
    /// The name is followed by a number, as in `net0`.
    #[serde(rename = "x", default)]
    indexed: u8,
    /// The part of a property string that needs no name.
    #[serde(rename = "d", default)]
    default_key: u8,
    /// The part of a property string that this name stands for.
    #[serde(rename = "al")]
    pub(crate) alias: Option<String>,
    #[serde(rename = "ps", default)]
    pub(crate) parts: Vec<Field>,
}

impl Field {
    pub(crate) fn is_required(&self) -> bool {
        self.required == 1 && self.alias.is_none()
    }

    pub(crate) fn is_default_key(&self) -> bool {
        self.default_key == 1
    }

    fn takes(&self, name: &str) -> bool {
        if self.indexed == 0 {
            return self.name == name;
        }
        let number =
            name.strip_prefix(self.name.as_str()).filter(|rest| rest.len() == 1 || !rest.starts_with('0'));
        number.and_then(|rest| rest.parse::<u16>().ok()).is_some_and(|number| number <= index_max(&self.name))
    }
}

/// The highest number of an indexed key.
fn index_max(name: &str) -> u16 {
    match name {
        "net" | "ipconfig" => 31,
        "scsi" => 30,
        "virtio" | "hostpci" => 15,
        "sata" => 5,
        "usb" => 13,
        "ide" | "serial" => 3,
        "parallel" => 2,
        "numa" | "link" => 7,
        "virtiofs" => 9,
        _ => 255,
    }
}

/// One method of one path.
#[derive(Debug, Deserialize)]
pub(crate) struct Route {
    #[serde(rename = "m")]
    pub(crate) method: String,
    #[serde(rename = "p")]
    pub(crate) path: String,
    #[serde(rename = "f")]
    field_places: Vec<usize>,
    #[serde(rename = "w")]
    rule_place: Option<usize>,
    /// The type of `data`.
    #[serde(rename = "o")]
    pub(crate) answers: Kind,
    #[serde(rename = "a", default)]
    task: u8,
    #[serde(rename = "nt", default)]
    no_token: u8,
    /// The key of a list's elements that names the sub-path of each.
    #[serde(rename = "k")]
    pub(crate) child_key: Option<String>,
    /// Name, type and first word of what an object answer always has.
    #[serde(rename = "rf", default)]
    pub(crate) answer_fields: Vec<Vec<String>>,
}

impl Route {
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.field_places.iter().map(|place| &FACTS.fields[*place])
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.takes(name))
    }

    pub(crate) fn rule(&self) -> Option<&'static Value> {
        self.rule_place.map(|place| &FACTS.rules[place])
    }

    pub(crate) fn is_task(&self) -> bool {
        self.task == 1
    }

    pub(crate) fn refuses_tokens(&self) -> bool {
        self.no_token == 1
    }

    /// The last variable of the path, which names an item.
    pub(crate) fn last_variable(&self) -> Option<&str> {
        self.path.rsplit('/').next()?.strip_prefix('{')?.strip_suffix('}')
    }
}

#[derive(Deserialize)]
struct Source {
    fields: Vec<Field>,
    rules: Vec<Value>,
    routes: Vec<Route>,
}

/// One segment of the paths below it.
#[derive(Default)]
struct Branch {
    fixed: HashMap<String, Branch>,
    variable: Option<(String, Box<Branch>)>,
    routes: Vec<(String, usize)>,
}

struct Facts {
    fields: Vec<Field>,
    rules: Vec<Value>,
    routes: Vec<Route>,
    root: Branch,
}

impl Facts {
    fn new(source: Source) -> Self {
        let mut root = Branch::default();
        for (place, route) in source.routes.iter().enumerate() {
            let mut branch = &mut root;
            for segment in route.path.split('/').skip(1) {
                branch = match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) => {
                        &mut branch.variable.get_or_insert_with(|| (name.to_owned(), Box::default())).1
                    }
                    None => branch.fixed.entry(segment.to_owned()).or_default(),
                };
            }
            branch.routes.push((route.method.clone(), place));
        }
        Self { fields: source.fields, rules: source.rules, routes: source.routes, root }
    }
}

/// Finds the route of a method and a decoded path, and the values of its variables.
///
/// Volumes and the members of address sets take the rest of the path, since their names hold slashes.
pub(crate) fn find(method: &str, path: &str) -> Option<(&'static Route, Vec<(String, String)>)> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (mut branch, mut values) = (&FACTS.root, Vec::new());
    for (place, segment) in segments.iter().enumerate() {
        if let Some(next) = branch.fixed.get(*segment) {
            branch = next;
            continue;
        }
        let (name, next) = branch.variable.as_ref()?;
        branch = next;
        if name == "volume" || name == "cidr" {
            values.push((name.clone(), segments[place..].join("/")));
            break;
        }
        values.push((name.clone(), (*segment).to_owned()));
    }
    let (_, place) = branch.routes.iter().find(|(found, _)| found == method)?;
    let route = &FACTS.routes[*place];
    // Two routes may name the variable of one segment differently.
    let names = route.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let values = names.zip(values).map(|(name, (_, value))| (name.to_owned(), value)).collect();
    Some((route, values))
}

/// The fixed sub-paths of a path pattern, which is what its index lists.
pub(crate) fn children(pattern: &str) -> Vec<&'static str> {
    let mut branch = &FACTS.root;
    for segment in pattern.split('/').skip(1) {
        let next = if segment.starts_with('{') {
            branch.variable.as_ref().map(|(_, next)| &**next)
        } else {
            branch.fixed.get(segment)
        };
        let Some(next) = next else { return Vec::new() };
        branch = next;
    }
    let mut names: Vec<&str> = branch.fixed.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Whether the schema has this method for this path pattern.
pub(crate) fn has(method: &str, pattern: &str) -> bool {
    FACTS.routes.iter().any(|route| route.method == method && route.path == pattern)
}

/// The item route of a collection: the variable that names its items.
pub(crate) fn item_variable(pattern: &str) -> Option<&'static str> {
    let prefix = format!("{pattern}/");
    FACTS.routes.iter().find_map(|route| {
        let rest = route.path.strip_prefix(&prefix)?;
        rest.strip_prefix('{')?.strip_suffix('}').filter(|name| !name.contains('/'))
    })
}

/// Every route, for what checks them all.
pub(crate) fn routes() -> &'static [Route] {
    &FACTS.routes
}

/// The permission rules of the schema.
pub(crate) fn rules() -> &'static [Value] {
    &FACTS.rules
}
