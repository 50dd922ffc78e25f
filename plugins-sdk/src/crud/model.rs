//! The objects that a plan deals with, as the device has them and as the changes before the present one leave them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::binding::{KindBinding, Shape};
use super::field::{self, Content};
use super::key::Key;
use super::read::{self, Ask};
use super::{Place, Vendor, key, place};
use crate::{Fault, Host, fault};

/// One object.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// Parameters of its paths.
    pub(crate) place: Place,
    key: Key,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) is_writable: bool,
    /// What the row of the list says of its natural key.
    row_key: Content,
    /// The whole object as the device answered it, once it was read.
    pub(crate) object: Option<Value>,
    pub(crate) content: Option<Content>,
    /// The plan creates it.
    pub(crate) is_new: bool,
}

/// The objects of a kind in one place.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) kind: String,
    /// Parameters of the vendor's own.
    scope: Place,
    /// Parameters of the list's path.
    pub(crate) place: Place,
    pub(crate) binding: KindBinding,
    pub(crate) entries: Vec<Entry>,
    /// Ids that the device had; natural keys where ids do not last.
    pub(crate) ids: Vec<String>,
    pub(crate) template: Option<Value>,
    is_template_read: bool,
}

pub(crate) struct Model<'h> {
    pub(crate) vendor: &'h dyn Vendor,
    pub(crate) host: &'h dyn Host,
    /// Those that are loaded; the plan names them by their place here.
    pub(crate) lists: Vec<List>,
    scopes: BTreeMap<Option<String>, Place>,
}

impl<'h> Model<'h> {
    pub(crate) fn new(vendor: &'h dyn Vendor, host: &'h dyn Host) -> Self {
        Model { vendor, host, lists: Vec::new(), scopes: BTreeMap::new() }
    }

    fn scope(&mut self, site: Option<&str>) -> Result<Place, Fault> {
        let site = site.map(str::to_owned);
        if let Some(known) = self.scopes.get(&site) {
            return Ok(known.clone());
        }
        let scope = self.vendor.scope(self.host, site.as_deref())?;
        self.scopes.insert(site, scope.clone());
        Ok(scope)
    }

    /// The list that a payload is about, read once.
    pub(crate) fn locate(&mut self, kind: &str, site: Option<&str>, payload: &Value) -> Result<usize, Fault> {
        let scope = self.scope(site)?;
        let binding = KindBinding::of(self.host, kind)?;
        let place = place::of_payload(self.vendor, self.host, &binding, &scope, payload)?;
        self.load(kind, binding, (scope, place))
    }

    /// The parameters of the paths of what is about no object.
    pub(crate) fn bare(&mut self, site: Option<&str>) -> Result<Place, Fault> {
        self.scope(site)
    }

    /// Reads the list of a kind in a place, once.
    fn load(
        &mut self,
        kind: &str,
        binding: KindBinding,
        (scope, place): (Place, Place),
    ) -> Result<usize, Fault> {
        let known = self.lists.iter().position(|list| list.kind == kind && list.place == place);
        if let Some(at) = known {
            return Ok(at);
        }
        let entries: Vec<Entry> = match binding.shape {
            Shape::Items => {
                let rows = read::all(self.vendor, self.host, &binding, Ask::of(&place))?;
                rows.into_iter()
                    .map(|row| Entry {
                        key: key::parts(&binding, &row.value),
                        name: key::of(&binding, &row.value),
                        is_writable: read::is_writable(&binding, &row),
                        row_key: field::key_content(&binding, &row.value),
                        id: row.id,
                        place: row.place,
                        object: binding.get.is_none().then_some(row.value),
                        content: None,
                        is_new: false,
                    })
                    .collect()
            }
            Shape::Object => vec![Entry {
                id: String::new(),
                place: place.clone(),
                key: Vec::new(),
                name: String::new(),
                is_writable: true,
                row_key: Content::new(),
                object: None,
                content: None,
                is_new: false,
            }],
            Shape::Rows | Shape::Answer => {
                return Err(fault::unsupported(format!("objects of kind '{kind}' are only read")));
            }
        };
        let mark = |entry: &Entry| if binding.volatile { entry.name.clone() } else { entry.id.clone() };
        let ids = entries.iter().map(mark).filter(|id| !id.is_empty()).collect();
        let kind = kind.to_owned();
        let template = None;
        self.lists.push(List {
            kind,
            scope,
            place,
            binding,
            entries,
            ids,
            template,
            is_template_read: false,
        });
        Ok(self.lists.len() - 1)
    }

    /// The list of another kind that stands beside one: of the same controller, site or parent. None where it has another
    /// kind of parent.
    pub(crate) fn beside(&mut self, list: usize, kind: &str) -> Result<Option<usize>, Fault> {
        let binding = KindBinding::of(self.host, kind)?;
        let List { place, scope, binding: own, .. } = &self.lists[list];
        let scope = scope.clone();
        let other = match (&binding.within, &own.within) {
            (None, _) => scope.clone(),
            (Some(other), Some(own)) if other.kind == own.kind => place.clone(),
            (Some(other), _) => {
                let known = |name: &String| Some((name.clone(), place.get(name)?.clone()));
                let Some(params) = other.params.keys().map(known).collect::<Option<Place>>() else {
                    return Ok(None);
                };
                scope.clone().into_iter().chain(params).collect()
            }
        };
        self.load(kind, binding, (scope, other)).map(Some)
    }

    /// Places of the objects that a payload's natural key names.
    pub(crate) fn find(&self, list: usize, key: &[String]) -> Vec<usize> {
        let List { binding, entries, .. } = &self.lists[list];
        let fits = |entry: &Entry| key::is(binding, &entry.key, key);
        entries.iter().enumerate().filter(|(_, entry)| fits(entry)).map(|(at, _)| at).collect()
    }

    /// Reads the whole object of an entry, once.
    pub(crate) fn read(&mut self, list: usize, at: usize) -> Result<Content, Fault> {
        let (vendor, host) = (self.vendor, self.host);
        let List { binding, entries, .. } = &mut self.lists[list];
        let entry = &mut entries[at];
        if let Some(content) = &entry.content {
            return Ok(content.clone());
        }
        if entry.object.is_none() {
            entry.object = read::object(vendor, host, binding, &entry.place, &entry.id)?;
        }
        let object = entry.object.as_ref().ok_or_else(|| match binding.shape {
            Shape::Items => {
                fault::not_ready(format!("{} '{}' went away while it was read", binding.noun, entry.name))
            }
            _ => fault::unsupported(format!("the device has no {}", binding.noun)),
        })?;
        let content = field::with_key(field::content(binding, object), &entry.row_key);
        entry.content = Some(content.clone());
        Ok(content)
    }

    /// Whether the device says which fields an object has: of a new one only by a template.
    pub(crate) fn tells_fields(&self, list: usize, at: usize) -> bool {
        let list = &self.lists[list];
        !list.entries[at].is_new || list.template.is_some()
    }

    /// What a new object of a kind has, where the device tells.
    pub(crate) fn template(&mut self, list: usize) -> Result<Option<Content>, Fault> {
        let (vendor, host) = (self.vendor, self.host);
        let of = &mut self.lists[list];
        if !of.is_template_read {
            of.template = read::template(vendor, host, &of.binding, &of.place)?;
            of.is_template_read = true;
        }
        Ok(self.template_of(list))
    }

    /// As [`Self::template`], once that was read.
    pub(crate) fn template_of(&self, list: usize) -> Option<Content> {
        let list = &self.lists[list];
        list.template.as_ref().map(|object| field::content(&list.binding, object))
    }

    /// Adds a new object and returns what people call it.
    pub(crate) fn add(
        &mut self,
        list: usize,
        (id, place): (&str, &Place),
        (asked, content): (&[String], Content),
    ) -> String {
        let mut key = self.key_of(list, &content);
        // Some names stand in the path of the create alone.
        for (at, name) in self.lists[list].binding.key.iter().enumerate() {
            if !self.lists[list].binding.fields.contains_key(name) {
                key[at].0.clone_from(&asked[at]);
            }
        }
        let names = key.iter().map(|(value, label)| label.clone().unwrap_or_else(|| value.clone()));
        let name = names.collect::<Vec<_>>().join(":");
        let entry = Entry {
            id: id.to_owned(),
            place: place.clone(),
            name: name.clone(),
            key,
            is_writable: true,
            row_key: Content::new(),
            object: None,
            content: Some(content),
            is_new: true,
        };
        self.lists[list].entries.push(entry);
        name
    }

    /// The natural key of a new object, with the names of other objects beside their ids.
    fn key_of(&self, list: usize, content: &Content) -> Key {
        let List { binding, template, .. } = &self.lists[list];
        let payload = field::to_json(content);
        let label = |name: &String, id: &String| {
            let field = binding.fields.get(name).filter(|field| !field.of.is_empty())?;
            let known = template.as_ref().and_then(|object| field::choices(binding, name, object));
            let offered = known.into_iter().flatten().find(|(known, _)| known == id).map(|(_, label)| label);
            let new = || {
                let lists = self.lists.iter().filter(|list| field.of.contains(&list.kind));
                let mut entries = lists.flat_map(|list| &list.entries);
                entries.find(|entry| entry.id == *id).map(|entry| entry.name.clone())
            };
            offered.filter(|label| !label.is_empty()).or_else(new)
        };
        let texts = key::texts(binding, &payload);
        texts.into_iter().zip(&binding.key).map(|(text, name)| (text.clone(), label(name, &text))).collect()
    }

    pub(crate) fn set(&mut self, list: usize, at: usize, content: Content) {
        self.lists[list].entries[at].content = Some(content);
    }

    pub(crate) fn remove(&mut self, list: usize, at: usize) {
        self.lists[list].entries.remove(at);
    }
}

/// Whether a value is an id, or a list that has it.
pub(crate) fn names(value: &Value, id: &str) -> bool {
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
