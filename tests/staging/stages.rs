//! A stage is several calls: what happens between them, and which of them may be sent again.

use serde_json::json;

use super::Lab;
use super::scripted::{Device, Scripted, after, before, stage};
use crate::support::{Process, on_both};

on_both! {
    async fn the_rest_of_a_stage_follows_when_a_task_is_done(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply", "restore"], "calls": { "apply": 3 } });
        lab.script().said.insert("apply-1".to_owned(), json!({ "task": true }));
        lab.script().task = vec![json!({ "task": true }), json!({})];
        let change = lab.stage("in parts").await;
        let (status, applied) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!((status, &applied["outcome"]["state"]), (200, &json!("applied")), "{applied}");
        let calls = [0, 1, 2].map(|n| ("apply".to_owned(), n));
        assert_eq!(lab.script().calls, calls);
    }
}

on_both! {
    async fn nothing_follows_a_task_that_failed_and_the_rest_is_taken_back(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply", "restore"], "calls": { "apply": 3 } });
        lab.script().said.insert("apply-1".to_owned(), json!({ "task": true }));
        lab.script().task = vec![json!({ "failed": { "message": "exited with code 1", "effect": "certain" } })];
        let change = lab.stage("in parts").await;
        let (status, _) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!(status, 502);
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("exited with code 1"), "{seen}");
        assert_eq!(lab.script().sent, ["apply", "apply", "restore"]);
    }
}

on_both! {
    async fn what_happens_beside_what_was_asked_for_is_reviewed(database: Database) {
        let lab = Scripted::start(database).await;
        let change = lab.stage("alone").await;
        assert_eq!(change["plan"]["also"], json!(null), "{change}");
        let beside = "the filter is loaded again, with two rules that others have saved";
        lab.script().plan["also"] = json!([beside]);
        let (status, planned) = lab.act(&change, "plan", &json!({})).await;
        assert_eq!((status, &planned["plan"]["also"]), (200, &json!([beside])), "{planned}");
        let hash = change["plan"]["hash"].clone();
        assert_ne!(planned["plan"]["hash"], hash);
        let (status, refused) = lab.act(&change, "apply", &json!({ "force": true, "plan_hash": hash })).await;
        assert_eq!((status, &refused["error"]["type"]), (409, &json!("plan_changed")), "{refused}");
    }
}

on_both! {
    async fn a_refused_call_ends_its_stage(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply", "restore"], "calls": { "apply": 3 } });
        lab.script().said.insert("apply-1".to_owned(), json!({ "fault": { "message": "name is taken", "effect": "certain" } }));
        let change = lab.stage("taken").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert_eq!(lab.script().sent, ["apply", "apply", "restore"]);
    }
}

on_both! {
    async fn what_is_stored_without_the_calls_that_activate_it_is_taken_back(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan =
            json!({ "holds": false, "stages": ["apply", "restore"], "calls": { "apply": 3 }, "shows_at_once": true });
        lab.script().said.insert("apply-1".to_owned(), json!({ "fault": { "message": "busy", "effect": "certain" } }));
        let change = lab.stage("stored").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert_eq!(lab.script().sent, ["apply", "apply", "restore"]);
    }
}

on_both! {
    async fn nothing_is_sent_when_the_stage_cannot_begin(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().ready.insert("apply".to_owned(), json!({ "fault": { "message": "somebody else applies", "kind": "busy" } }));
        let change = lab.stage("not now").await;
        let (status, refused) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!(status, 502, "{refused}");
        let seen = lab.get(&change).await;
        assert_eq!((&seen["outcome"]["state"], &seen["status"]), (&json!("failed"), &json!("pending")), "{seen}");
        assert!(lab.script().sent.is_empty());
        assert_eq!(lab.script().comparisons, 0, "the host itself knows that nothing left");
    }
}

on_both! {
    async fn a_confirmation_without_an_answer_is_sent_again_only_if_the_plan_allows_it(database: Database) {
        let lab = Scripted::start(database).await;
        for (once, sent) in [(true, 1), (false, 2)] {
            lab.script().plan["once"] = json!(once);
            lab.script().lost = vec!["confirm".to_owned()];
            lab.script().sent.clear();
            lab.script().compare = before();
            let change = lab.stage(if once { "once" } else { "often" }).await;
            let force = json!({ "force": true });
            let applying = lab.act(&change, "apply", &force);
            let answering = async {
                while lab.script().arrived("confirm") == 0 {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                lab.script().lost.clear();
            };
            tokio::join!(applying, answering);
            let seen = lab.get(&change).await;
            assert_eq!(seen["outcome"]["state"], "applied", "{seen}");
            assert_eq!(lab.script().arrived("confirm"), sent, "once: {once}");
            let message = seen["outcome"]["message"].as_str().unwrap_or_default();
            assert_eq!(message.contains("it is not known whether"), once, "{seen}");
        }
    }
}

on_both! {
    async fn a_restore_in_doubt_is_sent_again_from_the_call_in_doubt(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": true, "stages": ["apply", "restore"], "calls": { "restore": 2 } });
        let change = lab.stage("way back").await;
        lab.apply_held(&change).await;
        lab.script().lost = vec!["restore".to_owned()];
        let reverting = lab.act(&change, "revert", &serde_json::Value::Null);
        let answering = async {
            while lab.script().arrived("restore") == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            lab.script().lost.clear();
        };
        tokio::join!(reverting, answering);
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        let restored: Vec<u64> =
            lab.script().calls.iter().filter(|(stage, _)| stage == "restore").map(|(_, n)| *n).collect();
        assert_eq!(restored, [0, 0, 1]);
    }
}

on_both! {
    async fn no_call_is_passed_over(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": true, "stages": ["apply", "restore"], "calls": { "apply": 2 } });
        lab.script().ready.insert("apply".to_owned(), json!({ "from": 1 }));
        let change = lab.stage("without the first").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "failed", "{seen}");
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("asked for call 2"), "{seen}");
        assert!(lab.script().sent.is_empty());
    }
}

on_both! {
    async fn a_call_of_the_apply_is_never_sent_again(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": true, "stages": ["apply", "restore"], "calls": { "apply": 2 } });
        lab.script().lost = vec!["apply".to_owned()];
        let change = lab.stage("lost").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "reverted", "{seen}");
        assert_eq!(lab.script().sent, ["apply", "restore"]);
        // Another attempt is another decision of a person.
        lab.script().lost.clear();
        lab.script().compare = before();
        lab.script().sent.clear();
        let (status, _) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!(status, 200);
        let script = lab.script();
        assert_eq!((&script.sent[..], &script.compare), (&["apply".to_owned(), "apply".to_owned()][..], &after()));
    }
}

on_both! {
    async fn a_plan_of_another_adapter_is_made_again_before_it_is_applied(database: Database) {
        let device = Device::start().await;
        let folder = tempfile::tempdir().unwrap();
        let (mut process, token) = Process::start(folder.path(), &database, &device.options()).await.set_up().await;
        let controller = device.register(&process.api).await;
        let change = stage(&process.api, &controller, "before the update").await;
        assert!(change["plan"]["made_by"].as_str().unwrap().starts_with("hostile@1.0.0+"), "{change}");
        process.kill();
        device.replace_adapter("1.1.0");
        process = Process::start(folder.path(), &database, &device.options()).await.with_token(&token);
        let force = json!({ "force": true });
        let refused = process.api.post(&Lab::path(&change, "apply"), &force).await.expect_status(409).body;
        assert_eq!(refused["error"]["type"], "not_planned");
        assert!(refused["error"]["message"].as_str().unwrap().contains("hostile@1.1.0+"), "{refused}");
        assert!(device.script().sent.is_empty());
        process.api.post(&Lab::path(&change, "plan"), &json!({})).await.expect_status(200);
        process.api.post(&Lab::path(&change, "apply"), &force).await.expect_status(200);
    }
}

/// A plan of an action that leaves nothing to read.
fn unseen() -> serde_json::Value {
    json!({ "standing": "unseen", "items": [], "foreign": [] })
}

on_both! {
    async fn what_cannot_be_read_is_applied_when_every_call_was_answered_with_a_success(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply"], "calls": { "apply": 2 } });
        lab.script().then.insert("apply".to_owned(), unseen());
        let change = lab.stage("wake up").await;
        let (status, applied) = lab.act(&change, "apply", &json!({ "force": true })).await;
        assert_eq!((status, &applied["outcome"]["state"]), (200, &json!("applied")), "{applied}");
        let message = applied["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("nothing of the change can be read"), "{message}");
        assert_eq!(lab.script().sent, ["apply", "apply"]);
    }
}

on_both! {
    async fn what_cannot_be_read_is_unknown_when_an_answer_was_lost_and_not_sent_again(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply"] });
        lab.script().then.insert("apply".to_owned(), unseen());
        lab.script().lost = vec!["apply".to_owned()];
        let change = lab.stage("wake up").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!((&seen["outcome"]["state"], &seen["status"]), (&json!("unknown"), &json!("pending")), "{seen}");
        let message = seen["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("whether the device did it cannot be read"), "{message}");
        assert_eq!(lab.script().sent, ["apply"]);
        // Reading again tells nothing, and says so; the way out is to discard it.
        let (status, verified) = lab.act(&change, "verify", &json!({})).await;
        assert_eq!(status, 200, "{verified}");
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "unknown", "{seen}");
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("then discard"), "{seen}");
        // It is not planned again, so that it cannot be sent twice.
        let (status, refused) = lab.act(&change, "plan", &json!({})).await;
        assert_eq!(status, 409, "{refused}");
        let (status, discarded) = lab.act(&change, "discard", &json!({})).await;
        assert_eq!((status, &discarded["status"]), (200, &json!("discarded")), "{discarded}");
        assert_eq!(lab.script().sent, ["apply"]);
    }
}

on_both! {
    async fn what_cannot_be_read_has_failed_when_the_device_promises_that_nothing_changed(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply"] });
        lab.script().then.insert("apply".to_owned(), unseen());
        lab.script().said.insert("apply".to_owned(), json!({ "fault": { "message": "no such host", "effect": "none" } }));
        let change = lab.stage("wake up").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!((&seen["outcome"]["state"], &seen["status"]), (&json!("failed"), &json!("pending")), "{seen}");
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("no such host"), "{seen}");
    }
}

on_both! {
    async fn a_job_that_failed_and_leaves_nothing_to_read_is_unknown(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply"] });
        lab.script().then.insert("apply".to_owned(), unseen());
        lab.script().said.insert("apply".to_owned(), json!({ "task": true }));
        lab.script().task = vec![json!({ "failed": { "message": "exited with code 1", "effect": "certain" } })];
        let change = lab.stage("wake up").await;
        lab.act(&change, "apply", &json!({ "force": true })).await;
        let seen = lab.get(&change).await;
        assert_eq!(seen["outcome"]["state"], "unknown", "{seen}");
        assert!(seen["outcome"]["message"].as_str().unwrap().contains("exited with code 1"), "{seen}");
    }
}
