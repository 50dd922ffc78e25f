//! Natural keys: what people know objects by.

use serde_json::{Value, json};

use super::binding::KindBinding;
use super::field::{self, Content, at, plain};

/// A natural key in parts: the values, and the labels of choices where the device tells them.
pub(crate) type Key = Vec<(String, Option<String>)>;

/// The texts of a payload's natural key.
pub(crate) fn texts(binding: &KindBinding, payload: &Value) -> Vec<String> {
    let text = |name: &String| {
        let value = payload.get(name).cloned().unwrap_or_default();
        let value = binding.fields.get(name).map_or(value.clone(), |field| {
            let value = field::normal(field, &value);
            // What is left out is what the vendor fills in.
            if value.is_null() { field.default.clone().unwrap_or_default() } else { value }
        });
        match &value {
            Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
            other => plain(other),
        }
    };
    binding.key.iter().map(text).collect()
}

/// The fields of a natural key, from its texts.
pub(crate) fn content(binding: &KindBinding, texts: &[String]) -> Content {
    let known = binding.key.iter().zip(texts);
    let known = known.filter_map(|(name, text)| Some((name, binding.fields.get(name)?, text)));
    known.map(|(name, field, text)| (name.clone(), field::decode(field, &json!(text)))).collect()
}

/// The natural key of a row or object, in parts: the values, and the labels of choices where the device tells them.
pub(crate) fn parts(binding: &KindBinding, object: &Value) -> Key {
    let label_form = binding.list.as_ref().and_then(|list| list.label.as_deref());
    let part = |name: &String| {
        let place = binding.place(name);
        let Some(field) = binding.fields.get(name) else {
            return (at(object, place).map(plain).unwrap_or_default(), None);
        };
        let found = at(object, place);
        let value = found.map(|value| field::decode(field, value)).unwrap_or_default();
        let value = if value.is_null() { field.default.clone().unwrap_or_default() } else { value };
        let text = match &value {
            Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
            // As the vendor writes it: a flag is a digit there.
            other => plain(other),
        };
        let label = match found {
            Some(Value::Object(choices)) => choices.get(&text).and_then(|choice| choice.get("value")),
            _ => label_form.and_then(|form| at(object, &form.replace("{field}", place))),
        };
        (text, label.map(plain).filter(|label| !label.is_empty()))
    };
    let mut parts: Key = binding.key.iter().map(part).collect();
    let id = binding.list.as_ref().and_then(|list| at(object, list.id.as_deref()?));
    if binding.key_or_id
        && parts.iter().all(|(text, _)| text.is_empty())
        && let (Some((first, _)), Some(id)) = (parts.first_mut(), id)
    {
        *first = plain(id);
    }
    parts
}

/// Whether a natural key in parts is the one that a payload or a plan names.
pub(crate) fn is(binding: &KindBinding, key: &[(String, Option<String>)], wanted: &[String]) -> bool {
    let is_part = |(((value, label), wanted), name): (((&String, &Option<String>), &String), &String)| {
        let field = binding.fields.get(name);
        let is_folded = field.is_some_and(|field| field.fold);
        let is_same = |own: &str| if is_folded { own.eq_ignore_ascii_case(wanted) } else { own == wanted };
        let is_named = field.is_some_and(|field| !field.of.is_empty());
        is_same(value) || (is_named && label.as_deref().is_some_and(is_same))
    };
    let key = key.iter().map(|(value, label)| (value, label));
    key.len() == wanted.len() && !wanted.is_empty() && key.zip(wanted).zip(&binding.key).all(is_part)
}

/// The natural key as people read it: labels instead of the vendor's ids.
pub(crate) fn of(binding: &KindBinding, object: &Value) -> String {
    let has_names = |name: &String| binding.fields.get(name).is_some_and(|field| !field.of.is_empty());
    let parts = parts(binding, object).into_iter().zip(&binding.key);
    parts
        .map(|((value, label), name)| label.filter(|_| has_names(name)).unwrap_or(value))
        .collect::<Vec<_>>()
        .join(":")
}
