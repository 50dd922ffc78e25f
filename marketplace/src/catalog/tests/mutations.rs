//! Readers never panic, whatever they read: inputs that are changed by a seeded generator, the same in each run.

use std::collections::BTreeMap;

use super::super::*;
use super::world::*;
use crate::{inspect, read_archive, write_archive};

/// Inputs of each reader.
const INPUTS: usize = 20_000;
/// What is put in where it may hurt: ends of texts and numbers, and what JSON and archives begin with.
const PIECES: [&[u8]; 16] = [
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"null",
    b",",
    b":",
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"\xff\xff\xff\xff",
    b"\0\0",
];

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn mutated(&mut self, input: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            let (at, other) = (self.below(bytes.len() + 1), self.below(bytes.len() + 1));
            let (from, to) = (at.min(other), at.max(other));
            match self.below(7) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = u8::try_from(self.below(256)).unwrap(),
                2 => bytes.truncate(at),
                3 => drop(bytes.drain(from..to.min(from + 40))),
                4 => {
                    let piece = bytes[from..to.min(from + 200)].to_vec();
                    bytes.splice(from..from, piece);
                }
                5 => {
                    let piece = PIECES[self.below(PIECES.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
                _ => {
                    let piece = PIECES[self.below(PIECES.len())];
                    let end = (at + piece.len()).min(bytes.len());
                    bytes.splice(at..end, piece.iter().copied());
                }
            }
        }
        bytes
    }
}

/// Reads mutated inputs; some of them must still be good, else the generator changes too much to reach far.
#[track_caller]
fn never_panics(seed: u64, input: &[u8], is_good: impl Fn(&[u8]) -> bool) {
    assert!(is_good(input), "the input itself is good");
    let mut random = Random(seed);
    let good = (0..INPUTS).filter(|_| is_good(&random.mutated(input))).count();
    assert!(good < INPUTS / 2, "{good} of {INPUTS} were good");
}

#[test]
fn a_root_never_panics() {
    never_panics(1, &usual_root(7).to_bytes(), |content| Root::parse("7.root.json", content).is_ok());
}

#[test]
fn a_timestamp_never_panics() {
    let world = World::new();
    let mut timestamp = world.timestamp(1, 1);
    timestamp.revocations.push(plugin_revocation("a flaw"));
    never_panics(2, &timestamp.to_bytes(), |content| Timestamp::parse(content).is_ok());
}

#[test]
fn a_catalogue_never_panics() {
    never_panics(3, catalog(1).to_string().as_bytes(), |content| {
        Catalog::parse(content).is_ok_and(|catalog| {
            // What was let through is asked everything.
            let host = semver::Version::new(99, 0, 0);
            let answers = |plugin: &Plugin| {
                let newest = catalog.newest_installable(&plugin.id, &host, &["1.0"], &[]).is_some();
                let keys = catalog.signing_keys(&plugin.id, day(0), &[]).len();
                (newest, keys, catalog.lookalikes(&plugin.id, "").len())
            };
            let answers: Vec<_> = catalog.plugins.iter().map(answers).collect();
            answers.len() <= 1 && !catalog.to_bytes().is_empty()
        })
    });
}

#[test]
fn signatures_never_panic() {
    let content = signatures(Document::Root, b"content", &[1, 2]);
    never_panics(4, &content, |content| Signatures::parse(content).is_ok());
}

#[test]
fn a_manifest_never_panics() {
    let manifest = serde_json::json!({
        "schema": 1, "id": "acme-switch", "version": "1.0.0", "kind": "adapter", "api": "1.0", "name": "Switches",
        "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm", "min-host": "26.8.0",
        "files": [{ "path": "component.wasm", "size": 12, "sha256": "a".repeat(64) }],
        "limits": { "cpu-ms": 200 }, "pace": { "read-gap-ms": 5, "windows": [{ "calls": 2, "window-ms": 100 }] },
        "config-schema": { "type": "object", "properties": { "port": { "$ref": "#/$defs/port" } }, "$defs": { "port": { "type": "integer" } } },
        "auth": { "main": {
            "login": [{
                "request": { "method": "POST", "path": "/login", "effect": "session", "json": { "user": "{{secret.username}}" } },
                "expect": { "status": [200] }, "capture": [{ "as": "token", "from": { "json": "/token" } }]
            }],
            "apply": [{ "to": { "header": "X-Token" }, "value": "{{session.token}}" }], "ttl-s": 300
        } },
        "reads": [{ "method": "POST", "path": "/api/*/query", "json": { "/op": ["get"] } }]
    });
    never_panics(5, manifest.to_string().as_bytes(), |content| inspect(content).is_ok());
}

#[test]
fn an_archive_never_panics() {
    let files = BTreeMap::from([
        ("manifest.json".to_owned(), b"{}".to_vec()),
        ("component.wasm".to_owned(), (0..=255).cycle().take(600).collect()),
        ("assets/icon.svg".to_owned(), b"<svg/>".to_vec()),
    ]);
    never_panics(6, &write_archive(&files).unwrap(), |content| read_archive(content).is_ok());
}
