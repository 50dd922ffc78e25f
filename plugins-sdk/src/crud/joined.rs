//! Rows of other kinds that belong to a row, for objects of the model that one list alone does not tell enough of.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::Vendor;
use super::binding::{Join, KindBinding};
use super::field::{at, plain};
use super::objects::{self, Listed};
use super::read::Row;
use super::several::{is_not_offered, together};
use crate::{Completeness, Fault, Host, Listing, fault};

/// Most pages of one list, against a device that gives the same page again and again.
const PAGES_MAX: usize = 1_000;
/// Stands between the values that name a row together; no vendor writes it.
const BETWEEN: &str = "\u{1f}";

/// The rows of one join, by what names them.
struct Table<'j> {
    join: &'j Join,
    /// None where the device does not have this part of the vendor's API, or denies it.
    rows: Option<Rc<[Value]>>,
    /// The kind is one object, and no list of them.
    is_single: bool,
    named: BTreeMap<String, Vec<usize>>,
}

/// The rows of all joins of a source.
pub(crate) struct Joined<'j> {
    tables: BTreeMap<&'j str, Table<'j>>,
    pub(crate) complete: Completeness,
}

impl<'j> Joined<'j> {
    /// Reads each kind once.
    pub(crate) fn read(
        vendor: &dyn Vendor,
        host: &dyn Host,
        joins: &'j BTreeMap<String, Join>,
        site: Option<&str>,
    ) -> Result<Self, Fault> {
        let mut out = Joined { tables: BTreeMap::new(), complete: Completeness::Complete };
        let mut read: BTreeMap<&str, Option<Rc<[Value]>>> = BTreeMap::new();
        for (name, join) in joins {
            let rows = match read.get(join.from.as_str()) {
                Some(rows) => rows.clone(),
                None => out.rows(vendor, host, &join.from, site)?,
            };
            read.insert(&join.from, rows.clone());
            let rows = match &join.each {
                Some(place) => rows.map(|rows| rows.iter().flat_map(|row| parts(at(row, place))).collect()),
                None => rows,
            };
            let is_single = join.each.is_none() && KindBinding::of(host, &join.from)?.is_single();
            let mut named: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (index, row) in rows.iter().flat_map(|rows| rows.iter()).enumerate() {
                for name in names(row, join.by.all(), join.separator.as_deref()) {
                    named.entry(name).or_default().push(index);
                }
            }
            out.tables.insert(name, Table { join, rows, is_single, named });
        }
        Ok(out)
    }

    fn rows(
        &mut self,
        vendor: &dyn Vendor,
        host: &dyn Host,
        kind: &str,
        site: Option<&str>,
    ) -> Result<Option<Rc<[Value]>>, Fault> {
        let (rows, complete) = match all(vendor, host, kind, site) {
            // A part of the vendor's API that this device, version or licence has not adds nothing.
            Err(fault) if is_not_offered(&fault) => return Ok(None),
            Err(Fault::Denied(_)) => {
                self.complete = together(self.complete, Completeness::RightsLimited);
                return Ok(None);
            }
            other => other?,
        };
        self.complete = together(self.complete, complete);
        Ok(Some(rows.into()))
    }

    /// What belongs to a row, by the names of the joins.
    pub(crate) fn of(&self, row: &Value) -> Value {
        let one = |(name, table): (&&str, &Table<'_>)| ((*name).to_owned(), table.of(row));
        Value::Object(self.tables.iter().map(one).collect())
    }
}

impl Table<'_> {
    fn of(&self, row: &Value) -> Value {
        let Some(rows) = &self.rows else { return Value::Null };
        let places = self.join.at.all();
        if places.is_empty() {
            let mut all = rows.iter().cloned();
            return if self.is_single { all.next().unwrap_or_default() } else { all.collect() };
        }
        let is_list = places.iter().any(|place| at(row, place).is_some_and(Value::is_array));
        let names = names(row, places, None);
        let mut seen = BTreeSet::new();
        let indices = names.iter().filter_map(|name| self.named.get(name)).flatten();
        let mut found = indices.filter(|index| seen.insert(**index)).filter_map(|index| rows.get(*index));
        if is_list || self.join.many {
            return found.cloned().collect();
        }
        found.next().cloned().unwrap_or_default()
    }
}

/// The parts of a list or of an object, each with its name at `@`.
fn parts(found: Option<&Value>) -> Vec<Value> {
    let named = |(name, part): (&String, &Value)| with(part, "@", json!(name));
    match found {
        Some(Value::Array(items)) => items.clone(),
        Some(Value::Object(parts)) => parts.iter().map(named).collect(),
        _ => Vec::new(),
    }
}

/// The names that the values at several places make together; none where one of them is missing.
fn names(row: &Value, places: &[String], separator: Option<&str>) -> Vec<String> {
    let mut out = vec![String::new()];
    for (index, place) in places.iter().enumerate() {
        let values: Vec<String> = match at(row, place) {
            Some(Value::Array(items)) => items.iter().map(plain).collect(),
            Some(value) => match separator {
                Some(mark) => plain(value).split(mark).map(|part| part.trim().to_owned()).collect(),
                None => vec![plain(value)],
            },
            None => Vec::new(),
        };
        let values: Vec<String> = values.into_iter().filter(|value| !value.is_empty()).collect();
        let between = if index == 0 { "" } else { BETWEEN };
        let with = |first: &String| values.iter().map(|value| format!("{first}{between}{value}")).collect();
        out = out.iter().flat_map(|first| -> Vec<String> { with(first) }).collect();
    }
    if places.is_empty() { Vec::new() } else { out }
}

/// All rows of a kind, each with the parameters of its paths.
fn all(
    vendor: &dyn Vendor,
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
) -> Result<(Vec<Value>, Completeness), Fault> {
    let own = KindBinding::of(host, kind)?;
    let (mut out, mut cursor, mut whole) = (Vec::new(), None::<String>, Completeness::Complete);
    let mut is_offered = false;
    for _ in 0..PAGES_MAX {
        let listing = Listing { site, cursor: cursor.as_deref(), ..Listing::of(kind, u32::MAX) };
        let Listed { rows, next, complete, is_offered: is_here, .. } =
            match objects::rows(vendor, host, &own, &listing) {
                // The device has it: it answered the pages before this one.
                Err(fault) if is_not_offered(&fault) && cursor.is_some() => {
                    return Ok((out, Completeness::Partial));
                }
                other => other?,
            };
        is_offered |= is_here;
        whole = together(whole, complete);
        // An answer that is a list stays one.
        let placed = |row: Row| match row.value {
            list @ Value::Array(_) => list,
            value => with(&value, "$", json!(row.place)),
        };
        out.extend(rows.into_iter().map(placed));
        cursor = next;
        if cursor.is_none() && !is_offered {
            return Err(fault::unsupported(format!("the device has no objects of kind '{kind}'")));
        }
        if cursor.is_none() {
            return Ok((out, whole));
        }
    }
    Err(fault::generic(format!("the list of objects of kind '{kind}' does not end")))
}

/// The value with one more field; what is no object stands in the field without a name.
pub(crate) fn with(value: &Value, name: &str, more: Value) -> Value {
    let mut fields = match value {
        Value::Object(fields) => fields.clone(),
        other => Map::from_iter([(String::new(), other.clone())]),
    };
    fields.insert(name.to_owned(), more);
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_all_places_together() {
        let row = json!({ "a": "x", "list": ["1", "", "2"], "text": "eno1 eno2", "n": 7 });
        let of = |places: &[&str], separator| {
            let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
            names(&row, &places, separator)
        };
        assert_eq!(of(&["a"], None), ["x"]);
        assert_eq!(of(&["a", "list"], None), ["x\u{1f}1", "x\u{1f}2"]);
        assert_eq!(of(&["n", "text"], Some(" ")), ["7\u{1f}eno1", "7\u{1f}eno2"]);
        assert!(of(&["a", "absent"], None).is_empty());
        assert!(of(&[], None).is_empty());
    }
}
