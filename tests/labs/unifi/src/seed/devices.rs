//! Devices and clients of the household.

use serde_json::{Value, json};

use crate::console::Console;
use crate::devices::Hardware;
use crate::row::{Row, put, row, text, uuid};
use crate::store::GLOBAL;
use crate::wlans::join_usual_group;

/// How long ago the devices were started: 12 days.
const UPTIME_MS: u64 = 12 * 86_400_000;

/// The ports of a gateway that lead to providers.
fn lines() -> Value {
    json!([{ "ifname": "eth8", "networkgroup": "WAN" }, { "ifname": "eth9", "networkgroup": "WAN2" }])
}

/// The record of a device, from what the household says of it.
fn record(own: &Console, entry: &Value) -> Row {
    let hardware = Hardware::of(entry["model"].as_str().unwrap_or_default());
    let mac = entry["mac"].as_str().unwrap_or_default();
    let mut ports = hardware.ports();
    for port in ports.as_array_mut().into_iter().flatten() {
        let number = port["idx"].to_string();
        if let (Some(port), Some(more)) = (port.as_object_mut(), entry["ports"][&number].as_object()) {
            port.extend(more.clone());
        }
    }
    let mut made = row(json!({
        "mac": mac, "model": hardware.model, "type": hardware.kind,
        "name": entry["name"].as_str().unwrap_or(hardware.name),
        "ip": entry["ip"], "serial": mac.replace(':', "").to_uppercase(), "version": entry["version"],
        "adopted": true, "state": 1,
        "port_overrides": entry.get("port_overrides").cloned().unwrap_or_else(|| json!([])),
        "led_override": "default", "disabled": false,
        "config_network": { "type": "dhcp", "bonding_enabled": false },
        "~name": hardware.name, "~ports": ports, "~radios": hardware.radios(),
        "~booted": own.now.saturating_sub(UPTIME_MS), "~adopted": own.now.saturating_sub(UPTIME_MS * 20),
        "~provisioned": own.now.saturating_sub(UPTIME_MS / 4), "~generation": 1,
    }));
    for (field, name) in [
        ("uplink", "~uplink"),
        ("next", "~next"),
        ("stp_version", "stp_version"),
        ("stp_priority", "stp_priority"),
        ("mgmt_network_id", "mgmt_network_id"),
        ("outlet_overrides", "outlet_overrides"),
    ] {
        if let Some(value) = entry.get(field) {
            put(&mut made, name, value.clone());
        }
    }
    match hardware.kind {
        "uap" => put(&mut made, "radio_table", hardware.radio_table()),
        "udm" => put(&mut made, "ethernet_overrides", lines()),
        _ => {}
    }
    if hardware.outlets() != json!([]) {
        put(&mut made, "~outlets", hardware.outlets());
    }
    made
}

pub(super) fn plant(own: &mut Console, site: &str, entries: &Value) {
    for entry in entries.as_array().into_iter().flatten() {
        let mut made = record(own, entry);
        let is_gateway = crate::devices::is_gateway(&made);
        if is_gateway && !own.settings.has_gateway {
            continue;
        }
        // Without the gateway the next device is the root.
        let is_below = made.get("~uplink").is_some_and(|uplink| uplink["mac"] == "02:00:5e:00:01:01");
        if is_below && !own.settings.has_gateway {
            made.remove("~uplink");
        }
        let (mac, kind) = (text(&made, "mac").to_owned(), text(&made, "type").to_owned());
        own.store.add(site, "device", made);
        if kind == "uap" {
            join_usual_group(own, site, &mac);
        }
    }
}

/// Devices that wait to be adopted.
pub(super) fn plant_pending(own: &mut Console, entries: &Value) {
    for entry in entries.as_array().into_iter().flatten() {
        pending(own, entry, true);
    }
}

/// Adds a device that waits to be adopted; one that reported a while ago can be at once.
pub(crate) fn pending(own: &mut Console, entry: &Value, is_old: bool) -> String {
    let mut made = record(own, entry);
    put(&mut made, "adopted", false);
    put(&mut made, "state", 2);
    put(&mut made, "~seen", if is_old { 0 } else { own.now });
    own.store.add(GLOBAL, "pending", made)
}

pub(super) fn plant_clients(own: &mut Console, site: &str, entries: &Value) {
    for entry in entries.as_array().into_iter().flatten() {
        client(own, site, entry);
    }
    let points = [
        ("02:00:5e:00:01:11", "na"),
        ("02:00:5e:00:01:12", "na"),
        ("02:00:5e:00:01:12", "ng"),
        ("02:00:5e:00:01:13", "na"),
    ];
    for place in 0..own.settings.clients {
        let (point, radio) = points[place % points.len()];
        let (high, low) = (place / 250, place % 250);
        client(
            own,
            site,
            &json!({
                "mac": format!("02:00:5e:20:{high:02x}:{low:02x}"),
                "hostname": format!("guest-device-{place}"),
                "ip": format!("10.10.0.{}", 100 + place % 150),
                "wifi": [point, "Office", radio, -60 - i64::try_from(place % 20).unwrap_or(0)],
            }),
        );
    }
}

/// Adds a client: what is known of it, and its connection.
pub(crate) fn client(own: &mut Console, site: &str, entry: &Value) {
    let mac = entry["mac"].as_str().unwrap_or_default();
    let usual =
        own.store.having(site, "usergroup", "attr_hidden_id", "Default").map(|row| row["_id"].clone());
    let mut user = row(json!({
        "mac": mac, "hostname": entry["hostname"], "oui": "Example", "blocked": entry["blocked"] == true,
        "is_wired": entry["wired"].is_array(),
        "use_fixedip": entry["fixed_ip"].is_string(), "noted": entry["note"].is_string(),
        "usergroup_id": usual, "is_guest": false,
    }));
    for name in ["name", "note", "fixed_ip"] {
        if let Some(value) = entry.get(name) {
            put(&mut user, name, value.clone());
        }
    }
    own.store.add(site, "user", user);
    if entry["known_only"] == true {
        return;
    }
    let mut made = row(json!({
        "mac": mac, "hostname": entry["hostname"], "ip": entry["ip"], "oui": "Example",
        "~since": own.now.saturating_sub(5_400_000),
        "~uuid": uuid("sta", mac), "is_wired": entry["wired"].is_array(),
    }));
    let at = |list: &str, place: usize| entry[list][place].clone();
    let more = if entry["wired"].is_array() {
        vec![("sw_mac", at("wired", 0)), ("sw_port", at("wired", 1)), ("sw_depth", json!(0))]
    } else {
        vec![
            ("ap_mac", at("wifi", 0)),
            ("essid", at("wifi", 1)),
            ("radio", at("wifi", 2)),
            ("signal", at("wifi", 3)),
        ]
    };
    for (name, value) in more {
        put(&mut made, name, value);
    }
    own.store.add(site, "sta", made);
}
