//! A document of intent: places of a site, and what is wanted of the objects there. Pure.
//!
//! `{heddle_intent: 1, site: {id, name}, controllers: {<id>: {name, vendor, objects: {<kind>: {<key>: {…}}},
//! sites: {<the vendor's id>: {<kind>: …}}}}}`. Names are for readers; ids and keys decide.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use heddle_core::{ControllerId, SiteId};
use heddle_kernel::nearest::nearest;
use heddle_marketplace::Schema;
use heddle_marketplace::model::ModelKind;
use serde_json::{Map, Value, json};

use super::bounds::{PROBLEMS_MAX, Problem, below};
use crate::settable;

/// Version of documents, and the field that has it.
pub(crate) const VERSION: u64 = 1;
const VERSION_FIELD: &str = "heddle_intent";
/// Most characters of what a document says for its readers.
pub(crate) const TEXT_CHARS_MAX: usize = 200;
/// What stands in place of a secret: the value that the device has stays.
const KEPT: &str = "kept";
const SECRET: &str = "secret";

/// A place whose objects a document names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) controller_id: ControllerId,
    /// The vendor's id of the site; empty where the objects are the controller's.
    pub(crate) site_ref: String,
}

/// What a document wants of one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wanted {
    /// Values by the names of their fields, those of a field dotted; null empties a field.
    pub(crate) fields: BTreeMap<String, Value>,
    /// Secrets, each new or as the device has it.
    pub(crate) secrets: BTreeMap<String, Option<Value>>,
}

/// The objects of one kind at one place, by their keys.
pub(crate) type Objects = BTreeMap<String, Wanted>;

/// A document that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) site_id: Option<SiteId>,
    /// In the order of the ids.
    pub(crate) places: BTreeMap<Place, BTreeMap<String, Objects>>,
}

/// The place in a document of the objects of a kind.
pub(crate) fn path_of(place: &Place, kind: &str) -> String {
    let controller = below("/controllers", &place.controller_id.to_string());
    let objects = if place.site_ref.is_empty() {
        below(&controller, "objects")
    } else {
        below(&below(&controller, "sites"), &place.site_ref)
    };
    below(&objects, kind)
}

/// Reads a document. All problems are named, as far as they are independent.
pub(crate) fn parse(value: &Value) -> Result<Document, Vec<Problem>> {
    let mut reader = Reader::default();
    reader.document(value);
    if reader.problems.is_empty() { Ok(reader.document) } else { Err(reader.problems) }
}

#[derive(Default)]
struct Reader {
    document: Document,
    problems: Vec<Problem>,
    /// By kind.
    schemas: HashMap<&'static str, Option<Arc<Schema>>>,
}

impl Reader {
    fn say(&mut self, path: impl Into<String>, message: impl Into<String>, kind: &'static str) {
        // An answer names no more; the rest would only take memory.
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem::at(path, message, kind));
        }
    }

    /// The map at a place; a problem where there is another value.
    fn map<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v Map<String, Value>> {
        let map = value.as_object();
        if value.is_null() {
            self.say(path, "must not be null", "type");
        } else if map.is_none() {
            self.say(path, "must be a map", "type_error");
        }
        map
    }

    /// Refuses fields that are none of these.
    fn only(&mut self, path: &str, map: &Map<String, Value>, known: &[&str]) {
        for name in map.keys().filter(|name| !known.contains(&name.as_str())) {
            let hint = nearest(name, known.iter().copied()).map(|near| format!("; nearest is '{near}'"));
            let message = format!("unknown field '{name}'{}", hint.unwrap_or_default());
            self.say(below(path, name), message, "unknown_field");
        }
    }

    /// Judges a text for readers, where it is there.
    fn text(&mut self, path: &str, map: &Map<String, Value>, field: &str) {
        let is_fit =
            |value: &Value| value.as_str().is_some_and(|text| text.chars().count() <= TEXT_CHARS_MAX);
        if map.get(field).is_some_and(|value| !is_fit(value)) {
            self.say(
                below(path, field),
                format!("must be a text of at most {TEXT_CHARS_MAX} characters"),
                "type_error",
            );
        }
    }

    fn document(&mut self, value: &Value) {
        let Some(map) = self.map("", value) else { return };
        self.only("", map, &[VERSION_FIELD, "site", "controllers"]);
        match map.get(VERSION_FIELD) {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(Value::Null) => self.say(below("", VERSION_FIELD), "must not be null", "type"),
            Some(version) => {
                self.say(
                    below("", VERSION_FIELD),
                    format!("version {version} is not known; this is {VERSION}"),
                    "value_error",
                );
            }
            None => self.say(below("", VERSION_FIELD), format!("missing field '{VERSION_FIELD}'"), "missing"),
        }
        if let Some(site) = map.get("site").and_then(|site| self.map("/site", site)) {
            self.only("/site", site, &["id", "name"]);
            self.text("/site", site, "name");
            match site.get("id").map(|id| serde_json::from_value(id.clone())) {
                Some(Ok(id)) => self.document.site_id = Some(id),
                Some(Err(_)) => self.say("/site/id", "must be the id of a site", "uuid"),
                None => {}
            }
        }
        let controllers = map.get("controllers").and_then(|all| self.map("/controllers", all));
        for (id, controller) in controllers.into_iter().flatten() {
            let path = below("/controllers", id);
            // One way to write an id: else a controller could be there twice.
            match id.parse::<ControllerId>() {
                Ok(known) if known.to_string() == *id => self.controller(&path, known, controller),
                _ => self.say(path, format!("'{id}' is not the id of a controller"), "uuid"),
            }
        }
    }

    fn controller(&mut self, path: &str, controller_id: ControllerId, value: &Value) {
        let Some(map) = self.map(path, value) else { return };
        self.only(path, map, &["name", "vendor", "objects", "sites"]);
        self.text(path, map, "name");
        self.text(path, map, "vendor");
        if let Some(objects) = map.get("objects") {
            let place = Place { controller_id, site_ref: String::new() };
            self.place(&below(path, "objects"), place, objects);
        }
        let sites_path = below(path, "sites");
        let sites = map.get("sites").and_then(|sites| self.map(&sites_path, sites));
        for (site_ref, objects) in sites.into_iter().flatten() {
            let path = below(&sites_path, site_ref);
            if site_ref.is_empty() {
                self.say(path, "the vendor's id of a site is not empty", "value_error");
                continue;
            }
            self.place(&path, Place { controller_id, site_ref: site_ref.clone() }, objects);
        }
    }

    fn place(&mut self, path: &str, place: Place, value: &Value) {
        let Some(map) = self.map(path, value) else { return };
        let mut kinds = BTreeMap::new();
        for (name, objects) in map {
            let path = below(path, name);
            let Some(kind) = settable::find(name) else {
                let known: Vec<&str> = settable::kinds().map(|kind| kind.id).collect();
                let near = nearest(name, known.iter().copied()).map(|near| format!("; nearest is '{near}'"));
                let hint = near.unwrap_or_else(|| format!("; there are: {}", known.join(", ")));
                self.say(path, format!("'{name}' is no kind that people set{hint}"), "unknown_field");
                continue;
            };
            let Some(objects) = self.map(&path, objects) else { continue };
            let of_kind = self.objects(&path, kind, objects);
            kinds.insert(name.clone(), of_kind);
        }
        self.document.places.insert(place, kinds);
    }

    fn objects(&mut self, path: &str, kind: &'static ModelKind, objects: &Map<String, Value>) -> Objects {
        let schema = self.schema(kind);
        let mut read = Objects::new();
        for (key, value) in objects {
            let path = below(path, key);
            let Some(fields) = self.map(&path, value) else { continue };
            let mut plain = fields.clone();
            let mut wanted = Wanted::default();
            for secret in settable::secrets(kind) {
                if let Some(value) = plain.shift_remove(secret) {
                    self.secret(&below(&path, secret), &value);
                    wanted.secrets.insert(secret.to_owned(), Some(value).filter(|value| !is_kept(value)));
                }
            }
            if let (Some(schema), false) = (&schema, plain.is_empty()) {
                self.judge(&path, (kind, schema), &plain);
            }
            wanted.fields = flat(kind, plain);
            read.insert(key.clone(), wanted);
        }
        read
    }

    /// What people may ask of an object of a kind, compiled once for a document. Where nothing changes such an object, it is what
    /// creates one.
    fn schema(&mut self, kind: &'static ModelKind) -> Option<Arc<Schema>> {
        let compile = || {
            let mut schema = kind.payload_schema("update").or_else(|| kind.payload_schema("create"))?;
            // A document may say less of an object than creating it needs.
            schema.as_object_mut()?.shift_remove("required");
            schema.get_mut("properties")?.as_object_mut()?.entry("key").or_insert_with(|| json!({}));
            Schema::compile(&schema).ok().map(Arc::new)
        };
        self.schemas.entry(kind.id).or_insert_with(compile).clone()
    }

    fn secret(&mut self, path: &str, value: &Value) {
        if !is_kept(value) && !value.is_string() {
            let message =
                format!("must be a text, or {{{SECRET}: {KEPT}}}, which keeps the value that the device has");
            self.say(path, message, "type_error");
        }
    }

    /// Judges the fields by what people may ask of them.
    fn judge(&mut self, path: &str, (kind, schema): (&ModelKind, &Schema), fields: &Map<String, Value>) {
        let mut payload = fields.clone();
        if payload.contains_key("key") {
            self.say(
                below(path, "key"),
                "the key stands before its fields, and is none of them",
                "unknown_field",
            );
            return;
        }
        for field in settable::RELATIVE.iter().filter(|field| payload.contains_key(**field)) {
            let message =
                "where an object stands among others is no part of a document; stage a change of it";
            self.say(below(path, field), message, "unknown_field");
        }
        if kind.payload_schema("update").is_none() {
            // Null leaves a field out where objects are only created.
            payload.retain(|_, value| !value.is_null());
        }
        payload.insert("key".to_owned(), json!("k"));
        let payload = Value::Object(payload);
        let found: Vec<(String, String)> = schema
            .validator()
            .iter_errors(&payload)
            .map(|error| (format!("{path}{}", error.instance_path()), error.to_string()))
            .collect();
        for (path, message) in found {
            self.say(path, message, "value_error");
        }
    }
}

/// Whether a value stands for the secret that the device has.
pub(crate) fn is_kept(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.len() == 1) && value[SECRET] == KEPT
}

/// The placeholder of a secret.
pub(crate) fn kept() -> Value {
    json!({ SECRET: KEPT })
}

/// Dots the fields of those fields of which people set a part only.
fn flat(kind: &'static ModelKind, fields: Map<String, Value>) -> BTreeMap<String, Value> {
    let dotted: Vec<&str> = settable::fields(kind).filter(|field| field.contains('.')).collect();
    let mut flat = BTreeMap::new();
    for (name, value) in fields {
        let inner = format!("{name}.");
        match value {
            Value::Object(parts) if dotted.iter().any(|field| field.starts_with(&inner)) => {
                flat.extend(parts.into_iter().map(|(part, value)| (format!("{inner}{part}"), value)));
            }
            value => {
                flat.insert(name, value);
            }
        }
    }
    flat
}

/// What a document says of a controller for its readers.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) vendor: String,
}

/// Writes a document as one value, in an order that does not depend on when it is written.
pub(crate) fn write(
    site: (SiteId, &str),
    controllers: &BTreeMap<ControllerId, Named>,
    places: &BTreeMap<Place, BTreeMap<String, Objects>>,
) -> Value {
    let mut all = Map::new();
    for (id, named) in controllers {
        let (mut objects, mut sites) = (Map::new(), Map::new());
        for (place, kinds) in places.iter().filter(|(place, _)| place.controller_id == *id) {
            let kinds: Map<String, Value> =
                kinds.iter().map(|(kind, objects)| (kind.clone(), written(objects))).collect();
            if place.site_ref.is_empty() {
                objects = kinds;
            } else {
                sites.insert(place.site_ref.clone(), Value::Object(kinds));
            }
        }
        let mut controller = Map::new();
        controller.insert("name".to_owned(), json!(named.name));
        controller.insert("vendor".to_owned(), json!(named.vendor));
        if !objects.is_empty() {
            controller.insert("objects".to_owned(), Value::Object(objects));
        }
        if !sites.is_empty() {
            controller.insert("sites".to_owned(), Value::Object(sites));
        }
        all.insert(id.to_string(), Value::Object(controller));
    }
    json!({ VERSION_FIELD: VERSION, "site": { "id": site.0, "name": site.1 }, "controllers": all })
}

fn written(objects: &Objects) -> Value {
    let of_one = |wanted: &Wanted| {
        let mut fields = Map::new();
        for (field, value) in &wanted.fields {
            settable::put(&mut fields, field, sorted(value));
        }
        for (secret, value) in &wanted.secrets {
            fields.insert(secret.clone(), value.clone().unwrap_or_else(kept));
        }
        Value::Object(fields)
    };
    Value::Object(objects.iter().map(|(key, wanted)| (key.clone(), of_one(wanted))).collect())
}

/// The value with the fields of maps in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, &Value> = fields.iter().collect();
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
