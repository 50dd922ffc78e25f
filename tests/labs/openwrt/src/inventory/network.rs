//! `network.interface`, `network.device` and their view in `luci-rpc`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::device::Device;
use crate::status::{Reply, Status};
use crate::uci::Section;

/// The ports of the box: name, last byte of the MAC, link speed when a cable is in.
const PORTS: [(&str, u8, Option<&str>); 5] = [
    ("lan1", 0x11, Some("1000F")),
    ("lan2", 0x12, Some("1000F")),
    ("lan3", 0x13, None),
    ("lan4", 0x14, Some("100F")),
    ("wan", 0x20, Some("2500F")),
];

/// All interfaces that netifd creates: a disabled one does not exist for it.
pub(super) fn interfaces(device: &Device) -> Vec<Value> {
    let network = device.config("network");
    network
        .of_kind("interface")
        .filter(|section| !section.is_on("disabled", false))
        .map(|section| interface(device, section))
        .collect()
}

fn interface(device: &Device, section: &Section) -> Value {
    let proto = section.text("proto").unwrap_or("none");
    let on = section.text("device").unwrap_or("");
    let has_device = on == "lo" || devices(device).contains_key(on.split('.').next().unwrap_or(on));
    let addresses = addresses(section, proto);
    let is_up = section.is_on("auto", true) && has_device && (!addresses.is_empty() || proto == "dhcpv6");
    let mut out = json!({
        "interface": section.name, "up": is_up, "pending": false, "available": has_device,
        "autostart": section.is_on("auto", true), "dynamic": false, "proto": proto, "device": on, "data": {},
    });
    if !is_up {
        let code = if has_device { "NO_ADDRESS" } else { "NO_DEVICE" };
        out["errors"] = json!([{ "subsystem": "interface", "code": code }]);
        return out;
    }
    let is_uplink = section.name == "wan" && proto == "dhcp";
    out["l3_device"] = json!(on);
    out["uptime"] = json!(device.uptime().saturating_sub(Duration::from_secs(18)).as_secs());
    out["metric"] = json!(section.text("metric").and_then(|metric| metric.parse::<u32>().ok()).unwrap_or(0));
    out["ipv4-address"] = json!(addresses);
    out["ipv6-address"] = json!([]);
    out["ipv6-prefix"] = json!([]);
    out["ipv6-prefix-assignment"] = json!([]);
    out["dns-server"] = json!(if is_uplink { vec!["203.0.113.1"] } else { section.list("dns") });
    out["route"] = match section.text("gateway") {
        _ if is_uplink => json!([route("203.0.113.1", "203.0.113.57/24")]),
        Some(gateway) => json!([route(gateway, "0.0.0.0/0")]),
        None => json!([]),
    };
    if section.text("ip6assign").is_some() {
        let prefix = json!({ "address": "fd4a:9c11:7e02::", "mask": 60, "local-address": { "address": "fd4a:9c11:7e02::1", "mask": 60 } });
        out["ipv6-prefix-assignment"] = json!([prefix]);
    }
    out
}

fn route(gateway: &str, source: &str) -> Value {
    json!({ "target": "0.0.0.0", "mask": 0, "nexthop": gateway, "source": source })
}

/// `address/prefix` or an address with a netmask; a DHCP uplink has its provider's.
fn addresses(section: &Section, proto: &str) -> Vec<Value> {
    if proto == "dhcp" {
        return if section.name == "wan" {
            vec![json!({ "address": "203.0.113.57", "mask": 24 })]
        } else {
            Vec::new()
        };
    }
    let netmask = section.text("netmask").map_or(32, prefix_length);
    let own = section.list("ipaddr").into_iter().map(|text| match text.split_once('/') {
        Some((address, mask)) => json!({ "address": address, "mask": mask.parse::<u32>().unwrap_or(32) }),
        None => json!({ "address": text, "mask": netmask }),
    });
    if proto == "static" { own.collect() } else { Vec::new() }
}

fn prefix_length(netmask: &str) -> u32 {
    netmask.split('.').filter_map(|part| part.parse::<u8>().ok()).map(u8::count_ones).sum()
}

pub(super) fn status(device: &Device, name: Option<&str>) -> Reply {
    let mut all = devices(device);
    match name {
        None => Ok(Some(Value::Object(all))),
        Some(name) => all.remove(name).map(Some).ok_or(Status::NotFound),
    }
}

/// Every device: the ports of the box, loopback, and the bridges of the configuration.
fn devices(device: &Device) -> Map<String, Value> {
    let network = device.config("network");
    let mut out = Map::new();
    out.insert("lo".to_owned(), link(device, "loopback", 0, true, None));
    for (at, (port, mac, speed)) in PORTS.iter().enumerate() {
        let mut status = link(device, "ethernet", *mac, speed.is_some(), *speed);
        status["statistics"] = statistics(device.age(), u64::try_from(at).unwrap_or(0) + 1, speed.is_some());
        out.insert((*port).to_owned(), status);
    }
    for section in network.of_kind("device") {
        let (Some(name), kind) = (section.text("name"), section.text("type").unwrap_or("ethernet")) else {
            continue;
        };
        let mut status = link(device, kind, 0x10, true, None);
        status["statistics"] = statistics(device.age(), 6, true);
        if kind == "bridge" {
            status["bridge-members"] = json!(section.list("ports"));
            let vlans = network.of_kind("bridge-vlan").filter(|vlan| vlan.text("device") == Some(name));
            let vlans: Vec<Value> = vlans
                .map(|vlan| {
                    json!({
                        "id": vlan.text("vlan").and_then(|id| id.parse::<u16>().ok()).unwrap_or(0),
                        "local": vlan.is_on("local", true),
                        "ports": vlan.list("ports"),
                    })
                })
                .collect();
            if !vlans.is_empty() {
                status["bridge-vlans"] = json!(vlans);
            }
        }
        out.insert(name.to_owned(), status);
    }
    out
}

fn link(device: &Device, kind: &str, mac: u8, has_carrier: bool, speed: Option<&str>) -> Value {
    let mut out = json!({
        "external": false, "present": true, "type": kind, "up": true, "carrier": has_carrier,
        "auth_status": false, "mtu": if kind == "loopback" { 65_536 } else { 1500 },
        "macaddr": if mac == 0 { "00:00:00:00:00:00".to_owned() } else { format!("94:83:c4:a0:b1:{mac:02x}") },
        "statistics": statistics(device.age(), 0, true),
    });
    if let Some(speed) = speed {
        out["speed"] = json!(speed);
        out["autoneg"] = json!(true);
    }
    out
}

/// Counters that grow with time, each device at its own rate.
fn statistics(age: Duration, rate: u64, is_linked: bool) -> Value {
    let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let grown = |base: u64, per_ms: u64| if is_linked { rate * (base + millis * per_ms) } else { 0 };
    json!({
        "rx_bytes": grown(5_812_345_678, 1400), "tx_bytes": grown(912_345_678, 300),
        "rx_packets": grown(4_812_345, 2), "tx_packets": grown(1_912_345, 1),
        "rx_errors": 0, "tx_errors": 0, "rx_dropped": grown(17, 0), "tx_dropped": 0, "multicast": grown(2_345, 0),
        "collisions": 0,
    })
}

/// The same devices as `luci-rpc` prints them.
pub(super) fn luci_devices(device: &Device) -> Value {
    let mut out = Map::new();
    for (name, status) in devices(device) {
        let addresses: Vec<Value> = interfaces(device)
            .into_iter()
            .filter(|interface| interface["device"] == json!(name))
            .flat_map(|interface| interface["ipv4-address"].as_array().cloned().unwrap_or_default())
            .map(|address| json!({ "address": address["address"], "netmask": address["mask"] }))
            .collect();
        let entry = json!({
            "name": name, "wireless": false, "up": status["up"], "mtu": status["mtu"], "mac": status["macaddr"],
            "devtype": status["type"], "ipaddrs": addresses, "ip6addrs": [], "stats": status["statistics"],
            "link": { "carrier": status["carrier"], "speed": speed(&status), "duplex": "full" },
            "bridge": status["type"] == "bridge", "ports": status.get("bridge-members").cloned().unwrap_or(json!([])),
        });
        out.insert(name, entry);
    }
    Value::Object(out)
}

fn speed(status: &Value) -> i64 {
    status["speed"].as_str().and_then(|speed| speed.trim_end_matches(['F', 'H']).parse().ok()).unwrap_or(-1)
}
