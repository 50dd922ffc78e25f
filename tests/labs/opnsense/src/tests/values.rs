//! How values are read: option maps, labels, pages.

use super::*;

#[tokio::test]
async fn form_shows_choices_as_maps_and_no_choice_as_an_empty_list() {
    let peer = Peer::new().await;
    let form = peer.get("firewall/filter/get_rule").await["rule"].take();
    assert_eq!(form["action"]["pass"], json!({ "value": "Pass", "selected": 1 }));
    assert_eq!(form["action"]["block"]["selected"], 0);
    assert_eq!(form["source_net"]["any"]["selected"], 1);
    assert_eq!(form["shaper1"][""]["selected"], 1);
    assert_eq!(form["sequence"], "1");
    let forward = peer.get("firewall/d_nat/get_rule").await["rule"].take();
    assert_eq!(forward["destination"]["network"], "");
    assert_eq!(peer.get("kea/dhcpv4/get_reservation").await["reservation"]["option"], json!([]));
}

#[tokio::test]
async fn content_of_an_alias_is_a_map_that_also_lists_other_aliases() {
    let peer = Peer::new().await;
    let uuid =
        peer.get("firewall/alias/get_alias_uuid/web_servers").await["uuid"].as_str().unwrap().to_owned();
    let content = peer.get(&format!("firewall/alias/get_item/{uuid}")).await["alias"]["content"].take();
    assert_eq!(content["192.168.1.20"]["selected"], 1);
    assert_eq!(content["web_ports"]["selected"], 0);
}

#[tokio::test]
async fn rows_hold_the_value_and_its_label() {
    let peer = Peer::new().await;
    let rows = peer.rows("firewall/d_nat/search_rule").await;
    let row = rows.iter().find(|row| row["descr"] == "publish web").unwrap();
    assert_eq!(row["interface"], "wan");
    assert_eq!(row["%interface"], "WAN");
    assert_eq!(row["destination.network"], "wanip");
}

#[tokio::test]
async fn pages_order_and_words_choose_the_rows() {
    let peer = Peer::of(Settings { rules: 50, ..Settings::default() }).await;
    let ask = json!({ "current": 2, "rowCount": 10, "sort": { "description": "desc" },
        "searchPhrase": "rule opt1" });
    let page = peer.post("firewall/filter/search_rule", ask).await;
    assert_eq!(
        (page["total"].as_u64(), page["rowCount"].as_u64(), page["current"].as_u64()),
        (Some(16), Some(6), Some(2))
    );
    let names: Vec<&str> =
        page["rows"].as_array().unwrap().iter().filter_map(|row| row["description"].as_str()).collect();
    assert!(
        names.is_sorted_by(|a, b| a >= b) && names.iter().all(|name| name.starts_with("rule")),
        "{names:?}"
    );
    // A query is only looked at where the list holds stored items alone.
    let by_get = peer.get("firewall/alias/search_item?current=1&rowCount=3").await;
    assert_eq!(by_get["rows"].as_array().unwrap().len(), 3);
    let all = peer.get("firewall/filter/search_rule?current=1&rowCount=3").await;
    assert!(all["rows"].as_array().unwrap().len() > 50);
}

#[tokio::test]
async fn password_is_never_read_and_empty_keeps_it() {
    let peer = Peer::new().await;
    let id = peer.add("auth/user/add", json!({ "user": { "name": "anna", "password": "long-one" } })).await;
    let hash = peer.lab.lock().stored.value(crate::choices::USERS, &id, "password").to_owned();
    assert!(!hash.is_empty() && !hash.contains("long-one"));
    peer.post(
        &format!("auth/user/set/{id}"),
        json!({ "user": { "email": "a@example.net", "password": "" } }),
    )
    .await;
    assert_eq!(peer.lab.lock().stored.value(crate::choices::USERS, &id, "password"), hash);
    assert_eq!(peer.get(&format!("auth/user/get/{id}")).await["user"]["password"], "");
}

#[tokio::test]
async fn manual_outbound_rules_are_hidden_in_automatic_mode() {
    let peer = Peer::new().await;
    let rule = json!({ "rule": { "interface": "wan", "source_net": "lan", "target": "wanip", "description": "own" } });
    peer.add("firewall/source_nat/add_rule", rule).await;
    let shown = async |peer: &Peer| {
        let rows = peer.rows("firewall/source_nat/search_rule").await;
        let automatic =
            rows.iter().filter(|row| row["uuid"].as_str().is_some_and(|id| id.starts_with("automatic_")));
        (rows.iter().any(|row| row["description"] == "own"), automatic.count() > 0)
    };
    for (mode, expected) in
        [("automatic", (false, true)), ("hybrid", (true, true)), ("advanced", (true, false))]
    {
        peer.post("firewall/source_nat/set", json!({ "filter": { "general": { "snat_mode": mode } } })).await;
        assert_eq!(shown(&peer).await, expected, "{mode}");
    }
}
