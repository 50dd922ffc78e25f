//! Several changes of one controller, reviewed and applied as one.

use serde_json::{Value, json};

use super::Lab;
use super::scripted::{Scripted, before};
use crate::support::{Api, on_both};

async fn set_of(api: &Api, members: &[&Value]) -> Value {
    let ids: Vec<&Value> = members.iter().map(|member| &member["id"]).collect();
    api.post("/gateway-vpn/changes/sets", &json!({ "change_ids": ids })).await.expect_status(201).body
}

fn path(set: &Value, verb: &str) -> String {
    format!("/gateway-vpn/changes/sets/{}/{verb}", set["id"].as_str().expect("a set has an id"))
}

on_both! {
    async fn a_set_is_applied_confirmed_and_taken_back_as_one(database: Database) {
        let lab = Lab::start(database).await;
        let fingerprint = lab.router.fingerprint();
        let (one, two) = (lab.stage_rule("Set-1").await, lab.stage_rule("Set-2").await);
        let set = set_of(&lab.api, &[&two, &one]).await;
        assert_eq!((&set["changes"][0]["id"], &set["changes"][1]["id"]), (&two["id"], &one["id"]), "{set}");
        assert!(set["plan"]["hash"].is_string() && set["plan"]["steps"].as_array().unwrap().len() == 2, "{set}");
        // A member goes with its set only, and the set is no change.
        for verb in ["apply", "plan", "discard", "revert"] {
            let body = if verb == "apply" { json!({ "force": true }) } else { json!({}) };
            let alone = lab.api.post(&Lab::path(&one, verb), &body).await.expect_status(409);
            assert_eq!(alone.error_type(), "in_set", "{verb}: {}", alone.text);
            assert!(alone.text.contains(set["id"].as_str().unwrap()), "{}", alone.text);
        }
        lab.api.get(&Lab::path(&set, "")).await.expect_status(404);
        let again = json!({ "change_ids": [one["id"], two["id"]] });
        lab.api.post("/gateway-vpn/changes/sets", &again).await.expect_status(409);

        let stale = json!({ "force": true, "plan_hash": one["plan"]["hash"] });
        lab.api.post(&path(&set, "apply"), &stale).await.expect_status(409);
        let body = json!({ "force": true, "plan_hash": set["plan"]["hash"], "confirm_within_secs": 60 });
        let held = lab.api.post(&path(&set, "apply"), &body).await.expect_status(200).body;
        assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
        let member = lab.get(&one).await;
        assert_eq!((&member["outcome"]["state"], &member["outcome"]["step"]), (&json!("awaiting_confirm"), &json!("holding")), "{member}");
        let applied = lab.api.post(&path(&set, "confirm"), &json!({})).await.expect_status(200).body;
        assert_eq!((&applied["status"], &applied["outcome"]["state"]), (&json!("applied"), &json!("applied")), "{applied}");
        for member in [&one, &two] {
            let seen = lab.get(member).await;
            assert_eq!((&seen["status"], &seen["outcome"]["state"], &seen["change_set_id"]), (&json!("applied"), &json!("applied"), &set["id"]), "{seen}");
            assert_eq!(seen["attempts"].as_array().unwrap().len(), 1, "{seen}");
        }
        assert_eq!(lab.router.counters().applies, 1, "one apply for both");
        let query = format!("/gateway-vpn/changes?set={}", set["id"].as_str().unwrap());
        assert_eq!(lab.api.get(&query).await.expect_status(200).body["total"], 2);

        let inverse = lab.api.post(&path(&set, "revert"), &json!({})).await.expect_status(201).body;
        lab.api.post(&Lab::path(&inverse, "apply"), &json!({ "force": true })).await.expect_status(200);
        assert_eq!(lab.router.fingerprint(), fingerprint);
        let member = lab.get(&two).await;
        assert_eq!((&member["outcome"]["state"], &member["reverted_by"]), (&json!("reverted"), &inverse["id"]), "{member}");
        let valid = lab.api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(valid["valid"], true, "{valid}");
    }
}

on_both! {
    async fn a_set_in_its_window_is_taken_back_as_one(database: Database) {
        let lab = Lab::start(database).await;
        let fingerprint = lab.router.fingerprint();
        let (one, two) = (lab.stage_rule("Back-1").await, lab.stage_rule("Back-2").await);
        let set = set_of(&lab.api, &[&one, &two]).await;
        let body = json!({ "force": true, "confirm_within_secs": 60 });
        lab.api.post(&path(&set, "apply"), &body).await.expect_status(200);
        let back = lab.api.post(&path(&set, "revert"), &json!({})).await.expect_status(200).body;
        assert_eq!(back["outcome"]["state"], "reverted", "{back}");
        assert_eq!(back["changes"][1]["outcome"]["state"], "reverted", "{back}");
        assert_eq!(lab.router.fingerprint(), fingerprint);
        // Given up alone, it leaves its changes as they were.
        let discard = format!("{}?keep_changes=true", path(&set, "discard"));
        lab.api.post(&discard, &json!({})).await.expect_status(200);
        let free = lab.get(&one).await;
        assert_eq!((&free["status"], &free["change_set_id"]), (&json!("pending"), &Value::Null), "{free}");
        assert_eq!(free["attempts"].as_array().unwrap().len(), 1, "attempts are kept: {free}");
        lab.api.post(&Lab::path(&one, "discard"), &json!({})).await.expect_status(200);
    }
}

on_both! {
    async fn each_member_of_a_set_has_the_outcome_that_the_device_shows(database: Database) {
        let lab = Scripted::start(database).await;
        let half = json!({ "standing": { "half": true }, "items": ["after", "before"], "foreign": [] });
        for stage in ["apply", "undo", "restore"] {
            lab.script().then.insert(stage.to_owned(), half.clone());
        }
        let (one, two) = (lab.stage("one").await, lab.stage("two").await);
        let set = set_of(&lab.api, &[&one, &two]).await;
        assert_ne!(lab.api.post(&path(&set, "apply"), &json!({ "force": true })).await.status, 200);
        let states = |members: &[Value]| -> Vec<Value> {
            members.iter().map(|member| json!([member["status"], member["outcome"]["state"]])).collect()
        };
        let members = [lab.get(&one).await, lab.get(&two).await];
        assert_eq!(states(&members), [json!(["pending", "applied"]), json!(["pending", "failed"])], "{members:?}");
        let gone = lab.api.post(&path(&set, "discard"), &json!({})).await.expect_status(200).body;
        assert_eq!((&gone["status"], &gone["outcome"]["state"]), (&json!("discarded"), &json!("partial")), "{gone}");
        let members = [lab.get(&one).await, lab.get(&two).await];
        assert_eq!(states(&members), [json!(["applied", "applied"]), json!(["discarded", "failed"])], "{members:?}");
        lab.script().compare = before();
    }
}

on_both! {
    async fn a_set_is_of_pending_changes_of_one_controller(database: Database) {
        let lab = Lab::start(database).await;
        let (one, two) = (lab.stage_rule("Of-1").await, lab.stage_rule("Of-2").await);
        let make = |ids: Value| {
            let api = &lab.api;
            async move { api.post("/gateway-vpn/changes/sets", &json!({ "change_ids": ids })).await.status }
        };
        assert_eq!(make(json!([one["id"]])).await, 422);
        assert_eq!(make(json!([one["id"], one["id"]])).await, 422);
        assert_eq!(make(json!([one["id"], lab.controller])).await, 404);
        lab.api.post(&Lab::path(&two, "discard"), &json!({})).await.expect_status(200);
        assert_eq!(make(json!([one["id"], two["id"]])).await, 409);
        let body = json!({ "force": true, "confirm_within_secs": 60 });
        lab.api.post(&Lab::path(&one, "apply"), &body).await.expect_status(200);
        let three = lab.stage_rule("Of-3").await;
        assert_eq!(make(json!([one["id"], three["id"]])).await, 409, "one is being applied");
    }
}

on_both! {
    async fn who_staged_a_member_may_not_apply_the_set_where_a_second_person_is_required(database: Database) {
        let lab = Lab::start(database).await;
        let me = lab.api.get("/auth/me").await.expect_status(200).body;
        let org = me["organization"]["id"].as_str().or(me["organization_id"].as_str()).unwrap().to_owned();
        let settings = json!({ "settings": { "require_second_person": true } });
        lab.api.patch(&format!("/organizations/{org}"), &settings).await.expect_status(200);
        let set = set_of(&lab.api, &[&lab.stage_rule("Second-1").await, &lab.stage_rule("Second-2").await]).await;
        let refused = lab.api.post(&path(&set, "apply"), &json!({ "force": true })).await.expect_status(403);
        assert_eq!(refused.error_type(), "second_person_required");
    }
}

on_both! {
    async fn independent_rules_apply_one_after_the_other_without_planning_again(database: Database) {
        let lab = Lab::start(database).await;
        let mut rules = Vec::new();
        for n in 0..3 {
            rules.push(lab.stage_rule(&format!("Independent-{n}")).await);
        }
        for rule in &rules {
            let applied = lab.api.post(&Lab::path(rule, "apply"), &json!({ "force": true })).await;
            assert_eq!(applied.status, 200, "{}", applied.text);
        }
    }
}

/// A set of three changes that one call carries out, whose job tells them apart.
async fn set_of_three(lab: &Scripted, stages: &[&str]) -> ([Value; 3], Value) {
    lab.script().plan = json!({ "holds": false, "stages": stages });
    lab.script().said.insert("apply".to_owned(), json!({ "task": true }));
    let refusal = json!({ "message": "the guest is locked", "kind": "conflict", "effect": "none" });
    lab.script().task = vec![json!({ "task": true }), json!({ "items": [null, refusal, null] })];
    let members = [lab.stage("one").await, lab.stage("two").await, lab.stage("three").await];
    let set = set_of(&lab.api, &[&members[0], &members[1], &members[2]]).await;
    (members, set)
}

on_both! {
    async fn members_follow_what_one_job_said_of_each_where_nothing_can_be_read(database: Database) {
        let lab = Scripted::start(database).await;
        for standing in [json!("unseen"), json!({ "part": "two of three" })] {
            lab.script().compare = before();
            lab.script().sent.clear();
            let (members, set) = set_of_three(&lab, &["apply"]).await;
            lab.script().then.insert("apply".to_owned(), json!({ "standing": standing, "items": [], "foreign": [] }));
            lab.api.post(&path(&set, "apply"), &json!({ "force": true })).await;
            let one = format!("/gateway-vpn/changes/sets/{}", set["id"].as_str().unwrap());
            let ended = lab.api.get(&one).await.expect_status(200).body;
            assert_eq!((&ended["outcome"]["state"], &ended["status"]), (&json!("partial"), &json!("pending")), "{ended}");
            let message = ended["outcome"]["message"].as_str().unwrap();
            assert!(message.contains("1 of 3 changes: the guest is locked"), "{message}");
            let results = &ended["outcome"]["detail"]["results"];
            assert_eq!((&results[0]["failed"], &results[2]["failed"]), (&Value::Null, &Value::Null), "{ended}");
            assert_eq!(results[1], json!({
                "index": 1,
                "failed": { "type": "conflict", "code": null, "message": "the guest is locked", "effect": "none" },
            }));
            let states: Vec<Value> = ended["changes"].as_array().unwrap().iter().map(|member| member["outcome"]["state"].clone()).collect();
            assert_eq!(states, ["applied", "failed", "applied"], "{ended}");
            let seen = lab.get(&members[1]).await;
            assert!(seen["outcome"]["message"].as_str().unwrap().contains("the guest is locked"), "{seen}");
            // What is in effect becomes a change of its own, and what is not is discarded with the set.
            lab.api.post(&path(&set, "discard"), &Value::Null).await.expect_status(200);
            let statuses = [lab.get(&members[0]).await["status"].clone(), lab.get(&members[1]).await["status"].clone()];
            assert_eq!(statuses, ["applied", "discarded"]);
        }
    }
}

on_both! {
    async fn what_the_device_shows_of_each_member_goes_before_what_a_job_said_of_it(database: Database) {
        let lab = Scripted::start(database).await;
        let (_, set) = set_of_three(&lab, &["apply"]).await;
        let shown = json!({ "standing": { "part": "one of three" }, "items": ["before", "after", "before"], "foreign": [] });
        lab.script().then.insert("apply".to_owned(), shown);
        lab.api.post(&path(&set, "apply"), &json!({ "force": true })).await;
        let one = format!("/gateway-vpn/changes/sets/{}", set["id"].as_str().unwrap());
        let ended = lab.api.get(&one).await.expect_status(200).body;
        let states: Vec<Value> = ended["changes"].as_array().unwrap().iter().map(|member| member["outcome"]["state"].clone()).collect();
        assert_eq!(states, ["failed", "applied", "failed"], "{ended}");
    }
}

on_both! {
    async fn what_a_job_said_of_each_member_does_not_count_once_the_way_back_was_sent(database: Database) {
        let lab = Scripted::start(database).await;
        let (_, set) = set_of_three(&lab, &["apply", "restore"]).await;
        let part = json!({ "standing": { "part": "some of it" }, "items": [], "foreign": [] });
        for stage in ["apply", "restore"] {
            lab.script().then.insert(stage.to_owned(), part.clone());
        }
        lab.api.post(&path(&set, "apply"), &json!({ "force": true })).await;
        let one = format!("/gateway-vpn/changes/sets/{}", set["id"].as_str().unwrap());
        let ended = lab.api.get(&one).await.expect_status(200).body;
        assert_eq!(lab.script().arrived("restore"), 1, "{ended}");
        let states: Vec<Value> = ended["changes"].as_array().unwrap().iter().map(|member| member["outcome"]["state"].clone()).collect();
        assert_eq!(states, ["partial", "partial", "partial"], "{ended}");
    }
}
