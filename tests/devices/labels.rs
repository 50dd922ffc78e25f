//! What people write on a device, and removing it.

use serde_json::json;

use super::{LAPTOP, PHONE, audited, device, devices, id_of, leave, read};
use crate::staging::Lab;
use crate::support::{Socket, on_both};

on_both! {
    async fn what_is_written_on_a_device_stays_and_is_found(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        read(&lab).await;
        let phone = device(api, PHONE).await;
        let path = format!("/devices/{}", id_of(&phone));
        let mut socket = Socket::subscribe(api, &["device.*"]).await;
        let body = json!({
            "display_name": "Reception 100%_a", "notes": "belongs to the front desk",
            "tags": ["front desk", "b\"x", "a"], "state": "maintenance",
        });
        let written = api.patch(&path, &body).await.expect_status(200);
        let tag = written.header("etag").to_owned();
        for field in ["display_name", "notes", "tags", "state"] {
            assert_eq!(written.body[field], body[field], "{field}");
        }
        assert_eq!((&written.body["name"], &written.body["status"]), (&phone["name"], &phone["status"]));
        let changed = socket.event("device.state_changed").await;
        assert_eq!(changed["payload"]["changed"], json!(["display_name", "notes", "tags", "state"]));

        read(&lab).await;
        let after = api.get(&path).await.expect_status(200);
        assert_eq!((&after.body["tags"], &after.body["display_name"]), (&body["tags"], &body["display_name"]));
        assert_eq!(after.header("etag"), tag, "a reading is no edit");

        for (query, count) in [
            ("tag=front%20desk", 1), ("tag=front", 0), ("tag=b%22x", 1), ("tag=x", 0), ("tag=A", 0),
            ("state=maintenance", 1), ("search=reception", 1), ("search=0%25_A", 1), ("search=0%25%25", 0),
            ("search=0_a", 0), ("vendor=omada", 0), ("vendor=openwrt&tag=a&state=maintenance", 1),
        ] {
            let found = devices(api, query).await;
            assert_eq!(found.len(), count, "{query}: {found:?}");
            assert!(found.iter().all(|device| device["id"] == phone["id"]), "{query}");
        }
        api.get("/devices?state=broken").await.expect_status(422);

        let same = api.patch(&path, &json!({ "tags": body["tags"] })).await.expect_status(200);
        assert_eq!(same.body["updated_at"], after.body["updated_at"], "nothing was changed");
        let entries = audited(api, "device.updated").await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!((&entries[0]["target_id"], &entries[0]["detail"]["state"]), (&phone["id"], &json!("maintenance")));
        assert!(!entries[0].to_string().contains("belongs to"), "notes are not copied into the audit log");

        let cleared = json!({ "display_name": null, "notes": null, "tags": [] });
        let cleared = api.patch(&path, &cleared).await.expect_status(200).body;
        assert_eq!((&cleared["display_name"], &cleared["notes"], &cleared["tags"]), (&json!(null), &json!(null), &json!([])));
    }
}

on_both! {
    async fn a_device_is_changed_only_as_it_was_seen_and_wrong_bodies_name_their_fields(database: Database) {
        let lab = Lab::start(database).await;
        read(&lab).await;
        let path = format!("/devices/{}", id_of(&device(&lab.api, PHONE).await));
        let seen = lab.api.get(&path).await.header("etag").to_owned();
        lab.api.patch(&path, &json!({ "notes": "first" })).await.expect_status(200);
        let stale = lab.api.with("if-match", &seen).patch(&path, &json!({ "notes": "second" })).await;
        assert_eq!(stale.expect_status(412).error_type(), "precondition_failed");
        lab.api.with("if-match", &seen).delete(&path).await.expect_status(412);
        let now = lab.api.get(&path).await.header("etag").to_owned();
        lab.api.with("if-match", &now).patch(&path, &json!({ "notes": "second" })).await.expect_status(200);
        for (body, field) in [
            (json!({ "notes": "ä".repeat(2001) }), "notes"),
            (json!({ "display_name": " " }), "display_name"),
            (json!({ "tags": ["a", "a"] }), "tags"),
            (json!({ "tags": ["a", ""] }), "tags[1]"),
            (json!({ "tags": ["x".repeat(65)] }), "tags[0]"),
            (json!({ "tags": (0..33).map(|n| n.to_string()).collect::<Vec<_>>() }), "tags"),
            (json!({ "tags": null }), "tags"),
            (json!({ "state": "resting" }), "state"),
            (json!({ "status": "online" }), "status"),
            (json!({ "name": "mine" }), "name"),
        ] {
            let refused = lab.api.patch(&path, &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{}", refused.text);
        }
        lab.api.patch(&path, &json!({ "notes": "ä".repeat(2000) })).await.expect_status(200);
    }
}

on_both! {
    async fn a_removed_device_comes_back_when_it_is_still_there_and_only_then(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        read(&lab).await;
        let (phone, laptop) = (device(api, PHONE).await, device(api, LAPTOP).await);
        let (phone_path, laptop_path) = (format!("/devices/{}", id_of(&phone)), format!("/devices/{}", id_of(&laptop)));
        for path in [&phone_path, &laptop_path] {
            api.patch(path, &json!({ "tags": ["kept"] })).await.expect_status(200);
            api.post(&format!("{path}/restore"), &json!({})).await.expect_status(404);
        }
        leave(&lab, LAPTOP).await;
        let mut socket = Socket::subscribe(api, &["device.state_changed"]).await;
        api.delete(&phone_path).await.expect_status(204);
        let told = socket.event("device.state_changed").await;
        assert_eq!((&told["payload"]["device_id"], &told["payload"]["changed"]), (&phone["id"], &json!(["deleted_at"])));
        api.delete(&laptop_path).await.expect_status(204);
        api.delete(&laptop_path).await.expect_status(404);
        read(&lab).await;
        let back = api.get(&phone_path).await.expect_status(200).body;
        assert_eq!((&back["tags"], &back["deleted_at"]), (&json!(["kept"]), &json!(null)), "the router still reports it");
        api.get(&laptop_path).await.expect_status(404);

        let restored = api.post(&format!("{laptop_path}/restore"), &json!({})).await.expect_status(200).body;
        assert_eq!((&restored["id"], &restored["tags"]), (&laptop["id"], &json!(["kept"])));
        assert_eq!(audited(api, "device.removed").await.len(), 2);
        assert_eq!(audited(api, "device.restored").await[0]["target_id"], laptop["id"]);

        api.delete(&laptop_path).await.expect_status(204);
        api.delete(&format!("/controllers/{}", lab.controller)).await.expect_status(204);
        let refused = api.post(&format!("{laptop_path}/restore"), &json!({})).await.expect_status(409);
        assert!(refused.message().contains("controller"), "{}", refused.text);
        api.post(&format!("/controllers/{}/restore", lab.controller), &json!({})).await.expect_status(200);
        api.get(&phone_path).await.expect_status(200);
        api.get(&laptop_path).await.expect_status(404);
        api.post(&format!("{laptop_path}/restore"), &json!({})).await.expect_status(200);
    }
}
