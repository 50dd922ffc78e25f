//! What ends the tokens of an app, and what an app can never do for its user.

use std::time::Duration;

use heddle_store::{Db, PoolSettings, oauth2};
use serde_json::{Value, json};

use super::{App, acting, member, parameter, register, text};
use crate::support::{Api, Database, Options, PASSWORD, Process, Server, on_both, until};

const FORM: &str = "application/x-www-form-urlencoded";

on_both! {
    async fn whatever_ends_an_app_ends_its_tokens_at_once(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let registered = register(&admin, &["device:read"]).await;
        let users = ["logout", "disabled", "removed", "grant"];
        let mut callers = Vec::new();
        for name in users {
            let user = member(&admin, name, "viewer", None).await;
            let tokens = registered.tokens(&server, name).await;
            let caller = acting(&server, &tokens);
            caller.get("/devices").await.expect_status(200);
            callers.push((name, text(&user, "id").to_owned(), tokens, caller));
        }
        for (name, user, tokens, caller) in &callers {
            caller.get("/devices").await.expect_status(200);
            let own = server.log_in(name).await;
            match *name {
                "logout" => own.post("/auth/logout-all", &json!({})).await.expect_status(204),
                "disabled" => admin.patch(&format!("/users/{user}"), &json!({ "is_active": false })).await.expect_status(200),
                "removed" => admin.delete(&format!("/users/{user}")).await.expect_status(204),
                _ => {
                    let grants = own.get("/oauth2/grants").await.expect_status(200).body;
                    let grant = &grants["items"][0];
                    assert!(text(tokens, "access_token").starts_with(text(grant, "token_prefix")), "{grant}");
                    let path = format!("/oauth2/grants/{}", text(grant, "id"));
                    assert_eq!(&own.get(&path).await.expect_status(200).body, grant);
                    admin.delete(&path).await.expect_status(404);
                    own.with("if-match", "\"other\"").delete(&path).await.expect_status(412);
                    let ended = own.delete(&path).await.expect_status(204);
                    own.get(&path).await.expect_status(404);
                    ended
                }
            };
            // This process forgot its callers before it answered: the next request is refused.
            let status = caller.get("/devices").await.status;
            assert!(matches!(status, 401 | 403), "{name} is still let in: {status}");
            let refused = registered.refresh(&server, text(tokens, "refresh_token")).await.expect_status(400);
            assert_eq!(refused.body["error"], "invalid_grant", "{name}");
        }
        let last = registered.tokens(&server, "ada").await;
        acting(&server, &last).get("/devices").await.expect_status(200);
        admin.delete(&format!("/oauth2/apps/{}", registered.id)).await.expect_status(204);
        acting(&server, &last).get("/devices").await.expect_status(401);
        let unknown = registered.refresh(&server, text(&last, "refresh_token")).await.expect_status(401);
        assert_eq!(unknown.body["error"], "invalid_client");
    }
}

on_both! {
    async fn a_code_of_before_a_logout_is_worthless(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let code = app.code(&server, "ada").await;
        admin.post("/auth/logout-all", &json!({})).await.expect_status(204);
        assert_eq!(app.exchange(&server, &code).await.expect_status(400).body["error"], "invalid_grant");
    }
}

on_both! {
    async fn an_app_never_makes_what_outlives_it_nor_sees_how_its_user_signs_in(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let scopes = ["device:*", "site:*", "user:*", "organization:*", "settings:*", "audit:read"];
        let app = register(&admin, &scopes).await;
        let caller = acting(&server, &app.tokens(&server, "ada").await);
        assert_eq!(caller.get("/auth/me").await.expect_status(200).body["username"], "ada");
        let another = json!({ "name": "k", "client_type": "public", "redirect_uris": ["https://a.example/"], "scopes": ["device:read"] });
        for (method, path, body) in [
            ("POST", "/api-keys", json!({ "name": "k" })),
            ("GET", "/api-keys", json!({})),
            ("POST", "/oauth2/apps", another),
            ("GET", "/oauth2/apps", json!({})),
            ("GET", "/oauth2/grants", json!({})),
            ("GET", "/auth/sessions", json!({})),
            ("POST", "/auth/logout-all", json!({})),
            ("POST", "/auth/mfa/setup", json!({})),
        ] {
            let refused = caller.send(method, path, Some(body.to_string().into_bytes())).await.expect_status(403);
            assert_eq!(refused.error_type(), "session_required", "{method} {path}");
        }
        // Scopes name permissions, never roles; and other organizations stay out of sight.
        assert_eq!(caller.post("/organizations", &json!({ "name": "Mine" })).await.expect_status(403).error_type(), "scope_ceiling");
        admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201);
        assert_eq!(caller.get("/sites").await.expect_status(200).body["total"], 1);
        let site = caller.with("idempotency-key", "k").post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let audit = admin.get("/audit?action=site.created&per_page=1").await.expect_status(200).body;
        assert_eq!((&audit["items"][0]["actor_name"], &audit["items"][0]["target_id"]), (&json!("ada"), &site["id"]));
        // What the app created is not shown to another caller under the same key.
        admin.with("idempotency-key", "k").post("/sites", &json!({ "name": "Branch" })).await.expect_status(422);
        caller.with("x-api-key", "hdl_x").get("/auth/me").await.expect_status(401);
    }
}

/// Another process took the grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_is_felt_in_every_process() {
    let Some(database) = Database::postgres().await else { return };
    let Database::Postgres(url) = &database else { panic!("it is PostgreSQL") };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = Process::start(folders[0].path(), &database, &Options::default()).await;
    let two = Process::start(folders[1].path(), &database, &Options::default()).await;
    let body = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    let admin = one.api.post("/setup/complete", &body).await.expect_status(201).body;
    let admin = one.api.with_token(text(&admin, "access_token"));
    let app = super::register_as(&admin, "public", &["device:read"]).await;
    let tokens = allowed(&one.api, &admin, &app).await;
    let (at_one, at_two) = (
        one.api.with_token(text(&tokens, "access_token")),
        two.api.with_token(text(&tokens, "access_token")),
    );
    for api in [&at_one, &at_two] {
        api.get("/devices").await.expect_status(200);
    }
    let db = Db::open(url, &PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(10) })
        .await
        .unwrap();
    let mut tx = db.write().await.unwrap();
    let grants = admin.get("/oauth2/grants").await.expect_status(200).body;
    let grant = text(&grants["items"][0], "id").parse().unwrap();
    assert!(oauth2::revoke(&mut tx, grant, heddle_core::Clock::default().now()).await.unwrap());
    tx.commit().await.unwrap();
    for api in [&at_one, &at_two] {
        until("the token is refused", async || api.get("/devices").await.status == 401).await;
    }
}

/// Tokens for a public app, allowed with a bearer session: it proves the same person as the cookie.
async fn allowed(nobody: &Api, admin: &Api, app: &App) -> Value {
    let path = app.request(&[]).replace("/api/v1", "");
    let page = admin.get(&path).await.expect_status(200);
    let shown = super::browser::form_of(&page);
    let mut fields: Vec<(&str, &str)> = shown.hidden.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    fields.push(("decision", "allow"));
    #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
    let http =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let sent = http.post(format!("{}{}", admin.base(), shown.action)).bearer_auth(admin.token());
    let sent = sent.header("content-type", FORM).body(super::form(&fields)).send().await.unwrap();
    let code = parameter(sent.headers()["location"].to_str().unwrap(), "code").unwrap();
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", super::CALLBACK),
        ("code_verifier", super::VERIFIER),
        ("client_id", app.id.as_str()),
    ];
    let bytes = super::form(&fields).into_bytes();
    nobody.with("content-type", FORM).send("POST", "/oauth2/token", Some(bytes)).await.expect_status(200).body
}
