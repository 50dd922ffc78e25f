//! What others change at a device is told, adopted or left, and never taken for what this service did.

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{compared, open};
use crate::devices::member;
use crate::inventory::{Device, Lab, each};
use crate::support::on_both;

fn ports(enabled: bool, others: &[Value]) -> Value {
    let mut objects = vec![
        json!({ "key": "p1", "label": "Uplink", "device": "hostile", "fields": { "number": 1, "name": "up", "enabled": enabled } }),
        json!({ "key": "p2", "label": "Desk", "origin": "vendor", "fields": { "number": 2, "enabled": enabled } }),
    ];
    objects.extend(others.iter().cloned());
    json!({ "objects": objects })
}

async fn read(lab: &Lab) {
    lab.read().await;
    compared(&lab.server).await;
}

async fn events(lab: &Lab, name: &str) -> Vec<Value> {
    let page = lab.api.get("/events?per_page=200&sort=occurred_at").await.expect_status(200).body;
    let items = page["items"].as_array().unwrap().iter();
    items.filter(|event| event["event_type"] == name).cloned().collect()
}

async fn started(database: crate::support::Database) -> Lab {
    let device = Device::start().await;
    device.tell("port", ports(true, &[]));
    let lab = Lab::start(database, device).await;
    compared(&lab.server).await;
    lab
}

on_both! {
    async fn an_edit_of_others_is_told_with_both_values_and_ends_by_itself(database: Database) {
        let lab = started(database).await;
        assert!(open(&lab.api).await.is_empty(), "what is seen first is wanted");
        lab.device.tell("port", ports(false, &[json!({ "key": "p3", "label": "New", "fields": { "number": 3, "name": "new" } })]));
        read(&lab).await;
        read(&lab).await;
        let found = open(&lab.api).await;
        assert_eq!(found.len(), 2, "only what people made: {found:?}");
        let changed = found.iter().find(|one| one["key"] == "p1").unwrap();
        assert_eq!((&changed["change"], &changed["label"], &changed["basis"]), (&json!("changed"), &json!("unknown"), &json!("observed")));
        let field = &changed["differences"][0];
        assert_eq!((&field["field"], &field["wanted"], &field["observed"]), (&json!("enabled"), &json!(true), &json!(false)));
        assert!(field["reasons"][0].as_str().unwrap().contains("no change of this service"), "{field}");
        let created = found.iter().find(|one| one["key"] == "p3").unwrap();
        assert_eq!((&created["change"], &created["object_label"]), (&json!("created"), &json!("New")));
        let told = events(&lab, "controller.drift.found").await;
        assert_eq!(told.len(), 2, "each is told once: {told:?}");
        let of_changed = told.iter().find(|event| event["payload"]["key"] == "p1").unwrap();
        assert_eq!(of_changed["payload"]["before"], json!({ "enabled": true }));
        assert_eq!(of_changed["payload"]["after"], json!({ "enabled": false }));
        lab.device.tell("port", ports(true, &[]));
        read(&lab).await;
        assert!(open(&lab.api).await.is_empty());
        let closed = lab.api.get("/drift?status=resolved").await.expect_status(200).body;
        assert_eq!(closed["total"], 2, "{closed}");
        assert_eq!(events(&lab, "controller.drift.closed").await.len(), 2);
    }
}

on_both! {
    async fn what_is_adopted_is_wanted_from_then_on(database: Database) {
        let lab = started(database).await;
        lab.device.tell("port", ports(false, &[]));
        read(&lab).await;
        let drift = open(&lab.api).await.remove(0);
        let path = format!("/drift/{}", drift["id"].as_str().unwrap());
        let seen = lab.api.get(&path).await.expect_status(200);
        let stale = lab.api.with("if-match", "\"0\"");
        stale.post(&format!("{path}/adopt"), &json!({})).await.expect_status(412);
        let guess = lab.api.post(&format!("{path}/adopt"), &json!({ "label": "vendor" })).await.expect_status(422);
        assert!(guess.text.contains("follows from evidence"), "{}", guess.text);
        let current = lab.api.with("if-match", seen.header("etag"));
        let body = json!({ "label": "person", "notes": "Ada was there" });
        let adopted = current.post(&format!("{path}/adopt"), &body).await.expect_status(200).body;
        assert_eq!((&adopted["status"], &adopted["label"], &adopted["notes"]), (&json!("adopted"), &json!("person"), &json!("Ada was there")));
        let again = lab.api.post(&format!("{path}/adopt"), &json!({})).await.expect_status(409);
        assert_eq!(again.error_type(), "not_open");
        read(&lab).await;
        assert!(open(&lab.api).await.is_empty(), "it is wanted now");
        lab.device.tell("port", ports(true, &[]));
        read(&lab).await;
        let back = open(&lab.api).await.remove(0);
        assert_eq!((&back["differences"][0]["wanted"], &back["basis"]), (&json!(false), &json!("adopted")));
        let audit = lab.api.get("/audit?action=drift.adopted").await.expect_status(200).body;
        assert_eq!(audit["items"][0]["target_id"], drift["id"], "{audit}");
    }
}

on_both! {
    async fn what_goes_is_told_only_where_the_list_is_whole(database: Database) {
        let lab = started(database).await;
        lab.device.tell("port", json!({ "objects": [], "complete": "partial" }));
        read(&lab).await;
        assert!(open(&lab.api).await.is_empty());
        lab.device.tell("port", json!({ "objects": [] }));
        read(&lab).await;
        let found = open(&lab.api).await;
        assert_eq!(each(&found, "change"), [&json!("removed")]);
        let fields: Vec<&Value> = found[0]["differences"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
        assert_eq!(fields, [&json!("enabled"), &json!("name")], "of the fields that people set");
    }
}

on_both! {
    async fn what_the_vendor_cannot_write_is_not_put_back(database: Database) {
        let lab = started(database).await;
        lab.device.tell("port", ports(false, &[]));
        read(&lab).await;
        let drift = open(&lab.api).await.remove(0);
        let path = format!("/drift/{}/put-back", drift["id"].as_str().unwrap());
        let refused = lab.api.post(&path, &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_writable", "{}", refused.text);
        let pending = lab.api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(pending["total"], 0, "{pending}");
    }
}

on_both! {
    async fn a_grant_to_read_shows_drift_and_decides_nothing_about_it(database: Database) {
        let lab = started(database).await;
        lab.device.tell("port", ports(false, &[]));
        read(&lab).await;
        let drift = open(&lab.api).await.remove(0);
        let path = format!("/drift/{}", drift["id"].as_str().unwrap());
        let reader = member(&lab.server, "rhea", Role::OrgAdmin, &[(lab.site.as_str(), SiteLevel::Read)]).await;
        reader.get(&path).await.expect_status(200);
        for act in ["adopt", "put-back"] {
            let refused = reader.post(&format!("{path}/{act}"), &json!({})).await.expect_status(403);
            assert_eq!(refused.error_type(), "site_level", "{act}");
        }
        let viewer = member(&lab.server, "vic", Role::Viewer, &[]).await;
        let refused = viewer.post(&format!("{path}/adopt"), &json!({})).await.expect_status(403);
        assert_eq!(refused.error_type(), "permission_denied");
    }
}
