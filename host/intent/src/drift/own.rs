//! What a change of ours says about an object: whether it wrote it, with which values, or named it. Pure.

use std::collections::BTreeSet;

use heddle_core::ChangeId;
use heddle_core::adapter::{Description, ObjectRef};
use heddle_core::change::{ChangeSpec, ChangeStatus, Operation, OutcomeState};
use heddle_marketplace::model::ModelKind;
use heddle_store::changes::ChangeRow;
use serde_json::{Map, Value};

use crate::settable::is_as_asked;

/// The object that a comparison is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) kind: &'static ModelKind,
    pub(crate) key: &'a str,
    pub(crate) label: &'a str,
    pub(crate) native: Option<&'a ObjectRef>,
    /// The object as it was observed; none where it is gone.
    pub(crate) fields: Option<&'a Value>,
}

/// What is known of the device after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was read back as planned.
    Applied,
    /// The same, but for values that the vendor writes in its own way.
    Adjusted,
    /// A part of it may be there.
    InDoubt(OutcomeState),
}

/// A change of ours that may have reached the controller.
#[derive(Debug, Clone)]
pub(crate) struct OwnChange {
    pub(crate) id: ChangeId,
    pub(crate) ended: Ended,
    parts: Vec<Part>,
    /// Values that it wrote or took away.
    values: BTreeSet<String>,
    /// What its review said of the objects concerned.
    sentences: Vec<String>,
}

/// One write.
#[derive(Debug, Clone)]
enum Part {
    /// In the words of the model.
    Model { kind: String, operation: Operation, payload: Map<String, Value> },
    /// In the vendor's: the kind, and the values by which its objects are known.
    Native { kind: String, operation: Operation, names: BTreeSet<String> },
}

/// Keeps the key, the position and what is followed of a payload.
fn keep(payload: &mut Map<String, Value>, followed: &BTreeSet<&'static str>) {
    payload.retain(|field, value| {
        if ["key", "position"].contains(&field.as_str()) || followed.contains(field.as_str()) {
            return true;
        }
        let Value::Object(parts) = value else { return false };
        parts.retain(|part, _| followed.contains(format!("{field}.{part}").as_str()));
        !parts.is_empty()
    });
}

/// How a change concerns an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Touch<'a> {
    /// It wrote these fields of it.
    Fields(&'a Map<String, Value>),
    /// It wrote it, and the fields are not known in the words of the model.
    Whole,
    /// It took it away.
    Gone,
}

impl OwnChange {
    /// `None` where nothing of the change reached the controller. What the device showed of a member of a set is with the
    /// set.
    pub(crate) fn of(row: &ChangeRow, set: Option<&ChangeRow>, description: &Description) -> Option<Self> {
        let detail = set.unwrap_or(row).outcome_detail.as_ref();
        // An applied change differs from its plan only by values that the vendor writes in its own way.
        let is_adjusted = detail.is_some_and(|detail| !detail["difference"].is_null());
        let ended = match (row.status, row.outcome_state) {
            (ChangeStatus::Applied, OutcomeState::Applied) if is_adjusted => Ended::Adjusted,
            (ChangeStatus::Applied, OutcomeState::Applied) => Ended::Applied,
            // Its inverse is another change, which is looked at by itself.
            (ChangeStatus::Applied, OutcomeState::Reverted)
            | (_, OutcomeState::None | OutcomeState::Failed) => {
                return None;
            }
            (_, state) => Ended::InDoubt(state),
        };
        let own = ChangeSpec {
            feature: row.feature.clone(),
            operation: row.operation,
            site: row.site_ref.clone(),
            payload: row.payload.clone(),
        };
        let specs: Vec<&ChangeSpec> =
            [&own].into_iter().chain(&row.also).chain(row.expressed_as.iter().flatten()).collect();
        let mut values = BTreeSet::new();
        specs.iter().for_each(|spec| scalars(&spec.payload, &mut values));
        let mut sentences = Vec::new();
        for step in row.plan.iter().flat_map(|plan| &plan.steps) {
            let sides = [&step.before, &step.after];
            sides.into_iter().flatten().for_each(|side| scalars(side, &mut values));
            sentences.push(step.summary.clone());
        }
        sentences.extend(row.plan.iter().flat_map(|plan| plan.also.clone()));
        let parts = specs.into_iter().filter_map(|spec| Part::of(spec, description)).collect();
        Some(Self { id: row.id, ended, parts, values, sentences })
    }

    /// The same without the fields of a kind that drift is not about, such as secrets: they are never observed.
    pub(crate) fn only(mut self, kind: &str, followed: &BTreeSet<&'static str>) -> Self {
        for part in &mut self.parts {
            if let Part::Model { kind: of, payload, .. } = part
                && of == kind
            {
                keep(payload, followed);
            }
        }
        self
    }

    pub(crate) fn is_applied(&self) -> bool {
        matches!(self.ended, Ended::Applied | Ended::Adjusted)
    }

    /// Keys of the objects of a kind that it names in the words of the model.
    pub(crate) fn keys<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s str> {
        let key = move |part: &'s Part| match part {
            Part::Model { kind: of, payload, .. } if of == kind => payload.get("key").and_then(Value::as_str),
            _ => None,
        };
        self.parts.iter().filter_map(key)
    }

    /// How it wrote the object, if it did. What it says in the words of the model comes first.
    pub(crate) fn touch(&self, subject: &Subject<'_>) -> Option<Touch<'_>> {
        let mut of_model = self.parts.iter().filter_map(|part| part.touch_in_model(subject));
        let mut native = self.parts.iter().filter_map(|part| part.touch_natively(subject));
        of_model.next_back().or_else(|| native.next_back())
    }

    /// Whether its review named the object.
    pub(crate) fn names(&self, subject: &Subject<'_>) -> bool {
        [subject.label, subject.key].into_iter().filter(|name| name.len() > 1).any(|name| {
            let quoted = format!("'{name}'");
            self.sentences.iter().any(|sentence| sentence.contains(&quoted))
        })
    }

    /// Whether it took something away.
    pub(crate) fn takes_away(&self) -> bool {
        self.parts.iter().any(|part| part.operation() == Operation::Delete)
    }

    /// Whether each value that came or went is one that the change wrote or took away.
    ///
    /// Truth values are in everything, and tell nothing alone.
    pub(crate) fn explains(&self, moved: &BTreeSet<String>) -> bool {
        let telling: Vec<&String> = moved.iter().filter(|value| is_telling(value)).collect();
        !telling.is_empty() && telling.iter().all(|value| self.values.contains(*value))
    }
}

/// Whether a value is rare enough to tell one thing from another.
fn is_telling(value: &str) -> bool {
    !["", "0", "1", "true", "false", "null"].contains(&value)
}

impl Part {
    fn of(spec: &ChangeSpec, description: &Description) -> Option<Self> {
        let feature = description.feature(&spec.feature)?;
        let payload = spec.payload.as_object()?;
        let operation = spec.operation;
        if let Some(of) = &feature.model {
            // An action says nothing of what is wanted.
            let is_wanted = of.action.is_none();
            let kind = of.kind.clone();
            return is_wanted.then(|| Self::Model { kind, operation, payload: payload.clone() });
        }
        let kind = feature.kind.clone()?;
        let known_by = |name: &&String| *name == "key" || *name == "id" || feature.natural_key.contains(name);
        let mut names = BTreeSet::new();
        payload.iter().filter(|(name, _)| known_by(name)).for_each(|(_, value)| scalars(value, &mut names));
        Some(Self::Native { kind, operation, names })
    }

    fn operation(&self) -> Operation {
        match self {
            Self::Model { operation, .. } | Self::Native { operation, .. } => *operation,
        }
    }

    fn touch_in_model(&self, subject: &Subject<'_>) -> Option<Touch<'_>> {
        let Self::Model { kind, operation, payload } = self else { return None };
        if kind != subject.kind.id {
            return None;
        }
        let is_meant = match operation {
            Operation::Create => creates(subject, payload),
            _ => payload.get("key").and_then(Value::as_str) == Some(subject.key),
        };
        is_meant.then_some(if *operation == Operation::Delete { Touch::Gone } else { Touch::Fields(payload) })
    }

    fn touch_natively(&self, subject: &Subject<'_>) -> Option<Touch<'_>> {
        let Self::Native { kind, operation, names } = self else { return None };
        let native = subject.native.filter(|native| native.kind == *kind)?;
        let own = [native.key.as_str(), subject.key, subject.label];
        let locators = native.locators.iter().map(|locator| locator.value.as_str());
        let is_meant = own.into_iter().chain(locators).any(|name| names.contains(name));
        is_meant.then_some(if *operation == Operation::Delete { Touch::Gone } else { Touch::Whole })
    }
}

/// Whether an object is the one that a payload created: it has what a create needs.
fn creates(subject: &Subject<'_>, payload: &Map<String, Value>) -> bool {
    let Some(fields) = subject.fields else { return false };
    let needed = subject.kind.document()["x-writes"]["create"]["required"].as_array();
    let needed: Vec<&str> = needed.into_iter().flatten().filter_map(Value::as_str).collect();
    let fits =
        |field: &str| payload.get(field).is_some_and(|value| is_as_asked(field, value, fields.get(field)));
    // A name tells more than what a create needs.
    let is_named = !payload.contains_key("name") || fits("name");
    is_named && !needed.is_empty() && needed.iter().all(|field| fields.get(field).is_none() || fits(field))
}

/// Every value below a value, as text.
pub(crate) fn scalars(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => {
            into.insert(flag.to_string());
        }
        Value::Number(number) => {
            into.insert(number.to_string());
        }
        Value::String(text) => {
            into.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| scalars(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| scalars(field, into)),
    }
}

#[cfg(test)]
mod tests;
