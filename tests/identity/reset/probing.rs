//! What a stranger learns by asking, how often they may ask, and what is kept of a link.

use chrono::TimeDelta;
use heddle_core::Role;
use heddle_store::users::{self, NewUser};
use serde_json::json;

use super::{NEW, add_user, ask, reset, try_login};
use crate::support::smtp::{Mode, Smtp};
use crate::support::trace::Log;
use crate::support::{Answer, Options, PASSWORD, Server, on_both};

/// The answer without what differs between any two requests.
fn plain(answer: &Answer) -> (u16, String, Vec<String>) {
    let differing = ["date", "x-request-id", "x-response-time"];
    let headers = answer.headers.iter().filter(|(name, _)| !differing.contains(&name.as_str()));
    let mut headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value:?}")).collect();
    headers.sort();
    (answer.status, answer.text.clone(), headers)
}

on_both! {
    async fn a_stranger_learns_nothing_by_asking(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let mut server = Server::start_with(database, smtp.options()).await;
        let admin = server.set_up().await;
        for name in ["known", "locked", "disabled", "removed"] {
            let id = add_user(&admin, name).await;
            match name {
                "locked" => for _ in 0..5 {
                    try_login(&server, name, "Wrong-Horse-7-Battery").await.expect_status(401);
                },
                "disabled" => drop(admin.patch(&format!("/users/{id}"), &json!({ "is_active": false })).await.expect_status(200)),
                "removed" => drop(admin.delete(&format!("/users/{id}")).await.expect_status(204)),
                _ => {}
            }
        }
        add_sso_user(&server).await;
        let first = plain(&ask(&server.nobody(), "known@acme.test").await.expect_status(202));
        for name in ["unknown", "locked", "disabled", "removed", "sso", "known"] {
            let answer = ask(&server.nobody(), &format!("{name}@acme.test")).await;
            assert_eq!(plain(&answer), first, "{name}");
        }
        // A user name is no address; what is none is refused for its form alone.
        ask(&server.nobody(), "known").await.expect_status(422);
        // The stop waits for all that was begun.
        server.stop().await;
        let mut to: Vec<String> = smtp.mails().into_iter().flat_map(|mail| mail.to).collect();
        to.sort();
        assert_eq!(to, ["known@acme.test", "known@acme.test", "locked@acme.test"]);
    }
}

/// Adds a user who logs in elsewhere and has no password here.
async fn add_sso_user(server: &Server) {
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let org_id = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap().user.org_id;
    let new = NewUser {
        id: app.clock.new_id(),
        org_id,
        username: "sso".to_owned(),
        email: "sso@acme.test".to_owned(),
        full_name: None,
        password_hash: String::new(),
        role: Role::Viewer,
        now: app.clock.now(),
    };
    users::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn one_address_asks_five_times_an_hour(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let server = Server::start_with(database, smtp.options()).await;
        server.set_up().await;
        let clock = &server.running().app.clock;
        let api = server.nobody().at_ip("203.0.113.7");
        for (number, email) in ["a@x.test", "ada@acme.test", "b@x.test", "c@x.test", "d@x.test"].iter().enumerate() {
            if number == 3 {
                // Past the limit of the minute.
                clock.advance(TimeDelta::minutes(2));
            }
            ask(&api, email).await.expect_status(202);
        }
        clock.advance(TimeDelta::minutes(2));
        for email in ["ada@acme.test", "nobody@x.test"] {
            let refused = ask(&api, email).await.expect_status(429);
            assert_eq!(refused.body, json!({ "detail": "Rate limit exceeded", "retry_after": 3600 }));
            assert_eq!(refused.header("retry-after"), "3600");
        }
        ask(&server.nobody().at_ip("203.0.113.8"), "ada@acme.test").await.expect_status(202);
        clock.advance(TimeDelta::hours(2));
        ask(&api, "nobody@x.test").await.expect_status(202);
    }
}

on_both! {
    async fn one_mailbox_gets_three_mails_an_hour_and_nobody_is_told(database: Database) {
        let smtp = Smtp::start(Mode::Plain);
        let mut server = Server::start_with(database, smtp.options()).await;
        let admin = server.set_up().await;
        add_user(&admin, "grace").await;
        let mut answers = Vec::new();
        // In whatever case it is written, and from wherever it is asked.
        for email in ["grace@acme.test", "GRACE@acme.test", "grace@ACME.test", "grace@acme.test", "Grace@Acme.Test"] {
            answers.push(plain(&ask(&server.nobody(), email).await.expect_status(202)));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        ask(&server.nobody(), "ada@acme.test").await.expect_status(202);
        server.stop().await;
        let to: Vec<String> = smtp.mails().into_iter().flat_map(|mail| mail.to).collect();
        assert_eq!(to.iter().filter(|to| *to == "grace@acme.test").count(), 3, "{to:?}");
        assert_eq!(to.len(), 4, "{to:?}");
    }
}

on_both! {
    async fn no_link_and_no_password_is_kept_or_told(database: Database) {
        let log = Log::listen();
        let smtp = Smtp::start(Mode::StartTls);
        let mut server = Server::start_with(database, smtp.options()).await;
        let admin = server.set_up().await;
        add_user(&admin, "grace").await;
        let token = {
            ask(&server.nobody(), "grace@acme.test").await.expect_status(202);
            let mail = smtp.mail(1).await;
            reset(&server.nobody(), mail.token(), "weak-canary").await.expect_status(422);
            mail.token().to_owned()
        };
        // While the link is good.
        let stored = files(&server);
        reset(&server.nobody(), &token, NEW).await.expect_status(204);
        let refused = reset(&server.nobody(), &token, "Spent-Canary-77").await.expect_status(400);
        let audit = admin.get("/audit?per_page=200").await.expect_status(200);
        let events = admin.get("/events?per_page=200").await.expect_status(200);
        server.stop().await;
        let canaries = [token.as_str(), NEW, "weak-canary", "Spent-Canary-77", Smtp::password()];
        let mut places = vec![
            ("the audit log".to_owned(), audit.text.into_bytes()),
            ("the events".to_owned(), events.text.into_bytes()),
            ("an error".to_owned(), refused.text.into_bytes()),
            ("the log".to_owned(), log.bytes()),
        ];
        places.extend(stored);
        places.extend(files(&server));
        for (place, text) in places {
            assert!(!text.is_empty(), "{place} is empty");
            for canary in canaries {
                let found = text.windows(canary.len()).any(|window| window == canary.as_bytes());
                assert!(!found, "'{canary}' is in {place}");
            }
        }
    }
}

/// What lies on the disk, the write-ahead log included.
fn files(server: &Server) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(server.folder().join("data")).unwrap().flatten();
    let read = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        std::fs::read(entry.path()).ok().filter(|bytes| !bytes.is_empty()).map(|bytes| (name, bytes))
    });
    read.collect()
}

on_both! {
    async fn while_requests_cannot_be_counted_nobody_asks(database: Database) {
        let mut redis = crate::support::Redis::start();
        let options = Options::default().with("CACHE_URL", redis.url());
        let server = Server::start_with(database, options).await;
        server.set_up().await;
        ask(&server.nobody(), "ada@acme.test").await.expect_status(202);
        redis.kill();
        ask(&server.nobody(), "ada@acme.test").await.expect_status(503);
        // A user who has a link may use it.
        reset(&server.nobody(), "none", PASSWORD).await.expect_status(400);
    }
}
