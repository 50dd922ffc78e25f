use serde_json::{Value, json};

use crate::support::{Api, Server, on_both};

async fn create(api: &Api, body: &Value) -> Value {
    api.post("/api-keys", body).await.expect_status(201).body
}

fn holder(server: &Server, key: &Value) -> Api {
    server.nobody().with("x-api-key", key["api_key"].as_str().expect("the key is shown once"))
}

on_both! {
    async fn a_key_calls_for_its_user_and_shows_its_secret_once(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = create(&admin, &json!({ "name": "backup script", "description": "nightly" })).await;
        let whole = key["api_key"].as_str().unwrap();
        assert!(whole.starts_with(key["prefix"].as_str().unwrap()), "{whole}");
        assert_eq!((whole.find('_'), whole.rfind('_').is_some_and(|at| at >= 12)), (Some(3), true));
        let caller = holder(&server, &key);
        assert_eq!(caller.get("/auth/me").await.expect_status(200).body["username"], "ada");
        assert_eq!(caller.get("/organizations").await.expect_status(200).body["total"], 1);
        let listed = admin.get("/api-keys").await.expect_status(200);
        assert_eq!(listed.body["total"], 1);
        assert!(!listed.text.contains(whole) && listed.body["items"][0].get("api_key").is_none());
        assert!(listed.body["items"][0]["last_used_at"].is_string());
        let audit = admin.get("/audit").await.expect_status(200).text;
        assert!(audit.contains("api_key.created") && !audit.contains(&whole[13..]));
        // The audit log tells what a key did from what its user did.
        caller.post("/sites", &json!({ "name": "By key" })).await.expect_status(201);
        admin.post("/sites", &json!({ "name": "By hand" })).await.expect_status(201);
        let made = admin.get("/audit?action=site.created").await.expect_status(200).body;
        assert_eq!(made["items"][1]["detail"]["via"], json!({ "api_key_id": key["id"] }), "{made}");
        assert_eq!(made["items"][0]["detail"].get("via"), None, "{made}");
        admin.delete(&format!("/api-keys/{}", key["id"].as_str().unwrap())).await.expect_status(204);
        assert_eq!(caller.get("/auth/me").await.expect_status(401).header("www-authenticate"), "Bearer");
        admin.delete(&format!("/api-keys/{}", key["id"].as_str().unwrap())).await.expect_status(404);
    }
}

on_both! {
    async fn scopes_are_a_ceiling(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let scoped = holder(&server, &create(&admin, &json!({ "name": "reader", "scopes": ["device:*", "site:read"] })).await);
        scoped.get("/devices").await.expect_status(200);
        scoped.get("/sites").await.expect_status(200);
        let refused = scoped.get("/controllers").await.expect_status(403);
        assert_eq!(refused.error_type(), "scope_ceiling");
        assert!(refused.message().contains("controller:read"));
        assert_eq!(scoped.get("/organizations").await.expect_status(403).error_type(), "scope_ceiling");
        assert_eq!(scoped.post("/sites", &json!({ "name": "x" })).await.expect_status(403).error_type(), "scope_ceiling");
        let me = scoped.get("/auth/me").await.expect_status(200).body;
        assert_eq!(me["permissions"], json!(["device:read", "device:write", "site:read"]));
        let everything = holder(&server, &create(&admin, &json!({ "name": "star", "scopes": ["*"] })).await);
        everything.get("/devices").await.expect_status(403);
    }
}

on_both! {
    async fn a_key_is_no_session(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = holder(&server, &create(&admin, &json!({ "name": "any" })).await);
        for (method, path, body) in [
            ("POST", "/api-keys", Some(json!({ "name": "child" }))),
            ("POST", "/auth/logout", None),
            ("POST", "/auth/logout-all", None),
        ] {
            let body = body.map(|body| body.to_string().into_bytes());
            let refused = key.send(method, path, body).await.expect_status(403);
            assert_eq!(refused.error_type(), "session_required", "{method} {path}");
        }
        let both = key.with_token(admin.token());
        assert!(both.get("/auth/me").await.expect_status(401).message().contains("one credential"));
    }
}

on_both! {
    async fn what_a_key_may_be_is_checked(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let too_many: Vec<&str> = vec!["device:read"; 33];
        for (body, field) in [
            (json!({ "name": " " }), "name"),
            (json!({ "name": "a", "scopes": ["device:reed"] }), "scopes[0]"),
            (json!({ "name": "a", "scopes": ["device:read", "x".repeat(101)] }), "scopes[1]"),
            (json!({ "name": "a", "scopes": too_many }), "scopes"),
            (json!({ "name": "a", "scopes": [] }), "scopes"),
            (json!({ "name": "a", "expires_in_days": 0 }), "expires_in_days"),
            (json!({ "name": "a", "expires_in_days": 366 }), "expires_in_days"),
            (json!({ "name": "a", "description": "x".repeat(2001) }), "description"),
            (json!({ "name": "a", "scope": [] }), "scope"),
        ] {
            let refused = admin.post("/api-keys", &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{body}");
        }
        for wrong in ["", "hdl", "hdl_abcdefgh", "hdl_abcdefgh_x", "abc_abcdefgh_x"] {
            server.nobody().with("x-api-key", wrong).get("/auth/me").await.expect_status(401);
        }
    }
}

on_both! {
    async fn a_key_expires_and_fifty_are_enough(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let short = holder(&server, &create(&admin, &json!({ "name": "short", "expires_in_days": 1 })).await);
        for at in 1..50 {
            create(&admin, &json!({ "name": format!("key {at}") })).await;
        }
        let refused = admin.post("/api-keys", &json!({ "name": "one too many" })).await.expect_status(409);
        assert_eq!(refused.error_type(), "limit_reached");
        short.get("/auth/me").await.expect_status(200);
        server.running().app.clock.advance(chrono::TimeDelta::days(1));
        short.get("/auth/me").await.expect_status(401);
    }
}

on_both! {
    async fn two_that_create_the_fiftieth_key_at_once_do_not_make_it_two(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        for at in 1..50 {
            create(&admin, &json!({ "name": format!("key {at}") })).await;
        }
        let body = json!({ "name": "last" });
        let (one, two) = tokio::join!(admin.post("/api-keys", &body), admin.post("/api-keys", &body));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409]);
    }
}

on_both! {
    async fn a_scoped_key_of_a_super_admin_reads_neither_all_events_nor_other_organizations(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let other = admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        admin.post("/users", &json!({
            "username": "bob", "email": "bob@acme.test", "password": crate::support::PASSWORD, "role": "viewer",
        })).await.expect_status(201);
        assert!(admin.get("/events?event_type=user.*").await.expect_status(200).body["total"].as_u64() > Some(0));
        let scoped = holder(&server, &create(&admin, &json!({ "name": "k", "scopes": ["device:read"] })).await);
        assert_eq!(scoped.get("/events").await.expect_status(200).body["total"], 0);
        scoped.get(&format!("/events?organization_id={}", other["id"].as_str().unwrap())).await.expect_status(404);
    }
}

on_both! {
    async fn what_a_session_created_is_not_told_to_a_key(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = holder(&server, &create(&admin, &json!({ "name": "k" })).await);
        let body = json!({ "name": "Branch" });
        admin.with("idempotency-key", "one").post("/sites", &body).await.expect_status(201);
        let refused = key.with("idempotency-key", "one").post("/sites", &body).await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["type"], "idempotency_key_reused");
    }
}

on_both! {
    async fn a_key_without_scopes_says_so_and_has_the_rights_of_its_owner(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = create(&admin, &json!({ "name": "k" })).await;
        assert_eq!(key["scopes"], Value::Null);
        let caller = holder(&server, &key);
        assert_eq!(caller.get("/auth/me").await.expect_status(200).body["permissions"], json!(["*"]));
        caller.get("/auth/sessions").await.expect_status(200);
        // `null` could also mean no scopes at all, so it is refused.
        admin.post("/api-keys", &json!({ "name": "k", "scopes": null })).await.expect_status(422);
    }
}

on_both! {
    async fn a_key_of_one_scope_reads_nothing_of_its_owners_account(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = holder(&server, &create(&admin, &json!({ "name": "k", "scopes": ["device:read"] })).await);
        for path in [
            "/auth/sessions", "/auth/mfa", "/api-keys", "/oauth2/apps", "/oauth2/grants", "/notifications",
            "/fabric/connections", "/fabric/runs", "/automation/rules", "/automation/schedules", "/actions",
        ] {
            let answer = key.get(path).await;
            if answer.status != 404 {
                assert_eq!(answer.expect_status(403).error_type(), "scope_ceiling", "{path}");
            }
        }
        key.get("/auth/me").await.expect_status(200);
        key.get("/events").await.expect_status(200);
    }
}

on_both! {
    async fn a_scope_opens_what_it_names_also_where_a_role_is_asked_for(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let scopes = json!(["user:*", "controller:*", "organization:*", "audit:*", "site:*"]);
        let key = holder(&server, &create(&admin, &json!({ "name": "k", "scopes": scopes })).await);
        let user = json!({ "username": "bob", "email": "bob@acme.test", "password": crate::support::PASSWORD, "role": "viewer" });
        let bob = key.post("/users", &user).await.expect_status(201).body;
        key.patch(&format!("/users/{}", bob["id"].as_str().unwrap()), &json!({ "role": "operator" })).await.expect_status(200);
        let own = key.get("/organizations").await.expect_status(200).body;
        let path = format!("/organizations/{}", own["items"][0]["id"].as_str().unwrap());
        key.patch(&path, &json!({ "name": "Acme 2" })).await.expect_status(200);
        key.get("/audit/validate").await.expect_status(200);
        // What the scopes do not name, and what is about other organizations.
        key.get("/credentials").await.expect_status(403);
        assert_eq!(key.patch(&path, &json!({ "tier": "free" })).await.expect_status(403).error_type(), "scope_ceiling");
        assert_eq!(key.post("/organizations", &json!({ "name": "U" })).await.expect_status(403).error_type(), "scope_ceiling");
        // A ceiling raises no rights: the key's user must have a higher role where one is needed.
        let bob = server.log_in("bob").await;
        let weak = holder(&server, &create(&bob, &json!({ "name": "k", "scopes": ["audit:read"] })).await);
        assert_eq!(weak.get("/audit/validate").await.expect_status(403).error_type(), "permission_denied");
    }
}

/// The same request again shows what was created, without its secret.
async fn shown_once(api: &Api, path: &str, body: &Value, field: &str) -> Value {
    let keyed = api.with("idempotency-key", path);
    let first = keyed.post(path, body).await.expect_status(201);
    let secret = first.body[field].as_str().expect("it is shown once").to_owned();
    let second = keyed.post(path, body).await.expect_status(201);
    assert_eq!(second.header("idempotency-replayed"), "true");
    assert_eq!((&second.body["id"], second.body.get(field)), (&first.body["id"], None), "{}", second.text);
    assert!(!second.text.contains(&secret), "{path}");
    assert_eq!(first.header("etag"), second.header("etag"), "it is the same object");
    first.body
}

on_both! {
    async fn a_replay_answers_without_the_secret(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let body = json!({ "name": "k" });
        let key = shown_once(&admin, "/api-keys", &body, "api_key").await;
        admin.delete(&format!("/api-keys/{}", key["id"].as_str().unwrap())).await.expect_status(204);
        let again = admin.with("idempotency-key", "/api-keys").post("/api-keys", &body).await.expect_status(201);
        assert!(!again.text.contains(key["api_key"].as_str().unwrap()), "nor after it was revoked");
        let app = json!({ "name": "a", "client_type": "confidential", "redirect_uris": ["https://app.example/cb"],
            "scopes": ["device:read"] });
        shown_once(&admin, "/oauth2/apps", &app, "client_secret").await;
        let hook = json!({ "name": "h", "url": "https://hook.example/", "events": ["device.*"] });
        shown_once(&admin, "/webhooks", &hook, "signing_secret").await;
    }
}
