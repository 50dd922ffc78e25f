//! What objects of each kind hold.

use heddle_sdk::Origin;
use serde_json::json;

use super::*;

#[test]
fn nodes_are_hypervisors_with_certificates_services_and_newer_software() {
    let device = cluster();
    let node = json!({
        "role": "hypervisor", "name": "pve1", "version": "9.1.3", "state": "online",
        "memory_bytes": 68_719_476_736_u64,
    });
    assert_eq!(settled(&device, "system", "pve1"), node);
    let moving = one(&device, "system", "pve1");
    assert!(moving["cpu_percent"].as_f64().is_some_and(|share| share > 1.0), "{moving}");
    assert!(moving["uptime_s"].as_u64().is_some_and(|secs| secs > 19 * 86_400), "{moving}");
    assert_eq!(
        one(&device, "firmware", "pve2"),
        json!({ "current": "9.1.3", "available": "9.1.4", "state": "available" })
    );
    assert_eq!(
        one(&device, "service", "pve2:cron"),
        json!({ "name": "cron", "label": "cron daemon", "enabled": true, "running": true })
    );
    let certificate = one(&device, "certificate", "pve1:pve-ssl.pem");
    assert_eq!(certificate["name"], "pve-ssl.pem");
    assert_eq!(certificate["alternative_names"], json!(["pve1", "localhost", "127.0.0.1"]));
    assert_eq!(certificate["not_after"], "2027-10-03T00:13:00Z");
    assert!(
        certificate["subject"].as_str().is_some_and(|subject| subject.contains("CN=pve1")),
        "{certificate}"
    );
}

#[test]
fn node_that_is_away_is_told_with_what_is_known_of_it() {
    let device = cluster();
    device.edit(&json!({ "edit": "node_power", "node": "pve2", "on": false }));
    device.wait_ms(60_000);
    let (nodes, _, is_complete) = read(&device, "system");
    let away = nodes.iter().find(|node| node.key == "pve2").unwrap();
    assert_eq!(fields(away)["state"], "offline");
    assert!(!fields(away).contains_key("version") && !is_complete);
    // What is on it cannot be read, and is not told to be gone.
    let (guests, _, is_complete) = read(&device, "guest");
    assert!(!is_complete && guests.iter().any(|guest| guest.key == "101"));
    // The cluster knows that there is such a guest, and not what cards it has.
    let away = guests.iter().find(|guest| guest.key == "102").unwrap();
    assert_eq!((&fields(away)["system"], fields(away).get("nics")), (&json!("pve2"), None));
    // What the other node has is told.
    for kind in ["backup", "disk", "interface", "volume", "snapshot", "firewall-rule"] {
        let (objects, _, is_complete) = read(&device, kind);
        assert!(!objects.is_empty(), "{kind}");
        assert!(!is_complete || kind == "volume", "{kind}: the cluster knows of storages");
    }
}

#[test]
fn storages_are_asked_for_their_backups_alone() {
    let device = cluster();
    let (backups, ..) = read(&device, "backup");
    let asked = device.asked.borrow();
    let contents: Vec<&String> = asked.iter().filter(|path| path.contains("/content")).collect();
    assert!(!backups.is_empty() && !contents.is_empty());
    assert!(contents.iter().all(|path| path.ends_with("/content?content=backup")), "{contents:?}");
}

#[test]
fn interfaces_know_what_they_stand_on_and_are_a_part_of() {
    let device = cluster();
    assert_eq!(
        one(&device, "interface", "pve1:eno1"),
        json!({ "name": "eno1", "type": "physical", "link": "up", "master": "vmbr0" })
    );
    assert_eq!(
        one(&device, "interface", "pve2:vmbr0"),
        json!({ "name": "vmbr0", "type": "bridge", "enabled": true, "link": "up", "addresses": ["192.0.2.12/24"] })
    );
    assert_eq!(
        one(&device, "interface", "pve2:vmbr0.20"),
        json!({ "name": "vmbr0.20", "type": "vlan", "enabled": true, "link": "up", "lower": "vmbr0", "vlan_id": 20,
                "mtu": 1500, "addresses": ["10.20.0.2/24"] })
    );
    let way = json!({ "destination": "0.0.0.0/0", "type": "unicast", "next_hop": "192.0.2.1", "interface": "vmbr0",
                      "origin_type": "static" });
    assert_eq!(one(&device, "route", "pve1:vmbr0:192.0.2.1"), way);
    assert_eq!(
        one(&device, "gateway", "pve1:vmbr0:192.0.2.1"),
        json!({ "interface": "vmbr0", "address": "192.0.2.1" })
    );
}

#[test]
fn networks_are_vlans_where_their_zone_is_of_that_type() {
    let device = cluster();
    assert_eq!(
        one(&device, "vlan", "servers"),
        json!({ "vlan_id": 40, "name": "Servers", "subnets": ["10.40.0.0/24"], "gateway": "10.40.0.1",
                "dhcp": "none", "interface": "servers" })
    );
    assert_eq!(
        one(&device, "vlan", "visitors"),
        json!({ "name": "Visitors", "subnets": ["10.50.0.0/24"], "gateway": "10.50.0.1", "dhcp": "server",
                "interface": "visitors" })
    );
    assert_eq!(
        one(&device, "vlan", "far"),
        json!({ "name": "far", "subnets": [], "dhcp": "none", "interface": "far" })
    );
    assert_eq!(
        one(&device, "dhcp-pool", "visitors:10.50.0.0/24"),
        json!({ "interface": "visitors", "ranges": [{ "from": "10.50.0.100", "to": "10.50.0.200" }],
                "enabled": true, "gateway": "10.50.0.1", "dns_servers": ["10.50.0.1"] })
    );
    assert_eq!(
        one(&device, "dhcp-reservation", "servers:10.40.0.8"),
        json!({ "scope": "servers", "mac": "bc:24:11:00:03:00", "address": "10.40.0.8", "hostname": "db" })
    );
}

#[test]
fn rules_say_in_which_list_and_place_they_are() {
    let device = cluster();
    assert_eq!(
        one(&device, "firewall-rule", "cluster:0"),
        json!({ "scope": { "kind": "table", "key": "cluster" }, "position": 0, "name": "ssh from the office",
                "enabled": true, "action": "accept", "direction": "in", "final": true,
                "source": { "groups": ["office"] }, "destination": { "any": true }, "partial": ["macro SSH"] })
    );
    assert_eq!(
        one(&device, "firewall-rule", "node/pve1:0"),
        json!({ "scope": { "kind": "table", "key": "node/pve1" }, "position": 0, "enabled": true,
                "action": "reject", "direction": "out", "to": ["vmbr0"], "source": { "any": true },
                "destination": { "addresses": ["10.20.0.0/24"] }, "protocol": "tcp",
                "destination_ports": ["25", "1000-2000"], "log": true, "final": true })
    );
    assert_eq!(
        one(&device, "firewall-rule", "vnet/servers:0"),
        json!({ "scope": { "kind": "table", "key": "vnet/servers" }, "position": 0,
                "name": "no names from outside", "enabled": true, "action": "drop", "direction": "forward",
                "from": ["vmbr0"], "source": { "addresses": ["10.40.0.0/24"], "groups": ["office"] },
                "destination": { "any": true }, "protocol": "udp", "source_ports": ["53"], "log": false,
                "final": true })
    );
    assert_eq!(
        one(&device, "firewall-rule", "qemu/101:0"),
        json!({ "scope": { "kind": "table", "key": "qemu/101" }, "position": 0, "enabled": true,
                "action": "unknown", "source": { "any": true }, "destination": { "any": true },
                "partial": ["group webserver"] })
    );
    assert_eq!(one(&device, "firewall-rule", "lxc/200:0")["partial"], json!(["icmp-type echo-request"]));
    assert_eq!(one(&device, "firewall-rule", "group/webserver:0")["scope"]["kind"], "chain");
    assert_eq!(
        one(&device, "address-group", "office"),
        json!({ "name": "office", "type": "addresses", "members": ["198.51.100.0/24"] })
    );
    assert_eq!(
        one(&device, "address-group", "+management"),
        json!({ "name": "management", "type": "addresses", "members": ["10.20.0.0/24", "!10.20.0.9"] })
    );
}

#[test]
fn guests_have_their_cards_and_what_they_may_use() {
    let device = cluster();
    assert_eq!(
        settled(&device, "guest", "100"),
        json!({
            "id": "100", "name": "router", "type": "vm", "system": "pve1", "state": "running", "cpus": 2.0,
            "memory_bytes": 2_147_483_648_u64, "disk_bytes": 17_179_869_184_u64, "template": false,
            "tags": ["core", "network"],
            "nics": [{ "mac": "bc:24:11:00:01:00", "network": "vmbr0" },
                     { "mac": "bc:24:11:00:01:01", "network": "vmbr0", "vlan_id": 20 }],
        })
    );
    assert_eq!(
        settled(&device, "guest", "200"),
        json!({
            "id": "200", "name": "dns", "type": "container", "system": "pve1", "state": "running", "cpus": 1.0,
            "memory_bytes": 536_870_912_u64, "disk_bytes": 8_589_934_592_u64, "template": false,
            "addresses": ["10.20.0.53"],
            "nics": [{ "mac": "bc:24:11:00:06:00", "network": "vmbr0", "vlan_id": 20 }],
        })
    );
    let sleeping = settled(&device, "guest", "103");
    assert_eq!((&sleeping["state"], &sleeping["lock"]), (&json!("suspended"), &json!("suspended")));
    assert_eq!(one(&device, "guest", "104")["template"], true);
    let moving = one(&device, "guest", "101");
    assert!(moving["uptime_s"].as_u64().is_some_and(|secs| secs > 12 * 86_400), "{moving}");
    assert!(moving["memory_used_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 30), "{moving}");
}

#[test]
fn snapshots_and_backups_say_what_they_are_of() {
    let device = cluster();
    assert_eq!(
        one(&device, "snapshot", "101:later"),
        json!({ "of": { "kind": "guest", "key": "101" }, "name": "later", "parent": "before",
                "created_at": "2026-01-01T00:11:01Z" })
    );
    assert_eq!(one(&device, "snapshot", "200:clean")["of"]["key"], "200");
    let (backups, ..) = read(&device, "backup");
    // Both nodes list what is on the shared storage.
    let shown: Vec<(Option<&str>, Value)> =
        backups.iter().map(|one| (one.device.as_deref(), Value::Object(fields(one)))).collect();
    assert_eq!(
        shown,
        [(
            Some("storage/nas"),
            json!({ "of": { "kind": "guest", "key": "101" }, "created_at": "2026-01-01T00:00:00Z",
                    "size_bytes": 2_253_389_824_u64 })
        )]
    );
}

#[test]
fn storages_pools_and_disks_are_of_their_node_or_shared() {
    let device = cluster();
    let (volumes, ..) = read(&device, "volume");
    let mut keys: Vec<&str> = volumes.iter().map(|volume| volume.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["nas", "pve1:local", "pve1:local-lvm", "pve2:local", "pve2:local-lvm", "zfs:pve1:tank"]
    );
    assert_eq!(
        settled(&device, "volume", "nas"),
        json!({ "name": "nas", "type": "nfs", "total_bytes": 4_398_046_511_104_u64, "state": "online" })
    );
    assert_eq!(
        one(&device, "volume", "zfs:pve1:tank"),
        json!({ "name": "tank", "type": "zfs", "total_bytes": 3_985_729_650_688_u64,
                "used_bytes": 1_200_000_000_000_u64, "state": "degraded" })
    );
    let (disks, ..) = read(&device, "disk");
    let disk = disks.iter().find(|disk| disk.label == "/dev/nvme0n1").unwrap();
    let shown = fields(disk);
    let serial = shown["serial"].as_str().unwrap().to_owned();
    assert_eq!(disk.key, format!("pve1:{serial}"));
    assert_eq!(
        Value::Object(shown),
        json!({ "name": "/dev/nvme0n1", "model": "SAMSUNG MZQL2960HCJR", "serial": serial,
                "size_bytes": 960_197_124_096_u64, "health": "ok", "used_for": "LVM" })
    );
    assert!(disks.iter().all(|disk| matches!(disk.origin, Origin::Own)));
}
