//! Faults of this vendor.

use heddle_lab::Fault;

use super::*;

#[tokio::test]
async fn an_application_that_starts_answers_a_page() {
    let mut peer = Peer::new().await;
    peer.sign_in("admin", "heddle-lab").await;
    peer.lab.fault(Fault::vendor("starting", Value::Null));
    let (status, body) = peer.ask("GET", "~/self", Value::Null).await;
    assert_eq!(status, 200);
    assert!(body.as_str().unwrap().contains("<html>"));
    // The console itself is there before.
    assert_eq!(peer.log_in("admin", "heddle-lab").await.status(), 200);
}

#[tokio::test]
async fn logins_fail_in_the_ways_of_the_vendor() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("login_empty", Value::Null).times(1));
    let empty = peer.log_in("admin", "heddle-lab").await;
    assert!(empty.status() == 200 && empty.headers().get("set-cookie").is_none());
    peer.lab.fault(Fault::vendor("login_without_csrf", Value::Null).times(1));
    let bare = peer.log_in("admin", "heddle-lab").await;
    assert!(bare.headers().get("set-cookie").is_some() && bare.headers().get("x-csrf-token").is_none());
    peer.lab.fault(Fault::vendor("login_limited", Value::Null).times(1));
    assert_eq!(peer.log_in("admin", "heddle-lab").await.status(), 429);
}

#[tokio::test]
async fn a_dropped_write_answers_well() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("dropped_write", Value::Null).times(1));
    peer.add("usergroup", json!({ "name": "never" })).await;
    assert!(peer.rows("~/rest/usergroup").await.iter().all(|row| row["name"] != "never"));
}

#[tokio::test]
async fn a_write_is_stored_although_it_failed() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("stored_with_error", Value::Null).times(1));
    assert_eq!(peer.ask("POST", "~/rest/usergroup", json!({ "name": "there" })).await.0, 500);
    peer.row("~/rest/usergroup", "name", "there").await;
}

#[tokio::test]
async fn a_busy_device_is_written_later() {
    let peer = Peer::new().await;
    let core = peer.device(CORE).await;
    peer.lab.fault(Fault::vendor("device_busy", Value::Null).times(1));
    let path = format!("~/rest/device/{}", core["_id"].as_str().unwrap());
    assert_eq!(peer.refused("PUT", &path, json!({ "name": "c" })).await, "api.err.DeviceBusy");
    peer.change("device", &core["_id"], json!({ "name": "c" })).await;
    peer.lab.fault(Fault::vendor("stale_answer", Value::Null).times(1));
    assert_eq!(peer.change("device", &core["_id"], json!({ "name": "d" })).await["name"], "c");
    assert_eq!(peer.device(CORE).await["name"], "d");
}

#[tokio::test]
async fn adoptions_and_upgrades_fail() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("adopt_fails", Value::Null).times(1));
    peer.command("devmgr", json!({ "cmd": "adopt", "mac": "02:00:5e:00:01:21" })).await;
    peer.steps(3);
    assert_eq!(peer.device("02:00:5e:00:01:21").await["state"], 10);
    peer.lab.fault(Fault::vendor("upgrade_fails", Value::Null).times(1));
    peer.command("devmgr", json!({ "cmd": "upgrade", "mac": "02:00:5e:00:01:03" })).await;
    peer.steps(12);
    let read = peer.device("02:00:5e:00:01:03").await;
    assert_eq!((read["state"].as_i64(), read["version"].as_str()), (Some(1), Some("7.2.123.16565")));
}

#[tokio::test]
async fn a_refusal_of_the_skeleton_has_the_form_of_the_interface() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::rate_limit(3).times(1));
    let limited = peer.request("GET", "/integration/v1/info").send().await.unwrap();
    assert_eq!((limited.status().as_u16(), limited.headers()["retry-after"].to_str().unwrap()), (429, "3"));
    peer.lab.fault(Fault::vendor("csrf_refused", Value::Null).times(1));
    assert_eq!(peer.ask("POST", "~/rest/usergroup", json!({ "name": "x" })).await.0, 403);
    peer.lab.fault(Fault::vendor("session_ended", Value::Null).times(1));
    assert_eq!(peer.refused("GET", "~/self", Value::Null).await, "api.err.LoginRequired");
}

#[tokio::test]
async fn routes_can_be_missing() {
    let peer = Peer::new().await;
    peer.lab
        .edit(&json!({
            "do": "missing", "routes": ["GET /v2/api/site/default/topology", "GET /api/s/default/stat/*"],
        }))
        .unwrap();
    assert_eq!(peer.ask("GET", "~2/topology", Value::Null).await.0, 404);
    assert_eq!(peer.ask("GET", "~/stat/health", Value::Null).await.0, 404);
    assert_eq!(peer.ask("GET", "~/rest/networkconf", Value::Null).await.0, 200);
}
