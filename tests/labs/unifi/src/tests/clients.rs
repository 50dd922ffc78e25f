//! Clients: who is connected, and what is done to them.

use super::*;

async fn is_online(peer: &Peer, mac: &str) -> bool {
    peer.rows("~/stat/sta").await.iter().any(|row| row["mac"] == mac)
}

#[tokio::test]
async fn a_blocked_client_is_gone_until_it_is_let_in() {
    let peer = Peer::new().await;
    peer.command("stamgr", json!({ "cmd": "block-sta", "mac": BEA })).await;
    assert!(!is_online(&peer, BEA).await);
    assert_eq!(peer.row("~/rest/user", "mac", BEA).await["blocked"], true);
    peer.command("stamgr", json!({ "cmd": "unblock-sta", "mac": BEA })).await;
    assert!(is_online(&peer, BEA).await);
}

#[tokio::test]
async fn a_wireless_client_that_is_cut_off_comes_back() {
    let peer = Peer::new().await;
    peer.command("stamgr", json!({ "cmd": "kick-sta", "mac": BEA })).await;
    assert!(!is_online(&peer, BEA).await);
    peer.steps(1);
    assert!(is_online(&peer, BEA).await);
    peer.command("stamgr", json!({ "cmd": "kick-sta", "mac": ADA })).await;
    assert!(is_online(&peer, ADA).await);
}

#[tokio::test]
async fn addresses_of_forgotten_clients_are_compared_as_texts() {
    let peer = Peer::new().await;
    let upper = peer.command("stamgr", json!({ "cmd": "forget-sta", "macs": [BEA.to_uppercase()] })).await;
    assert_eq!(upper, json!([]));
    let gone = peer.command("stamgr", json!({ "cmd": "forget-sta", "macs": [BEA] })).await;
    assert_eq!(gone[0]["mac"], BEA);
    assert!(peer.rows("~/rest/user").await.iter().all(|row| row["mac"] != BEA));
}

#[tokio::test]
async fn a_reservation_is_the_address_of_the_client() {
    let peer = Peer::new().await;
    let user = peer.row("~/rest/user", "mac", ADA).await;
    peer.change("user", &user["_id"], json!({ "use_fixedip": true, "fixed_ip": "10.10.0.9" })).await;
    let leases = peer.get("~2/active-leases").await;
    let lease =
        leases["dhcp_lease_info"].as_array().unwrap().iter().find(|row| row["mac"] == ADA).unwrap().clone();
    assert_eq!((lease["ip"].as_str(), lease["use_fixedip"].as_bool()), (Some("10.10.0.9"), Some(true)));
    let official = peer.row("~i/clients?limit=200", "macAddress", ADA).await;
    assert_eq!(official["ipAddress"], "10.10.0.9");
    assert_eq!(
        (official["type"].as_str(), &official["access"]),
        (Some("WIRED"), &json!({ "type": "DEFAULT" }))
    );
}

#[tokio::test]
async fn a_client_gets_an_address_of_the_network_it_is_moved_to() {
    let peer = Peer::new().await;
    let core = peer.device(CORE).await;
    let iot = peer.row("~/rest/networkconf", "name", "IoT").await;
    let mut overrides = core["port_overrides"].clone();
    for entry in overrides.as_array_mut().unwrap() {
        if entry["port_idx"] == 4 {
            entry["native_networkconf_id"] = iot["_id"].clone();
        }
    }
    peer.change("device", &core["_id"], json!({ "port_overrides": overrides })).await;
    let client = peer.row("~/stat/sta", "mac", ADA).await;
    assert_eq!(client["vlan"], 30);
    assert!(client["ip"].as_str().unwrap().starts_with("10.30.0."), "{}", client["ip"]);
}

#[tokio::test]
async fn a_guest_is_given_access_and_it_is_taken_away() {
    let peer = Peer::new().await;
    let guest = peer.row("~i/clients?limit=200", "name", "visitor").await;
    assert_eq!(guest["access"], json!({ "type": "GUEST", "authorized": false }));
    let path = format!("~i/clients/{}/actions", guest["id"].as_str().unwrap());
    let body = json!({ "action": "AUTHORIZE_GUEST_ACCESS", "timeLimitMinutes": 60 });
    assert!(peer.ok("POST", &path, body.clone()).await.get("revokedAuthorization").is_none());
    assert!(peer.ok("POST", &path, body).await["revokedAuthorization"].is_object());
    assert_eq!(peer.row("~i/clients?limit=200", "name", "visitor").await["access"]["authorized"], true);
    peer.ok("POST", &path, json!({ "action": "UNAUTHORIZE_GUEST_ACCESS" })).await;
    assert_eq!(peer.row("~i/clients?limit=200", "name", "visitor").await["access"]["authorized"], false);
    let ada = peer.row("~i/clients?limit=200", "macAddress", ADA).await;
    let other = format!("~i/clients/{}/actions", ada["id"].as_str().unwrap());
    assert_eq!(peer.ask("POST", &other, json!({ "action": "AUTHORIZE_GUEST_ACCESS" })).await.0, 400);
    // The older interface takes one that is not connected.
    peer.command("stamgr", json!({ "cmd": "authorize-guest", "mac": "02:00:5e:77:00:09", "minutes": 5 }))
        .await;
}
