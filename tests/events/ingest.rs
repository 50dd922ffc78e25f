//! Events from outside: what they become, and what is refused.

use chrono::TimeDelta;
use heddle_core::Role;
use serde_json::{Value, json};

use crate::support::{Database, Options, PASSWORD, Redis, Server, Socket, on_both};

on_both! {
    async fn a_callers_object_is_nested_and_its_name_made_plain(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let mut stream = Socket::subscribe(&api, &["*"]).await;
        let payload = json!({ "event_type": "device.offline", "n": 1, "deep": [{ "Password": "canary" }], "token": "canary" });
        let body = json!({ "name": "Door Open!", "payload": payload });
        let answer = api.post("/fabric/ingest", &body).await.expect_status(202);
        assert_eq!((&answer.body["accepted"], &answer.body["event_type"]), (&json!(true), &json!("ingest.external")));
        assert_eq!(answer.body["name"], "dooropen");
        assert_eq!((answer.header("location"), answer.header("etag")), ("", ""));
        let event = stream.event("ingest.external").await;
        assert_eq!(event["id"], answer.body["event_id"]);
        let data = json!({ "event_type": "device.offline", "n": 1, "deep": [{}] });
        assert_eq!(event["payload"], json!({ "name": "dooropen", "data": data }));
        assert_eq!((&event["category"], &event["priority"]), (&json!("external"), &json!("normal")));
        let one = api.get(&format!("/events/{}", event["id"].as_str().unwrap())).await.expect_status(200);
        assert_eq!(one.body, event);
        assert!(!one.header("etag").is_empty());

        let bare = api.post("/fabric/ingest", &json!({})).await.expect_status(202).body;
        assert_eq!(bare["name"], "");
        assert_eq!(stream.event("ingest.external").await["payload"], json!({ "name": "", "data": {} }));
    }
}

on_both! {
    async fn what_does_not_fit_is_refused_in_the_envelope(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        // Exactly at the limit: {"x":"…"} has eight bytes around the text.
        let of_bytes = |bytes: usize| json!({ "payload": { "x": "y".repeat(bytes - 8) } });
        api.post("/fabric/ingest", &of_bytes(65_536)).await.expect_status(202);
        let large = api.post("/fabric/ingest", &of_bytes(65_537)).await.expect_status(413);
        assert_eq!((large.error_type(), &large.body["error"]["code"]), ("payload_too_large", &json!(413)));
        assert!(large.message().contains("65537") && large.message().contains("65536"), "{}", large.text);
        let huge = json!({ "payload": { "x": "y".repeat(1_100_000) } });
        let huge = api.post("/fabric/ingest", &huge).await.expect_status(413);
        assert_eq!(huge.body, json!({ "detail": "request body exceeds 1048576-byte limit" }));
        for (body, field) in [
            (json!({ "name": "n".repeat(65) }), "name"),
            (json!({ "payload": [1] }), "payload"),
            (json!({ "payload": null }), "payload"),
            (json!({ "event_type": "device.offline" }), "event_type"),
        ] {
            let answer = api.post("/fabric/ingest", &body).await.expect_status(422);
            assert_eq!(answer.body["error"]["details"][0]["field"], crate::support::at(field), "{}", answer.text);
        }
        let operator = json!({ "username": "op", "email": "op@acme.test", "password": PASSWORD, "role": Role::Operator });
        api.post("/users", &operator).await.expect_status(201);
        let refused = server.log_in("op").await.post("/fabric/ingest", &json!({})).await.expect_status(403);
        assert!(refused.message().contains("event:write"), "{}", refused.text);
    }
}

on_both! {
    async fn a_hundred_and_twenty_a_minute_for_all_of_an_organization(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        server.running().app.clock.advance(TimeDelta::seconds(1));
        for n in 0..120 {
            let answer = api.post("/fabric/ingest", &json!({ "name": format!("n{n}") })).await;
            assert_eq!(answer.status, 202, "{n}: {}", answer.text);
        }
        let refused = api.post("/fabric/ingest", &json!({})).await.expect_status(429);
        assert_eq!(refused.body, json!({ "detail": "Rate limit exceeded", "retry_after": 60 }));
        assert_eq!(refused.header("retry-after"), "60");
        api.get("/sites").await.expect_status(200);
        let other = api.post("/organizations", &json!({ "name": "Other" })).await.expect_status(201).body;
        let body = json!({
            "username": "bob", "email": "bob@other.test", "password": PASSWORD, "role": "org_admin",
            "organization_id": other["id"],
        });
        api.post("/users", &body).await.expect_status(201);
        server.log_in("bob").await.post("/fabric/ingest", &json!({})).await.expect_status(202);
        server.running().app.clock.advance(TimeDelta::minutes(2));
        // The session is as old as the clock says.
        api.post("/fabric/ingest", &json!({})).await.expect_status(202);
    }
}

on_both! {
    async fn the_same_request_sent_again_is_one_event(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let keyed = api.with("idempotency-key", "once-1");
        let body = json!({ "name": "once" });
        let first = keyed.post("/fabric/ingest", &body).await.expect_status(202);
        let again = keyed.post("/fabric/ingest", &body).await.expect_status(202);
        assert_eq!((&first.body, again.header("idempotency-replayed")), (&again.body, "true"));
        keyed.post("/fabric/ingest", &json!({ "name": "other" })).await.expect_status(422);
        let events = api.get("/events?event_type=ingest.external").await.expect_status(200).body;
        assert_eq!(events["total"], 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_counters_are_away_events_still_come_in() {
    let redis = Redis::not_yet_started();
    let server =
        Server::start_with(Database::sqlite(), Options::default().with("CACHE_URL", redis.url())).await;
    // Sign-in is closed without counters; the setup is not.
    let api = server.set_up().await;
    for _ in 0..125 {
        api.post("/fabric/ingest", &json!({})).await.expect_status(202);
    }
    let health: Value = api.get("/health").await.body;
    assert_eq!(health["degraded_subsystems"], json!(["cache", "event_wakeups"]));
}
