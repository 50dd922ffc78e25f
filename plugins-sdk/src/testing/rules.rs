//! What a server refuses of a plan, whatever its package.

use std::collections::{BTreeMap, BTreeSet};

use super::method_word;
use crate::{ChangePlan, HoleSource, NativeCall, Stage};

/// What holds the name of a hole.
const BEGIN: &str = "{{hole.";

/// Why a server would refuse the plan.
pub(super) fn problem(plan: &ChangePlan) -> Option<String> {
    let mut ids: BTreeMap<&str, (usize, Stage)> = BTreeMap::new();
    for (at, call) in plan.native.iter().enumerate() {
        let Some(id) = &call.id else { continue };
        if ids.insert(id, (at, call.stage)).is_some() {
            return Some(format!("two calls have the id '{id}'"));
        }
    }
    let mut used = BTreeSet::new();
    for (at, call) in plan.native.iter().enumerate() {
        if let Some(problem) = of_call(plan, (at, call), &ids, &mut used) {
            return Some(format!("{} {}: {problem}", method_word(call.method), call.path));
        }
    }
    let unused = plan.holes.iter().find(|hole| !used.contains(&hole.name));
    unused.map(|hole| format!("no call names the hole '{}'", hole.name))
}

fn of_call(
    plan: &ChangePlan,
    (at, call): (usize, &NativeCall),
    ids: &BTreeMap<&str, (usize, Stage)>,
    used: &mut BTreeSet<String>,
) -> Option<String> {
    if !call.path.starts_with('/') || call.path.replace(BEGIN, "").contains('{') {
        return Some("its path is not filled".to_owned());
    }
    if let Some(problem) = of_only_after(call, ids) {
        return Some(problem);
    }
    for name in names(call) {
        let Some(hole) = plan.holes.iter().find(|hole| hole.name == name) else {
            return Some(format!("the plan declares no hole '{name}'"));
        };
        if let HoleSource::Answer((id, _)) = &hole.source {
            let is_before = ids.get(id.as_str()).is_some_and(|(of, stage)| match call.stage {
                own if own == *stage => *of < at,
                Stage::Abort => matches!(stage, Stage::Apply | Stage::Restore),
                _ => *stage == Stage::Apply,
            });
            if !is_before {
                return Some(format!("the hole '{name}' is filled from '{id}', which is no call before it"));
            }
        }
        used.insert(name);
    }
    None
}

fn of_only_after(call: &NativeCall, ids: &BTreeMap<&str, (usize, Stage)>) -> Option<String> {
    let named = call.only_after.as_deref();
    let stage = named.and_then(|id| ids.get(id)).map(|(_, stage)| *stage);
    let name = named.unwrap_or_default();
    match (call.stage, named, stage) {
        (Stage::Abort, None, _) => Some("it does not say which call's job it ends".to_owned()),
        (Stage::Abort, _, Some(Stage::Apply | Stage::Restore)) | (_, None, _) => None,
        (Stage::Abort, ..) => {
            Some(format!("it ends the job of '{name}', which is no call of apply or restore"))
        }
        (Stage::Undo | Stage::Restore, _, Some(Stage::Apply)) => None,
        _ => Some(format!("it takes back '{name}', which is no call of the apply")),
    }
}

/// Names of the holes in a call.
fn names(call: &NativeCall) -> Vec<String> {
    let headers = call.headers.iter().map(|(_, value)| value.as_str());
    let texts = headers.chain(call.texts()).chain([call.path.as_str()]);
    let holes = texts.flat_map(|text| text.split(BEGIN).skip(1));
    holes.filter_map(|rest| rest.split_once("}}").map(|(name, _)| name.to_owned())).collect()
}
