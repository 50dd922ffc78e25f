//! Schemas of the payloads of changes in the words of the model, made of a kind's schema and its `x-writes`.

use serde_json::{Map, Value, json};

/// Longest key of an object, in characters.
const KEY_CHARS_MAX: u32 = 300;

/// The schema of a verb's payload; none where the kind does not know the verb.
///
/// A create takes no key, because the vendor makes it. In an update, `null` empties a field that a create does not need.
pub(super) fn schema(document: &Value, verb: &str) -> Option<Value> {
    let declared = document["x-writes"].get(verb)?;
    let words = |list: &str| declared[list].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_create = verb == "create";
    let needed: Vec<&str> = document["x-writes"]["create"]["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut properties = Map::new();
    if !is_create {
        let about = "The object, by its key as lists have it.";
        let key =
            json!({ "type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "description": about });
        properties.insert("key".to_owned(), key);
    }
    for field in words("fields") {
        let can_be_emptied = !is_create && !needed.contains(&field);
        add(&mut properties, document, field, can_be_emptied);
    }
    let required: Vec<&str> = if is_create { words("required").collect() } else { vec!["key"] };
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    });
    if verb == "update" {
        schema["minProperties"] = json!(2);
    }
    if let Some(definitions) = document.get("$defs") {
        schema["$defs"] = definitions.clone();
    }
    Some(schema)
}

/// Adds a field, or a field of a field, with what may be asked of it.
fn add(properties: &mut Map<String, Value>, document: &Value, field: &str, can_be_emptied: bool) {
    let Some((outer, inner)) = field.split_once('.') else {
        let asked = asked(&document["properties"][field]);
        let asked = if can_be_emptied { nullable(asked) } else { asked };
        properties.insert(field.to_owned(), asked);
        return;
    };
    let whole = properties
        .entry(outer.to_owned())
        .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
    if let Value::Object(parts) = &mut whole["properties"] {
        add(parts, &document["properties"][outer], inner, false);
    }
}

/// The same schema, where `null` empties the field. Its marks stay where they are looked for: at the field.
fn nullable(mut schema: Value) -> Value {
    let Some(kind) = schema.get_mut("type") else {
        return json!({ "anyOf": [schema, { "type": "null" }] });
    };
    *kind = json!([kind.take(), "null"]);
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
    schema
}

/// What a field may be asked to be: nobody asks for `unknown`.
fn asked(property: &Value) -> Value {
    let mut asked = property.clone();
    forget_unknown(&mut asked);
    asked
}

fn forget_unknown(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            if let Some(Value::Array(words)) = parts.get_mut("enum") {
                words.retain(|word| word != "unknown");
            }
            parts.values_mut().for_each(forget_unknown);
        }
        Value::Array(parts) => parts.iter_mut().for_each(forget_unknown),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Schema;
    use crate::model::find;

    fn fits(kind: &str, verb: &str, payload: &serde_json::Value) -> bool {
        let schema = find(kind).unwrap().payload_schema(verb).unwrap();
        Schema::compile(&schema).unwrap().validator().is_valid(payload)
    }

    #[test]
    fn a_payload_has_what_its_verb_takes() {
        for (kind, verb, payload, is_taken) in [
            ("vlan", "create", json!({ "vlan_id": 20, "name": "guests" }), true),
            ("vlan", "create", json!({ "name": "guests" }), false),
            ("vlan", "create", json!({ "vlan_id": 20, "key": "20" }), false),
            ("vlan", "update", json!({ "key": "20", "name": null }), true),
            ("vlan", "update", json!({ "key": "20", "vlan_id": null }), false),
            ("vlan", "update", json!({ "key": "20" }), false),
            ("vlan", "update", json!({ "key": "20", "dhcp": "unknown" }), false),
            ("vlan", "delete", json!({ "key": "20" }), true),
            ("vlan", "delete", json!({ "key": "20", "name": "guests" }), false),
            ("port", "update", json!({ "key": "1", "poe": { "enabled": false } }), true),
            ("port", "update", json!({ "key": "1", "poe": { "power_mw": 1 } }), false),
            ("port", "update", json!({ "key": "1", "link": "up" }), false),
            ("port", "poe-cycle", json!({ "key": "1" }), true),
            ("firewall-rule", "create", json!({ "action": "drop", "source": { "any": true } }), true),
            ("ssid", "create", json!({ "name": "x", "security": "open", "bands": ["unknown"] }), false),
        ] {
            assert_eq!(fits(kind, verb, &payload), is_taken, "{kind} {verb} {payload}");
        }
        assert!(find("vlan").unwrap().payload_schema("reboot").is_none());
        assert!(find("neighbour").unwrap().payload_schema("create").is_none());
    }

    #[test]
    fn secrets_stay_marked() {
        let schema = find("ssid").unwrap().payload_schema("update").unwrap();
        let passphrase = &schema["properties"]["passphrase"];
        assert_eq!((&passphrase["writeOnly"], &passphrase["type"][1]), (&json!(true), &json!("null")));
    }
}
