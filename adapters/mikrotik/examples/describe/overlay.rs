//! Facts and judgements about `RouterOS`, as their two files have them. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use heddle_adapter_kit::{Class, Surface, kind};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `facts.json`, which `facts.py` makes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    /// By path; the empty one has the commands of the top.
    pub(super) menus: BTreeMap<String, Menu>,
}

/// A menu of the console: a list of rows, or settings.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct Menu {
    pub(super) area: String,
    /// Rows are listed.
    pub(super) list: bool,
    /// The settings are read.
    pub(super) read: bool,
    /// One row is read.
    pub(super) get: bool,
    pub(super) create: bool,
    pub(super) update: bool,
    pub(super) delete: bool,
    /// The settings are written.
    pub(super) set: bool,
    pub(super) fields: Vec<FieldFacts>,
    /// By name, with what they take.
    pub(super) commands: BTreeMap<String, Vec<FieldFacts>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct FieldFacts {
    pub(super) name: String,
    /// `text`, `flag`, `number`, `duration`, `mac`, `mark`, `list`, or `set`: a list whose order is the device's.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) options: Vec<String>,
    /// Words that a number or a duration may be.
    pub(super) words: Vec<String>,
    /// A value may be negated.
    pub(super) negated: bool,
    /// It can be taken away.
    pub(super) unset: bool,
    pub(super) create_only: bool,
    /// It is written and never answered.
    pub(super) write_only: bool,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) default: Option<Value>,
}

/// `overlay.json`, which people write.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Overlay {
    /// Titles, by area.
    pub(super) areas: Map<String, Value>,
    /// What commands take for the console alone.
    pub(super) console: Vec<String>,
    /// Commands of lists that another call stands for, with the reason, by what they do.
    pub(super) stands: BTreeMap<String, String>,
    pub(super) items: Map<String, Value>,
    pub(super) settings: Map<String, Value>,
    pub(super) reads: Map<String, Value>,
    pub(super) actions: Map<String, Value>,
    /// Routes that lead to what another route leads to.
    pub(super) same: Vec<Class>,
    pub(super) left_out: Vec<Class>,
}

/// A list of rows, or settings where the menu is none.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Item {
    pub(super) title: String,
    pub(super) menu: String,
    /// What people know a row by; `.id` where it has nothing else.
    pub(super) key: Vec<String>,
    /// Operations that the menu has, and that lead to nothing.
    pub(super) without: Vec<String>,
    pub(super) danger: Map<String, Value>,
    /// A write can cut the way to the router.
    pub(super) lockout: bool,
    pub(super) secrets: Vec<String>,
    /// Fields that the router may write in its own way.
    pub(super) rewritten: Vec<String>,
    /// Written fields that the facts lack.
    pub(super) extra: Vec<String>,
    /// Two numbers with a slash between.
    pub(super) pairs: Vec<String>,
    /// Two durations with a slash between.
    pub(super) spans: Vec<String>,
    /// Choices that the facts have as all there are, and beside which other values are taken.
    pub(super) open: Vec<String>,
    /// Fields that are left alone: shown under another name, or the router's own.
    pub(super) omit: Vec<String>,
    /// Written and never answered, though the facts do not say so.
    pub(super) unread: Vec<String>,
    /// What the router fills in where a create leaves it out, and the facts do not say so.
    pub(super) defaults: Map<String, Value>,
    /// Forms of texts.
    pub(super) patterns: BTreeMap<String, String>,
    /// Needed by a create, though the facts do not say so.
    pub(super) required: Vec<String>,
    /// Not needed by a create, though the facts say so.
    pub(super) optional: Vec<String>,
}

/// What is only read: a list, settings, or what a command tells.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Read {
    pub(super) title: String,
    pub(super) menu: Option<String>,
    pub(super) command: Option<String>,
    pub(super) key: Vec<String>,
    /// Only rows that have these values.
    pub(super) only: Map<String, Value>,
    /// What the command needs.
    pub(super) needs: Vec<String>,
    /// `items` for a list of rows and `answer` for settings, where the facts say otherwise.
    pub(super) shape: Option<String>,
    /// What the command is sent, so that it ends.
    pub(super) with: Map<String, Value>,
}

/// A command that does something.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Action {
    pub(super) title: String,
    /// Menu and command.
    pub(super) command: String,
    /// What it does, as the review says it; the noun and name of the row follow.
    #[serde(rename = "do")]
    pub(super) does: String,
    /// The row that it is about, and the parameter that names it.
    pub(super) kind: Option<String>,
    pub(super) target: Option<String>,
    pub(super) danger: Option<String>,
    pub(super) danger_if: Vec<Value>,
    pub(super) lockout: bool,
    pub(super) secrets: Vec<String>,
    pub(super) needs: Vec<String>,
    pub(super) with: Map<String, Value>,
    pub(super) effect: Option<Value>,
}

/// The fields of menus and commands, by their names in the facts.
pub(super) fn surface(facts: &Facts) -> Surface {
    let types = |fields: &[FieldFacts]| {
        let one =
            |field: &FieldFacts| (field.name.clone(), kind(&field.kind, field.required, &field.options));
        fields.iter().map(one).collect()
    };
    let of_menu = |(path, menu): (&String, &Menu)| {
        let own = (path.clone(), types(&menu.fields));
        let commands = menu.commands.iter();
        let of_command = commands.map(|(name, takes)| (super::grammar::joined(path, name), types(takes)));
        std::iter::once(own).chain(of_command.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    facts.menus.iter().flat_map(of_menu).collect()
}
