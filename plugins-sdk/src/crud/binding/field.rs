//! Fields of objects, as bindings have them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One field, in full or as the name of its type alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "FieldForm")]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts of the vendor")]
pub struct Field {
    /// Its place in the vendor's object; the payload's name when absent.
    pub at: Option<String>,
    pub kind: FieldType,
    /// The object is read with a map of all choices, each with `selected`.
    pub choice: bool,
    /// Other values than the choices are accepted.
    pub open: bool,
    /// Kinds whose natural keys may be named instead of the vendor's ids.
    pub of: Vec<String>,
    /// What joins a list.
    pub separator: String,
    /// What each item of a list is.
    pub items: FieldType,
    /// A value with `!` before it stands for all others; a payload has `{"not": value}` for it.
    pub negated: bool,
    /// The vendor fills it in when a create leaves it out.
    pub generated: bool,
    /// It must be in every update: left out, the vendor blanks it.
    pub always: bool,
    /// The vendor compares it without case.
    pub fold: bool,
    /// It is written and never answered.
    pub unread: bool,
    /// What an absent value means to the vendor.
    pub default: Option<Value>,
    /// Only a create takes it.
    pub create_only: bool,
    /// What other fields have to be so that the vendor keeps the value: a write that makes them something else takes it away.
    pub kept_with: BTreeMap<String, Wanted>,
    /// The vendor may write another value than the one it was given.
    pub rewritten: Rewritten,
    /// The order of the choices of a list counts.
    pub ordered: bool,
    /// For `json`: a payload's object is laid over the known one, `null` takes a name away, and names that only the vendor
    /// has do not count.
    pub merge: bool,
    /// For `properties`: the name of a first part that has no name.
    pub first: Option<String>,
    /// For `file`: the parameter that takes the SHA-256 of the file.
    pub checksum: Option<String>,
    /// For `file`: the vendor writes `_` for what is no letter of ASCII, digit, `.`, `_` or `-` in its name.
    pub plain_name: bool,
}

/// How far the vendor may write another value than the one it was given.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Rewritten {
    /// Wholly, or not at all.
    Whole(bool),
    /// Of a list of objects, only those that the plan changes. They are told apart by the field of this name.
    Elements(String),
}

impl Default for Rewritten {
    fn default() -> Self {
        Self::Whole(false)
    }
}

/// What a field has to be.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// One of these.
    Any(Vec<Value>),
    /// Anything else.
    Other { not: Vec<Value> },
}

impl Wanted {
    pub(crate) fn is_met(&self, value: &Value) -> bool {
        match self {
            Wanted::Any(values) => values.contains(value),
            Wanted::Other { not } => !not.contains(value),
        }
    }
}

/// What a field holds, and how the vendor writes it as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldType {
    #[default]
    Text,
    /// `"0"` or `"1"`.
    Flag,
    /// `"false"` or `"true"`; read as `no` and `yes`, too.
    Bool,
    /// A text without content that is there or not.
    Mark,
    /// A whole number, written as text.
    Number,
    /// The same, read with a unit as well: `10M` is 10,000,000, and `4KiB` is 4,096. Words beside numbers stay.
    Size,
    /// Seconds, written as `90s` and read as `1m30s` or `00:01:30`, too. Words beside times stay.
    Duration,
    /// Texts, joined to one.
    List,
    /// A text that the host hands out as a reference.
    Secret,
    /// JSON that is the same in both forms.
    Json,
    /// An object of texts, written as `name=value` with commas between. A payload's object changes the parts that it
    /// names and keeps the others; `null` takes one away.
    Properties,
    /// An uploaded file, whose field in the payload schema says `"x-file": true`. Only an action with `multipart` takes it.
    File,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FieldForm {
    Type(FieldType),
    Full(Box<FullField>),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "as `Field`")]
struct FullField {
    #[serde(default)]
    at: Option<String>,
    #[serde(rename = "type", default)]
    kind: FieldType,
    #[serde(default)]
    choice: bool,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    of: Vec<String>,
    #[serde(default)]
    separator: Option<String>,
    #[serde(default)]
    items: FieldType,
    #[serde(default)]
    negated: bool,
    #[serde(default)]
    generated: bool,
    #[serde(default)]
    always: bool,
    #[serde(default)]
    fold: bool,
    #[serde(default)]
    unread: bool,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default)]
    create_only: bool,
    #[serde(default)]
    kept_with: BTreeMap<String, Wanted>,
    #[serde(default)]
    rewritten: Rewritten,
    #[serde(default)]
    ordered: bool,
    #[serde(default)]
    merge: bool,
    #[serde(default)]
    first: Option<String>,
    #[serde(default)]
    checksum: Option<String>,
    #[serde(default)]
    plain_name: bool,
}

impl From<FieldForm> for Field {
    fn from(form: FieldForm) -> Self {
        let full = match form {
            FieldForm::Full(full) => *full,
            FieldForm::Type(kind) => FullField { kind, ..FullField::default() },
        };
        Field {
            at: full.at,
            kind: full.kind,
            choice: full.choice,
            open: full.open,
            of: full.of,
            separator: full.separator.unwrap_or_else(|| ",".to_owned()),
            items: full.items,
            negated: full.negated,
            generated: full.generated,
            always: full.always,
            fold: full.fold,
            unread: full.unread,
            default: full.default,
            create_only: full.create_only,
            kept_with: full.kept_with,
            rewritten: full.rewritten,
            ordered: full.ordered,
            merge: full.merge,
            first: full.first,
            checksum: full.checksum,
            plain_name: full.plain_name,
        }
    }
}
