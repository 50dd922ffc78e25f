//! Rows: ids, names, links and what the router makes of them.

use super::*;

#[tokio::test]
async fn created_row_is_answered_whole_with_its_place() {
    let peer = Peer::new().await;
    let response = peer
        .send(
            "PUT",
            "interface/vlan",
            json!({ "interface": "bridge", "vlan-id": "30", "comment": "cameras" }),
        )
        .await;
    assert_eq!(response.status(), 201);
    let place = response.headers()["location"].to_str().unwrap().to_owned();
    let (_, row) = told(response).await;
    assert_eq!(place, format!("/rest/interface/vlan/{}", id(&row)));
    assert_eq!(
        (&row["name"], &row["mtu"], &row["running"]),
        (&json!("vlan1"), &json!("1500"), &json!("true"))
    );
    assert_eq!(peer.get(&format!("interface/vlan/{}", id(&row))).await, row);
}

#[tokio::test]
async fn id_is_never_given_again() {
    let peer = Peer::new().await;
    let rule = json!({ "chain": "a" });
    let first = peer.add(FILTER, rule.clone()).await;
    assert_eq!(peer.delete(FILTER, id(&first)).await, 204);
    assert_eq!(peer.delete(FILTER, id(&first)).await, 404);
    let second = peer.add(FILTER, rule).await;
    let number = |row: &Value| u64::from_str_radix(&id(row)[1..], 16).unwrap();
    assert!(number(&second) > number(&first));
}

#[tokio::test]
async fn interfaces_of_all_types_share_their_ids_and_one_list() {
    let peer = Peer::new().await;
    let vlan = peer.row("interface/vlan", "name", "vlan20").await;
    let row = peer.row("interface", "name", "vlan20").await;
    assert_eq!(row[".id"], vlan[".id"]);
    peer.change("interface", id(&row), json!({ "name": "guests", "comment": "renamed" })).await;
    let vlan = peer.get(&format!("interface/vlan/{}", id(&vlan))).await;
    assert_eq!((&vlan["name"], &vlan["comment"]), (&json!("guests"), &json!("renamed")));
    let all = peer.rows("interface").await;
    let ids: std::collections::BTreeSet<&str> = all.iter().map(id).collect();
    assert_eq!(ids.len(), all.len());
    let port = peer.row("interface", "name", "ether1").await;
    assert_eq!(port["default-name"], "ether1");
    assert!(port.get("dynamic").is_none());
}

#[tokio::test]
async fn new_name_shows_wherever_the_row_is_named() {
    let peer = Peer::new().await;
    let bridge = peer.row("interface/bridge", "name", "bridge").await;
    peer.change("interface/bridge", id(&bridge), json!({ "name": "br-lan" })).await;
    assert!(peer.rows("interface/bridge/port").await.iter().all(|row| row["bridge"] == "br-lan"));
    assert_eq!(peer.row("ip/address", "address", "192.168.88.1/24").await["interface"], "br-lan");
}

#[tokio::test]
async fn removed_row_leaves_its_bare_id_and_a_new_one_is_not_linked() {
    let peer = Peer::new().await;
    let pool = peer.row("ip/pool", "name", "guests").await;
    peer.delete("ip/pool", id(&pool)).await;
    assert_eq!(peer.row("ip/dhcp-server", "name", "guests").await["address-pool"], pool[".id"]);
    peer.add("ip/pool", json!({ "name": "guests", "ranges": "192.168.20.100-192.168.20.199" })).await;
    assert_eq!(peer.row("ip/dhcp-server", "name", "guests").await["address-pool"], pool[".id"]);
}

#[tokio::test]
async fn several_rows_are_written_at_once() {
    let peer = Peer::new().await;
    let rows = peer.rows("ip/firewall/address-list").await;
    let ids: Vec<&str> = rows.iter().map(id).collect();
    let set = json!({ ".id": ids.join(","), "comment": "both" });
    assert_eq!(peer.post("ip/firewall/address-list/set", set).await, json!([]));
    assert!(peer.rows("ip/firewall/address-list").await.iter().all(|row| row["comment"] == "both"));
    peer.post("ip/firewall/address-list/disable", json!({ "numbers": ids.join(",") })).await;
    assert!(peer.rows("ip/firewall/address-list").await.iter().all(|row| row["disabled"] == "true"));
}

#[tokio::test]
async fn object_is_an_object_and_is_set_by_a_command() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("system/identity").await, json!({ "name": "lab-router" }));
    assert_eq!(peer.post("system/identity/set", json!({ "name": "branch-7" })).await, json!([]));
    assert_eq!(peer.get("system/identity").await["name"], "branch-7");
    peer.refused("PATCH", "system/identity", json!({ "name": "x" })).await;
    let tracking = peer.get("ip/firewall/connection/tracking").await;
    assert!(tracking.is_object(), "a part of the path that is no id");
}

#[tokio::test]
async fn disabled_route_shows_only_what_was_written() {
    let peer = Peer::new().await;
    let route = peer.row("ip/route", "comment", "branch").await;
    assert!(id(&route).starts_with("*8000"), "{route}");
    assert_eq!(
        (&route["distance"], &route["static"], &route["active"]),
        (&json!("1"), &json!("true"), &json!("true"))
    );
    assert_eq!(route["immediate-gw"], "192.168.88.2%bridge");
    let off = peer.change("ip/route", id(&route), json!({ "disabled": "yes" })).await;
    let expected = json!({ ".id": route[".id"], "comment": "branch", "disabled": "true", "dst-address": "10.99.0.0/16",
        "gateway": "192.168.88.2", "inactive": "false", "static": "true" });
    assert_eq!(off, expected);
    let connected = peer.row("ip/route", "dst-address", "192.168.88.0/24").await;
    assert!(id(&connected).starts_with("*2018"));
    assert_eq!((&connected["connect"], &connected["dynamic"]), (&json!("true"), &json!("true")));
}

#[tokio::test]
async fn route_without_a_near_gateway_is_not_active_and_a_blackhole_needs_none() {
    let peer = Peer::new().await;
    let far = peer.add("ip/route", json!({ "dst-address": "10.5.0.0/16", "gateway": "172.31.0.1" })).await;
    assert_eq!((&far["inactive"], &far["immediate-gw"]), (&json!("true"), &json!("")));
    assert!(far.get("active").is_none());
    let hole = peer.add("ip/route", json!({ "dst-address": "10.6.0.0/16", "blackhole": "" })).await;
    assert_eq!(hole["blackhole"], "");
    assert!(hole.get("gateway").is_none() && hole.get("scope").is_none());
    peer.refused("PUT", "ip/route", json!({ "dst-address": "10.7.0.0/16" })).await;
    let usual = peer.add("ip/route", json!({ "gateway": "192.168.88.3", "distance": "5" })).await;
    assert_eq!(usual["dst-address"], "0.0.0.0/0");
}

#[tokio::test]
async fn counters_run_and_are_reset() {
    let peer = Peer::new().await;
    peer.lab.advance(Duration::from_mins(1));
    let rule = peer.row(FILTER, "comment", "defconf: drop invalid").await;
    assert_ne!(rule["packets"], "0");
    peer.post("ip/firewall/filter/reset-counters", json!({ "numbers": id(&rule) })).await;
    assert_eq!(peer.get(&format!("{FILTER}/{}", id(&rule))).await["packets"], "0");
    peer.post("ip/firewall/filter/reset-counters-all", json!({})).await;
    assert!(peer.rows(FILTER).await.iter().all(|row| row["packets"] == "0"));
}
