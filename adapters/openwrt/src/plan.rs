//! Plans: every call of every stage, computed on the model before any is sent.

use std::collections::BTreeMap;

use heddle_sdk::{
    Change, ChangePlan, Danger, Fault, FaultExt, Host, Method, NativeCall, Stage, fault, json as sdk_json,
};
use serde_json::{Value, json};

use crate::features::section::Done;
use crate::features::{order, section, section_feature};
use crate::power;
use crate::rpc;
use crate::run::{apply_call, confirm_call};
use crate::token::{ConfigToken, Token};
use crate::uci::Config;

/// Seconds that the device holds a restored state until it is confirmed; the
/// confirmation follows at once.
const RESTORE_HOLD_SECS: u64 = 30;

/// The configuration file that a feature writes.
fn config_of(feature: &str) -> Option<&'static str> {
    section_feature(feature)
        .map(|feature| feature.config)
        .or_else(|| order::find(feature).map(|feature| feature.config))
}

/// Reads whole files: ids of sections depend on everything in them.
///
/// A session sees its own staged changes as if they were in the files, and the
/// device puts changes that it took back into the staging of the session that
/// made them; a login meanwhile may have got that very session. Such a session
/// is ended and the files are read again.
pub(crate) fn read_configs<'a>(
    host: &dyn Host,
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, Config>, Fault> {
    let names: Vec<&str> = names.collect();
    let (configs, is_clean) = read_once(host, &names)?;
    if is_clean {
        return Ok(configs);
    }
    host.reset_session(rpc::SESSION);
    match read_once(host, &names)? {
        (configs, true) => Ok(configs),
        (_, false) => Err(fault::busy(
            "the session holds changes of an earlier write that was taken back; try again in a minute",
        )
        .with_retry_after_ms(60_000)),
    }
}

/// The files, and whether nothing is staged over them.
fn read_once(host: &dyn Host, names: &[&str]) -> Result<(BTreeMap<String, Config>, bool), Fault> {
    let mut reads: Vec<rpc::Read<'_>> =
        names.iter().map(|name| ("uci", "get", json!({"config": name}))).collect();
    reads.push(("uci", "changes", json!({})));
    let mut answers = rpc::batch(host, &reads)?;
    let staged =
        answers.pop().expect("an answer for each read").map_err(|error| error.into_fault("uci.changes"))?;
    let mut configs = BTreeMap::new();
    for (name, answer) in names.iter().zip(answers) {
        let answer = answer.map_err(|error| error.into_fault(&format!("uci.get {name}")))?;
        configs.insert((*name).to_owned(), Config::parse(name, &answer)?);
    }
    Ok((configs, is_empty(staged.get("changes"))))
}

/// The device answers an object, an array or nothing.
fn is_empty(staged: Option<&Value>) -> bool {
    match staged {
        None => true,
        Some(Value::Object(configs)) => {
            configs.values().all(|list| list.as_array().is_none_or(Vec::is_empty))
        }
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}

pub(crate) fn digests(configs: &BTreeMap<String, Config>) -> BTreeMap<String, String> {
    configs.iter().map(|(name, config)| (name.clone(), config.digest())).collect()
}

pub(crate) fn native(stage: Stage, body: &Value) -> NativeCall {
    NativeCall { stage, method: Method::Post, path: rpc::PATH.to_owned(), body: Some(body.to_string()) }
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
        let name = config_of(&change.feature)
            .ok_or_else(|| fault::unsupported(format!("there is no feature '{}'", change.feature)))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let before = read_configs(host, names.iter().copied())?;
    let mut model = before.clone();
    let mut all = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let name = config_of(&change.feature).expect("looked up above");
        let config = model.get_mut(name).expect("every named file was read");
        let done = match (section_feature(&change.feature), order::find(&change.feature)) {
            (Some(feature), _) => section::apply(feature, change, config),
            (None, Some(feature)) => order::apply(feature, change, config),
            (None, None) => Err(fault::unsupported(format!("there is no feature '{}'", change.feature))),
        };
        let done = done.map_err(|fault| if changes.len() > 1 { say_which(fault, index) } else { fault })?;
        all.push((name, done));
    }
    assemble(&before, model, all)
}

fn say_which(mut fault: Fault, index: usize) -> Fault {
    let info = fault.info_mut();
    info.message = format!("change {}: {}", index + 1, info.message);
    fault
}

/// The calls that restore the files, computed on what the device will then have.
fn restore_calls(model: BTreeMap<String, Config>, done: &mut [(&str, Done)]) -> Vec<Value> {
    let mut after: BTreeMap<String, Config> =
        model.into_iter().map(|(name, config)| (name, config.committed())).collect();
    let mut calls = Vec::new();
    for (name, done) in done.iter_mut().rev() {
        let config = after.get_mut(*name).expect("every named file was read");
        for edit in std::mem::take(&mut done.back) {
            calls.extend(config.apply(edit).0);
        }
    }
    if !calls.is_empty() {
        calls.push(apply_call(&json!(RESTORE_HOLD_SECS)));
        calls.push(confirm_call());
    }
    calls
}

fn assemble(
    before: &BTreeMap<String, Config>,
    model: BTreeMap<String, Config>,
    mut done: Vec<(&str, Done)>,
) -> Result<ChangePlan, Fault> {
    let after = digests(&model);
    let before = digests(before);
    let mut plan = ChangePlan {
        steps: Vec::new(),
        native: Vec::new(),
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: Vec::new(),
        base_digest: sdk_json::digest(&json!(before)).to_vec(),
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
    let restore = restore_calls(model, &mut done);
    if apply.is_empty() {
        plan.warnings.push("the device is already as asked".to_owned());
        plan.lockout_risk = false;
    } else {
        apply.push(apply_call(&json!("{{host.hold_secs}}")));
    }
    if plan.inverse.is_none() {
        plan.warnings
            .push("no staged change can take this back; it can be restored while it is held".to_owned());
    }
    let token = ConfigToken { before, after, apply, restore };
    for stage in [Stage::Apply, Stage::Confirm, Stage::Undo, Stage::Restore] {
        plan.native.extend(token.calls(stage).iter().map(|body| native(stage, body)));
    }
    plan.token = Token::Config(token).write()?;
    Ok(plan)
}

fn worse(one: Danger, other: Danger) -> Danger {
    match (one, other) {
        (Danger::Catastrophic, _) | (_, Danger::Catastrophic) => Danger::Catastrophic,
        (Danger::Destructive, _) | (_, Danger::Destructive) => Danger::Destructive,
        (Danger::Normal, Danger::Normal) => Danger::Normal,
    }
}
