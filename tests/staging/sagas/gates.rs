//! What keeps a set from the devices, and who sees one.

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{Lab, World, path};
use crate::devices::member;
use crate::support::on_both;

on_both! {
    async fn a_read_only_platform_refuses_a_set(database: Database) {
        let world = World::start_with(database, 2, |options| options.with("ADAPTER_READ_ONLY", "true")).await;
        let set = world.set().await;
        let refused = world.apply(&set).await.expect_status(403);
        assert!(refused.body["detail"].as_str().unwrap().contains("ADAPTER_READ_ONLY"), "{}", refused.text);
        assert_eq!(world.get(&set).await["outcome"]["state"], "none");
        assert!(world.sent(0).is_empty() && world.sent(1).is_empty());
    }
}

on_both! {
    async fn force_must_be_there_for_a_set(database: Database) {
        let world = World::start(database, 2).await;
        let set = world.set().await;
        world.act(&set, "apply", &json!({})).await.expect_status(422);
        let refused = world.act(&set, "apply", &json!({ "force": false })).await.expect_status(400);
        assert_eq!(refused.error_type(), "force_required");
    }
}

on_both! {
    async fn who_staged_any_member_may_not_apply_where_a_second_person_is_required(database: Database) {
        let world = World::start(database, 2).await;
        let me = world.api.get("/auth/me").await.expect_status(200).body;
        let org = me["organization"]["id"].as_str().or(me["organization_id"].as_str()).unwrap().to_owned();
        let settings = json!({ "settings": { "require_second_person": true } });
        world.api.patch(&format!("/organizations/{org}"), &settings).await.expect_status(200);
        let set = world.set().await;
        let refused = world.apply(&set).await.expect_status(403);
        assert_eq!(refused.error_type(), "second_person_required");
        let second = member(&world.server, "bo", Role::OrgAdmin, &[]).await;
        second.post(&path(&set, "apply"), &json!({ "force": true })).await.expect_status(200);
    }
}

/// Moves the second controller to a site of its own, and returns both sites.
async fn two_sites(world: &World) -> (String, String) {
    let head = world.api.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
    let branch =
        world.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body["id"].clone();
    let controller = format!("/controllers/{}", world.controllers[1]);
    world.api.patch(&controller, &json!({ "site_id": branch })).await.expect_status(200);
    let text = |id: Value| id.as_str().unwrap().to_owned();
    (text(head), text(branch))
}

on_both! {
    async fn a_set_is_seen_by_who_sees_every_member(database: Database) {
        let world = World::start(database, 2).await;
        let (head, branch) = two_sites(&world).await;
        let changes = world.stage_each().await;
        let limited = member(&world.server, "bo", Role::SiteAdmin, &[(&head, SiteLevel::Write)]).await;
        let ids = json!({ "change_ids": [changes[0]["id"], changes[1]["id"]] });
        limited.post("/gateway-vpn/changes/sets", &ids).await.expect_status(404);
        let set = world.set_of(&[&changes[0], &changes[1]]).await;
        limited.get(&path(&set, "")).await.expect_status(404);
        limited.post(&path(&set, "apply"), &json!({ "force": true })).await.expect_status(404);
        let both = [(head.as_str(), SiteLevel::Write), (branch.as_str(), SiteLevel::Read)];
        let reader = member(&world.server, "cy", Role::SiteAdmin, &both).await;
        reader.get(&path(&set, "")).await.expect_status(200);
        for verb in ["plan", "apply", "confirm", "revert", "verify", "discard"] {
            let body = if verb == "apply" { json!({ "force": true }) } else { json!({}) };
            let refused = reader.post(&path(&set, verb), &body).await.expect_status(403);
            assert_eq!(refused.error_type(), "site_level", "{verb}: {}", refused.text);
        }
        let writer = [(head.as_str(), SiteLevel::Write), (branch.as_str(), SiteLevel::Write)];
        let writer = member(&world.server, "di", Role::SiteAdmin, &writer).await;
        writer.post(&path(&set, "apply"), &json!({ "force": true })).await.expect_status(200);
    }
}

on_both! {
    async fn a_set_keeps_its_controllers_from_the_first_part_to_the_last(database: Database) {
        let world = World::start(database, 3).await;
        let single = world.stage(2, "alone").await;
        let (set, rival) = (world.set().await, world.set().await);
        world.devices[0].script().slow = vec!["apply-0".to_owned()];
        let applying = world.apply(&set);
        let meanwhile = async {
            crate::support::until("the first part is being applied", async || !world.sent(0).is_empty()).await;
            // Nothing was begun at the third controller, and it is kept nevertheless.
            let refused = world.api.post(&Lab::path(&single, "apply"), &json!({ "force": true })).await.expect_status(409);
            assert_eq!(refused.error_type(), "controller_busy", "{}", refused.text);
            let refused = world.apply(&rival).await.expect_status(409);
            assert_eq!(refused.error_type(), "controller_busy", "{}", refused.text);
            let again = world.apply(&set).await.expect_status(409);
            assert_eq!(again.error_type(), "under_way", "{}", again.text);
            let gone = world.api.delete(&format!("/controllers/{}", world.controllers[2])).await;
            assert_eq!(gone.status, 409, "{}", gone.text);
        };
        let (applied, ()) = tokio::join!(applying, meanwhile);
        assert_eq!(applied.status, 200, "{}", applied.text);
        assert_eq!(world.sent(2), ["apply", "confirm"]);
        world.devices[2].script().compare = crate::staging::scripted::before();
        world.api.post(&Lab::path(&single, "apply"), &json!({ "force": true })).await.expect_status(200);
    }
}

on_both! {
    async fn of_two_sets_at_once_one_wins_and_neither_waits_for_the_other(database: Database) {
        let world = World::start(database, 3).await;
        for _ in 0..3 {
            let changes = [world.stage_each().await, world.stage_each().await];
            let one = world.set_of(&changes[0].iter().collect::<Vec<_>>()).await;
            let two = world.set_of(&changes[1].iter().rev().collect::<Vec<_>>()).await;
            let (first, second) = tokio::join!(world.apply(&one), world.apply(&two));
            let mut statuses = [first.status, second.status];
            statuses.sort_unstable();
            let (won, lost) = if first.status == 200 { (&one, &two) } else { (&two, &one) };
            assert_eq!(world.get(won).await["outcome"]["state"], "committed", "{}", first.text);
            if statuses == [200, 409] {
                world.act(lost, "discard", &json!({})).await.expect_status(200);
            } else {
                // One had ended before the other began.
                assert_eq!(statuses, [200, 200], "{} {}", first.text, second.text);
            }
            for device in &world.devices {
                device.script().compare = crate::staging::scripted::before();
            }
        }
    }
}

on_both! {
    async fn the_changes_of_a_set_at_one_controller_are_of_one_of_its_sites(database: Database) {
        let world = World::start(database, 2).await;
        let changes = world.stage_each().await;
        for (ids, status) in [
            (json!([changes[0]["id"], changes[0]["id"]]), 422),
            (json!([changes[0]["id"]]), 422),
            (json!([changes[0]["id"], world.controllers[1]]), 404),
        ] {
            let body = json!({ "change_ids": ids });
            world.api.post("/gateway-vpn/changes/sets", &body).await.expect_status(status);
        }
    }
}

on_both! {
    async fn each_step_of_a_set_is_an_event_at_each_of_its_sites(database: Database) {
        let world = World::start(database, 2).await;
        let (head, branch) = two_sites(&world).await;
        let set = world.set().await;
        world.apply(&set).await.expect_status(200);
        let events = world.api.get("/events?per_page=200").await.expect_status(200).body;
        let of = |name: &str| -> Vec<&Value> {
            let events = events["items"].as_array().unwrap().iter();
            events.filter(|event| event["event_type"] == format!("controller.change_set.{name}")).collect()
        };
        for (name, state) in [("staged", "none"), ("apply_started", "applying"), ("committed", "committed")] {
            let found = of(name);
            let mut sites: Vec<&str> = found.iter().map(|event| event["payload"]["site_id"].as_str().unwrap()).collect();
            sites.sort_unstable();
            let mut expected = [head.as_str(), branch.as_str()];
            expected.sort_unstable();
            assert_eq!(sites, expected, "{name}: {events}");
            assert!(found.iter().all(|event| event["payload"]["state"] == state && event["payload"]["set_id"] == set["id"]), "{found:?}");
        }
        assert!(of("compensating").is_empty());
    }
}
