//! Codes and refresh tokens for tokens, and every way in which that is refused (RFC 6749 sections 4.1.3, 5.2 and 6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use serde_json::json;

use super::browser::Browser;
use super::{App, CALLBACK, CHALLENGE, VERIFIER, acting, form, register, register_as, text};
use crate::support::{Answer, Server, on_both};

/// A refusal in the words of the protocol.
#[track_caller]
fn refused(answer: Answer, status: u16, error: &str) -> Answer {
    let answer = answer.expect_status(status);
    assert_eq!(answer.body["error"], error, "{}", answer.text);
    assert!(answer.body["error_description"].is_string() && answer.body.as_object().unwrap().len() == 2);
    assert!(answer.header("cache-control").contains("no-store"));
    assert_eq!(answer.header("www-authenticate").starts_with("Basic "), status == 401);
    answer
}

async fn ask_with(server: &Server, basic: Option<&str>, fields: &[(&str, &str)]) -> Answer {
    let nobody = server.nobody().with("content-type", "application/x-www-form-urlencoded");
    let asking = match basic {
        Some(basic) => nobody.with("authorization", &format!("Basic {}", STANDARD.encode(basic))),
        None => nobody,
    };
    asking.send("POST", "/oauth2/token", Some(form(fields).into_bytes())).await
}

on_both! {
    async fn an_app_proves_itself_in_one_way(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (app, public) = (register(&admin, &["device:read"]).await, register_as(&admin, "public", &["device:read"]).await);
        let (id, secret) = (app.id.as_str(), app.secret.as_deref().unwrap());
        let grant = ("grant_type", "refresh_token");
        let token = ("refresh_token", "nonsense");
        let right = format!("{id}:{secret}");
        // The app is known then, and the token is what is wrong.
        for (basic, more) in [
            (Some(right.as_str()), vec![]),
            (Some(right.as_str()), vec![("client_id", id)]),
            (None, vec![("client_id", id), ("client_secret", secret)]),
            (None, vec![("client_id", public.id.as_str())]),
        ] {
            let fields = [vec![grant, token], more].concat();
            refused(ask_with(&server, basic, &fields).await, 400, "invalid_grant");
        }
        let (wrong, empty) = (format!("{id}:nonsense"), format!("{id}:"));
        for (basic, more) in [
            (None, vec![]),
            (None, vec![("client_id", id)]),
            (None, vec![("client_id", id), ("client_secret", "nonsense")]),
            (None, vec![("client_id", "nonsense")]),
            (None, vec![("client_id", public.id.as_str()), ("client_secret", secret)]),
            (Some(wrong.as_str()), vec![]),
            (Some(empty.as_str()), vec![]),
            (Some("no colon"), vec![]),
        ] {
            let fields = [vec![grant, token], more].concat();
            refused(ask_with(&server, basic, &fields).await, 401, "invalid_client");
        }
        let both = [grant, token, ("client_id", id), ("client_secret", secret)];
        refused(ask_with(&server, Some(&right), &both).await, 400, "invalid_request");
        let other = [grant, token, ("client_id", public.id.as_str())];
        refused(ask_with(&server, Some(&right), &other).await, 400, "invalid_request");
    }
}

on_both! {
    async fn a_request_that_is_not_one_is_refused_in_the_words_of_the_protocol(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        refused(app.ask(&server, "/oauth2/token", &[]).await, 400, "invalid_request");
        for kind in ["password", "client_credentials", "implicit", "Authorization_Code"] {
            refused(app.ask(&server, "/oauth2/token", &[("grant_type", kind)]).await, 400, "unsupported_grant_type");
        }
        let whole = [("grant_type", "authorization_code"), ("code", "x"), ("redirect_uri", CALLBACK), ("code_verifier", VERIFIER)];
        for left_out in ["code", "redirect_uri", "code_verifier"] {
            let fields: Vec<_> = whole.into_iter().filter(|(name, _)| *name != left_out).collect();
            let answer = refused(app.ask(&server, "/oauth2/token", &fields).await, 400, "invalid_request");
            assert!(answer.text.contains(left_out), "{}", answer.text);
        }
        refused(app.ask(&server, "/oauth2/token", &[("grant_type", "refresh_token")]).await, 400, "invalid_request");
        let twice = [&whole[..], &[("code", "y")]].concat();
        refused(app.ask(&server, "/oauth2/token", &twice).await, 400, "invalid_request");
        refused(app.ask(&server, "/oauth2/token", &[("grant_type", "refresh_token\0")]).await, 400, "invalid_request");
        refused(app.exchange(&server, "nonsense").await, 400, "invalid_grant");
        let json = server.nobody().post("/oauth2/token", &json!({ "grant_type": "refresh_token" })).await;
        refused(json, 400, "invalid_request");
        for path in ["/oauth2/revoke", "/oauth2/introspect"] {
            refused(app.ask(&server, path, &[]).await, 400, "invalid_request");
            let nobody = App { id: app.id.clone(), secret: None };
            refused(nobody.ask(&server, path, &[("token", "x")]).await, 401, "invalid_client");
        }
    }
}

on_both! {
    async fn a_code_is_bound_to_its_app_its_address_and_its_verifier(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (app, other) = (register(&admin, &["device:read"]).await, register(&admin, &["device:read"]).await);
        let code = app.code(&server, "ada").await;
        refused(other.exchange(&server, &code).await, 400, "invalid_grant");
        let with = |name: &'static str, value: &'static str| {
            let mut fields = vec![("grant_type", "authorization_code"), ("code", code.as_str()), ("redirect_uri", CALLBACK), ("code_verifier", VERIFIER)];
            fields.retain(|(known, _)| *known != name);
            fields.push((name, value));
            fields
        };
        for fields in [
            with("redirect_uri", "https://app.example/cb/"),
            with("redirect_uri", "https://app.example/CB"),
            with("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK"),
            with("code_verifier", "short"),
            with("code_verifier", CHALLENGE),
        ] {
            refused(app.ask(&server, "/oauth2/token", &fields).await, 400, "invalid_grant");
        }
        // A wrong guess does not spend the code: the app itself can still use it.
        app.exchange(&server, &code).await.expect_status(200);
    }
}

on_both! {
    async fn a_code_is_good_for_a_minute(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register_as(&admin, "public", &["device:read"]).await;
        let (in_time, late) = (app.code(&server, "ada").await, app.code(&server, "ada").await);
        let clock = &server.running().app.clock;
        clock.advance(chrono::TimeDelta::seconds(50));
        app.exchange(&server, &in_time).await.expect_status(200);
        clock.advance(chrono::TimeDelta::seconds(10));
        refused(app.exchange(&server, &late).await, 400, "invalid_grant");
    }
}

on_both! {
    async fn a_code_that_comes_twice_takes_back_what_it_gave(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let code = app.code(&server, "ada").await;
        let tokens = app.exchange(&server, &code).await.expect_status(200).body;
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        refused(app.exchange(&server, &code).await, 400, "invalid_grant");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        acting(&server, &tokens).get("/devices").await.expect_status(401);
        refused(app.refresh(&server, text(&tokens, "refresh_token")).await, 400, "invalid_grant");
        refused(app.exchange(&server, &code).await, 400, "invalid_grant");
        let audit = admin.get("/audit?action=security.code_reuse").await.expect_status(200);
        assert_eq!(audit.body["total"], 1, "it is told once: {}", audit.text);
        assert!(!audit.text.contains(&code));
    }
}

on_both! {
    async fn of_two_hundred_exchanges_of_one_code_exactly_one_succeeds(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let code = app.code(&server, "ada").await;
        let answers = join_all((0..200).map(|_| app.exchange(&server, &code))).await;
        let (won, lost): (Vec<Answer>, Vec<Answer>) = answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(won.len(), 1);
        assert!(lost.into_iter().all(|answer| refused(answer, 400, "invalid_grant").status == 400));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        acting(&server, &won[0].body).get("/devices").await.expect_status(401);
    }
}

on_both! {
    async fn a_refresh_token_is_good_once_and_a_stolen_one_ends_the_grant(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let other = register(&admin, &["device:read"]).await;
        let first = app.tokens(&server, "ada").await;
        refused(other.refresh(&server, text(&first, "refresh_token")).await, 400, "invalid_grant");
        refused(app.refresh(&server, text(&first, "access_token")).await, 400, "invalid_grant");
        let second = app.refresh(&server, text(&first, "refresh_token")).await.expect_status(200).body;
        assert_ne!(first["refresh_token"], second["refresh_token"]);
        acting(&server, &first).get("/devices").await.expect_status(200);
        acting(&server, &second).get("/devices").await.expect_status(200);
        // At once again: two of the app's own raced, and one has the new pair.
        refused(app.refresh(&server, text(&first, "refresh_token")).await, 400, "invalid_grant");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        acting(&server, &second).get("/devices").await.expect_status(200);
        server.running().app.clock.advance(chrono::TimeDelta::seconds(10));
        refused(app.refresh(&server, text(&first, "refresh_token")).await, 400, "invalid_grant");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        for ended in [&first, &second] {
            acting(&server, ended).get("/devices").await.expect_status(401);
        }
        refused(app.refresh(&server, text(&second, "refresh_token")).await, 400, "invalid_grant");
        assert_eq!(admin.get("/oauth2/grants").await.body["total"], 0);
        let audit = admin.get("/audit?action=security.refresh_reuse").await.expect_status(200);
        assert_eq!(audit.body["total"], 1, "{}", audit.text);
        assert_eq!(audit.body["items"][0]["target_type"], "oauth2_grant");
    }
}

on_both! {
    async fn a_refresh_can_ask_for_less_and_later_for_all_again(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:*", "site:read"]).await;
        let mut tokens = app.tokens(&server, "ada").await;
        // By name, as it was shown: the user did not allow what `device:*` comes to cover later.
        assert_eq!(tokens["scope"], "device:read device:write site:read");
        let refresh = |tokens: &serde_json::Value, scope: &'static str| {
            let (app, server, token) = (app.clone(), &server, text(tokens, "refresh_token").to_owned());
            async move {
                let fields = [("grant_type", "refresh_token"), ("refresh_token", token.as_str()), ("scope", scope)];
                app.ask(server, "/oauth2/token", &fields).await
            }
        };
        for beyond in ["user:read", "site:*", "device:read nonsense", "*"] {
            refused(refresh(&tokens, beyond).await, 400, "invalid_scope");
        }
        tokens = refresh(&tokens, "device:read").await.expect_status(200).body;
        assert_eq!(tokens["scope"], "device:read");
        acting(&server, &tokens).get("/sites").await.expect_status(403);
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        tokens = app.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(200).body;
        assert_eq!(tokens["scope"], "device:read device:write site:read");
        acting(&server, &tokens).get("/sites").await.expect_status(200);
    }
}

on_both! {
    async fn tokens_expire(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let tokens = app.tokens(&server, "ada").await;
        let clock = &server.running().app.clock;
        clock.advance(chrono::TimeDelta::minutes(29));
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        clock.advance(chrono::TimeDelta::minutes(1));
        assert_eq!(acting(&server, &tokens).get("/devices").await.expect_status(401).header("www-authenticate"), "Bearer");
        clock.advance(chrono::TimeDelta::days(6));
        let fresh = app.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(200).body;
        clock.advance(chrono::TimeDelta::days(7));
        refused(app.refresh(&server, text(&fresh, "refresh_token")).await, 400, "invalid_grant");
        // A day later nothing is left of it; the app is.
        clock.advance(chrono::TimeDelta::days(2));
        let forgotten = heddle_kernel::retention::round_if_due(&server.running().app).await.unwrap().unwrap();
        assert!(forgotten >= 5, "four tokens and a grant: {forgotten}");
        refused(app.exchange(&server, "x").await, 400, "invalid_grant");
    }
}

on_both! {
    async fn an_app_learns_what_its_own_tokens_are_worth(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (app, other) = (register(&admin, &["device:read"]).await, register(&admin, &["device:read"]).await);
        let tokens = app.tokens(&server, "ada").await;
        let access = [("token", text(&tokens, "access_token"))];
        let refresh = [("token", text(&tokens, "refresh_token")), ("token_type_hint", "access_token")];
        let worth = app.ask(&server, "/oauth2/introspect", &access).await.expect_status(200).body;
        let me = admin.get("/auth/me").await.body;
        assert_eq!((&worth["active"], &worth["scope"], &worth["client_id"]), (&json!(true), &json!("device:read"), &json!(app.id)));
        assert_eq!((&worth["username"], &worth["sub"], &worth["token_type"]), (&json!("ada"), &me["id"], &json!("Bearer")));
        assert_eq!(worth["exp"].as_i64().unwrap() - worth["iat"].as_i64().unwrap(), 1800);
        let worth = app.ask(&server, "/oauth2/introspect", &refresh).await.expect_status(200).body;
        assert_eq!((&worth["active"], worth.get("token_type")), (&json!(true), None));
        let nothing = json!({ "active": false });
        for question in [&access[..], &refresh[..], &[("token", "nonsense")], &[("token", admin.token())]] {
            assert_eq!(other.ask(&server, "/oauth2/introspect", question).await.expect_status(200).body, nothing);
        }
        // Another app ends nothing of it; the app itself ends its access token alone.
        for question in [&access[..], &refresh[..]] {
            other.ask(&server, "/oauth2/revoke", question).await.expect_status(200);
        }
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        app.ask(&server, "/oauth2/revoke", &access).await.expect_status(200);
        acting(&server, &tokens).get("/devices").await.expect_status(401);
        assert_eq!(app.ask(&server, "/oauth2/introspect", &access).await.body, nothing);
        assert_eq!(app.ask(&server, "/oauth2/introspect", &refresh).await.body["active"], true);
        app.ask(&server, "/oauth2/revoke", &[("token", "nonsense")]).await.expect_status(200);
        // An app without a secret cannot ask: otherwise any finder of a token could.
        let public = register_as(&admin, "public", &["device:read"]).await;
        let own = public.tokens(&server, "ada").await;
        let own = [("token", text(&own, "access_token"))];
        refused(public.ask(&server, "/oauth2/introspect", &own).await, 401, "invalid_client");
    }
}

on_both! {
    async fn an_app_has_ten_access_tokens_of_a_grant_and_twenty_grants_of_a_user(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let first = app.tokens(&server, "ada").await;
        let mut tokens = first.clone();
        for _ in 0..9 {
            tokens = app.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(200).body;
        }
        acting(&server, &first).get("/devices").await.expect_status(200);
        tokens = app.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(200).body;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        acting(&server, &first).get("/devices").await.expect_status(401);
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        for _ in 0..19 {
            app.tokens(&server, "ada").await;
        }
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        app.tokens(&server, "ada").await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        acting(&server, &tokens).get("/devices").await.expect_status(401);
        assert_eq!(admin.get("/oauth2/grants").await.expect_status(200).body["total"], 20);
    }
}

on_both! {
    async fn a_cookie_is_worth_nothing_where_apps_ask(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register_as(&admin, "public", &["device:read"]).await;
        let code = app.code(&server, "ada").await;
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        let fields = [("grant_type", "authorization_code"), ("code", code.as_str()), ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER), ("client_id", app.id.as_str())];
        let tokens = browser.post("/api/v1/oauth2/token", &fields).await.expect_status(200);
        assert!(tokens.header("set-cookie").is_empty());
    }
}
