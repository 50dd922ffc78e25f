//! What the adapter fills of the model, against the simulated controller.

use std::collections::{BTreeMap, BTreeSet};

use heddle_lab_omada::Seed;
use heddle_marketplace::model;
use heddle_sdk::testing::every_page;
use heddle_sdk::{Adapter as _, ModelObject};
use serde_json::{Map, Value, json};

use super::device::{Device, description};
use crate::Omada;

mod odd;
mod values;

const GATEWAY: &str = "3c:6a:d2:00:01:10";
pub(super) const SWITCH: &str = "3c:6a:d2:00:01:20";

/// The kinds that are filled, with the names of their fields.
fn filled() -> BTreeMap<String, BTreeSet<String>> {
    let all = description()["model"].as_array().unwrap();
    let fields = |kind: &Value| {
        let names = kind["fields"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    all.iter().map(|kind| (kind["kind"].as_str().unwrap().to_owned(), fields(kind))).collect()
}

/// The id of a row at the first site, by its name.
fn id_of(device: &Device, collection: &str, name: &str) -> String {
    let state = device.lab().state();
    let rows = state[&device.sites[0]][collection].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
}

/// A controller with something of every kind.
pub(super) fn controller() -> Device {
    let device = Device::new();
    let rows = include_str!("model/rows.json")
        .replace("{staff}", &id_of(&device, "switch.network", "Staff"))
        .replace("{group}", &id_of(&device, "wifi.wlan-group", "Default"))
        .replace("{radius}", &id_of(&device, "profiles.radius", "Office RADIUS"));
    let rows: Value = serde_json::from_str(&rows).unwrap();
    for row in rows.as_array().unwrap() {
        let (version, list) = row["at"].as_str().unwrap().split_once('/').unwrap();
        let path = format!("/openapi/{version}/{}/sites/{}/{list}", device.controller, device.sites[0]);
        device.seed(&path, &row["row"]).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let path = format!("/openapi/v1/{}/sites/maintenance/multi-backup/self-server", device.controller);
    device.edit("POST", &path, &json!({ "siteIds": [device.sites[0]] })).unwrap();
    device.settle();
    device
}

/// All pages of a kind, and how many requests they took.
fn read(device: &Device, kind: &str) -> (Vec<ModelObject>, usize, bool) {
    let mut requests = 0;
    let (objects, is_complete) = every_page(|cursor| {
        let host = device.host();
        let page = Omada::list_model(&host, kind, None, cursor);
        requests += host.sent.borrow().len();
        page
    });
    (objects, requests, is_complete)
}

/// The key of the object with this label.
#[track_caller]
pub(super) fn key_of(device: &Device, kind: &str, label: &str) -> String {
    let (objects, ..) = read(device, kind);
    let labels: Vec<&str> = objects.iter().map(|object| object.label.as_str()).collect();
    let found = objects.iter().find(|object| object.label == label);
    found.unwrap_or_else(|| panic!("'{label}' is none of {labels:?}")).key.clone()
}

/// The key of the first object whose fields are such.
pub(super) fn first_key(device: &Device, kind: &str, is: impl Fn(&Value) -> bool) -> String {
    let (objects, ..) = read(device, kind);
    objects.into_iter().find(|object| is(&Value::Object(fields(object)))).unwrap().key
}

/// The rules of access, and whether each is of the gateway.
pub(super) fn rules(device: &Device) -> Vec<(String, bool)> {
    let (objects, ..) = read(device, "firewall-rule");
    objects.iter().map(|rule| (rule.key.clone(), fields(rule)["scope"]["key"] == "gateway")).collect()
}

fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

/// The fields of one object.
fn one(device: &Device, kind: &str, key: &str) -> Value {
    let (objects, ..) = read(device, kind);
    let known: Vec<&str> = objects.iter().map(|object| object.key.as_str()).collect();
    let found = objects.iter().find(|object| object.key == key);
    let found = found.unwrap_or_else(|| panic!("there is no {kind} '{key}', but {known:?}"));
    Value::Object(fields(found))
}

#[test]
fn every_kind_is_filled_as_its_schema_says_and_as_it_is_declared() {
    let device = controller();
    let devices = Omada::list_devices(&device.host(), None, None).unwrap().items;
    let devices: BTreeSet<String> = devices.into_iter().map(|device| device.identity).collect();
    let mut wrong = Vec::new();
    for (kind, declared) in filled() {
        let (objects, _, is_complete) = read(&device, &kind);
        if objects.is_empty() || !is_complete {
            wrong.push(format!("{kind} has {} objects, complete: {is_complete}", objects.len()));
        }
        let (schema, mut keys, mut seen) = (model::find(&kind).unwrap(), BTreeSet::new(), BTreeSet::new());
        for object in &objects {
            let fields = fields(object);
            assert_eq!(schema.problem(&fields), None, "{kind} '{}': {}", object.key, object.fields);
            assert!(keys.insert(object.key.clone()), "{kind} '{}' is there twice", object.key);
            assert!(!object.label.is_empty(), "{kind} '{}'", object.key);
            let device = object.device.as_ref();
            assert!(device.is_none_or(|one| devices.contains(one)), "{kind} '{}': {device:?}", object.key);
            assert!(!object.fields.contains("not-to-be-told") && !object.fields.contains("secret"), "{kind}");
            seen.extend(fields.into_iter().map(|(name, _)| name));
        }
        if seen != declared {
            wrong.push(format!("{kind} has {seen:?} and declares {declared:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn objects_of_the_model_lead_back_to_the_controller_s_own() {
    let device = controller();
    let kinds = description()["kinds"].as_array().unwrap();
    let is_kept = |id: &str| kinds.iter().any(|kind| kind["id"] == id && kind["binding"]["shape"] == "items");
    for kind in filled().keys() {
        let (objects, ..) = read(&device, kind);
        let natives = objects.iter().filter_map(|object| object.native.as_ref());
        for native in natives.filter(|native| is_kept(&native.kind)).take(3) {
            let found = Omada::get_object(&device.host(), &native.kind, None, &native.key);
            assert!(found.is_ok(), "{kind}: {} '{}'", native.kind, native.key);
        }
    }
}
