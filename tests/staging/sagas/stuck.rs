//! A set that is neither in effect everywhere nor nowhere says what is where, and what a person can do.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{Lab, World, change, standings};
use crate::staging::scripted::{after, before};
use crate::support::{Database, on_both, until};

/// A set whose last two parts cannot be taken back, and of these the last one fails.
async fn stuck(database: Database) -> (World, Vec<Value>, Value) {
    let world = World::start(database, 3).await;
    for at in [1, 2] {
        world.devices[at].script().plan = json!({ "holds": false, "stages": ["apply"] });
    }
    let changes = world.stage_each().await;
    let set = world.set_of(&changes.iter().collect::<Vec<_>>()).await;
    world.refuse(2);
    let refused = world.apply(&set).await.expect_status(502);
    assert!(refused.text.contains("stuck"), "{}", refused.text);
    let seen = world.get(&set).await;
    assert_eq!((&seen["status"], &seen["outcome"]["state"]), (&json!("pending"), &json!("stuck")), "{seen}");
    assert_eq!(standings(&seen), ["unchanged", "in_effect", "unchanged"]);
    let message = seen["outcome"]["message"].as_str().unwrap();
    assert!(
        message.contains("part 2 of 3): in effect") && message.contains("part 3 of 3): as before"),
        "{message}"
    );
    assert_eq!(seen["ways_out"], json!(["plan", "apply", "revert", "discard"]), "{seen}");
    (world, changes, set)
}

on_both! {
    async fn a_stuck_set_is_applied_to_its_end(database: Database) {
        let (world, _, set) = stuck(database).await;
        {
            let mut script = world.devices[2].script();
            script.said.clear();
            script.then.insert("apply".to_owned(), after());
        }
        let planned = world.act(&set, "plan", &json!({})).await.expect_status(200).body;
        assert_eq!(planned["outcome"]["state"], "stuck", "planning changes no device: {planned}");
        let done = world.apply(&planned).await.expect_status(200).body;
        assert_eq!((&done["outcome"]["state"], &done["status"]), (&json!("committed"), &json!("applied")), "{done}");
        assert_eq!(world.sent(1), ["apply"], "what was in effect is not sent again");
    }
}

on_both! {
    async fn a_stuck_set_is_given_up_with_a_reason(database: Database) {
        let (world, changes, set) = stuck(database).await;
        let missing = world.act(&set, "discard", &json!({})).await.expect_status(422);
        assert!(missing.text.contains("reason"), "{}", missing.text);
        world.act(&set, "discard?keep_changes=true", &json!({})).await.expect_status(409);
        let gone = world.act(&set, "discard?reason=replaced%20by%20hand", &json!({})).await.expect_status(200).body;
        assert_eq!((&gone["status"], &gone["reason"]), (&json!("discarded"), &json!("replaced by hand")), "{gone}");
        // What is in effect is a change of its own from now on.
        let kept = change(&world, &changes[1]).await;
        assert_eq!((&kept["status"], &kept["change_set_id"]), (&json!("applied"), &Value::Null), "{kept}");
        assert_eq!(change(&world, &changes[0]).await["status"], "discarded");
    }
}

on_both! {
    async fn a_part_in_doubt_is_read_before_anything_else(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        // The second one takes half of it, and cannot bring the state before back.
        let half = json!({ "standing": { "half": true }, "items": [], "foreign": [] });
        for stage in ["apply", "undo", "restore"] {
            world.devices[1].script().then.insert(stage.to_owned(), half.clone());
        }
        world.apply(&set).await.expect_status(502);
        let seen = world.get(&set).await;
        assert_eq!((&seen["outcome"]["state"], standings(&seen)), (&json!("stuck"), vec!["unchanged", "in_doubt"]), "{seen}");
        assert_eq!(seen["ways_out"], json!(["verify", "revert", "discard"]), "{seen}");
        let refused = world.apply(&seen).await.expect_status(409);
        assert_eq!(refused.error_type(), "outcome_unknown", "{}", refused.text);
        // Another plan would forget what was sent.
        let refused = world.act(&set, "plan", &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "outcome_unknown", "{}", refused.text);
        // What is still in doubt is told as it is now.
        let doubtful = world.act(&set, "verify", &json!({})).await.expect_status(200).body;
        assert_eq!(doubtful["outcome"]["state"], "stuck", "{doubtful}");
        let told = doubtful["outcome"]["message"].as_str().unwrap();
        assert!(told.starts_with("controller '") && told.matches("part 1 of 2").count() == 1, "{told}");
        // A person mends the device.
        world.devices[1].script().compare = before();
        let settled = world.act(&set, "verify", &json!({})).await.expect_status(200).body;
        assert_eq!(settled["outcome"]["state"], "compensated", "{settled}");
    }
}

on_both! {
    async fn a_person_has_a_stuck_set_taken_back_once_more(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        let half = json!({ "standing": { "half": true }, "items": [], "foreign": [] });
        for stage in ["apply", "undo", "restore"] {
            world.devices[1].script().then.insert(stage.to_owned(), half.clone());
        }
        world.apply(&set).await.expect_status(502);
        for stage in ["undo", "restore"] {
            world.devices[1].script().then.insert(stage.to_owned(), before());
        }
        let back = world.act(&set, "revert", &json!({})).await.expect_status(200).body;
        assert_eq!((&back["outcome"]["state"], standings(&back)), (&json!("compensated"), vec!["unchanged", "unchanged"]), "{back}");
        assert!(world.is_before(1));
    }
}

on_both! {
    async fn a_device_that_gives_no_answer_keeps_no_other_one_waiting(database: Database) {
        let world = World::start(database, 3).await;
        let set = world.set().await;
        world.refuse(2);
        let busy = json!({ "fault": { "message": "somebody else applies", "kind": "busy" } });
        world.devices[1].script().ready.insert("restore".to_owned(), busy);
        let applying = world.apply(&set);
        let mending = async {
            until("the second part is being taken back", async || {
                let seen = world.get(&set).await;
                seen["outcome"]["step"] == "compensating" && standings(&seen)[1] == "running"
            })
            .await;
            world.server.running().app.clock.advance(TimeDelta::seconds(40));
            until("the first part is back", async || {
                let seen = world.get(&set).await;
                seen["outcome"]["state"] == "stuck" && standings(&seen) == ["unchanged", "silent", "unchanged"]
            })
            .await;
            let seen = world.get(&set).await;
            assert_eq!(seen["outcome"]["step"], "compensating", "the work goes on: {seen}");
            assert_eq!(seen["ways_out"], json!(["discard"]), "{seen}");
            // The first controller is free, the second one is not.
            let (free, kept) = (world.stage(0, "free").await, world.stage(1, "kept").await);
            world.api.post(&Lab::path(&free, "apply"), &json!({ "force": true })).await.expect_status(200);
            let refused = world.api.post(&Lab::path(&kept, "apply"), &json!({ "force": true })).await.expect_status(409);
            assert_eq!(refused.error_type(), "controller_busy", "{}", refused.text);
            world.devices[1].script().ready.clear();
        };
        let (answer, ()) = tokio::join!(applying, mending);
        assert_eq!(answer.status, 502, "{}", answer.text);
        world.comes_to(&set, "compensated").await;
        assert!(world.is_before(1));
    }
}
