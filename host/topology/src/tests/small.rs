//! Sites that are written by hand: one sentence of the rules each.

use heddle_core::ControllerId;
use heddle_core::blast_radius::{BlastRadius, OwnWay};
use heddle_core::change::Operation;
use heddle_store::topology::NativeName;
use serde_json::{Value, json};

use super::Teller;
use crate::build::build;
use crate::facts::Facts;
use crate::losses::Losses;
use crate::radius::{self, Rules};
use crate::reach;
use crate::site::{Node, Site};
use crate::touch::{Change, Native, Words};

/// A router, two switches that are linked twice, an access point at the second one, and what hangs on them.
struct Office {
    facts: Facts,
    router: ControllerId,
    switches: ControllerId,
}

fn trunk(number: u32) -> Value {
    json!({ "number": number, "native_vlan": 1, "tagged_vlans": [20], "tagged_mode": "list", "enabled": true, "link": "up" })
}

fn office() -> Office {
    let mut teller = Teller::new();
    let router = teller.controller("edge", "10.0.1.1");
    let switches = teller.controller("lan", "203.0.113.77");
    let gate = Some("02:00:00:00:00:01");
    teller.tell(router, gate, ("system", "router"), json!({ "role": "router", "name": "edge" }));
    for (key, fields) in [
        ("wan", json!({ "type": "physical", "role": "wan", "addresses": ["198.51.100.2/24"] })),
        (
            "lan",
            json!({ "name": "eth1", "type": "physical", "role": "lan", "addresses": ["10.0.1.1/24"], "mac": "02:00:00:00:00:01" }),
        ),
        (
            "guest",
            json!({ "type": "vlan", "role": "lan", "lower": "lan", "vlan_id": 20, "addresses": ["10.0.20.1/24"] }),
        ),
    ] {
        teller.tell(router, gate, ("interface", key), fields);
    }
    tell_of_switches(&mut teller, switches);
    tell_of_wireless(&mut teller, switches);
    teller.tell(
        switches,
        Some("02:00:00:00:00:aa"),
        ("client", "desk"),
        json!({ "mac": "02:bb:00:00:00:09", "hostname": "desk", "addresses": ["10.0.1.50"], "port": "1/0/4", "vlan_id": 1 }),
    );
    teller.facts.own_addresses = vec!["10.0.1.50".parse().unwrap()];
    Office { facts: teller.facts, router, switches }
}

/// Two switches in a ring of two cables, the access point behind the second, and the router before the first.
fn tell_of_switches(teller: &mut Teller, switches: ControllerId) {
    for (name, ports) in [("aa", 4), ("bb", 5)] {
        let own = format!("02:00:00:00:00:{name}");
        teller.device(switches, &own, &format!("switch {name}"), &[]);
        teller.tell(
            switches,
            Some(&own),
            ("system", &own),
            json!({ "role": "switch", "name": format!("switch {name}") }),
        );
        for number in 1..=ports {
            teller.tell(switches, Some(&own), ("port", &format!("{own}:{number}")), trunk(number));
        }
    }
    teller.device(switches, "02:00:00:00:00:cc", "point", &[]);
    teller.tell(
        switches,
        Some("02:00:00:00:00:cc"),
        ("system", "point"),
        json!({ "role": "access-point", "name": "point" }),
    );
    for (own, port, chassis, far) in [
        ("aa", "1", "02:00:00:00:00:01", "eth1"),
        ("aa", "1/0/2", "02-00-00-00-00-BB", "1/0/1"),
        ("bb", "1/0/1", "switch aa", "2"),
        ("aa", "3", "0200.0000.00bb", "Port 2"),
        ("bb", "4", "02:00:00:00:00:cc", "eth0"),
    ] {
        let fields =
            json!({ "port": port, "remote_chassis": chassis, "remote_port": far, "protocol": "lldp" });
        teller.tell(
            switches,
            Some(&format!("02:00:00:00:00:{own}")),
            ("neighbour", &format!("{own} {port} {chassis}")),
            fields,
        );
    }
}

fn tell_of_wireless(teller: &mut Teller, switches: ControllerId) {
    for (key, vlan) in [("staff", None), ("visitors", Some(20))] {
        let mut fields = json!({ "name": key });
        fields["vlan_id"] = vlan.map_or(Value::Null, Value::from);
        if vlan.is_none() {
            fields.as_object_mut().unwrap().remove("vlan_id");
        }
        teller.tell(switches, None, ("ssid", key), fields);
    }
    for (number, ssid) in [(1, "staff"), (2, "visitors")] {
        let fields = json!({ "mac": format!("02:bb:00:00:00:0{number}"), "hostname": format!("phone {number}"), "connection": "wireless", "ssid": ssid });
        teller.tell(switches, Some("02:00:00:00:00:cc"), ("client", &format!("phone{number}")), fields);
    }
}

fn asked(controller: ControllerId, (kind, verb): (&str, &str), payload: Value) -> Change {
    let words = Words::Model { kind: kind.to_owned(), verb: verb.to_owned() };
    Change { controller, site_ref: None, words, payload }
}

fn judged(facts: &Facts, changes: &[Change]) -> BlastRadius {
    radius::of_changes(&build(facts), changes, &Rules::new())
}

fn port(office: &Office, key: &str, fields: Value) -> BlastRadius {
    let mut payload = json!({ "key": format!("02:00:00:00:00:{key}") });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    judged(&office.facts, &[asked(office.switches, ("port", "update"), payload)])
}

#[test]
fn words_of_both_sides_are_one_link_and_two_cables_are_two() {
    let site = build(&office().facts);
    let between: Vec<usize> = site.links.iter().map(|link| link.evidence.len()).collect();
    assert_eq!((site.links.len(), between.iter().sum::<usize>()), (4, 5), "{:?}", site.links);
}

#[test]
fn one_of_two_cables_cuts_nothing_and_both_cut_all_that_is_behind() {
    let office = office();
    let one = port(&office, "aa:2", json!({ "enabled": false }));
    assert_eq!(
        (one.devices_cut_off.count, one.clients_cut_off.count, one.own_way),
        (0, 0, OwnWay::Kept),
        "{one:?}"
    );
    let both = ["aa:2", "aa:3"].map(|key| {
        let payload = json!({ "key": format!("02:00:00:00:00:{key}"), "enabled": false });
        asked(office.switches, ("port", "update"), payload)
    });
    let both = judged(&office.facts, &both);
    assert_eq!(both.devices_cut_off.names, ["point", "switch bb"], "{both:?}");
    assert_eq!(both.clients_cut_off.names, ["phone 1", "phone 2"]);
    assert_eq!(both.own_way, OwnWay::Kept, "the switch that is written to stays");
}

#[test]
fn a_port_that_loses_a_vlan_cuts_the_traffic_of_that_vlan_alone() {
    let office = office();
    let radius = port(&office, "bb:4", json!({ "tagged_vlans": [], "tagged_mode": "none" }));
    assert_eq!(
        (radius.clients_cut_off.names.as_slice(), radius.devices_cut_off.count),
        (&["phone 2".to_owned()][..], 0)
    );
    assert_eq!((radius.vlans_cut.as_slice(), radius.own_way), (&[20][..], OwnWay::Kept));
}

#[test]
fn the_way_of_the_service_is_cut_at_its_own_port_and_at_the_routers() {
    let office = office();
    for key in ["aa:1", "aa:4"] {
        let radius = port(&office, key, json!({ "enabled": false }));
        // The controller of the switches is outside: without the router's port it does not reach them either.
        assert_eq!(radius.own_way, OwnWay::Cut, "{key}: {radius:?}");
        assert!(radius.clients_cut_off.names.contains(&"desk".to_owned()), "{key}: {radius:?}");
    }
    assert_eq!(port(&office, "bb:4", json!({ "enabled": false })).own_way, OwnWay::Kept);
    let change = |kind: &str, key: &str| {
        let words = Words::Native(Native {
            feature: format!("acme.{kind}"),
            kind: Some(format!("net.{kind}")),
            operation: Operation::Delete,
            kinds: Vec::new(),
            names: vec![key.to_owned()],
            naming: Vec::new(),
        });
        Change { controller: office.router, site_ref: None, words, payload: json!({}) }
    };
    let lan = judged(&office.facts, &[change("interface", "lan")]);
    assert_eq!(lan.own_way, OwnWay::Cut, "{lan:?}");
    let guest = judged(&office.facts, &[change("interface", "guest")]);
    assert_eq!(
        (guest.own_way, guest.clients_cut_off.names.as_slice()),
        (OwnWay::Kept, &["phone 2".to_owned()][..]),
        "{guest:?}"
    );
}

#[test]
fn a_client_that_is_the_service_is_missed_when_it_is_blocked() {
    let office = office();
    let block = |key: &str| {
        judged(&office.facts, &[asked(office.router, ("client", "block"), json!({ "key": key }))])
    };
    assert_eq!(block("desk").own_way, OwnWay::Unknown, "the router does not know it by this key");
    let own = asked(office.switches, ("client", "block"), json!({ "key": "desk" }));
    let other = asked(office.switches, ("client", "block"), json!({ "key": "phone1" }));
    let mut facts = office.facts;
    // The controller is a guest of the router's network.
    facts.controllers[1].host = "10.0.1.1".to_owned();
    assert_eq!(judged(&facts, &[own]).own_way, OwnWay::Cut);
    assert_eq!(judged(&facts, &[other]).own_way, OwnWay::Kept);
}

#[test]
fn what_is_not_known_is_said_and_never_counts_as_safe() {
    let office = office();
    let silent = port(&office, "bb:5", json!({ "enabled": false }));
    assert!(silent.unknown.iter().any(|said| said.contains("what is connected at port")), "{silent:?}");
    let absent = port(&office, "bb:9", json!({ "enabled": false }));
    assert_eq!(absent.own_way, OwnWay::Unknown, "{absent:?}");
    let nothing = judged(
        &Facts::default(),
        &[asked(office.router, ("port", "update"), json!({ "key": "1", "enabled": false }))],
    );
    assert_eq!(nothing.own_way, OwnWay::Unknown);
    assert!(!nothing.unknown.is_empty());
}

#[test]
fn what_only_people_read_touches_nothing() {
    let office = office();
    let renamed = port(&office, "aa:1", json!({ "name": "To the router" }));
    assert_eq!((renamed.own_way, renamed.devices_behind.count), (OwnWay::Kept, 0), "{renamed:?}");
    let reserved = asked(office.router, ("dhcp-reservation", "create"), json!({ "address": "10.0.1.60" }));
    let reserved = judged(&office.facts, &[reserved]);
    assert_eq!((reserved.own_way, reserved.unknown.len()), (OwnWay::Kept, 0), "{reserved:?}");
}

#[test]
fn the_vendors_own_object_leads_to_the_object_of_the_model() {
    let mut office = office();
    let uplink = office.facts.objects.iter_mut().find(|object| object.key.ends_with("aa:4")).unwrap();
    uplink.native = Some(NativeName { kind: "switch.jack".to_owned(), key: "aa/4".to_owned() });
    let change = |payload: Value, names: &[&str]| Change {
        controller: office.switches,
        site_ref: None,
        words: Words::Native(Native {
            feature: "acme.switch.jack".to_owned(),
            kind: Some("switch.jack".to_owned()),
            operation: Operation::Update,
            kinds: vec!["port".to_owned()],
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            naming: vec!["jack".to_owned()],
        }),
        payload,
    };
    let switched = judged(&office.facts, &[change(json!({ "jack": "aa/4", "mode": 3 }), &["aa/4"])]);
    assert_eq!(switched.own_way, OwnWay::Cut, "what becomes of it is not known: {switched:?}");
    assert_eq!(switched.touched.count, 1);
    let described =
        judged(&office.facts, &[change(json!({ "jack": "aa/4", "description": "x" }), &["aa/4"])]);
    assert_eq!(described.own_way, OwnWay::Kept, "{described:?}");
    let other = judged(&office.facts, &[change(json!({ "jack": "zz", "mode": 3 }), &["zz"])]);
    assert_eq!(other.own_way, OwnWay::Unknown, "{other:?}");
}

#[test]
fn a_controller_whose_address_is_not_known_is_at_risk_when_one_of_its_addresses_goes() {
    let mut office = office();
    office.facts.controllers[0].host = "router.example".to_owned();
    let change = asked(office.router, ("route", "create"), json!({ "destination": "10.0.0.0/16" }));
    let radius = judged(&office.facts, &[change]);
    assert_eq!(radius.own_way, OwnWay::AtRisk, "the answers go elsewhere: {radius:?}");
    let site = build(&office.facts);
    let known = site.known.iter().find(|known| known.key == "guest").unwrap();
    let mut losses = Losses::default();
    crate::touch::lose(known, &mut losses);
    let radius = radius::of_losses(&site, &losses, "guest", Some(office.router));
    assert_eq!(radius.own_way, OwnWay::AtRisk, "{radius:?}");
    assert!(radius.reasons[0].contains("which of its addresses is used is not known"), "{radius:?}");
}

#[test]
fn what_comes_back_by_itself_is_a_risk_and_no_cut() {
    let office = office();
    let reboot =
        |verb| judged(&office.facts, &[asked(office.router, ("system", verb), json!({ "key": "router" }))]);
    let brief = reboot("reboot");
    assert_eq!(brief.own_way, OwnWay::AtRisk, "{brief:?}");
    assert!(brief.reasons[0].ends_with("until it is back"));
    assert_eq!(reboot("shutdown").own_way, OwnWay::Cut);
}

#[test]
fn bridges_and_articulation_points_are_found_vlan_by_vlan() {
    let site = build(&office().facts);
    let single = reach::single(&site);
    let names = |at: usize| {
        let device = site.device_of(at).map(|device| site.devices[device].name.as_str());
        (device.unwrap_or_default().to_owned(), site.vlan_of(at))
    };
    let mut points: Vec<_> = (0..site.nodes.len()).filter(|at| single.nodes[*at]).map(names).collect();
    points.sort();
    let (aa, bb) = ("switch aa".to_owned(), "switch bb".to_owned());
    assert_eq!(points, [(aa.clone(), Some(1)), (aa, Some(20)), (bb.clone(), Some(1)), (bb, Some(20))]);
    let bridges = single.edges.iter().filter(|is_bridge| **is_bridge).count();
    // The router's cable and the access point's, each for both VLANs.
    assert_eq!(bridges, 4);
}

/// The reachable nodes of a graph without one edge, the slow way.
fn slow_bridge(site: &Site, edge: usize) -> bool {
    let [a, b] = site.edges[edge].ends;
    let is_net = |node: usize| matches!(site.nodes[node], Node::Net(_));
    let mut seen = vec![false; site.nodes.len()];
    let mut left = vec![a];
    while let Some(node) = left.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for next in
            site.around[node].iter().filter(|other| **other != edge).flat_map(|other| site.edges[*other].ends)
        {
            if is_net(next) {
                left.push(next);
            }
        }
    }
    !seen[b]
}

#[test]
fn bridges_are_the_edges_whose_loss_separates_their_ends() {
    for seed in 0..60 {
        let world = super::world::World::new(seed);
        let told = super::told::told(&world, &mut super::world::Dice::new(seed), 0);
        let site = build(&told.facts);
        let single = reach::single(&site);
        for (edge, is_single) in single.edges.iter().enumerate() {
            let is_between = site.edges[edge].ends.iter().all(|end| matches!(site.nodes[*end], Node::Net(_)));
            assert_eq!(*is_single, is_between && slow_bridge(&site, edge), "seed {seed}, edge {edge}");
        }
    }
}

#[test]
fn fifty_thousand_clients_are_one_edge_each() {
    let mut office = office();
    let mut teller = Teller::new();
    teller.facts = std::mem::take(&mut office.facts);
    for number in 0..50_000_u32 {
        let mac = format!("06:00:{:02x}:{:02x}:{:02x}:00", number >> 16, (number >> 8) & 0xff, number & 0xff);
        let fields = json!({ "mac": mac, "connection": "wireless", "ssid": "visitors", "hostname": format!("c{number}") });
        teller.tell(office.switches, Some("02:00:00:00:00:cc"), ("client", &mac), fields);
    }
    let before = build(&super::small::office().facts).edges.len();
    let site = build(&teller.facts);
    assert_eq!(site.edges.len(), before + 50_000);
    office.facts = teller.facts;
    let radius = port(&office, "bb:4", json!({ "tagged_vlans": [], "tagged_mode": "none" }));
    assert_eq!((radius.clients_cut_off.count, radius.clients_cut_off.names.len()), (50_001, 20));
    assert_eq!(radius.clients_cut_off.more, 49_981);
}
