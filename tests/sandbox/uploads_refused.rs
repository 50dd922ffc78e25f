//! Packages that a server does not install, whoever sends them. Nothing of what serves changes.

use std::io::{Cursor, Write as _};
use std::time::Duration;

use heddle_core::Role;
use heddle_marketplace::{ARCHIVE_BYTES_MAX, MANIFEST, PublisherKey, pack, write_archive};
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::install::{Store, serving};
use super::package::{Files, contents, manifest_with};
use super::uploads::{Version, archive, files, send, send_to};
use crate::fixtures::member;
use crate::support::{Api, Database, Server, on_both};

async fn start(database: Database, store: &Store) -> (Server, Api) {
    let server = Server::start_with(database, store.options()).await;
    let api = server.set_up().await;
    send(&api, &archive("1.1.0", "one", &store.acme)).await.expect_status(201);
    (server, api)
}

/// Whether the package from the beginning serves, and the audit log knows no other.
#[track_caller]
fn unchanged(api: &Api) -> impl Future<Output = ()> {
    let asked = std::panic::Location::caller();
    async move {
        assert_eq!(serving(api).await, (json!("1.1.0"), "[]".to_owned()), "{asked}");
        let installed = api.get("/audit?action=adapter.installed").await.expect_status(200).body;
        assert_eq!(installed["items"].as_array().map(Vec::len), Some(1), "{asked}: {installed}");
        let known = api.get("/adapters/hostile/packages").await.expect_status(200).body;
        assert_eq!(known["items"].as_array().map(Vec::len), Some(1), "{asked}: {known}");
    }
}

/// An archive of these files and one more entry.
fn with_entry(files: &Files, name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    let entries = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    for (name, bytes) in entries.chain([(name, bytes)]) {
        archive.start_file(name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A package of a component that asks for what no component gets.
fn importing(key: &PublisherKey) -> Vec<u8> {
    let component = r#"(component (import "wasi:sockets/tcp@0.2.6" (instance (export "f" (func)))))"#;
    let manifest = manifest_with("/version", json!("2.0.0")).to_string();
    let files = pack(manifest.as_bytes(), contents(&wat::parse_str(component).unwrap()), key).unwrap();
    write_archive(&files).unwrap()
}

/// Archives, the status of their refusal, and what it says.
fn refusals(store: &Store) -> Vec<(&'static str, Vec<u8>, u16, &'static str)> {
    let acme = &store.acme;
    let sound = files(Version { version: "2.0.0", word: "two" }, acme);
    let stranger = PublisherKey::generate("acme").unwrap();
    let mut tampered = sound.clone();
    let component = tampered.get_mut("component.wasm").unwrap();
    *component.last_mut().unwrap() ^= 1;
    let mut widened = sound.clone();
    let manifest = String::from_utf8(widened[MANIFEST].clone()).unwrap().replace("/read", "/save");
    widened.insert(MANIFEST.to_owned(), manifest.into_bytes());
    let mut unlisted = sound.clone();
    unlisted.insert("notes.txt".to_owned(), b"more".to_vec());
    let mut unsigned = sound.clone();
    unsigned.remove("manifest.sig");
    let whole = write_archive(&sound).unwrap();
    vec![
        ("no archive", b"not an archive".to_vec(), 400, "heddle-package pack --zip"),
        ("nothing", Vec::new(), 400, "heddle-package pack --zip"),
        ("half an archive", whole[..whole.len() / 2].to_vec(), 400, "the archive is not accepted"),
        ("an untrusted key", archive("2.0.0", "two", &stranger), 400, "no signature is by a trusted key"),
        ("a tampered byte", write_archive(&tampered).unwrap(), 400, "not the one that was signed"),
        ("a changed manifest", write_archive(&widened).unwrap(), 400, "was changed after it was signed"),
        ("an unlisted file", write_archive(&unlisted).unwrap(), 400, "not listed in the manifest"),
        ("no signature", write_archive(&unsigned).unwrap(), 400, "package has no 'manifest.sig'"),
        ("an older version", archive("1.0.0", "one", acme), 409, "ADAPTER_DOWNGRADES=hostile@1.0.0"),
        ("the version that serves", archive("1.1.0", "two", acme), 409, "give the package a higher version"),
        ("another publisher", archive("2.0.0", "two", &store.globex), 409, "belongs to publisher 'acme'"),
        ("an import", importing(acme), 400, "wasi:sockets/tcp@0.2.6"),
        ("a way out", with_entry(&sound, "../../etc/cron.d/x", b"x"), 400, "'.' and '..' are not accepted"),
        ("a bomb", with_entry(&sound, "zeros.bin", &vec![0; 31 << 20]), 400, "times its bytes"),
        ("a large file", with_entry(&sound, "zeros.bin", &vec![0; 33 << 20]), 400, "more than"),
    ]
}

on_both! {
    async fn what_may_not_serve_is_refused_and_changes_nothing(database: Database) {
        let store = Store::new();
        let (_server, api) = start(database, &store).await;
        for (what, archive, status, reason) in refusals(&store) {
            for path in ["/adapters/packages?dry_run=true", "/adapters/packages"] {
                let answer = send_to(&api, path, &archive).await;
                assert_eq!(answer.status, status, "{what}: {}", answer.text);
                assert!(answer.message().contains(reason), "{what}: {}", answer.text);
            }
        }
        unchanged(&api).await;
    }
}

on_both! {
    async fn only_a_super_admin_installs(database: Database) {
        let store = Store::new();
        let (server, api) = start(database, &store).await;
        let new = archive("2.0.0", "two", &store.acme);
        send(&server.nobody(), &new).await.expect_status(401);
        let me = api.get("/auth/me").await.expect_status(200).body;
        let organization = me["organization_id"].as_str().unwrap();
        let (_, admin) = member(&server, organization, Role::OrgAdmin, "grace").await;
        send(&admin, &new).await.expect_status(403);
        admin.post("/adapters/hostile/rollback", &json!({})).await.expect_status(403);
        admin.get("/adapters/hostile/packages").await.expect_status(403);
        let key = json!({ "name": "narrow", "scopes": ["cameras.view"] });
        let key = api.post("/api-keys", &key).await.expect_status(201).body;
        let scoped = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        send(&scoped, &new).await.expect_status(403);
        unchanged(&api).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_no_archive_of_its_size_is_refused() {
    let store = Store::new();
    let (_server, api) = start(Database::sqlite(), &store).await;
    let new = archive("2.0.0", "two", &store.acme);
    for kind in ["application/json", "application/octet-stream", "multipart/form-data; boundary=x"] {
        let other = api.with("content-type", kind);
        let answer = other.send("POST", "/adapters/packages", Some(new.clone())).await.expect_status(422);
        assert!(answer.text.contains("application/zip"), "{}", answer.text);
    }
    let long = vec![0; ARCHIVE_BYTES_MAX + 1];
    send(&api, &long).await.expect_status(413);
    // Another route has the limit of all.
    let sites = api.send("POST", "/sites", Some(vec![b' '; 2 << 20])).await;
    assert_eq!(sites.status, 413, "{}", sites.text);
    let unknown = send_to(&api, "/adapters/packages?force=true", &new).await;
    assert_eq!(unknown.status, 422, "{}", unknown.text);
    unchanged(&api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_leaves_nothing_half_done() {
    let store = Store::new();
    let (_server, api) = start(Database::sqlite(), &store).await;
    for round in 2..6_u64 {
        let version = format!("1.{round}.0");
        let new = archive(&version, "two", &store.acme);
        let answer = tokio::time::timeout(Duration::from_millis(round * 5), send(&api, &new)).await;
        drop(answer);
        let again = send(&api, &new).await;
        assert!([200, 201].contains(&again.status), "{}", again.text);
        assert_eq!(serving(&api).await, (json!(version), "[]".to_owned()));
    }
}
