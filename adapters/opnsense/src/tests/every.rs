//! Every feature of the description, from the plan to the way back.

use std::panic::{self, AssertUnwindSafe};

use heddle_marketplace::Schema;
use heddle_sdk::{Adapter as _, ChangePlan, FaultExt, Listing, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::samples::{self, Sample, kind_of};
use super::{actions, change, finished, plan, run, standing};
use crate::Opnsense;

pub(super) type Checked<T> = Result<T, String>;

pub(super) fn features() -> &'static [Value] {
    description()["features"].as_array().unwrap()
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("opnsense.").unwrap()
}

pub(super) fn schema<'f>(feature: &'f Value, word: &str) -> Option<&'f Value> {
    let operations = feature["operations"].as_array().unwrap();
    operations.iter().find(|one| one["operation"] == word).map(|one| &one["payload-schema"])
}

pub(super) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    }
}

fn fits(feature: &Value, operation: Operation, payload: &Value) -> Checked<()> {
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
    let (stored, posts) = (device.stored(), device.posts.get());
    let made = plan(device, &change(short(feature), operation, payload)).map_err(|fault| {
        let info = fault.info();
        format!("{} plan of {payload}: {} {:?}", word(operation), info.message, info.fields)
    })?;
    let is_untouched = device.stored() == stored && device.posts.get() == posts;
    if is_untouched { Ok(made) } else { Err("the plan wrote something".to_owned()) }
}

pub(super) fn sent(device: &Device, stage: Stage, plan: &ChangePlan) -> Checked<()> {
    run(device, stage, plan).and_then(|outcome| finished(device, outcome)).map_err(|fault| {
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
    stands(device, &made, "after", "applied")?;
    let (stored, running) = (device.stored(), device.running());
    if stored != running {
        let differing: Vec<&String> =
            stored.keys().filter(|list| stored.get(*list) != running.get(*list)).collect();
        return Err(format!("{} is stored and does not run: {differing:?}", word(operation)));
    }
    let again = planned(device, feature, operation, payload)?;
    if !again.native.is_empty() || again.warnings != ["the device is already as asked"] {
        return Err(format!("a second {} has {} calls", word(operation), again.native.len()));
    }
    Ok(made)
}

/// Applies and takes back; the firewall is then exactly as it was.
fn there_and_back(device: &Device, feature: &Value, operation: Operation, payload: &Value) -> Checked<()> {
    let (stored, running) = (device.stored(), device.running());
    let made = apply(device, feature, operation, payload)?;
    if made.native.iter().all(|call| call.stage == Stage::Apply) {
        // Said before, and only where a value can never be read.
        let is_told = made.warnings.iter().any(|warning| warning.contains("cannot be taken back"));
        let loses =
            kind_of(feature)["fields"].as_object().unwrap().values().any(|field| field["unread"] == true);
        return if is_told && loses { Ok(()) } else { Err(format!("{} has no way back", word(operation))) };
    }
    sent(device, Stage::Restore, &made)?;
    stands(device, &made, "before", &format!("{} restored", word(operation)))?;
    for (when, was, is) in [("stored", stored, device.stored()), ("running", running, device.running())] {
        if was != is {
            let lists = was.keys().chain(is.keys());
            let differing: Vec<String> = lists
                .filter(|list| was.get(*list) != is.get(*list))
                .map(|list| format!("{list}: {} became {}", json!(was.get(list)), json!(is.get(list))))
                .collect();
            return Err(format!("{}: {when} is another after the restore: {differing:?}", word(operation)));
        }
    }
    Ok(())
}

/// Something else is written between plan and apply.
fn moved(device: &Device, feature: &Value, sample: &Sample) -> Checked<()> {
    let Some(other) = &sample.other else { return Ok(()) };
    let reviewed = planned(device, feature, Operation::Update, &sample.update)?;
    let theirs = planned(device, feature, Operation::Update, other)?;
    sent(device, Stage::Apply, &theirs)?;
    let posts = device.posts.get();
    let found = run(device, Stage::Apply, &reviewed);
    let is_told = found.is_err_and(|fault| fault.info().code.as_deref() == Some("state-moved"));
    let nothing_sent = device.posts.get() == posts;
    sent(device, Stage::Restore, &theirs)?;
    if is_told && nothing_sent { Ok(()) } else { Err("a moved state was written over".to_owned()) }
}

/// The object is read by its key, in the way in which the plan showed it.
fn read_back(device: &Device, feature: &Value, made: &ChangePlan) -> Checked<()> {
    let kind = feature["kind"].as_str().unwrap();
    let wanted: Value = serde_json::from_str(made.steps[0].after.as_deref().unwrap_or("{}")).unwrap();
    let page = Opnsense::list_objects(&device.host(), &Listing::of(kind, 1000))
        .map_err(|fault| format!("list: {}", fault.info().message))?;
    let key = match &feature["natural-key"] {
        Value::Array(_) => made.touches[0].split_once('/').unwrap().1.to_owned(),
        _ => page.items[0].reference.key.clone(),
    };
    let keys: Vec<&str> = page.items.iter().map(|item| item.reference.key.as_str()).collect();
    let listed = keys.iter().position(|known| *known == key);
    let Some(at) = listed else { return Err(format!("'{key}' is not listed: {keys:?}")) };
    let found = Opnsense::get_object(&device.host(), kind, None, keys[at])
        .map_err(|fault| format!("get: {}", fault.info().message))?;
    let body: Value = serde_json::from_str(&found.body).unwrap();
    let differing: Vec<String> = wanted
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, value)| *value != "(secret)" && body[name.as_str()] != **value)
        .map(|(name, value)| format!("{name}: {} instead of {value}", body[name.as_str()]))
        .collect();
    if differing.is_empty() { Ok(()) } else { Err(format!("read back: {}", differing.join(", "))) }
}

fn item(device: &Device, feature: &Value, sample: &Sample) -> Checked<()> {
    if schema(feature, "create").is_some() {
        there_and_back(device, feature, Operation::Create, &sample.create)?;
        let made = apply(device, feature, Operation::Create, &sample.create)?;
        read_back(device, feature, &made)?;
    }
    if schema(feature, "update").is_some() {
        there_and_back(device, feature, Operation::Update, &sample.update)?;
        moved(device, feature, sample)?;
    }
    if schema(feature, "delete").is_some() && schema(feature, "create").is_some() {
        let is_final = feature["binding"]["delete"]["final"] == true;
        if is_final {
            apply(device, feature, Operation::Delete, &sample.delete).map(drop)?;
        } else {
            there_and_back(device, feature, Operation::Delete, &sample.delete)?;
        }
    }
    Ok(())
}

fn settings(device: &Device, feature: &Value, sample: &Sample) -> Checked<()> {
    there_and_back(device, feature, Operation::Update, &sample.update)?;
    moved(device, feature, sample)
}

/// What a feature does not keep; a sample that panics is one of many.
fn problem(feature: &Value) -> Option<String> {
    let checked = panic::catch_unwind(AssertUnwindSafe(|| check(feature)));
    checked.unwrap_or_else(|_| Err("it panics".to_owned())).err()
}

fn check(feature: &Value) -> Checked<()> {
    let device = Device::new();
    if short(feature) == "core.firmware-update" {
        // It ends with a restart, which takes along what would prove its end: see `doing`.
        let problem = actions::check(&device, feature).err().unwrap_or_default();
        return if problem.contains("no longer knows the firmware job") { Ok(()) } else { Err(problem) };
    }
    if feature["binding"].get("action").is_some() {
        return actions::check(&device, feature);
    }
    if schema(feature, "create").is_none() && schema(feature, "update").is_none() {
        return actions::check_delete(&device, feature);
    }
    let sample = samples::prepare(&device, feature)?;
    device.settle(feature);
    if feature.get("natural-key").is_some() {
        item(&device, feature, &sample)
    } else {
        settings(&device, feature, &sample)
    }
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    let failures: Vec<String> = features()
        .iter()
        .filter_map(|feature| problem(feature).map(|problem| format!("{}: {problem}", short(feature))))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), features().len(), failures.join("\n"));
}
