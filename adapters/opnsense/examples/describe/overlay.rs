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
    /// Pages of the list are only taken from a body.
    #[serde(default)]
    pub(super) live: bool,
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
    /// Chosen values are answered in their order.
    #[serde(default)]
    pub(super) sorted: bool,
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
    pub(super) items: Map<String, Value>,
    pub(super) settings: Map<String, Value>,
    pub(super) services: Map<String, Value>,
    /// Calls that make active what was saved, each as an action of its own.
    pub(super) applies: Map<String, Value>,
    pub(super) actions: Map<String, Value>,
    pub(super) reads: Map<String, Value>,
    /// Controllers whose whole model is read at once.
    pub(super) models: Vec<String>,
    /// Routes that lead to what another route leads to, which a feature or kind is made of.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
}

/// Routes of which nothing is made, for one reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    #[serde(rename = "class")]
    pub(super) name: String,
    /// In a sentence; never empty.
    pub(super) why: String,
    /// Whether the routes read or write.
    #[serde(default)]
    pub(super) access: Reach,
    pub(super) routes: Vec<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reach {
    Read,
    #[default]
    Write,
}

/// A list of items, or settings where it has no `list`. Commands may name another controller before a `/`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) controller: String,
    #[serde(default)]
    pub(super) list: Option<String>,
    /// Items without it are read from the rows of their list.
    #[serde(default)]
    pub(super) get: Option<String>,
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
    /// How the firewall tells the id that it chooses, where it takes no other.
    #[serde(default)]
    pub(super) new_id: Option<Value>,
    /// Field of a row that holds the id.
    #[serde(default = "uuid")]
    pub(super) id: String,
    /// Ids have no form of their own.
    #[serde(default)]
    pub(super) any_id: bool,
    /// The list is made of live data, although the facts do not say so.
    #[serde(default)]
    pub(super) live: bool,
    /// Key of bodies where the facts name none; empty for none.
    #[serde(default)]
    pub(super) root: Option<String>,
    /// Pointer to the item in an answer where it is not that key.
    #[serde(default)]
    pub(super) pointer: Option<String>,
    /// Parameters of paths in a row of the list.
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// What the body of a create also holds.
    #[serde(default)]
    pub(super) create_with: Map<String, Value>,
}

fn uuid() -> String {
    "uuid".to_owned()
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
    /// What a create makes the item of; never answered as it was given.
    #[serde(default)]
    pub(super) made: Vec<String>,
    /// What a create must say, and can say alone: schemas by name.
    #[serde(default)]
    pub(super) new_is: BTreeMap<String, Value>,
    /// The choices that are offered.
    #[serde(default)]
    pub(super) options: BTreeMap<String, Vec<String>>,
}

/// Items that a delete would take along.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Takes {
    pub(super) item: String,
    pub(super) field: String,
}
