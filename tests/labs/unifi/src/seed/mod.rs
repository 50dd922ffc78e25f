//! The household: what a console has stored when it starts. The data are in `household.json`.
//!
//! A text `@table:name` there stands for the id of the row with that name.

pub(crate) mod devices;

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::console::Console;
use crate::policies::{POLICIES, ZONES};
use crate::row::{Row, put, row, text, uuid};
use crate::store::GLOBAL;
use crate::{backup, defaults, rewrites, switches};

static HOUSEHOLD: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../household.json")).expect("the household is checked in as JSON")
});

/// Tables of the household in the order in which they name each other.
const TABLES: [&str; 19] = [
    "usergroup",
    "radiusprofile",
    "networkconf",
    "portconf",
    "wlanconf",
    "firewallgroup",
    "portforward",
    "routing",
    "dynamicdns",
    "account",
    "dhcpoption",
    "static_dns",
    "trafficrules",
    "trafficroutes",
    "nat",
    "content-filtering",
    "magic_tunnel",
    "device_tag",
    "firewallrule",
];

/// Tables that only a gateway makes use of.
const OF_GATEWAY: [&str; 11] = [
    "portforward",
    "routing",
    "dynamicdns",
    "account",
    "static_dns",
    "trafficrules",
    "trafficroutes",
    "nat",
    "content-filtering",
    "magic_tunnel",
    "firewallrule",
];

/// Zones that every firewall has.
const SYSTEM_ZONES: [(&str, &str); 6] = [
    ("Internal", "internal"),
    ("External", "external"),
    ("Gateway", "gateway"),
    ("VPN", "vpn"),
    ("Hotspot", "hotspot"),
    ("DMZ", "dmz"),
];

/// Fills a console that has not started.
pub(crate) fn plant(own: &mut Console) {
    let more = (2..own.settings.sites).map(|place| (format!("site{place:04}"), format!("Site {place}")));
    let first = [("default".to_owned(), "Default".to_owned()), ("br4nch01".to_owned(), "Branch".to_owned())];
    let sites: Vec<(String, String)> =
        first.into_iter().take(own.settings.sites.max(1)).chain(more).collect();
    for (name, desc) in &sites {
        let mut site = row(json!({ "name": name, "desc": desc, "anonymous_id": uuid("anonymous", name) }));
        if name == "default" {
            put(&mut site, "attr_hidden_id", "default");
            put(&mut site, "attr_no_delete", true);
        }
        own.store.add(GLOBAL, "site", site);
        bare_site(own, name);
    }
    let accounts = [(own.settings.admin.0.clone(), true), (own.settings.viewer.0.clone(), false)];
    for (name, is_super) in accounts {
        let role = if is_super { "admin" } else { "readonly" };
        own.store.add(
            GLOBAL,
            "admin",
            row(json!({
                "name": name, "email": format!("{name}@example.org"), "is_super": is_super, "role": role,
                "is_local": true, "permissions": [],
            })),
        );
    }
    switches::plant(own, GLOBAL, &fields("settings"));
    household(own);
    if sites.len() > 1 {
        devices::plant(own, "br4nch01", &resolved(own, "br4nch01", &HOUSEHOLD["branch"]));
    }
    backup::plant(own);
    own.log("default", "SYSTEM", "APPLICATION_STARTED", "the application started", "LOW");
    own.log("default", "SECURITY", "THREAT_BLOCKED", "a threat was blocked", "HIGH");
}

fn fields(name: &str) -> Row {
    HOUSEHOLD[name].as_object().cloned().unwrap_or_default()
}

fn household(own: &mut Console) {
    let site = "default";
    if own.settings.has_gateway && own.settings.has_zones {
        own.store.add(site, ZONES, row(json!({ "name": "Things" })));
    }
    // The groups of access points stand before what names them.
    let indoors = json!({ "name": "Indoors", "device_macs": ["02:00:5e:00:01:11", "02:00:5e:00:01:12"] });
    own.store.add(site, "apgroup", row(indoors));
    // Devices before the rules of the firewall: they say whether there is a gateway. Their ports name networks.
    for table in TABLES {
        let is_old = table == "firewallrule" && own.settings.has_zones;
        if is_old || OF_GATEWAY.contains(&table) && !own.settings.has_gateway {
            continue;
        }
        for entry in HOUSEHOLD[table].as_array().into_iter().flatten() {
            let is_tunnel =
                matches!(entry["purpose"].as_str(), Some("remote-user-vpn" | "site-vpn" | "vpn-client"));
            if is_tunnel && !own.settings.has_gateway {
                continue;
            }
            let mut entry = row(resolved(own, site, entry));
            defaults::fill(own, site, table, &mut entry);
            zone_of(own, site, table, &mut entry);
            rewrites::apply(own, site, table, &mut entry);
            own.store.add(site, table, entry);
        }
    }
    let found = resolved(own, site, &HOUSEHOLD["devices"]);
    devices::plant(own, site, &found);
    devices::plant_pending(own, &resolved(own, site, &HOUSEHOLD["pending"]));
    devices::plant_clients(own, site, &HOUSEHOLD["clients"]);
    peers(own, site);
    kept_beside(own, site);
    if own.has_zones(site) {
        policies(own, site);
    }
}

/// The zone of a network of the household.
fn zone_of(own: &Console, site: &str, table: &str, entry: &mut Row) {
    if table != "networkconf" || !(own.settings.has_gateway && own.settings.has_zones) {
        return;
    }
    let key = match text(entry, "purpose") {
        "corporate" if text(entry, "name") == "IoT" => "",
        "corporate" => "internal",
        "guest" => "hotspot",
        "wan" => "external",
        "remote-user-vpn" | "site-vpn" | "vpn-client" => "vpn",
        _ => return,
    };
    let zone = if key.is_empty() {
        own.store.having(site, ZONES, "name", "Things")
    } else {
        own.store.having(site, ZONES, "zone_key", key)
    };
    if let Some(id) = zone.map(|zone| zone["_id"].clone()) {
        put(entry, "firewall_zone_id", id);
    }
}

fn peers(own: &mut Console, site: &str) {
    let server = own
        .store
        .having(site, "networkconf", "vpn_type", "wireguard-server")
        .map(|row| text(row, "_id").to_owned());
    let Some(server) = server else { return };
    for peer in HOUSEHOLD["wireguard"].as_array().into_iter().flatten() {
        let mut peer = row(peer.clone());
        put(&mut peer, "network_id", server.clone());
        own.store.add(site, &format!("wireguard:{server}"), peer);
    }
}

/// A voucher of last week, and a list of what to match.
fn kept_beside(own: &mut Console, site: &str) {
    let made = (own.now / 1000).saturating_sub(7 * 86_400);
    let voucher = json!({
        "code": "4711047110", "create_time": made, "duration": 1440, "note": "visitors", "for_hotspot": true,
        "quota": 5, "used": 1, "status": "VALID_MULTI", "admin_name": own.settings.admin.0,
        "qos_overwrite": false, "status_expires": 0,
    });
    own.store.add(site, "voucher", row(voucher));
    let list = json!({
        "name": "Printers and scanners",
        "~official": {
            "type": "IPV4_ADDRESSES", "name": "Printers and scanners",
            "items": [{ "type": "IP_ADDRESS", "value": "10.10.0.60" }, { "type": "SUBNET", "value": "10.10.0.64/28" }],
        },
    });
    own.store.add(site, "matching_list", row(list));
}

fn policies(own: &mut Console, site: &str) {
    for entry in HOUSEHOLD["policies"].as_array().into_iter().flatten() {
        let zone = |name: &str| {
            let wanted = entry[name].as_str().unwrap_or_default();
            let found = own.store.having(site, ZONES, "zone_key", wanted);
            let found = found.or_else(|| own.store.having(site, ZONES, "name", wanted));
            found.map(|zone| zone["_id"].clone()).unwrap_or_default()
        };
        let mut destination =
            json!({ "zone_id": zone("destination"), "matching_target": "ANY", "port_matching_type": "ANY" });
        if entry["port"].is_string() {
            destination["port_matching_type"] = json!("SPECIFIC");
            destination["port"] = entry["port"].clone();
        }
        let policy = json!({
            "name": entry["name"], "action": entry["action"], "enabled": true, "protocol": entry["protocol"],
            "ip_version": "BOTH",
            "create_allow_respond": entry["create_allow_respond"] == true,
            "logging": entry["logging"] == true, "description": "",
            "connection_state_type": "ALL", "connection_states": [], "match_ip_sec": false,
            "match_opposite_protocol": false,
            "icmp_typename": "ANY", "icmp_v6_typename": "ANY", "schedule": { "mode": "ALWAYS" },
            "source": { "zone_id": zone("source"), "matching_target": "ANY", "port_matching_type": "ANY" },
            "destination": destination,
        });
        own.store.add(site, POLICIES, row(policy));
    }
}

/// What every new site has.
pub(crate) fn bare_site(own: &mut Console, site: &str) {
    let place = own.store.sites().len();
    if own.settings.has_zones {
        for (name, key) in SYSTEM_ZONES {
            own.store.add(site, ZONES, row(json!({ "name": name, "zone_key": key })));
        }
    }
    own.store.add(
        site,
        "usergroup",
        row(json!({
            "name": "Default", "attr_hidden_id": "Default", "attr_no_delete": true, "qos_rate_max_up": -1,
            "qos_rate_max_down": -1,
        })),
    );
    own.store.add(
        site,
        "apgroup",
        row(json!({
            "name": "All APs", "attr_hidden_id": "default", "attr_no_delete": true, "device_macs": [],
        })),
    );
    own.store.add(
        site,
        "wlangroup",
        row(json!({ "name": "Default", "attr_hidden_id": "Default", "attr_no_delete": true })),
    );
    let mut lan = row(json!({
        "name": "Default", "purpose": "corporate", "attr_hidden_id": "LAN", "attr_no_delete": true,
        "vlan_enabled": false,
        "ip_subnet": format!("192.168.{place}.1/24"), "dhcpd_enabled": true,
        "dhcpd_start": format!("192.168.{place}.6"),
        "dhcpd_stop": format!("192.168.{place}.254"), "domain_name": "localdomain",
    }));
    let mut wan = row(json!({
        "name": "WAN", "purpose": "wan", "attr_hidden_id": "WAN", "attr_no_delete": true,
        "wan_networkgroup": "WAN",
        "wan_type": "dhcp", "wan_failover_priority": 1,
    }));
    for (network, key) in [(&mut lan, "internal"), (&mut wan, "external")] {
        defaults::fill(own, site, "networkconf", network);
        if let Some(zone) = own.store.having(site, ZONES, "zone_key", key).map(|zone| zone["_id"].clone()) {
            put(network, "firewall_zone_id", zone);
        }
    }
    let lan_id = own.store.add(site, "networkconf", lan);
    own.store.add(site, "networkconf", wan);
    profiles(own, site, &lan_id);
    switches::plant(own, site, &fields("settings"));
}

/// The port profiles of every site.
fn profiles(own: &mut Console, site: &str, lan_id: &str) {
    for (name, hidden, values) in [
        (
            "All",
            "ALL",
            json!({ "forward": "all", "native_networkconf_id": lan_id, "tagged_vlan_mgmt": "auto" }),
        ),
        (
            "Disabled",
            "DISABLED",
            json!({ "forward": "disabled", "tagged_vlan_mgmt": "block_all", "poe_mode": "off" }),
        ),
    ] {
        let mut profile = row(values);
        defaults::fill(own, site, "portconf", &mut profile);
        for (field, value) in [
            ("name", json!(name)),
            ("attr_hidden_id", json!(hidden)),
            ("attr_no_delete", json!(true)),
            ("attr_no_edit", json!(true)),
        ] {
            put(&mut profile, field, value);
        }
        own.store.add(site, "portconf", profile);
    }
}

/// The value with the ids of the rows that it names.
fn resolved(own: &Console, site: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('@').and_then(|text| text.split_once(':')) {
            Some((table, name)) => {
                let found = own.store.having(site, table, "name", name);
                found.map(|row| row["_id"].clone()).unwrap_or_default()
            }
            None => value.clone(),
        },
        Value::Array(values) => values.iter().map(|value| resolved(own, site, value)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), resolved(own, site, value))).collect(),
        ),
        other => other.clone(),
    }
}
