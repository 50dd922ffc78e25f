use chrono::TimeDelta;
use futures::StreamExt as _;
use futures::stream;
use heddle_core::Role;
use serde_json::{Value, json};
use totp_rs::{Algorithm, Builder, Secret, Totp};

use crate::support::{Answer, Api, Database, Options, PASSWORD, Process, Server, on_both};

/// The app on a user's phone, the secret in it, and the code that it was set up with.
pub(crate) struct Phone(Totp, String, String);

impl Phone {
    fn of(secret_base32: &str) -> Self {
        let secret = Secret::try_from_base32(secret_base32).expect("the secret is base 32");
        let builder = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6).with_step_duration(30);
        let totp = builder.with_secret(secret).with_account_name("ada").build();
        Self(totp.expect("the secret is long enough"), secret_base32.to_owned(), String::new())
    }

    pub(crate) fn secret(&self) -> &str {
        &self.1
    }

    pub(crate) fn code(&self, server: &Server) -> String {
        let now = server.running().app.clock.now().timestamp();
        self.0.generate(u64::try_from(now).expect("after 1970")).to_string()
    }
}

/// The code of this secret by the system's clock, which server processes go by.
pub(crate) fn code_now(secret_base32: &str) -> String {
    let now = u64::try_from(heddle_core::Clock::default().now().timestamp()).expect("after 1970");
    Phone::of(secret_base32).0.generate(now).to_string()
}

/// Sets codes up for the caller: their phone, the backup codes, and a client of the session that is left.
pub(crate) async fn enrol(server: &Server, api: &Api) -> (Phone, Vec<String>, Api) {
    let staged = api.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
    let mut phone = Phone::of(staged["secret"].as_str().unwrap());
    phone.2 = phone.code(server);
    let enabled = api.post("/auth/mfa/enable", &json!({ "code": phone.2 })).await.expect_status(200).body;
    let codes = enabled["backup_codes"].as_array().unwrap().iter();
    let codes = codes.map(|code| code.as_str().unwrap().to_owned()).collect();
    let left = server.nobody().with_token(enabled["access_token"].as_str().unwrap());
    (phone, codes, left)
}

/// The proof of the first factor.
pub(super) async fn first_factor(server: &Server) -> String {
    let login = json!({ "login": "ada", "password": PASSWORD });
    let answer = server.nobody().post("/auth/login", &login).await.expect_status(200);
    assert_eq!(answer.body["require_mfa"], true);
    assert!(
        answer.body.get("access_token").is_none() && answer.header("set-cookie").is_empty(),
        "{}",
        answer.text
    );
    answer.body["mfa_token"].as_str().unwrap().to_owned()
}

async fn second_factor(server: &Server, mfa_token: &str, code: &str) -> Answer {
    server.nobody().post("/auth/login/mfa", &json!({ "mfa_token": mfa_token, "code": code })).await
}

pub(super) fn next_step(server: &Server) {
    server.running().app.clock.advance(TimeDelta::seconds(30));
}

on_both! {
    async fn a_login_needs_the_code_and_each_code_is_good_for_one(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let other = server.log_in("ada").await;
        let staged = admin.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
        assert!(staged["qr_svg"].as_str().unwrap().starts_with("<?xml"));
        assert!(staged["otpauth_uri"].as_str().unwrap().starts_with("otpauth://totp/"));
        let wrong = admin.post("/auth/mfa/enable", &json!({ "code": "000000" })).await.expect_status(422);
        assert_eq!(wrong.body["error"]["details"][0]["field"], "/code");
        // Staged is not enabled.
        server.log_in("ada").await;
        let (phone, codes, left) = enrol(&server, &admin).await;
        assert_eq!(codes.len(), 10);
        assert!(codes.iter().all(|code| code.len() == 8 && code.chars().all(|c| c.is_ascii_hexdigit())), "{codes:?}");
        // Every older session ended; the one that the answer brought is good.
        for ended in [&admin, &other] {
            ended.get("/auth/me").await.expect_status(401);
        }
        assert_eq!(left.get("/auth/me").await.expect_status(200).body["mfa_enabled"], true);
        left.post("/auth/mfa/setup", &json!({})).await.expect_status(409);

        let token = first_factor(&server).await;
        // The proof of the first factor opens nothing by itself.
        server.nobody().with_token(&token).get("/auth/me").await.expect_status(401);
        second_factor(&server, left.token(), "123456").await.expect_status(401);
        // Used already, whatever the time is by now.
        second_factor(&server, &token, &phone.2).await.expect_status(401);
        next_step(&server);
        let code = phone.code(&server);
        let opened = second_factor(&server, &token, &code).await.expect_status(200);
        assert_eq!(opened.headers.get_all("set-cookie").iter().count(), 3);
        assert_eq!(opened.body["user"]["mfa_enabled"], true);
        second_factor(&server, &token, &code).await.expect_status(401);
        // With a space, as apps show it; and the one of the step before, which was not used, is too late then.
        next_step(&server);
        let unused = phone.code(&server);
        next_step(&server);
        let code = phone.code(&server);
        let typed = format!("{} {}", &code[..3], &code[3..]);
        second_factor(&server, &first_factor(&server).await, &typed).await.expect_status(200);
        second_factor(&server, &first_factor(&server).await, &unused).await.expect_status(401);
        let audit = left.get("/audit?action=user.login&per_page=1").await;
        assert_eq!(audit.expect_status(200).body["items"][0]["detail"]["second_factor"], "totp");
    }
}

on_both! {
    async fn a_backup_code_is_good_once_and_can_be_replaced(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (phone, codes, left) = enrol(&server, &admin).await;
        let shouted = format!("{}-{}", &codes[0][..4], &codes[0][4..]).to_uppercase();
        second_factor(&server, &first_factor(&server).await, &shouted).await.expect_status(200);
        second_factor(&server, &first_factor(&server).await, &codes[0]).await.expect_status(401);
        let status = left.get("/auth/mfa").await.expect_status(200).body;
        assert_eq!(status, json!({ "enabled": true, "backup_codes_left": 9 }));
        left.post("/auth/mfa/backup-codes", &json!({ "code": "00000000" })).await.expect_status(422);
        next_step(&server);
        let renewed = left.post("/auth/mfa/backup-codes", &json!({ "code": phone.code(&server) })).await;
        let renewed = renewed.expect_status(200).body["backup_codes"].as_array().unwrap().clone();
        assert_eq!(renewed.len(), 10);
        second_factor(&server, &first_factor(&server).await, &codes[1]).await.expect_status(401);
        let fresh = renewed[3].as_str().unwrap();
        second_factor(&server, &first_factor(&server).await, fresh).await.expect_status(200);
    }
}

on_both! {
    async fn wrong_codes_lock_the_account(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (phone, _, _) = enrol(&server, &admin).await;
        next_step(&server);
        let token = first_factor(&server).await;
        for _ in 0..5 {
            second_factor(&server, &token, "000000").await.expect_status(401);
        }
        second_factor(&server, &token, &phone.code(&server)).await.expect_status(423);
        let login = json!({ "login": "ada", "password": PASSWORD });
        server.nobody().post("/auth/login", &login).await.expect_status(423);
        // A good first factor does not make the failures of the second one forgotten.
        server.running().app.clock.advance(TimeDelta::minutes(31));
        for _ in 0..4 {
            second_factor(&server, &first_factor(&server).await, "000000").await.expect_status(401);
        }
        let token = first_factor(&server).await;
        second_factor(&server, &token, "000000").await.expect_status(401);
        second_factor(&server, &token, &phone.code(&server)).await.expect_status(423);
    }
}

on_both! {
    async fn a_proof_of_the_first_factor_is_good_for_five_minutes_and_dies_with_the_tokens(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (phone, _, left) = enrol(&server, &admin).await;
        let stale = first_factor(&server).await;
        server.running().app.clock.advance(TimeDelta::seconds(301));
        let refused = second_factor(&server, &stale, &phone.code(&server)).await.expect_status(401);
        assert_eq!(refused.message(), "token is expired");
        let before = first_factor(&server).await;
        left.post("/auth/logout-all", &json!({})).await.expect_status(204);
        second_factor(&server, &before, &phone.code(&server)).await.expect_status(401);
    }
}

on_both! {
    async fn disabling_ends_the_sessions_and_the_question(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (phone, codes, left) = enrol(&server, &admin).await;
        let proof = first_factor(&server).await;
        let answer = left.post("/auth/mfa/disable", &json!({})).await.expect_status(200).body;
        left.get("/auth/me").await.expect_status(401);
        let left = server.nobody().with_token(answer["access_token"].as_str().unwrap());
        assert_eq!(left.get("/auth/me").await.expect_status(200).body["mfa_enabled"], false);
        next_step(&server);
        for code in [phone.code(&server), codes[0].clone()] {
            second_factor(&server, &proof, &code).await.expect_status(401);
        }
        server.log_in("ada").await;
        // It can be set up again, with another secret.
        enrol(&server, &left).await;
    }
}

on_both! {
    async fn only_the_user_themself_sets_codes_up_and_no_key_does(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let holder = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        for path in ["/auth/mfa/setup", "/auth/mfa/disable"] {
            assert_eq!(holder.post(path, &json!({})).await.expect_status(403).error_type(), "session_required");
        }
        for path in ["/auth/mfa/enable", "/auth/mfa/backup-codes"] {
            let answer = holder.post(path, &json!({ "code": "123456" })).await.expect_status(403);
            assert_eq!(answer.error_type(), "session_required");
        }
        // The password grant has no place for a code, and says so only to a client that knows the password.
        enrol(&server, &admin).await;
        let sender = server.nobody().with("content-type", "application/x-www-form-urlencoded");
        for (password, status) in [(PASSWORD, 400), ("Wrong-Horse-7-x", 401)] {
            let form = format!("grant_type=password&username=ada&password={password}").into_bytes();
            sender.send("POST", "/auth/token", Some(form)).await.expect_status(status);
        }
    }
}

#[tokio::test]
async fn where_codes_cannot_be_trusted_nobody_sets_them_up_and_all_can_be_taken_away() {
    let options = Options::default().with("MFA_ENROLMENT", "false");
    let server = Server::start_with(Database::sqlite(), options).await;
    let admin = server.set_up().await;
    for (path, body) in [("/auth/mfa/setup", json!({})), ("/auth/mfa/enable", json!({ "code": "123456" }))] {
        assert_eq!(admin.post(path, &body).await.expect_status(501).error_type(), "not_implemented");
    }
    admin.post("/auth/mfa/disable", &json!({})).await.expect_status(200);
}

on_both! {
    async fn of_many_who_show_one_code_at_once_one_gets_in(database: Database) {
        let server = Server::start_with(database, crate::surface::unlimited()).await;
        let admin = server.set_up().await;
        let (phone, codes, _) = enrol(&server, &admin).await;
        next_step(&server);
        let app = &server.running().app;
        for code in [phone.code(&server), codes[0].clone()] {
            let token = first_factor(&server).await;
            let statuses = race(&[server.nobody()], &token, &code).await;
            assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
            // The requests that lost the race failed, and the account is locked; nothing else is.
            assert!(statuses.iter().all(|status| matches!(status, 200 | 401 | 423)), "{statuses:?}");
            app.clock.advance(TimeDelta::minutes(31));
        }
    }
}

/// The statuses of a thousand uses of one code, spread over these servers.
async fn race(servers: &[Api], mfa_token: &str, code: &str) -> Vec<u16> {
    let body = json!({ "mfa_token": mfa_token, "code": code });
    let tries = (0..1_000).map(|n| {
        let (api, body) = (servers[n % servers.len()].clone(), body.clone());
        async move { api.post("/auth/login/mfa", &body).await.status }
    });
    stream::iter(tries).buffer_unordered(64).collect().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_uses_of_a_backup_code_at_two_processes_one_gets_in() {
    let Some(database) = Database::postgres().await else { return };
    let options = crate::surface::unlimited();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = Process::start(folders[0].path(), &database, &options).await;
    let two = Process::start(folders[1].path(), &database, &options).await;
    let (proof, codes) = proved(&one.api).await;
    let servers = [one.api.clone(), two.api.clone()];
    let statuses = race(&servers, &proof, &codes[0]).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1);
    assert!(statuses.iter().all(|status| matches!(status, 200 | 401 | 423)), "{statuses:?}");
}

on_both! {
    /// Neither the audit trail nor the events nor a list say a secret of the second factor.
    async fn no_code_and_no_secret_is_told_anywhere(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (phone, codes, left) = enrol(&server, &admin).await;
        next_step(&server);
        let token = first_factor(&server).await;
        let code = phone.code(&server);
        second_factor(&server, &first_factor(&server).await, &codes[1]).await.expect_status(200);
        let opened = second_factor(&server, &token, &code).await.expect_status(200);
        let mut told = String::new();
        for path in ["/audit?per_page=200", "/events?per_page=200", "/users", "/auth/sessions"] {
            told.push_str(&left.get(path).await.expect_status(200).text);
        }
        let refresh = opened.body["refresh_token"].as_str().unwrap().to_owned();
        let secret = phone.0.secret().to_base32();
        for secret in codes.iter().chain([&token, &refresh, &secret, &PASSWORD.to_owned()]) {
            assert!(!told.contains(secret.as_str()), "{secret} is told");
        }
        let users: Value = left.get("/users").await.body;
        assert_eq!(users["items"][0]["mfa_enabled"], true);
        assert_eq!(users["items"][0]["role"], Role::SuperAdmin.to_string());
    }
}

/// The statuses of logins that show one proof of the first factor, each with another code.
async fn with_codes(servers: &[Api], mfa_token: &str, codes: &[String]) -> Vec<u16> {
    let tries = codes.iter().enumerate().map(|(n, code)| {
        let body = json!({ "mfa_token": mfa_token, "code": code });
        let api = servers[n % servers.len()].clone();
        async move { api.post("/auth/login/mfa", &body).await.status }
    });
    futures::future::join_all(tries).await
}

on_both! {
    async fn a_proof_of_the_first_factor_opens_one_session(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (_, codes, left) = enrol(&server, &admin).await;
        let token = first_factor(&server).await;
        let mut statuses = with_codes(&[server.nobody()], &token, &codes[..4]).await;
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 401, 401, 401]);
        let late = second_factor(&server, &token, &codes[4]).await.expect_status(401);
        assert!(late.message().contains("mfa_token"), "{}", late.text);
        // The codes of those who came too late are not spent, and a new proof is good.
        let status = left.get("/auth/mfa").await.expect_status(200).body;
        assert_eq!(status["backup_codes_left"], 9, "{status}");
        second_factor(&server, &first_factor(&server).await, &codes[4]).await.expect_status(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_of_the_first_factor_opens_one_session_at_two_processes() {
    let Some(database) = Database::postgres().await else { return };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = Process::start(folders[0].path(), &database, &Options::default()).await;
    let two = Process::start(folders[1].path(), &database, &Options::default()).await;
    let (proof, codes) = proved(&one.api).await;
    let statuses = with_codes(&[one.api.clone(), two.api.clone()], &proof, &codes).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
}

/// A first administrator with a second factor: the proof of the first one, and the backup codes.
async fn proved(api: &Api) -> (String, Vec<String>) {
    let body = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    let admin = api.post("/setup/complete", &body).await.expect_status(201).body;
    let admin = api.with_token(admin["access_token"].as_str().unwrap());
    let staged = admin.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
    let code = code_now(staged["secret"].as_str().unwrap());
    let enabled = admin.post("/auth/mfa/enable", &json!({ "code": code })).await.expect_status(200).body;
    let codes = enabled["backup_codes"].as_array().unwrap().iter();
    let login = json!({ "login": "ada", "password": PASSWORD });
    let proof = api.post("/auth/login", &login).await.expect_status(200).body;
    let codes = codes.map(|code| code.as_str().unwrap().to_owned()).collect();
    (proof["mfa_token"].as_str().unwrap().to_owned(), codes)
}
