//! Keys are rotated while the service runs, and through kills.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use heddle_core::{Clock, CredentialId, OrgId};
use heddle_kernel::keys::Keys;
use heddle_store::credentials::{self, NewCredential, SealedSecret};
use heddle_store::sealed::{self, SealedColumn};
use heddle_store::{Db, PoolSettings};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Site, assert_credential_works, options, spawn};
use crate::support::{Database, ENCRYPTION_KEY as OLD, NEXT_ENCRYPTION_KEY as NEW, on_both};

const CREDENTIAL: SealedColumn = SealedColumn::of("credential");
const CREDENTIALS: usize = 3_000;
const POOL: PoolSettings = PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(20) };

async fn open(folder: &Path, database: &Database) -> Db {
    let url = match database {
        Database::Sqlite => format!("sqlite://{}", folder.join("data/heddle.db").display()),
        Database::Postgres(url) => url.clone(),
    };
    Db::open(&url, &POOL).await.unwrap()
}

fn plain(id: CredentialId) -> Vec<u8> {
    format!(r#"[["password","secret of {id}"]]"#).into_bytes()
}

async fn many_credentials(site: &Site) -> (OrgId, Vec<CredentialId>) {
    let org = site.process.api.get("/auth/me").await.expect_status(200).body;
    let org = OrgId(
        org["organization_id"].as_str().or(org["organization"]["id"].as_str()).unwrap().parse().unwrap(),
    );
    let (clock, keys) = (Clock::default(), Keys::from_texts("any", OLD));
    let db = open(site.path(), &site.database).await;
    let mut tx = db.write().await.unwrap();
    let mut ids = Vec::new();
    for n in 0..CREDENTIALS {
        let id: CredentialId = clock.new_id();
        let sealed = SealedSecret {
            username: None,
            has_password: true,
            has_api_key: false,
            field_names: Vec::new(),
            key_id: keys.key_id(),
            secret: keys.seal(&format!("credential:{id}"), &plain(id)),
        };
        let new = NewCredential {
            id,
            org_id: org,
            name: format!("c{n}"),
            host: None,
            port: None,
            tls: None,
            sealed,
            now: clock.now(),
        };
        credentials::insert(&mut tx, &new).await.unwrap();
        ids.push(id);
    }
    tx.commit().await.unwrap();
    db.close().await;
    (org, ids)
}

/// How many of the credentials are under the key of `keys`; every one opens.
async fn opened(site: &Site, org: OrgId, ids: &[CredentialId], keys: &Keys) -> usize {
    let db = open(site.path(), &site.database).await;
    let mut tx = db.read().await.unwrap();
    let mut current = 0;
    for id in ids {
        let row = credentials::find_sealed(&mut tx, org, *id).await.unwrap().unwrap();
        let clear = keys.open_sealed(&format!("credential:{id}"), &row.secret).unwrap();
        assert_eq!(*clear, plain(*id));
        let is_current = keys.is_current(&row.secret);
        assert_eq!(is_current, row.key_id == keys.key_id(), "the column says the same");
        current += usize::from(is_current);
    }
    tx.rollback().await.unwrap();
    db.close().await;
    current
}

/// A process that is killed when this is dropped, also while it stands still.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Begins a rotation and kills it when some credentials are under the new key and others are not; false when it ended
/// before that was seen. The process is stopped during each look, so the duration of a look does not matter.
async fn rotate_until_midway(site: &Site, keys: &Keys) -> bool {
    let db = open(site.path(), &site.database).await;
    let mut rotating = Killed(spawn(site.path(), &site.database, &site.options, &["keys", "rotate"]));
    let pid = Pid::from_child(&rotating.0);
    let mut is_midway = false;
    while !is_midway && rotating.0.try_wait().unwrap().is_none() {
        kill_process(pid, Signal::STOP).unwrap();
        let shares = sealed::shares(&mut db.read().await.unwrap(), CREDENTIAL).await.unwrap();
        is_midway = shares.len() > 1 && shares.iter().any(|share| share.mark == keys.mark());
        if !is_midway {
            kill_process(pid, Signal::CONT).unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(rotating);
    db.close().await;
    is_midway
}

on_both! {
    async fn a_rotation_goes_on_where_it_was_killed(database: Database) {
        let mut site = Site::start(database, options()).await;
        let (org, ids) = many_credentials(&site).await;
        let before = site.options.clone();
        let (mut from, mut to) = (OLD, NEW);
        let mut tries = 0;
        let both = loop {
            site.options = before.clone().with("ENCRYPTION_KEY", to).with("ENCRYPTION_KEY_PREVIOUS", from);
            site.restart().await;
            let both = Keys::from_texts("any", to).also_opening(from);
            if rotate_until_midway(&site, &both).await {
                break both;
            }
            // It ended unseen: everything is under the new key, and rotates back.
            (from, to, tries) = (to, from, tries + 1);
            assert!(tries < 10, "no rotation was seen midway");
        };
        // Every credential opens with both keys, wherever the rotation stood.
        let stood = opened(&site, org, &ids, &both).await;
        assert!((1..CREDENTIALS).contains(&stood), "the kill fell in the middle: {stood}");
        // A server that knows both keys works in the middle of it.
        assert_credential_works(&site.process.api, &site.controller).await;
        let said = site.run(&["keys", "rotate"]).expect_ok();
        assert!(said.out.contains("ENCRYPTION_KEY_PREVIOUS can be removed"), "{said:?}");
        assert_eq!(opened(&site, org, &ids, &Keys::from_texts("any", to)).await, CREDENTIALS);
        let again = site.run(&["keys", "rotate"]).expect_ok();
        assert!(again.out.starts_with("0 rows"), "{again:?}");

        site.options = site.options.clone().with("ENCRYPTION_KEY_PREVIOUS", "");
        site.restart().await;
        assert_credential_works(&site.process.api, &site.controller).await;
        site.run(&["keys", "rotate"]).expect_failure(&["ENCRYPTION_KEY_PREVIOUS is not set"]);
    }
}

on_both! {
    async fn a_credential_that_is_edited_meanwhile_keeps_its_edit(database: Database) {
        let mut site = Site::start(database, options()).await;
        many_credentials(&site).await;
        site.options = site.options.clone().with("ENCRYPTION_KEY", NEW).with("ENCRYPTION_KEY_PREVIOUS", OLD);
        site.restart().await;
        let credentials = site.process.api.get("/credentials?search=router").await.expect_status(200).body;
        let path = format!("/credentials/{}", credentials["items"][0]["id"].as_str().unwrap());
        let mut rotating = spawn(site.path(), &site.database, &site.options, &["keys", "rotate"]);
        let mut edits = 0;
        while rotating.try_wait().unwrap().is_none() {
            let body = json!({ "password": format!("wrong-{edits}") });
            site.process.api.patch(&path, &body).await.expect_status(200);
            edits += 1;
        }
        assert!(rotating.wait().unwrap().success());
        let last = json!({ "password": crate::staging::ROUTER_PASSWORD });
        site.process.api.patch(&path, &last).await.expect_status(200);
        site.run(&["keys", "rotate"]).expect_ok();
        let version = site.process.api.get(&path).await.expect_status(200).body["version"].clone();
        assert_eq!(version, edits + 2, "each edit counted once, and the rotation not at all");
        assert_credential_works(&site.process.api, &site.controller).await;
    }
}

on_both! {
    async fn a_change_with_secrets_is_planned_again_and_then_applied(database: Database) {
        let mut site = Site::start(database, options()).await;
        let applied = site.stage_secret("dsl").await;
        site.apply(&applied).await;
        let pending = site.stage_secret("late").await;
        assert!(pending["plan"].is_object(), "{pending}");
        let id = pending["id"].as_str().unwrap().to_owned();
        let path = |verb: &str| format!("/gateway-vpn/changes/{id}{verb}");
        site.options = site.options.clone().with("ENCRYPTION_KEY", NEW).with("ENCRYPTION_KEY_PREVIOUS", OLD);
        site.restart().await;
        // Its plan speaks of secrets in another way than the service does now.
        let force = json!({ "force": true });
        let refused = site.process.api.post(&path("/apply"), &force).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_planned", "{}", refused.text);
        assert!(refused.message().contains("plan it again"), "{}", refused.text);

        let said = site.run(&["keys", "rotate"]).expect_ok();
        assert!(said.out.contains("must be planned again"), "{said:?}");
        let seen = site.process.api.get(&path("")).await.expect_status(200).body;
        assert!(seen["plan"].is_null(), "{seen}");
        assert_eq!(seen["plan_error"]["type"], "keys_rotated", "{seen}");
        assert!(seen["plan_error"]["message"].as_str().unwrap().contains("plan it again"), "{seen}");
        site.process.api.post(&path("/apply"), &force).await.expect_status(409);

        site.options = site.options.clone().with("ENCRYPTION_KEY_PREVIOUS", "");
        site.restart().await;
        site.process.api.post(&path("/plan"), &json!({})).await.expect_status(200);
        site.process.api.post(&path("/apply"), &force).await.expect_status(200);
        assert_eq!(site.router.option("network", "late", "password"), Some(json!("pppoe-secret-1")));
        // What was applied before is taken back with what it holds.
        let revert = format!("/gateway-vpn/changes/{}/revert", applied["id"].as_str().unwrap());
        let inverse = site.process.api.post(&revert, &json!({})).await.expect_status(201).body;
        site.apply(&inverse).await;
        assert_eq!(site.router.option("network", "dsl", "password"), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_development_the_new_key_is_generated() {
    let unkeyed = || options().with("ENCRYPTION_KEY", "").with("SECRET_KEY", "");
    let mut site = Site::start(Database::Sqlite, unkeyed()).await;
    let read = |site: &Site| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(site.path().join("data/keys.json")).unwrap()).unwrap()
    };
    let before = read(&site);
    let said = site.run(&["keys", "rotate"]).expect_ok();
    assert!(said.out.contains("keys.json"), "{said:?}");
    let after = read(&site);
    assert_ne!(before["encryption_key"], after["encryption_key"]);
    assert_eq!(before["secret_key"], after["secret_key"]);
    assert!(after.get("previous").is_none(), "the old one is forgotten at the end");
    site.restart().await;
    assert_credential_works(&site.process.api, &site.controller).await;
}
