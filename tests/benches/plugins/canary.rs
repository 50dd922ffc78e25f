//! A million calls with secrets: what the guest's memory, the log, what the plugin stores, emits and calls, and its requests
//! hold of them. There is no baseline: the figure is the number of leaks, and any is a failure.
//!
//! The device repeats every secret that it gets, in all the ways in which devices do. Most calls go to the runtime itself;
//! some are made over the API, after which all that the server has written is searched.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use heddle_core::OrgId;
use heddle_core::fault::Fault;
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::ActionEffect;
use heddle_runtime::{
    Credential, Emitted, KvChange, KvEntry, KvOp, KvPage, Of, Plugin, PluginCall, PluginServices, VaultError,
};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::{act, asks, install, scripted, served, switch_on};
use crate::measure::{Report, show};
use crate::sandbox::{plugin_call, with_plugin};
use crate::support::plugins::{Keys, archive_of, guest};
use crate::support::trace::Log;

/// Every encoding changes it.
const KEY: &str = "canary/k+y \"3&=";
/// A part of the secret that no encoding changes, and what base64 makes of it at each of the three places of a group.
const TRACES: [&str; 4] = ["canary", "Y2FuYXJ5", "NhbmFye", "jYW5hcn"];
const CALLS: u64 = if cfg!(debug_assertions) { 5_000 } else { 1_000_000 };
/// Calls over the API.
const RUNS: usize = if cfg!(debug_assertions) { 50 } else { 5_000 };
/// As many as one organization may have under way.
const PARALLEL: u64 = 16;

/// What was looked through, and what was found there.
#[derive(Default)]
struct Searched {
    bytes: AtomicU64,
    found: Mutex<Vec<String>>,
}

impl Searched {
    /// Looks for the secret in what came to this place.
    fn search(&self, place: &str, bytes: &[u8]) {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let text = String::from_utf8_lossy(bytes);
        if TRACES.iter().any(|trace| text.contains(trace)) {
            let shown: String = text.chars().take(400).collect();
            self.found.lock().expect("no holder panics").push(format!("{place}: {shown}"));
        }
    }

    fn assert_nothing_found(&self) {
        let found = self.found.lock().expect("no holder panics");
        assert!(found.is_empty(), "{} leaks, the first: {}", found.len(), found[0]);
    }
}

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let searched = Arc::new(Searched::default());
    let world =
        Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads can be started");
    let device = world.block_on(device(Arc::clone(&searched)));
    let stop = Arc::new(AtomicBool::new(false));
    let reading = std::thread::spawn({
        let (searched, stop) = (Arc::clone(&searched), Arc::clone(&stop));
        move || read_log(&searched, &stop)
    });
    let started = Instant::now();
    let refused = runtime.block_on(calls(device, &searched));
    let taken = started.elapsed();
    searched.assert_nothing_found();
    report.value(format!("{CALLS} calls with a secret, of which refused as they should be"), refused, "");
    let each = taken / u32::try_from(CALLS).expect("it is small enough");
    report.value(format!("time of a call, {PARALLEL} at a time"), show(each), "");
    runtime.block_on(runs(device, &searched));
    stop.store(true, Ordering::Relaxed);
    reading.join().expect("the log is read");
    world.shutdown_background();

    searched.assert_nothing_found();
    report.value(format!("runs over the API, and all that they wrote, {RUNS}"), "searched", "");
    report.value("bytes searched", format!("{} MiB", searched.bytes.load(Ordering::Relaxed) >> 20), "");
    report.value("leaks", 0, "0");
}

/// Searches what is logged until it is told to stop.
fn read_log(searched: &Searched, stop: &AtomicBool) {
    let mut log = Log::listen();
    loop {
        let ends = stop.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        // The next one listens before this one ends.
        let next = Log::listen();
        searched.search("log", &log.bytes());
        log = next;
        if ends {
            return;
        }
    }
}

/// Calls of the runtime. Answers how many were refused.
async fn calls(device: SocketAddr, searched: &Arc<Searched>) -> u64 {
    let tap = {
        let searched = Arc::clone(searched);
        Arc::new(move |what: &str, bytes: &[u8]| {
            searched.search(&format!("memory of the guest, {what}"), bytes);
        }) as _
    };
    let manifest = scripted("scripted", device).to_string();
    let services = Arc::new(Services(Arc::clone(searched)));
    let (sandbox, plugin) = with_plugin(services, Some(tap), &manifest, guest("plugin")).await;
    let call = plugin_call(Duration::from_secs(30));
    let refused = join_all((0..PARALLEL).map(|nth| calls_of(&plugin, &call, nth, searched))).await;
    sandbox.shutdown();
    refused.iter().sum()
}

/// One caller's part, one call after the other.
async fn calls_of(plugin: &Plugin, call: &PluginCall, nth: u64, searched: &Searched) -> u64 {
    let (mut refused, mut last) = (0, Value::Null);
    for n in 0..CALLS / PARALLEL {
        let (action, step) = step(n, nth, &last);
        match plugin.run(call, action, &step).await {
            Ok(answer) => {
                searched.search("answer of the guest", answer.to_string().as_bytes());
                last = answer;
            }
            Err(error) => {
                searched.search("fault", format!("{error:?}").as_bytes());
                assert_eq!(n % 1_000, 999, "{step}: {error:?}");
                refused += 1;
                plugin.release();
            }
        }
    }
    refused
}

/// What the call with this number does: asks the device with the secret in each of its places, stores, emits and hands on what
/// it has learnt from that, or asks with the secret where it must not be.
fn step(n: u64, nth: u64, last: &Value) -> (&'static str, Value) {
    let http = |place: &str, method: &str, path: &str| json!({ "do": "http", "target": "api", "method": method, "path": path, "secrets": { place: "key" } });
    if n % 1_000 == 999 {
        let places = ["header:X-Other", "json:/key", "form:key", "query:other", "basic-password"];
        let place = places[usize::try_from(n / 1_000).unwrap_or_default() % places.len()];
        return ("act", http(place, "POST", "/echo"));
    }
    match n % 8 {
        0 | 1 => ("look", http("header:X-Key", "GET", "/echo")),
        2 => ("act", http("bearer", "POST", "/v1/tickets")),
        3 => ("look", http("query:key", "GET", "/v1/search")),
        4 => (
            "look",
            json!({ "do": "kv", "use": "set", "key": format!("of-{nth}"), "text": last.to_string() }),
        ),
        5 => (
            "act",
            json!({ "do": "emit", "event-type": "plugin.scripted.done", "payload": { "last": last } }),
        ),
        6 => ("look", json!({ "do": "kv", "use": "get", "key": format!("of-{nth}") })),
        _ => ("look", json!({ "do": "call", "operation": "sites.list", "params": { "last": last } })),
    }
}

/// Actions over the API; then all that the server has written is searched.
async fn runs(device: SocketAddr, searched: &Searched) {
    let keys = Keys::new();
    let (mut server, api) = served(&keys, |options| options).await;
    install(&api, "scripted", &archive_of(&scripted("scripted", device), guest("plugin"), &keys.acme)).await;
    switch_on(&api, "scripted").await;
    api.put("/plugins/scripted/secrets/key", &json!({ "value": KEY })).await.expect_status(204);
    for n in 0..7 {
        let (action, step) = step(n, 0, &json!({ "n": n }));
        // An organization's plugin emits 120 events in a minute.
        let count = if n == 5 { 100.min(RUNS / 7) } else { RUNS / 7 };
        act(&api, &asks("scripted", action, &step), count).await;
    }
    for path in ["/events?per_page=200", "/audit?per_page=200", "/fabric/runs?limit=200", "/plugins/scripted"]
    {
        searched.search(path, api.get(path).await.expect_status(200).text.as_bytes());
    }
    server.stop().await;
    search_folder(server.folder(), searched);
}

fn search_folder(folder: &Path, searched: &Searched) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read") {
        let entry = entry.expect("a folder can be read");
        let kind = entry.file_type().expect("it has a type");
        if kind.is_dir() {
            search_folder(&entry.path(), searched);
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).expect("a file can be read");
            searched.search(&entry.path().display().to_string(), &bytes);
        }
    }
}

/// Repeats all that it is asked with, in all the ways in which devices do, and looks where the secret came.
async fn device(searched: Arc<Searched>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let app = Router::new().fallback(repeat).with_state(searched);
    #[expect(
        clippy::disallowed_methods,
        reason = "the device is the outside world, and ends with the bench"
    )]
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn repeat(
    State(searched): State<Arc<Searched>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let in_query = uri.query().unwrap_or_default();
    let mut keys = Vec::new();
    for (name, value) in &headers {
        match name.as_str() {
            "x-key" => keys.push(text(value)),
            "authorization" => keys.push(text(value).trim_start_matches("Bearer ").to_owned()),
            other => searched.search(&format!("header {other} of a request"), value.as_bytes()),
        }
    }
    let declared = in_query.strip_prefix("key=").filter(|rest| !rest.contains('&'));
    if let Some(key) = declared {
        keys.extend(
            url::form_urlencoded::parse(format!("k={key}").as_bytes()).map(|(_, key)| key.into_owned()),
        );
    } else {
        searched.search("query of a request", in_query.as_bytes());
    }
    searched.search("path of a request", uri.path().as_bytes());
    searched.search("body of a request", &body);
    if keys != [KEY] {
        searched
            .found
            .lock()
            .expect("no holder panics")
            .push(format!("another secret than the one: {keys:?}"));
    }
    let key = keys.pop().unwrap_or_default();
    let percent: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let form: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let basic = STANDARD.encode(format!("root:{key}"));
    let answer = json!({
        "raw": key, "base64": STANDARD.encode(&key), "basic": basic, "percent": percent, "form": form,
        "url": uri.to_string(),
    });
    let reflected = HeaderValue::from_bytes(key.as_bytes()).expect("it came in a header");
    let name = header::HeaderName::from_static("x-reflected");
    ([(name, reflected)], format!("{answer}\nraw: {key}\n")).into_response()
}

/// A host that gives out the secret, and looks through all that the plugin hands it.
struct Services(Arc<Searched>);

#[async_trait::async_trait]
impl PluginServices for Services {
    async fn secrets(&self, _: OrgId, _: &Manifest, _: &Value) -> Result<Credential, VaultError> {
        Ok(Credential { fields: vec![("key".to_owned(), Secret::new(KEY))] })
    }

    async fn kv_get(&self, _: &Of<'_>, key: &str) -> Result<Option<KvEntry>, Fault> {
        Ok(Some(KvEntry { value: key.as_bytes().to_vec(), version: 1 }))
    }

    async fn kv_apply(&self, _: &Of<'_>, ops: Vec<KvOp>) -> Result<bool, Fault> {
        for op in ops {
            if let KvChange::Set { value, .. } = op.change {
                self.0.search("stored value", &value);
            }
        }
        Ok(true)
    }

    async fn kv_list(&self, _: &Of<'_>, _: &str, _: Option<&str>, _: u32) -> Result<KvPage, Fault> {
        Ok(KvPage { items: Vec::new(), next: None })
    }

    async fn call_operation(
        &self,
        _: &Of<'_>,
        _: ActionEffect,
        _: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        self.0.search("parameters of an operation", params.to_string().as_bytes());
        Ok(json!({ "done": true }))
    }

    async fn emit(&self, _: &Of<'_>, events: Vec<Emitted>) -> Result<(), Fault> {
        self.0.search("emitted event", format!("{events:?}").as_bytes());
        Ok(())
    }
}
