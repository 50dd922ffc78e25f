//! Networks in the official interface. They are stored in the older form, and translated both ways.

use serde_json::{Value, json};

use crate::console::Console;
use crate::official::{Answered, Call, absent, invalid, locked, page, translated};
use crate::policies::ZONES;
use crate::reply::{Outcome, Refusal};
use crate::rest;
use crate::row::{Row, flag, flag_or_true, mentions, number, object, put, row, text, texts};

const TABLE: &str = "networkconf";

pub(super) fn answer(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    match (call.request.method.as_str(), call.route.path.as_str()) {
        ("GET", "networks") => {
            let rows = own.store.rows(site, TABLE).iter().filter(|row| is_local(row));
            let shown = rows.map(|row| short(own, site, row)).collect();
            page::of(call, shown)
        }
        ("POST", _) => {
            let stored = stored(own, call, Row::new())?;
            let id = rest::insert(own, site, TABLE, stored).map_err(translated)?;
            Ok(detail(own, site, own.store.find(site, TABLE, &id).unwrap_or(&Row::new())))
        }
        ("GET", "networks/{networkId}/references") => {
            let network = find(own, call)?.clone();
            Ok(references(own, site, &network))
        }
        ("GET", _) => Ok(detail(own, site, find(own, call)?)),
        ("PUT", _) => {
            let old = find(own, call)?.clone();
            let new = stored(own, call, old.clone())?;
            rest::replace(own, site, TABLE, &old, new).map_err(translated)?;
            Ok(detail(own, site, find(own, call)?))
        }
        _ => delete(own, call),
    }
}

fn is_local(network: &Row) -> bool {
    matches!(text(network, "purpose"), "corporate" | "guest" | "vlan-only")
}

fn find<'a>(own: &'a Console, call: &Call<'_>) -> Outcome<&'a Row> {
    let found = own.store.by_uuid(&call.site, TABLE, call.id()).filter(|row| is_local(row));
    found.ok_or_else(|| absent("network", call.id()))
}

fn is_usual(network: &Row) -> bool {
    text(network, "attr_hidden_id") == "LAN"
}

fn delete(own: &mut Console, call: &Call<'_>) -> Answered {
    let network = find(own, call)?.clone();
    if is_usual(&network) || flag(&network, "attr_no_delete") {
        return Err(locked("network"));
    }
    let used = references(own, &call.site, &network);
    let is_used = used["referenceResources"].as_array().is_some_and(|found| !found.is_empty());
    if is_used && !call.is_forced() {
        return Err(Refusal::of(400, "api.network.referenced", "network is referenced by other resources"));
    }
    rest::remove(own, &call.site, TABLE, text(&network, "_id"));
    Ok(Value::Null)
}

/// What needs a network, by kind; what the official interface lacks has no id.
fn references(own: &Console, site: &str, network: &Row) -> Value {
    let id = text(network, "_id");
    let naming = |table: &str| {
        let names = |row: &&Row| {
            row.iter().any(|(name, value)| {
                name != "_id" && name != "excluded_networkconf_ids" && mentions(value, id)
            })
        };
        own.store.rows(site, table).iter().filter(names).collect::<Vec<_>>()
    };
    let clients: Vec<&Row> = crate::clients::online(own, site)
        .filter(|client| {
            crate::clients::network_of(own, site, client).is_some_and(|found| text(found, "_id") == id)
        })
        .collect();
    let devices = own
        .store
        .rows(site, "device")
        .iter()
        .filter(|device| text(device, "mgmt_network_id") == id)
        .collect();
    let kinds = [
        ("CLIENT", clients, true),
        ("DEVICE", devices, true),
        ("WIFI", naming("wlanconf"), true),
        ("STATIC_ROUTE", naming("routing"), false),
        ("NAT_RULE", naming("nat"), false),
    ];
    let shown = kinds.into_iter().filter(|(_, rows, _)| !rows.is_empty()).map(|(kind, rows, has_ids)| {
        let mut made = json!({ "resourceType": kind, "referenceCount": rows.len() });
        if has_ids {
            let ids = rows.iter().map(|row| json!({ "referenceId": text(row, "~uuid") }));
            made["references"] = json!(ids.collect::<Vec<_>>());
        }
        made
    });
    json!({ "referenceResources": shown.collect::<Vec<_>>() })
}

fn management(network: &Row) -> &'static str {
    match (text(network, "purpose"), text(network, "gateway_type")) {
        ("vlan-only", _) => "UNMANAGED",
        (_, "switch") => "SWITCH",
        _ => "GATEWAY",
    }
}

fn short(own: &Console, site: &str, network: &Row) -> Value {
    let is_usual = is_usual(network);
    let mut made = json!({
        "management": management(network), "id": text(network, "~uuid"), "name": text(network, "name"),
        "enabled": flag_or_true(network, "enabled"),
        "vlanId": if flag(network, "vlan_enabled") { number(network, "vlan").unwrap_or(1) } else { 1 },
        "metadata": { "origin": if is_usual { "SYSTEM_DEFINED" } else { "USER_DEFINED" } },
        "default": is_usual,
    });
    if is_usual {
        made["metadata"]["configurable"] = json!(true);
    }
    match management(network) {
        "GATEWAY" => {
            let zone = own.store.uuid_of(site, ZONES, text(network, "firewall_zone_id"));
            if !zone.is_empty() {
                made["zoneId"] = json!(zone);
            }
        }
        "SWITCH" => {
            let device = own.store.having(site, "device", "mac", text(network, "gateway_device"));
            made["deviceId"] = json!(device.map(|row| text(row, "~uuid")));
        }
        _ => {}
    }
    made
}

fn detail(own: &Console, site: &str, network: &Row) -> Value {
    let mut made = short(own, site, network);
    if flag(network, "dhcpguard_enabled") {
        let names = ["dhcpd_ip_1", "dhcpd_ip_2", "dhcpd_ip_3"].map(|name| text(network, name));
        let trusted: Vec<&str> = names.into_iter().filter(|ip| !ip.is_empty()).collect();
        made["dhcpGuarding"] = json!({ "trustedDhcpServerIpAddresses": trusted });
    }
    let kind = management(network);
    if kind == "UNMANAGED" {
        return made;
    }
    made["isolationEnabled"] = json!(flag(network, "network_isolation_enabled"));
    made["cellularBackupEnabled"] = json!(flag(network, "lte_lan_enabled"));
    if kind == "GATEWAY" {
        made["internetAccessEnabled"] = json!(flag_or_true(network, "internet_access_enabled"));
        made["mdnsForwardingEnabled"] = json!(flag(network, "~mdns"));
    }
    let (address, prefix) = text(network, "ip_subnet").split_once('/').unwrap_or(("0.0.0.0", "0"));
    let mut inner = json!({
        "autoScaleEnabled": flag(network, "auto_scale_enabled"), "hostIpAddress": address,
        "prefixLength": prefix.parse::<i64>().unwrap_or_default(),
    });
    let more = texts(network, "ip_aliases");
    if !more.is_empty() {
        inner["additionalHostIpSubnets"] = json!(more);
    }
    if let Some(dhcp) = dhcp(network) {
        inner["dhcpConfiguration"] = dhcp;
    }
    let raw = object(network, "~official");
    if let Some(nat) = raw
        .and_then(|raw| object(raw, "ipv4Configuration"))
        .and_then(|raw| raw.get("natOutboundIpAddressConfiguration"))
    {
        inner["natOutboundIpAddressConfiguration"] = nat.clone();
    }
    made["ipv4Configuration"] = inner;
    if let Some(six) = raw
        .and_then(|raw| raw.get("ipv6Configuration"))
        .filter(|_| text(network, "ipv6_interface_type") != "none")
    {
        made["ipv6Configuration"] = six.clone();
    }
    made
}

fn dhcp(network: &Row) -> Option<Value> {
    if flag(network, "dhcp_relay_enabled") {
        return Some(
            json!({ "mode": "RELAY", "dhcpServerIpAddresses": texts(network, "dhcp_relay_servers") }),
        );
    }
    if !flag(network, "dhcpd_enabled") {
        return None;
    }
    let mut made = json!({
        "mode": "SERVER",
        "ipAddressRange": { "start": text(network, "dhcpd_start"), "stop": text(network, "dhcpd_stop") },
        "leaseTimeSeconds": number(network, "dhcpd_leasetime").unwrap_or(86_400),
        "pingConflictDetectionEnabled": flag(network, "dhcpd_conflict_checking"),
    });
    if flag(network, "dhcpd_gateway_enabled") {
        made["gatewayIpAddressOverride"] = json!(text(network, "dhcpd_gateway"));
    }
    for (field, switch, name, count) in LISTS {
        if flag(network, switch) {
            let values =
                (1..=count).map(|place| text(network, &format!("{name}{place}"))).filter(|ip| !ip.is_empty());
            made[field] = json!(values.collect::<Vec<_>>());
        }
    }
    for (field, name) in TEXTS {
        if !text(network, name).is_empty() {
            made[field] = json!(text(network, name));
        }
    }
    if flag(network, "dhcpd_boot_enabled") {
        made["pxeConfiguration"] = json!({
            "serverIpAddress": text(network, "dhcpd_boot_server"),
            "filename": text(network, "dhcpd_boot_filename"),
        });
    }
    if flag(network, "dhcpd_time_offset_enabled") {
        made["timeOffsetSeconds"] = json!(number(network, "dhcpd_time_offset"));
    }
    Some(made)
}

/// Lists of addresses: the official field, the switch, the beginning of the names, and how many there are.
const LISTS: [(&str, &str, &str, usize); 3] = [
    ("dnsServerIpAddressesOverride", "dhcpd_dns_enabled", "dhcpd_dns_", 4),
    ("ntpServerIpAddresses", "dhcpd_ntp_enabled", "dhcpd_ntp_", 2),
    ("winsServerIpAddresses", "dhcpd_wins_enabled", "dhcpd_wins_", 2),
];

/// Texts: the official field, and the older one.
const TEXTS: [(&str, &str); 4] = [
    ("domainName", "domain_name"),
    ("option43Value", "dhcpd_unifi_controller"),
    ("tftpServerAddress", "dhcpd_tftp_server"),
    ("wpadUrl", "dhcpd_wpad_url"),
];

/// The stored form of an official network over what was stored: what the body leaves out is reset.
fn stored(own: &Console, call: &Call<'_>, mut made: Row) -> Outcome<Row> {
    let body = &call.body;
    let site = call.site.as_str();
    let vlan = number(body, "vlanId").unwrap_or(1);
    if (vlan == 1) != is_usual(&made) {
        return Err(invalid("'vlanId' 1 belongs to the default network"));
    }
    let kind = text(body, "management");
    let purpose = match (kind, text(&made, "purpose")) {
        ("UNMANAGED", _) => "vlan-only",
        (_, "guest") => "guest",
        _ => "corporate",
    };
    for (name, value) in [
        ("name", body["name"].clone()),
        ("enabled", body["enabled"].clone()),
        ("purpose", json!(purpose)),
        ("setting_preference", json!("manual")),
        ("~official", json!(body)),
    ] {
        put(&mut made, name, value);
    }
    if vlan != 1 {
        put(&mut made, "vlan_enabled", true);
        put(&mut made, "vlan", vlan);
    }
    guard(body, &mut made);
    if kind == "UNMANAGED" {
        put(&mut made, "network_isolation_enabled", false);
        ["ip_subnet", "dhcpd_enabled", "firewall_zone_id"].iter().for_each(|name| drop(made.remove(*name)));
        return Ok(made);
    }
    place(own, site, body, &mut made)?;
    let inner = object(body, "ipv4Configuration").cloned().unwrap_or_default();
    let subnet =
        format!("{}/{}", text(&inner, "hostIpAddress"), number(&inner, "prefixLength").unwrap_or_default());
    if crate::net::subnet(&subnet).is_none() {
        return Err(invalid("'ipv4Configuration.hostIpAddress' must be valid IP format"));
    }
    put(&mut made, "ip_subnet", subnet);
    put(&mut made, "auto_scale_enabled", flag(&inner, "autoScaleEnabled"));
    put(&mut made, "ip_aliases", json!(texts(&inner, "additionalHostIpSubnets")));
    put(&mut made, "network_isolation_enabled", flag(body, "isolationEnabled"));
    put(&mut made, "lte_lan_enabled", flag(body, "cellularBackupEnabled"));
    put(&mut made, "internet_access_enabled", flag_or_true(body, "internetAccessEnabled"));
    put(&mut made, "~mdns", flag(body, "mdnsForwardingEnabled"));
    write_dhcp(object(&inner, "dhcpConfiguration"), &mut made);
    let six = object(body, "ipv6Configuration").map(|six| text(six, "interfaceType"));
    put(
        &mut made,
        "ipv6_interface_type",
        match six {
            Some("STATIC") => "static",
            Some(_) => "pd",
            None => "none",
        },
    );
    Ok(made)
}

fn guard(body: &Row, made: &mut Row) {
    let trusted = object(body, "dhcpGuarding").map(|guard| texts(guard, "trustedDhcpServerIpAddresses"));
    put(made, "dhcpguard_enabled", trusted.is_some());
    for (place, name) in ["dhcpd_ip_1", "dhcpd_ip_2", "dhcpd_ip_3"].iter().enumerate() {
        match trusted.as_ref().and_then(|trusted| trusted.get(place)) {
            Some(address) => put(made, name, *address),
            None => drop(made.remove(*name)),
        }
    }
}

/// The zone, or the switch, of a network.
fn place(own: &Console, site: &str, body: &Row, made: &mut Row) -> Outcome<()> {
    if text(body, "management") == "SWITCH" {
        let id = text(body, "deviceId");
        let device = own.store.by_uuid(site, "device", id).ok_or_else(|| absent("device", id))?;
        put(made, "gateway_type", "switch");
        put(made, "gateway_device", text(device, "mac"));
        return Ok(());
    }
    if !own.has_gateway(site) {
        return Err(Refusal::of(400, "api.network.gateway-required", "a gateway is required"));
    }
    put(made, "gateway_type", "default");
    let zone = text(body, "zoneId");
    if !own.has_zones(site) {
        return Ok(());
    }
    let id = match zone {
        "" => own.store.having(site, ZONES, "zone_key", "internal").map(|zone| text(zone, "_id").to_owned()),
        zone => own.store.id_of(site, ZONES, zone),
    };
    put(made, "firewall_zone_id", id.ok_or_else(|| absent("firewall zone", zone))?);
    Ok(())
}

/// Without a configuration the server is off.
fn write_dhcp(dhcp: Option<&Row>, made: &mut Row) {
    let empty = row(json!({}));
    let is_server = dhcp.is_some_and(|dhcp| text(dhcp, "mode") == "SERVER");
    let is_relay = dhcp.is_some_and(|dhcp| text(dhcp, "mode") == "RELAY");
    put(made, "dhcpd_enabled", is_server);
    put(made, "dhcp_relay_enabled", is_relay);
    let dhcp = dhcp.unwrap_or(&empty);
    put(made, "dhcp_relay_servers", json!(texts(dhcp, "dhcpServerIpAddresses")));
    if let Some(range) = object(dhcp, "ipAddressRange") {
        put(made, "dhcpd_start", text(range, "start"));
        put(made, "dhcpd_stop", text(range, "stop"));
    } else {
        made.remove("dhcpd_start");
        made.remove("dhcpd_stop");
    }
    put(made, "dhcpd_leasetime", number(dhcp, "leaseTimeSeconds").unwrap_or(86_400));
    put(made, "dhcpd_conflict_checking", flag(dhcp, "pingConflictDetectionEnabled"));
    put(made, "dhcpd_gateway_enabled", dhcp.contains_key("gatewayIpAddressOverride"));
    put(made, "dhcpd_gateway", text(dhcp, "gatewayIpAddressOverride"));
    for (field, switch, name, count) in LISTS {
        let values = texts(dhcp, field);
        put(made, switch, !values.is_empty());
        for place in 1..=count {
            put(made, &format!("{name}{place}"), values.get(place - 1).copied().unwrap_or_default());
        }
    }
    for (field, name) in TEXTS {
        put(made, name, text(dhcp, field));
    }
    let boot = object(dhcp, "pxeConfiguration");
    put(made, "dhcpd_boot_enabled", boot.is_some());
    put(made, "dhcpd_boot_server", boot.map_or("", |boot| text(boot, "serverIpAddress")));
    put(made, "dhcpd_boot_filename", boot.map_or("", |boot| text(boot, "filename")));
    put(made, "dhcpd_time_offset_enabled", dhcp.contains_key("timeOffsetSeconds"));
    put(made, "dhcpd_time_offset", number(dhcp, "timeOffsetSeconds").unwrap_or_default());
}
