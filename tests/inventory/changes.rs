//! What events tell of objects.

use serde_json::{Value, json};

use super::{Device, Lab, each, two_ports};
use crate::support::on_both;

on_both! {
    async fn a_change_is_told_once_with_what_was_before(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        assert_eq!(each(&lab.objects("port", "").await, "label"), ["Desk", "Uplink"]);
        assert!(lab.events().await.is_empty(), "what the first reading finds is not news");
        let first = lab.objects("port", "search=uplink").await.remove(0);
        lab.device.tell("port", json!({ "objects": [
            { "key": "p1", "label": "Uplink", "device": "hostile", "fields": { "number": 1, "enabled": false } },
            { "key": "p3", "label": "New", "fields": { "number": 3 } },
        ] }));
        lab.read().await;
        lab.read().await;
        let told = lab.events().await;
        let payloads: Vec<&Value> = told.iter().map(|event| &event["payload"]).collect();
        let changes: Vec<(&Value, &Value)> = payloads.iter().map(|told| (&told["key"], &told["change"])).collect();
        let wanted = [("p1", "changed"), ("p3", "created"), ("p2", "removed")].map(|(key, change)| (json!(key), json!(change)));
        assert_eq!(changes, wanted.iter().map(|(key, change)| (key, change)).collect::<Vec<_>>(), "{told:?}");
        assert!(told.iter().all(|event| event["event_type"] == "device.object_changed"));
        let told_of = payloads[0];
        assert_eq!((&told_of["fields"], &told_of["object_id"]), (&json!(["enabled"]), &first["id"]));
        assert_eq!((&told_of["before"], &told_of["after"]), (&json!({ "enabled": true }), &json!({ "enabled": false })));
        assert_eq!((&told_of["controller_id"], &told_of["site_id"]), (&json!(lab.controller), &json!(lab.site)));
        assert_eq!((&told_of["device_key"], &told_of["kind"], &told_of["label"]), (&json!("hostile"), &json!("port"), &json!("Uplink")));
        assert_eq!((&payloads[1]["before"], &payloads[1]["after"]["number"]), (&Value::Null, &json!(3)));
        assert_eq!((&payloads[2]["before"]["number"], &payloads[2]["after"]), (&json!(2), &Value::Null));
        let after = lab.objects("port", "search=uplink").await.remove(0);
        assert_eq!((&after["id"], &after["first_seen_at"]), (&first["id"], &first["first_seen_at"]));
        assert!(after["changed_at"].as_str() > first["changed_at"].as_str(), "{after}");
        assert!(after["observed_at"].as_str() > after["changed_at"].as_str(), "{after}");
    }
}

on_both! {
    async fn what_is_measured_moves_without_an_event(database: Database) {
        let device = Device::start().await;
        let peer = |rx: u64, endpoint: &str| json!({ "objects": [
            { "key": "w1", "label": "Laptop", "fields": { "name": "laptop", "endpoint": endpoint, "rx_bytes": rx } },
        ] });
        device.tell("vpn-peer", peer(1, "192.0.2.1:51820"));
        let lab = Lab::start(database, device).await;
        let first = lab.objects("vpn-peer", "").await.remove(0);
        lab.device.tell("vpn-peer", peer(2, "192.0.2.1:51820"));
        lab.read().await;
        let second = lab.objects("vpn-peer", "").await.remove(0);
        assert_eq!((&second["fields"]["rx_bytes"], &second["changed_at"]), (&json!(2), &first["changed_at"]));
        assert!(lab.events().await.is_empty());
        lab.device.tell("vpn-peer", peer(3, "192.0.2.2:51820"));
        lab.read().await;
        let told = lab.events().await;
        assert_eq!(each(&told, "event_type"), ["vpn.object_changed"]);
        assert_eq!(told[0]["payload"]["after"], json!({ "endpoint": "192.0.2.2:51820" }));
    }
}

on_both! {
    async fn objects_of_a_list_that_never_ended_are_no_news(database: Database) {
        let device = Device::start().await;
        let page = |label: &str| json!({ "objects": [{ "key": "p1", "label": label, "fields": {} }], "next": "2" });
        device.tell("port", page("Old"));
        device.tell_page("port", ("", "2"), json!({ "fault": "generic" }));
        let lab = Lab::start(database, device).await;
        assert_eq!(each(&lab.objects("port", "").await, "label"), ["Old"]);
        lab.device.tell("port", page("New"));
        lab.read().await;
        assert_eq!(each(&lab.objects("port", "").await, "label"), ["New"]);
        lab.device.tell_page("port", ("", "2"), json!({ "objects": [] }));
        lab.read().await;
        assert!(lab.events().await.is_empty());
        lab.device.tell("port", page("Newest"));
        lab.read().await;
        assert_eq!(each(&lab.events().await, "event_type"), ["device.object_changed"]);
    }
}

on_both! {
    async fn many_differences_are_told_together(database: Database) {
        let device = Device::start().await;
        device.tell("port", json!({ "many": [0, 1_500] }));
        let lab = Lab::start(database, device).await;
        // Over several pages: the first alone would not be too many.
        lab.device.tell("port", json!({ "many": [0, 1_400], "next": "2" }));
        lab.device.tell_page("port", ("", "2"), json!({ "many": [2_000, 2_150] }));
        lab.read().await;
        let told = lab.events().await;
        assert_eq!(each(&told, "event_type"), ["controller.inventory_changed"], "{told:?}");
        let counts = ["created", "changed", "removed"].map(|name| told[0]["payload"][name].clone());
        assert_eq!((counts, &told[0]["payload"]["kind"]), ([json!(150), json!(0), json!(100)], &json!("port")));
        lab.device.tell_page("port", ("", "2"), json!({ "many": [2_000, 2_120] }));
        lab.read().await;
        assert_eq!(lab.events().await.len(), 1 + 30, "few are told one by one");
    }
}

on_both! {
    async fn a_list_that_is_not_whole_removes_nothing(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        for page in [
            json!({ "objects": [], "complete": "partial" }),
            json!({ "objects": [], "complete": "rights_limited" }),
            json!({ "fault": "denied" }),
            json!({ "fault": "unsupported" }),
            json!({ "objects": [], "next": "2" }),
        ] {
            lab.device.tell("port", page);
            lab.read().await;
            let reading = lab.reading("port").await;
            assert_ne!(reading["complete"], "complete", "{reading}");
            assert_eq!((&reading["objects"], lab.objects("port", "").await.len()), (&json!(2), 2), "{reading}");
        }
        assert!(lab.events().await.is_empty());
        lab.device.tell("port", json!({ "objects": [] }));
        lab.read().await;
        assert_eq!((lab.objects("port", "").await.len(), lab.events().await.len()), (0, 2));
        let reading = lab.reading("port").await;
        assert_eq!((&reading["complete"], &reading["error"]), (&json!("complete"), &Value::Null), "{reading}");
    }
}
