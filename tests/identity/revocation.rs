use std::time::Duration;

use heddle_core::Role;
use heddle_store::users::{self, UserUpdate};
use heddle_store::{Db, PoolSettings, Scope};
use serde_json::json;

use crate::support::{Api, Database, Options, PASSWORD, Process, Server, on_both, until};

on_both! {
    async fn a_logout_is_felt_at_once_in_the_process_that_did_it(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let holder = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        for _ in 0..3 {
            admin.get("/auth/me").await.expect_status(200);
            holder.get("/auth/me").await.expect_status(200);
        }
        admin.delete(&format!("/api-keys/{}", key["id"].as_str().unwrap())).await.expect_status(204);
        holder.get("/auth/me").await.expect_status(401);
        admin.post("/auth/logout-all", &json!({})).await.expect_status(204);
        admin.get("/auth/me").await.expect_status(401);
    }
}

/// Asks until it is refused.
async fn until_refused(api: &Api, path: &str, status: u16) {
    let what = format!("{path} is refused with {status}");
    until(&what, async || api.get(path).await.status == status).await;
}

/// Another process wrote, and this one feels it. The age of a known caller (`FRESH_FOR`) bounds how soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demotion_and_a_revocation_are_felt_in_every_process() {
    let Some(database) = Database::postgres().await else { return };
    let Database::Postgres(url) = &database else { panic!("it is PostgreSQL") };
    let pool = PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(10) };
    let folder = tempfile::tempdir().unwrap();
    let one = Process::start(folder.path(), &database, &Options::default()).await;
    let other_folder = tempfile::tempdir().unwrap();
    let two = Process::start(other_folder.path(), &database, &Options::default()).await;
    let body = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    one.api.post("/setup/complete", &body).await.expect_status(201);
    let login = json!({ "login": "ada", "password": PASSWORD });
    let tokens = one.api.post("/auth/login", &login).await.expect_status(200).body;
    let (at_one, at_two) = (
        one.api.with_token(tokens["access_token"].as_str().unwrap()),
        two.api.with_token(tokens["access_token"].as_str().unwrap()),
    );
    for api in [&at_one, &at_two] {
        api.get("/organizations").await.expect_status(200);
    }
    let db = Db::open(url, &pool).await.unwrap();
    let clock = heddle_core::Clock::default();
    let mut tx = db.write().await.unwrap();
    let ada = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap().user;
    let demoted = UserUpdate { role: Some(Role::Viewer), ..UserUpdate::default() };
    users::update(&mut tx, &Scope::everything(), ada.id, &demoted, clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    for api in [&at_one, &at_two] {
        until_refused(api, "/organizations", 403).await;
    }
    at_two.get("/auth/me").await.expect_status(200);
    at_one.post("/auth/logout-all", &json!({})).await.expect_status(204);
    at_one.get("/auth/me").await.expect_status(401);
    until_refused(&at_two, "/auth/me", 401).await;
}

/// Everything that makes a user's tokens worthless, but the reset by mail, whose test reads the mail.
const BUMPS: &[&str] = &[
    "logout-all",
    "password change",
    "mfa enable",
    "mfa disable",
    "role change",
    "disable",
    "password set",
    "remove",
];

/// Does it to the user, by their own hand (`own`) or an administrator's.
async fn bump(what: &str, admin: &Api, own: &Api, user: &str) {
    let account = format!("/users/{user}");
    let answer = match what {
        "logout-all" => own.post("/auth/logout-all", &json!({})).await,
        "password change" => {
            let body = json!({ "current_password": PASSWORD, "new_password": "Another-Horse-8!" });
            own.post("/auth/password/change", &body).await
        }
        "mfa enable" => {
            let staged = own.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
            let code = super::mfa::code_now(staged["secret"].as_str().unwrap());
            own.post("/auth/mfa/enable", &json!({ "code": code })).await
        }
        "mfa disable" => own.post("/auth/mfa/disable", &json!({})).await,
        "role change" => admin.patch(&account, &json!({ "role": "operator" })).await,
        "disable" => admin.patch(&account, &json!({ "is_active": false })).await,
        "password set" => admin.patch(&account, &json!({ "password": "Another-Horse-8!" })).await,
        "remove" => admin.delete(&account).await,
        other => panic!("{other} is not known"),
    };
    assert!(matches!(answer.status, 200 | 204), "{what}: {}", answer.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bump_refuses_all_older_tokens_in_every_process() {
    let Some(database) = Database::postgres().await else { return };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let options = crate::surface::unlimited();
    let one = Process::start(folders[0].path(), &database, &options).await;
    let two = Process::start(folders[1].path(), &database, &options).await;
    let body = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    let admin = one.api.post("/setup/complete", &body).await.expect_status(201).body;
    let admin = one.api.with_token(admin["access_token"].as_str().unwrap());
    for (number, what) in BUMPS.iter().enumerate() {
        let name = format!("user-{number}");
        let user = json!({
            "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": "viewer",
        });
        let user =
            admin.post("/users", &user).await.expect_status(201).body["id"].as_str().unwrap().to_owned();
        let login = json!({ "login": name, "password": PASSWORD });
        let mut older = Vec::new();
        for api in [&one.api, &two.api] {
            older.push(api.post("/auth/login", &login).await.expect_status(200).body);
        }
        let own = one.api.with_token(older[0]["access_token"].as_str().unwrap());
        let elsewhere = two.api.with_token(older[1]["access_token"].as_str().unwrap());
        elsewhere.get("/auth/me").await.expect_status(200);
        bump(what, &admin, &own, &user).await;
        own.get("/auth/me").await.expect_status(401);
        until_refused(&elsewhere, "/auth/me", 401).await;
        for tokens in &older {
            let refresh = json!({ "refresh_token": tokens["refresh_token"] });
            two.api.post("/auth/refresh", &refresh).await.expect_status(401);
        }
    }
}
