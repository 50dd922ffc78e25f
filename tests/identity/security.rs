//! What an organization learns about the accounts of its people: each event once, and without a secret.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::mfa::{enrol, first_factor, next_step};
use crate::support::{Api, PASSWORD, Server, on_both};

const SECOND: &str = "Another-Horse-8-Battery";

/// The newest events of this type.
async fn told(api: &Api, event_type: &str) -> Vec<Value> {
    let page =
        api.get(&format!("/events?event_type={event_type}&per_page=200")).await.expect_status(200).body;
    page["items"].as_array().expect("a page").clone()
}

/// The payload of the only event of this type.
#[track_caller]
fn only(events: Vec<Value>) -> Value {
    assert_eq!(events.len(), 1, "{events:?}");
    events[0]["payload"].clone()
}

async fn login(server: &Server, password: &str) -> u16 {
    server.nobody().post("/auth/login", &json!({ "login": "bob", "password": password })).await.status
}

on_both! {
    async fn what_happens_to_an_account_is_told_once(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let body = json!({ "username": "bob", "email": "bob@acme.test", "password": PASSWORD, "role": "viewer" });
        let bob = admin.post("/users", &body).await.expect_status(201).body;
        let path = format!("/users/{}", bob["id"].as_str().unwrap());

        for _ in 0..6 {
            login(&server, "Wrong-Horse-7-x").await;
        }
        let locked = only(told(&admin, "security.account_locked").await);
        assert_eq!((&locked["user_id"], &locked["username"], &locked["step"]), (&bob["id"], &json!("bob"), &json!("password")));
        assert_eq!(locked["failures"], 5);

        admin.patch(&path, &json!({ "role": "operator" })).await.expect_status(200);
        let role = only(told(&admin, "security.role_changed").await);
        assert_eq!((&role["role"], &role["old_role"], &role["user_id"]), (&json!("operator"), &json!("viewer"), &bob["id"]));
        admin.patch(&path, &json!({ "password": SECOND })).await.expect_status(200);
        let changed = only(told(&admin, "security.password_changed").await);
        assert_eq!((&changed["way"], &changed["user_id"]), (&json!("administrator"), &bob["id"]));
        assert_ne!(changed["actor_id"], bob["id"]);

        let key = json!({ "name": "backup", "scopes": ["device:read"], "expires_in_days": 2 });
        let key = admin.post("/api-keys", &key).await.expect_status(201).body;
        let created = only(told(&admin, "security.api_key_created").await);
        assert_eq!((&created["api_key_id"], &created["scopes"]), (&key["id"], &json!(["device:read"])));
        admin.delete(&format!("/api-keys/{}", key["id"].as_str().unwrap())).await.expect_status(204);
        assert_eq!(only(told(&admin, "security.api_key_revoked").await)["api_key_id"], key["id"]);
        let everything = admin.post("/api-keys", &json!({ "name": "all" })).await.expect_status(201).body;
        let created = told(&admin, "security.api_key_created").await;
        assert_eq!((created.len(), &created[0]["payload"]["scopes"]), (2, &Value::Null));

        let tokens = server.nobody().post("/auth/login", &json!({ "login": "ada", "password": PASSWORD })).await;
        let spent = json!({ "refresh_token": tokens.expect_status(200).body["refresh_token"] });
        server.nobody().post("/auth/refresh", &spent).await.expect_status(200);
        server.nobody().post("/auth/refresh", &spent).await.expect_status(401);
        assert!(told(&admin, "security.refresh_reuse").await.is_empty(), "that was a lost race");
        server.running().app.clock.advance(TimeDelta::seconds(11));
        server.nobody().post("/auth/refresh", &spent).await.expect_status(401);
        server.nobody().post("/auth/refresh", &spent).await.expect_status(401);
        let reuse = only(told(&admin, "security.refresh_reuse").await);
        assert_eq!(reuse["username"], "ada");

        let all = admin.get("/events?event_type=security.*&per_page=200").await.expect_status(200).text;
        for secret in [PASSWORD, SECOND, spent["refresh_token"].as_str().unwrap(), everything["api_key"].as_str().unwrap()] {
            assert!(!all.contains(secret), "{secret} is told");
        }
    }
}

on_both! {
    async fn what_happens_to_a_second_factor_is_told_once(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (phone, codes, admin) = enrol(&server, &admin).await;
        assert_eq!(only(told(&admin, "security.mfa_enabled").await)["username"], "ada");
        let token = first_factor(&server).await;
        let body = json!({ "mfa_token": token, "code": "00000000" });
        server.nobody().post("/auth/login/mfa", &body).await.expect_status(401);
        let failed = only(told(&admin, "security.mfa_failed").await);
        assert_eq!((&failed["username"], &failed["failures"]), (&json!("ada"), &json!(1)));
        next_step(&server);
        let body = json!({ "mfa_token": token, "code": phone.code(&server) });
        server.nobody().post("/auth/login/mfa", &body).await.expect_status(200);
        assert_eq!(told(&admin, "security.mfa_failed").await.len(), 1, "a success is no failure");
        let left = admin.post("/auth/mfa/disable", &json!({})).await.expect_status(200).body;
        let admin = server.nobody().with_token(left["access_token"].as_str().unwrap());
        only(told(&admin, "security.mfa_disabled").await);
        let left = admin.post("/auth/mfa/disable", &json!({})).await.expect_status(200).body;
        let admin = server.nobody().with_token(left["access_token"].as_str().unwrap());
        only(told(&admin, "security.mfa_disabled").await);
        let all = admin.get("/events?event_type=security.*&per_page=200").await.expect_status(200).text;
        assert!(!all.contains(phone.secret()) && codes.iter().all(|code| !all.contains(code)));
    }
}
