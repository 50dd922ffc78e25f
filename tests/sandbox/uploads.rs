//! Packages that are installed, replaced and rolled back over the API, while the server runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use heddle_marketplace::{DESCRIPTION, PublisherKey, pack, write_archive, write_dir};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::install::{Store, serving};
use super::package::{contents, hostile, manifest_with};
use crate::support::{Answer, Api, Database, Process, Server, on_both};

/// A package of the guest that says `word` in its description, and has an area of this name.
#[derive(Clone, Copy)]
pub(super) struct Version<'a> {
    pub(super) version: &'a str,
    pub(super) word: &'a str,
}

pub(super) fn files(of: Version<'_>, key: &PublisherKey) -> BTreeMap<String, Vec<u8>> {
    let mut files = contents(&hostile());
    let mut description: Value = serde_json::from_slice(&files[DESCRIPTION]).unwrap();
    let kinds = description["kinds"].as_array_mut().unwrap();
    let calm = kinds.iter_mut().find(|kind| kind["id"] == "calm").unwrap();
    calm["binding"] = json!({ "says": of.word });
    let area = json!({ "id": format!("lab-{}", of.word), "title": of.word });
    description["areas"].as_array_mut().unwrap().push(area);
    files.insert(DESCRIPTION.to_owned(), description.to_string().into_bytes());
    pack(manifest_with("/version", json!(of.version)).to_string().as_bytes(), files, key).unwrap()
}

pub(super) fn archive(version: &str, word: &str, key: &PublisherKey) -> Vec<u8> {
    write_archive(&files(Version { version, word }, key)).unwrap()
}

/// Sends a package.
pub(super) async fn send(api: &Api, archive: &[u8]) -> Answer {
    send_to(api, "/adapters/packages", archive).await
}

pub(super) async fn send_to(api: &Api, path: &str, archive: &[u8]) -> Answer {
    api.with("content-type", "application/zip").send("POST", path, Some(archive.to_vec())).await
}

/// The versions that are known, the latest first, each with whether it serves, is pinned and is kept.
async fn known(api: &Api) -> Vec<(String, bool, bool, bool)> {
    let packages = api.get("/adapters/hostile/packages").await.expect_status(200).body;
    let flag = |one: &Value, name: &str| one[name].as_bool().unwrap();
    let items = packages["items"].as_array().unwrap().iter();
    items
        .map(|one| {
            let version = one["version"].as_str().unwrap().to_owned();
            (version, flag(one, "serves"), flag(one, "pinned"), flag(one, "kept"))
        })
        .collect()
}

fn row(version: &str, serves: bool, pinned: bool, kept: bool) -> (String, bool, bool, bool) {
    (version.to_owned(), serves, pinned, kept)
}

/// Whether the routes and the API document have the area of a package with this word.
async fn is_shown(api: &Api, word: &str) -> (bool, bool) {
    let path = format!("/gateway-hostile-lab-{word}/00000000-0000-4000-8000-000000000001");
    let is_routed = !api.get(&path).await.expect_status(404).text.contains("path not found");
    let document = api.get("/openapi.json").await.expect_status(200).body;
    let paths = document["paths"].as_object().unwrap();
    let area = format!("/gateway-hostile-lab-{word}/");
    (is_routed, paths.keys().any(|path| path.contains(&area)))
}

async fn entries(api: &Api, action: &str) -> Vec<Value> {
    let entries = api.get(&format!("/audit?action={action}")).await.expect_status(200).body;
    entries["items"].as_array().unwrap().clone()
}

on_both! {
    async fn a_package_is_installed_replaced_and_rolled_back_without_a_restart(database: Database) {
        let store = Store::new();
        let mut server = Server::start_with(database, store.options()).await;
        let api = server.set_up().await;
        let (one, two) = (archive("1.0.0", "one", &store.acme), archive("1.1.0", "two", &store.acme));

        let first = send(&api, &one).await.expect_status(201).body;
        assert_eq!((&first["id"], &first["version"], &first["replaces"]), (&json!("hostile"), &json!("1.0.0"), &Value::Null));
        assert_eq!(first["outcome"], "installed");
        assert_eq!(first["key_id"], store.acme.trusted().key_id());
        assert_eq!(first["capabilities"], json!(["controller-http", "secrets"]));
        assert!(first["rules"].to_string().contains("counts as a read: POST /read"), "{first}");
        // The answer comes once everything shows it.
        assert_eq!(is_shown(&api, "one").await, (true, true));

        let second = send(&api, &two).await.expect_status(201).body;
        assert_eq!(second["replaces"]["manifest_sha256"], first["manifest_sha256"]);
        assert_eq!((is_shown(&api, "one").await, is_shown(&api, "two").await), ((false, false), (true, true)));
        assert_eq!(known(&api).await, [row("1.1.0", true, false, true), row("1.0.0", false, false, true)]);
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await, (json!("1.1.0"), "[]".to_owned()));

        let back = api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200).body;
        assert_eq!((&back["version"], &back["outcome"]), (&json!("1.0.0"), &json!("rolled_back")));
        assert_eq!(back["replaces"]["version"], "1.1.0");
        assert_eq!((is_shown(&api, "one").await, is_shown(&api, "two").await), ((true, true), (false, false)));
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await, (json!("1.0.0"), "[]".to_owned()));
        assert_eq!(known(&api).await, [row("1.1.0", false, false, true), row("1.0.0", true, true, true)]);
        let refused = api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "no_earlier_package", "{}", refused.text);

        // A newer one ends the rollback; the bytes of two are kept.
        send(&api, &archive("1.2.0", "three", &store.acme)).await.expect_status(201);
        let rows = [row("1.2.0", true, false, true), row("1.1.0", false, false, false), row("1.0.0", false, false, true)];
        assert_eq!(known(&api).await, rows);

        let installed = entries(&api, "adapter.installed").await;
        let changes: Vec<_> = installed.iter().map(|one| (&one["detail"]["before"]["version"], &one["detail"]["after"]["version"])).collect();
        assert_eq!(changes, [(&json!("1.0.0"), &json!("1.2.0")), (&json!("1.0.0"), &json!("1.1.0")), (&Value::Null, &json!("1.0.0"))]);
        assert!(installed.iter().all(|one| one["actor_name"] == "ada"), "{installed:?}");
        let rolled_back = entries(&api, "adapter.rolled_back").await;
        assert_eq!(rolled_back.len(), 1);
        assert_eq!(rolled_back[0]["detail"]["before"]["version"], "1.1.0");
        let chain = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(chain["valid"], true, "{chain}");
    }
}

on_both! {
    async fn what_is_installed_already_is_left_as_it_is(database: Database) {
        let store = Store::new();
        let server = Server::start_with(database, store.options()).await;
        let api = server.set_up().await;
        let one = archive("1.0.0", "one", &store.acme);
        send(&api, &one).await.expect_status(201);
        let again = send(&api, &one).await.expect_status(200).body;
        assert_eq!(again["outcome"], "unchanged");
        assert_eq!(entries(&api, "adapter.installed").await.len(), 1, "nothing happened");
    }
}

on_both! {
    async fn a_dry_run_says_what_would_change_and_changes_nothing(database: Database) {
        let store = Store::new();
        let server = Server::start_with(database, store.options()).await;
        let api = server.set_up().await;
        let one = archive("1.0.0", "one", &store.acme);
        let judged = send_to(&api, "/adapters/packages?dry_run=true", &one).await.expect_status(200).body;
        assert_eq!((&judged["outcome"], &judged["version"]), (&json!("judged"), &json!("1.0.0")));
        assert_eq!(serving(&api).await.0, Value::Null);
        api.get("/adapters/hostile/packages").await.expect_status(404);
        send(&api, &one).await.expect_status(201);

        let mut manifest = manifest_with("/version", json!("1.1.0"));
        manifest["capabilities"] = json!({ "controller-http": true, "secrets": true });
        manifest["reads"] = json!([{ "method": "POST", "path": "/query", "json": { "/op": ["get"] } }]);
        let files = pack(manifest.to_string().as_bytes(), contents(&hostile()), &store.acme).unwrap();
        let more = write_archive(&files).unwrap();
        let judged = send_to(&api, "/adapters/packages?dry_run=true", &more).await.expect_status(200).body;
        let replaces = &judged["replaces"];
        assert_eq!(replaces["version"], "1.0.0");
        assert_eq!(replaces["rules_added"], json!(["counts as a read: POST /query where '/op' is \"get\""]));
        assert!(replaces["rules_removed"].to_string().contains("POST /read"), "{judged}");
        assert_eq!((&replaces["capabilities_added"], &replaces["capabilities_removed"]), (&json!([]), &json!([])));
        assert_eq!(serving(&api).await.0, "1.0.0");
        assert_eq!(known(&api).await, [row("1.0.0", true, false, true)]);
    }
}

on_both! {
    async fn the_newest_of_folder_and_database_serves(database: Database) {
        let store = Store::new();
        store.put("shipped", &store.acme, "1.0.0");
        let mut server = Server::start_with(database, store.options().with("STRICT_STARTUP", "true")).await;
        let api = server.set_up().await;
        assert_eq!(serving(&api).await.0, "1.0.0");
        let refused = api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(409);
        assert!(refused.message().contains("ADAPTER_PACKAGES"), "{}", refused.text);

        // The package of the folder stays where it is, and is no fault.
        send(&api, &archive("1.1.0", "one", &store.acme)).await.expect_status(201);
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await, (json!("1.1.0"), "[]".to_owned()));
        // It was kept when it was replaced.
        api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200);
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await, (json!("1.0.0"), "[]".to_owned()));

        // What is newer than all that served ends the rollback, wherever it comes from.
        store.put("updated", &store.acme, "1.2.0");
        store.remove("shipped");
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await, (json!("1.2.0"), "[]".to_owned()));
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await, (json!("1.2.0"), "[]".to_owned()), "it stays ended");
        // The installed package is older than the one of the folder: a rollback puts it back.
        let back = api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200).body;
        assert_eq!(back["version"], "1.0.0");
    }
}

/// The folder's package was changed since it was loaded: what could not be put back is not kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_package_of_the_folder_is_not_kept() {
    let store = Store::new();
    store.put("shipped", &store.acme, "1.0.0");
    let server = Server::start_with(Database::sqlite(), store.options()).await;
    let api = server.set_up().await;
    std::fs::write(store.packages().join("shipped").join(DESCRIPTION), b"{}").unwrap();
    send(&api, &archive("1.1.0", "one", &store.acme)).await.expect_status(201);
    assert_eq!(known(&api).await, [row("1.1.0", true, false, true), row("1.0.0", false, false, false)]);
    let refused = api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(409);
    assert!(refused.message().contains("no package of 'hostile' from before"), "{}", refused.text);
}

/// A device that answers `/held` when it is told to.
async fn held_device() -> (String, Arc<Notify>, Arc<Notify>) {
    let (asked, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (says, waits) = (Arc::clone(&asked), Arc::clone(&told));
    let held = move || {
        let (says, waits) = (Arc::clone(&says), Arc::clone(&waits));
        async move {
            says.notify_one();
            waits.notified().await;
            "{}"
        }
    };
    let router = Router::new().route("/held", get(held)).fallback(|| async { "{}" });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "the device is the outside world, and ends with the test")]
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, asked, told)
}

/// What the binding of a kind says, as a call found it.
fn said(answer: &Answer) -> &Value {
    &answer.body["items"][0]["body"]["bindings"]["kind"]["says"]
}

on_both! {
    async fn a_call_in_flight_ends_on_the_package_that_it_began_with(database: Database) {
        let store = Store::new();
        let server = Server::start_with(database, store.options()).await;
        let api = server.set_up().await;
        let (one, two) = (archive("1.0.0", "one", &store.acme), archive("1.1.0", "two", &store.acme));
        send(&api, &one).await.expect_status(201);
        // A client that reads the document as it is now.
        let api = Api::new(api.base()).with_token(api.token());
        let (url, asked, told) = held_device().await;
        let credential = json!({ "name": "lab", "username": "root", "password": "secret" });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let controller = json!({
            "name": "lab", "vendor": "hostile", "url": url, "credential_id": credential["id"],
            "site_id": api.get("/sites").await.body["items"][0]["id"],
        });
        let controller = api.post("/controllers", &controller).await.expect_status(201).body;
        let path = format!("/gateway-hostile-lab/{}/held-bindings", controller["id"].as_str().unwrap());

        let replaced = async {
            asked.notified().await;
            send(&api, &two).await.expect_status(201);
            assert_eq!(serving(&api).await.0, "1.1.0", "the other call is still in flight");
            told.notify_one();
        };
        let (old, ()) = tokio::join!(api.get(&path), replaced);
        assert_eq!(said(&old.expect_status(200)), "one");
        told.notify_one();
        assert_eq!(said(&api.get(&path).await.expect_status(200)), "two");
    }
}

/// Kills the server when an installation was answered, and while one is carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_has_a_package_or_has_it_not() {
    let (store, folder, database) = (Store::new(), tempfile::tempdir().unwrap(), Database::sqlite());
    let options = store.options();
    let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
    let mut highest = 0;
    for round in 1..=6_u64 {
        let version = format!("1.{round}.0");
        let new = archive(&version, "one", &store.acme);
        let api = process.api.with("content-type", "application/zip");
        let sent = api.try_send("POST", "/adapters/packages", Some(new));
        let answered = if round == 1 {
            Some(sent.await.unwrap().status)
        } else {
            let killed = tokio::time::timeout(std::time::Duration::from_millis(round * 8), sent).await;
            killed.ok().and_then(Result::ok).map(|answer| answer.status)
        };
        process.kill();
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        let (serves, refused) = serving(&process.api).await;
        assert_eq!(refused, "[]");
        let now: u64 = serves.as_str().unwrap().split('.').nth(1).unwrap().parse().unwrap();
        assert!(now == highest || now == round, "{serves} serves after {version}, and before 1.{highest}.0");
        assert!(answered != Some(201) || now == round, "{version} was answered");
        highest = now;
    }
    assert!(highest >= 1);
    // It goes on.
    send(&process.api, &archive("2.0.0", "two", &store.acme)).await.expect_status(201);
    let chain = process.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(chain["valid"], true, "{chain}");
}

/// Two installations at once follow each other; the newer version serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_installations_at_once_the_newer_version_wins() {
    let store = Store::new();
    let server = Server::start_with(Database::sqlite(), store.options()).await;
    let api = server.set_up().await;
    let (one, two) = (archive("1.0.0", "one", &store.acme), archive("1.1.0", "two", &store.acme));
    let (first, second) = tokio::join!(send(&api, &one), send(&api, &two));
    second.expect_status(201);
    assert!([201, 409].contains(&first.status), "{}", first.text);
    assert_eq!(serving(&api).await, (json!("1.1.0"), "[]".to_owned()));
}

/// The folder is read again, and what was installed or rolled back stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_stays_when_the_packages_are_read_again() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    let options = store.options().with("LOG_FILTER", "info");
    let (process, _) = Process::start(folder.path(), &Database::sqlite(), &options).await.set_up().await;
    let two = Version { version: "1.1.0", word: "two" };
    send(&process.api, &archive("1.0.0", "one", &store.acme)).await.expect_status(201);
    write_dir(&files(two, &store.acme), &store.packages().join("two")).unwrap();
    super::reading::read_again(&process, folder.path()).await;
    assert_eq!(serving(&process.api).await, (json!("1.1.0"), "[]".to_owned()));
    process.api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200);
    super::reading::read_again(&process, folder.path()).await;
    assert_eq!(serving(&process.api).await, (json!("1.0.0"), "[]".to_owned()));
}
