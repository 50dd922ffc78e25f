//! A machine that is busy compiling, or short of memory: what is revoked goes out of service meanwhile, and no package is
//! rejected for it.

use heddle_core::Clock;
use heddle_marketplace::catalog::{Action, Revocation, RevokedKind};
use heddle_marketplace::write_archive;
use heddle_runtime::Compiler;
use heddle_store::catalogs;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{Lab, offered, plugin as plugin_manifest, syncs};
use crate::plugins::{agree, archive_of, guest, plugin, told};
use crate::sandbox::package;
use crate::support::{Api, Database, Options, heddle_binary, on_both, until};

/// What the compile process does while the file exists that is named so.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// It waits.
    Held,
    /// It is killed, as by a system without memory.
    Killed,
}

impl Trouble {
    fn file(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Killed => "killed",
        }
    }
}

/// A compile process in trouble, which compiles as usual without it.
struct Compiling {
    folder: TempDir,
}

impl Compiling {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn compiler(&self) -> Compiler {
        let script = r#"
            while [ -e "$0/held" ]; do : > "$0/begun"; /bin/sleep 0.05; done
            if [ -e "$0/killed" ]; then : > "$0/begun"; kill -KILL $$; fi
            exec "$1" plugin-compile
        "#;
        let place = |path: &std::path::Path| path.display().to_string();
        let args =
            vec!["-c".to_owned(), script.to_owned(), place(self.folder.path()), place(&heddle_binary())];
        Compiler { program: "/bin/sh".into(), args, is_awaited: false }
    }

    fn has(&self, trouble: Trouble) {
        std::fs::write(self.folder.path().join(trouble.file()), b"").unwrap();
    }

    fn recovers(&self, trouble: Trouble) {
        std::fs::remove_file(self.folder.path().join(trouble.file())).unwrap();
    }

    /// Waits until a compile process has met its trouble, since this was asked last.
    async fn begun(&self) {
        until("it compiles", async || self.has_begun()).await;
    }

    /// Whether a compile process has met its trouble, since this was asked last.
    fn has_begun(&self) -> bool {
        std::fs::remove_file(self.folder.path().join("begun")).is_ok()
    }
}

/// The component with a section that no other one has, so that it was never compiled before.
fn fresh(mut component: Vec<u8>) -> Vec<u8> {
    let id = Clock::default().new_id::<uuid::Uuid>();
    component.extend([0, 21, 4]);
    component.extend(b"mark".iter().chain(id.as_bytes()));
    component
}

/// The plugin of the lab in this version, with a component that was never compiled before.
fn fresh_package(lab: &Lab, version: &str) -> Vec<u8> {
    archive_of(&plugin_manifest(&lab.device, version), fresh(guest()), &lab.registry.acme)
}

/// The package of an adapter that was never compiled before, by a publisher that is trusted from now on.
async fn fresh_adapter(api: &Api) -> Vec<u8> {
    let key = package::key().trusted();
    let trust = json!({
        "publisher": "acme", "public_key": hex::encode(key.key), "fingerprint": key.key_id(), "ids": ["hostile"],
    });
    api.post("/plugins/trusted-keys", &trust).await.expect_status(201);
    let files = package::packed(&package::manifest(), &fresh(package::hostile())).unwrap();
    write_archive(&files).unwrap()
}

/// A lab that uses the plugin, and whose server installs newer versions by itself each hour.
async fn updating_by_itself(database: Database, compiling: &Compiling) -> Lab {
    let settings = |options: Options| {
        options
            .with("MARKETPLACE_SYNC_MINUTES", "60")
            .with("MARKETPLACE_AUTO_UPDATE", "true")
            .compiling(compiling.compiler())
    };
    let lab = Lab::start_with(database, settings).await;
    until("it is synced", async || !offered(&lab.api, "").await.is_empty()).await;
    lab.api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
    agree(&lab.api).await;
    lab
}

/// The lab at a time at which the next update of its catalogue is due.
async fn an_hour_later(lab: Lab) -> Lab {
    lab.server.running().app.clock.advance(chrono::TimeDelta::minutes(61));
    Lab { api: lab.server.log_in("ada").await, ..lab }
}

/// The lab once the server has tried the update again by itself, after pauses that grow.
async fn tried_later(mut lab: Lab, compiling: &Compiling) -> Lab {
    for _ in 0..30 {
        lab = an_hour_later(lab).await;
        for _ in 0..40 {
            if compiling.has_begun() {
                return lab;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    panic!("the update is not tried again");
}

async fn serves(api: &Api, id: &str) -> bool {
    let adapters = api.get("/adapters").await.expect_status(200).body;
    adapters["items"].as_array().unwrap().iter().any(|one| one["id"] == id)
}

on_both! {
    async fn an_adapter_is_revoked_while_another_one_is_compiled(database: Database) {
        let compiling = Compiling::new();
        let lab = Lab::start_with(database, |options| options.compiling(compiling.compiler())).await;
        let archive = fresh_adapter(&lab.api).await;
        compiling.has(Trouble::Held);
        let sending = lab.api.with("content-type", "application/zip");
        let installing = sending.send("POST", "/adapters/packages", Some(archive));
        let revoking = async {
            compiling.begun().await;
            lab.registry.revoke("plugin", "openwrt", "kill");
            let gone = async {
                until("it is out of service", async || !serves(&lab.api, "openwrt").await).await;
                compiling.recovers(Trouble::Held);
            };
            tokio::join!(syncs(&lab.api, "updated"), gone)
        };
        let (installed, _) = tokio::join!(installing, revoking);
        installed.expect_status(201);
        assert!(serves(&lab.api, "hostile").await && !serves(&lab.api, "openwrt").await);
    }
}

on_both! {
    async fn what_another_process_revoked_is_taken_up_while_an_update_compiles(database: Database) {
        let compiling = Compiling::new();
        let lab = updating_by_itself(database, &compiling).await;
        compiling.has(Trouble::Held);
        lab.registry.add(&fresh_package(&lab, "1.1.0"));
        let lab = an_hour_later(lab).await;
        compiling.begun().await;
        another_process_revokes(&lab, "openwrt").await;
        until("it is out of service", async || !serves(&lab.api, "openwrt").await).await;
        assert_eq!(plugin(&lab.api).await["version"], "1.0.0", "the update waits still");
        compiling.recovers(Trouble::Held);
    }
}

on_both! {
    async fn a_compile_process_that_was_killed_rejects_no_version(database: Database) {
        let compiling = Compiling::new();
        let lab = updating_by_itself(database, &compiling).await;
        compiling.has(Trouble::Killed);
        lab.registry.add(&fresh_package(&lab, "1.1.0"));
        syncs(&lab.api, "updated").await;
        let update = "/marketplace/plugins/scripted/update";
        let failed = lab.api.post(update, &json!({})).await.expect_status(503);
        assert!(failed.text.contains("SIGKILL") && failed.text.contains("try again"), "{}", failed.text);
        compiling.begun().await;

        // Nor where the server tries by itself, and it does so again.
        let lab = tried_later(lab, &compiling).await;
        let lab = tried_later(lab, &compiling).await;
        let standing = plugin(&lab.api).await;
        assert_eq!((&standing["state"], &standing["version"]), (&json!("active"), &json!("1.0.0")), "{standing}");
        assert!(told(&lab.api).await.iter().all(|(version, _)| version == "1.0.0"));
        compiling.recovers(Trouble::Killed);
        assert_eq!(lab.api.post(update, &json!({})).await.expect_status(201).body["state"], "active");
        assert_eq!(plugin(&lab.api).await["version"], "1.1.0");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compile_process_that_was_killed_refuses_no_adapter() {
    let compiling = Compiling::new();
    let lab = Lab::start_with(Database::sqlite(), |options| options.compiling(compiling.compiler())).await;
    let archive = fresh_adapter(&lab.api).await;
    let sending = lab.api.with("content-type", "application/zip");
    compiling.has(Trouble::Killed);
    let failed = sending.send("POST", "/adapters/packages", Some(archive.clone())).await.expect_status(503);
    assert!(failed.text.contains("SIGKILL"), "{}", failed.text);
    compiling.recovers(Trouble::Killed);
    sending.send("POST", "/adapters/packages", Some(archive)).await.expect_status(201);
}

/// Writes into the database what another process writes that has followed the catalogue.
async fn another_process_revokes(lab: &Lab, adapter: &str) {
    let revocation = Revocation {
        kind: RevokedKind::Plugin,
        value: adapter.to_owned(),
        versions: None,
        action: Action::Kill,
        reason: "it steals".to_owned(),
    };
    let entry: Value = serde_json::to_value(revocation).unwrap();
    let trust = format!("root:{}", hex::encode(Sha256::digest(lab.registry.read("1.root.json"))));
    let mut tx = lab.server.running().app.db.write().await.unwrap();
    catalogs::hold_gate(&mut tx).await.unwrap();
    let row = catalogs::lock(&mut tx, &trust).await.unwrap().unwrap();
    catalogs::put_revocations(&mut tx, row.id, &[entry]).await.unwrap();
    tx.commit().await.unwrap();
}
