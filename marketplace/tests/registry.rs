//! A registry from its first root to a rotation, as the tool makes it and a server reads it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends with the place where")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use heddle_marketplace::catalog::{Catalog, Failure, Next, State, Step, Time, Update, Updated};
use heddle_marketplace::{PublisherKey, key_id, pack, write_archive};
use serde_json::json;
use tempfile::TempDir;

struct Registry {
    folder: TempDir,
}

impl Registry {
    /// Keys of all roles, a publisher's key, and two packages.
    fn new() -> Self {
        let registry = Self { folder: tempfile::tempdir().unwrap() };
        for name in
            ["root-1", "root-2", "root-3", "root-4", "catalog", "catalog-2", "timestamp", "timestamp-2"]
        {
            let said = does(&["keygen", "--name", name, "--out", &registry.key(name)]);
            assert!(said.contains(&registry.public(name)), "{said}");
        }
        let publisher = PublisherKey::generate("acme").unwrap();
        publisher.save(&registry.path("acme.key")).unwrap();
        for version in ["1.0.0", "1.1.0"] {
            std::fs::write(registry.path(&format!("{version}.zip")), package(&publisher, version)).unwrap();
        }
        registry
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of the registry.
    fn home(&self) -> String {
        self.path("registry").to_string_lossy().into_owned()
    }

    fn key(&self, name: &str) -> String {
        self.path(&format!("{name}.key")).to_string_lossy().into_owned()
    }

    fn public(&self, name: &str) -> String {
        let key = PublisherKey::load(&self.path(&format!("{name}.key"))).unwrap();
        hex::encode(key.trusted().key)
    }

    fn id(&self, name: &str) -> String {
        key_id(&PublisherKey::load(&self.path(&format!("{name}.key"))).unwrap().trusted().key)
    }

    fn init(&self) {
        let home = self.home();
        let publics = ["root-1", "root-2", "root-3", "catalog"].map(|name| self.public(name));
        let said = does(&[
            "init",
            &home,
            "--root-key",
            &publics[0],
            "--root-key",
            &publics[1],
            "--root-key",
            &publics[2],
            "--root-threshold",
            "2",
            "--catalog-key",
            &publics[3],
            "--timestamp-key",
            &self.key("timestamp"),
            "--key",
            &self.key("root-1"),
        ]);
        assert!(
            said.contains("1.root.json has 1 of 2 signatures") && said.contains("waits for signatures"),
            "{said}"
        );
        does(&["sign", &home, "--key", &self.key("root-2")]);
        does(&["publisher", &home, "--id", "acme", "--name", "ACME", "--key", &self.key("acme")]);
    }

    #[track_caller]
    fn publish(&self) -> String {
        does(&[
            "publish",
            &self.home(),
            "--catalog-key",
            &self.key("catalog"),
            "--timestamp-key",
            &self.key("timestamp"),
        ])
    }

    fn served(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path("registry/public").join(name)).ok()
    }

    /// The state of a server that was given the first root.
    fn beginning(&self) -> State {
        State::with_root(&self.served("1.root.json").unwrap(), now()).unwrap()
    }

    fn update(&self, state: &State) -> Result<Updated, Failure> {
        update(state, |name| self.served(name))
    }
}

fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_heddle-marketplace")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// Carries out a command and returns what it said.
#[track_caller]
fn does(arguments: &[&str]) -> String {
    let (is_done, said) = run(arguments);
    assert!(is_done, "{arguments:?}: {said}");
    said
}

#[track_caller]
fn refuses(arguments: &[&str], words: &str) {
    let (is_done, said) = run(arguments);
    assert!(!is_done && said.contains(words), "{arguments:?}: expected {words}, got {said}");
}

fn update(state: &State, fetch: impl Fn(&str) -> Option<Vec<u8>>) -> Result<Updated, Failure> {
    let mut update = Update::begin(state.clone(), now())?;
    while let Next::Fetch { name, .. } = update.next() {
        update = update.give(fetch(&name))?;
    }
    Ok(update.finish().unwrap())
}

fn now() -> Time {
    #[expect(clippy::disallowed_methods, reason = "the tool under test takes the time of the system, too")]
    chrono::Utc::now()
}

fn package(key: &PublisherKey, version: &str) -> Vec<u8> {
    let manifest = json!({
        "schema": 1, "id": "acme-switch", "version": version, "kind": "adapter", "api": "1.0", "name": "ACME switches",
        "license": "Apache-2.0", "min-host": "26.8.0", "component": "component.wasm",
    });
    let files = BTreeMap::from([
        ("component.wasm".to_owned(), [&b"\0asm\x0d\0\x01\0"[..], version.as_bytes()].concat()),
        ("assets/icon.svg".to_owned(), b"<svg/>".to_vec()),
        ("description.json".to_owned(), br#"{"areas": [{"id": "vlan", "title": "VLANs"}]}"#.to_vec()),
    ]);
    write_archive(&pack(manifest.to_string().as_bytes(), files, key).unwrap()).unwrap()
}

fn newest(catalog: &Catalog) -> Option<String> {
    let host = semver::Version::new(26, 8, 0);
    catalog.newest_installable("acme-switch", &host, &["1.0"], &[]).map(|version| version.version.to_string())
}

#[test]
fn a_registry_is_made_filled_changed_and_read_by_a_server() {
    let registry = Registry::new();
    let home = registry.home();
    registry.init();
    let first = registry.path("1.0.0.zip").to_string_lossy().into_owned();
    refuses(&["add", &home, &first], "'--summary' says what a new plugin is");
    does(&["add", &home, &first, "--summary", "ACME switches", "--category", "switching"]);
    refuses(&["add", &home, &first], "version 1.0.0 of 'acme-switch' is listed");
    registry.publish();
    let said = does(&["verify", &home]);
    assert!(said.contains("acme-switch 1.0.0") && said.contains("a server accepts this catalogue"), "{said}");

    let updated = registry.update(&registry.beginning()).unwrap();
    let (state, catalog) = (updated.state, updated.catalog.unwrap().catalog);
    let plugin = catalog.plugin("acme-switch").unwrap();
    let version = &plugin.versions[0];
    assert_eq!(registry.served(&version.package.url).unwrap(), std::fs::read(&first).unwrap());
    assert_eq!(registry.served(plugin.icon.as_deref().unwrap()).unwrap(), b"<svg/>");
    assert_eq!(version.signed_by, [registry.id("acme")]);
    let trusted = catalog.signing_keys("acme-switch", now(), &[]);
    heddle_marketplace::Verified::open_archive(&std::fs::read(&first).unwrap(), &trusted).unwrap();

    does(&["add", &home, &registry.path("1.1.0.zip").to_string_lossy()]);
    registry.publish();
    let updated = registry.update(&state).unwrap();
    let (state, catalog) = (updated.state, updated.catalog.unwrap().catalog);
    assert_eq!((newest(&catalog).as_deref(), state.catalog_version()), (Some("1.1.0"), Some(2)));
    does(&["yank", &home, "acme-switch", "1.1.0"]);
    registry.publish();
    assert!(does(&["verify", &home]).contains("acme-switch 1.1.0, yanked"));
    let updated = registry.update(&state).unwrap();
    let (state, catalog) = (updated.state, updated.catalog.unwrap().catalog);
    assert_eq!(newest(&catalog).as_deref(), Some("1.0.0"));

    does(&[
        "revoke",
        &home,
        "--kind",
        "plugin",
        "--value",
        "acme-switch",
        "--versions",
        "<1.0.1",
        "--action",
        "disable",
        "--reason",
        "a flaw in its login",
    ]);
    does(&["timestamp", &home, "--key", &registry.key("timestamp")]);
    assert!(does(&["verify", &home]).contains("acme-switch 1.0.0, revoked: a flaw in its login"));
    let updated = registry.update(&state).unwrap();
    assert!(updated.catalog.is_none(), "the catalogue is the known one");
    assert_eq!(updated.state.revocations().len(), 1);
    std::fs::write(registry.path("registry/draft/revocations.json"), b"[]").unwrap();
    refuses(
        &["timestamp", &home, "--key", &registry.key("timestamp")],
        "lacks the published revocation of the plugin",
    );
    let known = serde_json::to_vec(updated.state.revocations()).unwrap();
    std::fs::write(registry.path("registry/draft/revocations.json"), known).unwrap();
    rotates(&registry, &updated.state);
}

/// The key of the timestamp and one of the root are replaced, while servers go on.
fn rotates(registry: &Registry, state: &State) {
    let home = registry.home();
    does(&[
        "rotate",
        &home,
        "--role",
        "timestamp",
        "--remove",
        &registry.id("timestamp"),
        "--add",
        &registry.public("timestamp-2"),
    ]);
    // Both keys sign, so that the timestamp is good before and after the root.
    does(&["timestamp", &home, "--key", &registry.key("timestamp"), "--key", &registry.key("timestamp-2")]);
    registry.update(state).unwrap();
    // Offline, on a copy of the prepared root.
    let copy = registry.path("offline.json");
    std::fs::copy(registry.path("registry/draft/root.json"), &copy).unwrap();
    let said = does(&["sign", &copy.to_string_lossy()]);
    assert!(said.contains("nothing was signed") && !registry.path("offline.json.sig").exists(), "{said}");
    let said = does(&["sign", &copy.to_string_lossy(), "--key", &registry.key("root-3")]);
    assert!(said.contains("root: 2 of these 3 keys") && said.contains(&registry.id("timestamp-2")), "{said}");
    assert!(!said.contains(&registry.id("timestamp")), "it says what will be trusted: {said}");
    std::fs::copy(registry.path("offline.json.sig"), registry.path("registry/draft/root.json.sig")).unwrap();
    let said = does(&["sign", &home, "--key", &registry.key("root-1")]);
    assert!(said.contains("2.root.json is published"), "{said}");
    let state = registry.update(state).unwrap().state;
    assert_eq!(state.root_version(), Some(2));
    refuses(
        &["timestamp", &home, "--key", &registry.key("timestamp")],
        "'timestamp' is no key for the timestamp",
    );
    does(&["timestamp", &home, "--key", &registry.key("timestamp-2")]);

    let root_4 = registry.public("root-4");
    does(&["rotate", &home, "--role", "root", "--remove", &registry.id("root-1"), "--add", &root_4]);
    let said = does(&["sign", &home, "--key", &registry.key("root-1"), "--key", &registry.key("root-4")]);
    assert!(said.contains("3.root.json has 1 of 2 signatures by the keys of 2.root.json"), "{said}");
    refuses(&["sign", &home, "--key", &registry.key("catalog")], "is no key of the role 'root'");
    does(&["sign", &home, "--key", &registry.key("root-2")]);
    let said = does(&["verify", &home]);
    assert!(said.contains("root 3") && said.contains("a server accepts this catalogue"), "{said}");
    // A mirror is what is served, and nothing else.
    does(&["verify", &registry.path("registry/public").to_string_lossy()]);
    let state = registry.update(&state).unwrap().state;
    assert_eq!(state.root_version(), Some(3));

    // A timestamp for a catalogue that no server takes any more is not made.
    let catalog_2 = registry.public("catalog-2");
    does(&["rotate", &home, "--role", "catalog", "--remove", &registry.id("catalog"), "--add", &catalog_2]);
    does(&["sign", &home, "--key", &registry.key("root-2"), "--key", &registry.key("root-3")]);
    refuses(
        &["timestamp", &home, "--key", &registry.key("timestamp-2")],
        "servers would refuse the published catalogue; 'publish' signs it anew",
    );
    let (catalog, timestamp) = (registry.key("catalog-2"), registry.key("timestamp-2"));
    does(&["publish", &home, "--catalog-key", &catalog, "--timestamp-key", &timestamp]);
    assert_eq!(registry.update(&state).unwrap().state.root_version(), Some(4));
}

#[test]
fn what_was_changed_behind_the_tool_is_found() {
    let registry = Registry::new();
    let home = registry.home();
    registry.init();
    let first = registry.path("1.0.0.zip").to_string_lossy().into_owned();
    does(&["add", &home, &first, "--summary", "ACME switches"]);
    registry.publish();
    let public = registry.path("registry/public");
    let package = std::fs::read_dir(public.join("packages")).unwrap().next().unwrap().unwrap().path();
    let icon = std::fs::read_dir(public.join("icons")).unwrap().next().unwrap().unwrap().path();
    let changed = |path: &Path, words: &str| {
        let good = std::fs::read(path).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        std::fs::write(path, bad).unwrap();
        refuses(&["verify", &home], words);
        std::fs::write(path, good).unwrap();
    };
    changed(&package, "is not the package that the catalogue names");
    changed(&icon, "is not the icon of 'acme-switch'");
    changed(&public.join("timestamp.json"), "step 'timestamp'");
    changed(&public.join("1.catalog.json"), "step 'catalog'");
    does(&["verify", &home]);
    refuses(
        &[
            "init",
            &home,
            "--root-key",
            &registry.public("root-1"),
            "--catalog-key",
            &registry.public("catalog"),
            "--timestamp-key",
            &registry.public("timestamp"),
        ],
        "is a registry already",
    );
    refuses(&["verify", &registry.path("").to_string_lossy()], "is missing");
}

#[test]
fn packages_of_others_are_not_added() {
    let registry = Registry::new();
    let home = registry.home();
    registry.init();
    let other = PublisherKey::generate("acme").unwrap();
    let path = registry.path("other.zip");
    std::fs::write(&path, package(&other, "2.0.0")).unwrap();
    let path = path.to_string_lossy();
    refuses(&["add", &home, &path, "--summary", "Switches"], "no signature is by a trusted key");
    does(&["publisher", &home, "--id", "acme", "--retire", &registry.id("acme")]);
    let first = registry.path("1.0.0.zip");
    refuses(
        &["add", &home, &first.to_string_lossy(), "--summary", "Switches"],
        "no publisher has a valid key",
    );
    std::fs::write(registry.path("broken.zip"), b"PK").unwrap();
    refuses(&["add", &home, &registry.path("broken.zip").to_string_lossy()], "the archive is not accepted");
}

#[test]
fn two_commands_do_not_change_a_registry_at_once() {
    let registry = Registry::new();
    registry.init();
    let lock = std::fs::File::open(registry.path("registry/draft/.lock")).unwrap();
    lock.lock().unwrap();
    let home = registry.home();
    refuses(&["yank", &home, "acme-switch", "1.0.0"], "another command changes this registry");
    // A program that another test starts at this moment has the same open file until it runs: closing it here
    // would not end the lock.
    lock.unlock().unwrap();
    refuses(&["yank", &home, "acme-switch", "1.0.0"], "'acme-switch' is not listed");
    refuses(&["yank", &registry.key("acme"), "acme-switch", "1.0.0"], "is no registry");
}

/// A server that reads in the middle of a publication: each file comes from before or after any of its writes.
#[test]
fn a_reader_between_two_writes_of_a_publication_finds_a_whole_catalogue() {
    let registry = Registry::new();
    let home = registry.home();
    registry.init();
    does(&["add", &home, &registry.path("1.0.0.zip").to_string_lossy(), "--summary", "ACME switches"]);
    registry.publish();
    let before = snapshot(&registry.path("registry/public"));
    let state = registry.update(&registry.beginning()).unwrap().state;
    does(&["add", &home, &registry.path("1.1.0.zip").to_string_lossy()]);
    registry.publish();
    let after = snapshot(&registry.path("registry/public"));
    let written = [
        "2.catalog.json.sig",
        "2.catalog.json",
        "catalog.json.sig",
        "catalog.json",
        "timestamp.json.sig",
        "timestamp.json",
    ];
    for with_versions in [true, false] {
        for from in 0..=written.len() {
            for to in from..=written.len() {
                // The first half of the files is read after `from` writes, the other after `to`.
                for switch in 0..=6 {
                    let asked = std::cell::Cell::new(0);
                    let fetch = |name: &str| {
                        let is_versioned =
                            name.ends_with("catalog.json") || name.ends_with("catalog.json.sig");
                        if !with_versions && is_versioned && name.starts_with(|c: char| c.is_ascii_digit()) {
                            return None;
                        }
                        asked.set(asked.get() + 1);
                        let done = if asked.get() > switch { to } else { from };
                        let is_new = !written.contains(&name) || written[..done].contains(&name);
                        (if is_new { &after } else { &before }).get(name).cloned()
                    };
                    match update(&state, fetch) {
                        Ok(updated) => assert!(updated.state.catalog_version() >= Some(1)),
                        // Without names of versions, a catalogue can be newer than the timestamp that was read before it.
                        Err(failure) => assert!(!with_versions && failure.step == Step::Catalog, "{failure}"),
                    }
                }
            }
        }
    }
}

fn snapshot(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}
