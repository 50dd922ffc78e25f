//! What a payload asks of an object: laid over what is known, and checked against it.

use serde_json::Value;

use super::binding::{Field, FieldType, KindBinding};
use super::field::{self, Content, encode, plain};
use super::model::WithField;
use super::properties;
use crate::{Fault, fault};

/// Lays the parts of objects over those that are known.
pub(crate) fn lay_over(binding: &KindBinding, known: Option<&Content>, asked: &mut Content) {
    for (name, value) in asked.iter_mut() {
        let Some(field) = binding.fields.get(name) else { continue };
        let known = known.and_then(|known| known.get(name));
        if field.kind == FieldType::Properties {
            *value = properties::laid_over(known, value);
        } else if field.merge {
            *value = field::merged(known, value);
        }
    }
}

/// The id that a payload gives a new object.
pub(crate) fn id_of_field(
    binding: &KindBinding,
    name: &str,
    asked: &Content,
    payload: &Value,
) -> Result<String, Fault> {
    let value = asked.get(name).or_else(|| payload.get(name)).cloned().unwrap_or_default();
    let text = binding.fields.get(name).map_or_else(|| plain(&value), |field| plain(&encode(field, &value)));
    if text.is_empty() {
        let message = format!("a new {} needs '{name}'", binding.noun);
        return Err(fault::invalid(message).with(name, "is needed"));
    }
    Ok(text)
}

/// Refuses values for fields that this device does not have.
pub(crate) fn refuse_unknown(binding: &KindBinding, known: &Content, asked: &Content) -> Result<(), Fault> {
    let is_unknown = |name: &&String| {
        !known.contains_key(*name) && !binding.fields.get(*name).is_some_and(|field| field.unread)
    };
    let unknown: Vec<&String> =
        asked.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).filter(is_unknown).collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let fault = fault::invalid(format!("a {} of this device has no field '{first}'", binding.noun));
    Err(unknown
        .into_iter()
        .fold(fault, |fault, name| fault.with(name, "this version of the device does not have it")))
}

/// Refuses other values for what only a create takes.
pub(crate) fn refuse_create_only(
    binding: &KindBinding,
    before: &Content,
    asked: &Content,
) -> Result<(), Fault> {
    let is_other = |(name, value): &(&String, &Value)| {
        let field = binding.fields.get(*name).filter(|field| field.create_only);
        let known = before.get(*name).unwrap_or(&Value::Null);
        field.is_some_and(|field| field.unread || !field::equal(field, value, known))
    };
    let Some((name, _)) = asked.iter().find(is_other) else { return Ok(()) };
    let message = format!("'{name}' of a {} is only set when it is created", binding.noun);
    Err(fault::invalid(message).with(name, "only a new object takes it"))
}

/// Whether an object has what a field is kept with.
fn is_kept(field: &Field, content: &Content) -> bool {
    let value = |name: &String| content.get(name).unwrap_or(&Value::Null);
    field.kept_with.iter().all(|(name, wanted)| wanted.is_met(value(name)))
}

/// Values that the vendor takes away with a write although the change does not ask for it: those that it kept, and
/// those of which it has made something else. What is never answered counts as there where it is kept.
pub(crate) fn lost(binding: &KindBinding, before: &Content, asked: &Content) -> Content {
    let mut after = before.clone();
    after.extend(asked.clone());
    let is_there = |name: &String, field: &Field| {
        let is_shown = || before.get(name).is_some_and(|value| !field::equal(field, &Value::Null, value));
        if field.unread { is_kept(field, before) } else { is_shown() }
    };
    let mut out = Content::new();
    loop {
        let all = binding.fields.iter().filter(|(name, field)| {
            let is_open = !asked.contains_key(*name) && !out.contains_key(*name);
            is_open && is_there(name, field) && !is_kept(field, &after)
        });
        let new: Vec<String> = all.map(|(name, _)| name.clone()).collect();
        if new.is_empty() {
            return out;
        }
        // What is gone may be what others are kept with.
        for name in new {
            after.insert(name.clone(), Value::Null);
            out.insert(name.clone(), before.get(&name).cloned().unwrap_or_default());
        }
    }
}

/// Those of the lost values that were kept until now: a write that brings back what they were kept with brings them back.
pub(crate) fn kept<'l>(
    binding: &KindBinding,
    before: &Content,
    lost: &'l Content,
) -> impl Iterator<Item = (&'l String, &'l Value)> {
    lost.iter().filter(|(name, _)| binding.fields.get(*name).is_some_and(|field| is_kept(field, before)))
}

/// Whether an object has the value that a payload asks for. What is never answered is not known to be there.
pub(crate) fn is_there(binding: &KindBinding, before: &Content, (name, value): (&str, &Value)) -> bool {
    let found = before.get(name).unwrap_or(&Value::Null);
    binding.fields.get(name).map_or(found == value, |field| field::equal(field, value, found))
}
