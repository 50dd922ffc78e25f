//! The way of a browser through the pages, without a script.

use serde_json::json;
use totp_rs::{Algorithm, Builder, Secret};

use super::browser::{Browser, form_of};
use super::{App, CALLBACK, acting, member, parameter, register, register_as, text};
use crate::support::{Answer, Api, PASSWORD, Server, on_both};

/// The page's policy: nothing is loaded, nothing frames it, forms lead here and maybe on to the app.
#[track_caller]
fn check_policy(page: &Answer, form_action: &str) {
    let policy = page.header("content-security-policy");
    for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(policy.contains(&format!("form-action {form_action};")), "{policy}");
    assert!(!policy.contains("script-src") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.text.contains("<script") && !page.text.contains("javascript:"), "{}", page.text);
    assert_eq!(page.header("x-frame-options"), "DENY");
}

on_both! {
    async fn a_browser_without_scripts_logs_in_and_allows_an_app_to_act(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read", "site:read"]).await;
        let mut browser = Browser::new(&server);

        let hop = browser.come_from_elsewhere(&app.request(&[("scope", Some("device:read"))])).await.expect_status(200);
        check_policy(&hop, "'none'");
        let log_in = browser.follow(&hop).await.expect_status(200);
        check_policy(&log_in, "'self'");
        assert!(!log_in.text.contains("Reader"), "who is not logged in is not told which app it is");
        let wrong = browser.submit(&log_in, &[("login", "ada"), ("password", "nonsense")]).await.expect_status(401);
        assert!(wrong.text.contains("login or password is not correct"), "{}", wrong.text);
        let sent = browser.submit(&wrong, &[("login", "ada"), ("password", PASSWORD)]).await.expect_status(303);
        let question = browser.get(sent.header("location")).await.expect_status(200);
        check_policy(&question, "'self' https:");
        for word in ["Reader", "Acme", "See devices and their state", "device:read", CALLBACK, "ada"] {
            assert!(question.text.contains(word), "{word}: {}", question.text);
        }
        assert!(!question.text.contains("site:read"), "only what is asked for");

        let sent = browser.submit(&question, &[("decision", "allow")]).await.expect_status(303);
        let location = sent.header("location");
        assert!(location.starts_with(&format!("{CALLBACK}?code=")), "{location}");
        assert_eq!(parameter(location, "state").as_deref(), Some("a state/?&"));
        assert_eq!(parameter(location, "iss").as_deref(), Some(server.nobody().base()));
        assert_eq!(parameter(location, "error"), None);

        let tokens = app.exchange(&server, &parameter(location, "code").unwrap()).await.expect_status(200).body;
        assert_eq!((&tokens["token_type"], &tokens["expires_in"], &tokens["scope"]),
            (&json!("Bearer"), &json!(1800), &json!("device:read")));
        assert!(text(&tokens, "access_token").starts_with("hdo_") && text(&tokens, "refresh_token").starts_with("hdr_"));
        let caller = acting(&server, &tokens);
        caller.get("/devices").await.expect_status(200);
        assert_eq!(caller.get("/auth/me").await.expect_status(200).body["permissions"], json!(["device:read"]));
        let refused = caller.get("/sites").await.expect_status(403);
        assert_eq!(refused.error_type(), "scope_ceiling");
        assert!(refused.message().contains("an app") && refused.message().contains("site:read"));

        let fresh = app.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(200).body;
        acting(&server, &fresh).get("/devices").await.expect_status(200);
        let revoke = [("token", text(&fresh, "refresh_token"))];
        assert_eq!(app.ask(&server, "/oauth2/revoke", &revoke).await.expect_status(200).text, "{}");
        for ended in [&tokens, &fresh] {
            acting(&server, ended).get("/devices").await.expect_status(401);
        }
        assert_eq!(app.refresh(&server, text(&fresh, "refresh_token")).await.expect_status(400).body["error"], "invalid_grant");
        let audit = admin.get("/audit?per_page=200").await.expect_status(200).text;
        for action in ["oauth2_app.created", "oauth2_grant.allowed", "oauth2_grant.revoked"] {
            assert!(audit.contains(action), "{action}");
        }
        let code = parameter(location, "code").unwrap();
        for secret in [&code, text(&tokens, "access_token"), text(&fresh, "refresh_token"), app.secret.as_ref().unwrap()] {
            assert!(!audit.contains(secret), "a secret is in the audit log");
        }
        let writer = register(&admin, &["site:write"]).await;
        let writing = writer.tokens(&server, "ada").await;
        acting(&server, &writing).post("/sites", &json!({ "name": "By app" })).await.expect_status(201);
        let made = admin.get("/audit?action=site.created").await.expect_status(200).body;
        let grants = admin.get("/oauth2/grants").await.expect_status(200).body;
        assert_eq!(made["items"][0]["detail"]["via"], json!({ "oauth2_grant_id": grants["items"][0]["id"] }), "{made}");
    }
}

/// Sets one-time codes up; answers the backup codes.
async fn enrol(server: &Server, api: &Api) -> Vec<String> {
    let staged = api.post("/auth/mfa/setup", &json!({})).await.expect_status(200).body;
    let secret = Secret::try_from_base32(text(&staged, "secret")).unwrap();
    let builder = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(6).with_step_duration(30);
    let phone = builder.with_secret(secret).with_account_name("ada").build().unwrap();
    let now = server.running().app.clock.now().timestamp();
    let code = phone.generate(u64::try_from(now).unwrap()).to_string();
    let enabled = api.post("/auth/mfa/enable", &json!({ "code": code })).await.expect_status(200).body;
    enabled["backup_codes"].as_array().unwrap().iter().map(|code| code.as_str().unwrap().to_owned()).collect()
}

on_both! {
    async fn who_has_a_second_factor_shows_it_on_a_page_of_its_own(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let codes = enrol(&server, &admin).await;
        let mut browser = Browser::new(&server);
        let hop = browser.come_from_elsewhere(&app.request(&[])).await;
        let log_in = browser.follow(&hop).await;
        let second = browser.submit(&log_in, &[("login", "ada"), ("password", PASSWORD)]).await.expect_status(200);
        check_policy(&second, "'self'");
        assert!(!browser.cookies.contains_key("svc_access"), "one factor opens no session");
        let wrong = browser.submit(&second, &[("code", "00000000")]).await.expect_status(401);
        let sent = browser.submit(&wrong, &[("code", &codes[0])]).await.expect_status(303);
        assert!(browser.cookies.contains_key("svc_access"));
        let question = browser.get(sent.header("location")).await.expect_status(200);
        let sent = browser.submit(&question, &[("decision", "allow")]).await.expect_status(303);
        let code = parameter(sent.header("location"), "code").unwrap();
        let tokens = app.exchange(&server, &code).await.expect_status(200).body;
        acting(&server, &tokens).get("/devices").await.expect_status(200);
    }
}

on_both! {
    async fn who_denies_gives_nothing(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register_as(&admin, "public", &["device:read"]).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        let question = browser.get(&app.request(&[])).await.expect_status(200);
        let sent = browser.submit(&question, &[("decision", "deny")]).await.expect_status(303);
        let location = sent.header("location");
        assert_eq!(parameter(location, "error").as_deref(), Some("access_denied"));
        assert_eq!(parameter(location, "state").as_deref(), Some("a state/?&"));
        assert!(parameter(location, "iss").is_some() && parameter(location, "code").is_none());
        assert_eq!(admin.get("/oauth2/grants").await.expect_status(200).body["total"], 0);
        assert!(admin.get("/audit").await.text.contains("oauth2_grant.denied"));
    }
}

on_both! {
    async fn a_form_is_good_only_for_whom_and_what_it_was_shown(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (app, other) = (register(&admin, &["device:*"]).await, register(&admin, &["device:*"]).await);
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        let question = browser.get(&app.request(&[("scope", Some("device:read"))])).await.expect_status(200);
        let foreign = browser.get(&other.request(&[])).await.expect_status(200);
        let wider = browser.get(&app.request(&[])).await.expect_status(200);
        let mut stranger = Browser::new(&server);
        stranger.log_in(&server, "ada").await;
        let elsewhere = stranger.get(&app.request(&[("scope", Some("device:read"))])).await.expect_status(200);
        let token = |page: &Answer| form_of(page).hidden.into_iter().find(|(name, _)| name == "form_token").unwrap().1;
        for wrong in ["", "nonsense", "99999999999.0000", &token(&foreign), &token(&wider), &token(&elsewhere)] {
            let refused = browser.submit(&question, &[("decision", "allow"), ("form_token", wrong)]).await;
            assert_eq!((refused.status, refused.header("location")), (403, ""), "{wrong}: {}", refused.text);
        }
        let request = form_of(&question).hidden[0].1.clone();
        let missing = browser.post("/api/v1/oauth2/authorize", &[("request", &request), ("decision", "allow")]).await;
        missing.expect_status(403);
        // Another site can send a form, and no cookie with it: no user is logged in then.
        let cookies = std::mem::take(&mut browser.cookies);
        let nobody = browser.submit(&question, &[("decision", "allow")]).await.expect_status(200);
        assert!(nobody.text.contains("Log in"), "{}", nobody.text);
        browser.cookies = cookies;
        assert_eq!(admin.get("/oauth2/grants").await.body["total"], 0);
        // An app that has another name by now was not what the user saw.
        let path = format!("/oauth2/apps/{}", app.id);
        admin.patch(&path, &json!({ "name": "Something else" })).await.expect_status(200);
        browser.submit(&question, &[("decision", "allow")]).await.expect_status(403);
        admin.patch(&path, &json!({ "name": "Reader" })).await.expect_status(200);
        browser.site = Some("cross-site");
        browser.submit(&question, &[("decision", "allow")]).await.expect_status(403);
        browser.site = Some("same-origin");
        browser.submit(&question, &[("decision", "deny")]).await.expect_status(303);
        server.running().app.clock.advance(chrono::TimeDelta::minutes(10));
        browser.submit(&question, &[("decision", "allow")]).await.expect_status(403);
    }
}

on_both! {
    async fn a_log_in_form_is_good_only_in_its_browser(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let mut browser = Browser::new(&server);
        let hop = browser.come_from_elsewhere(&app.request(&[])).await;
        let page = browser.follow(&hop).await;
        let mut other = Browser::new(&server);
        let typed = [("login", "ada"), ("password", PASSWORD)];
        let refused = other.submit(&page, &typed).await.expect_status(403);
        assert!(!other.cookies.contains_key("svc_access"), "{}", refused.text);
        browser.submit(&page, &[("login", "ada"), ("password", PASSWORD), ("form_token", "x")]).await.expect_status(403);
        browser.site = Some("same-site");
        browser.submit(&page, &typed).await.expect_status(403);
        browser.site = None;
        assert!(!browser.cookies.contains_key("svc_access"));
        // What is shown after a refusal works again.
        other.submit(&refused, &typed).await.expect_status(303);
        assert!(other.cookies.contains_key("svc_access"));
    }
}

on_both! {
    async fn only_users_of_the_apps_organization_allow_it_anything(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let umbrella = admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        member(&admin, "eve", "org_admin", umbrella["id"].as_str()).await;
        let app = register(&admin, &["device:read"]).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "eve").await;
        let refused = browser.get(&app.request(&[])).await.expect_status(400);
        assert!(refused.text.contains("no app with this") && !refused.text.contains("Reader"), "{}", refused.text);
        // Not with a form that was shown to another user either.
        let mut own = Browser::new(&server);
        own.log_in(&server, "ada").await;
        let question = own.get(&app.request(&[])).await.expect_status(200);
        let stolen = browser.submit(&question, &[("decision", "allow")]).await.expect_status(400);
        assert_eq!(stolen.header("location"), "");
        // Eve logs in as another user, and can.
        let again = refused.text.split("href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
        let log_in = browser.get(&again).await.expect_status(200);
        let sent = browser.submit(&log_in, &[("login", "ada"), ("password", PASSWORD)]).await.expect_status(303);
        browser.get(sent.header("location")).await.expect_status(200);
    }
}

on_both! {
    async fn nobody_hands_on_what_they_do_not_hold(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        member(&admin, "vic", "viewer", None).await;
        let app = register(&admin, &["device:*", "user:read"]).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "vic").await;
        let question = browser.get(&app.request(&[])).await.expect_status(200);
        assert!(question.text.contains("device:read") && question.text.contains("left out"), "{}", question.text);
        assert!(!question.text.contains("device:write") && !question.text.contains("See users"), "{}", question.text);
        let tokens = app.tokens(&server, "vic").await;
        assert_eq!(tokens["scope"], "device:read");
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        let nothing = browser.get(&app.request(&[("scope", Some("user:read"))])).await.expect_status(200);
        assert!(nothing.text.contains("holds nothing") && !nothing.text.contains("value=\"allow\""), "{}", nothing.text);
        let sent = browser.submit(&nothing, &[("decision", "allow")]).await.expect_status(303);
        assert_eq!(parameter(sent.header("location"), "error").as_deref(), Some("access_denied"));
    }
}

on_both! {
    async fn what_an_app_says_of_itself_is_text(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let body = json!({
            "name": "<script>alert(1)</script>", "description": "\"><img src=x>", "client_type": "public",
            "redirect_uris": ["org.example.app:/cb?'x'"], "scopes": ["device:read"],
        });
        let made = admin.post("/oauth2/apps", &body).await.expect_status(201).body;
        let app = App { id: text(&made, "id").to_owned(), secret: None };
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        let request = app.request(&[("redirect_uri", Some("org.example.app:/cb?'x'")), ("state", Some("'\"><b>"))]);
        let question = browser.get(&request).await.expect_status(200);
        check_policy(&question, "'self' org.example.app:");
        assert!(!question.text.contains("<img") && !question.text.contains("<b>"), "{}", question.text);
        let sent = browser.submit(&question, &[("decision", "allow")]).await.expect_status(303);
        assert!(sent.header("location").starts_with("org.example.app:/cb?'x'&code="), "{}", sent.header("location"));
        assert_eq!(parameter(sent.header("location"), "state").as_deref(), Some("'\"><b>"));
    }
}
