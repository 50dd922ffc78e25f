//! A manager that shuts itself out.

use super::*;

/// Whether the router answers.
async fn answers(peer: &Peer) -> bool {
    peer.request("GET", "system/identity").send().await.is_ok()
}

#[tokio::test]
async fn writes_that_cut_the_way_in_are_felt_at_once() {
    let cases: [(&str, &str, &str, Value); 5] = [
        ("interface/ethernet", "name", "ether2", json!({ "disabled": "yes" })),
        ("interface/bridge", "name", "bridge", json!({ "disabled": "yes" })),
        ("ip/address", "address", "192.168.88.1/24", json!({ "address": "192.168.77.1/24" })),
        ("ip/service", "name", "www", json!({ "address": "10.0.0.0/8" })),
        ("interface/list/member", "list", "LAN", json!({ "disabled": "yes" })),
    ];
    for (path, field, value, change) in cases {
        let peer = Peer::new().await;
        let row = peer.row(path, field, value).await;
        assert!(answers(&peer).await);
        let target = format!("{path}/{}", id(&row));
        let _lost = peer.request("PATCH", &target).json(&change).send().await;
        assert!(!answers(&peer).await, "{path}");
    }
}

#[tokio::test]
async fn rule_before_the_one_that_lets_in_shuts_out() {
    let peer = Peer::new().await;
    let drop = json!({ "chain": "input", "action": "drop", "protocol": "tcp", "dst-port": "80", "src-address": "192.168.88.0/24" });
    let other = json!({ "chain": "input", "action": "drop", "protocol": "udp", "dst-port": "80" });
    peer.add(FILTER, other).await;
    assert!(answers(&peer).await);
    let _lost = peer.request("PUT", FILTER).json(&drop).send().await;
    assert!(!answers(&peer).await);
}

#[tokio::test]
async fn filtering_with_another_vlan_shuts_out() {
    let peer = Peer::new().await;
    let bridge = peer.row("interface/bridge", "name", "bridge").await;
    peer.change("interface/bridge", id(&bridge), json!({ "pvid": "99" })).await;
    assert!(answers(&peer).await);
    let target = format!("interface/bridge/{}", id(&bridge));
    let _lost = peer.request("PATCH", &target).json(&json!({ "vlan-filtering": "yes" })).send().await;
    assert!(!answers(&peer).await);
}

#[tokio::test]
async fn scheduler_lets_the_manager_in_again() {
    let peer = Peer::new().await;
    let member = peer.row("interface/list/member", "list", "LAN").await;
    let event = format!("/interface/list/member/enable {}", id(&member));
    peer.add("system/scheduler", json!({ "name": "back", "interval": "1m", "on-event": event })).await;
    let target = format!("interface/list/member/{}", id(&member));
    let _lost = peer.request("PATCH", &target).json(&json!({ "disabled": "yes" })).send().await;
    assert!(!answers(&peer).await);
    peer.lab.advance(Duration::from_secs(61));
    assert!(answers(&peer).await);
}
