//! What a plan leaves open: ids that the device chooses, and revisions that it wants with a write.
//!
//! An object without a known id has the reference of a hole in its place, in paths as in fields that name it. It is read
//! by its natural key.

use serde_json::Value;

use super::Place;
use super::binding::{KindBinding, Revision};
use super::path::filled;
use crate::{Hole, NativeCall};

const BEGIN: &str = "{{hole.";
/// What an id that the device chooses may be.
const ID: &str = "[A-Za-z0-9_.:@~*/ -]{1,200}";
/// Stands for the id of an object that never came to be, or is gone, where a restore would take it away: the device has
/// none of this id, and what was the position of the object is another one's by now.
pub(crate) const ABSENT: &str = "no-such-object";
/// What the id of a job may be.
const JOB: &str = "[A-Za-z0-9_.:@!~/ -]{1,200}";
/// What a digest or revision may be.
const REVISION: &str = "[A-Za-z0-9_.:+/=-]{1,200}";

/// Whether a text stands for a value that is not known yet.
pub(crate) fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix("}}"));
    name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'))
}

/// What stands for the id of the object at this place of the plan.
pub(crate) fn id_reference(part: usize) -> String {
    format!("{BEGIN}{}}}}}", id_name(part))
}

/// The name of the hole for the id of the object at this place of the plan.
pub(crate) fn id_name(part: usize) -> String {
    format!("id_{part}")
}

/// The place in the plan of the object whose id a reference stands for.
pub(crate) fn part_of(reference: &str) -> Option<usize> {
    reference.strip_prefix(BEGIN)?.strip_suffix("}}")?.strip_prefix("id_")?.parse().ok()
}

/// The holes of a plan, while it is made.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    all: Vec<Hole>,
}

impl Holes {
    /// The id is in the answer to a call.
    pub(crate) fn answered(&mut self, part: usize, call: &str, pointer: &str) {
        self.all.push(Hole::of_answer(id_name(part), call, pointer, ID));
    }

    /// The id is found by the natural key.
    pub(crate) fn found(&mut self, part: usize) {
        self.all.push(Hole::found(id_name(part), ID));
    }

    /// What stands for the id of the job that a call starts.
    pub(crate) fn job(&mut self, part: usize, call: &str, pointer: &str) -> String {
        let hole = Hole::of_answer(format!("job_{part}"), call, pointer, JOB);
        let reference = hole.reference();
        self.all.push(hole);
        reference
    }

    /// What stands for a revision that is read right before the write; none where it would be read at a path that is not
    /// known before, or of an object that may not be there.
    pub(crate) fn revision(
        &mut self,
        kind: &KindBinding,
        revision: &Revision,
        (place, id): (&Place, &str),
        is_sure: bool,
    ) -> Option<String> {
        let read = || kind.get.as_ref().map(|get| get.path.as_str()).filter(|_| !kind.volatile);
        let listed = || kind.list.as_ref().map(|list| list.path.as_str());
        let path = revision.path.as_deref().or_else(read).or_else(listed).unwrap_or_default();
        let is_own = path.contains("{id}");
        let path = filled(path, place, id);
        if path.contains(BEGIN) || (is_own && !is_sure) {
            return None;
        }
        let hole = Hole::fresh(format!("revision_{}", self.all.len()), path, revision.at.clone(), REVISION);
        let known = self.all.iter().find(|known| same_source(known, &hole));
        if let Some(known) = known {
            return Some(known.reference());
        }
        let reference = hole.reference();
        self.all.push(hole);
        Some(reference)
    }

    /// Whether an answer gives the id of the object at this place of the plan.
    pub(crate) fn is_answered(&self, part: usize) -> bool {
        let name = id_name(part);
        self.all.iter().any(|hole| hole.name == name && matches!(hole.source, crate::HoleSource::Answer(_)))
    }

    /// The holes that some call names; a plan has no others.
    pub(crate) fn named_by<'c>(&self, calls: impl Iterator<Item = &'c NativeCall> + Clone) -> Vec<Hole> {
        let is_named = |hole: &&Hole| {
            let reference = hole.reference();
            calls.clone().any(|call| names(call, &reference))
        };
        self.all.iter().filter(is_named).cloned().collect()
    }
}

fn same_source(one: &Hole, other: &Hole) -> bool {
    use crate::HoleSource::Fresh;
    matches!((&one.source, &other.source), (Fresh(one), Fresh(other)) if one == other)
}

fn names(call: &NativeCall, reference: &str) -> bool {
    call.texts().iter().any(|text| text.contains(reference)) || call.path.contains(reference)
}

/// The places in the plan of the objects whose ids a call leaves open.
pub(crate) fn ids_of(call: &NativeCall) -> Vec<usize> {
    let named =
        call.texts().into_iter().chain([call.path.as_str()]).flat_map(|text| text.split(BEGIN).skip(1));
    let id = |rest: &str| rest.split_once("}}")?.0.strip_prefix("id_")?.parse().ok();
    let mut all: Vec<usize> = named.filter_map(id).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A value with references put in for what is known now.
pub(crate) fn resolved(value: &Value, known: &dyn Fn(usize) -> Option<String>) -> Value {
    match value {
        Value::String(text) if is_reference(text) => {
            part_of(text).and_then(known).map_or_else(|| value.clone(), Value::String)
        }
        Value::Array(items) => items.iter().map(|item| resolved(item, known)).collect(),
        other => other.clone(),
    }
}
