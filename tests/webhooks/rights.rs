//! An author's rights count when an event is sent, and their loss is noticed.

use chrono::TimeDelta;
use serde_json::json;

use super::{deliveries, delivery, later, start, until};
use crate::support::{PASSWORD, on_both};

on_both! {
    async fn what_its_author_may_not_have_any_more_is_not_sent_and_administrators_are_told(database: Database) {
        let (server, api, receiver) = start(database).await;
        let user = |name: &str, role: &str| json!({
            "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": role,
        });
        let olga = api.post("/users", &user("olga", "org_admin")).await.expect_status(201).body;
        let author = server.log_in("olga").await;
        let body = json!({ "name": "Staff", "url": receiver.url("/fail"), "events": ["user.created"] });
        let made = author.post("/webhooks", &body).await.expect_status(201).body;
        assert_eq!((&made["problem"], &made["author_id"]), (&json!(null), &olga["id"]));
        let hook = made["id"].as_str().unwrap().to_owned();
        let path = format!("/webhooks/{hook}");
        api.post("/users", &user("bob", "viewer")).await.expect_status(201);
        until("the first attempt", || async {
            deliveries(&api, &hook).await.into_iter().find(|row| row["attempts"] == 1)
        })
        .await;

        let olga = format!("/users/{}", olga["id"].as_str().unwrap());
        api.patch(&olga, &json!({ "role": "viewer" })).await.expect_status(200);
        let shown = api.get(&path).await.expect_status(200).body;
        let problem = shown["problem"].as_str().unwrap_or_default().to_owned();
        assert!(problem.contains("'olga'") && problem.contains("'user.created'"), "{shown}");
        let api = later(&server, TimeDelta::seconds(11)).await;
        let dead = until("the end of it", || async {
            deliveries(&api, &hook).await.into_iter().find(|row| row["state"] == "dead")
        })
        .await;
        assert!(dead["last_error"].as_str().unwrap().starts_with("not sent: its author 'olga'"), "{dead}");
        assert_eq!(receiver.got("/fail").len(), 1, "it was not sent again");
        let asked = api.post(&format!("{path}/replay"), &json!({ "from_seq": 1, "to_seq": 9, "state": "dead" })).await;
        assert_eq!(asked.status, 202, "{}", asked.text);

        // Another event: the notice stays the only one.
        api.post("/users", &user("carl", "viewer")).await.expect_status(201);
        let told = async || {
            let told = api.get("/notifications?per_page=200").await.expect_status(200).body;
            let rows = told["items"].as_array().unwrap().clone();
            rows.into_iter().filter(|row| row["body"].as_str().unwrap().contains("'olga'")).collect::<Vec<_>>()
        };
        until("the notice", || async { (!told().await.is_empty()).then_some(()) }).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let notices = told().await;
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0]["subject"].as_str().unwrap().contains("'Staff'"), "{notices:?}");

        // A user who may have the events takes the webhook over.
        let change = json!({ "url": receiver.url("/ok"), "events": ["user.created"] });
        let mended = api.patch(&path, &change).await.expect_status(200).body;
        assert_eq!(mended["problem"], json!(null));
        api.post("/users", &user("dora", "viewer")).await.expect_status(201);
        until("the event", || async {
            receiver.got("/ok").iter().any(|got| got.json()["payload"]["username"] == "dora").then_some(())
        })
        .await;
    }
}

on_both! {
    async fn an_administrator_receives_and_replays_what_is_the_organizations(database: Database) {
        let (server, api, receiver) = start(database).await;
        let olga = json!({ "username": "olga", "email": "olga@acme.test", "password": PASSWORD, "role": "org_admin" });
        api.post("/users", &olga).await.expect_status(201);
        let olga = server.log_in("olga").await;
        let body = json!({ "name": "All", "url": receiver.url("/ok"), "events": ["*"] });
        let hook = olga.post("/webhooks", &body).await.expect_status(201).body;
        assert_eq!(hook["problem"], json!(null), "{hook}");
        let hook = hook["id"].as_str().unwrap();
        api.post("/fabric/ingest", &json!({ "name": "door" })).await.expect_status(202);
        let done = delivery(&olga, hook, |row| row["state"] == "delivered").await;
        assert_eq!(done["event_type"], "ingest.external");
        let replay = format!("/webhooks/deliveries/{}/replay", done["id"].as_str().unwrap());
        let again = olga.post(&replay, &json!({})).await.expect_status(202).body;
        assert_eq!((&again["replay"], &again["attempts"], again["history"].as_array().unwrap().len()), (&json!("queued"), &json!(0), 1), "{again}");
        let twice = delivery(&olga, hook, |row| row["state"] == "delivered" && row["history"].as_array().unwrap().len() == 2).await;
        assert_eq!(twice["attempts"], 1, "attempts of before are kept beside those since: {twice}");
        assert!(twice["history"].as_array().unwrap().iter().all(|past| past["status"] == 200 && past["error"].is_null()));
        assert_eq!(receiver.got("/ok").len(), 2);
    }
}
