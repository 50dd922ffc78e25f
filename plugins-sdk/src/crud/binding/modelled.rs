//! How kinds of the model are filled from kinds of the vendor's own.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::unusable;
use crate::{Fault, Host, fault};

/// How a kind of the model is filled.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelBinding {
    /// The vendor's kinds, whose objects follow one another.
    pub sources: Vec<Source>,
}

/// Objects of the vendor's, each of which becomes one object of the model.
///
/// Places are dotted, as in other bindings. Beside what the row has, `$` holds the parameters of its paths (`$.node`)
/// and `&` what is joined to it (`&.zone.type`). Where [`Source::each`] is given, `^` is the row that the part stands in
/// (`^.name`), without its parts, and `@` the name of the part in its object, or the part itself where it is a text or
/// number of a list; else, where [`Source::whole`] is given, `^` is the row as the list has it, and `!` is true where the
/// object could not be read and the list alone tells of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Source {
    /// A kind of the description, with a binding.
    pub from: String,
    /// Only rows that have these values at these places.
    #[serde(default)]
    pub only: BTreeMap<String, OneOf>,
    /// No rows that have these values at these places.
    #[serde(default)]
    pub except: BTreeMap<String, OneOf>,
    /// Only where the source before this one is a part of the vendor's API that the device does not have.
    #[serde(default)]
    pub instead: bool,
    /// No rows whose key a source before this one tells, for a list that also has what others tell better.
    #[serde(default)]
    pub except_told: bool,
    /// Place of a list, or of an object's values, within the row: each part is an object of its own. The empty place is
    /// the row itself, of which those values are parts that are objects.
    #[serde(default)]
    pub each: Option<String>,
    /// Each object is read by itself, because the list does not tell enough.
    #[serde(default)]
    pub whole: bool,
    /// Rows of other kinds that belong to the row or part, by the names that they have behind `&`.
    #[serde(default)]
    pub join: BTreeMap<String, Join>,
    /// Places whose values make the key; the vendor object's natural key where there is none.
    #[serde(default)]
    pub key: Vec<String>,
    /// The name that people see: the first of these places that has a value, else the key.
    #[serde(default)]
    pub label: Vec<String>,
    /// Who made it; a person, where nothing is said or nothing stands there.
    #[serde(default)]
    pub origin: Option<Taken>,
    /// The identity of the device that it belongs to.
    #[serde(default)]
    pub device: Option<Taken>,
    /// What each field is taken from, by its name; `counters.rx_bytes` is within `counters`.
    #[serde(default)]
    pub fields: BTreeMap<String, Taken>,
    /// How changes of these objects become changes of one of the vendor's features.
    #[serde(default)]
    pub writes: Option<Writes>,
    /// The same for what is done with them, by the verb of the kind: `poe-cycle`.
    #[serde(default)]
    pub actions: BTreeMap<String, Acts>,
}

/// How a change in the words of the model becomes one of a feature.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Writes {
    pub feature: String,
    /// Those of `create`, `update` and `delete` that become it.
    pub verbs: Vec<String>,
    /// Which creates become it, where several sources are written: those whose fields have these values. A text that ends
    /// with `*` means all that begin so.
    #[serde(default)]
    pub when: BTreeMap<String, OneOf>,
    /// Where each field of the model goes. What is not named here cannot be expressed, and is refused.
    #[serde(default)]
    pub fields: BTreeMap<String, Given>,
    /// Fields of the model that the package's code carries ([`super::super::Vendor::expressed`]).
    #[serde(default)]
    pub by_code: Vec<String>,
    /// Features beside `feature` that the package's code makes updates of, where fields are features of their own.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Why the vendor has nothing for a field, for those who ask.
    #[serde(default)]
    pub cannot: BTreeMap<String, String>,
    /// What the payload of a create also holds.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// What the payload's natural key is taken from, by its fields; those of the source's own kind where nothing is said.
    #[serde(default)]
    pub names: BTreeMap<String, Taken>,
}

/// What is done with an object, as an action of the vendor's.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Acts {
    pub feature: String,
    /// Operation of the feature: `create` where nothing is said, as actions have it.
    #[serde(default)]
    pub operation: Option<String>,
    /// What the payload also holds.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// As in [`Writes::names`].
    #[serde(default)]
    pub names: BTreeMap<String, Taken>,
}

/// Where a field of the model goes: a field of the payload, or how the value becomes one.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Given {
    Place(String),
    As(Box<GivenAs>),
}

/// How a value of the model becomes one of a payload. What does not fit is refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GivenAs {
    /// Field of the payload; dotted within an object.
    pub to: String,
    #[serde(default, rename = "as")]
    pub form: GivenForm,
    /// What each word of the model is to the vendor. Another word is refused.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// A number is multiplied by it, and must be whole then.
    #[serde(default)]
    pub times: Option<f64>,
    /// What stands between the items where the vendor has a text.
    #[serde(default)]
    pub separator: Option<String>,
    /// What of an item of a list is meant, where its items are objects: its place within.
    #[serde(default)]
    pub item: Option<String>,
}

/// What a value becomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivenForm {
    /// As it is; a list where the payload has one.
    #[default]
    Json,
    Text,
    /// The opposite.
    NotFlag,
    /// The only item of a list.
    Only,
    /// The items as one text, with [`GivenAs::separator`] between them; a comma where nothing is said.
    Joined,
}

/// Rows of another kind that belong to a row: those whose values are the same. All of them are read with each page.
///
/// The first one stands in the row, or nothing where there is none. Where the row names several in a list, or
/// [`Join::many`] is given, all of them stand there, in the order of the names. Without [`Join::at`], everything that was
/// read stands beside every row, so it should be little. Nothing stands there where the device does not have that part of
/// the vendor's API, or denies it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Join {
    /// A kind of the description, with a binding.
    pub from: String,
    /// Place of a list, or of an object's values, within what is read: each part is a row, with its name there at `@`.
    #[serde(default)]
    pub each: Option<String>,
    /// Places of the row, whose values together name the others. One of them may have a list.
    #[serde(default)]
    pub at: OneOrMany,
    /// Places of the other rows with the same values, in the same order. A list, or with [`Join::separator`] a text,
    /// names several.
    #[serde(default)]
    pub by: OneOrMany,
    /// Several rows may have the same values.
    #[serde(default)]
    pub many: bool,
    /// What stands between several names in a text of the other rows.
    #[serde(default)]
    pub separator: Option<String>,
}

/// A value, or several of which one is meant.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOf {
    Several(Vec<Value>),
    One(Value),
}

/// What a value is taken from: a place, or what is done with what stands there.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Taken {
    Place(String),
    As(Box<TakenAs>),
}

/// How a value becomes one of the model. What stands there and does not fit is left out: it is not known.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TakenAs {
    /// The first of these places that has a value.
    #[serde(default)]
    pub at: OneOrMany,
    /// The value itself, whatever the vendor says.
    #[serde(default)]
    pub constant: Option<Value>,
    #[serde(default, rename = "as")]
    pub form: TakenForm,
    /// What the vendor's words mean, compared without regard to case; they come before `as`.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// What every other word means, where one stands there.
    #[serde(default, rename = "else")]
    pub otherwise: Option<Value>,
    /// A number is multiplied by it: `1024` where the vendor counts in KiB, `0.001` for milliseconds of a time.
    #[serde(default)]
    pub times: Option<f64>,
    /// What stands between the items of a list that is a text; a comma where nothing is said.
    #[serde(default)]
    pub separator: Option<String>,
    /// Only the text before this, such as `/` of an address with its prefix.
    #[serde(default)]
    pub before: Option<String>,
    /// Only the text behind this.
    #[serde(default)]
    pub after: Option<String>,
    /// Of a list: what each item becomes, an object of these fields; places are within the item. Of one name `""`, the
    /// item is that value itself.
    #[serde(default)]
    pub items: BTreeMap<String, Taken>,
}

/// One place, or several.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

/// What a value becomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakenForm {
    #[default]
    Text,
    /// `1`, `true`, `yes`, `on`, `enabled` and `up`, or the opposite.
    Flag,
    /// The opposite of a flag.
    NotFlag,
    /// A whole number, also where the vendor writes it as text.
    Integer,
    /// The whole seconds of a time such as `1d7h44m20s`.
    Seconds,
    Number,
    /// Texts, or objects of [`TakenAs::items`].
    List,
    /// A hardware address, lower case with colons.
    Mac,
    /// Seconds since 1970, or a time of RFC 3339, as a time of RFC 3339 in UTC.
    Time,
    /// As it is.
    Json,
}

impl ModelBinding {
    /// The binding of a kind of the model, as the package's description has it.
    pub fn of(host: &dyn Host, kind: &str) -> Result<Self, Fault> {
        let binding = host
            .model_binding(kind)
            .ok_or_else(|| fault::unsupported(format!("the kind '{kind}' of the model is not filled")))?;
        serde_json::from_value(binding).map_err(|error| unusable("the kind of the model", kind, &error))
    }
}

impl OneOrMany {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            OneOrMany::None => &[],
            OneOrMany::One(place) => std::slice::from_ref(place),
            OneOrMany::Many(places) => places,
        }
    }
}

impl OneOf {
    pub(crate) fn all(&self) -> &[Value] {
        match self {
            OneOf::One(value) => std::slice::from_ref(value),
            OneOf::Several(values) => values,
        }
    }
}
