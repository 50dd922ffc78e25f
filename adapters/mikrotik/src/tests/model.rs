//! The model: what is read of the simulated router in the words that all vendors share.

use std::collections::{BTreeMap, BTreeSet};

use heddle_lab_mikrotik::{Release, Settings};
use heddle_marketplace::model;
use heddle_sdk::testing::every_page;
use heddle_sdk::{Adapter as _, ModelObject, Origin};
use serde_json::{Map, Value, json};

use super::device::{Device, description};
use crate::Mikrotik;

/// Rows that the household does not have, by menu.
const FURTHER: [(&str, &str); 30] = [
    ("interface/bonding", r#"{"name":"bond1","slaves":"ether4","mode":"802.3ad"}"#),
    ("interface/vlan", r#"{"name":"vlan30","vlan-id":"30","interface":"bridge"}"#),
    ("ip/address", r#"{"address":"10.30.0.1/24","interface":"vlan30"}"#),
    ("ipv6/address", r#"{"address":"2001:db8:30::1/64","interface":"vlan30"}"#),
    ("ip/pool", r#"{"name":"pool30","ranges":"10.30.0.10-10.30.0.99"}"#),
    (
        "ip/dhcp-server",
        r#"{"name":"dhcp30","interface":"vlan30","address-pool":"pool30","lease-time":"30m"}"#,
    ),
    (
        "ip/dhcp-server/network",
        r#"{"address":"10.30.0.0/24","gateway":"10.30.0.1","dns-server":"10.30.0.1,9.9.9.9","domain":"things.example"}"#,
    ),
    (
        "interface/bridge/vlan",
        r#"{"bridge":"bridge","vlan-ids":"40","tagged":"bridge,ether2","untagged":"ether3","comment":"cameras"}"#,
    ),
    (
        "ip/route",
        r#"{"dst-address":"0.0.0.0/0","gateway":"10.30.0.254","check-gateway":"ping","comment":"uplink"}"#,
    ),
    ("ip/route", r#"{"dst-address":"10.66.0.0/16","blackhole":"","comment":"nowhere"}"#),
    ("ip/route", r#"{"dst-address":"10.67.0.0/16","gateway":"10.30.0.9","distance":"7","comment":"lab"}"#),
    ("ipv6/route", r#"{"dst-address":"2001:db8:99::/48","gateway":"2001:db8:30::9","comment":"lab six"}"#),
    ("ip/dns/static", r#"{"name":"mail.lan","type":"MX","mx-exchange":"router.lan","mx-preference":"10"}"#),
    ("ip/dns/static", r#"{"name":"corp.lan","type":"FWD","forward-to":"10.30.0.53","ttl":"10m"}"#),
    ("ip/dns/static", r#"{"name":"note.lan","type":"TXT","text":"hello","disabled":"yes"}"#),
    (
        "ip/firewall/filter",
        r#"{"chain":"forward","action":"reject","comment":"web","protocol":"tcp","src-address":"10.30.0.0/24","dst-address-list":"!servers","dst-port":"80,443","src-port":"1024-65535","in-interface":"vlan30","out-interface-list":"WAN","log":"yes","limit":"5,10:packet"}"#,
    ),
    (
        "ipv6/firewall/filter",
        r#"{"chain":"input","action":"drop","comment":"six","src-address":"2001:db8::/32"}"#,
    ),
    (
        "ip/firewall/nat",
        r#"{"chain":"dstnat","action":"dst-nat","comment":"web","protocol":"tcp","in-interface-list":"WAN","src-address":"203.0.113.0/24","dst-address":"198.51.100.7","dst-port":"443","to-addresses":"10.30.0.20","to-ports":"8443"}"#,
    ),
    (
        "ip/firewall/nat",
        r#"{"chain":"srcnat","action":"src-nat","comment":"leaving","out-interface":"ether1","src-address":"10.30.0.0/24","to-addresses":"198.51.100.7"}"#,
    ),
    ("ip/firewall/address-list", r#"{"list":"servers","address":"10.30.0.20"}"#),
    ("ip/firewall/address-list", r#"{"list":"servers","address":"10.30.0.21"}"#),
    ("ip/firewall/address-list", r#"{"list":"partners","address":"partner.example"}"#),
    ("ipv6/firewall/address-list", r#"{"list":"servers","address":"2001:db8:30::20/128"}"#),
    ("ip/ipsec/peer", r#"{"name":"branch2","address":"198.51.100.77/32","local-address":"198.51.100.7"}"#),
    ("interface/gre", r#"{"name":"gre9","remote-address":"198.51.100.78","local-address":"198.51.100.7"}"#),
    ("radius", r#"{"address":"10.30.0.30","service":"wireless","secret":"lab secret","comment":"accounts"}"#),
    ("user-manager/user", r#"{"name":"ada","password":"lab secret"}"#),
    ("interface/list/member", r#"{"list":"LAN","interface":"vlan30"}"#),
    ("interface/vlan", r#"{"name":"vlan31","vlan-id":"31","interface":"bridge"}"#),
    ("ip/address", r#"{"address":"10.31.0.1/24","interface":"vlan31"}"#),
];

/// Commands that fill what rows alone do not.
const SETTINGS: [(&str, &str, &str); 9] = [
    (
        "certificate",
        "add",
        r#"{"name":"authority","common-name":"authority.lab.example","key-usage":"key-cert-sign,crl-sign"}"#,
    ),
    ("certificate", "sign", r#"{"number":"authority"}"#),
    (
        "certificate",
        "add",
        r#"{"name":"web","common-name":"web.lab.example","subject-alt-name":"DNS:web.lab.example"}"#,
    ),
    ("certificate", "sign", r#"{"number":"web","ca":"authority"}"#),
    (
        "interface/wifi/security",
        "add",
        r#"{"name":"corp","authentication-types":"wpa2-eap","ft":"yes","management-protection":"required","multi-passphrase-group":"staff"}"#,
    ),
    (
        "interface/wifi",
        "add",
        r#"{"name":"wifi-corp","master-interface":"wifi1","configuration.ssid":"corp","security":"corp","datapath.vlan-id":"30"}"#,
    ),
    (
        "interface/wifi",
        "set",
        r#"{"numbers":"wifi2","channel.frequency":"5500","configuration.tx-power":"17"}"#,
    ),
    (
        "ip/ipsec/policy",
        "add",
        r#"{"peer":"branch2","tunnel":"yes","src-address":"10.30.0.0/24","dst-address":"10.77.0.0/24"}"#,
    ),
    ("user-manager/user", "set", r#"{"numbers":"ada","disabled":"no"}"#),
];

pub(super) fn filled() -> Device {
    let device = Device::of(Settings { release: Release::V7_24, ..Settings::default() });
    for (menu, args) in FURTHER {
        let args: Value = serde_json::from_str(args).unwrap();
        let edit = json!({ "do": "command", "menu": menu, "command": "add", "args": args });
        device.lab().edit(&edit).unwrap_or_else(|error| panic!("{menu} {args}: {error}"));
    }
    for (menu, command, args) in SETTINGS {
        device.person(menu, command, &serde_json::from_str(args).unwrap());
    }
    let values = json!({
        "slot": "usb1", "type": "hardware", "model": "Flash Disk", "serial": "AA00000001", "size": "16008609792",
        "free": "12000000000", "fs": "ext4", "mount-point": "usb1", "temperature": "31",
    });
    device.lab().edit(&json!({ "do": "row", "menu": "disk", "values": values })).unwrap();
    device.person("system/backup", "save", &json!({ "name": "before" }));
    device.person("system/package/update", "check-for-updates", &json!({}));
    device
}

/// All pages of a kind.
pub(super) fn all(device: &Device, kind: &str) -> Vec<ModelObject> {
    every_page(|cursor| Mikrotik::list_model(&device.host(), kind, None, cursor)).0
}

fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

#[track_caller]
fn found(device: &Device, kind: &str, label: &str) -> ModelObject {
    let objects = all(device, kind);
    let labels: Vec<&str> = objects.iter().map(|object| object.label.as_str()).collect();
    let found = objects.iter().find(|object| object.label == label || object.key == label);
    found.unwrap_or_else(|| panic!("'{label}' is none of {labels:?}")).clone()
}

/// The fields of the object with this label.
#[track_caller]
pub(super) fn of(device: &Device, kind: &str, label: &str) -> Value {
    Value::Object(fields(&found(device, kind, label)))
}

/// The key of the object with this label.
#[track_caller]
pub(super) fn key_of(device: &Device, kind: &str, label: &str) -> String {
    found(device, kind, label).key
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
    let devices = Mikrotik::list_devices(&device.host(), None, None).unwrap().items;
    let identities: BTreeSet<String> = devices.into_iter().map(|device| device.identity).collect();
    // A release behind which there is a newer one.
    let older = Device::of(Settings { release: Release::V7_22, ..Settings::default() });
    older.person("system/package/update", "download", &json!({}));
    let mut problems = Vec::new();
    for (kind, named) in kinds() {
        let device = if kind == "firmware" { &older } else { &device };
        let known = model::find(kind).unwrap_or_else(|| panic!("{kind}"));
        let (mut keys, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for object in &all(device, kind) {
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
            seen.extend(fields.into_iter().map(|(name, _)| name));
        }
        if seen != named {
            let lacking: Vec<_> = named.symmetric_difference(&seen).collect();
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
            if let Err(fault) = Mikrotik::get_object(&device.host(), &native.kind, None, &native.key) {
                problems.push(format!("{kind} '{}': {fault:?}", object.key));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
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
    let total: u64 = counted.values().sum();
    assert!(total <= 200, "{total}: {counted:?}");
}

#[test]
fn rule_is_told_with_what_the_model_has_no_word_for() {
    let rule = of(&filled(), "firewall-rule", "web");
    for (field, is) in [
        ("scope", json!({ "kind": "chain", "key": "forward" })),
        ("direction", json!("forward")),
        ("action", json!("reject")),
        ("ip_version", json!("4")),
        ("from", json!(["vlan30"])),
        ("to", json!(["WAN"])),
        ("source", json!({ "addresses": ["10.30.0.0/24"] })),
        ("destination", json!({ "groups": ["servers"], "negated": true })),
        ("destination_ports", json!(["80", "443"])),
        ("log", json!(true)),
        ("final", json!(true)),
        ("partial", json!(["limit"])),
    ] {
        assert_eq!(rule[field], is, "{field}");
    }
    let other = of(&filled(), "firewall-rule", "six");
    assert_eq!((&other["ip_version"], &other["direction"]), (&json!("6"), &json!("in")));
}

#[test]
fn translations_tell_what_stands_outside_and_inside() {
    let device = filled();
    let forward = of(&device, "nat-rule", "web");
    assert_eq!(forward["type"], "port-forward");
    assert_eq!(forward["external"], json!({ "addresses": ["198.51.100.7"], "ports": ["443"] }));
    assert_eq!(forward["internal"], json!({ "addresses": ["10.30.0.20"], "ports": ["8443"] }));
    let leaving = of(&device, "nat-rule", "leaving");
    assert_eq!((&leaving["type"], &leaving["interface"]), (&json!("outbound"), &json!("ether1")));
    assert_eq!(leaving["internal"], json!({ "addresses": ["10.30.0.0/24"] }));
}

#[test]
fn pool_is_a_server_with_its_pool_and_its_network() {
    let pool = of(&filled(), "dhcp-pool", "dhcp30");
    let is = json!({
        "interface": "vlan30", "enabled": true, "lease_seconds": 1800, "gateway": "10.30.0.1",
        "ranges": [{ "from": "10.30.0.10", "to": "10.30.0.99" }], "dns_servers": ["10.30.0.1", "9.9.9.9"],
        "domain": "things.example",
    });
    assert_eq!(pool, is);
}

#[test]
fn vlan_is_an_interface_or_a_row_of_a_bridge() {
    let device = filled();
    let own = of(&device, "vlan", "vlan30");
    assert_eq!(
        (&own["vlan_id"], &own["gateway"], &own["dhcp"]),
        (&json!(30), &json!("10.30.0.1"), &json!("server"))
    );
    assert_eq!(own["members"], json!([{ "port": "bridge", "tagged": true }]));
    assert_eq!(own["subnets"], json!(["10.30.0.0/24", "2001:db8:30::/64"]));
    let bridged = of(&device, "vlan", "cameras");
    assert_eq!(bridged["vlan_id"], 40);
    assert!(bridged["members"].as_array().unwrap().contains(&json!({ "port": "ether2", "tagged": true })));
}

#[test]
fn group_is_the_rows_with_one_name() {
    let device = filled();
    let group = of(&device, "address-group", "servers");
    assert_eq!(
        group,
        json!({ "name": "servers", "type": "addresses", "members": ["10.30.0.20", "10.30.0.21"] })
    );
    assert_eq!(of(&device, "address-group", "partners")["type"], "names");
    assert_eq!(of(&device, "address-group", "ipv6:servers")["members"], json!(["2001:db8:30::20/128"]));
}

#[test]
fn network_has_the_settings_of_its_profiles() {
    let network = of(&filled(), "ssid", "wifi1");
    assert_eq!((&network["name"], &network["security"]), (&json!("Household"), &json!("wpa2-wpa3")));
    assert_eq!(network["bands"], json!(["5"]));
    assert!(network.get("passphrase").is_none());
}

#[test]
fn routes_say_where_they_come_from() {
    let device = filled();
    let lab = of(&device, "route", "lab");
    assert_eq!(
        (&lab["next_hop"], &lab["metric"], &lab["origin_type"]),
        (&json!("10.30.0.9"), &json!(7), &json!("static"))
    );
    assert_eq!(of(&device, "route", "nowhere")["type"], "blackhole");
    assert!(all(&device, "route").iter().any(|route| fields(route)["origin_type"] == "connected"));
}
