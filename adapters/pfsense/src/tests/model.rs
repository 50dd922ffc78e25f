//! The model: what is read of the simulated firewall in the words that all vendors share.

use heddle_adapter_kit::filled_problems;
use heddle_marketplace::model;
use heddle_sdk::crud::{Modelled, Vendor as _};
use heddle_sdk::testing::every_page;
use heddle_sdk::{Adapter as _, Method, ModelObject, Origin};
use serde_json::{Map, Value, json};

use super::device::{Device, description};
use crate::{Pfsense, Vendor};

/// What the household does not have, and a person makes by the API.
const FURTHER: [(&str, &str); 14] = [
    ("/interface/lagg", r#"{"members":["igb2","igb3"],"proto":"lacp","descr":"core"}"#),
    ("/interface/bridge", r#"{"members":["GUEST"],"descr":"joined"}"#),
    (
        "/services/dhcp_server/address_pool",
        r#"{"parent_id":"lan","range_from":"192.168.1.60","range_to":"192.168.1.69","domain":"things.example","gateway":"192.168.1.2","dnsserver":["192.168.1.53"],"defaultleasetime":600,"maxleasetime":900}"#,
    ),
    (
        "/services/dhcp_server/custom_option",
        r#"{"parent_id":"lan","number":66,"type":"text","value":"dGZ0cA=="}"#,
    ),
    (
        "/services/dns_resolver/host_override",
        r#"{"host":"six","domain":"home.example","ip":["2001:db8::6","192.0.2.6"],"descr":"","aliases":[{"host":"also","domain":"home.example","descr":""}]}"#,
    ),
    ("/services/dns_resolver/domain_override", r#"{"domain":"corp.example","ip":"10.20.0.53"}"#),
    (
        "/services/bind/zone",
        r#"{"name":"zone.example","type":"master","ttl":600,"baseip":"192.0.2.1","nameserver":"ns.zone.example","mail":"a.zone.example","serial":1,"records":[{"name":"www","type":"A","rdata":"192.0.2.7"}]}"#,
    ),
    (
        "/firewall/nat/outbound/mapping",
        r#"{"interface":"WAN","source":"10.1.0.0/16","destination":"any","target":"198.51.100.7","descr":"leaving"}"#,
    ),
    (
        "/firewall/nat/one_to_one/mapping",
        r#"{"interface":"WAN","external":"198.51.100.9","source":"192.168.1.21","destination":"any","descr":"mapped"}"#,
    ),
    (
        "/firewall/rule",
        r#"{"type":"reject","interface":["LAN","GUEST"],"floating":true,"quick":true,"direction":"out","ipprotocol":"inet","protocol":"tcp","source":"!10.0.0.0/8","source_port":"1024:65535","destination":"LAN:ip","destination_port":"443","sched":"office_hours","log":true,"descr":"odd"}"#,
    ),
    ("/services/freeradius/user", r#"{"username":"alice","password":"password-of-alice","vlan_id":"20"}"#),
    (
        "/interface",
        r#"{"if":"igb1.30","descr":"THIRD","enable":true,"typev4":"static","ipaddr":"192.0.2.1","subnet":24,"apply":true}"#,
    ),
    (
        "/vpn/wireguard/peer",
        r#"{"tun":"tun_wg0","enabled":true,"descr":"office","endpoint":"203.0.113.9","port":"51820","publickey":"b2ZmaWNlLXB1YmxpYy1rZXktb2YtMzItYnl0ZXMhIT0=","allowedips":[{"address":"10.9.0.9","mask":32}]}"#,
    ),
    ("/services/freeradius/mac", r#"{"mac":"02:00:00:00:00:77","vlan_id":"30"}"#),
];

/// A firewall that has something of everything.
pub(super) fn filled() -> Device {
    let device = Device::new();
    for (path, body) in FURTHER {
        device.person(Method::Post, path, &serde_json::from_str(body).unwrap());
    }
    let edit = |edit: Value| device.lab().edit(&edit).unwrap();
    edit(
        json!({ "do": "session", "session": { "vpnid": 1, "common_name": "alice", "remote_host": "203.0.113.77:5000",
        "virtual_addr": "10.8.0.6" } }),
    );
    edit(
        json!({ "do": "set", "model": "NetworkInterface", "id": "wan", "fields": { "ipaddr": "198.51.100.2", "subnet": 24 } }),
    );
    edit(json!({ "do": "apply" }));
    device
}

/// All objects of a kind.
pub(super) fn all(device: &Device, kind: &str) -> Vec<ModelObject> {
    let (objects, is_complete) = every_page(|cursor| Pfsense::list_model(&device.host(), kind, None, cursor));
    assert!(is_complete, "{kind} is not complete");
    objects
}

fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

/// The fields of an object, by its label.
pub(super) fn of(device: &Device, kind: &str, label: &str) -> Map<String, Value> {
    let found = all(device, kind).into_iter().find(|object| object.label == label);
    fields(&found.unwrap_or_else(|| panic!("no {kind} is called '{label}'")))
}

pub(super) fn key_of(device: &Device, kind: &str, label: &str) -> String {
    let found = all(device, kind).into_iter().find(|object| object.label == label);
    found.unwrap_or_else(|| panic!("no {kind} is called '{label}'")).key
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
    let devices = [filled()];
    let of_device = |device: &Device, kind: &str| {
        all(device, kind).into_iter().map(|object| (object.key.clone(), fields(&object))).collect()
    };
    let problems =
        filled_problems(description(), |kind| devices.iter().map(|device| of_device(device, kind)).collect());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn interfaces_have_their_ids_whatever_the_firewall_calls_them() {
    for told in ["descr", "id", "if"] {
        let device = filled();
        let settings =
            json!({ "do": "set", "model": "RESTAPISettings", "fields": { "represent_interfaces_as": told } });
        device.lab().edit(&settings).unwrap();
        check(
            &of(&device, "firewall-rule", "guests stay out"),
            &json!({
                "scope": { "kind": "interface", "key": "opt1" }, "from": ["opt1"], "action": "drop",
                "source": { "networks": ["opt1"] }, "destination": { "networks": ["lan"] },
            }),
        );
        check(&of(&device, "gateway", "WANGW"), &json!({ "interface": "wan", "active": true }));
        check(&of(&device, "nat-rule", "publish web"), &json!({ "interface": "wan" }));
    }
}

#[test]
fn interface_is_its_port_and_what_stands_on_it() {
    let device = filled();
    check(
        &of(&device, "interface", "LAN"),
        &json!({
            "name": "igb1", "type": "physical", "role": "lan", "addresses": ["192.168.1.1/24"], "enabled": true,
        }),
    );
    check(
        &of(&device, "interface", "GUEST"),
        &json!({ "type": "vlan", "vlan_id": 20, "lower": "lan", "master": "bridge0" }),
    );
    check(&of(&device, "interface", "WAN"), &json!({ "role": "wan" }));
    assert_eq!(key_of(&device, "interface", "LAN"), "lan");
    check(
        &of(&device, "vlan", "guests"),
        &json!({
            "vlan_id": 20, "interface": "opt1", "subnets": ["192.168.20.0/24"], "gateway": "192.168.20.1", "dhcp": "server",
            "members": [{ "port": "lan", "tagged": true }],
        }),
    );
    check(&of(&device, "vlan", "voice"), &json!({ "vlan_id": 30, "interface": "opt2", "dhcp": "none" }));
}

#[test]
fn rules_say_what_they_match_and_what_the_model_has_no_word_for() {
    let device = filled();
    check(
        &of(&device, "firewall-rule", "odd"),
        &json!({
            "scope": { "kind": "floating" }, "direction": "out", "to": ["lan", "opt1"], "action": "reject", "protocol": "tcp",
            "source": { "addresses": ["10.0.0.0/8"], "negated": true }, "source_ports": ["1024-65535"],
            "destination": { "networks": ["lan:ip"] }, "partial": ["schedule"], "log": true, "final": true,
        }),
    );
    check(
        &of(&device, "firewall-rule", "publish web"),
        &json!({
            "destination": { "groups": ["web_servers"] }, "destination_ports": ["web_ports"], "source": { "any": true },
        }),
    );
    let positions: Vec<Value> = ["guests stay out", "guests to the internet"]
        .iter()
        .map(|rule| of(&device, "firewall-rule", rule)["position"].clone())
        .collect();
    assert_eq!(positions, [json!(0), json!(1)]);
    check(
        &of(&device, "nat-rule", "publish web"),
        &json!({
            "type": "port-forward", "external": { "addresses": ["wan:ip"], "ports": ["8443"] },
            "internal": { "addresses": ["192.168.1.20"], "ports": ["443"] }, "passes": false,
        }),
    );
}

#[test]
fn each_address_of_a_host_is_a_record() {
    let device = filled();
    let named = |name: &str| -> Vec<Map<String, Value>> {
        all(&device, "dns-record").iter().map(fields).filter(|fields| fields["name"] == name).collect()
    };
    let kinds: Vec<(Value, Value)> = named("six.home.example")
        .into_iter()
        .map(|one| (one["type"].clone(), one["value"].clone()))
        .collect();
    assert_eq!(kinds, [(json!("AAAA"), json!("2001:db8::6")), (json!("A"), json!("192.0.2.6"))]);
    assert_eq!(named("also.home.example").len(), 1);
    check(&named("www.zone.example")[0], &json!({ "type": "A", "value": "192.0.2.7", "ttl_seconds": 600 }));
    check(&named("corp.example")[0], &json!({ "type": "FORWARD", "value": "10.20.0.53" }));
}

#[test]
fn odd_rows_leave_fields_out_and_never_fail() {
    let host = heddle_sdk::testing::FakeHost::new(|_, _| Err(heddle_sdk::fault::timeout("nothing is asked")));
    let vendor = Vendor::of(&host);
    for kind in description()["model"].as_array().unwrap() {
        let kind = kind["kind"].as_str().unwrap();
        for row in [
            json!({}),
            json!([]),
            json!({ "type": 5, "interface": 7, "uptime": "long", "ipaddr": "none", "subnet": "x", "if": [], "&": 1 }),
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
