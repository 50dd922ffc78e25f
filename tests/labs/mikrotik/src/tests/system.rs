//! The box itself: restarts, updates, packages, certificates and the history.

use super::*;

#[tokio::test]
async fn reboot_answers_first_and_forgets_what_lives_in_memory() {
    let peer = Peer::new().await;
    peer.add("ip/firewall/address-list", json!({ "list": "bad", "address": "203.0.113.9", "timeout": "1d" }))
        .await;
    peer.post("system/identity/set", json!({ "name": "kept" })).await;
    assert_eq!(peer.post("system/reboot", json!({})).await, json!([]));
    peer.lab.advance(Duration::from_secs(2));
    assert!(peer.request("GET", "system/resource").send().await.is_err());
    peer.lab.advance(Duration::from_secs(21));
    assert_eq!(peer.get("system/identity").await["name"], "kept");
    assert!(peer.rows("ip/firewall/address-list?list=bad").await.is_empty());
    let uptime = peer.get("system/resource").await["uptime"].as_str().unwrap().to_owned();
    assert!(uptime.ends_with('s') && uptime.len() <= 3, "{uptime}");
    assert!(peer.rows("system/history").await.is_empty());
}

#[tokio::test]
async fn box_that_is_shut_down_stays_away() {
    let peer = Peer::new().await;
    peer.post("system/shutdown", json!({})).await;
    peer.lab.advance(Duration::from_hours(1));
    assert!(peer.request("GET", "system/resource").send().await.is_err());
}

#[tokio::test]
async fn reset_brings_the_defaults_back() {
    let peer = Peer::new().await;
    peer.post("system/identity/set", json!({ "name": "lost" })).await;
    peer.post("system/reset-configuration", json!({})).await;
    peer.lab.advance(Duration::from_secs(2));
    peer.lab.advance(Duration::from_secs(21));
    assert_eq!(peer.get("system/identity").await["name"], "lab-router");
}

#[tokio::test]
async fn update_restarts_with_the_next_release() {
    let peer = Peer::of_release(Release::V7_16).await;
    assert_eq!(peer.get("system/resource").await["version"], "7.16.2 (stable)");
    let rows = peer.post("system/package/update/install", json!({})).await;
    assert_eq!(rows[2]["status"], "Downloaded, rebooting...");
    peer.lab.advance(Duration::from_secs(2));
    peer.lab.advance(Duration::from_secs(21));
    assert_eq!(peer.get("system/resource").await["version"], "7.22.3 (stable)");
    peer.post("system/package/downgrade", json!({})).await;
    peer.lab.advance(Duration::from_secs(2));
    peer.lab.advance(Duration::from_secs(21));
    assert_eq!(peer.get("system/resource").await["version"], "7.16.2 (stable)");
}

#[tokio::test]
async fn switched_package_waits_for_a_restart() {
    let peer = Peer::new().await;
    let package = peer.row("system/package", "name", "user-manager").await;
    peer.post("system/package/disable", json!({ "numbers": id(&package) })).await;
    assert_eq!(
        peer.row("system/package", "name", "user-manager").await["scheduled"],
        "scheduled for disable"
    );
    assert!(!peer.rows("user-manager/user").await.is_empty());
    peer.post("system/package/apply-changes", json!({})).await;
    peer.lab.advance(Duration::from_secs(2));
    peer.lab.advance(Duration::from_secs(21));
    let (status, body) = told(peer.request("GET", "user-manager/user").send().await.unwrap()).await;
    assert_eq!((status, &body["detail"]), (400, &json!("no such command or directory (user-manager)")));
}

#[tokio::test]
async fn undo_takes_back_the_last_action_and_redo_repeats_it() {
    let peer = Peer::new().await;
    let row = peer.add("ip/firewall/address-list", json!({ "list": "u", "address": "10.0.0.1" })).await;
    peer.delete("ip/firewall/address-list", id(&row)).await;
    let history = peer.rows("system/history").await;
    assert_eq!((&history[0]["action"], &history[0]["by"]), (&json!("address-list removed"), &json!("admin")));
    assert_eq!(peer.post("undo", json!({})).await, json!([]));
    assert_eq!(peer.rows("ip/firewall/address-list?list=u").await.len(), 1);
    peer.post("redo", json!({})).await;
    assert!(peer.rows("ip/firewall/address-list?list=u").await.is_empty());
}

#[tokio::test]
async fn certificate_is_usable_once_it_is_signed() {
    let peer = Peer::new().await;
    let ca = peer
        .add(
            "certificate",
            json!({ "name": "ca", "common-name": "Lab CA", "key-usage": "key-cert-sign,crl-sign" }),
        )
        .await;
    assert!(ca.get("fingerprint").is_none());
    let rows = peer.post("certificate/sign", json!({ ".id": id(&ca) })).await;
    assert_eq!(rows[0]["progress"], "done");
    let signed = peer.row("certificate", "name", "ca").await;
    assert_eq!((signed["fingerprint"].as_str().unwrap().len(), &signed["private-key"]), (64, &json!("true")));
    let server = peer
        .add("certificate", json!({ "name": "web", "common-name": "router.lan", "key-usage": "tls-server" }))
        .await;
    peer.post("certificate/sign", json!({ "number": "web", "ca": "ca" })).await;
    assert_eq!(peer.row("certificate", "name", "web").await["issuer"], "CN=Lab CA");
    let fixed = json!({ ".id": id(&server), "common-name": "other" });
    assert_eq!(
        peer.refused("POST", "certificate/set", fixed).await,
        "failure: can not change signed certificate"
    );
    let service = peer.row("ip/service", "name", "www-ssl").await;
    assert_eq!(
        peer.change("ip/service", id(&service), json!({ "certificate": "web" })).await["certificate"],
        "web"
    );
    assert_eq!(
        peer.refused("PATCH", &format!("ip/service/{}", id(&service)), json!({ "certificate": "nope" }))
            .await,
        "input does not match any value of certificate"
    );
    peer.post("certificate/export-certificate", json!({ "numbers": "web", "file-name": "web" })).await;
    let file = peer.row("file", "name", "web.crt").await;
    assert!(file["contents"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE"));
}

#[tokio::test]
async fn large_key_is_made_behind_the_answer() {
    let peer = Peer::new().await;
    let row =
        peer.add("certificate", json!({ "name": "big", "common-name": "big", "key-size": "4096" })).await;
    let rows = peer.post("certificate/sign", json!({ ".id": id(&row) })).await;
    assert_eq!(rows[0]["progress"], "started");
    assert!(peer.row("certificate", "name", "big").await.get("fingerprint").is_none());
    peer.lab.advance(Duration::from_secs(9));
    assert!(peer.row("certificate", "name", "big").await["fingerprint"].is_string());
}

#[tokio::test]
async fn log_takes_lines_by_level() {
    let peer = Peer::new().await;
    for level in ["info", "warning", "error", "debug"] {
        peer.post(&format!("log/{level}"), json!({ "message": format!("of {level}") })).await;
    }
    let rows = peer.rows("log").await;
    let own: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["message"].as_str())
        .filter(|text| text.starts_with("of "))
        .collect();
    assert_eq!(own, ["of info", "of warning", "of error"]);
}

#[tokio::test]
async fn watched_host_is_unknown_for_five_minutes_after_a_start() {
    let peer = Peer::new().await;
    assert_eq!(peer.rows("tool/netwatch").await[0]["status"], "up");
    peer.lab.boot(Duration::from_secs(20));
    peer.lab.advance(Duration::from_secs(21));
    let row = peer.rows("tool/netwatch").await[0].clone();
    assert_eq!(row["status"], "unknown");
    assert!(row[".about"].as_str().unwrap().contains("startup-delay=5m") && row.get("since").is_none());
    peer.lab.advance(Duration::from_mins(5));
    assert_eq!(peer.rows("tool/netwatch").await[0]["status"], "up");
}

#[tokio::test]
async fn virtual_router_lacks_the_hardware() {
    let peer = Peer::of(Settings { is_virtual: true, ..Settings::default() }).await;
    assert_eq!(peer.get("system/resource").await["board-name"], "CHR");
    let (status, body) = told(peer.request("GET", "system/routerboard").send().await.unwrap()).await;
    assert_eq!((status, &body["detail"]), (400, &json!("no such command or directory (routerboard)")));
    assert!(peer.rows("system/health").await.is_empty());
    let board = Peer::new().await;
    assert_eq!(board.get("system/routerboard").await["upgrade-firmware"], "7.22.3");
    assert_eq!(board.rows("system/health").await[0]["type"], "C");
}
