//! What the console has stored: tables of rows for each site, and for the controller itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::row::{Row, put, shown, text, uuid};

/// The scope of what belongs to the controller and to no site.
pub(crate) const GLOBAL: &str = "";

/// Tables that the official interface shows under ids of its own.
const OFFICIAL: [&str; 15] = [
    "acl_rule",
    "device",
    "firewall_policy",
    "firewall_zone",
    "matching_list",
    "networkconf",
    "radiusprofile",
    "site",
    "sta",
    "static_dns",
    "device_tag",
    "user",
    "voucher",
    "wlanconf",
    "pending",
];

/// Everything stored, by site (its short name) and table.
#[derive(Clone, Default)]
pub(crate) struct Store {
    sites: BTreeMap<String, BTreeMap<String, Vec<Row>>>,
    made: u64,
}

impl Store {
    /// A new id: 24 hexadecimal digits, different in every call, the same in every run.
    pub(crate) fn new_id(&mut self) -> String {
        self.made += 1;
        format!("6751{:08x}{:012x}", self.made.wrapping_mul(0x9e37_79b1) & 0xffff_ffff, self.made)
    }

    pub(crate) fn rows(&self, site: &str, table: &str) -> &[Row] {
        self.sites.get(site).and_then(|site| site.get(table)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn rows_mut(&mut self, site: &str, table: &str) -> &mut Vec<Row> {
        self.sites.entry(site.to_owned()).or_default().entry(table.to_owned()).or_default()
    }

    /// The first row whose field has this text.
    pub(crate) fn having(&self, site: &str, table: &str, field: &str, wanted: &str) -> Option<&Row> {
        self.rows(site, table).iter().find(|row| text(row, field) == wanted)
    }

    pub(crate) fn having_mut(
        &mut self,
        site: &str,
        table: &str,
        field: &str,
        wanted: &str,
    ) -> Option<&mut Row> {
        self.rows_mut(site, table).iter_mut().find(|row| text(row, field) == wanted)
    }

    pub(crate) fn find(&self, site: &str, table: &str, id: &str) -> Option<&Row> {
        self.having(site, table, "_id", id)
    }

    pub(crate) fn find_mut(&mut self, site: &str, table: &str, id: &str) -> Option<&mut Row> {
        self.having_mut(site, table, "_id", id)
    }

    /// The row that the official interface knows by this id.
    pub(crate) fn by_uuid(&self, site: &str, table: &str, id: &str) -> Option<&Row> {
        self.having(site, table, "~uuid", id)
    }

    /// The `_id` of the row that the official interface knows by this id.
    pub(crate) fn id_of(&self, site: &str, table: &str, id: &str) -> Option<String> {
        self.by_uuid(site, table, id).map(|row| text(row, "_id").to_owned())
    }

    /// The official id of a row; empty when there is no such row.
    pub(crate) fn uuid_of(&self, site: &str, table: &str, id: &str) -> String {
        self.find(site, table, id).map_or_else(String::new, |row| text(row, "~uuid").to_owned())
    }

    /// Adds a row with new ids, unless it brings its own, and returns its `_id`.
    pub(crate) fn add(&mut self, site: &str, table: &str, mut row: Row) -> String {
        if text(&row, "_id").is_empty() {
            let id = self.new_id();
            let mut whole = Row::new();
            put(&mut whole, "_id", id);
            whole.append(&mut row);
            row = whole;
        }
        let id = text(&row, "_id").to_owned();
        if site != GLOBAL {
            let owner = self.having(GLOBAL, "site", "name", site).map(|site| site["_id"].clone());
            put(&mut row, "site_id", owner.unwrap_or_default());
        }
        if OFFICIAL.contains(&table) && text(&row, "~uuid").is_empty() {
            put(&mut row, "~uuid", uuid(table, &id));
        }
        self.rows_mut(site, table).push(row);
        id
    }

    pub(crate) fn remove(&mut self, site: &str, table: &str, id: &str) -> Option<Row> {
        let rows = self.rows_mut(site, table);
        let place = rows.iter().position(|row| text(row, "_id") == id)?;
        Some(rows.remove(place))
    }

    /// The short names of the sites.
    pub(crate) fn sites(&self) -> Vec<String> {
        self.rows(GLOBAL, "site").iter().map(|site| text(site, "name").to_owned()).collect()
    }

    pub(crate) fn has_site(&self, name: &str) -> bool {
        self.having(GLOBAL, "site", "name", name).is_some()
    }

    pub(crate) fn remove_site(&mut self, name: &str) {
        self.sites.remove(name);
        self.rows_mut(GLOBAL, "site").retain(|site| text(site, "name") != name);
    }

    /// All that an interface shows of it, for tests that look behind the interface.
    pub(crate) fn to_json(&self) -> Value {
        self.by_site(shown)
    }

    /// The same with the simulator's own fields.
    pub(crate) fn to_whole_json(&self) -> Value {
        self.by_site(Row::clone)
    }

    fn by_site(&self, show: fn(&Row) -> Row) -> Value {
        let of_site = |tables: &BTreeMap<String, Vec<Row>>| {
            let pairs = tables
                .iter()
                .map(|(name, rows)| (name.clone(), json!(rows.iter().map(show).collect::<Vec<_>>())));
            Value::Object(pairs.collect())
        };
        let sites = self.sites.iter().map(|(name, tables)| {
            let name = if name.is_empty() { "controller" } else { name };
            (name.to_owned(), of_site(tables))
        });
        Value::Object(sites.collect())
    }
}
