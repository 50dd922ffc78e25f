//! Sites, logs, backup and restore, batches, releases.

use heddle_lab::Lab;
use serde_json::{Value, json};

use super::Peer;
use crate::{Release, Seed};

#[tokio::test]
async fn there_are_two_sites_and_a_third_has_the_vendors_defaults() {
    let mut peer = Peer::new().await;
    assert_eq!(peer.rows("v1 all sites").await.len(), 2);
    let body = json!({
        "name": "Depot", "region": "Germany", "timeZone": "Europe/Berlin", "scenario": "Office",
        "deviceAccountSetting": {"username": "device", "password": "long-password"},
    });
    let created = peer.ok("POST", "v1 all sites", body).await;
    let id =
        peer.named("v1 all sites", "name", "Depot").await.unwrap()["siteId"].as_str().unwrap().to_owned();
    assert_eq!(created["siteId"], id.as_str());
    peer.site = id;
    assert_eq!(peer.rows("v2 site lan-networks").await[0]["name"], "Default");
    peer.ok("DELETE", &format!("v1 all sites/{}", peer.site), Value::Null).await;
    assert_eq!(peer.code("GET", "v2 site lan-networks?page=1&pageSize=9", Value::Null).await, -33000);
}

#[tokio::test]
async fn logs_are_read_by_a_time_range_and_resolved() {
    let peer = Peer::new().await;
    let page = "page=1&pageSize=100";
    assert_eq!(peer.code("GET", &format!("v1 site logs/alerts?{page}"), Value::Null).await, -1001);
    let now = peer.lab.lock().now;
    let range = format!("{page}&filters.timeStart={}&filters.timeEnd={now}", now - 3_600_000);
    let alerts = format!("v1 site logs/alerts?{range}");
    let found = peer.get(&alerts).await;
    assert_eq!((&found["totalRows"], &found["alertLogStat"]["unResolvedLogNum"]), (&json!(1), &json!(1)));
    let body =
        json!({"logs": [found["data"][0]["id"]], "selectType": "include", "startTime": 0, "endTime": now});
    peer.ok("POST", "v1 site logs/alerts/resolve", body).await;
    assert_eq!(peer.get(&alerts).await["alertLogStat"]["resolvedLogNum"], 1);
    assert_eq!(peer.rows("v1 site audit-logs").await.len(), 1);
}

#[tokio::test]
async fn a_restore_brings_back_the_settings_and_signs_everybody_out() {
    let mut peer = Peer::new().await;
    peer.ok("POST", "v1 all maintenance/backup/self-server", json!({"retainUser": true})).await;
    let again = peer.code("POST", "v1 all maintenance/backup/self-server", json!({"retainUser": true})).await;
    assert_eq!(again, -30301);
    peer.steps(3);
    let files = peer.get("v1 all maintenance/backup/files").await;
    let body = json!({"name": "Later", "purpose": 0, "vlan": 60, "igmpSnoopEnable": false});
    peer.ok("POST", "v2 site lan-networks", body).await;
    peer.ok(
        "POST",
        "v1 all maintenance/restore/self-server",
        json!({"fileName": files["fileList"][0]["fileName"]}),
    )
    .await;
    assert!(peer.request("GET", "/api/info").send().await.is_err(), "the controller restarts");
    peer.steps(4);
    assert_eq!(peer.code("GET", "v1 all sites?page=1&pageSize=9", Value::Null).await, -44113);
    peer.sign_in().await;
    assert!(peer.named("v2 site lan-networks", "name", "Later").await.is_none());
}

#[tokio::test]
async fn a_batch_stops_at_its_first_failure_unless_told_otherwise() {
    let peer = Peer::new().await;
    let network = |name: &str, vlan: u64| {
        let body = json!({"name": name, "purpose": 0, "vlan": vlan, "igmpSnoopEnable": false});
        json!({"path": peer.path("v2 site lan-networks"), "method": "POST", "body": body})
    };
    let actions = json!([network("One", 61), network("Staff", 62), network("Three", 63)]);
    let codes = |result: &Value| -> Vec<i64> {
        result["response"]
            .as_array()
            .unwrap()
            .iter()
            .map(|answer| answer["errorCode"].as_i64().unwrap())
            .collect()
    };
    let result = peer.ok("POST", "v1 all batch", json!({"actions": actions})).await;
    assert_eq!(codes(&result), [0, -33506, -1619]);
    let result = peer
        .ok("POST", "v1 all batch", json!({"interrupt": false, "actions": [actions[1], actions[2]]}))
        .await;
    assert_eq!(codes(&result), [-33506, 0]);
}

#[tokio::test]
async fn an_older_release_lacks_the_newer_routes() {
    let mut omada = crate::Omada::new(Seed { release: Release::V60, ..Seed::default() });
    omada.rate_limit = None;
    let peer = Peer::of(omada).await;
    assert_eq!(
        peer.code("GET", "v1 site switches/ports/overview?page=1&pageSize=9", Value::Null).await,
        -1600
    );
    assert_eq!(peer.code("GET", "v1 site no/such/path", Value::Null).await, -1600);
    assert_eq!(peer.code("PUT", "v1 site devices?page=1&pageSize=9", Value::Null).await, -1004);
}

#[tokio::test]
async fn a_controller_runs_on_the_skeleton_with_its_state_on_the_control_port() {
    let lab = Lab::builder(crate::Omada::new(Seed { sites: 3, clients: 5, ..Seed::default() })).start().await;
    let state: Value =
        super::http().get(format!("{}/state", lab.control_url())).send().await.unwrap().json().await.unwrap();
    assert_eq!(state["controller"]["system.site"].as_array().unwrap().len(), 3);
}
