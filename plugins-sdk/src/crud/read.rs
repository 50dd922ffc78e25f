//! Reading lists and objects by their bindings.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::binding::{FilterForm, GetRoute, IdForm, KindBinding, ListRoute, OneOf, PageBy, Shape, Verb};
use super::field::{at, plain};
use super::path::{filled, filled_json, with_query};
use super::{Place, Vendor};
use crate::json::digest;
use crate::{Auth, Fault, Host, Request, Response, fault};

/// Largest answer of a list.
const LIST_BYTES_MAX: u32 = 8 << 20;
/// Most pages of one list, against a device that gives the same page again and again.
const PAGES_MAX: u64 = 64;
/// Requests at a time; the manifest may allow fewer.
const PARALLEL: u8 = 4;

/// One row of a list.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The vendor's id; empty where it has none.
    pub(crate) id: String,
    pub(crate) value: Value,
    /// Parameters of the object's paths.
    pub(crate) place: Place,
}

/// What a list is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) place: &'a Place,
    /// What filters of people become.
    pub(crate) filter: &'a [Given],
}

/// A filter with the value that a person gave.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) param: String,
    pub(crate) text: String,
    pub(crate) form: FilterForm,
}

impl Given {
    fn in_query(all: &[Given]) -> Vec<(String, String)> {
        all.iter().map(|given| (given.param.clone(), given.text.clone())).collect()
    }

    fn in_body(&self) -> Value {
        let number = |text: &str| text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
        match self.form {
            FilterForm::Text => number(&self.text),
            FilterForm::List => self.text.split(',').map(|part| number(part.trim())).collect(),
            FilterForm::Flag => Value::from(["true", "1"].contains(&self.text.as_str())),
        }
    }
}

impl<'a> Ask<'a> {
    pub(crate) fn of(place: &'a Place) -> Self {
        Ask { place, filter: &[] }
    }
}

/// A page of a list.
pub(crate) struct Found {
    pub(crate) rows: Vec<Row>,
    /// How many rows the device answered, those that do not belong here among them.
    answered: u64,
    pub(crate) total: Option<u64>,
    /// Digest of the answered rows, to notice a device that gives the same page again.
    mark: [u8; 32],
}

/// How far a list was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) pages: u64,
    /// Rows that the device answered so far.
    pub(crate) seen: u64,
}

impl Position {
    /// Where the page behind this one begins; none where the list ends with it. A vendor may give smaller pages than it is
    /// asked for, and a total that is less than what it gave is none.
    pub(crate) fn behind(self, found: &Found, size: u32) -> Option<Position> {
        let next = Position { pages: self.pages + 1, seen: self.seen + found.answered };
        let is_full = found.answered >= u64::from(size);
        let has_more = match found.total {
            Some(total) if total >= next.seen => total > next.seen,
            _ => is_full,
        };
        (found.answered > 0 && has_more).then_some(next)
    }
}

fn list_of(binding: &KindBinding) -> Result<&ListRoute, Fault> {
    binding.list.as_ref().ok_or_else(|| {
        fault::unsupported(format!("objects of this kind ('{}') are not listed", binding.noun))
    })
}

/// The request for a page.
fn request(route: &ListRoute, ask: Ask<'_>, from: Position, size: u32) -> Request {
    let mut params: Vec<(&str, u64)> = Vec::new();
    if let Some(paging) = &route.page {
        let place = match paging.by {
            PageBy::Number => paging.first.saturating_add(from.pages),
            PageBy::Offset => paging.first.saturating_add(from.seen),
        };
        params = vec![(&paging.at, place), (&paging.size, u64::from(size))];
    }
    let mut request = Request::new(route.method.method(), filled(&route.path, ask.place, ""));
    if route.method == Verb::Get {
        request.path = with_query(&request.path, &Given::in_query(ask.filter));
        let params: Vec<(String, String)> =
            params.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        request.path = with_query(&request.path, &params);
    } else {
        let mut body = body_of(route.body.as_ref(), ask);
        body.extend(params.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))));
        request = request.with_json(&Value::Object(body));
    }
    request.max_response_bytes = Some(LIST_BYTES_MAX);
    request
}

/// What a POST that reads sends: constants and filters.
fn body_of(constants: Option<&Value>, ask: Ask<'_>) -> Map<String, Value> {
    let constants = constants.map(|body| filled_json(body, ask.place, ""));
    let mut body = constants.as_ref().and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    body.extend(ask.filter.iter().map(|given| (given.param.clone(), given.in_body())));
    body
}

/// One page of a list.
pub(crate) fn page(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    ask: Ask<'_>,
    (from, size): (Position, u32),
) -> Result<Found, Fault> {
    let route = list_of(binding)?;
    let response = host.send(request(route, ask, from, size), Auth::session(vendor.session()))?;
    rows_of(binding, route, &vendor.content(&response)?, ask.place)
}

/// To some vendors what does not exist is an empty list.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn rows_of(binding: &KindBinding, route: &ListRoute, answer: &Value, place: &Place) -> Result<Found, Fault> {
    let total = route.page.as_ref().and_then(|page| answer.pointer(page.total.as_deref()?)?.as_u64());
    let rows = match answer.pointer(&route.rows) {
        Some(Value::Array(rows)) => rows.clone(),
        // Vendors that have an empty list for an empty map have a map for the list, too.
        Some(Value::Object(rows)) => rows.values().cloned().collect(),
        Some(Value::Null) => Vec::new(),
        None if is_nothing(answer) || binding.shape == Shape::Rows => Vec::new(),
        // What is no list must not look like an empty one.
        _ => {
            let message = format!("the device answered no list of objects of this kind ('{}')", binding.noun);
            return Err(fault::generic(message));
        }
    };
    let answered = rows.len() as u64;
    let mark = if route.page.is_some() { digest(&Value::Array(rows.clone())) } else { [0; 32] };
    let id_of = |row: &Value| route.id.as_deref().and_then(|id| at(row, id)).map(plain).unwrap_or_default();
    let one = |value: Value| Row { id: id_of(&value), place: own_place(binding, place, &value), value };
    let rows = numbered(route, rows);
    let rows = rows.into_iter().filter(|row| has(row, &route.only, place)).map(one).collect();
    Ok(Found { rows, answered, total, mark })
}

/// The rows, each with the id of the one behind it where the order counts.
fn numbered(route: &ListRoute, mut rows: Vec<Value>) -> Vec<Value> {
    let (Some(behind), Some(id)) = (&route.behind, &route.id) else { return rows };
    let ids: Vec<Option<Value>> = rows.iter().skip(1).map(|row| at(row, id).cloned()).collect();
    for (row, next) in rows.iter_mut().zip(ids) {
        if let (Value::Object(fields), Some(next)) = (row, next) {
            fields.insert(behind.clone(), next);
        }
    }
    rows
}

/// The parameters of one object's paths.
fn own_place(binding: &KindBinding, place: &Place, row: &Value) -> Place {
    let own = binding.params.iter().filter_map(|(name, place)| Some((name.clone(), plain(at(row, place)?))));
    place.clone().into_iter().chain(own).collect()
}

/// Whether an object has these values at these places.
pub(crate) fn has(object: &Value, only: &BTreeMap<String, OneOf>, place: &Place) -> bool {
    only.iter().all(|(name, wanted)| {
        let is = |value: &Value, wanted: &Value| plain(value) == plain(&filled_json(wanted, place, ""));
        at(object, name).is_some_and(|value| wanted.all().iter().any(|wanted| is(value, wanted)))
    })
}

/// All rows of a list.
pub(crate) fn all(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    ask: Ask<'_>,
) -> Result<Vec<Row>, Fault> {
    let Some(paging) = &list_of(binding)?.page else {
        return Ok(page(vendor, host, binding, ask, (Position::default(), 0))?.rows);
    };
    let (mut out, mut from, mut before) = (Vec::new(), Position::default(), None);
    while from.pages < PAGES_MAX {
        let found = page(vendor, host, binding, ask, (from, paging.size_max))?;
        if before.replace(found.mark) == Some(found.mark) && found.answered > 0 {
            return Err(fault::generic(format!(
                "the device answers the same page of objects of this kind ('{}') again and again",
                binding.noun
            )));
        }
        let next = from.behind(&found, paging.size_max);
        out.extend(found.rows);
        match next {
            Some(next) => from = next,
            None => return Ok(out),
        }
    }
    Err(fault::unsupported(format!("the device has more than {} objects of this kind", out.len())))
}

/// All rows of the lists in several places, or the objects there; each place has an answer of its own.
pub(crate) fn each(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    places: &[Place],
    filter: &[Given],
) -> Vec<Result<Vec<Row>, Fault>> {
    let session = || Auth::session(vendor.session());
    let ask = |place| Ask { place, filter };
    if let (Shape::Object | Shape::Answer, Some(route)) = (binding.shape, &binding.get) {
        let requests = places.iter().map(|place| get(route, ask(place), "")).collect();
        let answers = host.send_all(requests, session(), PARALLEL);
        let row = |(answer, place): (Result<Response, Fault>, &Place)| {
            let found = opened(vendor, binding, route, &answer?)?;
            let one = found.map(|value| Row { id: String::new(), value, place: place.clone() });
            Ok(one.into_iter().collect())
        };
        return answers.into_iter().zip(places).map(row).collect();
    }
    let Some(route) = binding.list.as_ref().filter(|route| route.page.is_none()) else {
        return places.iter().map(|place| all(vendor, host, binding, ask(place))).collect();
    };
    let requests = places.iter().map(|place| request(route, ask(place), Position::default(), 0)).collect();
    let answers = host.send_all(requests, session(), PARALLEL);
    let rows = |(answer, place): (Result<Response, Fault>, &Place)| {
        Ok(rows_of(binding, route, &vendor.content(&answer?)?, place)?.rows)
    };
    answers.into_iter().zip(places).map(rows).collect()
}

/// Whether a row can be written.
pub(crate) fn is_writable(binding: &KindBinding, row: &Row) -> bool {
    let list = binding.list.as_ref();
    let is_fixed = |(place, values): (&String, &OneOf)| {
        at(&row.value, place).is_some_and(|found| values.all().contains(found))
    };
    if list.is_some_and(|list| list.fixed.iter().any(is_fixed)) {
        return false;
    }
    match list.and_then(|list| list.writable) {
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
    place: &Place,
    id: &str,
) -> Result<Option<Value>, Fault> {
    answer(vendor, host, binding, Ask::of(place), id)
}

/// Several objects as the device answers them, each with an answer of its own.
pub(crate) fn objects(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    rows: &[Row],
) -> Vec<Result<Option<Value>, Fault>> {
    let Some(route) = &binding.get else { return Vec::new() };
    let requests = rows.iter().map(|row| get(route, Ask::of(&row.place), &row.id)).collect();
    let answers = host.send_all(requests, Auth::session(vendor.session()), PARALLEL);
    answers.into_iter().map(|answer| opened(vendor, binding, route, &answer?)).collect()
}

/// The same with filters.
pub(crate) fn answer(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    ask: Ask<'_>,
    id: &str,
) -> Result<Option<Value>, Fault> {
    let Some(route) = &binding.get else {
        let rows = all(vendor, host, binding, ask)?;
        return Ok(rows.into_iter().find(|row| row.id == id).map(|row| row.value));
    };
    let response = host.send(get(route, ask, id), Auth::session(vendor.session()))?;
    opened(vendor, binding, route, &response)
}

/// The request for an object.
fn get(route: &GetRoute, ask: Ask<'_>, id: &str) -> Request {
    let request = Request::new(route.method.method(), filled(&route.path, ask.place, id));
    if route.method == Verb::Get {
        let path = with_query(&request.path, &Given::in_query(ask.filter));
        Request { path, ..request }
    } else {
        request.with_json(&Value::Object(body_of(route.body.as_ref(), ask)))
    }
}

/// The object in an answer; none where it does not exist.
fn opened(
    vendor: &dyn Vendor,
    binding: &KindBinding,
    route: &GetRoute,
    response: &Response,
) -> Result<Option<Value>, Fault> {
    let answer = match vendor.content(response) {
        Err(Fault::NotFound(_)) => return Ok(None),
        other => other?,
    };
    match answer.pointer(&route.item) {
        // What is only read may be a list.
        Some(found) if found.is_object() || binding.shape == Shape::Answer => Ok(Some(found.clone())),
        Some(found) if is_nothing(found) => Ok(None),
        // Some devices answer settings as a list of one.
        Some(Value::Array(one)) if binding.shape == Shape::Object && one.len() == 1 && one[0].is_object() => {
            Ok(Some(one[0].clone()))
        }
        None if is_nothing(&answer) || answer.is_object() => Ok(None),
        _ => Err(fault::generic(format!("the device answered something else than a {}", binding.noun))),
    }
}

/// What a new object has before anybody fills it in.
pub(crate) fn template(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    place: &Place,
) -> Result<Option<Value>, Fault> {
    let Some(route) = &binding.get else { return Ok(None) };
    let Some(path) = &route.template else { return Ok(None) };
    let response = host.send(Request::get(filled(path, place, "")), Auth::session(vendor.session()))?;
    Ok(vendor.content(&response)?.pointer(&route.item).filter(|found| found.is_object()).cloned())
}
