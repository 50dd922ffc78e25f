//! Plans: every call of every stage, computed on the model before any is sent.

use std::collections::{BTreeMap, BTreeSet};

use heddle_sdk::{
    Change, ChangePlan, Danger, Fault, FaultExt, Host, Method, NativeCall, Stage, fault, json as sdk_json,
};
use serde_json::{Value, json};

use crate::comments;
use crate::features::section::Done;
use crate::features::{order, section, section_feature};
use crate::foreign;
use crate::identity;
use crate::power;
use crate::read;
use crate::rpc;
use crate::stages::{apply_call, confirm_call};
use crate::token::{Calls, ConfigToken, Token};
use crate::touch::{self, Configs, Touch};
use crate::world::World;

/// Seconds that the device holds a restored state until it is confirmed; the confirmation follows at once.
const RESTORE_HOLD_SECS: u64 = 30;
const TOUCHES_MAX: usize = 256;

/// The configuration file that a feature writes.
fn config_of(feature: &str) -> Result<&'static str, Fault> {
    section_feature(feature)
        .map(|feature| feature.config)
        .or_else(|| order::find(feature).map(|feature| feature.config))
        .ok_or_else(|| fault::unsupported(format!("there is no feature '{feature}'")))
}

pub(crate) fn native(stage: Stage, body: &Value) -> NativeCall {
    let call = NativeCall::new(stage, Method::Post, rpc::PATH).with_json(body).in_session(rpc::SESSION);
    // What the other stages stage is dropped with its session, and the rest names the state that it leads to.
    if stage == Stage::Apply { call } else { call.repeatable() }
}

/// Plans changes of configuration files, or one action.
pub(crate) fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
    if let Some(action) = changes.iter().find(|change| power::is_action(&change.feature)) {
        if changes.len() > 1 {
            return Err(fault::invalid(format!("'{}' must be planned alone", action.feature)));
        }
        return power::plan(host, action);
    }
    let mut names = Vec::new();
    for change in changes {
        let name = config_of(&change.feature)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (before, mut world) = read::for_plan(host, &names)?;
    let mut model = before.clone();
    let mut all = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let name = config_of(&change.feature)?;
        let done = one(change, name, &mut model, &mut world)
            .map_err(|fault| if changes.len() > 1 { say_which(fault, index) } else { fault })?;
        all.push((name, done));
    }
    let warnings = comments::warnings(
        host,
        &before,
        all.iter().filter(|(_, done)| !done.calls.is_empty()).map(|(name, _)| *name),
    );
    assemble(&before, model, all, warnings)
}

fn one(change: &Change, name: &str, model: &mut Configs, world: &mut World) -> Result<Done, Fault> {
    let config = model.get_mut(name).expect("every named file was read");
    let done = match (section_feature(&change.feature), order::find(&change.feature)) {
        (Some(feature), _) => section::apply(feature, change, config, world),
        (None, Some(feature)) => order::apply(feature, change, config),
        (None, None) => Err(fault::unsupported(format!("there is no feature '{}'", change.feature))),
    }?;
    // The next change sees what this one leaves, also in another file.
    world.configs.insert(name.to_owned(), config.clone());
    Ok(done)
}

fn say_which(mut fault: Fault, index: usize) -> Fault {
    let info = fault.info_mut();
    info.message = format!("change {}: {}", index + 1, info.message);
    fault
}

/// The calls with what the unnamed ids in them stand for, in files as the device has them when they are sent.
fn marked(calls: Vec<Value>, files: &Configs) -> Calls {
    let mut marks = BTreeSet::new();
    let mut counts = BTreeMap::new();
    for call in &calls {
        let args = &call["params"][3];
        let Some(config) = args["config"].as_str().and_then(|name| files.get(name)) else { continue };
        let listed = args["sections"].as_array().into_iter().flatten();
        for id in args.get("section").into_iter().chain(listed).filter_map(Value::as_str) {
            if let Some(section) = config.by_id(id).filter(|section| section.is_anonymous) {
                marks.insert((config.name.clone(), id.to_owned(), identity::mark(&config.name, section)));
            }
        }
        if call["params"][2] == "add" && args.get("name").is_none() {
            counts.insert(config.name.clone(), config.sections.len());
        }
    }
    Calls { calls, marks: marks.into_iter().collect(), counts }
}

/// The calls that restore our part, computed on what the device will then have. A change that is still provisional
/// is made permanent first: nothing else can be written before.
fn restore_calls(after: &Configs, done: &mut [(&str, Done)]) -> Calls {
    let mut files = after.clone();
    let mut calls = Vec::new();
    for (name, done) in done.iter_mut().rev() {
        let config = files.get_mut(*name).expect("every named file was read");
        for edit in std::mem::take(&mut done.back) {
            calls.extend(config.apply(edit).0);
        }
    }
    if !calls.is_empty() {
        calls.insert(0, confirm_call());
        calls.push(apply_call(&json!(RESTORE_HOLD_SECS)));
        calls.push(confirm_call());
    }
    marked(calls, after)
}

fn assemble(
    before: &Configs,
    model: Configs,
    mut done: Vec<(&str, Done)>,
    warnings: Vec<String>,
) -> Result<ChangePlan, Fault> {
    let mut plan = ChangePlan {
        steps: Vec::new(),
        native: Vec::new(),
        holes: Vec::new(),
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: Vec::new(),
        also: Vec::new(),
        base_digest: Vec::new(),
        inverse: Some(Vec::new()),
        holds: true,
        undo_takes_all: true,
        touches: Vec::new(),
        token: Vec::new(),
    };
    let mut apply: Vec<Value> = Vec::new();
    for (_, done) in &mut done {
        apply.append(&mut done.calls);
        plan.lockout_risk |= done.notes.lockout_risk;
        for warning in std::mem::take(&mut done.notes.warnings) {
            if !plan.warnings.contains(&warning) {
                plan.warnings.push(warning);
            }
        }
        plan.danger = worse(plan.danger, done.danger);
        plan.steps.push(done.step.clone());
    }
    for (_, done) in done.iter().rev() {
        plan.inverse = match (plan.inverse.take(), &done.inverse) {
            (Some(mut all), Some(more)) => {
                all.extend(more.iter().cloned());
                Some(all)
            }
            _ => None,
        };
    }
    if apply.is_empty() {
        plan.warnings.push("the device is already as asked".to_owned());
        plan.lockout_risk = false;
    } else {
        apply.push(apply_call(&json!("{{host.hold_secs}}")));
        plan.warnings.extend(warnings);
    }
    if plan.inverse.is_none() {
        plan.warnings
            .push("no staged change can take this back; it can be restored while it is held".to_owned());
    }
    let touches: Vec<(&str, Vec<Touch>)> =
        done.iter().map(|(name, done)| (*name, done.touches.clone())).collect();
    let (parts, orders) = touch::gather(before, &model, &touches);
    plan.touches = names_of(&parts, &orders);
    plan.base_digest = sdk_json::digest(&base(&parts, &orders)).to_vec();
    let files = foreign::theirs(before, &parts);
    let after: Configs = model.into_iter().map(|(name, config)| (name, config.committed())).collect();
    let restore = restore_calls(&after, &mut done);
    let token =
        ConfigToken { items: done.len(), parts, orders, files, apply: marked(apply, before), restore };
    for stage in [Stage::Apply, Stage::Confirm, Stage::Undo, Stage::Restore] {
        plan.native.extend(token.calls(stage).iter().map(|body| native(stage, body)));
    }
    plan.token = Token::Config(token).write()?;
    Ok(plan)
}

/// The state that the plan saw, as far as it touches it.
fn base(parts: &[touch::Part], orders: &[touch::Order]) -> Value {
    let parts: Vec<Value> = parts
        .iter()
        .map(|part| {
            let options: BTreeMap<&String, &Option<Value>> =
                part.options.iter().map(|(name, pair)| (name, &pair.0)).collect();
            json!([part.path, part.there.0, options])
        })
        .collect();
    let orders: Vec<Value> = orders.iter().map(|order| json!([order.kind, order.idents])).collect();
    json!([parts, orders])
}

fn names_of(parts: &[touch::Part], orders: &[touch::Order]) -> Vec<String> {
    let mut names: BTreeSet<String> = parts.iter().map(|part| part.path.clone()).collect();
    names.extend(orders.iter().map(|order| format!("{}/{}/order", order.config, order.kind)));
    names.into_iter().take(TOUCHES_MAX).collect()
}

fn worse(one: Danger, other: Danger) -> Danger {
    match (one, other) {
        (Danger::Catastrophic, _) | (_, Danger::Catastrophic) => Danger::Catastrophic,
        (Danger::Destructive, _) | (_, Danger::Destructive) => Danger::Destructive,
        (Danger::Normal, Danger::Normal) => Danger::Normal,
    }
}
