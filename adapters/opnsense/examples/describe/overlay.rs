//! Facts and judgements about `OPNsense`, as their two files have them. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::{Class, Surface, kind};
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

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct FieldFacts {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) options: Vec<String>,
    pub(super) default: Option<String>,
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
    pub(super) pattern: Option<String>,
    pub(super) multiple: bool,
    /// Shown, and not stored by itself.
    pub(super) volatile: bool,
    /// Read as a map of choices.
    pub(super) map: bool,
    /// Chosen values are answered in their order.
    pub(super) sorted: bool,
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
    /// What the firewall answers as a file.
    pub(super) files: Map<String, Value>,
    /// Controllers whose whole model is read at once.
    pub(super) models: Vec<String>,
    /// Routes that lead to what another route leads to, which a feature or kind is made of.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
}

/// A list of items, or settings where it has no `list`. Commands may name another controller before a `/`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent judgements")]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) controller: String,
    pub(super) list: Option<String>,
    /// Items without it are read from the rows of their list.
    pub(super) get: Option<String>,
    pub(super) create: Option<String>,
    pub(super) update: String,
    pub(super) delete: Option<String>,
    pub(super) toggle: Option<String>,
    pub(super) key: Vec<String>,
    pub(super) danger: Map<String, Value>,
    /// A write can cut the way to the firewall.
    pub(super) lockout: bool,
    pub(super) fields: FieldJudgements,
    pub(super) takes: Vec<Takes>,
    /// Nothing writes a deleted item back as it was.
    #[serde(rename = "final")]
    pub(super) is_final: bool,
    /// What makes a write active, where the facts name another call.
    pub(super) apply: Option<String>,
    /// How the firewall tells the id that it chooses, where it takes no other.
    pub(super) new_id: Option<Value>,
    /// Field of a row that holds the id.
    #[serde(default = "uuid")]
    pub(super) id: String,
    /// Ids have no form of their own.
    pub(super) any_id: bool,
    /// The list is made of live data, although the facts do not say so.
    pub(super) live: bool,
    /// Key of bodies where the facts name none; empty for none.
    pub(super) root: Option<String>,
    /// Pointer to the item in an answer where it is not that key.
    pub(super) pointer: Option<String>,
    /// Parameters of paths in a row of the list.
    pub(super) params: Map<String, Value>,
    /// What the body of a create also holds.
    pub(super) create_with: Map<String, Value>,
}

fn uuid() -> String {
    "uuid".to_owned()
}

/// Names of fields that need more than their facts say.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FieldJudgements {
    pub(super) secrets: Vec<String>,
    /// Not stored by themselves, and taken all the same.
    pub(super) inputs: Vec<String>,
    /// Blanked when an update leaves them out.
    pub(super) always: Vec<String>,
    /// Filled in by the firewall when a create leaves them out.
    pub(super) generated: Vec<String>,
    /// Set by the firewall alone.
    pub(super) omit: Vec<String>,
    /// Taken and shown instead of stored ones, which the facts do not have.
    pub(super) extra: Vec<FieldFacts>,
    /// Compared without case.
    pub(super) fold: Vec<String>,
    /// What a create makes the item of; never answered as it was given.
    pub(super) made: Vec<String>,
    /// What a create must say, and can say alone: schemas by name.
    pub(super) new_is: BTreeMap<String, Value>,
    /// The choices that are offered.
    pub(super) options: BTreeMap<String, Vec<String>>,
}

/// Items that a delete would take along.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Takes {
    pub(super) item: String,
    pub(super) field: String,
}

/// The fields of items and settings, and the path values of commands, by their names in the facts.
pub(super) fn surface(facts: &Facts) -> Surface {
    let of_node = |(node, fields): (&String, &Vec<FieldFacts>)| {
        let types = fields
            .iter()
            .map(|field| (field.name.clone(), kind(&field.kind, field.required, &field.options)));
        (node.clone(), types.collect())
    };
    let of_controller = |(path, controller): (&String, &Controller)| {
        let commands = controller.commands.iter();
        let of_command = commands.map(|(name, command)| {
            let params = command.params.iter().enumerate();
            let types =
                params.map(|(at, param)| (param.clone(), kind("path value", at < command.needed, &[])));
            (format!("/api/{path}/{name}"), types.collect())
        });
        of_command.collect::<Vec<_>>()
    };
    facts.fields.iter().map(of_node).chain(facts.controllers.iter().flat_map(of_controller)).collect()
}
