//! Ids are places in lists: a call meets the object that was reviewed, wherever it stands by then.

use heddle_sdk::{Adapter as _, FaultExt, Method, NativeBody, Operation, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};

/// The aliases that are stored, by name.
fn aliases(device: &Device) -> Vec<(String, Value)> {
    let text = |alias: &Value| alias["name"].as_str().unwrap().to_owned();
    device.list("FirewallAlias").iter().map(|alias| (text(alias), alias["descr"].clone())).collect()
}

/// Somebody adds an alias before all others.
fn shift(device: &Device) {
    let first = json!({ "name": "first", "type": "host", "address": ["192.0.2.1"], "detail": ["own"], "descr": "of others" });
    device
        .lab()
        .edit(&json!({ "do": "set", "model": "FirewallAlias", "fields": first, "at": 0, "apply": true }))
        .unwrap();
}

#[test]
fn plan_names_no_place() {
    let device = Device::new();
    let planned = plan(
        &device,
        &change("firewall.alias", Operation::Update, &json!({ "name": "partners", "descr": "x" })),
    )
    .unwrap();
    let call = &planned.native[0];
    let NativeBody::Json(body) = &call.body else { panic!("{call:?}") };
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), json!({ "descr": "x", "id": "{{hole.id_0}}" }));
    let planned =
        plan(&device, &change("firewall.alias", Operation::Delete, &json!({ "name": "partners" }))).unwrap();
    assert_eq!(planned.native[0].path, "/api/v2/firewall/alias?id={{hole.id_0}}");
}

#[test]
fn object_that_moved_between_review_and_write_is_the_one_that_is_written() {
    for operation in [Operation::Update, Operation::Delete] {
        let device = Device::new();
        let payload = match operation {
            Operation::Update => json!({ "name": "partners", "descr": "written" }),
            _ => json!({ "name": "partners" }),
        };
        let planned = plan(&device, &change("firewall.alias", operation, &payload)).unwrap();
        shift(&device);
        let others = |device: &Device| -> Vec<_> {
            aliases(device).into_iter().filter(|(name, _)| name != "partners").collect()
        };
        let before = others(&device);
        run(&device, Stage::Apply, &planned).unwrap();
        assert_eq!(others(&device), before, "{operation:?}");
        let own: Vec<Value> = aliases(&device)
            .into_iter()
            .filter(|(name, _)| name == "partners")
            .map(|(_, descr)| descr)
            .collect();
        assert_eq!(own, if operation == Operation::Update { vec![json!("written")] } else { vec![] });
        // The way back finds it, too, when others have moved it again.
        device.person(Method::Delete, "/firewall/alias?id=0&apply=true", &json!({}));
        run(&device, Stage::Restore, &planned).unwrap();
        assert_eq!(standing(&device, &planned), "before");
    }
}

#[test]
fn each_call_of_a_plan_looks_up_the_place_anew() {
    let device = Device::new();
    let changes = [
        change(
            "firewall.alias",
            Operation::Create,
            &json!({ "name": "added", "type": "host", "address": ["192.0.2.9"], "detail": ["own"] }),
        ),
        change("routing.route", Operation::Create, &json!({ "network": "10.99.0.0/16", "gateway": "LABGW" })),
        change("firewall.alias", Operation::Update, &json!({ "name": "partners", "descr": "written" })),
        change(
            "dns.resolver.host",
            Operation::Create,
            &json!({ "host": "aaa", "domain": "home.example", "ip": ["192.0.2.7"] }),
        ),
        change(
            "dns.resolver.host",
            Operation::Update,
            &json!({ "host": "nas", "domain": "home.example", "descr": "written" }),
        ),
        change("dns.resolver.host", Operation::Delete, &json!({ "host": "web", "domain": "home.example" })),
    ];
    let planned = crate::Pfsense::plan(&device.host(), &changes).unwrap();
    let applies =
        planned.native.iter().filter(|call| call.stage == Stage::Apply && call.path.ends_with("/apply"));
    assert_eq!(applies.count(), 3, "each once");
    run(&device, Stage::Apply, &planned).unwrap();
    // The resolver sorts its hosts with each write.
    let hosts: Vec<(Value, Value)> = device
        .list("DNSResolverHostOverride")
        .iter()
        .map(|host| (host["host"].clone(), host["descr"].clone()))
        .collect();
    assert!(
        hosts.contains(&(json!("nas"), json!("written"))) && hosts.iter().any(|(host, _)| host == "aaa"),
        "{hosts:?}"
    );
    assert!(!hosts.iter().any(|(host, _)| host == "web"), "{hosts:?}");
    assert_eq!(standing(&device, &planned), "after");
}

#[test]
fn object_that_went_away_is_not_mistaken_for_the_one_in_its_place() {
    let device = Device::new();
    let planned = plan(
        &device,
        &change("firewall.alias", Operation::Update, &json!({ "name": "web_ports", "descr": "x" })),
    )
    .unwrap();
    let at = device.list("FirewallAlias").iter().position(|alias| alias["name"] == "web_ports").unwrap();
    device.lab().edit(&json!({ "do": "remove", "model": "FirewallAlias", "id": at })).unwrap();
    let before = device.list("FirewallAlias");
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("state-moved"));
    assert_eq!(device.list("FirewallAlias"), before);
}

#[test]
fn objects_of_the_same_name_are_not_chosen_among() {
    let device = Device::new();
    let rule = json!({ "type": "block", "interface": ["lan"], "ipprotocol": "inet", "source": "any", "destination": "any", "descr": "guests stay out", "tracker": 1 });
    device
        .lab()
        .edit(&json!({ "do": "set", "model": "FirewallRule", "fields": rule, "apply": true }))
        .unwrap();
    let fault =
        plan(&device, &change("firewall.rule", Operation::Delete, &json!({ "descr": "guests stay out" })))
            .unwrap_err();
    assert!(fault.info().message.contains("2 objects"), "{fault:?}");
}

#[test]
fn what_others_name_is_not_deleted() {
    let device = Device::new();
    let delete = |feature: &str, payload: Value| plan(&device, &change(feature, Operation::Delete, &payload));
    for (feature, payload, named_by) in [
        ("firewall.alias", json!({ "name": "web_servers" }), "publish web"),
        ("interfaces.vlan", json!({ "if": "igb1", "tag": 20 }), "igb1.20"),
        ("vpn.ipsec.phase1", json!({ "descr": "branch" }), "branch network"),
        ("vpn.wireguard.tunnel", json!({ "descr": "road warriors" }), "vpn.wireguard.peer"),
    ] {
        let fault = delete(feature, payload).unwrap_err();
        assert_eq!(fault.info().code.as_deref(), Some("in-use"), "{feature}: {fault:?}");
        assert!(fault.info().message.contains(named_by), "{feature}: {fault:?}");
    }
    assert!(delete("firewall.alias", json!({ "name": "partners" })).is_ok());
    // With what names it, it goes.
    let both = [
        change("vpn.ipsec.phase2", Operation::Delete, &json!({ "descr": "branch network" })),
        change("vpn.ipsec.phase1", Operation::Delete, &json!({ "descr": "branch" })),
    ];
    assert!(crate::Pfsense::plan(&device.host(), &both).is_ok());
}
