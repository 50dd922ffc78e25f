//! A real directory: TLS, injection, empty passwords, and a directory that is away.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{add, audited, users, with};
use crate::support::slapd::{BASE_DN, BIND_DN, BIND_PASSWORD, Manners, Slapd};
use crate::support::trace::Log;
use crate::support::{Answer, Api, Server, on_both};

/// A directory as an administrator enters it, by LDAPS.
fn directory(slapd: &Slapd, changes: Value) -> Value {
    let settings = json!({
        "url": slapd.ldaps_url(), "tls": { "mode": "verify", "ca_pem": slapd.ca_pem },
        "bind_dn": BIND_DN, "base_dn": BASE_DN, "user_filter": "(|(uid={login})(cn={login}))",
        "group_attribute": "memberOf",
    });
    json!({
        "kind": "ldap", "label": "Directory", "allow_registration": true, "bind_password": BIND_PASSWORD,
        "role_mapping": { "Admins": "org_admin" }, "ldap": with(settings, changes),
    })
}

async fn sign_in(server: &Server, provider: &str, login: &str, password: &str) -> Answer {
    let body = json!({ "provider_id": provider, "login": login, "password": password });
    server.nobody().post("/auth/sso/ldap/authenticate", &body).await
}

async fn start(database: crate::support::Database) -> (Server, Api) {
    let server = Server::start(database).await;
    let admin = server.set_up().await;
    (server, admin)
}

on_both! {
    async fn a_person_signs_in_by_every_protected_way(database: Database) {
        let (server, admin) = start(database).await;
        let slapd = Slapd::start_with(Manners { requires_tls: true, ..Manners::default() });
        let ldaps = add(&admin, &directory(&slapd, json!({}))).await;
        let start_tls = add(&admin, &directory(&slapd, json!({ "url": slapd.ldap_url(), "start_tls": true }))).await;
        let answer = sign_in(&server, &ldaps, "Alice", "alice-secret").await.expect_status(200);
        let user = &answer.body["user"];
        assert_eq!((&user["username"], &user["email"]), (&json!("alice"), &json!("alice@example.test")));
        assert_eq!((&user["role"], &user["full_name"]), (&json!("org_admin"), &json!("Alice Example")));
        assert!(answer.headers.get_all("set-cookie").iter().count() == 3);
        assert_eq!(audited(&admin, "user.login").await[0]["detail"]["way"], "ldap");
        let again = sign_in(&server, &ldaps, "alice", "alice-secret").await.expect_status(200);
        assert_eq!(again.body["user"]["id"], user["id"]);
        // Another provider knows the same person as another identity: the email is taken.
        let refused = sign_in(&server, &start_tls, "alice", "alice-secret").await.expect_status(403);
        assert_eq!(refused.error_type(), "sso_not_linked");
        let bob = sign_in(&server, &start_tls, "bob", "bob-secret").await.expect_status(200);
        assert_eq!(bob.body["user"]["role"], "viewer");
        assert_eq!(users(&admin).await, 3);
        for id in [&ldaps, &start_tls] {
            let tested = admin.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200).body;
            assert_eq!(tested["ok"], true, "{tested}");
            let steps: Vec<&str> = tested["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
            assert_eq!(steps, ["connect", "tls", "bind", "search"]);
        }
        let slug = json!({ "organization_slug": "acme", "login": "alice", "password": "alice-secret" });
        server.nobody().post("/auth/sso/ldap/authenticate", &slug).await.expect_status(200);
        let nowhere = json!({ "organization_slug": "nowhere", "login": "alice", "password": "alice-secret" });
        server.nobody().post("/auth/sso/ldap/authenticate", &nowhere).await.expect_status(404);
    }
}

on_both! {
    async fn wrong_names_and_passwords_all_look_the_same(database: Database) {
        let (server, admin) = start(database).await;
        let slapd = Slapd::start();
        let id = add(&admin, &directory(&slapd, json!({}))).await;
        let mut answers = Vec::new();
        for (login, password) in [
            ("alice", "bob-secret"), ("nobody", "alice-secret"), ("*", "alice-secret"), ("a*", "alice-secret"),
            ("alice)(uid=*", "alice-secret"), (")(uid=*", "alice-secret"), ("*)(objectClass=*", "alice-secret"),
            ("alice\\00", "alice-secret"), ("\\2a", "alice-secret"), ("uid=alice,ou=people,dc=example,dc=test", "alice-secret"),
            ("alice", "*"), ("alice", ")(userPassword=*"), ("", "alice-secret"), ("alice", ""), ("", ""),
            ("search", "alice-secret"), ("alice", &"x".repeat(2000)), (&"x".repeat(256), "alice-secret"),
        ] {
            let answer = sign_in(&server, &id, login, password).await;
            assert_eq!(answer.status, 401, "{login} {password}: {}", answer.text);
            answers.push(answer.text.replace(answer.header("x-request-id"), "REQUEST"));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        // The character that ends a text elsewhere does not come so far.
        for (login, password) in [("alice\0", "alice-secret"), ("alice", "alice-secret\0")] {
            sign_in(&server, &id, login, password).await.expect_status(422);
        }
        sign_in(&server, &id, &"x".repeat(257), "alice-secret").await.expect_status(422);
        assert_eq!(users(&admin).await, 1);
        let entries = admin.get("/audit?per_page=200").await.expect_status(200).text;
        for canary in ["alice-secret", "bob-secret", BIND_PASSWORD] {
            assert!(!entries.contains(canary));
        }
        // A name with everything that a filter takes for its own is one person's.
        let bob = sign_in(&server, &id, "Bob (Ops) Example*", "bob-secret").await.expect_status(200);
        assert_eq!(bob.body["user"]["email"], "bob@example.test");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_of_a_sign_in_is_logged() {
    let (server, admin) = start(crate::support::Database::sqlite()).await;
    let slapd = Slapd::start();
    let log = Log::listen();
    let id = add(&admin, &directory(&slapd, json!({}))).await;
    sign_in(&server, &id, "alice", "alice-secret").await.expect_status(200);
    sign_in(&server, &id, "alice", "guess-canary-3Pv").await.expect_status(401);
    let wrong = with(directory(&slapd, json!({})), json!({ "bind_password": "wrong-canary-7Yh" }));
    let wrong = add(&admin, &wrong).await;
    sign_in(&server, &wrong, "alice", "alice-secret").await.expect_status(502);
    let text = String::from_utf8_lossy(&log.bytes()).into_owned();
    assert!(
        text.contains("does not accept the search account's name and password"),
        "administrators are told"
    );
    for secret in [BIND_PASSWORD, "alice-secret", "guess-canary-3Pv", "wrong-canary-7Yh"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

on_both! {
    async fn an_empty_password_never_reaches_a_directory_that_would_accept_it(database: Database) {
        let (server, admin) = start(database).await;
        let slapd = Slapd::start_with(Manners { accepts_empty: true, ..Manners::default() });
        let id = add(&admin, &directory(&slapd, json!({}))).await;
        sign_in(&server, &id, "alice", "").await.expect_status(401);
        assert_eq!(audited(&admin, "sso.refused").await[0]["detail"]["reason"], "empty");
        sign_in(&server, &id, "alice", "wrong").await.expect_status(401);
        assert_eq!(audited(&admin, "sso.refused").await[0]["detail"]["reason"], "password");
        sign_in(&server, &id, "alice", "alice-secret").await.expect_status(200);
    }
}

on_both! {
    async fn a_name_that_two_have_is_nobodys(database: Database) {
        let (server, admin) = start(database).await;
        let slapd = Slapd::start();
        let id = add(&admin, &directory(&slapd, json!({ "user_filter": "(|(uid={login})(sn={login}))" }))).await;
        sign_in(&server, &id, "Example", "alice-secret").await.expect_status(401);
        assert_eq!(audited(&admin, "sso.refused").await[0]["detail"]["reason"], "ambiguous_name");
        sign_in(&server, &id, "alice", "alice-secret").await.expect_status(200);
    }
}

on_both! {
    async fn groups_are_found_by_a_filter_too(database: Database) {
        let (server, admin) = start(database).await;
        let slapd = Slapd::start();
        let by_filter = json!({ "group_attribute": null, "group_filter": "(&(objectClass=groupOfNames)(member={dn}))" });
        let id = add(&admin, &directory(&slapd, by_filter)).await;
        let alice = sign_in(&server, &id, "alice", "alice-secret").await.expect_status(200);
        assert_eq!(alice.body["user"]["role"], "org_admin");
        let bob = sign_in(&server, &id, "bob", "bob-secret").await.expect_status(200);
        assert_eq!(bob.body["user"]["role"], "viewer");
    }
}

on_both! {
    async fn certificates_of_others_and_plain_connections_are_refused(database: Database) {
        let (server, admin) = start(database).await;
        let (slapd, other) = (Slapd::start(), Slapd::start());
        let wrong_ca = json!({ "tls": { "mode": "verify", "ca_pem": other.ca_pem } });
        for changes in [
            wrong_ca.clone(),
            with(wrong_ca, json!({ "url": slapd.ldap_url(), "start_tls": true })),
            json!({ "tls": { "mode": "verify" } }),
            json!({ "tls": { "mode": "pin", "fingerprint": "ab".repeat(32) } }),
        ] {
            let id = add(&admin, &directory(&slapd, changes)).await;
            let answer = sign_in(&server, &id, "alice", "alice-secret").await.expect_status(502);
            assert_eq!(answer.error_type(), "identity_provider_unreachable");
            let tested = admin.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200).body;
            assert_eq!((&tested["ok"], &tested["failed_step"]), (&json!(false), &json!("tls")), "{tested}");
            assert!(tested["steps"][1]["error"]["message"].as_str().unwrap().contains("SHA-256 fingerprint"), "{tested}");
        }
        let plain = directory(&slapd, json!({ "url": slapd.ldap_url() }));
        let refused = admin.post("/auth/sso/providers", &plain).await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["field"], "/ldap/url");
        let insecure = add(&admin, &directory(&slapd, json!({ "url": slapd.ldap_url(), "insecure": true }))).await;
        sign_in(&server, &insecure, "alice", "alice-secret").await.expect_status(200);
        // TLS where none is spoken.
        let not_tls = slapd.ldap_url().replace("ldap://", "ldaps://");
        let id = add(&admin, &directory(&slapd, json!({ "url": not_tls }))).await;
        sign_in(&server, &id, "alice", "alice-secret").await.expect_status(502);
        assert_eq!(users(&admin).await, 2);
    }
}

on_both! {
    async fn a_directory_that_is_away_or_refuses_the_search_is_not_the_persons_fault(database: Database) {
        let (server, admin) = start(database).await;
        let mut slapd = Slapd::start();
        let wrong = with(directory(&slapd, json!({})), json!({ "bind_password": "wrong-canary-7Yh" }));
        let wrong = add(&admin, &wrong).await;
        let answer = sign_in(&server, &wrong, "alice", "alice-secret").await.expect_status(502);
        assert_eq!(answer.error_type(), "identity_provider_authentication_error");
        let tested = admin.post(&format!("/auth/sso/providers/{wrong}/test"), &json!({})).await.expect_status(200);
        assert_eq!(tested.body["failed_step"], "bind");
        assert!(!tested.text.contains("wrong-canary-7Yh"));
        let nowhere = add(&admin, &directory(&slapd, json!({ "base_dn": "dc=nowhere,dc=test" }))).await;
        let tested = admin.post(&format!("/auth/sso/providers/{nowhere}/test"), &json!({})).await.expect_status(200);
        assert_eq!(tested.body["failed_step"], "search", "{}", tested.text);
        let id = add(&admin, &directory(&slapd, json!({}))).await;
        slapd.stop();
        let answer = sign_in(&server, &id, "alice", "alice-secret").await.expect_status(502);
        assert_eq!(answer.error_type(), "identity_provider_unreachable");
        let tested = admin.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200);
        assert_eq!(tested.body["failed_step"], "connect");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_says_nothing_is_not_waited_for_long() {
    let (server, admin) = start(crate::support::Database::sqlite()).await;
    let slapd = Slapd::start();
    let id = add(&admin, &directory(&slapd, json!({}))).await;
    slapd.pause();
    let started = std::time::Instant::now();
    let answer = sign_in(&server, &id, "alice", "alice-secret").await.expect_status(504);
    assert_eq!(answer.error_type(), "identity_provider_timeout");
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Answers whatever it is sent with these bytes, again and again or once.
async fn nonsense(bytes: &'static [u8], is_endless: bool) -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ldap://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 1024];
            if stream.read(&mut asked).await.is_err() {
                continue;
            }
            while stream.write_all(bytes).await.is_ok() && is_endless {}
        }
    });
    (url, task)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_of_a_directory_is_its_fault_and_nothing_more() {
    let (server, admin) = start(crate::support::Database::sqlite()).await;
    let slapd = Slapd::start();
    for (bytes, is_endless) in [
        (&b""[..], false),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
        // A message of two gigabytes.
        (b"\x30\x84\x7f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00", true),
        // An answer to the bind that is an entry of a search.
        (b"\x30\x05\x02\x01\x01\x64\x00", false),
        (b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x07\x04\x00\x04\x00", false),
    ] {
        let (url, task) = nonsense(bytes, is_endless).await;
        for settings in [json!({ "url": url, "insecure": true }), json!({ "url": url, "start_tls": true })] {
            let id = add(&admin, &directory(&slapd, settings)).await;
            let answer = sign_in(&server, &id, "alice", "alice-secret").await.expect_status(502);
            assert_eq!(answer.error_type(), "identity_provider_error", "{bytes:02x?}: {}", answer.text);
        }
        task.abort();
    }
    assert_eq!(users(&admin).await, 1);
}

on_both! {
    async fn tries_are_limited_by_address_and_by_name(database: Database) {
        let (server, admin) = start(database).await;
        let slapd = Slapd::start();
        let id = add(&admin, &directory(&slapd, json!({}))).await;
        let body = json!({ "provider_id": id, "login": "alice", "password": "wrong" });
        let here = server.nobody().at_ip("203.0.113.9");
        for _ in 0..5 {
            here.post("/auth/sso/ldap/authenticate", &body).await.expect_status(401);
        }
        here.post("/auth/sso/ldap/authenticate", &body).await.expect_status(429);
        for _ in 5..20 {
            sign_in(&server, &id, "ALICE", "wrong").await.expect_status(401);
        }
        // From wherever, and with the right password, too.
        sign_in(&server, &id, "alice", "alice-secret").await.expect_status(429);
        sign_in(&server, &id, "bob", "bob-secret").await.expect_status(200);
        server.running().app.clock.advance(chrono::TimeDelta::minutes(11));
        sign_in(&server, &id, "alice", "alice-secret").await.expect_status(200);
        // By whatever name the filter finds them: they are tried as one.
        let id = add(&admin, &directory(&slapd, json!({ "user_filter": "(|(uid={login})(mail={login}))" }))).await;
        for _ in 0..10 {
            sign_in(&server, &id, "alice", "wrong").await.expect_status(401);
            sign_in(&server, &id, "alice@example.test", "wrong").await.expect_status(401);
        }
        // Refused like a wrong password, whichever it is: the answer does not tell that the two are one.
        sign_in(&server, &id, "alice", "alice-secret").await.expect_status(401);
        sign_in(&server, &id, "alice@example.test", "alice-secret").await.expect_status(401);
        assert_eq!(audited(&admin, "sso.refused").await[0]["detail"]["reason"], "too_many_tries");
    }
}
