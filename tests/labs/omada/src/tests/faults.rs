//! The vendor's own faults, and edits behind the manager's back.

use heddle_lab::Fault;
use serde_json::{Value, json};

use super::Peer;

fn network(name: &str, vlan: u64) -> Value {
    json!({"name": name, "purpose": 0, "vlan": vlan, "igmpSnoopEnable": false})
}

const NETWORKS: &str = "v2 site lan-networks";

#[tokio::test]
async fn a_create_can_store_the_row_and_answer_minus_one() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("lying_create", Value::Null).times(1));
    assert_eq!(peer.code("POST", NETWORKS, network("Lab", 70)).await, -1);
    assert!(peer.named(NETWORKS, "name", "Lab").await.is_some());
}

#[tokio::test]
async fn a_write_can_be_accepted_and_dropped() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("dropped_write", Value::Null).times(1));
    peer.ok("POST", NETWORKS, network("Lab", 70)).await;
    assert!(peer.named(NETWORKS, "name", "Lab").await.is_none());
}

#[tokio::test]
async fn a_busy_site_refuses_writes_for_a_while() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("site_busy", Value::Null).for_ms(5000));
    assert_eq!(peer.code("POST", NETWORKS, network("Lab", 70)).await, -33004);
    peer.rows(NETWORKS).await;
    peer.lab.advance(std::time::Duration::from_secs(6));
    peer.ok("POST", NETWORKS, network("Lab", 70)).await;
}

#[tokio::test]
async fn tokens_and_web_sessions_can_end_at_once() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("token_expired", Value::Null).times(1));
    assert_eq!(peer.code("GET", "v1 all sites?page=1&pageSize=9", Value::Null).await, -44112);
    peer.lab.fault(Fault::vendor("session_ended", Value::Null).times(1));
    let page = peer.send("GET", "web site devices", &Value::Null).await;
    assert!(page.text().await.unwrap().starts_with("<!DOCTYPE html>"));
}

#[tokio::test]
async fn an_ordered_rate_limit_has_the_vendors_envelope() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::rate_limit(1).times(1));
    let answer = peer.send("GET", "v1 all sites?page=1&pageSize=9", &Value::Null).await;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.json::<Value>().await.unwrap()["errorCode"], -7132);
}

#[tokio::test]
async fn a_person_edits_settings_and_unplugs_a_device() {
    let peer = Peer::new().await;
    let path = format!("/openapi/v2/{{omadacId}}/sites/{}/lan-networks", peer.site);
    let edit = json!({"method": "POST", "path": path, "body": network("By hand", 71)});
    assert!(peer.lab.edit(&edit).unwrap()["id"].is_string());
    assert!(peer.named(NETWORKS, "name", "By hand").await.is_some());
    let mac = peer.named("v1 site devices", "type", "ap").await.unwrap()["mac"].clone();
    peer.lab.edit(&json!({"site": peer.site, "device": mac, "state": "down"})).unwrap();
    assert_eq!(peer.named("v1 site devices", "mac", mac.as_str().unwrap()).await.unwrap()["status"], 0);
    peer.lab.edit(&json!({"missing": ["GET v2 site lan-networks"]})).unwrap();
    assert_eq!(peer.code("GET", "v2 site lan-networks?page=1&pageSize=9", Value::Null).await, -1600);
    assert!(peer.lab.edit(&json!({"unknown": 1})).is_err());
}
