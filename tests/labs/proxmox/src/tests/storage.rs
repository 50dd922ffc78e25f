//! Storages, volumes and backups.

use super::*;

#[tokio::test]
async fn a_backup_is_a_volume_that_restores_to_a_new_guest() {
    let peer = Peer::new().await;
    assert_eq!(peer.run("POST", "/nodes/pve1/vzdump", &[("vmid", "101"), ("storage", "nas")]).await, "OK");
    let list = peer.get("/nodes/pve2/storage/nas/content?content=backup&vmid=101").await;
    assert_eq!(list.as_array().unwrap().len(), 2);
    let archive = list[1]["volid"].as_str().unwrap();
    let form = [("vmid", "160"), ("archive", archive), ("storage", "local-lvm"), ("unique", "1")];
    assert_eq!(peer.run("POST", "/nodes/pve2/qemu", &form).await, "OK");
    let config = peer.get("/nodes/pve2/qemu/160/config").await;
    assert_eq!(
        (&config["name"], &config["scsi0"]),
        (&json!("web"), &json!("local-lvm:vm-160-disk-0,size=32G"))
    );
}

#[tokio::test]
async fn pruning_keeps_the_newest_and_what_is_protected() {
    let peer = Peer::new().await;
    for _ in 0..2 {
        peer.run("POST", "/nodes/pve1/vzdump", &[("vmid", "101"), ("storage", "nas")]).await;
    }
    let list = peer.get("/nodes/pve1/storage/nas/content?content=backup").await;
    let oldest = list[0]["volid"].as_str().unwrap();
    peer.ok("PUT", &format!("/nodes/pve1/storage/nas/content/{oldest}"), &[("protected", "1")]).await;
    let path = "/nodes/pve1/storage/nas/prunebackups?prune-backups=keep-last%3D1";
    let marks: Vec<Value> =
        peer.get(path).await.as_array().unwrap().iter().map(|row| row["mark"].clone()).collect();
    assert_eq!(marks, ["keep", "remove", "protected"]);
    assert_eq!(peer.run("DELETE", path, &[]).await, "OK");
    assert_eq!(peer.get("/nodes/pve1/storage/nas/content?content=backup").await.as_array().unwrap().len(), 2);
    let (_, reason) = peer.refused("DELETE", &format!("/nodes/pve1/storage/nas/content/{oldest}"), &[]).await;
    assert!(reason.starts_with("cannot remove protected volume"), "{reason}");
}

#[tokio::test]
async fn a_definition_keeps_its_type_and_hides_its_password() {
    let peer = Peer::new().await;
    let form = [
        ("storage", "share"),
        ("type", "cifs"),
        ("server", "192.0.2.9"),
        ("share", "data"),
        ("username", "backup"),
        ("password", "secret-1"),
        ("content", "iso"),
    ];
    assert_eq!(peer.ok("POST", "/storage", &form).await, json!({ "storage": "share", "type": "cifs" }));
    let read = peer.get("/storage/share").await;
    assert_eq!(
        (&read["username"], &read["password"], &read["shared"]),
        (&json!("backup"), &json!(null), &json!(1))
    );
    assert_eq!(peer.refused("POST", "/storage", &form).await.1, "storage ID 'share' already defined");
    peer.ok("PUT", "/storage/share", &[("disable", "1")]).await;
    let status = peer.get("/nodes/pve1/storage/share/status").await;
    assert_eq!((&status["active"], &status["total"]), (&json!(0), &json!(null)));
}

#[tokio::test]
async fn an_upload_becomes_a_volume() {
    let peer = Peer::new().await;
    let form = reqwest::multipart::Form::new()
        .text("content", "iso")
        .part("filename", reqwest::multipart::Part::bytes(vec![0; 64]).file_name("tiny.iso"));
    let request =
        peer.request("POST", "/nodes/pve1/storage/local/upload").header("authorization", peer.token);
    let upid = peer.send(request.multipart(form)).await.body["data"].take();
    peer.lab.advance(Duration::from_secs(5));
    assert_eq!(peer.task_status(&upid).await["exitstatus"], "OK");
    assert_eq!(peer.get("/nodes/pve1/storage/local/content/local:iso/tiny.iso").await["format"], "iso");
}

#[tokio::test]
async fn a_job_selects_guests_in_one_way_only() {
    let peer = Peer::new().await;
    let job = "/cluster/backup/backup-nightly";
    peer.ok("PUT", job, &[("vmid", "100"), ("storage", "nas")]).await;
    let read = peer.get(job).await;
    assert_eq!((&read["vmid"], &read["pool"]), (&json!("100"), &json!(null)));
    assert_eq!(peer.get(&format!("{job}/included_volumes")).await["children"][0]["id"], 100);
    peer.ok("POST", "/cluster/backup", &[("starttime", "03:00"), ("all", "1"), ("storage", "nas")]).await;
    assert_eq!(peer.get("/cluster/backup").await[1]["schedule"], "03:00");
}
