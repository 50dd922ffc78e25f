//! An organization at a glance.

use std::time::Duration;

use serde_json::json;

use super::{ABSENT, World, new_user, refused};
use crate::staging::Lab;
use crate::support::on_both;

on_both! {
    async fn an_empty_organization_is_all_zeros_with_every_word(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let path = format!("/organizations/{}/dashboard", other.org);
        let board = other.admin.api.get(&path).await.expect_status(200).body;
        assert_eq!((&board["name"], &board["tier"]), (&json!("Other"), &json!("standard")));
        assert_eq!(board["sites"], json!({ "total": 0 }));
        let none = json!({ "online": 0, "offline": 0, "unknown": 0 });
        assert_eq!(board["controllers"], json!({ "total": 0, "by_status": none }));
        assert_eq!(board["devices"], json!({ "total": 0, "by_status": none, "by_kind": [], "of_other_kinds": 0 }));
        assert_eq!((&board["users"]["total"], &board["users"]["active"]), (&json!(1), &json!(1)));
        assert_eq!(board["users"]["by_role"]["org_admin"], 1);
        assert_eq!(board["users"]["by_role"]["viewer"], 0);
        assert_eq!(board["changes"]["pending_by_outcome"]["awaiting_confirm"], 0);
        assert_eq!(board["recent_audit"][0]["action"], "user.login", "its own log, the newest first: {board}");
        assert_eq!(board["quotas"][2], json!({ "resource": "users", "limit": 500, "used": 1 }));
        assert_eq!(world.root.get(&path).await.expect_status(200).body["users"], board["users"]);
    }
}

/// Waits until the controller was read, so that its devices are there.
async fn wait_for_a_reading(lab: &Lab) {
    for _ in 0..200 {
        let controller =
            lab.api.get(&format!("/controllers/{}", lab.controller)).await.expect_status(200).body;
        if controller["last_sync_at"].is_string() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the controller is not read");
}

on_both! {
    async fn a_dashboard_counts_what_is_there(database: Database) {
        let lab = Lab::start(database).await;
        let me = lab.api.get("/auth/me").await.expect_status(200).body;
        let path = format!("/organizations/{}/dashboard", me["organization_id"].as_str().unwrap());
        for (name, role) in [("one", "viewer"), ("two", "viewer"), ("off", "operator")] {
            let mut body = new_user(name, role);
            body["is_active"] = json!(name != "off");
            lab.api.post("/users", &body).await.expect_status(201);
        }
        lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201);
        lab.stage_rule("Allow-HTTPS").await;
        let applied = lab.stage_rule("Allow-DNS").await;
        let apply = json!({ "force": true, "plan_hash": applied["plan"]["hash"] });
        lab.api.post(&Lab::path(&applied, "apply"), &apply).await.expect_status(200);
        wait_for_a_reading(&lab).await;
        let board = lab.api.get(&path).await.expect_status(200).body;
        assert_eq!(board["sites"]["total"], 2);
        assert_eq!(board["controllers"], json!({ "total": 1, "by_status": { "online": 1, "offline": 0, "unknown": 0 } }));
        let users = &board["users"];
        assert_eq!((&users["total"], &users["active"]), (&json!(4), &json!(3)), "{users}");
        assert_eq!((&users["by_role"]["viewer"], &users["by_role"]["operator"]), (&json!(2), &json!(1)));
        let changes = &board["changes"];
        assert_eq!((&changes["pending"], &changes["pending_by_outcome"]["none"]), (&json!(1), &json!(1)), "{changes}");
        assert_eq!((&changes["applied_last_24_hours"], &changes["expiring_soon"]), (&json!(1), &json!(0)));
        assert_eq!(changes["applied_last_7_days"], 1);
        let log = lab.api.get("/audit?per_page=10").await.expect_status(200).body;
        assert_eq!(board["recent_audit"], log["items"]);
        assert_eq!(log["items"].as_array().unwrap().len(), 10);
        let devices = lab.api.get("/devices?per_page=200").await.expect_status(200).body;
        assert_eq!(board["devices"]["total"], devices["total"]);
        let kinds = board["devices"]["by_kind"].as_array().unwrap();
        assert!(!kinds.is_empty(), "the router itself is one");
        for kind in kinds {
            let name = kind["kind"].as_str().unwrap();
            let listed = lab.api.get(&format!("/devices?kind={name}")).await.expect_status(200).body;
            assert_eq!(kind["count"], listed["total"], "{name}");
        }
    }
}

on_both! {
    async fn a_dashboard_is_for_administrators_of_the_whole_organization(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let path = format!("/organizations/{}/dashboard", world.org);
        let quotas = format!("/organizations/{}/quotas", world.org);
        let (sid, bea) = (world.member("sid", "site_admin").await, world.member("bea", "org_admin").await);
        for path in [&path, &quotas] {
            refused(sid.api.get(path).await, 403, "permission_denied");
            bea.api.get(path).await.expect_status(200);
            let foreign = refused(other.admin.api.get(path).await, 404, "not_found");
            let absent = other.admin.api.get(&path.replace(&world.org, ABSENT)).await;
            assert_eq!(foreign.message(), refused(absent, 404, "not_found").message());
        }
        let grant = json!({ "user_id": bea.id, "site_id": world.site, "level": "full" });
        world.root.post(&format!("/organizations/{}/site-access", world.org), &grant).await.expect_status(201);
        for path in [&path, &quotas] {
            refused(bea.api.get(path).await, 403, "all_sites_required");
        }
    }
}
