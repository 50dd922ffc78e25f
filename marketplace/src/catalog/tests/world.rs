//! A server of a catalogue: its files and its keys. Keys are told by small numbers; 1, 2 and 3 are of the root, two of which
//! sign; 10 is of the catalogue and 20 of the timestamp.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use ed25519_dalek::SigningKey;
use serde_json::{Value, json};

use super::super::*;
use crate::verify::{length, sha256};

pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

pub(super) fn public(number: u8) -> [u8; 32] {
    key(number).verifying_key().to_bytes()
}

pub(super) fn key_id(number: u8) -> String {
    crate::key_id(&public(number))
}

/// The beginning of 2027, and so many days later.
pub(super) fn day(days: i64) -> Time {
    DateTime::from_timestamp(1_798_761_600, 0).unwrap() + TimeDelta::days(days)
}

pub(super) fn role(keys: &[u8], threshold: usize) -> Role {
    Role { keyids: keys.iter().map(|number| key_id(*number)).collect(), threshold }
}

/// A root of the first day of these keys, each in its role.
pub(super) fn root(version: u64, of_root: Role, of_catalog: Role, of_timestamp: Role) -> Root {
    let used = [&of_root, &of_catalog, &of_timestamp].map(|role| role.keyids.clone()).concat();
    let keys =
        (1..=40).filter(|number| used.contains(&key_id(*number))).map(|number| RootKey::of(&public(number)));
    let roles = Roles { root: of_root, catalog: of_catalog, timestamp: of_timestamp };
    Root::new(version, day(365), keys.collect(), roles)
}

/// The root of the usual keys.
pub(super) fn usual_root(version: u64) -> Root {
    root(version, role(&[1, 2, 3], 2), role(&[10], 1), role(&[20], 1))
}

pub(super) fn signatures(document: Document, content: &[u8], keys: &[u8]) -> Vec<u8> {
    let mut signatures = Signatures::default();
    for number in keys {
        signatures.sign(document, content, &key(*number)).unwrap();
    }
    signatures.to_bytes()
}

/// A catalogue of one publisher and one plugin with two versions.
pub(super) fn catalog(version: u64) -> Value {
    let release = |version: &str, fill: &str| {
        json!({
            "version": version,
            "package": { "url": format!("packages/{}.zip", fill.repeat(64)), "length": 1_000, "sha256": fill.repeat(64) },
            "manifest-sha256": "e".repeat(64), "component-sha256": "f".repeat(64),
            "api": "1.0", "min-host": "26.8.0", "released": "2026-12-01T00:00:00Z", "yanked": false,
            "signed-by": [key_id(30)], "capabilities": { "secrets": true }, "permissions": [],
        })
    };
    json!({
        "type": "catalog", "version": version, "expires": time_to_text(&day(90)),
        "publishers": [{
            "id": "acme", "name": "ACME", "ids": ["acme-*"],
            "keys": [{
                "keyid": key_id(30), "public": hex::encode(public(30)),
                "not-before": "2026-01-01T00:00:00Z", "not-after": "2028-01-01T00:00:00Z",
            }],
        }],
        "plugins": [{
            "id": "acme-switch", "publisher": "acme", "kind": "adapter", "name": "Switches", "summary": "ACME switches",
            "description": "All of them.\nAnd more.", "categories": ["switching"], "license": "Apache-2.0",
            "homepage": "https://acme.example/", "icon": format!("icons/{}.svg", "a".repeat(64)),
            "versions": [release("1.0.0", "b"), release("1.1.0", "c")],
        }],
    })
}

pub(super) fn plugin_revocation(reason: &str) -> Revocation {
    Revocation {
        kind: RevokedKind::Plugin,
        value: "acme-switch".to_owned(),
        versions: Some("<1.1.0".parse().unwrap()),
        action: Action::Block,
        reason: reason.to_owned(),
    }
}

pub(super) struct World {
    pub(super) files: Files,
    /// The names that were asked for in the last update.
    pub(super) asked: Vec<String>,
}

impl World {
    /// Root 1, catalogue 1 and timestamp 1, of the first day.
    pub(super) fn new() -> Self {
        let mut world = Self { files: Files::new(), asked: Vec::new() };
        world.put_root(&usual_root(1), &[1, 2]);
        world.publish(1, 1);
        world
    }

    pub(super) fn put(&mut self, name: &str, content: Vec<u8>, signatures: Vec<u8>) {
        self.files.insert(name.to_owned(), content);
        self.files.insert(signature_name(name), signatures);
    }

    pub(super) fn put_root(&mut self, root: &Root, keys: &[u8]) {
        let content = root.to_bytes();
        let signatures = signatures(Document::Root, &content, keys);
        self.put(&root.name(), content, signatures);
    }

    pub(super) fn put_catalog(&mut self, version: u64, content: Vec<u8>, keys: &[u8]) {
        let signatures = signatures(Document::Catalog, &content, keys);
        self.put(&catalog_name(version), content, signatures);
    }

    pub(super) fn put_timestamp(&mut self, timestamp: &Timestamp, keys: &[u8]) {
        let content = timestamp.to_bytes();
        let signatures = signatures(Document::Timestamp, &content, keys);
        self.put(TIMESTAMP, content, signatures);
    }

    /// The timestamp for a catalogue that is served.
    pub(super) fn timestamp(&self, version: u64, of_catalog: u64) -> Timestamp {
        let content = &self.files[&catalog_name(of_catalog)];
        let catalog = CatalogRef { version: of_catalog, length: length(content), sha256: sha256(content) };
        Timestamp::new(version, day(0), day(7), catalog, Vec::new())
    }

    /// Serves a catalogue and a timestamp of these versions, signed by the usual keys.
    pub(super) fn publish(&mut self, of_catalog: u64, of_timestamp: u64) {
        self.put_catalog(of_catalog, catalog(of_catalog).to_string().into_bytes(), &[10]);
        self.put_timestamp(&self.timestamp(of_timestamp, of_catalog), &[20]);
    }

    /// The state of a server that begins with root 1.
    pub(super) fn beginning(&self) -> State {
        State::with_root(&self.files["1.root.json"], day(0)).unwrap()
    }

    /// The state after a first update.
    pub(super) fn known(&mut self) -> State {
        let state = self.beginning();
        self.update(&state, day(1)).unwrap().state
    }

    /// Carries out an update against the files.
    pub(super) fn update(&mut self, state: &State, now: Time) -> Result<Updated, Failure> {
        self.asked.clear();
        let mut update = Update::begin(state.clone(), now)?;
        while let Next::Fetch { name, .. } = update.next() {
            let content = self.files.get(&name).cloned();
            self.asked.push(name);
            update = update.give(content)?;
        }
        Ok(update.finish().expect("nothing is awaited"))
    }

    /// The update fails at this step for this reason. The old state stays, under a newer root where one was proven; behind a
    /// timestamp that was accepted, with that timestamp and what it revokes.
    #[track_caller]
    pub(super) fn refuses(&mut self, state: &State, now: Time, step: Step, reason: &str) -> Failure {
        let failure = self.update(state, now).expect_err(reason);
        let shown = format!("{:?}", failure.refusal);
        assert_eq!(failure.step, step, "{shown}");
        assert!(shown.starts_with(reason), "expected {reason}, got {shown}");
        assert!(failure.to_string().contains(&format!("step '{step}'")), "{failure}");
        if let Some(kept) = &failure.kept {
            assert!(kept.root_version() >= state.root_version());
            let mut kept = State { trust: state.trust.clone(), ..(**kept).clone() };
            if step == Step::Catalog {
                kept.timestamp.clone_from(&state.timestamp);
                kept.revocations.clone_from(&state.revocations);
                if let (Some(kept), Some(known)) = (&mut kept.catalog, &state.catalog) {
                    kept.current_until = known.current_until;
                }
            }
            assert_eq!(kept, *state);
        }
        failure
    }
}
