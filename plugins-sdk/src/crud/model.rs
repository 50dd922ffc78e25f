//! The objects that a plan deals with, as the device has them and as the changes before the present one leave them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Vendor;
use super::binding::{Field, KindBinding, Shape};
use super::field::{self, Content, plain};
use super::read;
use crate::{Fault, Host, fault};

/// How many choices a fault names.
const NAMED_MAX: usize = 20;

/// One object.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: String,
    key: Vec<(String, Option<String>)>,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) is_writable: bool,
    /// The whole object as the device answered it, once it was read.
    object: Option<Value>,
    pub(crate) content: Option<Content>,
    is_new: bool,
}

/// The objects of a kind.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) binding: KindBinding,
    pub(crate) entries: Vec<Entry>,
    /// Ids that the device had.
    pub(crate) ids: Vec<String>,
    template: Option<Value>,
    is_template_read: bool,
}

pub(crate) struct Model<'h> {
    vendor: &'h dyn Vendor,
    host: &'h dyn Host,
    pub(crate) kinds: BTreeMap<String, Kind>,
}

/// The texts of a payload's natural key.
pub(crate) fn key_texts(binding: &KindBinding, payload: &Value) -> Vec<String> {
    let text = |name: &String| {
        let value = payload.get(name).cloned().unwrap_or_default();
        let value = binding.fields.get(name).map_or(value.clone(), |field| field::normal(field, &value));
        match &value {
            Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
            other => plain(other),
        }
    };
    binding.key.iter().map(text).collect()
}

impl<'h> Model<'h> {
    pub(crate) fn new(vendor: &'h dyn Vendor, host: &'h dyn Host) -> Self {
        Model { vendor, host, kinds: BTreeMap::new() }
    }

    /// Reads a kind, once.
    pub(crate) fn load(&mut self, id: &str) -> Result<(), Fault> {
        if self.kinds.contains_key(id) {
            return Ok(());
        }
        let binding = KindBinding::of(self.host, id)?;
        let entries = match binding.shape {
            Shape::Items => {
                let rows = read::all(self.vendor, self.host, &binding)?;
                rows.into_iter()
                    .map(|row| Entry {
                        key: read::key_parts(&binding, &row.value),
                        name: read::key_of(&binding, &row.value),
                        is_writable: read::is_writable(&binding, &row),
                        id: row.id,
                        object: None,
                        content: None,
                        is_new: false,
                    })
                    .collect()
            }
            Shape::Object => vec![Entry {
                id: String::new(),
                key: Vec::new(),
                name: binding.noun.clone(),
                is_writable: true,
                object: None,
                content: None,
                is_new: false,
            }],
            Shape::Rows | Shape::Answer => {
                return Err(fault::unsupported(format!("objects of kind '{id}' are only read")));
            }
        };
        let ids = entries.iter().map(|entry| entry.id.clone()).filter(|id| !id.is_empty()).collect();
        let kind = Kind { binding, entries, ids, template: None, is_template_read: false };
        self.kinds.insert(id.to_owned(), kind);
        Ok(())
    }

    pub(crate) fn kind(&self, id: &str) -> &Kind {
        self.kinds.get(id).expect("the kind was loaded")
    }

    fn kind_mut(&mut self, id: &str) -> &mut Kind {
        self.kinds.get_mut(id).expect("the kind was loaded")
    }

    /// Places of the objects that a payload's natural key names.
    pub(crate) fn find(&self, kind: &str, key: &[String]) -> Vec<usize> {
        let Kind { binding, entries, .. } = self.kind(kind);
        let fits = |entry: &Entry| {
            entry.key.iter().zip(key).zip(&binding.key).all(|(((value, label), wanted), name)| {
                let field = binding.fields.get(name);
                let is_same = |own: &str| match field {
                    Some(field) if field.fold => own.eq_ignore_ascii_case(wanted),
                    _ => own == wanted,
                };
                let is_named = field.is_some_and(|field| !field.of.is_empty());
                is_same(value) || (is_named && label.as_deref().is_some_and(is_same))
            })
        };
        entries.iter().enumerate().filter(|(_, entry)| fits(entry)).map(|(at, _)| at).collect()
    }

    /// Reads the whole object of an entry, once.
    pub(crate) fn read(&mut self, kind: &str, at: usize) -> Result<Content, Fault> {
        let (vendor, host) = (self.vendor, self.host);
        let Kind { binding, entries, .. } = self.kind_mut(kind);
        let entry = &mut entries[at];
        if let Some(content) = &entry.content {
            return Ok(content.clone());
        }
        let object = read::object(vendor, host, binding, &entry.id)?.ok_or_else(|| {
            fault::not_ready(format!("{} '{}' went away while it was read", binding.noun, entry.name))
        })?;
        let content = field::content(binding, &object);
        entry.object = Some(object);
        entry.content = Some(content.clone());
        Ok(content)
    }

    /// Whether the device says which fields an object has: of a new one only by a template.
    pub(crate) fn tells_fields(&self, kind: &str, at: usize) -> bool {
        let kind = self.kind(kind);
        !kind.entries[at].is_new || kind.template.is_some()
    }

    /// What a new object of a kind has, where the device tells.
    pub(crate) fn template(&mut self, kind: &str) -> Result<Option<Content>, Fault> {
        let (vendor, host) = (self.vendor, self.host);
        let kind = self.kind_mut(kind);
        if !kind.is_template_read {
            kind.template = read::template(vendor, host, &kind.binding)?;
            kind.is_template_read = true;
        }
        Ok(kind.template.as_ref().map(|object| field::content(&kind.binding, object)))
    }

    /// As [`Self::template`], once that was read.
    pub(crate) fn template_of(&self, kind: &str) -> Option<Content> {
        let kind = self.kind(kind);
        kind.template.as_ref().map(|object| field::content(&kind.binding, object))
    }

    /// Adds a new object and returns what people call it.
    pub(crate) fn add(&mut self, kind: &str, id: &str, content: Content) -> String {
        let key = self.key_of(kind, &content);
        let names = key.iter().map(|(value, label)| label.clone().unwrap_or_else(|| value.clone()));
        let name = names.collect::<Vec<_>>().join(":");
        let entry = Entry {
            id: id.to_owned(),
            name: name.clone(),
            key,
            is_writable: true,
            object: None,
            content: Some(content),
            is_new: true,
        };
        self.kind_mut(kind).entries.push(entry);
        name
    }

    /// The natural key of a new object, with the names of other objects beside their ids.
    fn key_of(&self, kind: &str, content: &Content) -> Vec<(String, Option<String>)> {
        let Kind { binding, template, .. } = self.kind(kind);
        let payload = field::to_json(content);
        let label = |name: &String, id: &String| {
            let field = binding.fields.get(name).filter(|field| !field.of.is_empty())?;
            let known = template.as_ref().and_then(|object| field::choices(binding, name, object));
            let offered = known.into_iter().flatten().find(|(known, _)| known == id).map(|(_, label)| label);
            let new = || {
                let kinds = field.of.iter().filter_map(|kind| self.kinds.get(kind));
                let mut entries = kinds.flat_map(|kind| &kind.entries);
                entries.find(|entry| entry.id == *id).map(|entry| entry.name.clone())
            };
            offered.filter(|label| !label.is_empty()).or_else(new)
        };
        let texts = key_texts(binding, &payload);
        texts.into_iter().zip(&binding.key).map(|(text, name)| (text.clone(), label(name, &text))).collect()
    }

    pub(crate) fn set(&mut self, kind: &str, at: usize, content: Content) {
        self.kind_mut(kind).entries[at].content = Some(content);
    }

    pub(crate) fn remove(&mut self, kind: &str, at: usize) {
        self.kind_mut(kind).entries.remove(at);
    }

    /// The fields that a payload asks for, in the form in which they are compared. Objects that it names are
    /// replaced by the vendor's ids.
    pub(crate) fn asked(
        &mut self,
        kind: &str,
        payload: &Value,
        entry: Option<usize>,
    ) -> Result<Content, Fault> {
        let named: Vec<(String, Field)> = {
            let fields = &self.kind(kind).binding.fields;
            let known = payload.as_object().into_iter().flatten();
            known.filter_map(|(name, _)| Some((name.clone(), fields.get(name)?.clone()))).collect()
        };
        let mut out = Content::new();
        for (name, field) in named {
            let value = field::normal(&field, &payload[&name]);
            let value = if field.choice && !field.open || !field.of.is_empty() {
                self.resolve(kind, &name, &field, value, entry)?
            } else {
                value
            };
            out.insert(name, value);
        }
        Ok(out)
    }

    fn resolve(
        &mut self,
        kind: &str,
        name: &str,
        field: &Field,
        value: Value,
        entry: Option<usize>,
    ) -> Result<Value, Fault> {
        let choices = {
            let kind = self.kind(kind);
            let object = entry.and_then(|at| kind.entries[at].object.as_ref()).or(kind.template.as_ref());
            object.and_then(|object| field::choices(&kind.binding, name, object))
        };
        match value {
            Value::Null => Ok(Value::Null),
            Value::Array(items) => {
                let mut ids = Vec::with_capacity(items.len());
                for item in items {
                    ids.push(self.choose(name, field, &plain(&item), choices.as_deref())?);
                }
                Ok(field::normal(field, &json!(ids)))
            }
            Value::String(text) => self.choose(name, field, &text, choices.as_deref()).map(Value::String),
            other => Ok(other),
        }
    }

    /// The vendor's id of what a payload names: an id, a label, or the natural key of another object.
    fn choose(
        &mut self,
        name: &str,
        field: &Field,
        text: &str,
        choices: Option<&[(String, String)]>,
    ) -> Result<String, Fault> {
        let known = choices.unwrap_or_default();
        if known.iter().any(|(id, _)| id == text) {
            return Ok(text.to_owned());
        }
        let wrong = |message: String| {
            fault::invalid(format!("'{text}' cannot be chosen for '{name}'")).with(name, message)
        };
        if !field.of.is_empty() {
            let mut ids: Vec<String> =
                known.iter().filter(|(_, label)| label == text).map(|(id, _)| id.clone()).collect();
            if ids.is_empty() {
                ids = self.named(field, text)?;
            }
            match ids.as_slice() {
                [id] => return Ok(id.clone()),
                [] => {}
                several => {
                    return Err(wrong(format!(
                        "{} objects have this name; write the id of one",
                        several.len()
                    )));
                }
            }
        }
        if choices.is_none() || field.open {
            return Ok(text.to_owned());
        }
        let says = |(id, label): &(String, String)| {
            if field.of.is_empty() || label.is_empty() { format!("'{id}'") } else { format!("'{label}'") }
        };
        let names: Vec<String> = known.iter().take(NAMED_MAX).map(says).collect();
        Err(wrong(match (names.len(), known.len()) {
            (0, _) => "the device has nothing to choose from".to_owned(),
            (shown, all) if shown < all => {
                format!("choose one of {} and {} more", names.join(", "), all - shown)
            }
            _ => format!("choose one of {}", names.join(", ")),
        }))
    }

    /// Ids of the objects with a natural key, in the kinds that a field refers to.
    fn named(&mut self, field: &Field, text: &str) -> Result<Vec<String>, Fault> {
        let mut ids = Vec::new();
        for kind in &field.of {
            self.load(kind)?;
            let entries = &self.kind(kind).entries;
            let fits = |entry: &&Entry| entry.name == text || (entry.is_new && entry.id == text);
            ids.extend(entries.iter().filter(fits).map(|entry| entry.id.clone()));
        }
        Ok(ids)
    }

    /// Names of the objects whose field names an id.
    pub(crate) fn dependents(&mut self, kind: &str, name: &str, id: &str) -> Result<Vec<String>, Fault> {
        self.load(kind)?;
        let mut out = Vec::new();
        for at in 0..self.kind(kind).entries.len() {
            if self.kind(kind).entries[at].is_writable
                && self.read(kind, at)?.get(name).is_some_and(|value| names(value, id))
            {
                out.push(self.kind(kind).entries[at].name.clone());
            }
        }
        Ok(out)
    }
}

fn names(value: &Value, id: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item == id),
        other => other == id,
    }
}

/// A field's message, by its name in the payload.
pub(crate) trait WithField {
    fn with(self, name: &str, message: impl Into<String>) -> Self;
}

impl WithField for Fault {
    fn with(self, name: &str, message: impl Into<String>) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        crate::FaultExt::with_field(self, format!("/{name}"), message)
    }
}
