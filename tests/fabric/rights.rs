//! Steps have the rights that their author has when they run.

use heddle_core::Role;
use heddle_store::users::{self, UserUpdate};
use serde_json::json;

use super::{World, broken, connect, device, emit, id_of, runs};
use crate::support::{Database, event_type, on_both};

on_both! {
    async fn a_connection_whose_author_is_no_administrator_any_more_breaks(database: Database) {
        let world = World::start(database).await;
        let (user, olga) = world.member("olga", Role::OrgAdmin).await;
        let connection = connect(&olga, json!({})).await;
        let watch = world.connect(json!({ "source_event": "automation.*" })).await;
        let path = format!("/fabric/connections/{}", id_of(&connection));
        world.emit(event_type("device.offline"), device("office")).await;
        assert_eq!(runs(&world.api, &path, 1).await[0]["success"], true);
        world.api.patch(&format!("/users/{user}"), &json!({ "role": "operator" })).await.expect_status(200);
        let broken = broken(&world.api, &path).await;
        assert_eq!(broken["state"], "broken", "{broken}");
        assert!(broken["state_reason"].as_str().unwrap().contains("olga"), "{broken}");
        let audit = world.api.get("/audit?action=connection.broken").await.expect_status(200).body;
        assert_eq!((&audit["total"], &audit["items"][0]["detail"]["run_id"]), (&json!(1), &json!(null)));
        let event = world.api.get("/events?event_type=automation.connection.broken").await.expect_status(200).body;
        assert_eq!((&event["total"], &event["items"][0]["payload"]["connection_id"]), (&json!(1), &connection["id"]));
        // The event starts Connections as any other.
        assert_eq!(world.runs(&watch, 1).await[0]["event_type"], "automation.connection.broken");
        // Broken, it does not fire.
        world.emit(event_type("device.offline"), device("office")).await;
        runs(&world.api, &path, 1).await;
        // No user can enable it as it is; the user who writes its steps becomes their author.
        let refused = world.api.patch(&path, &json!({ "state": "enabled" })).await.expect_status(409);
        assert_eq!(refused.error_type(), "author_unfit", "{}", refused.text);
        let steps = json!({ "state": "enabled", "steps": [{ "operation_id": "sites.list" }] });
        let mended = world.api.patch(&path, &steps).await.expect_status(200).body;
        assert_eq!((&mended["state"], &mended["state_reason"]), (&json!("enabled"), &json!(null)));
        world.emit(event_type("device.offline"), device("office")).await;
        assert_eq!(runs(&world.api, &path, 2).await[0]["success"], true);
    }
}

on_both! {
    async fn the_steps_of_a_disabled_or_removed_author_do_not_run(database: Database) {
        let world = World::start(database).await;
        for (name, body) in [("dora", Some(json!({ "is_active": false }))), ("rene", None)] {
            let (user, api) = world.member(name, Role::OrgAdmin).await;
            let connection = connect(&api, json!({})).await;
            let path = format!("/users/{user}");
            match body {
                Some(body) => world.api.patch(&path, &body).await.expect_status(200),
                None => world.api.delete(&path).await.expect_status(204),
            };
            world.emit(event_type("device.offline"), device("office")).await;
            // Whether the event or the loss is seen first: nothing is done, and the Connection is broken.
            let path = format!("/fabric/connections/{}", id_of(&connection));
            broken(&world.api, &path).await;
            let all = world.api.get(&format!("{path}/runs")).await.expect_status(200).body;
            assert!(all["items"].as_array().unwrap().iter().all(|run| run["success"] != true), "{all}");
        }
    }
}

on_both! {
    async fn a_connection_of_another_organization_is_not_seen_and_not_fired(database: Database) {
        let world = World::start(database).await;
        let other = world.api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let foreign = world.connect(json!({ "organization_id": other["id"] })).await;
        let (_, olga) = world.member("olga", Role::OrgAdmin).await;
        let path = format!("/fabric/connections/{}", id_of(&foreign));
        olga.get(&path).await.expect_status(404);
        olga.get(&format!("{path}/runs")).await.expect_status(404);
        olga.patch(&path, &json!({ "state": "paused" })).await.expect_status(404);
        olga.delete(&path).await.expect_status(404);
        olga.post(&format!("{path}/test"), &json!({})).await.expect_status(404);
        assert_eq!(olga.get("/fabric/connections").await.body["total"], 0);
        world.emit(event_type("device.offline"), device("office")).await;
        // What a super_admin wrote for another organization sees that one only.
        emit(world.app(), id_of(&other).parse().unwrap(), event_type("device.offline"), device("office")).await;
        let run = &world.runs(&foreign, 1).await[0];
        assert_eq!((&run["success"], &run["steps"][0]["output"]["total"]), (&json!(true), &json!(0)), "{run}");
        let id: heddle_core::OrgId = id_of(&other).parse().unwrap();
        assert_eq!(run["organization_id"], json!(id));
    }
}

#[tokio::test]
async fn a_role_that_is_lowered_behind_the_interface_counts_too() {
    let world = World::start(Database::sqlite()).await;
    let (user, olga) = world.member("olga", Role::OrgAdmin).await;
    let connection = connect(&olga, json!({})).await;
    let mut tx = world.app().db.write().await.unwrap();
    let update = UserUpdate { role: Some(Role::Viewer), ..UserUpdate::default() };
    let scope = heddle_store::Scope::everything();
    users::update(&mut tx, &scope, user.parse().unwrap(), &update, world.app().clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    world.emit(event_type("device.offline"), device("office")).await;
    let path = format!("/fabric/connections/{}", id_of(&connection));
    broken(&world.api, &path).await;
    let all = world.api.get(&format!("{path}/runs")).await.expect_status(200).body;
    assert!(all["items"].as_array().unwrap().iter().all(|run| run["success"] != true), "{all}");
}
