//! Addresses and names: pools, leases, records.

use std::net::IpAddr;

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{beside, is_on, items, put, text};

/// Pools of Kea are a text with a line for each range; a range of Dnsmasq has two fields.
pub(super) fn pool(row: &Value, object: &mut Modelled) {
    let ranges: Vec<Value> = match text(row, "start_addr") {
        Some(from) => text(row, "end_addr").map(|to| json!({ "from": from, "to": to })).into_iter().collect(),
        None => items(row, "pools", '\n').iter().filter_map(|pool| range(pool)).collect(),
    };
    put(object, "ranges", (!ranges.is_empty()).then_some(ranges));
}

/// `a-b`, as most pools are; one that is a prefix has no first address that is told.
fn range(pool: &str) -> Option<Value> {
    let (from, to) = pool.split_once('-')?;
    Some(json!({ "from": from.trim(), "to": to.trim() }))
}

/// An address may stand in the list of an old server as well.
pub(super) fn lease(row: &Value, object: &mut Modelled) {
    let is_old = row.get("mac").is_some();
    if is_old {
        object.key = format!("isc:{}", object.key);
    }
    let is_reserved = text(row, "is_reserved").is_some_and(|reserved| reserved != "0");
    let is_static = is_old && text(row, "type") == Some("static");
    if is_reserved || is_static {
        put(object, "state", Some("static"));
    }
}

/// A record, or a domain that other servers answer for.
pub(super) fn record(row: &Value, object: &mut Modelled) -> bool {
    if object.fields.get("type").is_some_and(|kind| kind == "FORWARD") {
        forward(row, object);
    } else if text(row, "rr").is_some() || beside(row, "host").is_some() || row.get("cnames").is_some() {
        let name = joined(text(row, "hostname").or_else(|| text(row, "host")), text(row, "domain"));
        put(object, "name", name);
    } else if text(row, "name").is_some() {
        let zone = beside(row, "zone").and_then(|zone| text(zone, "domainname"));
        put(object, "name", joined(text(row, "name").filter(|name| *name != "@"), zone));
    }
    if row.get("cnames").is_some() {
        of_host(row, object);
    }
    let named = object.fields.get("name").and_then(Value::as_str).map(str::to_owned);
    object.label = named.unwrap_or_else(|| object.key.clone());
    object.fields.contains_key("name")
}

fn joined(host: Option<&str>, domain: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [host, domain].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("."))
}

/// Everything is a domain without a name. The port stands behind the address, as the resolver writes it.
fn forward(row: &Value, object: &mut Modelled) {
    if !object.fields.contains_key("name") {
        put(object, "name", Some("."));
    }
    let server = text(row, "server").or_else(|| text(row, "ip"));
    let port = text(row, "port").filter(|port| *port != "53").map(|port| format!("@{port}"));
    let verify = text(row, "verify").map(|name| format!("#{name}"));
    let whole = |server| format!("{server}{}{}", port.unwrap_or_default(), verify.unwrap_or_default());
    put(object, "value", server.map(whole));
}

/// A host of Dnsmasq has one address or several.
fn of_host(row: &Value, object: &mut Modelled) {
    let all = items(row, "ip", ',');
    let kind = match all.as_slice() {
        [one] => match one.parse() {
            Ok(IpAddr::V4(_)) => "A",
            Ok(IpAddr::V6(_)) => "AAAA",
            Err(_) => "other",
        },
        _ => "other",
    };
    put(object, "type", Some(kind));
    if is_on(row, "ignore") {
        put(object, "enabled", Some(false));
    }
}
