//! Whether a body is one that a route of the official interface takes. Variants decide which fields exist.

use serde_json::Value;

use crate::console::Console;
use crate::facts::{Base, Field, Route};
use crate::official::invalid;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, is_uuid};

/// The places of one field: the objects that may hold it, each with the positions in the lists above it.
type Places<'a> = Vec<(Vec<usize>, &'a Row)>;

/// The body, when it is one that the route takes.
pub(super) fn whole(own: &Console, route: &Route, body: Row) -> Outcome<Row> {
    let release = own.settings.release;
    let fields: Vec<&Field> =
        route.body.iter().filter(|field| release.has(field.since.as_deref(), None)).collect();
    discriminators(&fields, &body)?;
    unknown(&fields, &body)?;
    for field in &fields {
        let parts = field.parts();
        let name = parts.last().map_or("", |part| part.trim_end_matches("[]"));
        for (indices, holder) in places(&body, &parts) {
            if !applies(field, &body, &indices) {
                continue;
            }
            match holder.get(name) {
                None | Some(Value::Null) if field.is_required => {
                    return Err(invalid(&format!("'{}' must not be null", field.name)));
                }
                None | Some(Value::Null) => {}
                Some(value) => fits(field, value)?,
            }
        }
    }
    Ok(body)
}

/// The objects that hold the last part of a path.
fn places<'a>(body: &'a Row, parts: &[&str]) -> Places<'a> {
    let mut found: Places<'a> = vec![(Vec::new(), body)];
    for part in &parts[..parts.len().saturating_sub(1)] {
        let mut next = Vec::new();
        for (indices, holder) in found {
            let value = holder.get(part.trim_end_matches("[]"));
            match (part.ends_with("[]"), value) {
                (true, Some(Value::Array(rows))) => {
                    for (place, row) in rows.iter().enumerate() {
                        if let Some(row) = row.as_object() {
                            let mut indices = indices.clone();
                            indices.push(place);
                            next.push((indices, row));
                        }
                    }
                }
                (false, Some(Value::Object(row))) => next.push((indices, row)),
                _ => {}
            }
        }
        found = next;
    }
    found
}

/// Whether the conditions of a field hold at a place.
fn applies(field: &Field, body: &Row, indices: &[usize]) -> bool {
    field.conditions().all(|(path, wanted)| {
        let mut left = indices.iter();
        let mut holder = body;
        let (last, before) = path.split_last().unwrap_or((&"", &[]));
        for part in before {
            let value = holder.get(part.trim_end_matches("[]"));
            let inner = match (part.ends_with("[]"), value) {
                (true, Some(Value::Array(rows))) => left.next().and_then(|place| rows.get(*place)),
                (_, value) => value,
            };
            match inner.and_then(Value::as_object) {
                Some(inner) => holder = inner,
                None => return false,
            }
        }
        holder.get(*last).and_then(Value::as_str) == Some(wanted)
    })
}

/// The fields that choose a variant have to be there, and to name one.
fn discriminators(fields: &[&Field], body: &Row) -> Outcome<()> {
    let chosen: Vec<String> = fields
        .iter()
        .flat_map(|field| field.conditions().map(|(path, _)| path.join(".")).collect::<Vec<_>>())
        .collect();
    for field in fields.iter().filter(|field| chosen.contains(&field.name) && !field.values.is_empty()) {
        let parts = field.parts();
        let name = parts.last().copied().unwrap_or_default();
        for (indices, holder) in places(body, &parts) {
            if !applies(field, body, &indices) {
                continue;
            }
            match holder.get(name) {
                None | Some(Value::Null) => {
                    let message = format!("Missing $.{} (valid values: {})", field.name, quoted(field));
                    return Err(Refusal::of(400, "api.request.missing-type-id", &message));
                }
                Some(value)
                    if !value.as_str().is_some_and(|text| field.values.iter().any(|own| own == text)) =>
                {
                    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let message =
                        format!("Invalid $.{} value '{shown}' (valid values: {})", field.name, quoted(field));
                    return Err(Refusal::of(400, "api.request.unknown-type-id", &message));
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

fn quoted(field: &Field) -> String {
    field.values.iter().map(|value| format!("'{value}'")).collect::<Vec<_>>().join(", ")
}

/// Refuses a property that the variant of the body does not have.
fn unknown(fields: &[&Field], body: &Row) -> Outcome<()> {
    let refuse = |path: String| {
        Refusal::of(400, "api.request.unknown-property", &format!("Unknown request body property '$.{path}'"))
    };
    let known = |prefix: &[&str], indices: &[usize], name: &str| {
        fields.iter().any(|field| {
            let parts = field.parts();
            let (last, before) = parts.split_last().unwrap_or((&"", &[]));
            last.trim_end_matches("[]") == name && before == prefix && applies(field, body, indices)
        })
    };
    // Every object whose inside the contract describes.
    let mut holders: Vec<Vec<&str>> = vec![Vec::new()];
    for field in fields {
        let parts = field.parts();
        let before = parts[..parts.len() - 1].to_vec();
        if !holders.contains(&before) {
            holders.push(before);
        }
    }
    for holder in &holders {
        let mut path = holder.clone();
        path.push("");
        for (indices, row) in places(body, &path) {
            if let Some(name) = row.keys().find(|name| !known(holder, &indices, name)) {
                let mut whole: Vec<&str> = holder.clone();
                whole.push(name);
                return Err(refuse(whole.join(".")));
            }
        }
    }
    Ok(())
}

/// Whether one value has the type of its field, and keeps the limits.
fn fits(field: &Field, value: &Value) -> Outcome<()> {
    let values: Vec<&Value> = match (field.kind.is_list, value) {
        (true, Value::Array(values)) => values.iter().collect(),
        (true, _) => return Err(invalid(&format!("'{}' must be a list", field.name))),
        (false, value) => vec![value],
    };
    values.into_iter().try_for_each(|value| one(field, value))
}

fn one(field: &Field, value: &Value) -> Outcome<()> {
    let refuse = |what: &str| invalid(&format!("'{}' {what}", field.name));
    let listed = |shown: &str| field.values.is_empty() || field.values.iter().any(|own| own == shown);
    let within = |number: f64| {
        field.low.is_none_or(|low| number >= low) && field.high.is_none_or(|high| number <= high)
    };
    match (field.kind.base, value) {
        (Base::Any, _) | (Base::Boolean, Value::Bool(_)) | (Base::Object, Value::Object(_)) => Ok(()),
        (Base::Uuid, Value::String(text)) if is_uuid(text) => Ok(()),
        (Base::Uuid, _) => Err(refuse("must be a valid UUID")),
        (Base::Text, Value::String(text)) => {
            #[expect(clippy::cast_precision_loss, reason = "lengths of texts in a body are small")]
            let length = text.chars().count() as f64;
            if !listed(text) {
                return Err(refuse(&format!("must be one of {}", quoted(field))));
            }
            if within(length) { Ok(()) } else { Err(refuse("has an invalid length")) }
        }
        (Base::Integer | Base::Number, Value::Number(number)) => {
            let is_whole = field.kind.base == Base::Number || number.is_i64() || number.is_u64();
            if !is_whole || !within(number.as_f64().unwrap_or_default()) || !listed(&number.to_string()) {
                return Err(refuse("is out of range"));
            }
            Ok(())
        }
        _ => Err(refuse("has the wrong type")),
    }
}
