//! Guests: configuration, pending changes, locks, copies.

use super::*;

const WEB: &str = "/nodes/pve1/qemu/101";

#[tokio::test]
async fn memory_of_a_running_guest_waits_for_its_restart() {
    let peer = Peer::new().await;
    peer.ok("PUT", &format!("{WEB}/config"), &[("memory", "8192"), ("description", "now")]).await;
    assert_eq!(peer.get(&format!("{WEB}/config?current=1")).await["memory"], "4096");
    assert_eq!(peer.get(&format!("{WEB}/config")).await["memory"], "8192");
    let pending = peer.get(&format!("{WEB}/pending")).await;
    let rows = pending.as_array().unwrap();
    assert!(rows.contains(&json!({ "key": "memory", "value": "4096", "pending": "8192" })), "{pending}");
    assert!(rows.contains(&json!({ "key": "description", "value": "now" })), "{pending}");
    assert_eq!(peer.run("POST", &format!("{WEB}/status/reboot"), &[]).await, "OK");
    assert_eq!(peer.get(&format!("{WEB}/config?current=1")).await["memory"], "8192");
}

#[tokio::test]
async fn revert_drops_what_is_pending() {
    let peer = Peer::new().await;
    peer.ok("PUT", &format!("{WEB}/config"), &[("cores", "8"), ("delete", "agent")]).await;
    peer.ok("PUT", &format!("{WEB}/config"), &[("revert", "cores,agent")]).await;
    let config = peer.get(&format!("{WEB}/config")).await;
    assert_eq!((&config["cores"], &config["agent"]), (&json!(4), &json!("enabled=1,fstrim_cloned_disks=1")));
}

#[tokio::test]
async fn an_old_digest_is_refused() {
    let peer = Peer::new().await;
    let digest = peer.get(&format!("{WEB}/config")).await["digest"].as_str().unwrap().to_owned();
    peer.lab.edit(&json!({ "edit": "guest_config", "vmid": 101, "values": { "tags": "b;a;b" } })).unwrap();
    let form = [("onboot", "0"), ("digest", digest.as_str())];
    let (status, reason) = peer.refused("PUT", &format!("{WEB}/config"), &form).await;
    assert_eq!(status, 500);
    assert_eq!(reason, "detected modified configuration - file changed by other user? Try again.");
    assert_eq!(peer.get(&format!("{WEB}/config")).await["tags"], "a;b");
}

#[tokio::test]
async fn a_network_device_without_an_address_gets_a_new_one() {
    let peer = Peer::new().await;
    peer.ok("PUT", &format!("{WEB}/config"), &[("net1", "virtio,bridge=vmbr0,tag=30")]).await;
    let net = peer.get(&format!("{WEB}/config")).await["net1"].as_str().unwrap().to_owned();
    assert!(net.starts_with("virtio=BC:24:11:") && net.ends_with(",bridge=vmbr0,tag=30"), "{net}");
}

#[tokio::test]
async fn a_removed_disk_is_kept_as_unused_until_it_is_removed_there() {
    let peer = Peer::new().await;
    peer.ok("PUT", &format!("{WEB}/config"), &[("scsi1", "local-lvm:4,discard=on")]).await;
    let config = peer.get(&format!("{WEB}/config")).await;
    assert_eq!(config["scsi1"], "local-lvm:vm-101-disk-1,discard=on,size=4G");
    peer.ok("PUT", &format!("{WEB}/config"), &[("delete", "scsi1")]).await;
    let config = peer.get(&format!("{WEB}/config")).await;
    assert_eq!((&config["scsi1"], &config["unused0"]), (&json!(null), &json!("local-lvm:vm-101-disk-1")));
    peer.ok("PUT", &format!("{WEB}/config"), &[("delete", "unused0")]).await;
    let left = peer.get("/nodes/pve1/storage/local-lvm/content?vmid=101").await;
    assert_eq!(left.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_locked_guest_refuses_writes() {
    let peer = Peer::new().await;
    peer.lab.edit(&json!({ "edit": "guest_lock", "vmid": 101, "lock": "backup" })).unwrap();
    let (status, reason) = peer.refused("POST", &format!("{WEB}/status/stop"), &[]).await;
    assert_eq!((status, reason.as_str()), (500, "VM is locked (backup)"));
    let skipped = [("skiplock", "1")];
    assert_eq!(
        peer.error("POST", &format!("{WEB}/status/stop"), &skipped, "skiplock").await,
        "Only root may use this option."
    );
}

#[tokio::test]
async fn a_running_guest_is_not_destroyed_and_a_protected_one_never() {
    let peer = Peer::new().await;
    let (_, reason) = peer.refused("DELETE", "/nodes/pve1/qemu/100", &[]).await;
    assert_eq!(reason, "VM 100 is running - destroy failed");
    let (_, reason) = peer.refused("DELETE", "/nodes/pve2/qemu/102", &[]).await;
    assert_eq!(reason, "can't remove VM 102 - protection mode enabled");
    assert_eq!(peer.run("DELETE", "/nodes/pve2/qemu/103?purge=1", &[]).await, "OK");
    let (status, reason) = peer.refused("GET", "/nodes/pve2/qemu/103/config", &[]).await;
    assert_eq!(status, 500);
    assert_eq!(reason, "Configuration file 'nodes/pve2/qemu-server/103.conf' does not exist");
}

#[tokio::test]
async fn a_clone_of_a_template_is_linked_and_has_its_own_addresses() {
    let peer = Peer::new().await;
    let clone = "/nodes/pve1/qemu/104/clone";
    let upid = peer.ok("POST", clone, &[("newid", "150"), ("name", "shop")]).await;
    assert_eq!(
        peer.refused("PUT", "/nodes/pve1/qemu/150/config", &[("onboot", "1")]).await.1,
        "VM is locked (clone)"
    );
    peer.lab.advance(Duration::from_secs(10));
    assert_eq!(peer.task_status(&upid).await["exitstatus"], "OK");
    let config = peer.get("/nodes/pve1/qemu/150/config").await;
    assert_eq!(config["scsi0"], "local-lvm:base-104-disk-0/vm-150-disk-0,size=8G");
    assert_ne!(config["net0"], "virtio=BC:24:11:00:05:00,bridge=vmbr0");
    assert_eq!((&config["name"], &config["template"]), (&json!("shop"), &json!(null)));
    let (_, reason) = peer.refused("POST", clone, &[("newid", "150")]).await;
    assert_eq!(reason, "unable to create VM 150 - VM 150 already exists on node 'pve1'");
}

#[tokio::test]
async fn migration_changes_the_node_in_the_path() {
    let peer = Peer::new().await;
    let migrate = format!("{WEB}/migrate");
    let (_, reason) = peer.refused("POST", &migrate, &[("target", "pve2")]).await;
    assert_eq!(reason, "can't migrate running VM without --online");
    let form = [("target", "pve2"), ("online", "1"), ("with-local-disks", "1")];
    assert_eq!(peer.run("POST", &migrate, &form).await, "OK");
    assert_eq!(peer.refused("GET", &format!("{WEB}/config"), &[]).await.0, 500);
    assert_eq!(peer.get("/nodes/pve2/qemu/101/status/current").await["status"], "running");
}

#[tokio::test]
async fn a_container_is_made_from_a_template_with_a_new_volume() {
    let peer = Peer::new().await;
    let form = [
        ("vmid", "210"),
        ("ostemplate", "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"),
        ("hostname", "wiki"),
        ("rootfs", "local-lvm:8"),
        ("net0", "name=eth0,bridge=vmbr0,ip=dhcp"),
        ("password", "secret-1"),
        ("start", "1"),
    ];
    assert_eq!(peer.run("POST", "/nodes/pve1/lxc", &form).await, "OK");
    let config = peer.get("/nodes/pve1/lxc/210/config").await;
    assert_eq!(config["rootfs"], "local-lvm:vm-210-disk-0,size=8G");
    assert_eq!((&config["lock"], &config["password"]), (&json!(null), &json!(null)));
    assert_eq!(peer.get("/nodes/pve1/lxc/210/status/current").await["status"], "running");
}

#[tokio::test]
async fn rollback_brings_the_configuration_of_a_snapshot_back() {
    let peer = Peer::new().await;
    let snapshots = format!("{WEB}/snapshot");
    assert!(
        peer.error("POST", &snapshots, &[("snapname", "current")], "snapname").await.contains("reserved")
    );
    assert_eq!(peer.run("POST", &snapshots, &[("snapname", "before")]).await, "OK");
    peer.ok("PUT", &format!("{WEB}/config"), &[("description", "changed")]).await;
    let list = peer.get(&snapshots).await;
    assert_eq!(
        (&list[0]["name"], &list[1]["name"], &list[1]["parent"]),
        (&json!("before"), &json!("current"), &json!("before"))
    );
    assert_eq!(peer.run("POST", &format!("{snapshots}/before/rollback"), &[]).await, "OK");
    assert_eq!(peer.get(&format!("{WEB}/config")).await["description"], "The shop.");
    assert_eq!(peer.get(&format!("{WEB}/status/current")).await["status"], "stopped");
}

#[tokio::test]
async fn under_ha_the_task_ends_before_the_guest_changes() {
    let peer = Peer::new().await;
    let upid = peer.ok("POST", "/nodes/pve2/qemu/102/status/stop", &[]).await;
    peer.lab.advance(Duration::from_millis(600));
    let status = peer.task_status(&upid).await;
    assert_eq!((&status["type"], &status["exitstatus"]), (&json!("hastop"), &json!("OK")));
    assert_eq!(peer.get("/nodes/pve2/qemu/102/status/current").await["status"], "running");
    peer.lab.advance(Duration::from_secs(2));
    assert_eq!(peer.get("/nodes/pve2/qemu/102/status/current").await["status"], "stopped");
}

#[tokio::test]
async fn the_agent_answers_only_where_it_is_configured_and_runs() {
    let peer = Peer::new().await;
    let addresses = peer.get("/nodes/pve1/qemu/100/agent/network-get-interfaces").await;
    assert_eq!(addresses["result"][1]["hardware-address"], "bc:24:11:00:01:00");
    let (status, reason) = peer.refused("GET", "/nodes/pve2/qemu/102/agent/get-host-name", &[]).await;
    assert_eq!((status, reason.as_str()), (500, "No QEMU guest agent configured"));
}

#[tokio::test]
async fn thousands_of_guests_are_listed_in_one_answer() {
    let peer = Peer::with(Setup { guests: 2000, ..Setup::default() }).await;
    assert_eq!(peer.get("/cluster/resources?type=vm").await.as_array().unwrap().len(), 2007);
    assert_eq!(peer.get("/nodes/pve2/lxc/1003/config").await["hostname"], "ct-1003");
}
