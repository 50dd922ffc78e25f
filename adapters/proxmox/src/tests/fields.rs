//! Fields one by one, with values made from their schemas: what the cluster takes is read back as it was asked, and goes
//! back to what it was.

use std::collections::BTreeMap;

use heddle_sdk::testing::conformance::schema;
use heddle_sdk::{FaultExt, Operation, Stage};
use serde_json::{Map, Value, json};

use super::device::{Device, description, package};
use super::every::short;
use super::{change, plan, run, samples, standing};

/// Values of texts; those that fit the schema are tried in this order.
const CANDIDATES: [&str; 12] = [
    "sample",
    "192.0.2.0/24",
    "192.0.2.7",
    "10",
    "pve1",
    "https://a.example/x",
    "02:00:00:00:00:77",
    "local-lvm:8",
    "daily",
    "10G",
    "2001:db8::1",
    "/mnt/sample",
];
/// Tries of one field.
const TRIES_MAX: usize = 4;

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// Values that a schema takes.
fn values(schema: &Value, whole: &Value, first: Option<&str>) -> Vec<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/")) {
        return objects(&whole["$defs"][name], first);
    }
    if let Some(options) = schema["enum"].as_array() {
        return options.iter().filter(|option| !option.is_null()).take(2).cloned().collect();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str(),
        one => one.as_str(),
    };
    match kind {
        Some("boolean") => vec![json!(true), json!(false)],
        Some("integer") => {
            let low = schema["minimum"].as_i64().unwrap_or(1).max(1);
            [low + 1, low].map(Value::from).into_iter().filter(|value| is_valid(schema, value)).collect()
        }
        Some("array") => values(&schema["items"], whole, None).into_iter().map(|one| json!([one])).collect(),
        Some("object") => objects(schema, first),
        _ => CANDIDATES
            .iter()
            .map(|text| json!(text))
            .filter(|value| is_valid(schema, value))
            .take(TRIES_MAX)
            .collect(),
    }
}

/// Property strings with the part that needs no name, or with one that is named.
fn objects(schema: &Value, first: Option<&str>) -> Vec<Value> {
    let parts = schema["properties"].as_object().cloned().unwrap_or_default();
    let of = |name: &str, part: &Value| -> Vec<Value> {
        let single: Vec<Value> = match part["enum"].as_array() {
            Some(options) => options.iter().take(1).cloned().collect(),
            None => ["10", "local-lvm:8", "sample"].map(Value::from).to_vec(),
        };
        single.into_iter().map(|value| json!({ name: value })).collect()
    };
    match first.and_then(|name| Some((name, parts.get(name)?))) {
        Some((name, part)) => of(name, part),
        None => parts.iter().take(3).flat_map(|(name, part)| of(name, part)).take(TRIES_MAX).collect(),
    }
}

/// Values of property strings whose parts belong together, by the name without its number.
fn by_hand(name: &str) -> Vec<Value> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "net" => vec![
            json!({ "virtio": "BC:24:11:00:08:01", "bridge": "vmbr0" }),
            json!({ "name": "eth9", "bridge": "vmbr0", "hwaddr": "BC:24:11:00:08:02", "type": "veth" }),
        ],
        "mp" => vec![json!({ "volume": "local-lvm:1", "mp": "/mnt/sample" })],
        "privs" => vec![json!(["VM.Audit"])],
        _ => Vec::new(),
    }
}

/// What became of one field.
enum Tried {
    Held,
    /// The cluster takes none of the values: the field depends on others.
    Refused,
    Wrong(String),
}

fn try_field(device: &Device, feature: &Value, payload: &Value) -> Tried {
    let before = device.state();
    let Ok(made) = plan(device, &change(short(feature), Operation::Update, payload)) else {
        return Tried::Refused;
    };
    if made.native.is_empty() {
        return Tried::Refused;
    }
    if run(device, Stage::Apply, &made).is_err() {
        return if device.state() == before {
            Tried::Refused
        } else {
            Tried::Wrong("refused, and changed".to_owned())
        };
    }
    let found = standing(device, &made);
    if found != "after" && !found.starts_with("adjusted") && !found.starts_with("stored") {
        return Tried::Wrong(found);
    }
    if !made.native.iter().any(|call| call.stage == Stage::Restore) {
        return Tried::Held;
    }
    match run(device, Stage::Restore, &made) {
        Err(fault) => Tried::Wrong(format!("restore: {}", fault.info().message)),
        Ok(_) => match standing(device, &made) {
            found if found == "before" => Tried::Held,
            found => Tried::Wrong(format!("restored: {found}")),
        },
    }
}

/// Counts of fields that held, and of all; what is wrong is told.
fn check(feature: &Value, wrong: &mut Vec<String>) -> (usize, usize) {
    let device = samples::device(short(feature));
    let Ok(sample) = samples::prepare(&device, feature) else { return (0, 0) };
    if sample.create.as_object().is_some_and(|create| !create.is_empty())
        && let Ok(made) = plan(&device, &change(short(feature), Operation::Create, &sample.create))
    {
        run(&device, Stage::Apply, &made).unwrap();
    }
    let whole = schema(feature, "update").unwrap();
    let (mut held, mut all) = (0, 0);
    let keys: Map<String, Value> = sample.delete.as_object().cloned().unwrap_or_default();
    for (name, field) in whole["properties"].as_object().unwrap() {
        // A disk that is not used comes about by detaching one.
        if keys.contains_key(name) || name.starts_with("unused") {
            continue;
        }
        all += 1;
        let first = package().kind(feature["kind"].as_str().unwrap())["fields"][name]["first"].as_str();
        for value in by_hand(name).into_iter().chain(values(field, whole, first)) {
            let mut payload = keys.clone();
            payload.insert(name.clone(), value);
            match try_field(&device, feature, &Value::Object(payload.clone())) {
                Tried::Held => {
                    held += 1;
                    break;
                }
                Tried::Refused => {}
                Tried::Wrong(found) => {
                    wrong.push(format!("{} {name} by {}: {found}", short(feature), Value::Object(payload)));
                    break;
                }
            }
        }
    }
    (held, all)
}

#[test]
fn every_field_that_the_cluster_takes_is_read_back_and_restored() {
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for feature in description()["features"].as_array().unwrap() {
        if schema(feature, "update").is_some() {
            counts.insert(short(feature), check(feature, &mut wrong));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    let (held, all) = counts.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(held * 10 >= all * 9, "{held} of {all}: {counts:?}");
}
