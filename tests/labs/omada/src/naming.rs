//! Which rows a call means.

use serde_json::Value;

use crate::call::Call;
use crate::store::is;

/// Whether a list shows the row: the path may name a type or a device, or end with one side of two.
pub(crate) fn is_chosen(call: &Call, row: &Value) -> bool {
    let fields = call.parameters.iter().filter(|(name, _)| **name != "siteId");
    let of_path =
        fields.map(|(name, value)| (if *name == "groupType" { "type" } else { *name }, value.as_str()));
    let of_last = match (call.item.id.as_str(), call.last()) {
        ("firewall.mac-filter", "deny") => Some(("filterMode", "1")),
        ("firewall.mac-filter", "allow") => Some(("filterMode", "0")),
        ("firewall.url-filter", "gateway") => Some(("type", "gateway")),
        ("firewall.url-filter", "eap") => Some(("type", "ap")),
        _ => None,
    };
    of_path.chain(of_last).all(|(field, value)| row.get(field).is_none() || is(row, field, value))
}

/// Whether a body has lists of rows to add, to change or to delete, or none of them.
pub(crate) fn names_many(call: &Call) -> bool {
    let is_many =
        |name: &String| ["add", "delete", "modif", "dtos"].iter().any(|begin| name.starts_with(begin));
    call.fields().keys().all(is_many)
}

/// Fields of bodies that choose the rows of a write.
pub(crate) const CHOOSING: [&str; 6] = ["keys", "ids", "macs", "selectAll", "searchKey", "selectType"];

/// The field and value by which a body without an id in its path names a row.
pub(crate) fn of_body(call: &Call, rows: &[Value]) -> Option<(String, String)> {
    let known = [call.item.id_field.as_str(), "id", "key", "index"];
    let known = || known.into_iter().chain(call.item.key.iter().map(String::as_str));
    let fits = |name: &str, text: &str| rows.iter().filter(|row| is(row, name, text)).count() == 1;
    let one = |name: &str| Some((name.to_owned(), scalar(&call.body[name])?)).filter(|(n, id)| fits(n, id));
    let of_name = known().find_map(one);
    let ids = || call.fields().keys().filter(|name| name.ends_with("Id")).find_map(|name| one(name));
    let lists = || call.fields().values().filter_map(Value::as_array).flatten();
    let mut fields: Vec<&str> = known().collect();
    fields.push("mac");
    let of_list = || {
        let texts = lists().filter_map(scalar);
        texts.into_iter().find_map(|text| {
            let field = fields.iter().find(|field| fits(field, &text))?;
            Some(((*field).to_owned(), text))
        })
    };
    of_name.or_else(ids).or_else(of_list)
}

/// A text, or the digits of a number.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The fields by which a row may be named.
pub(crate) fn ids_of<'a>(call: &'a Call, row: &'a Value) -> impl Iterator<Item = String> + 'a {
    let fields = [call.item.id_field.as_str(), "id", "key", "index", "trafficId", "stationMac"]
        .into_iter()
        .chain(call.item.key.iter().map(String::as_str));
    fields.filter_map(|field| scalar(&row[field]))
}

/// Every text and number in a body that names rows: those of its lists, where it has some.
pub(crate) fn named(body: &Value) -> Vec<String> {
    let lists =
        body.as_object().into_iter().flatten().map(|(_, value)| value).filter(|value| value.is_array());
    let lists: Vec<String> = lists.flat_map(texts).collect();
    if lists.is_empty() { texts(body) } else { lists }
}

pub(crate) fn texts(body: &Value) -> Vec<String> {
    match body {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
