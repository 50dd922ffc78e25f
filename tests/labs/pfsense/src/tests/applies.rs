//! What is stored is not active before its apply, and that takes time.

use super::*;

#[tokio::test]
async fn rule_runs_after_the_apply_and_raises_no_flag() {
    let peer = Peer::new().await;
    peer.post("/firewall/rule", rule("new")).await;
    assert_eq!(peer.pending(), ["FirewallRule"]);
    assert_eq!(peer.get("/firewall/apply").await, json!({ "applied": true, "pending_subsystems": [] }));
    peer.post("/firewall/apply", json!({})).await;
    assert_eq!(peer.pending(), ["FirewallRule"]);
    peer.advance(600);
    assert!(peer.pending().is_empty());
}

#[tokio::test]
async fn alias_raises_the_flag_until_the_job_has_run() {
    let peer = Peer::new().await;
    peer.patch("/firewall/alias", json!({ "id": 0, "descr": "changed" })).await;
    let waiting = json!({ "applied": false, "pending_subsystems": ["aliases"] });
    assert_eq!(peer.get("/firewall/apply").await, waiting);
    assert_eq!(peer.post("/firewall/apply", json!({})).await, waiting);
    peer.advance(600);
    assert_eq!(peer.get("/firewall/apply").await["applied"], true);
}

#[tokio::test]
async fn apply_on_the_write_clears_the_flag_before_the_job_ends() {
    let peer = Peer::new().await;
    peer.patch("/firewall/alias", json!({ "id": 0, "descr": "changed", "apply": true })).await;
    assert_eq!(peer.get("/firewall/apply").await["applied"], true);
    assert_eq!(peer.pending(), ["FirewallAlias"]);
    peer.advance(600);
    assert!(peer.pending().is_empty());
}

#[tokio::test]
async fn waiting_for_the_apply_makes_it_part_of_the_answer() {
    let peer = Peer::new().await;
    peer.patch("/firewall/alias", json!({ "id": 0, "descr": "changed" })).await;
    let done = json!({ "applied": true, "pending_subsystems": [] });
    assert_eq!(peer.post("/firewall/apply", json!({ "async": false })).await, done);
    // Other applies tell the state from before.
    peer.patch("/routing/static_route", json!({ "id": 0, "descr": "changed" })).await;
    assert_eq!(peer.post("/routing/apply", json!({ "async": false })).await, json!({ "applied": false }));
    assert_eq!(peer.get("/routing/apply").await, json!({ "applied": true }));
}

#[tokio::test]
async fn one_apply_makes_active_what_others_have_stored() {
    let peer = Peer::new().await;
    peer.lab
        .edit(&json!({ "do": "set", "model": "FirewallRule", "id": 0, "fields": { "descr": "by hand" } }))
        .unwrap();
    peer.patch("/routing/static_route", json!({ "id": 0, "descr": "mine" })).await;
    peer.post("/routing/apply", json!({ "async": false })).await;
    assert!(peer.pending().is_empty());
}

#[tokio::test]
async fn each_subsystem_has_its_own_apply() {
    let peer = Peer::new().await;
    for (path, body, apply) in [
        (
            "/services/dhcp_server",
            json!({ "id": "lan", "domain": "home.example" }),
            "/services/dhcp_server/apply",
        ),
        (
            "/services/dns_resolver/host_override",
            json!({ "id": 0, "descr": "x" }),
            "/services/dns_resolver/apply",
        ),
        ("/vpn/ipsec/phase1", json!({ "id": 0, "descr": "x" }), "/vpn/ipsec/apply"),
        ("/vpn/wireguard/peer", json!({ "id": 0, "descr": "x" }), "/vpn/wireguard/apply"),
        ("/firewall/virtual_ip", json!({ "id": 0, "descr": "x" }), "/firewall/virtual_ip/apply"),
    ] {
        peer.patch(path, body).await;
        assert_eq!(peer.get(apply).await, json!({ "applied": false }), "{path}");
        peer.post(apply, json!({})).await;
        peer.advance(600);
        assert_eq!(peer.get(apply).await, json!({ "applied": true }), "{path}");
        assert!(peer.pending().is_empty(), "{path}");
    }
}

#[tokio::test]
async fn pending_interfaces_are_named_as_interfaces_are_shown() {
    let peer = Peer::new().await;
    peer.patch("/interface", json!({ "id": "opt1", "descr": "VISITORS" })).await;
    let waiting = peer.get("/interface/apply").await;
    assert_eq!(waiting, json!({ "applied": false, "pending_interfaces": ["VISITORS"] }));
    let before = peer.get("/status/interfaces?name=opt1").await;
    assert_eq!(before[0]["descr"], "GUEST");
    peer.post("/interface/apply", json!({ "async": false })).await;
    assert_eq!(peer.get("/status/interfaces?name=opt1").await[0]["descr"], "VISITORS");
}

#[tokio::test]
async fn immediate_models_act_at_once_and_tunables_only_with_apply() {
    let peer = Peer::new().await;
    peer.post("/interface/vlan", json!({ "if": "igb2", "tag": 40, "descr": "" })).await;
    assert!(peer.pending().is_empty());
    peer.patch("/system/tunable", json!({ "id": 0, "value": "1" })).await;
    assert_eq!(peer.pending(), ["SystemTunable"]);
    peer.patch("/system/tunable", json!({ "id": 0, "value": "1", "apply": true })).await;
    assert!(peer.pending().is_empty());
}

#[tokio::test]
async fn jobs_queue_up_to_ten() {
    let peer = Peer::new().await;
    for _ in 0..10 {
        peer.post("/firewall/apply", json!({})).await;
    }
    let response = peer.send("POST", "/firewall/apply", &json!({})).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"300".parse().unwrap())
    );
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["response_id"], "DISPATCHER_TOO_MANY_QUEUED_PROCESSES");
    peer.advance(6000);
    peer.post("/firewall/apply", json!({})).await;
}

#[tokio::test]
async fn dry_run_only_validates() {
    let peer = Peer::new().await;
    let mut dry = rule("dry");
    dry["dry_run"] = json!(true);
    assert_eq!(peer.post("/firewall/rule", dry).await["id"], 4);
    let request = peer.request("PUT", "/firewall/aliases").header("prefer", "dry-run").json(&json!([]));
    assert_eq!(request.send().await.unwrap().status(), 200);
    peer.delete("/firewall/rule?id=0&dry_run=true").await;
    assert!(peer.pending().is_empty());
    assert_eq!(
        peer.refusal("GET", "/firewall/rules?dry_run=true", Value::Null).await,
        refused(400, "ENDPOINT_DRY_RUN_NOT_SUPPORTED_ON_GET")
    );
}

#[tokio::test]
async fn schedule_that_is_written_reloads_the_filter() {
    let peer = Peer::new().await;
    peer.post("/firewall/rule", rule("of another person")).await;
    peer.patch("/firewall/schedule", json!({ "id": 0, "descr": "changed" })).await;
    peer.advance(600);
    assert!(peer.pending().is_empty());
}
