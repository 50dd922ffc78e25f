//! Subscriptions: what they take, what they show, and a test event.

use serde_json::json;

use super::{delivery, emit, start, subscribe, until};
use crate::support::on_both;

const SECRET: &str = "whsec-3f9a0c1b7d2e4856";
const VALUE: &str = "Bearer of-the-receiver-alone";

on_both! {
    async fn who_sends_events_elsewhere_must_be_allowed_to_have_them(database: Database) {
        let (server, api, receiver) = start(database).await;
        let body = json!({ "name": "All", "url": receiver.url("/ok"), "events": ["user.*"] });
        let made = api.post("/webhooks", &body).await.expect_status(201).body;
        let path = format!("/webhooks/{}", made["id"].as_str().unwrap());
        let key = json!({ "name": "settings", "scopes": ["settings:read", "settings:write"] });
        let key = api.post("/api-keys", &key).await.expect_status(201).body;
        let scoped = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        for change in [json!({ "url": "https://elsewhere.example/" }), json!({ "site_id": null }), json!({ "events": ["user.*"] })] {
            let refused = scoped.patch(&path, &change).await;
            assert!(matches!(refused.status, 403 | 422), "{change}: {}", refused.text);
        }
        scoped.patch(&path, &json!({ "name": "Renamed", "is_enabled": false })).await.expect_status(200);
        scoped.patch(&path, &json!({ "is_enabled": true })).await.expect_status(403);
        assert_eq!(api.get(&path).await.body["url"], receiver.url("/ok"));
    }
}

on_both! {
    async fn a_subscription_is_made_changed_and_removed_and_its_secrets_are_never_shown(database: Database) {
        let (server, api, receiver) = start(database).await;
        let body = json!({
            "name": "Chat", "url": receiver.url("/ok"), "events": ["device.*", "user.*", "device.*"],
            "signing_secret": SECRET, "headers": { "Authorization": VALUE },
        });
        let made = api.post("/webhooks", &body).await.expect_status(201);
        assert_eq!(made.body["signing_secret"], SECRET, "shown this once");
        assert_eq!((&made.body["header_names"], &made.body["events"]), (&json!(["authorization"]), &json!(["device.*", "user.*"])));
        let path = format!("/webhooks/{}", made.body["id"].as_str().unwrap());
        let tag = made.header("etag").to_owned();
        let seen = api.get(&path).await.expect_status(200);
        assert_eq!(seen.header("etag"), tag);

        let changed = api.with("if-match", &tag).patch(&path, &json!({ "name": "Chats" })).await.expect_status(200);
        assert_eq!(changed.body["name"], "Chats");
        api.with("if-match", &tag).patch(&path, &json!({ "name": "Late" })).await.expect_status(412);
        let elsewhere = json!({ "url": "https://elsewhere.example/" });
        let refused = api.patch(&path, &elsewhere).await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["field"], "/headers", "{}", refused.text);
        let both = json!({ "url": "https://elsewhere.example/", "headers": {} });
        assert_eq!(api.patch(&path, &both).await.expect_status(200).body["header_names"], json!([]));
        let rotated = api.post(&format!("{path}/rotate-secret"), &json!({})).await.expect_status(200);
        assert_ne!(rotated.body["signing_secret"], SECRET);

        emit(&server, &api, None, "edge").await;
        let log = api.get("/audit?per_page=200").await.expect_status(200).text;
        for text in [seen.text, changed.text, api.get("/webhooks?search=cha").await.expect_status(200).text, log] {
            assert!(!text.contains(SECRET) && !text.contains(VALUE), "{text}");
            assert!(!text.contains(rotated.body["signing_secret"].as_str().unwrap()), "{text}");
        }
        api.delete(&path).await.expect_status(204);
        api.get(&path).await.expect_status(404);
        api.get(&format!("{path}/deliveries")).await.expect_status(404);
        assert_eq!(api.get("/webhooks").await.body["total"], 0);
    }
}

on_both! {
    async fn what_could_not_be_sent_is_not_kept(database: Database) {
        let (server, api, _receiver) = start(database).await;
        let body = |change: serde_json::Value| {
            let mut body = json!({ "name": "x", "url": "https://hook.example/", "events": ["device.*"] });
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            body
        };
        let absent = "01900000-0000-7000-8000-000000000000";
        for (change, field) in [
            (json!({ "url": "ftp://hook.example/" }), "url"),
            (json!({ "url": "https://me:pw@hook.example/" }), "url"),
            (json!({ "url": "hook.example" }), "url"),
            (json!({ "events": [] }), "events"),
            (json!({ "events": vec!["device.*"; 51] }), "events"),
            (json!({ "events": ["network.*"] }), "events[0]"),
            (json!({ "events": ["device.*", ""] }), "events[1]"),
            (json!({ "headers": { "Host": "127.0.0.1" } }), "headers"),
            (json!({ "headers": { "X-Fabric-Signature": "sha256=00" } }), "headers"),
            (json!({ "headers": { "x-heddle-delivery": "1" } }), "headers"),
            (json!({ "headers": { "x-a": "1\r\nx-b: 2" } }), "headers"),
            (json!({ "headers": { "X-A": "1", "x-a": "2" } }), "headers"),
            (json!({ "signing_secret": "short" }), "signing_secret"),
            (json!({ "site_id": absent }), "site_id"),
            (json!({ "template_id": absent }), "template_id"),
            (json!({ "name": " " }), "name"),
        ] {
            let answer = api.post("/webhooks", &body(change.clone())).await.expect_status(422);
            assert_eq!(answer.body["error"]["details"][0]["field"], crate::support::at(field), "{change}: {}", answer.text);
        }
        let user = json!({ "username": "olga", "email": "olga@acme.test", "password": crate::support::PASSWORD, "role": "org_admin" });
        api.post("/users", &user).await.expect_status(201);
        let olga = server.log_in("olga").await;
        olga.post("/webhooks", &body(json!({ "events": ["*"] }))).await.expect_status(201);
        let key = olga.post("/api-keys", &json!({ "name": "k", "scopes": ["settings:write", "device:read"] })).await.expect_status(201).body;
        let scoped = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        let beyond = scoped.post("/webhooks", &body(json!({ "events": ["*"] }))).await.expect_status(422);
        assert!(beyond.text.contains("with scopes"), "a ceiling of scopes holds: {}", beyond.text);
        for (wrong, near) in [("device.ofline", "device.offline"), ("dev*", "device.*")] {
            let refused = api.post("/webhooks", &body(json!({ "events": [wrong] }))).await.expect_status(422);
            assert!(refused.text.contains(&format!("did you mean '{near}'?")), "{}", refused.text);
        }
        olga.post("/webhooks", &body(json!({ "events": ["user.*"] }))).await.expect_status(201);
    }
}

on_both! {
    async fn a_test_event_says_what_became_of_it(database: Database) {
        let (_server, api, receiver) = start(database).await;
        let test = async |url: &str| {
            let id = subscribe(&api, url).await;
            api.post(&format!("/webhooks/{id}/test"), &json!({})).await.expect_status(200).body
        };
        let fine = test(&receiver.url("/ok")).await;
        assert_eq!((&fine["is_delivered"], &fine["status_code"]), (&json!(true), &json!(200)), "{fine}");
        let got = receiver.got("/ok");
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].headers["x-heddle-event"], "webhook.test");
        assert_eq!((got[0].json()["event_type"].as_str(), got[0].delivery()), (Some("webhook.test"), fine["delivery_id"].as_str().unwrap()));
        let failing = test(&receiver.url("/fail")).await;
        assert_eq!((&failing["is_delivered"], &failing["status_code"], &failing["body"]), (&json!(false), &json!(500), &json!("not today")));
        let large = test(&receiver.url("/large")).await;
        assert_eq!((&large["truncated"], large["body"].as_str().map(str::len)), (&json!(true), Some(16 * 1024)));
        let redirected = test(&receiver.url("/redirect")).await;
        assert_eq!((&redirected["is_delivered"], &redirected["status_code"]), (&json!(false), &json!(302)));
        assert!(receiver.got("/target").is_empty(), "nobody goes where a redirect points to");
        let broken = test(&receiver.url("/close")).await;
        assert!(broken["status_code"].is_null() && broken["error"].is_string(), "{broken}");
        for url in [
            "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://localhost:1/", "http://[::1]:1/",
            "http://127.0.0.2:1/", "http://metadata.google.internal/", "http://0x7f.0.0.2/",
        ] {
            let refused = test(url).await;
            let error = refused["error"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains("is refused"), "{url}: {refused}");
        }
    }
}

on_both! {
    async fn a_query_is_not_shown_again_and_neither_is_what_a_receiver_repeats(database: Database) {
        let (server, api, receiver) = start(database).await;
        let body = json!({
            "name": "Echo", "url": receiver.url("/echo?token=t0p-s3cret&b=1"), "events": ["device.*"],
            "signing_secret": SECRET, "headers": { "Authorization": VALUE },
        });
        let made = api.post("/webhooks", &body).await.expect_status(201);
        let shown = receiver.url("/echo?…");
        assert_eq!(made.body["url"], shown);
        let path = format!("/webhooks/{}", made.body["id"].as_str().unwrap());
        // A client that sends back what was shown keeps the URL; on another path it would not fit.
        let kept = api.patch(&path, &json!({ "url": shown, "name": "Echoes" })).await.expect_status(200);
        assert_eq!(kept.body["url"], shown);
        let other = api.patch(&path, &json!({ "url": receiver.url("/other?…") })).await.expect_status(422);
        assert_eq!(other.body["error"]["details"][0]["field"], "/url", "{}", other.text);
        api.post(&format!("{path}/rotate-secret"), &json!({})).await.expect_status(200);

        emit(&server, &api, None, "edge").await;
        let hook = made.body["id"].as_str().unwrap();
        let done = delivery(&api, hook, |row| row["state"] == "delivered").await;
        assert_eq!(receiver.got("/echo?token=t0p-s3cret&b=1").len(), 1, "it goes where it was to go");
        let tested = api.post(&format!("{path}/test"), &json!({})).await.expect_status(200).body;
        for response in [&done["response"], &tested["body"]] {
            let response = response.as_str().unwrap();
            assert!(response.contains("***") && response.contains("x-heddle-event"), "{response}");
            assert!(!response.contains("t0p-s3cret") && !response.contains("of-the-receiver-alone"), "{response}");
        }
        let seen = api.get("/webhooks?per_page=200").await.expect_status(200).text;
        assert!(!seen.contains("t0p-s3cret"), "{seen}");
        let moved = api.patch(&path, &json!({ "url": receiver.url("/ok") })).await.expect_status(200).body;
        assert_eq!(moved["url"], receiver.url("/ok"));
        emit(&server, &api, None, "edge").await;
        until("the event", || async { receiver.got("/ok").pop() }).await;
    }
}
