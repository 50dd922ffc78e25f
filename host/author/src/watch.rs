//! The files of an author, and whether one of them changed.
//!
//! They are looked at again and again: a plugin has a few files, and what tells of changes differs between systems and
//! does not reach over networks and containers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

/// Most files of a project.
const FILES_MAX: usize = 10_000;
/// Files and folders of a project from which a component is made.
const SOURCES: [&str; 4] = ["manifest.json", "Cargo.toml", "build.rs", "src"];

/// The sources of a project, when each was changed, and how long it is.
pub(crate) fn files(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, (SystemTime, u64)>> {
    let mut found = BTreeMap::new();
    let mut left: Vec<PathBuf> = SOURCES.iter().map(|name| root.join(name)).collect();
    while let Some(path) = left.pop() {
        // A file may be gone meanwhile: editors write another one and rename it.
        let Ok(metadata) = path.metadata() else { continue };
        if metadata.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                left.push(entry?.path());
                ensure!(left.len() <= FILES_MAX, "'{}' has more than {FILES_MAX} files", root.display());
            }
        } else {
            found.insert(path, (metadata.modified()?, metadata.len()));
            ensure!(found.len() <= FILES_MAX, "'{}' has more than {FILES_MAX} files", root.display());
        }
    }
    Ok(found)
}

/// The same by their names below the folder, each with its SHA-256 in hexadecimal digits.
pub(crate) fn digests(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for path in files(root)?.into_keys() {
        let mut hash = Sha256::new();
        let mut file =
            std::fs::File::open(&path).with_context(|| format!("'{}' cannot be read", path.display()))?;
        std::io::copy(&mut file, &mut hash)
            .with_context(|| format!("'{}' cannot be read", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        found.insert(name, hex::encode(hash.finalize()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_component_is_made_from_is_seen_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let sources = ["manifest.json", "src/a/b.rs", "src/lib.rs"];
        for name in sources.iter().chain(&[".heddle/a", "target/a", "calls/a.json", "Cargo.lock", "a.log"]) {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        let found: Vec<PathBuf> = files(folder.path()).unwrap().into_keys().collect();
        assert_eq!(found, sources.map(|name| folder.path().join(name)));
        let before = files(folder.path()).unwrap();
        std::fs::write(folder.path().join("src/other.rs"), "new").unwrap();
        assert_ne!(files(folder.path()).unwrap(), before);
    }

    #[test]
    fn a_folder_of_too_many_files_is_no_project() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for n in 0..=FILES_MAX {
            std::fs::write(folder.path().join("src").join(n.to_string()), "").unwrap();
        }
        assert!(files(folder.path()).unwrap_err().to_string().contains("more than 10000 files"));
    }
}
