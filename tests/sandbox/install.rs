//! Which packages a server serves, over several starts on one database.

use std::path::Path;

use heddle_marketplace::{PublisherKey, TrustedKey, pack, write_dir, write_trusted_keys};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::package::{contents, hostile, manifest_with};
use crate::support::{Api, Database, Options, Server, on_both};

/// A folder of packages, two publishers and the list of those that are trusted.
pub(super) struct Store {
    folder: TempDir,
    pub(super) acme: PublisherKey,
    pub(super) globex: PublisherKey,
}

impl Store {
    pub(super) fn new() -> Self {
        let key = |name: &str| PublisherKey::generate(name).unwrap();
        let store = Self { folder: tempfile::tempdir().unwrap(), acme: key("acme"), globex: key("globex") };
        std::fs::create_dir(store.packages()).unwrap();
        store.trust(&[store.acme.trusted(), store.globex.trusted()]);
        store
    }

    pub(super) fn packages(&self) -> std::path::PathBuf {
        self.folder.path().join("packages")
    }

    pub(super) fn trusted_keys(&self) -> std::path::PathBuf {
        self.folder.path().join("trusted-keys.json")
    }

    pub(super) fn trust(&self, keys: &[TrustedKey]) {
        std::fs::write(self.trusted_keys(), write_trusted_keys(keys)).unwrap();
    }

    /// Puts the guest into a folder as a package of this version.
    pub(super) fn put(&self, folder: &str, key: &PublisherKey, version: &str) {
        let manifest = manifest_with("/version", json!(version));
        let files = pack(manifest.to_string().as_bytes(), contents(&hostile()), key).unwrap();
        write_dir(&files, &self.packages().join(folder)).unwrap();
    }

    pub(super) fn remove(&self, folder: &str) {
        std::fs::remove_dir_all(self.packages().join(folder)).unwrap();
    }

    pub(super) fn options(&self) -> Options {
        let shown = |path: &Path| path.display().to_string();
        Options::default()
            .with("ADAPTER_PACKAGES", shown(&self.packages()))
            .with("ADAPTER_TRUSTED_KEYS", shown(&self.trusted_keys()))
    }

    async fn server(&self, database: Database) -> Server {
        Server::start_with(database, self.options()).await
    }
}

/// Version that serves, and the reasons of what does not.
pub(super) async fn serving(api: &Api) -> (Value, String) {
    let detail = api.get("/health/detail").await.expect_status(200).body;
    (detail["adapters"][0]["version"].clone(), detail["refused_adapters"].to_string())
}

async fn installed(api: &Api) -> Vec<Value> {
    let entries = api.get("/audit?action=adapter.installed").await.expect_status(200).body;
    entries["items"].as_array().unwrap().iter().map(|entry| entry["detail"].clone()).collect()
}

on_both! {
    async fn neither_another_publisher_nor_an_older_version_takes_over(database: Database) {
        let store = Store::new();
        store.put("good", &store.acme, "1.1.0");
        let mut server = store.server(database).await;
        let api = server.set_up().await;
        assert_eq!(serving(&api).await, (json!("1.1.0"), "[]".to_owned()));

        // Another publisher's package, whatever its version and the name of its folder.
        store.put("another", &store.globex, "1.0.0");
        store.put("zzz", &store.globex, "9.0.0");
        server.restart().await;
        let (version, refused) = serving(&server.log_in("ada").await).await;
        assert_eq!(version, "1.1.0");
        assert_eq!(refused.matches("'acme'").count(), 2, "{refused}");
        assert_eq!(refused.matches("'globex'").count(), 2, "{refused}");

        // Two versions of one publisher: the newer one serves.
        store.remove("another");
        store.remove("zzz");
        store.put("more", &store.acme, "1.2.0");
        server.restart().await;
        let (version, refused) = serving(&server.log_in("ada").await).await;
        assert_eq!(version, "1.2.0");
        assert!(refused.contains("'more'") && refused.contains("'good'"), "{refused}");

        // The older one alone.
        store.remove("more");
        server.restart().await;
        let api = server.log_in("ada").await;
        let (version, refused) = serving(&api).await;
        assert_eq!(version, Value::Null);
        assert!(refused.contains("1.1.0") && refused.contains("1.2.0"), "{refused}");

        let installed = installed(&api).await;
        let versions: Vec<&Value> = installed.iter().map(|detail| &detail["version"]).collect();
        assert_eq!(versions, ["1.2.0", "1.1.0"], "each package once, and none that was refused");
        let chain = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(chain["valid"], true, "{chain}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_package_is_in_the_audit_log_with_what_it_may_do() {
    let store = Store::new();
    store.put("good", &store.acme, "1.1.0");
    let mut server = store.server(Database::sqlite()).await;
    let api = server.set_up().await;
    let details = installed(&api).await;
    assert_eq!(details.len(), 1, "{details:?}");
    let detail = &details[0];
    assert_eq!((&detail["adapter"], &detail["publisher"]), (&json!("hostile"), &json!("acme")), "{detail}");
    assert_eq!(detail["signed_by"], store.acme.trusted().key_id(), "{detail}");
    for hash in ["manifest_sha256", "component_sha256"] {
        assert_eq!(detail[hash].as_str().map(str::len), Some(64), "{detail}");
    }
    assert!(detail["rules"].to_string().contains("counts as a read: POST /read"), "{detail}");
    server.restart().await;
    assert_eq!(installed(&server.log_in("ada").await).await.len(), 1, "once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_provides_only_the_ids_that_the_operator_named() {
    let store = Store::new();
    store.put("good", &store.acme, "1.1.0");
    store.trust(&[store.acme.trusted_for_own()]);
    let mut server = store.server(Database::sqlite()).await;
    let (version, refused) = serving(&server.set_up().await).await;
    assert_eq!(version, Value::Null);
    assert!(refused.contains("'hostile'") && refused.contains("acme-*"), "{refused}");
    store.trust(&[store.acme.trusted_for(vec!["hostile".to_owned()])]);
    server.restart().await;
    assert_eq!(serving(&server.log_in("ada").await).await.0, "1.1.0");
}
