//! What single features need that their types do not tell.

use serde_json::{Value, json};

/// Fields of a create. `!update` and `!other` are changes, `!of` names the row that is written.
pub(super) fn fields(feature: &str) -> Value {
    match feature {
        "firewall.filter" | "firewall.ipv6-filter" => json!({ "chain": "forward", "action": "drop" }),
        "firewall.nat" | "firewall.ipv6-nat" => json!({ "chain": "srcnat", "action": "masquerade" }),
        "firewall.mangle" | "firewall.raw" | "firewall.ipv6-mangle" | "firewall.ipv6-raw" => {
            json!({
                "chain": "prerouting", "action": "accept", "!update": { "action": "log" },
                "!other": { "chain": "output" },
            })
        }
        "firewall.address-list" => {
            json!({ "list": "sample", "address": "192.0.2.7", "!other": { "disabled": true } })
        }
        "firewall.ipv6-address-list" => {
            json!({ "list": "sample", "address": "2001:db8::/64", "!other": { "disabled": true } })
        }
        "ip.address" => {
            json!({ "address": "192.0.2.1/24", "interface": "ether5", "!other": { "disabled": true } })
        }
        "ip.ipv6-address" => json!({ "address": "2001:db8:9::1/64", "interface": "ether5" }),
        "dns.static" => json!({ "name": "sample.example", "type": "A", "address": "192.0.2.7" }),
        "dhcp.pool" => json!({ "ranges": ["192.0.2.10-192.0.2.20"] }),
        "dhcp.server-network" => json!({ "address": "192.0.2.0/24" }),
        "dhcp.server-lease" => json!({ "address": "192.0.2.77", "mac-address": "02:00:00:00:00:77" }),
        "routing.route" => json!({ "dst-address": "198.51.100.0/24", "gateway": "192.0.2.1" }),
        "routing.ipv6-route" => json!({ "dst-address": "2001:db8:5::/48", "gateway": "2001:db8::1" }),
        "queues.simple" => {
            json!({ "target": ["192.0.2.7/32"], "!update": { "max-limit": [10_000_000, 20_000_000] } })
        }
        "dhcp.client" | "dhcp.ipv6-client" => json!({ "interface": "ether5" }),
        "interfaces.bridge-port" => json!({ "bridge": "bridge", "interface": "sample" }),
        "interfaces.bridge-vlan" => json!({ "bridge": "bridge" }),
        "interfaces.macsec" | "interfaces.macvlan" => {
            json!({ "!update": { "mtu": 1400 }, "!other": { "disabled": true } })
        }
        "interfaces.list-member" => json!({ "list": "LAN", "interface": "ether5" }),
        "hotspot.server" | "routing.rip-keys" | "routing.table" => json!({ "!update": { "disabled": true } }),
        "security.user" | "interfaces.interface" => {
            json!({ "!update": { "comment": "sample" }, "!other": { "disabled": true } })
        }
        "system.clock" => json!({ "!other": null }),
        "system.clock-manual" => {
            json!({ "!update": { "dst-end": "jan/02/1970 00:00:00" }, "!other": null })
        }
        "system.file" => json!({
            "name": "note.txt", "contents": "one", "!update": { "contents": "two" },
            "!other": { "contents": "three" },
        }),
        "vpn.wireguard-peers" => json!({
            "interface": "wireguard1", "allowed-address": ["10.99.0.7/32"],
            "public-key": "hJQ0mR4vqX8rE4B1d7zv0w9dQm2m3xJmX4m5c6Ynq1A=",
        }),
        "security.own.password" => json!({
            "old-password": heddle_lab_mikrotik::Settings::default().admin.1, "new-password": "another secret",
            "confirm-new-password": "another secret",
        }),
        "system.backup.load" => json!({ "name": "before.backup" }),
        "system.root.import" | "security.certificate.import" => json!({ "file-name": "note.txt" }),
        "system.tool-e-mail.send" => json!({ "to": ["a@lab.example"] }),
        "system.tool.fetch" => json!({ "url": "https://files.lab.example/a" }),
        "vpn.ipsec-identity" => json!({ "peer": "sample" }),
        "vpn.ipsec-key-qkd.get-key" => json!({ "number": 1 }),
        "system.root.execute" => json!({ "script": ":put done" }),
        "system.package.uninstall" => json!({ "!of": { "name": "wifi-qcom" } }),
        "system.tool.wol" => json!({ "mac": "02:00:00:00:00:77", "interface": "bridge" }),
        _ => json!({}),
    }
}

/// What has to be there: commands of menus.
pub(super) fn needed(feature: &str) -> Vec<(&'static str, &'static str, Value)> {
    match feature {
        "system.backup.load" => vec![("system/backup", "save", json!({ "name": "before" }))],
        "system.root.import" | "security.certificate.import" => {
            vec![("file", "add", json!({ "name": "note.txt", "contents": ":put done" }))]
        }
        "security.certificate.export-certificate" | "security.certificate.issued-revoke" => vec![
            ("certificate", "add", json!({ "name": "sample", "common-name": "sample.example" })),
            ("certificate", "sign", json!({ "number": "sample" })),
        ],
        "interfaces.bridge-port" => vec![(
            "interface/vlan",
            "add",
            json!({ "name": "sample", "vlan-id": "77", "interface": "ether1" }),
        )],
        "system.package.apply-changes" => {
            vec![("system/package", "disable", json!({ "numbers": "wifi-qcom" }))]
        }
        "system.script-job" => vec![(
            "system/scheduler",
            "add",
            json!({ "name": "sample", "on-event": ":delay 100s", "interval": "2s" }),
        )],
        "vpn.ipsec-identity" => vec![(
            "ip/ipsec/peer",
            "add",
            json!({ "name": "sample", "address": "198.51.100.79/32", "local-address": "198.51.100.7" }),
        )],
        _ => Vec::new(),
    }
}

/// Values of a row that the router makes of what it hears, beside those that name it.
pub(super) fn heard(kind: &str) -> Value {
    match kind {
        "dhcp.ipv6-dynamic-binding" => json!({ "dynamic": "true" }),
        _ => json!({}),
    }
}
