//! Commands that run, and the time that they take.

use std::time::Instant;

use super::*;

#[tokio::test]
async fn monitor_answers_once() {
    let peer = Peer::new().await;
    let rows =
        peer.post("interface/ethernet/monitor", json!({ "numbers": "ether1,ether5", "once": "" })).await;
    assert_eq!((&rows[0]["status"], &rows[0]["rate"]), (&json!("link-ok"), &json!("2.5Gbps")));
    assert_eq!(rows[1], json!({ "name": "ether5", "status": "no-link", "auto-negotiation": "incomplete" }));
    let rows = peer.post("interface/monitor-traffic", json!({ "interface": "ether1", "once": "" })).await;
    assert_eq!(rows[0]["name"], "ether1");
    let rows = peer.post("interface/ethernet/poe/monitor", json!({ "numbers": "ether5", "once": "" })).await;
    assert_eq!(rows[0]["poe-out-status"], "powered-on");
}

#[tokio::test]
async fn command_without_a_bound_is_cut_after_a_minute() {
    let peer = Peer::new().await;
    let began = Instant::now();
    let detail = peer.refused("POST", "interface/ethernet/monitor", json!({ "numbers": "ether1" })).await;
    assert_eq!(detail, "Session closed");
    assert!(began.elapsed() >= Duration::from_millis(590), "{:?}", began.elapsed());
    assert_eq!(peer.refused("POST", "ip/address/listen", json!({})).await, "Session closed");
    let detail = peer.refused("POST", "system/resource/listen", json!({})).await;
    assert_eq!(detail, "unknown parameter follow-only");
}

#[tokio::test]
async fn commands_of_one_user_run_one_after_the_other() {
    let peer = Peer::new().await;
    let began = Instant::now();
    let ping = json!({ "address": "192.168.88.10", "count": "21" });
    let slow = peer.post("ping", ping);
    let quick = async {
        tokio::time::sleep(Duration::from_millis(40)).await;
        peer.get("system/identity").await;
        began.elapsed()
    };
    let (rows, elapsed) = tokio::join!(slow, quick);
    assert_eq!(rows.as_array().unwrap().len(), 21);
    assert!(elapsed >= Duration::from_millis(190), "{elapsed:?}");
}

#[tokio::test]
async fn another_user_does_not_wait() {
    let mut peer = Peer::new().await;
    let endless = peer.request("POST", "interface/ethernet/monitor").json(&json!({ "numbers": "ether1" }));
    let hanging = tokio::spawn(endless.send());
    tokio::time::sleep(Duration::from_millis(50)).await;
    peer.user = Settings::default().reader;
    let began = Instant::now();
    peer.get("system/identity").await;
    assert!(began.elapsed() < Duration::from_millis(400), "{:?}", began.elapsed());
    assert_eq!(hanging.await.unwrap().unwrap().status(), 400);
}

#[tokio::test]
async fn client_that_gives_up_does_not_end_its_command() {
    let peer = Peer::new().await;
    let endless = peer.request("POST", "interface/ethernet/monitor").json(&json!({ "numbers": "ether1" }));
    let given_up = endless.timeout(Duration::from_millis(50)).send().await;
    assert!(given_up.unwrap_err().is_timeout());
    let began = Instant::now();
    peer.get("system/identity").await;
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test]
async fn queued_request_is_cut_too_and_not_executed() {
    let peer = Peer::new().await;
    let monitor = || peer.request("POST", "interface/ethernet/monitor").json(&json!({ "numbers": "ether1" }));
    let first = tokio::spawn(monitor().send());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let second = tokio::spawn(monitor().send());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let detail = peer.refused("POST", "system/identity/set", json!({ "name": "late" })).await;
    assert_eq!(detail, "Session closed");
    assert_eq!(first.await.unwrap().unwrap().status(), 400);
    assert_eq!(second.await.unwrap().unwrap().status(), 400);
    assert_eq!(peer.lab.lock().configured("system/identity")[0]["name"], "lab-router");
}

#[tokio::test]
async fn ping_gives_a_row_for_each_packet() {
    let peer = Peer::new().await;
    let rows = peer.post("ping", json!({ "address": "192.168.88.10", "count": "2" })).await;
    assert_eq!(
        (&rows[1]["seq"], &rows[1]["received"], &rows[1]["packet-loss"]),
        (&json!("1"), &json!("2"), &json!("0"))
    );
    let rows = peer.post("tool/ping", json!({ "address": "192.0.2.9", "count": "1" })).await;
    assert_eq!((&rows[0]["status"], &rows[0]["packet-loss"]), (&json!("timeout"), &json!("100")));
    assert_eq!(peer.refused("POST", "ping", json!({ "count": "1" })).await, "missing =address=");
    assert_eq!(peer.refused("POST", "ping", json!({ "address": "192.168.88.10" })).await, "Session closed");
}

#[tokio::test]
async fn torch_needs_two_seconds_for_a_frame() {
    let peer = Peer::new().await;
    assert_eq!(peer.post("tool/torch", json!({ "interface": "bridge", "duration": "1s" })).await, json!([]));
    let rows = peer.post("tool/torch", json!({ "interface": "bridge", "duration": "2s" })).await;
    assert_eq!(rows.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn check_for_updates_numbers_its_rows_and_the_last_counts() {
    let peer = Peer::new().await;
    assert!(peer.get("system/package/update").await.get("latest-version").is_none());
    let rows = peer.post("system/package/update/check-for-updates", json!({})).await;
    assert_eq!(
        rows[0],
        json!({ ".section": "0", "channel": "stable", "installed-version": "7.22.3", "status": "finding out latest version..." })
    );
    assert_eq!(
        rows[1],
        json!({ ".section": "1", "channel": "stable", "installed-version": "7.22.3", "latest-version": "7.24", "status": "New version is available" })
    );
    assert_eq!(peer.get("system/package/update").await["latest-version"], "7.24");
}
