//! The configuration: lists of items and settings, by node. Copies are cheap, because unchanged lists are shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

/// Values of one item by dotted field name. A field that is absent has its default.
pub(crate) type Values = BTreeMap<String, String>;

/// One list, in its order.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct List {
    rows: Vec<(Arc<str>, Arc<Values>)>,
}

/// All lists and settings. The settings of a model are a list with one item, whose id is empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Config {
    lists: BTreeMap<String, Arc<List>>,
}

impl List {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Values>)> {
        self.rows.iter().map(|(id, values)| (&**id, values))
    }

    /// As `{id: {field: value}}`.
    pub(crate) fn to_json(&self) -> Value {
        let rows: Map<String, Value> =
            self.iter().map(|(id, values)| (id.to_owned(), json!(**values))).collect();
        Value::Object(rows)
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<Values>> {
        self.rows.iter().find(|(row, _)| &**row == id).map(|(_, values)| values)
    }
}

impl Config {
    pub(crate) fn list(&self, node: &str) -> &List {
        static EMPTY: List = List { rows: Vec::new() };
        self.lists.get(node).map_or(&EMPTY, |list| list)
    }

    pub(crate) fn rows(&self, node: &str) -> impl Iterator<Item = (&str, &Arc<Values>)> {
        self.list(node).iter()
    }

    pub(crate) fn find(&self, node: &str, id: &str) -> Option<&Arc<Values>> {
        self.list(node).find(id)
    }

    /// One stored value, or an empty text.
    pub(crate) fn value(&self, node: &str, id: &str, field: &str) -> &str {
        self.find(node, id).and_then(|values| values.get(field)).map_or("", String::as_str)
    }

    /// Stores an item, at its place or at the end.
    pub(crate) fn put(&mut self, node: &str, id: &str, values: Values) {
        let list = Arc::make_mut(self.lists.entry(node.to_owned()).or_default());
        match list.rows.iter_mut().find(|(row, _)| &**row == id) {
            Some((_, old)) => *old = Arc::new(values),
            None => list.rows.push((id.into(), Arc::new(values))),
        }
    }

    /// Sets one value of an item that exists.
    pub(crate) fn set(&mut self, node: &str, id: &str, field: &str, value: &str) {
        if let Some(values) = self.find(node, id) {
            let mut values = Values::clone(values);
            values.insert(field.to_owned(), value.to_owned());
            self.put(node, id, values);
        }
    }

    /// Appends without looking for the id, for seeds of many items.
    pub(crate) fn append(&mut self, node: &str, id: &str, values: Values) {
        let list = Arc::make_mut(self.lists.entry(node.to_owned()).or_default());
        list.rows.push((id.into(), Arc::new(values)));
    }

    pub(crate) fn remove(&mut self, node: &str, id: &str) -> bool {
        let Some(list) = self.lists.get_mut(node) else { return false };
        let before = list.rows.len();
        Arc::make_mut(list).rows.retain(|(row, _)| &**row != id);
        list.rows.len() < before
    }

    /// Changes every item of a list.
    pub(crate) fn rewrite(&mut self, node: &str, mut change: impl FnMut(&str, &Values) -> Option<Values>) {
        let Some(list) = self.lists.get_mut(node) else { return };
        let changed: Vec<(usize, Values)> = list
            .rows
            .iter()
            .enumerate()
            .filter_map(|(at, (id, values))| change(id, values).map(|new| (at, new)))
            .collect();
        if !changed.is_empty() {
            let list = Arc::make_mut(list);
            changed.into_iter().for_each(|(at, values)| list.rows[at].1 = Arc::new(values));
        }
    }

    /// Takes over a list as another configuration has it.
    pub(crate) fn take_over(&mut self, node: &str, from: &Self) {
        match from.lists.get(node) {
            Some(list) => self.lists.insert(node.to_owned(), Arc::clone(list)),
            None => self.lists.remove(node),
        };
    }

    /// The names of the lists in which two configurations differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let names =
            self.lists.keys().chain(other.lists.keys().filter(|name| !self.lists.contains_key(*name)));
        let differs = |name: &&String| match (self.lists.get(*name), other.lists.get(*name)) {
            (Some(a), Some(b)) => !Arc::ptr_eq(a, b) && a != b,
            (Some(list), None) | (None, Some(list)) => !list.rows.is_empty(),
            (None, None) => false,
        };
        names.filter(differs).cloned().collect()
    }

    /// The names of the lists and settings that hold anything.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &String> {
        self.lists.keys()
    }

    /// As `{node: {id: {field: value}}}`.
    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.lists.iter().map(|(node, list)| (node.clone(), list.to_json())).collect())
    }

    /// A file in the form of the device's own: one element per list, item and field.
    pub(crate) fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\"?>\n<opnsense>\n");
        for (node, list) in &self.lists {
            for (id, values) in list.iter() {
                out.push_str(&format!("  <item node=\"{}\" uuid=\"{}\">\n", escape(node), escape(id)));
                for (field, value) in values.iter() {
                    out.push_str(&format!(
                        "    <field name=\"{}\">{}</field>\n",
                        escape(field),
                        escape(value)
                    ));
                }
                out.push_str("  </item>\n");
            }
        }
        out.push_str("</opnsense>\n");
        out
    }
}

/// Escapes a text for XML and HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Values from pairs.
pub(crate) fn values(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned())).collect()
}
