//! A value that fits a schema: the examples of the API document and of the Fabric's catalogue.

mod pattern;

use serde_json::{Map, Value, json};

/// Schemas inside each other; a deeper one is left out, where it may be.
const DEPTH_MAX: u32 = 12;
/// Items of an array that asks for many.
const ITEMS_MAX: u64 = 4;

/// Texts by the names of their fields.
const NAMED: &[(&str, &str)] = &[
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
    ("feature", "acme.firewall.rule"),
    ("firmware", "AcmeOS 24.10.0"),
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
    ("path", "/api/rules"),
    ("permission", "device:read"),
    ("plan_hash", "4f6c0d7d0c0a4c1f9a1a4a0e5d8f3b21"),
    ("prefix", "hdl_3f9a1c2e"),
    ("product", "AcmeOS"),
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
    ("vendor", "acme"),
    ("version", "1.0.0"),
];

/// Words of the field, tried where the name says nothing or its text does not fit.
const WORDS: &[&str] = &[
    "example",
    "lan",
    "guest",
    "192.0.2.10",
    "192.0.2.0/24",
    "2001:db8::10",
    "2001:db8::/64",
    "02:00:00:00:00:01",
    "8443",
    "8000-8080",
    "443",
    "10",
    "1",
    "tcp",
    "12h",
    "30m",
    "08:00",
    "08:00:00",
    "2026-01-31",
    "example.org",
    "https://example.org/image.bin",
    "/etc/config/network",
    "Guest-network",
    "eth0",
    "br-lan",
    "lan1:u*",
    "0x1",
    "5/second",
    "10/minute",
    "UTC",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "Europe/Berlin",
    "DE",
    "01900000-0000-7000-8000-000000000001",
    "Correct-Horse-7-Battery",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "YNxAJwOoy4XKpC2bDvVbF4fI1cNVkDPLsjmuG4lQmGg=",
];

/// Which properties of an object a sample has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What is required; everything where nothing is.
    Required,
    /// Everything that is declared.
    Whole,
}

/// Makes samples of schemas whose references one document resolves.
pub(crate) struct Sampler<'a> {
    resolve: &'a dyn Fn(&str) -> Option<&'a Value>,
    extent: Extent,
}

/// A sample of a schema that stands alone, for all that it declares or requires.
pub fn of(schema: &Value, extent: Extent) -> Value {
    let resolve = |reference: &str| schema.pointer(reference.trim_start_matches('#'));
    Sampler::new(&resolve, extent).of("", schema).unwrap_or_else(|| json!({}))
}

impl<'a> Sampler<'a> {
    /// `resolve` finds the schema that a `$ref` names.
    pub(crate) fn new(resolve: &'a dyn Fn(&str) -> Option<&'a Value>, extent: Extent) -> Self {
        Self { resolve, extent }
    }

    /// A value that fits the schema of a field of this name; `None` where none can be told from it.
    pub(crate) fn of(&self, name: &str, schema: &Value) -> Option<Value> {
        self.made(name, schema, 0)
    }

    fn made(&self, name: &str, schema: &Value, depth: u32) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            return self.made(name, (self.resolve)(reference)?, depth + 1);
        }
        if let Some(given) = given(name, schema) {
            return Some(given);
        }
        if let Some(parts) = schema["allOf"].as_array().filter(|_| schema.get("properties").is_none()) {
            let mut whole = Map::new();
            for part in parts {
                whole.extend(self.made(name, part, depth + 1)?.as_object()?.clone());
            }
            return Some(Value::Object(whole));
        }
        let is_object = schema.get("properties").is_some() || schema["type"] == "object";
        let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema[*word].as_array());
        if let Some(choices) = choices.filter(|_| !is_object) {
            let mut choices = choices.iter().filter(|one| one["type"] != "null");
            return choices.find_map(|one| self.made(name, one, depth + 1));
        }
        match kind(schema) {
            Some("object") => self.object(schema, depth),
            None if is_object => self.object(schema, depth),
            Some("array") => self.array(name, schema, depth),
            Some("integer" | "number") => Some(number(schema)),
            Some("boolean") => Some(json!(true)),
            Some("string") => text(name, schema),
            Some("null") => Some(Value::Null),
            _ => Some(json!({})),
        }
    }

    fn object(&self, schema: &Value, depth: u32) -> Option<Value> {
        let Some(fields) = schema["properties"].as_object() else { return Some(json!({})) };
        let required = names(&schema["required"]);
        let wanted = wanted(schema, fields);
        let is_wanted =
            |name: &str| self.extent == Extent::Whole || wanted.is_empty() || wanted.contains(&name);
        let mut whole = Map::new();
        for (name, field) in fields.iter().filter(|(name, _)| is_wanted(name)) {
            match self.made(name, field, depth + 1) {
                Some(value) => drop(whole.insert(name.clone(), value)),
                None if required.contains(&name.as_str()) => return None,
                None => {}
            }
        }
        Some(Value::Object(whole))
    }

    fn array(&self, name: &str, schema: &Value, depth: u32) -> Option<Value> {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let count = usize::try_from(least.clamp(1, ITEMS_MAX)).ok()?;
        let singular = name.strip_suffix('s').unwrap_or(name);
        let item = schema.get("items").and_then(|items| self.made(singular, items, depth + 1));
        if let (Some(Value::String(first)), true) = (&item, count > 1 && schema["uniqueItems"] == true) {
            return distinct(first, &schema["items"], count);
        }
        match item {
            Some(item) => Some(Value::Array(vec![item; count])),
            None => (least == 0).then(|| json!([])),
        }
    }
}

/// What the schema itself says; of many words the one that goes with the name.
fn given(name: &str, schema: &Value) -> Option<Value> {
    let given = schema.get("const").or_else(|| schema["examples"].get(0)).or_else(|| schema.get("example"));
    let default = || schema.get("default").filter(|value| !value.is_null());
    let words = schema["enum"].as_array();
    let of_name = || words?.iter().find(|word| named(name).is_some_and(|text| *word == text));
    given.or_else(default).or_else(of_name).or_else(|| words?.first()).cloned()
}

fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::Array(words) => words.iter().filter_map(Value::as_str).find(|word| *word != "null"),
        word => word.as_str(),
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The fields that must be there: what is required, one of several ways to fill the object in, and as many as it needs.
fn wanted<'a>(schema: &'a Value, fields: &'a Map<String, Value>) -> Vec<&'a str> {
    let mut wanted = names(&schema["required"]);
    for choice in ["oneOf", "anyOf"] {
        wanted.extend(names(&schema[choice][0]["required"]));
    }
    let least = schema["minProperties"].as_u64().and_then(|least| usize::try_from(least).ok()).unwrap_or(0);
    // Read-only fields cannot be set, so they do not count towards `minProperties`.
    for (name, _) in fields.iter().filter(|(_, field)| field["readOnly"] != true) {
        if !wanted.is_empty() && wanted.len() < least && !wanted.contains(&name.as_str()) {
            wanted.push(name);
        }
    }
    wanted
}

fn number(schema: &Value) -> Value {
    let wanted = json!(1);
    let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
    if least.is_some_and(|least| least > 1.0) {
        return schema["minimum"].clone();
    }
    if most.is_some_and(|most| most < 1.0) { schema["maximum"].clone() } else { wanted }
}

fn text(name: &str, schema: &Value) -> Option<Value> {
    match schema["format"].as_str() {
        Some("uuid") => return Some(json!("01981a7e-5c00-7000-8000-000000000001")),
        Some("date-time") => return Some(json!("2026-11-22T08:00:00.000000Z")),
        Some("uri") => return Some(json!("https://heddle.example.net/")),
        _ => {}
    }
    let named = named(name);
    let fits = jsonschema::validator_for(schema).ok()?;
    let mut words = named.into_iter().chain(WORDS.iter().copied()).map(|text| json!(text));
    let of_pattern = || {
        pattern::texts(schema["pattern"].as_str()?)
            .into_iter()
            .map(|text| json!(text))
            .find(|text| fits.is_valid(text))
    };
    words.find(|text| fits.is_valid(text)).or_else(of_pattern)
}

fn named(name: &str) -> Option<&'static str> {
    NAMED.iter().find_map(|(known, text)| (*known == name).then_some(*text))
}

/// So many different texts that fit.
fn distinct(first: &str, schema: &Value, count: usize) -> Option<Value> {
    let fits = jsonschema::validator_for(schema).ok()?;
    let others = WORDS.iter().filter(|word| **word != first && fits.is_valid(&json!(word)));
    let texts: Vec<&str> = std::iter::once(first).chain(others.copied()).take(count).collect();
    (texts.len() == count).then(|| json!(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_fits_its_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "format": "uuid" },
                "port": { "type": "string", "pattern": "^[0-9]+-[0-9]+$" },
                "kind": { "enum": ["a", "b"] },
                "count": { "type": ["integer", "null"], "minimum": 3 },
                "deep": { "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/x" } },
                "url": { "type": "string", "examples": ["https://hooks.example.org/x"] },
                "more": { "type": "string" },
                "apart": { "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "string" } },
                "odd": { "type": "string", "pattern": "^x{7}$" },
                "long": { "type": "string", "pattern": "^x{700}$" },
                "few": {
                    "type": "object", "required": ["one"], "minProperties": 2,
                    "properties": { "alive": { "readOnly": true }, "one": {}, "two": { "type": "integer" } },
                },
            },
            "required": ["id", "port", "kind", "count", "deep", "url", "few"],
            "additionalProperties": false,
            "$defs": { "x": { "type": "object", "properties": { "on": { "type": "boolean" } }, "required": ["on"] } },
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (some, whole) = (of(&schema, Extent::Required), of(&schema, Extent::Whole));
        assert!(validator.is_valid(&some) && validator.is_valid(&whole), "{some} {whole}");
        assert_eq!((some.get("more"), whole["more"].is_string()), (None, true));
        assert_eq!(some["few"], json!({ "one": {}, "two": 1 }));
        assert_eq!(some["deep"], json!([{ "on": true }, { "on": true }]));
        assert_eq!((&whole["odd"], whole.get("long")), (&json!("xxxxxxx"), None));
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let all = json!({ "Tree": {
            "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "Tree" } } },
        } });
        let resolve = |name: &str| all.get(name);
        assert!(Sampler::new(&resolve, Extent::Whole).of("", &all["Tree"]).is_some());
    }
}
