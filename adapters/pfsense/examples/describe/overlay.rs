//! Judgements about the API, as people write them in `overlay.json`. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::Access;
use serde::Deserialize;
use serde_json::{Map, Value};

/// `overlay.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Overlay {
    /// Titles, by area.
    pub(super) areas: Map<String, Value>,
    /// What an apply reaches beyond the change, by its path.
    pub(super) reach: Map<String, Value>,
    pub(super) items: Map<String, Value>,
    pub(super) settings: Map<String, Value>,
    pub(super) actions: Map<String, Value>,
    pub(super) reads: Map<String, Value>,
    /// Routes that lead to what another route leads to, which a feature or kind is made of.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
}

/// Routes that one reason stands for: all of an operation, all of a model, or those that are named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    pub(super) why: String,
    #[serde(default)]
    pub(super) access: Option<Access>,
    #[serde(default)]
    pub(super) operations: Vec<String>,
    #[serde(default)]
    pub(super) models: Vec<String>,
    #[serde(default)]
    pub(super) routes: Vec<String>,
}

/// A list of items, or settings where it has no key.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) model: String,
    pub(super) key: Vec<String>,
    /// The item whose objects these belong to.
    pub(super) within: Option<String>,
    /// Ids are names that stay, and no places of a list.
    pub(super) lasting_id: bool,
    pub(super) danger: Map<String, Value>,
    /// A write can cut the way to the firewall.
    pub(super) lockout: bool,
    /// Nothing writes a deleted item back as it was.
    #[serde(rename = "final")]
    pub(super) is_final: bool,
    /// What makes a write active, where the facts name another call.
    pub(super) apply: Vec<String>,
    pub(super) slow: bool,
    /// Objects that name one of these, which the firewall would leave behind.
    pub(super) named_by: Option<Value>,
    /// They are only read.
    pub(super) reads: bool,
    pub(super) fields: FieldJudgements,
}

/// Names of fields that need more than their facts say.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FieldJudgements {
    /// Lists that have features of their own.
    pub(super) omit: Vec<String>,
    pub(super) create_only: Vec<String>,
    /// Written by the firewall in its own way.
    pub(super) rewritten: Vec<String>,
    /// Needed in every update.
    pub(super) always: Vec<String>,
    /// What keeps a value, where the facts only say what lets a field exist.
    pub(super) kept_with: BTreeMap<String, Value>,
    /// The fields of a list's objects that are offered.
    pub(super) only: BTreeMap<String, Vec<String>>,
}

/// A call that does something.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) route: String,
    pub(super) query: Option<String>,
    pub(super) title: String,
    pub(super) does: String,
    /// The kind of the object that it is about.
    pub(super) kind: Option<String>,
    /// The body takes the fields of the model.
    pub(super) form: bool,
    /// Fields that a payload has to have, although the facts do not say so.
    pub(super) required: Vec<String>,
    pub(super) with: Map<String, Value>,
    pub(super) effect: Option<Value>,
    pub(super) back: Option<Value>,
    pub(super) inverse: Option<String>,
    /// The kind of the object that it makes.
    pub(super) made: Option<String>,
    pub(super) apply: Vec<String>,
    pub(super) danger: Option<String>,
    pub(super) lockout: bool,
    pub(super) slow: bool,
}

/// What is only read.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Read {
    pub(super) route: String,
    pub(super) query: Option<String>,
    pub(super) title: String,
    /// A list, whose rows are shown as they are.
    pub(super) rows: bool,
    /// Fields by which people know an object: actions are about them.
    pub(super) key: Vec<String>,
    pub(super) lasting_id: bool,
    pub(super) filters: Map<String, Value>,
}
