//! What a start says, and what it leaves alone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{command, options, run};
use crate::support::{Database, Options, Process};

#[test]
fn the_version_is_told_and_the_settings_also_with_wrong_ones() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = Options::default().with("BIND_ADDR", "nowhere").with("LOG_FORMAT", "xml");
    let version = run(folder.path(), &Database::Sqlite, &wrong, &["--version"]).expect_ok().out;
    assert!(version.starts_with("heddle 0.1.0"), "{version}");
    let settings = run(folder.path(), &Database::Sqlite, &wrong, &["settings"]).expect_ok().out;
    assert!(settings.contains("| `HTTP_HEADER_TIMEOUT_SECS` | `10` |"), "{settings}");
    // All that is wrong is said at once.
    run(folder.path(), &Database::Sqlite, &wrong, &["serve"])
        .expect_failure(&["BIND_ADDR='nowhere'", "LOG_FORMAT='xml'"]);
}

#[test]
fn printing_the_document_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &Database::Sqlite, &Options::default(), &["openapi"]);
    let data = folder.path().join("none");
    command.env("DATA_DIR", &data).env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none");
    command.env("TMPDIR", folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(b"{"));
    assert!(!data.exists());
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["data"], "only what the test made itself");
}

#[test]
fn a_database_that_is_down_is_said_at_once_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Postgres("postgres://nobody@127.0.0.1:1/none".to_owned());
    let started = Instant::now();
    let ran = run(folder.path(), &database, &Options::default(), &["serve"]);
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    let ran = ran.expect_failure(&["attempt 1 of 4", "127.0.0.1:1", "Connection refused"]);
    assert!(!ran.err.contains("pool timed out"), "{}", ran.err);
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The data folder and the files in it are for their user alone.
#[track_caller]
fn assert_private(data: &Path) {
    assert_eq!(mode(data), 0o700);
    for entry in std::fs::read_dir(data)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().unwrap().is_file())
    {
        assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_migrate_and_restore_leave_is_for_their_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = options().with("ADAPTER_PACKAGES", "");
    let (_process, _) = Process::start(folder.path(), &Database::Sqlite, &options).await.set_up().await;
    let file = folder.path().join("backup.heddle");
    let file = file.to_str().unwrap();
    run(folder.path(), &Database::Sqlite, &options, &["backup", file]).expect_ok();
    for arguments in [&["migrate"][..], &["restore", file][..]] {
        for was_there in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path().join("of-the-command");
            if was_there {
                std::fs::create_dir(&data).unwrap();
                std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            let mut command = command(folder.path(), &Database::Sqlite, &options, arguments);
            let output = command.env("DATA_DIR", &data).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments:?}: {said}");
            assert!(data.join("heddle.db").is_file(), "{arguments:?}");
            assert_private(&data);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_files_are_its_own_its_memory_is_not_dumped_and_its_log_has_no_colours() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(data.join("heddle.db"), b"").unwrap();
    std::fs::set_permissions(data.join("heddle.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let options = Options::default().with("ADAPTER_PACKAGES", "").with("LOG_FILTER", "info");
    let process = Process::start(folder.path(), &Database::Sqlite, &options).await;
    assert_private(&data);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
    let health = process.api.get("/health").await.expect_status(200).body;
    assert_eq!(health["status"], "degraded");
    assert_eq!(health["degraded_subsystems"], serde_json::json!(["adapters"]));
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(!log.contains('\u{1b}'), "{log}");
    assert!(log.contains("no adapter is loaded") && log.contains("could be used by other users"), "{log}");
}
