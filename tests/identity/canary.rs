//! Nothing that proves the identity of a user is stored where others read: not in the log, the audit log or the events.

use serde_json::{Value, json};

use super::mfa::{enrol, first_factor, next_step};
use super::oauth2::{form, register, text};
use crate::support::trace::Log;
use crate::support::{Api, Database, PASSWORD, Server};

const NEW_PASSWORD: &str = "Canary-Fledged-7!";
const GUESS: &str = "Canary-Guess-3!x";

/// Everything that identity hands out or takes, once, with what went wrong in between.
///
/// Answers the secrets, and a client that is logged in at the end.
async fn live(server: &Server, admin: &Api) -> (Vec<(&'static str, String)>, Api) {
    let mut secrets = vec![("password", PASSWORD.to_owned()), ("guess", GUESS.to_owned())];
    let mut keep = |name: &'static str, value: &Value| {
        secrets.push((name, value.as_str().unwrap_or_else(|| panic!("{name}: {value}")).to_owned()));
    };
    let nobody = server.nobody();
    nobody.post("/auth/login", &json!({ "login": "ada", "password": GUESS })).await.expect_status(401);
    let granted = form(&[("grant_type", "password"), ("username", "ada"), ("password", PASSWORD)]);
    let formed = nobody.with("content-type", "application/x-www-form-urlencoded");
    let granted =
        formed.send("POST", "/auth/token", Some(granted.into_bytes())).await.expect_status(200).body;
    let fresh = json!({ "refresh_token": granted["refresh_token"] });
    let fresh = nobody.post("/auth/refresh", &fresh).await.expect_status(200).body;
    for tokens in [&granted, &fresh] {
        keep("access token", &tokens["access_token"]);
        keep("refresh token", &tokens["refresh_token"]);
    }
    let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
    keep("API key", &key["api_key"]);
    nobody.with("x-api-key", text(&key, "api_key")).get("/auth/me").await.expect_status(200);
    nobody.with("x-api-key", &format!("{}x", text(&key, "api_key"))).get("/auth/me").await.expect_status(401);
    let app = register(admin, &["device:read"]).await;
    keep("app secret", &json!(app.secret));
    let code = app.code(server, "ada").await;
    keep("authorization code", &json!(code));
    let tokens = app.exchange(server, &code).await.expect_status(200).body;
    app.exchange(server, &code).await.expect_status(400);
    keep("app access token", &tokens["access_token"]);
    keep("app refresh token", &tokens["refresh_token"]);
    let changed = json!({ "current_password": PASSWORD, "new_password": NEW_PASSWORD });
    let changed = admin.post("/auth/password/change", &changed).await.expect_status(200).body;
    keep("new password", &json!(NEW_PASSWORD));
    keep("access token after the change", &changed["access_token"]);
    let admin = nobody.with_token(text(&changed, "access_token"));
    let back = json!({ "current_password": NEW_PASSWORD, "new_password": PASSWORD });
    let back = admin.post("/auth/password/change", &back).await.expect_status(200).body;
    let (phone, backup, left) = enrol(server, &nobody.with_token(text(&back, "access_token"))).await;
    keep("session after enrolment", &json!(left.token()));
    let proof = first_factor(server).await;
    keep("first factor", &json!(proof));
    next_step(server);
    let wrong = json!({ "mfa_token": proof, "code": "00000000" });
    nobody.post("/auth/login/mfa", &wrong).await.expect_status(401);
    let by_backup = json!({ "mfa_token": proof, "code": backup[0] });
    nobody.post("/auth/login/mfa", &by_backup).await.expect_status(200);
    let proof = first_factor(server).await;
    let by_phone = json!({ "mfa_token": proof, "code": phone.code(server) });
    let opened = nobody.post("/auth/login/mfa", &by_phone).await.expect_status(200).body;
    keep("refresh token after both factors", &opened["refresh_token"]);
    for code in backup {
        keep("backup code", &json!(code));
    }
    keep("secret of the phone", &json!(phone.secret()));
    let reader = nobody.with_token(text(&opened, "access_token"));
    (secrets, reader)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_token_code_or_key_is_in_the_log_the_audit_log_or_the_events() {
    let server = Server::start(Database::sqlite()).await;
    let admin = server.set_up().await;
    let log = Log::listen();
    let (secrets, reader) = live(&server, &admin).await;
    let places = [
        ("log", String::from_utf8_lossy(&log.bytes()).into_owned()),
        ("audit log", reader.get("/audit?per_page=200").await.expect_status(200).text),
        ("events", reader.get("/events?per_page=200").await.expect_status(200).text),
    ];
    assert!(places[0].1.contains("/auth/login/mfa"), "the log was heard");
    assert!(places[1].1.contains("mfa"), "the audit log tells of it");
    for (place, text) in &places {
        for (name, secret) in &secrets {
            assert!(!text.contains(secret.as_str()), "{name} is in the {place}");
        }
    }
}
