//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::{Adapter as _, FaultExt as _, Method, ModelChange, Operation};
use serde_json::{Value, json};

use super::applied;
use super::device::{Device, package};
use super::model::{filled, key_of, key_where, of_lists};
use crate::Unifi;

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

/// Something that is there, by its key.
fn at(kind: &'static str, key: String) -> ModelCase {
    ModelCase { kind, key: Some(key), ..ModelCase::default() }
}

/// The filled household with what the cases need: a network with a number, and a profile that can be deleted.
fn ready() -> Device {
    let device = filled();
    for network in [
        json!({ "name": "staff of tests", "purpose": "corporate", "ip_subnet": "10.120.0.1/24", "vlan": 120, "vlan_enabled": true, "dhcpd_start": "10.120.0.6", "dhcpd_stop": "10.120.0.200" }),
        json!({ "name": "things of tests", "purpose": "vlan-only", "vlan": 121, "vlan_enabled": true }),
    ] {
        device.person(Method::Post, "/api/s/default/rest/networkconf", &network);
    }
    let profile = json!({
        "name": "proof", "auth_servers": [{ "ip": "192.0.2.5", "port": 1812, "x_secret": "a-secret-of-a-server" }],
    });
    device.person(Method::Post, "/api/s/default/rest/radiusprofile", &profile);
    device
}

/// The device that a case needs: rules of lists are on a console without zones.
fn device_of(case: &ModelCase) -> Device {
    let is_of_list = case.kind == "firewall-rule" && case.key.is_some();
    if is_of_list { of_lists() } else { ready() }
}

#[test]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let known = ready();
    let cases = [hardware(&known), local(&known), wireless(), rules(), remote(&known)];
    let cases: Vec<ModelCase> = cases.into_iter().flatten().collect();
    every_model_write(package(), device_of, &cases);
}

fn hardware(known: &Device) -> Vec<ModelCase> {
    let switch = known.table("device").into_iter().find(|row| row["type"] == "usw").unwrap();
    let port = key_where(known, "port", |fields| {
        fields["number"].as_u64() > Some(1) && fields["poe"]["enabled"] == true && fields["link"] == "up"
    });
    let radio = key_where(known, "radio", |fields| fields["band"] == "5");
    let client = key_where(known, "client", |fields| fields["connection"] == "wireless");
    vec![
        ModelCase {
            actions: &["reboot"],
            ..at("system", key_of(known, "system", switch["name"].as_str().unwrap()))
        },
        ModelCase { actions: &["poe-cycle"], ..at("port", port.clone()) },
        ModelCase {
            updates: vec![
                json!({ "name": "to the roof", "poe": { "enabled": false } }),
                json!({ "native_vlan": 120, "tagged_mode": "list", "tagged_vlans": [121] }),
                json!({ "native_vlan": 1, "tagged_mode": "none" }),
                json!({ "enabled": false }),
                json!({ "enabled": true, "tagged_mode": "all", "poe": { "enabled": true } }),
            ],
            ..at("port", port)
        },
        ModelCase {
            updates: vec![
                json!({ "channel": 44, "width_mhz": 40, "channel_auto": false, "power_level": "low" }),
                json!({ "channel_auto": true, "tx_power_dbm": 12 }),
                json!({ "enabled": false }),
                json!({ "enabled": true, "power_level": "auto" }),
            ],
            ..at("radio", radio)
        },
        ModelCase { actions: &["reconnect", "block", "unblock"], ..at("client", client) },
    ]
}

fn local(known: &Device) -> Vec<ModelCase> {
    vec![
        case(
            "vlan",
            json!({ "vlan_id": 77, "name": "cameras", "subnets": ["10.77.0.0/24"], "gateway": "10.77.0.254", "dhcp": "server" }),
            vec![
                json!({ "vlan_id": 78, "dhcp": "none" }),
                json!({ "subnets": ["10.78.0.0/24"], "gateway": "10.78.0.1" }),
            ],
        ),
        case("vlan", json!({ "vlan_id": 79 }), vec![]),
        ModelCase {
            updates: vec![
                json!({
                    "enabled": true, "ranges": [{ "from": "10.120.0.10", "to": "10.120.0.99" }], "lease_seconds": 7200,
                    "gateway": "10.120.0.2", "dns_servers": ["9.9.9.9", "192.0.2.53"], "domain": "tests.example",
                }),
                json!({ "enabled": false, "dns_servers": ["9.9.9.9"] }),
            ],
            ..at("dhcp-pool", key_where(known, "vlan", |fields| fields["vlan_id"] == 120))
        },
        case(
            "dhcp-reservation",
            json!({ "scope": "staff of tests", "mac": "02:00:5e:00:99:01", "address": "10.120.0.40", "hostname": "lamp" }),
            vec![json!({ "address": "10.120.0.41", "hostname": "light", "scope": "staff of tests" })],
        ),
        case(
            "dns-record",
            json!({ "name": "new.test", "type": "A", "value": "192.0.2.9", "ttl_seconds": 60, "enabled": true }),
            vec![json!({ "ttl_seconds": 90, "enabled": false })],
        ),
        case(
            "route",
            json!({
                "destination": "10.97.0.0/16", "next_hop": "10.120.0.254", "type": "unicast", "name": "lab", "metric": 2, "enabled": true,
            }),
            vec![
                json!({ "destination": "10.96.0.0/16", "next_hop": "10.120.0.253", "metric": 3, "enabled": false }),
                json!({ "type": "unicast", "interface": "staff of tests" }),
            ],
        ),
        case(
            "route",
            json!({ "destination": "10.95.0.0/16", "interface": "staff of tests" }),
            vec![json!({ "type": "blackhole" })],
        ),
    ]
}

fn wireless() -> Vec<ModelCase> {
    vec![
        case(
            "ssid",
            json!({
                "name": "lobby", "enabled": true, "security": "wpa2-psk", "passphrase": "hunter2-hunter2", "bands": ["2.4", "5"],
                "hidden": true, "isolation": true, "fast_roaming": true, "pmf": "optional", "vlan_id": 120,
            }),
            vec![
                json!({ "security": "wpa3-sae", "passphrase": "another-passphrase", "pmf": "required", "bands": ["5", "6"] }),
                json!({ "enabled": false, "hidden": false, "isolation": false, "fast_roaming": false, "vlan_id": 121 }),
            ],
        ),
        case(
            "ssid",
            json!({ "name": "staff only", "security": "wpa2-enterprise", "radius_profile": "proof" }),
            vec![json!({ "security": "wpa2-wpa3-enterprise", "radius_profile": "proof" })],
        ),
        case("ssid", json!({ "name": "all", "security": "open" }), vec![]),
    ]
}

fn rules() -> Vec<ModelCase> {
    let lists = of_lists();
    vec![
        case(
            "firewall-rule",
            json!({
                "scope": { "kind": "zone-pair" }, "name": "asked", "enabled": true, "action": "drop", "ip_version": "4",
                "from": ["Internal"], "to": ["External"], "source": { "networks": ["staff of tests"] },
                "destination": { "addresses": ["192.0.2.7"], "negated": true }, "protocol": "tcp",
                "source_ports": ["1024-65535"], "destination_ports": ["443", "8443"], "log": true,
            }),
            vec![
                json!({
                    "scope": { "kind": "zone-pair" }, "enabled": false, "action": "reject", "ip_version": "both", "protocol": "any", "log": false,
                    "source": { "any": true }, "destination": { "groups": ["doors"] }, "source_ports": [], "destination_ports": [],
                }),
                json!({ "from": ["VPN"], "to": ["Internal"], "destination": { "networks": ["staff of tests"] } }),
            ],
        ),
        ModelCase {
            updates: vec![
                json!({ "enabled": false, "action": "reject", "log": true }),
                json!({ "enabled": true, "action": "drop" }),
            ],
            deletes: true,
            ..at("firewall-rule", key_of(&lists, "firewall-rule", "in four"))
        },
        case(
            "nat-rule",
            json!({
                "type": "port-forward", "name": "asked", "interface": "wan", "protocol": "tcp", "source": ["203.0.113.9"],
                "external": { "ports": ["8080"] }, "internal": { "addresses": ["10.120.0.20"], "ports": ["80"] }, "enabled": true,
            }),
            vec![json!({
                "type": "port-forward", "interface": "wan2", "protocol": "tcp,udp", "source": [], "enabled": false,
                "external": { "ports": ["8081"] }, "internal": { "addresses": ["10.120.0.21"], "ports": ["81"] },
            })],
        ),
        case(
            "address-group",
            json!({ "name": "asked", "type": "addresses", "members": ["192.0.2.0/24"] }),
            vec![json!({ "type": "addresses", "members": ["192.0.2.0/24", "198.51.100.7"] })],
        ),
        case("address-group", json!({ "name": "six", "members": ["2001:db8::/32"] }), vec![]),
        case(
            "address-group",
            json!({ "name": "ports", "type": "ports", "members": ["22", "8000-8010"] }),
            vec![],
        ),
    ]
}

fn remote(known: &Device) -> Vec<ModelCase> {
    let switched = |label: &str| ModelCase {
        updates: vec![json!({ "enabled": false }), json!({ "enabled": true })],
        ..at("vpn-tunnel", key_of(known, "vpn-tunnel", label))
    };
    vec![
        switched("branch office"),
        switched("dial in"),
        case(
            "vpn-peer",
            json!({
                "tunnel": "dial in", "name": "tablet", "public_key": "dGFibGV0LXB1YmxpYy1rZXktb2YtMzItYnl0ZXMhIT0=",
                "allowed": ["10.66.0.8", "198.51.100.0/24"],
            }),
            vec![],
        ),
        ModelCase {
            updates: vec![json!({ "vlan_assignment": true }), json!({ "vlan_assignment": false })],
            deletes: true,
            ..at("radius-profile", key_of(known, "radius-profile", "proof"))
        },
        case(
            "radius-user",
            json!({ "name": "bob", "password": "password-of-bob", "vlan_id": 20 }),
            vec![json!({ "vlan_id": 30, "password": "another-password" })],
        ),
        case(
            "radius-user",
            json!({ "mac": "02:00:00:5e:00:88", "vlan_id": 30 }),
            vec![json!({ "mac": "02:00:00:5e:00:88", "vlan_id": 31 })],
        ),
    ]
}

/// Kind, verb, payload, and the field that is refused. `taken`, `port` and `radio` are keys of objects.
fn without_a_word(
    taken: &str,
    port: &str,
    radio: &str,
) -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let at = |key: &str, field: &str, value: Value| json!({ "key": key, field: value });
    vec![
        ("vlan", "create", json!({ "vlan_id": 1 }), "/vlan_id"),
        ("vlan", "create", json!({ "vlan_id": 5, "members": [] }), "/members"),
        ("vlan", "create", json!({ "vlan_id": 5, "subnets": ["10.5.0.0/24", "10.6.0.0/24"] }), "/subnets"),
        ("vlan", "create", json!({ "vlan_id": 5, "gateway": "10.5.0.1" }), "/subnets"),
        ("vlan", "create", json!({ "vlan_id": 5, "dhcp": "server" }), "/dhcp"),
        ("vlan", "update", at(taken, "gateway", json!("10.9.0.1")), "/gateway"),
        ("vlan", "update", at(taken, "subnets", json!([])), "/subnets"),
        ("port", "update", at(port, "poe", json!({ "enabled": true })), "/poe/enabled"),
        ("port", "update", at(port, "native_vlan", json!(4000)), "/native_vlan"),
        ("port", "update", at(port, "tagged_mode", json!("list")), "/tagged_vlans"),
        ("radio", "update", at(radio, "channel_auto", json!(false)), "/channel"),
        ("radio", "update", at(radio, "power_level", json!("custom")), "/tx_power_dbm"),
        ("ssid", "create", json!({ "name": "x", "security": "wpa2-psk" }), "/passphrase"),
        (
            "ssid",
            "create",
            json!({ "name": "x", "security": "open", "passphrase": "a-passphrase" }),
            "/passphrase",
        ),
        ("ssid", "create", json!({ "name": "x", "security": "owe" }), "/security"),
        ("ssid", "create", json!({ "name": "x", "security": "open", "vlan_id": 4000 }), "/vlan_id"),
        (
            "dhcp-reservation",
            "create",
            json!({ "mac": "02:00:5e:00:99:02", "address": "192.0.2.1" }),
            "/address",
        ),
        (
            "dhcp-reservation",
            "create",
            json!({ "mac": "02:00:5e:00:99:02", "address": "10.120.0.9", "scope": "no" }),
            "/scope",
        ),
        ("route", "create", json!({ "destination": "10.0.0.0/8", "type": "local" }), "/type"),
        ("firewall-rule", "create", json!({ "action": "drop", "to": ["External"] }), "/from"),
        ("firewall-rule", "create", json!({ "action": "drop", "from": ["No"], "to": ["External"] }), "/from"),
        (
            "firewall-rule",
            "create",
            json!({ "action": "drop", "from": ["Internal"], "to": ["External"], "direction": "in" }),
            "/direction",
        ),
        ("nat-rule", "create", json!({ "type": "one-to-one" }), "/type"),
        (
            "nat-rule",
            "create",
            json!({ "type": "port-forward", "external": { "ports": ["1"] }, "internal": { "ports": ["1"] } }),
            "/internal/addresses",
        ),
        ("address-group", "create", json!({ "name": "x", "type": "domains", "members": [] }), "/type"),
        (
            "vpn-peer",
            "create",
            json!({ "tunnel": "x", "public_key": "y", "allowed": ["10.0.0.0/8"] }),
            "/allowed",
        ),
    ]
}

#[test]
fn what_the_controller_has_no_word_for_names_the_field() {
    let device = ready();
    let taken = key_where(&device, "vlan", |fields| fields["vlan_id"] == 120);
    let port = key_where(&device, "port", |fields| fields["poe"]["supported"] != true);
    let radio = key_where(&device, "radio", |_| true);
    for (kind, verb, payload, field) in without_a_word(&taken, &port, &radio) {
        let change = ModelChange {
            kind: kind.to_owned(),
            verb: verb.to_owned(),
            site: None,
            payload: payload.to_string(),
        };
        let fault = Unifi::express(&device.host(), &[change]).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(fields, [field], "{kind} {payload}: {}", fault.info().message);
    }
}

/// What a change in the words of the model writes.
#[track_caller]
fn payload_of(device: &Device, kind: &str, key: &str, fields: &Value) -> Value {
    let mut payload = json!({ "key": key });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let change = ModelChange {
        kind: kind.to_owned(),
        verb: "update".to_owned(),
        site: None,
        payload: payload.to_string(),
    };
    let expressed = Unifi::express(&device.host(), &[change]).unwrap();
    serde_json::from_str(&expressed[0][0].payload).unwrap()
}

#[test]
fn port_that_is_on_keeps_how_it_is_on_and_one_that_is_off_stays_off() {
    let device = ready();
    let key = key_where(&device, "port", |fields| {
        fields["number"].as_u64() > Some(1) && fields["poe"]["enabled"] == true && fields["link"] == "up"
    });
    let (mac, number) = key.rsplit_once(':').unwrap();
    let number: u64 = number.parse().unwrap();
    let own = |fields: &Value| {
        let mut payload = json!({ "mac": mac, "port_idx": number });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        applied(&device, "ports.port", Operation::Update, &payload);
    };
    let of = |fields: &Value| payload_of(&device, "port", &key, fields);
    let wanted = |more: &Value| {
        let mut payload = json!({ "mac": mac, "port_idx": number });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    own(&json!({ "poe_mode": "pasv24", "tagged_vlan_mgmt": "custom", "forward": "customize" }));
    assert_eq!(of(&json!({ "enabled": true, "poe": { "enabled": true } })), wanted(&json!({})));
    assert_eq!(of(&json!({ "poe": { "enabled": false } })), wanted(&json!({ "poe_mode": "off" })));
    let none =
        json!({ "tagged_vlan_mgmt": "block_all", "excluded_networkconf_ids": null, "forward": "native" });
    assert_eq!(of(&json!({ "tagged_mode": "none" })), wanted(&none));
    own(&json!({ "poe_mode": "off", "forward": "disabled" }));
    assert_eq!(of(&json!({ "enabled": false })), wanted(&json!({})));
    let none = json!({ "tagged_vlan_mgmt": "block_all", "excluded_networkconf_ids": null });
    assert_eq!(of(&json!({ "tagged_mode": "none" })), wanted(&none), "it was not asked to be on");
    let on = json!({ "forward": "customize", "poe_mode": "auto" });
    assert_eq!(of(&json!({ "enabled": true, "poe": { "enabled": true } })), wanted(&on));
}

#[test]
fn radio_that_sends_keeps_its_power() {
    let device = ready();
    let key = key_where(&device, "radio", |fields| fields["band"] == "5" && fields["enabled"] == true);
    assert!(payload_of(&device, "radio", &key, &json!({ "enabled": true })).get("tx_power_mode").is_none());
    let off = payload_of(&device, "radio", &key, &json!({ "enabled": false }));
    assert_eq!(off["tx_power_mode"], "disabled");
    applied(&device, "wifi.radio", Operation::Update, &off);
    let on = payload_of(&device, "radio", &key, &json!({ "enabled": true }));
    assert_eq!(on["tx_power_mode"], "auto");
}

#[test]
fn addresses_that_a_server_gives_move_with_the_network() {
    let device = ready();
    let network = json!({
        "name": "moving", "purpose": "corporate", "ip_subnet": "10.122.0.1/24", "vlan": 122, "vlan_enabled": true,
        "dhcpd_enabled": true, "dhcpd_start": "10.122.0.6", "dhcpd_stop": "10.122.0.200",
    });
    device.person(Method::Post, "/api/s/default/rest/networkconf", &network);
    let key = key_where(&device, "vlan", |fields| fields["vlan_id"] == 122);
    let of = |fields: Value| {
        let payload = payload_of(&device, "vlan", &key, &fields);
        ["ip_subnet", "dhcpd_start", "dhcpd_stop"].map(|name| payload[name].clone())
    };
    let moved = of(json!({ "subnets": ["10.132.0.0/24"], "gateway": "10.132.0.254" }));
    assert_eq!(moved, ["10.132.0.254/24", "10.132.0.6", "10.132.0.253"]);
    let among = of(json!({ "gateway": "10.122.0.100" }));
    assert_eq!(among, ["10.122.0.100/24", "10.122.0.101", "10.122.0.254"]);
    // A range that people chose stays where it can.
    assert_eq!(
        of(json!({ "gateway": "10.122.0.254" })),
        [json!("10.122.0.254/24"), Value::Null, Value::Null]
    );
    assert_eq!(of(json!({ "subnets": ["10.122.0.0/24"], "dhcp": "none" }))[1..], [Value::Null, Value::Null]);
}
