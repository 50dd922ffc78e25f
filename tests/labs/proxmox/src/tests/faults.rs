//! What goes wrong: nodes, quorum, full storages, lost answers; and what the control port shows.

use heddle_lab::Fault;

use super::*;

#[tokio::test]
async fn a_node_that_is_away_is_595_and_its_guests_are_unknown() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("node_offline", json!({ "node": "pve2" })));
    assert_eq!(peer.refused("GET", "/nodes/pve2/qemu/102/config", &[]).await.0, 595);
    let rows = peer.get("/cluster/resources?type=vm").await;
    let lost = rows.as_array().unwrap().iter().find(|row| row["vmid"] == 102).unwrap();
    assert_eq!(lost["status"], "unknown");
    peer.lab.clear_faults();
    assert_eq!(peer.get("/nodes/pve2/qemu/102/status/current").await["status"], "running");
}

#[tokio::test]
async fn without_quorum_reads_go_on_and_writes_do_not() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("quorum_lost", json!(null)).for_ms(1000));
    let form = [("onboot", "0")];
    let (status, reason) = peer.refused("PUT", "/nodes/pve1/qemu/100/config", &form).await;
    assert_eq!((status, reason.as_str()), (500, "cluster not ready - no quorum?"));
    assert_eq!(peer.get("/cluster/status").await[0]["quorate"], 0);
    peer.lab.advance(Duration::from_secs(2));
    peer.ok("PUT", "/nodes/pve1/qemu/100/config", &form).await;
}

#[tokio::test]
async fn a_full_storage_fails_the_backup_and_unlocks_the_guest() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("storage_full", json!({ "storage": "nas" })));
    assert_eq!(peer.get("/nodes/pve1/storage/nas/status").await["avail"], 0);
    let form = [("vmid", "101"), ("storage", "nas")];
    assert_eq!(peer.run("POST", "/nodes/pve1/vzdump", &form).await, "job errors");
    assert_eq!(peer.get("/nodes/pve1/qemu/101/config").await["lock"], json!(null));
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_was_executed() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::lose_answer().on_writes().times(1));
    let request =
        peer.request("POST", "/pools").header("authorization", peer.token).form(&[("poolid", "lost")]);
    assert!(request.send().await.is_err());
    assert_eq!(
        peer.refused("POST", "/pools", &[("poolid", "lost")]).await.1,
        "create pool failed: pool 'lost' already exists"
    );
}

#[tokio::test]
async fn errors_of_old_releases_stand_in_the_status_line_only() {
    let peer = Peer::with(Setup { release: (8, 2), ..Setup::default() }).await;
    let reply = peer.call("GET", "/nodes/pve1/qemu/999/config", &[]).await;
    assert_eq!(reply.reason, "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist");
    assert_eq!(reply.body, json!({ "data": null }));
    assert_eq!(peer.refused("GET", "/cluster/ha/rules", &[]).await.0, 501);
}

#[tokio::test]
async fn edits_at_the_console_change_what_the_api_reads() {
    let peer = Peer::new().await;
    let values = json!({ "type": "in", "action": "DROP", "enable": 1 });
    let rule = json!({ "edit": "rule_add", "scope": "cluster", "pos": 0, "values": values });
    peer.lab.edit(&rule).unwrap();
    assert_eq!(peer.get("/cluster/firewall/rules").await[0]["action"], "DROP");
    assert!(peer.lab.edit(&json!({ "edit": "nothing" })).is_err());
    assert_eq!(peer.lab.state()["guests"]["101"]["config"]["name"], "web");
}

#[tokio::test]
async fn a_job_of_replication_vanishes_with_its_next_run() {
    let peer = Peer::new().await;
    let form = [("id", "100-0"), ("target", "pve2"), ("type", "local")];
    peer.ok("POST", "/cluster/replication", &form).await;
    assert_eq!(peer.get("/nodes/pve1/replication/100-0/status").await["fail_count"], 0);
    peer.ok("DELETE", "/cluster/replication/100-0", &[]).await;
    assert_eq!(peer.get("/cluster/replication").await[0]["remove_job"], "full");
    peer.lab.advance(Duration::from_secs(5));
    assert_eq!(peer.get("/cluster/replication").await, json!([]));
}

#[tokio::test]
async fn a_resource_that_leaves_ha_leaves_its_rules() {
    let peer = Peer::new().await;
    let form = [("rule", "near"), ("type", "node-affinity"), ("resources", "vm:102"), ("nodes", "pve2")];
    peer.ok("POST", "/cluster/ha/rules", &form).await;
    peer.ok("DELETE", "/cluster/ha/resources/vm:102", &[]).await;
    assert_eq!(peer.get("/cluster/ha/rules").await, json!([]));
    let text = peer.error("POST", "/cluster/ha/rules", &form, "resources").await;
    assert_eq!(text, "cannot use unmanaged resource(s) vm:102.");
}
