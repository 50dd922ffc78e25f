//! The steps together, against a device that runs in the test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response as Answer};
use heddle_core::Clock;
use heddle_core::change::{HoleValues, NativeCall, Stage};
use heddle_core::fault::FaultKind;
use http::Method;
use serde_json::{Value, json};

use super::held::Held;
use super::request::{Body, Place};
use super::tests::{PASSWORD, TestVault, apart, bench, manifest, request};
use super::*;

/// A device with a login; `alive` is the number of the session it accepts.
#[derive(Default)]
pub(super) struct Device {
    logins: AtomicU32,
    alive: AtomicU32,
    refuse: AtomicU32,
    pub(super) writes: Mutex<Vec<Value>>,
    /// Authorization and key of the requests to `/key`.
    keys: Mutex<Vec<(String, String)>>,
}

async fn device(
    State(device): State<Arc<Device>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let raw = body.clone();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match uri.path() {
        "/login" => {
            if device.refuse.load(Ordering::SeqCst) > 0 || body["p"] != PASSWORD {
                return StatusCode::FORBIDDEN.into_response();
            }
            let number = device.logins.fetch_add(1, Ordering::SeqCst) + 1;
            device.alive.store(number, Ordering::SeqCst);
            let answer = json!({"ok": true, "sid": format!("session-{number}"), "device": "dev-1"});
            ([("set-cookie", "jar=crumb; Path=/")], axum::Json(answer)).into_response()
        }
        "/rpc" => {
            let sid = format!("session-{}", device.alive.load(Ordering::SeqCst));
            if body["params"][0] != sid.as_str() {
                return axum::Json(json!({"error": {"code": -32002}})).into_response();
            }
            if body["params"][2] == "set" {
                device.writes.lock().unwrap().push(body.clone());
            }
            let echo = json!({"psk": "geheim", "sid": sid, "cookie": headers.get("cookie").map(|c| c.to_str().unwrap())});
            ([("set-cookie", "jar=second")], axum::Json(echo)).into_response()
        }
        "/key" => {
            let text = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
            device.keys.lock().unwrap().push((text("authorization"), text("x-key")));
            axum::Json(text("authorization")).into_response()
        }
        "/upload" => {
            let text = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
            let seen = json!({
                "length": text("content-length"), "type": text("content-type"),
                "bytes": raw.len(), "body": String::from_utf8_lossy(&raw),
            });
            device.writes.lock().unwrap().push(seen);
            axum::Json("ok").into_response()
        }
        "/away" => (StatusCode::FOUND, [("location", "http://169.254.169.254/")]).into_response(),
        "/large" => vec![b'a'; 9 << 20].into_response(),
        "/fat" => format!("[{}0]", "{\"a\":0},".repeat(900_000)).into_response(),
        "/plain" => "psk=geheim".into_response(),
        "/page" => axum::response::Html("<p>psk: geheim").into_response(),
        "/list" => json!(vec![7; 20_000]).to_string().into_response(),
        "/echo" => {
            axum::Json(format!("{method} {PASSWORD} {}", uri.query().unwrap_or_default())).into_response()
        }
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(5)).await;
            "late".into_response()
        }
        _ => axum::Json("ok").into_response(),
    }
}

pub(super) struct Lab {
    pub(super) device: Arc<Device>,
    egress: Arc<Egress>,
    clock: Clock,
    target: Target,
}

pub(super) async fn lab() -> Lab {
    let device = Arc::new(Device::default());
    let bench = bench(Router::new().fallback(self::device).with_state(Arc::clone(&device))).await;
    Lab { device, egress: bench.egress, clock: bench.clock, target: bench.target }
}

impl Lab {
    pub(super) fn call(&self, phase: Phase) -> Outbound {
        self.call_of(manifest(), phase)
    }

    fn call_of(&self, manifest: Manifest, phase: Phase) -> Outbound {
        let facts = Facts::new(manifest, "ab".to_owned(), Bindings::default());
        let deadline = Instant::now() + Duration::from_secs(10);
        Outbound::new(
            Arc::clone(&self.egress),
            Arc::new(facts),
            self.target.clone(),
            phase,
            deadline,
            Urgency::Ordinary,
        )
    }
}

fn rpc(verb: &str) -> Value {
    json!({"params": ["", "config", verb]})
}

fn get(path: &str) -> Request {
    request(Method::GET, path, Body::None)
}

fn post(body: Value) -> Request {
    request(Method::POST, "/rpc", Body::Json(body))
}

fn session() -> Auth {
    Auth::Session("main".to_owned())
}

pub(super) fn filling() -> Filling {
    Filling {
        hold_secs: 90,
        secrets: Arc::default(),
        files: Arc::default(),
        holes: Arc::from([]),
        values: HoleValues::new(),
    }
}

pub(super) fn reviewed(verb: &str, session: Option<&str>) -> NativeCall {
    NativeCall {
        body: Some(rpc(verb)),
        session: session.map(str::to_owned),
        ..NativeCall::new(Stage::Apply, "POST", "/rpc")
    }
}

impl Outbound {
    /// Sends a reviewed call without references.
    async fn set(&self, session: Option<&str>, follows: bool) -> Result<Response, Fault> {
        let fill = filling();
        self.write(&reviewed("set", session), &fill, follows).await
    }
}

#[track_caller]
fn code(answer: Result<Response, Fault>) -> String {
    answer.unwrap_err().code.unwrap_or_default()
}

#[tokio::test]
async fn loopback_is_refused_unless_it_was_opened() {
    let mut lab = lab().await;
    assert_eq!(lab.call(Phase::Read).send(get("/"), &Auth::None).await.unwrap().status, 200);
    lab.egress = Arc::new(Egress::new(
        Arc::new(TestVault),
        apart(),
        lab.clock.clone(),
        super::address::Rules::new(Vec::new(), Vec::new()),
    ));
    let call = lab.call(Phase::Read);
    assert_eq!(code(call.send(get("/"), &Auth::None).await), "address");
    assert_eq!(call.ledger().denied, 0);
}

#[tokio::test]
async fn a_redirect_goes_to_the_guest_as_it_is() {
    let lab = lab().await;
    let answer = lab.call(Phase::Read).send(get("/away"), &Auth::None).await.unwrap();
    assert_eq!(answer.status, 302);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_cut_off() {
    let lab = lab().await;
    assert_eq!(code(lab.call(Phase::Read).send(get("/large"), &Auth::None).await), "response-too-large");
}

#[tokio::test]
async fn a_slow_answer_is_a_timeout() {
    let lab = lab().await;
    let slow = Request { timeout: Some(Duration::from_millis(100)), ..get("/slow") };
    let fault = lab.call(Phase::Read).send(slow, &Auth::None).await.unwrap_err();
    assert_eq!((fault.kind, fault.effect), (FaultKind::Timeout, Effect::None));
}

#[tokio::test]
async fn a_credential_that_comes_back_is_masked() {
    let lab = lab().await;
    let auth = Auth::Inject(vec![(Place::Query("key".to_owned()), "password".to_owned())]);
    let answer = lab.call(Phase::Read).send(get("/echo"), &auth).await.unwrap();
    assert_eq!(String::from_utf8(answer.body).unwrap(), "\"GET *** key=***\"");
}

#[tokio::test]
async fn one_login_serves_many_and_its_secrets_stay_here() {
    let lab = lab().await;
    let call = lab.call(Phase::Read);
    let auth = session();
    let many = (0..4).map(|_| call.send(post(rpc("get")), &auth));
    for answer in futures::future::join_all(many).await {
        let answer = answer.unwrap();
        let text = String::from_utf8(answer.body).unwrap();
        assert!(
            text.contains("hdl-secret:") && !text.contains("geheim") && !text.contains("session-1"),
            "{text}"
        );
        assert!(answer.headers.iter().all(|(name, _)| name != "set-cookie"));
    }
    assert_eq!(lab.device.logins.load(Ordering::SeqCst), 1);
    assert_eq!(call.ledger().seen.entries.len(), 1);
    assert_eq!(call.session_facts("main").await.unwrap(), [("device".to_owned(), "dev-1".to_owned())]);
}

#[tokio::test]
async fn an_ended_session_is_renewed_once_and_no_more() {
    let lab = lab().await;
    let call = lab.call(Phase::Read);
    call.send(post(rpc("get")), &session()).await.unwrap();
    lab.device.alive.store(77, Ordering::SeqCst);
    let answer = call.send(post(rpc("get")), &session()).await.unwrap();
    assert!(String::from_utf8(answer.body).unwrap().contains("psk"));
    assert_eq!(lab.device.logins.load(Ordering::SeqCst), 2);
    lab.device.alive.store(78, Ordering::SeqCst);
    let answer = call.send(post(rpc("get")), &session()).await.unwrap();
    assert!(String::from_utf8(answer.body).unwrap().contains("-32002"));
    assert_eq!(lab.device.logins.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_session_that_ends_between_two_writes_is_not_opened_again() {
    let lab = lab().await;
    let first = lab.call(Phase::Write);
    first.set(Some("main"), false).await.unwrap();
    assert_eq!(first.ledger().left, 1);
    lab.device.alive.store(77, Ordering::SeqCst);
    assert_eq!(code(lab.call(Phase::Write).set(Some("main"), true).await), "session-lost");
    assert_eq!(lab.device.writes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_first_write_is_repeated_when_it_was_not_carried_out() {
    let lab = lab().await;
    lab.call(Phase::Write).send(post(rpc("get")), &session()).await.unwrap();
    lab.device.alive.store(77, Ordering::SeqCst);
    lab.call(Phase::Write).set(Some("main"), false).await.unwrap();
    assert_eq!(lab.device.writes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_without_a_login_puts_the_credential_into_each_request() {
    let lab = lab().await;
    let mut manifest = manifest();
    let declared = json!({
        "apply": [
            {"to": {"basic": "{{secret.username}}"}, "value": "{{secret.password}}"},
            {"to": {"header": "x-key"}, "value": "Token {{secret.password}}", "methods": ["PUT"]}
        ],
        "ttl-s": 3600
    });
    manifest.auth.insert("key".to_owned(), serde_json::from_value(declared).unwrap());
    let session = Auth::Session("key".to_owned());
    let answer = lab.call_of(manifest.clone(), Phase::Read).send(get("/key"), &session).await.unwrap();
    let seen = String::from_utf8(answer.body).unwrap();
    assert_eq!(seen, "\"Basic cm9vdDp***\"", "only the user name, which is no secret, reaches the component");
    let call =
        NativeCall { method: "PUT".to_owned(), path: "/key".to_owned(), ..reviewed("set", Some("key")) };
    let fill = filling();
    lab.call_of(manifest, Phase::Write).write(&call, &fill, false).await.unwrap();
    let basic = "Basic cm9vdDpjb3JyZWN0IGhvcnNl".to_owned();
    let key = format!("Token {PASSWORD}");
    assert_eq!(*lab.device.keys.lock().unwrap(), [(basic.clone(), String::new()), (basic, key)]);
    assert_eq!(lab.device.logins.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_component_sends_no_write_in_any_phase() {
    let lab = lab().await;
    for phase in [Phase::Plan, Phase::Write, Phase::Poll] {
        let fault = lab.call(phase).send(post(rpc("set")), &session()).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Denied);
    }
    assert!(lab.device.writes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_plan_is_refused_for_what_could_not_be_sent_or_needs_no_review() {
    let facts = Facts::new(manifest(), "ab".to_owned(), Bindings::default());
    let check = |call: &NativeCall| {
        Outbound::check_planned(&facts, call).map_err(|fault| fault.code.unwrap_or_default())
    };
    let good = reviewed("set", Some("main"));
    assert_eq!(check(&good), Ok(()));
    let with_header =
        |name: &str| NativeCall { headers: vec![(name.to_owned(), "x".to_owned())], ..good.clone() };
    assert_eq!(check(&with_header("prefer")), Ok(()));
    for name in ["authorization", "x-http-method-override", "content-type", "host"] {
        assert_eq!(check(&with_header(name)), Err("header".to_owned()), "{name}");
    }
    assert_eq!(check(&reviewed("get", None)), Err("plan-is-read".to_owned()));
    assert_eq!(check(&reviewed("set", Some("other"))), Err("session".to_owned()));
    let both = NativeCall { form: Some(Vec::new()), ..good.clone() };
    assert_eq!(check(&both), Err("body".to_owned()));
    let elsewhere = NativeCall { path: "//other.example/x".to_owned(), ..good };
    assert_eq!(check(&elsewhere), Err("path".to_owned()));
}

#[tokio::test]
async fn three_refused_logins_suspend_the_credential_for_a_while() {
    let lab = lab().await;
    lab.device.refuse.store(1, Ordering::SeqCst);
    let send = || async { code(lab.call(Phase::Read).send(post(rpc("get")), &session()).await) };
    for _ in 0..3 {
        assert_eq!(send().await, "login-refused");
    }
    assert_eq!(send().await, "credential-suspended");
    lab.device.refuse.store(0, Ordering::SeqCst);
    assert_eq!(send().await, "credential-suspended");
    lab.clock.advance(chrono::TimeDelta::minutes(6));
    assert!(lab.call(Phase::Read).send(post(rpc("get")), &session()).await.is_ok());
}

#[tokio::test]
async fn a_write_to_nobody_is_known_not_to_have_left() {
    let mut lab = lab().await;
    lab.target.url = "http://127.0.0.1:9/".parse().unwrap();
    let call = lab.call(Phase::Write);
    let fault = call.set(None, false).await.unwrap_err();
    assert_eq!((fault.kind, fault.effect), (FaultKind::Connection, Effect::None));
    assert_eq!(call.ledger().left, 0);
}

/// As it was done: the login of a signed package has two more steps, which change the device.
#[tokio::test]
async fn steps_of_a_login_that_may_write_do_not_reach_the_device() {
    let lab = lab().await;
    let mut manifest = manifest();
    let login = &mut manifest.auth.get_mut("main").unwrap().login;
    let mut write = login[0].clone();
    write.request = serde_json::from_value(
        json!({"method": "POST", "path": "/rpc", "json": {"params": ["{{session.sid}}", "config", "set"]}}),
    )
    .unwrap();
    write.expect = serde_json::from_value(json!({"status": [200]})).unwrap();
    write.capture.clear();
    login.extend([write.clone(), write]);
    for phase in [Phase::Probe, Phase::Write] {
        let call = lab.call_of(manifest.clone(), phase);
        assert_eq!(code(call.send(get("/x"), &session()).await), "login-step");
        assert_eq!(call.ledger().denied, 1);
    }
    assert!(lab.device.writes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_logout_that_may_write_does_not_reach_the_device() {
    let lab = lab().await;
    let mut manifest = manifest();
    let request = json!({"method": "POST", "path": "/rpc", "json": {"params": ["", "config", "set"]}});
    manifest.auth.get_mut("main").unwrap().logout = Some(serde_json::from_value(request).unwrap());
    let call = lab.call_of(manifest.clone(), Phase::Read);
    call.send(post(rpc("get")), &session()).await.unwrap();
    call.reset_session("main").await;
    assert!(lab.device.writes.lock().unwrap().is_empty());
    // Declared, it is sent: the session's token is in it.
    manifest.auth.get_mut("main").unwrap().logout.as_mut().unwrap().effect =
        Some(heddle_marketplace::manifest::Effect::Session);
    let call = lab.call_of(manifest, Phase::Read);
    call.send(post(rpc("get")), &session()).await.unwrap();
    call.reset_session("main").await;
    assert_eq!(lab.device.writes.lock().unwrap().len(), 1);
}

/// Some devices end a session only for whoever says the password again.
#[tokio::test]
async fn a_logout_may_name_secrets() {
    let lab = lab().await;
    let mut manifest = manifest();
    let request = json!({
        "method": "POST", "path": "/rpc", "effect": "session",
        "json": {"params": ["", "config", "set", {"sid": "{{session.sid}}", "password": "{{secret.password}}"}]},
    });
    manifest.auth.get_mut("main").unwrap().logout = Some(serde_json::from_value(request).unwrap());
    let call = lab.call_of(manifest, Phase::Read);
    call.send(post(rpc("get")), &session()).await.unwrap();
    call.reset_session("main").await;
    let writes = lab.device.writes.lock().unwrap();
    let said = &writes[0]["params"][3];
    assert_eq!(said["password"], PASSWORD, "{said}");
    assert!(said["sid"].as_str().is_some_and(|sid| !sid.is_empty() && !sid.contains("{{")), "{said}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_searched_for_secrets_does_not_reach_the_guest() {
    let lab = lab().await;
    let call = lab.call(Phase::Read);
    assert_eq!(code(call.send(get("/plain"), &Auth::None).await), "answer-not-json");
    let page = call.send(get("/page"), &Auth::None).await.unwrap();
    assert_eq!((page.status, page.body.as_slice()), (200, b"".as_slice()));
    assert!(
        page.headers.iter().any(|(name, value)| name == "content-type" && value.starts_with(b"text/html"))
    );
}

#[tokio::test]
async fn an_answer_of_very_many_values_is_refused_before_it_is_parsed() {
    let lab = lab().await;
    assert_eq!(code(lab.call(Phase::Read).send(get("/fat"), &Auth::None).await), "answer-too-complex");
}

#[tokio::test]
async fn a_large_answer_is_worked_on_when_it_is_its_turn() {
    let lab = lab().await;
    let turn = lab.egress.apart.turn(lab.target.org_id).await;
    let call = lab.call(Phase::Read);
    assert_eq!(call.send(get("/"), &Auth::None).await.unwrap().status, 200);
    let large = call.send(get("/list"), &Auth::None);
    let mut large = std::pin::pin!(large);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut large).await.is_err());
    drop(turn);
    assert!(large.await.unwrap().body.len() > crate::LIGHT_BYTES);
}

#[tokio::test]
async fn answers_that_are_held_take_the_room_of_their_organization() {
    let lab = lab().await;
    let mut held = Held::default();
    let other = lab.call(Phase::Read);
    other.account.room.take(&mut held, crate::limits::ORG_HELD_BYTES_MAX - 1_024).await.unwrap();
    let call = lab.call(Phase::Read);
    assert_eq!(code(call.send(get("/list"), &Auth::None).await), "overload");
    assert!(call.ledger().overloaded);
    drop(held);
    assert!(call.send(get("/list"), &Auth::None).await.is_ok());
}
