//! Files that are not restored, and that nothing is changed by trying.

use std::path::Path;

use super::{Ran, Site, options, run};
use crate::support::{Database, Options};

/// Bytes of a file before its first chunk, and of a full chunk.
const HEADER: usize = 72;
const CHUNK: usize = 64 * 1024 + 16;
/// Positions of a byte that is altered, tried with the binary.
const FLIPS: usize = 120;

/// What is in the data folder, besides the code cache that the tests share.
fn made(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("data")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "code").collect()
}

/// Tries to restore the bytes into an empty folder.
fn tried(bytes: &[u8], options: &Options) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("try.heddle");
    std::fs::write(&file, bytes).unwrap();
    let unkeyed = options.clone().with("ENCRYPTION_KEY", "").with("SECRET_KEY", "");
    let ran = run(folder.path(), &Database::Sqlite, &unkeyed, &["restore", file.to_str().unwrap()]);
    assert_eq!(made(folder.path()), Vec::<String>::new(), "nothing is made: {ran:?}");
    ran
}

async fn a_backup() -> Vec<u8> {
    let site = Site::start(Database::Sqlite, options()).await;
    site.synced().await;
    let file = site.path().join("backup.heddle");
    site.run(&["backup", file.to_str().unwrap()]).expect_ok();
    std::fs::read(file).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused_and_nothing_is_changed() {
    let whole = a_backup().await;
    let step = whole.len().div_ceil(FLIPS);
    // Every byte of the beginning decides something of its own; of the rest each is like the others.
    let positions = (0..HEADER).step_by(3).chain((HEADER..whole.len()).step_by(step));
    for at in positions {
        let mut altered = whole.clone();
        altered[at] ^= 1 << (at % 8);
        let words: &[&str] = match at {
            0..8 => &["not a backup of Heddle"],
            8 => &["format"],
            9..HEADER => &["is not restored"],
            _ => &["damaged or cut off in its chunk"],
        };
        tried(&altered, &options()).expect_failure(words);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_cut_off_or_foreign_is_refused_and_nothing_is_changed() {
    let whole = a_backup().await;
    let mut ends: Vec<usize> = (HEADER..whole.len()).step_by(CHUNK).collect();
    ends.extend([HEADER - 1, HEADER + 1, whole.len() - 1, whole.len() - 16]);
    for end in ends {
        tried(&whole[..end], &options()).expect_failure(&["damaged or cut off"]);
    }
    tried(b"", &options()).expect_failure(&["not a backup of Heddle"]);
    tried(&[b'x'; 500], &options()).expect_failure(&["not a backup of Heddle"]);
    tried(&[whole.as_slice(), b"x"].concat(), &options()).expect_failure(&["damaged or cut off"]);
    let wrong = options().with("BACKUP_PASSPHRASE", "another passphrase");
    tried(&whole, &wrong).expect_failure(&["BACKUP_PASSPHRASE is not the one"]);
    let short = options().with("BACKUP_PASSPHRASE", "short");
    tried(&whole, &short).expect_failure(&["too short", "12"]);
    let none = options().with("BACKUP_PASSPHRASE", "");
    tried(&whole, &none).expect_failure(&["BACKUP_PASSPHRASE is not set"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_database_or_a_passphrase_there_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.heddle");
    let file = file.to_str().unwrap();
    let backup = |options: &Options| run(folder.path(), &Database::Sqlite, options, &["backup", file]);
    backup(&options()).expect_failure(&["no database yet"]);
    backup(&options().with("BACKUP_PASSPHRASE", "short")).expect_failure(&["too short"]);
    backup(&options().with("BACKUP_PASSPHRASE", "")).expect_failure(&["BACKUP_PASSPHRASE is not set"]);
    assert!(std::fs::read_dir(folder.path()).unwrap().flatten().all(|entry| entry.file_name() == "data"));
}
