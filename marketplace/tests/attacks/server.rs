//! A server that follows a catalogue, and the files that it is served.

use chrono::{DateTime, TimeDelta};
use ed25519_dalek::SigningKey;
use heddle_marketplace::catalog::{
    Catalog, CatalogRef, Document, Failure, Next, Role, Roles, Root, RootKey, Signatures, State, Step,
    TIMESTAMP, Time, Timestamp, Update, Updated, catalog_name, signature_name,
};
use heddle_marketplace::key_id;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Keys are told by small numbers. Two of these three sign a root. 0 to 9 are free for the tables of cases.
pub(crate) const ROOT: [u8; 3] = [41, 42, 43];
pub(crate) const CATALOG_KEY: u8 = 50;
pub(crate) const TIMESTAMP_KEY: u8 = 60;
/// Bytes of a file of signatures.
pub(crate) const SIGNATURE_BYTES_MAX: u64 = 16 * 1024;

/// Keys of a role, and how many of them sign.
pub(crate) type Keys<'a> = (&'a [u8], usize);

pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

pub(crate) fn public(number: u8) -> [u8; 32] {
    key(number).verifying_key().to_bytes()
}

pub(crate) fn id(number: u8) -> String {
    key_id(&public(number))
}

/// The beginning of 2027, and so many days later.
pub(crate) fn day(days: i64) -> Time {
    DateTime::from_timestamp(1_798_761_600, 0).unwrap() + TimeDelta::days(days)
}

pub(crate) fn root(version: u64, of_root: Keys<'_>, of_catalog: Keys<'_>, of_timestamp: Keys<'_>) -> Root {
    let used: BTreeSet<u8> = [of_root.0, of_catalog.0, of_timestamp.0].concat().into_iter().collect();
    let role = |(keys, threshold): Keys<'_>| Role {
        keyids: keys.iter().map(|number| id(*number)).collect(),
        threshold,
    };
    let roles = Roles { root: role(of_root), catalog: role(of_catalog), timestamp: role(of_timestamp) };
    let listed = used.iter().map(|number| RootKey::of(&public(*number))).collect();
    Root::new(version, day(365), listed, roles)
}

pub(crate) fn usual_root(version: u64) -> Root {
    root(version, (&ROOT, 2), (&[CATALOG_KEY], 1), (&[TIMESTAMP_KEY], 1))
}

/// What a server of a catalogue has.
#[derive(Clone)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<u8>>);

impl Files {
    /// Root 1, catalogue 1 and timestamp 1, of the first day.
    pub(crate) fn new() -> Self {
        Self::under(&usual_root(1), &ROOT[..2])
    }

    /// The same with another root.
    pub(crate) fn under(root: &Root, signers: &[u8]) -> Self {
        let mut files = Self(BTreeMap::new());
        files.root(root, signers);
        files.publish(1, 1);
        files
    }

    pub(crate) fn put(&mut self, document: Document, name: &str, content: Vec<u8>, signers: &[u8]) {
        let mut signatures = Signatures::default();
        for number in signers {
            signatures.sign(document, &content, &key(*number)).unwrap();
        }
        self.0.insert(signature_name(name), signatures.to_bytes());
        self.0.insert(name.to_owned(), content);
    }

    pub(crate) fn root(&mut self, root: &Root, signers: &[u8]) {
        self.put(Document::Root, &root.name(), root.to_bytes(), signers);
    }

    pub(crate) fn catalog(&mut self, version: u64, signers: &[u8]) {
        let content = Catalog::empty(version, day(90)).to_bytes();
        self.put(Document::Catalog, &catalog_name(version), content, signers);
    }

    pub(crate) fn timestamp(&mut self, timestamp: &Timestamp, signers: &[u8]) {
        self.put(Document::Timestamp, TIMESTAMP, timestamp.to_bytes(), signers);
    }

    /// A timestamp of this day for a catalogue that is served.
    pub(crate) fn stamp(&self, version: u64, of_catalog: u64, days: i64) -> Timestamp {
        let content = &self.0[&catalog_name(of_catalog)];
        let length = u64::try_from(content.len()).unwrap();
        let sha256 = hex::encode(Sha256::digest(content));
        let catalog = CatalogRef { version: of_catalog, length, sha256 };
        Timestamp::new(version, day(days), day(days + 7), catalog, Vec::new())
    }

    /// Serves a catalogue and a timestamp of these versions, signed by the usual keys.
    pub(crate) fn publish(&mut self, of_catalog: u64, version: u64) {
        self.catalog(of_catalog, &[CATALOG_KEY]);
        self.timestamp(&self.stamp(version, of_catalog, 0), &[TIMESTAMP_KEY]);
    }
}

pub(crate) fn update(state: &State, now: Time, files: &Files) -> Result<Updated, Failure> {
    let mut update = Update::begin(state.clone(), now)?;
    while let Next::Fetch { name, .. } = update.next() {
        update = update.give(files.0.get(&name).cloned())?;
    }
    Ok(update.finish().unwrap())
}

/// What a server knows, and its time.
pub(crate) struct Server {
    pub(crate) state: State,
    pub(crate) now: Time,
}

impl Server {
    /// One that knows all of these files since the second day. It is the third day now.
    pub(crate) fn of(files: &Files) -> Self {
        let begun = State::with_root(&files.0["1.root.json"], day(0)).unwrap();
        Self { state: update(&begun, day(1), files).unwrap().state, now: day(2) }
    }

    /// What is known after an update, which must end well.
    #[track_caller]
    pub(crate) fn accepts(&self, what: &str, files: &Files) -> State {
        match update(&self.state, self.now, files) {
            Ok(updated) => updated.state,
            Err(failure) => panic!("{what}: {failure}"),
        }
    }

    /// The update is refused at this step with these words. Returns what is stored then: the old state, at most under a newer
    /// root, and behind an accepted timestamp with that and what it revokes. With the good files an update goes on from it.
    #[track_caller]
    pub(crate) fn refuses(&self, what: &str, bad: &Files, good: &Files, step: Step, words: &str) -> State {
        let failure = update(&self.state, self.now, bad).expect_err(what);
        let shown = failure.to_string();
        assert_eq!(failure.step, step, "{what}: {shown}");
        assert!(shown.contains(&format!("step '{step}'")), "{what}: {shown}");
        assert!(shown.contains(words), "{what}: expected {words}, got {shown}");
        let left = failure.kept.map_or_else(|| self.state.clone(), |kept| *kept);
        let of_old = |state: &State| {
            let mut value = serde_json::to_value(state).unwrap();
            value["trust"] = Value::Null;
            if step == Step::Catalog {
                (value["timestamp"], value["revocations"]) = (Value::Null, Value::Null);
                value["catalog"]["current_until"] = Value::Null;
            }
            value
        };
        assert_eq!(of_old(&left), of_old(&self.state), "{what}");
        if let Err(failure) = update(&left, self.now, good) {
            panic!("{what}: with good files: {failure}");
        }
        left
    }
}
