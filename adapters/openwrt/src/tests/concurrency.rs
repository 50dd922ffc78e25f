//! Staging that belongs to one session, sections that are numbered by their place, and an apply that one client at a
//! time may make.

use heddle_sdk::testing::{FakeHost, send_stage};
use heddle_sdk::{
    Adapter, Auth, Change, ChangePlan, Fault, FaultExt, Host, Listing, Operation, Readiness, Request,
    Response, Stage,
};
use serde_json::{Value, json};

use super::device::{Device, router};
use super::{change, every_change, plan, run, standing};
use crate::OpenWrt;

/// The calls of a stage: method and arguments.
fn calls(plan: &ChangePlan, stage: Stage) -> Vec<(String, Value)> {
    let of_stage = plan.native.iter().filter(|call| call.stage == stage);
    let bodies = of_stage.map(|call| call.json().unwrap()["params"].clone());
    bodies.map(|params| (params[2].as_str().unwrap().to_owned(), params[3].clone())).collect()
}

fn planned(changes: &[Change]) -> ChangePlan {
    OpenWrt::plan(&router().host(), changes).unwrap()
}

/// A name as the device takes it for a section or an option.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The device refuses an empty list, takes an empty text for none, and counts what is no text in a way of its own.
fn is_value(value: &Value) -> bool {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    is_text(value) || value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_text))
}

#[test]
fn every_call_that_stages_is_one_that_the_device_takes() {
    for change in every_change() {
        let plan = planned(&[change]);
        for stage in [Stage::Apply, Stage::Restore] {
            for (method, arguments) in calls(&plan, stage) {
                let named = ["section", "name", "option", "type"].iter().filter(|name| **name != "type");
                for name in named.filter_map(|name| arguments.get(*name)) {
                    assert!(is_name(name.as_str().unwrap()), "{method} {arguments}");
                }
                for (name, value) in arguments["values"].as_object().into_iter().flatten() {
                    assert!(is_name(name) && is_value(value), "{method} {arguments}");
                }
                match method.as_str() {
                    "set" => {
                        assert!(arguments["values"].as_object().is_some_and(|values| !values.is_empty()));
                    }
                    // A section that is new has a name for good; one that comes back may have none.
                    "add" => {
                        assert!(arguments.get("name").is_some() || stage == Stage::Restore, "{arguments}");
                    }
                    // By type, or by what they say, it would delete all that fit.
                    "delete" => assert!(arguments["section"].is_string() && arguments.get("match").is_none()),
                    "order" | "apply" | "confirm" => {}
                    other => panic!("{other} {arguments}"),
                }
            }
        }
    }
}

#[test]
fn every_apply_can_be_taken_back_and_nothing_is_committed() {
    for change in every_change() {
        let plan = planned(&[change]);
        for stage in [Stage::Apply, Stage::Restore] {
            let calls = calls(&plan, stage);
            let applies: Vec<&Value> = calls
                .iter()
                .filter(|(method, _)| method == "apply")
                .map(|(_, arguments)| arguments)
                .collect();
            // Without a rollback an apply would disarm that of another client.
            assert!(applies.len() == 1 && applies[0]["rollback"] == json!(true), "{calls:?}");
            let last = if stage == Stage::Apply { "apply" } else { "confirm" };
            assert_eq!(calls.last().unwrap().0, last);
        }
        assert_eq!(calls(&plan, Stage::Undo), [("rollback".to_owned(), json!({}))]);
        assert_eq!(calls(&plan, Stage::Confirm), [("confirm".to_owned(), json!({}))]);
    }
}

#[test]
fn every_word_for_yes_and_no_is_a_flag() {
    for (word, is_on) in [
        ("1", true),
        ("on", true),
        ("true", true),
        ("yes", true),
        ("enabled", true),
        ("0", false),
        ("off", false),
        ("false", false),
        ("no", false),
        ("disabled", false),
    ] {
        let body = json!({"name": "Old", "src": "wan", "target": "DROP", "enabled": word});
        let device = Device::default()
            .file("firewall", &[("zone", "wan", json!({"name": "wan"})), ("rule", "old", body)]);
        let update =
            |is_on| change("firewall.rule", Operation::Update, &json!({"name": "Old", "enabled": is_on}));
        assert!(plan(&device, &update(is_on)).unwrap().native.is_empty(), "{word} says so already");
        let turned = plan(&device, &update(!is_on)).unwrap();
        let wanted = if is_on { "0" } else { "1" };
        assert_eq!(calls(&turned, Stage::Apply)[0].1["values"], json!({"enabled": wanted}), "{word}");
        let shown = OpenWrt::get_object(&device.host(), "firewall.rule", None, "Old").unwrap();
        assert!(shown.body.contains(&format!("\"enabled\":{is_on}")), "{word}: {}", shown.body);
    }
}

#[test]
fn option_without_a_value_is_deleted() {
    let zone = |networks: Value| {
        let payload = json!({"name": "wan", "network": networks});
        calls(&planned(&[change("firewall.zone", Operation::Update, &payload)]), Stage::Apply)
    };
    for nothing in [json!([]), Value::Null] {
        let (method, arguments) = zone(nothing).swap_remove(0);
        assert_eq!(method, "delete");
        assert_eq!((&arguments["section"], &arguments["option"]), (&json!("cfg03dc81"), &json!("network")));
    }
    let payload = json!({"timezone": ""});
    let (method, arguments) =
        calls(&planned(&[change("system.settings", Operation::Update, &payload)]), Stage::Apply)
            .swap_remove(0);
    assert_eq!((method.as_str(), &arguments["option"]), ("delete", &json!("timezone")));
}

/// The device merges a new section into one that has its name, and says that it worked.
#[test]
fn name_that_another_person_took_meanwhile_is_not_merged_into() {
    let creates = [
        ("firewall", "firewall.rule", json!({"name": "SSH", "target": "DROP"})),
        ("network", "network.interface", json!({"name": "guest", "proto": "none"})),
        ("dhcp", "dhcp.pool", json!({"interface": "guest"})),
    ];
    for (config, feature, payload) in creates {
        for kind in ["own", "another"] {
            let device = router();
            let plan = plan(&device, &change(feature, Operation::Create, &payload)).unwrap();
            let (_, add) = calls(&plan, Stage::Apply).swap_remove(0);
            let name = add["name"].as_str().unwrap().to_owned();
            let kind = if kind == "own" { add["type"].as_str().unwrap() } else { "theirs" };
            device.edit(config, |rows| {
                rows.push((
                    name,
                    kind.to_owned(),
                    false,
                    json!({"label": "theirs"}).as_object().unwrap().clone(),
                ));
            });
            let before = device.content();
            let host = device.host();
            let fault = send_stage::<OpenWrt>(&host, Stage::Apply, &[], &plan).unwrap_err();
            assert!(matches!(fault, Fault::StateMoved(_)), "{feature} {kind}: {fault:?}");
            assert_eq!(host.sent.borrow().len(), 1, "only the read was sent");
            assert_eq!(device.content(), before);
        }
    }
}

#[test]
fn section_of_any_name_gets_one_that_the_device_takes() {
    let device = router();
    let mut names = Vec::new();
    for name in ["Ünï cödé / rule!", "a-b", "a b", "a_b", "...", "@rule[0]x", &"long ".repeat(12)] {
        let payload = json!({"name": name.trim(), "target": "DROP"});
        let Ok(plan) = plan(&device, &change("firewall.rule", Operation::Create, &payload)) else {
            assert!(name.starts_with('@'), "{name}: that is how sections without a name are called");
            continue;
        };
        let (_, add) = calls(&plan, Stage::Apply).swap_remove(0);
        let given = add["name"].as_str().unwrap().to_owned();
        assert!(is_name(&given) && given.len() < 64, "{name}: {given}");
        names.push(given);
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// What an order leaves out would come behind all that it names.
#[test]
fn order_names_every_section_of_the_file() {
    let device = router();
    let payload = json!({"order": ["Web", "Allow-Ping"]});
    let plan = plan(&device, &change("firewall.rule-order", Operation::Update, &payload)).unwrap();
    let of_file = device.content()["firewall"].as_array().unwrap().len();
    for stage in [Stage::Apply, Stage::Restore] {
        let orders = calls(&plan, stage).into_iter().filter(|(method, _)| method == "order");
        for (_, arguments) in orders {
            let mut ids: Vec<String> = serde_json::from_value(arguments["sections"].clone()).unwrap();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), of_file);
        }
    }
}

/// The second number would be that of another section if the first delete were applied before.
#[test]
fn two_deletes_of_unnamed_sections_are_one_apply() {
    let device = router();
    let before = device.content();
    let delete = |name| change("firewall.rule", Operation::Delete, &json!({"name": name}));
    let plan = OpenWrt::plan(&device.host(), &[delete("Allow-Ping"), delete("Allow-DHCP")]).unwrap();
    let methods: Vec<String> = calls(&plan, Stage::Apply).into_iter().map(|(method, _)| method).collect();
    assert_eq!(methods, ["delete", "delete", "apply"]);
    run(&device, Stage::Apply, &plan).unwrap();
    run(&device, Stage::Confirm, &plan).unwrap();
    let left = device.content()["firewall"].to_string();
    assert!(!left.contains("Allow-Ping") && !left.contains("Allow-DHCP") && left.contains("Web"), "{left}");
    run(&device, Stage::Restore, &plan).unwrap();
    assert_eq!(device.content(), before);
}

#[test]
fn rules_of_one_name_are_not_guessed_at() {
    let rule = |port: &str| json!({"name": "Twice", "src": "wan", "proto": "tcp", "dest_port": port, "target": "DROP"});
    let rows = [("zone", "wan", json!({"name": "wan"})), ("rule", "", rule("1")), ("rule", "", rule("2"))];
    let device = Device::default().file("firewall", &rows);
    let update = |name: &str| change("firewall.rule", Operation::Update, &json!({"name": name, "log": true}));
    let fault = plan(&device, &update("Twice")).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("ambiguous"));
    let second = plan(&device, &update("Twice#2")).unwrap();
    run(&device, Stage::Apply, &second).unwrap();
    let rules = device.content()["firewall"].clone();
    assert_eq!((&rules[1][2]["log"], &rules[2][2]["log"]), (&Value::Null, &json!("1")), "{rules}");
}

/// A session shows what is staged in it as if it were in the files: of one file in a list, of all in a map.
#[test]
fn staging_of_either_shape_makes_a_session_unfit() {
    let list = |staged: Value| {
        let device = router();
        device.answers.borrow_mut().insert("uci.changes".to_owned(), json!([0, staged]));
        let host = device.host();
        let found = OpenWrt::list_objects(&host, &Listing::of("firewall.rule", 10)).map(drop);
        (found, host.resets.get())
    };
    let edit = json!(["set", "lan", "mtu", "1400"]);
    for staged in [json!({"changes": {"network": [edit]}}), json!({"changes": [edit]})] {
        let (found, resets) = list(staged.clone());
        let fault = found.unwrap_err();
        assert!(matches!(fault, Fault::Busy(_)), "{staged}");
        assert_eq!((fault.info().code.as_deref(), resets), (Some("session-dirty"), 2), "{staged}");
    }
    for clean in
        [json!({}), json!({"changes": {}}), json!({"changes": []}), json!({"changes": {"network": []}})]
    {
        let (found, resets) = list(clean.clone());
        assert!(found.is_ok() && resets == 0, "{clean}");
    }
}

#[test]
fn rest_of_a_stage_is_not_sent_when_its_session_is_gone() {
    let device = router();
    let plan = plan(&device, &every_change()[0]).unwrap();
    let host = device.host();
    let fault = OpenWrt::ready(&host, Stage::Apply, &[], &plan.token, 1).unwrap_err();
    assert!(matches!(fault, Fault::Busy(_)));
    assert_eq!(fault.info().code.as_deref(), Some("session-lost"));
    assert!(host.sent.borrow().is_empty());
    assert_eq!(standing(&device, &plan), "before");
}

/// A host whose login was given a session that is to last so many seconds.
struct Lent<'a>(FakeHost<'a>, &'static str);

impl Host for Lent<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        self.0.send(request, auth)
    }
    fn reset_session(&self, name: &str) {
        self.0.reset_session(name);
    }
    fn session_facts(&self, _name: &str) -> Result<Vec<(String, String)>, Fault> {
        Ok(vec![("timeout".to_owned(), self.1.to_owned())])
    }
}

/// While an apply waits for its confirmation, the device gives each login of the user the session that made it.
#[test]
fn session_that_another_client_made_is_neither_written_to_nor_ended() {
    let device = router();
    let plan = plan(&device, &every_change()[0]).unwrap();
    let theirs = Lent(device.host(), "300");
    for stage in [Stage::Apply, Stage::Restore] {
        let fault = OpenWrt::ready(&theirs, stage, &[], &plan.token, 0).unwrap_err();
        assert!(matches!(&fault, Fault::Busy(info) if info.retry_after_ms.is_some()), "{fault:?}");
        assert_eq!(fault.info().code.as_deref(), Some("apply-pending"));
    }
    for stage in [Stage::Confirm, Stage::Undo] {
        match OpenWrt::ready(&theirs, stage, &[], &plan.token, 0).unwrap() {
            Readiness::Nothing(completion) => assert_eq!(completion.warnings.len(), 1),
            Readiness::Send(_) => panic!("it is not ours"),
        }
    }
    assert!(theirs.0.sent.borrow().is_empty(), "nothing was sent in it");
    // The manifest's login asks for a life that no other client asks for.
    let ours = Lent(device.host(), "1193");
    for stage in [Stage::Apply, Stage::Confirm, Stage::Undo] {
        assert!(matches!(OpenWrt::ready(&ours, stage, &[], &plan.token, 0), Ok(Readiness::Send(_))));
    }
}
