//! What objects of each kind hold.

use heddle_sdk::Origin;
use serde_json::json;

use super::*;

/// The same without what moves by itself.
fn settled(device: &Device, kind: &str, key: &str) -> Value {
    let mut object = one(device, kind, key);
    let schema = model::find(kind).unwrap();
    object.as_object_mut().unwrap().retain(|name, _| !schema.is_measured(name));
    object
}

#[test]
fn devices_are_systems_with_newer_software() {
    let device = controller();
    assert_eq!(
        settled(&device, "system", SWITCH),
        json!({ "role": "switch", "name": "Core switch", "version": "4.20.5 Build 20250110 Rel.40112",
                "serial": "220000000032", "model": "SG3428MP", "state": "online" })
    );
    let moving = one(&device, "system", GATEWAY);
    assert_eq!((&moving["role"], &moving["cpu_percent"]), (&json!("router"), &json!(9.0)));
    assert!(moving["uptime_s"].as_u64().is_some_and(|secs| secs > 12 * 86_400), "{moving}");
    assert_eq!(
        one(&device, "firmware", GATEWAY),
        json!({ "current": "2.1.2 Build 20240324 Rel.42799", "available": "2.2.0 Build 20250905 Rel.50121",
                "state": "available" })
    );
    assert_eq!(
        one(&device, "firmware", "3c:6a:d2:00:01:21"),
        json!({ "current": "1.0.2 Build 20250301 Rel.10211", "state": "current" })
    );
}

#[test]
fn device_that_is_away_is_offline() {
    let device = controller();
    let edit = json!({ "site": device.sites[0], "device": "3C-6A-D2-00-01-32", "state": "down" });
    device.lab().edit(&edit).unwrap();
    assert_eq!(one(&device, "system", "3c:6a:d2:00:01:32")["state"], "offline");
}

#[test]
fn ports_have_their_vlans_power_and_counters() {
    let device = controller();
    let port = one(&device, "port", &format!("{SWITCH}:2"));
    assert_eq!(
        port,
        json!({
            "number": 2, "name": "Port2", "enabled": true, "link": "up", "speed_mbps": 1000, "duplex": "full",
            "native_vlan": 1, "tagged_mode": "all", "isolated": false, "profile": "All", "stp_state": "forwarding",
            "poe": { "supported": true, "enabled": true, "power_mw": 11_500, "class": "Class 4" },
            "counters": { "rx_bytes": 163_840_000, "tx_bytes": 81_920_000, "rx_packets": 182_044,
                          "tx_packets": 91_022, "rx_errors": 0, "tx_errors": 0 },
        })
    );
    assert_eq!(
        one(&device, "port", &format!("{SWITCH}:29")),
        json!({ "number": 29, "name": "Trunk", "enabled": false, "link": "down", "tagged_mode": "list",
                "tagged_vlans": [20], "stp_state": "disabled", "lag": "3", "poe": { "supported": false } })
    );
    assert_eq!(
        one(&device, "neighbour", &format!("{SWITCH}:24:3C-6A-D2-00-01-21")),
        json!({ "port": "1/0/24", "remote_chassis": "3c:6a:d2:00:01:21", "remote_port": "1",
                "remote_name": "Desk switch", "protocol": "lldp" })
    );
}

#[test]
fn older_controller_tells_less_of_its_ports() {
    let device = Device::new();
    device.lab().edit(&json!({ "missing": ["GET v1 site switches/ports/overview"] })).unwrap();
    let (ports, _, is_complete) = read(&device, "port");
    // The easy managed switch has its ports at another path.
    assert_eq!((ports.len(), is_complete), (28, true));
    assert_eq!(
        one(&device, "port", &format!("{SWITCH}:2")),
        json!({ "number": 2, "name": "Port2", "enabled": true, "profile": "All",
                "poe": { "enabled": true } })
    );
}

#[test]
fn interfaces_lead_to_the_internet_and_into_networks() {
    let device = controller();
    let wan = one(&device, "interface", &format!("{GATEWAY}:1"));
    let counters = &wan["counters"];
    assert!(counters["rx_bytes"].as_u64() > counters["tx_bytes"].as_u64(), "{counters}");
    assert_eq!(
        settled(&device, "interface", &format!("{GATEWAY}:1")),
        json!({ "name": "WAN/LAN1", "type": "physical", "role": "wan", "mac": GATEWAY, "link": "up",
                "speed_mbps": 1000, "addresses": ["203.0.113.10/24"] })
    );
    assert_eq!(
        one(&device, "interface", &format!("{GATEWAY}:Staff")),
        json!({ "name": "Staff", "type": "vlan", "role": "lan", "vlan_id": 20, "addresses": ["10.4.20.1"] })
    );
    assert_eq!(
        one(&device, "interface", &format!("{SWITCH}:Default")),
        json!({ "name": "Default", "type": "vlan", "role": "management", "vlan_id": 1,
                "addresses": ["10.4.0.32/24"] })
    );
    assert_eq!(
        one(&device, "gateway", &format!("{GATEWAY}:1")),
        json!({ "name": "WAN/LAN1", "interface": "WAN/LAN1", "address": "203.0.113.1", "state": "online",
                "delay_ms": 11.0 })
    );
    assert_eq!(
        one(&device, "route", "lab:192.168.77.0/24"),
        json!({ "destination": "192.168.77.0/24", "type": "unicast", "next_hop": "10.4.20.2", "metric": 0,
                "name": "lab", "enabled": true, "origin_type": "static" })
    );
}

#[test]
fn networks_give_addresses_and_have_members() {
    let device = controller();
    assert_eq!(
        one(&device, "vlan", "Staff"),
        json!({ "vlan_id": 20, "name": "Staff", "subnets": ["10.4.20.0/24"], "gateway": "10.4.20.1",
                "dhcp": "server", "members": [
                    { "port": format!("{SWITCH}:5"), "tagged": false },
                    { "port": format!("{SWITCH}:2"), "tagged": true },
                    { "port": format!("{SWITCH}:29"), "tagged": true },
                ] })
    );
    assert_eq!(one(&device, "vlan", "Lab")["dhcp"], "none");
    assert_eq!(
        one(&device, "dhcp-pool", "Lab"),
        json!({ "interface": "Lab", "ranges": [{ "from": "10.4.50.10", "to": "10.4.50.20" }], "enabled": false,
                "lease_seconds": 3_600, "dns_servers": ["9.9.9.9", "149.112.112.112"],
                "domain": "lab.example.org", "options": [{ "code": 66, "value": "tftp.example.org" }] })
    );
    assert_eq!(one(&device, "dhcp-pool", "Staff").get("dns_servers"), None, "it tells its own");
    assert_eq!(
        one(&device, "dhcp-reservation", "a4:2b:00:00:00:00"),
        json!({ "scope": "Staff", "mac": "a4:2b:00:00:00:00", "address": "10.4.20.9", "hostname": "printer" })
    );
    assert_eq!(
        one(&device, "dhcp-lease", "Staff:10.4.20.50"),
        json!({ "scope": "Staff", "mac": "a4:2b:00:00:00:01", "address": "10.4.20.50", "hostname": "phone-002" })
    );
    assert_eq!(
        one(&device, "dns-record", "66a0-dns-1:2001:db8::10"),
        json!({ "name": "files.example.org", "type": "AAAA", "value": "2001:db8::10", "ttl_seconds": 300,
                "enabled": true })
    );
    assert_eq!(one(&device, "dns-record", "66a0-dns-2:files.example.org")["type"], "CNAME");
}

#[test]
fn clients_are_seen_from_where_they_are_connected() {
    let device = Device::new();
    let (clients, ..) = read(&device, "client");
    let phone = clients.iter().find(|client| client.key == "a4:2b:00:00:00:01").unwrap();
    assert_eq!(phone.device.as_deref(), Some("3c:6a:d2:00:01:31"));
    assert!(matches!(phone.origin, Origin::Derived));
    assert_eq!(
        settled(&device, "client", "a4:2b:00:00:00:01"),
        json!({ "mac": "a4:2b:00:00:00:01", "addresses": ["10.4.20.50"], "hostname": "phone-002",
                "connection": "wireless", "ssid": "Office", "vlan_id": 20, "band": "5", "blocked": false })
    );
    let moving = one(&device, "client", "a4:2b:00:00:00:01");
    assert_eq!(moving["signal_dbm"], -49.0);
    assert_eq!((&moving["down_bytes"], &moving["up_bytes"]), (&json!(3_193_200), &json!(818_300)));
    assert_eq!(moving["last_seen_at"], "2026-01-01T00:00:00Z");
    let wired = settled(&device, "client", "a4:2b:00:00:00:02");
    assert_eq!((&wired["connection"], &wired["port"]), (&json!("wired"), &json!("1/0/7")));
}

#[test]
fn clients_are_told_once_however_the_controller_is_asked() {
    let device = Device::with(Seed { sites: 1, clients: 20, ..Seed::default() }, "lab-secret");
    let keys = |device: &Device| {
        let (clients, ..) = read(device, "client");
        let keys: BTreeSet<String> = clients.iter().map(|client| client.key.clone()).collect();
        assert_eq!(keys.len(), clients.len());
        keys
    };
    let all = keys(&device);
    assert_eq!(all.len(), 20, "every tenth is known and not online");
    device.lab().edit(&json!({ "missing": ["GET v1 site clients"] })).unwrap();
    assert_eq!(keys(&device), all);
    device.lab().edit(&json!({ "missing": ["POST v2 site clients"] })).unwrap();
    assert_eq!(keys(&device), all);
    let known = settled(&device, "client", "a4:2b:00:00:00:09");
    assert_eq!(known.get("addresses"), None);
}

#[test]
fn wireless_networks_and_radios_are_as_they_are_set_and_as_they_send() {
    let device = controller();
    assert_eq!(
        one(&device, "ssid", "Default:Office"),
        json!({ "name": "Office", "security": "wpa2-psk", "vlan_id": 20, "bands": ["2.4", "5"], "hidden": false,
                "guest": false, "fast_roaming": false, "pmf": "off", "multiple_keys": false })
    );
    assert_eq!(
        one(&device, "ssid", "Default:Enterprise"),
        json!({ "name": "Enterprise", "security": "wpa2-enterprise", "bands": ["5", "6"], "hidden": true,
                "guest": false, "fast_roaming": true, "pmf": "required", "multiple_keys": false,
                "radius_profile": "Office RADIUS" })
    );
    assert_eq!(
        one(&device, "radio", "3c:6a:d2:00:01:30:radioSetting5g"),
        json!({ "enabled": true, "band": "5", "channel": 36, "channel_auto": true, "width_mhz": 40,
                "tx_power_dbm": 26, "power_level": "auto", "utilization_percent": 23 })
    );
    assert_eq!(
        one(&device, "radius-profile", "Office RADIUS"),
        json!({ "name": "Office RADIUS", "vlan_assignment": true,
                "servers": [{ "address": "10.4.20.5", "port": 1812, "accounting": false }] })
    );
    assert_eq!(
        one(&device, "radius-user", "1:A4-2B-00-00-00-07"),
        json!({ "name": "A4-2B-00-00-00-07", "mac": "a4:2b:00:00:00:07", "vlan_id": 30 })
    );
}

#[test]
fn rules_name_what_the_controller_has_ids_of() {
    let device = controller();
    let (rules, ..) = read(&device, "firewall-rule");
    let rule = rules.iter().find(|rule| rule.label == "things-to-servers").unwrap();
    assert_eq!(
        Value::Object(fields(rule)),
        json!({ "scope": { "kind": "table", "key": "gateway" }, "position": 0, "name": "things-to-servers",
                "enabled": true, "action": "drop", "direction": "forward", "from": ["LAN"], "to": ["LAN"],
                "source": { "networks": ["Things"] }, "destination": { "groups": ["Servers"] },
                "protocol": "any", "log": false, "final": true })
    );
    assert_eq!(
        one(&device, "firewall-rule", "66a0-acl-2"),
        json!({ "scope": { "kind": "table", "key": "switch" }, "position": 0, "name": "no telnet",
                "enabled": false, "action": "drop", "from": ["Enterprise"],
                "destination": { "networks": ["Staff", "gone"] }, "protocol": "tcp", "final": true,
                "partial": ["schedule", "ports"] })
    );
    assert_eq!(
        one(&device, "nat-rule", "66a0-nat-2"),
        json!({ "name": "ssh", "type": "port-forward", "protocol": "any", "source": ["198.51.100.0/24"],
                "external": { "addresses": ["203.0.113.10"], "ports": ["2200-2210"] },
                "internal": { "addresses": ["10.4.20.11"], "ports": ["22"] }, "enabled": true })
    );
    assert_eq!(one(&device, "nat-rule", "66a0-nat-1")["type"], "one-to-one");
    let (groups, ..) = read(&device, "address-group");
    let any = groups.iter().find(|group| group.label == "IPGroup_Any").unwrap();
    assert!(matches!(any.origin, Origin::Vendor));
    assert_eq!(
        one(&device, "address-group", "0:Servers"),
        json!({ "name": "Servers", "type": "addresses", "members": ["10.4.20.10/32"] })
    );
}

#[test]
fn tunnels_have_ends_peers_and_users() {
    let device = controller();
    assert_eq!(
        one(&device, "vpn-tunnel", "66a0-vpn-1"),
        json!({ "type": "ipsec", "name": "to-branch", "enabled": true, "local_networks": ["10.4.20.0/24"],
                "remote_endpoint": "198.51.100.7", "remote_networks": ["10.9.0.0/16"] })
    );
    assert_eq!(
        one(&device, "vpn-tunnel", "66a0-vpn-2"),
        json!({ "type": "openvpn", "name": "road", "enabled": true, "local_networks": ["10.4.20.0/24"] })
    );
    assert_eq!(
        one(&device, "vpn-peer", "x:k2"),
        json!({ "tunnel": "wg-remote", "name": "branch", "public_key": "k2", "allowed": ["10.88.0.3/32"],
                "endpoint": "198.51.100.9:51820" })
    );
    let (sessions, ..) = read(&device, "vpn-session");
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        Value::Object(fields(&sessions[0])),
        json!({ "tunnel": "road", "user": "ada", "remote_address": "198.51.100.2" })
    );
    assert_eq!(
        one(&device, "certificate", "66a0-cert-1"),
        json!({ "name": "office", "not_after": "2027-01-15T08:00:00Z" })
    );
    let (backups, ..) = read(&device, "backup");
    assert!(backups[0].key.starts_with("omada_backup_"), "{}", backups[0].key);
    assert!(fields(&backups[0])["created_at"].as_str().unwrap().starts_with("2026-01-01T00:"));
}

#[test]
fn peers_of_wireguard_stand_in_tunnels_and_servers_too() {
    let device = controller();
    let site = format!("/openapi/v2/{}/sites/{}/vpn", device.controller, device.sites[0]);
    for (path, row) in [
        (
            "site-to-site-vpns",
            json!({ "id": "66a0-vpn-3", "name": "mesh", "status": true, "vpnType": 4, "remoteIp": "0.0.0.0",
                    "peers": [{ "name": "north", "serverPublicKey": "n1", "remoteIp": "2001:db8::7",
                                "servicePort": 51820, "remoteSubnet": ["10.8.0.0/16"], "preSharedKey": "not-to-be-told" },
                              { "name": "nameless" }] }),
        ),
        (
            "client-to-site-vpn-servers",
            json!({ "id": "66a0-vpn-4", "name": "phones", "status": true, "vpnType": 4,
                    "clients": [{ "name": "ada", "publicKey": "p1", "allowedAddress": ["10.99.0.2/32"] }] }),
        ),
    ] {
        device.seed(&format!("{site}/{path}"), &row).unwrap();
    }
    assert_eq!(
        one(&device, "vpn-peer", "66a0-vpn-3:n1"),
        json!({ "tunnel": "mesh", "name": "north", "public_key": "n1", "allowed": ["10.8.0.0/16"],
                "endpoint": "[2001:db8::7]:51820" })
    );
    assert_eq!(
        one(&device, "vpn-peer", "66a0-vpn-4:p1"),
        json!({ "tunnel": "phones", "name": "ada", "public_key": "p1", "allowed": ["10.99.0.2/32"] })
    );
    assert_eq!(
        one(&device, "vpn-tunnel", "66a0-vpn-3"),
        json!({ "type": "wireguard", "name": "mesh", "enabled": true })
    );
}
