//! Ways back into an account from the host.

use serde_json::{Value, json};

use super::{Ran, run};
use crate::identity::mfa::code_now;
use crate::support::{Api, Options, PASSWORD, Process, on_both};

const NEW_PASSWORD: &str = "Another-Horse-8-Battery";

async fn try_log_in(api: &Api, password: &str) -> crate::support::Answer {
    api.post("/auth/login", &json!({ "login": "ada", "password": password })).await
}

async fn audited(api: &Api, action: &str) -> Value {
    let page = api.get(&format!("/audit?action={action}")).await.expect_status(200).body;
    page["items"][0].clone()
}

on_both! {
    async fn the_operator_lets_a_sole_administrator_in_again(database: Database) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default();
        let mut process = Process::start(folder.path(), &database, &options).await;
        let heddle = |arguments: &[&str]| -> Ran { run(folder.path(), &database, &options, arguments) };
        let nobody = process.api.clone();
        let setup = json!({
            "organization": { "name": "Acme" },
            "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
        });
        let admin = nobody.post("/setup/complete", &setup).await.expect_status(201).body;
        let admin = nobody.with_token(admin["access_token"].as_str().unwrap());
        let staged = admin.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
        let code = code_now(staged["secret"].as_str().unwrap());
        let enabled = admin.post("/auth/mfa/enable", &json!({ "code": code })).await.expect_status(200).body;
        let session = nobody.with_token(enabled["access_token"].as_str().unwrap());
        assert_eq!(try_log_in(&nobody, PASSWORD).await.expect_status(200).body["require_mfa"], true);

        // While the server runs.
        heddle(&["user", "reset-mfa", "nobody"]).expect_failure(&["no user", "'nobody'"]);
        let said = heddle(&["user", "reset-mfa", "ADA@acme.test"]).expect_ok();
        assert!(said.out.contains("user 'ada' has no second factor any more"), "{said:?}");
        heddle(&["user", "reset-mfa", "ada"]).expect_failure(&["has no second factor"]);
        for _ in 0..300 {
            if session.get("/auth/me").await.status == 401 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        session.get("/auth/me").await.expect_status(401);
        let opened = try_log_in(&nobody, PASSWORD).await.expect_status(200).body;
        let admin = nobody.with_token(opened["access_token"].as_str().expect("the password is enough"));
        let entry = audited(&admin, "user.mfa_reset").await;
        assert_eq!((&entry["actor_name"], &entry["actor_id"]), (&json!("operator of the host"), &Value::Null));

        for _ in 0..6 {
            try_log_in(&nobody, "Wrong-Horse-7-x").await;
        }
        try_log_in(&nobody, PASSWORD).await.expect_status(423);
        assert!(heddle(&["user", "unlock", "ada"]).expect_ok().out.contains("is unlocked"));
        try_log_in(&nobody, PASSWORD).await.expect_status(200);
        assert_eq!(audited(&admin, "user.unlocked").await["detail"]["was_locked"], true);

        // While it does not run; the link is used when it runs again.
        process.kill();
        let said = heddle(&["user", "reset-password", "ada"]).expect_ok();
        let (_, token) = said.out.split_once("#token=").expect("a link is printed");
        let token = token.split_whitespace().next().unwrap().to_owned();
        let process = Process::start(folder.path(), &database, &options).await;
        let body = json!({ "token": token, "new_password": NEW_PASSWORD });
        process.api.post("/auth/password/reset", &body).await.expect_status(204);
        process.api.post("/auth/password/reset", &body).await.expect_status(400);
        try_log_in(&process.api, PASSWORD).await.expect_status(401);
        let opened = try_log_in(&process.api, NEW_PASSWORD).await.expect_status(200).body;
        let admin = process.api.with_token(opened["access_token"].as_str().unwrap());
        let entry = audited(&admin, "user.password_reset_requested").await;
        assert_eq!(entry["actor_name"], "operator of the host");
        assert_eq!(admin.get("/audit/validate").await.expect_status(200).body["valid"], true);
    }
}
