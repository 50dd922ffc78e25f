//! Cassettes are what the egress of a server sees at the practice devices. `cargo xtask record` writes them by these tests.

use std::collections::BTreeSet;

use heddle_core::change::Operation;
use heddle_core::secret::random_bytes;
use heddle_core::tls::{TlsMode, TlsPolicy};
use heddle_sdk::testing::cassette::{Call, Cassette, Recorded};
use serde_json::{Value, json};

use super::practice::Vendor;
use super::recorder::{PRACTICE, Recorder, Writing, folder};
use super::sandbox::Peer;
use crate::support::variable;

/// What is written at a vendor's practice device.
fn writings(vendor: &dyn Vendor) -> Vec<Writing> {
    let (case, task) = (vendor.case(), vendor.task());
    let task = task.map(|task| (task.feature, task.payload));
    let created =
        |(feature, payload)| Writing { feature, operation: Operation::Create, payload, is_taken_back: true };
    [(case.feature, case.payload)].into_iter().chain(task).map(created).collect()
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
async fn recorded(vendor: &dyn Vendor, kinds: Option<BTreeSet<String>>) -> String {
    let (device, id) = (vendor.start().await, vendor.id());
    let peer = Peer {
        url: device.url(),
        credential: device.credential(),
        settings: device.settings(),
        tls: TlsPolicy { mode: TlsMode::Insecure, ..TlsPolicy::default() },
        // Nothing of a practice device is secret, and the next recording shall have the same references.
        reference_key: [9; 32],
        source: format!("the practice device of tests/labs/{id}"),
    };
    let before = device.configuration();
    let mut recorder = Recorder::start(id, &peer).await;
    if let Some(kinds) = kinds {
        recorder = recorder.again(kinds);
    }
    recorder.read().await;
    for writing in writings(vendor) {
        recorder.write(&writing).await;
    }
    assert_eq!(device.configuration(), before, "{id}: what was written was taken back");
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
        timeless(format!("{:?}: {}", recorded.call, requests.join(", ")))
    };
    // How often a task is asked after depends on the machine.
    let calls = cassette.calls.iter().map(call).filter(|call| !call.starts_with("Poll"));
    calls.collect()
}

/// The text with one word for each moment of a device's clock: some devices name a session by when it began.
fn timeless(mut text: String) -> String {
    const FORM: &[u8] = b"0000-00-00 00:00:00";
    let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    let is_time = |part: &[u8]| part.iter().zip(FORM).all(fits);
    while let Some(at) = text.as_bytes().windows(FORM.len()).position(is_time) {
        text.replace_range(at..at + FORM.len(), "<time>");
    }
    text
}

/// Writes the cassette where the command asks for it; else compares what the adapter asks now.
async fn record(vendor: &'static dyn Vendor) {
    let id = vendor.id();
    if variable("RECORD_CASSETTES").is_none() {
        let path = folder(id).join(PRACTICE);
        let kept = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("'{}': {error}; run 'cargo xtask record {id}'", path.display()));
        let kept = Cassette::load(&kept).expect("the cassette can be read");
        let kind = |recorded: &Recorded| match &recorded.call {
            Call::ListObjects { kind, .. } => Some(kind.clone()),
            _ => None,
        };
        let kinds = kept.calls.iter().filter_map(kind).collect();
        let now = Cassette::load(&recorded(vendor, Some(kinds)).await).expect("it was just recorded");
        let (kept, now) = (asked(&kept), asked(&now));
        for (kept, now) in kept.iter().zip(&now) {
            assert_eq!(kept, now, "the adapter asks otherwise; run 'cargo xtask record {id}'");
        }
        assert_eq!(kept.len(), now.len(), "run 'cargo xtask record {id}'");
        return;
    }
    let (text, file) = match named() {
        Some((peer, file)) => {
            let mut recorder = Recorder::start(id, &peer).await;
            recorder.read().await;
            (recorder.text(), file)
        }
        None => (recorded(vendor, None).await, PRACTICE.to_owned()),
    };
    let path = folder(id).join(file);
    std::fs::create_dir_all(folder(id)).expect("the folder can be made");
    std::fs::write(&path, &text).expect("the cassette can be written");
    eprintln!("{}: {} bytes", path.display(), text.len());
}

test_each_vendor!(record);
