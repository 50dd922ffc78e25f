//! Every feature of the description, from the plan to the way back.

use heddle_marketplace::Schema;
use heddle_sdk::{Adapter as _, ChangePlan, FaultExt, Listing, Operation, Stage};
use serde_json::Value;

use super::device::{Device, description};
use super::samples::{self, Sample};
use super::{change, plan, run, standing};
use crate::Proxmox;

pub(super) type Checked<T> = Result<T, String>;

pub(super) fn features() -> &'static [Value] {
    description()["features"].as_array().unwrap()
}

pub(super) fn feature(id: &str) -> &'static Value {
    let name = format!("proxmox.{id}");
    features().iter().find(|feature| feature["id"] == *name).unwrap_or_else(|| panic!("no feature {name}"))
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("proxmox.").unwrap()
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
    let (state, writes) = (device.state(), device.writes.get());
    let made = plan(device, &change(short(feature), operation, payload)).map_err(|fault| {
        let info = fault.info();
        format!("{} plan of {payload}: {} {:?}", word(operation), info.message, info.fields)
    })?;
    let is_untouched = device.state() == state && device.writes.get() == writes;
    if is_untouched { Ok(made) } else { Err("the plan wrote something".to_owned()) }
}

pub(super) fn sent(device: &Device, stage: Stage, plan: &ChangePlan) -> Checked<()> {
    run(device, stage, plan).map(drop).map_err(|fault| {
        let info = fault.info();
        let calls: Vec<String> = plan
            .native
            .iter()
            .map(|call| format!("{:?} {} {:?}", call.method, call.path, call.body))
            .collect();
        format!("{stage:?}: {} {:?} of {}", info.message, info.fields, calls.join(" | "))
    })
}

fn stands(device: &Device, plan: &ChangePlan, wanted: &str, when: &str) -> Checked<()> {
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
    // What no answer shows is written each time.
    if writes_unread(feature, payload) && operation != Operation::Delete {
        return Ok(made);
    }
    let again = planned(device, feature, operation, payload)?;
    if !again.native.is_empty() {
        return Err(format!("a second {} has {} calls", word(operation), again.native.len()));
    }
    Ok(made)
}

/// Whether a payload has a value that no answer shows: it is written each time.
fn writes_unread(feature: &Value, payload: &Value) -> bool {
    let fields = &kind_of(feature)["fields"];
    payload.as_object().unwrap().keys().any(|name| fields[name.as_str()]["unread"] == true)
}

pub(super) fn kind_of(feature: &Value) -> &'static Value {
    let kinds = description()["kinds"].as_array().unwrap();
    &kinds.iter().find(|kind| kind["id"] == feature["kind"]).unwrap()["binding"]
}

/// Applies and takes back; the cluster is then exactly as it was.
fn there_and_back(device: &Device, feature: &Value, operation: Operation, payload: &Value) -> Checked<()> {
    let state = device.state();
    let made = apply(device, feature, operation, payload)?;
    if made.native.iter().all(|call| call.stage == Stage::Apply) {
        // Said before, and only where a value can never be read.
        let is_told = made.warnings.iter().any(|warning| warning.contains("cannot be taken back"));
        return if is_told && writes_unread(feature, payload) {
            Ok(())
        } else {
            Err(format!("{} has no way back", word(operation)))
        };
    }
    sent(device, Stage::Restore, &made)?;
    stands(device, &made, "before", &format!("{} restored", word(operation)))?;
    let now = device.state();
    if now == state {
        return Ok(());
    }
    Err(format!(
        "{}: another state after the restore: {}",
        word(operation),
        difference(&state, &now).join("; ")
    ))
}

/// Where two states differ.
fn difference(old: &Value, new: &Value) -> Vec<String> {
    match (old, new) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names
                .filter(|name| one.get(*name) != other.get(*name))
                .flat_map(|name| {
                    let inner = difference(
                        one.get(name).unwrap_or(&Value::Null),
                        other.get(name).unwrap_or(&Value::Null),
                    );
                    inner.into_iter().map(move |text| format!("{name}.{text}"))
                })
                .collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate().filter(|(_, (one, other))| one != other);
            pairs
                .flat_map(|(at, (one, other))| {
                    difference(one, other).into_iter().map(move |text| format!("{at}.{text}"))
                })
                .collect()
        }
        _ => vec![format!("{old} became {new}")],
    }
}

/// Something else is written between plan and apply.
fn moved(device: &Device, feature: &Value, sample: &Sample) -> Checked<()> {
    let Some(other) = &sample.other else { return Ok(()) };
    let reviewed = planned(device, feature, Operation::Update, &sample.update)?;
    let theirs = planned(device, feature, Operation::Update, other)?;
    sent(device, Stage::Apply, &theirs)?;
    let writes = device.writes.get();
    let found = run(device, Stage::Apply, &reviewed);
    let is_told = found.is_err_and(|fault| fault.info().code.as_deref() == Some("state-moved"));
    let nothing_sent = device.writes.get() == writes;
    if theirs.native.iter().any(|call| call.stage == Stage::Restore) {
        sent(device, Stage::Restore, &theirs)?;
    }
    if is_told && nothing_sent { Ok(()) } else { Err("a moved state was written over".to_owned()) }
}

/// The object is read by its key, in the way in which the plan showed it.
fn read_back(device: &Device, feature: &Value, made: &ChangePlan, named: &Value) -> Checked<()> {
    let kind = feature["kind"].as_str().unwrap();
    let wanted: Value = serde_json::from_str(made.steps[0].after.as_deref().unwrap_or("{}")).unwrap();
    let page = Proxmox::list_objects(&device.host(), &Listing::of(kind, 1000))
        .map_err(|fault| format!("list: {}", fault.info().message))?;
    let text = |name: &Value| {
        let value = &named[name.as_str().unwrap()];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let key = feature["natural-key"].as_array().unwrap().iter().map(text).collect::<Vec<_>>().join(":");
    let keys: Vec<&str> = page.items.iter().map(|item| item.reference.key.as_str()).collect();
    if !keys.contains(&key.as_str()) {
        return Err(format!("'{key}' is not listed: {keys:?}"));
    }
    let found = Proxmox::get_object(&device.host(), kind, None, &key)
        .map_err(|fault| format!("get: {}", fault.info().message))?;
    let body: Value = serde_json::from_str(&found.body).unwrap();
    let fields = &kind_of(feature)["fields"];
    let differing: Vec<String> = wanted
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| fields[name.as_str()]["unread"] != true)
        .filter(|(name, value)| *value != "(secret)" && body[name.as_str()] != **value)
        .map(|(name, value)| format!("{name}: {} instead of {value}", body[name.as_str()]))
        .collect();
    if differing.is_empty() { Ok(()) } else { Err(format!("read back: {}", differing.join(", "))) }
}

fn item(device: &Device, feature: &Value, sample: &Sample) -> Checked<()> {
    if schema(feature, "create").is_some() {
        there_and_back(device, feature, Operation::Create, &sample.create)?;
        let made = apply(device, feature, Operation::Create, &sample.create)?;
        read_back(device, feature, &made, &sample.delete)?;
    }
    if schema(feature, "update").is_some() {
        there_and_back(device, feature, Operation::Update, &sample.update)?;
        moved(device, feature, sample)?;
    }
    if schema(feature, "delete").is_some() {
        let has_way_back =
            feature["binding"]["delete"]["final"] != true && schema(feature, "create").is_some();
        let loses =
            kind_of(feature)["fields"].as_object().unwrap().values().any(|field| field["unread"] == true);
        if has_way_back && !loses {
            there_and_back(device, feature, Operation::Delete, &sample.delete)?;
        } else {
            apply(device, feature, Operation::Delete, &sample.delete).map(drop)?;
        }
    }
    Ok(())
}

fn check(feature: &Value) -> Checked<()> {
    let device = samples::device(short(feature));
    let sample = samples::prepare(&device, feature)?;
    if kind_of(feature)["shape"] == "object" {
        there_and_back(&device, feature, Operation::Update, &sample.update)?;
        moved(&device, feature, &sample)
    } else {
        item(&device, feature, &sample)
    }
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    let objects = features().iter().filter(|feature| feature["binding"].get("action").is_none());
    let failures: Vec<String> = objects
        .clone()
        .filter_map(|feature| check(feature).err().map(|problem| format!("{}: {problem}", short(feature))))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), objects.count(), failures.join("\n"));
}

#[test]
fn every_action_is_done_and_seen_and_taken_back() {
    let actions = features().iter().filter(|feature| feature["binding"].get("action").is_some());
    let failures: Vec<String> = actions
        .clone()
        .filter_map(|feature| act(feature).err().map(|problem| format!("{}: {problem}", short(feature))))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), actions.count(), failures.join("\n"));
}

/// Plans an action, does it, finds its effect, and takes it back where there is a way.
fn act(feature: &Value) -> Checked<()> {
    let device = samples::device(short(feature));
    let payload = samples::prepare_action(&device, feature)?;
    let made = planned(&device, feature, Operation::Create, &payload)?;
    let has_effect = feature["binding"]["action"].get("effect").is_some();
    if has_effect {
        stands(&device, &made, "before", "planned")?;
    }
    sent(&device, Stage::Apply, &made)?;
    stands(&device, &made, if has_effect { "after" } else { "unseen" }, "done")?;
    if !has_effect {
        return Ok(());
    }
    let again = planned(&device, feature, Operation::Create, &payload);
    let is_idle = again.as_ref().is_ok_and(|plan| plan.native.is_empty());
    // The object that it was about may have gone.
    if !is_idle && made.steps[0].after.is_some() {
        return Err(format!("a second plan is not idle: {:?}", again.map(|plan| plan.native.len())));
    }
    let has_back = feature["binding"]["action"].get("back").is_some();
    let is_planned = made.native.iter().any(|call| call.stage == Stage::Restore);
    if has_back != is_planned {
        return Err("the way back is not planned as described".to_owned());
    }
    if has_back {
        sent(&device, Stage::Restore, &made)?;
        stands(&device, &made, "before", "taken back")?;
    }
    Ok(())
}
