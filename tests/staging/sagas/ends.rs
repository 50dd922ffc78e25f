//! A set is committed or compensated as a whole.

use serde_json::{Value, json};

use super::{Lab, World, change, path, standings};
use crate::support::on_both;

on_both! {
    async fn a_set_over_controllers_is_reviewed_as_one_and_in_effect_everywhere(database: Database) {
        let world = World::start(database, 3).await;
        let mut changes = world.stage_each().await;
        changes.push(world.stage(0, "second at 0").await);
        let set = world.set_of(&changes.iter().rev().collect::<Vec<_>>()).await;
        let parts = set["parts"].as_array().unwrap();
        let controllers: Vec<&Value> = parts.iter().map(|part| &part["controller_id"]).collect();
        assert_eq!(controllers, world.controllers.iter().collect::<Vec<_>>(), "{set}");
        assert_eq!(set["plan"]["order"], json!(world.controllers), "{set}");
        // The review shows the calls of all controllers; changes of one controller keep their order.
        assert!(parts.iter().all(|part| !part["plan"]["native"].as_array().unwrap().is_empty()), "{set}");
        let of_first: Vec<&Value> = parts[0]["changes"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(of_first, [&changes[3]["id"], &changes[0]["id"]], "{set}");
        assert_eq!(standings(&set), ["waiting", "waiting", "waiting"]);

        // A member goes with its set only.
        for verb in ["apply", "plan", "discard", "revert"] {
            let body = if verb == "apply" { json!({ "force": true }) } else { json!({}) };
            for member in &changes {
                let alone = world.api.post(&Lab::path(member, verb), &body).await.expect_status(409);
                assert_eq!(alone.error_type(), "in_set", "{verb}: {}", alone.text);
                assert!(alone.text.contains(set["id"].as_str().unwrap()), "{}", alone.text);
            }
        }
        let again = json!({ "change_ids": [changes[1]["id"], changes[2]["id"]] });
        world.api.post("/gateway-vpn/changes/sets", &again).await.expect_status(409);
        let listed = format!("/gateway-vpn/changes?set={}", set["id"].as_str().unwrap());
        assert_eq!(world.api.get(&listed).await.expect_status(200).body["total"], 4);

        let stale = json!({ "force": true, "plan_hash": parts[0]["plan"]["hash"] });
        let refused = world.act(&set, "apply", &stale).await.expect_status(409);
        assert_eq!(refused.error_type(), "plan_changed");
        let applied = world.apply(&set).await.expect_status(200).body;
        assert_eq!((&applied["status"], &applied["outcome"]["state"]), (&json!("applied"), &json!("committed")), "{applied}");
        assert_eq!(standings(&applied), ["in_effect", "in_effect", "in_effect"]);
        assert_eq!(applied["attempts"][0]["state"], "committed", "{applied}");
        for at in 0..3 {
            assert_eq!(world.sent(at), ["apply", "confirm"], "each stage once");
        }
        for member in &changes {
            let seen = change(&world, member).await;
            assert_eq!((&seen["status"], &seen["change_set_id"]), (&json!("applied"), &set["id"]), "{seen}");
        }
        let again = world.apply(&set).await.expect_status(409);
        assert_eq!(again.error_type(), "not_pending");
        let valid = world.api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(valid["valid"], true, "{valid}");
    }
}

/// The changes whose way back was begun, in that order.
async fn ways_back(world: &World) -> Vec<Value> {
    let log = world.api.get("/audit?action=change.take_back_started").await.expect_status(200).body;
    let mut entries: Vec<&Value> = log["items"].as_array().unwrap().iter().collect();
    entries.sort_by_key(|entry| entry["seq"].as_i64());
    entries.into_iter().map(|entry| entry["target_id"].clone()).collect()
}

on_both! {
    async fn where_one_controller_fails_the_others_are_taken_back_in_the_reverse_order(database: Database) {
        let world = World::start(database, 3).await;
        let changes = world.stage_each().await;
        let set = world.set_of(&changes.iter().collect::<Vec<_>>()).await;
        world.refuse(2);
        let refused = world.apply(&set).await.expect_status(502);
        assert!(refused.text.contains("compensated") && refused.text.contains("the name is taken"), "{}", refused.text);
        let seen = world.get(&set).await;
        assert_eq!((&seen["status"], &seen["outcome"]["state"]), (&json!("pending"), &json!("compensated")), "{seen}");
        assert_eq!(standings(&seen), ["unchanged", "unchanged", "unchanged"]);
        let message = seen["outcome"]["message"].as_str().unwrap();
        assert!(message.contains("part 3 of 3") && message.contains("the name is taken"), "{message}");
        // What was permanent goes back by the reviewed calls of its own plan.
        for at in 0..2 {
            assert_eq!(world.sent(at), ["apply", "confirm", "restore"]);
            assert!(world.is_before(at));
        }
        assert_eq!(ways_back(&world).await, [changes[1]["id"].clone(), changes[0]["id"].clone()]);
        // Nothing is kept: a change of its own can be applied there, and the set again.
        let single = world.stage(0, "alone").await;
        world.api.post(&Lab::path(&single, "apply"), &json!({ "force": true })).await.expect_status(200);
        {
            let mut script = world.devices[2].script();
            script.said.clear();
            script.then.insert("apply".to_owned(), crate::staging::scripted::after());
        }
        let planned = world.act(&set, "plan", &json!({})).await.expect_status(200).body;
        assert_eq!(planned["outcome"]["state"], "none", "{planned}");
        world.devices[0].script().compare = crate::staging::scripted::before();
        let applied = world.apply(&planned).await.expect_status(200).body;
        assert_eq!((&applied["outcome"]["state"], applied["attempts"].as_array().unwrap().len()), (&json!("committed"), 2), "{applied}");
    }
}

on_both! {
    async fn nothing_is_begun_behind_a_controller_that_fails(database: Database) {
        let world = World::start(database, 3).await;
        let set = world.set().await;
        world.refuse(0);
        world.apply(&set).await.expect_status(502);
        assert_eq!(world.get(&set).await["outcome"]["state"], "compensated");
        assert!(world.sent(1).is_empty() && world.sent(2).is_empty(), "nothing was sent there");
    }
}

on_both! {
    async fn what_cannot_be_taken_back_comes_last(database: Database) {
        let world = World::start(database, 3).await;
        world.devices[0].script().plan = json!({ "holds": false, "stages": ["apply"] });
        let set = world.set().await;
        let order = [&world.controllers[1], &world.controllers[2], &world.controllers[0]];
        assert_eq!(set["plan"]["order"], json!(order), "{set}");
        assert_eq!((&set["plan"]["compensable"], &set["parts"][2]["compensable"]), (&json!(false), &json!(false)), "{set}");
        assert!(set["plan"]["warnings"].to_string().contains("cannot be taken back"), "{set}");
        // It fails: nothing remains.
        world.refuse(0);
        world.apply(&set).await.expect_status(502);
        assert_eq!(world.get(&set).await["outcome"]["state"], "compensated");
        assert!(world.is_before(1) && world.is_before(2));
    }
}

on_both! {
    async fn a_set_that_is_given_up_discards_its_changes_or_sets_them_free(database: Database) {
        let world = World::start(database, 2).await;
        let changes = [world.stage(0, "a").await, world.stage(0, "b").await, world.stage(1, "c").await];
        let set = world.set_of(&changes.iter().collect::<Vec<_>>()).await;
        let kept = world.act(&set, "discard?keep_changes=true", &json!({})).await.expect_status(200).body;
        assert_eq!(kept["status"], "discarded", "{kept}");
        for member in &changes {
            let free = change(&world, member).await;
            assert_eq!((&free["status"], &free["change_set_id"]), (&json!("pending"), &Value::Null), "{free}");
        }
        let set = world.set_of(&changes.iter().collect::<Vec<_>>()).await;
        world.act(&set, "discard", &json!({})).await.expect_status(200);
        for member in &changes {
            assert_eq!(change(&world, member).await["status"], "discarded");
        }
        assert!(world.get(&set).await["ways_out"].as_array().unwrap().is_empty());
    }
}

on_both! {
    async fn a_set_expires_as_a_whole(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        world.server.running().app.clock.advance(chrono::TimeDelta::hours(200));
        // The token of the test has expired, too.
        let api = world.server.log_in("ada").await;
        crate::support::until("the set expires", async || {
            let seen = api.get(&path(&set, "")).await.body;
            seen["outcome"]["state"] == "expired" && seen["status"] == "discarded"
        })
        .await;
    }
}
