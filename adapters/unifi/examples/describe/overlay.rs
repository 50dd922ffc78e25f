//! Judgements about the interfaces, as people write them in `overlay.json`. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::{Class, Parent};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::facts::Route;

/// `overlay.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Overlay {
    /// Titles, by area.
    pub(super) areas: Map<String, Value>,
    /// Names of fields that hold secrets, beside those that begin with `x_`.
    pub(super) secret_names: Vec<String>,
    /// What fields mean that an object does not have.
    pub(super) absent: Absent,
    /// What the facts do not tell of routes: bodies, and routes that clients use beside the contract.
    pub(super) bodies: BTreeMap<String, Route>,
    /// Objects that others belong to, by the names that the sections below use.
    pub(super) parents: BTreeMap<String, Parent>,
    pub(super) items: Map<String, Value>,
    pub(super) reads: Map<String, Value>,
    pub(super) actions: Map<String, Value>,
    /// What the controller answers as a file.
    pub(super) files: Map<String, Value>,
    /// Routes that another one makes needless.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
}

/// What a field of a list's object means that is not there, by names of which some end with `*`. What is not named here has
/// no meaning: the new value stays when a change of it is taken back, and the plan says so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Absent {
    /// Truth values that are true.
    pub(super) on: Vec<String>,
    /// Truth values that are false.
    pub(super) off: Vec<String>,
    /// Texts that the controller refuses when they are empty, although their form lets them be.
    pub(super) filled: Vec<String>,
}

/// A list of objects that are written, or settings where it has no `list`. With `kind` it only writes the objects of
/// another one.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) area: String,
    /// `controller` where it belongs to no site.
    pub(super) per: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) list: Option<String>,
    pub(super) get: Option<String>,
    pub(super) create: Option<String>,
    pub(super) update: Option<String>,
    pub(super) delete: Option<String>,
    /// Paths where those of the routes name something else, by operation.
    pub(super) paths: BTreeMap<String, String>,
    /// Queries of calls, by operation.
    pub(super) query: BTreeMap<String, String>,
    /// Field of a row with its id.
    pub(super) row: Option<String>,
    pub(super) key: Vec<String>,
    pub(super) within: Option<String>,
    pub(super) params: BTreeMap<String, String>,
    /// Pointer to the id in the answer of a create.
    pub(super) new: Option<String>,
    pub(super) list_only: Map<String, Value>,
    pub(super) fixed: Map<String, Value>,
    /// Fields of kind and feature: all, or those that fit a name with `*` at its end.
    pub(super) only: Vec<String>,
    pub(super) omit: Vec<String>,
    /// Fields of the feature among those of the kind.
    pub(super) offers: Vec<String>,
    pub(super) withholds: Vec<String>,
    /// Fields that are shown although nothing writes them.
    pub(super) lay: Vec<String>,
    pub(super) part: Option<Part>,
    pub(super) of: BTreeMap<String, Vec<String>>,
    pub(super) rewritten: Vec<String>,
    /// Lists of which the controller rewrites only the elements that a write changes, with what tells those apart.
    pub(super) rewritten_elements: BTreeMap<String, String>,
    pub(super) create_only: Vec<String>,
    /// Lists whose elements are compared with all that they have: a name that an element gains is a change of it.
    pub(super) exact: Vec<String>,
    /// Compared without case.
    pub(super) fold: Vec<String>,
    /// Truth values that the facts call texts.
    pub(super) flags: Vec<String>,
    /// Secrets under names that are none elsewhere.
    pub(super) secrets: Vec<String>,
    pub(super) create_with: Map<String, Value>,
    pub(super) update_with: Map<String, Value>,
    pub(super) delete_with: Map<String, Value>,
    pub(super) danger: Map<String, Value>,
    pub(super) danger_if: Vec<Value>,
    pub(super) lockout: bool,
    #[serde(rename = "final")]
    pub(super) is_final: bool,
}

/// An element of a list that an update writes as a whole.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// Field of the object that has the list.
    pub(super) list: String,
    /// Field of an element that tells it from the others.
    pub(super) by: String,
}

/// A route that is only read.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Read {
    pub(super) title: String,
    pub(super) area: String,
    pub(super) per: Option<String>,
    pub(super) route: String,
    pub(super) within: Option<String>,
    pub(super) row: Option<String>,
    pub(super) key: Vec<String>,
    /// Pointer to the rows, where they do not stand in the usual place.
    pub(super) rows: Option<String>,
    /// It is one answer, and no list.
    pub(super) answer: bool,
    /// Fields of a row that are not shown.
    pub(super) hidden: Vec<String>,
    /// The route is read by an item already.
    pub(super) again: bool,
}

/// A call that does something.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    pub(super) area: String,
    pub(super) per: Option<String>,
    pub(super) route: String,
    /// What it does, as the review says it.
    pub(super) does: String,
    /// The kind of the object that it is about.
    pub(super) of: Option<String>,
    /// The name that the path has for the id of such an object.
    pub(super) param: Option<String>,
    pub(super) with: Map<String, Value>,
    pub(super) omit: Vec<String>,
    pub(super) secrets: Vec<String>,
    pub(super) query: Option<String>,
    pub(super) danger: Option<String>,
    pub(super) danger_if: Vec<Value>,
    pub(super) lockout: bool,
    pub(super) effect: Option<Value>,
    pub(super) inverse: Option<String>,
    pub(super) slow: bool,
}

/// What is fetched as a file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    pub(super) title: String,
    pub(super) area: String,
    pub(super) per: String,
    pub(super) path: String,
    pub(super) name: String,
    pub(super) content_type: String,
}
