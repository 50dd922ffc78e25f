//! The grammar of bindings, as `description.json` has them. Keys are kebab-case; unknown keys are refused.
//!
//! Paths may hold `{id}`, which stands for the vendor's id of an object, and other names in braces: what the vendor puts
//! into every path ([`super::Vendor::scope`]), parameters of a parent ([`Within`]), and places of the object's own row
//! ([`KindBinding::params`]). Places inside the vendor's objects are dotted: `source.network` is the field `network` of
//! `source`, or in a flat row the field of that whole name.
//!
//! The empty place is the object itself. Texts of `with` are filled like paths, without encoding; a whole text `{name#}`
//! becomes a number, also where the id is only known when the call is sent, and one that is `{name?}` is left out where
//! nothing is known of the name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Fault, Host, Method, fault};

mod feature;
mod field;
mod modelled;

pub use feature::{
    Action, Activation, Cancel, Create, DangerIf, Delete, Dependent, Effected, FeatureBinding, NamedBy,
    NewId, Revision, Sends, Update,
};
pub(crate) use feature::{operation_word, worse};
pub use field::{Field, FieldType, Rewritten, Wanted};
pub use modelled::{
    Acts, Given, GivenAs, GivenForm, Join, ModelBinding, OneOf, OneOrMany, Source, Taken, TakenAs, TakenForm,
    Writes,
};

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
    /// Needed where the shape is `object` or `answer`. Of `items` it is the route of one object, for lists that do not tell
    /// all of it; without it an object is its row of the list, also for features that write it.
    #[serde(default)]
    pub get: Option<GetRoute>,
    /// Payload fields that make the natural key, behind those of the parent.
    #[serde(default)]
    pub key: Vec<String>,
    /// An object whose natural key is empty has its id for the first field of it.
    #[serde(default)]
    pub key_or_id: bool,
    /// By the name of the payload.
    #[serde(default)]
    pub fields: BTreeMap<String, Field>,
    /// The kind whose objects these belong to.
    #[serde(default)]
    pub within: Option<Within>,
    /// Parameters of paths that stand in the object's own row, by name, with their place there.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Answers leave out fields without a value.
    #[serde(default)]
    pub sparse: bool,
    /// Ids are places in a list, which other writes move: an object is found by its natural key each time.
    #[serde(default)]
    pub volatile: bool,
}

/// The objects that a kind's objects belong to, such as the machine of a snapshot. Each has a list, or settings, of its
/// own.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Within {
    /// Kind of the parents. It has a list, and may be within a kind itself.
    pub kind: String,
    /// Parameters of paths, by name, with the place of each in a parent's row or the name of one of its own parameters.
    pub params: BTreeMap<String, String>,
    /// The parameters by which people know a parent: payloads name them, and the natural key begins with them.
    pub key: Vec<String>,
    /// Only parents that have these values at these places: one value, or one of several.
    #[serde(default)]
    pub only: BTreeMap<String, OneOf>,
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
    /// Rows with one of these values at these places are built in, and only shown. A place may have several.
    #[serde(default)]
    pub fixed: BTreeMap<String, OneOf>,
    /// Where the order of the rows counts: the field of a row that the strategies fill with the id of the row behind it. It
    /// is absent in the last row.
    #[serde(default)]
    pub behind: Option<String>,
    #[serde(default)]
    pub page: Option<Page>,
    /// Field of a row with the label of a choice, where `{field}` is the field of its value.
    #[serde(default)]
    pub label: Option<String>,
    /// Only rows that have these values at these places: one value, or one of several. A text may name parameters of the
    /// list's place, as paths do.
    #[serde(default)]
    pub only: BTreeMap<String, OneOf>,
    /// Filters that people may give.
    #[serde(default)]
    pub filters: BTreeMap<String, Filter>,
}

/// A filter that people may give: it goes into the path where that names its parameter, else into the query of a GET
/// or the body of a POST.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Filter {
    pub param: String,
    /// The vendor lists nothing without it.
    #[serde(default)]
    pub required: bool,
    #[serde(default, rename = "as")]
    pub form: FilterForm,
}

/// What the text of a filter becomes in the body of a POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterForm {
    /// A number where it is one, else a text.
    #[default]
    Text,
    /// Its parts between commas.
    List,
    /// Whether it is `true` or `1`.
    Flag,
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
    /// What a POST sends.
    #[serde(default)]
    pub body: Option<Value>,
    /// Filters that people may give where the answer is listed.
    #[serde(default)]
    pub filters: BTreeMap<String, Filter>,
    /// JSON pointer to the object in the answer; nothing there means that it does not exist.
    #[serde(default)]
    pub item: String,
    /// Path that answers a new object with its defaults and choices.
    #[serde(default)]
    pub template: Option<String>,
}

/// How a kind that is a file is fetched.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileBinding {
    /// What people call it: "configuration backup".
    pub noun: String,
    pub file: FileRoute,
}

/// The request that is answered with a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileRoute {
    #[serde(default)]
    pub method: Verb,
    /// Where it names `{key}`, people say by its key which file they mean.
    pub path: String,
    /// What a POST sends as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// What a POST sends as a form instead.
    #[serde(default)]
    pub form: Option<Map<String, Value>>,
    /// What people may, or must, give besides.
    #[serde(default)]
    pub filters: BTreeMap<String, Filter>,
    /// The file is a page of HTML; any other one is not.
    #[serde(default)]
    pub page: bool,
}

impl FileBinding {
    /// The binding of a kind, as the package's description has it.
    pub fn of(host: &dyn Host, kind: &str) -> Result<Self, Fault> {
        let binding = host
            .kind_binding(kind)
            .ok_or_else(|| fault::unsupported(format!("there is no kind '{kind}' that can be fetched")))?;
        serde_json::from_value(binding).map_err(|error| unusable("kind", kind, &error))
    }
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

    /// Whether there is one object, and no list of them.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.shape, Shape::Object | Shape::Answer)
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

fn unusable(what: &str, id: &str, error: &serde_json::Error) -> Fault {
    fault::unsupported(format!(
        "the binding of {what} '{id}' cannot be read: {error}; install the package again"
    ))
}
