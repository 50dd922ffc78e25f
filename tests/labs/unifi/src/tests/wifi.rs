//! WLANs on both interfaces.

use super::*;

fn broadcast(name: &str) -> Value {
    json!({
        "type": "STANDARD", "name": name, "enabled": true, "network": { "type": "NATIVE" },
        "securityConfiguration": { "type": "WPA2_PERSONAL", "passphrase": "long enough" },
        "multicastToUnicastConversionEnabled": false, "clientIsolationEnabled": true, "hideName": false,
        "uapsdEnabled": false,
        "channel2gLockedTo6": false, "dtimPeriod2gLockedTo3": false, "broadcastingFrequenciesGHz": [2.4, 5],
        "arpProxyEnabled": false, "bssTransitionEnabled": true, "advertiseDeviceName": false,
    })
}

#[tokio::test]
async fn a_wlan_needs_a_group_of_access_points() {
    let peer = Peer::new().await;
    let group = peer.row("~2/apgroups", "name", "All APs").await;
    assert_eq!(group["device_macs"].as_array().unwrap().len(), 3);
    let mut body = json!({ "name": "New", "security": "wpapsk", "x_passphrase": "long enough" });
    assert_eq!(peer.refused("POST", "~/rest/wlanconf", body.clone()).await, "api.err.ApGroupMissing");
    body["ap_group_ids"] = json!([group["_id"]]);
    let made = peer.add("wlanconf", body.clone()).await;
    assert_eq!(made["x_passphrase"], "long enough");
    body["name"] = json!("Other");
    body["x_passphrase"] = json!("short");
    assert_eq!(peer.refused("POST", "~/rest/wlanconf", body).await, "api.err.InvalidPayload");
}

#[tokio::test]
async fn an_official_broadcast_is_a_wlan_of_the_older_form() {
    let peer = Peer::new().await;
    let made = peer.ok("POST", "~i/wifi/broadcasts", broadcast("Official")).await;
    assert_eq!(made["securityConfiguration"]["passphrase"], "long enough");
    let older = peer.row("~/rest/wlanconf", "name", "Official").await;
    assert_eq!((older["security"].as_str(), older["l2_isolation"].as_bool()), (Some("wpapsk"), Some(true)));
    peer.change("wlanconf", &older["_id"], json!({ "enabled": false, "hide_ssid": true })).await;
    let read = peer.get(&format!("~i/wifi/broadcasts/{}", made["id"].as_str().unwrap())).await;
    assert_eq!((read["enabled"].as_bool(), read["hideName"].as_bool()), (Some(false), Some(true)));
    let listed = peer.row("~i/wifi/broadcasts", "name", "Office").await;
    assert_eq!(listed["securityConfiguration"], json!({ "type": "WPA2_WPA3_PERSONAL" }));
    assert_eq!(listed["network"]["type"], "SPECIFIC");
}

#[tokio::test]
async fn six_gigahertz_need_the_newer_security() {
    let peer = Peer::new().await;
    let mut body = broadcast("Fast");
    body["broadcastingFrequenciesGHz"] = json!([5, 6]);
    assert_eq!(peer.ask("POST", "~i/wifi/broadcasts", body.clone()).await.0, 400);
    body["securityConfiguration"] = json!({
        "type": "WPA3_PERSONAL", "passphrase": "long enough",
        "saeConfiguration": { "anticloggingThresholdSeconds": 5, "syncTimeSeconds": 5 },
    });
    let made = peer.ok("POST", "~i/wifi/broadcasts", body).await;
    assert_eq!(made["broadcastingFrequenciesGHz"], json!([5, 6]));
}

#[tokio::test]
async fn an_access_point_serves_so_many_wlans() {
    let peer = Peer::of(Settings { wlans_max: 4, ..Settings::default() }).await;
    peer.ok("POST", "~i/wifi/broadcasts", broadcast("fourth")).await;
    let (status, answer) = peer.ask("POST", "~i/wifi/broadcasts", broadcast("fifth")).await;
    assert_eq!(
        (status, answer["message"].as_str()),
        (400, Some("too many WiFi broadcasts assigned to the device"))
    );
}

#[tokio::test]
async fn a_change_of_the_mode_makes_another_broadcast_of_it() {
    let peer = Peer::new().await;
    let before = peer.row("~i/wifi/broadcasts", "name", "Office").await;
    let older = peer.row("~/rest/wlanconf", "name", "Office").await;
    peer.change("wlanconf", &older["_id"], json!({ "setting_preference": "auto", "l2_isolation": true }))
        .await;
    let after = peer.row("~i/wifi/broadcasts", "name", "Office").await;
    assert_ne!(before["id"], after["id"]);
    assert_eq!(peer.row("~/rest/wlanconf", "name", "Office").await["l2_isolation"], false);
}

#[tokio::test]
async fn radios_restart_and_clients_go_with_their_wlan() {
    let peer = Peer::new().await;
    assert!(peer.rows("~/stat/sta").await.iter().any(|row| row["mac"] == BEA));
    let older = peer.row("~/rest/wlanconf", "name", "Office").await;
    peer.change("wlanconf", &older["_id"], json!({ "enabled": false })).await;
    assert_eq!(peer.device(OFFICE_AP).await["state"], 5);
    assert!(peer.rows("~/stat/sta").await.iter().all(|row| row["mac"] != BEA));
    peer.steps(1);
    assert_eq!(peer.device(OFFICE_AP).await["state"], 1);
}

#[tokio::test]
async fn groups_of_access_points_take_access_points_only() {
    let peer = Peer::new().await;
    let wrong = json!({ "name": "g", "device_macs": [CORE] });
    assert_eq!(peer.refused("POST", "~2/apgroups", wrong).await, "api.err.InvalidDeviceInApGroup");
    let null = json!({ "name": "g", "device_macs": null });
    assert_eq!(peer.refused("POST", "~2/apgroups", null).await, "api.err.InvalidPayload");
    let usual = peer.row("~2/apgroups", "name", "All APs").await;
    let path = format!("~2/apgroups/{}", usual["_id"].as_str().unwrap());
    assert_eq!(peer.refused("PUT", &path, usual.clone()).await, "api.err.InvalidPayload");
    let good = json!({ "name": "All APs", "device_macs": [OFFICE_AP] });
    assert_eq!(peer.ok("PUT", &path, good).await["device_macs"], json!([OFFICE_AP]));
}
