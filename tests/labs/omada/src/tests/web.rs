//! What only the web surface does.

use serde_json::{Value, json};

use super::Peer;

#[tokio::test]
async fn the_current_user_names_the_sites() {
    let peer = Peer::new().await;
    let user = peer.get("web all users/current").await;
    let sites = user["privilege"]["sites"].as_array().unwrap();
    assert_eq!((&sites[0]["name"], &sites[0]["key"]), (&json!("Main"), &json!(peer.site)));
}

#[tokio::test]
async fn devices_are_a_plain_array_with_the_pending_ones() {
    let peer = Peer::new().await;
    let devices = peer.get("web site devices").await;
    let pending = devices.as_array().unwrap().iter().filter(|row| row["status"] == 20).count();
    assert_eq!((devices.as_array().unwrap().len(), pending), (8, 2));
}

#[tokio::test]
async fn a_port_cannot_be_changed_since_6_0() {
    let peer = Peer::new().await;
    let mac =
        peer.named("v1 site devices", "type", "switch").await.unwrap()["mac"].as_str().unwrap().to_owned();
    assert_eq!(peer.get(&format!("web site switches/{mac}/ports")).await.as_array().unwrap().len(), 28);
    assert_eq!(
        peer.code("PATCH", &format!("web site switches/{mac}/ports/3"), json!({"name": "x"})).await,
        -1001
    );
}

#[tokio::test]
async fn the_document_of_an_access_point_drops_its_radios() {
    let peer = Peer::new().await;
    let mac = peer.named("v1 site devices", "type", "ap").await.unwrap()["mac"].as_str().unwrap().to_owned();
    let body = json!({"name": "AP door", "radioSetting2g": {"freq": 2412}});
    peer.ok("PATCH", &format!("web site eaps/{mac}"), body).await;
    assert_eq!(peer.get(&format!("v1 site aps/{mac}/radio-config")).await["radioSetting2g"]["freq"], 0);
    assert!(peer.named("v1 site devices", "name", "AP door").await.is_some());
}

#[tokio::test]
async fn logging_out_ends_the_session() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("web all loginStatus").await["login"], true);
    peer.ok("POST", "web all logout", Value::Null).await;
    assert_eq!(peer.code("GET", "web all loginStatus", Value::Null).await, -1200);
}
