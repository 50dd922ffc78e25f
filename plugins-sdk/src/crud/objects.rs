//! Lists of objects and single ones, as the inventory shows them.

use serde_json::Value;

use super::Vendor;
use super::binding::{FieldType, KindBinding, Shape};
use super::field::{content, to_json};
use super::read::{self, Row};
use crate::{Completeness, Fault, Host, Listing, Locator, Object, ObjectPage, ObjectRef, Stability, fault};

/// The key of the one object of settings or of an answer.
const ONLY: &str = "settings";

/// A page of the objects of a kind.
pub fn list_objects(
    vendor: &dyn Vendor,
    host: &dyn Host,
    listing: &Listing<'_>,
) -> Result<ObjectPage, Fault> {
    listing.refuse_filters_but(&[])?;
    let (kind, cursor, limit) = (listing.kind, listing.cursor, listing.limit);
    let binding = KindBinding::of(host, kind)?;
    if matches!(binding.shape, Shape::Object | Shape::Answer) {
        let found = read::object(vendor, host, &binding, "")?;
        let items: Vec<Object> = found.iter().map(|value| one(kind, &binding, value)).collect();
        let total = Some(items.len() as u64);
        return Ok(ObjectPage { items, next: None, total, complete: Completeness::Complete });
    }
    let Ok(from) = cursor.unwrap_or("0").parse::<u64>() else {
        return Err(fault::invalid("the cursor is not one that a list answered"));
    };
    let limit = limit.max(1);
    let paging = binding.list.as_ref().and_then(|list| list.page.as_ref());
    let (rows, total) = if let Some(paging) = paging {
        let size = limit.min(paging.size_max);
        let found = read::page(vendor, host, &binding, from, size)?;
        (found.rows, found.total.map(|total| (total, (from + 1) * u64::from(size) < total, from + 1)))
    } else {
        let all = read::all(vendor, host, &binding)?;
        let total = all.len() as u64;
        let next = from + u64::from(limit);
        let page = all.into_iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).take(limit as usize);
        (page.collect(), Some((total, next < total, next)))
    };
    let items: Vec<Object> = rows.iter().map(|row| of_row(kind, &binding, row)).collect();
    let next = total.filter(|(_, has_more, _)| *has_more).map(|(_, _, next)| next.to_string());
    Ok(ObjectPage { items, next, total: total.map(|(total, ..)| total), complete: Completeness::Complete })
}

/// One object by its natural key.
pub fn get_object(vendor: &dyn Vendor, host: &dyn Host, kind: &str, key: &str) -> Result<Object, Fault> {
    let binding = KindBinding::of(host, kind)?;
    let absent = || fault::not_found(format!("there is no {} '{key}'", binding.noun));
    if matches!(binding.shape, Shape::Object | Shape::Answer) {
        let found = read::object(vendor, host, &binding, "")?.filter(|_| key == ONLY);
        return found.map(|value| one(kind, &binding, &value)).ok_or_else(absent);
    }
    let rows = read::all(vendor, host, &binding)?;
    let row = rows.into_iter().find(|row| name_of(&binding, row) == key).ok_or_else(absent)?;
    let mut object = of_row(kind, &binding, &row);
    if binding.shape == Shape::Items && read::is_writable(&binding, &row) {
        let value = read::object(vendor, host, &binding, &row.id)?.ok_or_else(absent)?;
        object.body = body(&binding, &value);
    }
    Ok(object)
}

fn name_of(binding: &KindBinding, row: &Row) -> String {
    let key = read::key_of(binding, &row.value);
    if key.chars().all(|c| c == ':') { row.id.clone() } else { key }
}

fn of_row(kind: &str, binding: &KindBinding, row: &Row) -> Object {
    let is_known = read::is_writable(binding, row);
    let locators = is_known.then(|| Locator {
        surface: "id".to_owned(),
        value: row.id.clone(),
        stability: Stability::UntilRecreate,
    });
    let reference = ObjectRef {
        kind: kind.to_owned(),
        site: None,
        key: name_of(binding, row),
        locators: locators.into_iter().collect(),
    };
    Object { reference, revision: None, body: body(binding, &row.value) }
}

fn one(kind: &str, binding: &KindBinding, value: &Value) -> Object {
    let reference =
        ObjectRef { kind: kind.to_owned(), site: None, key: ONLY.to_owned(), locators: Vec::new() };
    Object { reference, revision: None, body: body(binding, value) }
}

/// What is shown of an object: never a secret.
fn body(binding: &KindBinding, value: &Value) -> String {
    if binding.fields.is_empty() {
        return value.to_string();
    }
    let mut shown = content(binding, value);
    shown.retain(|name, _| binding.fields.get(name).is_none_or(|field| field.kind != FieldType::Secret));
    to_json(&shown).to_string()
}
