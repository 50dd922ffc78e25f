//! The data folder and the files in it: only the service's own user reads them.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::Config;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Suffixes of a database file and of the files that `SQLite` keeps next to it.
const BESIDE: [&str; 3] = ["", "-wal", "-shm"];

/// Makes the data folder, and closes what other users could read: the folder, databases, keys.
///
/// Database files are made here when they are absent, so that they are never open to others, not even for a moment.
pub fn prepare(config: &Config) -> anyhow::Result<()> {
    let folder = &config.data_dir;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
        .with_context(|| format!("DATA_DIR '{}' cannot be created", folder.display()))?;
    mend(folder, FOLDER_MODE);
    for name in ["keys.json", "setup-token", "audit-heads.json"] {
        mend(&folder.join(name), FILE_MODE);
    }
    for url in [config.database(), config.log_database()] {
        let Some((file, is_made)) = sqlite_file(&url) else { continue };
        if is_made {
            make(&file).with_context(|| format!("'{}' cannot be created", file.display()))?;
        }
        for suffix in BESIDE {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            mend(Path::new(&name), FILE_MODE);
        }
    }
    Ok(())
}

/// The file of an `SQLite` address, and whether it is made when it is absent.
fn sqlite_file(url: &str) -> Option<(PathBuf, bool)> {
    let rest = url.strip_prefix("sqlite://")?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Some((PathBuf::from(path), query.split('&').any(|pair| pair == "mode=rwc")))
}

/// Makes an empty file, unless there is one.
fn make(file: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // The database reports better what is wrong with its path.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        made => made.map(drop),
    }
}

/// Removes the rights of other users to the file.
fn mend(path: &Path, mode: u32) {
    let Ok(about) = fs::metadata(path) else { return };
    let found = about.permissions().mode() & 0o777;
    let others = 0o077;
    if found & others == 0 {
        return;
    }
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        Ok(()) => tracing::warn!(
            file = %path.display(),
            "'{}' could be used by other users of this machine ({found:o}): it is {mode:o} now",
            path.display()
        ),
        Err(error) => tracing::warn!(
            file = %path.display(),
            error = %error,
            "'{}' can be used by other users of this machine ({found:o}), and this cannot be mended",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folder_and_files_are_the_owners_alone_also_when_they_were_not() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("data");
        let settings = [("DATA_DIR".to_owned(), folder.display().to_string())].into();
        let config = Config::from_maps(&settings, &BTreeMap::new(), &[]).unwrap();
        prepare(&config).unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("heddle.db"))), (0o700, 0o600));
        fs::write(folder.join("heddle.db-wal"), "x").unwrap();
        fs::write(folder.join("keys.json"), "x").unwrap();
        for (name, wide) in
            [("", 0o755), ("heddle.db", 0o644), ("heddle.db-wal", 0o640), ("keys.json", 0o666)]
        {
            fs::set_permissions(folder.join(name), Permissions::from_mode(wide)).unwrap();
        }
        prepare(&config).unwrap();
        for name in ["heddle.db", "logs.db", "heddle.db-wal", "keys.json"] {
            assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
        }
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(fs::read(folder.join("keys.json")).unwrap(), b"x");
    }

    #[test]
    fn only_an_address_that_creates_makes_a_file() {
        assert_eq!(sqlite_file("sqlite:///a/b.db?mode=rwc"), Some((PathBuf::from("/a/b.db"), true)));
        assert_eq!(sqlite_file("sqlite://b.db"), Some((PathBuf::from("b.db"), false)));
        assert_eq!(sqlite_file("postgres://h/d"), None);
    }
}
