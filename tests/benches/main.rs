//! What the sandbox, single requests and the start cost, each compared with a baseline that does the same work in the
//! same run. `cargo xtask bench` builds what is needed and runs them; a word after `--` picks those with it in their
//! name.

mod adapter_call;
mod extism;
mod half_open;
mod identity;
mod inventory;
mod large_package;
mod matching;
mod measure;
mod neighbour;
mod plain_host;
mod plugins;
mod requests;
mod revocation;
mod sandbox;
mod sets;
mod start;
mod stream;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, unused_macros, reason = "the tests use all of it")]
mod support;
mod text_passes;
mod vlans;

use measure::Report;

type Bench = fn(&tokio::runtime::Runtime, &mut Report);

const BENCHES: &[(&str, Bench)] = &[
    ("adapter_call", adapter_call::measure),
    ("extism", extism::measure),
    ("half_open", half_open::measure),
    ("identity", identity::measure),
    ("inventory", inventory::measure),
    ("large_package", large_package::measure),
    ("matching", matching::measure),
    ("neighbour", neighbour::measure),
    ("plugins_canary", plugins::canary::measure),
    ("plugins_crowd", plugins::crowd::measure),
    ("plugins_loud", plugins::loud::measure),
    ("plugins_swaps", plugins::swaps::measure),
    ("requests", requests::measure),
    ("revocation", revocation::measure),
    ("sets", sets::measure),
    ("start", start::measure),
    ("stream", stream::measure),
    ("text_passes", text_passes::measure),
    ("vlans", vlans::measure),
];

fn main() {
    // cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    rustls::crypto::ring::default_provider().install_default().expect("nobody was faster");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be started");
    if wanted == [stream::bare::ARGUMENT] {
        return stream::bare::serve(&runtime);
    }
    let mut report = Report::default();
    report.noise.sample();
    for (name, bench) in BENCHES {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            bench(&runtime, &mut report);
            report.noise.sample();
        }
    }
    report.print();
}
