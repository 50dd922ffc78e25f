//! Sessions that are renewed, and whose values change, against a device that keeps what it gave out.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response as Answer};
use chrono::TimeDelta;
use heddle_core::change::{HoleValues, NativeCall, Stage};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::request::Body;
use super::tests::{Bench, PASSWORD, TEAM, bench, manifest, request};
use super::*;

/// How the device answers a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Renewing {
    #[default]
    Ready,
    Refused,
    Garbage,
    Silent,
    Large,
    /// With success and another cookie, and without a token.
    CookieAlone,
}

/// A device with tokens that rotate. It accepts the last token that it gave out.
#[derive(Default)]
struct Device {
    logins: AtomicU32,
    renewals: AtomicU32,
    /// It lets no session begin.
    is_closed: AtomicBool,
    renewing: Mutex<Renewing>,
    token: Mutex<String>,
    /// Seconds that a login says its session lives.
    life: Mutex<Value>,
    /// Names of what was asked for with the CSRF value that came along.
    seen: Mutex<Vec<String>>,
    /// A request to `/hold` has come; it is answered when it may go on.
    has_come: Notify,
    goes_on: Notify,
}

impl Device {
    fn open(&self, kind: &str, number: u32) -> Answer {
        let token = format!("token-{kind}-{number}");
        token.clone_into(&mut self.token.lock().unwrap());
        let life = self.life.lock().unwrap().clone();
        let answer =
            json!({"ok": true, "token": token, "csrf": format!("csrf-{kind}-{number}"), "life": life});
        ([("set-cookie", format!("jar={kind}-{number}"))], axum::Json(answer)).into_response()
    }

    fn renew(&self, headers: &HeaderMap, body: &Value) -> Answer {
        let number = self.renewals.fetch_add(1, Ordering::SeqCst) + 1;
        let current = self.token.lock().unwrap().clone();
        if text(headers, "x-token") != current || body["ticket"] != current.as_str() || body["user"] != "root"
        {
            return StatusCode::FORBIDDEN.into_response();
        }
        match *self.renewing.lock().unwrap() {
            Renewing::Ready => self.open("renewed", number),
            Renewing::Refused => StatusCode::FORBIDDEN.into_response(),
            Renewing::Garbage => "{\"ok\": true, \"token\":".into_response(),
            Renewing::Large => vec![b'a'; 2 << 20].into_response(),
            Renewing::CookieAlone => {
                ([("set-cookie", "jar=other")], axum::Json(json!({"ok": true, "token": ""}))).into_response()
            }
            Renewing::Silent => unreachable!("the handler waits"),
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
}

async fn device(State(device): State<Arc<Device>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Answer {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match uri.path() {
        "/login" if device.is_closed.load(Ordering::SeqCst) => {
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        "/login" if body["p"] == PASSWORD => {
            device.open("opened", device.logins.fetch_add(1, Ordering::SeqCst) + 1)
        }
        "/renew" if *device.renewing.lock().unwrap() == Renewing::Silent => {
            device.renewals.fetch_add(1, Ordering::SeqCst);
            device.has_come.notify_one();
            std::future::pending().await
        }
        "/renew" => device.renew(&headers, &body),
        "/step" => {
            let (basic, app) = (text(&headers, "authorization"), text(&headers, "x-app"));
            device.seen.lock().unwrap().push(format!("/step {basic} {app}"));
            ([("x-mode", "plain; v=1")], axum::Json(json!({"ok": true}))).into_response()
        }
        _ if text(&headers, "x-token") != *device.token.lock().unwrap() => {
            StatusCode::UNAUTHORIZED.into_response()
        }
        path => {
            let csrf = text(&headers, "x-csrf");
            device.seen.lock().unwrap().push(format!("{path} {csrf}"));
            if path == "/hold" {
                device.has_come.notify_one();
                device.goes_on.notified().await;
            }
            let query = uri.query().unwrap_or_default().to_owned();
            let told = json!({"token": text(&headers, "x-token"), "cookie": text(&headers, "cookie"), "csrf": csrf, "next": query});
            if query.is_empty() {
                return axum::Json(told).into_response();
            }
            let size = query.strip_prefix("size=").and_then(|size| size.parse().ok());
            let value = size.map_or(query, |size| "c".repeat(size));
            ([("x-updated-csrf", value)], axum::Json(told)).into_response()
        }
    }
}

struct Lab {
    device: Arc<Device>,
    bench: Bench,
}

async fn lab() -> Lab {
    let device = Arc::new(Device::default());
    let bench = bench(Router::new().fallback(self::device).with_state(Arc::clone(&device))).await;
    Lab { device, bench }
}

/// The session of the fixture, with a renewal after half an hour and a CSRF value that any answer may replace.
fn renewing() -> Manifest {
    let mut manifest = manifest();
    let declared = json!({
        "login": [{
            "request": {"method": "POST", "path": "/login", "effect": "session", "json": {"p": "{{secret.password}}"}},
            "expect": {"json": {"/ok": [true]}},
            "capture": [{"as": "token", "from": {"json": "/token"}}, {"as": "csrf", "from": {"json": "/csrf"}}]
        }],
        "apply": [
            {"to": {"header": "x-token"}, "value": "{{session.token}}"},
            {"to": {"header": "x-csrf"}, "value": "{{session.csrf}}"}
        ],
        "cookie-jar": true,
        "expired": [{"status": [401]}],
        "ttl-s": 3600,
        "ttl-from": {"from": {"json": "/life"}, "unit": "seconds"},
        "renew": {
            "after-s": 1800, "max-age-s": 4000,
            "request": {
                "method": "POST", "path": "/renew", "effect": "session",
                "json": {"user": "{{secret.username}}", "ticket": "{{session.token}}"}
            },
            "expect": {"json": {"/ok": [true]}},
            "capture": [{"as": "token", "from": {"json": "/token"}}, {"as": "csrf", "from": {"json": "/csrf"}}]
        },
        "refresh": [{"as": "csrf", "from": {"header": "X-Updated-CSRF"}}]
    });
    manifest.auth.insert("main".to_owned(), serde_json::from_value(declared).unwrap());
    manifest
}

impl Lab {
    fn call_within(&self, phase: Phase, time: Duration) -> Outbound {
        self.call_of(renewing(), phase, time)
    }

    fn call_of(&self, manifest: Manifest, phase: Phase, time: Duration) -> Outbound {
        let facts = Facts::new(manifest, "ab".to_owned(), Bindings::default());
        Outbound::new(
            Arc::clone(&self.bench.egress),
            Arc::new(facts),
            self.bench.target.clone(),
            phase,
            Instant::now() + time,
            Urgency::Ordinary,
        )
    }

    fn call(&self) -> Outbound {
        self.call_within(Phase::Read, Duration::from_secs(20))
    }

    async fn get(&self, path: &str) -> Response {
        let request = request(Method::GET, path, Body::None);
        self.call().send(request, &Auth::Session("main".to_owned())).await.unwrap()
    }

    fn later(&self, secs: i64) {
        self.bench.clock.advance(TimeDelta::seconds(secs));
    }

    /// Logins and renewals so far.
    fn counts(&self) -> (u32, u32) {
        (self.device.logins.load(Ordering::SeqCst), self.device.renewals.load(Ordering::SeqCst))
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.device.seen.lock().unwrap())
    }
}

fn body(response: Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

#[tokio::test]
async fn an_old_session_is_renewed_and_its_values_replaced() {
    let lab = lab().await;
    lab.get("/a").await;
    lab.later(1_799);
    lab.get("/b").await;
    assert_eq!(lab.counts(), (1, 0));
    lab.later(2);
    let answer = body(lab.get("/c").await);
    assert_eq!(lab.counts(), (1, 1));
    assert_eq!(lab.seen(), ["/a csrf-opened-1", "/b csrf-opened-1", "/c csrf-renewed-1"]);
    assert_eq!(answer, json!({"token": "***", "cookie": "jar=***", "csrf": "***", "next": ""}));
}

#[tokio::test]
async fn a_session_of_its_total_age_is_opened_anew() {
    let lab = lab().await;
    for (secs, expected) in [(0, (1, 0)), (1_900, (1, 1)), (1_900, (1, 2)), (300, (2, 2)), (1_900, (2, 3))] {
        lab.later(secs);
        lab.get("/a").await;
        assert_eq!(lab.counts(), expected, "{secs}");
    }
}

#[tokio::test]
async fn callers_that_come_together_renew_once() {
    let lab = lab().await;
    lab.get("/a").await;
    lab.later(1_801);
    futures::future::join_all((0..6).map(|_| lab.get("/b"))).await;
    assert_eq!(lab.counts(), (1, 1));
}

#[tokio::test]
async fn a_renewal_that_does_not_work_is_followed_by_one_login() {
    for how in [Renewing::Refused, Renewing::Garbage, Renewing::Large, Renewing::CookieAlone] {
        let lab = lab().await;
        lab.get("/a").await;
        lab.later(1_801);
        *lab.device.renewing.lock().unwrap() = how;
        lab.get("/b").await;
        lab.get("/c").await;
        assert_eq!(lab.counts(), (2, 1), "{how:?}");
        let cookies = lab.call().session("main", false).await.unwrap();
        let hidden = cookies.secrets();
        assert!(hidden.iter().all(|secret| secret.expose() != "other"), "{how:?}");
        assert_eq!(lab.seen()[1..], ["/b csrf-opened-2", "/c csrf-opened-2"], "{how:?}");
    }
}

#[tokio::test]
async fn a_good_session_is_used_on_where_it_can_be_neither_renewed_nor_opened_anew() {
    let lab = lab().await;
    lab.get("/a").await;
    lab.later(1_801);
    *lab.device.renewing.lock().unwrap() = Renewing::Refused;
    lab.device.is_closed.store(true, Ordering::SeqCst);
    lab.get("/b").await;
    lab.later(29);
    lab.get("/c").await;
    assert_eq!(lab.counts(), (1, 1), "it is not tried again at once");
    lab.later(2);
    *lab.device.renewing.lock().unwrap() = Renewing::Ready;
    lab.get("/d").await;
    assert_eq!(lab.counts(), (1, 2));
    assert_eq!(lab.seen(), ["/a csrf-opened-1", "/b csrf-opened-1", "/c csrf-opened-1", "/d csrf-renewed-2"]);
}

#[tokio::test]
async fn an_answer_to_a_request_from_before_the_renewal_counts() {
    let lab = lab().await;
    lab.get("/a").await;
    let held = lab.get("/hold?csrf-of-the-held");
    let other = async {
        lab.device.has_come.notified().await;
        lab.later(1_801);
        lab.get("/b").await;
        lab.device.goes_on.notify_one();
    };
    let _ = tokio::join!(held, other);
    lab.get("/c").await;
    assert_eq!(lab.counts(), (1, 1));
    assert_eq!(
        lab.seen(),
        ["/a csrf-opened-1", "/hold csrf-opened-1", "/b csrf-renewed-1", "/c csrf-of-the-held"]
    );
}

#[tokio::test]
async fn a_renewal_without_an_end_leaves_time_for_the_login() {
    let lab = lab().await;
    lab.get("/a").await;
    lab.later(1_801);
    *lab.device.renewing.lock().unwrap() = Renewing::Silent;
    let call = lab.call_within(Phase::Read, Duration::from_secs(3));
    let request = request(Method::GET, "/b", Body::None);
    call.send(request, &Auth::Session("main".to_owned())).await.unwrap();
    assert_eq!(lab.counts(), (2, 1));
}

#[tokio::test]
async fn a_renewal_whose_caller_goes_leaves_the_session_as_it_was() {
    let lab = lab().await;
    lab.get("/a").await;
    lab.later(1_801);
    *lab.device.renewing.lock().unwrap() = Renewing::Silent;
    tokio::select! {
        _ = lab.get("/b") => panic!("the renewal does not end"),
        () = lab.device.has_come.notified() => {}
    }
    *lab.device.renewing.lock().unwrap() = Renewing::Ready;
    lab.get("/c").await;
    assert_eq!(lab.counts(), (1, 2));
}

#[tokio::test]
async fn between_the_calls_of_a_stage_nothing_is_renewed() {
    let lab = lab().await;
    let call = NativeCall {
        body: Some(json!({})),
        session: Some("main".to_owned()),
        ..NativeCall::new(Stage::Apply, "POST", "/set")
    };
    let filling = Filling {
        hold_secs: 90,
        secrets: Arc::default(),
        files: Arc::default(),
        holes: Arc::from([]),
        values: HoleValues::new(),
    };
    for (follows, expected) in [(false, (1, 0)), (true, (1, 0)), (false, (1, 1))] {
        let outbound = lab.call_within(Phase::Write, Duration::from_secs(20));
        outbound.write(&call, &filling, follows).await.unwrap();
        assert_eq!(lab.counts(), expected, "follows: {follows}");
        lab.later(1_000);
    }
}

#[tokio::test]
async fn a_session_ends_when_the_device_said_that_it_would() {
    let lab = lab().await;
    *lab.device.life.lock().unwrap() = json!(100);
    lab.get("/a").await;
    lab.later(89);
    lab.get("/b").await;
    assert_eq!(lab.counts(), (1, 0));
    lab.later(2);
    lab.get("/c").await;
    assert_eq!(lab.counts(), (2, 0));
}

#[tokio::test]
async fn a_value_that_an_answer_replaces_is_used_and_never_shown() {
    let lab = lab().await;
    let answer = lab.get("/a?csrf-second").await;
    assert!(answer.headers.iter().all(|(name, _)| name != "x-updated-csrf"));
    assert_eq!(body(answer)["next"], "***");
    let answer = body(lab.get("/b").await);
    assert_eq!(lab.seen(), ["/a csrf-opened-1", "/b csrf-second"]);
    assert_eq!(answer["csrf"], "***");
    // Replaced values of the session stay hidden.
    assert_eq!(body(lab.get("/c?csrf-opened-1").await)["next"], "***");
}

#[tokio::test]
async fn a_request_under_way_keeps_its_value_and_the_later_answer_counts() {
    let lab = lab().await;
    lab.get("/a").await;
    let held = lab.get("/hold?csrf-of-the-held");
    let other = async {
        lab.device.has_come.notified().await;
        lab.get("/b?csrf-of-the-other").await;
        lab.get("/c").await;
        lab.device.goes_on.notify_one();
    };
    let (held, ()) = tokio::join!(held, other);
    assert_eq!(body(held)["csrf"], "***");
    lab.get("/d").await;
    assert_eq!(
        lab.seen(),
        [
            "/a csrf-opened-1",
            "/hold csrf-opened-1",
            "/b csrf-opened-1",
            "/c csrf-of-the-other",
            "/d csrf-of-the-held"
        ]
    );
}

#[tokio::test]
async fn a_value_of_no_sensible_size_replaces_nothing() {
    let lab = lab().await;
    lab.get("/a?size=7").await;
    lab.get("/a?size=9000").await;
    let huge = request(Method::GET, "/a?size=1000000", Body::None);
    let fault = lab.call().send(huge, &Auth::Session("main".to_owned())).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Connection, "{fault}");
    lab.get("/b").await;
    assert_eq!(lab.seen().last().unwrap(), "/b csrf-opened-1");
    assert_eq!(lab.counts(), (1, 0));
}

/// The manifest with these steps before the login.
fn with_steps(steps: Value) -> Manifest {
    let mut manifest = renewing();
    let session = manifest.auth.get_mut("main").unwrap();
    let steps: Vec<heddle_marketplace::manifest::LoginStep> = serde_json::from_value(steps).unwrap();
    session.login.splice(0..0, steps);
    manifest
}

fn step(when: &Value) -> Value {
    json!({
        "when": when,
        "request": {
            "method": "GET", "path": "/step",
            "headers": {"X-App": "{{settings.app}}"},
            "basic": {"username": "{{secret.username}}", "password": "{{secret.password}}"}
        },
        "expect": {"header": {"X-Mode": {"prefix": "plain"}}, "empty": false}
    })
}

#[tokio::test]
async fn a_step_carries_headers_and_basic_and_is_left_out_where_its_condition_fails() {
    let mut lab = lab().await;
    lab.bench.target.settings = json!({"app": "heddle", "mode": "two", "none": null});
    let asks = [
        (json!({"secret": "username"}), true),
        (json!({"secret": "otp"}), false),
        (json!({"setting": "mode"}), true),
        (json!({"setting": "none"}), false),
        (json!({"setting": "mode", "is": ["one", "two"]}), true),
        (json!({"setting": "mode", "is": ["one"]}), false),
        (json!({"setting": "mode", "secret": "otp"}), false),
    ];
    for (when, expected) in asks {
        let lab = Lab { device: Arc::clone(&lab.device), bench: bench_like(&lab.bench) };
        let call = lab.call_of(with_steps(json!([step(&when)])), Phase::Read, Duration::from_secs(20));
        call.session_facts("main").await.unwrap();
        let steps = if expected {
            vec!["/step Basic cm9vdDpjb3JyZWN0IGhvcnNl heddle".to_owned()]
        } else {
            Vec::new()
        };
        assert_eq!(lab.seen(), steps, "{when}");
    }
}

/// The same device, at which no session is open yet.
fn bench_like(bench: &Bench) -> Bench {
    let mut target = bench.target.clone();
    target.controller_id = bench.clock.new_id();
    Bench { egress: Arc::clone(&bench.egress), clock: bench.clock.clone(), target }
}

#[tokio::test]
async fn a_login_of_which_no_step_is_for_the_controller_says_so() {
    let lab = lab().await;
    let mut manifest = renewing();
    let when = serde_json::from_value(json!({"secret": "otp"})).unwrap();
    manifest.auth.get_mut("main").unwrap().login[0].when = Some(when);
    let call = lab.call_of(manifest, Phase::Read, Duration::from_secs(20));
    let fault = call.session_facts("main").await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_deref()),
        (FaultKind::Authentication, Some("credential-incomplete"))
    );
    assert_eq!(lab.counts(), (0, 0));
}

#[tokio::test]
async fn a_login_too_soon_after_another_one_is_not_sent() {
    let lab = lab().await;
    let mut manifest = renewing();
    manifest.auth.get_mut("main").unwrap().login_gap_ms = Some(60_000);
    let call = || lab.call_of(manifest.clone(), Phase::Read, Duration::from_secs(20));
    let get = || request(Method::GET, "/a", Body::None);
    let session = Auth::Session("main".to_owned());
    call().send(get(), &session).await.unwrap();
    "ended".clone_into(&mut lab.device.token.lock().unwrap());
    let fault = call().send(get(), &session).await.unwrap_err();
    assert_eq!((fault.kind, fault.code.as_deref()), (FaultKind::Busy, Some("login-gap")));
    assert!(fault.retry_after_ms.is_some_and(|ms| ms > 0));
    assert_eq!(lab.counts(), (1, 0));
}

#[tokio::test]
async fn only_what_a_shape_calls_a_secret_is_taken_out_of_answers() {
    let lab = lab().await;
    let mut manifest = renewing();
    let apply = json!([{"to": {"header": "x-token"}, "value": "{{session.token}}"}, {"to": {"header": "x-csrf"}, "value": "{{secret.team}}"}]);
    manifest.auth.get_mut("main").unwrap().apply = serde_json::from_value(apply).unwrap();
    for (kind, expected) in [("secret", "***"), ("text", TEAM)] {
        let lab = Lab { device: Arc::clone(&lab.device), bench: bench_like(&lab.bench) };
        let shape = json!({"title": "Web", "fields": {"team": kind}});
        manifest.credentials.insert("web".to_owned(), serde_json::from_value(shape).unwrap());
        let call = lab.call_of(manifest.clone(), Phase::Read, Duration::from_secs(20));
        let request = request(Method::GET, "/a", Body::None);
        let answer = call.send(request, &Auth::Session("main".to_owned())).await.unwrap();
        assert_eq!(body(answer)["csrf"], expected, "{kind}");
    }
}

#[tokio::test]
async fn a_session_names_the_fields_that_the_credential_lacks() {
    let lab = lab().await;
    let mut manifest = renewing();
    let shape = json!({"title": "Open API", "fields": {"client-id": "text", "client-secret": "secret"}});
    manifest.credentials.insert("open".to_owned(), serde_json::from_value(shape).unwrap());
    manifest.auth.get_mut("main").unwrap().credential = Some("open".to_owned());
    let call = lab.call_of(manifest, Phase::Read, Duration::from_secs(20));
    let fault = call.session_facts("main").await.unwrap_err();
    assert_eq!(fault.code.as_deref(), Some("credential-incomplete"));
    assert!(fault.message.contains("Open API (client-id, client-secret)"), "{fault}");
    assert_eq!(lab.counts(), (0, 0));
}
