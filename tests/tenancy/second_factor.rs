//! A lost second factor: which users may take it away, and what that ends.

use serde_json::{Value, json};

use super::{World, refused, text};
use crate::identity::mfa::enrol;
use crate::support::{PASSWORD, on_both};

on_both! {
    async fn a_higher_role_takes_a_second_factor_away_and_every_session_with_it(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "org_admin").await;
        let dora = world.member("dora", "org_admin").await;
        let (_, _, left) = enrol(&world.server, &carl.api).await;
        let asked = world.try_log_in("carl", PASSWORD).await.expect_status(200).body;
        assert_eq!(asked["require_mfa"], true);
        let path = format!("{}/mfa/reset", carl.path());
        // Neither an equal nor the user.
        refused(dora.api.post(&path, &json!({})).await, 403, "role_too_high");
        refused(left.post(&path, &json!({})).await, 403, "own_account");
        let viewer = world.member("vera", "viewer").await;
        refused(viewer.api.post(&path, &json!({})).await, 403, "permission_denied");
        let user = world.root.post(&path, &json!({})).await.expect_status(200).body;
        assert_eq!(user["mfa_enabled"], false);
        left.get("/auth/me").await.expect_status(401);
        // The proof of the first factor of before opens nothing, and the password is enough again.
        let body = json!({ "mfa_token": asked["mfa_token"], "code": "000000" });
        world.server.nobody().post("/auth/login/mfa", &body).await.expect_status(401);
        world.log_in("carl").await.get("/auth/me").await.expect_status(200);
        world.root.post(&path, &json!({})).await.expect_status(409);
        let audited = world.audited("user.mfa_reset").await;
        assert_eq!((audited.len(), text(&audited[0]["actor_name"])), (1, "ada".to_owned()));
        let events = world.root.get("/events?event_type=security.mfa_reset").await.expect_status(200).body;
        let told: Vec<&Value> = events["items"].as_array().unwrap().iter().map(|event| &event["payload"]["user_id"]).collect();
        assert_eq!(told, [&json!(carl.id)]);
    }
}
