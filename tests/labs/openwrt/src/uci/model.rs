//! One configuration file: sections in file order, each with options in file order.
//!
//! Ids of anonymous sections are positional, as on the device: they are given when a file is read, and
//! change when it is written and read again. Staging is not known here.

use serde_json::{Map, Value, json};

/// The value of an option. A file never holds anything else.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum UciValue {
    /// `option name 'value'`.
    Text(String),
    /// `list name 'value'`, one line per element.
    List(Vec<String>),
}

impl UciValue {
    /// The elements: one for a text.
    pub(crate) fn elements(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => vec![text],
            Self::List(list) => list.iter().map(String::as_str).collect(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::List(list) => json!(list),
        }
    }
}

/// One section. `name` is the chosen name, or the generated id while `anonymous`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) anonymous: bool,
    pub(crate) options: Vec<(String, UciValue)>,
}

impl Section {
    pub(crate) fn option(&self, name: &str) -> Option<&UciValue> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The first element of an option, which is the whole of a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.option(name)?.elements().first().copied()
    }

    /// The elements of an option. A text that holds spaces stands for a list, as the daemons read it.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        match self.option(name) {
            None => Vec::new(),
            Some(UciValue::Text(text)) => text.split_whitespace().collect(),
            Some(UciValue::List(list)) => list.iter().map(String::as_str).collect(),
        }
    }

    /// The spellings that the daemons take for true; `default` when absent or anything else.
    pub(crate) fn is_on(&self, name: &str, default: bool) -> bool {
        match self.text(name) {
            Some("1" | "on" | "true" | "yes" | "enabled") => true,
            Some("0" | "off" | "false" | "no" | "disabled") => false,
            _ => default,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: UciValue) {
        match self.options.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.options.push((name.to_owned(), value)),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.options.retain(|(key, _)| key != name);
    }

    /// As `uci.get` prints it; `index` only where a whole configuration is listed.
    pub(crate) fn to_json(&self, index: Option<usize>) -> Value {
        let mut out = Map::new();
        out.insert(".anonymous".to_owned(), json!(self.anonymous));
        out.insert(".type".to_owned(), json!(self.kind));
        out.insert(".name".to_owned(), json!(self.name));
        if let Some(index) = index {
            out.insert(".index".to_owned(), json!(index));
        }
        for (name, value) in &self.options {
            out.insert(name.clone(), value.to_json());
        }
        Value::Object(out)
    }
}

/// One configuration. `allocated` counts the sections ever given a place since the file was read, so
/// that an id staged after a staged delete does not collide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) sections: Vec<Section>,
    allocated: usize,
}

impl Config {
    /// Reads the file format, as far as the files of this crate use it: one statement per line, single quotes.
    pub(crate) fn parse(text: &str) -> Self {
        let mut config = Self::default();
        for line in text.lines() {
            let mut words = line.trim().splitn(3, ' ');
            let (keyword, first) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let rest = words.next().map(unquote);
            match (keyword, config.sections.last_mut()) {
                ("config", _) => config.sections.push(Section {
                    kind: unquote(first),
                    anonymous: rest.is_none(),
                    name: rest.unwrap_or_default(),
                    options: Vec::new(),
                }),
                ("option", Some(section)) => section.set(first, UciValue::Text(rest.unwrap_or_default())),
                ("list", Some(section)) => {
                    let mut list: Vec<String> = section.list(first).into_iter().map(str::to_owned).collect();
                    list.push(rest.unwrap_or_default());
                    section.set(first, UciValue::List(list));
                }
                _ => {}
            }
        }
        config.reread();
        config
    }

    /// Gives every anonymous section the id that reading the file from flash gives it.
    pub(crate) fn reread(&mut self) {
        for (index, section) in self.sections.iter_mut().enumerate() {
            if section.anonymous {
                section.name = anonymous_id(index + 1, &section.kind);
            }
        }
        self.allocated = self.sections.len();
    }

    /// The id that the next anonymous section gets.
    pub(crate) fn next_id(&self, kind: &str) -> String {
        anonymous_id(self.allocated + 1, kind)
    }

    pub(crate) fn push(&mut self, section: Section) {
        self.allocated += 1;
        self.sections.push(section);
    }

    /// The position of a section named directly, or as `@type[n]` (negative counts from the end).
    pub(crate) fn position(&self, address: &str) -> Option<usize> {
        let Some(rest) = address.strip_prefix('@') else {
            return self.sections.iter().position(|section| section.name == address);
        };
        let (kind, index) = rest.strip_suffix(']')?.split_once('[')?;
        let places: Vec<usize> =
            (0..self.sections.len()).filter(|at| self.sections[*at].kind == kind).collect();
        let index: isize = index.parse().ok()?;
        let index =
            if index < 0 { places.len().checked_sub(index.unsigned_abs())? } else { index.unsigned_abs() };
        places.get(index).copied()
    }

    pub(crate) fn section(&self, address: &str) -> Option<&Section> {
        self.position(address).map(|at| &self.sections[at])
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Section> {
        self.sections.iter().filter(move |section| section.kind == kind)
    }

    /// As `uci.get` of a whole configuration prints it, for the sections that `wanted` accepts.
    pub(crate) fn to_json(&self, wanted: impl Fn(&Section) -> bool) -> Value {
        let sections = self.sections.iter().enumerate().filter(|(_, section)| wanted(section));
        Value::Object(
            sections.map(|(index, section)| (section.name.clone(), section.to_json(Some(index)))).collect(),
        )
    }

    /// The file as it lies on flash: anonymous sections have no name there.
    pub(crate) fn to_text(&self) -> String {
        let mut out = String::new();
        for section in &self.sections {
            let name = if section.anonymous { String::new() } else { format!(" '{}'", section.name) };
            out.push_str(&format!("\nconfig {}{name}\n", section.kind));
            for (option, value) in &section.options {
                let keyword = if matches!(value, UciValue::List(_)) { "list" } else { "option" };
                for element in value.elements() {
                    out.push_str(&format!("\t{keyword} {option} '{}'\n", element.replace('\'', "'\\''")));
                }
            }
        }
        out
    }
}

fn unquote(word: &str) -> String {
    word.trim().trim_matches('\'').to_owned()
}

/// `cfg`, the position from 1 in two hex digits, the type's hash in four.
fn anonymous_id(position: usize, kind: &str) -> String {
    format!("cfg{position:02x}{:04x}", type_hash(kind))
}

/// The DJB hash as libuci computes it, from its usual start 5381, kept to 16 bits.
fn type_hash(kind: &str) -> u32 {
    kind.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte))) % 65536
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_hash_is_the_one_of_the_device() {
        for (kind, hash) in [("rule", 0x92bd), ("zone", 0xdc81), ("defaults", 0xe63d), ("forwarding", 0xad58)]
        {
            assert_eq!(type_hash(kind), hash, "{kind}");
        }
    }

    #[test]
    fn file_text_survives_parse_and_print() {
        let text = include_str!("../../config/firewall");
        assert_eq!(Config::parse(text).to_text().trim(), text.trim());
    }

    #[test]
    fn sections_are_found_by_type_and_position() {
        let config = Config::parse(include_str!("../../config/firewall"));
        assert_eq!(config.section("@rule[0]").unwrap().name, "cfg0592bd");
        assert_eq!(config.section("@rule[-1]").unwrap().text("name"), Some("Allow-ISAKMP"));
        assert!(config.section("@rule[9]").is_none());
        assert!(config.section("@rule[-10]").is_none());
    }
}
