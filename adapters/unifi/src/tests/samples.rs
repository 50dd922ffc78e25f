//! Payloads for every feature: made from their schemas, and by hand where fields depend on each other.

use std::sync::OnceLock;

use heddle_sdk::testing::conformance::{Checked, Sample, schema};
use heddle_sdk::{Adapter as _, FaultExt as _, Listing, Method};
use serde_json::{Map, Value, json};

use super::device::{Device, package};
use super::every::short;
use crate::Unifi;

/// Objects of a kind that are asked for at a time.
const LISTED_MAX: u32 = 200;

/// What a feature needs beyond its schema. `!update` and `!other` change something. `!before` is what a person sends
/// before: paths with bodies. `@kind` stands for the id of the first object of a kind, `@kind:name` for that of the one
/// with this name.
fn by_hand(feature: &str) -> Value {
    static SAMPLES: OnceLock<Map<String, Value>> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| serde_json::from_str(include_str!("samples.json")).unwrap());
    samples.get(feature).cloned().unwrap_or_else(|| json!({}))
}

/// A value that a schema takes; another number gives another value where there are several.
fn value(schema: &Value, name: &str, number: i64) -> Value {
    if let Some(options) = schema["enum"].as_array() {
        let known: Vec<&Value> = options.iter().filter(|option| !option.is_null()).collect();
        return known[usize::try_from(number - 1).unwrap() % known.len()].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("string")
        }
        kind => kind.as_str().unwrap_or("string"),
    };
    match kind {
        "boolean" => json!(number % 2 == 1),
        "integer" | "number" => {
            let low = schema["minimum"].as_i64().unwrap_or(1);
            json!((low + number - 1).min(schema["maximum"].as_i64().unwrap_or(i64::MAX)))
        }
        "array" => json!([value(&schema["items"], name, number)]),
        "object" => json!({}),
        _ if name.contains("mac") => json!(format!("02:00:00:00:00:7{number}")),
        _ => json!(format!("sample-{number}")),
    }
}

/// All objects of a kind, as they are shown.
pub(super) fn objects(device: &Device, kind: &str) -> Checked<Vec<Value>> {
    let page = Unifi::list_objects(&device.host(), &Listing::of(kind, LISTED_MAX))
        .map_err(|fault| format!("{kind} is not listed: {}", fault.info().message))?;
    Ok(page.items.iter().filter_map(|item| serde_json::from_str(&item.body).ok()).collect())
}

/// The id of the first object of a kind, or of the one with a name.
fn id_of(device: &Device, told: &str) -> Checked<Value> {
    let (kind, name) = told.split_once(':').map_or((told, None), |(kind, name)| (kind, Some(name)));
    let page = Unifi::list_objects(&device.host(), &Listing::of(kind, LISTED_MAX))
        .map_err(|fault| format!("{kind} is not listed: {}", fault.info().message))?;
    let is_meant = |body: &str| {
        let row: Value = serde_json::from_str(body).unwrap_or_default();
        name.is_none_or(|name| row["name"] == name || row["desc"] == name)
    };
    let mut found = page.items.iter().filter(|item| is_meant(&item.body));
    let locator = found.find_map(|item| item.reference.locators.first());
    locator.map(|locator| json!(locator.value)).ok_or_else(|| format!("there is no {told}"))
}

/// The id of a client of the portal, by the official interface.
fn guest(device: &Device) -> Checked<Value> {
    let all = objects(device, "clients.client")?;
    let found = all.iter().find(|row| row["access"]["type"] == "GUEST");
    found.map(|row| row["id"].clone()).ok_or_else(|| "there is no guest".to_owned())
}

/// The address of the first device of a type.
pub(super) fn mac_of(device: &Device, kind: &str) -> Checked<Value> {
    let word = match kind {
        "gateway" => "udm",
        "switch" => "usw",
        _ => "uap",
    };
    let all = objects(device, "devices.config")?;
    let found = all.iter().find(|row| row["type"] == word && row["adopted"] == true);
    found.map(|row| row["mac"].clone()).ok_or_else(|| format!("there is no {kind}"))
}

/// The same with what stands for objects of the device.
fn resolved(device: &Device, value: &Value) -> Checked<Value> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix('@') {
            Some(kind @ ("gateway" | "switch" | "access-point")) => mac_of(device, kind)?,
            Some("guest") => guest(device)?,
            Some("vpn.server") => objects(device, "vpn.server")?
                .into_iter()
                .find(|row| row["vpn_type"] == "wireguard-server")
                .map(|row| row["name"].clone())
                .ok_or("there is no server of WireGuard")?,
            Some(kind) => id_of(device, kind)?,
            None => value.clone(),
        },
        Value::Object(fields) => {
            let mut out = Map::new();
            for (name, value) in fields {
                out.insert(name.clone(), resolved(device, value)?);
            }
            Value::Object(out)
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| resolved(device, item)).collect::<Checked<_>>()?)
        }
        other => other.clone(),
    })
}

/// The names of the natural key.
pub(super) fn key_of(feature: &Value) -> Vec<String> {
    feature["natural-key"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// What a schema needs, with what is said by hand.
fn needed(feature: &Value, schema: &Value, hand: &Value) -> Value {
    let key = key_of(feature);
    let is_needed = |name: &str| {
        key.iter().any(|one| one == name)
            || schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut out: Map<String, Value> = properties
        .filter(|(name, _)| is_needed(name))
        .map(|(name, schema)| (name.clone(), value(schema, name, 1)))
        .collect();
    let said = hand.as_object().into_iter().flatten().filter(|(name, _)| !name.starts_with('!'));
    out.extend(said.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(out)
}

fn only(names: &[String], of: &Value) -> Map<String, Value> {
    names.iter().filter_map(|name| Some((name.clone(), of.get(name)?.clone()))).collect()
}

/// A path with the id that the official interface has for the site.
fn official(device: &Device, path: &str) -> String {
    let Some((start, rest)) = path.split_once("@site") else { return path.to_owned() };
    let sites = device.person(Method::Get, start.trim_end_matches('/'), &Value::Null);
    let own =
        sites["data"].as_array().into_iter().flatten().find(|site| site["internalReference"] == "default");
    format!("{start}{}{rest}", own.unwrap()["id"].as_str().unwrap())
}

/// Says what to do with a feature.
pub(super) fn prepare(device: &Device, feature: &Value) -> Checked<Sample> {
    let mut hand = by_hand(short(feature));
    let before = hand.as_object_mut().and_then(|fields| fields.remove("!before"));
    for call in before.iter().filter_map(Value::as_array).flatten() {
        let body = resolved(device, &call[1])?;
        device.person(Method::Post, &official(device, call[0].as_str().unwrap()), &body);
    }
    let hand = resolved(device, &hand)?;
    if feature["binding"]["action"].is_object() {
        return Ok(Sample::action(action(device, feature, &hand)?));
    }
    let kind = feature["kind"].as_str().unwrap();
    let create = schema(feature, "create").map(|schema| needed(feature, schema, &hand));
    let names = key_of(feature);
    let (key, current) = match &create {
        Some(create) => (only(&names, create), create.clone()),
        None if names.is_empty() => {
            let shown = Unifi::get_object(&device.host(), kind, None, "settings");
            let shown = shown.map_err(|fault| format!("{kind}: {}", fault.info().message))?;
            (Map::new(), serde_json::from_str(&shown.body).unwrap_or_default())
        }
        None if names.iter().all(|name| hand.get(name).is_some()) => (only(&names, &hand), hand.clone()),
        None => {
            let row =
                objects(device, kind)?.into_iter().next().ok_or_else(|| format!("there is no {kind}"))?;
            let mut key = only(&names, &row);
            key.extend(only(&names, &hand));
            (key, row)
        }
    };
    let of = |word: &str, number: i64| match hand.get(word) {
        Some(Value::Null) => None,
        Some(said) => Some(with(&key, said)),
        None => changed(feature, (&key, &current), number),
    };
    let has_update = schema(feature, "update").is_some();
    Ok(Sample {
        update: of("!update", 2).filter(|_| has_update),
        other: of("!other", 3).filter(|_| has_update),
        create: create.unwrap_or_default(),
        delete: Value::Object(key.clone()),
    })
}

fn with(key: &Map<String, Value>, said: &Value) -> Value {
    let mut out = key.clone();
    out.extend(said.as_object().cloned().unwrap_or_default());
    Value::Object(out)
}

/// An update with another value of one plain field that has a value.
fn changed(feature: &Value, (key, current): (&Map<String, Value>, &Value), number: i64) -> Option<Value> {
    let properties = schema(feature, "update")?["properties"].as_object()?;
    let fields = &package().kind(feature["kind"].as_str()?)["fields"];
    let names = key_of(feature);
    let is_known = |name: &str| current.get(name).is_some_and(|value| !value.is_null());
    let is_plain = |(name, schema): &(&String, &Value)| {
        let kinds = &schema["type"];
        let is = |kind: &str| kinds == kind || kinds.as_array().is_some_and(|all| all.contains(&json!(kind)));
        let is_own = names.contains(name)
            || fields[name.as_str()] == "secret"
            || fields[name.as_str()]["of"].is_array();
        !is_own && is_known(name) && (is("boolean") || schema["enum"].is_array())
    };
    let mut plain = properties.iter().filter(is_plain);
    let (name, schema) = if number == 2 { plain.next()? } else { plain.nth(1)? };
    let known = current.get(name).cloned().unwrap_or(json!(false));
    let new = (1..5).map(|number| value(schema, name, number)).find(|new| *new != known)?;
    Some(with(key, &json!({ name: new })))
}

/// The payload of an action: its object is the first one of the kind.
fn action(device: &Device, feature: &Value, hand: &Value) -> Checked<Value> {
    let schema = schema(feature, "create").ok_or("an action without a schema")?;
    let mut out = needed(feature, schema, hand);
    if let Some(kind) = feature["kind"].as_str() {
        let names = key_of(feature);
        let wanted = only(&names, hand);
        if wanted.len() < names.len() {
            let word = if short(feature).starts_with("wifi.") { "uap" } else { "usw" };
            let all = objects(device, kind)?;
            let fits = |row: &&Value| kind != "devices.config" || row["type"] == word;
            let row = all.iter().find(fits).ok_or_else(|| format!("there is no {kind}"))?;
            for (name, value) in only(&names, row) {
                out[name.as_str()] = value;
            }
        }
    }
    if let Some(file) = out.get_mut("file") {
        let sha256 = device.backup_sha256();
        *file = json!({
            "reference": format!("hdl-file:{sha256}"), "name": "backup.unf", "size_bytes": 64, "sha256": sha256,
        });
    }
    Ok(out)
}
