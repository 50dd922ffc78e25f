//! Lists of objects and single ones, as the inventory shows them.

use serde_json::{Value, json};

use super::binding::{FieldType, KindBinding, Shape, Within};
use super::field::{content, to_json};
use super::read::{self, Ask, Given, Position, Row};
use super::several::{Several, is_not_offered, together};
use super::{Place, Vendor, key, place};
use crate::{
    Completeness, Fault, FaultExt, Host, Listing, Locator, Object, ObjectPage, ObjectRef, Stability, fault,
};

/// The key of the one object of settings or of an answer.
const ONLY: &str = "settings";
/// How many parents are asked before it is seen whether the page is full.
const PLACES_AT_ONCE: usize = 32;
/// Milliseconds after which a page asks no more of them: a call ends after some seconds, and a device may be slow.
const PAGE_MS: u64 = 3_000;

/// Rows of a list.
pub(crate) struct Listed {
    pub(crate) rows: Vec<Row>,
    pub(crate) next: Option<String>,
    pub(crate) total: Option<u64>,
    pub(crate) complete: Completeness,
    /// Whether the device has any of what was asked for on this page.
    pub(crate) is_offered: bool,
}

impl Listed {
    /// There is nothing.
    pub(crate) fn none() -> Self {
        let complete = Completeness::Complete;
        Listed { rows: Vec::new(), next: None, total: None, complete, is_offered: true }
    }
}

/// A page of the objects of a kind.
pub fn list_objects(
    vendor: &dyn Vendor,
    host: &dyn Host,
    listing: &Listing<'_>,
) -> Result<ObjectPage, Fault> {
    let binding = KindBinding::of(host, listing.kind)?;
    let Listed { rows, next, total, complete, .. } = rows(vendor, host, &binding, listing)?;
    let items = rows.iter().map(|row| of_row(listing.kind, &binding, row)).collect();
    Ok(ObjectPage { items, next, total, complete })
}

/// A page of the rows of a kind.
pub(crate) fn rows(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    listing: &Listing<'_>,
) -> Result<Listed, Fault> {
    let (in_path, filter) = filters(binding, listing)?;
    let mut scope = vendor.scope(host, listing.site)?;
    scope.extend(in_path);
    let from = position(listing.cursor)?;
    if binding.within.is_some() {
        return within(vendor, host, (binding, listing), &scope, &filter, from.seen);
    }
    if binding.is_single() {
        let found = read::answer(vendor, host, binding, Ask { place: &scope, filter: &filter }, "")?;
        let row = |value: Value| Row { id: String::new(), value, place: scope.clone() };
        let rows: Vec<Row> = found.into_iter().map(row).collect();
        return Ok(Listed { total: Some(rows.len() as u64), rows, ..Listed::none() });
    }
    let limit = listing.limit.max(1);
    let ask = Ask { place: &scope, filter: &filter };
    let (rows, total, next) = if let Some(paging) = binding.list.as_ref().and_then(|list| list.page.as_ref())
    {
        let size = limit.min(paging.size_max);
        let found = read::page(vendor, host, binding, ask, (from, size))?;
        let next = from.behind(&found, size);
        let total = found.total.filter(|total| *total >= next.map_or(0, |next| next.seen));
        (found.rows, total, next)
    } else {
        let all = read::all(vendor, host, binding, ask)?;
        let (total, seen) = (all.len() as u64, from.seen.saturating_add(u64::from(limit)));
        let page = all.into_iter().skip(index(from.seen)).take(limit as usize).collect();
        (page, Some(total), (seen < total).then_some(Position { pages: 0, seen }))
    };
    Ok(Listed { rows, total, next: next.map(cursor), ..Listed::none() })
}

/// Where a page begins, as its cursor says it: pages and rows before it, or the rows alone.
fn position(cursor: Option<&str>) -> Result<Position, Fault> {
    let Some(cursor) = cursor else { return Ok(Position::default()) };
    let (pages, seen) = cursor.split_once('.').unwrap_or(("0", cursor));
    let known = pages.parse().ok().zip(seen.parse().ok());
    let (pages, seen) = known.ok_or_else(|| fault::invalid("the cursor is not one that a list answered"))?;
    Ok(Position { pages, seen })
}

fn cursor(at: Position) -> String {
    if at.pages == 0 { at.seen.to_string() } else { format!("{}.{}", at.pages, at.seen) }
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The parameters that the filters of people become.
fn filters(binding: &KindBinding, listing: &Listing<'_>) -> Result<(Place, Vec<Given>), Fault> {
    let of_get = || binding.get.as_ref().map(|get| &get.filters);
    let is_list = matches!(binding.shape, Shape::Items | Shape::Rows);
    let known = if is_list { binding.list.as_ref().map(|list| &list.filters) } else { of_get() };
    let parents = binding.within.iter().flat_map(|within| &within.key);
    let names: Vec<&str> =
        parents.chain(known.into_iter().flat_map(|known| known.keys())).map(String::as_str).collect();
    listing.refuse_filters_but(&names)?;
    let given = |name: &str| listing.filter.iter().find(|filter| filter.key == name);
    let path = if is_list {
        binding.list.as_ref().map(|list| &list.path)
    } else {
        binding.get.as_ref().map(|get| &get.path)
    };
    let is_in_path = |param: &str| path.is_some_and(|path| path.contains(&format!("{{{param}}}")));
    let (mut place, mut params) = (Place::new(), Vec::new());
    for (name, filter) in known.into_iter().flatten() {
        match given(name) {
            Some(given) if is_in_path(&filter.param) => {
                place.insert(filter.param.clone(), given.value.clone());
            }
            Some(given) => params.push(Given {
                param: filter.param.clone(),
                text: given.value.clone(),
                form: filter.form,
            }),
            None if filter.required => {
                let message =
                    format!("objects of kind '{}' are listed with a filter by '{name}'", listing.kind);
                return Err(fault::invalid(message).with_field("/filter", format!("name '{name}'")));
            }
            None => {}
        }
    }
    Ok((place, params))
}

/// A page of rows that belong to parents: as many parents as fill it in time. The cursor is the place of the next parent.
///
/// The fault is that of a page on which no parent answers. Where the rest of the list is on other pages, parents that do
/// not have it just have no rows.
fn within(
    vendor: &dyn Vendor,
    host: &dyn Host,
    (binding, listing): (&KindBinding, &Listing<'_>),
    scope: &Place,
    filter: &[Given],
    from: u64,
) -> Result<Listed, Fault> {
    let named = |name: &str| listing.filter.iter().find(|one| one.key == name).map(|one| one.value.clone());
    let (places, complete) = place::reachable(vendor, host, binding, scope, &|within, place| {
        place::is_named(within, place, &named)
    })?;
    let from = index(from).min(places.len());
    let most = from.saturating_add(vendor.places_of_page().max(1)).min(places.len());
    let (mut several, mut rows, mut to) = (Several::default(), Vec::new(), from);
    let begun = host.now_ms();
    while to < most && (to == from || (rows.len() < listing.limit as usize && has_time(host, begun))) {
        let end = to.saturating_add(PLACES_AT_ONCE).min(most);
        for answer in read::each(vendor, host, binding, &places[to..end], filter) {
            rows.extend(several.take(answer).into_iter().flatten());
        }
        to = end;
    }
    let is_only_page = from == 0 && to == places.len();
    let (complete, is_offered) = (together(complete, several.complete()), several.is_offered());
    if let Some(fault) = several.fault().filter(|fault| is_only_page || !is_not_offered(fault)) {
        return Err(fault);
    }
    let next = (to < places.len()).then(|| to.to_string());
    Ok(Listed { rows, next, total: None, complete, is_offered })
}

/// Whether a page that began then may ask for more.
pub(crate) fn has_time(host: &dyn Host, begun_ms: u64) -> bool {
    host.now_ms().saturating_sub(begun_ms) < PAGE_MS
}

/// One object by its natural key.
pub fn get_object(
    vendor: &dyn Vendor,
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    key: &str,
) -> Result<Object, Fault> {
    let binding = KindBinding::of(host, kind)?;
    let absent = || fault::not_found(format!("there is no {} '{key}'", binding.noun));
    let scope = vendor.scope(host, site)?;
    let is_single = binding.is_single();
    let leads_there = |within: &Within, place: &Place| is_on_the_way(&binding, within, place, key);
    for place in place::all(vendor, host, &binding, &scope, &leads_there)? {
        let Some(own) = own_key(&binding, &place, key) else { continue };
        let row = if is_single {
            let is_meant = own == if binding.within.is_some() { "" } else { ONLY };
            let found = if is_meant { read::object(vendor, host, &binding, &place, "")? } else { None };
            found.map(|value| Row { id: String::new(), value, place: place.clone() })
        } else {
            let rows = read::all(vendor, host, &binding, Ask::of(&place))?;
            rows.into_iter().find(|row| name_of(&binding, row) == own)
        };
        let Some(row) = row else { continue };
        let mut object = of_row(kind, &binding, &row);
        if binding.shape == Shape::Items && binding.get.is_some() && read::is_writable(&binding, &row) {
            let value = read::object(vendor, host, &binding, &row.place, &row.id)?.ok_or_else(absent)?;
            object.body = body(&binding, &Row { value, ..row });
        }
        return Ok(object);
    }
    Err(absent())
}

/// Whether objects below a place may have a key. A parent whose own parameters do not begin the key is not known yet.
fn is_on_the_way(binding: &KindBinding, within: &Within, place: &Place, key: &str) -> bool {
    let whole = binding.within.iter().flat_map(|within| &within.key);
    let is_beginning = whole.take(within.key.len()).eq(&within.key);
    let known: Vec<&str> = within.key.iter().filter_map(|name| place.get(name)).map(String::as_str).collect();
    let rest = key.strip_prefix(&known.join(":"));
    within.key.is_empty()
        || !is_beginning
        || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// The rest of a key behind the parent's; none where another parent is meant.
fn own_key<'k>(binding: &KindBinding, place: &Place, key: &'k str) -> Option<&'k str> {
    let prefix = place::prefix(binding, place).join(":");
    if prefix.is_empty() {
        return Some(key);
    }
    let rest = key.strip_prefix(&prefix)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(':') }
}

/// The natural key of a row, without its parent's.
fn name_of(binding: &KindBinding, row: &Row) -> String {
    let key = key::of(binding, &row.value);
    if key.chars().all(|c| c == ':') { row.id.clone() } else { key }
}

fn of_row(kind: &str, binding: &KindBinding, row: &Row) -> Object {
    Object { reference: reference(kind, binding, row), revision: None, body: body(binding, row) }
}

/// What names a row for people and for the vendor.
pub(crate) fn reference(kind: &str, binding: &KindBinding, row: &Row) -> ObjectRef {
    let is_single = binding.is_single();
    let own = if is_single { String::new() } else { name_of(binding, row) };
    let key = place::full_key(binding, &row.place, &own);
    let is_known = !is_single && !binding.volatile && read::is_writable(binding, row);
    let locators = is_known.then(|| Locator {
        surface: "id".to_owned(),
        value: row.id.clone(),
        stability: Stability::UntilRecreate,
    });
    ObjectRef {
        kind: kind.to_owned(),
        site: None,
        key: if key.is_empty() && is_single { ONLY.to_owned() } else { key },
        locators: locators.into_iter().collect(),
    }
}

/// What is shown of an object: never a secret.
fn body(binding: &KindBinding, row: &Row) -> String {
    let mut shown = if binding.fields.is_empty() {
        row.value.clone()
    } else {
        let mut shown = content(binding, &row.value);
        shown.retain(|name, _| binding.fields.get(name).is_none_or(|field| field.kind != FieldType::Secret));
        to_json(&shown)
    };
    let parents = binding.within.iter().flat_map(|within| &within.key);
    if let Value::Object(fields) = &mut shown {
        for (name, value) in parents.filter_map(|name| Some((name, row.place.get(name)?))) {
            fields.entry(name.clone()).or_insert_with(|| json!(value));
        }
    }
    shown.to_string()
}
