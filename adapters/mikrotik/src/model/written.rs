//! Changes in the words of the model, where the bindings of `model.json` do not say everything.

mod groups;
mod networks;
mod pools;
mod radios;
mod rules;

use heddle_sdk::crud::{self, Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation};
use serde_json::{Map, Value, json};

use super::{addressing, text};
use crate::VENDOR;

/// Completes what a change is in the router's own features.
pub(crate) fn expressed(
    host: &dyn Host,
    asked: &Asked<'_>,
    changes: &mut Vec<Expressed>,
) -> Result<(), Fault> {
    match asked.kind {
        "vlan" => networks::vlan(asked, changes),
        "port" => networks::port(host, asked, changes),
        "ssid" => radios::ssid(host, asked, changes),
        "radio" => radios::radio(asked, changes),
        "route" => route(asked, changes),
        "dhcp-pool" => pools::pool(host, asked, changes),
        "dns-record" => record(asked, changes),
        "firewall-rule" => rules::rule(host, asked, changes),
        "nat-rule" => rules::translation(host, asked, changes),
        "address-group" => groups::group(host, asked, changes),
        "vpn-peer" => peer(asked, changes),
        "radius-profile" => radius(asked, changes),
        _ => Ok(()),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn asked_text<'a>(asked: &Asked<'a>, field: &str) -> Option<&'a str> {
    asked.fields.get(field).and_then(Value::as_str)
}

/// A change of another feature beside the one that was asked for.
fn change(feature: &str, operation: Operation, payload: Value) -> Expressed {
    let payload = if let Value::Object(payload) = payload { payload } else { Map::new() };
    Expressed { feature: format!("mikrotik.{feature}"), operation, payload }
}

/// The rows of a kind, as they are shown.
fn rows(host: &dyn Host, kind: &str) -> Result<Vec<Value>, Fault> {
    Ok(crud::every_object(&VENDOR, host, kind, None)?.into_iter().map(|(_, row)| row).collect())
}

/// The change that was asked for; there is one.
fn own(changes: &mut [Expressed]) -> Result<&mut Expressed, Fault> {
    changes.first_mut().ok_or_else(|| heddle_sdk::fault::generic("nothing was asked for"))
}

/// Refuses another value of what names an object.
fn same(payload: &Map<String, Value>, field: (&str, &str), value: &Value) -> Result<(), Fault> {
    if payload.get(field.1) == Some(value) {
        return Ok(());
    }
    Err(refused(field.0, "names the object there; make a new one and delete this one"))
}

/// A route of the family of its destination; one that drops has a mark and no gateway.
fn route(asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let change = own(changes)?;
    let is_new = change.operation == Operation::Create;
    if is_new && asked_text(asked, "destination").is_some_and(|destination| destination.contains(':')) {
        "mikrotik.routing.ipv6-route".clone_into(&mut change.feature);
    }
    if let Some(interface) = asked.fields.get("interface") {
        let address = asked_text(asked, "next_hop").map(|address| format!("{address}%"));
        let name = interface.as_str().unwrap_or_default();
        let gateway = json!(format!("{}{name}", address.unwrap_or_default()));
        if !is_new {
            same(&change.payload, ("interface", "gateway"), &gateway)?;
        }
        change.payload.insert("gateway".to_owned(), gateway);
    }
    if let Some(kind) = asked_text(asked, "type") {
        let is_dropped = kind == "blackhole";
        if is_dropped && change.payload.contains_key("gateway") && is_new {
            return Err(refused("next_hop", "is none where packets are dropped"));
        }
        change.payload.insert("blackhole".to_owned(), json!(is_dropped));
    }
    Ok(())
}

/// Each type has a field for its value.
fn record(asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let change = own(changes)?;
    let known = asked.row.map(|row| text(row, "type").unwrap_or("A"));
    let kind = asked_text(asked, "type").or(known.map(|kind| if kind == "FWD" { "FORWARD" } else { kind }));
    let Some(value) = asked.fields.get("value") else { return Ok(()) };
    let field = kind.and_then(addressing::value_field);
    let field = field.ok_or_else(|| refused("type", "has no value that could be written there"))?;
    if change.operation == Operation::Update {
        same(&change.payload, ("value", field), value)?;
    }
    change.payload.insert(field.to_owned(), value.clone());
    Ok(())
}

/// An address and a port.
fn peer(asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let change = own(changes)?;
    if change.operation == Operation::Create && !change.payload.contains_key("allowed-address") {
        return Err(refused("allowed", "is needed there: the networks behind the peer"));
    }
    let Some(endpoint) = asked_text(asked, "endpoint") else { return Ok(()) };
    let parts =
        endpoint.rsplit_once(':').and_then(|(address, port)| Some((address, port.parse::<u16>().ok()?)));
    let (address, port) =
        parts.ok_or_else(|| refused("endpoint", "is an address and a port: 192.0.2.1:51820"))?;
    change.payload.insert("endpoint-address".to_owned(), json!(address.trim_matches(['[', ']'])));
    change.payload.insert("endpoint-port".to_owned(), json!(port));
    Ok(())
}

/// One server is one row there.
fn radius(asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let change = own(changes)?;
    let Some(servers) = asked.fields.get("servers").and_then(Value::as_array) else { return Ok(()) };
    let [server] = servers.as_slice() else {
        return Err(refused("servers", "is exactly one there; each is a profile of its own"));
    };
    if change.operation == Operation::Update {
        same(&change.payload, ("servers/0/address", "address"), &server["address"])?;
    }
    change.payload.insert("address".to_owned(), server["address"].clone());
    if let Some(port) = server.get("port") {
        change.payload.insert("authentication-port".to_owned(), port.clone());
    }
    if server.get("accounting") == Some(&json!(false)) {
        return Err(refused("servers/0/accounting", "goes with the service there, and is always on"));
    }
    Ok(())
}
