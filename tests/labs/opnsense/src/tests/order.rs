//! The order of rules.

use super::*;

async fn order(peer: &Peer) -> Vec<(String, String)> {
    let rows = peer.rows("firewall/filter/search_rule").await;
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    rows.iter()
        .filter(|row| row["uuid"] != "")
        .map(|row| (text(row, "description"), text(row, "sequence")))
        .collect()
}

#[tokio::test]
async fn rule_without_a_sequence_comes_last() {
    let peer = Peer::new().await;
    let id = peer.add("firewall/filter/add_rule", rule("last")).await;
    let form = peer.get(&format!("firewall/filter/get_rule/{id}")).await;
    assert_eq!(form["rule"]["sequence"], "500");
}

#[tokio::test]
async fn move_puts_a_rule_before_another_and_shifts_those_behind() {
    let peer = Peer::new().await;
    let mut ids = Vec::new();
    for (name, sequence) in [("a", "700"), ("b", "701"), ("c", "900")] {
        let rule = json!({ "rule": { "interface": "lan", "description": name, "sequence": sequence } });
        ids.push(peer.add("firewall/filter/add_rule", rule).await);
    }
    let path = format!("firewall/filter/move_rule_before/{}/{}", ids[2], ids[0]);
    assert_eq!(peer.post(&path, json!({})).await, json!({ "status": "ok" }));
    let order = order(&peer).await;
    let own: Vec<(&str, &str)> =
        order.iter().filter(|(name, _)| name.len() == 1).map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(own, [("c", "700"), ("a", "701"), ("b", "702")]);
}

#[tokio::test]
async fn move_across_groups_is_a_warning_that_moves_nothing() {
    for (release, status) in [(Release::V26_1, 500), (Release::V26_7, 200)] {
        let peer = Peer::of_release(release).await;
        let floating =
            peer.add("firewall/filter/add_rule", json!({ "rule": { "description": "floating" } })).await;
        let lan = peer.add("firewall/filter/add_rule", rule("lan")).await;
        let before = order(&peer).await;
        let response =
            peer.send(&format!("firewall/filter/move_rule_before/{lan}/{floating}"), &json!({})).await;
        assert_eq!(response.status(), status, "{release:?}");
        assert!(response.json::<Value>().await.unwrap()["errorMessage"].is_string());
        assert_eq!(order(&peer).await, before);
    }
}

#[tokio::test]
async fn five_thousand_rules_are_listed_in_order() {
    let peer = Peer::of(Settings { rules: 5000, ..Settings::default() }).await;
    let rows = peer.rows("firewall/filter/search_rule").await;
    let orders: Vec<&str> =
        rows.iter().filter(|row| row["uuid"] != "").filter_map(|row| row["sort_order"].as_str()).collect();
    assert_eq!(orders.len(), 5000);
    assert!(orders.is_sorted());
}

#[tokio::test]
async fn rules_are_sorted_by_their_order_in_both_directions() {
    let peer = Peer::new().await;
    let orders = async |direction: &str| {
        let ask = json!({ "rowCount": -1, "sort": { "sort_order": direction }, "searchPhrase": "" });
        let grid = peer.post("firewall/filter/search_rule", ask).await;
        let rows = grid["rows"].as_array().unwrap().iter().filter(|row| row["uuid"] != "");
        rows.map(|row| row["sort_order"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (up, down) = (orders("asc").await, orders("desc").await);
    assert!(up.is_sorted() && up.len() == 4);
    assert!(down.iter().rev().eq(up.iter()));
}
