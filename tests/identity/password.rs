//! What a password must be, and how people change their own.

use argon2::password_hash::{PasswordHasher as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use chrono::TimeDelta;
use heddle_store::users::{self, NewUser, UserUpdate};
use heddle_store::{Scope, Tx};
use serde_json::{Value, json};

use crate::support::{Answer, Api, Options, PASSWORD, Server, Socket, on_both};

const NEW: &str = "Another-Mule-8-Charger";

/// What an answer says is wrong with this field.
fn faults(answer: &Answer, field: &str) -> Vec<String> {
    let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
    let of_field = details.iter().filter(|detail| detail["field"] == crate::support::at(field));
    of_field.map(|detail| detail["type"].as_str().unwrap().to_owned()).collect()
}

fn person(name: &str, password: &str) -> Value {
    json!({ "username": name, "email": format!("{name}@acme.test"), "password": password, "role": "viewer" })
}

fn change(current: &str, new: &str) -> Value {
    json!({ "current_password": current, "new_password": new })
}

async fn try_login(server: &Server, name: &str, password: &str) -> Answer {
    server.nobody().post("/auth/login", &json!({ "login": name, "password": password })).await
}

fn setup(password: &str) -> Value {
    json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "lovelace", "email": "ada@acme.test", "password": password },
    })
}

on_both! {
    async fn wherever_a_password_is_set_every_failed_rule_is_told_at_once(database: Database) {
        let server = Server::start_with(database, Options::default().with("ALLOW_REGISTRATION", "true")).await;
        let nobody = server.nobody();
        let all = ["too_short", "missing_uppercase", "missing_digit", "missing_special"];
        let refused = nobody.post("/setup/complete", &setup("weak")).await.expect_status(422);
        assert_eq!(faults(&refused, "admin.password"), all);
        let refused = nobody.post("/setup/complete", &setup("My-Lovelace-1843")).await.expect_status(422);
        assert_eq!(faults(&refused, "admin.password"), ["contains_name"]);
        let done = nobody.post("/setup/complete", &setup(PASSWORD)).await.expect_status(201).body;
        let admin = nobody.with_token(done["access_token"].as_str().unwrap());

        let refused = admin.post("/users", &person("grace", "weak")).await.expect_status(422);
        assert_eq!(faults(&refused, "password"), all);
        let refused = admin.post("/users", &person("grace", "Say-gRaCe-12345")).await.expect_status(422);
        assert_eq!(faults(&refused, "password"), ["contains_name"]);
        let user = admin.post("/users", &person("grace", PASSWORD)).await.expect_status(201).body;
        let path = format!("/users/{}", user["id"].as_str().unwrap());
        for (password, kinds) in [("weak", &all[..]), ("Say-gRaCe-12345", &["contains_name"])] {
            let refused = admin.patch(&path, &json!({ "password": password })).await.expect_status(422);
            assert_eq!(faults(&refused, "password"), kinds);
        }
        let both = json!({ "password": "Admiral-Hopper-1", "email": "hopper@acme.test" });
        assert_eq!(faults(&admin.patch(&path, &both).await.expect_status(422), "password"), ["contains_name"]);

        let refused = admin.post("/auth/password/change", &change(PASSWORD, "weak")).await.expect_status(422);
        assert_eq!(faults(&refused, "new_password"), all);
        let refused = admin.post("/auth/password/change", &change(PASSWORD, PASSWORD)).await.expect_status(422);
        assert_eq!(faults(&refused, "new_password"), ["unchanged"]);
        let registration = json!({
            "username": "hedy", "email": "hedy@umbrella.test", "password": "weak", "organization": { "name": "Umbrella" },
        });
        let refused = nobody.post("/auth/register", &registration).await.expect_status(422);
        assert_eq!(faults(&refused, "password"), all);
        assert!(!refused.text.contains("weak"), "what was typed is not repeated");
    }
}

on_both! {
    async fn the_rules_are_those_of_the_settings(database: Database) {
        let lax = Options::default()
            .with("PASSWORD_MIN_LENGTH", "20")
            .with("PASSWORD_REQUIRE_UPPERCASE", "false")
            .with("PASSWORD_REQUIRE_DIGIT", "false")
            .with("PASSWORD_REQUIRE_SPECIAL", "false");
        let server = Server::start_with(database, lax).await;
        let admin = server.set_up().await;
        let refused = admin.post("/users", &person("grace", "onlylowercaseletter")).await.expect_status(422);
        assert_eq!(faults(&refused, "password"), ["too_short"]);
        assert!(refused.text.contains("20 characters"), "{}", refused.text);
        admin.post("/users", &person("grace", "onlylowercaseletters")).await.expect_status(201);
        try_login(&server, "grace", "onlylowercaseletters").await.expect_status(200);
    }
}

/// What a password's owner has made with it.
async fn key_of(api: &Api, server: &Server) -> Api {
    let key = api.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
    server.nobody().with("x-api-key", key["api_key"].as_str().unwrap())
}

on_both! {
    async fn a_changed_password_ends_everything_but_the_session_that_changed_it(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let mut socket = Socket::subscribe(&admin, &["user.*"]).await;
        let created = admin.post("/users", &person("grace", PASSWORD)).await.expect_status(201).body;
        let (one, other) = (server.log_in("grace").await, server.log_in("grace").await);
        let key = key_of(&one, &server).await;
        key.get("/auth/me").await.expect_status(200);

        let changed = one.post("/auth/password/change", &change(PASSWORD, NEW)).await.expect_status(200);
        assert_eq!(changed.headers.get_all("set-cookie").iter().count(), 3, "a browser stays logged in");
        let fresh = server.nobody().with_token(changed.body["access_token"].as_str().unwrap());
        assert_eq!(fresh.get("/auth/me").await.expect_status(200).body["token_version"], 1);
        for ended in [&one, &other, &key] {
            ended.get("/auth/me").await.expect_status(401);
        }
        let refresh = json!({ "refresh_token": changed.body["refresh_token"] });
        server.nobody().post("/auth/refresh", &refresh).await.expect_status(200);
        try_login(&server, "grace", PASSWORD).await.expect_status(401);
        try_login(&server, "grace", NEW).await.expect_status(200);

        let event = socket.event("user.updated").await;
        assert_eq!(event["payload"]["changed"], json!(["password"]), "{event}");
        assert_eq!(event["payload"]["user_id"], created["id"], "{event}");
        let audit = admin.get("/audit?per_page=200").await.expect_status(200);
        let entry = audit.body["items"].as_array().unwrap().iter().find(|e| e["action"] == "user.password_changed");
        let entry = entry.expect("it is in the audit log");
        assert_eq!(entry["actor_id"], created["id"]);
        assert_eq!(entry["detail"], json!({ "sessions_revoked": 2, "api_keys_revoked": 1 }));
        assert!(!audit.text.contains(NEW) && !event.to_string().contains(NEW));
    }
}

on_both! {
    async fn a_wrong_current_password_is_a_failed_login(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        admin.post("/users", &person("grace", PASSWORD)).await.expect_status(201);
        let grace = server.log_in("grace").await;
        for _ in 0..5 {
            let wrong = grace.post("/auth/password/change", &change("Wrong-Horse-7-Battery", NEW)).await.expect_status(422);
            assert_eq!(faults(&wrong, "current_password"), ["wrong_password"]);
        }
        let locked = grace.post("/auth/password/change", &change(PASSWORD, NEW)).await.expect_status(423);
        assert_eq!(locked.error_type(), "locked");
        try_login(&server, "grace", PASSWORD).await.expect_status(423);
        // A session that is open stays open: only the password cannot be tried.
        grace.get("/auth/me").await.expect_status(200);
        let audit = admin.get("/audit?per_page=200").await.expect_status(200).body;
        let failures = audit["items"].as_array().unwrap().iter().filter(|e| e["action"] == "user.login_failed");
        assert_eq!(failures.count(), 5);
        server.running().app.clock.advance(TimeDelta::minutes(31));
        let grace = server.log_in("grace").await;
        grace.post("/auth/password/change", &change(PASSWORD, NEW)).await.expect_status(200);
    }
}

on_both! {
    async fn of_two_changes_at_once_one_is_made(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (one, two) = (change(PASSWORD, NEW), change(PASSWORD, "Yet-Another-9-Donkey"));
        let (one, two) = tokio::join!(
            admin.post("/auth/password/change", &one),
            admin.post("/auth/password/change", &two),
        );
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert!(statuses == [200, 401] || statuses == [200, 409], "{} {}", one.text, two.text);
        let made = if one.status == 200 { NEW } else { "Yet-Another-9-Donkey" };
        try_login(&server, "ada", made).await.expect_status(200);
    }
}

on_both! {
    async fn only_a_session_changes_a_password(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = key_of(&admin, &server).await;
        let refused = key.post("/auth/password/change", &change(PASSWORD, NEW)).await.expect_status(403);
        assert_eq!(refused.error_type(), "session_required");
        server.nobody().post("/auth/password/change", &change(PASSWORD, NEW)).await.expect_status(401);
        // A browser's cookies alone do not, without the page's consent.
        let browser = server.nobody().with("cookie", &format!("svc_access={}", admin.token()));
        let forged = browser.post("/auth/password/change", &change(PASSWORD, NEW)).await.expect_status(403);
        assert_eq!(forged.error_type(), "csrf_failed");
    }
}

/// The hash that is stored of a user's password.
async fn stored(server: &Server, name: &str) -> String {
    let mut tx = server.running().app.db.read().await.unwrap();
    users::find_by_login(&mut tx, name).await.unwrap().unwrap().password_hash
}

async fn store(tx: &mut Tx, server: &Server, name: &str, hash: &str) {
    let now = server.running().app.clock.now();
    let user = users::find_by_login(tx, name).await.unwrap().unwrap().user;
    let update = UserUpdate { password_hash: Some(hash.to_owned()), ..UserUpdate::default() };
    users::update(tx, &Scope::everything(), user.id, &update, now).await.unwrap().unwrap();
}

on_both! {
    async fn a_hash_of_another_cost_is_made_anew_at_the_next_login(database: Database) {
        let server = Server::start_with(database, Options::default().hashing_as_served()).await;
        let admin = server.set_up().await;
        let params = Params::new(19_456, 2, 1, None).unwrap();
        let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
        let old = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let old = old.hash_password(PASSWORD.as_bytes(), &salt).unwrap().to_string();
        let new = stored(&server, "ada").await;
        let cost = |hash: &str| hash.split('$').nth(3).unwrap().to_owned();
        assert_eq!(cost(&new), "m=47104,t=2,p=1");
        let mut tx = server.running().app.db.write().await.unwrap();
        store(&mut tx, &server, "ada", &old).await;
        tx.commit().await.unwrap();
        try_login(&server, "ada", "Wrong-Horse-7-Battery").await.expect_status(401);
        assert_eq!(stored(&server, "ada").await, old);
        try_login(&server, "ada", PASSWORD).await.expect_status(200);
        assert_eq!(cost(&stored(&server, "ada").await), cost(&new));
        try_login(&server, "ada", PASSWORD).await.expect_status(200);
        // It is the same password: nothing has ended.
        admin.get("/auth/me").await.expect_status(200);
    }
}

on_both! {
    async fn who_has_no_password_logs_in_with_none_and_changes_none(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = &server.running().app;
        let mut tx = app.db.write().await.unwrap();
        store(&mut tx, &server, "ada", "").await;
        let new = NewUser {
            id: app.clock.new_id(),
            org_id: users::find_by_login(&mut tx, "ada").await.unwrap().unwrap().user.org_id,
            username: "sso".to_owned(),
            email: "sso@acme.test".to_owned(),
            full_name: None,
            password_hash: "!".to_owned(),
            role: heddle_core::Role::Viewer,
            now: app.clock.now(),
        };
        users::insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        for (name, password) in [("ada", ""), ("ada", PASSWORD), ("sso", "!"), ("sso", "")] {
            try_login(&server, name, password).await.expect_status(401);
        }
        let refused = admin.post("/auth/password/change", &change("anything", NEW)).await.expect_status(409);
        assert_eq!(refused.error_type(), "no_password");
    }
}
