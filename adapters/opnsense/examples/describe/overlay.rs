//! Facts and judgements about `OPNsense`, as their two files have them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// `facts.json`, which `facts.py` makes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    /// By list of items, or by settings.
    pub(super) fields: BTreeMap<String, Vec<FieldFacts>>,
    /// By module and controller.
    pub(super) controllers: BTreeMap<String, Controller>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Controller {
    pub(super) area: String,
    pub(super) commands: BTreeMap<String, Command>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    pub(super) op: String,
    #[serde(default)]
    pub(super) get: bool,
    /// Names of the path values.
    #[serde(default)]
    pub(super) params: Vec<String>,
    #[serde(default)]
    pub(super) needed: usize,
    #[serde(default)]
    pub(super) root: Option<String>,
    #[serde(default)]
    pub(super) fields: Option<String>,
    #[serde(default)]
    pub(super) apply: Option<String>,
    #[serde(default, rename = "plugin")]
    _plugin: Option<String>,
    #[serde(default, rename = "danger")]
    _danger: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct FieldFacts {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) default: Option<String>,
    #[serde(default)]
    pub(super) min: Option<String>,
    #[serde(default)]
    pub(super) max: Option<String>,
    #[serde(default)]
    pub(super) pattern: Option<String>,
    #[serde(default)]
    pub(super) multiple: bool,
    /// Shown, and not stored by itself.
    #[serde(default)]
    pub(super) volatile: bool,
    /// Read as a map of choices.
    #[serde(default)]
    pub(super) map: bool,
    #[serde(default)]
    pub(super) refers: Vec<String>,
}

/// `overlay.json`, which people write.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Overlay {
    /// Titles, by area.
    pub(super) areas: Map<String, Value>,
    /// What an apply reaches beyond the change, by the beginning of its path.
    pub(super) reach: Map<String, Value>,
    pub(super) items: serde_json::Map<String, Value>,
    pub(super) settings: serde_json::Map<String, Value>,
    pub(super) reads: serde_json::Map<String, Value>,
    pub(super) left_out: Vec<LeftOut>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeftOut {
    pub(super) routes: Vec<String>,
    /// In a sentence; never empty.
    pub(super) why: String,
}

/// A list of items, or settings where it has no `list`. Commands may name another controller before a `/`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) controller: String,
    #[serde(default)]
    pub(super) list: Option<String>,
    pub(super) get: String,
    #[serde(default)]
    pub(super) create: Option<String>,
    pub(super) update: String,
    #[serde(default)]
    pub(super) delete: Option<String>,
    #[serde(default)]
    pub(super) toggle: Option<String>,
    #[serde(default)]
    pub(super) key: Vec<String>,
    #[serde(default)]
    pub(super) danger: Map<String, Value>,
    /// A write can cut the way to the firewall.
    #[serde(default)]
    pub(super) lockout: bool,
    #[serde(default)]
    pub(super) fields: FieldJudgements,
    #[serde(default)]
    pub(super) takes: Vec<Takes>,
    /// Nothing writes a deleted item back as it was.
    #[serde(default, rename = "final")]
    pub(super) is_final: bool,
    /// What makes a write active, where the facts name another call.
    #[serde(default)]
    pub(super) apply: Option<String>,
    /// Why nothing writes it; empty where something does.
    #[serde(default)]
    pub(super) read_only: String,
    /// The firewall chooses the ids of new items, and takes no other.
    #[serde(default)]
    pub(super) answers_id: bool,
}

/// Names of fields that need more than their facts say.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FieldJudgements {
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    /// Not stored by themselves, and taken all the same.
    #[serde(default)]
    pub(super) inputs: Vec<String>,
    /// Blanked when an update leaves them out.
    #[serde(default)]
    pub(super) always: Vec<String>,
    /// Filled in by the firewall when a create leaves them out.
    #[serde(default)]
    pub(super) generated: Vec<String>,
    /// Set by the firewall alone.
    #[serde(default)]
    pub(super) omit: Vec<String>,
    /// Taken and shown instead of stored ones, which the facts do not have.
    #[serde(default)]
    pub(super) extra: Vec<FieldFacts>,
    /// Compared without case.
    #[serde(default)]
    pub(super) fold: Vec<String>,
}

/// Items that a delete would take along.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Takes {
    pub(super) item: String,
    pub(super) field: String,
}

/// A route that is only read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    pub(super) title: String,
    /// Module, controller and command.
    pub(super) route: String,
    #[serde(default)]
    pub(super) key: Vec<String>,
}
