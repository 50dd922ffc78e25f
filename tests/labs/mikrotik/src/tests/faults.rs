//! Faults of the vendor, and edits behind the manager's back.

use heddle_lab::Fault;

use super::*;

#[tokio::test]
async fn refusal_may_hide_a_write_that_was_carried_out() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("applied_with_400", json!({})).on("PATCH", "/rest/user/*").times(1));
    let user = peer.row("user", "name", "reader").await;
    let detail = peer.refused("PATCH", &format!("user/{}", id(&user)), json!({ "comment": "done" })).await;
    assert_eq!(detail, "missing or invalid resource identifier");
    assert_eq!(peer.row("user", "name", "reader").await["comment"], "done");
}

#[tokio::test]
async fn cut_may_hide_a_write_that_was_carried_out() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("session_closed", json!({})).on_writes().times(1));
    assert_eq!(
        peer.refused("POST", "system/identity/set", json!({ "name": "done" })).await,
        "Session closed"
    );
    assert_eq!(peer.get("system/identity").await["name"], "done");
}

#[tokio::test]
async fn command_that_takes_long_is_cut() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("command_takes", json!({ "secs": 70 })).on_writes().times(1));
    assert_eq!(
        peer.refused("POST", "system/identity/set", json!({ "name": "done" })).await,
        "Session closed"
    );
    assert_eq!(peer.get("system/identity").await["name"], "done");
}

#[tokio::test]
async fn rest_that_is_off_is_a_page() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("rest_off", json!({})));
    let response = peer.request("GET", "system/identity").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
        (403, "text/html")
    );
}

#[tokio::test]
async fn update_server_may_be_away() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("update_fails", json!({})));
    let rows = peer.post("system/package/update/check-for-updates", json!({})).await;
    assert!(rows[1]["status"].as_str().unwrap().starts_with("ERROR"));
    assert!(peer.get("system/package/update").await.get("latest-version").is_none());
}

#[tokio::test]
async fn person_edits_at_the_console() {
    let peer = Peer::new().await;
    let args = json!({ "list": "hand", "address": "10.0.0.1" });
    let made = peer
        .lab
        .edit(&json!({ "do": "command", "menu": "ip/firewall/address-list", "command": "add", "args": args }))
        .unwrap();
    assert_eq!(peer.row("ip/firewall/address-list", "list", "hand").await[".id"], made["id"]);
    peer.lab.edit(&json!({ "do": "undo" })).unwrap();
    assert!(peer.rows("ip/firewall/address-list?list=hand").await.is_empty());
    peer.lab.edit(&json!({ "do": "script", "source": "/system identity set name=by-hand" })).unwrap();
    assert_eq!(peer.get("system/identity").await["name"], "by-hand");
    peer.lab.edit(&json!({ "do": "lease", "address": "192.168.88.99", "mac": "02:00:00:00:00:99", "hostname": "new", "server": "defconf" })).unwrap();
    assert_eq!(peer.row("ip/dhcp-server/lease", "host-name", "new").await["status"], "bound");
    peer.lab.edit(&json!({ "do": "release", "address": "192.168.88.99" })).unwrap();
    assert!(peer.rows("ip/dhcp-server/lease?host-name=new").await.is_empty());
    assert!(peer.lab.edit(&json!({ "do": "command", "menu": "ip/nothing", "command": "add" })).is_err());
    let values = json!({ "name": "lte1", "dynamic": "true" });
    peer.lab.edit(&json!({ "do": "row", "menu": "interface/lte", "values": values })).unwrap();
    assert_eq!(peer.row("interface", "name", "lte1").await["dynamic"], "true");
}

#[tokio::test]
async fn control_port_tells_the_configuration() {
    let peer = Peer::new().await;
    let url = format!("{}/configuration/ip/firewall/nat", peer.lab.control_url());
    let rows: Vec<Value> = peer.http.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(rows[0]["action"], "masquerade");
    assert_eq!(peer.lab.state()["configuration"]["system/identity"][0]["name"], "lab-router");
    let before = peer.lab.lock().configuration();
    peer.lab.advance(Duration::from_mins(7));
    assert_eq!(peer.lab.lock().configuration(), before, "nothing there moves by itself");
}
