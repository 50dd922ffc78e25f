//! The clients in the house: leases, neighbours, stations.

use serde_json::{Map, Value, json};

use crate::device::Device;

/// One host behind the router.
pub(super) struct Client {
    /// Lower case.
    pub(super) mac: &'static str,
    pub(super) address: &'static str,
    pub(super) hostname: Option<&'static str>,
    /// The wireless interface that it is on; `None` is a cable.
    pub(super) ifname: Option<&'static str>,
    pub(super) signal: i32,
    pub(super) rate_kbits: u32,
    /// Seconds that the lease had left at start; `None` is infinite.
    lease_secs: Option<u64>,
}

const CLIENTS: [Client; 4] = [
    Client {
        mac: "a4:83:e7:11:22:33",
        address: "192.168.1.133",
        hostname: Some("phone"),
        ifname: Some("phy1-ap0"),
        signal: -53,
        rate_kbits: 1_201_000,
        lease_secs: Some(41_213),
    },
    Client {
        mac: "dc:a6:32:44:55:66",
        address: "192.168.1.141",
        hostname: Some("laptop"),
        ifname: Some("phy1-ap0"),
        signal: -61,
        rate_kbits: 864_700,
        lease_secs: Some(39_870),
    },
    Client {
        mac: "7c:2f:80:77:88:99",
        address: "192.168.1.152",
        hostname: None,
        ifname: Some("phy0-ap0"),
        signal: -70,
        rate_kbits: 86_000,
        lease_secs: Some(12_004),
    },
    Client {
        mac: "00:11:32:4a:5b:6c",
        address: "192.168.1.20",
        hostname: Some("nas"),
        ifname: None,
        signal: 0,
        rate_kbits: 0,
        lease_secs: None,
    },
];

/// The host with this MAC.
pub(super) fn of(mac: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.mac == mac)
}

/// Those that are in the house.
pub(super) fn present(device: &Device) -> impl Iterator<Item = &'static Client> {
    CLIENTS.iter().filter(|client| !device.away.contains(client.mac))
}

/// `family` 4 or 6 gives one list, none gives both. An infinite lease expires `false`.
pub(super) fn leases(device: &Device, family: Option<i64>) -> Value {
    let age = device.age().as_secs();
    let v4: Vec<Value> = present(device)
        .map(|client| {
            let expires = client.lease_secs.map_or(json!(false), |secs| json!(secs.saturating_sub(age % secs)));
            let mut lease = json!({ "expires": expires, "macaddr": client.mac.to_uppercase(), "ipaddr": address(device, client) });
            if let Some(hostname) = client.hostname {
                lease["hostname"] = json!(hostname);
            }
            lease
        })
        .collect();
    let v6 = json!([{ "expires": 41_000, "hostname": "laptop", "duid": "000100012a3b4c5ddca632445566",
                      "ip6addr": "fd4a:9c11:7e02::8d2", "ip6addrs": ["fd4a:9c11:7e02::8d2/128"] }]);
    match family {
        Some(4) => json!({ "dhcp_leases": v4 }),
        Some(6) => json!({ "dhcp6_leases": v6 }),
        _ => json!({ "dhcp_leases": v4, "dhcp6_leases": v6 }),
    }
}

/// The address that a host has: the one that a static host entry gives its MAC, else its own.
fn address<'a>(device: &'a Device, client: &Client) -> &'a str {
    let mut hosts = device.config("dhcp").of_kind("host");
    let entry = hosts.find(|host| host.list("mac").iter().any(|mac| mac.eq_ignore_ascii_case(client.mac)));
    entry.and_then(|host| host.text("ip")).unwrap_or(client.address)
}

pub(super) fn hints(device: &Device) -> Value {
    let mut out = Map::new();
    for client in present(device) {
        let mut hint = json!({ "ipaddrs": [address(device, client)], "ip6addrs": [] });
        if let Some(hostname) = client.hostname {
            hint["name"] = json!(hostname);
        }
        out.insert(client.mac.to_uppercase(), hint);
    }
    for host in device.config("dhcp").of_kind("host") {
        for mac in host.list("mac") {
            let known = json!({ "ipaddrs": host.list("ip"), "ip6addrs": [], "name": host.text("name") });
            out.entry(mac.to_uppercase()).or_insert(known);
        }
    }
    Value::Object(out)
}

/// odhcpd's own leases; -1 is infinite.
pub(super) fn odhcpd_leases(device: &Device) -> Value {
    let leases: Vec<Value> = present(device)
        .map(|client| json!({
            "mac": client.mac.replace(':', ""), "hostname": client.hostname.unwrap_or(""), "flags": ["bound"],
            "address": address(device, client),
            "valid": client.lease_secs.map_or(json!(-1), |secs| json!(secs)),
        }))
        .collect();
    json!({ "device": { "br-lan": { "leases": leases } } })
}

pub(super) fn ipv6_leases() -> Value {
    json!({ "device": { "br-lan": { "leases": [{
        "duid": "000100012a3b4c5ddca632445566", "iaid": -1_520_000_001, "hostname": "laptop", "accept-reconf": false,
        "assigned": 2258, "flags": ["bound"], "ipv6-addr": [{ "address": "fd4a:9c11:7e02::8d2",
        "preferred-lifetime": 41_000, "valid-lifetime": 41_000 }], "valid": 41_000,
    }] } } })
}
