//! Rows and objects as they are read: defaults, links by name, secrets, what the router computes, and queries.

use std::cmp::Ordering;

use crate::access::Who;
use crate::call::{Answered, Call, Done, Output};
use crate::device::Router;
use crate::facts::{Facts, Kind, Menu};
use crate::refusal::Refusal;
use crate::store::{Origin, Record, Row, Values, shown_id};
use crate::{computed, interfaces, views};

/// Answers `print` and `get` without a row.
pub(crate) fn print(router: &Router, call: &Call) -> Answered {
    if call.menu.kind_in(router.release) == Kind::Object {
        let object = object(router, call.path, call.menu, call.who);
        return Ok(Done { output: Output::Object(limited(object, call.proplist.as_deref())), secs: Some(0) });
    }
    let mut rows = records(router, call.path, call.menu, call.who);
    if call.proplist.as_ref().is_some_and(|names| names.iter().any(|name| name == NEXT))
        && call.menu.can("move")
    {
        name_next(&mut rows);
    }
    let mut kept = Vec::new();
    for row in rows {
        if fits(&row, &call.query)? {
            kept.push(limited(row, call.proplist.as_deref()));
        }
    }
    Ok(Done::rows(kept))
}

/// Where a row of an ordered list says which one follows; only who asks for it gets it.
const NEXT: &str = ".nextid";

fn name_next(rows: &mut [Record]) {
    let mut next = "*FFFFFFFF".to_owned();
    for row in rows.iter_mut().rev() {
        row.insert(NEXT.to_owned(), next);
        next = row.get(".id").cloned().unwrap_or_default();
    }
}

/// One row by its id.
pub(crate) fn get(
    router: &Router,
    path: &'static str,
    menu: &Menu,
    who: &Who,
    id: u64,
) -> Result<Record, Refusal> {
    let shown = shown_id(id);
    let row = records(router, path, menu, who).into_iter().find(|row| row.get(".id") == Some(&shown));
    row.ok_or(Refusal::NoSuchItem)
}

/// All rows of a list in their order.
pub(crate) fn records(router: &Router, path: &'static str, menu: &Menu, who: &Who) -> Vec<Record> {
    if let Some(rows) = views::rows(router, path) {
        return rows;
    }
    let own = router.store.rows(path).iter().map(|row| record(router, path, menu, row, who));
    own.chain(views::more(router, path)).collect()
}

/// The object of a menu.
pub(crate) fn object(router: &Router, path: &'static str, menu: &Menu, who: &Who) -> Record {
    let empty = Row { id: 0, origin: Origin::BuiltIn, values: Values::new() };
    let row = router.store.object(path).map_or(&empty, |row| row);
    let mut out = fields(router, menu, row, who);
    views::object(router, path, &mut out);
    out
}

/// One stored row.
pub(crate) fn record(router: &Router, path: &'static str, menu: &Menu, row: &Row, who: &Who) -> Record {
    let mut out = fields(router, menu, row, who);
    out.insert(".id".to_owned(), shown_id(row.id));
    if menu.shows("dynamic") || menu.field("dynamic", router.release).is_some() {
        out.insert("dynamic".to_owned(), (row.origin == Origin::Dynamic).to_string());
    }
    if menu.shows("invalid") {
        out.insert("invalid".to_owned(), "false".to_owned());
    }
    if menu.shows("builtin") {
        out.insert("builtin".to_owned(), (row.origin == Origin::BuiltIn).to_string());
    }
    if menu.shows("default") && row.origin == Origin::BuiltIn {
        out.insert("default".to_owned(), "true".to_owned());
    }
    // What only the router writes is kept beside the fields.
    for (name, value) in &row.values {
        if menu.shows(name) || menu.is_untold() {
            out.insert(name.clone(), router.store.shown(value));
        }
    }
    computed::fill(router, path, row, &mut out);
    if interfaces::is_type(path) && path != "interface/ethernet" && menu.shows("running") {
        out.insert("running".to_owned(), interfaces::is_running(&router.store, path, row).to_string());
    }
    out
}

fn fields(router: &Router, menu: &Menu, row: &Row, who: &Who) -> Record {
    let mut out = Record::new();
    for field in menu.fields(router.release).filter(|field| !field.create) {
        if field.secret && (!who.may("sensitive") || is_write_only(menu, &field.name)) {
            continue;
        }
        let shown = match row.values.get(&field.name) {
            Some(value) => router.store.shown(value),
            None if field.unset => continue,
            None => match &field.default {
                Some(default) => default.clone(),
                None => continue,
            },
        };
        if field.name != "comment" || !shown.is_empty() {
            out.insert(field.name.clone(), shown);
        }
    }
    out
}

/// Nobody can read the password of a user.
fn is_write_only(menu: &Menu, name: &str) -> bool {
    name == "password" && menu.shows("last-logged-in")
}

/// The ids of a list, in its order.
pub(crate) fn ids(router: &Router, path: &str) -> Vec<u64> {
    if path == "interface" {
        return interfaces::all(&router.store).into_iter().map(|(_, row)| row.id).collect();
    }
    let ids_of = |rows: Vec<Record>| {
        let ids = rows.iter().filter_map(|row| crate::store::parse_id(row.get(".id")?));
        ids.collect::<Vec<_>>()
    };
    if let Some(rows) = views::rows(router, path) {
        return ids_of(rows);
    }
    let stored = router.store.rows(path).iter().map(|row| row.id);
    stored.chain(ids_of(views::more(router, path))).collect()
}

/// The id of the row with a name.
pub(crate) fn id_by_name(router: &Router, path: &str, name: &str) -> Option<u64> {
    if path == "interface" {
        return interfaces::named(&router.store, name).map(|(_, row)| row.id);
    }
    let (path, _) = Facts::get().menu(path).filter(|(_, menu)| menu.has_names())?;
    if let Some(rows) = views::rows(router, path) {
        let row = rows.iter().find(|row| row.get("name").is_some_and(|own| own == name))?;
        return crate::store::parse_id(row.get(".id")?);
    }
    router.store.having(path, "name", name).map(|row| row.id)
}

fn limited(row: Record, proplist: Option<&[String]>) -> Record {
    let Some(names) = proplist else { return row };
    row.into_iter().filter(|(name, _)| name == ".id" || names.iter().any(|wanted| wanted == name)).collect()
}

/// Whether a row fits a query: conditions and operators in reverse Polish order. What is left is joined by and.
pub(crate) fn fits(row: &Record, query: &[String]) -> Result<bool, Refusal> {
    let mut stack: Vec<bool> = Vec::new();
    for word in query {
        if let Some(operators) = word.strip_prefix('#') {
            for operator in operators.chars() {
                let mut pop = || stack.pop().ok_or_else(|| Refusal::unclear("invalid query"));
                let result = match operator {
                    '!' => !pop()?,
                    '&' => {
                        let (a, b) = (pop()?, pop()?);
                        a && b
                    }
                    '|' => {
                        let (a, b) = (pop()?, pop()?);
                        a || b
                    }
                    _ => return Err(Refusal::unclear("invalid query")),
                };
                stack.push(result);
            }
        } else {
            stack.push(holds(row, word.strip_prefix('?').unwrap_or(word)));
        }
    }
    Ok(stack.into_iter().all(|holds| holds))
}

fn holds(row: &Record, condition: &str) -> bool {
    let own = |name: &str| row.get(name).map(String::as_str);
    let (order, rest) = match condition.split_at_checked(1) {
        Some(("<", rest)) => (Some(Ordering::Less), rest),
        Some((">", rest)) => (Some(Ordering::Greater), rest),
        Some(("-", name)) => return own(name).is_none(),
        Some(("=", rest)) => (None, rest),
        _ => (None, condition),
    };
    match (rest.split_once('='), order) {
        (Some((name, value)), Some(order)) => own(name).is_some_and(|own| compared(own, value) == order),
        (Some((name, value)), None) => own(name) == Some(value),
        (None, _) => own(rest).is_some(),
    }
}

/// Numbers by their size, other values by their text.
fn compared(a: &str, b: &str) -> Ordering {
    match (a.parse::<i64>(), b.parse::<i64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}
