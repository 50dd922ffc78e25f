//! The order of rows.

use super::*;

/// Three rules at the end.
async fn three(peer: &Peer) -> Vec<String> {
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(id(&peer.add(FILTER, json!({ "chain": "order", "comment": name })).await).to_owned());
    }
    ids
}

async fn tail(peer: &Peer) -> String {
    let all = comments(peer).await;
    all[all.len() - 3..].join("")
}

#[tokio::test]
async fn create_puts_a_rule_before_another() {
    let peer = Peer::new().await;
    let ids = three(&peer).await;
    peer.add(FILTER, json!({ "chain": "order", "comment": "x", "place-before": ids[1] })).await;
    assert_eq!(tail(&peer).await, "xbc");
    let unknown = json!({ "chain": "order", "place-before": "*FFFF" });
    assert_eq!(peer.ask("PUT", FILTER, unknown).await.0, 404);
    let detail =
        peer.refused("PATCH", &format!("{FILTER}/{}", ids[0]), json!({ "place-before": ids[2] })).await;
    assert_eq!(detail, "unknown parameter place-before");
}

#[tokio::test]
async fn move_puts_a_rule_right_before_its_destination_and_keeps_its_id() {
    let peer = Peer::new().await;
    let ids = three(&peer).await;
    assert_eq!(
        peer.post("ip/firewall/filter/move", json!({ "numbers": ids[2], "destination": ids[0] })).await,
        json!([])
    );
    assert_eq!(tail(&peer).await, "cab");
    assert_eq!(peer.get(&format!("{FILTER}/{}", ids[2])).await["comment"], "c");
}

#[tokio::test]
async fn several_rules_move_as_a_block_in_the_given_order() {
    let peer = Peer::new().await;
    let ids = three(&peer).await;
    let numbers = format!("{},{}", ids[2], ids[1]);
    peer.post("ip/firewall/filter/move", json!({ "numbers": numbers, "destination": ids[0] })).await;
    assert_eq!(tail(&peer).await, "cba");
}

#[tokio::test]
async fn unknown_or_missing_destination_moves_to_the_end() {
    let peer = Peer::new().await;
    let ids = three(&peer).await;
    for destination in [json!({ "numbers": ids[0], "destination": "*FFFF" }), json!({ "numbers": ids[1] })] {
        assert_eq!(peer.post("ip/firewall/filter/move", destination).await, json!([]));
    }
    assert_eq!(tail(&peer).await, "cab");
}

#[tokio::test]
async fn bare_number_is_a_place() {
    let peer = Peer::new().await;
    let ids = three(&peer).await;
    peer.post("ip/firewall/filter/move", json!({ ".id": ids[0], "destination": "1" })).await;
    assert_eq!(comments(&peer).await[1], "a");
}

#[tokio::test]
async fn order_is_of_the_whole_table() {
    let peer = Peer::new().await;
    let first = peer.rows(FILTER).await;
    assert_eq!(first[0]["dynamic"], "true", "the router's own rule stands first");
    let input = peer.row(FILTER, "comment", "defconf: drop all not coming from LAN").await;
    let forward = peer.row(FILTER, "comment", "defconf: fasttrack").await;
    peer.post("ip/firewall/filter/move", json!({ "numbers": id(&forward), "destination": id(&input) })).await;
    let all = comments(&peer).await;
    let at = |text: &str| all.iter().position(|comment| comment == text).unwrap();
    assert_eq!(at("defconf: fasttrack") + 1, at("defconf: drop all not coming from LAN"));
}

#[tokio::test]
async fn list_without_an_order_takes_no_move() {
    let peer = Peer::new().await;
    let row = peer.row("ip/address", "address", "192.168.88.1/24").await;
    assert_eq!(
        peer.refused("POST", "ip/address/move", json!({ "numbers": id(&row) })).await,
        "no such command"
    );
    let create = json!({ "address": "10.0.0.1/24", "interface": "bridge", "place-before": id(&row) });
    assert_eq!(peer.refused("PUT", "ip/address", create).await, "unknown parameter place-before");
}

#[tokio::test]
async fn row_names_the_next_one_to_who_asks() {
    let peer = Peer::new().await;
    let ids = three(&peer).await;
    let rows = peer.rows("ip/firewall/filter?chain=order&.proplist=.nextid").await;
    let next: Vec<&str> = rows.iter().filter_map(|row| row[".nextid"].as_str()).collect();
    assert_eq!(next, [ids[1].as_str(), &ids[2], "*FFFFFFFF"]);
    assert!(peer.rows(FILTER).await.iter().all(|row| row.get(".nextid").is_none()));
}
