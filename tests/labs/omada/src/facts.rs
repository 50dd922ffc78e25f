//! The vendor's interface as data: routes, collections and shapes, read once from `facts.json`.
//!
//! The file is made by the `omada-facts` program; its heading says how a field is written.

use std::sync::LazyLock;

use serde_json::Value;

/// What the vendor's descriptions say about every route.
pub(crate) struct Facts {
    pub(crate) items: Vec<Item>,
    shapes: Vec<Vec<(String, Field)>>,
    pub(crate) routes: Vec<Route>,
}

/// One collection, document or action, and how its routes behave.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, as the file states it")]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) is_collection: bool,
    /// One document, read and written whole.
    pub(crate) is_document: bool,
    /// Lists answer a plain array.
    pub(crate) is_bare: bool,
    pub(crate) id_field: String,
    /// Fields that no two rows share.
    pub(crate) key: Vec<String>,
    pub(crate) created: Created,
    /// An update keeps the fields that it does not name.
    pub(crate) merges: bool,
    pub(crate) web_merges: bool,
    /// Path parameters, beside site or template, that choose the collection.
    pub(crate) parents: Vec<String>,
    /// Items whose rows this one names by id.
    pub(crate) uses: Vec<String>,
}

/// What a create answers.
pub(crate) enum Created {
    Nothing,
    /// An object with the id under this name.
    Object(String),
    /// The id alone.
    Bare,
    /// A second envelope with `errcode`.
    Inner,
}

/// What a route does to its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    List,
    Get,
    Read,
    Create,
    Update,
    Delete,
    Toggle,
    Order,
    Do,
}

/// One route.
pub(crate) struct Route {
    pub(crate) method: String,
    /// As in the facts: `v1 site lan-networks/{networkId}`.
    pub(crate) name: String,
    /// The whole path, in parts.
    pub(crate) parts: Vec<String>,
    pub(crate) item: usize,
    pub(crate) role: Role,
    pub(crate) body: Option<Field>,
    pub(crate) query: Option<usize>,
    pub(crate) answer: Option<Field>,
    pub(crate) codes: Vec<i64>,
    pub(crate) is_web: bool,
    pub(crate) era: Era,
    /// The description of the answer is not complete: fields that it lacks are shown, too.
    pub(crate) is_cut: bool,
}

/// The releases that have a route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Always,
    Since62,
    Until60,
}

/// The type of a value and its limits.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) is_array: bool,
    pub(crate) kind: Kind,
    pub(crate) is_required: bool,
    /// Length of a text or value of a number.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) values: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Object,
    Shape(usize),
    Any,
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let facts: Value =
        serde_json::from_str(include_str!("facts.json")).expect("the facts are checked in as JSON");
    Facts {
        items: rows(&facts["items"]).map(item).collect(),
        shapes: rows(&facts["shapes"]).map(shape).collect(),
        routes: rows(&facts["routes"]).map(route).collect(),
    }
});

/// The facts.
pub(crate) fn facts() -> &'static Facts {
    &FACTS
}

impl Facts {
    /// The fields of a shape, in the vendor's order.
    pub(crate) fn shape(&self, number: usize) -> &[(String, Field)] {
        self.shapes.get(number).map_or(&[], Vec::as_slice)
    }
}

impl Field {
    /// The fields inside, when this is an object or an array of objects of a known shape.
    pub(crate) fn inside(&self) -> Option<&'static [(String, Field)]> {
        match self.kind {
            Kind::Shape(number) => Some(facts().shape(number)),
            _ => None,
        }
    }

    pub(crate) fn child(&self, name: &str) -> Option<&'static Field> {
        self.inside()?.iter().find(|(field, _)| field == name).map(|(_, field)| field)
    }

    fn parse(text: &str) -> Self {
        let (head, limits) = text.split_once(' ').unwrap_or((text, ""));
        let is_array = head.starts_with('*');
        let head = head.trim_start_matches('*');
        let is_required = head.ends_with('!');
        let head = head.trim_end_matches('!');
        let kind = match head {
            "s" => Kind::Text,
            "i" => Kind::Integer,
            "n" => Kind::Number,
            "b" => Kind::Boolean,
            "o" => Kind::Object,
            _ => head.strip_prefix('#').and_then(|number| number.parse().ok()).map_or(Kind::Any, Kind::Shape),
        };
        let (low, high) = match limits.split_once("..") {
            Some((low, high)) => (low.parse().ok(), high.parse().ok()),
            None => (None, None),
        };
        let values = if limits.is_empty() || limits.contains("..") {
            Vec::new()
        } else {
            limits.split('|').map(str::to_owned).collect()
        };
        Self { is_array, kind, is_required, low, high, values }
    }
}

fn item(value: &Value) -> Item {
    let names = |name: &str| rows(&value[name]).filter_map(Value::as_str).map(str::to_owned).collect();
    Item {
        id: text(&value["id"]),
        is_collection: value["collection"] == true,
        is_document: value["document"] == true,
        is_bare: value["bare"] == true,
        id_field: value["id_field"].as_str().unwrap_or("id").to_owned(),
        key: names("key"),
        created: match value["created"].as_str() {
            None => Created::Nothing,
            Some("bare") => Created::Bare,
            Some("inner") => Created::Inner,
            Some(name) => Created::Object(name.to_owned()),
        },
        merges: value["merges"] == true,
        web_merges: value["web_merges"] == true,
        parents: names("parents"),
        uses: names("uses"),
    }
}

fn shape(value: &Value) -> Vec<(String, Field)> {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(name, field)| (name.clone(), Field::parse(field.as_str().unwrap_or_default()))).collect()
}

fn route(value: &Value) -> Route {
    let field = |index: usize| value[index].as_str().filter(|text| !text.is_empty()).map(Field::parse);
    let name = text(&value[1]);
    let path = long(&name);
    Route {
        method: text(&value[0]),
        parts: path.split('/').map(str::to_owned).collect(),
        item: value[2].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default(),
        role: role(value[3].as_str().unwrap_or_default()),
        body: field(4),
        query: field(5).and_then(|field| match field.kind {
            Kind::Shape(number) => Some(number),
            _ => None,
        }),
        answer: field(6),
        codes: rows(&value[7]).filter_map(Value::as_i64).collect(),
        is_web: name.starts_with("web"),
        era: match value[8].as_str() {
            Some("new") => Era::Since62,
            Some("old") => Era::Until60,
            _ => Era::Always,
        },
        is_cut: value[9] == 1,
        name,
    }
}

/// The whole path of a shortened one, without the slash at its beginning.
fn long(name: &str) -> String {
    let (version, rest) = name.split_once(' ').unwrap_or(("v1", name));
    let (word, rest) = rest.split_once(' ').unwrap_or(("all", rest));
    let scope = match word {
        "site" => "sites/{siteId}/",
        "template" => "sitetemplates/{siteTemplateId}/",
        _ => "",
    };
    if version == "web" {
        format!("{{omadacId}}/api/v2/{scope}{rest}")
    } else {
        format!("openapi/{version}/{{omadacId}}/{scope}{rest}")
    }
}

fn role(word: &str) -> Role {
    match word {
        "list" => Role::List,
        "get" => Role::Get,
        "create" => Role::Create,
        "update" => Role::Update,
        "delete" => Role::Delete,
        "toggle" => Role::Toggle,
        "order" => Role::Order,
        "do" => Role::Do,
        _ => Role::Read,
    }
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
impl Route {
    pub(crate) fn exists_now(&self) -> bool {
        self.era != Era::Until60
    }
}
