//! Packages that come, change and go while the server runs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use heddle_marketplace::PublisherKey;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::install::{Store, serving};
use crate::support::{Api, Database, Process, on_both, until};

/// A path that only the adapter's routes have.
const OF_VENDOR: &str = "/gateway-hostile-lab/00000000-0000-4000-8000-000000000001";

/// What the server offers because of the adapter: its version, routes, document and operations.
async fn offered(api: &Api) -> (Value, bool, bool, bool) {
    let version = serving(api).await.0;
    let document = api.get("/openapi.json").await.expect_status(200).body;
    let paths = document["paths"].as_object().expect("a document has paths");
    let is_described = paths.keys().any(|path| path.contains("/gateway-hostile-"));
    // An unknown path and an unknown controller are both 404: the message tells them apart.
    let is_routed = !api.get(OF_VENDOR).await.expect_status(404).text.contains("path not found");
    let catalog = api.get("/fabric/catalog").await.expect_status(200).body;
    let operations = catalog["operations"].as_array().expect("a catalogue has operations");
    let is_offered = operations.iter().any(|one| one["owner"] == "hostile");
    (version, is_routed, is_described, is_offered)
}

async fn become_offered(api: &Api, version: Value) {
    let is_there = version != Value::Null;
    let wanted = (version, is_there, is_there, is_there);
    until("what is installed shows everywhere", async || offered(api).await == wanted).await;
}

on_both! {
    async fn packages_come_change_and_go_without_a_restart(database: Database) {
        let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
        let (process, _) = Process::start(folder.path(), &database, &store.options()).await.set_up().await;
        let api = &process.api;
        assert_eq!(offered(api).await, (Value::Null, false, false, false));

        store.put("good", &store.acme, "1.1.0");
        // Asked twice, it reads once more or once: the same serves.
        process.hang_up();
        process.hang_up();
        become_offered(api, json!("1.1.0")).await;
        let credential = json!({ "name": "lab", "username": "root", "password": "secret" });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let controller = json!({
            "name": "lab", "vendor": "hostile", "url": "http://127.0.0.1:9", "credential_id": credential["id"],
            "site_id": api.get("/sites").await.body["items"][0]["id"],
        });
        api.post("/controllers", &controller).await.expect_status(201);

        store.put("more", &store.acme, "1.2.0");
        process.hang_up();
        become_offered(api, json!("1.2.0")).await;
        // What came of the whole reading is shown a moment after the package that serves.
        until("the older one is refused", async || serving(api).await.1.contains("'good'")).await;

        // A key that is not trusted any longer takes its packages with it.
        store.trust(&[store.globex.trusted()]);
        process.hang_up();
        become_offered(api, Value::Null).await;
        api.post("/controllers", &controller).await.expect_status(400);
        store.trust(&[store.acme.trusted()]);
        process.hang_up();
        become_offered(api, json!("1.2.0")).await;

        // What cannot be read takes nothing away.
        std::fs::remove_file(store.trusted_keys()).unwrap();
        process.hang_up();
        until("the fault is shown", async || serving(api).await.1.contains("ADAPTER_TRUSTED_KEYS")).await;
        assert_eq!(offered(api).await, (json!("1.2.0"), true, true, true));
        store.trust(&[store.acme.trusted()]);
        std::fs::rename(store.packages(), folder.path().join("elsewhere")).unwrap();
        process.hang_up();
        until("the fault is shown", async || serving(api).await.1.contains("ADAPTER_PACKAGES")).await;
        assert_eq!(offered(api).await, (json!("1.2.0"), true, true, true));
        std::fs::rename(folder.path().join("elsewhere"), store.packages()).unwrap();

        store.remove("more");
        store.remove("good");
        process.hang_up();
        become_offered(api, Value::Null).await;
        let chain = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(chain["valid"], true, "{chain}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_while_packages_change() {
    const CHANGES: usize = 6;
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    store.put("good", &store.acme, "1.0.0");
    let (mut process, token) =
        Process::start(folder.path(), &Database::sqlite(), &store.options()).await.set_up().await;
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let api = &process.api;
    let client = async || {
        while !stop.load(Ordering::Relaxed) {
            // The route of the adapter is there throughout: it only changes its version.
            let controller = api.try_send("GET", OF_VENDOR, None).await.expect("an answer");
            let is_routed = controller.status == 404 && !controller.text.contains("path not found");
            assert!(is_routed, "{}", controller.text);
            let sites = api.try_send("GET", "/sites", None).await.expect("an answer");
            assert_eq!(sites.status, 200, "{}", sites.text);
            answered.fetch_add(2, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    // Half of a request: it began before the first change and ends after the last.
    let body = br#"{"name":"Slow"}"#;
    let mut slow = TcpStream::connect(api.base().strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /api/v1/sites HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&body[..4]).await.unwrap();
    let changes = async {
        for change in 1..=CHANGES {
            let version = format!("1.{change}.0");
            store.put(&version, &store.acme, &version);
            process.hang_up();
            until("the new version serves", async || serving(api).await.0 == json!(version)).await;
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(changes, client(), client(), client(), client());
    slow.write_all(&body[4..]).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(answered.load(Ordering::Relaxed) > 20 * CHANGES, "requests ran throughout");
    // The process ends also when it was asked to read just before.
    store.put("last", &store.acme, "2.0.0");
    process.hang_up();
    process.terminate().await;
}

/// Asks for a reading, and waits until the log says that it was done.
pub(super) async fn read_again(process: &Process, folder: &Path) {
    let readings = || {
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        log.matches("packages were read again").count()
    };
    let before = readings();
    process.hang_up();
    until("the packages were read again", async || readings() > before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_did_not_change_is_bound_to_its_new_key() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    let renewed = PublisherKey::generate("acme").unwrap();
    store.put("good", &store.acme, "1.1.0");
    let options = store.options().with("LOG_FILTER", "info");
    let (process, _) = Process::start(folder.path(), &Database::sqlite(), &options).await.set_up().await;
    // The same package, signed by the key that takes the id over.
    store.remove("good");
    store.put("good", &renewed, "1.1.0");
    store.trust(&[renewed.trusted_for(vec!["hostile".to_owned()])]);
    read_again(&process, folder.path()).await;
    // The permission to take it over is gone again: the id is bound to the key now.
    store.trust(&[renewed.trusted()]);
    store.put("other", &store.globex, "1.2.0");
    read_again(&process, folder.path()).await;
    let (version, refused) = serving(&process.api).await;
    assert_eq!(version, "1.1.0", "{refused}");
    assert!(!refused.contains("'hostile' belongs"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_did_not_change_stays_as_it_is() {
    let (store, folder) = (Store::new(), tempfile::tempdir().unwrap());
    store.put("good", &store.acme, "1.1.0");
    let options = store.options().with("LOG_FILTER", "info");
    let (process, _) = Process::start(folder.path(), &Database::sqlite(), &options).await.set_up().await;
    store.put("newer", &store.globex, "1.2.0");
    read_again(&process, folder.path()).await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.matches("loaded adapter").count(), 1, "{log}");
    assert_eq!(serving(&process.api).await.0, "1.1.0");
    assert!(!log.contains("routes are those of what is installed now"), "nothing changed: {log}");
}
