//! What a good answer means beyond "done": tasks, warnings, what must still happen. And stages that go on.

use heddle_sdk::testing::{go_on_stage, send_stage};
use heddle_sdk::{Adapter, Effect, Fault, FaultExt, Outcome, Readiness, Stage, Standing};
use serde_json::json;

use super::*;

#[test]
fn a_task_ends_the_stage_until_it_is_done_and_the_rest_goes_on() {
    let (device, description) = (Device::new(), description());
    let before = device.state.borrow().clone();
    let changes = [
        create("zone", &json!({ "name": "lan" })),
        create("rule", &json!({ "name": "smb", "target": "lan", "action": "pass" })),
    ];
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    device.slow.replace(Some("/zones".to_owned()));
    let pending = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(pending, Outcome::Pending(task) if task.token == b"t1"));
    assert_eq!(device.writes.borrow().len(), 1);
    assert!(matches!(Json::poll(&host, b"t1").unwrap(), Outcome::Done(_)));
    let host = restarted(&device, &description, &host);
    go_on_stage::<Json>(&host, Stage::Apply, &changes, &plan, 1).unwrap();
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::After));
    assert_eq!(device.row("/rules", "name", "smb").unwrap()["target"], "x10");

    device.writes.take();
    let host = restarted(&device, &description, &host);
    let pending = send_stage::<Json>(&host, Stage::Restore, &changes, &plan).unwrap();
    assert!(matches!(pending, Outcome::Pending(_)));
    assert_eq!(device.writes.borrow().len(), 2, "the rule and the zone");
    go_on_stage::<Json>(&host, Stage::Restore, &changes, &plan, 2).unwrap();
    let writes = device.writes.take();
    assert_eq!(
        writes.iter().filter(|write| write.starts_with("Delete")).count(),
        2,
        "none is sent twice: {writes:?}"
    );
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::Before));
    assert_eq!(*device.state.borrow(), before);
}

#[test]
fn a_stage_goes_on_behind_what_was_sent() {
    let (device, description) = (Device::new(), description());
    let changes = [create("alias", &json!({ "name": "a" })), create("alias", &json!({ "name": "b" }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    for (stage, left) in [(Stage::Apply, 1), (Stage::Apply, 3), (Stage::Restore, 1), (Stage::Restore, 2)] {
        let ready = Json::ready(&host, stage, &changes, &plan.token, left).unwrap();
        assert!(matches!(ready, Readiness::Send(start) if start.from == left), "{stage:?} {left}");
    }
}

#[test]
fn an_action_may_be_a_task() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [create("clone", &json!({ "vmid": 100, "newid": 101 }))];
    let plan = Form::plan(&host, &changes).unwrap();
    device.slow.replace(Some("/clone".to_owned()));
    assert!(matches!(send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap(), Outcome::Pending(_)));
    go_on_stage::<Form>(&host, Stage::Apply, &changes, &plan, 1).unwrap();
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After));
    assert!(device.row("/nodes/n1/guests", "vmid", "101").is_some());
    assert!(
        matches!(send_stage::<Form>(&host, Stage::Restore, &changes, &plan), Ok(Outcome::Done(_))),
        "nothing to send"
    );
}

#[test]
fn the_job_of_an_action_is_ended_by_the_id_in_its_answer() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes =
        [create("clone", &json!({ "vmid": 100, "newid": 101 })), create("start", &json!({ "vmid": 100 }))];
    let plan = Form::plan(&host, &changes).unwrap();
    let ends: Vec<_> = plan.native.iter().filter(|call| call.stage == Stage::Abort).collect();
    assert_eq!(ends.len(), 1, "only the clone has a way: {:?}", plan.native);
    assert_eq!(
        (ends[0].path.as_str(), ends[0].only_after.as_deref()),
        ("/nodes/n1/jobs/{{hole.job_0}}", Some("w0"))
    );
    assert!(!ends[0].repeatable);
    device.slow.replace(Some("/clone".to_owned()));
    assert!(matches!(send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap(), Outcome::Pending(_)));
    send_stage::<Form>(&host, Stage::Abort, &changes, &plan).unwrap();
    assert_eq!(device.writes.borrow().last().unwrap(), "Delete /nodes/n1/jobs/t1");
    // The next call has no job of its own, and the one before has ended.
    go_on_stage::<Form>(&host, Stage::Apply, &changes, &plan, 1).unwrap();
    device.writes.take();
    send_stage::<Form>(&host, Stage::Abort, &changes, &plan).unwrap();
    assert!(device.writes.borrow().is_empty());
}

#[test]
fn a_write_that_is_a_job_is_ended_like_an_action() {
    let (device, mut description) = (Device::new(), description());
    let features = description["features"].as_array_mut().unwrap();
    let zone = features.iter_mut().find(|feature| feature["id"] == "rig.zone").unwrap();
    let cancel = json!({ "method": "DELETE", "path": "/jobs/{job}", "job": "/task" });
    for word in ["create", "update", "delete"] {
        zone["binding"][word]["cancel"] = cancel.clone();
    }
    let host = device.host(&description);
    let ways = |plan: &ChangePlan| plan.native.iter().filter(|call| call.stage == Stage::Abort).count();
    let made = [create("zone", &json!({ "name": "lan" }))];
    assert_eq!(ways(&Json::plan(&host, &made).unwrap()), 1);
    // A plan that would leave more open than a server takes goes without.
    let many: Vec<_> = (0..24).map(|n| create("zone", &json!({ "name": format!("z{n}") }))).collect();
    let rules = (0..24).map(|n| {
        create("rule", &json!({ "name": format!("r{n}"), "target": format!("z{n}"), "action": "pass" }))
    });
    let plan = Json::plan(&host, &many.into_iter().chain(rules).collect::<Vec<_>>()).unwrap();
    assert_eq!(ways(&plan), 0);
    assert!(
        plan.warnings.iter().any(|warning| warning.contains("cannot be cancelled")),
        "{:?}",
        plan.warnings
    );
}

#[test]
fn warnings_of_the_device_are_told() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("alias", &json!({ "name": "web", "note": "new" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    device.is_warning.set(true);
    let Outcome::Done(done) = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap() else {
        panic!("is done")
    };
    assert!(done.warnings.contains(&"the disk is nearly full".to_owned()));
}

#[test]
fn what_must_still_happen_is_told_where_the_object_is_as_wanted() {
    let (device, description) = (Device::new(), description());
    let mut host = device.host(&description);
    let changes = [update("guest", &json!({ "vmid": 100, "name": "post" }))];
    let plan = Form::plan(&host, &changes).unwrap();
    host.settings = json!({ "waiting": "100" });
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::Before));
    send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap();
    let found = standing::<Form>(&host, &changes, &plan);
    assert!(matches!(&found, Standing::Stored(needs) if *needs == ["restart of the guest"]), "{found:?}");
    host.settings = json!({});
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After));
}

#[test]
fn created_objects_are_told_with_the_ids_that_are_known() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [create("profile", &json!({ "name": "p" })), create("alias", &json!({ "name": "nas" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    let Outcome::Done(done) = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap() else {
        panic!("is done")
    };
    let told: Vec<_> =
        done.created.iter().map(|one| (one.kind.as_str(), one.key.as_str(), one.locators.len())).collect();
    assert_eq!(told, [("net.profile", "p", 1), ("net.alias", "nas", 0)]);
}

#[test]
fn a_refused_call_behind_others_is_no_promise_and_what_went_before_is_taken_back() {
    let (device, description) = (Device::new(), description());
    let before = device.state.borrow().clone();
    let changes = [
        create("alias", &json!({ "name": "nas" })),
        create("zone", &json!({ "name": "lan" })),
        update("alias", &json!({ "name": "web", "note": "new" })),
    ];
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    device.refused.replace(Some("/zones".to_owned()));
    let fault = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap_err();
    assert!(matches!(fault.info().effect, Effect::Certain) && matches!(fault, Fault::Invalid(_)));
    assert_eq!(fault.info().fields[0].pointer, "/note");
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::Other(_)));
    device.refused.take();
    let host = restarted(&device, &description, &host);
    host.holes.borrow_mut().insert("id_1".to_owned(), json!("gone"));
    send_stage::<Json>(&host, Stage::Restore, &changes, &plan).unwrap();
    assert_eq!(*device.state.borrow(), before, "what never came to be needs no delete");
}

#[test]
fn a_call_of_a_restore_that_fails_is_done_where_the_object_is_as_before_and_nowhere_else() {
    let (device, description) = (Device::new(), description());
    let changes = [create("alias", &json!({ "name": "nas" })), create("profile", &json!({ "name": "p" }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    let judged = |index, answer| {
        Json::judge(&host, Sent { stage: Stage::Restore, index }, answer, &changes, &plan.token)
    };
    let absent = || Ok(heddle_sdk::testing::json_response(404, &json!({})));
    device.others("/profiles", Vec::clear);
    assert!(matches!(judged(0, absent()), Ok(Outcome::Done(_))), "the profile is gone");
    assert!(matches!(judged(0, Err(fault::timeout("lost"))), Ok(Outcome::Done(_))));
    assert!(matches!(judged(1, absent()), Err(Fault::NotFound(_))), "the alias is there");
    assert!(judged(2, absent()).is_err(), "the activation has no object");
    let apply = Sent { stage: Stage::Apply, index: 1 };
    assert!(
        Json::judge(&host, apply, absent(), &changes, &plan.token).is_err(),
        "an apply is judged by its answer"
    );
}

#[test]
fn a_set_whose_create_is_refused_is_taken_back_although_no_id_is_known() {
    for (feature, path) in [("zone", "/zones"), ("alias", "/aliases")] {
        let (device, description) = (Device::new(), description());
        let before = device.state.borrow().clone();
        let changes = [
            update("options", &json!({ "node": "n1", "motd": "hi" })),
            create(feature, &json!({ "name": "n" })),
        ];
        let host = device.host(&description);
        let plan = Json::plan(&host, &changes).unwrap();
        device.refused.replace(Some(path.to_owned()));
        assert!(send_stage::<Json>(&host, Stage::Apply, &changes, &plan).is_err());
        device.refused.take();
        restored::<Json>(&device, &description, (&host, &plan), &changes);
        assert_eq!(*device.state.borrow(), before, "{feature}");
    }
}
