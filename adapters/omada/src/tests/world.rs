//! Objects that features and kinds need at the controller: parents, rows of lists, settings that were saved once.

use std::collections::BTreeMap;

use heddle_sdk::testing::conformance::{Checked, schema};
use serde_json::{Map, Value, json};

use super::device::{Device, facts, package};
use super::samples::value;

pub(super) type Place = BTreeMap<String, String>;

/// The binding of a kind.
pub(super) fn kind(id: &str) -> &'static Value {
    let found = package().kind(id);
    assert!(found.is_object(), "kind {id}");
    found
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn filled(path: &str, place: &Place, id: &str) -> String {
    let mut out = path.replace("{id}", id);
    for (name, value) in place {
        out = out.replace(&format!("{{{name}}}"), value);
    }
    out
}

/// The same of every text in a body.
pub(super) fn with_filled(with: &Value, place: &Place, id: &str) -> Value {
    match with {
        Value::String(text) => {
            let number = text.strip_suffix("#}").map(|begin| filled(&format!("{begin}}}"), place, id));
            match number.and_then(|text| text.parse::<i64>().ok()) {
                Some(number) => json!(number),
                None => json!(filled(text, place, id)),
            }
        }
        Value::Array(items) => items.iter().map(|item| with_filled(item, place, id)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), with_filled(value, place, id))).collect(),
        ),
        other => other.clone(),
    }
}

fn scope(device: &Device) -> Place {
    Place::from([
        ("omadacId".to_owned(), device.controller.clone()),
        ("siteId".to_owned(), device.sites[0].clone()),
    ])
}

fn fits(row: &Value, only: &Value, place: &Place) -> bool {
    let wanted = only.as_object().into_iter().flatten();
    wanted.into_iter().all(|(name, value)| text(&row[name.as_str()]) == text(&with_filled(value, place, "")))
}

/// The rows of a kind in a place.
pub(super) fn rows(device: &Device, binding: &Value, place: &Place) -> Checked<Vec<Value>> {
    let list = &binding["list"];
    let mut path = filled(list["path"].as_str().unwrap(), place, "");
    if list["page"].is_object() {
        let joint = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{joint}page=1&pageSize=100");
    }
    for (_, filter) in list["filters"].as_object().into_iter().flatten() {
        if filter["required"] == true {
            let joint = if path.contains('?') { '&' } else { '?' };
            path = format!("{path}{joint}{}=1", filter["param"].as_str().unwrap());
        }
    }
    let answer = crate::answer::read(&device.host(), &path).map_err(|fault| format!("{path}: {fault:?}"))?;
    let rows = answer.pointer(list["rows"].as_str().unwrap()).and_then(Value::as_array).cloned();
    let is_own = |row: &Value| fits(row, &list["only"], place);
    Ok(rows.unwrap_or_default().into_iter().filter(is_own).collect())
}

/// The place of a kind's objects; what is missing above it is made.
pub(super) fn place(device: &Device, binding: &Value) -> Checked<Place> {
    let within = &binding["within"];
    if !within.is_object() {
        return Ok(scope(device));
    }
    let id = within["kind"].as_str().unwrap();
    let mut place = place(device, kind(id))?;
    let row = row(device, id, &place, &within["only"])?;
    place.extend(own(kind(id), &row));
    for (name, source) in within["params"].as_object().unwrap() {
        let source = source.as_str().unwrap();
        let found = row.get(source).map(text).or_else(|| place.get(source).cloned());
        place.insert(name.clone(), found.ok_or_else(|| format!("{id} has no {source}: {row}"))?);
    }
    Ok(place)
}

/// Parameters that stand in a row of its own.
pub(super) fn own(binding: &Value, row: &Value) -> Place {
    let params = binding["params"].as_object().into_iter().flatten();
    params.map(|(name, at)| (name.clone(), text(&row[at.as_str().unwrap()]))).collect()
}

/// One row of a kind; it is made where there is none.
pub(super) fn row(device: &Device, id: &str, place: &Place, only: &Value) -> Checked<Value> {
    let binding = kind(id);
    let find = || -> Checked<Option<Value>> {
        let can_be_written =
            |row: &Value| row["primary"] != true && row["buildIn"] != true && row["prohibitModify"] != true;
        let found = rows(device, binding, place)?;
        Ok(found.into_iter().find(|row| fits(row, only, place) && can_be_written(row)))
    };
    if let Some(row) = find()? {
        return Ok(row);
    }
    make(device, id, place, only)?;
    find()?.ok_or_else(|| format!("a row of {id} was made and is not listed"))
}

/// Makes a row by the API, or puts it into the simulator where the API has no create.
fn make(device: &Device, id: &str, place: &Place, only: &Value) -> Checked<()> {
    let binding = kind(id);
    let creates = |feature: &&Value| feature["kind"] == id && feature["binding"]["create"].is_object();
    if let Some(feature) = package().features().iter().find(creates)
        && super::samples::row_by_hand(id) == json!({})
    {
        let create = &feature["binding"]["create"];
        let schema = schema(feature, "create").unwrap();
        let mut body = super::samples::needed(device, feature, schema, place);
        for (name, value) in with_filled(&create["with"], place, "").as_object().into_iter().flatten() {
            body[name.as_str()] = value.clone();
        }
        let path = filled(create["path"].as_str().unwrap(), place, "");
        return device.edit(create["method"].as_str().unwrap_or("POST"), &path, &body).map(drop);
    }
    let mut row = described(binding);
    // A list below a parent names it in its rows.
    for (name, value) in place {
        if row.get(name).is_some() {
            row[name.as_str()] = json!(value);
        }
    }
    let id_field = binding["list"]["id"].as_str();
    // Ids are the site's own: no two lists have one in common.
    if let Some(name) = id_field.filter(|name| row.get(*name).is_none_or(Value::is_string)) {
        row[name] = json!(format!("{}-1", id.replace('.', "-")));
    }
    for name in
        id_field.into_iter().chain(binding["key"].as_array().unwrap().iter().filter_map(Value::as_str))
    {
        if row.get(name).is_none_or(Value::is_null) {
            row[name] = json!("sample-1");
        }
    }
    for part in [&binding["list"]["only"], only] {
        for (name, value) in part.as_object().into_iter().flatten() {
            row[name.as_str()] = with_filled(value, place, "");
        }
    }
    for (name, value) in super::samples::row_by_hand(id).as_object().into_iter().flatten() {
        row[name.as_str()] = value.clone();
    }
    if row["type"] == "olt" || binding["list"]["path"].as_str().unwrap().ends_with("/devices") {
        row["mac"] = json!("3C-6A-D2-00-00-99");
        row["detailStatus"] = json!(14);
    }
    if row.get("id").is_none() {
        row["id"] = json!(format!("{}-1", id.replace('.', "-")));
    }
    let path = filled(binding["list"]["path"].as_str().unwrap(), place, "");
    device.seed(path.split('?').next().unwrap(), &row).map(drop)
}

/// The name that facts have for a path; the name of its last parameter does not matter.
fn fact_of(path: &str, binding: &Value) -> String {
    let path = path.split('?').next().unwrap();
    let mut parts = path.trim_start_matches("/openapi/").splitn(2, "/{omadacId}");
    let (version, rest) = (parts.next().unwrap(), parts.next().unwrap());
    let (below, rest) = rest.split_once("/sites/{siteId}").unwrap();
    let below = if below.is_empty() { String::new() } else { format!("@{}", below.trim_start_matches('/')) };
    let method = ["list", "get"].iter().find_map(|part| binding[*part]["method"].as_str()).unwrap_or("GET");
    let name = format!("{method} {version}{below} {}", rest.trim_start_matches('/')).trim_end().to_owned();
    let same = |known: &&String| {
        let (one, other): (Vec<&str>, Vec<&str>) = (known.split('/').collect(), name.split('/').collect());
        let fits = |(known, own): (&&str, &&str)| known == own || *own == "{id}" && known.starts_with('{');
        one.len() == other.len() && one.iter().zip(&other).all(fits)
    };
    facts()["routes"].as_object().unwrap().keys().find(same).cloned().unwrap_or(name)
}

/// The shape of a field inside of an object; none where the facts do not have it.
pub(super) fn inside(shape: &str, name: &str) -> Option<String> {
    let number: usize = bare(shape).strip_prefix('#')?.parse().ok()?;
    facts()["shapes"][number].get(name)?.as_str().map(str::to_owned)
}

fn bare(shape: &str) -> &str {
    shape.trim_start_matches('*').split(['!', ' ']).next().unwrap()
}

pub(super) fn is_described(shape: &str) -> bool {
    bare(shape).starts_with('#')
}

/// The shape of the body that a kind is asked for with.
pub(super) fn body(binding: &Value) -> Option<String> {
    let part = if binding["get"].is_object() { "get" } else { "list" };
    let route = fact_of(binding[part]["path"].as_str()?, binding);
    facts()["routes"][&route]["body"].as_str().map(str::to_owned)
}

/// The shape of an object as it is read; none where the facts do not tell all of it.
pub(super) fn shown(binding: &Value) -> Option<String> {
    let (part, pointer) = if binding["get"].is_object() { ("get", "item") } else { ("list", "rows") };
    let route = &facts()["routes"][&fact_of(binding[part]["path"].as_str()?, binding)];
    if route["cut"] == true {
        return None;
    }
    let pointer = binding[part][pointer].as_str().unwrap_or_default();
    let whole = route["answer"].as_str()?.to_owned();
    pointer.split('/').skip(1).try_fold(whole, |shape, name| inside(&shape, name))
}

/// A row as the facts describe it, with every field.
fn described(binding: &Value) -> Value {
    let route = fact_of(binding["list"]["path"].as_str().unwrap(), binding);
    let Some(answer) = facts()["routes"][&route]["answer"].as_str() else { return json!({}) };
    let pointer = binding["list"]["rows"].as_str().unwrap();
    let shape = pointer.split('/').skip(1).try_fold(answer.to_owned(), |shape, name| inside(&shape, name));
    shape.map_or_else(|| json!({}), |shape| fact_value(bare(&shape), "", 0))
}

fn fact_value(kind: &str, name: &str, depth: usize) -> Value {
    let (head, limits) = kind.split_once(' ').unwrap_or((kind, ""));
    let bare = head.trim_start_matches('*').trim_end_matches('!');
    let first = limits.split('|').next().filter(|first| !first.is_empty() && !limits.contains(".."));
    let low =
        limits.split("..").next().and_then(|low| low.parse::<i64>().ok()).filter(|_| limits.contains(".."));
    let one = match bare {
        "s" => {
            json!(first.map_or_else(|| text(&value(&json!({ "type": "string" }), name, 1)), str::to_owned))
        }
        "i" => json!(first.and_then(|first| first.parse::<i64>().ok()).or(low).unwrap_or(1)),
        "n" => json!(1.5),
        "b" => json!(false),
        other => match other.strip_prefix('#').and_then(|number| number.parse::<usize>().ok()) {
            Some(number) if depth < 3 => {
                let fields = facts()["shapes"][number].as_object().unwrap().iter();
                let fields = fields
                    .map(|(name, kind)| (name.clone(), fact_value(kind.as_str().unwrap(), name, depth + 1)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            _ => json!({}),
        },
    };
    if head.starts_with('*') { json!([one]) } else { one }
}
