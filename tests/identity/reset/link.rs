//! What a link does, when it is good, and that it is good once.

use chrono::TimeDelta;
use heddle_store::second_factors;
use serde_json::json;

use super::{NEW, add_user, ask, body, reset, try_login};
use crate::support::smtp::{Mode, Smtp};
use crate::support::{Api, Database, Options, PASSWORD, Process, Server, Socket, on_both};

/// As many as come with one link at once.
const CROWD: usize = 1_000;

on_both! {
    async fn the_link_sets_a_new_password_and_ends_what_the_old_one_gave(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        let admin = server.set_up().await;
        let id = add_user(&admin, "grace").await;
        let mut socket = Socket::subscribe(&admin, &["user.updated"]).await;
        let session = server.log_in("grace").await;
        let key = session.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let key = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        for _ in 0..5 {
            try_login(&server, "grace", "Wrong-Horse-7-Battery").await.expect_status(401);
        }
        try_login(&server, "grace", PASSWORD).await.expect_status(423);

        let nobody = server.nobody();
        let asked = ask(&nobody, "GRACE@acme.test").await.expect_status(202);
        assert!(asked.body["message"].as_str().unwrap().starts_with("if an account has this email"));
        let mail = smtp.mail(1).await;
        let answer = reset(&nobody, mail.token(), NEW).await.expect_status(204);
        assert!(answer.headers.get("set-cookie").is_none(), "a link does not log in");
        session.get("/auth/me").await.expect_status(401);
        key.get("/auth/me").await.expect_status(401);
        try_login(&server, "grace", PASSWORD).await.expect_status(401);
        try_login(&server, "grace", NEW).await.expect_status(200);

        let again = reset(&nobody, mail.token(), "Yet-Another-9-Donkey").await.expect_status(400);
        assert_eq!(again.error_type(), "reset_token_invalid");
        let event = socket.event("user.updated").await;
        assert_eq!(event["payload"]["user_id"], json!(id), "{event}");
        let audit = admin.get("/audit?per_page=200").await.expect_status(200).body;
        let actions: Vec<&str> = audit["items"].as_array().unwrap().iter().filter_map(|e| e["action"].as_str()).collect();
        for action in ["user.password_reset_requested", "user.password_reset"] {
            assert!(actions.contains(&action), "{action}: {actions:?}");
        }
    }
}

on_both! {
    async fn a_password_that_does_not_fit_does_not_spend_the_link(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        add_user(&server.set_up().await, "grace").await;
        let nobody = server.nobody();
        ask(&nobody, "grace@acme.test").await.expect_status(202);
        let mail = smtp.mail(1).await;
        for (password, kind) in [("weak", "too_short"), ("Say-gRaCe-12345", "contains_name")] {
            let refused = reset(&nobody, mail.token(), password).await.expect_status(422);
            let details = &refused.body["error"]["details"];
            assert_eq!((&details[0]["field"], &details[0]["type"]), (&json!("/new_password"), &json!(kind)));
        }
        reset(&nobody, mail.token(), NEW).await.expect_status(204);
    }
}

on_both! {
    async fn a_link_is_good_for_an_hour_and_dies_with_what_it_hangs_on(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        let admin = server.set_up().await;
        let clock = &server.running().app.clock;
        let nobody = server.nobody();
        for (number, name) in ["moved", "renewed", "changed", "disabled", "removed", "late"].iter().enumerate() {
            let id = add_user(&admin, name).await;
            ask(&nobody, &format!("{name}@acme.test")).await.expect_status(202);
            let mail = smtp.mail(number + 1).await;
            let path = format!("/users/{id}");
            match *name {
                "late" => clock.advance(TimeDelta::minutes(61)),
                "moved" => drop(admin.patch(&path, &json!({ "email": "elsewhere@acme.test" })).await.expect_status(200)),
                "renewed" => drop(admin.patch(&path, &json!({ "password": NEW })).await.expect_status(200)),
                "changed" => {
                    let change = json!({ "current_password": PASSWORD, "new_password": NEW });
                    let own = server.log_in(name).await;
                    own.post("/auth/password/change", &change).await.expect_status(200);
                }
                "disabled" => drop(admin.patch(&path, &json!({ "is_active": false })).await.expect_status(200)),
                _ => drop(admin.delete(&path).await.expect_status(204)),
            }
            let refused = reset(&nobody, mail.token(), "Yet-Another-9-Donkey").await.expect_status(400);
            assert_eq!(refused.error_type(), "reset_token_invalid", "{name}");
        }
        for token in ["", "x", &"A".repeat(43), &"A".repeat(4096)] {
            reset(&nobody, token, NEW).await.expect_status(400);
        }
        reset(&nobody, &"A".repeat(4097), NEW).await.expect_status(422);
    }
}

on_both! {
    async fn older_links_die_with_the_one_that_is_used(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        add_user(&server.set_up().await, "grace").await;
        let nobody = server.nobody();
        let mut mails = Vec::new();
        for number in 1..=3 {
            ask(&nobody, "grace@acme.test").await.expect_status(202);
            mails.push(smtp.mail(number).await);
        }
        reset(&nobody, mails[1].token(), NEW).await.expect_status(204);
        for mail in [&mails[0], &mails[1], &mails[2]] {
            reset(&nobody, mail.token(), "Yet-Another-9-Donkey").await.expect_status(400);
        }
        try_login(&server, "grace", NEW).await.expect_status(200);
    }
}

on_both! {
    async fn a_new_password_does_not_take_the_second_factor_away(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        let id = add_user(&server.set_up().await, "grace").await.parse().unwrap();
        let app = &server.running().app;
        let mut tx = app.db.write().await.unwrap();
        second_factors::stage(&mut tx, id, b"sealed", app.clock.now()).await.unwrap();
        assert!(second_factors::confirm(&mut tx, id, app.clock.now()).await.unwrap());
        tx.commit().await.unwrap();
        ask(&server.nobody(), "grace@acme.test").await.expect_status(202);
        reset(&server.nobody(), smtp.mail(1).await.token(), NEW).await.expect_status(204);
        let answer = try_login(&server, "grace", NEW).await.expect_status(200);
        assert_eq!(answer.body["require_mfa"], true, "{}", answer.text);
        assert!(answer.body["access_token"].is_null());
    }
}

/// Uses one link as often; every time with another password, so that the one that was taken is seen.
async fn crowd(apis: &[&Api], token: &str) -> Vec<(u16, String)> {
    let tries = (0..CROWD).map(|number| {
        let api = apis[number % apis.len()];
        let password = format!("Crowd-Member-{number:04}");
        async move { (api.post("/auth/password/reset", &body(token, &password)).await.status, password) }
    });
    futures::future::join_all(tries).await
}

#[track_caller]
fn the_one(outcomes: &[(u16, String)]) -> &str {
    let taken: Vec<&str> =
        outcomes.iter().filter(|(status, _)| *status == 204).map(|(_, p)| p.as_str()).collect();
    assert_eq!(taken.len(), 1, "{taken:?}");
    let other = outcomes.iter().map(|(status, _)| *status).find(|status| !matches!(status, 204 | 400 | 429));
    assert_eq!(other, None, "all others are told that the link is spent, or that too many came at once");
    taken[0]
}

on_both! {
    async fn of_a_thousand_who_come_with_one_link_one_sets_the_password(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        add_user(&server.set_up().await, "grace").await;
        ask(&server.nobody(), "grace@acme.test").await.expect_status(202);
        let mail = smtp.mail(1).await;
        let outcomes = crowd(&[&server.nobody()], mail.token()).await;
        try_login(&server, "grace", the_one(&outcomes)).await.expect_status(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_at_two_processes_one_sets_the_password() {
    let Some(database) = Database::postgres().await else { return };
    let smtp = Smtp::start(Mode::Plain);
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = Process::start(folder.path(), &database, &smtp.options()).await;
    let two = Process::start(other.path(), &database, &smtp.options()).await;
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    one.api.post("/setup/complete", &setup).await.expect_status(201);
    ask(&one.api, "ada@acme.test").await.expect_status(202);
    let mail = smtp.mail(1).await;
    let outcomes = crowd(&[&one.api, &two.api], mail.token()).await;
    let login = json!({ "login": "ada", "password": the_one(&outcomes) });
    two.api.post("/auth/login", &login).await.expect_status(200);
}

on_both! {
    async fn the_link_opens_a_page_that_sets_the_password(database: Database) {
        let server = Server::start_with(database, Options::default()).await;
        let nobody = server.nobody();
        let page = nobody.get_root("/reset-password").await.expect_status(200);
        assert!(page.header("content-type").starts_with("text/html"));
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"), "{policy}");
        assert!(page.text.contains("new-password") && !page.text.contains("<script>"));
        for (path, kind) in [("page.js", "text/javascript"), ("page.css", "text/css")] {
            assert!(page.text.contains(&format!("\"reset-password/{path}\"")), "{path} is of the page");
            let file = nobody.get_root(&format!("/reset-password/{path}")).await.expect_status(200);
            assert!(file.header("content-type").starts_with(kind), "{path}");
        }
    }
}
