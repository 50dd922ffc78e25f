use heddle_core::adapter::{Completeness, Origin};
use heddle_core::{Clock, ControllerId};
use heddle_store::model_objects::of_site::{AtSite, ListAtSite};
use serde_json::{Value, json};

use crate::site::facts::{Carriage, Facts};
use crate::site::gathered::gathered;

/// Two controllers, each with lists of everything.
struct Two {
    clock: Clock,
    ids: [ControllerId; 2],
    rows: Vec<AtSite>,
}

impl Two {
    fn new() -> Self {
        let clock = Clock::default();
        Self { ids: [clock.new_id(), clock.new_id()], clock, rows: Vec::new() }
    }

    fn with(mut self, at: usize, kind: &str, key: &str, fields: Value) -> Self {
        self.rows.push(AtSite {
            id: self.clock.new_id(),
            controller_id: self.ids[at],
            site_ref: String::new(),
            kind: kind.to_owned(),
            key: key.to_owned(),
            label: key.to_owned(),
            origin: Origin::Own,
            device_key: Some(format!("02-00-00-00-00-0{at}")),
            fields,
        });
        self
    }

    /// Told by the first one of the second one.
    fn heard(self, port: &str, remote_port: &str, protocol: &str) -> Self {
        let fields = json!({
            "port": port, "remote_port": remote_port, "protocol": protocol, "remote_chassis": "0200.0000.0001",
        });
        let key = format!("{port} {remote_port}");
        self.with(0, "neighbour", &key, fields)
    }

    fn facts(&self) -> Facts {
        let list = |controller_id, kind: &str| ListAtSite {
            controller_id,
            name: "one".to_owned(),
            vendor: "acme".to_owned(),
            kind: Some(kind.to_owned()),
            site_ref: Some(String::new()),
            site_name: None,
            read_at: Some(self.clock.now()),
            complete: Some(Completeness::Complete),
            left_out: Some(0),
        };
        let kinds = ["vlan", "port"];
        let lists: Vec<ListAtSite> =
            self.ids.iter().flat_map(|id| kinds.map(|kind| list(*id, kind))).collect();
        gathered(&lists, (&self.rows, true), &|_, _, _| true)
    }
}

fn port(number: u64) -> Value {
    json!({ "number": number, "native_vlan": 1, "tagged_mode": "list", "tagged_vlans": [20] })
}

#[test]
fn a_port_is_found_by_its_key_its_name_or_its_number() {
    for (told, is_found) in [
        ("eth5", true),
        ("ETH5", true),
        ("5", true),
        ("1/0/5", true),
        ("0/5", true),
        ("2/0/5", false),
        ("6", false),
        ("eth", false),
    ] {
        let two = Two::new().with(0, "port", "lan1", port(1)).with(1, "port", "eth5", port(5));
        let links = two.heard("lan1", told, "lldp").facts().links;
        assert_eq!(links.len() == 1, is_found, "{told}");
    }
}

#[test]
fn a_link_is_known_only_where_both_ends_are_sure() {
    let ports = || {
        Two::new().with(0, "port", "lan1", port(1)).with(1, "port", "eth5", port(5)).with(
            1,
            "port",
            "eth6",
            port(6),
        )
    };
    assert_eq!(ports().heard("lan1", "eth5", "cdp").facts().links.len(), 1);
    for (two, why) in [
        (ports().heard("lan1", "eth5", "other"), "switches forward what other protocols send"),
        (ports().heard("lan9", "eth5", "lldp"), "the own port is not known"),
        (ports().heard("lan1", "eth5", "lldp").heard("lan1", "eth6", "lldp"), "two are behind the port"),
        (ports().with(1, "port", "x", port(5)).heard("lan1", "5", "lldp"), "two ports have the number"),
        (
            ports()
                .with(0, "interface", "lan2", json!({ "mac": "02:00:00:00:00:01" }))
                .heard("lan1", "eth5", "lldp"),
            "two devices have the address",
        ),
        (ports().with(1, "port", "ETH5", port(7)).heard("lan1", "eth5", "lldp"), "two ports have the name"),
    ] {
        assert!(two.facts().links.is_empty(), "{why}");
    }
}

#[test]
fn an_interface_of_a_bond_carries_what_the_bond_carries() {
    let members = json!([{ "port": "bond0", "tagged": true }]);
    let two = Two::new()
        .with(0, "port", "lan1", port(1))
        .with(0, "vlan", "20", json!({ "vlan_id": 20, "members": [{ "port": "lan1", "tagged": true }] }))
        .with(1, "vlan", "20", json!({ "vlan_id": 20, "members": members }))
        .with(1, "interface", "opt1", json!({ "name": "em1", "type": "physical", "master": "bond0" }));
    let of = |kind: &str| {
        let bond = json!({ "name": "bond0", "type": kind });
        let two = Two { clock: two.clock.clone(), ids: two.ids, rows: two.rows.clone() };
        let facts = two.with(1, "interface", "bond0", bond).heard("lan1", "em1", "lldp").facts();
        facts.links[0].ends.each_ref().map(|end| facts.carriage(end, 20))
    };
    assert_eq!(of("bond"), [Carriage::Tagged, Carriage::Tagged]);
    assert_eq!(of("bridge"), [Carriage::Tagged, Carriage::Unknown], "the bridge may pass it to its port");
}

#[test]
fn an_end_is_found_by_the_address_of_one_interface_or_by_a_vlan_that_names_it() {
    let address = "02:00:00:00:00:aa";
    let one = |key: &str| (key.to_owned(), json!({ "mac": address }));
    for (interfaces, told, is_found) in [
        (vec![one("em1")], address, true),
        (vec![one("em1")], "0200.0000.00aa", true),
        (vec![one("em1"), one("em1.20")], address, false),
        (vec![one("em1"), one("em1.20")], "EM1", true),
        (vec![], "br0", true),
        (vec![], "br1", false),
    ] {
        let members = json!([{ "port": "Br0", "tagged": true }]);
        let mut two = Two::new().with(0, "port", "lan1", port(1)).with(1, "port", "eth9", port(9)).with(
            1,
            "vlan",
            "20",
            json!({ "vlan_id": 20, "members": members }),
        );
        for (key, fields) in &interfaces {
            two = two.with(1, "interface", key, fields.clone());
        }
        let links = two.heard("lan1", told, "lldp").facts().links;
        assert_eq!(links.len() == 1, is_found, "{told} of {interfaces:?}");
    }
}
