//! Tiers, and what goes beyond them.

use serde_json::{Value, json};

use super::{World, new_user, refused, text};
use crate::support::{Answer, Database, Options, on_both};

async fn enforced(database: Database) -> World {
    let world = World::start_with(database, Options::default().with("ENFORCE_ORG_QUOTAS", "true")).await;
    world.root.patch(&organization(&world), &json!({ "tier": "free" })).await.expect_status(200);
    world
}

fn organization(world: &World) -> String {
    format!("/organizations/{}", world.org)
}

async fn used(world: &World, resource: &str) -> Value {
    let quotas = world.root.get(&format!("{}/quotas", organization(world))).await.expect_status(200).body;
    let item = quotas["items"].as_array().unwrap().iter().find(|item| item["resource"] == resource);
    item.expect("every resource is listed").clone()
}

/// Names the tier, the limit and the use.
#[track_caller]
fn exceeded(answer: Answer, limit: i64, resource: &str) {
    let answer = refused(answer, 409, "quota_exceeded");
    let expected = format!("tier 'free' allows {limit} {resource} and the organization has {limit}");
    assert!(answer.message().starts_with(&expected), "{}", answer.message());
}

on_both! {
    async fn only_the_service_decides_the_tier(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await.api;
        let path = organization(&world);
        assert_eq!(bea.get(&path).await.expect_status(200).body["tier"], "standard");
        refused(bea.patch(&path, &json!({ "tier": "enterprise" })).await, 403, "permission_denied");
        bea.patch(&path, &json!({ "name": "Acme Ltd" })).await.expect_status(200);
        let changed = world.root.patch(&path, &json!({ "tier": "enterprise" })).await.expect_status(200).body;
        assert_eq!((&changed["tier"], &changed["name"]), (&json!("enterprise"), &json!("Acme Ltd")));
        assert_eq!(world.audited("organization.updated").await[0]["detail"]["tier"], "enterprise");
        world.root.patch(&path, &json!({ "tier": "gold" })).await.expect_status(422);
        world.root.patch(&path, &json!({ "tier": null })).await.expect_status(422);
        let new = json!({ "name": "Small", "tier": "free" });
        assert_eq!(world.root.post("/organizations", &new).await.expect_status(201).body["tier"], "free");
        for (query, total) in [("tier=free", 1), ("tier=standard", 0), ("tier=enterprise&search=LTD", 1), ("search=%25", 0)] {
            let page = world.root.get(&format!("/organizations?{query}")).await.expect_status(200).body;
            assert_eq!(page["total"], total, "{query}");
        }
    }
}

on_both! {
    async fn quotas_are_shown_also_where_nothing_is_refused(database: Database) {
        let world = World::start(database).await;
        let path = organization(&world);
        world.root.patch(&path, &json!({ "tier": "free" })).await.expect_status(200);
        for name in ["b", "c", "d"] {
            world.new_site(&world.root, name).await;
        }
        let quotas = world.root.get(&format!("{path}/quotas")).await.expect_status(200).body;
        assert_eq!(quotas["enforced"], false);
        assert_eq!(quotas["items"], json!([
            { "resource": "sites", "limit": 3, "used": 4 },
            { "resource": "controllers", "limit": 5, "used": 0 },
            { "resource": "users", "limit": 10, "used": 1 },
        ]));
        world.root.patch(&path, &json!({ "tier": "enterprise" })).await.expect_status(200);
        assert_eq!(used(&world, "sites").await, json!({ "resource": "sites", "limit": null, "used": 4 }));
    }
}

on_both! {
    async fn a_site_beyond_the_quota_is_refused_until_one_goes(database: Database) {
        let world = enforced(database).await;
        let (second, third) = (world.new_site(&world.root, "b").await, world.new_site(&world.root, "c").await);
        exceeded(world.root.post("/sites", &json!({ "name": "d" })).await, 3, "sites");
        assert_eq!(used(&world, "sites").await["used"], 3, "what was refused is not there");
        world.root.delete(&format!("/sites/{second}")).await.expect_status(204);
        world.new_site(&world.root, "d").await;
        let restore = format!("/sites/{second}/restore");
        exceeded(world.root.post(&restore, &json!({})).await, 3, "sites");
        world.root.delete(&format!("/sites/{third}")).await.expect_status(204);
        world.root.post(&restore, &json!({})).await.expect_status(200);
        world.root.patch(&format!("/sites/{second}"), &json!({ "name": "still mine" })).await.expect_status(200);
        world.root.patch(&organization(&world), &json!({ "tier": "standard" })).await.expect_status(200);
        world.new_site(&world.root, "e").await;
    }
}

on_both! {
    async fn users_and_controllers_have_quotas_of_their_own(database: Database) {
        let world = enforced(database).await;
        let mut last = String::new();
        for number in 1..10 {
            let user = world.root.post("/users", &new_user(&format!("u{number}"), "viewer")).await.expect_status(201).body;
            last = format!("/users/{}", text(&user["id"]));
        }
        exceeded(world.root.post("/users", &new_user("u10", "viewer")).await, 10, "users");
        world.root.delete(&last).await.expect_status(204);
        world.root.post("/users", &new_user("u10", "viewer")).await.expect_status(201);
        exceeded(world.root.post(&format!("{last}/restore"), &json!({})).await, 10, "users");

        let credential = json!({ "name": "router", "username": "root", "password": "hunter2" });
        let credential = world.root.post("/credentials", &credential).await.expect_status(201).body["id"].clone();
        let controller = |name: &str| json!({
            "name": name, "site_id": world.site, "vendor": "openwrt", "url": "http://127.0.0.1:9", "credential_id": credential,
        });
        let mut first = String::new();
        for number in 0..5 {
            let created = world.root.post("/controllers", &controller(&format!("c{number}"))).await.expect_status(201).body;
            first = format!("/controllers/{}", text(&created["id"]));
        }
        exceeded(world.root.post("/controllers", &controller("c5")).await, 5, "controllers");
        world.root.delete(&first).await.expect_status(204);
        world.root.post("/controllers", &controller("c5")).await.expect_status(201);
        exceeded(world.root.post(&format!("{first}/restore"), &json!({})).await, 5, "controllers");
    }
}

on_both! {
    async fn of_two_who_take_the_last_place_one_fails(database: Database) {
        let world = enforced(database).await;
        world.new_site(&world.root, "b").await;
        for round in 0..5 {
            let (left, right) = (json!({ "name": format!("left {round}") }), json!({ "name": format!("right {round}") }));
            let (one, two) = tokio::join!(world.root.post("/sites", &left), world.root.post("/sites", &right));
            let mut statuses = [one.status, two.status];
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 409], "{} {}", one.text, two.text);
            assert_eq!(used(&world, "sites").await["used"], 3);
            let winner = if one.status == 201 { one } else { two };
            world.root.delete(&format!("/sites/{}", text(&winner.body["id"]))).await.expect_status(204);
        }
    }
}
