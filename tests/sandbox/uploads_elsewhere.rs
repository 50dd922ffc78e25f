//! Packages that another process of the same database installed, or that came with a backup.

use heddle_marketplace::TrustedKey;
use heddle_store::installed_packages::{self, NewKept};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::install::{Store, serving};
use super::uploads::{archive, send};
use crate::operate::{PASSPHRASE, run};
use crate::support::{Api, Database, PASSWORD, Process, Server, on_both, until};

struct Pair {
    a: Process,
    b: Process,
    /// The keys that each trusts, and its folder of packages.
    store: Store,
    other: Store,
    database: Database,
    token: String,
    folders: [TempDir; 2],
}

impl Pair {
    /// `None` where the tests run without `PostgreSQL`.
    async fn start() -> Option<Self> {
        let database = Database::postgres().await?;
        let (store, other) = (Store::new(), Store::new());
        other.trust(&[store.acme.trusted()]);
        let folders = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let (a, token) = Process::start(folders[0].path(), &database, &store.options()).await.set_up().await;
        let b = Process::start(folders[1].path(), &database, &other.options()).await.with_token(&token);
        Some(Self { a, b, store, other, database, token, folders })
    }

    fn archive(&self, version: &str) -> Vec<u8> {
        archive(version, "one", &self.store.acme)
    }
}

async fn serves(api: &Api, version: &str) {
    until("the package serves there", async || serving(api).await.0 == json!(version)).await;
}

async fn behind(api: &Api) -> Value {
    api.get("/adapters").await.expect_status(200).body["items"][0]["behind"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_serves_what_one_of_them_installed() {
    let Some(mut pair) = Pair::start().await else { return };
    send(&pair.a.api, &pair.archive("1.0.0")).await.expect_status(201);
    serves(&pair.b.api, "1.0.0").await;
    send(&pair.b.api, &pair.archive("1.1.0")).await.expect_status(201);
    serves(&pair.a.api, "1.1.0").await;
    pair.a.api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200);
    serves(&pair.b.api, "1.0.0").await;

    // What was installed while a process was away is loaded at its start.
    pair.b.kill();
    send(&pair.a.api, &pair.archive("1.2.0")).await.expect_status(201);
    let b = Process::start(pair.folders[1].path(), &pair.database, &pair.other.options()).await;
    pair.b = b.with_token(&pair.token);
    assert_eq!(serving(&pair.b.api).await, (json!("1.2.0"), "[]".to_owned()));

    // Both at once: one of them is first, and both serve the same in the end.
    let (x, y) = (pair.archive("2.0.0"), pair.archive("2.1.0"));
    let (first, second) = tokio::join!(send(&pair.a.api, &x), send(&pair.b.api, &y));
    second.expect_status(201);
    assert!([201, 409].contains(&first.status), "{}", first.text);
    serves(&pair.a.api, "2.1.0").await;
    serves(&pair.b.api, "2.1.0").await;
    let chain = pair.a.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(chain["valid"], true, "{chain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_takes_the_place_of_what_another_process_just_installed() {
    let Some(pair) = Pair::start().await else { return };
    send(&pair.a.api, &pair.archive("1.0.0")).await.expect_status(201);
    serves(&pair.b.api, "1.0.0").await;
    send(&pair.a.api, &pair.archive("1.1.0")).await.expect_status(201);
    // It does not serve at the other process yet.
    send(&pair.b.api, &pair.archive("1.2.0")).await.expect_status(201);
    let known = pair.b.api.get("/adapters/hostile/packages").await.expect_status(200).body;
    let kept = known["items"].as_array().unwrap().iter().filter(|one| one["kept"] == true);
    assert_eq!(kept.map(|one| &one["version"]).collect::<Vec<_>>(), ["1.2.0", "1.1.0"], "{known}");
    pair.b.api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200);
    serves(&pair.a.api, "1.1.0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_cannot_load_a_package_goes_on_and_says_so() {
    let Some(pair) = Pair::start().await else { return };
    send(&pair.a.api, &pair.archive("1.0.0")).await.expect_status(201);
    serves(&pair.b.api, "1.0.0").await;
    let nothing: &[TrustedKey] = &[];
    pair.other.trust(nothing);
    send(&pair.a.api, &pair.archive("1.1.0")).await.expect_status(201);
    until("the other process says so", async || behind(&pair.b.api).await != Value::Null).await;
    assert!(behind(&pair.b.api).await.to_string().contains("1.1.0"));
    let (version, refused) = serving(&pair.b.api).await;
    assert_eq!(version, "1.0.0");
    assert!(refused.contains("hostile 1.1.0 (installed)") && refused.contains("trusted key"), "{refused}");
    assert_eq!(behind(&pair.a.api).await, Value::Null);

    // The next one that it can load makes it good.
    pair.other.trust(&[pair.store.acme.trusted()]);
    send(&pair.a.api, &pair.archive("1.2.0")).await.expect_status(201);
    serves(&pair.b.api, "1.2.0").await;
    // It serves before it is noted.
    until("nothing is behind", async || behind(&pair.b.api).await == Value::Null).await;
    assert_eq!(serving(&pair.b.api).await.1, "[]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_of_a_machine_that_passes_leaves_no_process_behind() {
    let Some(pair) = Pair::start().await else { return };
    send(&pair.a.api, &pair.archive("1.0.0")).await.expect_status(201);
    serves(&pair.b.api, "1.0.0").await;
    std::fs::remove_file(pair.other.trusted_keys()).unwrap();
    send(&pair.a.api, &pair.archive("1.1.0")).await.expect_status(201);
    until("the other process says so", async || behind(&pair.b.api).await != Value::Null).await;
    // What it reads again meanwhile does not make it good.
    pair.b.hang_up();
    until("the packages are read", async || serving(&pair.b.api).await.1.contains("\"all\"")).await;
    assert!(behind(&pair.b.api).await.to_string().contains("1.1.0"));
    assert_eq!(serving(&pair.b.api).await.0, "1.0.0");

    // Nobody asks it to try again.
    pair.other.trust(&[pair.store.acme.trusted()]);
    serves(&pair.b.api, "1.1.0").await;
    until("it is not behind", async || behind(&pair.b.api).await == Value::Null).await;
}

on_both! {
    async fn a_process_that_starts_without_what_is_installed_says_so(database: Database) {
        let store = Store::new();
        store.put("shipped", &store.acme, "1.0.0");
        let options = store.options().with("ADAPTER_DOWNGRADES", "hostile@1.0.0");
        let mut server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let sent = send(&api, &archive("1.1.0", "one", &store.acme)).await.expect_status(201).body;
        let app = &server.running().app;
        let mut tx = app.db.write().await.unwrap();
        let spoilt = NewKept {
            manifest_sha256: sent["manifest_sha256"].as_str().unwrap(),
            adapter_id: "hostile",
            version: "1.1.0",
            archive: b"spoilt",
            installed_at: app.clock.now(),
            installed_by: None,
        };
        installed_packages::keep(&mut tx, &spoilt).await.unwrap();
        tx.commit().await.unwrap();
        server.restart().await;
        let api = server.log_in("ada").await;
        assert_eq!(serving(&api).await.0, "1.0.0");
        let behind = behind(&api).await.to_string();
        assert!(behind.contains("version 1.1.0 was installed") && behind.contains("archive"), "{behind}");
    }
}

on_both! {
    async fn a_backup_holds_what_is_installed(database: Database) {
        let (store, folders) = (Store::new(), [0, 1].map(|_| tempfile::tempdir().unwrap()));
        let options = store.options().with("BACKUP_PASSPHRASE", PASSPHRASE);
        let (process, _) = Process::start(folders[0].path(), &database, &options).await.set_up().await;
        send(&process.api, &archive("1.0.0", "one", &store.acme)).await.expect_status(201);
        send(&process.api, &archive("1.1.0", "two", &store.acme)).await.expect_status(201);
        process.api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200);
        let file = folders[0].path().join("backup.heddle");
        let file = file.to_str().unwrap();
        run(folders[0].path(), &database, &options, &["backup", file]).expect_ok();
        let elsewhere = database.another().await;
        run(folders[1].path(), &elsewhere, &options, &["restore", file]).expect_ok();
        let restored = Process::start(folders[1].path(), &elsewhere, &options).await;
        let login = json!({ "login": "ada", "password": PASSWORD });
        let session = restored.api.post("/auth/login", &login).await.expect_status(200).body;
        let api = restored.api.with_token(session["access_token"].as_str().unwrap());
        assert_eq!(serving(&api).await, (json!("1.0.0"), "[]".to_owned()));
        // The bytes of the other one are there, too.
        let known = api.get("/adapters/hostile/packages").await.expect_status(200).body;
        let kept = known["items"].as_array().unwrap().iter().filter(|one| one["kept"] == true).count();
        assert_eq!(kept, 2, "{known}");
    }
}
