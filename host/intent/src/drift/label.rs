//! Where a difference comes from, as far as the evidence tells. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use heddle_core::drift::DriftLabel;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::judge::{Compared, Evidence};
use super::own::{Ended, OwnChange, Touch, scalars};
use crate::settable::{Content, canonical};

/// SHA-256 of a pair of values.
pub(crate) fn digest_of(field: &str, wanted: Option<&Value>, observed: Option<&Value>) -> String {
    let canonical = |value: Option<&Value>| value.map(|value| canonical(field, value));
    let pair = serde_json::to_vec(&(canonical(wanted), canonical(observed))).unwrap_or_default();
    hex::encode(Sha256::digest(pair))
}

/// The pairs of values that at least two objects went through and that no other one kept the first value of.
pub(crate) fn common<'a>(
    moved: impl Iterator<Item = (&'a Content, &'a Content)>,
    kept: &HashSet<(String, String)>,
) -> HashSet<(String, String)> {
    let mut counts: HashMap<(String, String), usize> = HashMap::new();
    for (wanted, observed) in moved {
        for field in wanted.differing(observed) {
            let before = value_key(&field, wanted.get(&field));
            if !kept.contains(&before) {
                let pair = pair_of(&field, wanted.get(&field), observed.get(&field));
                *counts.entry((field, pair)).or_default() += 1;
            }
        }
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(pair, _)| pair).collect()
}

/// What a field went through: from one value to another, or from or to nothing, whatever the value.
pub(super) fn pair_of(field: &str, before: Option<&Value>, is: Option<&Value>) -> String {
    match (before, is) {
        (None, Some(_)) => "appeared".to_owned(),
        (Some(_), None) => "vanished".to_owned(),
        (before, is) => digest_of(field, before, is),
    }
}

/// A field with one value, to be found among those that objects kept.
pub(crate) fn value_key(field: &str, value: Option<&Value>) -> (String, String) {
    (field.to_owned(), value.map(|value| canonical(field, value).to_string()).unwrap_or_default())
}

/// Where a moved field comes from.
pub(super) fn of_moved(
    compared: &Compared<'_>,
    evidence: &Evidence,
    field: &str,
    (before, is): (Option<&Value>, Option<&Value>),
) -> (DriftLabel, String) {
    let moved = delta(before, is);
    if let Some(doubt) = in_doubt(compared, evidence, Some(field), &moved) {
        return doubt;
    }
    let Some((from, to)) = &compared.upgrade else { return foreign(evidence) };
    let upgraded = format!("version {to} replaced {from} since the last reading");
    if evidence.common.contains(&(field.to_owned(), pair_of(field, before, is))) {
        let told = "every object that had the value before moved in the same way";
        return (DriftLabel::Vendor, format!("{upgraded}, and {told}"));
    }
    let told = "not all objects with the value before moved in the same way: it cannot be told from an edit";
    (DriftLabel::Unknown, format!("{upgraded}, and {told}"))
}

/// Where an object comes from that came or went as a whole.
pub(super) fn of_whole(
    compared: &Compared<'_>,
    evidence: &Evidence,
    moved: &BTreeSet<String>,
) -> (DriftLabel, String) {
    if let Some(doubt) = in_doubt(compared, evidence, None, moved) {
        return doubt;
    }
    match &compared.upgrade {
        Some((from, to)) => (
            DriftLabel::Unknown,
            format!("version {to} replaced {from} since the last reading: it cannot be told from an edit"),
        ),
        None => foreign(evidence),
    }
}

/// A change of ours of which a part may be at the device, and that wrote the field, or the object as a whole.
fn in_doubt(
    compared: &Compared<'_>,
    evidence: &Evidence,
    field: Option<&str>,
    moved: &BTreeSet<String>,
) -> Option<(DriftLabel, String)> {
    let outer = field.map(|field| field.split('.').next().unwrap_or(field));
    let concerns = |change: &&OwnChange| match change.touch(&compared.subject) {
        Some(Touch::Fields(payload)) => outer.is_none_or(|outer| payload.contains_key(outer)),
        Some(Touch::Whole | Touch::Gone) => true,
        None => change.explains(moved) || (field.is_none() && change.names(&compared.subject)),
    };
    let doubtful = evidence.changes.iter().filter(|change| !change.is_applied()).find(concerns)?;
    let Ended::InDoubt(state) = doubtful.ended else { return None };
    Some((DriftLabel::Ours, format!("change {} of this object ended {state}", doubtful.id)))
}

/// The label where no change of this service, no known rewrite and no new version explains a difference.
fn foreign(evidence: &Evidence) -> (DriftLabel, String) {
    let reason = if evidence.is_read_anew {
        "another package reads the controller since the last reading: it cannot be told from an edit"
    } else {
        "no change of this service and no new version fits it, and the device keeps no record that is read"
    };
    (DriftLabel::Unknown, reason.to_owned())
}

/// The values that are in one of both and not in the other.
pub(super) fn delta(before: Option<&Value>, after: Option<&Value>) -> BTreeSet<String> {
    let (mut one, mut other) = (BTreeSet::new(), BTreeSet::new());
    before.into_iter().for_each(|value| scalars(value, &mut one));
    after.into_iter().for_each(|value| scalars(value, &mut other));
    one.symmetric_difference(&other).cloned().collect()
}
