//! What differs between releases.

use super::*;

#[tokio::test]
async fn older_release_answers_200_to_create_and_delete() {
    let peer = Peer::of_release(Release::V7_16).await;
    let response =
        peer.send("PUT", "ip/firewall/address-list", json!({ "list": "x", "address": "10.0.0.1" })).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers().get("location").is_none());
    let (_, row) = told(response).await;
    assert_eq!(peer.delete("ip/firewall/address-list", id(&row)).await, 200);
}

#[tokio::test]
async fn fields_come_and_go() {
    let (old, new) = (Peer::of_release(Release::V7_16).await, Peer::of_release(Release::V7_22).await);
    let key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let peer_with = |name: &str| json!({ "interface": "wireguard1", "public-key": key, "allowed-address": "10.0.0.1/32", name: "yes" });
    old.add("interface/wireguard/peers", peer_with("is-responder")).await;
    assert_eq!(
        old.refused("PUT", "interface/wireguard/peers", peer_with("responder")).await,
        "unknown parameter responder"
    );
    new.add("interface/wireguard/peers", peer_with("responder")).await;
    assert_eq!(
        new.refused("PUT", "interface/wireguard/peers", peer_with("is-responder")).await,
        "unknown parameter is-responder"
    );
    assert!(old.get("ip/ssh").await.get("password-authentication").is_none());
    new.post("ip/ssh/set", json!({ "password-authentication": "yes" })).await;
    old.refused("POST", "ip/ssh/set", json!({ "password-authentication": "yes" })).await;
    old.post("ip/ssh/set", json!({ "always-allow-password-login": "yes" })).await;
}

#[tokio::test]
async fn menus_come_and_go() {
    let cases = [
        ("routing/bgp/instance", Release::V7_16, Release::V7_22),
        ("ip/service/webserver", Release::V7_16, Release::V7_22),
        ("ip/dns/forwarders", Release::V7_16, Release::V7_22),
        ("system/keymat-provider", Release::V7_22, Release::V7_24),
        ("ip/neighbor/lldp", Release::V7_22, Release::V7_24),
    ];
    for (path, without, with) in cases {
        let (old, new) = (Peer::of_release(without).await, Peer::of_release(with).await);
        let (status, body) = told(old.request("GET", path).send().await.unwrap()).await;
        let last = path.rsplit('/').next().unwrap();
        assert_eq!(
            (status, &body["detail"]),
            (400, &json!(format!("no such command or directory ({last})"))),
            "{path}"
        );
        new.get(path).await;
    }
}

#[tokio::test]
async fn told_version_hides_the_release() {
    let peer = Peer::of(Settings { told_version: Some("7.30.1".to_owned()), ..Settings::default() }).await;
    assert_eq!(peer.get("system/resource").await["version"], "7.30.1 (stable)");
    peer.lab.lock().tell_version("7.31");
    assert_eq!(peer.get("system/package/update").await["installed-version"], "7.31");
}

#[tokio::test]
async fn packages_bring_their_menus() {
    let peer =
        Peer::of(Settings { packages: Some(vec!["wifi-qcom".to_owned()]), ..Settings::default() }).await;
    peer.get("interface/wifi").await;
    for (path, part) in [
        ("interface/wireless", "wireless"),
        ("caps-man/manager", "caps-man"),
        ("user-manager/user", "user-manager"),
    ] {
        let (status, body) = told(peer.request("GET", path).send().await.unwrap()).await;
        assert_eq!(
            (status, &body["detail"]),
            (400, &json!(format!("no such command or directory ({part})"))),
            "{path}"
        );
    }
}

#[tokio::test]
async fn server_of_openvpn_was_one_object() {
    let (old, new) = (Peer::of_release(Release::V7_16).await, Peer::of_release(Release::V7_22).await);
    let server = old.get("interface/ovpn-server/server").await;
    assert_eq!((&server["port"], &server["enabled"]), (&json!("1194"), &json!("false")));
    old.post("interface/ovpn-server/server/set", json!({ "enabled": "yes", "port": "1195" })).await;
    assert_eq!(old.get("interface/ovpn-server/server").await["port"], "1195");
    old.refused("PUT", "interface/ovpn-server/server", json!({})).await;
    let rows = new.rows("interface/ovpn-server/server").await;
    assert_eq!((&rows[0]["name"], &rows[0]["disabled"]), (&json!("ovpn1"), &json!("true")));
}
