//! Ids are places: they move with every object before them.

use super::*;

#[tokio::test]
async fn ids_shift_when_an_object_before_is_deleted() {
    let peer = Peer::new().await;
    let before = peer.column("/firewall/rules", "descr").await;
    peer.delete("/firewall/rule?id=1").await;
    assert_eq!(peer.get("/firewall/rule?id=1").await["descr"], before[2]);
    assert_eq!(
        peer.refusal("GET", "/firewall/rule?id=3", Value::Null).await,
        refused(404, "MODEL_OBJECT_NOT_FOUND")
    );
}

#[tokio::test]
async fn placement_inserts_and_moves_and_fails_behind_the_end() {
    let peer = Peer::new().await;
    let mut first = rule("on top");
    first["placement"] = json!(0);
    assert_eq!(peer.post("/firewall/rule", first).await["id"], 0);
    assert_eq!(peer.column("/firewall/rules", "descr").await[0], "on top");
    assert_eq!(peer.patch("/firewall/rule", json!({ "id": 0, "placement": 2 })).await["id"], 2);
    assert_eq!(peer.column("/firewall/rules", "descr").await[2], "on top");
    let mut last = rule("lost");
    last["placement"] = json!(100);
    assert_eq!(
        peer.refusal("POST", "/firewall/rule", last).await,
        refused(500, "MODEL_FAILED_TO_SET_PLACEMENT")
    );
    assert_eq!(peer.column("/firewall/rules", "descr").await.len(), 5);
}

#[tokio::test]
async fn tracker_stays_with_its_rule() {
    let peer = Peer::new().await;
    peer.advance(5000);
    let made = peer.post("/firewall/rule", rule("mine")).await;
    let tracker = made["tracker"].as_u64().unwrap();
    peer.delete("/firewall/rule?id=0").await;
    let found = peer.get(&format!("/firewall/rules?tracker={tracker}")).await;
    assert_eq!((&found[0]["id"], &found[0]["descr"]), (&json!(3), &json!("mine")));
}

#[tokio::test]
async fn lists_that_sort_themselves_move_other_ids() {
    let peer = Peer::new().await;
    let host = json!({ "host": "aaa", "domain": "home.example", "ip": ["192.168.1.90"] });
    assert_eq!(peer.post("/services/dns_resolver/host_override", host).await["id"], 0);
    let hosts = peer.column("/services/dns_resolver/host_overrides", "host").await;
    assert_eq!(hosts, [json!("aaa"), json!("nas"), json!("web")]);
    let map = |mac: &str, ip: &str| json!({ "parent_id": "lan", "mac": mac, "ipaddr": ip, "hostname": "x", "descr": "" });
    let path = "/services/dhcp_server/static_mapping";
    assert_eq!(peer.post(path, map("02:00:00:00:09:01", "192.168.1.9")).await["id"], 0);
    // Addresses are compared by their numbers.
    assert_eq!(peer.post(path, map("02:00:00:00:09:02", "192.168.1.10")).await["id"], 1);
}

#[tokio::test]
async fn children_are_named_by_parent_and_place() {
    let peer = Peer::new().await;
    let path = "/services/dhcp_server/static_mapping";
    let found = peer.get(&format!("{path}?parent_id=lan&id=0")).await;
    assert_eq!((&found["parent_id"], &found["hostname"]), (&json!("lan"), &json!("printer")));
    let map = json!({ "mac": "02:00:00:00:09:03", "ipaddr": "192.168.1.60" });
    assert_eq!(peer.refusal("POST", path, map).await, refused(400, "MODEL_PARENT_ID_REQUIRED"));
    assert_eq!(
        peer.refusal("GET", &format!("{path}?parent_id=opt7&id=0"), Value::Null).await,
        refused(404, "MODEL_PARENT_OBJECT_NOT_FOUND")
    );
    assert_eq!(
        peer.refusal("DELETE", &format!("{path}?id=0"), Value::Null).await,
        refused(500, "MODEL_PARENT_ID_REQUIRED_FOR_REFRESH")
    );
    let all = peer.get("/services/dhcp_server/static_mappings").await;
    assert_eq!(all.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn missing_ids_have_different_answers() {
    let peer = Peer::new().await;
    assert_eq!(peer.refusal("GET", "/firewall/rule", Value::Null).await, refused(400, "MODEL_REQUIRES_ID"));
    assert_eq!(
        peer.refusal("PATCH", "/firewall/rule", json!({ "descr": "x" })).await,
        refused(400, "MODEL_REQUIRES_ID")
    );
    assert_eq!(
        peer.refusal("DELETE", "/firewall/rule", Value::Null).await,
        refused(500, "MODEL_ID_REQUIRED_FOR_REFRESH")
    );
}

#[tokio::test]
async fn id_of_a_new_interface_is_given_and_stays() {
    let peer = Peer::new().await;
    let spare = json!({ "if": "igb2", "descr": "SPARE", "typev4": "none" });
    assert_eq!(peer.post("/interface", spare).await["id"], "opt2");
    let wifi = json!({ "if": "igb3", "descr": "WIFI", "typev4": "none" });
    assert_eq!(peer.post("/interface", wifi).await["id"], "opt3");
    peer.delete("/interface?id=opt2").await;
    assert_eq!(peer.get("/interface?id=opt3").await["descr"], "WIFI");
}
