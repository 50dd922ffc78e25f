//! The confirm window of a set spans all of its controllers.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{Lab, World, standings};
use crate::support::on_both;

on_both! {
    async fn a_set_in_its_window_is_confirmed_as_one(database: Database) {
        let world = World::start(database, 3).await;
        let set = world.set().await;
        let held = world.hold(&set).await;
        assert_eq!(standings(&held), ["held", "held", "held"]);
        assert!(held["outcome"]["confirm_deadline"].is_string(), "{held}");
        assert_eq!(held["ways_out"], json!(["confirm", "extend", "revert"]));
        for at in 0..3 {
            assert_eq!(world.sent(at), ["apply"], "nothing is permanent yet");
        }
        let extended = world.act(&set, "extend", &json!({ "secs": 1 })).await.expect_status(409);
        assert_eq!(extended.error_type(), "not_extendable", "the devices hold it no longer");
        let done = world.act(&set, "confirm", &json!({})).await.expect_status(200).body;
        assert_eq!((&done["outcome"]["state"], &done["status"]), (&json!("committed"), &json!("applied")), "{done}");
        for at in 0..3 {
            assert_eq!(world.sent(at), ["apply", "confirm"]);
        }
        let late = world.act(&set, "confirm", &json!({})).await.expect_status(409);
        assert_eq!(late.error_type(), "not_awaiting_confirm");
    }
}

on_both! {
    async fn a_window_that_ends_takes_every_part_back(database: Database) {
        let world = World::start(database, 3).await;
        let set = world.set().await;
        world.hold(&set).await;
        world.server.running().app.clock.advance(TimeDelta::seconds(61));
        let seen = world.comes_to(&set, "compensated").await;
        assert_eq!(seen["outcome"]["message"], "not confirmed in time", "{seen}");
        for at in 0..3 {
            assert_eq!(world.sent(at), ["apply", "undo"]);
            assert!(world.is_before(at));
        }
    }
}

on_both! {
    async fn a_window_can_be_extended_as_far_as_the_devices_were_told(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        let body = json!({ "force": true, "confirm_within_secs": 60, "extendable_to_secs": 120 });
        let held = world.act(&set, "apply", &body).await.expect_status(200).body;
        let first = held["outcome"]["confirm_deadline"].clone();
        let extended = world.act(&set, "extend", &json!({ "secs": 50 })).await.expect_status(200).body;
        assert_ne!(extended["outcome"]["confirm_deadline"], first, "{extended}");
        world.act(&set, "extend", &json!({ "secs": 50 })).await.expect_status(409);
        world.server.running().app.clock.advance(TimeDelta::seconds(80));
        // Longer than a look at the windows takes.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        assert_eq!(world.get(&set).await["outcome"]["state"], "awaiting_confirm");
        world.act(&set, "confirm", &json!({})).await.expect_status(200);
    }
}

on_both! {
    async fn a_person_takes_a_held_set_back_at_once(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        world.hold(&set).await;
        let back = world.act(&set, "revert", &json!({})).await.expect_status(200).body;
        assert_eq!((&back["outcome"]["state"], &back["status"]), (&json!("compensated"), &json!("pending")), "{back}");
        assert_eq!(back["outcome"]["message"], "taken back by ada", "{back}");
        assert!(world.is_before(0) && world.is_before(1));
    }
}

on_both! {
    async fn a_device_that_lost_its_part_in_the_window_turns_the_set_around(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        world.hold(&set).await;
        // Its own timer was faster than the person.
        world.devices[1].script().compare = crate::staging::scripted::before();
        world.act(&set, "confirm", &json!({})).await.expect_status(502);
        let seen = world.comes_to(&set, "compensated").await;
        assert_eq!(standings(&seen), ["unchanged", "unchanged"]);
        // The first one was confirmed already, and goes back by what is permanent.
        assert_eq!(world.sent(0), ["apply", "confirm", "restore"]);
        assert!(world.is_before(0));
    }
}

on_both! {
    async fn a_window_needs_a_way_back_at_every_controller(database: Database) {
        let world = World::start(database, 2).await;
        world.devices[1].script().plan = json!({ "holds": false, "stages": ["apply"] });
        let set = world.set().await;
        let body = json!({ "force": true, "confirm_within_secs": 60 });
        let refused = world.act(&set, "apply", &body).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_restorable", "{}", refused.text);
        assert!(world.sent(0).is_empty(), "nothing was begun");
        // No controller is kept by a set that was refused.
        let single: Value = world.stage(0, "alone").await;
        world.api.post(&Lab::path(&single, "apply"), &json!({ "force": true })).await.expect_status(200);
    }
}
