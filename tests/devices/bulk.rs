//! Many devices with one request.

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{LAPTOP, PHONE, audited, device, id_of, leave, member, published, read};
use crate::staging::Lab;
use crate::support::{Socket, on_both};

const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

fn statuses(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().expect("results are a list");
    results.iter().map(|item| item["status"].as_str().expect("each has a status")).collect()
}

on_both! {
    async fn each_of_many_succeeds_or_fails_by_itself(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        read(&lab).await;
        let (phone, laptop) = (device(api, PHONE).await, device(api, LAPTOP).await);
        let (phone_path, laptop_path) = (format!("/devices/{}", id_of(&phone)), format!("/devices/{}", id_of(&laptop)));
        let full: Vec<String> = (0..32).map(|n| format!("t{n}")).collect();
        api.patch(&laptop_path, &json!({ "tags": full })).await.expect_status(200);
        api.patch(&phone_path, &json!({ "tags": ["old", "stays"] })).await.expect_status(200);
        let mut socket = Socket::subscribe(api, &["*"]).await;
        published(&lab, &mut socket).await;

        let body = json!({
            "action": "update", "ids": [laptop["id"], ABSENT, phone["id"]],
            "update": { "tags_add": ["new"], "tags_remove": ["old"], "state": "maintenance", "notes": "moved" },
        });
        let answer = api.post("/devices/bulk", &body).await.expect_status(200).body;
        assert_eq!(statuses(&answer), ["error", "not_found", "updated"], "{answer}");
        assert_eq!((&answer["succeeded"], &answer["failed"]), (&json!(1), &json!(2)));
        assert_eq!(answer["results"][0]["error"]["type"], "validation_error");
        assert!(answer["results"][0]["error"]["message"].as_str().unwrap().contains("33"), "{answer}");
        let changed = api.get(&phone_path).await.body;
        assert_eq!((&changed["tags"], &changed["state"], &changed["notes"]), (&json!(["stays", "new"]), &json!("maintenance"), &json!("moved")));
        let kept = api.get(&laptop_path).await.body;
        assert_eq!((&kept["tags"], &kept["state"]), (&json!(full), &json!("active")), "nothing of a failed one");
        let told = socket.event("device.state_changed").await;
        assert_eq!((&told["payload"]["device_id"], &told["payload"]["changed"]), (&phone["id"], &json!(["notes", "tags", "state"])));
        let entry = audited(api, "device.bulk_updated").await.remove(0);
        assert_eq!((&entry["detail"]["ids"], &entry["detail"]["tags_add"]), (&json!([phone["id"]]), &json!(["new"])));

        let again = json!({ "action": "update", "ids": [phone["id"]], "update": { "notes": null } });
        assert_eq!(statuses(&api.post("/devices/bulk", &again).await.expect_status(200).body), ["updated"]);
        assert_eq!(api.get(&phone_path).await.body["notes"], json!(null));

        leave(&lab, PHONE).await;
        let remove = json!({ "action": "remove", "ids": [phone["id"], ABSENT] });
        assert_eq!(statuses(&api.post("/devices/bulk", &remove).await.expect_status(200).body), ["removed", "not_found"]);
        api.get(&phone_path).await.expect_status(404);
        assert_eq!(statuses(&api.post("/devices/bulk", &remove).await.expect_status(200).body), ["not_found", "not_found"]);
        assert_eq!(audited(api, "device.bulk_removed").await.len(), 1, "where nothing was done, nothing is told");
        assert_eq!(api.get("/audit/validate").await.body["valid"], true);
    }
}

on_both! {
    async fn devices_of_other_sites_look_absent_and_a_reader_changes_none(database: Database) {
        let lab = Lab::start(database).await;
        read(&lab).await;
        let phone = device(&lab.api, PHONE).await;
        let branch = lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let elsewhere = member(&lab.server, "bea", Role::Operator, &[(id_of(&branch), SiteLevel::Full)]).await;
        let site = phone["site_id"].as_str().unwrap();
        let reader = member(&lab.server, "cleo", Role::Operator, &[(site, SiteLevel::Read)]).await;
        let writer = member(&lab.server, "dora", Role::Operator, &[(site, SiteLevel::Write)]).await;
        for (api, status) in [(&elsewhere, "not_found"), (&reader, "error"), (&writer, "updated")] {
            let body = json!({ "action": "update", "ids": [phone["id"]], "update": { "tags_add": ["x"] } });
            let answer = api.post("/devices/bulk", &body).await.expect_status(200).body;
            assert_eq!(statuses(&answer), [status], "{answer}");
            let tags = if status == "updated" { json!(["x"]) } else { json!([]) };
            assert_eq!(device(&lab.api, PHONE).await["tags"], tags, "{status}");
            if status == "error" {
                assert_eq!(answer["results"][0]["error"]["type"], "site_level", "{answer}");
            }
        }
        let viewer = member(&lab.server, "eve", Role::Viewer, &[]).await;
        let body = json!({ "action": "remove", "ids": [phone["id"]] });
        viewer.post("/devices/bulk", &body).await.expect_status(403);
    }
}

on_both! {
    async fn a_bulk_body_that_is_wrong_names_what_is_wrong(database: Database) {
        let lab = Lab::start(database).await;
        let many: Vec<String> = (0..201).map(|n| format!("01900000-0000-7000-8000-{n:012}")).collect();
        let tags = json!({ "tags_add": ["x"] });
        for (body, field) in [
            (json!({ "action": "remove", "ids": [] }), "ids"),
            (json!({ "action": "remove", "ids": many }), "ids"),
            (json!({ "action": "remove", "ids": [ABSENT, ABSENT] }), "ids"),
            (json!({ "action": "remove", "ids": [ABSENT], "update": tags }), "update"),
            (json!({ "action": "update", "ids": [ABSENT] }), "update"),
            (json!({ "action": "update", "ids": [ABSENT], "update": {} }), "update"),
            (json!({ "action": "update", "ids": [ABSENT], "update": { "tags_add": ["x", "x"] } }), "update.tags_add"),
            (json!({ "action": "update", "ids": [ABSENT], "update": { "display_name": "x" } }), "update.display_name"),
            (json!({ "action": "reboot", "ids": [ABSENT] }), "action"),
        ] {
            let refused = lab.api.post("/devices/bulk", &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{}", refused.text);
        }
        let most = json!({ "action": "remove", "ids": many[..200] });
        let answer = lab.api.post("/devices/bulk", &most).await.expect_status(200).body;
        assert_eq!(answer["failed"], 200);
    }
}
