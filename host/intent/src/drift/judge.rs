//! Compares what is wanted of an object with what was observed, and says where each difference comes from. Pure.
//!
//! Nothing is guessed: a difference has the label `unknown` where the evidence fits several originators, or none.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use heddle_core::ChangeId;
use heddle_core::drift::{DriftChange, DriftLabel, FieldDrift};
use heddle_store::drift::Found;
use heddle_store::wanted::Rewrite;
use serde_json::Value;

use super::label::{delta, digest_of, of_moved, of_whole, pair_of};
use super::own::{Ended, OwnChange, Subject, Touch, scalars};
use crate::settable::{Content, is_as_asked, same};

/// What is known of the time between the reading that was compared last and this one.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// Changes of ours, in the order in which they ended.
    pub(crate) changes: Vec<OwnChange>,
    /// What the vendor is known to make of values, by their digests.
    pub(crate) rewrites: HashSet<(String, String)>,
    /// The package that reads the controller is another one.
    pub(crate) is_read_anew: bool,
    /// The pairs of values that several objects of the list went through, and none kept the first one.
    pub(crate) common: HashSet<(String, String)>,
}

/// An object, and what is wanted of it.
#[derive(Debug, Clone)]
pub(crate) struct Compared<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) wanted: Option<Content>,
    pub(crate) observed: Option<Content>,
    /// Versions that ran before and now, where they differ.
    pub(crate) upgrade: Option<(String, String)>,
    /// What an open difference says of its fields.
    pub(crate) known: &'a [FieldDrift],
}

/// What follows for an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    /// What is wanted of it from now on; none where it is not wanted.
    pub(crate) wanted: Option<Content>,
    /// The change of ours that wrote it last.
    pub(crate) written_by: Option<ChangeId>,
    pub(crate) learned: Vec<Rewrite>,
    /// How it differs from what is wanted, if it does.
    pub(crate) drift: Option<Found>,
}

/// Judges one object.
pub(crate) fn judge(compared: &Compared<'_>, evidence: &Evidence) -> Judged {
    match (&compared.wanted, &compared.observed) {
        (None, None) => Judged { wanted: None, written_by: None, learned: Vec::new(), drift: None },
        (Some(wanted), None) => judge_removed(compared, evidence, wanted),
        (None, Some(observed)) => judge_created(compared, evidence, observed),
        (Some(wanted), Some(observed)) => judge_changed(compared, evidence, wanted, observed),
    }
}

fn judge_removed(compared: &Compared<'_>, evidence: &Evidence, wanted: &Content) -> Judged {
    let moved = values_of(wanted);
    let own = |change: &&OwnChange| match change.touch(&compared.subject) {
        Some(touch) => touch == Touch::Gone,
        None => change.takes_away() && (change.names(&compared.subject) || change.explains(&moved)),
    };
    if let Some(by) = evidence.changes.iter().filter(|change| change.is_applied()).find(own) {
        return Judged { wanted: None, written_by: Some(by.id), learned: Vec::new(), drift: None };
    }
    let (label, reason) = of_whole(compared, evidence, &moved);
    let gone =
        |(field, value): (&String, &Value)| of_field(compared, field, (Some(value), None), label, &reason);
    let differences = wanted.0.iter().map(gone).collect();
    drifted(Some(wanted.clone()), None, Vec::new(), DriftChange::Removed, differences)
}

fn judge_created(compared: &Compared<'_>, evidence: &Evidence, observed: &Content) -> Judged {
    let moved = values_of(observed);
    for change in evidence.changes.iter().filter(|change| change.is_applied()).rev() {
        match change.touch(&compared.subject) {
            Some(Touch::Fields(payload)) => {
                let (wanted, learned) = as_applied(change, observed.clone(), observed, payload);
                let left = open_fields(compared, &wanted, observed, &BTreeMap::new(), evidence);
                return finish(Some(wanted), Some(change.id), learned, left);
            }
            Some(Touch::Whole) => return taken(observed, change.id),
            _ if change.names(&compared.subject) || change.explains(&moved) => {
                return taken(observed, change.id);
            }
            _ => {}
        }
    }
    let (label, reason) = of_whole(compared, evidence, &moved);
    let came =
        |(field, value): (&String, &Value)| of_field(compared, field, (None, Some(value)), label, &reason);
    let differences = observed.0.iter().map(came).collect();
    drifted(None, None, Vec::new(), DriftChange::Created, differences)
}

/// The object as our change left it is what is wanted.
fn taken(observed: &Content, by: ChangeId) -> Judged {
    Judged { wanted: Some(observed.clone()), written_by: Some(by), learned: Vec::new(), drift: None }
}

fn judge_changed(
    compared: &Compared<'_>,
    evidence: &Evidence,
    before: &Content,
    observed: &Content,
) -> Judged {
    let mut wanted = before.clone();
    let (mut written_by, mut learned, mut applied) = (None, Vec::new(), BTreeMap::new());
    for change in evidence.changes.iter().filter(|change| change.is_applied()) {
        match change.touch(&compared.subject) {
            Some(Touch::Fields(payload)) => {
                let (next, more) = as_applied(change, wanted, observed, payload);
                wanted = next;
                learned.extend(more);
                written_by = Some(change.id);
                applied.extend(payload.keys().map(|field| (field.clone(), change.id)));
            }
            Some(Touch::Whole) => {
                written_by = Some(change.id);
                take_over(compared, evidence, &mut wanted, observed);
            }
            Some(Touch::Gone) | None => {}
        }
    }
    absorb(compared, evidence, &mut wanted, observed);
    let left = open_fields(compared, &wanted, observed, &applied, evidence);
    finish(Some(wanted), written_by, learned, left)
}

/// Puts what a change asked for over what was wanted. What the vendor made of it is learned where the device said so.
fn as_applied(
    change: &OwnChange,
    mut wanted: Content,
    observed: &Content,
    payload: &serde_json::Map<String, Value>,
) -> (Content, Vec<Rewrite>) {
    let mut learned = Vec::new();
    for (field, asked) in flat(payload, wanted.0.keys().chain(observed.0.keys())) {
        let is = observed.get(&field);
        if is_as_asked(&field, &asked, is) {
            wanted.set(&field, is.cloned());
        } else if change.ended == Ended::Adjusted && is.is_some() {
            learned.push(Rewrite {
                digest: digest_of(&field, Some(&asked), is),
                field: field.clone(),
                wanted: Some(asked),
                observed: is.cloned(),
                change_id: change.id,
            });
            wanted.set(&field, is.cloned());
        } else {
            wanted.set(&field, Some(asked));
        }
    }
    (wanted, learned)
}

/// The fields of a payload, those of a field dotted where objects have them so.
fn flat<'a>(
    payload: &serde_json::Map<String, Value>,
    known: impl Iterator<Item = &'a String>,
) -> Vec<(String, Value)> {
    let known: BTreeSet<&str> = known.map(String::as_str).collect();
    let mut flat = Vec::new();
    for (field, value) in payload.iter().filter(|(field, _)| *field != "key" && *field != "position") {
        let inner = format!("{field}.");
        match value {
            Value::Object(parts) if known.iter().any(|name| name.starts_with(&inner)) => {
                flat.extend(parts.iter().map(|(part, value)| (format!("{inner}{part}"), value.clone())));
            }
            _ => flat.push((field.clone(), value.clone())),
        }
    }
    flat
}

/// Takes every field over that was not different before our change already, and that a new version did not move
/// everywhere.
fn take_over(compared: &Compared<'_>, evidence: &Evidence, wanted: &mut Content, observed: &Content) {
    for field in wanted.differing(observed) {
        let pair = (field.clone(), pair_of(&field, wanted.get(&field), observed.get(&field)));
        let is_of_all = compared.upgrade.is_some() && evidence.common.contains(&pair);
        if !is_of_all && !is_known(compared, &field, observed.get(&field)) {
            wanted.set(&field, observed.get(&field).cloned());
        }
    }
}

/// Whether an open difference says the same of a field.
fn is_known(compared: &Compared<'_>, field: &str, observed: Option<&Value>) -> bool {
    let mut known = compared.known.iter();
    known.any(|one| one.field == field && same(field, one.observed.as_ref(), observed))
}

/// Takes over what is no drift: what the vendor is known to write, what follows from a change of ours, and what another
/// package reads in another way.
fn absorb(compared: &Compared<'_>, evidence: &Evidence, wanted: &mut Content, observed: &Content) {
    let fields: Vec<String> = wanted.differing(observed);
    let new: Vec<&String> =
        fields.iter().filter(|field| !is_known(compared, field, observed.get(field))).collect();
    let mut moved = BTreeSet::new();
    new.iter().for_each(|field| moved.extend(delta(wanted.get(field), observed.get(field))));
    let applied = || evidence.changes.iter().filter(|change| change.is_applied());
    let is_consequence =
        applied().any(|change| change.touch(&compared.subject).is_none() && change.explains(&moved));
    for field in new {
        let (before, is) = (wanted.get(field), observed.get(field));
        let pair = (field.clone(), digest_of(field, before, is));
        let is_common = evidence.common.contains(&(field.clone(), pair_of(field, before, is)));
        let is_read_anew = evidence.is_read_anew && (before.is_none() || is.is_none() || is_common);
        if is_consequence || evidence.rewrites.contains(&pair) || is_read_anew {
            let is = is.cloned();
            wanted.set(field, is);
        }
    }
}

fn values_of(content: &Content) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    content.0.values().for_each(|value| scalars(value, &mut values));
    values
}

/// The fields that are still different, each with its label.
fn open_fields(
    compared: &Compared<'_>,
    wanted: &Content,
    observed: &Content,
    applied: &BTreeMap<String, ChangeId>,
    evidence: &Evidence,
) -> Vec<FieldDrift> {
    let mut open = Vec::new();
    for field in wanted.differing(observed) {
        let values = (wanted.get(&field), observed.get(&field));
        let outer = field.split('.').next().unwrap_or(&field);
        let (label, reason) = match applied.get(outer) {
            Some(by) => (
                DriftLabel::Unknown,
                format!(
                    "change {by} was applied and read back, and the reading behind it shows another value"
                ),
            ),
            None => of_moved(compared, evidence, &field, values),
        };
        open.push(of_field(compared, &field, values, label, &reason));
    }
    open
}

/// A field that is different; one that was known before keeps its label.
fn of_field(
    compared: &Compared<'_>,
    field: &str,
    (wanted, observed): (Option<&Value>, Option<&Value>),
    label: DriftLabel,
    reason: &str,
) -> FieldDrift {
    let known = compared.known.iter().find(|one| one.field == field);
    if let Some(known) = known.filter(|known| same(field, known.observed.as_ref(), observed)) {
        return FieldDrift { wanted: wanted.cloned(), ..known.clone() };
    }
    FieldDrift {
        field: field.to_owned(),
        wanted: wanted.cloned(),
        observed: observed.cloned(),
        label,
        reasons: vec![reason.to_owned()],
    }
}

fn finish(
    wanted: Option<Content>,
    written_by: Option<ChangeId>,
    learned: Vec<Rewrite>,
    left: Vec<FieldDrift>,
) -> Judged {
    if left.is_empty() {
        return Judged { wanted, written_by, learned, drift: None };
    }
    drifted(wanted, written_by, learned, DriftChange::Changed, left)
}

fn drifted(
    wanted: Option<Content>,
    written_by: Option<ChangeId>,
    learned: Vec<Rewrite>,
    change: DriftChange,
    differences: Vec<FieldDrift>,
) -> Judged {
    let labels: BTreeSet<DriftLabel> = differences.iter().map(|one| one.label).collect();
    let label = if labels.len() == 1 { labels.first().copied() } else { None };
    let label = label.unwrap_or(DriftLabel::Unknown);
    Judged { wanted, written_by, learned, drift: Some(Found { change, label, differences }) }
}

#[cfg(test)]
mod tests;
