//! An example of every answer, made from its schema: values that fit, in the words that the field's name suggests.

use serde_json::{Map, Value, json};

const PREFIX: &str = "#/components/schemas/";
/// Schemas inside each other; a deeper one is left out, where it may be.
const DEPTH_MAX: u32 = 8;

/// Texts by the names of their fields.
const TEXTS: &[(&str, &str)] = &[
    ("access_token", "eyJhbGciOiJIUzI1NiJ9.e30.signature"),
    ("action", "site.updated"),
    ("actor_name", "ada"),
    ("api_key", "hdl_3f9a1c2e_Zm9yLWV4YW1wbGU"),
    ("area", "firewall"),
    ("category", "device"),
    ("cron", "0 6 * * 1-5"),
    ("description", "What it is for"),
    ("display_name", "Router at the door"),
    ("email", "ada@acme.test"),
    ("environment", "production"),
    ("event_type", "device.offline"),
    ("feature", "openwrt.firewall.rule"),
    ("firmware", "OpenWrt 24.10.0"),
    ("full_name", "Ada Example"),
    ("hash", "4f6c0d7d0c0a4c1f9a1a4a0e5d8f3b21"),
    ("host", "192.0.2.1"),
    ("ip", "198.51.100.7"),
    ("kind", "router"),
    ("label", "Network team"),
    ("mac", "02:00:00:00:00:01"),
    ("message", "The controller did not answer in time"),
    ("method", "POST"),
    ("model", "Example AX3000"),
    ("name", "Head office"),
    ("notes", "Rack 2"),
    ("operation_id", "fabric.log"),
    ("organization_slug", "acme"),
    ("path", "/ubus"),
    ("plan_hash", "4f6c0d7d0c0a4c1f9a1a4a0e5d8f3b21"),
    ("prefix", "hdl_3f9a1c2e"),
    ("product", "OpenWrt"),
    ("refresh_token", "eyJhbGciOiJIUzI1NiJ9.e30.refresh"),
    ("request_id", "01981a7e5c0070008000"),
    ("serial", "SN-0042"),
    ("slug", "head-office"),
    ("source_event", "device.offline"),
    ("subject", "Controller offline"),
    ("summary", "Adds the rule 'Allow-HTTPS'"),
    ("target_type", "site"),
    ("time_zone", "Europe/Berlin"),
    ("title", "Firewall"),
    ("token_type", "bearer"),
    ("url", "https://192.0.2.1"),
    ("user_agent", "curl/8.5.0"),
    ("username", "ada"),
    ("vendor", "openwrt"),
    ("version", "1.0.0"),
];

/// A value that fits the schema; `None` where none can be told from it.
pub(super) fn of(name: &str, schema: &Value, all: &Map<String, Value>, depth: u32) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return of(name, all.get(reference.strip_prefix(PREFIX)?)?, all, depth + 1);
    }
    let given = schema.get("const").or_else(|| schema["enum"].get(0)).or_else(|| schema.get("example"));
    if let Some(given) = given {
        return Some(given.clone());
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            whole.extend(of(name, part, all, depth + 1)?.as_object()?.clone());
        }
        return Some(Value::Object(whole));
    }
    if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|word| schema[*word].as_array()) {
        return choices
            .iter()
            .filter(|one| one["type"] != "null")
            .find_map(|one| of(name, one, all, depth + 1));
    }
    let kinds = schema["type"].as_array();
    let kind = kinds.and_then(|kinds| kinds.iter().find(|kind| **kind != "null")).unwrap_or(&schema["type"]);
    match kind.as_str() {
        Some("object") => object(schema, all, depth),
        Some("array") => array(name, schema, all, depth),
        Some("integer") => Some(json!(bounded(schema, 1))),
        Some("number") => Some(json!(bounded(schema, 12))),
        Some("boolean") => Some(json!(true)),
        Some("string") => text(name, schema),
        Some("null") => Some(Value::Null),
        _ => Some(json!({})),
    }
}

fn object(schema: &Value, all: &Map<String, Value>, depth: u32) -> Option<Value> {
    let required = schema["required"].as_array();
    let mut whole = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        match of(name, property, all, depth + 1) {
            Some(value) => drop(whole.insert(name.clone(), value)),
            None if required.is_some_and(|names| names.iter().any(|one| one == name)) => return None,
            None => {}
        }
    }
    Some(Value::Object(whole))
}

fn array(name: &str, schema: &Value, all: &Map<String, Value>, depth: u32) -> Option<Value> {
    let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).ok()?;
    let singular = name.strip_suffix('s').unwrap_or(name);
    match of(singular, &schema["items"], all, depth + 1) {
        Some(item) => Some(Value::Array(vec![item; least.max(1)])),
        None => (least == 0).then(|| json!([])),
    }
}

fn bounded(schema: &Value, wanted: i64) -> i64 {
    let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
    let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
    wanted.max(least).min(most)
}

fn text(name: &str, schema: &Value) -> Option<Value> {
    let named = TEXTS.iter().find_map(|(known, text)| (*known == name).then_some(*text));
    let text = match schema["format"].as_str() {
        Some("uuid") => "01981a7e-5c00-7000-8000-000000000001",
        Some("date-time") => "2026-11-22T08:00:00Z",
        Some("uri") => "https://heddle.example.net/",
        _ if schema.get("pattern").is_some() => return None,
        _ => named.unwrap_or("example"),
    };
    let length = u64::try_from(text.len()).ok()?;
    let fits = schema["minLength"].as_u64().is_none_or(|least| length >= least)
        && schema["maxLength"].as_u64().is_none_or(|most| length <= most);
    fits.then(|| json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_what_its_schema_asks_for() {
        let all = json!({
            "State": { "type": "string", "enum": ["on", "off"] },
            "Tree": { "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } } } },
        });
        let all = all.as_object().unwrap();
        let schema = json!({ "type": "object", "required": ["id", "state"], "properties": {
            "id": { "type": "string", "format": "uuid" },
            "state": { "$ref": "#/components/schemas/State" },
            "count": { "type": ["integer", "null"], "minimum": 5 },
            "pair": { "type": "array", "minItems": 2, "items": { "type": "boolean" } },
            "odd": { "type": "string", "pattern": "^x{7}$" },
        } });
        let sample = of("", &schema, all, 0).unwrap();
        let id = "01981a7e-5c00-7000-8000-000000000001";
        assert_eq!(sample, json!({ "id": id, "state": "on", "count": 5, "pair": [true, true] }));
        assert!(of("", &all["Tree"], all, 0).is_some(), "a schema that holds itself ends");
    }
}
