//! Faults that only this vendor has.

use heddle_lab::Fault;

use super::*;

#[tokio::test]
async fn failing_reload_answers_ok_and_changes_nothing() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("reload_fails", Value::Null).times(1));
    peer.add("firewall/filter/add_rule", rule("not live")).await;
    let answer = peer.post("firewall/filter/apply", json!({})).await;
    assert_eq!(answer["status"].as_str().unwrap().trim(), "OK");
    assert_eq!(peer.pending(), [RULES]);
}

#[tokio::test]
async fn held_lock_fails_a_save_and_not_a_read() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("config_lock_busy", Value::Null).times(1));
    assert!(!peer.rows("firewall/filter/search_rule").await.is_empty());
    assert_eq!(peer.send("firewall/filter/add_rule", &rule("lost")).await.status(), 500);
    peer.add("firewall/filter/add_rule", rule("kept")).await;
}

#[tokio::test]
async fn login_page_and_switched_off_api() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("login_page", Value::Null).times(1));
    let page = peer.request("GET", "core/system/status").send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().starts_with("<!doctype html>"));
    peer.lab.fault(Fault::vendor("api_disabled", Value::Null));
    assert_eq!(peer.request("GET", "core/system/status").send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn dead_rollback_timer_leaves_the_change() {
    let peer = Peer::of_release(Release::V26_1).await;
    peer.lab.fault(Fault::vendor("rollback_dead", Value::Null));
    let revision =
        peer.post("firewall/filter/savepoint", json!({})).await["revision"].as_str().unwrap().to_owned();
    let id = peer.add("firewall/filter/add_rule", rule("remains")).await;
    peer.post(&format!("firewall/filter/apply/{revision}"), json!({})).await;
    peer.lab.advance(Duration::from_mins(2));
    assert_eq!(peer.running(RULES, &id, "description"), "remains");
}
