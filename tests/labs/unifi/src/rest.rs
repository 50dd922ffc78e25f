//! The tables of the first interface: create, read, update, delete.

use serde_json::{Value, json};

use crate::check;
use crate::console::{Change, Console};
use crate::facts::{Collection, Facts};
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, is_object_id, mentions, text};
use crate::{defaults, devices, rewrites, rules};

/// The rows of a table.
pub(crate) fn list(own: &Console, site: &str, table: &str) -> Outcome<Vec<Value>> {
    collection(own, table)?;
    // Devices are only written here.
    if table == "device" {
        return Err(Refusal::not_found());
    }
    let rows = own.store.rows(site, table).iter();
    Ok(rows.map(|row| Value::Object(Console::shown(table, row))).collect())
}

/// One row; a good id that nothing has gives none.
pub(crate) fn get(own: &Console, site: &str, table: &str, id: &str) -> Outcome<Vec<Value>> {
    collection(own, table)?;
    if table == "device" {
        return Err(Refusal::not_found());
    }
    if !is_object_id(id) {
        return Err(Refusal::no_id());
    }
    let row = own.store.find(site, table, id);
    Ok(row.map(|row| Value::Object(Console::shown(table, row))).into_iter().collect())
}

/// Adds a row, and returns it.
pub(crate) fn create(own: &mut Console, site: &str, table: &str, body: &Row) -> Outcome<Vec<Value>> {
    let facts = collection(own, table)?;
    if matches!(table, "device" | "rogueknown") {
        return Err(Refusal::not_found());
    }
    let sent = check::known(&facts.fields, body, own.settings.release)?;
    let id = insert(own, site, table, sent)?;
    let row = own.store.find(site, table, &id).cloned().unwrap_or_default();
    Ok(vec![Value::Object(Console::shown(table, &row))])
}

/// Checks a new row, adds it, and returns its id.
pub(crate) fn insert(own: &mut Console, site: &str, table: &str, mut row: Row) -> Outcome<String> {
    defaults::fill(own, site, table, &mut row);
    rules::check(own, site, table, None, &mut row)?;
    rewrites::apply(own, site, table, &mut row);
    let id = own.store.add(site, table, row);
    let row = own.store.find(site, table, &id).cloned().unwrap_or_default();
    own.changed(site, table, &row, Change::Add);
    Ok(id)
}

/// Writes the fields that the body names, and returns the row.
pub(crate) fn update(
    own: &mut Console,
    site: &str,
    table: &str,
    id: &str,
    body: &Row,
) -> Outcome<Vec<Value>> {
    let facts = collection(own, table)?;
    if table == "device" {
        return Ok(vec![Value::Object(devices::write(own, site, id, body)?)]);
    }
    let old = own.store.find(site, table, id).cloned().ok_or_else(Refusal::no_id)?;
    if flag(&old, "attr_no_edit") {
        return Err(Refusal::new("NoEdit"));
    }
    let sent = check::known(&facts.fields, body, own.settings.release)?;
    let mut new = old.clone();
    new.extend(sent);
    replace(own, site, table, &old, new)?;
    let row = own.store.find(site, table, id).cloned().unwrap_or_default();
    Ok(vec![Value::Object(Console::shown(table, &row))])
}

/// Checks a changed row, and stores it.
pub(crate) fn replace(own: &mut Console, site: &str, table: &str, old: &Row, mut new: Row) -> Outcome<()> {
    rules::check(own, site, table, Some(old), &mut new)?;
    rewrites::apply(own, site, table, &mut new);
    if let Some(stored) = own.store.find_mut(site, table, text(old, "_id")) {
        stored.clone_from(&new);
    }
    own.changed(site, table, &new, Change::Update);
    Ok(())
}

/// Removes a row that nothing needs.
pub(crate) fn delete(own: &mut Console, site: &str, table: &str, id: &str) -> Outcome<Vec<Value>> {
    collection(own, table)?;
    if table == "device" {
        return Err(Refusal::not_found());
    }
    let row = own.store.find(site, table, id).cloned().ok_or_else(Refusal::no_id)?;
    if flag(&row, "attr_no_delete") {
        return Err(Refusal::new("NoDelete"));
    }
    refuse_used(own, site, table, id)?;
    remove(own, site, table, id);
    Ok(Vec::new())
}

/// Removes a row, also where other rows refer to it.
pub(crate) fn remove(own: &mut Console, site: &str, table: &str, id: &str) {
    if let Some(row) = own.store.remove(site, table, id) {
        if table == "networkconf" {
            forget_network(own, site, id);
        }
        own.changed(site, table, &row, Change::Delete);
    }
}

/// Takes a network out of the lists of what ports leave out.
fn forget_network(own: &mut Console, site: &str, id: &str) {
    let drop = |row: &mut Row| {
        if let Some(list) = row.get_mut("excluded_networkconf_ids").and_then(Value::as_array_mut) {
            list.retain(|value| value != id);
        }
    };
    own.store.rows_mut(site, "portconf").iter_mut().for_each(drop);
    for device in own.store.rows_mut(site, "device") {
        let entries = device.get_mut("port_overrides").and_then(Value::as_array_mut).into_iter().flatten();
        entries.filter_map(Value::as_object_mut).for_each(drop);
    }
}

/// The tables whose rows name rows of another one by their id.
const USERS: [(&str, &[&str]); 9] = [
    ("networkconf", &["wlanconf", "portconf", "firewallrule", "routing", "account"]),
    ("usergroup", &["user", "wlanconf"]),
    ("radiusprofile", &["wlanconf", "networkconf"]),
    ("firewallgroup", &["firewallrule", "portforward", "firewall_policy", "nat"]),
    ("dpiapp", &["dpigroup"]),
    ("dpigroup", &["wlanconf", "networkconf"]),
    ("apgroup", &["wlanconf"]),
    ("network-members-group", &["object-oriented-network-config", "user"]),
    ("matching_list", &["firewall_policy"]),
];

/// Refuses to remove what another object or a device names.
pub(crate) fn refuse_used(own: &Console, site: &str, table: &str, id: &str) -> Outcome<()> {
    if matches!(table, "portconf" | "networkconf") {
        let names = |device: &&Row| {
            let fields = ["port_overrides", "mgmt_network_id"];
            fields.iter().any(|name| device.get(*name).is_some_and(|value| needs(value, id)))
        };
        if let Some(device) = own.store.rows(site, "device").iter().find(names) {
            return Err(Refusal::new("ObjectReferredByDevice")
                .telling("type", text(device, "type"))
                .telling("device_id", text(device, "_id"))
                .telling("alias_or_mac", text(device, "name")));
        }
    }
    let users = USERS.iter().find(|(own, _)| *own == table).map_or(&[][..], |(_, users)| *users);
    for user in users {
        let names = |row: &&Row| row.iter().any(|(name, value)| is_named(name) && needs(value, id));
        if let Some(row) = own.store.rows(site, user).iter().find(names) {
            return Err(Refusal::new("ObjectReferredBy")
                .telling("type", *user)
                .telling("id", text(row, "_id"))
                .telling("name", row.get("name").cloned().unwrap_or(json!(""))));
        }
    }
    Ok(())
}

/// Whether a field tells of other objects.
fn is_named(field: &str) -> bool {
    field != "_id" && field != "excluded_networkconf_ids" && !field.starts_with('~')
}

/// Whether a value names the object. To leave a network out is not to need it.
fn needs(value: &Value, id: &str) -> bool {
    match value {
        Value::Array(values) => values.iter().any(|value| needs(value, id)),
        Value::Object(fields) => fields.iter().any(|(name, value)| is_named(name) && needs(value, id)),
        other => mentions(other, id),
    }
}

/// The facts of a table that this release has.
fn collection(own: &Console, table: &str) -> Outcome<&'static Collection> {
    let facts = Facts::get().rest.get(table).ok_or_else(Refusal::not_found)?;
    let release = own.settings.release;
    if !release.has(facts.since.as_deref(), facts.until.as_deref()) {
        return Err(Refusal::not_found());
    }
    Ok(facts)
}
