//! Payloads for every feature: made from what the simulated router takes, and by hand where fields depend on each other.

use std::sync::OnceLock;

use heddle_sdk::testing::conformance::{Checked, Sample, schema};
use heddle_sdk::{Adapter as _, FaultExt, Listing, Operation, Stage};
use serde_json::{Map, Value, json};

use super::device::{Device, package};
use super::every::short;
use super::{by_hand, change, plan, run};
use crate::Mikrotik;

/// What the simulated router knows of fields: their types, and which rows they name.
fn types() -> &'static Value {
    static TYPES: OnceLock<Value> = OnceLock::new();
    TYPES.get_or_init(|| {
        serde_json::from_str(include_str!("../../../../tests/labs/mikrotik/facts.json")).unwrap()
    })
}

/// Values that types take; another one for each try.
fn by_type(kind: &str) -> &'static [&'static str] {
    match kind {
        "ip" | "ip4" => &["192.0.2.7", "192.0.2.8"],
        "ip6" => &["2001:db8::7", "2001:db8::8"],
        "prefix4" => &["192.0.2.0/24", "198.51.100.0/24"],
        "prefix6" => &["2001:db8:7::/48", "2001:db8:8::/48"],
        "range4" => &["192.0.2.7", "192.0.2.8"],
        "mac" => &["02:00:00:00:00:77", "02:00:00:00:00:78"],
        _ => &["sample", "other"],
    }
}

fn kind_of(feature: &Value) -> &'static Value {
    package().kind(feature["kind"].as_str().unwrap_or_default())
}

/// The menu of a kind.
fn menu_of(kind: &Value) -> &str {
    let path = kind["list"]["path"].as_str().or(kind["get"]["path"].as_str()).unwrap_or_default();
    path.trim_start_matches("/rest/")
}

/// What the simulated router knows of a field of a feature.
fn fact(feature: &Value, field: &str) -> &'static Value {
    let kind = kind_of(feature);
    let place = kind["fields"][field]["at"].as_str().unwrap_or(field);
    let fields = types()[menu_of(kind)]["fields"].as_array();
    let found = fields.and_then(|fields| fields.iter().find(|known| known["name"] == place));
    found.unwrap_or(&Value::Null)
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// The name of a row of a menu that a field names; one that is made where there is none.
fn linked(device: &Device, menu: &str, nth: usize) -> Option<String> {
    let names = || -> Vec<String> {
        let is_own = |row: &Value| row["dynamic"] != "true" && row["builtin"] != "true";
        let rows = device.rows(menu).into_iter().filter(is_own);
        rows.filter_map(|row| row["name"].as_str().or(row["default-name"].as_str()).map(str::to_owned))
            .collect()
    };
    let mut all = names();
    if all.is_empty() {
        let path = format!("/rest/{menu}");
        let mut kinds = package().description()["kinds"].as_array().unwrap().iter();
        let of_menu = kinds.find(|kind| kind["binding"]["list"]["path"] == path.as_str());
        provide(device, of_menu?["id"].as_str()?, 1);
        all = names();
    }
    all.get(nth.min(all.len().saturating_sub(1))).cloned()
}

/// A value for a field; `nth` asks for another one.
fn value(device: &Device, feature: &Value, field: &str, schema: &Value, nth: usize) -> Option<Value> {
    let fact = fact(feature, field);
    let one = schema["anyOf"].as_array().map_or(schema, |all| &all[0]);
    let types: Vec<&str> = match &one["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    let text = |schema: &Value| -> Option<String> {
        if let Some(options) = schema["enum"].as_array() {
            let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
            return options.get(nth.min(options.len() - 1)).map(|option| (*option).to_owned());
        }
        if let Some(options) = fact["options"].as_array().filter(|options| !options.is_empty()) {
            return options.get(nth.min(options.len() - 1)).and_then(Value::as_str).map(str::to_owned);
        }
        if let Some(menu) = fact["link"].as_str() {
            return linked(device, menu, nth);
        }
        let kind = fact["type"].as_str().unwrap_or("text");
        let all: Vec<&str> = match kind {
            "list" => by_type(match fact["item"].as_str().unwrap_or_default() {
                "range" | "integer" => "port",
                "ip-address" => "ip",
                "ipv6-address" => "ip6",
                "mac-address" => "mac",
                "ip-range" => "range4",
                _ => "text",
            })
            .to_vec(),
            kind => by_type(kind).to_vec(),
        };
        let is_number = matches!(fact["item"].as_str(), Some("range" | "integer"));
        let all = if is_number { vec!["10", "11"] } else { all };
        let fitting: Vec<&&str> = all.iter().filter(|text| is_valid(schema, &json!(text))).collect();
        fitting.get(nth.min(fitting.len().saturating_sub(1))).map(|text| (**text).to_owned())
    };
    match *types.first()? {
        "boolean" => Some(json!(nth.is_multiple_of(2))),
        "integer" | "number" => {
            let bounds = fact["range"].as_str().and_then(|range| range.split_once(".."));
            let low = bounds.and_then(|(low, _)| heddle_sdk::crud::seconds(low)).filter(|low| *low > 1.0);
            #[expect(clippy::cast_possible_truncation, reason = "bounds of the vendor are whole seconds")]
            let low = low.map(|low| low.ceil() as i64).or(one["minimum"].as_i64()).or(fact["min"].as_i64());
            Some(json!(low.unwrap_or(1).max(1) + i64::try_from(nth).unwrap()))
        }
        "array" => text(&one["items"]).map(|text| json!([text])),
        _ => text(one).map(Value::from),
    }
}

/// What a feature is told of one of its objects: by hand first, then by its type.
fn required(feature: &Value, word: &str) -> Vec<String> {
    let all = schema(feature, word).and_then(|schema| schema["required"].as_array());
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn keys(feature: &Value) -> Vec<&str> {
    feature["natural-key"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The payloads of a feature, and what they need on the device.
pub(super) fn prepare(device: &Device, feature: &Value) -> Checked<Sample> {
    let hand = by_hand::fields(short(feature));
    for (menu, command, args) in by_hand::needed(short(feature)) {
        device.person(menu, command, &args);
        // What takes a moment is done.
        device.lab().advance(std::time::Duration::from_secs(2));
    }
    let has = |word: &str| schema(feature, word).is_some();
    if feature["binding"]["action"].is_object() {
        return action(device, feature, &hand).map(Sample::action);
    }
    if !has("create") {
        return existing(device, feature, &hand);
    }
    made(device, feature, &hand)
}

/// The payload of a create; of an object that is not there yet.
fn created(device: &Device, feature: &Value, hand: &Value) -> Checked<Map<String, Value>> {
    let kind = feature["kind"].as_str().unwrap_or_default();
    let known: Vec<String> = listed(device, kind).into_iter().map(|object| object.reference.key).collect();
    let key = |create: &Map<String, Value>| {
        let text = |name: &&str| match create.get(*name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        keys(feature).iter().map(text).collect::<Vec<_>>().join(":")
    };
    let mut found = created_by(device, feature, hand, 0);
    for nth in 1..6 {
        if !found.as_ref().is_ok_and(|create| known.contains(&key(create))) {
            break;
        }
        found = created_by(device, feature, hand, nth);
    }
    found
}

fn created_by(device: &Device, feature: &Value, hand: &Value, nth: usize) -> Checked<Map<String, Value>> {
    let properties = schema(feature, "create").unwrap()["properties"].as_object().unwrap().clone();
    let mut create = Map::new();
    let mut needed = required(feature, "create");
    needed.extend(keys(feature).iter().map(|key| (*key).to_owned()).take(1));
    for field in needed {
        let found = hand.get(&field).cloned();
        let found = found.or_else(|| value(device, feature, &field, &properties[&field], nth));
        create.insert(field.clone(), found.ok_or_else(|| format!("no value for '{field}'"))?);
    }
    for (field, value) in hand.as_object().unwrap().iter().filter(|(field, _)| !field.starts_with('!')) {
        if value.is_null() {
            create.remove(field);
        } else {
            create.insert(field.clone(), value.clone());
        }
    }
    Ok(create)
}

fn made(device: &Device, feature: &Value, hand: &Value) -> Checked<Sample> {
    let create = created(device, feature, hand)?;
    let names = keys(feature);
    let key: Map<String, Value> = create
        .iter()
        .filter(|(name, _)| names.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let (first, other) = changes(device, feature, hand, &create);
    if first.is_none() && schema(feature, "update").is_some() {
        return Err("nothing to update".to_owned());
    }
    let with_key = |fields: Value| {
        let mut all = key.clone();
        all.extend(fields.as_object().unwrap().clone());
        Value::Object(all)
    };
    Ok(Sample {
        create: Value::Object(create),
        update: first.map(with_key),
        other: other.map(with_key),
        delete: Value::Object(key.clone()),
    })
}

/// A row that is there, or settings.
fn existing(device: &Device, feature: &Value, hand: &Value) -> Checked<Sample> {
    let names = keys(feature);
    provide(device, feature["kind"].as_str().unwrap_or_default(), 1);
    let mut now = current(device, feature, 0)?;
    if let Some(wanted) = hand.get("!of") {
        let wanted = wanted.as_object().unwrap().clone();
        now.extend(wanted);
    }
    let key: Map<String, Value> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), now.get(*name)?.clone()))).collect();
    let key: Map<String, Value> = key.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let (first, other) = changes(device, feature, hand, &now);
    if first.is_none() && schema(feature, "update").is_some() {
        return Err("nothing to update".to_owned());
    }
    let with_key = |fields: Value| {
        let mut all = key.clone();
        all.extend(fields.as_object().unwrap().clone());
        Value::Object(all)
    };
    Ok(Sample {
        create: Value::Null,
        update: first.map(with_key),
        other: other.map(with_key),
        delete: Value::Object(key.clone()),
    })
}

/// The objects of a kind that can be written, or its settings.
fn listed(device: &Device, kind: &str) -> Vec<heddle_sdk::Object> {
    let page = Mikrotik::list_objects(&device.host(), &Listing::of(kind, 100));
    let is_list = package().kind(kind)["shape"] == "items";
    let is_meant = |object: &heddle_sdk::Object| !is_list || !object.reference.locators.is_empty();
    page.map(|page| page.items.into_iter().filter(is_meant).collect()).unwrap_or_default()
}

/// One of the objects of a feature's kind that can be written, or its settings.
fn current(device: &Device, feature: &Value, nth: usize) -> Checked<Map<String, Value>> {
    let kind = feature["kind"].as_str().unwrap_or_default();
    Mikrotik::list_objects(&device.host(), &Listing::of(kind, 100))
        .map_err(|fault| format!("'{kind}' is not listed: {}", fault.info().message))?;
    let all = listed(device, kind);
    let found = all.get(nth).ok_or_else(|| format!("there is no '{kind}'"))?;
    let body: Value = serde_json::from_str(&found.body).unwrap();
    let mut body = body.as_object().cloned().unwrap_or_default();
    // A row without a remark is known by its id.
    for key in keys(feature).into_iter().take(1) {
        let own = body.get(key).filter(|value| !value.is_null()).cloned();
        body.insert(key.to_owned(), own.unwrap_or_else(|| json!(found.reference.key)));
    }
    Ok(body)
}

/// Two changes of single fields, those first that depend on nothing.
fn changes(
    device: &Device,
    feature: &Value,
    hand: &Value,
    now: &Map<String, Value>,
) -> (Option<Value>, Option<Value>) {
    let names = keys(feature);
    let Some(update) = schema(feature, "update") else { return (None, None) };
    let properties = update["properties"].as_object().unwrap();
    let kind = kind_of(feature);
    let is_free = |name: &&String| {
        let binding = &kind["fields"][name.as_str()];
        let release = device.release();
        let is_there = |word: &str, fits: fn(u64, u64) -> bool| {
            fact(feature, name)[word].as_u64().is_none_or(|of| fits(release, of))
        };
        let is_known = is_there("since", |now, of| now >= of) && is_there("until", |now, of| now <= of);
        !names.contains(&name.as_str()) && binding["unread"] != true && is_known
    };
    let rank = |name: &str| match (name, properties[name]["type"].as_str()) {
        _ if fact(feature, name)["type"] == "link" => 7,
        _ if properties[name]["writeOnly"] == true => 8,
        ("comment", _) => 0,
        ("disabled", _) => 5,
        (_, Some("boolean")) => 1,
        (_, Some("integer")) => 2,
        _ => 3,
    };
    let mut fields: Vec<&String> = properties.keys().filter(is_free).collect();
    fields.sort_by_key(|name| rank(name));
    let mut all = fields.into_iter().filter_map(|name| {
        let is = now.get(name).cloned().unwrap_or_default();
        // What is off says the same as what is not there.
        let default = kind["fields"][name.as_str()]["default"].clone();
        let is = match is {
            Value::Null if !default.is_null() => default,
            Value::Null if fact(feature, name)["default"].is_string() => {
                fact(feature, name)["default"].clone()
            }
            Value::Null if properties[name]["type"] == "boolean" => json!(false),
            is => is,
        };
        let tries = (0..3).filter_map(|nth| value(device, feature, name, &properties[name], nth));
        let is_same =
            |value: &Value| *value == is || is.as_str().map(str::to_owned) == Some(value.to_string());
        let other = tries.into_iter().find(|value| !is_same(value))?;
        Some(json!({ name: other }))
    });
    let given = |word: &str| hand.get(word).cloned();
    let first = given("!update").or_else(|| all.next());
    let other = match given("!other") {
        Some(other) => Some(other).filter(|other| !other.is_null()),
        None => all.find(|other| {
            let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            first.as_ref().is_none_or(|first| names(first) != names(other))
        }),
    };
    (first, other)
}

/// Payload of an action: the row that it is about, and what it needs.
fn action(device: &Device, feature: &Value, hand: &Value) -> Checked<Value> {
    let mut payload = Map::new();
    if let Some(kind) = feature["kind"].as_str() {
        let is_order = short(feature).ends_with("-order");
        provide(device, kind, if is_order { 2 } else { 1 });
        let all: Vec<String> = listed(device, kind).into_iter().map(|object| object.reference.key).collect();
        let is_single = |key: &&String| all.iter().filter(|other| other == key).count() == 1;
        let single: Vec<&String> = all.iter().filter(is_single).collect();
        let own = match single[..] {
            [first, .., last] if is_order => {
                payload.insert("place-before".to_owned(), json!(first));
                all.iter().position(|key| key == last).unwrap_or_default()
            }
            _ => 0,
        };
        let own = current(device, feature, own)?;
        // Keys are texts here, whatever their fields are.
        let text = |value: &Value| match value {
            Value::Array(items) => {
                json!(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
            }
            Value::Number(number) => json!(number.to_string()),
            other => other.clone(),
        };
        for key in keys(feature) {
            payload.insert(key.to_owned(), own.get(key).map(text).unwrap_or_default());
        }
        payload.retain(|_, value| !value.is_null());
        let wanted = hand.get("!of").and_then(Value::as_object).cloned();
        payload.extend(wanted.unwrap_or_default());
    }
    let properties = schema(feature, "create").unwrap()["properties"].as_object().unwrap().clone();
    for field in required(feature, "create") {
        if !payload.contains_key(&field) {
            let found = hand.get(&field).cloned();
            let found = found.or_else(|| value(device, feature, &field, &properties[&field], 0));
            payload.insert(field.clone(), found.ok_or_else(|| format!("no value for '{field}'"))?);
        }
    }
    let given = hand.as_object().unwrap().iter().filter(|(field, _)| !field.starts_with('!'));
    payload.extend(given.map(|(field, value)| (field.clone(), value.clone())));
    Ok(Value::Object(payload))
}

/// Sees to it that there are so many objects of a kind that can be written: made by a feature, else as the router makes
/// them of what it hears.
fn provide(device: &Device, kind: &str, count: usize) {
    if package().kind(kind)["shape"] != "items" {
        return;
    }
    let mut features = package().features().iter();
    let own = features.find(|one| one["kind"] == kind && one["binding"]["create"].is_object());
    for nth in listed(device, kind).len()..count {
        let made = own.and_then(|own| {
            let sample = prepare(device, own).ok()?;
            let made = plan(device, &change(short(own), Operation::Create, &sample.create)).ok()?;
            run(device, Stage::Apply, &made).ok()
        });
        if made.is_none() || listed(device, kind).len() <= nth {
            heard(device, kind, nth);
        }
    }
}

/// A row that the router makes itself.
fn heard(device: &Device, kind: &str, nth: usize) {
    let binding = package().kind(kind);
    let names = binding["key"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let field = |name: &str| binding["fields"][name]["at"].as_str().unwrap_or(name).to_owned();
    let mut values: Map<String, Value> =
        names.map(|name| (field(name), json!(format!("sample{nth}")))).collect();
    values.remove(".id");
    values.extend(by_hand::heard(kind).as_object().unwrap().clone());
    let edit = json!({ "do": "row", "menu": menu_of(binding), "values": values });
    device.lab().edit(&edit).ok();
}
