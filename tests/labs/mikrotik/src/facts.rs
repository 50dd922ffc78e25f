//! What the vendor's contract says about menus, commands and fields, loaded from `facts.json`.
//!
//! The file is made by `facts.py`. It decides everything that is the same for all menus; what a menu does by itself is
//! code.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::release::Release;

/// What a menu holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Rows with ids.
    List,
    /// One object without an id.
    Object,
    /// Commands only.
    #[default]
    None,
}

/// The check that a value gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Type {
    Text,
    Bool,
    Int,
    Duration,
    Enum,
    /// A set of words, shown in the router's order.
    Words,
    /// As [`Type::Words`]; each word may be negated.
    Marks,
    /// Present without a value, or absent.
    Flag,
    List,
    Link,
    Mac,
    Ip,
    Ip4,
    Ip6,
    Prefix4,
    Prefix6,
    Range4,
}

/// One field of a row or an object.
#[expect(clippy::struct_excessive_bools, reason = "flags of the contract, each of its own")]
#[derive(Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: Type,
    #[serde(default)]
    pub(crate) required: bool,
    pub(crate) default: Option<String>,
    /// The closed set of an enumeration or a set of words.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Words that are valid beside numbers, durations and links.
    #[serde(default)]
    pub(crate) words: Vec<String>,
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
    /// Bounds of a duration.
    pub(crate) range: Option<String>,
    /// The type of the items of a list.
    pub(crate) item: Option<String>,
    /// The menu whose rows the field names.
    pub(crate) link: Option<String>,
    /// A number that is shown with the prefix `0x`.
    #[serde(default)]
    pub(crate) hex: bool,
    #[serde(default)]
    pub(crate) negatable: bool,
    /// Only a create takes it, and no row shows it.
    #[serde(default)]
    pub(crate) create: bool,
    /// Can be cleared, and is not shown while it is not set.
    #[serde(default)]
    pub(crate) unset: bool,
    #[serde(default)]
    pub(crate) secret: bool,
    since: Option<u32>,
    until: Option<u32>,
}

/// A command beside those that all lists have.
#[derive(Deserialize)]
pub(crate) struct Command {
    /// Names of its own parameters.
    takes: String,
    /// Its output goes on until it is bounded.
    #[serde(default)]
    pub(crate) runs: bool,
    since: Option<u32>,
    until: Option<u32>,
}

/// One menu.
#[derive(Deserialize)]
pub(crate) struct Menu {
    kind: Kind,
    /// The last release in which it was one object.
    object_until: Option<u32>,
    #[serde(default)]
    pub(crate) package: Option<String>,
    #[serde(default)]
    pub(crate) hardware: bool,
    since: Option<u32>,
    until: Option<u32>,
    /// Names that are read and not written.
    #[serde(default)]
    shown: String,
    /// Commands that many menus have.
    #[serde(default)]
    can: String,
    #[serde(default)]
    pub(crate) unique: Vec<String>,
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
    #[serde(default)]
    commands: BTreeMap<String, Command>,
}

/// Parameters that every command with a running output takes.
const RUNNING: [&str; 10] = [
    "append",
    "as-value",
    "do",
    "duration",
    "file",
    "freeze-frame-interval",
    "interval",
    "once",
    "proplist",
    "without-paging",
];

fn exists(since: Option<u32>, until: Option<u32>, release: Release) -> bool {
    let minor = release.minor();
    since.is_none_or(|since| since <= minor) && until.is_none_or(|until| minor <= until)
}

impl Field {
    pub(crate) fn exists_in(&self, release: Release) -> bool {
        exists(self.since, self.until, release)
    }
}

impl Command {
    /// Whether it acts on rows that have to be named.
    pub(crate) fn needs_rows(&self) -> bool {
        self.takes.split(' ').any(|known| known == "numbers" || known == "number")
    }

    pub(crate) fn takes(&self, name: &str) -> bool {
        self.takes.split(' ').any(|known| known == name) || RUNNING.contains(&name) || name == "numbers"
    }
}

impl Menu {
    pub(crate) fn exists_in(&self, release: Release) -> bool {
        exists(self.since, self.until, release)
    }

    pub(crate) fn kind_in(&self, release: Release) -> Kind {
        match self.object_until {
            Some(until) if release.minor() <= until => Kind::Object,
            _ => self.kind,
        }
    }

    /// Whether rows show this name without anyone writing it.
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.shown.split(' ').any(|shown| shown == name)
    }

    /// Whether no document says what its rows show.
    pub(crate) fn is_untold(&self) -> bool {
        self.shown.is_empty() && self.fields.is_empty()
    }

    /// Whether it has one of the commands that many menus have.
    pub(crate) fn can(&self, command: &str) -> bool {
        self.can.split(' ').any(|can| can == command)
    }

    pub(crate) fn fields(&self, release: Release) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.exists_in(release))
    }

    pub(crate) fn field(&self, name: &str, release: Release) -> Option<&Field> {
        self.fields(release).find(|field| field.name == name)
    }

    /// Whether rows have names by which they are found.
    pub(crate) fn has_names(&self) -> bool {
        self.fields.iter().any(|field| field.name == "name") || self.shows("name")
    }

    pub(crate) fn command(&self, name: &str, release: Release) -> Option<&Command> {
        self.commands.get(name).filter(|command| exists(command.since, command.until, release))
    }

    #[cfg(test)]
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&String, &Command)> {
        self.commands.iter()
    }
}

/// All menus by their paths.
pub(crate) struct Facts {
    menus: &'static BTreeMap<String, Menu>,
}

impl Facts {
    /// The facts, parsed once for the process.
    pub(crate) fn get() -> &'static Self {
        static MENUS: OnceLock<BTreeMap<String, Menu>> = OnceLock::new();
        static FACTS: OnceLock<Facts> = OnceLock::new();
        FACTS.get_or_init(|| {
            let menus = MENUS.get_or_init(|| {
                serde_json::from_str(include_str!("../facts.json"))
                    .expect("facts.json is made by facts.py and read by the tests")
            });
            Self { menus }
        })
    }

    /// A menu and its path.
    pub(crate) fn menu(&self, path: &str) -> Option<(&'static str, &'static Menu)> {
        self.menus.get_key_value(path).map(|(path, menu)| (path.as_str(), menu))
    }

    /// Every menu by its path.
    pub(crate) fn menus(&self) -> impl Iterator<Item = (&'static str, &'static Menu)> {
        self.menus.iter().map(|(path, menu)| (path.as_str(), menu))
    }

    /// The menus below a path.
    pub(crate) fn below(&self, path: &str) -> impl Iterator<Item = &'static str> {
        let start = format!("{path}/");
        let from = self.menus.range(start.clone()..);
        from.map(|(path, _)| path.as_str()).take_while(move |path| path.starts_with(&start))
    }
}
