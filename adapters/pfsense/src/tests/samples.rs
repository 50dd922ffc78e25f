//! Payloads for every feature, and what they need on the firewall before.

use heddle_sdk::Method;
use heddle_sdk::testing::conformance::{Checked, Sample};
use serde_json::{Value, json};

use super::device::Device;
use super::every::short;
use super::{samples_of_actions as actions, samples_of_services as services};

/// A payload, and what it needs on the device.
pub(super) fn prepare(device: &Device, feature: &Value) -> Checked<Sample> {
    let id = short(feature);
    if feature["binding"]["action"].is_object() {
        return actions::prepared(device, id).map(Sample::action);
    }
    let found = match id.split('.').next() {
        Some("firewall" | "nat") => filter(device, id),
        Some("dhcp" | "dns") => names(device, id),
        Some("vpn") => services::tunnels(device, id),
        Some("routing" | "interfaces") => network(id),
        Some("services") => services::services(device, id),
        _ => services::system(device, id),
    };
    found.ok_or_else(|| format!("there is no sample of '{id}'"))
}

/// An object: what names it, what else a new one has, and two different updates.
#[expect(clippy::unnecessary_wraps, reason = "a row of a table that may lack one")]
pub(super) fn item(key: &Value, rest: &Value, update: &Value, other: &Value) -> Option<Sample> {
    let with = |fields: &Value| {
        let mut all = key.clone();
        for (name, value) in fields.as_object().unwrap() {
            all[name.as_str()] = value.clone();
        }
        all
    };
    let given = |fields: &Value| (!fields.is_null()).then(|| with(fields));
    Some(Sample { create: with(rest), update: given(update), other: given(other), delete: key.clone() })
}

/// Settings: two different updates.
#[expect(clippy::unnecessary_wraps, reason = "as an item")]
pub(super) fn settings(update: Value, other: Value) -> Option<Sample> {
    let other = Some(other).filter(|other| !other.is_null());
    Some(Sample { update: Some(update), other, ..Sample::default() })
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn filter(device: &Device, id: &str) -> Option<Sample> {
    let text = json!({ "descr": "changed" });
    match id {
        "firewall.alias" => item(
            &json!({ "name": "sample" }),
            &json!({ "type": "host", "address": ["192.0.2.7"], "detail": ["one"] }),
            &text,
            &json!({ "address": ["192.0.2.7", "192.0.2.8"], "detail": ["one", "two"] }),
        ),
        "firewall.rule" => item(
            &json!({ "descr": "sample" }),
            &json!({ "type": "pass", "interface": ["LAN"], "ipprotocol": "inet", "protocol": "tcp", "source": "LAN",
                "destination": "web_servers", "destination_port": "443" }),
            &json!({ "source": "GUEST" }),
            &json!({ "disabled": true }),
        ),
        "firewall.schedule" => item(
            &json!({ "name": "sample" }),
            &json!({ "timerange": [{ "position": [6, 7], "hour": "0:00-23:59" }] }),
            &json!({ "timerange": [{ "position": [6], "hour": "0:00-23:59" }, { "month": [12], "day": [24], "hour": "12:00-23:59" }] }),
            &text,
        ),
        "firewall.shaper" => item(
            &json!({ "interface": "LAN" }),
            &json!({ "scheduler": "PRIQ", "bandwidthtype": "Mb", "bandwidth": 100,
                "queue": [{ "name": "first", "priority": 3, "qlimit": 50, "default": true }] }),
            &json!({ "bandwidth": 200 }),
            &json!({ "enabled": false }),
        ),
        "firewall.limiter" => item(
            &json!({ "name": "sample" }),
            &json!({ "aqm": "droptail", "sched": "fifo", "bandwidth": [{ "bw": 100, "bwscale": "Mb" }] }),
            &json!({ "bandwidth": [{ "bw": 50, "bwscale": "Mb" }] }),
            &json!({ "mask": "srcaddress" }),
        ),
        "firewall.virtual-ip" => item(
            &json!({ "subnet": "192.168.1.9" }),
            &json!({ "mode": "ipalias", "interface": "LAN", "subnet_bits": 32, "descr": "sample" }),
            &text,
            &json!({ "subnet_bits": 24 }),
        ),
        "nat.one-to-one" => item(
            &json!({ "descr": "sample" }),
            &json!({ "interface": "WAN", "external": "198.51.100.7", "source": "192.168.1.7", "destination": "any" }),
            &json!({ "source": "192.168.1.8" }),
            &json!({ "disabled": true }),
        ),
        "nat.outbound" => item(
            &json!({ "descr": "sample" }),
            &json!({ "interface": "WAN", "source": "192.168.1.0/24", "destination": "any", "target": "198.51.100.7" }),
            &json!({ "source": "192.168.20.0/24" }),
            &json!({ "disabled": true }),
        ),
        "nat.port-forward" => item(
            &json!({ "descr": "sample" }),
            &json!({ "interface": "WAN", "protocol": "tcp", "source": "any", "destination": "WAN:ip",
                "destination_port": "8080", "target": "192.168.1.20", "local_port": "80" }),
            &json!({ "destination_port": "8081" }),
            &json!({ "disabled": true }),
        ),
        "nat.outbound-mode" => settings(json!({ "mode": "hybrid" }), json!({ "mode": "advanced" })),
        "firewall.advanced" => {
            device.person(
                Method::Patch,
                "/firewall/advanced_settings",
                &json!({ "aliasesresolveinterval": 300 }),
            );
            device.lab().edit(&json!({ "do": "apply" })).unwrap();
            settings(json!({ "aliasesresolveinterval": 600 }), json!({ "checkaliasesurlcert": true }))
        }
        "firewall.states-size" => {
            device.person(Method::Patch, "/firewall/states/size", &json!({ "maximumstates": 40_000 }));
            settings(json!({ "maximumstates": 50_000 }), json!({ "maximumstates": 60_000 }))
        }
        _ => None,
    }
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn names(device: &Device, id: &str) -> Option<Sample> {
    let text = json!({ "descr": "changed" });
    match id {
        "dhcp.server" => {
            // Both interfaces of the household have one.
            let third = json!({ "if": "igb2", "descr": "THIRD", "enable": true, "typev4": "static", "ipaddr": "192.0.2.1",
                "subnet": 24, "apply": true });
            device.person(Method::Post, "/interface", &third);
            device.lab().edit(&json!({ "do": "apply" })).unwrap();
            item(
                &json!({ "interface": "THIRD" }),
                &json!({ "range_from": "192.0.2.100", "range_to": "192.0.2.199", "enable": true }),
                &json!({ "range_to": "192.0.2.150" }),
                &json!({ "domain": "sample.example" }),
            )
        }
        "dhcp.pool" => item(
            &json!({ "parent_id": "lan", "range_from": "192.168.1.60", "range_to": "192.168.1.69" }),
            &json!({}),
            &json!({ "domain": "sample.example" }),
            &json!({ "gateway": "192.168.1.2" }),
        ),
        "dhcp.option" => item(
            &json!({ "parent_id": "lan", "number": 66 }),
            &json!({ "type": "text", "value": "dGZ0cA==" }),
            &json!({ "value": "Ym9vdA==" }),
            &json!({ "value": "bmV0" }),
        ),
        "dhcp.reservation" => item(
            &json!({ "parent_id": "lan", "mac": "02:00:00:00:00:77" }),
            &json!({ "ipaddr": "192.168.1.40", "hostname": "sample" }),
            &json!({ "ipaddr": "192.168.1.60" }),
            &text,
        ),
        "dhcp.relay" => {
            device.person(Method::Patch, "/services/dhcp_relay", &json!({ "server": ["192.0.2.8"] }));
            settings(json!({ "agentoption": true }), json!({ "server": ["192.0.2.9"] }))
        }
        "dns.bind.acl" => item(
            &json!({ "name": "sample" }),
            &json!({ "entries": [{ "value": "192.0.2.0/24" }] }),
            &json!({ "entries": [{ "value": "192.0.2.0/24" }, { "value": "198.51.100.0/24", "description": "second" }] }),
            &json!({ "description": "changed" }),
        ),
        "dns.bind.sync.host" => item(
            &json!({ "ipaddress": "192.0.2.7" }),
            &json!({ "syncprotocol": "https", "syncport": "443", "username": "admin", "password": "secret-of-the-peer" }),
            &json!({ "syncport": "8443" }),
            &json!({ "username": "sync" }),
        ),
        "dns.bind.view" => item(
            &json!({ "name": "sample" }),
            &json!({ "recursion": true }),
            &text,
            &json!({ "recursion": false }),
        ),
        "dns.bind.zone" => item(
            &json!({ "name": "sample.example" }),
            &json!({ "type": "master", "baseip": "192.0.2.1", "nameserver": "ns.sample.example", "mail": "admin.sample.example",
                "serial": 2026, "records": [{ "name": "www", "type": "A", "rdata": "192.0.2.7" }] }),
            &json!({ "records": [{ "name": "www", "type": "A", "rdata": "192.0.2.8" }], "serial": 2027 }),
            &json!({ "description": "changed" }),
        ),
        "dns.bind.settings" => settings(json!({ "bind_hide_version": true }), json!({ "bind_notify": true })),
        "dns.bind.sync" => {
            let before = json!({ "synconchanges": "manual", "masterip": "192.0.2.8" });
            device.person(Method::Patch, "/services/bind/sync/settings", &before);
            settings(json!({ "synctimeout": 60 }), json!({ "masterip": "192.0.2.9" }))
        }
        "dns.forwarder.host" => item(
            &json!({ "host": "sample", "domain": "home.example" }),
            &json!({ "ip": "192.0.2.7", "aliases": [{ "host": "other", "domain": "home.example" }] }),
            &json!({ "ip": "192.0.2.8" }),
            &text,
        ),
        "dns.resolver.acl" => item(
            &json!({ "name": "sample" }),
            &json!({ "action": "allow", "networks": [{ "network": "192.0.2.0", "mask": 24 }] }),
            &json!({ "networks": [{ "network": "192.0.2.0", "mask": 25 }] }),
            &json!({ "action": "deny" }),
        ),
        "dns.resolver.domain" => item(
            &json!({ "domain": "sample.example", "ip": "192.0.2.53" }),
            &json!({}),
            &text,
            &json!({ "forward_tls_upstream": true }),
        ),
        "dns.resolver.host" => item(
            &json!({ "host": "sample", "domain": "home.example" }),
            &json!({ "ip": ["192.0.2.7"], "aliases": [{ "host": "other", "domain": "home.example" }] }),
            &json!({ "ip": ["192.0.2.8", "2001:db8::8"] }),
            &text,
        ),
        "dns.resolver.settings" => {
            settings(json!({ "strictout": true }), json!({ "system_domain_local_zone_type": "static" }))
        }
        _ => None,
    }
}

fn network(id: &str) -> Option<Sample> {
    let text = json!({ "descr": "changed" });
    match id {
        "routing.gateway" => item(
            &json!({ "name": "SAMPLE" }),
            &json!({ "ipprotocol": "inet", "interface": "LAN", "gateway": "192.168.1.253" }),
            &json!({ "gateway": "192.168.1.252" }),
            &text,
        ),
        "routing.group" => item(
            &json!({ "name": "SAMPLE" }),
            &json!({ "priorities": [{ "gateway": "WANGW", "tier": 1 }, { "gateway": "LABGW", "tier": 2 }] }),
            &json!({ "priorities": [{ "gateway": "WANGW", "tier": 1 }] }),
            &text,
        ),
        "routing.route" => item(
            &json!({ "network": "192.0.2.0/24" }),
            &json!({ "gateway": "LABGW" }),
            &json!({ "gateway": "WANGW" }),
            &text,
        ),
        "routing.default" => settings(json!({ "defaultgw4": "LABGW" }), json!({ "defaultgw4": "" })),
        "interfaces.interface" => item(
            &json!({ "if": "igb2" }),
            &json!({ "descr": "SAMPLE", "enable": true, "typev4": "static", "ipaddr": "192.0.2.1", "subnet": 24 }),
            &json!({ "ipaddr": "192.0.2.2" }),
            &json!({ "mtu": 1400 }),
        ),
        "interfaces.bridge" => item(
            &json!({ "descr": "sample" }),
            &json!({ "members": ["LAN"] }),
            &json!({ "members": ["LAN", "GUEST"] }),
            &Value::Null,
        ),
        "interfaces.gre" => item(
            &json!({ "descr": "sample" }),
            &json!({ "if": "WAN", "remote_addr": "203.0.113.7", "tunnel_local_addr": "10.11.0.1", "tunnel_remote_addr": "10.11.0.2" }),
            &json!({ "remote_addr": "203.0.113.8" }),
            &json!({ "tunnel_remote_addr": "10.11.0.3" }),
        ),
        "interfaces.group" => item(
            &json!({ "ifname": "sample" }),
            &json!({ "members": ["LAN"] }),
            &json!({ "members": ["LAN", "GUEST"] }),
            &text,
        ),
        "interfaces.lagg" => item(
            &json!({ "descr": "sample" }),
            &json!({ "members": ["igb2"], "proto": "lacp" }),
            &json!({ "proto": "failover" }),
            &json!({ "members": ["igb2", "igb3"] }),
        ),
        "interfaces.vlan" => item(
            &json!({ "if": "igb1", "tag": 77 }),
            &json!({ "descr": "sample" }),
            &text,
            &json!({ "pcp": 3 }),
        ),
        _ => None,
    }
}
