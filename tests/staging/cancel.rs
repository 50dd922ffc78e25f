//! A job that runs at the device is ended when a person asks for it, by a call that was reviewed with the others.

use std::time::Duration;

use serde_json::{Value, json};

use super::Lab;
use super::scripted::{Device, Scripted, after, before, stage};
use crate::support::{Api, Process, Socket, on_both};

/// One call that starts a job of the device, and one that ends it by the id in the answer.
fn plan() -> Value {
    json!({
        "holds": false, "stages": ["apply", "abort"],
        "holes": [{ "name": "job", "answer": "apply-0", "pointer": "/job" }],
        "named": { "abort-0": "end {{hole.job}}" }, "only_after": { "abort-0": "apply-0" },
    })
}

/// The job of the apply runs until it is ended, and leaves nothing then.
fn run_a_job(device: &Device) {
    let mut script = device.script();
    script.plan = plan();
    script.answers.insert("apply-0".to_owned(), json!({ "job": "job-17" }));
    script.said.insert("apply".to_owned(), json!({ "task": true }));
    script.then.insert("apply".to_owned(), json!({ "standing": { "part": "copied so far" } }));
    script.task = vec![json!({ "task": true })];
    script.task_aborted = Some(vec![json!({ "failed": { "message": "interrupted", "effect": "possible" } })]);
    script.task_then = Some(before());
}

/// Waits until the change is at a step.
async fn until_step(api: &Api, path: &str, step: &str) -> Value {
    for _ in 0..9000 {
        let seen = api.get(path).await.expect_status(200).body;
        if seen["outcome"]["step"] == step {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the change does not come to the step '{step}'");
}

/// Applies, and does something as soon as the job runs. Returns how the change ended, and what was answered.
async fn applied_and<T>(lab: &Scripted, change: &Value, act: impl AsyncFnOnce() -> T) -> (Value, T) {
    let force = json!({ "force": true });
    let applying = lab.act(change, "apply", &force);
    let acting = async {
        until_step(&lab.api, &Lab::path(change, ""), "polling").await;
        act().await
    };
    let (_, answered) = tokio::join!(applying, acting);
    (lab.get(change).await, answered)
}

on_both! {
    async fn a_job_is_ended_and_the_device_tells_what_is_left(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        let mut socket = Socket::subscribe(&lab.api, &["controller.change.*"]).await;
        let change = lab.stage("cancelled").await;
        let stages: Vec<&Value> = change["plan"]["native"].as_array().unwrap().iter().map(|call| &call["stage"]).collect();
        assert_eq!(stages, ["apply", "abort"], "it is reviewed with the others");
        let (ended, (status, asked)) = applied_and(&lab, &change, async || lab.act(&change, "cancel", &Value::Null).await).await;
        assert_eq!((status, &asked["outcome"]["state"]), (202, &json!("applying")), "{asked}");
        assert_eq!((&ended["outcome"]["state"], &ended["status"]), (&json!("failed"), &json!("pending")), "{ended}");
        let message = ended["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("cancelled") && message.contains("interrupted"), "{message}");
        assert_eq!(lab.script().sent, ["apply", "abort"]);
        assert_eq!(lab.script().named, ["end job-17"]);
        let cancellations = &ended["attempts"][0]["cancellations"];
        assert_eq!((cancellations.as_array().unwrap().len(), &cancellations[0]["call"]), (1, &json!("apply-0")), "{ended}");
        let event = socket.event("controller.change.cancel_requested").await;
        assert_eq!(event["payload"]["change_id"], change["id"]);
        let audit = lab.api.get("/audit?action=change.cancel_requested").await.expect_status(200).body;
        assert_eq!((&audit["total"], &audit["items"][0]["target_id"]), (&json!(1), &change["id"]), "{audit}");
        let (status, refused) = lab.act(&change, "cancel", &Value::Null).await;
        assert_eq!((status, &refused["error"]["type"]), (409, &json!("nothing_runs")), "{refused}");
    }
}

on_both! {
    async fn of_two_that_cancel_at_once_one_does(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().slow = vec!["abort-0".to_owned()];
        let change = lab.stage("cancelled twice").await;
        let (ended, answers) = applied_and(&lab, &change, async || {
            let cancel = || lab.act(&change, "cancel", &Value::Null);
            let (one, two) = tokio::join!(cancel(), cancel());
            [one, two, cancel().await]
        })
        .await;
        let mut statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 409, 409], "{answers:?}");
        for (_, refused) in answers.iter().filter(|(status, _)| *status == 409) {
            assert_eq!(refused["error"]["type"], "already_cancelled", "{refused}");
        }
        assert_eq!(ended["outcome"]["state"], "failed", "{ended}");
        assert_eq!(lab.script().arrived("abort"), 1);
    }
}

on_both! {
    async fn a_job_that_is_done_before_it_is_cancelled_counts(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().task_aborted = Some(vec![json!({})]);
        lab.script().task_then = Some(after());
        let change = lab.stage("too late").await;
        let (ended, (status, _)) = applied_and(&lab, &change, async || lab.act(&change, "cancel", &Value::Null).await).await;
        assert_eq!((status, &ended["outcome"]["state"]), (202, &json!("applied")), "{ended}");
        assert!(ended["outcome"]["detail"]["warnings"].to_string().contains("before it could be cancelled"), "{ended}");
    }
}

on_both! {
    async fn nothing_follows_a_cancelled_job(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().plan["calls"] = json!({ "apply": 2 });
        lab.script().task_aborted = Some(vec![json!({})]);
        lab.script().task_then = None;
        let change = lab.stage("in parts").await;
        let (ended, _) = applied_and(&lab, &change, async || lab.act(&change, "cancel", &Value::Null).await).await;
        assert_eq!(ended["outcome"]["state"], "partial", "{ended}");
        assert!(ended["outcome"]["message"].as_str().unwrap().contains("cancelled"), "{ended}");
        assert_eq!(lab.script().sent, ["apply", "abort"]);
    }
}

on_both! {
    async fn only_the_job_that_runs_is_ended(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().plan["calls"] = json!({ "apply": 2, "abort": 2 });
        lab.script().plan["only_after"]["abort-1"] = json!("apply-1");
        lab.script().said.insert("apply-1".to_owned(), json!({ "task": true }));
        lab.script().said.insert("apply".to_owned(), json!({}));
        let change = lab.stage("the second").await;
        let (ended, _) = applied_and(&lab, &change, async || lab.act(&change, "cancel", &Value::Null).await).await;
        assert_eq!(ended["outcome"]["state"], "failed", "{ended}");
        let calls = [("apply", 0), ("apply", 1), ("abort", 1)].map(|(stage, n)| (stage.to_owned(), n));
        assert_eq!(lab.script().calls, calls);
    }
}

on_both! {
    async fn a_job_of_the_way_back_is_ended_too(database: Database) {
        let lab = Scripted::start(database).await;
        lab.script().plan = json!({ "holds": false, "stages": ["apply", "restore", "abort"], "only_after": { "abort-0": "restore-0" } });
        lab.script().then.insert("restore".to_owned(), json!({ "standing": { "part": "half of it" } }));
        lab.script().said.insert("restore".to_owned(), json!({ "task": true }));
        lab.script().task = vec![json!({ "task": true })];
        lab.script().task_aborted = Some(vec![json!({ "failed": { "message": "interrupted", "effect": "certain" } })]);
        let change = lab.stage("slow way back").await;
        lab.apply_held(&change).await;
        let reverting = lab.act(&change, "revert", &Value::Null);
        let cancelling = async {
            until_step(&lab.api, &Lab::path(&change, ""), "polling").await;
            lab.act(&change, "cancel", &Value::Null).await
        };
        let (_, (status, _)) = tokio::join!(reverting, cancelling);
        let ended = lab.get(&change).await;
        assert_eq!((status, &ended["outcome"]["state"]), (202, &json!("partial")), "{ended}");
        assert!(ended["outcome"]["message"].as_str().unwrap().contains("cancelled: interrupted"), "{ended}");
        assert_eq!(lab.script().sent, ["apply", "restore", "abort"]);
    }
}

on_both! {
    async fn a_request_to_cancel_without_an_answer_is_not_sent_again(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().lost = vec!["abort".to_owned()];
        let change = lab.stage("lost").await;
        let (ended, _) = applied_and(&lab, &change, async || lab.act(&change, "cancel", &Value::Null).await).await;
        assert_eq!(ended["outcome"]["state"], "failed", "the job tells that it was ended: {ended}");
        assert!(ended["outcome"]["detail"]["warnings"].to_string().contains("request to cancel"), "{ended}");
        assert_eq!(lab.script().arrived("abort"), 1);
    }
}

on_both! {
    async fn a_request_to_cancel_that_did_not_leave_may_be_repeated(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        // A call for another job stands before the one that is to be sent, and is left out.
        lab.script().plan["calls"] = json!({ "apply": 2, "abort": 2 });
        lab.script().plan["only_after"] = json!({ "abort-0": "apply-1", "abort-1": "apply-0" });
        lab.script().plan["named"] = json!({ "abort-1": "end {{hole.job}}" });
        lab.script().ready.insert("abort".to_owned(), json!({ "fault": { "message": "not now", "kind": "conflict" } }));
        let change = lab.stage("twice").await;
        let (ended, answers) = applied_and(&lab, &change, async || {
            let first = lab.act(&change, "cancel", &Value::Null).await;
            let seen = until_step(&lab.api, &Lab::path(&change, ""), "polling").await;
            lab.script().ready.clear();
            [first, (0, seen), lab.act(&change, "cancel", &Value::Null).await]
        })
        .await;
        let [first, (_, between), second] = answers;
        assert_eq!((first.0, second.0), (202, 202), "{first:?} {second:?}");
        let warnings = between["outcome"]["detail"]["warnings"].to_string();
        assert!(warnings.contains("was not sent and may be repeated: not now"), "{between}");
        assert_eq!(ended["outcome"]["state"], "failed", "{ended}");
        assert!(ended["outcome"]["message"].as_str().unwrap().contains("cancelled: interrupted"), "{ended}");
        assert_eq!(ended["attempts"][0]["cancellations"].as_array().unwrap().len(), 2, "{ended}");
        assert_eq!(lab.script().arrived("abort"), 1);
    }
}

on_both! {
    async fn a_job_that_was_never_told_to_end_was_not_cancelled(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().ready.insert("abort".to_owned(), json!({ "fault": { "message": "not now", "kind": "conflict" } }));
        let change = lab.stage("on its own").await;
        let (ended, (status, _)) = applied_and(&lab, &change, async || {
            let answer = lab.act(&change, "cancel", &Value::Null).await;
            until_step(&lab.api, &Lab::path(&change, ""), "polling").await;
            lab.script().task = vec![json!({ "failed": { "message": "no space", "effect": "possible" } })];
            answer
        })
        .await;
        assert_eq!((status, &ended["outcome"]["state"]), (202, &json!("failed")), "{ended}");
        let message = ended["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("no space") && !message.contains("cancelled"), "{message}");
        assert_eq!(lab.script().arrived("abort"), 0);
    }
}

on_both! {
    async fn a_request_to_cancel_that_the_device_refused_is_not_sent_again(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        lab.script().task_aborted = None;
        lab.script().said.insert("abort".to_owned(), json!({ "failed": { "message": "it cannot be ended" } }));
        let change = lab.stage("refused").await;
        let (_, (status, refused)) = applied_and(&lab, &change, async || {
            lab.act(&change, "cancel", &Value::Null).await;
            until_step(&lab.api, &Lab::path(&change, ""), "polling").await;
            let again = lab.act(&change, "cancel", &Value::Null).await;
            lab.script().task = vec![json!({})];
            again
        })
        .await;
        assert_eq!((status, &refused["error"]["type"]), (409, &json!("already_cancelled")), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("did not take the request"), "{refused}");
        assert_eq!(lab.script().arrived("abort"), 1);
    }
}

on_both! {
    async fn what_cannot_be_cancelled_says_why(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        let change = lab.stage("nothing runs yet").await;
        let (status, refused) = lab.act(&change, "cancel", &Value::Null).await;
        assert_eq!((status, &refused["error"]["type"]), (409, &json!("nothing_runs")), "{refused}");
        lab.act(&change, "discard", &Value::Null).await;
        for (is_unknown, why) in [(false, "has no call that ends the job"), (true, "'job' is not known")] {
            run_a_job(lab.device());
            if is_unknown {
                lab.script().answers.clear();
            } else {
                lab.script().plan = json!({ "holds": false, "stages": ["apply"] });
            }
            let change = lab.stage(why).await;
            let (_, (status, refused)) = applied_and(&lab, &change, async || {
                let answer = lab.act(&change, "cancel", &Value::Null).await;
                lab.script().task = vec![json!({})];
                answer
            })
            .await;
            assert_eq!((status, &refused["error"]["type"]), (409, &json!("not_cancellable")), "{refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{refused}");
        }
        assert_eq!(lab.script().arrived("abort"), 0);
    }
}

on_both! {
    async fn a_set_is_cancelled_as_one(database: Database) {
        let lab = Scripted::start(database).await;
        run_a_job(lab.device());
        let members = [lab.stage("one").await, lab.stage("two").await];
        let ids = json!({ "change_ids": [members[0]["id"], members[1]["id"]] });
        let set = lab.api.post("/gateway-vpn/changes/sets", &ids).await.expect_status(201).body;
        let path = format!("/gateway-vpn/changes/sets/{}", set["id"].as_str().unwrap());
        let (apply, cancel) = (format!("{path}/apply"), format!("{path}/cancel"));
        let force = json!({ "force": true });
        let applying = lab.api.post(&apply, &force);
        let cancelling = async {
            until_step(&lab.api, &path, "polling").await;
            let (status, alone) = lab.act(&members[0], "cancel", &Value::Null).await;
            assert_eq!((status, &alone["error"]["type"]), (409, &json!("in_set")), "{alone}");
            lab.api.post(&cancel, &Value::Null).await
        };
        let (_, answer) = tokio::join!(applying, cancelling);
        assert_eq!(answer.status, 202, "{}", answer.text);
        let ended = lab.api.get(&path).await.expect_status(200).body;
        for outcome in [&ended["outcome"], &ended["changes"][0]["outcome"], &ended["changes"][1]["outcome"]] {
            assert_eq!(outcome["state"], "failed", "{ended}");
        }
        assert_eq!(lab.script().sent, ["apply", "abort"]);
    }
}

on_both! {
    async fn a_kill_at_any_moment_ends_the_job_once_or_not_at_all(database: Database) {
        let device = Device::start().await;
        let folder = tempfile::tempdir().unwrap();
        let options = device.options().with("SYNC_INTERVAL_SECS", "3600");
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let controller = device.register(&process.api).await;
        for (round, pause_ms) in [0, 4, 12, 30, 80, 400].into_iter().enumerate() {
            run_a_job(&device);
            {
                let mut script = device.script();
                script.sent.clear();
                script.compare = before();
                script.takes = Duration::from_millis(40);
            }
            let change = stage(&process.api, &controller, &format!("round {round}")).await;
            let (api, path) = (process.api.clone(), Lab::path(&change, ""));
            let applying = async {
                let body = json!({ "force": true }).to_string().into_bytes();
                let _ = api.try_send("POST", &Lab::path(&change, "apply"), Some(body)).await;
            };
            let dying = async {
                until_step(&process.api, &path, "polling").await;
                let cancel = Lab::path(&change, "cancel");
                let cancelling = api.try_send("POST", &cancel, None);
                let killed = tokio::time::timeout(Duration::from_millis(pause_ms), cancelling).await;
                if killed.is_ok() {
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
                process.kill();
            };
            tokio::join!(applying, dying);
            process = Process::start(folder.path(), &database, &options).await.with_token(&token);
            let seen = process.api.get(&path).await.expect_status(200).body;
            let is_asked = seen["attempts"][0]["cancellations"].is_array();
            tokio::time::sleep(Duration::from_millis(300)).await;
            if !is_asked || device.script().arrived("abort") == 0 {
                // The request was not recorded, or it is not known whether its call left: the job ends by itself.
                device.script().task = vec![json!({ "failed": { "message": "ended by itself" } })];
            }
            let ended = until_step(&process.api, &path, "idle").await;
            assert_eq!(ended["outcome"]["state"], "failed", "round {round}: {ended}");
            let arrived = device.script().arrived("abort");
            assert!(arrived <= 1 && (is_asked || arrived == 0), "round {round}: {arrived} calls, {ended}");
            process.api.post(&Lab::path(&change, "discard"), &Value::Null).await.expect_status(200);
        }
    }
}
