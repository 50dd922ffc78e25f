//! Targets of plugins: what is refused, what reaches a server of the test, and what comes back.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use heddle_core::fault::Effect;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, tls::TlsPolicy};
use heddle_marketplace::plugin::{ActionEffect, HttpTarget};
use http::Method;
use serde_json::{Value, json};

use super::declared::Declared;
use super::request::{Body, Place};
use super::tests::{apart, bench, request};
use super::*;
use crate::api::{Credential, VaultError};
use crate::reach::own_id;
use crate::services::{Emitted, KvEntry, KvOp, KvPage, Of, PluginServices};

const KEY: &str = "the key of one organization";

/// What knows the secrets of plugins.
enum Secrets {
    /// Those of one organization, and one that no manifest declares.
    OfOrg(OrgId),
    /// They cannot be read.
    Sealed,
}

#[async_trait::async_trait]
impl PluginServices for Secrets {
    async fn secrets(&self, org: OrgId, manifest: &Manifest, _: &Value) -> Result<Credential, VaultError> {
        assert_eq!(manifest.id, "acme");
        match self {
            Self::Sealed => return Err(VaultError("sealed".to_owned())),
            Self::OfOrg(known) if org != *known => return Ok(Credential::default()),
            Self::OfOrg(_) => {}
        }
        let field = |name: &str, text: &str| (name.to_owned(), Secret::new(text));
        Ok(Credential {
            fields: vec![field("key", KEY), field("username", "a known user"), field("undeclared", "other")],
        })
    }
    async fn kv_get(&self, _: &Of<'_>, _: &str) -> Result<Option<KvEntry>, Fault> {
        Ok(None)
    }
    async fn kv_apply(&self, _: &Of<'_>, _: Vec<KvOp>) -> Result<bool, Fault> {
        Ok(true)
    }
    async fn kv_list(&self, _: &Of<'_>, _: &str, _: Option<&str>, _: u32) -> Result<KvPage, Fault> {
        Ok(KvPage::default())
    }
    async fn call_operation(&self, _: &Of<'_>, _: ActionEffect, _: &str, _: Value) -> Result<Value, Fault> {
        Ok(Value::Null)
    }
    async fn emit(&self, _: &Of<'_>, _: Vec<Emitted>) -> Result<(), Fault> {
        Ok(())
    }
}

fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "schema": 1, "id": "acme", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "Acme", "publisher": "acme",
        "license": "Apache-2.0", "files": [], "component": "component.wasm",
        "capabilities": {
            "http": [target(json!(true)), { "name": "other", "origin": "https://a.test", "methods": ["GET"], "paths": ["/"] }],
            "secrets": [
                { "name": "key", "target": "api", "places": ["header:X-Key", "bearer", "json:/auth/key", "basic-password"] },
                { "name": "username", "target": "api", "places": ["basic-username", "query:user"] },
                { "name": "missing", "target": "api", "places": ["bearer"] },
            ],
        },
    }))
    .unwrap()
}

fn target(private: Value) -> Value {
    json!({
        "name": "api", "origin": "https://a.test", "methods": ["GET", "HEAD", "POST"],
        "paths": ["/v1/*", "/exact", "/deep/**"], "private": private,
    })
}

type Seen = Arc<Mutex<Vec<(String, HeaderMap, Value)>>>;

struct Lab {
    egress: Arc<Egress>,
    seen: Seen,
    url: url::Url,
    org: OrgId,
    other_org: OrgId,
}

/// Answers with what it was sent.
async fn echo(State(seen): State<Seen>, uri: Uri, headers: HeaderMap, body: Bytes) -> String {
    let parsed = serde_json::from_slice(&body).unwrap_or_default();
    let shown = format!("{uri} {headers:?} {}", String::from_utf8_lossy(&body));
    seen.lock().unwrap().push((uri.to_string(), headers, parsed));
    shown
}

impl Lab {
    async fn start() -> Self {
        let seen = Seen::default();
        let bench = bench(Router::new().fallback(echo).with_state(Arc::clone(&seen))).await;
        let (org, other_org) = (bench.clock.new_id(), bench.clock.new_id());
        Self { egress: bench.egress, seen, url: bench.target.url, org, other_org }
    }

    fn outbound(&self, org: OrgId, effect: ActionEffect, private: bool) -> Outbound {
        let facts = Arc::new(Facts::new(manifest(), "sha".to_owned(), Bindings::default()));
        let id = own_id(org, "acme", Some("api"));
        let peer = Target {
            org_id: org,
            controller_id: id,
            url: self.url.clone(),
            tls: TlsPolicy::default(),
            credential_id: id.0.into(),
            credential_version: 0,
            settings: Value::Null,
            site_ref: None,
        };
        let target: HttpTarget = serde_json::from_value(target(json!(private))).unwrap();
        let services = Arc::new(Secrets::OfOrg(self.org));
        let declared = Declared { target, effect, services, settings: Arc::new(json!({})) };
        let account = self.egress.account(org, false);
        let time = (Phase::Read, Instant::now() + Duration::from_secs(20));
        Outbound::of_plugin(Arc::clone(&self.egress), facts, peer, time, declared, account)
    }

    fn outward(&self) -> Outbound {
        self.outbound(self.org, ActionEffect::Outward, true)
    }

    fn arrived(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn inject(place: Place, name: &str) -> Auth {
    Auth::Inject(vec![(place, name.to_owned())])
}

async fn code(outbound: &Outbound, request: Request, auth: &Auth) -> String {
    outbound.send(request, auth).await.err().and_then(|fault| fault.code).unwrap_or_else(|| "sent".to_owned())
}

#[tokio::test]
async fn methods_and_paths_are_those_that_are_declared() {
    let lab = Lab::start().await;
    let outbound = lab.outward();
    for (method, path, expected) in [
        (Method::GET, "/v1/a", "sent"),
        (Method::HEAD, "/exact?x=/../1", "sent"),
        (Method::POST, "/deep/a/b%2Fc", "sent"),
        (Method::PUT, "/v1/a", "method"),
        (Method::DELETE, "/v1/a", "method"),
        (Method::OPTIONS, "/v1/a", "method"),
        (Method::GET, "/v1", "path"),
        (Method::GET, "/v1/a/b", "path"),
        (Method::GET, "/v1/a%2Fb", "path"),
        (Method::GET, "/exact/", "path"),
        (Method::GET, "/deep", "path"),
        (Method::GET, "/deep/../exact", "path"),
        (Method::GET, "/v1/%2e%2e", "path"),
        (Method::GET, "//a.test/v1/a", "path"),
        (Method::GET, "https://a.test/v1/a", "path"),
    ] {
        let found = code(&outbound, request(method.clone(), path, Body::None), &Auth::None).await;
        assert_eq!(found, expected, "{method} {path}");
    }
    assert_eq!(lab.arrived(), 3);
    // A path may come from data, a method does not.
    let ledger = outbound.ledger();
    assert_eq!((ledger.denied, ledger.denied_for_data), (3, 9));
}

#[tokio::test]
async fn an_action_that_reads_or_stages_sends_get_and_head_without_a_body() {
    let lab = Lab::start().await;
    for effect in [ActionEffect::Read, ActionEffect::Stage] {
        let outbound = lab.outbound(lab.org, effect, true);
        let sent = |method, body| code(&outbound, request(method, "/v1/a", body), &Auth::None);
        assert_eq!(sent(Method::GET, Body::None).await, "sent");
        assert_eq!(sent(Method::HEAD, Body::None).await, "sent");
        assert_eq!(sent(Method::POST, Body::None).await, "read-only");
        assert_eq!(sent(Method::GET, Body::Json(json!({}))).await, "read-only");
    }
    let body = Body::Json(json!({ "a": 1 }));
    assert_eq!(code(&lab.outward(), request(Method::POST, "/v1/a", body), &Auth::None).await, "sent");
}

#[tokio::test]
async fn secrets_go_only_to_their_places_and_do_not_come_back() {
    let lab = Lab::start().await;
    let outbound = lab.outward();
    let header = |name: &str| Place::Header(name.to_owned(), String::new());
    let pair = |user: &str, password: &str| Auth::Basic(user.to_owned(), password.to_owned());
    for (auth, expected) in [
        (inject(header("x-key"), "key"), "sent"),
        (inject(Place::Bearer, "key"), "sent"),
        (inject(Place::Query("user".to_owned()), "username"), "sent"),
        (pair("username", "key"), "sent"),
        (inject(header("x-other"), "key"), "secret-place"),
        (inject(Place::Query("key".to_owned()), "key"), "secret-place"),
        (inject(Place::FormField("key".to_owned()), "key"), "secret-place"),
        (inject(Place::Bearer, "username"), "secret-place"),
        (inject(Place::Bearer, "undeclared"), "secret-place"),
        (pair("key", "username"), "secret-place"),
        (Auth::Session("main".to_owned()), "session"),
        (inject(Place::Bearer, "missing"), "secret-missing"),
    ] {
        let shown = format!("{auth:?}");
        assert_eq!(
            code(&outbound, request(Method::GET, "/v1/a", Body::None), &auth).await,
            expected,
            "{shown}"
        );
    }
    let body = Body::Json(json!({ "auth": {} }));
    let auth = inject(Place::JsonPointer("/auth/key".to_owned()), "key");
    let answer = outbound.send(request(Method::POST, "/v1/a", body), &auth).await.unwrap();
    let answer = String::from_utf8(answer.body).unwrap();
    assert!(answer.contains("***") && !answer.contains(KEY), "{answer}");
    let seen = lab.seen.lock().unwrap();
    assert_eq!(seen.len(), 5);
    assert_eq!(seen[0].1["x-key"], KEY);
    assert_eq!(seen[1].1["authorization"], format!("Bearer {KEY}"));
    assert!(seen[2].0.starts_with("/v1/a?user=a"), "{}", seen[2].0);
    assert_eq!(seen[4].2["auth"]["key"], KEY);
}

#[tokio::test]
async fn the_plugin_does_not_set_headers_of_its_secrets_or_of_the_host() {
    let lab = Lab::start().await;
    for name in ["X-Key", "Authorization", "Host", "X-Forwarded-For", "X-HTTP-Method-Override"] {
        let mut request = request(Method::GET, "/v1/a", Body::None);
        request.headers.push((name.to_owned(), b"1".to_vec()));
        assert_eq!(code(&lab.outward(), request, &Auth::None).await, "header", "{name}");
    }
    assert_eq!(lab.arrived(), 0);
}

#[tokio::test]
async fn an_organization_uses_its_own_secrets_only() {
    let lab = Lab::start().await;
    let other = lab.outbound(lab.other_org, ActionEffect::Outward, true);
    let auth = inject(Place::Bearer, "key");
    assert_eq!(code(&other, request(Method::GET, "/v1/a", Body::None), &auth).await, "secret-missing");
    assert_eq!(lab.arrived(), 0);
}

#[tokio::test]
async fn private_addresses_need_the_manifest_and_the_operator() {
    let lab = Lab::start().await;
    let get = || request(Method::GET, "/v1/a", Body::None);
    // The operator has opened the loopback; the manifest does not ask for private networks.
    let public = lab.outbound(lab.org, ActionEffect::Read, false);
    assert_eq!(code(&public, get(), &Auth::None).await, "address");
    // Where an address leads is not held against the component.
    assert_eq!(public.ledger().denied, 0);
    // The manifest asks for them; the operator has opened nothing, or not to plugins.
    let here = || vec!["127.0.0.0/8".parse().unwrap()];
    for rules in [address::Rules::default(), address::Rules::new(here(), Vec::new())] {
        let vault = Arc::new(super::tests::TestVault);
        let closed = Arc::new(Egress::new(vault, apart(), Clock::default(), rules));
        let outbound =
            Lab { egress: closed, seen: Arc::clone(&lab.seen), url: lab.url.clone(), ..lab }.outward();
        let refused = outbound.send(get(), &Auth::None).await.unwrap_err();
        assert_eq!(refused.code.as_deref(), Some("address"));
        assert!(refused.message.contains("PLUGIN_PRIVATE_NETWORKS"), "{refused}");
    }
    assert_eq!(lab.arrived(), 0);
}

#[tokio::test]
async fn secrets_go_to_few_places_and_to_each_once() {
    let lab = Lab::start().await;
    let to = |places: Vec<Place>| {
        Auth::Inject(places.into_iter().map(|place| (place, "key".to_owned())).collect())
    };
    let header = |name: &str| Place::Header(name.to_owned(), String::new());
    let query = |name: &str| Place::Query(name.to_owned());
    for places in [
        vec![header("X-Key"), header("x-key")],
        vec![Place::Bearer, header("Authorization")],
        vec![query("user"), query("user")],
        vec![Place::JsonPointer("/a~0".to_owned()), Place::JsonPointer("/a~".to_owned())],
        (0..17).map(|n| query(&format!("q{n}"))).collect(),
    ] {
        let auth = to(places);
        let request = request(Method::GET, "/v1/a", Body::None);
        assert_eq!(code(&lab.outward(), request, &auth).await, "place", "{auth:?}");
    }
    let (get, two) = (request(Method::GET, "/v1/a", Body::None), to(vec![Place::Bearer, header("X-Key")]));
    assert_eq!(code(&lab.outward(), get, &two).await, "sent");
}

#[tokio::test]
async fn a_request_has_its_bounds_with_the_secrets_in_it() {
    let lab = Lab::start().await;
    let outbound = lab.outward();
    // Each element of a batch gets the secret: the body without it is small.
    let batch = Body::Json(json!(vec![json!({ "auth": {} }); 50_000]));
    let auth = inject(Place::JsonPointer("/auth/key".to_owned()), "key");
    assert_eq!(code(&outbound, request(Method::POST, "/v1/a", batch), &auth).await, "request-too-large");
    let path = format!("/v1/a?q={}", "a".repeat(path::BYTES_MAX - 20));
    let auth = inject(Place::Query("user".to_owned()), "username");
    assert_eq!(code(&outbound, request(Method::GET, &path, Body::None), &auth).await, "request-too-large");
    let mut full = request(Method::GET, "/v1/a", Body::None);
    full.headers = (0..64).map(|n| (format!("x-{n}"), b"1".to_vec())).collect();
    assert_eq!(code(&outbound, full, &inject(Place::Bearer, "key")).await, "header");
    assert_eq!(lab.arrived(), 0);
}

/// Its secrets can be read so often, and then no more.
struct Failing(std::sync::atomic::AtomicUsize);

#[async_trait::async_trait]
impl Vault for Failing {
    async fn credential(&self, _: OrgId, _: heddle_core::CredentialId) -> Result<Credential, VaultError> {
        use std::sync::atomic::Ordering;
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Ok(Credential { fields: vec![("password".to_owned(), Secret::new(KEY))] }),
            Err(_) => Err(VaultError("sealed".to_owned())),
        }
    }
    fn reference_key(&self, _: heddle_core::ControllerId) -> [u8; 32] {
        [3; 32]
    }
}

#[tokio::test]
async fn an_answer_repeats_no_secret_although_the_credential_cannot_be_read_any_more() {
    let repeats = Router::new().fallback(|| async { format!("you said {KEY}") });
    let bench = bench(repeats).await;
    let rules = address::Rules::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
    let vault = Arc::new(Failing(1.into()));
    let egress = Arc::new(Egress::new(vault, apart(), bench.clock, rules));
    let mut plain = super::tests::manifest();
    plain.secret_fields.clear();
    let facts = Arc::new(Facts::new(plain, "sha".to_owned(), Bindings::default()));
    let deadline = Instant::now() + Duration::from_secs(20);
    let outbound = Outbound::new(egress, facts, bench.target, Phase::Read, deadline, Urgency::Ordinary);
    for auth in [inject(Place::Bearer, "password"), Auth::None] {
        let answer = outbound.send(request(Method::GET, "/x", Body::None), &auth).await.unwrap();
        let answer = String::from_utf8(answer.body).unwrap();
        assert!(answer.contains("***") && !answer.contains(KEY), "{auth:?}: {answer}");
    }
    assert!(
        outbound
            .send(request(Method::GET, "/x", Body::None), &inject(Place::Bearer, "password"))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_plugin_sends_nothing_while_its_secrets_cannot_be_read() {
    let lab = Lab::start().await;
    let mut outbound = lab.outward();
    let Side::Plugin(declared) = &mut outbound.side else { unreachable!("it is that of a plugin") };
    declared.services = Arc::new(Secrets::Sealed);
    let get = || request(Method::GET, "/v1/a", Body::None);
    assert_eq!(code(&outbound, get(), &Auth::None).await, "credential-unreadable");
    assert_eq!(lab.arrived(), 0);
    // The log says so once.
    assert!(!outbound.account.is_first_failure());
}

#[tokio::test]
async fn what_left_stays_so_when_a_later_request_does_not_arrive() {
    let lab = Lab::start().await;
    let mut outbound = lab.outward();
    let post = || request(Method::POST, "/v1/a", Body::None);
    assert_eq!(code(&outbound, post(), &Auth::None).await, "sent");
    // Nothing listens on that port.
    outbound.target.url = "http://127.0.0.1:1/".parse().unwrap();
    let fault = outbound.send(post(), &Auth::None).await.unwrap_err();
    assert_eq!((fault.code.as_deref(), fault.effect), (Some("connect"), Effect::None));
    assert!(fault.message.contains("target") && !fault.message.contains("controller"), "{fault}");
    assert!(outbound.account.has_left());
    let mut never = lab.outward();
    never.target.url = outbound.target.url.clone();
    assert_eq!(code(&never, post(), &Auth::None).await, "connect");
    assert!(!never.account.has_left());
}

#[tokio::test]
async fn the_log_has_the_first_refusals_of_a_call() {
    let account = Lab::start().await.outward().account;
    let logged = (0..100).filter(|n| if n % 2 == 0 { account.refuse() } else { account.refuse_for_data() });
    assert_eq!(logged.count(), 8);
    assert_eq!(account.ledger().refused(), 100);
}

#[test]
fn a_text_names_few_of_many() {
    let many: Vec<String> = (0..64).map(|n| format!("network.vlan.{n}")).collect();
    let text = declared::few(&many);
    assert!(text.ends_with("network.vlan.3 and 60 more"), "{text}");
    assert!(declared::few(&["x".repeat(500)]).len() < 100);
    assert_eq!(declared::few(&[] as &[&str]), "none");
}

#[tokio::test]
async fn connections_and_lanes_are_of_one_organization() {
    let lab = Lab::start().await;
    let (one, two) = (lab.outward(), lab.outbound(lab.other_org, ActionEffect::Outward, true));
    let width = one.facts.bounds.parallel;
    let lane = |outbound: &Outbound| lab.egress.lanes.lane(&outbound.target, width);
    assert!(!Arc::ptr_eq(&lane(&one), &lane(&two)));
    assert!(Arc::ptr_eq(&lane(&one), &lane(&lab.outward())));
    for outbound in [&one, &two] {
        outbound.send(request(Method::GET, "/v1/a", Body::None), &Auth::None).await.unwrap();
    }
    assert_eq!(lab.egress.connections.count(), 2);
}

#[tokio::test]
async fn all_targets_of_a_call_share_its_budget() {
    let lab = Lab::start().await;
    let (first, mut second) = (lab.outward(), lab.outward());
    second.account = Arc::clone(&first.account);
    let most = first.facts.bounds.requests;
    first.ledger().requests = most - 1;
    assert_eq!(code(&first, request(Method::GET, "/v1/a", Body::None), &Auth::None).await, "sent");
    assert_eq!(code(&second, request(Method::GET, "/v1/a", Body::None), &Auth::None).await, "request-budget");
}

/// Answers too late for every test.
async fn silent() -> String {
    tokio::time::sleep(Duration::from_secs(30)).await;
    String::new()
}

#[tokio::test]
async fn a_lost_answer_to_a_write_may_have_changed_something() {
    let mut lab = Lab::start().await;
    lab.url = bench(Router::new().fallback(silent)).await.target.url;
    let outbound = lab.outward();
    let timed = |method, body| {
        let mut request = request(method, "/v1/a", body);
        request.timeout = Some(Duration::from_millis(200));
        request
    };
    let lost = outbound.send(timed(Method::POST, Body::None), &Auth::None).await.unwrap_err();
    assert_eq!(lost.effect, Effect::Possible);
    let lost = outbound.send(timed(Method::GET, Body::None), &Auth::None).await.unwrap_err();
    assert_eq!(lost.effect, Effect::None);
}
