//! What the controller has stored: for each site, template and for the controller itself, rows and documents.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::facts::Item;

/// The scope of what belongs to the controller and to no site.
pub(crate) const GLOBAL: &str = "";

/// Everything stored, by scope (id of the site or template) and by collection.
#[derive(Default)]
pub(crate) struct Store {
    scopes: BTreeMap<String, BTreeMap<String, Value>>,
    next_id: u64,
}

/// A copy of scopes, as a backup keeps it.
pub(crate) struct Snapshot(BTreeMap<String, BTreeMap<String, Value>>);

static NO_ROWS: Vec<Value> = Vec::new();

impl Store {
    /// A new id: 24 hexadecimal digits, different in every call, the same in every run.
    pub(crate) fn new_id(&mut self) -> String {
        self.next_id += 1;
        format!("66a0{:08x}{:012x}", self.next_id.wrapping_mul(0x9e37_79b1) & 0xffff_ffff, self.next_id)
    }

    pub(crate) fn add_scope(&mut self, scope: &str) {
        self.scopes.entry(scope.to_owned()).or_default();
    }

    pub(crate) fn remove_scope(&mut self, scope: &str) {
        self.scopes.remove(scope);
    }

    /// A copy of one scope, or of all of them.
    pub(crate) fn snapshot(&self, scope: Option<&str>) -> Snapshot {
        let wanted = self.scopes.iter().filter(|(name, _)| scope.is_none_or(|scope| scope == *name));
        Snapshot(wanted.map(|(name, collections)| (name.clone(), collections.clone())).collect())
    }

    /// Brings back what a snapshot holds; scopes that it does not hold stay.
    pub(crate) fn bring_back(&mut self, snapshot: &Snapshot) {
        self.scopes.extend(snapshot.0.clone());
    }

    pub(crate) fn rows(&self, scope: &str, name: &str) -> &Vec<Value> {
        self.scopes.get(scope).and_then(|scope| scope.get(name)?.as_array()).unwrap_or(&NO_ROWS)
    }

    pub(crate) fn rows_mut(&mut self, scope: &str, name: &str) -> &mut Vec<Value> {
        let value =
            self.scopes.entry(scope.to_owned()).or_default().entry(name.to_owned()).or_insert(json!([]));
        if !value.is_array() {
            *value = json!([]);
        }
        match value {
            Value::Array(rows) => rows,
            _ => unreachable!("the value was made an array above"),
        }
    }

    pub(crate) fn document(&self, scope: &str, name: &str) -> Option<&Value> {
        self.scopes.get(scope)?.get(name)
    }

    pub(crate) fn set_document(&mut self, scope: &str, name: &str, document: Value) {
        self.scopes.entry(scope.to_owned()).or_default().insert(name.to_owned(), document);
    }

    pub(crate) fn find(&self, scope: &str, name: &str, field: &str, wanted: &str) -> Option<&Value> {
        self.rows(scope, name).iter().find(|row| is(row, field, wanted))
    }

    pub(crate) fn find_mut(
        &mut self,
        scope: &str,
        name: &str,
        field: &str,
        wanted: &str,
    ) -> Option<&mut Value> {
        self.rows_mut(scope, name).iter_mut().find(|row| is(row, field, wanted))
    }

    /// The collection of this scope that holds a row with this id.
    pub(crate) fn collection_of(&self, scope: &str, id: &str) -> Option<String> {
        let mut collections = self.scopes.get(scope)?.iter();
        let holds =
            |value: &Value| value.as_array().is_some_and(|rows| rows.iter().any(|row| row["id"] == id));
        collections.find(|(_, value)| holds(value)).map(|(name, _)| name.clone())
    }

    /// Whether a row of these collections, other than the one with this id, names the id.
    pub(crate) fn is_used(&self, scope: &str, id: &str, collections: &[&str]) -> bool {
        let Some(scope) = self.scopes.get(scope) else { return false };
        let counts = |name: &str| collections.iter().any(|wanted| name.split('|').next() == Some(wanted));
        scope.iter().filter(|(name, _)| counts(name)).any(|(_, value)| match value {
            Value::Array(rows) => rows.iter().filter(|row| row["id"] != id).any(|row| mentions(row, id)),
            document => mentions(document, id),
        })
    }

    /// All of it, for tests that look behind the interface.
    pub(crate) fn to_json(&self) -> Value {
        let scopes = self.scopes.iter().map(|(scope, collections)| {
            let name = if scope.is_empty() { "controller" } else { scope };
            (name.to_owned(), Value::Object(collections.clone().into_iter().collect::<Map<_, _>>()))
        });
        Value::Object(scopes.collect())
    }
}

/// The name of the collection that an item has under these parents.
pub(crate) fn collection(item: &Item, parents: &[String]) -> String {
    let mut name = item.id.clone();
    for parent in parents {
        name.push('|');
        name.push_str(parent);
    }
    name
}

/// Whether a field of the row has this text, or the number that it spells.
pub(crate) fn is(row: &Value, field: &str, wanted: &str) -> bool {
    match &row[field] {
        Value::String(text) => text == wanted,
        Value::Number(number) => number.to_string() == wanted,
        _ => false,
    }
}

fn mentions(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => text == id,
        Value::Array(values) => values.iter().any(|value| mentions(value, id)),
        Value::Object(fields) => fields.values().any(|value| mentions(value, id)),
        _ => false,
    }
}
