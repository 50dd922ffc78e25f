//! The model: what is read of the simulated firewall in the words that all vendors share.

use std::collections::{BTreeMap, BTreeSet};

use heddle_lab_opnsense::{Release, Settings};
use heddle_marketplace::model;
use heddle_sdk::crud::{Modelled, Vendor as _};
use heddle_sdk::testing::every_page;
use heddle_sdk::{Adapter as _, Completeness, ModelObject, Origin};
use serde_json::{Map, Value, json};

use super::device::{Device, description};
use crate::{Opnsense, VENDOR};

/// Items of lists that the household does not have, and what a person stores in them.
const FURTHER: [(&str, &str); 23] = [
    ("Interfaces/Lagg:lagg", r#"{"laggif":"lagg0","members":"igb2,igb3","proto":"lacp","descr":"core"}"#),
    ("Interfaces/Bridge:bridged", r#"{"bridgeif":"bridge0","members":"opt1","descr":"joined"}"#),
    (
        "Kea/KeaDhcpv6:subnets.subnet6",
        r#"{"subnet":"2001:db8:1::/64","interface":"lan","pools":"2001:db8:1::10-2001:db8:1::99"}"#,
    ),
    (
        "Dnsmasq/Dnsmasq:dhcp_ranges",
        r#"{"interface":"opt1","start_addr":"192.168.10.50","end_addr":"192.168.10.99","lease_time":"600","domain":"things.example"}"#,
    ),
    (
        "Dnsmasq/Dnsmasq:hosts",
        r#"{"host":"tv","domain":"home.example","ip":"192.168.1.60","hwaddr":"AA:BB:CC:00:00:60"}"#,
    ),
    ("Dnsmasq/Dnsmasq:domainoverrides", r#"{"domain":"lab.example","ip":"192.168.1.53","port":"5353"}"#),
    ("Unbound/Unbound:dots.dot", r#"{"type":"forward","domain":"corp.example","server":"10.20.0.53"}"#),
    (
        "Unbound/Unbound:dots.dot",
        r#"{"type":"dot","server":"203.0.113.53","port":"853","verify":"dns.example"}"#,
    ),
    ("Bind/Domain:domains.domain", r#"{"type":"primary","domainname":"zone.example"}"#),
    (
        "Firewall/Filter:onetoone.rule",
        r#"{"interface":"wan","source_net":"192.168.1.21","external":"198.51.100.9","description":"mapped"}"#,
    ),
    (
        "Firewall/Filter:npt.rule",
        r#"{"interface":"wan","source_net":"fd00:1::/64","destination_net":"2001:db8:2::/64","description":"prefix"}"#,
    ),
    ("Freeradius/User:users.user", r#"{"username":"AA-BB-CC-00-00-07","password":"x","vlan":"20"}"#),
    (
        "Trust/Ca:ca",
        r#"{"descr":"Lab CA","refid":"ca1","x_subject":"lab","x_from":"1700000000","x_to":"1800000000"}"#,
    ),
    (
        "Trust/Cert:cert",
        r#"{"descr":"web","refid":"c1","caref":"ca1","x_subject":"www","x_names":"www.example,w.example","x_from":"1700000000","x_to":"1800000000"}"#,
    ),
    ("Firewall/Alias:aliases.alias", r#"{"name":"both","type":"networkgroup","content":"web_servers"}"#),
    (
        "Firewall/Filter:rules.rule",
        r#"{"interface":"lan,opt1","source_net":"10.0.0.0/8,web_servers,opt1","source_not":"1","destination_net":"(self)","protocol":"TCP","source_port":"1024-65535","destination_port":"1000-2000","action":"reject","log":"1","gateway":"WAN_GW","sequence":"9000","description":"odd"}"#,
    ),
    (
        "Firewall/Filter:rules.rule",
        r#"{"interface":"wan","direction":"out","sequence":"9001","description":"leaving"}"#,
    ),
    (
        "Firewall/Filter:rules.rule",
        r#"{"interface":"lan,wan","direction":"any","sequence":"9002","description":"both ways"}"#,
    ),
    ("Firewall/Filter:rules.rule", r#"{"interface":"","sequence":"9003","description":"everywhere"}"#),
    (
        "Firewall/Filter:snatrules.rule",
        r#"{"interface":"wan","source_net":"10.1.0.0/16","target":"wanip","nonat":"1","description":"as it is"}"#,
    ),
    (
        "Firewall/Filter:snatrules.rule",
        r#"{"interface":"wan","source_net":"10.2.0.0/16","source_not":"1","target":"wanip","description":"all but"}"#,
    ),
    (
        "Firewall/DNat:rule",
        r#"{"interface":"wan","protocol":"tcp","destination.network":"wanip","destination.port":"25","target":"192.168.1.20","local-port":"25","nordr":"1","descr":"no forward"}"#,
    ),
    (
        "Firewall/DNat:rule",
        r#"{"interface":"lan","protocol":"tcp","source.network":"lan","source.not":"1","destination.network":"lanip","destination.not":"1","destination.port":"53","target":"192.168.1.53","local-port":"53","descr":"caught"}"#,
    ),
];

pub(super) fn filled() -> Device {
    let device = Device::new();
    for (node, fields) in FURTHER {
        let fields: Value = serde_json::from_str(fields).unwrap();
        let edit = json!({ "do": "set", "node": node, "fields": fields, "apply": true });
        device.lab().edit(&edit).unwrap_or_else(|error| panic!("{node}: {error}"));
    }
    let state = device.lab().state();
    let first = |node: &str| state["stored"][node].as_object().unwrap().keys().next().unwrap().clone();
    let more = [
        (
            "Unbound/Unbound:aliases.alias",
            json!({ "host": first("Unbound/Unbound:hosts.host"), "hostname": "files", "domain": "home.example" }),
        ),
        (
            "Bind/Record:records.record",
            json!({ "domain": first("Bind/Domain:domains.domain"), "name": "www", "type": "A", "value": "192.0.2.7" }),
        ),
    ];
    for (node, fields) in more {
        device.lab().edit(&json!({ "do": "set", "node": node, "fields": fields, "apply": true })).unwrap();
    }
    let settings = [
        ("Kea/KeaDhcpv4:subnets.subnet4", "option_data.domain_name_servers", "192.168.1.1,1.1.1.1"),
        ("Kea/KeaDhcpv4:subnets.subnet4", "option_data.routers", "192.168.1.1"),
        ("Unbound/Unbound:hosts.host", "ttl", "300"),
    ];
    for (node, name, value) in settings {
        let edit =
            json!({ "do": "set", "node": node, "id": first(node), "fields": { name: value }, "apply": true });
        device.lab().edit(&edit).unwrap();
    }
    let hybrid = json!({ "filter": { "general": { "snat_mode": "hybrid" } } });
    device.person("firewall/source_nat/set", &hybrid);
    device.person("core/firmware/status", &json!({}));
    device.person("core/snapshots/add", &json!({ "name": "before" }));
    device
}

/// All pages of a kind.
fn all(device: &Device, kind: &str) -> Vec<ModelObject> {
    every_page(|cursor| Opnsense::list_model(&device.host(), kind, None, cursor)).0
}

fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

/// The fields of the object with this label.
#[track_caller]
pub(super) fn of(device: &Device, kind: &str, label: &str) -> Value {
    let objects = all(device, kind);
    let labels: Vec<&str> = objects.iter().map(|object| object.label.as_str()).collect();
    let found = objects.iter().find(|object| object.label == label || object.key == label);
    Value::Object(fields(found.unwrap_or_else(|| panic!("'{label}' is none of {labels:?}"))))
}

/// The key of the object with this label.
#[track_caller]
pub(super) fn key_of(device: &Device, kind: &str, label: &str) -> String {
    let objects = all(device, kind);
    let labels: Vec<&str> = objects.iter().map(|object| object.label.as_str()).collect();
    let found = objects.iter().find(|object| object.label == label || object.key == label);
    found.unwrap_or_else(|| panic!("'{label}' is none of {labels:?}")).key.clone()
}

/// The fields of the object at this place of its list.
pub(super) fn fields_of(device: &Device, kind: &str, at: usize) -> Value {
    Value::Object(fields(&all(device, kind)[at]))
}

fn kinds() -> impl Iterator<Item = (&'static str, BTreeSet<String>)> {
    let entries = description()["model"].as_array().unwrap().iter();
    entries.map(|entry| {
        let names = entry["fields"].as_array().unwrap().iter();
        let names = names.map(|name| name.as_str().unwrap().to_owned());
        (entry["kind"].as_str().unwrap(), names.collect())
    })
}

#[test]
fn every_object_fits_its_kind_and_every_field_that_is_named_is_filled() {
    let device = filled();
    let posts = device.posts.get();
    let identities: BTreeSet<String> = Opnsense::list_devices(&device.host(), None, None)
        .unwrap()
        .items
        .into_iter()
        .map(|device| device.identity)
        .collect();
    let mut problems = Vec::new();
    for (kind, named) in kinds() {
        let known = model::find(kind).unwrap_or_else(|| panic!("{kind}"));
        let (mut keys, mut found) = (BTreeSet::new(), BTreeSet::new());
        let objects = all(&device, kind);
        for object in &objects {
            let fields = fields(object);
            if let Some(problem) = known.problem(&fields) {
                problems.push(format!("{kind} '{}': {problem}", object.key));
            }
            if !keys.insert(object.key.clone()) {
                problems.push(format!("{kind}: two objects have the key '{}'", object.key));
            }
            if let Some(device) = object.device.as_ref().filter(|device| !identities.contains(*device)) {
                problems.push(format!("{kind} '{}': no device is '{device}'", object.key));
            }
            if object.label.is_empty() {
                problems.push(format!("{kind} '{}' has no label", object.key));
            }
            found.extend(fields.into_iter().map(|(name, _)| name));
        }
        if found != named {
            let lacking: Vec<_> = named.symmetric_difference(&found).collect();
            problems.push(format!("{kind}: named or filled, and not both: {lacking:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(device.posts.get(), posts);
}

#[test]
fn objects_of_the_vendor_behind_the_model_can_be_read() {
    let device = filled();
    let mut problems = Vec::new();
    for (kind, _) in kinds() {
        for object in all(&device, kind) {
            let Some(native) = object.native.filter(|_| object.origin == Origin::Own) else { continue };
            if let Err(fault) = Opnsense::get_object(&device.host(), &native.kind, None, &native.key) {
                problems.push(format!("{kind} '{}': {fault:?}", object.key));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn sources_and_what_stands_beside_them_are_kinds_of_the_description() {
    let kinds: BTreeSet<&str> =
        description()["kinds"].as_array().unwrap().iter().map(|kind| kind["id"].as_str().unwrap()).collect();
    for entry in description()["model"].as_array().unwrap() {
        for source in entry["binding"]["sources"].as_array().into_iter().flatten() {
            let beside = source["joined"].as_object().into_iter().flatten().map(|(_, one)| &one["from"]);
            for from in beside.chain([&source["from"]]) {
                assert!(kinds.contains(from.as_str().unwrap()), "{from}");
            }
        }
    }
}

#[test]
fn whole_model_takes_few_requests() {
    let device = filled();
    let mut counted = BTreeMap::new();
    for (kind, _) in kinds() {
        let before = device.asked();
        all(&device, kind);
        counted.insert(kind, device.asked() - before);
    }
    let dear: Vec<_> = counted.iter().filter(|(_, count)| **count > 8).collect();
    let total: u64 = counted.values().sum();
    assert!(total <= 110, "{total}: {counted:?}");
    assert!(
        dear.iter().all(|(kind, _)| ["dhcp-lease", "dhcp-pool", "dns-record", "vpn-tunnel"].contains(*kind)),
        "{counted:?}"
    );
}

#[test]
fn firewall_is_a_router_with_its_figures() {
    let device = filled();
    assert_eq!(
        of(&device, "system", "fw1.example.net"),
        json!({
            "role": "router", "name": "fw1.example.net", "version": "26.7.2", "state": "online",
            "uptime_s": of(&device, "system", "firewall")["uptime_s"], "memory_bytes": 8_467_255_296_u64,
            "memory_used_bytes": 1_692_598_272, "temperature_c": 48.0
        })
    );
    assert!(of(&device, "system", "firewall")["uptime_s"].as_u64().unwrap() > 3 * 86_400);
    let volume = json!({ "name": "zroot/ROOT/default", "type": "zfs", "total_bytes": 107_374_182_400_u64,
        "used_bytes": 3_328_599_654_u64 });
    assert_eq!(of(&device, "volume", "/"), volume);
    let firmware =
        json!({ "current": "26.7.2", "available": "26.7.3", "state": "available", "needs_reboot": true });
    assert_eq!(of(&device, "firmware", "OPNsense"), firmware);
}

#[test]
fn interfaces_have_keys_of_assignments_and_refer_to_one_another() {
    let device = filled();
    let lan = of(&device, "interface", "LAN");
    assert_eq!((&lan["type"], &lan["role"], &lan["link"]), (&json!("physical"), &json!("lan"), &json!("up")));
    assert_eq!((&lan["addresses"], &lan["speed_mbps"]), (&json!(["192.168.1.1/24"]), &json!(1000)));
    let rx = lan["counters"]["rx_packets"].as_u64().unwrap();
    assert_eq!(lan["counters"]["tx_packets"].as_u64().unwrap(), rx / 2, "what the firewall sends");
    assert_eq!(of(&device, "interface", "WAN")["role"], "wan");
    let things = of(&device, "interface", "opt1");
    assert_eq!(
        (&things["lower"], &things["vlan_id"], &things["master"]),
        (&json!("lan"), &json!(10), &json!("bridge0"))
    );
    let unused = of(&device, "interface", "igb3");
    assert_eq!(
        (&unused["link"], &unused["master"], unused.get("speed_mbps"), unused.get("role")),
        (&json!("down"), &json!("lagg0"), None, None)
    );
    assert_eq!(
        of(&device, "vlan", "guests"),
        json!({ "vlan_id": 20, "name": "guests", "subnets": ["192.168.20.0/24"], "gateway": "192.168.20.1",
            "dhcp": "server", "interface": "opt2", "members": [{ "port": "lan", "tagged": true }] })
    );
    assert_eq!(of(&device, "vlan", "things").get("dhcp"), None, "another server may be there");
}

#[test]
fn routes_are_those_of_the_configuration_and_what_stands_beside_them_in_the_table() {
    let device = filled();
    let objects = all(&device, "route");
    let branch: Vec<_> = objects.iter().filter(|object| object.label == "10.99.0.0/16").collect();
    assert_eq!(branch.len(), 1);
    assert_eq!(
        Value::Object(fields(branch[0])),
        json!({ "destination": "10.99.0.0/16", "type": "unicast", "next_hop": "198.51.100.1", "interface": "wan",
            "name": "branch", "enabled": true, "origin_type": "static" })
    );
    assert_eq!(
        of(&device, "route", "default"),
        json!({ "destination": "0.0.0.0/0", "type": "unicast", "next_hop": "198.51.100.1", "interface": "wan",
            "origin_type": "static" })
    );
    assert_eq!(
        of(&device, "route", "192.168.20.0/24"),
        json!({ "destination": "192.168.20.0/24", "type": "unicast", "interface": "opt2", "origin_type": "connected" })
    );
    let watched = json!({ "name": "WAN_GW", "interface": "wan", "address": "198.51.100.1", "monitor": "203.0.113.1",
        "state": "online", "loss_percent": 0.0, "delay_ms": 1.1, "active": true });
    assert_eq!(of(&device, "gateway", "WAN_GW"), watched);
    let dynamic = of(&device, "gateway", "WAN_DHCP");
    assert_eq!((&dynamic["state"], dynamic.get("loss_percent")), (&json!("unknown"), None));
    let lost = json!({ "do": "gateway", "name": "WAN_GW", "measured": { "status": "loss", "loss": "12.5 %", "delay": "80 ms" } });
    device.lab().edit(&lost).unwrap();
    let now = of(&device, "gateway", "WAN_GW");
    assert_eq!((&now["state"], &now["loss_percent"]), (&json!("degraded"), &json!(12.5)));
}

#[test]
fn addresses_and_names_are_told_whichever_server_gives_them() {
    let device = filled();
    assert_eq!(
        of(&device, "dhcp-pool", "192.168.20.0/24"),
        json!({ "interface": "opt2", "ranges": [{ "from": "192.168.20.100", "to": "192.168.20.199" }],
            "enabled": true, "lease_seconds": 4000 })
    );
    let range = of(&device, "dhcp-pool", "192.168.10.50");
    assert_eq!(
        (&range["interface"], &range["lease_seconds"], &range["enabled"]),
        (&json!("opt1"), &json!(600), &json!(false))
    );
    let tv = of(&device, "dhcp-reservation", "tv");
    assert_eq!(tv, json!({ "mac": "aa:bb:cc:00:00:60", "address": "192.168.1.60", "hostname": "tv" }));
    assert_eq!(of(&device, "dhcp-reservation", "printer")["scope"], "192.168.1.0/24");
    let lease = of(&device, "dhcp-lease", "guest-tablet");
    assert_eq!(
        (&lease["scope"], &lease["state"], &lease["ends_at"]),
        (&json!("opt2"), &json!("active"), &json!("2026-01-01T02:00:00Z"))
    );
    let record = |name: &str| of(&device, "dns-record", name);
    for (name, kind, value) in [
        ("nas.home.example", "A", "192.168.1.40"),
        ("files.home.example", "A", "192.168.1.40"),
        ("corp.example", "FORWARD", "10.20.0.53"),
        (".", "FORWARD", "203.0.113.53@853#dns.example"),
        ("tv.home.example", "A", "192.168.1.60"),
        ("lab.example", "FORWARD", "192.168.1.53@5353"),
        ("www.zone.example", "A", "192.0.2.7"),
    ] {
        let found = record(name);
        assert_eq!((&found["type"], &found["value"]), (&json!(kind), &json!(value)), "{name}");
    }
}

#[test]
fn rules_stand_in_their_order_and_say_what_the_model_has_no_word_for() {
    let device = filled();
    let guests = of(&device, "firewall-rule", "guests stay out");
    let hits = guests["hits"].as_u64().unwrap();
    assert!(hits > 0);
    assert_eq!(
        guests,
        json!({
            "scope": { "kind": "interface", "key": "opt2" }, "position": 0, "name": "guests stay out",
            "enabled": true, "action": "drop", "direction": "in", "ip_version": "4", "from": ["opt2"],
            "source": { "networks": ["opt2"] }, "destination": { "networks": ["lan"] }, "protocol": "any",
            "log": false, "final": true, "hits": hits, "partial": []
        })
    );
    assert_eq!(of(&device, "firewall-rule", "guests to the internet")["position"], 1);
    let odd = of(&device, "firewall-rule", "odd");
    assert_eq!(
        odd["source"],
        json!({ "addresses": ["10.0.0.0/8"], "groups": ["web_servers"], "networks": ["opt1"], "negated": true })
    );
    assert_eq!((&odd["partial"], &odd["from"]), (&json!(["gateway"]), &json!(["lan", "opt1"])));
    assert_eq!(
        (&odd["scope"], &odd["destination_ports"]),
        (&json!({ "kind": "floating" }), &json!(["1000-2000"]))
    );
    let automatic = all(&device, "firewall-rule");
    assert!(automatic.iter().filter(|rule| rule.origin == Origin::Derived).count() == 2);
    assert_eq!(
        of(&device, "nat-rule", "publish web"),
        json!({ "name": "publish web", "position": 1, "type": "port-forward", "interface": "wan", "protocol": "tcp",
            "source": ["any"], "external": { "addresses": ["wanip"], "ports": ["8443"] },
            "internal": { "addresses": ["192.168.1.20"], "ports": ["443"] }, "passes": true, "enabled": true })
    );
    let mapped = of(&device, "nat-rule", "mapped");
    assert_eq!(
        (&mapped["type"], &mapped["external"], &mapped["internal"]),
        (
            &json!("one-to-one"),
            &json!({ "addresses": ["198.51.100.9"] }),
            &json!({ "addresses": ["192.168.1.21"] })
        )
    );
    let group =
        json!({ "name": "web_servers", "type": "addresses", "members": ["192.168.1.20", "192.168.1.21"] });
    assert_eq!(of(&device, "address-group", "web_servers"), group);
    assert_eq!(of(&device, "address-group", "bogons"), json!({ "name": "bogons", "type": "addresses" }));
}

#[test]
fn rules_name_the_side_that_they_are_on() {
    let device = filled();
    let sides = |label: &str| {
        let rule = of(&device, "firewall-rule", label);
        (rule.get("from").cloned(), rule.get("to").cloned())
    };
    assert_eq!(sides("leaving"), (None, Some(json!(["wan"]))));
    assert_eq!(sides("odd"), (Some(json!(["lan", "opt1"])), None));
    assert_eq!(sides("everywhere"), (None, None));
    assert_eq!(sides("both ways"), (None, None));
    assert_eq!(of(&device, "firewall-rule", "both ways")["partial"], json!(["interface"]));
}

#[test]
fn translations_never_say_the_opposite() {
    let device = filled();
    let of = |label: &str| of(&device, "nat-rule", label);
    for label in ["no forward", "as it is"] {
        let exception = of(label);
        assert_eq!(exception["type"], "unknown", "{label}");
        for name in ["source", "external", "internal", "passes"] {
            assert_eq!(exception.get(name), None, "{label}");
        }
    }
    assert_eq!(of("all but").get("internal"), None);
    let caught = of("caught");
    assert_eq!(
        (caught.get("source"), &caught["external"], &caught["internal"]),
        (None, &json!({ "ports": ["53"] }), &json!({ "addresses": ["192.168.1.53"], "ports": ["53"] }))
    );
}

#[test]
fn places_are_counted_through_all_pages() {
    let device = Device::of(Settings { rules: 1_100, ..Settings::default() });
    let mut by_scope: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for object in all(&device, "firewall-rule") {
        let fields = fields(&object);
        by_scope.entry(fields["scope"].to_string()).or_default().push(fields["position"].as_u64().unwrap());
    }
    for (scope, places) in by_scope {
        let expected: Vec<u64> = (0..places.len() as u64).collect();
        assert_eq!(places, expected, "{scope}");
    }
}

#[test]
fn tunnels_peers_and_sessions_are_told_from_where_they_are() {
    let device = filled();
    assert_eq!(
        of(&device, "vpn-tunnel", "road"),
        json!({ "type": "wireguard", "name": "road", "enabled": true, "state": "up", "interface": "wg0",
            "local_networks": ["10.9.0.1/24"] })
    );
    let branch = of(&device, "vpn-tunnel", "branch");
    assert_eq!(
        (&branch["state"], &branch["local_networks"], &branch["remote_networks"]),
        (&json!("up"), &json!(["192.168.1.0/24"]), &json!(["10.20.0.0/24"]))
    );
    assert_eq!(branch["rx_bytes"].as_u64().unwrap() / 2, branch["tx_bytes"].as_u64().unwrap());
    let staff = of(&device, "vpn-tunnel", "staff");
    assert_eq!((&staff["state"], &staff["interface"]), (&json!("up"), &json!("ovpns1")));
    let office = of(&device, "vpn-peer", "office");
    assert_eq!((&office["tunnel"], &office["endpoint"]), (&json!("road"), &json!("203.0.113.77:51820")));
    assert_eq!(office["rx_bytes"].as_u64().unwrap() / 2, office["tx_bytes"].as_u64().unwrap());
    let laptop = of(&device, "vpn-peer", "laptop");
    assert_eq!((laptop.get("endpoint"), laptop.get("last_handshake_at")), (None, None));
    assert_eq!(
        of(&device, "vpn-session", "anna"),
        json!({ "tunnel": "staff", "user": "anna", "remote_address": "203.0.113.99:50001",
            "virtual_address": "10.8.0.2", "connected_at": "2026-01-01T00:00:00Z", "rx_bytes": 1000, "tx_bytes": 2000 })
    );
}

#[test]
fn clients_and_neighbours_are_behind_their_interfaces() {
    let device = filled();
    let tablet = of(&device, "client", "guest-tablet");
    assert_eq!(
        (&tablet["interface"], &tablet["vlan_id"], &tablet["addresses"]),
        (&json!("opt2"), &json!(20), &json!(["192.168.20.100"]))
    );
    assert_eq!(
        of(&device, "neighbour", "switch1.example.net"),
        json!({ "port": "lan", "remote_chassis": "02:10:aa:00:00:01", "remote_port": "gi1/0/24",
            "remote_name": "switch1.example.net", "protocol": "lldp" })
    );
    let user =
        json!({ "name": "AA-BB-CC-00-00-07", "vlan_id": 20, "mac": "aa:bb:cc:00:00:07", "enabled": true });
    assert_eq!(of(&device, "radius-user", "AA-BB-CC-00-00-07"), user);
    assert_eq!(
        of(&device, "certificate", "web"),
        json!({ "name": "web", "subject": "/CN=www", "alternative_names": ["www.example", "w.example"],
            "issuer": "/CN=lab", "not_before": "2023-11-14T22:13:20Z", "not_after": "2027-01-15T08:00:00Z" })
    );
}

#[test]
fn firewall_without_plugins_and_of_an_older_release_fills_what_it_has() {
    let device =
        Device::of(Settings { release: Release::V26_1, plugins: Some(Vec::new()), ..Settings::default() });
    for kind in ["system", "interface", "route", "dhcp-lease", "dns-record", "neighbour", "firewall-rule"] {
        all(&device, kind);
    }
    assert!(all(&device, "neighbour").is_empty());
    // Without the plugin there are no users, and that is all there is to know.
    let page = Opnsense::list_model(&device.host(), "radius-user", None, None).unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
    assert!(matches!(page.complete, Completeness::Complete));
}

#[test]
fn odd_rows_leave_fields_out_and_never_fail() {
    let long: Vec<String> = (0..5_001).map(|n| format!("10.{}.{}.1", n / 250, n % 250)).collect();
    let odd = [
        json!({}),
        json!([1]),
        json!("text"),
        json!(null),
        json!({ "content": long.join("\n"), "type": "host" }),
    ];
    let mut rows = odd.to_vec();
    let names = [
        "uuid",
        "device",
        "uptime",
        "vlan_tag",
        "ipv4",
        "pools",
        "interface",
        "source_net",
        "ip",
        "flags",
        "destination",
        "cnames",
        "content",
        "blocks",
        "size",
        "versions",
    ];
    for wrong in [json!(7), json!([]), json!([null]), json!({ "x": 1 }), json!("é-,/:\n"), json!(-1.5e300)] {
        let with = |names: &[&str]| -> Map<String, Value> {
            names.iter().map(|name| ((*name).to_owned(), wrong.clone())).collect()
        };
        let mut row = with(&names);
        row.insert("&".to_owned(), Value::Object(with(&["time", "children", "sessions", "sensors"])));
        rows.push(Value::Object(row));
    }
    for (kind, _) in kinds() {
        for row in &rows {
            let mut object = Modelled {
                key: "k".to_owned(),
                label: "l".to_owned(),
                origin: Origin::Own,
                device: None,
                fields: Map::new(),
            };
            VENDOR.modelled(kind, row, &mut object);
            let problem = model::find(kind).unwrap().problem(&object.fields);
            assert_eq!(problem, None, "{kind}: {row}");
        }
    }
}
