//! Objects of the model, made of the vendor's own as bindings say.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::binding::{KindBinding, ModelBinding, OneOf, Shape, Source};
use super::field::{at, plain};
use super::joined::{Joined, with};
use super::objects::{self, Listed};
use super::read::{self, Row};
use super::{Vendor, taken};
use crate::{Completeness, Fault, Host, Listing, ModelObject, ModelPage, ObjectRef, Origin, fault};

/// Rows that a page is made of.
const PAGE_ROWS: u32 = 500;
/// The same where each is read by itself: requests of a call are bounded.
const PAGE_WHOLE: u32 = 40;

/// An object of the model, before a vendor had its say.
#[derive(Debug, Clone)]
pub struct Modelled {
    pub key: String,
    pub label: String,
    pub origin: Origin,
    /// Identity of the device that it belongs to.
    pub device: Option<String>,
    /// As the kind's schema says.
    pub fields: Map<String, Value>,
}

/// A page of the objects of a kind of the model.
pub fn list_model(
    vendor: &dyn Vendor,
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<ModelPage, Fault> {
    let binding = ModelBinding::of(host, kind)?;
    let (at_source, inner) = position(cursor)?;
    let Some(source) = binding.sources.get(at_source) else {
        return Ok(ModelPage { items: Vec::new(), next: None, complete: Completeness::Complete });
    };
    let own = KindBinding::of(host, &source.from)?;
    let limit = if source.whole { PAGE_WHOLE } else { PAGE_ROWS };
    let listing = Listing { site, cursor: inner, ..Listing::of(&source.from, limit) };
    let (Listed { rows, next, complete, .. }, is_offered) = match objects::rows(vendor, host, &own, &listing)
    {
        Ok(rows) => (rows, true),
        // A part of the vendor's API that this device, version or licence has not fills nothing.
        Err(Fault::Unsupported(_) | Fault::NotFound(_)) if binding.sources.len() > 1 => {
            (Listed::none(), false)
        }
        Err(other) => return Err(other),
    };
    let (rows, complete) =
        if source.whole { wholes(vendor, host, &own, (rows, complete))? } else { (rows, complete) };
    let rows: Vec<Row> = rows.into_iter().filter(|row| is_meant(source, &row.value)).collect();
    let none = BTreeMap::new();
    let joins = if rows.is_empty() { &none } else { &source.join };
    let joined = Joined::read(vendor, host, joins, site)?;
    let complete = if matches!(joined.complete, Completeness::Complete) { complete } else { joined.complete };
    let items = rows.iter().flat_map(|row| of_row(vendor, kind, (source, &own, &joined), row)).collect();
    // What takes the place of a source is not needed where that one is offered.
    let skipped =
        binding.sources[at_source + 1..].iter().take_while(|next| next.instead && is_offered).count();
    let behind = at_source + 1 + skipped;
    let behind = (behind < binding.sources.len()).then(|| format!("{behind}|"));
    let next = next.filter(|_| is_offered).map(|inner| format!("{at_source}|{inner}")).or(behind);
    Ok(ModelPage { items, next, complete })
}

/// The place of the source that a page is made of, and the cursor within it.
fn position(cursor: Option<&str>) -> Result<(usize, Option<&str>), Fault> {
    let Some(cursor) = cursor else { return Ok((0, None)) };
    let parts = cursor.split_once('|').and_then(|(at, inner)| Some((at.parse().ok()?, inner)));
    let (at, inner) = parts.ok_or_else(|| fault::invalid("the cursor is not one that a list answered"))?;
    Ok((at, (!inner.is_empty()).then_some(inner)))
}

/// The rows with the whole objects. Those that vanished meanwhile are left out, and so are those that cannot be read,
/// unless that is all of them.
fn wholes(
    vendor: &dyn Vendor,
    host: &dyn Host,
    own: &KindBinding,
    (rows, mut complete): (Vec<Row>, Completeness),
) -> Result<(Vec<Row>, Completeness), Fault> {
    if own.shape != Shape::Items || own.get.is_none() {
        return Ok((rows, complete));
    }
    let (known, only_listed): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| read::is_writable(own, row));
    let (mut out, mut first, asked) = (only_listed, None, known.len());
    let mut failed = 0;
    for (found, row) in read::objects(vendor, host, own, &known).into_iter().zip(known) {
        match found {
            Ok(found) => out.extend(found.map(|found| whole(row, found))),
            Err(fault) => {
                failed += 1;
                complete = Completeness::Partial;
                first.get_or_insert(fault);
            }
        }
    }
    first.filter(|_| failed == asked).map_or(Ok((out, complete)), Err)
}

/// The row with all that its object has. What the list alone tells, such as a state, stays; the row of the list stands
/// at `^`, for names that mean something else in the object.
fn whole(row: Row, found: Value) -> Row {
    let (Value::Object(mut fields), Value::Object(more)) = (row.value.clone(), found) else { return row };
    fields.extend(more);
    fields.insert("^".to_owned(), row.value);
    Row { value: Value::Object(fields), ..row }
}

fn is_meant(source: &Source, row: &Value) -> bool {
    let is = |(place, wanted): (&String, &OneOf)| {
        let found = at(row, place).map(plain).unwrap_or_default();
        wanted.all().iter().any(|wanted| plain(wanted) == found)
    };
    source.only.iter().all(is) && !source.except.iter().any(is)
}

/// The objects that a row of the vendor's is: one, or one for each of its parts.
fn of_row(
    vendor: &dyn Vendor,
    kind: &str,
    (source, own, joined): (&Source, &KindBinding, &Joined<'_>),
    row: &Row,
) -> Vec<ModelObject> {
    let native = objects::reference(&source.from, own, row);
    let mut whole = with(&row.value, "$", json!(row.place));
    let parts: Vec<Value> = match &source.each {
        None => vec![whole],
        Some(place) => {
            let parts = taken_out(&mut whole, place);
            let part = |(name, part): (Value, Value)| {
                with(&with(&with(&part, "@", name), "$", json!(row.place)), "^", whole.clone())
            };
            parts.into_iter().map(part).collect()
        }
    };
    let one = |value: &Value| {
        let whole = (!source.join.is_empty()).then(|| with(value, "&", joined.of(value)));
        let value = whole.as_ref().unwrap_or(value);
        let mut object = of_value(source, &native, value)?;
        if !vendor.modelled(kind, value, &mut object) || object.key.is_empty() {
            return None;
        }
        Some(ModelObject {
            key: object.key,
            label: object.label,
            origin: object.origin,
            device: object.device,
            native: Some(native.clone()),
            fields: Value::Object(object.fields).to_string(),
        })
    };
    parts.iter().filter_map(one).collect()
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
    let text = |place: &String| at(value, place).map(plain).filter(|text| !text.is_empty());
    let key = if source.key.is_empty() {
        native.key.clone()
    } else {
        source.key.iter().map(text).collect::<Option<Vec<_>>>()?.join(":")
    };
    let label = source.label.iter().find_map(text).unwrap_or_else(|| key.clone());
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
