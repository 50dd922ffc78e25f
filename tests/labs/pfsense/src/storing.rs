//! A validated object as the configuration keeps it.

use serde_json::{Value, json};

use crate::draft::Draft;
use crate::facts::{Field, Kind};
use crate::store::{Config, NAME, Object};
use crate::{checks, interfaces, php};

impl Draft<'_> {
    /// The object as it is stored. With `before`, over what stood there, which keeps what the API does not know.
    pub(crate) fn stored(&mut self, before: Option<&Object>) -> Object {
        let mut out = before.filter(|_| !self.model.replace).cloned().unwrap_or_default();
        if let Some(name) = before.and_then(|before| before.get(NAME)) {
            out.insert(NAME.to_owned(), name.clone());
        }
        for field in self.model.fields(self.firewall.release) {
            if field.now.as_deref() == Some("update") {
                self.set(&field.name, json!(self.firewall.time.as_secs()));
            }
            if let Some(child) = &field.nested {
                let kept = before.map(|before| Config::children(before, child)).unwrap_or_default();
                let children = match self.nested.get(&field.name) {
                    Some(children) => children.clone(),
                    None if self.keeps_children(field) => kept,
                    None => Vec::new(),
                };
                Config::put_children(&mut out, child, children);
                continue;
            }
            let value = self.value(&field.name).clone();
            match store_value(self.config(), field, &value, before.is_some()) {
                Some(value) if !field.representation_only => drop(out.insert(field.name.clone(), value)),
                _ => drop(out.shift_remove(&field.name)),
            }
        }
        out
    }
}

/// One value as it is stored; `None` where nothing is.
fn store_value(config: &Config, field: &Field, value: &Value, is_update: bool) -> Option<Value> {
    if !field.many {
        return (!value.is_null()).then(|| store_one(config, field, value));
    }
    // An update writes every list, so that what was absent becomes an empty list.
    if value.is_null() && !is_update {
        return None;
    }
    let items: Vec<Value> =
        value.as_array().into_iter().flatten().map(|item| store_one(config, field, item)).collect();
    let Some(separator) = field.separator().filter(|_| items.iter().all(Value::is_string)) else {
        return Some(json!(items));
    };
    // Entries are stored as one text: one that holds the separator reads as two.
    let joined = items.iter().map(php::text).collect::<Vec<_>>().join(separator);
    let parts: Vec<&str> = if joined.is_empty() { Vec::new() } else { joined.split(separator).collect() };
    Some(json!(parts))
}

fn store_one(config: &Config, field: &Field, value: &Value) -> Value {
    if let (Some(refers), Some(inner)) =
        (&field.refers, field.refers.as_ref().and_then(|refers| refers.stored.as_ref()))
    {
        let lists = refers.models.iter().flat_map(|model| config.list(model));
        let found = lists.into_iter().find(|object| object.get(&refers.field) == Some(value));
        return found.and_then(|object| object.get(inner).cloned()).unwrap_or_else(|| value.clone());
    }
    let Value::String(text) = value else { return value.clone() };
    match field.kind {
        Kind::Interface => json!(interfaces::store(config, text)),
        Kind::FilterAddress => {
            let is_other = checks::is_other_address(config, field, text.trim_start_matches('!'));
            json!(interfaces::store_address(config, text, is_other))
        }
        Kind::SpecialNetwork => json!(interfaces::store_special(config, text)),
        _ => value.clone(),
    }
}
