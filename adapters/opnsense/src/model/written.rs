//! Changes in the words of the model, where the bindings of `model.json` do not say everything.

use heddle_sdk::crud::{self, Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation, json as sdk_json};
use serde_json::{Map, Value, json};

use super::{system, text};
use crate::{VENDOR, devices};

/// Completes what a change is in the firewall's own features.
pub(crate) fn expressed(host: &dyn Host, asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let Some(change) = changes.first_mut() else { return Ok(()) };
    match asked.kind {
        "vlan" => vlan(host, asked, change),
        "route" => route(host, asked, &mut change.payload),
        "dhcp-pool" => pool(asked, change),
        "dns-record" => record(asked, change),
        "firewall-rule" => rule(asked, &mut change.payload),
        "nat-rule" => port_forward(asked, &mut change.payload),
        "vpn-peer" => peer(asked, &mut change.payload),
        "snapshot" => of_system(asked),
        _ => Ok(()),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A VLAN stands on one interface, where its packets have a tag.
fn vlan(host: &dyn Host, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let Some(members) = asked.fields.get("members").and_then(Value::as_array) else { return Ok(()) };
    let [member] = members.as_slice() else {
        return Err(refused("members", "is exactly one there: the interface that carries the VLAN"));
    };
    if member.get("tagged") == Some(&json!(false)) {
        return Err(refused("members/0/tagged", "is always true there"));
    }
    // The model names interfaces by what is assigned to them, and the firewall the device below.
    let interfaces = devices::interfaces(host)?;
    let named = member.get("port").and_then(Value::as_str).unwrap_or_default();
    let is_named = |row: &&Value| [text(row, "identifier"), text(row, "device")].contains(&Some(named));
    let device = interfaces.iter().find(is_named).and_then(|row| text(row, "device"));
    let port = json!(device.ok_or_else(|| refused("members/0/port", "is no interface of the firewall"))?);
    if change.operation == Operation::Update && change.payload.get("if") != Some(&port) {
        return Err(refused("members", "names the VLAN there; make a new one and delete this one"));
    }
    change.payload.insert("if".to_owned(), port);
    Ok(())
}

/// A static route goes by a gateway of the firewall: the one that has the address, or one that drops.
fn route(host: &dyn Host, asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let (hop, kind) = (asked.fields.get("next_hop"), asked.fields.get("type"));
    if hop.is_none() && kind.is_none() {
        return Ok(());
    }
    let name = if kind.and_then(Value::as_str) == Some("blackhole") {
        let destination = payload.get("network").and_then(Value::as_str).unwrap_or_default();
        if destination.contains(':') { "Null6" } else { "Null4" }.to_owned()
    } else {
        let hop = hop
            .and_then(Value::as_str)
            .ok_or_else(|| refused("next_hop", "is needed: the address of a gateway"))?;
        gateway_of(host, hop)?
    };
    match payload.get("gateway").and_then(Value::as_str) {
        Some(known) if known != name => {
            let field = if hop.is_some() { "next_hop" } else { "type" };
            Err(refused(field, "names the route there; make a new one and delete this one"))
        }
        _ => {
            payload.insert("gateway".to_owned(), json!(name));
            Ok(())
        }
    }
}

/// The name of the gateway with this address; one that a person made comes first.
fn gateway_of(host: &dyn Host, address: &str) -> Result<String, Fault> {
    let gateways = crud::every_object(&VENDOR, host, "routing.gateway", None)?;
    let mut meant: Vec<_> =
        gateways.iter().filter(|(_, gateway)| sdk_json::text(gateway, "/gateway") == Some(address)).collect();
    meant.sort_by_key(|(reference, _)| reference.locators.is_empty());
    let name = meant.first().and_then(|(_, gateway)| sdk_json::text(gateway, "/name"));
    let reason = "is no gateway of the firewall; make one with opnsense.routing.gateway first";
    name.map(str::to_owned).ok_or_else(|| refused("next_hop", reason))
}

/// Ranges: one in dnsmasq, which names it; several as `from-to` in Kea.
fn pool(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let Some(ranges) = asked.fields.get("ranges") else { return Ok(()) };
    let ranges: Vec<(&str, &str)> = ranges
        .as_array()
        .into_iter()
        .flatten()
        .map(|range| {
            let part = |name: &str| range.get(name).and_then(Value::as_str).unwrap_or_default();
            (part("from"), part("to"))
        })
        .collect();
    if change.feature != "opnsense.dnsmasq.range" {
        let pools: Vec<String> = ranges.iter().map(|(from, to)| format!("{from}-{to}")).collect();
        change.payload.insert("pools".to_owned(), json!(pools));
        return Ok(());
    }
    let [(from, to)] = ranges[..] else { return Err(refused("ranges", "is exactly one range there")) };
    if change.operation == Operation::Update && change.payload.get("start_addr") != Some(&json!(from)) {
        return Err(refused(
            "ranges",
            "begins with what names the range there; make a new one and delete this one",
        ));
    }
    change.payload.insert("start_addr".to_owned(), json!(from));
    change.payload.insert("end_addr".to_owned(), json!(to));
    Ok(())
}

/// A record is a host within a domain, with a field for the value of each type.
fn record(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let payload = &mut change.payload;
    let is_new = change.operation == Operation::Create;
    let names_it = "names the record there; make a new one and delete this one";
    if let Some(name) = asked.fields.get("name").and_then(Value::as_str) {
        let (host, domain) =
            name.split_once('.').ok_or_else(|| refused("name", "needs a domain: host.example"))?;
        for (field, part) in [("hostname", host), ("domain", domain)] {
            if !is_new && payload.get(field) != Some(&json!(part)) {
                return Err(refused("name", names_it));
            }
            payload.insert(field.to_owned(), json!(part));
        }
    }
    if let Some(value) = asked.fields.get("value") {
        let field = match payload.get("rr").and_then(Value::as_str) {
            Some("MX") => "mx",
            Some("TXT") => "txtdata",
            _ => "server",
        };
        if !is_new && field == "server" && payload.get(field) != Some(value) {
            return Err(refused("value", names_it));
        }
        payload.insert(field.to_owned(), value.clone());
    }
    Ok(())
}

fn rule(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let fields = asked.fields;
    let direction = fields.get("direction").and_then(Value::as_str);
    let known = asked.row.and_then(|row| text(row, "direction"));
    let own = if direction.or(known) == Some("out") { "to" } else { "from" };
    let other = if own == "to" { "from" } else { "to" };
    if fields.get(other).is_some_and(|list| !texts(list).is_empty()) {
        return Err(refused(
            other,
            "goes with the other direction there: interfaces are those of 'direction'",
        ));
    }
    let of_scope = match fields.get("scope") {
        None => None,
        Some(scope) => match (sdk_json::text(scope, "/kind"), sdk_json::text(scope, "/key")) {
            (Some("interface"), Some(key)) => Some(vec![key.to_owned()]),
            (Some("floating"), _) => Some(Vec::new()),
            _ => return Err(refused("scope/kind", "can be interface, with its key, or floating")),
        },
    };
    let listed = fields.get(own).map(texts);
    if let (Some(scope), Some(listed)) = (&of_scope, &listed)
        && !scope.is_empty()
        && scope != listed
    {
        return Err(refused(own, "is not the interface of the scope"));
    }
    if let Some(interfaces) = listed.or(of_scope) {
        payload.insert("interface".to_owned(), json!(interfaces));
    }
    for side in ["source", "destination"] {
        if let Some(asked) = fields.get(side) {
            endpoint(side, asked, payload);
        }
    }
    put_protocol(fields, payload);
    Ok(())
}

/// One side of a rule: what the firewall writes as one list, and whether it is negated.
fn endpoint(side: &str, asked: &Value, payload: &mut Map<String, Value>) {
    let listed = listed(asked);
    let is_negated = asked.get("negated") == Some(&json!(true));
    payload.insert(
        format!("{side}_net"),
        json!(if listed.is_empty() { vec!["any".to_owned()] } else { listed }),
    );
    payload.insert(format!("{side}_not"), json!(is_negated));
}

fn listed(asked: &Value) -> Vec<String> {
    ["addresses", "networks", "groups"].iter().flat_map(|part| texts(&asked[*part])).collect()
}

/// The firewall writes protocols in capitals, and `any` small.
fn put_protocol(fields: &Map<String, Value>, payload: &mut Map<String, Value>) {
    if let Some(protocol) = fields.get("protocol") {
        let word = protocol.as_str().unwrap_or("any");
        let word = if word == "any" { word.to_owned() } else { word.to_uppercase() };
        payload.insert("protocol".to_owned(), json!(word));
    }
}

fn port_forward(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let fields = asked.fields;
    let one = |field: &str, value: &Value, part: &str| match texts(&value[part]).as_slice() {
        [] => Ok(Value::Null),
        [only] => Ok(json!(only)),
        _ => Err(refused(&format!("{field}/{part}"), "takes one value there")),
    };
    if let Some(interface) = fields.get("interface").and_then(Value::as_str) {
        payload.insert("interface".to_owned(), json!([interface]));
    }
    if let Some(protocol) = fields.get("protocol") {
        payload.insert("protocol".to_owned(), protocol.clone());
    }
    for (field, network, port) in
        [("external", "destination_network", "destination_port"), ("internal", "target", "local-port")]
    {
        if let Some(value) = fields.get(field) {
            payload.insert(network.to_owned(), one(field, value, "addresses")?);
            payload.insert(port.to_owned(), one(field, value, "ports")?);
        }
    }
    if let Some(source) = fields.get("source") {
        let listed = match source {
            Value::Object(_) => listed(source),
            other => texts(other),
        };
        let [ref only] = listed[..] else {
            payload.insert("source_network".to_owned(), json!("any"));
            return if listed.is_empty() { Ok(()) } else { Err(refused("source", "takes one value there")) };
        };
        payload.insert("source_network".to_owned(), json!(only));
    }
    if let Some(passes) = fields.get("passes") {
        payload.insert("pass".to_owned(), if passes == true { json!("pass") } else { Value::Null });
    }
    Ok(())
}

fn peer(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    if let Some(tunnel) = asked.fields.get("tunnel") {
        payload.insert("servers".to_owned(), json!([tunnel]));
    }
    if let Some(endpoint) = asked.fields.get("endpoint").and_then(Value::as_str) {
        let parts = endpoint.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let (address, port) =
            parts.ok_or_else(|| refused("endpoint", "is an address and a port: 192.0.2.1:51820"))?;
        payload.insert("serveraddress".to_owned(), json!(address.trim_matches(['[', ']'])));
        payload.insert("serverport".to_owned(), json!(port));
    }
    Ok(())
}

/// Snapshots are of the whole firewall.
fn of_system(asked: &Asked<'_>) -> Result<(), Fault> {
    match asked.fields.get("of").and_then(|of| sdk_json::text(of, "/key")) {
        Some(key) if key != system::SYSTEM => {
            Err(refused("of/key", "can be firewall: snapshots are of the whole of it"))
        }
        _ => Ok(()),
    }
}
