//! Rights that shrink while a client listens, over the wire.

use std::time::{Duration, Instant};

use heddle_core::event::NewEvent;
use heddle_core::{OrgId, SiteId};
use serde_json::{Value, json};

use super::stream::{member, revoked};
use crate::identity::oauth2;
use crate::support::{Server, Socket, event_type, on_both};

const PATIENCE: Duration = Duration::from_secs(30);

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &Value) -> T {
    value.as_str().expect("an id is a text").parse().expect("an id")
}

/// A device of this site goes offline.
async fn offline(server: &Server, org: OrgId, site_id: SiteId) {
    let app = &server.running().app;
    let any = "01900000-0000-7000-8000-000000000001";
    let event = NewEvent {
        event_type: event_type("device.offline"),
        org_id: org,
        site_id: Some(site_id),
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: json!({ "device_id": any, "controller_id": any, "site_id": site_id, "name": "ap" }),
    };
    let mut tx = app.db.write().await.unwrap();
    heddle_store::events::append(&mut tx, &event, &app.clock).await.unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn a_right_that_is_lost_ends_its_subscriptions_and_no_other(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = oauth2::register(&admin, &["device:read", "controller:read", "vpn:read"]).await;
        let acting = oauth2::acting(&server, &app.tokens(&server, "ada").await);
        let mut socket = Socket::subscribe(&acting, &["controller.*", "device.*", "vpn.*"]).await;
        let fewer = json!({ "scopes": ["device:read"] });
        admin.patch(&format!("/oauth2/apps/{}", app.id), &fewer).await.expect_status(200);
        let frame = socket.next().await;
        assert_eq!((&frame["type"], &frame["patterns"]), (&json!("subscription_denied"), &json!(["controller.*", "vpn.*"])));
        let denials = json!([
            { "reason": "permission 'controller:read' is required", "patterns": ["controller.*"] },
            { "reason": "permission 'vpn:read' is required", "patterns": ["vpn.*"] },
        ]);
        assert_eq!(frame["denials"], denials);
        // What is left is heard, and what was lost cannot be had back.
        socket.send(&json!({ "type": "subscribe", "subscriptions": ["controller.*"] })).await;
        assert_eq!(socket.next().await["patterns"], json!(["controller.*"]));
        socket.send(&json!({ "type": "unsubscribe", "subscriptions": [] })).await;
        assert_eq!(socket.next().await, json!({ "type": "unsubscribed", "subscriptions": ["device.*"] }));
    }
}

on_both! {
    async fn events_of_a_site_that_is_taken_away_stop(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let me = admin.get("/auth/me").await.expect_status(200).body;
        let org: OrgId = id(&me["organization_id"]);
        let (viewer, user) = member(&server, &admin, "vera", "viewer").await;
        let access = format!("/organizations/{org}/site-access");
        let mut sites: Vec<SiteId> = Vec::new();
        for name in ["Here", "There"] {
            let site = admin.post("/sites", &json!({ "name": name })).await.expect_status(201).body["id"].clone();
            let grant = json!({ "user_id": user, "site_id": site, "level": "read" });
            admin.post(&access, &grant).await.expect_status(201);
            sites.push(id(&site));
        }
        let mut socket = Socket::subscribe(&viewer, &["device.*"]).await;
        socket.send(&json!({ "type": "set_filters", "site_ids": sites })).await;
        assert_eq!(socket.next().await["site_ids"].as_array().unwrap().len(), 2);
        for site in &sites {
            offline(&server, org, *site).await;
            assert_eq!(socket.event("device.offline").await["payload"]["site_id"], json!(site));
        }
        admin.delete(&format!("{access}/{user}/{}", sites[0])).await.expect_status(204);
        // Events of both sites are heard until the connection has read its caller again. That it reads the caller every five
        // minutes in any case would come too late.
        let began = Instant::now();
        loop {
            for site in &sites {
                offline(&server, org, *site).await;
            }
            let first = socket.event("device.offline").await["payload"]["site_id"].clone();
            if first == json!(sites[1]) {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "events of the site still come");
            assert_eq!(first, json!(sites[0]));
            assert_eq!(socket.event("device.offline").await["payload"]["site_id"], json!(sites[1]));
        }
        // The filter names it no more, and it cannot be named again.
        socket.send(&json!({ "type": "set_filters", "site_ids": sites })).await;
        assert_eq!(socket.next().await, json!({ "type": "filters_set", "site_ids": [sites[1]] }));
    }
}

on_both! {
    async fn a_token_that_its_app_gives_back_takes_its_stream_with_it(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = oauth2::register(&admin, &["device:read"]).await;
        let tokens = app.tokens(&server, "ada").await;
        let mut socket = Socket::subscribe(&oauth2::acting(&server, &tokens), &["device.*"]).await;
        let token = [("token", tokens["access_token"].as_str().unwrap())];
        app.ask(&server, "/oauth2/revoke", &token).await.expect_status(200);
        revoked(&mut socket).await;
        app.ask(&server, "/oauth2/revoke", &token).await.expect_status(200);
        let audit = admin.get("/audit?action=oauth2_grant.token_ended").await.expect_status(200).body;
        assert_eq!(audit["total"], 1, "{audit}");
    }
}

on_both! {
    async fn a_token_that_newer_ones_push_out_takes_its_stream_with_it(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = oauth2::register(&admin, &["device:read"]).await;
        let first = app.tokens(&server, "ada").await;
        let mut oldest = Socket::subscribe(&oauth2::acting(&server, &first), &["device.*"]).await;
        let mut last = first;
        let mut second = None;
        for number in 2..=10 {
            last = app.refresh(&server, last["refresh_token"].as_str().unwrap()).await.expect_status(200).body;
            if number == 2 {
                second = Some(Socket::subscribe(&oauth2::acting(&server, &last), &["device.*"]).await);
            }
        }
        oldest.send(&json!({ "type": "ping" })).await;
        assert_eq!(oldest.next().await["type"], "pong", "ten are good at once");
        app.refresh(&server, last["refresh_token"].as_str().unwrap()).await.expect_status(200);
        revoked(&mut oldest).await;
        let mut second = second.unwrap();
        second.send(&json!({ "type": "ping" })).await;
        assert_eq!(second.next().await["type"], "pong", "the others go on");
        let audit = admin.get("/audit?action=oauth2_grant.older_tokens_ended").await.expect_status(200).body;
        assert_eq!((&audit["total"], &audit["items"][0]["detail"]["count"]), (&json!(1), &json!(1)), "{audit}");
    }
}
