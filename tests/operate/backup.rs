//! A backup of a serving service becomes the same service elsewhere.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use heddle_core::secret::random_bytes;
use serde_json::{Value, json};

use super::{Site, assert_credential_works, fresh, lists, options, run, spawn};
use crate::staging::ROUTER_PASSWORD;
use crate::support::{Database, Options, PASSWORD, Process, on_both};

/// What is the same where a backup is restored.
#[derive(Clone, Copy, PartialEq)]
enum Same {
    /// Kind of database and keys: the answers are equal to the byte.
    All,
    /// The keys: the databases order and spell JSON differently.
    Keys,
    /// Neither keys nor tokens.
    Nothing,
}

/// Backs `from` up while it serves, restores it into `to`, and serves there.
async fn round_trip(from: Database, to: Database, to_options: Options, same: Same) {
    let site = Site::start(from, options()).await;
    site.synced().await;
    let applied = site.stage_secret("dsl").await;
    site.apply(&applied).await;
    site.synced().await;
    site.stage_secret("pending").await;
    // Let the reading after the apply end, so that nothing moves while the lists are compared.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = lists(&site.process.api).await;
    let file = site.path().join("backup.heddle");
    let file = file.to_str().unwrap();
    let said = site.run(&["backup", file]).expect_ok();
    assert!(said.out.contains("rows of"), "{said:?}");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::path::Path::new(&format!("{file}.partial")).exists());
    let bytes = std::fs::read(file).unwrap();
    for canary in [ROUTER_PASSWORD, "ada@acme.test", "Head office", "pppoe-secret-1"] {
        assert!(!bytes.windows(canary.len()).any(|window| window == canary.as_bytes()), "{canary}");
    }
    site.run(&["backup", file]).expect_failure(&["exists already"]);
    assert_eq!(std::fs::read(file).unwrap(), bytes);

    let folder = tempfile::tempdir().unwrap();
    // Other keys have compiled components of their own; those of all tests are kept under one.
    std::fs::create_dir_all(folder.path().join("data/code")).unwrap();
    run(folder.path(), &to, &to_options, &["restore", file]).expect_ok();
    run(folder.path(), &to, &to_options, &["restore", file]).expect_failure(&["in use", "empty"]);
    let restored = Process::start(folder.path(), &to, &to_options).await;
    if same == Same::All {
        assert_eq!(lists(&restored.api.with_token(&site.token)).await, before);
    } else if same == Same::Keys {
        compare(&before, &lists(&restored.api.with_token(&site.token)).await);
    }
    let login = json!({ "login": "ada", "password": PASSWORD });
    let session = restored.api.post("/auth/login", &login).await.expect_status(200).body;
    let api = restored.api.with_token(session["access_token"].as_str().unwrap());
    if same == Same::Nothing {
        restored.api.with_token(&site.token).get("/sites").await.expect_status(401);
        let mut after = lists(&api).await;
        // The login is in the audit log, and the pending change has to be planned again.
        let mut before: Vec<_> = before.into_iter().filter(|(path, _)| !path.starts_with("/audit")).collect();
        after.retain(|(path, _)| !path.starts_with("/audit"));
        let changes: Vec<Value> = serde_json::from_str(&after.pop().unwrap().1).unwrap();
        before.pop();
        compare(&before, &after);
        let of = |status: &str| changes.iter().find(|change| change["status"] == status).unwrap();
        assert_eq!(of("pending")["plan_error"]["type"], "keys_rotated", "{changes:?}");
        let path = format!("/gateway-vpn/changes/{}", of("pending")["id"].as_str().unwrap());
        let planned = api.post(&format!("{path}/plan"), &json!({})).await.expect_status(200).body;
        assert!(planned["plan"].is_object(), "{planned}");
    }
    let audit = api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(audit["valid"], true, "{audit}");
    assert_credential_works(&api, &site.controller).await;
}

fn compare(before: &[(String, String)], after: &[(String, String)]) {
    assert_eq!(before.len(), after.len());
    for ((path, before), (_, after)) in before.iter().zip(after) {
        let [before, after]: [Value; 2] = [before, after].map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(before, after, "{path}");
    }
}

on_both! {
    async fn a_restored_service_answers_as_the_one_that_was_backed_up(database: Database) {
        let to = fresh(&database).await;
        round_trip(database, to, options(), Same::All).await;
    }
}

on_both! {
    async fn a_service_with_other_keys_seals_what_it_restores_with_its_own(database: Database) {
        let to = fresh(&database).await;
        let own = options()
            .with("ENCRYPTION_KEY", "other-7b1c9d4e2f8a6053bb82dd10-encrypt-QrS")
            .with("SECRET_KEY", "other-1d3e5f7a9b2c4d6e8f0a1b3c-signing-QrS");
        round_trip(database, to, own, Same::Nothing).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_file_is_restored_into_postgres() {
    if let Some(to) = Database::postgres().await {
        round_trip(Database::Sqlite, to, options(), Same::Keys).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_postgres_is_restored_into_a_file() {
    if let Some(from) = Database::postgres().await {
        round_trip(from, Database::Sqlite, options(), Same::Keys).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_development_the_keys_come_with_the_backup() {
    let unkeyed = || options().with("ENCRYPTION_KEY", "").with("SECRET_KEY", "");
    let site = Site::start(Database::Sqlite, unkeyed()).await;
    let file = site.path().join("backup.heddle");
    let file = file.to_str().unwrap();
    site.run(&["backup", file]).expect_ok();
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &Database::Sqlite, &unkeyed(), &["restore", file]).expect_ok();
    assert!(said.out.contains("keys.json"), "{said:?}");
    let keys = |folder: &std::path::Path| std::fs::read(folder.join("data/keys.json")).unwrap();
    assert_eq!(keys(site.path()), keys(folder.path()));
    let restored = Process::start(folder.path(), &Database::Sqlite, &unkeyed()).await.with_token(&site.token);
    assert_credential_works(&restored.api, &site.controller).await;
}

/// Many rows, so that a restore takes long enough to be killed.
async fn many_events(site: &Site, rows: usize) {
    for name in 0..rows {
        let body = json!({ "name": format!("site {name}") });
        site.process.api.post("/sites", &body).await.expect_status(201);
    }
}

on_both! {
    async fn a_restore_that_is_killed_leaves_the_database_empty_or_full(database: Database) {
        let site = Site::start(database, options()).await;
        many_events(&site, 150).await;
        let file = site.path().join("backup.heddle");
        let file = file.to_str().unwrap();
        site.run(&["backup", file]).expect_ok();
        let (mut killed, mut spread) = (0, 400);
        for _ in 0..8 {
            let folder = tempfile::tempdir().unwrap();
            let to = fresh(&site.database).await;
            let mut restoring = spawn(folder.path(), &to, &site.options, &["restore", file]);
            // The two derivations of the key take most of the time; the rows are at the end.
            let wait = u64::from(random_bytes::<1>()[0]) * spread / 255 + 300;
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let was_running = restoring.try_wait().unwrap().is_none();
            restoring.kill().unwrap();
            restoring.wait().unwrap();
            if was_running {
                killed += 1;
                // All or nothing: what is there is not half of it, and an empty one takes the backup.
                let again = run(folder.path(), &to, &site.options, &["restore", file]);
                assert!(again.code == Some(0) || again.err.contains("in use"), "{again:?}");
            } else {
                spread = spread * 3 / 4;
            }
            let restored = Process::start(folder.path(), &to, &site.options).await.with_token(&site.token);
            let sites = restored.api.get("/sites").await.expect_status(200).body;
            assert_eq!(sites["total"], 151, "{sites}");
        }
        assert!(killed > 0, "no kill fell into a restore");
    }
}
