//! Deliveries: retries, the dead letter, order, and receivers that misbehave.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use heddle_core::DeviceId;
use serde_json::json;

use super::receiver::Receiver;
use super::{deliveries, delivery, emit, later, start, subscribe, until};
use crate::support::on_both;

async fn names(receiver: &Receiver, path: &str, count: usize) -> Vec<String> {
    until("requests", || async {
        let names: Vec<String> = receiver.got(path).iter().map(super::receiver::Got::name).collect();
        (names.len() >= count).then_some(names)
    })
    .await
}

on_both! {
    async fn an_event_is_sent_as_it_is_without_secrets_and_not_before_the_subscription(database: Database) {
        let (server, api, receiver) = start(database).await;
        emit(&server, &api, None, "before").await;
        let hook = subscribe(&api, &receiver.url("/ok")).await;
        let seq = emit(&server, &api, None, "after").await;
        let done = delivery(&api, &hook, |row| row["state"] == "delivered").await;
        assert_eq!((&done["attempts"], &done["last_status"], &done["seq"]), (&json!(1), &json!(200), &json!(seq)));
        let got = receiver.got("/ok");
        assert_eq!(got.len(), 1, "what was before is not sent");
        let event = got[0].json();
        assert_eq!((&event["payload"], &event["seq"]), (&json!({ "name": "after" }), &json!(seq)), "{event}");
        assert_eq!(got[0].headers["content-type"], "application/json");
        assert_eq!(got[0].headers["x-heddle-event"], "device.offline");
        assert_eq!(got[0].delivery(), done["id"].as_str().unwrap());

        // While it is off nothing is queued, also not later.
        let path = format!("/webhooks/{hook}");
        api.patch(&path, &json!({ "is_enabled": false })).await.expect_status(200);
        emit(&server, &api, None, "while it is off").await;
        api.patch(&path, &json!({ "is_enabled": true })).await.expect_status(200);
        emit(&server, &api, None, "on again").await;
        assert_eq!(names(&receiver, "/ok", 2).await, ["after", "on again"]);
        // Counted when the receiver's answer has come back.
        until("both are counted", || async {
            let metrics = api.get_root("/metrics").await.text;
            metrics.contains("heddle_webhook_attempts_total{outcome=\"delivered\"} 2").then_some(())
        })
        .await;

        let api = later(&server, TimeDelta::days(8)).await;
        heddle_kernel::retention::round_if_due(&server.running().app).await.unwrap();
        assert!(deliveries(&api, &hook).await.is_empty(), "what was delivered is forgotten after a week");
    }
}

on_both! {
    async fn a_delivery_is_tried_again_until_it_is_dead_and_sent_when_somebody_asks(database: Database) {
        let (server, mut api, receiver) = start(database).await;
        let hook = subscribe(&api, &receiver.url("/fail")).await;
        emit(&server, &api, None, "edge").await;
        let waits = [10, 60, 300, 1_800, 7_200, 21_600].map(TimeDelta::seconds);
        for (n, wait) in (1..).zip(waits) {
            let failed = delivery(&api, &hook, |row| row["attempts"] == n).await;
            assert_eq!((&failed["state"], &failed["last_status"], &failed["response"]), (&json!("pending"), &json!(500), &json!("not today")));
            let next: chrono::DateTime<chrono::Utc> = serde_json::from_value(failed["next_at"].clone()).unwrap();
            let left = next - server.running().app.clock.now();
            assert!(left <= wait && left > wait - TimeDelta::seconds(5), "attempt {n}: {left}");
            server.running().app.clock.advance(left - TimeDelta::milliseconds(1500));
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            assert_eq!(receiver.got("/fail").len(), n, "not before its time");
            api = later(&server, TimeDelta::milliseconds(1500)).await;
        }
        let dead = delivery(&api, &hook, |row| row["state"] == "dead").await;
        assert_eq!((&dead["attempts"], &dead["next_at"]), (&json!(7), &json!(null)));
        let failing = api.get(&format!("/webhooks/{hook}")).await.expect_status(200).body;
        assert_eq!((&failing["consecutive_failures"], failing["last_error"].is_string()), (&json!(7), true), "{failing}");
        assert_eq!(api.get(&format!("/webhooks/{hook}/deliveries?state=dead")).await.body["total"], 1);

        api.patch(&format!("/webhooks/{hook}"), &json!({ "url": receiver.url("/ok") })).await.expect_status(200);
        let path = format!("/webhooks/deliveries/{}", dead["id"].as_str().unwrap());
        let queued = api.post(&format!("{path}/replay"), &json!({})).await.expect_status(202).body;
        assert_eq!((&queued["state"], &queued["attempts"], &queued["replay"]), (&json!("pending"), &json!(0), &json!("queued")));
        delivery(&api, &hook, |row| row["state"] == "delivered").await;
        assert_eq!(api.get(&path).await.expect_status(200).body["last_error"], json!(null));
        let ids: BTreeSet<String> =
            receiver.got("/fail").iter().chain(&receiver.got("/ok")).map(|got| got.delivery().to_owned()).collect();
        assert_eq!(ids.len(), 1, "one delivery has one id, however often it is sent");
        let fine = api.get(&format!("/webhooks/{hook}")).await.expect_status(200).body;
        assert_eq!((&fine["consecutive_failures"], &fine["last_error"]), (&json!(0), &json!(null)));
    }
}

on_both! {
    async fn a_later_event_of_a_device_waits_and_other_devices_go_on(database: Database) {
        let (server, api, receiver) = start(database).await;
        let clock = &server.running().app.clock;
        let [one, two]: [DeviceId; 2] = std::array::from_fn(|_| clock.new_id());
        let hook = subscribe(&api, &receiver.url("/stuck")).await;
        emit(&server, &api, Some(one), "one-1 stuck").await;
        for (device, name) in [(one, "one-2"), (two, "two-1"), (one, "one-3"), (two, "two-2")] {
            emit(&server, &api, Some(device), name).await;
        }
        let got = names(&receiver, "/stuck", 3).await;
        let of_two: Vec<&String> = got.iter().filter(|name| name.starts_with("two")).collect();
        assert_eq!(of_two, ["two-1", "two-2"]);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(receiver.got("/stuck").len(), 3, "the other device waits for its first event");
        receiver.mend();
        let api = later(&server, TimeDelta::seconds(11)).await;
        let got = names(&receiver, "/stuck", 6).await;
        let of_one: Vec<&String> = got.iter().filter(|name| name.starts_with("one")).collect();
        assert_eq!(of_one, ["one-1 stuck", "one-1 stuck", "one-2", "one-3"]);
        until("all", || async {
            deliveries(&api, &hook).await.iter().all(|row| row["state"] == "delivered").then_some(())
        })
        .await;
    }
}

on_both! {
    async fn receivers_that_misbehave_hold_nobody_back(database: Database) {
        let (server, api, receiver) = start(database).await;
        let paths = ["/hang", "/close", "/large", "/redirect", "/fail", "/gone"];
        let mut hooks = Vec::new();
        for path in paths {
            hooks.push(subscribe(&api, &receiver.url(path)).await);
        }
        let refused = subscribe(&api, "http://169.254.169.254/").await;
        let good = subscribe(&api, &receiver.url("/ok")).await;
        let started = std::time::Instant::now();
        for n in 0..30 {
            emit(&server, &api, None, &format!("event-{n:02}")).await;
        }
        let got: BTreeSet<String> = names(&receiver, "/ok", 30).await.into_iter().collect();
        assert_eq!(got.len(), 30);
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
        assert!(receiver.got("/hang").len() <= 4, "one that hangs has no more than its room");
        until("all of the good one", || async {
            deliveries(&api, &good).await.iter().all(|row| row["state"] == "delivered").then_some(())
        })
        .await;
        // Each of the others was tried, however busy the machine is; one that hangs goes on hanging.
        for hook in hooks.iter().skip(1).chain([&refused]) {
            until("a try of each", || async {
                deliveries(&api, hook).await.iter().all(|row| row["attempts"] != 0).then_some(())
            })
            .await;
        }
        let expected = [(0, None, None), (1, None, Some("broke")), (3, Some(302), Some("302")), (4, Some(500), Some("500")), (5, Some(410), Some("410"))];
        for (at, status, error) in expected {
            let rows = deliveries(&api, &hooks[at]).await;
            assert_eq!(rows.len(), 30);
            for row in rows {
                assert_eq!((&row["state"], &row["last_status"]), (&json!("pending"), &json!(status)), "{}: {row}", paths[at]);
                let said = row["last_error"].as_str();
                assert!(error.is_none_or(|error| said.is_some_and(|said| said.contains(error))), "{}: {row}", paths[at]);
            }
        }
        let large = deliveries(&api, &hooks[2]).await;
        assert!(large.iter().all(|row| row["state"] == "delivered" && row["response_is_truncated"] == true), "{large:?}");
        assert!(receiver.got("/target").is_empty());
        let guarded = deliveries(&api, &refused).await;
        assert!(guarded.iter().all(|row| row["last_error"].as_str().unwrap().contains("refused")), "{guarded:?}");
    }
}

on_both! {
    async fn a_range_of_events_is_sent_again_and_what_is_dead_too(database: Database) {
        let (server, api, receiver) = start(database).await;
        let mut numbers = Vec::new();
        for n in 0..5 {
            numbers.push(emit(&server, &api, None, &format!("old-{n}")).await);
        }
        let hook = subscribe(&api, &receiver.url("/ok")).await;
        let path = format!("/webhooks/{hook}/replay");
        let range = |from: i64, to: i64| json!({ "from_seq": from, "to_seq": to });
        for (from, to) in [(0, 1), (2, 1), (1, 1_001)] {
            api.post(&path, &range(from, to)).await.expect_status(422);
        }
        let queued = api.post(&path, &range(numbers[1], numbers[3])).await.expect_status(202).body;
        assert_eq!(queued["queued"], 3);
        let got: BTreeSet<String> = names(&receiver, "/ok", 3).await.into_iter().collect();
        assert_eq!(got, ["old-1", "old-2", "old-3"].map(str::to_owned).into());
        until("all", || async {
            deliveries(&api, &hook).await.iter().all(|row| row["state"] == "delivered").then_some(())
        })
        .await;
        let again = api.post(&path, &range(numbers[0], numbers[2])).await.expect_status(202).body;
        assert_eq!(again["queued"], 3, "one that never was, and two again");
        names(&receiver, "/ok", 6).await;
        let ids: BTreeSet<String> = receiver.got("/ok").iter().map(|got| got.delivery().to_owned()).collect();
        assert_eq!(ids.len(), 4, "what is sent again has its id");
        let dead = json!({ "from_seq": 1, "to_seq": 9_000_000, "state": "dead" });
        let none = api.post(&path, &dead).await.expect_status(202).body;
        assert_eq!(none, json!({ "queued": 0, "next_seq": null }));
        api.patch(&format!("/webhooks/{hook}"), &json!({ "is_enabled": false })).await.expect_status(200);
        api.post(&path, &range(1, 2)).await.expect_status(409);
    }
}

on_both! {
    async fn what_waits_for_its_retry_is_hurried_by_asking_for_it(database: Database) {
        let (server, api, receiver) = start(database).await;
        let device: DeviceId = server.running().app.clock.new_id();
        let hook = subscribe(&api, &receiver.url("/stuck")).await;
        emit(&server, &api, Some(device), "stuck").await;
        let failed = delivery(&api, &hook, |row| row["attempts"] == 1).await;
        emit(&server, &api, Some(device), "next").await;
        let next = until("the next", || async {
            deliveries(&api, &hook).await.into_iter().find(|row| row["seq"] != failed["seq"])
        })
        .await;
        assert_eq!((&next["state"], &next["next_at"]), (&json!("pending"), &json!(null)), "it waits for the one before it");
        let replay = |row: &serde_json::Value| format!("/webhooks/deliveries/{}/replay", row["id"].as_str().unwrap());
        let refused = api.post(&replay(&next), &json!({})).await.expect_status(409);
        assert!(refused.message().contains("earlier event"), "{}", refused.text);
        receiver.mend();
        let hurried = api.post(&replay(&failed), &json!({})).await.expect_status(202).body;
        assert_eq!((&hurried["replay"], &hurried["attempts"]), (&json!("hurried"), &json!(1)), "{hurried}");
        assert_eq!(names(&receiver, "/stuck", 3).await, ["stuck", "stuck", "next"]);
        until("both", || async {
            deliveries(&api, &hook).await.iter().all(|row| row["state"] == "delivered").then_some(())
        })
        .await;
        api.patch(&format!("/webhooks/{hook}"), &json!({ "is_enabled": false })).await.expect_status(200);
        api.post(&replay(&failed), &json!({})).await.expect_status(409);
    }
}
