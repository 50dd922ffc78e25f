//! Payloads for every feature, and what each needs on the cluster before: the fields of this API depend on each other.

use std::sync::OnceLock;

use heddle_lab_proxmox::Setup;
use heddle_sdk::testing::conformance::{Checked, Sample, schema};
use heddle_sdk::{Adapter as _, FaultExt, Listing, Operation, Stage};
use serde_json::{Map, Value, json};

use super::device::Device;
use super::every::{feature, short};
use super::{change, plan, run};
use crate::Proxmox;

fn all() -> &'static Value {
    static SAMPLES: OnceLock<Value> = OnceLock::new();
    SAMPLES.get_or_init(|| serde_json::from_str(include_str!("samples.json")).unwrap())
}

/// A cluster that has what a feature is about.
pub(super) fn device(feature: &str) -> Device {
    let release = match feature {
        "ha.group" => (8, 4),
        "cluster.cpu-model" => (9, 2),
        newest if newest.starts_with("sdn.prefix") || newest.starts_with("sdn.route") => (9, 2),
        _ => (9, 1),
    };
    let device = Device::of(Setup { release, has_ceph: true, ..Setup::default() });
    if NEEDS_TICKET.iter().any(|prefix| feature.starts_with(prefix)) { device.with_ticket() } else { device }
}

/// What the vendor refuses to every API token.
const NEEDS_TICKET: [&str; 10] = [
    "access.password",
    "access.tfa",
    "acme.account",
    "ceph.osd-create",
    "ceph.osd-delete",
    "cluster.create",
    "cluster.join",
    "cluster.member-delete",
    "storage.disk-wipe",
    "storage.volume-copy",
];

/// Carries out what a sample needs, and puts in what only the cluster knows.
fn made_ready(device: &Device, sample: &Value) -> Checked<()> {
    for edit in sample["!edit"].as_array().into_iter().flatten() {
        device.edit(edit);
    }
    let single = sample["!before"].as_array().map(|one| json!(one));
    let before = sample["before"].as_array().cloned().unwrap_or_default();
    for needed in single.iter().chain(&before) {
        let (name, payload) = (needed[0].as_str().unwrap(), &needed[1]);
        let failed = |fault: heddle_sdk::Fault| {
            format!("needs '{name}': {} {:?}", fault.info().message, fault.info().fields)
        };
        assert!(schema(feature(name), "create").is_some(), "{name}");
        let planned = plan(device, &change(name, Operation::Create, payload)).map_err(failed)?;
        run(device, Stage::Apply, &planned).map_err(failed)?;
    }
    Ok(())
}

/// A value that only the cluster knows: a backup on its storage, or a task that runs.
fn known(device: &Device, text: &str) -> Option<String> {
    let first = |kind: &str, pointer: &str, filter: fn(&Value) -> bool| {
        let page = Proxmox::list_objects(&device.host(), &Listing::of(kind, 1000)).ok()?;
        let bodies = page.items.iter().filter_map(|item| serde_json::from_str::<Value>(&item.body).ok());
        bodies.filter(filter).find_map(|body| body.pointer(pointer)?.as_str().map(str::to_owned))
    };
    match text {
        "@backup" => first("storage.volume", "/volid", |body| body["content"] == "backup"),
        "@container-backup" => {
            let is_it = |body: &Value| body["volid"].as_str().is_some_and(|text| text.contains("vzdump-lxc"));
            first("storage.volume", "/volid", is_it)
        }
        "@task" => {
            let shutdown = json!({ "vmid": 101 });
            let planned = plan(device, &change("vm.shutdown", Operation::Create, &shutdown)).ok()?;
            // Sent, and not waited for.
            heddle_sdk::testing::send_stage::<Proxmox>(&device.host(), Stage::Apply, &[], &planned).ok()?;
            first("node.task", "/upid", |_| true)
        }
        _ => None,
    }
}

fn completed(device: &Device, payload: &Value) -> Checked<Value> {
    let mut out = Map::new();
    for (name, value) in payload.as_object().into_iter().flatten().filter(|(name, _)| !name.starts_with('!'))
    {
        let value = match value.as_str().filter(|text| text.starts_with('@')) {
            Some(text) => json!(known(device, text).ok_or_else(|| format!("there is no {text}"))?),
            None => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    Ok(Value::Object(out))
}

/// A sample, and what it needs on the cluster.
pub(super) fn prepare(device: &Device, feature: &Value) -> Checked<Sample> {
    let sample = &all()["objects"][short(feature)];
    if sample.is_null() {
        return Err("there is no sample".to_owned());
    }
    made_ready(device, sample)?;
    let names: Vec<&str> =
        feature["natural-key"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let create = completed(device, &sample["create"])?;
    let key = if sample["key"].is_object() {
        completed(device, &sample["key"])?
    } else {
        let own = create.as_object().unwrap().iter().filter(|(name, _)| names.contains(&name.as_str()));
        Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let with_key = |fields: &Value| {
        let mut all = key.as_object().unwrap().clone();
        all.extend(fields.as_object().cloned().unwrap_or_default());
        Value::Object(all)
    };
    let other = sample.get("other").map(with_key);
    Ok(Sample { create, update: Some(with_key(&sample["update"])), other, delete: key })
}

/// The payload of an action, and what it needs on the cluster.
pub(super) fn prepare_action(device: &Device, feature: &Value) -> Checked<Value> {
    let sample = &all()["actions"][short(feature)];
    if sample.is_null() {
        return Err("there is no sample".to_owned());
    }
    made_ready(device, sample)?;
    completed(device, sample)
}
