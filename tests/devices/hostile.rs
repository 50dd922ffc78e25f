//! Devices that answer what no device should, and what others notice of it.

use std::time::Duration;

use heddle_core::Role;
use heddle_lab_openwrt::Change;
use serde_json::{Value, json};

use super::{audited, member, read};
use crate::staging::Lab;
use crate::support::{Api, on_both};

/// As much as a host name of an answer can have: masking it took seconds once, in the threads of the API.
const HOST_NAME_BYTES: usize = 880_000;

/// Every kind of objects that the router has, by path.
async fn kinds(lab: &Lab) -> Vec<String> {
    let mut paths = Vec::new();
    for area in ["base", "firewall", "dhcp"] {
        let features = lab.api.get(&lab.area(area)).await.expect_status(200).body;
        let resources = features["resources"].as_array().expect("an area has resources");
        let path = |kind: &Value| format!("{}/{}", lab.area(area), kind["id"].as_str().unwrap_or_default());
        paths.extend(resources.iter().map(path));
    }
    paths
}

/// Asks for the health of the service again and again; every answer must come.
async fn stays_healthy(api: Api) {
    loop {
        let answer = tokio::time::timeout(Duration::from_secs(10), api.get_root("/health")).await;
        answer.expect("the service answers").expect_status(200);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

on_both! {
    async fn a_device_with_an_endless_host_name_stops_nobody(database: Database) {
        let lab = Lab::start(database).await;
        let kinds = kinds(&lab).await;
        let name = "hdl-secret:".repeat(HOST_NAME_BYTES / 11);
        assert!(lab.router.edit("system", &[Change::set("@system[0]", "hostname", &name)]));
        let read_all = async {
            for round in 0..2 {
                let reads = kinds.iter().map(|path| lab.api.get(path));
                for answer in futures::future::join_all(reads).await {
                    assert!(answer.text.len() < 1 << 20, "round {round}: {} bytes", answer.text.len());
                    assert!(!answer.text.contains("hdl-secret:"), "round {round}");
                }
            }
            read(&lab).await;
        };
        let healthy = stays_healthy(lab.server.nobody());
        tokio::select! {
            () = read_all => {}
            () = healthy => unreachable!("it asks for ever"),
        }
        let devices = lab.api.get("/devices?per_page=200").await.expect_status(200);
        assert!(devices.text.len() < 1 << 20, "{} bytes", devices.text.len());
    }
}

on_both! {
    async fn an_adapter_is_listed_and_released_by_a_super_admin_alone(database: Database) {
        let lab = Lab::start(database).await;
        let listed = lab.api.get("/adapters").await.expect_status(200).body;
        let items = listed["items"].as_array().expect("a list has items");
        let openwrt = items.iter().find(|item| item["id"] == "openwrt").expect("it is installed");
        assert_eq!(openwrt["component_sha256"].as_str().map(str::len), Some(64), "{openwrt}");
        assert_eq!((&openwrt["quarantined"], &openwrt["suspended_until"]), (&json!(false), &Value::Null));

        let admin = member(&lab.server, "vera", Role::OrgAdmin, &[]).await;
        admin.get("/adapters").await.expect_status(200);
        admin.post("/adapters/openwrt/release", &json!({})).await.expect_status(403);
        lab.api.post("/adapters/acme/release", &json!({})).await.expect_status(404);
        let released = lab.api.post("/adapters/openwrt/release", &json!({})).await.expect_status(200).body;
        assert_eq!(released["id"], "openwrt");
        let entry = audited(&lab.api, "adapter.released").await.remove(0);
        assert_eq!(entry["detail"]["component_sha256"], openwrt["component_sha256"], "{entry}");
        assert_eq!((&entry["target_type"], &entry["detail"]["was_quarantined"]), (&json!("adapter"), &json!(false)));
    }
}
