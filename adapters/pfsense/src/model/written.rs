//! Changes in the words of the model, where the bindings of `model.json` do not say everything.

use std::net::IpAddr;

use heddle_sdk::crud::{self, Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation, json as sdk_json};
use serde_json::{Map, Value, json};

use super::names::{ADDRESS, Names, as_told};
use super::{text, texts};
use crate::Vendor;

/// Completes what a change is in the firewall's own features.
pub(crate) fn expressed(host: &dyn Host, asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let Some(change) = changes.first_mut() else { return Ok(()) };
    match asked.kind {
        "vlan" => vlan(host, asked, change),
        "route" => route(host, asked, &mut change.payload),
        "dhcp-pool" => pool(host, asked, change),
        "dns-record" => record(asked, change),
        "firewall-rule" => rule(host, asked, change),
        "nat-rule" => port_forward(host, asked, &mut change.payload),
        "vpn-peer" => peer(asked, &mut change.payload),
        _ => Ok(()),
    }
}

/// Interfaces in the words of the firewall.
struct Written {
    names: Names,
    told: String,
}

impl Written {
    fn read(host: &dyn Host) -> Result<Self, Fault> {
        Ok(Self { names: Names::read(host)?, told: as_told(host)? })
    }

    fn of(&self, name: &str) -> String {
        self.names.written(name, &self.told).to_owned()
    }

    /// What stands in the place of an address: the network of an interface, or its address.
    fn address(&self, name: &str) -> String {
        match name.strip_suffix(ADDRESS) {
            Some(own) => format!("{}{ADDRESS}", self.of(own)),
            None => self.of(name),
        }
    }
}

/// A VLAN stands on one port, where its packets have a tag.
fn vlan(host: &dyn Host, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let Some(members) = asked.fields.get("members").and_then(Value::as_array) else { return Ok(()) };
    let [member] = members.as_slice() else {
        return Err(refused("members", "is exactly one there: the port that carries the VLAN"));
    };
    if member.get("tagged") == Some(&json!(false)) {
        return Err(refused("members/0/tagged", "is always true there"));
    }
    // The model names what is assigned to a port, and a VLAN the port itself.
    let named = text(member, "port").unwrap_or_default();
    let port = json!(Names::read(host)?.port(named).unwrap_or(named));
    if change.operation == Operation::Update && change.payload.get("if") != Some(&port) {
        return Err(refused("members", "names the VLAN there; make a new one and delete this one"));
    }
    change.payload.insert("if".to_owned(), port);
    Ok(())
}

/// A static route goes by a gateway of the firewall that has the address.
fn route(host: &dyn Host, asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    if asked.fields.get("type").is_some_and(|kind| kind != "unicast") {
        return Err(refused("type", "can be unicast there"));
    }
    let Some(hop) = asked.fields.get("next_hop").and_then(Value::as_str) else {
        let is_new = asked.verb == "create";
        return if is_new { Err(refused("next_hop", "is needed: the address of a gateway")) } else { Ok(()) };
    };
    let gateways = crud::every_object(&Vendor::of(host), host, "routing.gateway", None)?;
    let meant = gateways.iter().find(|(_, gateway)| sdk_json::text(gateway, "/gateway") == Some(hop));
    let name = meant.and_then(|(_, gateway)| sdk_json::text(gateway, "/name"));
    let reason = "is no stored gateway of the firewall; make one with pfsense.routing.gateway first";
    payload.insert("gateway".to_owned(), json!(name.ok_or_else(|| refused("next_hop", reason))?));
    Ok(())
}

/// A DHCP server of an interface has one range of its own.
fn pool(host: &dyn Host, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    if let Some(interface) = asked.fields.get("interface").and_then(Value::as_str) {
        let written = json!(Written::read(host)?.of(interface));
        let is_other = change.payload.get("interface") != Some(&written);
        if change.operation == Operation::Update && is_other {
            return Err(refused("interface", "names the DHCP server there"));
        }
        change.payload.insert("interface".to_owned(), written);
    }
    let Some(ranges) = asked.fields.get("ranges").and_then(Value::as_array) else { return Ok(()) };
    let [range] = ranges.as_slice() else {
        return Err(refused("ranges", "is exactly one range there; others are pools of pfsense.dhcp.pool"));
    };
    for (field, part) in [("range_from", "from"), ("range_to", "to")] {
        change.payload.insert(field.to_owned(), range.get(part).cloned().unwrap_or_default());
    }
    Ok(())
}

/// A record is a host within a domain; several addresses of one are one object there.
fn record(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let known = texts(asked.row.and_then(|row| row.get("^")?.get("ip")));
    if known.len() > 1 {
        let reason = "is one of several of this host; write all of them with pfsense.dns.resolver.host";
        return Err(refused("value", reason));
    }
    let field = |name: &str| asked.fields.get(name).and_then(Value::as_str);
    let (Some(name), Some(value)) = (field("name"), field("value")) else { return Ok(()) };
    let (host, domain) =
        name.split_once('.').ok_or_else(|| refused("name", "needs a domain: host.example"))?;
    let address: IpAddr = value.parse().map_err(|_| refused("value", "is an address there"))?;
    if field("type").is_some_and(|kind| kind != if address.is_ipv6() { "AAAA" } else { "A" }) {
        return Err(refused("type", "is A or AAAA there, as the value is an address of IPv4 or IPv6"));
    }
    let fields = [("host", json!(host)), ("domain", json!(domain)), ("ip", json!([value]))];
    change.payload.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Ok(())
}

fn rule(host: &dyn Host, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let (fields, payload) = (asked.fields, &mut change.payload);
    let written = Written::read(host)?;
    let was_floating = asked.row.map(|row| row.get("floating") == Some(&json!(true)));
    let scope = fields.get("scope").map(|scope| (text(scope, "kind"), text(scope, "key")));
    let is_floating = match scope {
        None => was_floating.unwrap_or(false),
        Some((Some("interface"), Some(_))) => false,
        Some((Some("floating"), _)) => true,
        Some(_) => return Err(refused("scope/kind", "can be interface, with its key, or floating")),
    };
    if was_floating.is_some_and(|was| was != is_floating) {
        return Err(refused("scope", "stays floating or not there; make a new rule and delete this one"));
    }
    let direction = fields.get("direction").and_then(Value::as_str);
    if !is_floating && direction.is_some_and(|direction| direction != "in") {
        return Err(refused("direction", "is in for rules of one interface; others are floating"));
    }
    if !is_floating && fields.get("final") == Some(&json!(false)) {
        return Err(refused("final", "is true for rules of one interface; others are floating"));
    }
    let known = asked.row.and_then(|row| text(row, "direction"));
    let (own, other) =
        if is_floating && direction.or(known) == Some("out") { ("to", "from") } else { ("from", "to") };
    if fields.get(other).is_some_and(|list| !texts(Some(list)).is_empty()) {
        return Err(refused(
            other,
            "goes with the other direction there: interfaces are those of 'direction'",
        ));
    }
    let listed = fields.get(own).map(|list| texts(Some(list)));
    let interfaces = listed.or_else(|| scope.and_then(|(_, key)| Some(vec![key?.to_owned()])));
    if let Some(interfaces) = interfaces {
        if !is_floating && interfaces.len() != 1 {
            return Err(refused(own, "is exactly one interface there, unless the rule is floating"));
        }
        let interfaces: Vec<String> = interfaces.iter().map(|name| written.of(name)).collect();
        payload.insert("interface".to_owned(), json!(interfaces));
    }
    if is_floating {
        payload.extend(was_floating.is_none().then(|| ("floating".to_owned(), json!(true))));
        payload.extend(direction.map(|direction| ("direction".to_owned(), json!(direction))));
        payload.extend(fields.get("final").map(|last| ("quick".to_owned(), last.clone())));
    }
    for side in ["source", "destination"] {
        let asked = fields.get(side).map(|asked| endpoint(&written, side, asked)).transpose()?;
        let asked = asked.or_else(|| (change.operation == Operation::Create).then(|| "any".to_owned()));
        payload.extend(asked.map(|asked| (side.to_owned(), json!(asked))));
        let ports = format!("{side}_ports");
        if let Some(asked) = fields.get(&ports) {
            payload.insert(format!("{side}_port"), port(&ports, asked)?);
        }
    }
    if let Some(protocol) = fields.get("protocol").and_then(Value::as_str) {
        payload.insert("protocol".to_owned(), if protocol == "any" { Value::Null } else { json!(protocol) });
    }
    Ok(())
}

/// One side of a rule: one address, alias or network, or everything.
fn endpoint(written: &Written, side: &str, asked: &Value) -> Result<String, Fault> {
    let listed = |part: &str| texts(asked.get(part));
    let networks = listed("networks").into_iter().map(|name| written.address(&name));
    let all: Vec<String> = listed("addresses").into_iter().chain(networks).chain(listed("groups")).collect();
    let is_negated = asked.get("negated") == Some(&json!(true));
    match all.as_slice() {
        [] => Ok("any".to_owned()),
        [one] => Ok(format!("{}{one}", if is_negated { "!" } else { "" })),
        _ => Err(refused(side, "takes one value there; make a group of several")),
    }
}

/// One port, range or alias.
fn port(field: &str, asked: &Value) -> Result<Value, Fault> {
    match texts(Some(asked)).as_slice() {
        [] => Ok(Value::Null),
        [one] => Ok(json!(one.replace('-', ":"))),
        _ => Err(refused(field, "takes one port or range there; make a group of several")),
    }
}

fn port_forward(host: &dyn Host, asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let (fields, is_new, written) = (asked.fields, asked.verb == "create", Written::read(host)?);
    if let Some(interface) = fields.get("interface").and_then(Value::as_str) {
        payload.insert("interface".to_owned(), json!(written.of(interface)));
    }
    if let Some(protocol) = fields.get("protocol") {
        payload.insert("protocol".to_owned(), protocol.clone());
    }
    for (field, address, own) in
        [("external", "destination", "destination_port"), ("internal", "target", "local_port")]
    {
        let Some(value) = fields.get(field) else { continue };
        match texts(value.get("addresses")).as_slice() {
            [] => payload.extend((field == "external").then(|| (address.to_owned(), json!("any")))),
            [one] => payload.extend([(address.to_owned(), json!(written.address(one)))]),
            _ => return Err(refused(&format!("{field}/addresses"), "takes one value there")),
        }
        payload.insert(own.to_owned(), port(&format!("{field}/ports"), &value["ports"])?);
    }
    let source = match fields.get("source").map(|source| texts(Some(source))).as_deref() {
        Some([]) => Some("any".to_owned()),
        Some([one]) => Some(written.address(one)),
        Some(_) => return Err(refused("source", "takes one value there; make a group of several")),
        None => is_new.then(|| "any".to_owned()),
    };
    payload.extend(source.map(|source| ("source".to_owned(), json!(source))));
    match fields.get("passes") {
        Some(passes) if is_new => {
            payload.insert(
                "associated_rule_id".to_owned(),
                json!(if *passes == json!(true) { "pass" } else { "" }),
            );
        }
        Some(passes) => {
            let rule = asked.row.and_then(|row| text(row, "associated_rule_id"));
            if *passes != json!(rule.is_some()) {
                return Err(refused("passes", "is only set when the port forward is made"));
            }
        }
        None => {}
    }
    Ok(())
}

fn peer(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    if let Some(allowed) = asked.fields.get("allowed") {
        let one = |prefix: &String| {
            let (address, bits) = prefix.split_once('/')?;
            Some(json!({ "address": address, "mask": bits.parse::<u8>().ok()? }))
        };
        let all: Option<Vec<Value>> = texts(Some(allowed)).iter().map(one).collect();
        payload.insert(
            "allowedips".to_owned(),
            json!(all.ok_or_else(|| refused("allowed", "are prefixes: 10.9.0.5/32"))?),
        );
    }
    if let Some(endpoint) = asked.fields.get("endpoint").and_then(Value::as_str) {
        let parts = endpoint.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let (address, port) =
            parts.ok_or_else(|| refused("endpoint", "is an address and a port: 192.0.2.1:51820"))?;
        payload.insert("endpoint".to_owned(), json!(address.trim_matches(['[', ']'])));
        payload.insert("port".to_owned(), json!(port));
    }
    Ok(())
}
