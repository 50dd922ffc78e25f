//! Reading lists and objects by their bindings.

use serde_json::{Map, Value};

use super::Vendor;
use super::binding::{IdForm, KindBinding, ListRoute, PageBy, Shape, Verb};
use super::field::{at, plain};
use crate::{Auth, Fault, Host, Request, fault};

/// Largest answer of a list.
const LIST_BYTES_MAX: u32 = 8 << 20;
/// Most pages of one list, against a device that gives the same page again and again.
const PAGES_MAX: usize = 64;

/// One row of a list.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The vendor's id; empty where it has none.
    pub(crate) id: String,
    pub(crate) value: Value,
}

/// A part of a list.
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    pub(crate) total: Option<u64>,
}

/// One value as a part of a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// A path with the id of an object.
pub(crate) fn path_of(path: &str, id: &str) -> String {
    path.replace("{id}", &escaped(id))
}

fn list_of(binding: &KindBinding) -> Result<&ListRoute, Fault> {
    binding.list.as_ref().ok_or_else(|| {
        fault::unsupported(format!("objects of this kind ('{}') are not listed", binding.noun))
    })
}

/// The request for a page; `page` counts from 0.
fn request(route: &ListRoute, page: u64, size: u32) -> Request {
    let mut params: Vec<(&str, u64)> = Vec::new();
    if let Some(paging) = &route.page {
        let place = match paging.by {
            PageBy::Number => paging.first + page,
            PageBy::Offset => paging.first + page * u64::from(size),
        };
        params = vec![(&paging.at, place), (&paging.size, u64::from(size))];
    }
    let mut request = Request::new(route.method.method(), route.path.clone());
    if route.method == Verb::Get {
        let query: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !query.is_empty() {
            let joint = if route.path.contains('?') { '&' } else { '?' };
            request.path = format!("{}{joint}{}", route.path, query.join("&"));
        }
    } else {
        let mut body = route.body.as_ref().and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
        body.extend(params.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))));
        request = request.with_json(&Value::Object(body));
    }
    request.max_response_bytes = Some(LIST_BYTES_MAX);
    request
}

/// One page of a list.
pub(crate) fn page(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    number: u64,
    size: u32,
) -> Result<Rows, Fault> {
    let route = list_of(binding)?;
    let response = host.send(request(route, number, size), Auth::session(vendor.session()))?;
    let answer = vendor.content(&response)?;
    let total = route.page.as_ref().and_then(|page| answer.pointer(page.total.as_deref()?)?.as_u64());
    let rows = match answer.pointer(&route.rows) {
        Some(Value::Array(rows)) => rows.clone(),
        // Vendors that have an empty list for an empty map have a map for the list, too.
        Some(Value::Object(rows)) => rows.values().cloned().collect(),
        _ => Vec::new(),
    };
    let id_of = |row: &Value| route.id.as_deref().and_then(|id| at(row, id)).map(plain).unwrap_or_default();
    Ok(Rows { rows: rows.into_iter().map(|value| Row { id: id_of(&value), value }).collect(), total })
}

/// All rows of a list.
pub(crate) fn all(vendor: &dyn Vendor, host: &dyn Host, binding: &KindBinding) -> Result<Vec<Row>, Fault> {
    let Some(paging) = &list_of(binding)?.page else { return Ok(page(vendor, host, binding, 0, 0)?.rows) };
    let mut out = Vec::new();
    for number in 0..PAGES_MAX as u64 {
        let found = page(vendor, host, binding, number, paging.size_max)?;
        let is_last = found.rows.len() < paging.size_max as usize;
        out.extend(found.rows);
        if is_last || found.total.is_some_and(|total| out.len() as u64 >= total) {
            return Ok(out);
        }
    }
    Err(fault::unsupported(format!("the device has more than {} objects of this kind", out.len())))
}

/// Whether a row can be written.
pub(crate) fn is_writable(binding: &KindBinding, row: &Row) -> bool {
    match binding.list.as_ref().and_then(|list| list.writable) {
        Some(IdForm::Uuid) => is_uuid(&row.id),
        None => !row.id.is_empty(),
    }
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// An object as the device answers it; none where it does not exist.
pub(crate) fn object(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    id: &str,
) -> Result<Option<Value>, Fault> {
    let Some(route) = &binding.get else {
        let rows = all(vendor, host, binding)?;
        return Ok(rows.into_iter().find(|row| row.id == id).map(|row| row.value));
    };
    let request = Request::new(route.method.method(), path_of(&route.path, id));
    let response = host.send(request, Auth::session(vendor.session()))?;
    let answer = match vendor.content(&response) {
        Err(Fault::NotFound(_)) => return Ok(None),
        other => other?,
    };
    // What is only read may be a list; an object that does not exist is an empty one to some vendors.
    let is_right = |found: &&Value| found.is_object() || binding.shape == Shape::Answer;
    Ok(answer.pointer(&route.item).filter(is_right).cloned())
}

/// What a new object has before anybody fills it in.
pub(crate) fn template(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
) -> Result<Option<Value>, Fault> {
    let Some(route) = &binding.get else { return Ok(None) };
    let Some(path) = &route.template else { return Ok(None) };
    let response = host.send(Request::get(path.clone()), Auth::session(vendor.session()))?;
    Ok(vendor.content(&response)?.pointer(&route.item).filter(|found| found.is_object()).cloned())
}

/// The natural key of a row or object, in parts: the values, and the labels of choices where the device tells them.
pub(crate) fn key_parts(binding: &KindBinding, object: &Value) -> Vec<(String, Option<String>)> {
    let label_form = binding.list.as_ref().and_then(|list| list.label.as_deref());
    let part = |name: &String| {
        let place = binding.place(name);
        let Some(field) = binding.fields.get(name) else {
            return (at(object, place).map(plain).unwrap_or_default(), None);
        };
        let found = at(object, place);
        let value = found.map(|value| super::field::decode(field, value)).unwrap_or_default();
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
    binding.key.iter().map(part).collect()
}

/// The natural key as people read it: labels instead of the vendor's ids.
pub(crate) fn key_of(binding: &KindBinding, object: &Value) -> String {
    let has_names = |name: &String| binding.fields.get(name).is_some_and(|field| !field.of.is_empty());
    let parts = key_parts(binding, object).into_iter().zip(&binding.key);
    parts
        .map(|((value, label), name)| label.filter(|_| has_names(name)).unwrap_or(value))
        .collect::<Vec<_>>()
        .join(":")
}
