//! A controller that gives no answer: each device that is lost with it is reported, once and in order, and so is each
//! that comes back.

use heddle_lab_openwrt::Fault;
use serde_json::{Value, json};

use super::{PHONE, device, devices, id_of, published, read};
use crate::staging::Lab;
use crate::support::{Socket, on_both};

/// The events until the controller's status is this one and all that was written with it has come.
///
/// All of them are of one transaction.
async fn told(lab: &Lab, socket: &mut Socket, status: &str) -> Vec<Value> {
    let ask = || async {
        lab.api.post(&format!("/controllers/{}/sync", lab.controller), &json!({})).await.expect_status(202);
    };
    ask().await;
    let path = format!("/controllers/{}", lab.controller);
    let mut became = false;
    for _ in 0..300 {
        if lab.api.get(&path).await.expect_status(200).body["status"] == status {
            became = true;
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(became, "the controller did not become {status}");
    published(lab, socket).await
}

/// Returns the type and status of each event about a device.
fn of<'a>(events: &'a [Value], device: &Value) -> Vec<(&'a str, &'a str)> {
    let of_device = events.iter().filter(|event| event["payload"]["device_id"] == device["id"]);
    of_device
        .map(|event| {
            let text = |value: &'a Value| value.as_str().unwrap_or_default();
            (text(&event["event_type"]), text(&event["payload"]["new_status"]))
        })
        .collect()
}

on_both! {
    async fn a_router_that_dies_and_returns_is_told_of_each_device_once(database: Database) {
        let lab = Lab::start(database).await;
        read(&lab).await;
        // A host that is configured and was not seen is unknown from the beginning: nothing becomes of it.
        let all: Vec<Value> =
            devices(&lab.api, "").await.into_iter().filter(|device| device["status"] != "unknown").collect();
        let router = all.iter().find(|device| device["kind"] == "router").expect("the router is a device").clone();
        let clients: Vec<Value> = all.iter().filter(|device| device["kind"] != "router").cloned().collect();
        assert!(!clients.is_empty() && all.iter().all(|device| device["status"] == "online"), "{all:?}");
        let resting = device(&lab.api, PHONE).await;
        let mut socket = Socket::subscribe(&lab.api, &["*"]).await;

        lab.router.fault(Fault::Cut { for_ms: None });
        let events = told(&lab, &mut socket, "offline").await;
        assert_eq!(events[0]["event_type"], "controller.status.changed", "{events:?}");
        let departure = [("device.status.changed", "offline"), ("device.offline", "")];
        assert_eq!(of(&events, &router), departure, "{events:?}");
        for client in &clients {
            assert_eq!(of(&events, client), [("device.status.changed", "unknown")], "{client}: {events:?}");
        }
        assert_eq!(events.len(), 1 + 2 + clients.len(), "nothing is told twice: {events:?}");
        assert_eq!(lab.api.get(&format!("/devices/{}", id_of(&router))).await.body["status"], "offline");

        lab.router.clear_faults();
        let events = told(&lab, &mut socket, "online").await;
        assert_eq!(events[0]["event_type"], "controller.status.changed", "{events:?}");
        for device in &all {
            let statuses: Vec<_> =
                of(&events, device).into_iter().filter(|(kind, _)| *kind != "device.state_changed").collect();
            assert_eq!(statuses, [("device.status.changed", "online")], "{device}: {events:?}");
        }

        // A router under maintenance goes without an alarm, and its clients' status is reported as before.
        let path = format!("/devices/{}", id_of(&router));
        lab.api.patch(&path, &json!({ "state": "maintenance" })).await.expect_status(200);
        socket.event("device.state_changed").await;
        lab.router.fault(Fault::Cut { for_ms: None });
        let events = told(&lab, &mut socket, "offline").await;
        assert_eq!(of(&events, &router), [("device.status.changed", "offline")], "{events:?}");
        assert_eq!(of(&events, &resting), [("device.status.changed", "unknown")], "{events:?}");
    }
}
