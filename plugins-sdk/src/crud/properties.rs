//! Property strings: `virtio=BC:24:11:00:00:01,bridge=vmbr0`, whose parts a payload has as an object of texts.

use serde_json::{Map, Value};

use super::binding::Field;
use super::field::plain;

/// The parts of a property string; a first part without a name has the one that the field gives it.
pub(crate) fn parse(field: &Field, text: &str) -> Value {
    let mut parts = Map::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = match (part.split_once('='), &field.first) {
            (Some(named), _) => named,
            (None, Some(first)) => (first.as_str(), part),
            (None, None) => (part, ""),
        };
        parts.insert(name.to_owned(), Value::from(value));
    }
    if parts.is_empty() { Value::Null } else { Value::Object(parts) }
}

/// The same where the vendor answers the parts already parsed.
pub(crate) fn of_object(parts: &Map<String, Value>) -> Value {
    let single =
        parts.iter().filter(|(_, value)| !value.is_array() && !value.is_object() && !value.is_null());
    let parts: Map<String, Value> =
        single.map(|(name, value)| (name.clone(), Value::from(plain(value)))).collect();
    if parts.is_empty() { Value::Null } else { Value::Object(parts) }
}

/// The property string of an object; the part that needs no name stands first.
pub(crate) fn print(field: &Field, parts: &Map<String, Value>) -> String {
    let is_first = |name: &str| field.first.as_deref() == Some(name);
    let first = parts.iter().filter(|(name, _)| is_first(name)).map(|(_, value)| plain(value));
    let others = parts.iter().filter(|(name, _)| !is_first(name)).map(|(name, value)| {
        let value = plain(value);
        if value.is_empty() { name.clone() } else { format!("{name}={value}") }
    });
    first.chain(others).collect::<Vec<_>>().join(",")
}

/// The known parts with those of a payload laid over them; `null` takes a part away.
pub(crate) fn laid_over(known: Option<&Value>, asked: &Value) -> Value {
    let Value::Object(asked) = asked else { return asked.clone() };
    let mut parts = known.and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, value) in asked {
        match value {
            Value::Null => drop(parts.remove(name)),
            value => drop(parts.insert(name.clone(), Value::from(plain(value)))),
        }
    }
    if parts.is_empty() { Value::Null } else { Value::Object(parts) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(first: Option<&str>) -> Field {
        let form = json!({ "type": "properties", "first": first });
        serde_json::from_value(form).expect("a field")
    }

    #[test]
    fn parts_are_read_and_written() {
        let disk = field(Some("file"));
        let parts = parse(&disk, "local:vm-1-disk-0,size=32G,ssd=1");
        assert_eq!(parts, json!({ "file": "local:vm-1-disk-0", "size": "32G", "ssd": "1" }));
        assert_eq!(print(&disk, parts.as_object().expect("an object")), "local:vm-1-disk-0,size=32G,ssd=1");
        assert_eq!(parse(&field(None), ""), Value::Null);
    }

    #[test]
    fn a_payload_changes_the_parts_that_it_names() {
        let known = json!({ "virtio": "BC:24:11:00:00:01", "bridge": "vmbr0", "tag": "20" });
        let asked = json!({ "tag": null, "firewall": true });
        let wanted = json!({ "virtio": "BC:24:11:00:00:01", "bridge": "vmbr0", "firewall": "1" });
        assert_eq!(laid_over(Some(&known), &asked), wanted);
        assert_eq!(laid_over(Some(&known), &Value::Null), Value::Null);
    }
}
