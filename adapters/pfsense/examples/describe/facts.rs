//! Facts about the API, as `facts.py` makes them. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::{Surface, kind};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// `facts.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    pub(super) models: BTreeMap<String, Model>,
    pub(super) paths: BTreeMap<String, Path>,
}

/// What objects of one kind are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) fields: Vec<Field>,
    #[serde(default, rename = "id")]
    _id: Option<String>,
    #[serde(default, rename = "parent")]
    _parent: Option<String>,
    /// Packages without which the box does not have it.
    #[serde(default, rename = "packages")]
    _packages: Value,
    #[serde(default, rename = "unique")]
    _unique: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) options: Vec<Value>,
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) null: bool,
    pub(super) empty: bool,
    /// Shown, and never taken.
    pub(super) shown: bool,
    pub(super) default: Option<Value>,
    /// What other fields have to be; the field is emptied where they are something else.
    pub(super) when: Map<String, Value>,
    pub(super) secret: bool,
    /// Taken, and never shown.
    pub(super) unread: bool,
    /// Only a new object takes it.
    pub(super) fixed: bool,
    /// The model of the objects of a list.
    pub(super) nested: Option<String>,
    #[serde(rename = "refers")]
    pub(super) _refers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Path {
    pub(super) area: String,
    pub(super) methods: BTreeMap<String, Route>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Route {
    pub(super) op: String,
    pub(super) model: String,
    /// The call that makes active what it writes, or `inline` where the write itself is asked to do so.
    #[serde(default)]
    pub(super) apply: Option<String>,
    #[serde(default, rename = "since")]
    _since: Option<String>,
    #[serde(default, rename = "danger")]
    _danger: bool,
}

impl Facts {
    /// The path whose method does this to objects of a model.
    pub(super) fn path_of(&self, model: &str, op: &str) -> Option<(&str, &Route)> {
        self.paths.iter().find_map(|(path, known)| {
            let mut routes = known.methods.values();
            Some((path.as_str(), routes.find(|route| route.op == op && route.model == model)?))
        })
    }
}

/// The fields of models and the operations of paths, by their names in the facts.
pub(super) fn surface(facts: &Facts) -> Surface {
    let of_model = |(name, model): (&String, &Model)| {
        let type_of = |field: &Field| {
            let options: Vec<String> = field.options.iter().map(ToString::to_string).collect();
            (field.name.clone(), kind(&field.kind, field.required, &options))
        };
        (name.clone(), model.fields.iter().map(type_of).collect())
    };
    let of_path = |(path, known): (&String, &Path)| {
        let methods = known.methods.iter();
        (path.clone(), methods.map(|(method, route)| (method.clone(), route.op.clone())).collect())
    };
    facts.models.iter().map(of_model).chain(facts.paths.iter().map(of_path)).collect()
}
