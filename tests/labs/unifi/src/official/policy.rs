//! Policies of zones in both forms: what the official interface says, and what is stored.

use serde_json::{Value, json};

use crate::console::Console;
use crate::official::{Call, absent};
use crate::policies::ZONES;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, object, objects, put, row, text, texts};

/// One side of a policy that was written in the older form.
pub(super) fn side(own: &Console, site: &str, row: &Row, name: &str) -> Value {
    let empty = Row::new();
    let end = object(row, name).unwrap_or(&empty);
    let ports = (text(end, "port_matching_type") == "SPECIFIC")
        .then(|| port_filter(text(end, "port"), flag(end, "match_opposite_ports")));
    let mut filter = match text(end, "matching_target") {
        "NETWORK" => {
            let ids: Vec<String> = texts(end, "network_ids")
                .iter()
                .map(|id| own.store.uuid_of(site, "networkconf", id))
                .collect();
            json!({
                "type": "NETWORK",
                "networkFilter": { "networkIds": ids, "matchOpposite": flag(end, "match_opposite_networks") },
            })
        }
        "IP" if !texts(end, "ips").is_empty() => {
            let items = texts(end, "ips").into_iter().map(address_item).collect::<Vec<_>>();
            json!({ "type": "IP_ADDRESS", "ipAddressFilter": {
                "type": "IP_ADDRESSES", "matchOpposite": flag(end, "match_opposite_ips"), "items": items,
            } })
        }
        "IP" => json!({ "type": "IP_ADDRESS", "ipAddressFilter": {
            "type": "TRAFFIC_MATCHING_LIST", "matchOpposite": flag(end, "match_opposite_ips"),
            "trafficMatchingListId": own.store.uuid_of(site, "matching_list", text(end, "ip_group_id")),
        } }),
        "MAC" => {
            json!({ "type": "MAC_ADDRESS", "macAddressFilter": { "macAddresses": texts(end, "macs") } })
        }
        "WEB" => {
            json!({
                "type": "DOMAIN",
                "domainFilter": { "type": "DOMAINS", "domains": texts(end, "web_domains") },
            })
        }
        "REGION" => json!({ "type": "REGION", "regionFilter": { "regions": texts(end, "regions") } }),
        _ if ports.is_some() => json!({ "type": "PORT" }),
        _ => return json!({}),
    };
    if let Some(ports) = ports {
        filter["portFilter"] = ports;
    }
    json!({ "trafficFilter": filter })
}

fn port_filter(text: &str, is_opposite: bool) -> Value {
    let item = |part: &str| match part.split_once('-') {
        Some((from, to)) => {
            json!({
                "type": "PORT_NUMBER_RANGE", "start": from.parse::<u16>().ok(),
                "stop": to.parse::<u16>().ok(),
            })
        }
        None => json!({ "type": "PORT_NUMBER", "value": part.parse::<u16>().ok() }),
    };
    json!({
        "type": "PORTS", "matchOpposite": is_opposite,
        "items": text.split(',').map(item).collect::<Vec<_>>(),
    })
}

fn address_item(text: &str) -> Value {
    match text.split_once('-') {
        Some((from, to)) => json!({ "type": "IP_ADDRESS_RANGE", "start": from, "stop": to }),
        None if text.contains('/') => json!({ "type": "SUBNET", "value": text }),
        None => json!({ "type": "IP_ADDRESS", "value": text }),
    }
}

pub(super) fn scope(row: &Row) -> Value {
    let version = match text(row, "ip_version") {
        "IPV4" => "IPV4",
        "IPV6" => "IPV6",
        _ => "IPV4_AND_IPV6",
    };
    match text(row, "protocol") {
        "all" | "" => json!({ "ipVersion": version }),
        "tcp_udp" => {
            json!({
                "ipVersion": version,
                "protocolFilter": { "type": "PRESET", "preset": { "name": "TCP_UDP" } },
            })
        }
        protocol => json!({ "ipVersion": version, "protocolFilter": {
            "type": "NAMED_PROTOCOL", "protocol": { "name": protocol.to_uppercase() },
            "matchOpposite": flag(row, "match_opposite_protocol"),
        } }),
    }
}

/// The stored form of an official policy.
pub(super) fn stored(own: &Console, call: &Call<'_>) -> Outcome<Row> {
    let body = &call.body;
    let empty = Row::new();
    let action = object(body, "action").unwrap_or(&empty);
    let scope = object(body, "ipProtocolScope").unwrap_or(&empty);
    check_protocol(scope)?;
    let mut made = row(json!({
        "name": body["name"], "enabled": body["enabled"], "description": text(body, "description"),
        "action": text(action, "type"),
        "create_allow_respond": flag(action, "allowReturnTraffic"), "logging": flag(body, "loggingEnabled"),
        "ip_version": match text(scope, "ipVersion") { "IPV4" => "IPV4", "IPV6" => "IPV6", _ => "BOTH" },
        "protocol": protocol(scope), "~official": body,
    }));
    let states = texts(body, "connectionStateFilter");
    put(&mut made, "connection_state_type", if states.is_empty() { "ALL" } else { "CUSTOM" });
    put(&mut made, "connection_states", json!(states));
    for name in ["source", "destination"] {
        let side = object(body, name).unwrap_or(&empty);
        put(&mut made, name, older_side(own, &call.site, side)?);
    }
    Ok(made)
}

/// Both protocols at once are a preset, not a name.
fn check_protocol(scope: &Row) -> Outcome<()> {
    let Some(filter) = object(scope, "protocolFilter") else { return Ok(()) };
    let name = |field: &str| object(filter, field).map_or("", |inner| text(inner, "name"));
    let is_six = text(scope, "ipVersion") == "IPV6";
    let is_known = match text(filter, "type") {
        "PRESET" => name("preset") == "TCP_UDP",
        "NAMED_PROTOCOL" => match name("protocol") {
            "" | "TCP_UDP" => false,
            "ICMP" | "IGMP" => text(scope, "ipVersion") == "IPV4",
            "ICMPV6" => is_six,
            _ => true,
        },
        _ => true,
    };
    if is_known {
        return Ok(());
    }
    let shown = if name("protocol").is_empty() { name("preset") } else { name("protocol") };
    let message = format!("Invalid $.ipProtocolScope.protocolFilter.type value '{shown}' (valid values: '')");
    Err(Refusal::of(400, "api.request.unknown-type-id", &message))
}

fn protocol(scope: &Row) -> String {
    let filter = object(scope, "protocolFilter");
    let name = filter
        .and_then(|filter| object(filter, "protocol"))
        .map(|protocol| text(protocol, "name").to_lowercase());
    match filter.map(|filter| text(filter, "type")) {
        Some("PRESET") => "tcp_udp".to_owned(),
        Some(_) => name.unwrap_or_else(|| "all".to_owned()),
        None => "all".to_owned(),
    }
}

fn older_side(own: &Console, site: &str, end: &Row) -> Outcome<Value> {
    let id = text(end, "zoneId");
    let zone = own.store.id_of(site, ZONES, id).ok_or_else(|| absent("firewall zone", id))?;
    let mut made = json!({ "zone_id": zone, "matching_target": "ANY", "port_matching_type": "ANY" });
    let Some(filter) = object(end, "trafficFilter") else { return Ok(made) };
    let empty = Row::new();
    let target = |made: &mut Value, word: &str| {
        made["matching_target"] = json!(word);
        made["matching_target_type"] = json!("SPECIFIC");
    };
    if let Some(networks) = object(filter, "networkFilter") {
        let ids = texts(networks, "networkIds").into_iter();
        let ids: Outcome<Vec<String>> = ids
            .map(|id| own.store.id_of(site, "networkconf", id).ok_or_else(|| absent("network", id)))
            .collect();
        target(&mut made, "NETWORK");
        made["network_ids"] = json!(ids?);
    }
    if let Some(addresses) = object(filter, "ipAddressFilter") {
        target(&mut made, "IP");
        match addresses.get("trafficMatchingListId").and_then(Value::as_str) {
            Some(id) => {
                let list = own
                    .store
                    .id_of(site, "matching_list", id)
                    .ok_or_else(|| absent("traffic matching list", id))?;
                made["matching_target_type"] = json!("OBJECT");
                made["ip_group_id"] = json!(list);
            }
            None => {
                made["ips"] = json!(objects(addresses, "items").into_iter().map(item).collect::<Vec<_>>());
            }
        }
    }
    if text(filter, "type") == "MAC_ADDRESS" {
        target(&mut made, "MAC");
        let macs = object(filter, "macAddressFilter").unwrap_or(&empty);
        made["macs"] = json!(texts(macs, "macAddresses"));
    }
    if let Some(domains) = object(filter, "domainFilter") {
        target(&mut made, "WEB");
        made["web_domains"] = json!(texts(domains, "domains"));
    }
    if let Some(ports) = object(filter, "portFilter") {
        let shown = objects(ports, "items").into_iter().map(item).collect::<Vec<_>>().join(",");
        let list = text(ports, "trafficMatchingListId");
        made["port_matching_type"] = json!(if list.is_empty() { "SPECIFIC" } else { "OBJECT" });
        if list.is_empty() {
            made["port"] = json!(shown);
        } else {
            made["port_group_id"] = json!(
                own.store
                    .id_of(site, "matching_list", list)
                    .ok_or_else(|| absent("traffic matching list", list))?
            );
        }
    }
    Ok(made)
}

/// One item of a filter as a text.
fn item(item: &Row) -> String {
    let shown = |name: &str| match item.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    if item.contains_key("start") { format!("{}-{}", shown("start"), shown("stop")) } else { shown("value") }
}
