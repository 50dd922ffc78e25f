//! One person has one name, however it is written; and a name shows all that it holds.

use serde_json::{Value, json};

use crate::support::{Api, PASSWORD, Server, on_both};

async fn add(api: &Api, username: &str, email: &str) -> crate::support::Answer {
    let body = json!({ "username": username, "email": email, "password": PASSWORD, "role": "viewer" });
    api.post("/users", &body).await
}

on_both! {
    async fn a_name_is_one_whatever_its_case_and_its_code_points(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        add(&admin, "éve", "straße@acme.test").await.expect_status(201);
        for (username, email) in [
            ("ÉVE", "free@acme.test"), ("e\u{301}ve", "free@acme.test"), ("ｅ\u{301}ve", "free@acme.test"),
            ("free", "STRASSE@acme.test"), ("free", "Straße@ACME.test"),
        ] {
            let refused = add(&admin, username, email).await.expect_status(409);
            assert!(refused.message().contains("is taken"), "{}", refused.text);
        }
        add(&admin, "eve", "free@acme.test").await.expect_status(201);
        for login in ["éve", "ÉVE", "E\u{301}VE", "STRASSE@acme.test", "straße@Acme.Test", " strasse@acme.test "] {
            let body = json!({ "login": login, "password": PASSWORD });
            let opened = server.nobody().post("/auth/login", &body).await.expect_status(200).body;
            assert_eq!(opened["user"]["username"], "éve", "{login}");
        }
        // An email is no more free by being changed than by being chosen.
        let users = admin.get("/users?search=free").await.expect_status(200).body;
        let path = format!("/users/{}", users["items"][0]["id"].as_str().unwrap());
        admin.patch(&path, &json!({ "email": "STRASSE@acme.test" })).await.expect_status(409);
        admin.patch(&path, &json!({ "email": "Free@acme.test" })).await.expect_status(200);
    }
}

on_both! {
    async fn failures_are_counted_under_one_name_however_it_is_written(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        add(&admin, "éve", "eve@acme.test").await.expect_status(201);
        for spellings in [["éve", "ÉVE", "e\u{301}ve", "E\u{301}VE", "Éve"], ["ünknown", "ÜNKNOWN", "u\u{308}nknown", "Ünknown", "ÜnKnown"]] {
            for (at, login) in spellings.into_iter().enumerate() {
                let body = json!({ "login": login, "password": "Wrong-Horse-7-x" });
                let answer = server.nobody().post("/auth/login", &body).await.expect_status(401);
                assert_eq!(answer.error_type(), "unauthenticated", "{login} {at}");
            }
            let body = json!({ "login": spellings[0], "password": PASSWORD });
            server.nobody().post("/auth/login", &body).await.expect_status(423);
        }
    }
}

on_both! {
    async fn names_that_look_like_others_or_hide_something_are_refused_and_the_reason_is_said(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        for (username, email, field, word) in [
            ("аda", "x@acme.test", "username", "Cyrillic"),
            ("αda", "x@acme.test", "username", "Greek"),
            ("ok", "ada@аcme.test", "email", "Cyrillic"),
            ("a\u{3164}da", "x@acme.test", "username", "letters"),
            ("ok", "a\u{200b}da@acme.test", "email", "email address"),
        ] {
            let refused = add(&admin, username, email).await.expect_status(422);
            let detail = &refused.body["error"]["details"][0];
            assert_eq!(detail["field"], format!("/{field}"), "{}", refused.text);
            assert!(detail["message"].as_str().unwrap().contains(word), "{}", refused.text);
        }
        add(&admin, "иван", "иван@acme.test").await.expect_status(201);
        let site: Value = admin.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        for (path, body, field) in [
            ("/api-keys", json!({ "name": "a\u{202e}b" }), "name"),
            ("/sites", json!({ "name": "a\u{200b}b" }), "name"),
            ("/organizations", json!({ "name": "\u{feff}Umbrella" }), "name"),
            ("/roles", json!({ "name": "a\u{2066}b", "permissions": ["device:read"] }), "name"),
            ("/credentials", json!({ "name": "a\u{200d}b", "password": "x" }), "name"),
            ("/webhooks", json!({ "name": "a\u{2028}b", "url": "https://hook.example/", "events": ["device.*"] }), "name"),
            ("/controllers", json!({ "name": "a\u{7}b", "site_id": site, "vendor": "openwrt",
                "url": "https://192.0.2.1", "credential_id": site }), "name"),
            ("/oauth2/apps", json!({ "name": "a\u{202e}b", "client_type": "public",
                "redirect_uris": ["https://app.example/cb"], "scopes": ["device:read"] }), "name"),
            ("/notifications/channels", json!({ "kind": "slack", "label": "a\u{202e}b",
                "webhook_url": "https://hooks.example/x" }), "label"),
            ("/automation/schedules", json!({ "name": "a\u{202e}b", "cron": "0 0 1 1 *", "time_zone": "UTC",
                "missed": "skip", "steps": [{ "operation_id": "sites.list" }], "state": "paused" }), "name"),
        ] {
            let refused = admin.post(path, &body).await.expect_status(422);
            let details = refused.body["error"]["details"].as_array().unwrap();
            let names_it = details.iter().any(|detail| {
                detail["field"] == format!("/{field}") && detail["message"].as_str().is_some_and(|m| m.contains("direction marks"))
            });
            assert!(names_it, "{path}: {}", refused.text);
        }
    }
}
