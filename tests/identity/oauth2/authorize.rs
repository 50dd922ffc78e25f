//! What an app asks for, and what it learns (RFC 6749 section 4.1.2.1, RFC 7636, RFC 9207, RFC 8414).

use serde_json::json;

use super::browser::Browser;
use super::{App, CALLBACK, CHALLENGE, parameter, register, text};
use crate::support::{Options, Server, on_both};

on_both! {
    async fn an_app_that_cannot_be_answered_is_not_answered(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let mut browser = Browser::new(&server);
        let unknown = "01900000-0000-7000-8000-000000000000";
        for id in [None, Some(""), Some("nonsense"), Some(unknown)] {
            let page = browser.get(&app.request(&[("client_id", id)])).await.expect_status(400);
            assert_eq!((page.header("location"), page.header("content-type")), ("", "text/html; charset=utf-8"), "{id:?}");
        }
        for uri in [
            "https://app.example/cb/",
            "https://app.example/cb/more",
            "https://app.example/CB",
            "https://APP.example/cb",
            "https://app.example/%63b",
            "https://app.example/cb?x=1",
            "https://app.example/cb#x",
            "https://app.example:443/cb",
            "https://app.example:8443/cb",
            "https://app.example.evil.example/cb",
            "https://app.example@evil.example/cb",
            "http://app.example/cb",
            "//app.example/cb",
            "javascript:alert(1)",
        ] {
            let page = browser.get(&app.request(&[("redirect_uri", Some(uri))])).await.expect_status(400);
            assert_eq!(page.header("location"), "", "{uri}");
            assert!(page.text.contains("redirect_uri"), "{}", page.text);
        }
        browser.get(&app.request(&[("redirect_uri", None)])).await.expect_status(400);
        for twice in ["client_id", "redirect_uri"] {
            let page = browser.get(&format!("{}&{twice}=x", app.request(&[]))).await.expect_status(400);
            assert!(page.text.contains(twice), "{}", page.text);
        }
    }
}

on_both! {
    async fn what_else_is_wrong_the_app_is_told_where_it_is_registered(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let mut nobody = Browser::new(&server);
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        let padded = format!("{CHALLENGE}=");
        let cases: &[(&str, Option<&str>, &str)] = &[
            ("response_type", None, "invalid_request"),
            ("response_type", Some("token"), "unsupported_response_type"),
            ("response_type", Some("code id_token"), "unsupported_response_type"),
            ("code_challenge", None, "invalid_request"),
            ("code_challenge", Some(""), "invalid_request"),
            ("code_challenge", Some(&padded), "invalid_request"),
            ("code_challenge_method", None, "invalid_request"),
            ("code_challenge_method", Some("plain"), "invalid_request"),
            ("code_challenge_method", Some("s256"), "invalid_request"),
            ("scope", Some("device:reed"), "invalid_scope"),
            ("scope", Some("device:read user:read"), "invalid_scope"),
            ("scope", Some("device:*"), "invalid_scope"),
            ("scope", Some("*"), "invalid_scope"),
        ];
        for (name, value, error) in cases {
            let hop = nobody.come_from_elsewhere(&app.request(&[(name, *value)])).await.expect_status(200);
            let shown = nobody.follow(&hop).await.expect_status(400);
            assert_eq!(shown.header("location"), "", "who is nobody is sent nowhere");
            // A browser that comes from the app shows its cookies one step later.
            let hop = browser.come_from_elsewhere(&app.request(&[(name, *value)])).await.expect_status(200);
            let told = browser.follow(&hop).await.expect_status(303);
            let location = told.header("location");
            assert!(location.starts_with(&format!("{CALLBACK}?error=")), "{location}");
            assert_eq!(parameter(location, "error").as_deref(), Some(*error), "{name}={value:?}");
            assert!(parameter(location, "error_description").is_some_and(|text| !text.is_empty()));
            assert_eq!(parameter(location, "state").as_deref(), Some("a state/?&"));
            assert_eq!(parameter(location, "iss").as_deref(), Some(server.nobody().base()));
        }
        let twice = browser.get(&format!("{}&scope=device:read&scope=device:read", app.request(&[]))).await.expect_status(303);
        assert_eq!(parameter(twice.header("location"), "error").as_deref(), Some("invalid_request"));
        let stateless = browser.get(&app.request(&[("state", None), ("response_type", None)])).await.expect_status(303);
        assert_eq!(parameter(stateless.header("location"), "state"), None);
        browser.get(&format!("{}&unknown=1", app.request(&[]))).await.expect_status(200);
    }
}

on_both! {
    async fn a_key_or_an_app_is_nobody_who_could_consent(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let path = app.request(&[]).replace("/api/v1", "");
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let tokens = app.tokens(&server, "ada").await;
        for caller in [
            server.nobody().with("x-api-key", text(&key, "api_key")),
            server.nobody().with_token(text(&tokens, "access_token")),
        ] {
            let page = caller.get(&format!("{path}&step=here")).await.expect_status(200);
            assert!(page.text.contains("Log in") && !page.text.contains("Allow"), "{}", page.text);
        }
    }
}

on_both! {
    async fn the_service_says_what_it_is_to_apps(database: Database) {
        let server = Server::start_with(database, Options::default().with("PUBLIC_URL", "https://heddle.example")).await;
        let admin = server.set_up().await;
        let found = server.nobody().get_root("/.well-known/oauth-authorization-server").await.expect_status(200).body;
        assert_eq!(found["issuer"], "https://heddle.example");
        assert_eq!(found["authorization_endpoint"], "https://heddle.example/api/v1/oauth2/authorize");
        for (name, path) in [("token_endpoint", "token"), ("revocation_endpoint", "revoke"), ("introspection_endpoint", "introspect")] {
            assert_eq!(found[name], format!("https://heddle.example/api/v1/oauth2/{path}"));
        }
        assert_eq!(found["response_types_supported"], json!(["code"]));
        assert_eq!(found["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(found["grant_types_supported"], json!(["authorization_code", "refresh_token"]));
        assert_eq!(found["authorization_response_iss_parameter_supported"], true);
        assert!(found["scopes_supported"].as_array().unwrap().contains(&json!("device:read")));
        let app = register(&admin, &["device:read"]).await;
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        let told = browser.get(&app.request(&[("response_type", None)])).await.expect_status(303);
        assert_eq!(parameter(told.header("location"), "iss").as_deref(), Some("https://heddle.example"));
    }
}

on_both! {
    async fn an_address_of_several_is_answered_as_it_was_asked(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let uris = ["https://a.example/cb?tenant=1", "http://127.0.0.1:4000/cb", "http://[::1]:4000/cb"];
        let body = json!({ "name": "Many", "client_type": "public", "redirect_uris": uris, "scopes": ["device:read"] });
        let made = admin.post("/oauth2/apps", &body).await.expect_status(201).body;
        let app = App { id: text(&made, "id").to_owned(), secret: None };
        let mut browser = Browser::new(&server);
        browser.log_in(&server, "ada").await;
        for (uri, start) in uris.iter().zip(["https://a.example/cb?tenant=1&code=", "http://127.0.0.1:4000/cb?code=", "http://[::1]:4000/cb?code="]) {
            let question = browser.get(&app.request(&[("redirect_uri", Some(uri))])).await.expect_status(200);
            let sent = browser.submit(&question, &[("decision", "allow")]).await.expect_status(303);
            assert!(sent.header("location").starts_with(start), "{}", sent.header("location"));
        }
        browser.get(&app.request(&[("redirect_uri", Some("http://127.0.0.1:4001/cb"))])).await.expect_status(400);
    }
}
