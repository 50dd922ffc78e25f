//! The model: what is read of the simulated console in the words that all vendors share.

use std::collections::BTreeMap;

use heddle_adapter_kit::filled_problems;
use heddle_lab_unifi::Settings;
use heddle_marketplace::model;
use heddle_sdk::crud::{Modelled, Vendor as _};
use heddle_sdk::testing::{FakeHost, every_page};
use heddle_sdk::{Adapter as _, Method, ModelObject, Origin};
use serde_json::{Map, Value, json};

use super::device::{Device, description};
use crate::{Unifi, Vendor};

/// What the household does not have, and a person makes at the web pages.
const FURTHER: [(&str, &str); 12] = [
    (
        "/api/s/default/rest/firewallgroup",
        r#"{"name":"doors","group_type":"address-group","group_members":["192.0.2.0/24","192.0.2.9"]}"#,
    ),
    (
        "/api/s/default/rest/firewallgroup",
        r#"{"name":"web","group_type":"port-group","group_members":["80","8000-8010"]}"#,
    ),
    (
        "/api/s/default/rest/routing",
        r#"{"name":"branch","type":"static-route","static-route_type":"nexthop-route","static-route_network":"10.99.0.0/16","static-route_nexthop":"192.168.1.254","static-route_distance":5,"enabled":true}"#,
    ),
    (
        "/api/s/default/rest/routing",
        r#"{"name":"out","type":"static-route","static-route_type":"interface-route","static-route_network":"10.98.0.0/16","static-route_interface":"WAN1","static-route_distance":1,"enabled":false}"#,
    ),
    (
        "/api/s/default/rest/portforward",
        r#"{"name":"asked web","enabled":true,"pfwd_interface":"wan","proto":"tcp_udp","src":"203.0.113.0/24","destination_ip":"203.0.113.17","dst_port":"8443","fwd":"192.168.1.20","fwd_port":"443"}"#,
    ),
    (
        "/api/s/default/rest/account",
        r#"{"name":"0200005E0077","x_password":"0200005E0077","vlan":20,"tunnel_type":13,"tunnel_medium_type":6}"#,
    ),
    (
        "/v2/api/site/default/static-dns",
        r#"{"record_type":"A","key":"nas.test","value":"192.0.2.7","ttl":300,"enabled":true}"#,
    ),
    (
        "/v2/api/site/default/nat",
        r#"{"type":"SNAT","description":"leaving","enabled":true,"ip_version":"IPV4","protocol":"tcp","out_interface":"wan","ip_address":"198.51.100.7","source_filter":{"filter_type":"ADDRESS_AND_PORT","address":"192.168.1.21","port":"5060"}}"#,
    ),
    (
        "/api/s/default/rest/networkconf",
        r#"{"name":"branch office","purpose":"site-vpn","vpn_type":"ipsec-vpn","enabled":true,"ipsec_peer_ip":"198.51.100.77","ipsec_local_ip":"any","remote_vpn_subnets":["10.77.0.0/16"],"x_ipsec_pre_shared_key":"a-key-between-two"}"#,
    ),
    (
        "/api/s/default/rest/networkconf",
        r#"{"name":"dial in","purpose":"remote-user-vpn","vpn_type":"wireguard-server","enabled":true,"ip_subnet":"10.66.0.1/24","local_port":51877,"x_wireguard_private_key":"b25lLXByaXZhdGUta2V5LW9mLTMyLWJ5dGVzLWhlcmU=","wireguard_interface":"wan","wireguard_local_wan_ip":"any"}"#,
    ),
    (
        "/api/s/default/rest/radiusprofile",
        r#"{"name":"door keepers","auth_servers":[{"ip":"192.0.2.6","port":1812,"x_secret":"a-secret-of-doors"}]}"#,
    ),
    ("/api/s/default/cmd/backup", r#"{"cmd":"backup","days":0}"#),
];

/// A console that has something of everything.
pub(super) fn filled() -> Device {
    filled_of(Settings::default())
}

fn filled_of(settings: Settings) -> Device {
    let device = Device::of(settings);
    for (path, body) in FURTHER {
        device.person(Method::Post, path, &serde_json::from_str(body).unwrap());
    }
    let tunnel = device.row("networkconf", "name", "dial in")["_id"].as_str().unwrap().to_owned();
    let peer = json!({
        "name": "phone", "public_key": "c2FtcGxlLXB1YmxpYy1rZXktb2YtMzItYnl0ZXMhIT0=", "interface_ip": "10.66.0.7",
        "allowed_ips": ["192.0.2.0/24"],
    });
    device.person(
        Method::Post,
        &format!("/v2/api/site/default/wireguard/{tunnel}/users/batch"),
        &json!([peer]),
    );
    wireless(&device);
    let network = device.table("networkconf").into_iter().find(|row| row["purpose"] == "corporate").unwrap();
    let subnet = network["ip_subnet"].as_str().unwrap().rsplit_once('.').unwrap().0.to_owned();
    let client = json!({
        "mac": "02:00:5e:00:77:01", "name": "desk", "use_fixedip": true, "fixed_ip": format!("{subnet}.77"),
        "network_id": network["_id"],
    });
    device.person(Method::Post, "/api/s/default/rest/user", &client);
    device.rest();
    device
}

/// Wireless networks that ask a server, or have a key for each person.
fn wireless(device: &Device) {
    let groups = json!([device.table("apgroup")[0]["_id"]]);
    let profile = device.row("radiusprofile", "name", "door keepers")["_id"].clone();
    for wlan in [
        json!({
            "name": "keepers", "security": "wpaeap", "wpa_mode": "wpa2", "radiusprofile_id": profile,
            "fast_roaming_enabled": true, "ap_group_ids": groups,
        }),
        json!({
            "name": "each a key", "security": "wpapsk", "wpa_mode": "wpa2", "x_passphrase": "a-passphrase",
            "private_preshared_keys_enabled": true, "ap_group_ids": groups,
        }),
    ] {
        device.person(Method::Post, "/api/s/default/rest/wlanconf", &wlan);
    }
}

/// A console whose firewall has no zones, but lists of rules.
pub(super) fn of_lists() -> Device {
    let device = Device::of(Settings { has_zones: false, ..Settings::default() });
    let group = json!({ "name": "doors", "group_type": "address-group", "group_members": ["192.0.2.0/24"] });
    device.person(Method::Post, "/api/s/default/rest/firewallgroup", &group);
    let group = device.row("firewallgroup", "name", "doors")["_id"].clone();
    for (name, set, fields) in [
        (
            "in four",
            "WAN_IN",
            json!({ "src_firewallgroup_ids": [group], "src_port": "1024-65535", "dst_address": "192.0.2.9", "dst_port": "443" }),
        ),
        ("out six", "WANv6_OUT", json!({ "protocol_v6": "tcp", "state_new": true })),
    ] {
        let mut rule = json!({
            "name": name, "ruleset": set, "rule_index": 2977, "action": "drop", "enabled": true, "protocol": "tcp",
        });
        rule.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        device.person(Method::Post, "/api/s/default/rest/firewallrule", &rule);
    }
    device
}

/// All objects of a kind.
pub(super) fn all(device: &Device, kind: &str) -> Vec<ModelObject> {
    let (objects, is_complete) = every_page(|cursor| Unifi::list_model(&device.host(), kind, None, cursor));
    assert!(is_complete, "{kind} is not complete");
    objects
}

pub(super) fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

/// The object of a kind that has this label.
#[track_caller]
fn named(device: &Device, kind: &str, label: &str) -> ModelObject {
    let found = all(device, kind).into_iter().find(|object| object.label == label);
    found.unwrap_or_else(|| panic!("no {kind} is called '{label}'"))
}

/// The fields of an object, by its label.
#[track_caller]
pub(super) fn of(device: &Device, kind: &str, label: &str) -> Map<String, Value> {
    fields(&named(device, kind, label))
}

#[track_caller]
pub(super) fn key_of(device: &Device, kind: &str, label: &str) -> String {
    named(device, kind, label).key
}

/// The key of the first object of a kind that is like this.
#[track_caller]
pub(super) fn key_where(device: &Device, kind: &str, is: impl Fn(&Map<String, Value>) -> bool) -> String {
    let found = all(device, kind).into_iter().find(|object| is(&fields(object)));
    found.unwrap_or_else(|| panic!("no {kind} is like this")).key
}

/// Whether fields are as the kind's schema says.
fn fits(kind: &str, fields: &Value) -> bool {
    model::find(kind).unwrap().schema().unwrap().validator().is_valid(fields)
}

#[track_caller]
fn check(found: &Map<String, Value>, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(found.get(name).unwrap_or(&Value::Null), value, "{name} of {found:?}");
    }
}

#[test]
fn every_field_that_is_named_is_filled_and_fits_the_schema() {
    let devices = [filled(), of_lists()];
    let of_device = |device: &Device, kind: &str| {
        all(device, kind).into_iter().map(|object| (object.key.clone(), fields(&object))).collect()
    };
    let problems =
        filled_problems(description(), |kind| devices.iter().map(|device| of_device(device, kind)).collect());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn routes_and_translations_say_where_they_lead() {
    let device = filled();
    check(
        &of(&device, "route", "branch"),
        &json!({
            "destination": "10.99.0.0/16", "type": "unicast", "next_hop": "192.168.1.254", "metric": 5, "enabled": true,
        }),
    );
    check(
        &of(&device, "route", "out"),
        &json!({ "type": "unicast", "interface": "WAN1", "next_hop": null, "enabled": false }),
    );
    check(
        &of(&device, "nat-rule", "asked web"),
        &json!({
            "type": "port-forward", "interface": "wan", "protocol": "tcp,udp", "source": ["203.0.113.0/24"],
            "external": { "addresses": ["203.0.113.17"], "ports": ["8443"] },
            "internal": { "addresses": ["192.168.1.20"], "ports": ["443"] },
        }),
    );
    check(
        &of(&device, "nat-rule", "leaving"),
        &json!({
            "external": { "addresses": ["198.51.100.7"] }, "internal": { "addresses": ["192.168.1.21"], "ports": ["5060"] },
        }),
    );
}

#[test]
fn tunnels_peers_and_groups_are_read() {
    let device = filled();
    check(
        &of(&device, "vpn-tunnel", "branch office"),
        &json!({ "type": "ipsec", "enabled": true, "remote_endpoint": "198.51.100.77", "remote_networks": ["10.77.0.0/16"] }),
    );
    check(
        &of(&device, "vpn-tunnel", "dial in"),
        &json!({ "type": "wireguard", "local_networks": ["10.66.0.0/24"] }),
    );
    check(&of(&device, "vpn-peer", "phone"), &json!({ "allowed": ["10.66.0.7", "192.0.2.0/24"] }));
    check(&of(&device, "address-group", "web"), &json!({ "type": "ports", "members": ["80", "8000-8010"] }));
    check(&of(&device, "radius-user", "0200005E0077"), &json!({ "mac": "02:00:00:5e:00:77", "vlan_id": 20 }));
}

#[test]
fn rules_of_lists_say_their_side_and_what_has_no_word() {
    let device = of_lists();
    check(
        &of(&device, "firewall-rule", "in four"),
        &json!({
            "ip_version": "4", "direction": "in", "from": ["WAN"], "action": "drop", "protocol": "tcp",
            "source": { "groups": ["doors"] }, "destination": { "addresses": ["192.0.2.9"] }, "destination_ports": ["443"],
        }),
    );
    check(
        &of(&device, "firewall-rule", "out six"),
        &json!({
            "ip_version": "6", "direction": "out", "to": ["WAN"], "protocol": "tcp", "partial": ["state"],
            "source": { "any": true },
        }),
    );
}

#[test]
fn rules_of_zones_have_places_counted_from_0_within_their_pair() {
    let device = filled();
    let mut places = BTreeMap::<String, Vec<u64>>::new();
    for object in all(&device, "firewall-rule") {
        let fields = fields(&object);
        let pair = fields["scope"]["key"].as_str().unwrap().to_owned();
        places.entry(pair).or_default().push(fields["position"].as_u64().unwrap());
    }
    assert!(places.len() > 1);
    for (pair, mut own) in places {
        own.sort_unstable();
        assert!(pair.contains('>'), "{pair}");
        assert_eq!(own, (0..own.len() as u64).collect::<Vec<u64>>(), "{pair}");
    }
}

#[test]
fn port_shows_its_profile_until_it_has_settings_of_its_own() {
    let device = filled();
    let profile = json!({ "name": "silent", "forward": "native", "tagged_vlan_mgmt": "block_all" });
    device.person(Method::Post, "/api/s/default/rest/portconf", &profile);
    let profile = device.row("portconf", "name", "silent")["_id"].clone();
    let switch = device.table("device").into_iter().find(|row| row["type"] == "usw").unwrap();
    let path = format!("/api/s/default/rest/device/{}", switch["_id"].as_str().unwrap());
    let shown = |overrides: Value| -> Map<String, Value> {
        device.person(Method::Put, &path, &json!({ "port_overrides": overrides }));
        device.rest();
        let key = format!("{}:3", switch["mac"].as_str().unwrap());
        let found = all(&device, "port").into_iter().find(|object| object.key == key);
        fields(&found.unwrap_or_else(|| panic!("no port has the key {key}")))
    };
    check(
        &shown(json!([{ "port_idx": 3, "portconf_id": profile }])),
        &json!({ "profile": "silent", "tagged_mode": "none", "tagged_vlans": [] }),
    );
    check(
        &shown(
            json!([{ "port_idx": 3, "portconf_id": profile, "tagged_vlan_mgmt": "auto", "forward": "all" }]),
        ),
        &json!({ "profile": "silent", "tagged_mode": "all", "tagged_vlans": null }),
    );
    check(&shown(json!([{ "port_idx": 3, "forward": "disabled" }])), &json!({ "enabled": false }));
}

#[test]
fn network_tells_the_ports_that_carry_it() {
    let device = filled();
    let network = json!({ "name": "cameras", "purpose": "vlan-only", "vlan": 99, "vlan_enabled": true });
    device.person(Method::Post, "/api/s/default/rest/networkconf", &network);
    let network = device.row("networkconf", "name", "cameras")["_id"].clone();
    let switch = device.table("device").into_iter().find(|row| row["type"] == "usw").unwrap();
    let path = format!("/api/s/default/rest/device/{}", switch["_id"].as_str().unwrap());
    let overrides =
        json!([{ "port_idx": 3, "native_networkconf_id": network, "tagged_vlan_mgmt": "block_all" }]);
    device.person(Method::Put, &path, &json!({ "port_overrides": overrides }));
    device.rest();
    let port = |number: u64, is_tagged: bool| json!({ "port": format!("{}:{number}", switch["mac"].as_str().unwrap()), "tagged": is_tagged });
    let of = |vlan: u64| -> Vec<Value> {
        let all = all(&device, "vlan");
        let found = all.iter().map(fields).find(|fields| fields["vlan_id"] == vlan).unwrap();
        found["members"].as_array().unwrap().clone()
    };
    let (cameras, first) = (of(99), of(1));
    assert!(cameras.contains(&port(3, false)) && cameras.contains(&port(4, true)), "{cameras:?}");
    assert!(first.contains(&port(4, false)) && !first.contains(&port(3, true)), "{first:?}");
}

#[test]
fn odd_rows_leave_fields_out_and_never_fail() {
    let host = FakeHost::new(|_, _| Err(heddle_sdk::fault::timeout("nothing is asked")));
    let vendor = Vendor::of(&host);
    for kind in description()["model"].as_array().unwrap() {
        let kind = kind["kind"].as_str().unwrap();
        for row in [
            json!({}),
            json!([]),
            json!({ "type": 5, "vlan": "long", "ip_subnet": "none", "ruleset": 7, "lldp_table": {}, "&": 1, "^": [] }),
        ] {
            let mut object = Modelled {
                key: "key".to_owned(),
                label: "label".to_owned(),
                origin: Origin::Own,
                device: None,
                fields: Map::new(),
            };
            vendor.modelled(kind, &row, &mut object);
            let whole = Value::Object(object.fields);
            assert!(fits(kind, &whole), "{kind} {row}: {whole}");
        }
    }
}
