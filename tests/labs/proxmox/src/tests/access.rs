//! Logins and rights.

use super::*;
use crate::access::TICKET_SECS;

async fn log_in(peer: &Peer, user: &str, password: &str) -> Reply {
    let request = peer.request("POST", "/access/ticket");
    peer.send(request.form(&[("username", user), ("password", password)])).await
}

fn with_ticket(peer: &Peer, method: &str, path: &str, ticket: &Value) -> reqwest::RequestBuilder {
    let ticket = ticket["ticket"].as_str().unwrap().replace('@', "%40");
    peer.request(method, path).header("cookie", format!("PVEAuthCookie={ticket}"))
}

#[tokio::test]
async fn writes_with_a_ticket_need_its_csrf_token() {
    let peer = Peer::new().await;
    let ticket = log_in(&peer, "root@pam", "proxmox").await.body["data"].take();
    assert_eq!(peer.send(with_ticket(&peer, "GET", "/version", &ticket)).await.status, 200);
    let write = || with_ticket(&peer, "POST", "/pools", &ticket).form(&[("poolid", "test")]);
    let refused = peer.send(write()).await;
    assert_eq!((refused.status, refused.reason.as_str()), (401, "Permission denied - invalid csrf token"));
    let token = ticket["CSRFPreventionToken"].as_str().unwrap();
    assert_eq!(peer.send(write().header("CSRFPreventionToken", token)).await.status, 200);
}

#[tokio::test]
async fn ticket_lives_two_hours_and_renews_itself() {
    let peer = Peer::new().await;
    let ticket = log_in(&peer, "root@pam", "proxmox").await.body["data"].take();
    peer.lab.advance(Duration::from_secs(TICKET_SECS - 10));
    let renewed = log_in(&peer, "root@pam", ticket["ticket"].as_str().unwrap()).await.body["data"].take();
    peer.lab.advance(Duration::from_secs(20));
    let refused = peer.send(with_ticket(&peer, "GET", "/version", &ticket)).await;
    assert_eq!((refused.status, refused.reason.as_str()), (401, "permission denied - invalid PVE ticket"));
    assert_eq!(peer.send(with_ticket(&peer, "GET", "/version", &renewed)).await.status, 200);
}

#[tokio::test]
async fn wrong_logins_are_401_with_the_reason_in_the_status_line() {
    let peer = Peer::new().await;
    let refused = log_in(&peer, "root@pam", "wrong").await;
    assert_eq!((refused.status, refused.reason.as_str()), (401, "authentication failure"));
    let refused = peer.send(peer.request("GET", "/version")).await;
    assert_eq!((refused.status, refused.reason.as_str()), (401, "No ticket"));
    let token = peer.request("GET", "/version").header("authorization", "PVEAPIToken=root@pam!heddle=wrong");
    let refused = peer.send(token).await;
    assert_eq!((refused.status, refused.reason.as_str()), (401, "invalid token value!"));
}

#[tokio::test]
async fn auditor_reads_everything_and_writes_nothing() {
    let peer = Peer { token: AUDITOR_TOKEN, ..Peer::new().await };
    assert_eq!(peer.get("/cluster/resources?type=vm").await.as_array().unwrap().len(), 7);
    assert_eq!(peer.get("/nodes/pve1/qemu/100/config").await["name"], "router");
    let (status, reason) = peer.refused("POST", "/nodes/pve1/qemu/100/status/stop", &[]).await;
    assert_eq!((status, reason.as_str()), (403, "Permission check failed (/vms/100, VM.PowerMgmt)"));
    assert_eq!(peer.refused("POST", "/pools", &[("poolid", "test")]).await.0, 403);
}

#[tokio::test]
async fn lists_leave_out_what_the_caller_may_not_see() {
    let peer = Peer::new().await;
    let ticket = log_in(&peer, "operator@pve", "operator").await.body["data"].take();
    let list = peer.send(with_ticket(&peer, "GET", "/nodes/pve1/qemu", &ticket)).await;
    let vmids: Vec<&Value> = list.body["data"].as_array().unwrap().iter().map(|row| &row["vmid"]).collect();
    assert_eq!(vmids, [101]);
}

#[tokio::test]
async fn token_secret_is_shown_once_and_a_separated_token_has_no_rights_of_its_own() {
    let peer = Peer::new().await;
    let made = peer.ok("POST", "/access/users/root@pam/token/new", &[]).await;
    assert_eq!(made["full-tokenid"], "root@pam!new");
    let secret = made["value"].as_str().unwrap();
    assert_eq!(peer.get("/access/users/root@pam/token/new").await["value"], json!(null));
    let read = |path: &str| {
        let header = format!("PVEAPIToken=root@pam!new={secret}");
        peer.request("GET", path).header("authorization", header)
    };
    assert_eq!(peer.send(read("/nodes/pve1/qemu")).await.body["data"], json!([]));
    assert_eq!(peer.send(read("/nodes/pve1/qemu/100/config")).await.status, 403);
    let grant = [("path", "/vms"), ("roles", "PVEVMAdmin"), ("tokens", "root@pam!new")];
    peer.ok("PUT", "/access/acl", &grant).await;
    assert_eq!(peer.send(read("/nodes/pve1/qemu/100/config")).await.status, 200);
}

#[tokio::test]
async fn a_pool_gives_rights_to_its_guests() {
    let peer = Peer::new().await;
    let user = [("userid", "ops@pve"), ("password", "secret-1")];
    peer.ok("POST", "/access/users", &user).await;
    peer.ok(
        "PUT",
        "/access/acl",
        &[("path", "/pool/production"), ("roles", "PVEVMUser"), ("users", "ops@pve")],
    )
    .await;
    let ticket = log_in(&peer, "ops@pve", "secret-1").await.body["data"].take();
    let list = peer.send(with_ticket(&peer, "GET", "/cluster/resources?type=vm", &ticket)).await;
    assert_eq!(list.body["data"].as_array().unwrap().len(), 2);
}
