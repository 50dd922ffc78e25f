//! Calls of a plugin with all of the host around it. In the place of a guest is a function of the test, which asks the
//! host as a guest would.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use futures::FutureExt as _;
use heddle_core::Clock;
use heddle_core::fault::Effect;
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::Kind;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wasmtime::{Store, Trap};

use super::*;
use crate::admission::OfComponent;
use crate::apart::LIGHT_BYTES;
use crate::api::{Credential, TrapClass, Vault, VaultError};
use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::http::{Auth, Body, Host as _, HostTarget as _, Method, Request};
use crate::bindings::heddle::host::secrets::Host as _;
use crate::bindings::plugin::heddle::plugin::{events, fabric, kv};
use crate::breaker::{Breaker, Peers};
use crate::call::Provenance;
use crate::call::Raw;
use crate::compile::Compiler;
use crate::description::Bindings;
use crate::egress::Facts;
use crate::exports::Exports;
use crate::load::LoadError;
use crate::runtime::{PASS_NICE, Runtime, Settings};
use crate::services::{Emitted, KvEntry, KvOp, KvPage, Of, PluginServices};
use crate::state::State;

mod composed;
mod guests;
mod wasi;

/// A component without anything in it.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

#[derive(Default)]
struct Server {
    secrets: AtomicUsize,
    secrets_fail: AtomicBool,
    written: AtomicUsize,
    emitted: AtomicUsize,
    called: AtomicUsize,
    /// What an operation needs while it runs: a slot of an adapter.
    adapter: Mutex<Option<(Arc<Shared>, OfComponent)>>,
}

#[async_trait::async_trait]
impl PluginServices for Server {
    async fn secrets(&self, _: OrgId, _: &Manifest, _: &Value) -> Result<Credential, VaultError> {
        self.secrets.fetch_add(1, Ordering::SeqCst);
        if self.secrets_fail.load(Ordering::SeqCst) {
            return Err(VaultError("sealed".to_owned()));
        }
        Ok(Credential { fields: vec![("key".to_owned(), Secret::new("a key of the test"))] })
    }
    async fn kv_get(&self, _: &Of<'_>, _: &str) -> Result<Option<KvEntry>, Fault> {
        Ok(Some(KvEntry { value: vec![0; 1_000], version: 1 }))
    }
    async fn kv_apply(&self, _: &Of<'_>, _: Vec<KvOp>) -> Result<bool, Fault> {
        self.written.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }
    async fn kv_list(&self, _: &Of<'_>, _: &str, _: Option<&str>, _: u32) -> Result<KvPage, Fault> {
        Ok(KvPage::default())
    }
    async fn call_operation(&self, of: &Of<'_>, _: ActionEffect, _: &str, _: Value) -> Result<Value, Fault> {
        self.called.fetch_add(1, Ordering::SeqCst);
        let adapter = self.adapter.lock().unwrap().clone();
        if let Some((shared, slots)) = adapter {
            let slot = shared.admission.enter(&slots, of.org_id, Urgency::Ordinary).await;
            let _slot = slot.ok_or_else(|| Fault::new(FaultKind::Busy, "no slot is free"))?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(json!("x".repeat(500)))
    }
    async fn emit(&self, _: &Of<'_>, events: Vec<Emitted>) -> Result<(), Fault> {
        self.emitted.fetch_add(events.len(), Ordering::SeqCst);
        Ok(())
    }
}

struct NoVault;

#[async_trait::async_trait]
impl Vault for NoVault {
    async fn credential(&self, _: OrgId, _: heddle_core::CredentialId) -> Result<Credential, VaultError> {
        Ok(Credential::default())
    }
    fn reference_key(&self, _: heddle_core::ControllerId) -> [u8; 32] {
        [3; 32]
    }
}

fn manifest(server: &str) -> Manifest {
    let object = || json!({ "type": "object" });
    let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    serde_json::from_value(json!({
        "schema": 1, "id": "acme", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "Acme", "publisher": "acme",
        "license": "Apache-2.0", "files": [], "component": "component.wasm", "limits": { "requests": 2 },
        "capabilities": {
            "http": [
                { "name": "api", "origin": server, "methods": ["GET", "POST"], "paths": ["/v1/*"], "private": true },
                { "name": "own", "origin": { "setting": "url" }, "methods": ["GET"], "paths": ["/v1/*"], "private": true },
            ],
            "secrets": [{ "name": "key", "target": "api", "places": ["bearer"] }],
            "events": { "emit": ["plugin.acme.done"] },
            "fabric": { "call": ["network.vlan.list"] },
            "kv": {},
        },
        "event-types": [{ "type": "plugin.acme.done", "title": "Done", "payload-schema": {
            "type": "object", "properties": { "n": { "type": "integer" } }
        } }],
        "actions": [{ "id": "act", "title": "Act", "effect": "outward", "params-schema": object(), "output-schema": output }],
    }))
    .unwrap()
}

fn call_of(org_id: OrgId) -> PluginCall {
    PluginCall {
        org_id,
        settings: json!({ "url": "https://a.test:0" }),
        request_id: "test".to_owned(),
        deadline: Some(Duration::from_secs(20)),
        behalf: Arc::new(()),
    }
}

struct Lab {
    runtime: Arc<Runtime>,
    plugin: Plugin,
    server: Arc<Server>,
    clock: Clock,
    org: OrgId,
    _code: TempDir,
}

/// Asks the host as a guest would, and answers.
type Guest = Ask<String>;

fn guest(
    body: impl for<'a> FnOnce(&'a mut State) -> futures::future::BoxFuture<'a, Raw<String>> + Send + 'static,
) -> Guest {
    ask(move |_, store: &mut Store<State>| body(store.data_mut()))
}

/// Answers what the action's schema wants.
#[expect(clippy::unnecessary_wraps, reason = "what a guest returns")]
fn fine() -> Raw<String> {
    Ok(Ok(json!({ "n": 1 }).to_string()))
}

impl Lab {
    fn start() -> Self {
        Self::with_server("https://a.test")
    }

    fn with_server(server: &str) -> Self {
        let (code, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let here = || vec!["127.0.0.0/8".parse().unwrap()];
        let settings = Settings {
            code_cache_dir: code.path().to_owned(),
            code_cache_key: [7; 32],
            compiler: Compiler { program: "none".into(), args: Vec::new(), is_awaited: false },
            extra_networks: here(),
            plugin_networks: here(),
            denied_networks: Vec::new(),
            pooling_instances: 32,
            guest_workers: 2,
            tap: None,
        };
        let runtime = Runtime::start(settings, Arc::new(NoVault), clock.clone()).unwrap();
        let services = Arc::new(Server::default());
        runtime.serves_plugins(Arc::clone(&services) as Arc<_>);
        let code_of = wasmtime::component::Component::new(&runtime.shared.engine, EMPTY).unwrap();
        let component = Component {
            facts: Arc::new(Facts::new(manifest(server), "sha".to_owned(), Bindings::default())),
            pre: runtime.linker.instantiate_pre(&code_of).unwrap(),
            exports: Exports::default(),
            slots: OfComponent::new(Kind::Plugin),
            cut: CancellationToken::new(),
            provenance: Provenance::default(),
            breaker: Breaker::new("acme 1.0.0".to_owned(), Peers::Organizations, clock.clone()),
        };
        let shared = Arc::clone(&runtime.shared);
        let settings = Schema::compile(&json!({})).unwrap();
        let plugin = Plugin::new(shared, Arc::new(component), ("acme".to_owned(), "m".to_owned()), settings);
        let org = clock.new_id();
        Self { runtime, plugin, server: services, clock, org, _code: code }
    }

    /// Runs the action with this guest, as [`Plugin::run`] does.
    async fn run(&self, guest: Guest) -> Result<Value, CallError> {
        self.run_of(&call_of(self.org), ActionEffect::Outward, guest).await
    }

    async fn run_of(
        &self,
        call: &PluginCall,
        effect: ActionEffect,
        guest: Guest,
    ) -> Result<Value, CallError> {
        let asked = Asked { phase: phase(effect), effect, own: Own::All, params_bytes: 0 };
        let output = self.plugin.output("act", "the action 'act'".to_owned()).await?;
        self.plugin.call_and_judge(call, asked, guest, output).await
    }

    fn emitted(&self) -> usize {
        self.server.emitted.load(Ordering::SeqCst)
    }
}

fn code_of(ended: Result<Value, CallError>) -> String {
    match ended {
        Err(CallError::Fault(fault)) => fault.code.unwrap_or_default(),
        other => panic!("the call ended with {other:?}"),
    }
}

fn code_of_guest(fault: types::Fault) -> String {
    convert::fault(fault).code.unwrap_or_default()
}

fn some_events(n: usize, payload: &str) -> Vec<events::Emitted> {
    let event_type = "plugin.acme.done".to_owned();
    vec![events::Emitted { event_type, payload: payload.to_owned(), dedup_key: None }; n]
}

fn post(path: &str, body: Body) -> Request {
    let (method, path) = (Method::Post, path.to_owned());
    Request { method, path, headers: vec![], body, timeout_ms: None, max_response_bytes: None }
}

/// Sends a request to the target `api`; the code of its fault, if any.
async fn send(state: &mut State, request: Request) -> wasmtime::Result<Option<String>> {
    let target = state.open("api".to_owned()).await?.map_err(code_of_guest);
    let target = target.expect("the target is declared");
    let answer = state.send(target, request, Auth::None).await?;
    Ok(answer.err().map(code_of_guest))
}

#[tokio::test]
async fn events_that_are_refused_are_counted() {
    let lab = Lab::start();
    let twice = guest(|state| {
        async move {
            let refused = events::Host::emit(state, some_events(60, r#"{"n": "x"}"#)).await?;
            assert_eq!(code_of_guest(refused.unwrap_err()), "event-payload");
            Ok(events::Host::emit(state, some_events(60, "{}")).await?.map(|()| String::new()))
        }
        .boxed()
    });
    assert_eq!(code_of(lab.run(twice).await), "event-budget");
    let once = guest(|state| {
        async move {
            events::Host::emit(state, some_events(100, r#"{"n": 1}"#)).await?.unwrap();
            fine()
        }
        .boxed()
    });
    lab.run(once).await.unwrap();
    assert_eq!(lab.emitted(), 100);
}

#[tokio::test]
async fn payloads_and_answers_are_judged_in_the_turn_of_their_organization() {
    let lab = Lab::start();
    let turn = lab.runtime.shared.apart.turn(lab.org).await;
    let mut call = call_of(lab.org);
    call.deadline = Some(Duration::from_millis(300));
    let emit = guest(|state| {
        async move { Ok(events::Host::emit(state, some_events(1, "{}")).await?.map(|()| String::new())) }
            .boxed()
    });
    let ended = lab.run_of(&call, ActionEffect::Read, emit).await;
    assert!(matches!(ended, Err(CallError::Trap { class: TrapClass::Wall, .. })), "{ended:?}");
    assert_eq!(lab.emitted(), 0);
    let ended = lab.run_of(&call, ActionEffect::Read, guest(|_| async { fine() }.boxed())).await;
    assert_eq!(code_of(ended), "output");
    drop(turn);
    lab.run(guest(|_| async { fine() }.boxed())).await.unwrap();
}

#[tokio::test]
async fn passes_over_long_answers_get_the_smaller_share_of_a_busy_processor() {
    let lab = Lab::start();
    let share = || rustix::process::getpriority_process(None).unwrap();
    let here = share();
    for (bytes, expected) in [(LIGHT_BYTES, here), (LIGHT_BYTES + 1, (here + PASS_NICE).min(19))] {
        assert_eq!(lab.runtime.apart(lab.org, bytes, share).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn an_answer_fits_the_output_schema_or_is_a_fault() {
    let lab = Lab::start();
    for answer in [json!({}), json!({ "n": "x" }), json!([])] {
        let ended = lab.run(guest(move |_| async move { Ok(Ok(answer.to_string())) }.boxed())).await;
        let Err(CallError::Fault(fault)) = ended else { panic!("the call ended with {ended:?}") };
        assert_eq!((fault.kind, fault.code.as_deref()), (FaultKind::Generic, Some("output")));
        assert_eq!(fault.effect, Effect::None);
    }
}

#[tokio::test]
async fn a_plugin_that_is_refused_too_often_is_stopped() {
    let lab = Lab::start();
    let tried = Arc::new(AtomicUsize::new(0));
    let open = |times: usize, tried: &Arc<AtomicUsize>| {
        let tried = Arc::clone(tried);
        guest(move |state| {
            async move {
                for _ in 0..times {
                    tried.fetch_add(1, Ordering::SeqCst);
                    assert!(state.open("undeclared".to_owned()).await?.is_err());
                }
                fine()
            }
            .boxed()
        })
    };
    lab.run(open(63, &tried)).await.unwrap();
    let ended = lab.run(open(1_000, &tried)).await;
    assert!(matches!(ended, Err(CallError::Trap { class: TrapClass::Bug, .. })), "{ended:?}");
    assert_eq!(tried.load(Ordering::SeqCst), 63 + 64);
}

#[tokio::test]
async fn a_budget_is_taken_before_anything_is_looked_at() {
    let lab = Lab::start();
    let many = guest(|state| {
        async move {
            let not_json = || post("/v1/a", Body::Json("{".to_owned()));
            assert_eq!(send(state, not_json()).await?.as_deref(), Some("not-json"));
            assert_eq!(send(state, not_json()).await?.as_deref(), Some("not-json"));
            assert_eq!(send(state, not_json()).await?.as_deref(), Some("request-budget"));
            for n in 0..33 {
                let called = fabric::Host::call(state, "other".to_owned(), "{}".to_owned()).await?;
                let expected = if n < 32 { "operation" } else { "operation-budget" };
                assert_eq!(code_of_guest(called.unwrap_err()), expected);
            }
            fine()
        }
        .boxed()
    });
    lab.run(many).await.unwrap();
    assert_eq!(lab.server.called.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn names_of_secrets_are_read_once_in_a_call_also_when_that_fails() {
    let lab = Lab::start();
    for fails in [false, true] {
        lab.server.secrets_fail.store(fails, Ordering::SeqCst);
        lab.server.secrets.store(0, Ordering::SeqCst);
        let look = guest(move |state| {
            async move {
                for _ in 0..10 {
                    assert_eq!(state.get("key".to_owned()).await?.is_some(), !fails);
                    assert!(state.get("other".to_owned()).await?.is_none());
                }
                fine()
            }
            .boxed()
        });
        lab.run(look).await.unwrap();
        assert_eq!(lab.server.secrets.load(Ordering::SeqCst), 1);
    }
    lab.server.secrets_fail.store(false, Ordering::SeqCst);
    let often = guest(|state| {
        async move {
            for _ in 0..crate::limits::SECRET_LOOKUPS_MAX {
                assert!(state.get("key".to_owned()).await?.is_some());
            }
            assert!(state.get("key".to_owned()).await?.is_none());
            fine()
        }
        .boxed()
    });
    lab.run(often).await.unwrap();
}

/// A server of the test that answers everything.
async fn world() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(|| async { "done" });
    #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn what_left_is_not_forgotten_however_the_call_ends() {
    let lab = Lab::with_server(&world().await);
    let after_post = |end: fn() -> Raw<String>| {
        guest(move |state| {
            async move {
                assert_eq!(send(state, post("/v1/a", Body::None)).await?, None);
                end()
            }
            .boxed()
        })
    };
    let busy = || Ok(Err(convert::to_guest_fault(Fault::new(FaultKind::Busy, "try again"))));
    let ends: [fn() -> Raw<String>; 4] = [
        busy,
        || Err(Trap::UnreachableCodeReached.into()),
        || Err(crate::trap::HostFault("broken".to_owned()).into()),
        || Ok(Ok("{}".to_owned())),
    ];
    for end in ends {
        let error = lab.run(after_post(end)).await.unwrap_err();
        assert_eq!(error.effect(), Effect::Possible, "{error:?}");
        lab.plugin.release();
        // Where nothing left, the same end says so.
        let error = lab.run(guest(move |_| async move { end() }.boxed())).await.unwrap_err();
        assert_eq!(error.effect(), Effect::None, "{error:?}");
        lab.plugin.release();
    }
    // Want of room is no reason to repeat what left.
    let overloaded = |is_sent: bool| {
        guest(move |state| {
            async move {
                if is_sent {
                    assert_eq!(send(state, post("/v1/a", Body::None)).await?, None);
                }
                state.reach.account.ledger().overloaded = true;
                busy()
            }
            .boxed()
        })
    };
    assert_eq!(lab.run(overloaded(true)).await.unwrap_err().effect(), Effect::Possible);
    assert!(matches!(lab.run(overloaded(false)).await, Err(CallError::Overload)));
    let mut late = call_of(lab.org);
    late.deadline = Some(Duration::from_millis(500));
    let slow = guest(|state| {
        async move {
            assert_eq!(send(state, post("/v1/a", Body::None)).await?, None);
            tokio::time::sleep(Duration::from_secs(5)).await;
            fine()
        }
        .boxed()
    });
    let error = lab.run_of(&late, ActionEffect::Outward, slow).await.unwrap_err();
    assert!(
        matches!(error, CallError::Trap { class: TrapClass::Wall, effect: Effect::Possible, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn calls_that_call_the_runtime_again_do_not_wait_for_each_other() {
    let lab = Lab::start();
    let adapter = (Arc::clone(&lab.runtime.shared), OfComponent::new(Kind::Adapter));
    *lab.server.adapter.lock().unwrap() = Some(adapter);
    let nested = |_| {
        lab.run(guest(|state| {
            async move {
                let operation = "network.vlan.list".to_owned();
                let called = fabric::Host::call(state, operation, "{}".to_owned()).await?;
                match called {
                    Ok(_) => fine(),
                    Err(fault) => Ok(Err(fault)),
                }
            }
            .boxed()
        }))
    };
    let ended = futures::future::join_all((0..16).map(nested)).await;
    for ended in ended {
        ended.unwrap();
    }
    assert_eq!(lab.server.called.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn what_data_leads_to_is_not_held_against_the_plugin_everywhere() {
    let refused = |path: &'static str, method: Method| {
        guest(move |state| {
            async move {
                let mut request = post(path, Body::None);
                request.method = method;
                assert!(send(state, request).await?.is_some());
                fine()
            }
            .boxed()
        })
    };
    for (path, method, is_suspended) in [("/v2/../a", Method::Get, false), ("/v1/a", Method::Put, true)] {
        let lab = Lab::start();
        for _ in 0..4 {
            let call = call_of(lab.clock.new_id());
            for _ in 0..5 {
                drop(lab.run_of(&call, ActionEffect::Outward, refused(path, method)).await);
            }
            let again = lab.run_of(&call, ActionEffect::Outward, refused(path, method)).await;
            assert!(matches!(again, Err(CallError::Suspended { .. })), "{path}: {again:?}");
        }
        assert_eq!(lab.plugin.standing().suspended_until.is_some(), is_suspended, "{path}");
    }
}

#[tokio::test]
async fn what_the_host_hands_over_counts_as_answered() {
    let lab = Lab::start();
    let read = guest(|state| {
        async move {
            kv::Host::get(state, "a".to_owned()).await?.unwrap();
            fabric::Host::call(state, "network.vlan.list".to_owned(), "{}".to_owned()).await?.unwrap();
            fine()
        }
        .boxed()
    });
    let (phase, effect) = (Phase::Read, ActionEffect::Read);
    let asked = Asked { phase, effect, own: Own::All, params_bytes: 30 };
    let call = call_of(lab.org);
    let until = Instant::now() + Duration::from_secs(20);
    let (_, account) = lab.plugin.call(&call, (asked, until), read, convert::action_output).await.unwrap();
    assert_eq!(account.answered(), 30 + 1_000 + 502);
}

#[tokio::test]
async fn a_call_whose_time_passed_while_it_waited_is_not_begun() {
    let lab = Lab::start();
    let (shared, component) = (&lab.runtime.shared, &lab.plugin.0.component);
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(shared.admission.enter(&component.slots, lab.org, Urgency::Ordinary).await.unwrap());
    }
    let begun = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&begun);
    let late = guest(move |_| {
        seen.store(true, Ordering::SeqCst);
        async { fine() }.boxed()
    });
    let mut call = call_of(lab.org);
    call.deadline = Some(Duration::from_millis(100));
    let free = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.clear();
    };
    let (ended, ()) = futures::join!(lab.run_of(&call, ActionEffect::Read, late), free);
    assert!(matches!(ended, Err(CallError::Overload)), "{ended:?}");
    assert!(!begun.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_check_changes_nothing() {
    let lab = Lab::start();
    let change = guest(|state| {
        async move {
            assert!(kv::Host::get(state, "a".to_owned()).await?.is_ok());
            let set = kv::Host::set(state, "a".to_owned(), vec![1], None).await?;
            assert_eq!(code_of_guest(set.unwrap_err()), "read-only");
            let deleted = kv::Host::delete(state, "a".to_owned()).await?;
            assert_eq!(code_of_guest(deleted.unwrap_err()), "read-only");
            let emitted = events::Host::emit(state, some_events(1, "{}")).await?;
            assert_eq!(code_of_guest(emitted.unwrap_err()), "read-only");
            fine()
        }
        .boxed()
    });
    let (phase, effect) = (Phase::Probe, ActionEffect::Read);
    let asked = Asked { phase, effect, own: Own::Nothing, params_bytes: 0 };
    let call = call_of(lab.org);
    let until = Instant::now() + Duration::from_secs(20);
    lab.plugin.call(&call, (asked, until), change, convert::action_output).await.unwrap();
    assert_eq!((lab.server.written.load(Ordering::SeqCst), lab.emitted()), (0, 0));
}

#[tokio::test]
async fn the_address_of_a_target_has_no_port_0() {
    let lab = Lab::start();
    let open =
        guest(|state| async move { Ok(state.open("own".to_owned()).await?.map(|_| String::new())) }.boxed());
    assert_eq!(code_of(lab.run(open).await), "target-address");
}

/// Exports `run` with another type than the interface has.
const OTHER_TYPE: &str = r#"
(component
  (core module $m (func (export "run") (result i32) (i32.const 7)))
  (core instance $i (instantiate $m))
  (func $run (result u32) (canon lift (core func $i "run")))
  (instance $actions (export "run" (func $run)))
  (export "heddle:plugin/actions@1.0.0" (instance $actions)))
"#;

const SPINS_AT_ITS_START: &str = r"
(component
  (core module $m (func $spin (loop (br 0))) (start $spin))
  (core instance $i (instantiate $m)))
";

#[tokio::test]
async fn a_component_is_tried_when_it_is_loaded() {
    let lab = Lab::start();
    let shared = &lab.runtime.shared;
    // With the most processor time, so that no busy machine ends the one that spins before its own limit does.
    let mut manifest = manifest("https://a.test");
    manifest.limits.cpu_ms = Some(5_000);
    let slow = Arc::new(Facts::new(manifest, "sha".to_owned(), Bindings::default()));
    let component_of = |text: &str, facts: &Arc<Facts>| {
        let bytes = wat::parse_str(text).unwrap();
        let code = wasmtime::component::Component::new(&shared.engine, bytes).unwrap();
        let pre = lab.runtime.linker.instantiate_pre(&code).unwrap();
        let mut exports = Exports::default();
        // Until here only names are looked at.
        exports.take::<actions::Guest>(&code, &pre).unwrap();
        Arc::new(Component {
            facts: Arc::clone(facts),
            pre,
            exports,
            slots: OfComponent::new(Kind::Plugin),
            cut: CancellationToken::new(),
            provenance: Provenance::default(),
            breaker: Breaker::new("acme 1.0.0".to_owned(), Peers::Organizations, lab.clock.clone()),
        })
    };
    shared.tried(&lab.plugin.0.component).await.unwrap();
    let facts = &lab.plugin.0.component.facts;
    let other = component_of(OTHER_TYPE, facts);
    assert!(other.exports.has::<actions::Guest>());
    let refused = shared.tried(&other).await.unwrap_err();
    let said = refused.to_string();
    assert!(matches!(refused, LoadError::Link(_)) && !refused.is_passing(), "{said}");
    assert!(said.contains("type") || said.contains("expected"), "{said}");
    let spinning = shared.tried(&component_of(SPINS_AT_ITS_START, facts)).await.unwrap_err();
    assert!(spinning.to_string().contains("interrupt") && !spinning.is_passing(), "{spinning}");
    // A trial whose time is over before its processor time is has waited for the machine.
    let late =
        shared.tried_within(&component_of(SPINS_AT_ITS_START, &slow), Duration::ZERO).await.unwrap_err();
    assert!(matches!(late, LoadError::NotReady { .. }) && late.is_passing(), "{late}");
}
