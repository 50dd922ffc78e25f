use heddle_sdk::plugin::run;
use heddle_sdk::plugin::testing::FakeHost;

use super::*;

/// Monday, 2026-11-23, 23:00 in Berlin.
const NIGHT: u64 = 1_795_471_200_000;
const MORNING: u64 = NIGHT + 10 * 3_600_000;

fn host() -> FakeHost<'static> {
    let mut host = FakeHost::alone().with_operations(|operation, params| {
        if params["controller_id"] == "gone" {
            return Err(fault::not_found("there is no such controller"));
        }
        let problem = operation.starts_with("network.port").then(|| json!({ "type": "timeout", "message": "slow" }));
        Ok(json!({ "change_id": format!("change-{}", params["payload"]["key"].as_str().unwrap()), "plan_error": problem }))
    });
    host.settings = json!({
        "zone": { "offset_minutes": 60, "summer_time": "eu" },
        "targets": [
            { "name": "hall", "kind": "radio", "controller_id": "c-1", "site_ref": "Branch", "key": "ap:5" },
            { "name": "lamp", "kind": "port", "controller_id": "c-1", "key": "sw:3" },
            { "name": "gate", "kind": "radio", "controller_id": "c-2", "key": "ap:6" },
        ],
        "rules": [
            { "name": "Night", "days": ["mon"], "from": "22:00", "to": "06:00", "targets": ["hall", "lamp"] },
        ],
    });
    host.now_ms.set(NIGHT);
    host
}

#[test]
fn a_plan_says_what_would_be_staged_and_stages_nothing() {
    let host = host();
    let planned = run::<QuietHours>(&host, "plan", json!({})).unwrap();
    assert_eq!(planned["local_time"], "2026-11-23T23:00");
    let of = |name: &str, is_off: bool| {
        let rules: &[&str] = if is_off { &["Night"] } else { &[] };
        json!({ "name": name, "is_off": is_off, "rules": rules, "asked": null, "would_stage": is_off })
    };
    assert_eq!(planned["targets"], json!([of("hall", true), of("lamp", true), of("gate", false)]));
    let later = run::<QuietHours>(&host, "plan", json!({ "at_ms": MORNING })).unwrap();
    assert_eq!(later["targets"][0]["would_stage"], false);
    assert!(host.called.borrow().is_empty() && host.stored.borrow().is_empty());
}

#[test]
fn each_target_is_staged_once_a_night_and_once_a_morning() {
    let host = host();
    let apply = |params: Value| run::<QuietHours>(&host, "apply-now", params).unwrap();
    let night = apply(json!({}));
    assert_eq!(
        night["staged"],
        json!([
            { "name": "hall", "to": "off", "change_id": "change-ap:5", "problem": null },
            { "name": "lamp", "to": "off", "change_id": "change-sw:3", "problem": "slow" },
        ])
    );
    assert_eq!(night["unchanged"], 1);
    let called = host.called.borrow().clone();
    let radio = json!({
        "controller_id": "c-1", "site_ref": "Branch", "payload": { "key": "ap:5", "enabled": false },
        "notes": "Quiet hours of hall: Night",
    });
    assert_eq!(called[0], ("network.radio.update".to_owned(), radio));
    assert_eq!(called[1].1["payload"], json!({ "key": "sw:3", "poe": { "enabled": false } }));

    assert_eq!(apply(json!({}))["unchanged"], 3, "what was staged is not staged again");
    assert_eq!(apply(json!({ "again": true }))["staged"].as_array().unwrap().len(), 2);
    host.now_ms.set(MORNING);
    let morning = apply(json!({}));
    assert_eq!(morning["staged"][0]["to"], "on");
    assert_eq!(apply(json!({}))["staged"], json!([]));
}

#[test]
fn a_target_that_fails_keeps_no_other_from_being_staged() {
    let mut host = host();
    host.settings["targets"][0]["controller_id"] = json!("gone");
    let applied = run::<QuietHours>(&host, "apply-now", json!({})).unwrap();
    assert_eq!(applied["failed"], json!([{ "name": "hall", "message": "there is no such controller" }]));
    assert_eq!(applied["staged"][0]["name"], "lamp");
    // Nothing is kept of what failed: it is tried again.
    assert_eq!(run::<QuietHours>(&host, "plan", json!({})).unwrap()["targets"][0]["would_stage"], true);
    host.settings["targets"][1]["controller_id"] = json!("gone");
    host.stored.borrow_mut().clear();
    let fault = run::<QuietHours>(&host, "apply-now", json!({})).unwrap_err();
    assert_eq!(fault.word(), "not_found");
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let mut host = host();
    host.settings["rules"][0]["targets"] = json!(["attic"]);
    let fault = QuietHours::check(&host).unwrap_err();
    assert!(fault.info().message.contains("'attic'"), "{}", fault.info().message);
    assert!(run::<QuietHours>(&host, "plan", json!({})).is_err());
}

#[test]
fn the_clock_wakes_the_plugin_when_a_rule_begins_or_ends() {
    let host = host();
    let next = |host: &FakeHost<'_>| host.timers().unwrap().first().map(|standing| standing.next_at_ms);
    QuietHours::configure(&host).unwrap();
    assert_eq!(next(&host), Some(NIGHT), "at once: it is night");
    QuietHours::on_schedule(&host, CLOCK, CLOCK, NIGHT).unwrap();
    assert_eq!(host.called.borrow().len(), 2, "two targets are switched off");
    let six = NIGHT + 7 * 3_600_000;
    assert_eq!(next(&host), Some(six));
    host.now_ms.set(six);
    QuietHours::on_schedule(&host, CLOCK, CLOCK, six).unwrap();
    assert_eq!((host.called.borrow().len(), next(&host)), (4, Some(NIGHT - 3_600_000 + 7 * 86_400_000)));
}

#[test]
fn what_could_not_be_staged_is_tried_again_before_the_next_rule() {
    let mut host = host();
    host.settings["targets"][0]["controller_id"] = json!("gone");
    QuietHours::on_schedule(&host, CLOCK, CLOCK, NIGHT).unwrap();
    let timers = host.timers().unwrap();
    assert_eq!(timers[0].next_at_ms, NIGHT + AGAIN_MS);
    host.settings["rules"] = json!([]);
    host.settings["targets"] = json!([]);
    QuietHours::on_schedule(&host, CLOCK, CLOCK, NIGHT).unwrap();
    assert!(host.timers().unwrap().is_empty(), "no rule, no time");
}
