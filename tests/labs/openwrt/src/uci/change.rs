//! One staged change, and what replaying it does to a file.
//!
//! A change names its section by id. Replayed onto a file that another client has meanwhile renumbered, it hits another
//! section, as it does on the device.

use serde_json::{Value, json};

use super::{Config, Section, UciValue};

/// A step of an edit, in the vocabulary of `uci.changes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `["add", id, type]`: a new anonymous section.
    Add { section: String, kind: String },
    /// `["set", name, type]`: a new named section.
    Create { section: String, kind: String },
    /// `["set", section, option, value]`.
    Set { section: String, option: String, value: String },
    /// `["list-add", section, option, value]`.
    ListAdd { section: String, option: String, value: String },
    /// `["remove", section]` or `["remove", section, option]`.
    Remove { section: String, option: Option<String> },
    /// `["rename", section, name]` or `["rename", section, option, name]`.
    Rename { section: String, option: Option<String>, name: String },
    /// `["order", section, position from 0]`.
    Order { section: String, position: usize },
}

impl Change {
    /// Sets one option to a text.
    pub fn set(section: &str, option: &str, value: &str) -> Self {
        Self::Set { section: section.to_owned(), option: option.to_owned(), value: value.to_owned() }
    }

    /// Removes one section.
    pub fn remove(section: &str) -> Self {
        Self::Remove { section: section.to_owned(), option: None }
    }

    /// Reads the array form that [`Change::to_json`] writes; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let items = value.as_array()?;
        if let [Value::String(verb), Value::String(section), Value::Number(position)] = items.as_slice() {
            let position = usize::try_from(position.as_u64()?).ok()?;
            return (verb == "order").then(|| Self::Order { section: section.clone(), position });
        }
        let words: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
        let own = str::to_owned;
        Some(match *words.as_slice() {
            ["add", section, kind] => Self::Add { section: own(section), kind: own(kind) },
            ["set", section, kind] => Self::Create { section: own(section), kind: own(kind) },
            ["set", section, option, value] => Self::set(section, option, value),
            ["list-add", section, option, value] => {
                Self::ListAdd { section: own(section), option: own(option), value: own(value) }
            }
            ["remove", section] => Self::remove(section),
            ["remove", section, option] => Self::Remove { section: own(section), option: Some(own(option)) },
            ["rename", section, name] => {
                Self::Rename { section: own(section), option: None, name: own(name) }
            }
            ["rename", section, option, name] => {
                Self::Rename { section: own(section), option: Some(own(option)), name: own(name) }
            }
            _ => return None,
        })
    }

    /// As `uci.changes` prints it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Add { section, kind } => json!(["add", section, kind]),
            Self::Create { section, kind } => json!(["set", section, kind]),
            Self::Set { section, option, value } => json!(["set", section, option, value]),
            Self::ListAdd { section, option, value } => json!(["list-add", section, option, value]),
            Self::Remove { section, option: None } => json!(["remove", section]),
            Self::Remove { section, option: Some(option) } => json!(["remove", section, option]),
            Self::Rename { section, option: None, name } => json!(["rename", section, name]),
            Self::Rename { section, option: Some(option), name } => json!(["rename", section, option, name]),
            Self::Order { section, position } => json!(["order", section, position]),
        }
    }

    /// Replays the change. A change whose section is gone does nothing.
    pub(crate) fn replay(&self, config: &mut Config) {
        match self {
            Self::Add { section, kind } => create(config, section, kind, true),
            Self::Create { section, kind } => create(config, section, kind, false),
            Self::Set { section, option, value } => {
                on(config, section, |found| found.set(option, UciValue::Text(value.clone())));
            }
            Self::ListAdd { section, option, value } => on(config, section, |found| {
                let mut list: Vec<String> = match found.option(option) {
                    None => Vec::new(),
                    Some(old) => old.elements().into_iter().map(str::to_owned).collect(),
                };
                list.push(value.clone());
                found.set(option, UciValue::List(list));
            }),
            Self::Remove { section, option: Some(option) } => {
                on(config, section, |found| found.remove(option));
            }
            Self::Remove { section, option: None } => {
                if let Some(at) = config.position(section) {
                    config.sections.remove(at);
                }
            }
            Self::Rename { section, option: None, name } => on(config, section, |found| {
                found.name.clone_from(name);
                found.anonymous = false;
            }),
            Self::Rename { section, option: Some(option), name } => on(config, section, |found| {
                if let Some((key, _)) = found.options.iter_mut().find(|(key, _)| key == option) {
                    key.clone_from(name);
                }
            }),
            Self::Order { section, position } => {
                if let Some(at) = config.position(section) {
                    let moved = config.sections.remove(at);
                    config.sections.insert((*position).min(config.sections.len()), moved);
                }
            }
        }
    }
}

fn on(config: &mut Config, section: &str, edit: impl FnOnce(&mut Section)) {
    if let Some(at) = config.position(section) {
        edit(&mut config.sections[at]);
    }
}

/// Adding a name that exists merges into it. So two sessions that each add an anonymous section get the same id,
/// and the second apply lands in the section of the first.
fn create(config: &mut Config, name: &str, kind: &str, anonymous: bool) {
    if let Some(at) = config.position(name) {
        kind.clone_into(&mut config.sections[at].kind);
        return;
    }
    let name = if name.is_empty() { config.next_id(kind) } else { name.to_owned() };
    config.push(Section { kind: kind.to_owned(), name, anonymous, options: Vec::new() });
}
