//! What features do, as bindings have it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Field, Verb, unusable};
use crate::{Danger, Fault, Host, Operation, fault};

/// Stands in a body for an id that is a number.
const ID_AS_NUMBER: &str = "{id#}";

/// How a feature writes the objects of a kind, or what it does with one.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FeatureBinding {
    /// The kind that it writes, or of the object that an action is about; only an action may have none.
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub create: Option<Create>,
    #[serde(default)]
    pub update: Option<Update>,
    #[serde(default)]
    pub delete: Option<Delete>,
    /// The feature does something instead of writing objects; it is staged by the operation `create`.
    #[serde(default)]
    pub action: Option<Action>,
    /// Calls that make active what was written; each is sent once, after all writes of a plan.
    #[serde(default)]
    pub activate: Vec<Activation>,
    /// A write may cut the path to the device.
    #[serde(default)]
    pub lockout: bool,
    /// Dangers other than `normal`, by operation.
    #[serde(default)]
    pub danger: BTreeMap<String, String>,
    /// Values of a payload that raise the danger.
    #[serde(default)]
    pub danger_if: Vec<DangerIf>,
}

/// A value of a payload that raises the danger.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DangerIf {
    pub field: String,
    /// Any value that is not `null` or `false`, where absent.
    #[serde(default)]
    pub is: Option<Value>,
    pub danger: String,
}

/// The call that creates an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Create {
    #[serde(default = "post")]
    pub method: Verb,
    pub path: String,
    /// Key of the body under which the fields stand; at the top where absent.
    #[serde(default)]
    pub root: Option<String>,
    pub id: NewId,
    /// What the body also holds.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Ends the job that it starts.
    #[serde(default)]
    pub cancel: Option<Cancel>,
}

/// The call that ends the job which a write or an action starts, sent when a person asks for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cancel {
    #[serde(default = "post")]
    pub method: Verb,
    /// Names the job as `{job}`, beside what the path of the write names.
    pub path: String,
    /// JSON pointer to the id of the job, in the answer of the call that starts it.
    pub job: String,
    #[serde(default)]
    pub with: Map<String, Value>,
}

/// How the id of a new object comes about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewId {
    /// The plan chooses it: `{id}` in the path is a new UUID.
    Chosen,
    /// It is the value of this field of the payload.
    Field(String),
    /// The vendor chooses it, and answers it at this JSON pointer.
    Answer(String),
    /// The vendor chooses it, and does not say it: the object is found by its natural key.
    Found,
}

/// The call that changes an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Update {
    #[serde(default = "post")]
    pub method: Verb,
    pub path: String,
    #[serde(default)]
    pub root: Option<String>,
    #[serde(default)]
    pub sends: Sends,
    /// Parameter that lists the fields to be emptied; without it an empty value is sent.
    #[serde(default)]
    pub clear: Option<String>,
    /// What stands before the name of a field that is emptied, such as `!`.
    #[serde(default)]
    pub clear_mark: Option<String>,
    #[serde(default)]
    pub revision: Option<Revision>,
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Ends the job that it starts.
    #[serde(default)]
    pub cancel: Option<Cancel>,
}

/// A digest or revision that the vendor wants with a write, as it is right before.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Revision {
    /// Path that is read for it; that of the object where absent.
    #[serde(default)]
    pub path: Option<String>,
    /// JSON pointer into the whole answer as the device sends it, such as `/data/digest`.
    pub at: String,
    /// Parameter that it is sent as.
    #[serde(rename = "as")]
    pub param: String,
}

/// What an update holds of the fields that it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sends {
    /// The vendor replaces the object: all fields are sent.
    #[default]
    Whole,
    /// The vendor keeps what is left out: only changed fields are sent, and those that say `always`.
    Changed,
}

/// The call that deletes an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Delete {
    /// There is no usual one: vendors have `DELETE`, and others `POST` to a path of its own.
    pub method: Verb,
    pub path: String,
    /// Objects that the vendor would delete too; while there are any, the delete is refused.
    #[serde(default)]
    pub takes: Vec<Dependent>,
    /// Objects that name it and that the vendor would leave behind; while there are any, the delete is refused.
    #[serde(default)]
    pub named_by: Option<NamedBy>,
    /// Nothing writes the object as it was: the delete is final.
    #[serde(default, rename = "final")]
    pub is_final: bool,
    #[serde(default)]
    pub revision: Option<Revision>,
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Ends the job that it starts.
    #[serde(default)]
    pub cancel: Option<Cancel>,
}

/// A call that does something: starts a machine, wakes a device, makes a copy.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Action {
    #[serde(default = "post")]
    pub method: Verb,
    pub path: String,
    /// What it does, as the review says it: "start". The noun and name of the object follow.
    pub summary: String,
    #[serde(default)]
    pub root: Option<String>,
    /// Fields of the payload that the body takes.
    #[serde(default)]
    pub fields: BTreeMap<String, Field>,
    /// The body is `multipart/form-data`: texts first, then the files.
    #[serde(default)]
    pub multipart: bool,
    #[serde(default)]
    pub with: Map<String, Value>,
    /// What it leads to, where that can be read. Without it the answer alone says whether it was done.
    #[serde(default)]
    pub effect: Option<Effected>,
    /// Takes the effect back.
    #[serde(default)]
    pub back: Option<Activation>,
    /// Ends the job that it starts.
    #[serde(default)]
    pub cancel: Option<Cancel>,
    /// Feature that takes the effect back, with the same natural key.
    #[serde(default)]
    pub inverse: Option<String>,
    /// The inverse deletes the object that is there afterwards.
    #[serde(default)]
    pub inverse_deletes: bool,
}

/// What an action leads to: a field of an object has a value, or the object is there, or gone.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Effected {
    /// Kind of the object; the feature's where absent.
    #[serde(default)]
    pub kind: Option<String>,
    /// Fields of its natural key that have another name in the payload, with that name; or with a text that names fields of
    /// the payload, such as `{storage}:iso/{file}`. In the place of a file stands its name.
    #[serde(default)]
    pub key: BTreeMap<String, String>,
    /// Field that is changed.
    #[serde(default)]
    pub field: Option<String>,
    /// What the field is afterwards.
    #[serde(default)]
    pub is: Option<Value>,
    /// Field of the payload with what it is afterwards.
    #[serde(default)]
    pub from: Option<String>,
    /// Without a field: whether the object is there afterwards.
    #[serde(default)]
    pub there: bool,
}

/// Objects of a kind whose field names the object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dependent {
    pub kind: String,
    pub field: String,
}

/// Objects that name another one by a value of its own, and not by its id.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NamedBy {
    /// Place of that value in the vendor's object.
    pub by: String,
    /// Fields that hold it, alone or in a list, by the kind of the objects; with `!` before it they name it, too.
    pub others: BTreeMap<String, Vec<String>>,
}

/// A call that makes active what was written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Activation {
    #[serde(default = "post")]
    pub method: Verb,
    pub path: String,
    /// What else it makes active or interrupts; told before the review.
    #[serde(default)]
    pub reach: Option<String>,
    #[serde(default)]
    pub with: Map<String, Value>,
}

fn post() -> Verb {
    Verb::Post
}

impl FeatureBinding {
    /// The binding of a feature, as the package's description has it.
    pub fn of(host: &dyn Host, feature: &str) -> Result<Self, Fault> {
        let binding = host
            .feature_binding(feature)
            .ok_or_else(|| fault::unsupported(format!("there is no feature '{feature}'")))?;
        serde_json::from_value(binding).map_err(|error| unusable("feature", feature, &error))
    }

    /// Whether calls have the id of the object as a number in their bodies.
    pub(crate) fn has_id_as_number(&self) -> bool {
        let action = self.action.as_ref();
        let all = [
            self.update.as_ref().map(|update| &update.with),
            self.delete.as_ref().map(|delete| &delete.with),
            action.map(|action| &action.with),
            action.and_then(|action| action.back.as_ref()).map(|back| &back.with),
        ];
        all.into_iter().flatten().flat_map(Map::values).any(|value| value == ID_AS_NUMBER)
    }

    pub(crate) fn danger_of(&self, operation: Operation) -> Danger {
        danger(self.danger.get(operation_word(operation)).map(String::as_str))
    }

    /// What the values of a payload raise the danger to.
    pub(crate) fn danger_of_values(&self, payload: &Value) -> Danger {
        let is_met = |rule: &&DangerIf| {
            let value = payload.get(&rule.field).unwrap_or(&Value::Null);
            match &rule.is {
                Some(wanted) => value == wanted,
                None => !matches!(value, Value::Null | Value::Bool(false)),
            }
        };
        let met = self.danger_if.iter().filter(is_met).map(|rule| danger(Some(&rule.danger)));
        met.fold(Danger::Normal, worse)
    }
}

fn danger(word: Option<&str>) -> Danger {
    match word {
        Some("catastrophic") => Danger::Catastrophic,
        Some("destructive") => Danger::Destructive,
        _ => Danger::Normal,
    }
}

pub(crate) fn worse(one: Danger, other: Danger) -> Danger {
    match (one, other) {
        (Danger::Catastrophic, _) | (_, Danger::Catastrophic) => Danger::Catastrophic,
        (Danger::Destructive, _) | (_, Danger::Destructive) => Danger::Destructive,
        (Danger::Normal, Danger::Normal) => Danger::Normal,
    }
}

pub(crate) fn operation_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    }
}
