//! A model of one UCI file, that calls can be tried on before they are sent.
//!
//! Anonymous sections have ids made of their position when the file was read.
//! Ids stay while calls are staged and are handed out anew when the file is
//! written; `committed` does the same to the model.

use std::collections::{BTreeMap, BTreeSet};

use heddle_sdk::{Fault, fault};
use serde_json::{Map, Value, json};

use crate::rpc;

/// An option: UCI knows texts and lists of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Text(String),
    List(Vec<String>),
}

impl Entry {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Entry::Text(text) => json!(text),
            Entry::List(list) => json!(list),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Entry::Text(text.clone())),
            Value::Array(list) => {
                Some(Entry::List(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
            }
            _ => None,
        }
    }

    /// The words; a text with spaces may stand for a list.
    pub(crate) fn words(&self) -> Vec<&str> {
        match self {
            Entry::Text(text) => text.split_whitespace().collect(),
            Entry::List(list) => list.iter().map(String::as_str).collect(),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Entry::Text(text) => Some(text),
            Entry::List(list) => list.first().map(String::as_str).filter(|_| list.len() == 1),
        }
    }
}

pub(crate) type Options = BTreeMap<String, Entry>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// Names the section within this process, through all edits.
    pub(crate) uid: usize,
    /// What the device calls it now.
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) is_anonymous: bool,
    pub(crate) options: Options,
}

impl Section {
    pub(crate) fn text(&self, option: &str) -> Option<&str> {
        self.options.get(option).and_then(Entry::as_text)
    }

    pub(crate) fn options_json(&self) -> Value {
        self.options.iter().map(|(name, entry)| (name.clone(), entry.to_json())).collect::<Map<_, _>>().into()
    }
}

/// One configuration file.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) sections: Vec<Section>,
    /// Sections that the device has numbered since it read the file.
    numbered: usize,
    next_uid: usize,
}

/// The id of an anonymous section: its position in the file, from 1, and a hash of its type.
pub(crate) fn anonymous_id(position: usize, kind: &str) -> String {
    let hash = kind.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
    format!("cfg{position:02x}{:04x}", hash & 0xffff)
}

/// A change to a section or to their order.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Set {
        uid: usize,
        options: Options,
    },
    Unset {
        uid: usize,
        options: Vec<String>,
    },
    /// A new section at the end; anonymous without a name.
    Add {
        uid: usize,
        kind: String,
        name: Option<String>,
        options: Options,
    },
    Delete {
        uid: usize,
    },
    /// All sections of the file, in their new order.
    Order(Vec<usize>),
}

impl Config {
    /// Reads the answer of `uci.get {config}`.
    pub(crate) fn parse(name: &str, answer: &Value) -> Result<Self, Fault> {
        let bad =
            || fault::generic(format!("the device's answer for the configuration '{name}' cannot be read"));
        let values = match answer.get("values") {
            Some(Value::Object(values)) => values,
            None => {
                return Ok(Config { name: name.to_owned(), sections: Vec::new(), numbered: 0, next_uid: 0 });
            }
            Some(_) => return Err(bad()),
        };
        let mut found = Vec::with_capacity(values.len());
        for (id, body) in values {
            let body = body.as_object().ok_or_else(bad)?;
            let index = body.get(".index").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let options = body
                .iter()
                .filter(|(option, _)| !option.starts_with('.'))
                .filter_map(|(option, value)| Some((option.clone(), Entry::from_json(value)?)))
                .collect();
            found.push((
                index,
                Section {
                    uid: 0,
                    id: id.clone(),
                    kind: body.get(".type").and_then(Value::as_str).ok_or_else(bad)?.to_owned(),
                    is_anonymous: body.get(".anonymous").and_then(Value::as_bool).unwrap_or(false),
                    options,
                },
            ));
        }
        found.sort_by_key(|(index, _)| *index);
        let mut sections: Vec<Section> = found.into_iter().map(|(_, section)| section).collect();
        for (uid, section) in sections.iter_mut().enumerate() {
            section.uid = uid;
        }
        let count = sections.len();
        Ok(Config { name: name.to_owned(), sections, numbered: count, next_uid: count })
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Section> {
        self.sections.iter().filter(move |section| section.kind == kind)
    }

    pub(crate) fn section(&self, uid: usize) -> Option<&Section> {
        self.sections.iter().find(|section| section.uid == uid)
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }

    pub(crate) fn order(&self) -> Vec<usize> {
        self.sections.iter().map(|section| section.uid).collect()
    }

    /// A uid that no section of this model has had.
    pub(crate) fn fresh_uid(&mut self) -> usize {
        self.next_uid += 1;
        self.next_uid - 1
    }

    /// The model as the device reads it after the file was written.
    pub(crate) fn committed(mut self) -> Self {
        for (index, section) in self.sections.iter_mut().enumerate() {
            if section.is_anonymous {
                section.id = anonymous_id(index + 1, &section.kind);
            }
        }
        self.numbered = self.sections.len();
        self
    }

    fn position(&self, uid: usize) -> usize {
        self.sections
            .iter()
            .position(|section| section.uid == uid)
            .expect("edits name sections that are in the model")
    }

    /// Applies an edit. Gives the calls that do it at the device (none when it
    /// changes nothing) and the edits that take it back, in order.
    pub(crate) fn apply(&mut self, edit: Edit) -> (Vec<Value>, Vec<Edit>) {
        match edit {
            Edit::Set { uid, options } => self.set(uid, options),
            Edit::Unset { uid, options } => self.unset(uid, options),
            Edit::Add { uid, kind, name, options } => {
                (vec![self.add(uid, kind, name, options)], vec![Edit::Delete { uid }])
            }
            Edit::Delete { uid } => self.delete(uid),
            Edit::Order(order) => self.reorder(&order),
        }
    }

    fn set(&mut self, uid: usize, mut options: Options) -> (Vec<Value>, Vec<Edit>) {
        let at = self.position(uid);
        let section = &mut self.sections[at];
        options.retain(|name, entry| section.options.get(name) != Some(entry));
        if options.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let call =
            self.native("set", json!({"section": self.sections[at].id, "values": options_json(&options)}));
        let section = &mut self.sections[at];
        let (mut old, mut new) = (Options::new(), Vec::new());
        for (name, entry) in options {
            match section.options.insert(name.clone(), entry) {
                Some(before) => drop(old.insert(name, before)),
                None => new.push(name),
            }
        }
        let mut back = Vec::new();
        if !old.is_empty() {
            back.push(Edit::Set { uid, options: old });
        }
        if !new.is_empty() {
            back.push(Edit::Unset { uid, options: new });
        }
        (vec![call], back)
    }

    fn unset(&mut self, uid: usize, names: Vec<String>) -> (Vec<Value>, Vec<Edit>) {
        let at = self.position(uid);
        let mut old = Options::new();
        for name in names {
            if let Some(entry) = self.sections[at].options.remove(&name) {
                old.insert(name, entry);
            }
        }
        let call = |option: &String| {
            self.native("delete", json!({"section": self.sections[at].id, "option": option}))
        };
        let calls = old.keys().map(call).collect();
        let back = if old.is_empty() { Vec::new() } else { vec![Edit::Set { uid, options: old }] };
        (calls, back)
    }

    fn add(&mut self, uid: usize, kind: String, name: Option<String>, options: Options) -> Value {
        self.numbered += 1;
        self.next_uid = self.next_uid.max(uid + 1);
        let mut args = Map::new();
        args.insert("type".to_owned(), json!(kind));
        if let Some(name) = &name {
            args.insert("name".to_owned(), json!(name));
        }
        if !options.is_empty() {
            args.insert("values".to_owned(), options_json(&options));
        }
        let is_anonymous = name.is_none();
        let id = name.unwrap_or_else(|| anonymous_id(self.numbered, &kind));
        self.sections.push(Section { uid, id, kind, is_anonymous, options });
        self.native("add", Value::Object(args))
    }

    fn delete(&mut self, uid: usize) -> (Vec<Value>, Vec<Edit>) {
        let order = self.order();
        let gone = self.sections.remove(self.position(uid));
        let call = self.native("delete", json!({"section": gone.id}));
        let name = (!gone.is_anonymous).then_some(gone.id);
        (
            vec![call],
            vec![Edit::Add { uid, kind: gone.kind, name, options: gone.options }, Edit::Order(order)],
        )
    }

    fn reorder(&mut self, order: &[usize]) -> (Vec<Value>, Vec<Edit>) {
        let before = self.order();
        if before == order {
            return (Vec::new(), Vec::new());
        }
        let mut rest: BTreeSet<usize> = before.iter().copied().collect();
        let mut sections = Vec::with_capacity(self.sections.len());
        for uid in order {
            if rest.remove(uid) {
                sections.push(self.sections[self.position(*uid)].clone());
            }
        }
        sections.extend(self.sections.iter().filter(|section| rest.contains(&section.uid)).cloned());
        self.sections = sections;
        let ids: Vec<&String> = self.sections.iter().map(|section| &section.id).collect();
        (vec![self.native("order", json!({"sections": ids}))], vec![Edit::Order(before)])
    }

    fn native(&self, method: &str, args: Value) -> Value {
        let mut all = Map::new();
        all.insert("config".to_owned(), json!(self.name));
        if let Value::Object(args) = args {
            all.extend(args);
        }
        rpc::body("uci", method, &Value::Object(all))
    }
}

fn options_json(options: &Options) -> Value {
    options.iter().map(|(name, entry)| (name.clone(), entry.to_json())).collect::<Map<_, _>>().into()
}
