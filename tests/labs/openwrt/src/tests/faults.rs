//! Over HTTP: the port, TLS, faults and the control port.

use std::sync::Once;

use super::*;
use crate::{Change, Effect, Fault, Router};

/// A client of a running router, logged in as root.
struct Peer {
    router: Router,
    http: reqwest::Client,
    sid: String,
}

#[expect(clippy::disallowed_methods, reason = "a test's client: there is no address to guard")]
fn http() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    reqwest::Client::builder()
        .timeout(Duration::from_secs(3))
        .tls_danger_accept_invalid_certs(true)
        .build()
        .unwrap()
}

impl Peer {
    async fn new() -> Self {
        let builder =
            Router::builder().boot_time(Duration::from_millis(150)).reload_delay(Duration::from_millis(20));
        Self::of(builder.start().await).await
    }

    async fn of(router: Router) -> Self {
        let mut peer = Self { router, http: http(), sid: NULL_SESSION.to_owned() };
        let out =
            peer.call("session.login", json!({ "username": "root", "password": "openwrt" })).await.unwrap();
        peer.sid = out[1]["ubus_rpc_session"].as_str().unwrap().to_owned();
        peer
    }

    async fn text(&self, name: &str, args: Value) -> Option<String> {
        let (object, method) = name.rsplit_once('.').unwrap();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "call", "params": [self.sid, object, method, args] });
        let response =
            self.http.post(format!("{}/ubus", self.router.url())).body(body.to_string()).send().await.ok()?;
        assert_eq!(response.status(), 200);
        response.text().await.ok()
    }

    async fn call(&self, name: &str, args: Value) -> Option<Value> {
        serde_json::from_str::<Value>(&self.text(name, args).await?).ok()?.get("result").cloned()
    }

    async fn confirm(&self) -> Option<Value> {
        self.call("uci.confirm", json!({})).await
    }

    async fn stage_and_apply(&self) -> Option<Value> {
        self.call("uci.set", harmless()).await.unwrap();
        self.call("uci.apply", json!({ "rollback": true, "timeout": 1 })).await
    }
}

#[tokio::test]
async fn only_post_is_served() {
    let peer = Peer::new().await;
    let url = format!("{}/ubus", peer.router.url());
    assert_eq!(peer.http.put(&url).body("{}").send().await.unwrap().status(), 400);
    assert_eq!(peer.http.get(&url).send().await.unwrap().status(), 404);
    assert_eq!(peer.http.post(&url).body("x".repeat(70_000)).send().await.unwrap().status(), 200);
    assert_eq!(peer.confirm().await, Some(json!([5])));
}

#[tokio::test]
async fn cut_path_gives_no_answer_and_comes_back() {
    let peer = Peer::new().await;
    peer.router.fault(Fault::Cut { for_ms: Some(150) });
    assert_eq!(peer.confirm().await, None);
    tokio::time::sleep(Duration::from_millis(160)).await;
    assert_eq!(peer.confirm().await, Some(json!([5])));
}

#[tokio::test]
async fn hung_router_never_answers_and_executes_nothing() {
    let peer = Peer::new().await;
    peer.router.forget_calls();
    peer.router.fault(Fault::Hang { for_ms: None });
    let waited = tokio::time::timeout(Duration::from_millis(200), peer.call("uci.set", harmless())).await;
    assert!(waited.is_err());
    peer.router.clear_faults();
    assert_eq!(peer.confirm().await, Some(json!([5])));
    assert!(peer.router.write_calls().iter().all(|call| call.method == "confirm"));
}

#[tokio::test]
async fn apply_can_lose_its_answer_and_still_roll_back() {
    let peer = Peer::new().await;
    let before = peer.router.fingerprint();
    peer.router.fault(Fault::AfterCall { call: "uci.apply".into(), then: Effect::Cut { for_ms: Some(200) } });
    assert_eq!(peer.stage_and_apply().await, None);
    assert_eq!(peer.router.option("network", "wan", "metric"), Some(json!("7")));
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(peer.router.fingerprint(), before);
    assert_eq!(peer.confirm().await, Some(json!([5])));
}

#[tokio::test]
async fn router_that_dies_between_write_and_confirm_keeps_the_change() {
    let peer = Peer::new().await;
    peer.router.fault(Fault::AfterCall { call: "uci.apply".into(), then: Effect::Reboot });
    assert_eq!(peer.stage_and_apply().await, None);
    assert_eq!(peer.confirm().await, None);
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert_eq!(peer.router.option("network", "wan", "metric"), Some(json!("7")));
    assert_eq!(peer.router.counters().reboots, 1);
}

#[tokio::test]
async fn nth_write_can_cut_the_path() {
    let peer = Peer::new().await;
    peer.router.fault(Fault::AfterWrites { writes: 2, then: Effect::DropAnswer });
    assert_eq!(peer.call("uci.set", harmless()).await, Some(json!([0])));
    assert_eq!(peer.call("uci.revert", json!({ "config": "network" })).await, None);
    assert_eq!(peer.call("uci.revert", json!({ "config": "network" })).await, Some(json!([0])));
}

#[tokio::test]
async fn answer_hangs_with_the_router() {
    let peer = Peer::new().await;
    peer.router.fault(Fault::AfterCall { call: "uci.set".into(), then: Effect::Hang { for_ms: Some(150) } });
    let began = Instant::now();
    assert_eq!(peer.call("uci.set", harmless()).await, None);
    assert!(began.elapsed() >= Duration::from_millis(150));
    assert_eq!(peer.router.staged_in(&peer.sid), 1);
    assert_eq!(peer.confirm().await, Some(json!([5])));
}

#[tokio::test]
async fn answers_can_be_html_cut_short_or_late() {
    let peer = Peer::new().await;
    peer.router.fault(Fault::Html { times: Some(1) });
    assert!(peer.text("uci.confirm", json!({})).await.unwrap().starts_with("<!DOCTYPE html>"));
    peer.router.fault(Fault::Truncate { times: Some(1) });
    assert!(serde_json::from_str::<Value>(&peer.text("system.board", json!({})).await.unwrap()).is_err());
    peer.router.fault(Fault::Delay { ms: 120 });
    let began = Instant::now();
    assert_eq!(peer.confirm().await, Some(json!([5])));
    assert!(began.elapsed() >= Duration::from_millis(120));
}

#[tokio::test]
async fn lost_address_is_lost_on_the_wire() {
    let peer = Peer::new().await;
    let lan = json!({ "config": "network", "section": "lan", "values": { "ipaddr": "10.0.0.1" } });
    peer.call("uci.set", lan).await.unwrap();
    assert_eq!(peer.call("uci.apply", json!({ "rollback": true, "timeout": 1 })).await, Some(json!([0])));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(peer.confirm().await, None);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(peer.confirm().await, Some(json!([5])));
}

#[tokio::test]
async fn expired_sessions_are_denied() {
    let peer = Peer::new().await;
    peer.router.expire_sessions();
    assert!(peer.text("uci.confirm", json!({})).await.unwrap().contains("-32002"));
}

#[tokio::test]
async fn tls_serves_the_certificate_it_names() {
    let peer = Peer::of(Router::builder().tls().start().await).await;
    assert!(peer.router.url().starts_with("https://"));
    assert_eq!(peer.router.certificate_sha256().unwrap().len(), 64);
    assert_eq!(peer.confirm().await, Some(json!([5])));
}

#[tokio::test]
async fn control_port_takes_the_same_orders() {
    let peer = Peer::new().await;
    let at = |path: &str| format!("{}{path}", peer.router.control_url());
    let before = peer.http.get(at("/fingerprint")).send().await.unwrap().text().await.unwrap();
    assert_eq!(before, peer.router.fingerprint());
    let edit =
        json!({ "config": "network", "changes": [["set", "wan", "metric", "3"], ["add", "", "route"]] });
    assert_eq!(peer.http.post(at("/edit")).json(&edit).send().await.unwrap().status(), 204);
    assert_eq!(peer.router.option("network", "wan", "metric"), Some(json!("3")));
    assert!(peer.router.edit("network", &[Change::remove("@route[0]"), Change::set("wan", "metric", "4")]));
    assert_eq!(
        peer.http
            .post(at("/edit"))
            .json(&json!({ "config": "network", "changes": ["x"] }))
            .send()
            .await
            .unwrap()
            .status(),
        422
    );
    let fault =
        json!({ "kind": "after_call", "call": "uci.confirm", "then": { "effect": "cut", "for_ms": 50 } });
    assert_eq!(peer.http.post(at("/faults")).json(&fault).send().await.unwrap().status(), 204);
    assert_eq!(peer.http.delete(at("/faults")).send().await.unwrap().status(), 204);
    assert_eq!(peer.confirm().await, Some(json!([5])));
    let calls: Value = peer.http.get(at("/calls")).send().await.unwrap().json().await.unwrap();
    assert_eq!(calls[1]["method"], json!("confirm"));
    let state: Value = peer.http.get(at("/state")).send().await.unwrap().json().await.unwrap();
    assert_eq!(state["configs"]["network"]["wan"]["metric"], json!("4"));
    assert_eq!(peer.http.post(at("/reboot")).send().await.unwrap().status(), 204);
    assert_eq!(peer.confirm().await, None);
}

#[tokio::test]
async fn shutdown_frees_the_port() {
    let peer = Peer::new().await;
    let address = peer.router.url().trim_start_matches("http://").parse().unwrap();
    peer.router.shutdown().await;
    let again = Router::builder().listen(address).start().await;
    assert!(again.url().ends_with(&address.port().to_string()));
}
