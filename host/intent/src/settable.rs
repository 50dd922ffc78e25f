//! What people can set of an object, in one flat form: drift compares it, and documents are made of it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::adapter::{Description, Filled};
use heddle_marketplace::model::{self, ModelKind};
use serde_json::{Map, Value};

/// Fields whose items have an order that means something; of all other lists the order is the vendor's.
const ORDERED: [&str; 2] = ["dns_servers", "servers"];
/// Fields that move when other objects come and go.
pub(crate) const RELATIVE: [&str; 1] = ["position"];
/// Kinds whose objects are made for a while: nothing is wanted of them for good.
const PASSING: [&str; 1] = ["snapshot"];
/// Verbs that say what is wanted of an object.
const VERBS: [&str; 2] = ["create", "update"];

/// Kinds of which people can set something, in the order of the model.
pub(crate) fn kinds() -> impl Iterator<Item = &'static ModelKind> {
    model::KINDS.iter().filter(|kind| !PASSING.contains(&kind.id) && fields(kind).next().is_some())
}

/// The kind of this id, if people can set something of it.
pub(crate) fn find(id: &str) -> Option<&'static ModelKind> {
    kinds().find(|kind| kind.id == id)
}

/// Fields that people can set, except secrets and what is relative to other objects. Those of a field are dotted.
pub(crate) fn fields(kind: &'static ModelKind) -> impl Iterator<Item = &'static str> {
    let written: BTreeSet<&str> = VERBS.iter().flat_map(|verb| kind.written_fields(verb)).collect();
    written.into_iter().filter(move |field| !kind.is_secret(field) && !RELATIVE.contains(field))
}

/// Secrets of a kind that people can set.
pub(crate) fn secrets(kind: &'static ModelKind) -> impl Iterator<Item = &'static str> {
    let written: BTreeSet<&str> = VERBS.iter().flat_map(|verb| kind.written_fields(verb)).collect();
    written.into_iter().filter(move |field| kind.is_secret(field))
}

/// What an adapter reads of a kind, if it fills it.
pub(crate) fn filled<'d>(description: &'d Description, kind: &str) -> Option<&'d Filled> {
    description.model.iter().find(|filled| filled.kind == kind)
}

/// Those fields of a kind that people can set and that an adapter reads.
pub(crate) fn followed(kind: &'static ModelKind, filled: &Filled) -> BTreeSet<&'static str> {
    fields(kind).filter(|field| has(&filled.fields, field)).collect()
}

/// Whether some fields have this one, or the one that it is a part of.
pub(crate) fn has<'f>(fields: impl IntoIterator<Item = &'f String>, field: &str) -> bool {
    let outer = field.split('.').next().unwrap_or(field);
    fields.into_iter().any(|known| known == field || known == outer)
}

/// Whether a reading did not know a value, or a part of it: people cannot ask for that.
pub(crate) fn is_unknown(kind: &'static ModelKind, field: &str, value: &Value) -> bool {
    let pointer = format!("/properties/{}", field.replace('.', "/properties/"));
    let document = kind.document();
    document.pointer(&pointer).is_some_and(|schema| has_unknown(document, schema, value))
}

fn has_unknown(document: &Value, schema: &Value, value: &Value) -> bool {
    let referred =
        schema["$ref"].as_str().and_then(|reference| document.pointer(reference.trim_start_matches('#')));
    let schema = referred.unwrap_or(schema);
    match value {
        Value::String(text) => {
            let words = schema["enum"].as_array();
            text == "unknown" && words.is_some_and(|words| words.contains(value))
        }
        Value::Array(items) => items.iter().any(|item| has_unknown(document, &schema["items"], item)),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| has_unknown(document, &schema["properties"][name], value))
        }
        _ => false,
    }
}

/// The settable part of an object: values by the names of their fields. What is not known, or empty, is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Content(pub(crate) BTreeMap<String, Value>);

impl Content {
    /// Takes these fields out of those of an object.
    pub(crate) fn of(names: &BTreeSet<&str>, fields: &Value) -> Self {
        let value = |name: &&str| {
            let pointer = format!("/{}", name.replace('.', "/"));
            fields.pointer(&pointer).filter(|value| !value.is_null()).cloned()
        };
        Self(names.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?))).collect())
    }

    /// Reads what was stored with [`Content::to_value`].
    pub(crate) fn from_value(stored: &Value) -> Self {
        let fields = stored.as_object().into_iter().flatten();
        Self(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The same only with these fields.
    pub(crate) fn only(mut self, names: &BTreeSet<&str>) -> Self {
        self.0.retain(|name, _| names.contains(name.as_str()));
        self
    }

    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    pub(crate) fn set(&mut self, field: &str, value: Option<Value>) {
        match value.filter(|value| !value.is_null()) {
            Some(value) => self.0.insert(field.to_owned(), value),
            None => self.0.remove(field),
        };
    }

    /// Names of the fields that differ, sorted.
    pub(crate) fn differing(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let differs = |name: &&String| !same(name, self.get(name), other.get(name));
        names.into_iter().filter(differs).cloned().collect()
    }
}

/// Whether two values of a field mean the same. The order of most lists does not count.
pub(crate) fn same(field: &str, one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other || canonical(field, one) == canonical(field, other),
        (None, None) => true,
        (one, other) => is_empty(one) && is_empty(other),
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
}

/// The value in a form in which equal meanings are equal.
pub(crate) fn canonical(field: &str, value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| canonical(field, item)).collect();
            if !ORDERED.contains(&field) {
                items.sort_by_cached_key(ToString::to_string);
            }
            Value::Array(items)
        }
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            let mut kept: Vec<(String, Value)> =
                kept.map(|(name, value)| (name.clone(), canonical(name, value))).collect();
            kept.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(kept.into_iter().collect())
        }
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the bounds")]
            let whole = whole.map(|whole| Value::from(whole as i64));
            whole.unwrap_or_else(|| value.clone())
        }
        _ => value.clone(),
    }
}

/// Whether an observed value is what was asked for: the device may say more of it, such as values that nobody gave.
pub(crate) fn is_as_asked(field: &str, asked: &Value, observed: Option<&Value>) -> bool {
    let Some(observed) = observed else { return is_empty(Some(asked)) };
    if same(field, Some(asked), Some(observed)) {
        return true;
    }
    match (asked, observed) {
        (Value::Object(asked), Value::Object(observed)) => {
            asked.iter().all(|(name, value)| is_as_asked(name, value, observed.get(name)))
        }
        (Value::Array(asked), Value::Array(observed)) if asked.len() == observed.len() => {
            let mut left: Vec<&Value> = observed.iter().collect();
            asked.iter().all(|one| {
                let at = left.iter().position(|other| is_as_asked(field, one, Some(other)));
                at.map(|at| left.swap_remove(at)).is_some()
            })
        }
        _ => false,
    }
}

/// Puts a value at a dotted name.
pub(crate) fn put(into: &mut Map<String, Value>, field: &str, value: Value) {
    match field.split_once('.') {
        None => {
            into.insert(field.to_owned(), value);
        }
        Some((outer, inner)) => {
            let whole = into.entry(outer.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(parts) = whole {
                put(parts, inner, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_people_set_is_followed_and_what_others_move_is_not() {
        let rule: Vec<&str> = fields(model::find("firewall-rule").unwrap()).collect();
        assert!(
            rule.contains(&"action") && !rule.contains(&"position") && !rule.contains(&"hits"),
            "{rule:?}"
        );
        let ssid = model::find("ssid").unwrap();
        assert!(!fields(ssid).any(|field| field == "passphrase"));
        assert_eq!(secrets(ssid).collect::<Vec<_>>(), ["passphrase"]);
        let kinds: Vec<&str> = kinds().map(|kind| kind.id).collect();
        for (kind, is_followed) in [("vlan", true), ("port", true), ("client", false), ("snapshot", false)] {
            assert_eq!(kinds.contains(&kind), is_followed, "{kind}");
        }
    }

    #[test]
    fn a_part_of_a_field_is_a_field_of_its_own() {
        let names: BTreeSet<&str> = fields(model::find("port").unwrap()).collect();
        let content =
            Content::of(&names, &json!({ "poe": { "enabled": true, "power_mw": 5 }, "link": "up" }));
        assert_eq!(content.to_value(), json!({ "poe.enabled": true }));
        let mut whole = Map::new();
        put(&mut whole, "poe.enabled", json!(false));
        assert_eq!(Value::Object(whole), json!({ "poe": { "enabled": false } }));
    }

    #[test]
    fn the_order_of_most_lists_and_the_spelling_of_numbers_do_not_count() {
        let is_same = |field: &str, one: Value, other: Value| same(field, Some(&one), Some(&other));
        assert!(is_same(
            "members",
            json!([{ "port": "a" }, { "port": "b" }]),
            json!([{ "port": "b" }, { "port": "a" }])
        ));
        assert!(!is_same("dns_servers", json!(["1", "2"]), json!(["2", "1"])));
        assert!(is_same("vlan_id", json!(20), json!(20.0)));
        assert!(is_same("source", json!({ "any": true }), json!({ "any": true, "groups": null })));
        assert!(!is_same("name", json!("a"), json!("A")));
        assert!(same("members", None, Some(&json!([]))), "nothing is nothing");
    }

    #[test]
    fn what_a_reading_did_not_know_cannot_be_asked_for() {
        let of =
            |kind: &str, field: &str, value: Value| is_unknown(model::find(kind).unwrap(), field, &value);
        assert!(of("vlan", "dhcp", json!("unknown")) && !of("vlan", "dhcp", json!("none")));
        assert!(!of("vlan", "name", json!("unknown")), "a name may be any word");
        assert!(of("ssid", "bands", json!(["5", "unknown"])) && !of("ssid", "bands", json!(["5"])));
        assert!(!of("port", "poe.enabled", json!(true)));
    }

    #[test]
    fn a_device_may_say_more_than_was_asked_for() {
        let asked = json!([{ "port": "lan1" }, { "port": "lan2", "tagged": true }]);
        let observed = json!([{ "port": "lan2", "tagged": true }, { "port": "lan1", "tagged": false }]);
        assert!(is_as_asked("members", &asked, Some(&observed)));
        assert!(!is_as_asked("members", &asked, Some(&json!([{ "port": "lan1" }]))));
        assert!(
            is_as_asked("gateway", &Value::Null, None) && !is_as_asked("gateway", &json!("10.0.0.1"), None)
        );
    }
}
