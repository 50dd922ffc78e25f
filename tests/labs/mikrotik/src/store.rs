//! The configuration and what lives in memory: rows by menu. Copies are cheap, because unchanged rows are shared.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The names and values of one row as they are shown.
pub(crate) type Record = BTreeMap<String, String>;

/// What a row stores, by field. A field that is absent has its default.
pub(crate) type Values = BTreeMap<String, Value>;

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    /// Rows of other menus and words, joined by comma. Rows are kept by id, so that a new name shows everywhere and a
    /// removed row shows its bare id.
    Links(Vec<Link>),
}

/// One part of a value that names rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) negated: bool,
    pub(crate) to: Target,
}

/// What a link names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Word(String),
    Row(&'static str, u64),
}

/// Who made a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A user.
    Own,
    /// The router, at run time.
    Dynamic,
    /// The vendor: it can be changed and not removed.
    BuiltIn,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: u64,
    pub(crate) origin: Origin,
    pub(crate) values: Values,
}

/// All rows of all menus. An object is a list with one row.
#[derive(Clone, Default)]
pub(crate) struct Store {
    lists: BTreeMap<&'static str, Arc<Vec<Arc<Row>>>>,
    /// The last id that was given out, by counter.
    last: BTreeMap<&'static str, u64>,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Row {
    /// A value that is plain text; empty when it is absent or names rows.
    pub(crate) fn text(&self, field: &str) -> &str {
        match self.values.get(field) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.text("disabled") == "true"
    }

    /// The rows that a field names, with their menus.
    pub(crate) fn links<'r>(&'r self, field: &str) -> impl Iterator<Item = (&'static str, u64)> + use<'r> {
        let links = match self.values.get(field) {
            Some(Value::Links(links)) => links.as_slice(),
            _ => &[],
        };
        links.iter().filter_map(|link| match link.to {
            Target::Row(menu, id) => Some((menu, id)),
            Target::Word(_) => None,
        })
    }
}

/// An id as the router shows it.
pub(crate) fn shown_id(id: u64) -> String {
    format!("*{id:X}")
}

/// An id from its shown form.
pub(crate) fn parse_id(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('*').filter(|digits| !digits.is_empty())?;
    u64::from_str_radix(digits, 16).ok()
}

impl Store {
    pub(crate) fn rows(&self, menu: &str) -> &[Arc<Row>] {
        self.lists.get(menu).map_or(&[], |rows| rows.as_slice())
    }

    pub(crate) fn find(&self, menu: &str, id: u64) -> Option<&Arc<Row>> {
        self.rows(menu).iter().find(|row| row.id == id)
    }

    /// The first row with this value, static ones before dynamic ones.
    pub(crate) fn having(&self, menu: &str, field: &str, value: &str) -> Option<&Arc<Row>> {
        let fits = |row: &&Arc<Row>| row.text(field) == value;
        let mut own = self.rows(menu).iter().filter(|row| row.origin != Origin::Dynamic);
        own.find(fits).or_else(|| self.rows(menu).iter().find(fits))
    }

    /// The one row of an object.
    pub(crate) fn object(&self, menu: &str) -> Option<&Arc<Row>> {
        self.rows(menu).first()
    }

    /// A value of an object; empty when it is not set.
    pub(crate) fn setting(&self, menu: &str, field: &str) -> &str {
        self.object(menu).map_or("", |row| row.text(field))
    }

    /// Stores a row at its place, or at the end when its id is new.
    pub(crate) fn put(&mut self, menu: &'static str, row: Row) {
        let rows = Arc::make_mut(self.lists.entry(menu).or_default());
        match rows.iter_mut().find(|old| old.id == row.id) {
            Some(old) => *old = Arc::new(row),
            None => rows.push(Arc::new(row)),
        }
    }

    /// Sets one value of a row that exists.
    pub(crate) fn set(&mut self, menu: &'static str, id: u64, field: &str, value: impl Into<Value>) {
        if let Some(row) = self.find(menu, id) {
            let mut row = Row::clone(row);
            row.values.insert(field.to_owned(), value.into());
            self.put(menu, row);
        }
    }

    /// Appends a new row, and returns its id.
    pub(crate) fn add(&mut self, menu: &'static str, origin: Origin, values: Values) -> u64 {
        let id = self.next_id(menu, origin);
        Arc::make_mut(self.lists.entry(menu).or_default()).push(Arc::new(Row { id, origin, values }));
        id
    }

    pub(crate) fn remove(&mut self, menu: &str, id: u64) -> bool {
        let Some(rows) = self.lists.get_mut(menu) else { return false };
        let before = rows.len();
        Arc::make_mut(rows).retain(|row| row.id != id);
        rows.len() < before
    }

    /// Removes the rows for which `keeps` is false.
    pub(crate) fn retain(&mut self, menu: &str, keeps: impl Fn(&Row) -> bool) {
        if let Some(rows) = self.lists.get_mut(menu)
            && !rows.iter().all(|row| keeps(row))
        {
            Arc::make_mut(rows).retain(|row| keeps(row));
        }
    }

    /// Puts rows as a block, in the given order, right before another row, or at the end.
    pub(crate) fn place(&mut self, menu: &str, ids: &[u64], before: Option<u64>) {
        let Some(rows) = self.lists.get_mut(menu) else { return };
        let rows = Arc::make_mut(rows);
        let block: Vec<Arc<Row>> =
            ids.iter().filter_map(|id| rows.iter().find(|row| row.id == *id).cloned()).collect();
        // A row that is itself moved stands for the first row behind it that stays.
        let start = before.and_then(|before| rows.iter().position(|row| row.id == before));
        let anchor =
            start.and_then(|start| rows[start..].iter().find(|row| !ids.contains(&row.id)).map(|row| row.id));
        rows.retain(|row| !ids.contains(&row.id));
        let at = anchor.and_then(|anchor| rows.iter().position(|row| row.id == anchor)).unwrap_or(rows.len());
        rows.splice(at..at, block);
    }

    /// An id that no row of its counter ever had.
    pub(crate) fn next_id(&mut self, menu: &'static str, origin: Origin) -> u64 {
        let (counter, first) = counter(menu, origin);
        let last = self.last.entry(counter).or_insert(first - 1);
        *last += 1;
        // The first job of the scheduler and the first service have the number zero.
        if ["system/scheduler", "ip/service", "log"].contains(&menu) { *last - 1 } else { *last }
    }

    /// Forgets what lives in memory.
    pub(crate) fn forget_dynamic(&mut self) {
        for rows in self.lists.values_mut() {
            if rows.iter().any(|row| row.origin == Origin::Dynamic) {
                Arc::make_mut(rows).retain(|row| row.origin != Origin::Dynamic);
            }
        }
    }

    /// Takes over lists as another store has them. Ids that were given out stay given out.
    pub(crate) fn take_over(&mut self, menus: &[&'static str], from: &Self) {
        for &menu in menus {
            match from.lists.get(menu) {
                Some(rows) => drop(self.lists.insert(menu, Arc::clone(rows))),
                None => drop(self.lists.remove(menu)),
            }
        }
    }

    /// Takes over every list.
    pub(crate) fn replace(&mut self, from: &Self) {
        self.lists.clone_from(&from.lists);
        for (counter, last) in &from.last {
            let own = self.last.entry(*counter).or_default();
            *own = (*own).max(*last);
        }
    }

    /// The menus in which two stores differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let names =
            self.lists.keys().chain(other.lists.keys().filter(|name| !self.lists.contains_key(*name)));
        let differs = |name: &&&'static str| match (self.lists.get(**name), other.lists.get(**name)) {
            (Some(a), Some(b)) => !Arc::ptr_eq(a, b) && a != b,
            (Some(rows), None) | (None, Some(rows)) => !rows.is_empty(),
            (None, None) => false,
        };
        names.filter(differs).copied().collect()
    }

    /// The menus that hold anything.
    pub(crate) fn menus(&self) -> impl Iterator<Item = &'static str> {
        self.lists.keys().copied()
    }

    /// A value as it is shown: a row that is gone leaves its id.
    pub(crate) fn shown(&self, value: &Value) -> String {
        let links = match value {
            Value::Text(text) => return text.clone(),
            Value::Links(links) => links,
        };
        let parts = links.iter().map(|link| {
            let text = match &link.to {
                Target::Word(word) => word.clone(),
                Target::Row(menu, id) => self.name_of(menu, *id).unwrap_or_else(|| shown_id(*id)),
            };
            if link.negated { format!("!{text}") } else { text }
        });
        parts.collect::<Vec<_>>().join(",")
    }

    /// The value of a field as it is shown; empty when it is not set.
    pub(crate) fn value(&self, row: &Row, field: &str) -> String {
        row.values.get(field).map_or_else(String::new, |value| self.shown(value))
    }

    /// The name of a row, where it exists.
    pub(crate) fn name_of(&self, menu: &str, id: u64) -> Option<String> {
        if menu == "interface" {
            return crate::interfaces::find(self, id).map(|(_, row)| row.text("name").to_owned());
        }
        self.find(menu, id).map(|row| row.text("name").to_owned())
    }
}

/// The counter from which a menu takes its ids, and its first number.
fn counter(menu: &'static str, origin: Origin) -> (&'static str, u64) {
    match menu {
        "ip/route" | "ipv6/route" if origin == Origin::Dynamic => ("connected routes", 0x2018_3000),
        "ip/route" | "ipv6/route" => ("routes", 0x8000_0001),
        menu if crate::interfaces::is_type(menu) => ("interface", 1),
        menu => (menu, 1),
    }
}

/// Values from pairs.
pub(crate) fn values(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(field, value)| ((*field).to_owned(), Value::from(*value))).collect()
}
