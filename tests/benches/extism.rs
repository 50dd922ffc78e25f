//! A plugin called by Heddle, and the same work as a plugin of Extism, called by its runtime.
//!
//! Heddle's call is the server's: leave to call, a fresh instance on the guests' threads, and an answer that was judged by
//! its schema, from JSON to JSON. Extism's is that of a C program, from bytes to bytes, with a limit of memory and of time
//! and without WASI: once with a plugin that is made of its manifest for each call, and of code in the library's cache; once
//! with one that is made of compiled code that the caller holds, which is the separation that Heddle has always; and once
//! with one plugin that keeps its memory from call to call. What a host pays that has JSON and not bytes is a row of its own.
//! Both plugins are what their kits make of the same functions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use heddle_core::OrgId;
use heddle_core::fault::{Fault, FaultKind};
use heddle_marketplace::manifest::{Limits, Manifest};
use heddle_marketplace::plugin::ActionEffect;
use heddle_runtime::{Credential, Emitted, KvEntry, KvOp, KvPage, Of, Plugin, PluginServices, VaultError};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, ratio, show, timed};
use crate::sandbox::{plugin_call, with_plugin};
use crate::support::variable;

#[path = "extism/heddle/src/work.rs"]
mod work;

/// The folder that `cargo xtask bench` fills.
const PREPARED: &str = "BENCH_EXTISM";
const MANIFEST: &str = include_str!("extism/heddle/manifest.json");
const ROUNDS: usize = 10;
const CALLS: usize = if cfg!(debug_assertions) { 20 } else { 500 };
/// A call's, on both sides.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of a page of WebAssembly's memory.
const PAGE_BYTES: u32 = 64 << 10;
const DEVICES: u32 = 500;
const TEXT_BYTES: usize = 1 << 10;

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let Some(prepared) = variable(PREPARED).map(PathBuf::from) else {
        report.value("plugins of Extism", "left out: 'cargo xtask bench' prepares them", "");
        return;
    };
    let component = std::fs::read(prepared.join("heddle.wasm")).expect("the component was built");
    let (sandbox, plugin) = runtime.block_on(with_plugin(Arc::new(Nothing), None, MANIFEST, component));
    for work in [echo(), inventory()] {
        compare(runtime, report, &plugin, &prepared, &work);
        report.noise.sample();
    }
    sandbox.shutdown();
}

/// What the plugins are asked to do.
struct Work {
    what: String,
    /// An action of the one plugin, and a function of the other.
    name: &'static str,
    params: String,
    native: fn(&str) -> String,
}

fn echo() -> Work {
    let params = text(&work::Said { text: "a".repeat(TEXT_BYTES) });
    Work { what: "echo of 1 KiB".to_owned(), name: "echo", params, native: |said| native(said, work::echo) }
}

fn inventory() -> Work {
    let devices = (0..DEVICES).map(listed).collect();
    let params = text(&work::Listing { devices });
    let what = format!("{DEVICES} records of {} KB", params.len() / 1_000);
    Work { what, name: "inventory", params, native: |listing| native(listing, work::inventory) }
}

fn listed(number: u32) -> work::Listed {
    let [.., high, low] = number.to_be_bytes();
    work::Listed {
        mac: format!("02:AB:CD:{high:02X}:{low:02X}:0F"),
        name: format!("access point {number}"),
        model: format!("AP-{}", number % 7),
        ip: format!("10.20.{high}.{low}"),
        adopted: !number.is_multiple_of(50),
        state: u8::from(!number.is_multiple_of(9)),
        uptime: u64::from(number) * 86_431,
        clients: number % 61,
    }
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it can be written as JSON")
}

/// The whole work of a guest, without a sandbox.
fn native<P: serde::de::DeserializeOwned, A: Serialize>(params: &str, work: fn(P) -> A) -> String {
    text(&work(serde_json::from_str(params).expect("the parameters fit")))
}

fn compare(runtime: &Runtime, report: &mut Report, plugin: &Plugin, prepared: &Path, work: &Work) {
    let answer = (work.native)(&work.params);
    let mut extism = Caller::start(prepared, work, &answer);
    let params: Value = serde_json::from_str(&work.params).expect("it was just written");
    let expected: Value = serde_json::from_str(&answer).expect("it was just written");
    let call = plugin_call(TIME_LIMIT);
    let heddle = || {
        let (time, answer) = timed(|| runtime.block_on(plugin.run(&call, work.name, &params)));
        assert_eq!(answer.expect("the plugin answers"), expected);
        time
    };
    let native = || timed(|| (work.native)(&work.params)).0;
    let host = || timed(|| (params.to_string(), serde_json::from_str::<Value>(&answer))).0;
    let (mut ours, mut loaded, mut fresh, mut warm) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut natives, mut hosts) = (Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let sides = [
            (&mut ours, repeated(&heddle)),
            (&mut loaded, extism.call("loaded", CALLS / 10)),
            (&mut fresh, extism.call("fresh", CALLS)),
            (&mut warm, extism.call("warm", CALLS)),
            (&mut natives, repeated(&native)),
            (&mut hosts, repeated(&host)),
        ];
        for (samples, times) in sides {
            if round > 0 {
                samples.extend(times);
            }
        }
    }
    extism.end();
    let [ours, natives, hosts] = [ours, natives, hosts].map(Samples::of);
    let [loaded, fresh, warm] = [loaded, fresh, warm].map(Samples::of);
    let what = &work.what;
    let times = |extism: &Samples| format!("x {:.2}", ratio(extism.median(), ours.median()));
    report.row(format!("{what}, native"), &natives, "", "");
    report.row(format!("{what}, a host's JSON to text and back"), &hosts, "", "");
    let more = format!("+{}", show(ours.median().saturating_sub(natives.median())));
    report.row(format!("{what}, Heddle"), &ours, more, "");
    report.row(format!("{what}, Extism with a plugin of the cache"), &loaded, times(&loaded), "> x 5");
    report.row(format!("{what}, Extism with a plugin of held code"), &fresh, times(&fresh), "> x 5");
    report.row(format!("{what}, Extism with the same plugin"), &warm, times(&warm), "> x 2");
}

fn repeated(mut call: impl FnMut() -> Duration) -> Vec<Duration> {
    (0..CALLS).map(|_| call()).collect()
}

/// The program that calls the plugin of Extism. It compares each answer with the expected one.
struct Caller {
    child: Child,
    asked: ChildStdin,
    told: BufReader<ChildStdout>,
    /// What the program reads when it starts.
    _files: tempfile::TempDir,
}

impl Caller {
    fn start(prepared: &Path, work: &Work, answer: &str) -> Self {
        let manifest = json!({
            "wasm": [{ "path": prepared.join("extism.wasm") }],
            "memory": { "max_pages": (Limits::MEMORY_MIB << 20) / PAGE_BYTES },
            "timeout_ms": TIME_LIMIT.as_secs() * 1_000,
        });
        let files = tempfile::tempdir().expect("a folder can be made");
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).expect("a file can be written");
            path
        };
        let cache = format!("[cache]\ndirectory = \"{}\"\n", files.path().join("cache").display());
        let mut child = Command::new(prepared.join("caller"))
            .arg(write("manifest", &manifest.to_string()))
            .arg(work.name)
            .arg(write("input", &work.params))
            .arg(write("answer", answer))
            // Its cache is not in the home folder.
            .env("EXTISM_CACHE_CONFIG", write("cache.toml", &cache))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built");
        let asked = child.stdin.take().expect("its input is piped");
        let told = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, asked, told, _files: files }
    }

    /// How long each of some calls took.
    fn call(&mut self, how: &str, calls: usize) -> Vec<Duration> {
        writeln!(self.asked, "{how} {calls}").expect("it reads what it is asked");
        let lines = self.told.by_ref().lines().take(calls);
        let times: Vec<Duration> = lines.map(|line| nanos(&line.expect("it is text"))).collect();
        assert_eq!(times.len(), calls, "the caller of Extism ended early, and said why");
        times
    }

    fn end(mut self) {
        drop(self.asked);
        assert!(self.child.wait().expect("it ends").success(), "the caller of Extism failed, and said why");
    }
}

fn nanos(line: &str) -> Duration {
    Duration::from_nanos(line.parse().expect("it is a number"))
}

/// A server that has nothing for the plugin, which asks for nothing.
struct Nothing;

fn nothing<T>() -> Result<T, Fault> {
    Err(Fault::new(FaultKind::Unsupported, "there is nothing here"))
}

#[async_trait::async_trait]
impl PluginServices for Nothing {
    async fn secrets(&self, _: OrgId, _: &Manifest, _: &Value) -> Result<Credential, VaultError> {
        Ok(Credential::default())
    }

    async fn kv_get(&self, _: &Of<'_>, _: &str) -> Result<Option<KvEntry>, Fault> {
        nothing()
    }

    async fn kv_apply(&self, _: &Of<'_>, _: Vec<KvOp>) -> Result<bool, Fault> {
        nothing()
    }

    async fn kv_list(&self, _: &Of<'_>, _: &str, _: Option<&str>, _: u32) -> Result<KvPage, Fault> {
        nothing()
    }

    async fn call_operation(&self, _: &Of<'_>, _: ActionEffect, _: &str, _: Value) -> Result<Value, Fault> {
        nothing()
    }

    async fn emit(&self, _: &Of<'_>, _: Vec<Emitted>) -> Result<(), Fault> {
        nothing()
    }
}
