//! What waits has a bound, and what is over it is not lost silently.

use heddle_core::ProcessId;
use heddle_core::webhook::DeliveryState;
use heddle_store::webhooks::SubscriptionId;
use heddle_store::webhooks::deliveries::{self, NewDelivery};
use heddle_store::webhooks::sending::{self, Attempt, Room};
use serde_json::json;

use super::{emit, organization, start, subscribe, until};
use crate::support::{Api, Server, on_both};

const WAITING_MAX: i64 = 10_000;

/// So many deliveries that wait, of events that are none of the organization's.
async fn fill(server: &Server, api: &Api, hook: &str, count: i64) {
    let app = &server.running().app;
    let (org, to): (_, SubscriptionId) = (organization(api).await, hook.parse().unwrap());
    let rows: Vec<NewDelivery> = (0..count)
        .map(|n| NewDelivery {
            id: app.clock.new_id(),
            org_id: org,
            subscription_id: to,
            event_id: app.clock.new_id(),
            event_type: "device.offline".to_owned(),
            seq: 1_000_000 + n,
            site_id: None,
            device_id: None,
            event: json!({}),
            now: app.clock.now(),
        })
        .collect();
    let mut tx = app.db.write().await.unwrap();
    deliveries::insert(&mut tx, &rows).await.unwrap();
    tx.commit().await.unwrap();
}

/// Marks some of what waits as delivered, without sending it.
async fn make_room(server: &Server, count: u32) {
    let app = &server.running().app;
    let (me, now): (ProcessId, _) = (app.clock.new_id(), app.clock.now());
    let room = Room { per_subscription: 1_000, per_organization: 1_000, in_all: count, reserved: 0 };
    let attempt = Attempt {
        state: DeliveryState::Delivered,
        next_at: None,
        status: Some(200),
        error: None,
        response: None,
        response_is_truncated: false,
        now,
    };
    // While the server's own sender holds the subscription, nothing of it can be claimed.
    until("what can be claimed", || async {
        let mut tx = app.db.write().await.unwrap();
        let due = sending::claim(&mut tx, me, now, room).await.unwrap();
        if due.is_empty() {
            return None;
        }
        assert_eq!(due.len(), usize::try_from(count).unwrap());
        for due in due {
            assert!(sending::finish(&mut tx, due.id, me, &attempt).await.unwrap());
        }
        tx.commit().await.unwrap();
        Some(())
    })
    .await;
}

on_both! {
    async fn what_there_is_no_room_for_is_shown_told_once_and_queued_when_somebody_asks(database: Database) {
        let (server, api, receiver) = start(database).await;
        let hook = subscribe(&api, &receiver.url("/hang")).await;
        let path = format!("/webhooks/{hook}");
        fill(&server, &api, &hook, WAITING_MAX - 1).await;
        let mut seqs = Vec::new();
        for name in ["fits", "one too many", "another"] {
            seqs.push(emit(&server, &api, None, name).await);
        }
        let shown = until("what was not queued", || async {
            let row = api.get(&path).await.expect_status(200).body;
            (row["unqueued"]["count"] == 2).then_some(row)
        })
        .await;
        assert_eq!(shown["unqueued"], json!({ "count": 2, "from_seq": seqs[1], "to_seq": seqs[2] }));
        let told = api.get("/notifications?per_page=200").await.expect_status(200).body;
        let about = |row: &&serde_json::Value| row["subject"].as_str().unwrap().contains("does not keep up");
        assert_eq!(told["items"].as_array().unwrap().iter().filter(about).count(), 1, "{told}");
        let range = json!({ "from_seq": seqs[0], "to_seq": seqs[2] });
        let full = api.post(&format!("{path}/replay"), &range).await.expect_status(409);
        assert!(full.message().contains("too many deliveries are waiting"), "{}", full.text);

        make_room(&server, 1).await;
        let from = json!({ "from_seq": seqs[1], "to_seq": seqs[2] });
        let part = api.post(&format!("{path}/replay"), &from).await.expect_status(202).body;
        assert_eq!(part, json!({ "queued": 1, "next_seq": seqs[2] }), "as many as there is room for");
        let left = api.get(&path).await.expect_status(200).body;
        assert_eq!(left["unqueued"], json!({ "count": 1, "from_seq": seqs[2], "to_seq": seqs[2] }));
        make_room(&server, 5).await;
        let rest = json!({ "from_seq": seqs[2], "to_seq": seqs[2] });
        let rest = api.post(&format!("{path}/replay"), &rest).await.expect_status(202).body;
        assert_eq!(rest, json!({ "queued": 1, "next_seq": null }));
        assert_eq!(api.get(&path).await.expect_status(200).body["unqueued"], json!(null));
        api.delete(&path).await.expect_status(204);
        let mut tx = server.running().app.db.read().await.unwrap();
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 0, "nothing of it is left");
    }
}
