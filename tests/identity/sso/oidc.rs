//! A real provider, from the button to the session.

use chrono::TimeDelta;
use serde_json::{Value, json};
use totp_rs::{Algorithm, Builder, Secret as TotpSecret};
use url::Url;

use super::super::mfa::enrol;
use super::{Began, PAGE, add, audited, begin, oidc_body, users, with};
use crate::support::oidc::{CLIENT_SECRET, ClaimsAt, OidcProvider};
use crate::support::trace::Log;
use crate::support::{Answer, Api, Server, on_both};

struct Place {
    server: Server,
    admin: Api,
    provider: OidcProvider,
}

async fn start(database: crate::support::Database, claims: ClaimsAt) -> Place {
    let server = Server::start(database).await;
    let admin = server.set_up().await;
    let provider = OidcProvider::start(PAGE, claims).await;
    Place { server, admin, provider }
}

impl Place {
    fn body(&self) -> Value {
        oidc_body(&self.provider.issuer(), "confidential", Some(CLIENT_SECRET))
    }

    async fn sign_in(&self, provider: &str, person: &str) -> Answer {
        let began = begin(&self.server, provider).await;
        let returned = self.provider.sign_in(&began.url, person).await;
        began.end_with(&returned).await
    }
}

fn query(url: &str, name: &str) -> String {
    let url = Url::parse(url).unwrap();
    let found = url.query_pairs().find(|(own, _)| own == name);
    found.unwrap_or_else(|| panic!("{name} in {url}")).1.into_owned()
}

on_both! {
    async fn a_person_signs_in_and_is_known_the_second_time(database: Database) {
        let place = start(database, ClaimsAt::UserInfo).await;
        let body = with(place.body(), json!({ "role_mapping": { "admins": "org_admin" } }));
        let id = add(&place.admin, &body).await;
        let began = begin(&place.server, &id).await;
        assert_eq!(query(&began.url, "code_challenge_method"), "S256");
        assert_eq!(query(&began.url, "redirect_uri"), PAGE);
        assert_eq!(query(&began.url, "scope"), "openid email profile");
        assert!(query(&began.url, "nonce").len() > 30 && query(&began.url, "code_challenge").len() == 43);
        assert_eq!(query(&began.url, "state"), began.state);
        let returned = place.provider.sign_in(&began.url, "alice").await;
        assert_eq!(returned.iss.as_deref(), Some(place.provider.issuer().as_str()), "the provider announces itself");
        let answer = began.end_with(&returned).await.expect_status(200);
        let user = &answer.body["user"];
        assert_eq!((&user["email"], &user["full_name"]), (&json!("alice@example.test"), &json!("Alice Example")));
        assert_eq!((&user["role"], &user["username"]), (&json!("org_admin"), &json!("alice")));
        let cookies: Vec<&str> = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap()).collect();
        for name in ["svc_access=", "svc_refresh=", "svc_csrf="] {
            assert!(cookies.iter().any(|line| line.starts_with(name)), "{cookies:?}");
        }
        assert!(cookies.iter().any(|line| line.starts_with("svc_sso_") && line.contains("Max-Age=0")), "{cookies:?}");
        let alice = place.server.nobody().with_token(answer.body["access_token"].as_str().unwrap());
        assert_eq!(alice.get("/auth/me").await.expect_status(200).body["role"], "org_admin");
        assert_eq!(users(&place.admin).await, 2);

        let again = place.sign_in(&id, "alice").await.expect_status(200);
        assert_eq!(again.body["user"]["id"], user["id"]);
        assert_eq!(users(&place.admin).await, 2);
        let logins = audited(&place.admin, "user.login").await;
        assert_eq!(logins[0]["detail"]["way"], "oidc");
        assert_eq!(audited(&place.admin, "user.created").await[0]["detail"]["identity_provider_id"], id.as_str());
        // The account has no password, so none fits.
        let login = json!({ "login": "alice", "password": "x" });
        place.server.nobody().post("/auth/login", &login).await.expect_status(401);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_of_a_sign_in_is_logged() {
    let place = start(crate::support::Database::sqlite(), ClaimsAt::UserInfo).await;
    let log = Log::listen();
    let id = add(&place.admin, &place.body()).await;
    let began = begin(&place.server, &id).await;
    let returned = place.provider.sign_in(&began.url, "alice").await;
    began.end_with(&returned).await.expect_status(200);
    let again = begin(&place.server, &id).await;
    again.end(&returned.code, returned.iss.as_deref()).await.expect_status(401);
    let text = String::from_utf8_lossy(&log.bytes()).into_owned();
    assert!(text.contains("refused a sign-in at identity provider"), "what is refused is logged");
    for secret in [CLIENT_SECRET, &returned.code, &began.state, &query(&began.url, "nonce")] {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(secret)).collect();
        // The browser of this test is in this process, too, and the library that it uses logs where it goes.
        let ours: Vec<_> = lines.iter().filter(|line| line.contains("heddle_")).collect();
        assert!(ours.is_empty(), "{secret}: {ours:?}");
    }
}

on_both! {
    async fn a_sign_in_is_ended_once_by_the_browser_that_began_it(database: Database) {
        let place = start(database, ClaimsAt::IdToken).await;
        let id = add(&place.admin, &place.body()).await;
        let began = begin(&place.server, &id).await;
        let returned = place.provider.sign_in(&began.url, "carol").await;
        // Another browser, which knows state and code, and one that has a sign-in of its own.
        let other = begin(&place.server, &id).await;
        for browser in [place.server.nobody(), other.browser.clone()] {
            let stolen = Began { url: began.url.clone(), state: began.state.clone(), browser };
            let answer = stolen.end_with(&returned).await.expect_status(401);
            assert!(answer.message().contains("not begun in this browser"), "{}", answer.text);
        }
        began.end(&returned.code, Some("https://other.example")).await.expect_status(401);
        // The state is spent by that; and it is spent by a success.
        began.end_with(&returned).await.expect_status(401);
        let began = begin(&place.server, &id).await;
        let returned = place.provider.sign_in(&began.url, "carol").await;
        began.end_with(&returned).await.expect_status(200);
        began.end_with(&returned).await.expect_status(401);
        // Ten minutes later it would not have been good.
        let late = begin(&place.server, &id).await;
        let returned = place.provider.sign_in(&late.url, "carol").await;
        place.server.running().app.clock.advance(TimeDelta::minutes(10));
        late.end_with(&returned).await.expect_status(401);
        assert_eq!(users(&place.admin).await, 2);
    }
}

on_both! {
    async fn codes_of_other_sign_ins_are_refused(database: Database) {
        let place = start(database, ClaimsAt::IdToken).await;
        let id = add(&place.admin, &place.body()).await;
        let (one, two) = (begin(&place.server, &id).await, begin(&place.server, &id).await);
        let code_of_one = place.provider.sign_in(&one.url, "mallory").await;
        // PKCE: the code was made for another verifier.
        let swapped = two.end(&code_of_one.code, code_of_one.iss.as_deref()).await.expect_status(401);
        assert_eq!(swapped.error_type(), "unauthenticated");
        assert_eq!(audited(&place.admin, "sso.refused").await[0]["detail"]["reason"], "code");
        let three = begin(&place.server, &id).await;
        three.end("made-up", Some(&place.provider.issuer())).await.expect_status(401);
        let four = begin(&place.server, &id).await;
        let returned = place.provider.sign_in(&four.url, "mallory").await;
        // The provider says that it always names itself: without a name the answer may be another's.
        four.end(&returned.code, None).await.expect_status(401);
        assert_eq!(audited(&place.admin, "sso.refused").await[0]["detail"]["reason"], "issuer");
        assert_eq!(users(&place.admin).await, 1);
    }
}

on_both! {
    async fn only_a_verified_email_finds_an_account_and_only_where_that_is_allowed(database: Database) {
        let place = start(database, ClaimsAt::IdToken).await;
        for name in ["alice", "bob"] {
            let user = json!({
                "username": format!("{name}-local"), "email": format!("{}@Example.test", name.to_uppercase()),
                "password": crate::support::PASSWORD, "role": "operator",
            });
            place.admin.post("/users", &user).await.expect_status(201);
        }
        let body = with(place.body(), json!({ "role_mapping": { "admins": "org_admin" } }));
        let id = add(&place.admin, &body).await;
        let refused = place.sign_in(&id, "alice").await.expect_status(403);
        assert_eq!(refused.error_type(), "sso_not_linked");
        assert!(refused.header("set-cookie").is_empty());
        let path = format!("/auth/sso/providers/{id}");
        place.admin.patch(&path, &json!({ "allow_linking": true })).await.expect_status(200);
        let linked = place.sign_in(&id, "alice").await.expect_status(200);
        assert_eq!(linked.body["user"]["username"], "alice-local");
        assert_eq!(linked.body["user"]["role"], "operator", "the provider did not create the account");
        assert_eq!(audited(&place.admin, "user.identity_linked").await.len(), 1);
        let refused = place.sign_in(&id, "bob").await.expect_status(403);
        assert_eq!(refused.error_type(), "sso_email_unverified");
        // Linked is linked: by the subject, whatever becomes of the setting.
        place.admin.patch(&path, &json!({ "allow_linking": false })).await.expect_status(200);
        place.sign_in(&id, "alice").await.expect_status(200);
        assert_eq!(users(&place.admin).await, 3);
        // Unlinked, she is a new person there, whose email is taken; her sessions are closed.
        let user = linked.body["user"]["id"].as_str().unwrap();
        let all = format!("/users/{user}/identities");
        let identities = place.admin.get(&all).await.expect_status(200).body;
        assert_eq!((&identities["total"], &identities["items"][0]["provider_id"]), (&json!(1), &json!(id)));
        let one = format!("{all}/{}", identities["items"][0]["id"].as_str().unwrap());
        place.admin.delete(&one).await.expect_status(204);
        place.admin.delete(&one).await.expect_status(404);
        assert_eq!(audited(&place.admin, "user.identity_unlinked").await.len(), 1);
        let theirs = place.server.nobody().with_token(linked.body["access_token"].as_str().unwrap());
        theirs.get("/devices").await.expect_status(401);
        assert_eq!(place.sign_in(&id, "alice").await.expect_status(403).error_type(), "sso_not_linked");
        // An email is one factor: it links no account that has asked for two.
        place.admin.patch(&path, &json!({ "allow_linking": true })).await.expect_status(200);
        enrol(&place.server, &place.server.log_in("alice-local").await).await;
        assert_eq!(place.sign_in(&id, "alice").await.expect_status(403).error_type(), "sso_not_linked");
    }
}

on_both! {
    async fn who_has_no_account_gets_one_only_where_that_is_allowed(database: Database) {
        let place = start(database, ClaimsAt::UserInfo).await;
        let id = add(&place.admin, &with(place.body(), json!({ "allow_registration": false }))).await;
        assert_eq!(place.sign_in(&id, "carol").await.expect_status(403).error_type(), "sso_registration_disabled");
        let path = format!("/auth/sso/providers/{id}");
        place.admin.patch(&path, &json!({ "allow_registration": true })).await.expect_status(200);
        assert_eq!(place.sign_in(&id, "bob").await.expect_status(403).error_type(), "sso_email_unverified");
        assert_eq!(users(&place.admin).await, 1);
        // The first administrator's address is theirs, and no provider of the organization gets a super_admin.
        let taken = json!({ "allow_linking": true });
        place.admin.patch(&path, &taken).await.expect_status(200);
        let ada = place.admin.get("/auth/me").await.expect_status(200).body["id"].as_str().unwrap().to_owned();
        let other = json!({ "email": "dora@example.test" });
        let changed = place.admin.patch(&format!("/users/{ada}"), &other).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert_eq!(place.sign_in(&id, "dora").await.expect_status(403).error_type(), "sso_not_linked");
        // A removed account is not made again.
        let carol = place.sign_in(&id, "carol").await.expect_status(200).body["user"]["id"].clone();
        let carol = format!("/users/{}", carol.as_str().unwrap());
        place.admin.delete(&carol).await.expect_status(204);
        assert_eq!(place.sign_in(&id, "carol").await.expect_status(403).error_type(), "sso_account_removed");
        place.admin.post(&format!("{carol}/restore"), &json!({})).await.expect_status(200);
        place.sign_in(&id, "carol").await.expect_status(200);
        place.admin.patch(&carol, &json!({ "is_active": false })).await.expect_status(200);
        assert_eq!(place.sign_in(&id, "carol").await.expect_status(403).error_type(), "inactive_user");
    }
}

on_both! {
    async fn the_mapped_role_follows_the_groups_and_ends_sessions_when_it_changes(database: Database) {
        let place = start(database, ClaimsAt::UserInfo).await;
        let id = add(&place.admin, &with(place.body(), json!({ "role_mapping": { "admins": "operator" } }))).await;
        let first = place.sign_in(&id, "alice").await.expect_status(200).body;
        assert_eq!(first["user"]["role"], "operator");
        let old = place.server.nobody().with_token(first["access_token"].as_str().unwrap());
        let path = format!("/auth/sso/providers/{id}");
        place.admin.patch(&path, &json!({ "role_mapping": { "admins": "site_admin" } })).await.expect_status(200);
        let second = place.sign_in(&id, "alice").await.expect_status(200).body;
        assert_eq!(second["user"]["role"], "site_admin");
        old.get("/auth/me").await.expect_status(401);
        let new = place.server.nobody().with_token(second["access_token"].as_str().unwrap());
        new.get("/auth/me").await.expect_status(200);
        let changes = audited(&place.admin, "user.role_changed").await;
        assert_eq!((&changes[0]["detail"]["old_role"], &changes[0]["detail"]["role"]), (&json!("operator"), &json!("site_admin")));
        // No mapping: administrators say the role.
        place.admin.patch(&path, &json!({ "role_mapping": {} })).await.expect_status(200);
        let same = place.sign_in(&id, "alice").await.expect_status(200).body;
        assert_eq!(same["user"]["role"], "site_admin");
        new.get("/auth/me").await.expect_status(200);
    }
}

on_both! {
    async fn the_last_administrator_stays_one(database: Database) {
        let place = start(database, ClaimsAt::UserInfo).await;
        let other = place.admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let body = with(place.body(), json!({
            "role_mapping": { "admins": "org_admin" }, "organization_id": other["id"],
        }));
        let id = add(&place.admin, &body).await;
        let first = place.sign_in(&id, "alice").await.expect_status(200).body;
        assert_eq!((&first["user"]["role"], &first["user"]["organization_id"]), (&json!("org_admin"), &other["id"]));
        let path = format!("/auth/sso/providers/{id}");
        place.admin.patch(&path, &json!({ "role_mapping": { "admins": "viewer" } })).await.expect_status(200);
        let second = place.sign_in(&id, "alice").await.expect_status(200).body;
        assert_eq!(second["user"]["role"], "org_admin");
        let alice = place.server.nobody().with_token(second["access_token"].as_str().unwrap());
        assert_eq!(audited(&alice, "user.role_kept").await[0]["detail"]["wanted_role"], "viewer");
    }
}

on_both! {
    async fn local_one_time_codes_are_asked_for(database: Database) {
        let place = start(database, ClaimsAt::IdToken).await;
        let id = add(&place.admin, &place.body()).await;
        let token = place.sign_in(&id, "carol").await.expect_status(200).body["access_token"].clone();
        let carol = place.server.nobody().with_token(token.as_str().unwrap());
        let staged = carol.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
        let secret = TotpSecret::try_from_base32(staged["secret"].as_str().unwrap()).unwrap();
        let phone = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6).with_step_duration(30)
            .with_secret(secret).with_account_name("carol").build().unwrap();
        let code = || {
            let now = place.server.running().app.clock.now().timestamp();
            phone.generate(u64::try_from(now).unwrap()).to_string()
        };
        carol.post("/auth/mfa/enable", &json!({ "code": code() })).await.expect_status(200);
        place.server.running().app.clock.advance(TimeDelta::seconds(30));

        let answer = place.sign_in(&id, "carol").await.expect_status(200);
        assert_eq!(answer.body["require_mfa"], true);
        assert!(answer.body.get("access_token").is_none(), "{}", answer.text);
        let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert!(cookies.len() == 1 && cookies[0].to_str().unwrap().contains("Max-Age=0"), "{cookies:?}");
        let second = json!({ "mfa_token": answer.body["mfa_token"], "code": code() });
        let whole = place.server.nobody().post("/auth/login/mfa", &second).await.expect_status(200);
        assert_eq!(whole.body["user"]["username"], "carol");
        let login = &audited(&place.admin, "user.login").await[0];
        assert_eq!((&login["detail"]["way"], &login["detail"]["second_factor"]), (&json!("oidc"), &json!("totp")));
    }
}

on_both! {
    async fn every_kind_of_client_and_signature_works_and_a_shared_secrets_does_not(database: Database) {
        let place = start(database, ClaimsAt::IdToken).await;
        let issuer = place.provider.issuer();
        for (client, secret) in [("public", None), ("es256", Some(CLIENT_SECRET)), ("confidential", Some(CLIENT_SECRET))] {
            let id = add(&place.admin, &oidc_body(&issuer, client, secret)).await;
            let tested = place.admin.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200).body;
            assert_eq!(tested["ok"], true, "{client}: {tested}");
            let answer = place.sign_in(&id, &format!("person-of-{client}")).await;
            assert_eq!(answer.status, 200, "{client}: {}", answer.text);
        }
        let id = add(&place.admin, &oidc_body(&issuer, "hs256", Some("provider-canary-9Qx-that-is-long-enough"))).await;
        place.sign_in(&id, "dave").await.expect_status(401);
        assert_eq!(audited(&place.admin, "sso.refused").await[0]["detail"]["reason"], "algorithm");
        assert_eq!(users(&place.admin).await, 4);
    }
}

on_both! {
    async fn a_provider_may_change_its_keys_and_be_away(database: Database) {
        let mut place = start(database, ClaimsAt::IdToken).await;
        let id = add(&place.admin, &place.body()).await;
        place.sign_in(&id, "carol").await.expect_status(200);
        let began = begin(&place.server, &id).await;
        let returned = place.provider.sign_in(&began.url, "carol").await;
        // It forgets the code, and signs with new keys under the old names.
        place.provider.stop();
        let answer = began.end_with(&returned).await.expect_status(502);
        assert_eq!(answer.error_type(), "identity_provider_unreachable");
        assert!(!answer.text.contains("127.0.0.1"), "who signs in is not told where: {}", answer.text);
        place.provider.restart().await;
        let began = begin(&place.server, &id).await;
        let forgotten = place.provider.sign_in(&began.url, "carol").await;
        place.provider.stop();
        place.provider.restart().await;
        began.end_with(&forgotten).await.expect_status(401);
        place.sign_in(&id, "carol").await.expect_status(200);
        assert_eq!(users(&place.admin).await, 2);
    }
}

on_both! {
    async fn a_test_says_how_far_it_came(database: Database) {
        let mut place = start(database, ClaimsAt::IdToken).await;
        let issuer = place.provider.issuer();
        let id = add(&place.admin, &oidc_body(&issuer, "confidential", Some("wrong-canary-2Lm"))).await;
        let test = format!("/auth/sso/providers/{id}/test");
        let tested = place.admin.post(&test, &json!({})).await.expect_status(200).body;
        assert_eq!((&tested["ok"], &tested["failed_step"]), (&json!(false), &json!("client")), "{tested}");
        assert_eq!(tested["reached"], issuer.trim_start_matches("http://"));
        assert_eq!(tested["steps"][2]["error"]["type"], "identity_provider_authentication_error");
        assert!(tested["latency_ms"].as_f64().unwrap() > 0.0);
        let began = begin(&place.server, &id).await;
        let returned = place.provider.sign_in(&began.url, "carol").await;
        let answer = began.end_with(&returned).await.expect_status(502);
        assert_eq!(answer.error_type(), "identity_provider_authentication_error");
        // Another issuer than the provider says of itself, by one letter.
        let slash = add(&place.admin, &oidc_body(&format!("{issuer}/"), "public", None)).await;
        let tested = place.admin.post(&format!("/auth/sso/providers/{slash}/test"), &json!({})).await.expect_status(200).body;
        assert_eq!(tested["failed_step"], "discovery", "{tested}");
        assert!(tested["steps"][0]["error"]["message"].as_str().unwrap().contains("letter for letter"), "{tested}");
        place.provider.stop();
        let tested = place.admin.post(&test, &json!({})).await.expect_status(200).body;
        assert_eq!((&tested["failed_step"], &tested["steps"][0]["error"]["type"]),
            (&json!("discovery"), &json!("identity_provider_unreachable")), "{tested}");
        assert_eq!(audited(&place.admin, "identity_provider.tested").await[0]["detail"]["ok"], false);
        let everything = place.admin.get("/audit?per_page=200").await.expect_status(200).text;
        for canary in [CLIENT_SECRET, "wrong-canary-2Lm"] {
            assert!(!everything.contains(canary));
        }
    }
}
