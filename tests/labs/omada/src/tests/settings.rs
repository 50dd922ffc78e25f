//! Networks, port profiles, reservations, vouchers.

use serde_json::{Value, json};

use super::Peer;

fn network(name: &str, vlan: u64) -> Value {
    json!({"name": name, "purpose": 0, "vlan": vlan, "igmpSnoopEnable": false})
}

const NETWORKS: &str = "v2 site lan-networks";

#[tokio::test]
async fn an_interface_network_needs_its_interface_and_subnet() {
    let peer = Peer::new().await;
    let mut body = network("Lab", 50);
    body["purpose"] = json!(1);
    assert_eq!(peer.code("POST", NETWORKS, body.clone()).await, -33515);
    body["interfaceIds"] = json!(["2_lan1"]);
    assert_eq!(peer.code("POST", NETWORKS, body.clone()).await, -35930);
    body["gatewaySubnet"] = json!("10.4.50.1/24");
    let id = peer.ok("POST", NETWORKS, body).await["id"].clone();
    assert_eq!(peer.named(NETWORKS, "name", "Lab").await.unwrap()["id"], id);
}

#[tokio::test]
async fn a_taken_network_name_and_a_used_network_are_refused() {
    let peer = Peer::new().await;
    assert_eq!(peer.code("POST", NETWORKS, network("Staff", 51)).await, -33506);
    let staff = peer.named(NETWORKS, "name", "Staff").await.unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(peer.code("DELETE", &format!("v1 site lan-networks/{staff}"), Value::Null).await, -33566);
    let id = peer.ok("POST", NETWORKS, network("Free", 52)).await["id"].as_str().unwrap().to_owned();
    peer.ok("DELETE", &format!("v1 site lan-networks/{id}"), Value::Null).await;
}

#[tokio::test]
async fn the_web_surface_has_its_own_words_for_a_network() {
    let peer = Peer::new().await;
    let row = peer.named("web site setting/lan/networks", "name", "Staff").await.unwrap();
    assert_eq!((&row["purpose"], &row["dhcpSettings"]["enable"]), (&json!("interface"), &json!(true)));
    assert_eq!(peer.code("POST", "web site setting/lan/networks", json!({"name": "Lab"})).await, -1600);
}

#[tokio::test]
async fn a_reservation_is_known_by_its_address() {
    let peer = Peer::new().await;
    let staff = peer.named(NETWORKS, "name", "Staff").await.unwrap()["id"].clone();
    let path = "v1 site setting/service/dhcp";
    let mac = "A4-2B-00-00-00-01";
    let body = json!({"netId": staff, "mac": mac, "ip": "10.4.20.77", "status": true});
    peer.ok("POST", path, body.clone()).await;
    assert_eq!(peer.named(path, "mac", mac).await.unwrap()["netName"], "Staff");
    assert_ne!(peer.code("POST", path, body).await, 0);
    peer.ok("DELETE", &format!("{path}/{mac}"), Value::Null).await;
    assert!(peer.named(path, "mac", mac).await.is_none());
    peer.ok("DELETE", &format!("{path}/{mac}"), Value::Null).await;
}

#[tokio::test]
async fn a_voucher_group_makes_its_codes() {
    let peer = Peer::new().await;
    let groups = "v1 site hotspot/voucher-groups";
    let body = json!({
        "name": "lobby", "amount": 5, "codeLength": 8, "codeForm": [0], "limitType": 0, "limitNum": 1,
        "durationType": 0,
        "duration": 60, "timingType": 0, "rateLimit": {"mode": 0}, "trafficLimitEnable": false,
        "applyToAllPortals": true,
    });
    let id = peer.ok("POST", groups, body).await["id"].as_str().unwrap().to_owned();
    let group = peer.get(&format!("{groups}/{id}?page=1&pageSize=3")).await;
    let codes = group["data"].as_array().unwrap();
    assert_eq!((&group["unusedCount"], &group["totalRows"], codes.len()), (&json!(5), &json!(5), 3));
    assert!(codes.iter().all(|row| row["code"].as_str().unwrap().len() == 8));
    peer.ok("DELETE", &format!("v1 site hotspot/vouchers/{}", codes[0]["id"].as_str().unwrap()), Value::Null)
        .await;
    assert_eq!(peer.named(groups, "name", "lobby").await.unwrap()["totalCount"], 4);
}

#[tokio::test]
async fn one_switch_serves_every_kind_of_vpn() {
    let peer = Peer::new().await;
    let servers = "v2 site vpn/client-to-site-vpn-servers";
    peer.lab.lock().store.rows_mut(&peer.site, "vpn.server").push(json!({
        "id": "66a0000000000000000000aa", "name": "roadwarrior", "status": true, "remoteIp": "198.51.100.7",
    }));
    assert_eq!(peer.rows("v1 site setting/vpn/stats/tunnel").await.len(), 1);
    peer.ok("PATCH", "v1 site vpn/66a0000000000000000000aa/status", json!({"status": false})).await;
    assert_eq!(peer.rows(servers).await[0]["status"], false);
    assert_eq!(peer.rows("v1 site setting/vpn/stats/tunnel").await.len(), 0);
}

#[tokio::test]
async fn a_group_is_named_with_its_type_and_stays_while_a_rule_names_it() {
    let peer = Peer::new().await;
    let groups = "v1 site profiles/groups";
    let servers =
        peer.named(groups, "name", "Servers").await.unwrap()["groupId"].as_str().unwrap().to_owned();
    assert_ne!(peer.code("DELETE", &format!("{groups}/0/{servers}"), Value::Null).await, 0);
    let body = json!({"name": "Printers", "type": 0, "ipList": [{"ip": "10.4.20.30", "mask": 32}]});
    let id = peer.ok("POST", groups, body).await["id"].as_str().unwrap().to_owned();
    assert_eq!(peer.get(&format!("{groups}/1")).await, json!([]));
    assert_eq!(peer.code("DELETE", &format!("{groups}/1/{id}"), Value::Null).await, -1001);
    peer.ok("DELETE", &format!("{groups}/0/{id}"), Value::Null).await;
}

#[tokio::test]
async fn an_external_port_is_forwarded_once() {
    let peer = Peer::new().await;
    let forwards = "v1 site nat/port-forwardings";
    let mut body = peer.named(forwards, "name", "web").await.unwrap();
    body.as_object_mut().unwrap().retain(|name, _| name != "id");
    body["name"] = json!("second");
    assert_eq!(peer.code("POST", forwards, body.clone()).await, -34209);
    body["externalPort"] = json!("9443");
    peer.ok("POST", forwards, body).await;
}

#[tokio::test]
async fn a_port_profile_stays_while_a_port_has_it() {
    let peer = Peer::new().await;
    let profiles = "v2 site lan-profiles";
    let id = peer.named(profiles, "name", "Access point").await.unwrap()["id"].as_str().unwrap().to_owned();
    let switch =
        peer.named("v1 site devices", "type", "switch").await.unwrap()["mac"].as_str().unwrap().to_owned();
    let port = format!("v1 site switches/{switch}/ports/2/profile");
    peer.ok("PUT", &port, json!({"profileId": id})).await;
    assert_eq!(peer.code("DELETE", &format!("{profiles}/{id}"), Value::Null).await, -33560);
    let all = peer.named(profiles, "name", "All").await.unwrap()["id"].clone();
    peer.ok("PUT", &port, json!({"profileId": all})).await;
    peer.ok("DELETE", &format!("{profiles}/{id}"), Value::Null).await;
}
