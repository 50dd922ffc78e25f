//! Judgements about what is done instead of written, and about what is only read.

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
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    /// Module, controller, command and path values: names in braces, or constants.
    pub(super) route: String,
    /// What it does, as the review says it; the noun and name of the object follow.
    #[serde(default, rename = "do")]
    pub(super) does: String,
    /// The object that it is about.
    #[serde(default)]
    pub(super) kind: Option<String>,
    /// The kind whose parent's parameters the path names.
    #[serde(default)]
    pub(super) parent: Option<String>,
    #[serde(default)]
    pub(super) deletes: bool,
    #[serde(default)]
    pub(super) danger: Option<String>,
    #[serde(default)]
    pub(super) lockout: bool,
    #[serde(default)]
    pub(super) root: Option<String>,
    /// Of the body.
    #[serde(default)]
    pub(super) fields: BTreeMap<String, Input>,
    /// Values of the path that take more than any text.
    #[serde(default)]
    pub(super) params: BTreeMap<String, Input>,
    /// The facts have the fields of its body.
    #[serde(default)]
    pub(super) form: bool,
    /// How many of the fields are needed.
    #[serde(default)]
    pub(super) least: Option<u32>,
    /// What the body also holds.
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    #[serde(default)]
    pub(super) effect: Option<Value>,
    /// Route that takes the effect back.
    #[serde(default)]
    pub(super) back: Option<String>,
    /// What the body of that route holds.
    #[serde(default)]
    pub(super) back_with: Map<String, Value>,
    /// Values that raise the danger.
    #[serde(default)]
    pub(super) danger_if: Vec<Value>,
    /// Feature that does.
    #[serde(default)]
    pub(super) inverse: Option<String>,
    #[serde(default)]
    pub(super) apply: Option<String>,
}

/// One value that an action takes.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Input {
    /// `text`, `flag`, `number`, `list` (joined to one text) or `array` (a list in the body).
    #[serde(default = "text", rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) at: Option<String>,
    #[serde(default = "yes")]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) min: Option<i64>,
    #[serde(default)]
    pub(super) max: Option<i64>,
    #[serde(default)]
    pub(super) pattern: Option<String>,
    /// A file.
    #[serde(default)]
    pub(super) long: bool,
    /// JSON that the body takes as it is.
    #[serde(default)]
    pub(super) schema: Option<Value>,
}

fn text() -> String {
    "text".to_owned()
}

fn yes() -> bool {
    true
}

/// A route that is only read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Read {
    pub(super) title: String,
    /// Module, controller, command and path values: names in braces, or constants.
    pub(super) route: String,
    #[serde(default)]
    pub(super) key: Vec<String>,
    /// It is asked by POST, as are all grids.
    #[serde(default)]
    pub(super) post: bool,
    /// A grid, although the facts do not say so.
    #[serde(default)]
    pub(super) list: bool,
    /// One answer, although the facts call it a list.
    #[serde(default)]
    pub(super) answer: bool,
    /// Pointer to rows that are no grid.
    #[serde(default)]
    pub(super) rows: Option<String>,
    /// Field of a row that holds its id: actions are about its objects.
    #[serde(default)]
    pub(super) id: Option<String>,
    /// What actions change.
    #[serde(default)]
    pub(super) fields: Map<String, Value>,
    /// What a row also shows, where actions are about its objects.
    #[serde(default)]
    pub(super) columns: Vec<String>,
    /// Pointer to the settings that actions change.
    #[serde(default)]
    pub(super) pointer: Option<String>,
    #[serde(default)]
    pub(super) volatile: bool,
    #[serde(default)]
    pub(super) within: Option<Value>,
    /// Parameters of the query, by the names of filters.
    #[serde(default)]
    pub(super) filters: Map<String, Value>,
}
