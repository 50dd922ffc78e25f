//! How readings of lists make room for readings of devices.

use serde_json::{Value, json};

use super::{Device, Lab, readings};
use crate::support::on_both;

/// The lists that the device was asked for, those between two readings of its devices together.
fn asked(device: &Device) -> Vec<Vec<String>> {
    let asked = device.script().asked.clone();
    let kinds = |part: &[(String, String)]| part.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
    asked.split(|(kind, _)| kind == "sites").map(kinds).filter(|kinds| !kinds.is_empty()).collect()
}

/// All kinds, the one that is read next first.
async fn in_order(lab: &Lab) -> Vec<String> {
    let mut readings = readings(&lab.api, &lab.controller).await;
    readings.sort_by_key(|reading| reading["begun_at"].as_str().unwrap_or_default().to_owned());
    readings.iter().filter_map(|reading| reading["kind"].as_str()).map(str::to_owned).collect()
}

/// A device whose lists are all empty.
async fn empty() -> Device {
    let device = Device::start().await;
    for kind in ["vlan", "port", "vpn-peer", "ssid", "route"] {
        device.tell(kind, json!({ "objects": [] }));
    }
    device
}

on_both! {
    async fn devices_that_are_due_are_read_between_two_lists(database: Database) {
        let lab = Lab::start(database, empty().await).await;
        let kinds = in_order(&lab).await;
        lab.device.script().asked.clear();
        lab.device.script().mute.insert(format!("{} ", kinds[1]));
        let path = format!("/controllers/{}/sync", lab.controller);
        lab.api.post(&path, &json!({})).await.expect_status(202);
        lab.device.was_asked(&kinds[1], "").await;
        let again = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        lab.device.script().mute.clear();
        let ended = crate::devices::controllers::ended(&lab.api, &again).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        let asked = asked(&lab.device);
        assert_eq!(asked[0], kinds[..2], "{asked:?}");
        let mut first = asked[1][..3].to_vec();
        first.sort();
        let mut left = kinds[2..].to_vec();
        left.sort();
        assert_eq!(first, left, "it goes on where it stopped: {asked:?}");
        assert_eq!(asked[1][3..], kinds[..2], "a user asked for all");
    }
}

on_both! {
    async fn a_controller_that_does_not_answer_is_not_asked_for_more_lists(database: Database) {
        let lab = Lab::start(database, empty().await).await;
        let kinds = in_order(&lab).await;
        lab.device.script().asked.clear();
        lab.device.tell(&kinds[0], json!({ "fault": "connection" }));
        lab.read().await;
        assert_eq!(asked(&lab.device).concat(), kinds[..1]);
        let reading = lab.reading(&kinds[0]).await;
        assert!(reading["error"].as_str().is_some_and(|error| error.contains("does not answer")), "{reading}");
        for kind in &kinds[1..] {
            assert_eq!(lab.reading(kind).await["begun_at"], Value::Null, "what a user asked for is due: {kind}");
        }
        lab.device.tell(&kinds[0], json!({ "objects": [] }));
        lab.read().await;
        let asked = asked(&lab.device).concat();
        assert_eq!((asked.len(), &asked[5]), (6, &kinds[0]), "the others come first: {asked:?}");
    }
}
