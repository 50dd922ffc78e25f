//! Locks, lost updates, and what happens behind the client's back.

use heddle_lab::Fault;

use super::*;

#[tokio::test]
async fn held_lock_refuses_a_write_and_not_a_read() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("config_lock_busy", Value::Null).times(1));
    peer.get("/firewall/rules").await;
    let response = peer.send("POST", "/firewall/rule", &rule("lost")).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"5".parse().unwrap())
    );
    assert_eq!(response.json::<Value>().await.unwrap()["response_id"], "MODEL_WRITE_CONFIG_LOCKED");
    peer.post("/firewall/rule", rule("kept")).await;
    assert_eq!(peer.column("/firewall/rules", "descr").await[4], "kept");
}

#[tokio::test]
async fn overwritten_write_answers_200_and_is_gone() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("lost_update", Value::Null).times(1));
    assert_eq!(peer.post("/firewall/rule", rule("overwritten")).await["id"], 4);
    assert_eq!(peer.get("/firewall/rules").await.as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn edit_by_a_person_moves_ids() {
    let peer = Peer::new().await;
    let edit = json!({ "do": "set", "model": "FirewallAlias", "at": 0,
        "fields": { "name": "by_hand", "type": "host", "address": [], "detail": [] } });
    assert_eq!(peer.lab.edit(&edit).unwrap(), json!({ "id": 0 }));
    assert_eq!(peer.get("/firewall/alias?id=1").await["name"], "web_servers");
    peer.lab.edit(&json!({ "do": "remove", "model": "FirewallAlias", "id": 0, "apply": true })).unwrap();
    assert_eq!(peer.get("/firewall/alias?id=0").await["name"], "web_servers");
    assert!(peer.lab.edit(&json!({ "do": "set", "model": "Nothing", "fields": {} })).is_err());
}

#[tokio::test]
async fn every_write_is_a_revision_of_which_thirty_stay() {
    let peer = Peer::new().await;
    for at in 0..31 {
        peer.patch("/firewall/alias", json!({ "id": 0, "descr": format!("{at}") })).await;
    }
    let revisions = peer.get("/diagnostics/config_history/revisions").await;
    assert_eq!(revisions.as_array().unwrap().len(), 30);
    assert_eq!(revisions[0]["description"], " Modified FirewallAlias via API");
}

#[tokio::test]
async fn failed_reload_says_nothing_and_leaves_the_old_rules() {
    let peer = Peer::new().await;
    peer.patch("/firewall/alias", json!({ "id": 0, "descr": "changed" })).await;
    peer.lab.fault(Fault::vendor("reload_fails", Value::Null).times(1));
    peer.post("/firewall/apply", json!({})).await;
    peer.advance(600);
    assert_eq!(peer.get("/firewall/apply").await["applied"], true);
    assert_eq!(peer.pending(), ["FirewallAlias"]);
}

#[tokio::test]
async fn vendor_errors_have_their_form() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("php_error", Value::Null).times(1));
    let answer: Value = peer.send("GET", "/firewall/rules", &Value::Null).await.json().await.unwrap();
    assert_eq!(answer["response_id"], "ENDPOINT_RECEIVED_UNEXPECTED_ERROR");
    assert!(answer["message"].as_str().unwrap().contains("{main}"));
    peer.lab.fault(Fault::vendor("unavailable", Value::Null).times(1));
    assert_eq!(
        peer.refusal("GET", "/firewall/rules", Value::Null).await,
        refused(503, "ENDPOINT_UNAVAILABLE")
    );
    peer.lab.fault(Fault::vendor("queue_full", Value::Null).times(1));
    assert_eq!(peer.refusal("POST", "/firewall/apply", json!({})).await.0, 503);
    peer.lab.fault(Fault::vendor("login_page", Value::Null).times(1));
    let page = peer.request("GET", "/firewall/rules").send().await.unwrap();
    assert_eq!(
        (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
        (200, "text/html")
    );
}

#[tokio::test]
async fn answer_that_is_lost_was_carried_out() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::lose_answer().on_writes().times(1));
    assert!(peer.request("POST", "/firewall/rule").json(&rule("done")).send().await.is_err());
    assert_eq!(peer.column("/firewall/rules", "descr").await[4], "done");
}
