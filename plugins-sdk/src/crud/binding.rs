//! The grammar of bindings, as `description.json` has them. Keys are kebab-case; unknown keys are refused.
//!
//! Paths may hold `{id}`, which stands for the vendor's id of an object. Places inside the vendor's objects are dotted:
//! `source.network` is the field `network` of `source`, or in a flat row the field of that whole name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{Danger, Fault, Host, Method, Operation, fault};

/// How objects of a kind are found and read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KindBinding {
    pub shape: Shape,
    /// What people call one object: "alias".
    pub noun: String,
    /// Needed where the shape is `items` or `rows`.
    #[serde(default)]
    pub list: Option<ListRoute>,
    /// Needed where the shape is `object` or `answer`, and for kinds that are written.
    #[serde(default)]
    pub get: Option<GetRoute>,
    /// Payload fields that make the natural key.
    #[serde(default)]
    pub key: Vec<String>,
    /// By the name of the payload.
    #[serde(default)]
    pub fields: BTreeMap<String, Field>,
}

/// What a kind is to the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A list of items, each with an id of the vendor.
    Items,
    /// Settings that are one object.
    Object,
    /// A list that is only read; its rows are shown as they are.
    Rows,
    /// One answer that is only read, shown as it is.
    Answer,
}

/// How the objects of a kind are listed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ListRoute {
    #[serde(default)]
    pub method: Verb,
    pub path: String,
    /// What a POST sends beside the paging.
    #[serde(default)]
    pub body: Option<Value>,
    /// JSON pointer to the rows.
    #[serde(default)]
    pub rows: String,
    /// Field of a row that holds its id.
    #[serde(default)]
    pub id: Option<String>,
    /// Form of the ids of rows that can be written; the others are built in, and only shown.
    #[serde(default)]
    pub writable: Option<IdForm>,
    #[serde(default)]
    pub page: Option<Page>,
    /// Field of a row with the label of a choice, where `{field}` is the field of its value.
    #[serde(default)]
    pub label: Option<String>,
}

/// How a list is asked for in parts. The parameters go into the query of a GET and the body of a POST.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Page {
    pub by: PageBy,
    /// Parameter that names the page.
    pub at: String,
    /// Parameter with the number of rows of a page.
    pub size: String,
    /// The most rows of a page that the vendor gives.
    pub size_max: u32,
    /// What the first page is called.
    #[serde(default)]
    pub first: u64,
    /// JSON pointer to the number of all rows.
    #[serde(default)]
    pub total: Option<String>,
}

/// What a page is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageBy {
    Number,
    Offset,
}

/// How one object is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GetRoute {
    #[serde(default)]
    pub method: Verb,
    pub path: String,
    /// JSON pointer to the object in the answer; nothing there means that it does not exist.
    #[serde(default)]
    pub item: String,
    /// Path that answers a new object with its defaults and choices.
    #[serde(default)]
    pub template: Option<String>,
}

/// The method of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verb {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// What the ids of objects look like that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdForm {
    Uuid,
}

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
    /// The vendor fills it in when a create leaves it out.
    pub generated: bool,
    /// It must be in every update: left out, the vendor blanks it.
    pub always: bool,
    /// The vendor compares it without case.
    pub fold: bool,
    /// It is written and never answered.
    pub unread: bool,
}

/// What a field holds, and how the vendor writes it as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldType {
    #[default]
    Text,
    /// `"0"` or `"1"`.
    Flag,
    /// A whole number, written as text.
    Number,
    /// Texts, joined to one.
    List,
    /// A text that the host hands out as a reference.
    Secret,
    /// JSON that is the same in both forms.
    Json,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FieldForm {
    Type(FieldType),
    Full(FullField),
}

#[derive(Deserialize)]
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
    generated: bool,
    #[serde(default)]
    always: bool,
    #[serde(default)]
    fold: bool,
    #[serde(default)]
    unread: bool,
}

impl From<FieldForm> for Field {
    fn from(form: FieldForm) -> Self {
        let full = match form {
            FieldForm::Full(full) => full,
            FieldForm::Type(kind) => FullField {
                at: None,
                kind,
                choice: false,
                open: false,
                of: Vec::new(),
                separator: None,
                generated: false,
                always: false,
                fold: false,
                unread: false,
            },
        };
        Field {
            at: full.at,
            kind: full.kind,
            choice: full.choice,
            open: full.open,
            of: full.of,
            separator: full.separator.unwrap_or_else(|| ",".to_owned()),
            generated: full.generated,
            always: full.always,
            fold: full.fold,
            unread: full.unread,
        }
    }
}

/// How a feature writes the objects of a kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FeatureBinding {
    pub kind: String,
    #[serde(default)]
    pub create: Option<Create>,
    #[serde(default)]
    pub update: Option<Update>,
    #[serde(default)]
    pub delete: Option<Delete>,
    /// Calls that make active what was written; each is sent once, after all writes of a plan.
    #[serde(default)]
    pub activate: Vec<Activation>,
    /// A write may cut the path to the device.
    #[serde(default)]
    pub lockout: bool,
    /// Dangers other than `normal`, by operation.
    #[serde(default)]
    pub danger: BTreeMap<String, String>,
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
}

/// How the id of a new object comes about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewId {
    /// The plan chooses it: `{id}` in the path is a new UUID.
    Chosen,
    /// The vendor chooses it, and answers it at this JSON pointer. Plans cannot name it yet.
    Answer(String),
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
    #[serde(default = "post")]
    pub method: Verb,
    pub path: String,
    /// Objects that the vendor would delete too; while there are any, the delete is refused.
    #[serde(default)]
    pub takes: Vec<Dependent>,
    /// Nothing writes the object as it was: the delete is final.
    #[serde(default, rename = "final")]
    pub is_final: bool,
}

/// Objects of a kind whose field names the object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dependent {
    pub kind: String,
    pub field: String,
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
}

fn post() -> Verb {
    Verb::Post
}

impl Verb {
    pub(crate) fn method(self) -> Method {
        match self {
            Verb::Get => Method::Get,
            Verb::Post => Method::Post,
            Verb::Put => Method::Put,
            Verb::Patch => Method::Patch,
            Verb::Delete => Method::Delete,
        }
    }
}

impl KindBinding {
    /// The binding of a kind, as the package's description has it.
    pub fn of(host: &dyn Host, kind: &str) -> Result<Self, Fault> {
        let binding = host
            .kind_binding(kind)
            .ok_or_else(|| fault::unsupported(format!("there is no kind '{kind}' that can be read")))?;
        serde_json::from_value(binding).map_err(|error| unusable("kind", kind, &error))
    }

    /// The field's place in the vendor's object.
    pub(crate) fn place<'a>(&'a self, name: &'a str) -> &'a str {
        self.fields.get(name).and_then(|field| field.at.as_deref()).unwrap_or(name)
    }

    /// The payload's name of the field that stands at a place of the vendor's object.
    pub(crate) fn name_at<'a>(&'a self, place: &'a str) -> &'a str {
        let found = self.fields.keys().find(|name| self.place(name) == place);
        found.map_or(place, String::as_str)
    }
}

impl FeatureBinding {
    /// The binding of a feature, as the package's description has it.
    pub fn of(host: &dyn Host, feature: &str) -> Result<Self, Fault> {
        let binding = host
            .feature_binding(feature)
            .ok_or_else(|| fault::unsupported(format!("there is no feature '{feature}'")))?;
        serde_json::from_value(binding).map_err(|error| unusable("feature", feature, &error))
    }

    pub(crate) fn danger_of(&self, operation: Operation) -> Danger {
        match self.danger.get(operation_word(operation)).map(String::as_str) {
            Some("catastrophic") => Danger::Catastrophic,
            Some("destructive") => Danger::Destructive,
            _ => Danger::Normal,
        }
    }
}

pub(crate) fn operation_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    }
}

fn unusable(what: &str, id: &str, error: &serde_json::Error) -> Fault {
    fault::unsupported(format!(
        "the binding of {what} '{id}' cannot be read: {error}; install the package again"
    ))
}
