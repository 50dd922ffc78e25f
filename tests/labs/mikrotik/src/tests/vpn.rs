//! Tunnels and their peers.

use super::*;

#[tokio::test]
async fn router_makes_the_key_of_an_interface() {
    let peer = Peer::new().await;
    let row = peer.add("interface/wireguard", json!({ "listen-port": "51821" })).await;
    assert_eq!(row["name"], "wireguard2");
    assert!(
        row["private-key"].as_str().unwrap().len() == 44 && row["public-key"].as_str().unwrap().len() == 44
    );
    let other = peer.add("interface/wireguard", json!({})).await;
    assert_ne!(row["private-key"], other["private-key"]);
    let kept = peer.change("interface/wireguard", id(&row), json!({ "mtu": "1400" })).await;
    assert_eq!(kept["private-key"], row["private-key"]);
}

#[tokio::test]
async fn public_key_follows_from_the_private_one() {
    let peer = Peer::new().await;
    // The pair that the quick start of the protocol shows.
    let private = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=";
    let row = peer.add("interface/wireguard", json!({ "private-key": private })).await;
    assert_eq!(row["public-key"], "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=");
    peer.refused("PUT", "interface/wireguard", json!({ "private-key": "short" })).await;
}

#[tokio::test]
async fn peer_needs_an_interface_and_a_key() {
    let peer = Peer::new().await;
    let key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let row = peer
        .add(
            "interface/wireguard/peers",
            json!({ "interface": "wireguard1", "public-key": key,
        "allowed-address": "10.99.0.2/32", "persistent-keepalive": "25s" }),
        )
        .await;
    assert_eq!(
        (&row["rx"], &row["dynamic"], &row["persistent-keepalive"]),
        (&json!("0"), &json!("false"), &json!("25s"))
    );
    assert!(row.get("last-handshake").is_none());
    let office = peer.row("interface/wireguard/peers", "name", "office").await;
    assert_eq!(office["current-endpoint-address"], "203.0.113.77");
    assert!(office["last-handshake"].is_string());
    let cases = [
        (
            json!({ "interface": "bridge", "public-key": key, "allowed-address": "10.0.0.1/32" }),
            "input does not match any value of interface",
        ),
        (
            json!({ "interface": "wireguard1", "public-key": "x", "allowed-address": "10.0.0.1/32" }),
            "invalid value for argument public-key",
        ),
        (json!({ "interface": "wireguard1", "public-key": key }), "missing =allowed-address="),
    ];
    for (body, detail) in cases {
        assert_eq!(peer.refused("PUT", "interface/wireguard/peers", body).await, detail);
    }
}

#[tokio::test]
async fn peers_go_with_their_interface() {
    let peer = Peer::new().await;
    let row = peer.row("interface/wireguard", "name", "wireguard1").await;
    assert_eq!(peer.rows("interface/wireguard/peers").await.len(), 2);
    peer.delete("interface/wireguard", id(&row)).await;
    assert!(peer.rows("interface/wireguard/peers").await.is_empty());
    let address = peer.row("ip/address", "address", "10.9.0.1/24").await;
    assert_eq!(address["interface"], row[".id"]);
}

#[tokio::test]
async fn profile_is_named_and_usual() {
    let peer = Peer::new().await;
    let secret = peer
        .add(
            "ppp/secret",
            json!({ "name": "alice", "password": "s3", "service": "l2tp", "profile": "default-encryption" }),
        )
        .await;
    assert_eq!((&secret["profile"], &secret["disabled"]), (&json!("default-encryption"), &json!("false")));
    assert_eq!(peer.add("ppp/secret", json!({ "name": "bob" })).await["profile"], "default");
    assert_eq!(
        peer.refused("PUT", "ppp/secret", json!({ "name": "c", "profile": "gold" })).await,
        "input does not match any value of profile"
    );
}

#[tokio::test]
async fn ipsec_sessions_are_ended() {
    let peer = Peer::new().await;
    assert_eq!(peer.rows("ip/ipsec/active-peers").await[0]["state"], "established");
    peer.post("ip/ipsec/active-peers/kill-connections", json!({})).await;
    assert!(peer.rows("ip/ipsec/active-peers").await.is_empty());
    let identity = peer.row("ip/ipsec/identity", "peer", "branch").await;
    assert_eq!(identity["secret"], "branch secret");
}
