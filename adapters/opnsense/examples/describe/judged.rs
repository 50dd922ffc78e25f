//! Judgements about what is done instead of written, and about what is only read. What a record leaves out is
//! empty or false.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A service with routes to start, stop and restart it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    pub(super) title: String,
    pub(super) controller: String,
    /// Of a stop and of a restart.
    #[serde(default)]
    pub(super) danger: Option<String>,
    #[serde(default)]
    pub(super) lockout: bool,
}

/// A call that makes active what was saved.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Apply {
    pub(super) title: String,
    pub(super) route: String,
    #[serde(default)]
    pub(super) danger: Option<String>,
    #[serde(default)]
    pub(super) lockout: bool,
}

/// A call that does something, or deletes an object of a list that is otherwise only read.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    /// Module, controller, command and path values: names in braces, or constants.
    pub(super) route: String,
    /// What it does, as the review says it; the noun and name of the object follow.
    #[serde(rename = "do")]
    pub(super) does: String,
    /// The object that it is about.
    pub(super) kind: Option<String>,
    /// The kind whose parent's parameters the path names.
    pub(super) parent: Option<String>,
    pub(super) deletes: bool,
    pub(super) danger: Option<String>,
    pub(super) lockout: bool,
    pub(super) root: Option<String>,
    /// Of the body.
    pub(super) fields: BTreeMap<String, Input>,
    /// Values of the path that take more than any text.
    pub(super) params: BTreeMap<String, Input>,
    /// The facts have the fields of its body.
    pub(super) form: bool,
    /// How many of the fields are needed.
    pub(super) least: Option<u32>,
    /// What the body also holds.
    pub(super) with: Map<String, Value>,
    pub(super) effect: Option<Value>,
    /// Route that takes the effect back.
    pub(super) back: Option<String>,
    /// What the body of that route holds.
    pub(super) back_with: Map<String, Value>,
    /// Values that raise the danger.
    pub(super) danger_if: Vec<Value>,
    /// Feature that does.
    pub(super) inverse: Option<String>,
    pub(super) apply: Option<String>,
}

/// One value that an action takes.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Input {
    /// `text`, `flag`, `number`, `list` (joined to one text) or `array` (a list in the body).
    #[serde(default = "text", rename = "type")]
    pub(super) kind: String,
    pub(super) at: Option<String>,
    #[serde(default = "yes")]
    pub(super) required: bool,
    pub(super) options: Vec<String>,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) pattern: Option<String>,
    /// A file.
    pub(super) long: bool,
    /// JSON that the body takes as it is.
    pub(super) schema: Option<Value>,
}

fn text() -> String {
    "text".to_owned()
}

fn yes() -> bool {
    true
}

/// A route that answers a file.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    pub(super) title: String,
    /// Module, controller, command and path values: constants, or names in braces. `{key}` says which of several files.
    pub(super) route: String,
    pub(super) name: String,
    pub(super) content_type: Option<String>,
    /// The other names in braces, which a person gives.
    pub(super) filters: Vec<String>,
}

/// A route that is only read.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Read {
    pub(super) title: String,
    /// Module, controller, command and path values: names in braces, or constants.
    pub(super) route: String,
    pub(super) key: Vec<String>,
    /// It is asked by POST, as are all grids.
    pub(super) post: bool,
    /// A grid, although the facts do not say so.
    pub(super) list: bool,
    /// One answer, although the facts call it a list.
    pub(super) answer: bool,
    /// Pointer to rows that are no grid.
    pub(super) rows: Option<String>,
    /// Field of a row that holds its id: actions are about its objects.
    pub(super) id: Option<String>,
    /// What actions change.
    pub(super) fields: Map<String, Value>,
    /// What a row also shows, where actions are about its objects.
    pub(super) columns: Vec<String>,
    /// Pointer to the settings that actions change.
    pub(super) pointer: Option<String>,
    pub(super) volatile: bool,
    pub(super) within: Option<Value>,
    /// Parameters of the query, by the names of filters.
    pub(super) filters: Map<String, Value>,
}
