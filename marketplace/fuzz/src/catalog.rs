//! The files of a catalogue, in up to three updates of one server.
//!
//! An input is a byte of options, and then texts with zero bytes between them: of each update the next root, the timestamp,
//! the catalogue and a signature file. Without a signature file, each file is signed by the keys that the known root and the
//! next one name for it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta};
use ed25519_dalek::{Signer as _, SigningKey};
use heddle_marketplace::catalog::{
    CATALOG, Catalog, Document, Failure, Next, Role, Roles, Root, RootKey, Signatures, State, Subject,
    TIMESTAMP, Time, Timestamp, Update, Updated, gravest, pinned_key, root_name, signs_plainly,
};
use heddle_marketplace::{SUPPORTED_API, key_id};
use semver::Version;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bounded;

/// The timestamp of each update is made to name the catalogue.
pub(crate) const NAMED: u8 = 1;
/// The catalogue is there as `catalog.json` alone.
pub(crate) const UNVERSIONED: u8 = 1 << 1;
/// One key is pinned; it signs the bare bytes.
pub(crate) const PINNED: u8 = 1 << 2;
/// Nothing has to be signed.
pub(crate) const UNSIGNED: u8 = 1 << 3;
/// Each text is parsed as each of the files, and there is no update.
pub(crate) const PARSED: u8 = 1 << 4;

/// Texts of one update.
const TEXTS: usize = 4;
const UPDATES_MAX: usize = 3;
/// Files that one update can ask for, and some more.
const FETCHES_MAX: usize = 32;
/// Keys that sign.
const KEYS: u8 = 5;

/// Carries out the updates of an input.
pub fn check(input: &[u8]) {
    let Some((options, rest)) = input.split_first() else { return };
    let texts: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    if options & PARSED != 0 {
        return texts.into_iter().take(TEXTS * UPDATES_MAX).for_each(parse);
    }
    let mut state = beginning(*options);
    for (number, texts) in texts.chunks(TEXTS).take(UPDATES_MAX).enumerate() {
        let served = Served::of(*options, &state, texts);
        let now = begins() + TimeDelta::days(i64::try_from(number).unwrap_or_default());
        state = update(state, &served, now);
    }
}

/// The moment of the first update.
pub(crate) fn begins() -> Time {
    DateTime::from_timestamp(1_800_000_000, 0).expect("it is a moment")
}

/// The keys that sign here: of the first root, of the catalogue, of the timestamp, and two that replace others.
fn keys() -> &'static [SigningKey] {
    static ALL: LazyLock<Vec<SigningKey>> =
        LazyLock::new(|| (0..KEYS).map(|n| SigningKey::from_bytes(&[10 + n; 32])).collect());
    &ALL
}

/// A root of all keys: those with these numbers sign the next root, the catalogue and the timestamp.
pub(crate) fn root(version: u64, [root, catalog, timestamp]: [&[usize]; 3]) -> Root {
    let entries = keys().iter().map(|key| RootKey::of(key.verifying_key().as_bytes()));
    let role = |numbers: &[usize]| Role {
        keyids: numbers.iter().map(|n| key_id(keys()[*n].verifying_key().as_bytes())).collect(),
        threshold: 1,
    };
    let roles = Roles { root: role(root), catalog: role(catalog), timestamp: role(timestamp) };
    Root::new(version, begins() + TimeDelta::days(365), entries.collect(), roles)
}

/// What the server knows before the first update.
fn beginning(options: u8) -> State {
    static FIRST: LazyLock<Vec<u8>> = LazyLock::new(|| root(1, [&[0], &[1], &[2]]).to_bytes());
    if options & PINNED != 0 {
        State::with_pinned_key(keys()[1].verifying_key().as_bytes(), begins())
    } else if options & UNSIGNED != 0 {
        State::unsigned(begins())
    } else {
        State::with_root(&FIRST, begins()).expect("it is a root")
    }
}

/// What is served for one update.
struct Served<'a> {
    options: u8,
    /// The name under which the root is there: that of the first one that is asked for.
    root_name: String,
    root: &'a [u8],
    timestamp: Vec<u8>,
    catalog: &'a [u8],
    signature: &'a [u8],
    /// The known root and the next one, as far as they are JSON.
    roots: [Value; 2],
}

impl<'a> Served<'a> {
    fn of(options: u8, state: &State, texts: &[&'a [u8]]) -> Self {
        let text = |at: usize| texts.get(at).copied().unwrap_or_default();
        let (root, timestamp, catalog) = (text(0), text(1), text(2));
        let timestamp = if options & NAMED == 0 { timestamp.to_vec() } else { naming(timestamp, catalog) };
        let known = state.root().unwrap_or_default().as_bytes();
        let roots: [Value; 2] = [known, root].map(|text| serde_json::from_slice(text).unwrap_or_default());
        let root_name = root_name(roots[0]["version"].as_u64().unwrap_or_default() + 1);
        Self { options, root_name, root, timestamp, catalog, signature: text(3), roots }
    }

    /// The file of this name; an empty text is none.
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        if let Some(signed) = name.strip_suffix(".sig") {
            return Some(self.signature_of(signed));
        }
        let content = self.content(name);
        (!content.is_empty()).then(|| content.to_vec())
    }

    fn content(&self, name: &str) -> &[u8] {
        match name {
            TIMESTAMP => &self.timestamp,
            CATALOG => self.catalog,
            _ if name == self.root_name => self.root,
            _ if name.ends_with(".catalog.json") && self.options & UNVERSIONED == 0 => self.catalog,
            _ => &[],
        }
    }

    fn signature_of(&self, name: &str) -> Vec<u8> {
        if !self.signature.is_empty() {
            return self.signature.to_vec();
        }
        let content = self.content(name);
        if self.options & PINNED != 0 {
            return hex::encode(keys()[1].sign(content).to_bytes()).into_bytes();
        }
        let (document, role) = match name {
            TIMESTAMP => (Document::Timestamp, "timestamp"),
            _ if name == self.root_name => (Document::Root, "root"),
            _ => (Document::Catalog, "catalog"),
        };
        let mut signatures = Signatures::default();
        for key in keys() {
            let id = key_id(key.verifying_key().as_bytes());
            let names = |root: &Value| {
                let ids = root["roles"][role]["keyids"].as_array();
                ids.is_some_and(|ids| ids.iter().any(|one| *one == id.as_str()))
            };
            if self.roots.iter().any(names) {
                signatures.sign(document, content, key).expect("there is room for all keys");
            }
        }
        signatures.to_bytes()
    }
}

/// The timestamp with the version, the length and the hash of this catalogue, where it is an object.
fn naming(timestamp: &[u8], catalog: &[u8]) -> Vec<u8> {
    let Ok(Value::Object(mut named)) = serde_json::from_slice(timestamp) else { return timestamp.to_vec() };
    let parsed: Value = serde_json::from_slice(catalog).unwrap_or_default();
    let sha256 = hex::encode(Sha256::digest(catalog));
    named.insert(
        "catalog".to_owned(),
        json!({ "version": parsed["version"], "length": catalog.len(), "sha256": sha256 }),
    );
    Value::Object(named).to_string().into_bytes()
}

/// Carries out one update, and returns the state after it.
fn update(state: State, served: &Served<'_>, now: Time) -> State {
    let run = || -> Result<Option<Updated>, Failure> {
        let mut update = Update::begin(state.clone(), now)?;
        for _ in 0..FETCHES_MAX {
            let Next::Fetch { name, .. } = update.next() else { break };
            update = update.give(served.get(&name))?;
        }
        Ok(update.finish())
    };
    match bounded(run) {
        Ok(Some(updated)) => {
            judge(&state, &updated, now);
            updated.state
        }
        Ok(None) => panic!("an update asks for more than {FETCHES_MAX} files"),
        Err(failure) => {
            assert!(!failure.to_string().is_empty());
            let Some(kept) = failure.kept else { return state };
            judge_kept(&state, &kept, now);
            *kept
        }
    }
}

/// Asserts what has to be true of what is kept of an update that failed.
fn judge_kept(old: &State, kept: &State, now: Time) {
    assert!(kept.root_version() >= old.root_version(), "a failure goes back to an older root");
    assert_eq!(kept.catalog_sha256(), old.catalog_sha256(), "a failure takes a catalogue");
    assert_eq!(kept.good_at(), old.good_at(), "a failure counts as a good update");
    // What replaced keys have signed is forgotten.
    if kept.root() == old.root() && old.may_install(now).is_ok() {
        assert!(
            kept.timestamp_version() >= old.timestamp_version(),
            "a failure goes back to an older timestamp"
        );
        let stays = |known: &_| kept.revocations().iter().any(|one| one.is_same(known));
        assert!(old.revocations().iter().all(stays), "a failure loses a revocation");
    }
}

/// Asserts what has to be true of an update that was believed.
fn judge(old: &State, updated: &Updated, now: Time) {
    let state = &updated.state;
    let text = serde_json::to_vec(state).expect("it has text keys only");
    assert_eq!(*state, serde_json::from_slice(&text).expect("it was just written"));
    assert_eq!(state.may_install(now), Ok(()), "what was just believed is not fit");
    assert!(!state.is_warning_due(now));
    if state.root() == old.root() {
        assert!(
            state.timestamp_version() >= old.timestamp_version(),
            "an update goes back to an older timestamp"
        );
        assert!(
            state.catalog_version() >= old.catalog_version(),
            "an update goes back to an older catalogue"
        );
        let stays = |known: &_| state.revocations().iter().any(|one| one.is_same(known));
        assert!(old.revocations().iter().all(stays), "a revocation is lost");
    } else {
        assert!(state.root_version() > old.root_version(), "an update goes back to an older root");
    }
    if let Some(fetched) = &updated.catalog {
        let opened = state.open_catalog(&fetched.bytes).expect("what was believed is opened again");
        assert_eq!(opened.to_bytes(), fetched.catalog.to_bytes());
        ask(&fetched.catalog, state, now);
    }
}

/// Asks a catalogue what a server asks.
fn ask(catalog: &Catalog, state: &State, now: Time) {
    let host = Version::new(1, 2, 0);
    for plugin in &catalog.plugins {
        for key in catalog.signing_keys(&plugin.id, now, state.revocations()) {
            assert!(key.may_sign(&plugin.id) && key.publisher == plugin.publisher);
        }
        assert!(catalog.publisher(&plugin.publisher).is_some(), "a plugin is by nobody");
        let others = catalog.lookalikes(&plugin.id, &plugin.publisher);
        assert!(others.iter().all(|other| other.publisher != plugin.publisher));
        let revocations = state.revocations();
        if let Some(newest) = catalog.newest_installable(&plugin.id, &host, SUPPORTED_API, revocations) {
            assert!(!newest.yanked && newest.misfit(&host, SUPPORTED_API).is_none());
            assert!(plugin.revoked(newest, revocations).is_none());
        }
        for version in &plugin.versions {
            let found = plugin.version(&version.version).expect("it is listed");
            assert_eq!(found.package, version.package);
            let items = version.asks_for().map(|asked| asked.items(|_| false)).unwrap_or_default();
            assert!(items.iter().all(|item| !item.text.is_empty()));
            let subject = Subject {
                plugin: &plugin.id,
                version: &version.version,
                package_sha256: Some(&version.package.sha256),
                manifest_sha256: None,
                component_sha256: None,
                key_ids: &version.signed_by,
            };
            assert_eq!(gravest(revocations, &subject), state.revoked(&subject));
        }
    }
}

/// Parses a text as each of the files. What is parsed is the same once it is written again.
fn parse(text: &[u8]) {
    let name = "the root";
    if let Ok(root) = bounded(|| Root::parse(name, text)) {
        assert_eq!(root, Root::parse(name, &root.to_bytes()).expect("it was just written"));
        for document in [Document::Root, Document::Catalog, Document::Timestamp] {
            let keys: BTreeSet<[u8; 32]> = root.keys_of(document).into_iter().collect();
            assert!(keys.len() >= root.role(document).threshold, "no signatures could be enough");
        }
    }
    if let Ok(timestamp) = bounded(|| Timestamp::parse(text)) {
        assert_eq!(timestamp, Timestamp::parse(&timestamp.to_bytes()).expect("it was just written"));
    }
    if let Ok(catalog) = bounded(|| Catalog::parse(text)) {
        let written = catalog.to_bytes();
        assert_eq!(written, Catalog::parse(&written).expect("it was just written").to_bytes());
        let listed = catalog.publishers.iter().flat_map(|publisher| &publisher.keys);
        for key in listed {
            pinned_key(&key.public).expect("a key of a catalogue is sound");
        }
    }
    if let Ok(signatures) = bounded(|| Signatures::parse(text)) {
        let written = Signatures::parse(&signatures.to_bytes()).expect("it was just written");
        assert_eq!(signatures.to_bytes(), written.to_bytes());
        let all: Vec<[u8; 32]> = keys().iter().map(|key| key.verifying_key().to_bytes()).collect();
        let mut kept = signatures.clone();
        kept.retain(Document::Catalog, b"{}", &all);
        assert!(kept.is_empty() || !signatures.signers(Document::Catalog, b"{}", &all).is_empty());
    }
    assert!(!signs_plainly(keys()[0].verifying_key().as_bytes(), b"{}", text), "a signature was guessed");
}

/// The input of a target that has these texts.
pub(crate) fn input(options: u8, texts: &[&[u8]]) -> Vec<u8> {
    [&[options][..], &texts.join(&0)].concat()
}
