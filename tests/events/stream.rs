//! Which callers may listen, to what, and until when.

use std::time::Duration;

use serde_json::{Value, json};

use super::ingest;
use crate::identity::oauth2;
use crate::support::{Api, PASSWORD, Server, Socket, event_type, on_both};

pub(super) async fn member(server: &Server, admin: &Api, name: &str, role: &str) -> (Api, String) {
    let body = json!({
        "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": role,
    });
    let user = admin.post("/users", &body).await.expect_status(201).body;
    (server.log_in(name).await, user["id"].as_str().unwrap().to_owned())
}

/// Waits until the end of the session ends the connection.
///
/// A connection reads its caller every five minutes in any case. The test waits for a fraction of that, so the end
/// follows from the revocation. The bench `revocation` measures how soon.
pub(super) async fn revoked(socket: &mut Socket) {
    assert_eq!(socket.next().await, json!({ "type": "session_revoked" }));
    assert_eq!(socket.close_reason().await, (1008, "session is revoked".to_owned()));
}

on_both! {
    async fn whoever_loses_their_session_loses_the_stream(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (viewer, id) = member(&server, &admin, "vera", "viewer").await;
        let mut stays = Socket::subscribe(&admin, &["user.*"]).await;
        // One session of several.
        let second = server.log_in("vera").await;
        let (mut first_socket, mut second_socket) =
            (Socket::authenticated(&viewer).await, Socket::authenticated(&second).await);
        second.post("/auth/logout", &json!({})).await.expect_status(204);
        revoked(&mut second_socket).await;
        first_socket.send(&json!({ "type": "ping" })).await;
        assert_eq!(first_socket.next().await["type"], "pong", "another session of the user goes on");
        // All of them.
        viewer.post("/auth/logout-all", &json!({})).await.expect_status(204);
        revoked(&mut first_socket).await;
        // An administrator's doing.
        let again = server.log_in("vera").await;
        let mut socket = Socket::authenticated(&again).await;
        admin.patch(&format!("/users/{id}"), &json!({ "is_active": false })).await.expect_status(200);
        revoked(&mut socket).await;
        assert_eq!(stays.event("user.updated").await["payload"]["user_id"], id.as_str());
    }
}

on_both! {
    async fn rights_that_shrink_shrink_the_stream(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let (caller, id) = member(&server, &admin, "olaf", "org_admin").await;
        let mut socket = Socket::subscribe(&caller, &["user.*", "device.*"]).await;
        admin.patch(&format!("/users/{id}"), &json!({ "role": "viewer" })).await.expect_status(200);
        loop {
            let frame = socket.next().await;
            match frame["type"].as_str() {
                // The change itself, which was still theirs to see, or the end of the session where a role ends it.
                Some("event") => {}
                Some("subscription_denied") => {
                    assert_eq!(frame["patterns"], json!(["user.*"]));
                    break;
                }
                Some("session_revoked") => break,
                _ => panic!("{frame}"),
            }
        }
    }
}

on_both! {
    async fn an_app_listens_within_its_scopes_and_a_key_not_at_all(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = oauth2::register(&admin, &["device:read"]).await;
        let tokens = app.tokens(&server, "ada").await;
        let acting = oauth2::acting(&server, &tokens);
        let mut socket = Socket::connect(&acting).await;
        socket.send(&json!({ "type": "auth", "token": acting.token() })).await;
        let connected = socket.next().await;
        let available: Vec<&str> =
            connected["available_events"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        // All that the right to read devices opens.
        let is_of_devices = |name: &&str| ["device.", "camera.", "pbx."].iter().any(|prefix| name.starts_with(prefix));
        assert!(!available.is_empty() && available.iter().all(is_of_devices), "{available:?}");
        let asked = json!(["*", "controller.*", "device.*"]);
        socket.send(&json!({ "type": "subscribe", "subscriptions": asked })).await;
        assert_eq!(socket.next().await["patterns"], json!(["*", "controller.*"]));
        assert_eq!(socket.next().await, json!({ "type": "subscribed", "subscriptions": ["device.*"] }));
        let grants = admin.get("/oauth2/grants").await.expect_status(200).body;
        let grant = grants["items"][0]["id"].as_str().unwrap().to_owned();
        admin.delete(&format!("/oauth2/grants/{grant}")).await.expect_status(204);
        revoked(&mut socket).await;

        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let key = key["api_key"].as_str().unwrap();
        let refused = (1008, "API keys are not accepted here: authenticate with an access token".to_owned());
        let mut by_frame = Socket::connect(&admin).await;
        by_frame.send(&json!({ "type": "auth", "token": key })).await;
        assert_eq!(by_frame.close_reason().await, refused);
        let mut by_header = Socket::connect_with(&admin, &[("x-api-key", key)]).await;
        assert_eq!(by_header.close_reason().await, refused);
        let mut by_query = Socket::connect_at(&admin, &format!("/ws?token={key}")).await;
        assert_eq!(by_query.close_reason().await, refused);
    }
}

on_both! {
    async fn a_page_of_somebody_else_is_told_so(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let cookie = format!("svc_access={}", api.token());
        let host = api.base().trim_start_matches("http://").to_owned();
        let own = format!("http://{host}");
        let mut socket = Socket::connect_with(&api, &[("origin", &own), ("cookie", &cookie)]).await;
        assert_eq!(socket.next().await["type"], "connected");
        for origin in ["https://evil.example", "null", &format!("http://{host}.evil.example")] {
            let mut socket = Socket::connect_with(&api, &[("origin", origin), ("cookie", &cookie)]).await;
            assert_eq!(socket.close_reason().await, (1008, "origin not allowed".to_owned()), "{origin}");
        }
        // Behind TLS, a page that was served without TLS belongs to another site.
        let headers = [("origin", own.as_str()), ("cookie", &cookie), ("x-forwarded-proto", "https")];
        assert_eq!(Socket::connect_with(&api, &headers).await.close_code().await, 1008);
    }
}

on_both! {
    async fn the_twenty_sixth_connection_of_a_user_is_one_too_many(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let mut open = Vec::new();
        for _ in 0..25 {
            open.push(Socket::authenticated(&api).await);
        }
        let mut more = Socket::connect(&api).await;
        more.send(&json!({ "type": "auth", "token": api.token() })).await;
        assert_eq!(more.close_reason().await, (1013, "too many connections".to_owned()));
        assert_eq!(api.get("/ws/stats").await.expect_status(200).body, json!({ "active_connections": 25 }));
    }
}

on_both! {
    async fn a_listener_that_takes_nothing_is_dropped_and_holds_nobody_up(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let quick = Socket::subscribe(&api, &["*"]).await;
        let slow = Socket::subscribe(&api, &["*"]).await;
        let app = server.running().app.clone();
        let me = api.get("/auth/me").await.expect_status(200).body;
        let org: heddle_core::OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
        let event = heddle_core::event::NewEvent {
            event_type: event_type("ingest.external"),
            org_id: org,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: json!({ "name": "n", "data": { "x": "y".repeat(4_000) } }),
        };
        let writing = async {
            for _ in 0..24 {
                let mut tx = app.db.write().await.unwrap();
                heddle_store::events::append_all(&mut tx, org, &vec![event.clone(); 500], &app.clock).await.unwrap();
                tx.commit().await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let reading = async {
            let mut quick = quick;
            let mut last = 0;
            while last < 12_000 {
                let frame = quick.next().await;
                let seq = frame["event"]["seq"].as_i64().unwrap_or(last);
                assert!(last == 0 || seq == last + 1, "{last} and then {seq}");
                last = seq;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), async { tokio::join!(writing, reading) }).await.expect("in time");
        for _ in 0..300 {
            if api.get("/ws/stats").await.body["active_connections"] == 0 {
                drop(slow);
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("who takes nothing still has a place");
    }
}

on_both! {
    async fn a_gap_is_closed_by_resuming(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let mut socket = Socket::subscribe(&api, &["*"]).await;
        ingest(&api, "one").await;
        let first = socket.event("ingest.external").await["seq"].as_i64().unwrap();
        drop(socket);
        let mut witness = Socket::subscribe(&api, &["*"]).await;
        for name in ["two", "three"] {
            ingest(&api, name).await;
        }
        // What this one has seen comes to no later one by itself.
        while witness.event("ingest.external").await["payload"]["name"] != "three" {}
        let mut socket = Socket::subscribe(&api, &["*"]).await;
        socket.send(&json!({ "type": "resume", "after_seq": first })).await;
        for (name, seq) in [("two", first + 1), ("three", first + 2)] {
            let event = socket.event("ingest.external").await;
            assert_eq!((&event["payload"]["name"], &event["seq"]), (&json!(name), &json!(seq)));
        }
        let org = api.get("/auth/me").await.body["organization_id"].clone();
        let resumed =
            json!({ "type": "resumed", "organization_id": org, "last_seq": first + 2, "truncated": false });
        assert_eq!(socket.next().await, resumed);
    }
}

on_both! {
    async fn a_cookie_that_is_not_valid_any_more_keeps_nobody_from_saying_who_they_are(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let gone = server.log_in("ada").await;
        gone.post("/auth/logout", &json!({})).await.expect_status(204);
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        for stale in [gone.token(), "no.token.at.all", key["api_key"].as_str().unwrap()] {
            let cookie = format!("svc_access={stale}");
            let mut socket = Socket::connect_with(&admin, &[("cookie", &cookie)]).await;
            socket.send(&json!({ "type": "auth", "token": admin.token() })).await;
            assert_eq!(socket.next().await["type"], "connected", "{stale}");
            // The cookie stands for no caller: a frame that is not auth ends the connection as without a cookie.
            let mut socket = Socket::connect_with(&admin, &[("cookie", &cookie)]).await;
            socket.send(&json!({ "type": "ping" })).await;
            let refused = (1008, "first frame must be auth with a token".to_owned());
            assert_eq!(socket.close_reason().await, refused, "{stale}");
        }
        // A token that the client gives on purpose is judged as it is.
        let mut socket = Socket::connect_at(&admin, "/ws?token=no.token.at.all").await;
        assert_eq!(socket.close_reason().await, (1008, "token is not valid".to_owned()));
    }
}

on_both! {
    async fn who_hears_all_organizations_resumes_each_by_its_own_numbers(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let umbrella = admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let site = json!({ "name": "Hive", "organization_id": umbrella["id"] });
        admin.post("/sites", &site).await.expect_status(201);
        let body = json!({
            "username": "alice", "email": "alice@umbrella.test", "password": PASSWORD, "role": "org_admin",
            "organization_id": umbrella["id"],
        });
        admin.post("/users", &body).await.expect_status(201);
        let mut socket = Socket::subscribe(&admin, &["user.*"]).await;
        let ask = json!({ "type": "resume", "after_seq": 0, "organization_id": umbrella["id"] });
        socket.send(&ask).await;
        let event = socket.event("user.created").await;
        assert_eq!((&event["organization_id"], &event["payload"]["username"]), (&umbrella["id"], &json!("alice")));
        let resumed = loop {
            let frame = socket.next().await;
            match frame["type"].as_str() {
                Some("event") => assert_eq!(frame["event"]["organization_id"], umbrella["id"]),
                _ => break frame,
            }
        };
        assert_eq!((&resumed["type"], &resumed["organization_id"]), (&json!("resumed"), &umbrella["id"]));
        // A caller who hears one organization resumes that one, and does not learn whether there is another.
        let alice = server.log_in("alice").await;
        let mut socket = Socket::subscribe(&alice, &["user.*"]).await;
        let own = admin.get("/auth/me").await.body["organization_id"].clone();
        for other in [own, json!("01900000-0000-7000-8000-000000000000")] {
            socket.send(&json!({ "type": "resume", "after_seq": 0, "organization_id": other })).await;
            let message = "events of another organization are not yours to resume";
            assert_eq!(socket.next().await, json!({ "type": "error", "message": message }));
        }
        socket.send(&ask).await;
        assert_eq!(socket.event("user.created").await["payload"]["username"], "alice");
    }
}

on_both! {
    async fn a_connection_knows_where_it_begins_and_what_is_wrong_with_a_frame(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let newest = async || api.get("/events?per_page=1").await.expect_status(200).body["items"][0]["seq"].as_i64().unwrap_or(0);
        let before = newest().await;
        let mut socket = Socket::connect(&api).await;
        socket.send(&json!({ "type": "auth", "token": api.token() })).await;
        let connected = socket.next().await;
        assert_eq!((&connected["type"], &connected["seq"]), (&json!("connected"), &json!(before)));
        api.post("/fabric/ingest", &json!({ "name": "between" })).await.expect_status(202);
        socket.send(&json!({ "type": "subscribe", "subscriptions": ["*"] })).await;
        socket.send(&json!({ "type": "resume", "after_seq": connected["seq"] })).await;
        socket.event("ingest.external").await;
        for (frame, said) in [
            (json!({ "type": "resume" }), "frame 'resume' is not right: missing field 'after_seq'"),
            (json!({ "type": "resmue", "after_seq": 1 }), "frame type 'resmue' is unknown: did you mean 'resume'?"),
        ] {
            socket.send(&frame).await;
            let error = loop {
                let frame = socket.next().await;
                if frame["type"] == "error" {
                    break frame;
                }
            };
            assert_eq!(error["message"], said);
        }
    }
}
