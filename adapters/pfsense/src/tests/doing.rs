//! Features that act, and what is said of them before.

use heddle_lab_pfsense::Settings;
use heddle_sdk::{Adapter as _, Danger, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::{change, plan, run};
use crate::Pfsense;

#[test]
fn dangerous_calls_are_catastrophic_and_can_lock_out() {
    let device = Device::of(Settings { update_to: Some("2.8.2-RELEASE".to_owned()), ..Settings::default() });
    for (feature, payload) in [
        ("diagnostics.reboot", json!({})),
        ("diagnostics.halt", json!({})),
        ("system.update", json!({})),
        ("system.api-version-install", json!({ "install_version": "v2.9.0" })),
    ] {
        let planned = plan(&device, &change(feature, Operation::Create, &payload)).unwrap();
        assert!(planned.danger == Danger::Catastrophic && planned.lockout_risk, "{feature}: {planned:?}");
        assert!(planned.warnings.iter().any(|text| text.contains("cannot be taken back")), "{feature}");
    }
    for (feature, payload) in [
        ("system.api-settings", json!({ "log_level": "LOG_INFO" })),
        ("system.webgui", json!({ "port": "8443" })),
    ] {
        let planned = plan(&device, &change(feature, Operation::Update, &payload)).unwrap();
        assert!(planned.danger == Danger::Catastrophic && planned.lockout_risk, "{feature}: {planned:?}");
    }
}

#[test]
fn shell_and_second_grammar_are_not_offered() {
    let text = description().to_string();
    for path in ["/diagnostics/command_prompt", "/api/v2/graphql", "/auth/key\""] {
        assert!(!text.contains(path), "{path}");
    }
}

#[test]
fn service_is_asked_by_its_place_and_name() {
    let device = Device::new();
    let planned =
        plan(&device, &change("services.service-stop", Operation::Create, &json!({ "name": "unbound" })))
            .unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    let all = device.person(heddle_sdk::Method::Get, "/status/services", &json!({}));
    let stopped: Vec<&Value> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["status"] == false && one["name"] == "unbound")
        .collect();
    assert_eq!(stopped.len(), 1, "{all}");
    assert!(planned.inverse.is_some());
}

#[test]
fn condition_that_comes_back_brings_the_value_back_both_ways() {
    let device = Device::new();
    let rule =
        || device.list("FirewallRule").into_iter().find(|rule| rule["descr"] == "publish web").unwrap();
    let before = rule();
    let change =
        change("firewall.rule", Operation::Update, &json!({ "descr": "publish web", "protocol": "icmp" }));
    let planned = plan(&device, &change).unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    assert_ne!(
        rule()["destination_port"],
        before["destination_port"],
        "the firewall empties ports without a protocol for them"
    );
    run(&device, Stage::Restore, &planned).unwrap();
    let told = |rule: &Value| (rule["destination_port"].clone(), rule["protocol"].clone());
    assert_eq!(told(&rule()), told(&before));
    // The staged inverse does the same after the window has closed.
    let planned = plan(&device, &change).unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    let compared = Pfsense::compare(&device.host(), &[], &planned.token).unwrap();
    assert_eq!(compared.foreign, Vec::<String>::new(), "what the firewall emptied is no change of others");
    let inverse = planned.inverse.clone().unwrap();
    let back = plan(&device, &inverse[0]).unwrap();
    run(&device, Stage::Apply, &back).unwrap();
    assert_eq!(told(&rule()), told(&before));
}

#[test]
fn interface_gets_its_address_back_after_a_lease() {
    let device = Device::new();
    let told = || {
        let all = device.list("NetworkInterface");
        let own = all.iter().find(|own| own["@id"] == "opt1").unwrap();
        (own["ipaddr"].clone(), own["subnet"].clone())
    };
    let before = told();
    let payload = json!({ "if": "igb1.20", "typev4": "dhcp" });
    // A DHCP server needs an address that stays.
    device.person(
        heddle_sdk::Method::Patch,
        "/services/dhcp_server",
        &json!({ "id": "opt1", "enable": false }),
    );
    let planned = plan(&device, &change("interfaces.interface", Operation::Update, &payload)).unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    assert_eq!(told().0, "dhcp");
    let back = plan(&device, &planned.inverse.clone().unwrap()[0]).unwrap();
    run(&device, Stage::Apply, &back).unwrap();
    assert_eq!(told(), before);
}

#[test]
fn secret_that_a_change_takes_away_is_lost_for_good() {
    let device = Device::new();
    let payload = json!({ "description": "remote access", "use_tls": false });
    let planned = plan(&device, &change("vpn.openvpn.server", Operation::Update, &payload)).unwrap();
    assert!(planned.inverse.is_none());
    assert!(
        planned.warnings.iter().any(|text| text.contains("cannot be taken back")),
        "{:?}",
        planned.warnings
    );
}
