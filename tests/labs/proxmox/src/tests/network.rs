//! Pending files of nodes, and pending edits of SDN.

use super::*;

const NETWORK: &str = "/nodes/pve1/network";

#[tokio::test]
async fn interfaces_wait_until_they_are_applied() {
    let peer = Peer::new().await;
    let form = [("iface", "vmbr1"), ("type", "bridge"), ("bridge_ports", "eno2"), ("cidr", "10.30.0.1/24")];
    peer.ok("POST", NETWORK, &form).await;
    let reply = peer.call("GET", NETWORK, &[]).await;
    assert!(reply.body["changes"].as_str().unwrap().contains("+iface vmbr1 inet static"), "{}", reply.body);
    assert!(!peer.lab.lock().cluster.node("pve1").unwrap().network.has("vmbr1"));
    assert_eq!(peer.run("PUT", NETWORK, &[]).await, "OK");
    assert!(peer.lab.lock().cluster.node("pve1").unwrap().network.has("vmbr1"));
    assert_eq!(peer.call("GET", NETWORK, &[]).await.body["changes"], json!(null));
    peer.ok("DELETE", &format!("{NETWORK}/vmbr1"), &[]).await;
    peer.ok("DELETE", NETWORK, &[]).await;
    assert_eq!(peer.get(&format!("{NETWORK}/vmbr1")).await["address"], "10.30.0.1");
}

#[tokio::test]
async fn an_interface_loses_the_address_that_is_not_sent_again() {
    let peer = Peer::new().await;
    let path = format!("{NETWORK}/vmbr0.20");
    peer.ok("PUT", &path, &[("type", "vlan"), ("mtu", "9000")]).await;
    let row = peer.get(&path).await;
    assert_eq!((&row["method"], &row["cidr"], &row["mtu"]), (&json!("manual"), &json!(null), &json!("9000")));
    assert_eq!(
        peer.error("PUT", &format!("{NETWORK}/vmbr9"), &[("type", "vlan")], "iface").await,
        "interface does not exist"
    );
    let form = [("type", "vlan"), ("cidr", "10.20.0.1/24"), ("gateway", "10.20.0.254")];
    assert!(peer.error("PUT", &path, &form, "gateway").await.contains("already exists on interface 'vmbr0'"));
}

#[tokio::test]
async fn networks_of_the_cluster_show_what_is_pending_until_it_is_applied() {
    let peer = Peer::new().await;
    let vnets = "/cluster/sdn/vnets";
    assert_eq!(
        peer.error("POST", vnets, &[("vnet", "guest"), ("zone", "lan")], "tag").await,
        "missing vlan tag"
    );
    peer.ok("POST", vnets, &[("vnet", "guest"), ("zone", "lan"), ("tag", "50")]).await;
    peer.ok("PUT", &format!("{vnets}/servers"), &[("tag", "41")]).await;
    let rows = peer.get(&format!("{vnets}?pending=1")).await;
    assert_eq!((&rows[0]["state"], &rows[0]["pending"]["tag"]), (&json!("new"), &json!(50)));
    assert_eq!((&rows[0]["vnet"], &rows[0]["tag"]), (&json!("guest"), &json!(null)));
    assert_eq!(
        (&rows[1]["state"], &rows[1]["tag"], &rows[1]["pending"]["tag"]),
        (&json!("changed"), &json!(40), &json!(41))
    );
    assert_eq!(peer.run("PUT", "/cluster/sdn", &[]).await, "OK");
    assert_eq!(peer.get(&format!("{vnets}?running=1")).await[1]["tag"], 41);
    assert_eq!(
        peer.refused("DELETE", "/cluster/sdn/zones/lan", &[]).await.1,
        "zone lan is used by vnet guest"
    );
}

#[tokio::test]
async fn rollback_drops_the_edits_of_everybody() {
    let peer = Peer::new().await;
    peer.ok("PUT", "/cluster/sdn/vnets/servers", &[("alias", "Other")]).await;
    peer.ok("POST", "/cluster/sdn/rollback", &[]).await;
    assert_eq!(peer.get("/cluster/sdn/vnets/servers").await["alias"], "Servers");
}

#[tokio::test]
async fn a_lock_keeps_other_editors_out_until_it_is_applied() {
    let peer = Peer::new().await;
    let token = peer.ok("POST", "/cluster/sdn/lock", &[]).await.as_str().unwrap().to_owned();
    let path = "/cluster/sdn/vnets/servers";
    assert_eq!(peer.refused("PUT", path, &[("tag", "42")]).await.0, 500);
    peer.ok("PUT", path, &[("tag", "42"), ("lock-token", &token)]).await;
    peer.ok("PUT", "/cluster/sdn", &[("lock-token", &token)]).await;
    peer.ok("PUT", path, &[("tag", "43")]).await;
    assert_eq!(peer.refused("POST", "/cluster/sdn/lock", &[]).await.1, "configuration has pending changes");
}

#[tokio::test]
async fn a_subnet_is_named_by_zone_and_prefix() {
    let peer = Peer::new().await;
    let path = "/cluster/sdn/vnets/servers/subnets";
    peer.ok("POST", path, &[("subnet", "10.41.0.0/24"), ("type", "subnet"), ("gateway", "10.41.0.1")]).await;
    assert_eq!(peer.get(&format!("{path}/lan-10.41.0.0-24")).await["cidr"], "10.41.0.0/24");
    let rows = peer.get("/cluster/sdn/ipams/pve/status").await;
    let gateways = rows.as_array().unwrap().iter().filter(|row| row["gateway"] == 1).count();
    assert_eq!(gateways, 2);
}
