//! What is forgotten, and what is not.

use heddle_core::event::NewEvent;
use serde_json::json;

use crate::support::{PASSWORD, Server, event_type, on_both};

async fn emit(server: &Server, org: heddle_core::OrgId, count: usize) {
    let app = &server.running().app;
    let event = NewEvent {
        event_type: event_type("device.offline"),
        org_id: org,
        site_id: None,
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: json!({}),
    };
    let mut tx = app.db.write().await.unwrap();
    heddle_store::events::append_all(&mut tx, org, &vec![event; count], &app.clock).await.unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn events_are_kept_as_long_as_the_organization_says(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let me = api.get("/auth/me").await.expect_status(200).body;
        let org: heddle_core::OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
        let path = format!("/organizations/{org}");
        for bad in [0, 3651] {
            let body = json!({ "settings": { "event_retention_days": bad } });
            let answer = api.patch(&path, &body).await.expect_status(422);
            assert!(answer.text.contains("from 1 to 3650"), "{}", answer.text);
        }
        let kept = api.patch(&path, &json!({ "settings": { "event_retention_days": 3 } })).await.expect_status(200);
        assert_eq!(kept.body["settings"]["event_retention_days"], 3, "{}", kept.text);
        emit(&server, org, 2_500).await;
        let app = &server.running().app;
        let audited = api.get("/audit").await.expect_status(200).body["total"].clone();
        app.clock.advance(chrono::TimeDelta::days(2));
        emit(&server, org, 10).await;
        assert_eq!(heddle_kernel::retention::round_if_due(app).await.unwrap(), Some(0), "nothing is old enough");
        assert_eq!(heddle_kernel::retention::round_if_due(app).await.unwrap(), None, "not twice in an hour");
        app.clock.advance(chrono::TimeDelta::days(2));
        assert_eq!(heddle_kernel::retention::round_if_due(app).await.unwrap(), Some(2_500));
        // Also the newest is too old by then, and stays; the session of the setup is forgotten.
        app.clock.advance(chrono::TimeDelta::days(60));
        let forgotten = heddle_kernel::retention::round_if_due(app).await.unwrap().unwrap();
        assert!(forgotten >= 10, "9 events and a session: {forgotten}");
        let login = json!({ "login": "ada", "password": PASSWORD });
        let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
        let api = server.nobody().with_token(tokens["access_token"].as_str().unwrap());
        let left = api.get("/events").await.expect_status(200).body;
        assert_eq!((&left["total"], &left["items"][0]["seq"]), (&json!(1), &json!(2_510)), "{left}");
        let still = api.get("/audit").await.expect_status(200).body["total"].as_i64().unwrap();
        assert!(still >= audited.as_i64().unwrap(), "the audit log is never trimmed");
        assert_eq!(api.get("/audit/validate").await.expect_status(200).body["valid"], true);
        emit(&server, org, 1).await;
        assert_eq!(api.get("/events").await.body["items"][0]["seq"], 2_511, "the numbers go on");
    }
}
