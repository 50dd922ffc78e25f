//! Payloads for every feature: made from their schemas, and by hand where fields depend on each other.

use heddle_sdk::testing::conformance::{Checked, Sample, holds, schema};
use serde_json::{Map, Value, json};

use super::device::Device;
use super::every::short;
use super::world::{Place, filled, kind, place, row, text, with_filled};

/// Fields that need more than their schema says, by feature. `@kind:field` is a field of the first row of a kind.
fn by_hand(feature: &str) -> Value {
    match feature {
        "switch.network" => {
            json!({ "vlan": 77, "purpose": 0, "!update": { "domain": "a.example" }, "!other": { "domain": "b.example" } })
        }
        "switch.port-applied-profile" => {
            json!({ "!update": { "profileId": "@switch.port-profile:id" }, "!other": null })
        }
        "system.dhcp-reservation" => json!({ "netId": "@switch.network:id" }),
        "system.site" => json!({ "!update": { "address": "a street" }, "!other": { "address": "a lane" } }),
        "system.device-account" => json!({
            "password": "a-long-password", "!update": { "username": "other", "password": "a-long-password" },
        }),
        "routing.ospf-process" | "routing.ospf-interface" => json!({ "mac": "3C-6A-D2-00-01-20" }),
        "vpn.ssl-user" => json!({ "!update": { "status": true } }),
        _ => json!({}),
    }
}

/// Rows of kinds that need more than their facts say.
pub(super) fn row_by_hand(kind: &str) -> Value {
    match kind {
        "switch.qos-rule" => json!({ "status": true }),
        "olt.onu-auth" => json!({ "adminStatus": "ACTIVATE" }),
        "switch.stack-vlan-interface" => {
            json!({ "dhcpServer": { "leasetime": 120, "ip": "192.0.2.1", "netmask": "255.255.255.0" } })
        }
        _ => json!({}),
    }
}

/// The same with what stands for fields of rows.
fn resolved(device: &Device, value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('@') => {
            let (id, field) = text[1..].split_once(':').unwrap();
            let place = place(device, kind(id)).unwrap();
            row(device, id, &place, &Value::Null).unwrap()[field].clone()
        }
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), resolved(device, value))).collect(),
        ),
        Value::Array(items) => items.iter().map(|item| resolved(device, item)).collect(),
        other => other.clone(),
    }
}

pub(super) fn hand(device: &Device, feature: &str) -> Value {
    resolved(device, &by_hand(feature))
}

/// A value that a schema takes; another number gives another value where there are several.
pub(super) fn value(schema: &Value, name: &str, number: i64) -> Value {
    if let Some(options) = schema["enum"].as_array() {
        let at = usize::try_from(number - 1).unwrap() % options.len();
        return options[at].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if kinds.contains(&json!("object")) => "any",
        Value::Array(_) => "string",
        kind => kind.as_str().unwrap_or("any"),
    };
    match kind {
        "boolean" => json!(number % 2 == 0),
        "integer" | "number" => {
            let low = schema["minimum"].as_i64().unwrap_or(1);
            let high = schema["maximum"].as_i64().unwrap_or(i64::MAX);
            json!((low + number - 1).min(high))
        }
        "array" => json!([value(&schema["items"], name, number)]),
        "object" => object(schema, number),
        "string" => json!(words(schema, name, number)),
        _ => json!({ "sample": number }),
    }
}

fn words(schema: &Value, name: &str, number: i64) -> String {
    let lower = name.to_lowercase();
    let text = match () {
        () if lower.ends_with("mac") || lower.ends_with("macs") || lower.contains("macaddress") => {
            format!("02-00-00-00-00-7{number}")
        }
        () if lower == "ip" || lower.ends_with("ip") || lower.ends_with("ipaddr") => {
            format!("192.0.2.{}", 10 + number)
        }
        () => format!("sample-{number}"),
    };
    let bound = |word: &str| schema[word].as_u64().and_then(|bound| usize::try_from(bound).ok());
    let (low, high) = (bound("minLength").unwrap_or(0), bound("maxLength").unwrap_or(usize::MAX));
    let text: String = text.chars().rev().take(high).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{}{text}", "x".repeat(low.saturating_sub(text.chars().count())))
}

/// What an object needs, and its first plain field; everything that it takes, for the first number.
fn object(schema: &Value, number: i64) -> Value {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut first = true;
    let mut out = Map::new();
    for (name, schema) in properties {
        let is_plain = schema["type"] != "object" && schema["type"] != "array";
        if required.contains(&name.as_str()) || first && is_plain || number == 1 {
            first &= !is_plain;
            out.insert(name.clone(), value(schema, name, number));
        }
    }
    Value::Object(out)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

pub(super) fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

fn lay(under: &mut Value, over: &Value) {
    for (name, value) in over.as_object().into_iter().flatten() {
        if !name.starts_with('!') {
            under[name.as_str()] = value.clone();
        }
    }
}

/// The names of the natural key.
pub(super) fn key_of(feature: &Value) -> Vec<String> {
    feature["natural-key"].as_array().into_iter().flatten().map(text).collect()
}

/// The parts of a natural key that name parents.
pub(super) fn parents(feature: &Value, place: &Place) -> Value {
    let known = key_of(feature).into_iter().filter_map(|name| Some((name.clone(), json!(place.get(&name)?))));
    Value::Object(known.collect())
}

/// What a schema needs, with the parents and what is said by hand.
pub(super) fn needed(device: &Device, feature: &Value, schema: &Value, place: &Place) -> Value {
    let key = key_of(feature);
    let own = properties(schema).filter(|(name, _)| is_required(schema, name) || key.contains(name));
    let mut out: Value = Value::Object(own.map(|(name, one)| (name.clone(), value(one, name, 1))).collect());
    readable(feature, &mut out);
    lay(&mut out, &parents(feature, place));
    lay(&mut out, &hand(device, short(feature)));
    out
}

/// Takes out what is inside of objects and cannot be read back.
fn readable(feature: &Value, payload: &mut Value) {
    let Some(id) = feature["kind"].as_str() else { return };
    let binding = kind(id);
    let Some(shape) = super::world::shown(binding) else { return };
    for (name, value) in payload.as_object_mut().into_iter().flatten() {
        if binding["fields"][name.as_str()]["unread"] == true {
            continue;
        }
        if let Some(inner) = super::world::inside(&shape, name) {
            prune(&inner, value);
        }
    }
}

fn prune(shape: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| prune(shape, item)),
        Value::Object(fields) if super::world::is_described(shape) => {
            fields.retain(|name, _| super::world::inside(shape, name).is_some());
            for (name, value) in fields.iter_mut() {
                prune(&super::world::inside(shape, name).unwrap(), value);
            }
        }
        _ => {}
    }
}

/// Makes what a feature needs, and says what to do with it.
pub(super) fn prepare(device: &Device, feature: &Value) -> Checked<Sample> {
    let id = feature["kind"].as_str().unwrap();
    let binding = kind(id);
    let place = place(device, binding)?;
    let create = schema(feature, "create").map(|schema| needed(device, feature, schema, &place));
    let mut current = create.clone().unwrap_or_else(|| json!({}));
    let key = match (&create, binding["list"].is_object()) {
        (Some(create), _) => only_key(feature, create),
        (None, true) => {
            let row = row(device, id, &place, &Value::Null)?;
            let mut key = parents(feature, &place);
            let own = key_of(feature).into_iter().filter(|name| !place.contains_key(name));
            lay(&mut key, &Value::Object(own.map(|name| (name.clone(), row[&name].clone())).collect()));
            if id == "switch.vlan-interface" {
                // The simulator keeps a row of its own from the first write on.
                let path =
                    filled(feature["binding"]["update"]["path"].as_str().unwrap(), &place, &text(&row["id"]));
                device.edit("POST", &path, &row)?;
            }
            current = row;
            key
        }
        (None, false) => {
            current = save_once(device, feature, &place)?;
            parents(feature, &place)
        }
    };
    let (mut update, mut other) = (None, None);
    if let Some(schema) = schema(feature, "update") {
        let hand = hand(device, short(feature));
        update = changed(feature, schema, (&key, &[&current]), hand.get("!update"));
        let after = update.clone().unwrap_or_default();
        other = changed(feature, schema, (&key, &[&current, &after]), hand.get("!other"));
    }
    Ok(Sample { create: create.unwrap_or_default(), update, other, delete: key })
}

fn only_key(feature: &Value, payload: &Value) -> Value {
    let names = key_of(feature).into_iter();
    Value::Object(names.filter_map(|name| Some((name.clone(), payload.get(&name)?.clone()))).collect())
}

/// An update with another value of one field that can be read.
fn changed(
    feature: &Value,
    schema: &Value,
    (key, known): (&Value, &[&Value]),
    by_hand: Option<&Value>,
) -> Option<Value> {
    let binding = kind(feature["kind"].as_str().unwrap());
    let mut out = key.clone();
    for (name, one) in properties(schema).filter(|(name, _)| is_required(schema, name)) {
        if out.get(name).is_none() {
            out[name.as_str()] = value(one, name, 1);
        }
    }
    if let Some(own) = by_hand {
        lay(&mut out, own);
        return own.is_object().then_some(out);
    }
    let names = key_of(feature);
    let can_be_seen = |name: &String| binding["fields"][name.as_str()]["unread"] != true;
    let free = properties(schema).filter(|(name, _)| !names.contains(name) && can_be_seen(name));
    let new = |(name, one): (&String, &Value)| {
        let is_known = |known: &Value, new: &Value| known.get(name).is_some_and(|known| holds(known, new));
        let is_new = |new: &Value| known.iter().all(|known| !is_known(known, new));
        // What was never written is answered like this.
        let is_blank = |new: &Value| {
            let blank = [json!({}), json!([]), json!(false), json!(0), json!("")];
            blank[..2].contains(new) || known[0].get(name).is_none() && blank.contains(new)
        };
        let values = (2..6).map(|number| value(one, name, number));
        values.into_iter().find(|new| is_new(new) && !is_blank(new)).map(|new| (name.clone(), new))
    };
    let (name, value) = free.into_iter().find_map(new)?;
    out[name.as_str()] = value;
    readable(feature, &mut out);
    Some(out)
}

/// Settings as they are after a user saved them.
fn save_once(device: &Device, feature: &Value, place: &Place) -> Checked<Value> {
    let update = &feature["binding"]["update"];
    let schema = schema(feature, "update").unwrap();
    let names = key_of(feature);
    let own = properties(schema).filter(|(name, _)| !names.contains(name));
    let mut body = Value::Object(own.map(|(name, one)| (name.clone(), value(one, name, 1))).collect());
    readable(feature, &mut body);
    lay(&mut body, &hand(device, short(feature)));
    lay(&mut body, &with_filled(&update["with"], place, ""));
    let path = filled(update["path"].as_str().unwrap(), place, "");
    device.edit(update["method"].as_str().unwrap_or("POST"), &path, &body)?;
    Ok(body)
}
