//! Ceph where a cluster has it, disks of nodes, and route maps.

use super::*;

async fn with_ceph() -> Peer {
    Peer::with(Setup { has_ceph: true, release: (9, 2), ..Setup::default() }).await
}

#[tokio::test]
async fn ceph_is_absent_unless_it_is_set_up() {
    let (status, reason) = Peer::new().await.refused("GET", "/cluster/ceph/status", &[]).await;
    assert_eq!((status, reason.as_str()), (500, "binary not installed: /usr/bin/ceph-mon"));
    assert_eq!(with_ceph().await.get("/cluster/ceph/status").await["health"]["status"], "HEALTH_OK");
}

#[tokio::test]
async fn a_flag_is_set_at_once_and_several_by_a_task() {
    let peer = with_ceph().await;
    peer.ok("PUT", "/cluster/ceph/flags/noout", &[("value", "1")]).await;
    assert_eq!(peer.get("/cluster/ceph/flags/noout").await, 1);
    assert_eq!(peer.run("PUT", "/cluster/ceph/flags", &[("noin", "1"), ("noout", "0")]).await, "OK");
    let flags = peer.get("/cluster/ceph/flags").await;
    let on = flags.as_array().unwrap().iter().filter(|flag| flag["value"] == 1).count();
    assert_eq!((on, peer.get("/cluster/ceph/flags/noin").await), (1, json!(1)));
}

#[tokio::test]
async fn pools_and_daemons_come_and_go_by_tasks() {
    let peer = with_ceph().await;
    assert_eq!(peer.run("POST", "/nodes/pve1/ceph/pool", &[("name", "data"), ("size", "2")]).await, "OK");
    assert_eq!(peer.get("/nodes/pve2/ceph/pool/data/status").await["size"], 2);
    assert_eq!(peer.run("PUT", "/nodes/pve1/ceph/pool/data", &[("size", "3")]).await, "OK");
    assert_eq!(peer.get("/nodes/pve2/ceph/pool/data/status").await["size"], 3);
    assert_eq!(peer.run("DELETE", "/nodes/pve1/ceph/pool/data", &[]).await, "OK");
    let (_, reason) = peer.refused("GET", "/nodes/pve2/ceph/pool/data/status", &[]).await;
    assert_eq!(reason, "pool 'data' does not exist");
    assert_eq!(peer.run("POST", "/nodes/pve2/ceph/mds/pve2", &[]).await, "OK");
    assert_eq!(peer.get("/nodes/pve1/ceph/mds").await.as_array().map(Vec::len), Some(2));
    let (_, reason) = peer.refused("POST", "/nodes/pve2/ceph/mds/pve2", &[]).await;
    assert_eq!(reason, "mds 'pve2' already exists");
}

#[tokio::test]
async fn volume_groups_are_shown_as_a_tree() {
    let peer = Peer::new().await;
    let form = [("name", "data"), ("device", "/dev/sda")];
    assert_eq!(peer.run("POST", "/nodes/pve1/disks/lvm", &form).await, "OK");
    assert_eq!(peer.get("/nodes/pve1/disks/lvm").await["children"][0]["name"], "data");
    assert_eq!(peer.run("DELETE", "/nodes/pve1/disks/lvm/data", &[]).await, "OK");
    assert_eq!(peer.get("/nodes/pve1/disks/lvm").await["children"], json!([]));
}

#[tokio::test]
async fn entries_of_route_maps_are_named_by_map_and_order() {
    let peer = with_ceph().await;
    let entries = "/cluster/sdn/route-maps/entries";
    let form = [("route-map-id", "up"), ("order", "10"), ("action", "permit")];
    peer.ok("POST", entries, &form).await;
    assert_eq!(peer.refused("POST", entries, &form).await.1, "route map entry 'up 10' already exists");
    peer.ok("PUT", &format!("{entries}/up/entry/10"), &[("action", "deny")]).await;
    assert_eq!(peer.get(&format!("{entries}/up/entry/10")).await["action"], "deny");
    assert_eq!(peer.get(&format!("{entries}/up")).await.as_array().map(Vec::len), Some(1));
    peer.ok("DELETE", &format!("{entries}/up/entry/10"), &[]).await;
    assert_eq!(peer.get(entries).await, json!([]));
}
