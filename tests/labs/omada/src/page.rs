//! How stored rows are shown: as a page or a plain array, in the shape that the route answers.

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::facts::{Field, Role, facts};
use crate::generic::has_pages;
use crate::shape;

/// A page of rows in the form that the route answers, or all of them as a plain array.
pub(crate) fn page(call: &Call, mut rows: Vec<&Value>, view: impl Fn(&Value) -> Value) -> Value {
    if let Some(key) = call.query.get("searchKey").filter(|key| !key.is_empty()) {
        rows.retain(|row| ["name", "mac", "ip", "hostName"].iter().any(|field| contains(&row[*field], key)));
    }
    let answer = call.route.answer.as_ref();
    let of_row = |field: &Field| Field { is_array: false, ..field.clone() };
    // What is not asked for in pages is answered as a whole.
    let is_unpaged = |field: &Field| {
        field.child(container(Some(field))).is_none() && call.item.is_collection && !has_pages(call)
    };
    let is_bare = answer.map_or_else(
        || call.item.is_bare || call.route.method == "GET" && !call.route.is_web && !has_pages(call),
        |field| field.is_array || is_unpaged(field),
    );
    if is_bare {
        let field = answer.map(of_row);
        let shown = rows.into_iter().map(|row| with_id(call, show_as(call, field.as_ref(), &view(row)), row));
        return Value::Array(shown.collect());
    }
    let (current, size) = window(call);
    let name = container(answer);
    let field = answer.and_then(|field| field.child(name)).map(of_row);
    let total = rows.len();
    let shown = rows.into_iter().skip((current - 1).saturating_mul(size)).take(size);
    let data: Vec<Value> =
        shown.map(|row| with_id(call, show_as(call, field.as_ref(), &view(row)), row)).collect();
    let mut result = Map::new();
    result.insert("totalRows".to_owned(), json!(total));
    result.insert("currentPage".to_owned(), json!(current));
    result.insert("currentSize".to_owned(), json!(size));
    result.insert(name.to_owned(), json!(data));
    let described = answer.filter(|field| field.child(name).is_some());
    for (name, field) in described.and_then(Field::inside).unwrap_or_default() {
        if !result.contains_key(name) {
            result.insert(name.clone(), shape::blank(field));
        }
    }
    Value::Object(result)
}

/// The field of an answer that holds the rows: `data`, or the only list where there is none.
fn container(answer: Option<&Field>) -> &'static str {
    let inside = answer.and_then(Field::inside).unwrap_or_default();
    let mut lists = inside.iter().filter(|(_, field)| field.is_array && field.inside().is_some());
    match (answer.and_then(|field| field.child("data")), lists.next(), lists.next()) {
        (None, Some((name, _)), None) => name,
        _ => "data",
    }
}

/// The row with its id, where the description of the list forgets it: under the name that paths have for it.
fn with_id(call: &Call, mut shown: Value, row: &Value) -> Value {
    let own = call.item.id_field.as_str();
    let is_told = [own, "id"].iter().any(|name| shown.get(name).is_some_and(|id| !id.is_null()));
    if is_told || !call.item.is_collection || row["id"].is_null() || !shown.is_object() {
        return shown;
    }
    let routes =
        facts().routes.iter().filter(|route| std::ptr::eq(&raw const facts().items[route.item], call.item));
    let writes = routes.filter(|route| matches!(route.role, Role::Delete | Role::Update));
    let name = writes.into_iter().find_map(|route| route.parts.last()?.strip_prefix('{')?.strip_suffix('}'));
    if let Some(name) = name.filter(|name| !call.parameters.contains_key(name))
        && shown.get(name).is_none()
    {
        shown[name] = row["id"].clone();
    }
    shown
}

/// Page and page size, from the query or from the body of a read by POST.
fn window(call: &Call) -> (usize, usize) {
    let number = |names: [&str; 2], default: usize| {
        let of_query = names.iter().find_map(|name| call.query.get(*name)?.parse().ok());
        let of_body = || call.body[names[0]].as_u64().and_then(|number| usize::try_from(number).ok());
        of_query.or_else(of_body).unwrap_or(default).clamp(1, 1_000_000)
    };
    (number(["page", "currentPage"], 1), number(["pageSize", "currentPageSize"], 1000).min(1000))
}

fn contains(value: &Value, key: &str) -> bool {
    value.as_str().is_some_and(|text| text.to_ascii_lowercase().contains(&key.to_ascii_lowercase()))
}

/// The stored value as the route shows it.
pub(crate) fn show(call: &Call, value: &Value) -> Value {
    show_as(call, call.route.answer.as_ref(), value)
}

fn show_as(call: &Call, field: Option<&Field>, value: &Value) -> Value {
    field.map_or_else(|| value.clone(), |field| shape::project(value, field, call.route.is_cut))
}
