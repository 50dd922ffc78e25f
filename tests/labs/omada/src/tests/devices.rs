//! Devices: adoption, actions that take time, ports, firmware.

use serde_json::{Value, json};

use super::Peer;

async fn status(peer: &Peer, mac: &str) -> Option<i64> {
    peer.named("v1 site devices", "mac", mac).await?["detailStatus"].as_i64()
}

async fn pending(peer: &Peer, model: &str) -> String {
    let row = peer.named("v1 site grid/devices/pending", "model", model).await.unwrap();
    row["mac"].as_str().unwrap().to_owned()
}

async fn of_kind(peer: &Peer, kind: &str) -> String {
    peer.named("v1 site devices", "type", kind).await.unwrap()["mac"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_pending_device_is_adopted_in_steps() {
    let peer = Peer::new().await;
    let mac = pending(&peer, "EAP670").await;
    peer.ok("POST", &format!("v1 site devices/{mac}/start-adopt"), json!({})).await;
    let result = format!("v1 site devices/{mac}/adopt-result");
    assert!(peer.get(&result).await.get("adoptErrorCode").is_none());
    peer.steps(2);
    assert_eq!(peer.get(&result).await["adoptErrorCode"], 0);
    assert_eq!(status(&peer, &mac).await, Some(10));
    peer.steps(2);
    assert_eq!(status(&peer, &mac).await, Some(14));
}

#[tokio::test]
async fn a_device_with_an_account_of_its_own_asks_for_it() {
    let peer = Peer::new().await;
    let mac = pending(&peer, "SG3428MP").await;
    let start = format!("v1 site devices/{mac}/start-adopt");
    peer.ok("POST", &start, json!({})).await;
    peer.steps(2);
    let result = peer.get(&format!("v1 site devices/{mac}/adopt-result")).await;
    assert_eq!((&result["adoptErrorCode"], &result["adoptFailedType"]), (&json!(-39003), &json!(-2)));
    peer.ok("POST", &start, json!({"username": "admin", "password": "old-password"})).await;
    peer.steps(4);
    assert_eq!(status(&peer, &mac).await, Some(14));
}

#[tokio::test]
async fn a_forgotten_device_waits_for_adoption_again() {
    let peer = Peer::new().await;
    let mac = of_kind(&peer, "ap").await;
    peer.ok("POST", &format!("v1 site devices/{mac}/forget"), Value::Null).await;
    peer.steps(1);
    assert_eq!(status(&peer, &mac).await, None);
    assert!(peer.named("v1 site grid/devices/pending", "mac", &mac).await.is_some());
    assert_eq!(peer.code("GET", &format!("v1 site aps/{mac}"), Value::Null).await, -39303);
}

#[tokio::test]
async fn the_surfaces_tell_the_state_in_different_words() {
    let peer = Peer::new().await;
    let mac = of_kind(&peer, "ap").await;
    peer.ok("POST", &format!("v1 site devices/{mac}/reboot"), Value::Null).await;
    let open = peer.named("v1 site devices", "mac", &mac).await.unwrap();
    let web = peer.named("web site devices", "mac", &mac).await.unwrap();
    assert_eq!((&open["status"], &open["detailStatus"]), (&json!(1), &json!(13)));
    assert_eq!((&web["status"], &web["statusCategory"]), (&json!(13), &json!(1)));
    peer.steps(2);
    assert_eq!(status(&peer, &mac).await, Some(0));
    peer.steps(2);
    assert_eq!(status(&peer, &mac).await, Some(14));
}

#[tokio::test]
async fn a_rolling_upgrade_takes_one_device_after_the_other() {
    let peer = Peer::new().await;
    let devices = peer.rows("v1 site devices").await;
    let macs: Vec<&str> = devices
        .iter()
        .filter(|row| row["type"] == "ap")
        .map(|row| row["mac"].as_str().unwrap())
        .take(2)
        .collect();
    let task = peer.ok("POST", "v1 site multi-devices/start-rolling-upgrade", json!({"macs": macs})).await;
    let poll = format!("v1 site multi-devices/rolling-upgrade-tasks/{}", task["taskId"].as_str().unwrap());
    assert_eq!(peer.get(&poll).await["unfinishedCount"], 2);
    peer.steps(4);
    assert_eq!(peer.get(&poll).await["unfinishedCount"], 1);
    peer.steps(4);
    assert_eq!(peer.get(&poll).await["finished"], true);
    let firmware = peer.get(&format!("v1 site devices/{}/latest-firmware-info", macs[1])).await;
    assert_eq!(firmware["curFwVer"], firmware["lastFwVer"]);
}

#[tokio::test]
async fn a_port_is_set_by_number_and_shown_by_every_read() {
    let peer = Peer::new().await;
    let mac = of_kind(&peer, "switch").await;
    let port = format!("v1 site switches/{mac}/ports/2");
    assert!(
        peer.rows("v1 site switches/ports/poe-info").await[1]["portStatus"]["poePower"].as_f64().unwrap()
            > 0.0
    );
    peer.ok("PUT", &format!("{port}/name"), json!({"name": "lobby"})).await;
    peer.ok("PUT", &format!("{port}/poe-mode"), json!({"poeMode": 0})).await;
    peer.ok("PUT", &format!("{port}/status"), json!({"status": 0})).await;
    let row = peer.named("v1 site switches/ports/overview", "portName", "lobby").await.unwrap();
    assert_eq!(
        (&row["disable"], &row["poe"], &row["portStatus"]["linkStatus"]),
        (&json!(true), &json!(0), &json!(0))
    );
    let list = peer.get(&format!("v1 site switches/{mac}")).await;
    assert_eq!(list["portList"][1]["name"], "lobby");
    let code =
        peer.code("PUT", &format!("v1 site switches/{mac}/ports/99/status"), json!({"status": 0})).await;
    assert_eq!(code, -39701);
}

#[tokio::test]
async fn an_agile_switch_sends_to_its_own_path() {
    let peer = Peer::new().await;
    let devices = peer.rows("v1 site devices").await;
    let agile = devices.iter().find(|row| row["subtype"] == "es").unwrap()["mac"].as_str().unwrap();
    assert_eq!(peer.code("GET", &format!("v1 site switches/{agile}"), Value::Null).await, -39742);
}

#[tokio::test]
async fn a_write_of_settings_is_delivered_to_the_devices() {
    let peer = Peer::new().await;
    let mac = of_kind(&peer, "switch").await;
    peer.ok("PUT", &format!("v1 site switches/{mac}/ports/3/name"), json!({"name": "office"})).await;
    peer.ok("PUT", "v1 site upnp", json!({"enable": false})).await;
    assert_eq!(status(&peer, &mac).await, Some(11));
    peer.steps(1);
    assert_eq!(status(&peer, &mac).await, Some(14));
}
