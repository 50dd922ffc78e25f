//! The lock by which a process is known: lost, refused, freed.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::{Pair, apply_held, change, quick, set_up, settled, verb};
use crate::support::{Database, Options, Process, environment, heddle_binary};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_drivers_lock_broke_has_one_driver() {
    let Some(pair) = Pair::start(quick()).await else { return };
    let before = pair.router.fingerprint();
    let id = pair.stage(&pair.a.api, "Broken-lock").await;
    apply_held(&pair.a.api, &id, 30).await;
    let owner = "SELECT COUNT(*) FROM change c JOIN process p ON p.id = c.apply_owner";
    assert_eq!(pair.sql(owner).await, 1);
    // Every session that holds a process lock is ended, the driver's among them.
    let ended = pair
        .sql("SELECT COUNT(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
        .await;
    assert_eq!(ended, 2);
    for _ in 0..600 {
        if pair.sql("SELECT COUNT(*) FROM process").await == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(pair.sql("SELECT COUNT(*) FROM process").await, 4, "both registered under new ids");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let taken = [pair.log_of_a(), pair.log_of_b()].map(|log| log.matches("taking up change").count());
    assert!(taken[0] + taken[1] >= 1, "one took it: {taken:?}");
    let now_owned = "SELECT COUNT(*) FROM change c JOIN process p ON p.id = c.apply_owner
        WHERE c.apply_step <> 'idle'";
    assert_eq!(pair.sql(now_owned).await, 1);
    let ended = settled(&pair.b.api, &id).await;
    assert_eq!(ended["outcome"]["state"], "reverted", "{ended}");
    assert_eq!(pair.router.fingerprint(), before);
    // And both work on.
    for (api, name) in [(&pair.a.api, "After-a"), (&pair.b.api, "After-b")] {
        let id = pair.stage(api, name).await;
        apply_held(api, &id, 10).await;
        api.post(&verb(&id, "confirm"), &json!({})).await.expect_status(200);
        assert_eq!(change(api, &id).await["status"], "applied");
        assert_eq!(pair.times(name), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_is_refused_the_same_file_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with("SYNC_INTERVAL_SECS", "3600");
    let mut first = Process::start(folder.path(), &Database::sqlite(), &options).await;
    set_up(&first).await;
    let run = |command: &str| {
        let mut environment = environment(folder.path(), &Database::sqlite(), &options);
        environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        Command::new(heddle_binary())
            .arg(command)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let second = run("serve");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success(), "{said}");
    assert!(said.contains("another process serves this database file"), "{said}");
    assert!(
        said.contains(".lock") && said.contains("PostgreSQL"),
        "names the lock and what would work: {said}"
    );
    let migrated = run("migrate");
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    first.api.get("/setup/status").await.expect_status(200);
    first.kill();
    let again = Process::start(folder.path(), &Database::sqlite(), &options).await;
    again.api.get("/setup/status").await.expect_status(200);
}
