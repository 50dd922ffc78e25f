//! Packages around the hostile guest, signed with a key of the test.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use heddle_marketplace::{DESCRIPTION, PackError, PublisherKey, Verified, pack};
use serde_json::{Value, json};

use crate::support::target_folder;

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A manifest that gives the guest what it may have: HTTP, secrets, one kind of read.
/// With the most CPU, so that a busy machine does not end it before its own limit does.
pub(crate) fn manifest() -> Value {
    json!({
        "schema": 1, "id": "hostile", "version": "1.0.0", "kind": "adapter", "api": "1.0",
        "name": "Hostile guest", "license": "Apache-2.0", "component": "component.wasm",
        "capabilities": { "controller-http": true, "secrets": true },
        "limits": { "cpu-ms": 5_000 },
        "reads": [{ "method": "POST", "path": "/read", "json": { "/op": ["read"] } }]
    })
}

/// A manifest with a login that exposes everything that `/login` of the device answers.
pub(super) fn manifest_with_login() -> Value {
    let exposed = |name: &&str| json!({ "as": name, "from": { "json": format!("/{name}") }, "expose": true });
    let names = ["site", "password", "percent", "base64", "user", "copy", "long", "mark"];
    let mut captures: Vec<Value> = names.iter().map(exposed).collect();
    captures.push(json!({ "as": "token", "from": { "json": "/token" } }));
    let body = json!({ "user": "{{secret.username}}", "password": "{{secret.password}}" });
    let session = json!({
        "login": [{
            "request": { "method": "POST", "path": "/login", "effect": "session", "json": body },
            "expect": { "status": [200] },
            "capture": captures,
        }],
        "apply": [{ "to": { "header": "x-token" }, "value": "{{session.token}}" }],
        "ttl-s": 300,
        "logout": { "method": "DELETE", "path": "/session", "effect": "session" },
    });
    manifest_with("/auth", json!({ "main": session }))
}

/// The manifest with one value changed.
pub(super) fn manifest_with(pointer: &str, value: Value) -> Value {
    let mut manifest = manifest();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer begins with '/'");
    manifest.pointer_mut(parent).expect("the manifest has this part")[key] = value;
    manifest
}

/// The publisher of all packages here; new for each run.
pub(crate) fn key() -> &'static PublisherKey {
    static KEY: LazyLock<PublisherKey> =
        LazyLock::new(|| PublisherKey::generate("acme").expect("the system has randomness"));
    &KEY
}

/// The guest, as `cargo xtask components` builds it.
pub(crate) fn hostile() -> Vec<u8> {
    let path = target_folder().join("guests/hostile.wasm");
    std::fs::read(&path)
        .unwrap_or_else(|_| panic!("'{}' is missing; run 'cargo xtask components' first", path.display()))
}

/// The files of a package around this component.
pub(super) fn contents(component: &[u8]) -> Files {
    let description: &[u8] = include_bytes!("../hostile/description.json");
    BTreeMap::from([
        ("component.wasm".to_owned(), component.to_vec()),
        (DESCRIPTION.to_owned(), description.to_vec()),
    ])
}

/// The package of an adapter of this id and version around the guest.
pub(crate) fn named(id: &str, version: &str, key: &PublisherKey) -> Files {
    let renamed = |text: &str| text.replace("hostile", id).into_bytes();
    let mut contents = contents(&hostile());
    let description = renamed(str::from_utf8(&contents[DESCRIPTION]).expect("a description is text"));
    contents.insert(DESCRIPTION.to_owned(), description);
    let manifest = manifest_with("/version", json!(version)).to_string();
    pack(&renamed(&manifest), contents, key).expect("the package is sound")
}

pub(crate) fn packed(manifest: &Value, component: &[u8]) -> Result<Files, PackError> {
    pack(manifest.to_string().as_bytes(), contents(component), key())
}

pub(super) fn verified(manifest: &Value, component: &[u8]) -> Verified {
    let files = packed(manifest, component).expect("the package is sound");
    Verified::from_files(files, &[key().trusted()]).expect("the package was just signed")
}
