//! Notices: which users see them, and which users have read them.

use chrono::TimeDelta;
use heddle_core::OrgId;
use heddle_core::notification::{Audience, Severity};
use heddle_store::notices::{self, NewNotice};
use serde_json::{Value, json};

use crate::support::{Api, PASSWORD, Server, on_both};

async fn tell(server: &Server, org: OrgId, audience: Audience, subject: &str) -> String {
    let app = &server.running().app;
    let new = NewNotice {
        id: app.clock.new_id(),
        org_id: org,
        audience,
        user_id: None,
        severity: Severity::Critical,
        subject: subject.to_owned(),
        body: "b".to_owned(),
        source: "test".to_owned(),
        origin: None,
        now: app.clock.now(),
    };
    let mut tx = app.db.write().await.unwrap();
    notices::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    new.id.to_string()
}

async fn subjects(api: &Api, query: &str) -> Vec<String> {
    let page = api.get(&format!("/notifications{query}")).await.expect_status(200).body;
    page["items"].as_array().unwrap().iter().map(|one| one["subject"].as_str().unwrap().to_owned()).collect()
}

async fn unread(api: &Api) -> Value {
    api.get("/notifications/unread").await.expect_status(200).body["unread"].clone()
}

on_both! {
    async fn whoever_is_meant_sees_a_notice_and_reads_it_for_themself(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let me = admin.get("/auth/me").await.expect_status(200).body;
        let org: OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
        let user = json!({ "username": "vera", "email": "vera@acme.test", "password": PASSWORD, "role": "viewer" });
        admin.post("/users", &user).await.expect_status(201);
        let viewer = server.log_in("vera").await;
        let for_admins = tell(&server, org, Audience::Administrators, "for administrators").await;
        for n in 0..3 {
            tell(&server, org, Audience::Organization, &format!("for all {n}")).await;
        }
        assert_eq!(subjects(&admin, "").await, ["for all 2", "for all 1", "for all 0", "for administrators"]);
        assert_eq!(subjects(&viewer, "").await, ["for all 2", "for all 1", "for all 0"]);
        let first = viewer.get("/notifications?per_page=2").await.expect_status(200).body;
        let cursor = first["next_cursor"].as_str().unwrap();
        assert_eq!(subjects(&viewer, &format!("?per_page=2&cursor={cursor}")).await, ["for all 0"]);

        viewer.post(&format!("/notifications/{for_admins}/read"), &json!({})).await.expect_status(404);
        let id = first["items"][0]["id"].as_str().unwrap();
        let read = viewer.post(&format!("/notifications/{id}/read"), &json!({})).await.expect_status(200).body;
        assert!(read["read_at"].is_string());
        server.running().app.clock.advance(TimeDelta::seconds(5));
        let again = viewer.post(&format!("/notifications/{id}/read"), &json!({})).await.expect_status(200).body;
        assert_eq!(again, read, "the first time counts");
        assert_eq!((unread(&viewer).await, unread(&admin).await), (json!(2), json!(4)));
        assert_eq!(subjects(&viewer, "?unread=true").await, ["for all 1", "for all 0"]);
        assert_eq!(subjects(&viewer, "?unread=false").await, ["for all 2"]);
        let read = admin.post("/notifications/read-all", &json!({})).await.expect_status(200).body;
        assert_eq!(read, json!({ "read": 4 }));
        assert_eq!((unread(&viewer).await, unread(&admin).await), (json!(2), json!(0)));
        admin.get("/notifications?unread=maybe").await.expect_status(422);
    }
}

on_both! {
    async fn a_notice_is_forgotten_after_thirty_days(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let me = admin.get("/auth/me").await.expect_status(200).body;
        let org: OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
        let id = tell(&server, org, Audience::Organization, "old").await;
        admin.post(&format!("/notifications/{id}/read"), &json!({})).await.expect_status(200);
        let app = &server.running().app;
        app.clock.advance(TimeDelta::days(29));
        heddle_kernel::retention::round_if_due(app).await.unwrap();
        let admin = server.log_in("ada").await;
        assert_eq!(subjects(&admin, "").await, ["old"]);
        app.clock.advance(TimeDelta::days(2));
        heddle_kernel::retention::round_if_due(app).await.unwrap();
        let admin = server.log_in("ada").await;
        assert!(subjects(&admin, "").await.is_empty());
    }
}
