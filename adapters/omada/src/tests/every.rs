//! Every feature of the description, from the plan to the way back.

use heddle_marketplace::Schema;
use heddle_sdk::{Adapter as _, ChangePlan, FaultExt, Listing, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::samples::{self, Sample};
use super::world::{Checked, kind};
use super::{change, plan, run, standing};
use crate::Omada;

pub(super) fn features() -> &'static [Value] {
    description()["features"].as_array().unwrap()
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("omada.").unwrap()
}

pub(super) fn schema<'f>(feature: &'f Value, word: &str) -> Option<&'f Value> {
    let operations = feature["operations"].as_array().unwrap();
    operations.iter().find(|one| one["operation"] == word).map(|one| &one["payload-schema"])
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    }
}

pub(super) fn fits(feature: &Value, operation: Operation, payload: &Value) -> Checked<()> {
    let schema = schema(feature, word(operation)).ok_or("the operation is not described")?;
    let compiled = Schema::parse(schema).map_err(|error| format!("schema: {error}"))?;
    let problems: Vec<String> =
        compiled.validator().iter_errors(payload).map(|error| error.to_string()).collect();
    if problems.is_empty() { Ok(()) } else { Err(format!("{payload} does not fit: {}", problems.join("; "))) }
}

/// A plan that wrote nothing.
pub(super) fn planned(
    device: &Device,
    feature: &Value,
    operation: Operation,
    payload: &Value,
) -> Checked<ChangePlan> {
    fits(feature, operation, payload)?;
    let (stored, writes) = (device.stored(), device.writes.get());
    let made = plan(device, &change(short(feature), operation, payload)).map_err(|fault| {
        let info = fault.info();
        format!("{} plan of {payload}: {} {:?}", word(operation), info.message, info.fields)
    })?;
    device.forget_calls();
    let is_untouched = device.stored() == stored && device.writes.get() == writes;
    if !is_untouched {
        return Err("the plan wrote something".to_owned());
    }
    match made.native.iter().find(|call| call.path.replace("{{hole", "").contains('{')) {
        Some(open) => Err(format!("a path is not filled: {}", open.path)),
        None => Ok(made),
    }
}

pub(super) fn sent(device: &Device, stage: Stage, plan: &ChangePlan) -> Checked<()> {
    run(device, stage, plan).map(drop).map_err(|fault| {
        let info = fault.info();
        let calls: Vec<String> =
            plan.native.iter().map(|call| format!("{} {:?}", call.path, call.body)).collect();
        format!("{stage:?}: {} {:?} of {}", info.message, info.fields, calls.join(" | "))
    })
}

pub(super) fn stands(device: &Device, plan: &ChangePlan, wanted: &str, when: &str) -> Checked<()> {
    let found = standing(device, plan);
    if found == wanted { Ok(()) } else { Err(format!("{when}: stands '{found}' instead of '{wanted}'")) }
}

/// Applies, finds it as asked, and finds that a second plan has nothing to do.
fn apply(device: &Device, feature: &Value, operation: Operation, payload: &Value) -> Checked<ChangePlan> {
    let made = planned(device, feature, operation, payload)?;
    if made.native.is_empty() {
        return Err(format!("{} of {payload} has nothing to do", word(operation)));
    }
    stands(device, &made, "before", "planned")?;
    sent(device, Stage::Apply, &made)?;
    let found = standing(device, &made);
    let is_right = found == "after" || found.starts_with("adjusted") && may_be_adjusted(feature, payload);
    if !is_right {
        return Err(format!("{} applied: stands '{found}'", word(operation)));
    }
    let kept = (device.holes.borrow().clone(), device.left.borrow().clone());
    let has_unread = payload.as_object().unwrap().keys().any(|name| is_unread(feature, name));
    if has_unread {
        return Ok(made);
    }
    let again = planned(device, feature, operation, payload)?;
    device.holes.replace(kept.0);
    device.left.replace(kept.1);
    if !again.native.is_empty() || again.warnings != ["the device is already as asked"] {
        return Err(format!("a second {} has {} calls", word(operation), again.native.len()));
    }
    Ok(made)
}

/// Whether the controller is known to answer less than it was given.
fn may_be_adjusted(feature: &Value, payload: &Value) -> bool {
    let fields = &kind(feature["kind"].as_str().unwrap())["fields"];
    payload.as_object().unwrap().keys().any(|name| fields[name.as_str()]["rewritten"] == true)
}

fn is_unread(feature: &Value, name: &str) -> bool {
    kind(feature["kind"].as_str().unwrap())["fields"][name]["unread"] == true
}

fn loses(feature: &Value, operation: Operation) -> bool {
    // An object that is made again has another id, which others may have named.
    let has_own_id = feature["binding"]["create"]["id"]["field"].is_string();
    let is_final = operation == Operation::Delete && !has_own_id;
    let fields = kind(feature["kind"].as_str().unwrap())["fields"].as_object().unwrap();
    is_final || fields.values().any(|field| field["unread"] == true)
}

/// Applies and takes back; the controller is then exactly as it was, but for ids.
fn there_and_back(device: &Device, feature: &Value, operation: Operation, payload: &Value) -> Checked<()> {
    device.settle();
    let stored = device.stored();
    let made = apply(device, feature, operation, payload)?;
    if made.native.iter().all(|call| call.stage == Stage::Apply) {
        // Said before, and only where nothing can write it back.
        let is_told = made.warnings.iter().any(|warning| warning.contains("cannot be taken back"));
        let is_right = is_told && loses(feature, operation);
        return if is_right { Ok(()) } else { Err(format!("{} has no way back", word(operation))) };
    }
    sent(device, Stage::Restore, &made)?;
    stands(device, &made, "before", &format!("{} restored", word(operation)))?;
    device.settle();
    let is = device.stored();
    if stored == is {
        return Ok(());
    }
    let lists = stored.keys().chain(is.keys());
    let differing: Vec<String> = lists
        .filter(|list| stored.get(*list) != is.get(*list))
        .map(|list| format!("{list}: {} became {}", json!(stored.get(list)), json!(is.get(list))))
        .collect();
    Err(format!("{}: another after the restore: {differing:?}", word(operation)))
}

/// Something else is written between plan and apply.
fn moved(device: &Device, feature: &Value, sample: &Sample) -> Checked<()> {
    let (Some(update), Some(other)) = (&sample.update, &sample.other) else { return Ok(()) };
    let reviewed = planned(device, feature, Operation::Update, update)?;
    let theirs = planned(device, feature, Operation::Update, other)?;
    sent(device, Stage::Apply, &theirs)?;
    let writes = device.writes.get();
    let found = run(device, Stage::Apply, &reviewed);
    let is_told = found.is_err_and(|fault| fault.info().code.as_deref() == Some("state-moved"));
    let nothing_sent = device.writes.get() == writes;
    if is_told && nothing_sent { Ok(()) } else { Err("a moved state was written over".to_owned()) }
}

/// The object is read by its key, in the way in which the plan showed it.
fn read_back(device: &Device, feature: &Value, made: &ChangePlan) -> Checked<()> {
    let kind = feature["kind"].as_str().unwrap();
    let wanted: Value = serde_json::from_str(made.steps[0].after.as_deref().unwrap_or("{}")).unwrap();
    let key = made.touches[0].split_once('/').unwrap().1.to_owned();
    let page = Omada::list_objects(&device.host(), &Listing::of(kind, 1000))
        .map_err(|fault| format!("list: {}", fault.info().message))?;
    let keys: Vec<&str> = page.items.iter().map(|item| item.reference.key.as_str()).collect();
    if !keys.contains(&key.as_str()) {
        return Err(format!("'{key}' is not listed: {keys:?}"));
    }
    let found = Omada::get_object(&device.host(), kind, None, &key)
        .map_err(|fault| format!("get: {}", fault.info().message))?;
    let body: Value = serde_json::from_str(&found.body).unwrap();
    let differing: Vec<String> = wanted
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, value)| {
            *value != "(secret)" && !is_unread(feature, name) && !holds(&body[name.as_str()], value)
        })
        .map(|(name, value)| format!("{name}: {} instead of {value}", body[name.as_str()]))
        .collect();
    if differing.is_empty() { Ok(()) } else { Err(format!("read back: {}", differing.join(", "))) }
}

/// Whether a value is another one, or holds it among what the controller added.
pub(super) fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| holds(found, wanted))
        }
        (found, wanted) => found == wanted,
    }
}

fn check(feature: &Value) -> Checked<()> {
    let device = Device::new();
    let sample = samples::prepare(&device, feature)?;
    device.settle();
    let has_create = schema(feature, "create").is_some();
    if has_create {
        if schema(feature, "delete").is_some() {
            there_and_back(&device, feature, Operation::Create, &sample.create)?;
        }
        let made = apply(&device, feature, Operation::Create, &sample.create)?;
        read_back(&device, feature, &made)?;
    }
    if let Some(update) = &sample.update {
        there_and_back(&device, feature, Operation::Update, update)?;
        moved(&device, feature, &sample)?;
    }
    if schema(feature, "delete").is_some() {
        there_and_back(&device, feature, Operation::Delete, &sample.delete)?;
    }
    Ok(())
}

pub(super) fn is_action(feature: &Value) -> bool {
    feature["binding"]["action"].is_object()
}

/// Checks the features of some areas.
fn check_areas(is_meant: impl Fn(&str) -> bool) {
    let of_area = |feature: &&Value| is_meant(feature["area"].as_str().unwrap());
    let writes: Vec<&Value> = features().iter().filter(|one| !is_action(one)).filter(of_area).collect();
    assert!(writes.len() > 20, "{}", writes.len());
    let failures: Vec<String> = writes
        .iter()
        .filter_map(|feature| check(feature).err().map(|problem| format!("{}: {problem}", short(feature))))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), writes.len(), failures.join("\n"));
}

// Every feature of the description is in one of these.

#[test]
fn every_feature_of_switching_is_planned_applied_read_back_and_restored() {
    check_areas(|area| area == "switch-advanced");
}

#[test]
fn every_feature_of_firewall_and_vpn_is_planned_applied_read_back_and_restored() {
    check_areas(|area| ["firewall", "vpn"].contains(&area));
}

#[test]
fn every_feature_of_wireless_and_routing_is_planned_applied_read_back_and_restored() {
    check_areas(|area| ["wifi", "routing"].contains(&area));
}

#[test]
fn every_other_feature_is_planned_applied_read_back_and_restored() {
    check_areas(|area| !["switch-advanced", "firewall", "vpn", "wifi", "routing"].contains(&area));
}
