//! What the rows of a source become: objects of the model, as its binding says.

use serde_json::{Value, json};

use super::binding::{KindBinding, OneOf, Source};
use super::field::{at, plain};
use super::joined::{Joined, with};
use super::modelled::{Modelled, UNREAD};
use super::objects;
use super::read::Row;
use super::{Vendor, taken};
use crate::{ModelObject, ObjectRef, Origin};

/// Whether the source tells of the row at all.
pub(super) fn is_meant(source: &Source, row: &Value) -> bool {
    let is = |(place, wanted): (&String, &OneOf)| {
        let found = at(row, place).map(plain).unwrap_or_default();
        wanted.all().iter().any(|wanted| plain(wanted) == found)
    };
    // What was not read may be one of those that are left out.
    let may_be =
        |rule: (&String, &OneOf)| is(rule) || (row.get(UNREAD).is_some() && at(row, rule.0).is_none());
    source.only.iter().all(is) && !source.except.iter().any(may_be)
}

/// The objects that a row of the vendor's is: one, or one for each of its parts.
pub(super) fn of_row(
    vendor: &dyn Vendor,
    kind: &str,
    (source, own, joined): (&Source, &KindBinding, &Joined<'_>),
    row: &Row,
) -> Vec<(ModelObject, Value)> {
    let native = objects::reference(&source.from, own, row);
    let one = |value: &Value| {
        let whole = (!source.join.is_empty()).then(|| with(value, "&", joined.of(value)));
        let value = whole.as_ref().unwrap_or(value);
        let mut object = of_value(source, &native, value)?;
        if !vendor.modelled(kind, value, &mut object) || object.key.is_empty() {
            return None;
        }
        let object = ModelObject {
            key: object.key,
            label: object.label,
            origin: object.origin,
            device: object.device,
            native: Some(native.clone()),
            fields: Value::Object(object.fields).to_string(),
        };
        Some((object, value.clone()))
    };
    values(source, row).iter().filter_map(one).collect()
}

/// What the objects of a row are made of: the row, or each of its parts.
pub(super) fn values(source: &Source, row: &Row) -> Vec<Value> {
    let mut whole = with(&row.value, "$", json!(row.place));
    let Some(place) = &source.each else { return vec![whole] };
    let parts = taken_out(&mut whole, place);
    let part = |(name, part): (Value, Value)| {
        with(&with(&with(&part, "@", name), "$", json!(row.place)), "^", whole.clone())
    };
    parts.into_iter().map(part).collect()
}

/// The key of the object that a row or part becomes.
pub(super) fn key_of(source: &Source, native: &ObjectRef, value: &Value) -> Option<String> {
    if source.key.is_empty() {
        return Some(native.key.clone());
    }
    let texts = source.key.iter().map(|place| text(value, place)).collect::<Option<Vec<_>>>();
    Some(texts?.join(":"))
}

fn text(value: &Value, place: &str) -> Option<String> {
    at(value, place).map(plain).filter(|text| !text.is_empty())
}

/// The parts of a row, each with its name; the row is left without them.
fn taken_out(row: &mut Value, place: &str) -> Vec<(Value, Value)> {
    if place.is_empty() {
        let Value::Object(fields) = row.take() else { return Vec::new() };
        let is_part = |(name, value): &(String, Value)| value.is_object() && name != "$" && name != "^";
        let (parts, rest): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_part);
        *row = Value::Object(rest.into_iter().collect());
        return parts.into_iter().map(|(name, part)| (Value::from(name), part)).collect();
    }
    let found = place.split('.').try_fold(row, |value, part| value.get_mut(part));
    match found.map(Value::take) {
        Some(Value::Array(parts)) => {
            let named = |part: Value| {
                let name = if part.is_object() || part.is_array() { Value::Null } else { part.clone() };
                (name, part)
            };
            parts.into_iter().map(named).collect()
        }
        Some(Value::Object(parts)) => {
            parts.into_iter().map(|(name, part)| (Value::from(name), part)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_value(source: &Source, native: &ObjectRef, value: &Value) -> Option<Modelled> {
    let key = key_of(source, native, value)?;
    let label = source.label.iter().find_map(|place| text(value, place)).unwrap_or_else(|| key.clone());
    let said = source.origin.as_ref().and_then(|origin| taken::value(value, origin));
    Some(Modelled {
        label,
        origin: match said.as_ref().map(|word| word.as_str().unwrap_or_default()) {
            None | Some("own") => Origin::Own,
            Some("vendor") => Origin::Vendor,
            Some("derived") => Origin::Derived,
            Some(_) => Origin::Unknown,
        },
        device: source.device.as_ref().and_then(|device| Some(plain(&taken::value(value, device)?))),
        fields: taken::fields(value, &source.fields),
        key,
    })
}
