//! Values that are not known when a plan is made: an answer gives them, the device is asked for them, or the adapter
//! finds them.

use serde_json::{Value, json};

use super::Lab;
use super::scripted::{Device, Scripted, before, stage};
use crate::support::{Process, on_both};

/// Creates an object, writes to it by the id that the device gave it, and deletes it by that id on the way back.
fn plan(source: &Value) -> Value {
    let mut hole = source.clone();
    hole["name"] = json!("id");
    json!({
        "holds": true, "stages": ["apply", "restore"], "calls": { "apply": 2 }, "holes": [hole],
        "named": { "apply-1": "{{hole.id}}", "restore-0": "object {{hole.id}}" },
    })
}

fn of_answer() -> Value {
    plan(&json!({ "answer": "apply-0", "pointer": "/data/id" }))
}

on_both! {
    async fn an_answer_gives_later_calls_and_the_way_back_what_they_name(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = of_answer();
        lab.script().answers.insert("apply-0".to_owned(), json!({ "data": { "id": "a-17" } }));
        let change = lab.stage("by id").await;
        let shown = &change["plan"];
        assert_eq!(shown["holes"][0]["source"], json!({ "from": "answer", "call": "apply-0", "pointer": "/data/id" }));
        assert_eq!(shown["native"][1]["body"]["named"], "{{hole.id}}", "the review shows the hole");
        lab.apply_held(&change).await;
        lab.act(&change, "revert", &Value::Null).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert_eq!(seen["outcome"]["hole_values"], json!({ "id": "a-17" }), "people see what was filled in");
        assert_eq!(lab.script().named, ["a-17", "object a-17"]);
    }
}

on_both! {
    async fn a_value_that_does_not_fit_is_not_sent_and_the_adapter_may_find_it(database: Database) {
        let lab = Scripted::start(database).await;
        for (answer, found) in [(json!("../etc"), false), (json!(null), true)] {
            lab.script().plan = of_answer();
            lab.script().compare = before();
            lab.script().sent.clear();
            lab.script().answers.insert("apply-0".to_owned(), json!({ "data": { "id": answer } }));
            let told = if found { json!({ "found": { "id": "a-18" } }) } else { json!({}) };
            lab.script().ready.insert("restore".to_owned(), told);
            let change = lab.stage(if found { "found" } else { "lost" }).await;
            lab.act(&change, "apply", &json!({ "force": true })).await;
            let seen = lab.get(&change).await;
            assert_eq!(seen["outcome"]["state"], if found { "reverted" } else { "partial" }, "{seen}");
            if !found {
                let warnings = seen["outcome"]["detail"]["warnings"].to_string();
                assert!(warnings.contains("'id' is not known from the answer to 'apply-0'"), "{seen}");
                assert!(lab.script().named.is_empty(), "nothing left with a value that nobody allowed");
                assert!(seen["outcome"]["message"].as_str().unwrap().contains("is not known"), "{seen}");
                lab.act(&change, "discard", &json!({})).await;
            }
        }
        assert_eq!(lab.script().named, ["object a-18"]);
    }
}

on_both! {
    async fn what_was_not_created_is_not_taken_back(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({
            "holds": false, "stages": ["apply", "restore"], "calls": { "apply": 3, "restore": 2 },
            "holes": [{ "name": "id", "answer": "apply-2", "pointer": "/id" }],
            "named": { "restore-0": "{{hole.id}}" }, "only_after": { "restore-0": "apply-2" },
        });
        let refusal = json!({ "fault": { "message": "no room", "effect": "certain" } });
        lab.script().said.insert("apply-1".to_owned(), refusal);
        let change = lab.stage("in part").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let calls = [("apply", 0), ("apply", 1), ("restore", 1)].map(|(stage, n)| (stage.to_owned(), n));
        assert_eq!(lab.script().calls, calls);
    }
}

on_both! {
    async fn a_fresh_value_is_read_right_before_the_call_that_names_it(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = plan(&json!({ "fresh": "/fresh", "pointer": "/digest" }));
        lab.script().fresh = json!({ "digest": "d1" });
        let change = lab.stage("by digest").await;
        lab.apply_held(&change).await;
        lab.script().fresh = json!({ "digest": "d2" });
        lab.act(&change, "revert", &Value::Null).await;
        assert_eq!(lab.get(&change).await["outcome"]["state"], "reverted");
        assert_eq!(lab.script().named, ["d1", "object d2"]);

        lab.script().fresh = json!({ "digest": ["no text"] });
        lab.script().sent.clear();
        let change = lab.stage("without one").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("GET /fresh"), "{seen}");
        assert_eq!(lab.script().arrived("apply"), 1, "the call that names it stayed here");
    }
}

on_both! {
    async fn a_plan_whose_holes_cannot_be_filled_is_refused_when_it_is_made(database: Database) {
        let lab = Scripted::start(database).await;
        let bad = |change: fn(&mut Value)| {
            let mut plan = of_answer();
            change(&mut plan);
            plan
        };
        for (plan, why) in [
            (bad(|plan| plan["holes"] = json!([])), "declares no such hole"),
            (bad(|plan| plan["holes"][0]["answer"] = json!("apply-1")), "no call before"),
            (bad(|plan| plan["holes"][0]["pattern"] = json!("(")), "pattern"),
        ] {
            lab.script().plan = plan;
            let change = lab.stage("refused").await;
            assert_eq!(change["plan"], Value::Null, "{change}");
            assert!(change["plan_error"]["message"].as_str().unwrap().contains(why), "{why}: {change}");
        }
    }
}

on_both! {
    async fn a_value_is_kept_whatever_the_judgement_says(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = of_answer();
        lab.script().answers.insert("apply-0".to_owned(), json!({ "data": { "id": 17 } }));
        let refusal = json!({ "fault": { "message": "stored, and said to have failed", "effect": "certain" } });
        lab.script().said.insert("apply".to_owned(), refusal);
        let change = lab.stage("stored").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert_eq!(lab.script().named, ["object 17"]);
    }
}

on_both! {
    async fn an_adapter_does_not_replace_what_an_answer_gave(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = of_answer();
        lab.script().answers.insert("apply-0".to_owned(), json!({ "data": { "id": "a-20" } }));
        lab.script().said.insert("apply".to_owned(), json!({ "found": { "id": "theirs" } }));
        lab.script().ready.insert("restore".to_owned(), json!({ "found": { "id": "theirs" } }));
        let change = lab.stage("another one").await;
        lab.apply_held(&change).await;
        lab.act(&change, "revert", &Value::Null).await;
        assert_eq!(lab.script().named, ["a-20", "object a-20"]);
    }
}

on_both! {
    async fn what_was_left_out_does_not_keep_the_rest_from_being_sent_again(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({
            "holds": false, "stages": ["apply", "restore"], "calls": { "apply": 2, "restore": 2 },
            "only_after": { "restore-0": "apply-1" },
        });
        let refusal = json!({ "fault": { "message": "no room", "effect": "certain" } });
        lab.script().said.insert("apply".to_owned(), refusal);
        lab.script().ready.insert("restore".to_owned(), json!({ "from": 0 }));
        lab.script().lost = vec!["restore".to_owned()];
        let change = lab.stage("lost restore").await;
        let force = json!({ "force": true });
        let applying = lab.act(&change, "apply", &force);
        let answering = async {
            while lab.script().arrived("restore") == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            lab.script().compare = json!({ "standing": { "part": "apply" } });
            lab.script().lost.clear();
        };
        tokio::join!(applying, answering);
        let calls: Vec<u64> =
            lab.script().calls.iter().filter(|(stage, _)| stage == "restore").map(|(_, n)| *n).collect();
        assert_eq!(calls, [1, 1]);
    }
}

on_both! {
    async fn what_an_answer_gave_survives_a_kill(database: Database) {
        let device = Device::start().await;
        device.script().plan = of_answer();
        device.script().answers.insert("apply-0".to_owned(), json!({ "data": { "id": "a-19" } }));
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = device.options().with("LOG_FILTER", "warn");
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let controller = device.register(&process.api).await;
        // The second call hangs: only what was recorded before it left is known after the kill.
        let change = stage(&process.api, &controller, "kept").await;
        let (api, path) = (process.api.clone(), Lab::path(&change, "apply"));
        let applying = async {
            let _ = api.try_send("POST", &path, Some(json!({ "force": true }).to_string().into_bytes())).await;
        };
        let dying = async {
            device.script().slow = vec!["apply-1".to_owned()];
            while device.script().arrived("apply") < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            process.kill();
        };
        tokio::join!(applying, dying);
        device.script().slow.clear();
        device.script().compare = json!({ "standing": { "part": "apply" } });
        let process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        for _ in 0..600 {
            let seen = process.api.get(&Lab::path(&change, "")).await.expect_status(200).body;
            if seen["outcome"]["step"] == "idle" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let seen = process.api.get(&Lab::path(&change, "")).await.expect_status(200).body;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert_eq!(device.script().named, ["a-19", "object a-19"]);
    }
}

on_both! {
    async fn a_device_that_writes_values_in_its_own_way_has_taken_the_change(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().then.insert("apply".to_owned(), json!({ "standing": { "adjusted": { "mtu": [1500, 1492] } } }));
        let change = lab.stage("adjusted").await;
        let (status, applied) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!((status, &applied["outcome"]["state"]), (200, &json!("applied")), "{applied}");
        assert_eq!(applied["outcome"]["detail"]["difference"], json!({ "mtu": [1500, 1492] }));
        let verified = lab.act(&change, "verify", &json!({})).await.1;
        assert_eq!(verified["standing"]["state"], "adjusted", "{verified}");
    }
}

on_both! {
    async fn what_somebody_else_changed_since_is_not_taken_back(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().then.insert("apply".to_owned(), json!({ "standing": { "moved_on": { "name": "theirs" } } }));
        let change = lab.stage("moved on").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "partial", "{seen}");
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("others changed what"), "{seen}");
        assert_eq!(lab.script().sent, ["apply"], "nothing was written over theirs");
    }
}

on_both! {
    async fn a_conflict_at_the_device_is_told_as_one(database: Database) {
        let lab = Scripted::start(database).await;
        let taken = json!({ "fault": { "message": "the name is taken", "kind": "conflict", "effect": "none" } });
        lab.script().then.remove("apply");
        lab.script().said.insert("apply".to_owned(), taken);
        let change = lab.stage("taken").await;
        let (status, refused) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!((status, &refused["error"]["type"]), (409, &json!("conflict")), "{refused}");
        assert_eq!(lab.get(&change).await["outcome"]["state"], "failed");
    }
}
