//! A device under maintenance goes offline without an alarm.

use serde_json::{Value, json};

use super::{LAPTOP, PHONE, device, id_of, read};
use crate::staging::Lab;
use crate::support::{Socket, on_both};

/// Has the controller read until these devices have this status; gives all events until then.
async fn events_until(lab: &Lab, socket: &mut Socket, devices: &[&Value], status: &str) -> Vec<Value> {
    lab.api.post(&format!("/controllers/{}/sync", lab.controller), &json!({})).await.expect_status(202);
    let mut events: Vec<Value> = Vec::new();
    loop {
        let frame = socket.next().await;
        let event = frame["event"].clone();
        let is_end = event["event_type"] == "controller.sync.finished";
        events.push(event);
        let has_told = |device: &&&Value| {
            events.iter().any(|event| {
                event["event_type"] == "device.status.changed"
                    && event["payload"]["device_id"] == device["id"]
                    && event["payload"]["new_status"] == status
            })
        };
        if is_end && devices.iter().filter(has_told).count() == devices.len() {
            return events;
        }
    }
}

fn offline(events: &[Value]) -> Vec<&Value> {
    let offline = events.iter().filter(|event| event["event_type"] == "device.offline");
    offline.map(|event| &event["payload"]["device_id"]).collect()
}

on_both! {
    async fn a_device_in_maintenance_goes_offline_without_an_alarm(database: Database) {
        let lab = Lab::start(database).await;
        read(&lab).await;
        let (phone, laptop) = (device(&lab.api, PHONE).await, device(&lab.api, LAPTOP).await);
        assert_eq!((&phone["status"], &phone["state"]), (&json!("online"), &json!("active")));
        let mut socket = Socket::subscribe(&lab.api, &["device.*", "controller.*"]).await;

        let path = format!("/devices/{}", id_of(&phone));
        let resting = lab.api.patch(&path, &json!({ "state": "maintenance" })).await.expect_status(200).body;
        assert_eq!(resting["state"], "maintenance");
        let changed = socket.event("device.state_changed").await;
        assert_eq!((&changed["payload"]["device_id"], &changed["payload"]["changed"]), (&phone["id"], &json!(["state"])));

        for host in [PHONE, LAPTOP] {
            lab.router.client_leaves(host);
        }
        let events = events_until(&lab, &mut socket, &[&phone, &laptop], "offline").await;
        assert_eq!(offline(&events), [&laptop["id"]], "{events:?}");
        assert_eq!(lab.api.get(&path).await.body["status"], "offline", "that it is offline is recorded");

        for host in [PHONE, LAPTOP] {
            lab.router.client_returns(host);
        }
        let events = events_until(&lab, &mut socket, &[&phone, &laptop], "online").await;
        assert!(offline(&events).is_empty());
        lab.api.patch(&path, &json!({ "state": "active" })).await.expect_status(200);
        lab.router.client_leaves(PHONE);
        let events = events_until(&lab, &mut socket, &[&phone], "offline").await;
        assert_eq!(offline(&events), [&phone["id"]], "{events:?}");
    }
}
