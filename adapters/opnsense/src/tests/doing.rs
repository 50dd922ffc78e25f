//! What single actions do to the firewall, and what they say when they cannot.

use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Danger, FaultExt, Listing, Operation, Outcome, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::samples::done;
use super::{change, finished, plan, run, standing};
use crate::Opnsense;

fn act(device: &Device, feature: &str, payload: &Value) -> heddle_sdk::ChangePlan {
    plan(device, &change(feature, Operation::Create, payload)).unwrap()
}

#[test]
fn disabling_a_rule_is_as_dangerous_as_deleting_it() {
    let device = Device::new();
    let danger = |operation, payload: Value| {
        let planned = plan(&device, &change("firewall.rule", operation, &payload)).unwrap();
        matches!(planned.danger, Danger::Destructive)
    };
    assert!(danger(Operation::Delete, json!({ "description": "web" })));
    assert!(danger(Operation::Update, json!({ "description": "web", "enabled": false })));
    assert!(!danger(Operation::Update, json!({ "description": "web", "log": true })));
}

#[test]
fn stop_of_the_web_server_is_a_catastrophe() {
    let device = Device::new();
    let danger = |name: &str| act(&device, "core.service-stop", &json!({ "name": name })).danger;
    assert!(matches!(danger("webgui"), Danger::Catastrophic));
    assert!(matches!(danger("ntpd"), Danger::Destructive));
}

#[test]
fn entry_of_an_alias_can_be_taken_back() {
    let device = Device::new();
    let stored = device.stored();
    let entry = json!({ "alias": "web_servers", "ip": "192.0.2.99" });
    let made = act(&device, "firewall.alias-entry-add", &entry);
    run(&device, Stage::Apply, &made).unwrap();
    assert_ne!(device.stored(), stored);
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(device.stored(), stored);
}

#[test]
fn what_another_person_saved_is_made_active_by_a_change_of_its_own() {
    let device = Device::new();
    let rule = json!({ "rule": { "interface": "lan", "description": "theirs" } });
    device.person("firewall/filter/add_rule", &rule);
    assert_ne!(device.stored(), device.running());
    let made = act(&device, "firewall.apply", &json!({}));
    assert!(made.lockout_risk && made.steps[0].summary.contains("the packet filter with all its rules"));
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "unseen");
    assert_eq!(device.stored(), device.running());
}

#[test]
fn start_of_a_service_that_is_switched_off_is_seen_to_fail() {
    let device = Device::new();
    let edit = json!({ "do": "set", "node": "Unbound/Unbound:", "id": "",
        "fields": { "general.enabled": "0" }, "apply": true });
    device.lab().edit(&edit).unwrap();
    let made = act(&device, "unbound.service-start", &json!({}));
    run(&device, Stage::Apply, &made).unwrap();
    assert!(standing(&device, &made).starts_with("before"), "{}", standing(&device, &made));
}

#[test]
fn firmware_job_that_fails_fails_the_change() {
    let device = Device::new();
    device.lab().fault(heddle_lab::Fault::vendor("firmware_job_fails", Value::Null));
    let made = act(&device, "core.firmware-remove", &json!({ "name": "os-wol" }));
    let outcome = run(&device, Stage::Apply, &made).unwrap();
    assert!(matches!(outcome, Outcome::Pending(_)));
    let fault = finished(&device, outcome).unwrap_err();
    assert!(fault.info().message.contains("Could not fetch"), "{}", fault.info().message);
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn update_goes_through_a_restart_and_nothing_proves_its_end() {
    let device = Device::new();
    let version = || device.lab().state()["version"].clone();
    let before = version();
    let made = act(&device, "core.firmware-update", &json!({}));
    assert!(matches!(made.danger, Danger::Catastrophic));
    let outcome = run(&device, Stage::Apply, &made).unwrap();
    // The restart takes the log, so that nothing proves how the job ended.
    let fault = finished(&device, outcome).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("vendor:job-lost"));
    assert!(matches!(fault.info().effect, heddle_sdk::Effect::Possible));
    assert_ne!(version(), before);
}

#[test]
fn end_of_a_firmware_job_counts_only_with_a_log_without_trouble() {
    let polled = |word: &'static str, log: &'static str| {
        let host = FakeHost::new(move |request, _| {
            let is_running = request.path.ends_with("running");
            let body =
                if is_running { json!({ "status": "ready" }) } else { json!({ "status": word, "log": log }) };
            Ok(json_response(200, &body))
        });
        Opnsense::poll(&host, b"").unwrap()
    };
    assert!(matches!(polled("done", "all is well\n***DONE***"), Outcome::Done(_)));
    assert!(matches!(polled("reboot", "all is well\n***REBOOT***"), Outcome::Pending(_)));
    for (word, log) in [
        ("done", "Partial update failure detected\n***DONE***"),
        ("done", "The upgrade was aborted due to an error.\n***DONE***"),
        ("done", "pkg is OUT OF DATE\n***DONE***"),
        ("done", "Could not fetch\n***DONE***"),
        ("reboot", "***ERROR***\n***REBOOT***"),
        ("error", ""),
    ] {
        let Outcome::Failed(fault) = polled(word, log) else { panic!("{word}: {log}") };
        assert!(matches!(fault.info().effect, heddle_sdk::Effect::Possible), "{log}");
    }
}

#[test]
fn second_firmware_job_is_refused_and_nothing_is_begun() {
    let device = Device::new();
    let made = act(&device, "core.firmware-audit", &json!({}));
    device.person("core/firmware/check", &json!({}));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(fault.info().effect, heddle_sdk::Effect::None), "{fault:?}");
}

#[test]
fn order_of_chosen_values_counts_where_it_is_answered() {
    let device = Device::new();
    let frontend =
        |order: [&str; 2]| json!({ "name": "web", "bind": ["127.0.0.1:8080"], "ssl_bindOptions": order });
    let names = frontend(["no-tlsv10", "no-sslv3"]);
    done(&device, "haproxy.frontend", Operation::Create, &names).unwrap();
    let again = plan(&device, &change("haproxy.frontend", Operation::Update, &names)).unwrap();
    assert!(again.native.is_empty());
    let turned =
        plan(&device, &change("haproxy.frontend", Operation::Update, &frontend(["no-sslv3", "no-tlsv10"])));
    assert!(!turned.unwrap().native.is_empty());
}

#[test]
fn old_second_phase_is_found_again_when_its_place_moved() {
    let device = Device::new();
    let enabled = |id: &str| device.stored()["ipsec/phase2"][id]["enabled"].clone();
    let made = act(&device, "ipsec.legacy-phase2-disable", &json!({ "uniqid": "5f00000000002" }));
    device.person("ipsec/tunnel/del_phase2/0", &json!({}));
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    assert_eq!(enabled("5f00000000002"), "0");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(enabled("5f00000000002"), "1");
}

#[test]
fn action_that_leaves_nothing_to_read_is_planned_by_itself() {
    let device = Device::new();
    let changes = [
        change("firewall.apply", Operation::Create, &json!({})),
        change("firewall.category", Operation::Create, &json!({ "name": "sample" })),
    ];
    let fault = Opnsense::plan(&device.host(), &changes).unwrap_err();
    assert!(fault.info().message.contains("by itself"), "{}", fault.info().message);
}

#[test]
fn rows_of_a_file_that_are_dropped_are_told() {
    let device = Device::new();
    let file = "name,color\ngood,aa5500\nbad,no color\n";
    let made = act(&device, "firewall.category-import", &json!({ "payload": file }));
    let Outcome::Done(done) = run(&device, Stage::Apply, &made).unwrap() else { panic!("it is no job") };
    assert_eq!(done.warnings.len(), 1, "{:?}", done.warnings);
    let page = Opnsense::list_objects(&device.host(), &Listing::of("firewall.category", 10)).unwrap();
    let keys: Vec<&str> = page.items.iter().map(|item| item.reference.key.as_str()).collect();
    assert!(keys.contains(&"good") && !keys.contains(&"bad"), "{keys:?}");
}

#[test]
fn new_certificate_authority_can_be_taken_back_and_a_deleted_one_not() {
    let device = Device::new();
    let stored = device.stored();
    let authority = json!({ "descr": "own", "commonname": "own", "action": "internal", "lifetime": 825 });
    let made = act(&device, "trust.ca", &authority);
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(device.stored(), stored);
    done(&device, "trust.ca", Operation::Create, &authority).unwrap();
    let gone = plan(&device, &change("trust.ca", Operation::Delete, &json!({ "descr": "own" }))).unwrap();
    assert!(
        gone.warnings.iter().any(|warning| warning.contains("cannot be taken back")),
        "{:?}",
        gone.warnings
    );
}
