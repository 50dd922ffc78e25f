//! Cassettes are what the egress of a server sees at the practice devices. `cargo xtask record` writes them by these tests.

use std::collections::BTreeSet;

use heddle_core::change::Operation;
use heddle_core::secret::random_bytes;
use heddle_core::tls::{TlsMode, TlsPolicy};
use heddle_sdk::testing::cassette::{Call, Cassette, Recorded};
use serde_json::{Value, json};

use super::labs;
use super::recorder::{PRACTICE, Recorder, Writing, folder};
use super::sandbox::Peer;
use crate::support::variable;

/// What is written at each vendor's practice device.
fn writings(vendor: &str) -> Vec<Writing> {
    let case = super::cases().into_iter().find(|case| case.vendor == vendor).expect("the vendor has a case");
    let mut writings = vec![Writing {
        feature: case.feature,
        operation: Operation::Create,
        payload: case.payload,
        is_taken_back: true,
    }];
    if vendor == "proxmox" {
        // A task, and what it did is taken back by another one.
        writings.push(Writing {
            feature: "proxmox.vm.start",
            operation: Operation::Create,
            payload: json!({ "vmid": 103 }),
            is_taken_back: true,
        });
    }
    writings
}

/// A controller that a person names by the environment: it is read, and nothing is written to it.
fn named() -> Option<(Peer, String)> {
    let url = variable("RECORD_URL")?;
    let mut credential = json!({});
    for (name, field) in
        [("RECORD_USERNAME", "username"), ("RECORD_PASSWORD", "password"), ("RECORD_API_KEY", "api_key")]
    {
        if let Some(value) = variable(name) {
            credential[field] = json!(value);
        }
    }
    let settings = variable("RECORD_SETTINGS").unwrap_or_else(|| "{}".to_owned());
    let settings: Value = serde_json::from_str(&settings).expect("RECORD_SETTINGS is a JSON object");
    let file = variable("RECORD_NAME").unwrap_or_else(|| "device".to_owned());
    let source = variable("RECORD_SOURCE").unwrap_or_else(|| "a controller".to_owned());
    let tls = match variable("RECORD_TLS_FINGERPRINT") {
        Some(fingerprint) => {
            TlsPolicy { mode: TlsMode::Pin, fingerprint: Some(fingerprint), ..TlsPolicy::default() }
        }
        None => TlsPolicy::default(),
    };
    // It is kept nowhere: nobody finds a secret by its reference.
    let reference_key = *random_bytes();
    Some((Peer { url, credential, settings, tls, reference_key, source }, format!("{file}.jsonl")))
}

/// Records the practice device, all of it or the kinds of an earlier recording.
async fn recorded(vendor: &str, kinds: Option<BTreeSet<String>>) -> String {
    let device = labs::start(vendor).await;
    let peer = Peer {
        url: device.url(),
        credential: device.credential(),
        settings: device.settings(),
        tls: TlsPolicy { mode: TlsMode::Insecure, ..TlsPolicy::default() },
        // Nothing of a practice device is secret, and the next recording shall have the same references.
        reference_key: [9; 32],
        source: format!("the practice device of tests/labs/{vendor}"),
    };
    let before = device.configuration();
    let mut recorder = Recorder::start(vendor, &peer).await;
    if let Some(kinds) = kinds {
        recorder = recorder.again(kinds);
    }
    recorder.read().await;
    for writing in writings(vendor) {
        recorder.write(&writing).await;
    }
    assert_eq!(device.configuration(), before, "{vendor}: what was written was taken back");
    recorder.text()
}

/// The calls of a cassette with the requests of each, in an order that does not depend on which answer came first.
fn asked(cassette: &Cassette) -> Vec<String> {
    let call = |recorded: &Recorded| {
        let mut requests: Vec<String> = recorded
            .exchanges
            .iter()
            .map(|place| format!("{} {}", cassette.exchanges[*place].method, cassette.exchanges[*place].path))
            .collect();
        requests.sort();
        requests.dedup();
        format!("{:?}: {}", recorded.call, requests.join(", "))
    };
    // How often a task is asked after depends on the machine.
    let calls = cassette.calls.iter().map(call).filter(|call| !call.starts_with("Poll"));
    calls.collect()
}

/// Writes the cassette where the command asks for it; else compares what the adapter asks now.
async fn record(vendor: &str) {
    if variable("RECORD_CASSETTES").is_none() {
        let path = folder(vendor).join(PRACTICE);
        let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("'{}': {error}; run 'cargo xtask record {vendor}'", path.display())
        });
        let kept = Cassette::load(&kept).expect("the cassette can be read");
        let kind = |recorded: &Recorded| match &recorded.call {
            Call::ListObjects { kind, .. } => Some(kind.clone()),
            _ => None,
        };
        let kinds = kept.calls.iter().filter_map(kind).collect();
        let now = Cassette::load(&recorded(vendor, Some(kinds)).await).expect("it was just recorded");
        let (kept, now) = (asked(&kept), asked(&now));
        for (kept, now) in kept.iter().zip(&now) {
            assert_eq!(kept, now, "the adapter asks otherwise; run 'cargo xtask record {vendor}'");
        }
        assert_eq!(kept.len(), now.len(), "run 'cargo xtask record {vendor}'");
        return;
    }
    let (text, file) = match named() {
        Some((peer, file)) => {
            let mut recorder = Recorder::start(vendor, &peer).await;
            recorder.read().await;
            (recorder.text(), file)
        }
        None => (recorded(vendor, None).await, PRACTICE.to_owned()),
    };
    let path = folder(vendor).join(file);
    std::fs::create_dir_all(folder(vendor)).expect("the folder can be made");
    std::fs::write(&path, &text).expect("the cassette can be written");
    eprintln!("{}: {} bytes", path.display(), text.len());
}

macro_rules! recorded {
    ($($vendor:ident),*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $vendor() {
            record(stringify!($vendor)).await;
        }
    )*};
}

recorded!(openwrt, opnsense, proxmox, omada);
