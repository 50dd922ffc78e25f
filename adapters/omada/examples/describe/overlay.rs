//! Judgements about the Open API, as `overlay.json` has them. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::{Class, Parent};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `overlay.json`, which people write.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Overlay {
    /// Titles, by area.
    pub(super) areas: Map<String, Value>,
    /// Names of fields that hold secrets wherever they stand.
    pub(super) secret_names: Vec<String>,
    /// POST routes that only read.
    pub(super) post_reads: Vec<String>,
    /// Objects that others belong to, by the names that the sections below use.
    pub(super) parents: BTreeMap<String, Parent>,
    /// Kinds that stand for a part of a list.
    pub(super) kinds: Map<String, Value>,
    pub(super) items: Map<String, Value>,
    pub(super) reads: Map<String, Value>,
    pub(super) actions: Map<String, Value>,
    /// Routes that another one makes needless.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
    /// Parts of the controller's interfaces that the facts do not have, and why nothing is made of them.
    #[serde(rename = "not-considered")]
    pub(super) not_considered: BTreeMap<String, String>,
}

/// A list of objects that are written, or settings where it has no `list`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) list: Option<String>,
    pub(super) get: Option<String>,
    pub(super) create: Option<String>,
    pub(super) update: Option<String>,
    pub(super) delete: Option<String>,
    /// Other writes of single fields, by the end of their feature's name.
    pub(super) setters: BTreeMap<String, Setter>,
    /// Pointer to the rows of the list, where the facts do not say it.
    pub(super) rows: Option<String>,
    /// Pointer to the object in the answer of `get`.
    pub(super) object: Option<String>,
    /// What the list is asked for beside the pages.
    pub(super) list_query: Option<String>,
    pub(super) list_only: Map<String, Value>,
    /// Field of a row with its id.
    pub(super) id: Option<String>,
    /// The name that paths have for the id.
    pub(super) param: Option<String>,
    pub(super) params: BTreeMap<String, String>,
    pub(super) key: Vec<String>,
    pub(super) within: Option<String>,
    /// How the id of a new object comes about; it is found by its key where absent.
    pub(super) new: Option<Value>,
    /// Whether an update keeps what it leaves out; unknown where absent.
    pub(super) keeps: Option<bool>,
    /// An update has to name fields that it does not change.
    pub(super) whole: bool,
    pub(super) lockout: bool,
    pub(super) danger: Map<String, Value>,
    /// Nothing writes a deleted object back as it was.
    #[serde(rename = "final")]
    pub(super) is_final: bool,
    /// The field of the described body that is the body in truth.
    pub(super) root: Option<String>,
    pub(super) create_with: Map<String, Value>,
    pub(super) update_with: Map<String, Value>,
    pub(super) delete_with: Map<String, Value>,
    /// Fields that no payload has.
    pub(super) omit: Vec<String>,
    /// Fields of every update.
    pub(super) always: Vec<String>,
    /// Fields that no answer shows, whatever the facts say.
    pub(super) unread: Vec<String>,
    /// Fields that hold secrets here, under names that are no secrets elsewhere.
    pub(super) secrets: Vec<String>,
    /// Fields of a row that are shown although nothing writes them.
    pub(super) lay: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setter {
    pub(super) route: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    #[serde(default)]
    pub(super) omit: Vec<String>,
}

/// A route that is only read.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Read {
    pub(super) title: String,
    pub(super) route: String,
    pub(super) within: Option<String>,
    pub(super) id: Option<String>,
    pub(super) key: Vec<String>,
    /// Only rows with these values.
    pub(super) only: Map<String, Value>,
    /// Values of a part of the path; each makes a kind of its own.
    pub(super) values: BTreeMap<String, Vec<String>>,
    pub(super) body: Option<Value>,
}

/// A route that does something.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    pub(super) route: String,
    pub(super) summary: String,
    /// The parent that it is about, or with a leading `@` the kind.
    pub(super) of: Option<String>,
    /// The name that the path has for the id of such an object.
    pub(super) param: Option<String>,
    pub(super) danger: Option<String>,
    pub(super) lockout: bool,
    pub(super) effect: Option<Value>,
    pub(super) inverse: Option<String>,
    pub(super) with: Map<String, Value>,
    pub(super) omit: Vec<String>,
}
