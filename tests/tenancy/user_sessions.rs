//! What an administrator changes ends the user's sessions at once, or leaves them alone.

use serde_json::json;

use super::World;
use crate::support::{PASSWORD, on_both};

const SECOND: &str = "Another-Horse-8-Battery";

on_both! {
    async fn a_role_change_a_disabling_and_a_new_password_end_every_session(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        let mut version = 0;
        for body in [
            json!({ "role": "operator" }), json!({ "is_active": false }), json!({ "password": SECOND }),
        ] {
            world.root.patch(&carl.path(), &json!({ "is_active": true, "password": PASSWORD })).await.expect_status(200);
            let tokens = world.try_log_in("carl", PASSWORD).await.expect_status(200).body;
            let api = world.root.with_token(tokens["access_token"].as_str().unwrap());
            api.get("/auth/me").await.expect_status(200);
            let changed = world.root.patch(&carl.path(), &body).await.expect_status(200).body;
            assert!(changed["token_version"].as_i64().unwrap() > version, "{changed}");
            version = changed["token_version"].as_i64().unwrap();
            api.get("/auth/me").await.expect_status(401);
            let refresh = json!({ "refresh_token": tokens["refresh_token"] });
            api.post("/auth/refresh", &refresh).await.expect_status(401);
        }
        world.try_log_in("carl", PASSWORD).await.expect_status(401);
        world.try_log_in("carl", SECOND).await.expect_status(200);
    }
}

on_both! {
    async fn what_changes_nothing_of_access_ends_no_session(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        let changed = json!({ "full_name": "Carl", "email": "c@acme.test", "role": "viewer", "is_active": true });
        let body = world.root.patch(&carl.path(), &changed).await.expect_status(200).body;
        assert_eq!(body["token_version"], 0);
        carl.api.get("/auth/me").await.expect_status(200);
        assert!(world.audited("user.role_changed").await.is_empty());
        let before = world.audited("user.updated").await.len();
        world.root.patch(&carl.path(), &changed).await.expect_status(200);
        world.root.patch(&carl.path(), &json!({})).await.expect_status(200);
        assert_eq!(world.audited("user.updated").await.len(), before, "what is so already is no change");
    }
}

on_both! {
    async fn a_disabled_user_stays_out_until_enabled(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        world.root.patch(&carl.path(), &json!({ "is_active": false })).await.expect_status(200);
        let answer = world.try_log_in("carl", PASSWORD).await;
        assert!(matches!(answer.status, 401 | 403), "{}", answer.text);
        world.root.patch(&carl.path(), &json!({ "is_active": true })).await.expect_status(200);
        carl.api.get("/auth/me").await.expect_status(401);
        world.log_in("carl").await.get("/auth/me").await.expect_status(200);
    }
}

on_both! {
    async fn a_removed_users_tokens_are_worthless(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        world.root.delete(&carl.path()).await.expect_status(204);
        carl.api.get("/auth/me").await.expect_status(401);
        world.root.post(&format!("{}/restore", carl.path()), &json!({})).await.expect_status(200);
        carl.api.get("/auth/me").await.expect_status(401);
    }
}

on_both! {
    async fn a_new_password_lifts_a_lock(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        for _ in 0..5 {
            world.try_log_in("carl", "wrong").await;
        }
        world.try_log_in("carl", PASSWORD).await.expect_status(423);
        let reset = world.root.patch(&carl.path(), &json!({ "password": SECOND })).await.expect_status(200);
        assert_eq!(reset.body["locked_until"], json!(null));
        world.try_log_in("carl", SECOND).await.expect_status(200);
        let weak = world.root.patch(&carl.path(), &json!({ "password": "weak" })).await.expect_status(422);
        assert!(weak.body["error"]["details"].as_array().unwrap().len() > 1, "{}", weak.text);
    }
}

on_both! {
    async fn a_removed_organization_ends_the_sessions_of_its_people_for_good(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let tokens = world.try_log_in("otto", PASSWORD).await.expect_status(200).body;
        let path = format!("/organizations/{}", other.org);
        world.root.delete(&path).await.expect_status(204);
        other.admin.api.get("/auth/me").await.expect_status(401);
        world.root.post(&format!("{path}/restore"), &json!({})).await.expect_status(200);
        other.admin.api.get("/auth/me").await.expect_status(401);
        world.root.with_token(tokens["access_token"].as_str().unwrap()).get("/auth/me").await.expect_status(401);
        let refresh = json!({ "refresh_token": tokens["refresh_token"] });
        world.server.nobody().post("/auth/refresh", &refresh).await.expect_status(401);
        world.try_log_in("otto", PASSWORD).await.expect_status(200);
        world.root.get("/auth/me").await.expect_status(200);
    }
}
