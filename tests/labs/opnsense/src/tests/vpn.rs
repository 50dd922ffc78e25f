//! VPN: keys, peers, sessions.

use super::*;
use crate::hooks::INSTANCES;

#[tokio::test]
async fn key_pair_is_a_new_one_each_time() {
    let peer = Peer::new().await;
    let first = peer.get("wireguard/server/key_pair").await;
    let second = peer.get("wireguard/server/key_pair").await;
    assert_eq!((first["privkey"].as_str().unwrap().len(), first["pubkey"].as_str().unwrap().len()), (44, 44));
    assert_ne!(first["pubkey"], second["pubkey"]);
}

#[tokio::test]
async fn peer_is_attached_by_servers_and_detached_without() {
    let peer = Peer::new().await;
    let instance = peer.rows("wireguard/server/search_server").await[0]["uuid"].as_str().unwrap().to_owned();
    let keys = peer.get("wireguard/server/key_pair").await;
    let client = json!({ "client": { "name": "phone", "pubkey": keys["pubkey"],
        "tunneladdress": "10.9.0.9/32", "servers": instance } });
    let id = peer.add("wireguard/client/add_client", client).await;
    let peers = |peer: &Peer| peer.lab.lock().stored.value(INSTANCES, &instance, "peers").to_owned();
    assert!(peers(&peer).contains(&id));
    let form = peer.get(&format!("wireguard/client/get_client/{id}")).await;
    assert_eq!(form["client"]["servers"][&instance]["selected"], 1);
    let change = json!({ "client": { "name": "phone2" } });
    peer.post(&format!("wireguard/client/set_client/{id}"), change).await;
    assert!(!peers(&peer).contains(&id));
}

#[tokio::test]
async fn show_lists_the_peers_that_run() {
    let peer = Peer::new().await;
    let shown = peer.get("wireguard/service/show").await;
    let kinds: Vec<&str> =
        shown["rows"].as_array().unwrap().iter().filter_map(|row| row["type"].as_str()).collect();
    assert_eq!(kinds, ["interface", "peer", "peer"]);
    assert!(!shown.to_string().contains("private"));
    peer.post("wireguard/service/stop", json!({})).await;
    assert_eq!(peer.get("wireguard/service/status").await["status"], "stopped");
    assert_eq!(peer.get("wireguard/service/show").await["rows"], json!([]));
    assert_eq!(peer.post("wireguard/service/reconfigure", json!({})).await, json!({ "result": "ok" }));
    assert_eq!(peer.get("wireguard/service/status").await["status"], "running");
}

#[tokio::test]
async fn ipsec_session_goes_down_and_comes_up() {
    let peer = Peer::new().await;
    let session = peer.rows("ipsec/sessions/search_phase1").await.remove(0);
    assert_eq!(session["connected"], true);
    let name = session["name"].as_str().unwrap();
    peer.post(&format!("ipsec/sessions/disconnect/{name}"), json!({})).await;
    assert_eq!(peer.rows("ipsec/sessions/search_phase1").await[0]["connected"], false);
}

#[tokio::test]
async fn certificate_is_signed_by_its_authority_and_read_back() {
    let peer = Peer::new().await;
    let ca = json!({ "ca": { "descr": "lab", "commonname": "lab authority", "country": "NL",
        "action": "internal" } });
    let ca = peer.add("trust/ca/add", ca).await;
    let refid = peer.rows("trust/ca/search").await[0]["refid"].as_str().unwrap().to_owned();
    let cert = json!({ "cert": { "descr": "web", "commonname": "fw1.example.net",
        "altnames_dns": "fw1.example.net",
        "caref": refid, "country": "NL", "action": "internal", "cert_type": "server_cert",
        "lifetime": "90" } });
    let id = peer.add("trust/cert/add", cert).await;
    let row = peer.rows("trust/cert/search").await.remove(0);
    let days = |field: &str| row[field].as_str().unwrap().parse::<u64>().unwrap() / 86_400;
    assert_eq!(days("valid_to") - days("valid_from"), 90);
    let file = peer.post(&format!("trust/cert/generate_file/{id}/crt"), json!({})).await;
    assert!(file["payload"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(peer.lab.lock().stored.value(crate::trust::CAS, &ca, "serial"), "1");
}

#[tokio::test]
async fn copy_of_a_connection_takes_its_parts_along() {
    let peer = Peer::new().await;
    let original =
        peer.rows("ipsec/connections/search_connection").await[0]["uuid"].as_str().unwrap().to_owned();
    let copy = crate::seed::uuid("copy", 1);
    let body =
        json!({ "connection": { "uuid": copy, "org_uuid": original, "description": "second branch" } });
    assert_eq!(peer.post("ipsec/connections/set_connection", body).await, json!({ "result": "saved" }));
    let children = peer.rows("ipsec/connections/search_child").await;
    assert_eq!(children.iter().filter(|child| child["connection"] == copy.as_str()).count(), 1);
}

#[tokio::test]
async fn killed_openvpn_session_is_gone() {
    let peer = Peer::new().await;
    let sessions = peer.rows("openvpn/service/search_sessions").await;
    let client = sessions.iter().find(|row| row["status"] == "connected").unwrap();
    let server = sessions[0]["id"].as_str().unwrap();
    assert!(client["id"].as_str().unwrap().starts_with(&format!("{server}_")));
    let kill = json!({ "server_id": server, "session_id": client["session_id"] });
    assert_eq!(peer.post("openvpn/service/kill_session", kill).await, json!({ "result": "killed" }));
    assert_eq!(peer.rows("openvpn/service/search_sessions").await.len(), 1);
}
