//! What lies behind changes, at practice devices: a change that cuts the service's own way is flagged, and one that does not is
//! not.

use serde_json::{Value, json};

use super::modelled::read;
use super::practice::Vendor;
use super::{Lab, practice};
use crate::support::{Adapters, Database, Options, Server, on_both};

/// A lab whose devices see the service come from this address.
async fn lab(database: Database, vendor: &'static dyn Vendor, address: &str) -> Lab {
    let device = vendor.start().await;
    let serving = Adapters::Of(vec![vendor.id().to_owned()]);
    let options = Options::default().serving(serving).with("SERVICE_ADDRESSES", address);
    Lab::on(Server::start_with(database, options).await, vendor, device).await
}

async fn topology(lab: &Lab) -> Value {
    let sites = lab.api.get("/sites").await.expect_status(200).body;
    let site = sites["items"][0]["id"].as_str().expect("a site has an id");
    lab.api.get(&format!("/network/topology?site_id={site}")).await.expect_status(200).body
}

fn names(value: &Value) -> Vec<&str> {
    value["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Stages a change in the words of the model; returns the plan.
async fn planned(lab: &Lab, path: &str, payload: Value) -> Value {
    let change = lab.api.post(path, &json!({ "payload": payload })).await.expect_status(201).body;
    assert!(change["plan"]["blast_radius"].is_object(), "{change}");
    change["plan"].clone()
}

fn port<'o>(ports: &'o [Value], device: &str, number: u64) -> &'o Value {
    let is = |port: &&Value| port["device_key"] == device && port["fields"]["number"] == number;
    ports.iter().find(is).unwrap_or_else(|| panic!("port {number} of {device}"))
}

on_both! {
    async fn a_port_of_a_switch_has_what_hangs_on_it_behind_it(database: Database) {
        // A client at port 7 of the switch.
        let lab = lab(database, practice::of("omada"), "10.4.30.50").await;
        let ports = read(&lab, "port").await;
        let core = "3c:6a:d2:00:01:20";
        let seen = topology(&lab).await;
        let nodes = seen["nodes"].as_array().unwrap();
        for (name, role) in [("Core switch", "switch"), ("AP lobby", "access-point"), ("Gateway", "router")] {
            assert!(nodes.iter().any(|node| node["name"] == name && node["role"] == role), "{name}: {seen}");
        }
        let to_desk = seen["edges"].as_array().unwrap().iter().find(|edge| {
            [&edge["from"], &edge["to"]].iter().any(|end| end.as_str().is_some_and(|id| id.ends_with("3c:6a:d2:00:01:21")))
        });
        let to_desk = to_desk.unwrap_or_else(|| panic!("{seen}"));
        assert_eq!((&to_desk["evidence"][0]["kind"], &to_desk["is_assumed"]), (&json!("neighbour"), &json!(false)));
        assert!(seen["clients"].as_u64() > Some(10), "{seen}");

        let off = async |number: u64| {
            let id = port(&ports, core, number)["id"].as_str().unwrap().to_owned();
            let plan = planned(&lab, &format!("/inventory/port/{id}/changes?verb=update"), json!({ "enabled": false })).await;
            let what_if = lab.api.get(&format!("/network/topology/blast-radius?object_id={id}")).await;
            (plan, what_if.expect_status(200).body)
        };
        let (own, _) = off(7).await;
        assert_eq!((&own["blast_radius"]["own_way"], &own["lockout_risk"]), (&json!("cut"), &json!(true)), "{own}");
        let (other, what_if) = off(2).await;
        let radius = &other["blast_radius"];
        assert_eq!(names(&radius["devices_cut_off"]), ["AP lobby"], "{radius}");
        assert!(radius["clients_cut_off"]["count"].as_u64() > Some(0), "{radius}");
        assert!(!["cut", "at_risk"].contains(&radius["own_way"].as_str().unwrap()), "{radius}");
        assert_eq!(names(&what_if["devices_cut_off"]), ["AP lobby"], "{what_if}");
    }
}

on_both! {
    async fn a_router_that_loses_the_network_of_its_address_may_lose_the_service(database: Database) {
        let lab = lab(database, practice::of("openwrt"), "198.51.100.9").await;
        read(&lab, "interface").await;
        let at = format!("/gateway-openwrt-base/{}/changes/openwrt.network.interface?operation=update", lab.controller);
        let body = json!({ "payload": { "name": "lan", "proto": "static", "ipaddr": ["192.168.77.1/24"] } });
        let lan = lab.api.post(&at, &body).await.expect_status(201).body["plan"].clone();
        assert_eq!((&lan["blast_radius"]["own_way"], &lan["lockout_risk"]), (&json!("at_risk"), &json!(true)), "{lan}");
        assert!(names(&lan["blast_radius"]["touched"]).contains(&"interface lan"), "{lan}");
        let at = format!("/controllers/{}/inventory/dhcp-reservation/changes?verb=create", lab.controller);
        let host = planned(&lab, &at, practice::of("openwrt").asked().create).await;
        assert_eq!((&host["blast_radius"]["own_way"], &host["lockout_risk"]), (&json!("kept"), &json!(false)), "{host}");
    }
}

on_both! {
    async fn a_rule_that_may_stop_the_service_is_told_from_a_name(database: Database) {
        let lab = lab(database, practice::of("opnsense"), "198.51.100.9").await;
        read(&lab, "interface").await;
        let at = |kind: &str| format!("/controllers/{}/inventory/{kind}/changes?verb=create", lab.controller);
        let rule = json!({
            "name": "Nothing comes in", "action": "drop", "direction": "in", "ip_version": "4", "enabled": true,
            "scope": { "kind": "interface", "key": "lan" }, "from": ["lan"], "source": { "any": true },
            "destination": { "any": true }, "final": true,
        });
        let stops = planned(&lab, &at("firewall-rule"), rule).await;
        assert_eq!((&stops["blast_radius"]["own_way"], &stops["lockout_risk"]), (&json!("at_risk"), &json!(true)), "{stops}");
        let said = stops["blast_radius"]["reasons"][0].as_str().unwrap();
        assert!(said.contains("Nothing comes in"), "{said}");
        let record = json!({ "name": "www.x.example", "type": "A", "value": "192.0.2.9", "enabled": true });
        let named = planned(&lab, &at("dns-record"), record).await;
        assert_eq!(named["blast_radius"]["own_way"], "kept", "{named}");
    }
}

on_both! {
    async fn a_plan_of_a_site_that_was_not_read_says_so(database: Database) {
        let lab = lab(database, practice::of("openwrt"), "198.51.100.9").await;
        let change = lab.stage().await;
        let radius = &change["plan"]["blast_radius"];
        assert!(radius["unknown"].is_array() && radius["devices_cut_off"]["count"].is_u64(), "{radius}");
        // Planned again in the words of the same change.
        let again = lab.act(&change, "plan", &json!({})).await.expect_status(200).body;
        assert_eq!(again["plan"]["lockout_risk"], change["plan"]["lockout_risk"], "{again}");
    }
}
