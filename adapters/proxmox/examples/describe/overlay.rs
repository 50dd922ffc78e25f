//! Facts and judgements about Proxmox VE, as their two files have them. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::{Class, Surface, kind};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// `facts.json`, which `facts.py` makes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    pub(super) fields: Vec<FieldFacts>,
    /// By method and path.
    pub(super) routes: BTreeMap<String, Route>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Route {
    pub(super) area: String,
    /// Places in the list of fields.
    pub(super) fields: Vec<usize>,
    /// It answers the id of a task.
    #[serde(default)]
    pub(super) task: bool,
    #[serde(default, rename = "ticket")]
    _ticket: bool,
    /// Type of the answer.
    #[serde(default)]
    pub(super) answer: Option<String>,
}

/// A parameter, or a part of a property string.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct FieldFacts {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) options: Vec<String>,
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
    pub(super) least: Option<u32>,
    pub(super) most: Option<u32>,
    pub(super) pattern: Option<String>,
    /// A list of names without an order.
    pub(super) set: bool,
    pub(super) tags: bool,
    /// A number follows the name, as in `net0`.
    pub(super) indexed: bool,
    /// The part of a property string that needs no name.
    pub(super) first: bool,
    #[serde(rename = "requires")]
    _requires: Option<String>,
    /// The part that this name stands for.
    pub(super) alias: Option<String>,
    pub(super) parts: Vec<FieldFacts>,
}

/// `overlay.json`, which people write.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Overlay {
    /// Titles, by area.
    pub(super) areas: Map<String, Value>,
    /// The longest prefixes first.
    pub(super) within: Vec<Parent>,
    pub(super) activations: BTreeMap<String, Value>,
    pub(super) items: Map<String, Value>,
    pub(super) settings: Map<String, Value>,
    pub(super) actions: Map<String, Value>,
    pub(super) reads: Map<String, Value>,
    /// Routes that lead to what another call leads to.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
}

/// The kind whose objects the paths below a prefix belong to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parent {
    pub(super) prefix: String,
    pub(super) kind: String,
    /// Places in the parent's row, by parameter.
    pub(super) params: BTreeMap<String, String>,
    pub(super) key: Vec<String>,
    /// Other names for variables of the prefix: `id` is that of the object itself.
    #[serde(default)]
    pub(super) rename: BTreeMap<String, String>,
}

/// A route of a write: its method and path, or that there is none.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(super) enum Way {
    Is(bool),
    Route(String),
}

/// A collection of objects, or settings where `key` is empty.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) path: String,
    /// Path of one object; found among the routes where absent.
    #[serde(rename = "item")]
    pub(super) one: Option<Way>,
    pub(super) list: Option<String>,
    pub(super) rows: String,
    pub(super) only: Map<String, Value>,
    pub(super) row_id: Option<String>,
    /// Path that one object is read from, or `false` where rows of the list are whole.
    pub(super) get: Option<Way>,
    pub(super) key: Vec<String>,
    pub(super) key_schema: BTreeMap<String, Value>,
    pub(super) params: Map<String, Value>,
    pub(super) volatile: bool,
    pub(super) read_only: bool,
    /// Prefix of the parent, where the path does not tell.
    pub(super) parent: Option<String>,
    /// It has no parent, though its path looks like it.
    pub(super) top: bool,
    pub(super) create: Option<Way>,
    /// `found`, or `field:NAME`.
    pub(super) create_id: Option<String>,
    pub(super) create_with: Map<String, Value>,
    pub(super) update: Option<Way>,
    pub(super) sends: Option<String>,
    /// Whether fields are emptied by naming them.
    pub(super) clear: Option<bool>,
    pub(super) digest: Option<bool>,
    pub(super) delete: Option<Way>,
    pub(super) delete_with: Map<String, Value>,
    #[serde(rename = "final")]
    pub(super) is_final: bool,
    pub(super) activate: Option<String>,
    pub(super) danger: Map<String, Value>,
    pub(super) danger_if: Vec<Value>,
    pub(super) lockout: bool,
    pub(super) time: Option<String>,
    pub(super) fields: FieldJudgements,
    /// Other routes that this one makes needless.
    pub(super) covers: Vec<String>,
}

/// Names of fields that need more than their facts say.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FieldJudgements {
    /// There are none.
    pub(super) none: bool,
    pub(super) secret: Vec<String>,
    pub(super) unread: Vec<String>,
    pub(super) create_only: Vec<String>,
    pub(super) always: Vec<String>,
    pub(super) omit: Vec<String>,
    pub(super) rewritten: Vec<String>,
    pub(super) fold: Vec<String>,
    /// Numbers that are switches.
    pub(super) flag: Vec<String>,
    pub(super) require: Vec<String>,
    pub(super) default: Map<String, Value>,
    /// Only read, with their types.
    pub(super) shown: Map<String, Value>,
    /// Parameters of the path that a new object's payload says.
    pub(super) payload: Map<String, Value>,
    /// What people must know to write a field.
    pub(super) describe: BTreeMap<String, String>,
    /// Parts of property strings that the facts do not have.
    pub(super) properties: BTreeMap<String, Vec<String>>,
}

/// Something that is done.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    pub(super) route: String,
    /// The path, where parameters have other names than in the route.
    pub(super) at: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) summary: String,
    pub(super) with: Map<String, Value>,
    pub(super) effect: Option<Value>,
    pub(super) back: Option<Value>,
    pub(super) inverse: Option<String>,
    /// The inverse deletes what the action made.
    pub(super) inverse_deletes: bool,
    pub(super) danger: Option<String>,
    pub(super) danger_if: Vec<Value>,
    pub(super) lockout: bool,
    pub(super) time: Option<String>,
    /// The parameter that takes an uploaded file; the body has parts then.
    pub(super) file: Option<FileFacts>,
    pub(super) omit: Vec<String>,
    /// The only fields that it takes; all where empty.
    pub(super) only: Vec<String>,
    pub(super) require: Vec<String>,
    pub(super) secret: Vec<String>,
    /// What people must know to write a field.
    pub(super) describe: BTreeMap<String, String>,
    /// Other names for variables of the path.
    pub(super) rename: BTreeMap<String, String>,
    /// Other routes that this one makes needless.
    pub(super) covers: Vec<String>,
}

/// A parameter that takes an uploaded file, which payloads call `file`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileFacts {
    pub(super) param: String,
    /// The parameter that takes its SHA-256.
    pub(super) checksum: String,
    pub(super) describe: String,
}

/// A route that is only read.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Read {
    pub(super) title: String,
    pub(super) route: String,
    /// It needs values that people give as filters.
    pub(super) asked: bool,
    pub(super) query: Option<String>,
    /// What names a row.
    pub(super) key: Vec<String>,
    /// The only fields that are shown; all where empty.
    pub(super) fields: Map<String, Value>,
}

/// The parameters of each route, and what it answers.
pub(super) fn surface(facts: &Facts) -> Surface {
    let of_route = |(name, route): (&String, &Route)| {
        let fields = route.fields.iter().map(|place| &facts.fields[*place]);
        let types =
            fields.map(|field| (field.name.clone(), kind(&field.kind, field.required, &field.options)));
        let answer = route.answer.iter().map(|answer| ("(answer)".to_owned(), answer.clone()));
        (name.clone(), types.chain(answer).collect())
    };
    facts.routes.iter().map(of_route).collect()
}
