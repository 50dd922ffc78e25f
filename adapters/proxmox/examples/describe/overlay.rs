//! Facts and judgements about Proxmox VE, as their two files have them.

use std::collections::BTreeMap;

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
    #[serde(default, rename = "task")]
    _task: bool,
    #[serde(default, rename = "ticket")]
    _ticket: bool,
    /// Type of the answer.
    #[serde(default)]
    pub(super) answer: Option<String>,
}

/// A parameter, or a part of a property string.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct FieldFacts {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) min: Option<Number>,
    #[serde(default)]
    pub(super) max: Option<Number>,
    #[serde(default)]
    pub(super) least: Option<u32>,
    #[serde(default)]
    pub(super) most: Option<u32>,
    #[serde(default)]
    pub(super) pattern: Option<String>,
    /// A list of names without an order.
    #[serde(default)]
    pub(super) set: bool,
    #[serde(default)]
    pub(super) tags: bool,
    /// A number follows the name, as in `net0`.
    #[serde(default)]
    pub(super) indexed: bool,
    /// The part of a property string that needs no name.
    #[serde(default)]
    pub(super) first: bool,
    #[serde(default, rename = "requires")]
    _requires: Option<String>,
    /// The part that this name stands for.
    #[serde(default)]
    pub(super) alias: Option<String>,
    #[serde(default)]
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
    pub(super) left_out: Vec<LeftOut>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeftOut {
    pub(super) routes: Vec<String>,
    /// In a sentence; never empty.
    pub(super) why: String,
}

/// A route of a write: its method and path, or that there is none.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(super) enum Way {
    Is(bool),
    Route(String),
}

/// A collection of objects, or settings where `key` is empty.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) path: String,
    /// Path of one object; found among the routes where absent.
    #[serde(default, rename = "item")]
    pub(super) one: Option<Way>,
    #[serde(default)]
    pub(super) list: Option<String>,
    #[serde(default)]
    pub(super) rows: String,
    #[serde(default)]
    pub(super) only: Map<String, Value>,
    #[serde(default)]
    pub(super) row_id: Option<String>,
    /// Path that one object is read from, or `false` where rows of the list are whole.
    #[serde(default)]
    pub(super) get: Option<Way>,
    #[serde(default)]
    pub(super) key: Vec<String>,
    #[serde(default)]
    pub(super) key_schema: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    #[serde(default)]
    pub(super) volatile: bool,
    #[serde(default)]
    pub(super) read_only: bool,
    /// Prefix of the parent, where the path does not tell.
    #[serde(default)]
    pub(super) parent: Option<String>,
    /// It has no parent, though its path looks like it.
    #[serde(default)]
    pub(super) top: bool,
    #[serde(default)]
    pub(super) create: Option<Way>,
    /// `found`, or `field:NAME`.
    #[serde(default)]
    pub(super) create_id: Option<String>,
    #[serde(default)]
    pub(super) create_with: Map<String, Value>,
    #[serde(default)]
    pub(super) update: Option<Way>,
    #[serde(default)]
    pub(super) sends: Option<String>,
    /// Whether fields are emptied by naming them.
    #[serde(default)]
    pub(super) clear: Option<bool>,
    #[serde(default)]
    pub(super) digest: Option<bool>,
    #[serde(default)]
    pub(super) delete: Option<Way>,
    #[serde(default)]
    pub(super) delete_with: Map<String, Value>,
    #[serde(default, rename = "final")]
    pub(super) is_final: bool,
    #[serde(default)]
    pub(super) activate: Option<String>,
    #[serde(default)]
    pub(super) danger: Map<String, Value>,
    #[serde(default)]
    pub(super) danger_if: Vec<Value>,
    #[serde(default)]
    pub(super) lockout: bool,
    #[serde(default)]
    pub(super) time: Option<String>,
    #[serde(default)]
    pub(super) fields: FieldJudgements,
    /// Other routes that this one makes needless.
    #[serde(default)]
    pub(super) covers: Vec<String>,
}

/// Names of fields that need more than their facts say.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FieldJudgements {
    /// There are none.
    #[serde(default)]
    pub(super) none: bool,
    #[serde(default)]
    pub(super) secret: Vec<String>,
    #[serde(default)]
    pub(super) unread: Vec<String>,
    #[serde(default)]
    pub(super) create_only: Vec<String>,
    #[serde(default)]
    pub(super) always: Vec<String>,
    #[serde(default)]
    pub(super) omit: Vec<String>,
    #[serde(default)]
    pub(super) rewritten: Vec<String>,
    #[serde(default)]
    pub(super) fold: Vec<String>,
    /// Numbers that are switches.
    #[serde(default)]
    pub(super) flag: Vec<String>,
    #[serde(default)]
    pub(super) require: Vec<String>,
    #[serde(default)]
    pub(super) default: Map<String, Value>,
    /// Only read, with their types.
    #[serde(default)]
    pub(super) shown: Map<String, Value>,
    /// Parameters of the path that a new object's payload says.
    #[serde(default)]
    pub(super) payload: Map<String, Value>,
    /// What people must know to write a field.
    #[serde(default)]
    pub(super) describe: BTreeMap<String, String>,
    /// Parts of property strings that the facts do not have.
    #[serde(default)]
    pub(super) properties: BTreeMap<String, Vec<String>>,
}

/// Something that is done.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    pub(super) route: String,
    /// The path, where parameters have other names than in the route.
    #[serde(default)]
    pub(super) at: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<String>,
    pub(super) summary: String,
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    #[serde(default)]
    pub(super) effect: Option<Value>,
    #[serde(default)]
    pub(super) back: Option<Value>,
    #[serde(default)]
    pub(super) inverse: Option<String>,
    #[serde(default)]
    pub(super) danger: Option<String>,
    #[serde(default)]
    pub(super) danger_if: Vec<Value>,
    #[serde(default)]
    pub(super) lockout: bool,
    #[serde(default)]
    pub(super) time: Option<String>,
    #[serde(default)]
    pub(super) omit: Vec<String>,
    /// The only fields that it takes; all where empty.
    #[serde(default)]
    pub(super) only: Vec<String>,
    #[serde(default)]
    pub(super) require: Vec<String>,
    #[serde(default)]
    pub(super) secret: Vec<String>,
    /// What people must know to write a field.
    #[serde(default)]
    pub(super) describe: BTreeMap<String, String>,
    /// Other names for variables of the path.
    #[serde(default)]
    pub(super) rename: BTreeMap<String, String>,
    /// Other routes that this one makes needless.
    #[serde(default)]
    pub(super) covers: Vec<String>,
}

/// A route that is only read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    pub(super) title: String,
    pub(super) route: String,
    /// It needs values that people give as filters.
    #[serde(default)]
    pub(super) asked: bool,
    #[serde(default)]
    pub(super) query: Option<String>,
    /// What names a row.
    #[serde(default)]
    pub(super) key: Vec<String>,
    /// The only fields that are shown; all where empty.
    #[serde(default)]
    pub(super) fields: Map<String, Value>,
}
