//! Tasks take time, fail, hang, and get lost.

use heddle_lab::Fault;

use super::*;

const START: &str = "/nodes/pve2/qemu/103/status/start";

#[tokio::test]
async fn a_task_runs_until_its_time_is_over() {
    let peer = Peer::new().await;
    let upid = peer.ok("POST", START, &[]).await;
    let parts: Vec<&str> = upid.as_str().unwrap().split(':').collect();
    assert_eq!(
        (parts.len(), parts[1], parts[5], parts[6], parts[7]),
        (9, "pve2", "qmstart", "103", "root@pam!heddle")
    );
    let status = peer.task_status(&upid).await;
    assert_eq!((&status["status"], &status["exitstatus"]), (&json!("running"), &json!(null)));
    assert_eq!(peer.get("/nodes/pve2/tasks?source=active").await[0]["upid"], upid);
    peer.lab.advance(Duration::from_secs(1));
    assert_eq!(peer.task_status(&upid).await["exitstatus"], "OK");
    let log = peer.get(&format!("/nodes/pve2/tasks/{}/log", upid.as_str().unwrap())).await;
    assert_eq!(log[1], json!({ "n": 2, "t": "TASK OK" }));
    assert_eq!(peer.get("/nodes/pve2/qemu/103/status/current").await["status"], "running");
}

#[tokio::test]
async fn what_a_person_does_is_a_task_that_the_whole_cluster_lists() {
    let peer = Peer::new().await;
    let edit = json!({ "edit": "guest_power", "vmid": 103, "on": true, "task": true });
    let upid = peer.lab.edit(&edit).unwrap()["upid"].clone();
    let begun = peer.get("/cluster/tasks").await[0].clone();
    assert_eq!((&begun["upid"], &begun["type"], &begun["status"]), (&upid, &json!("qmstart"), &json!(null)));
    peer.lab.advance(Duration::from_secs(1));
    let ended = peer.get("/cluster/tasks").await[0].clone();
    assert_eq!((&ended["upid"], &ended["status"]), (&upid, &json!("OK")));
    assert!(ended["endtime"].is_number(), "{ended}");
    assert_eq!(peer.get("/nodes/pve2/qemu/103/status/current").await["status"], "running");
    assert!(peer.lab.edit(&json!({ "edit": "guest_power", "vmid": 9, "task": true })).is_err());
}

#[tokio::test]
async fn a_failed_task_says_why_and_changes_nothing() {
    let peer = Peer::new().await;
    peer.ok("PUT", "/nodes/pve2/qemu/103/config", &[("net0", "virtio,bridge=vmbr9")]).await;
    assert_eq!(peer.run("POST", START, &[]).await, "bridge 'vmbr9' does not exist");
    peer.lab.fault(Fault::vendor("task_fail", json!({ "text": "got no worker upid" })).times(1));
    assert_eq!(peer.run("POST", START, &[]).await, "got no worker upid");
    assert_eq!(peer.get("/nodes/pve2/qemu/103/status/current").await["status"], "stopped");
}

#[tokio::test]
async fn a_task_with_warnings_has_done_its_work() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("task_fail", json!({ "text": "WARNINGS: 1" })).times(1));
    assert_eq!(peer.run("POST", START, &[]).await, "WARNINGS: 1");
    assert_eq!(peer.get("/nodes/pve2/qemu/103/status/current").await["status"], "running");
}

#[tokio::test]
async fn a_shutdown_that_the_guest_ignores_times_out() {
    let peer = Peer::new().await;
    peer.lab.edit(&json!({ "edit": "guest_unresponsive", "vmid": 101, "unresponsive": true })).unwrap();
    let path = "/nodes/pve1/qemu/101/status/shutdown";
    let failed = peer.run("POST", path, &[("timeout", "5")]).await;
    assert_eq!(failed, "VM quit/powerdown failed - got timeout");
    assert_eq!(peer.run("POST", path, &[("timeout", "5"), ("forceStop", "1")]).await, "OK");
    assert_eq!(peer.get("/nodes/pve1/qemu/101/status/current").await["status"], "stopped");
}

#[tokio::test]
async fn a_task_that_hangs_holds_its_lock_until_it_is_aborted() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("task_hang", json!(null)).times(1));
    let upid = peer.ok("POST", "/nodes/pve1/vzdump", &[("vmid", "101"), ("storage", "nas")]).await;
    peer.lab.advance(Duration::from_hours(1));
    assert_eq!(peer.task_status(&upid).await["status"], "running");
    assert_eq!(
        peer.refused("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await.1,
        "VM is locked (backup)"
    );
    peer.ok("DELETE", &format!("/nodes/pve1/tasks/{}", upid.as_str().unwrap()), &[]).await;
    assert_eq!(peer.task_status(&upid).await["exitstatus"], "interrupted by signal");
    assert_eq!(peer.run("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await, "OK");
}

#[tokio::test]
async fn a_restart_of_the_node_loses_its_tasks_and_leaves_the_lock() {
    let peer = Peer::new().await;
    let upid = peer.ok("POST", "/nodes/pve2/vzdump", &[("vmid", "103"), ("storage", "nas")]).await;
    peer.ok("POST", "/nodes/pve2/status", &[("command", "reboot")]).await;
    peer.lab.advance(Duration::from_secs(1));
    assert_eq!(peer.refused("GET", "/nodes/pve2/status", &[]).await.0, 595);
    assert_eq!(peer.get("/cluster/status").await[2]["online"], 0);
    peer.lab.advance(Duration::from_secs(10));
    assert_eq!(peer.task_status(&upid).await["exitstatus"], "unexpected status");
    assert_eq!(peer.get("/nodes/pve2/qemu/103/config").await["lock"], "backup");
    assert_eq!(peer.get("/nodes/pve2/qemu/102/status/current").await["status"], "running");
}

#[tokio::test]
async fn an_unknown_task_is_a_fault_of_its_parameter() {
    let peer = Peer::new().await;
    let path = "/nodes/pve1/tasks/UPID:pve1:00000001:00000001:00000001:qmstart:1:root@pam:/status";
    assert_eq!(peer.error("GET", path, &[], "upid").await, "no such task");
}

#[tokio::test]
async fn a_guest_whose_creation_failed_is_gone() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("task_fail", json!(null)).times(1));
    let failed = peer.run("POST", "/nodes/pve1/qemu", &[("vmid", "300"), ("scsi0", "local-lvm:4")]).await;
    assert_eq!(failed, "command failed with exit code 1");
    peer.ok("GET", "/nodes/pve1/qemu", &[]).await;
    assert_eq!(peer.refused("GET", "/nodes/pve1/qemu/300/config", &[]).await.0, 500);
    let form = [("vmid", "300"), ("scsi0", "nowhere:4")];
    assert_eq!(peer.run("POST", "/nodes/pve1/qemu", &form).await, "storage 'nowhere' does not exist");
    assert_eq!(
        peer.run("POST", "/nodes/pve1/qemu", &[("vmid", "300"), ("scsi0", "local-lvm:4")]).await,
        "OK"
    );
}

#[tokio::test]
async fn the_node_that_answers_is_off_the_network_while_it_restarts() {
    let peer = Peer::new().await;
    peer.ok("POST", "/nodes/pve1/status", &[("command", "reboot")]).await;
    peer.lab.advance(Duration::from_secs(1));
    let request = peer.request("GET", "/version").header("authorization", peer.token);
    assert!(request.send().await.is_err());
    peer.lab.advance(Duration::from_secs(10));
    assert_eq!(peer.get("/nodes/pve1/qemu/100/status/current").await["status"], "running");
}
