//! The SDK and the interface files that this program carries, as files of a project.

use std::path::Path;

use anyhow::Context as _;
use heddle_marketplace::manifest_schema;
use sha2::{Digest as _, Sha256};

use crate::make::replace;

include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// The versions of what the SDK needs.
pub(crate) const LOCK: &str = include_str!(concat!(env!("OUT_DIR"), "/Cargo.lock"));
/// The file that says which SDK a folder holds.
const STAMP: &str = "sha256";

/// Writes the SDK below `cache`, unless this very one is there. Other commands see the old one or the new one whole.
pub(crate) fn write_sdk(cache: &Path) -> anyhow::Result<()> {
    let (folder, staging) = (cache.join("sdk"), cache.join(format!(".sdk.{}", std::process::id())));
    let hash = hash();
    if std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|found| found == hash) {
        return Ok(());
    }
    let written = write_files(&staging, &hash).and_then(|()| {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::rename(&staging, &folder)
    });
    written.with_context(|| format!("the SDK cannot be written to '{}'", folder.display()))
}

/// Writes the JSON Schema of manifests, which a manifest names for editors.
pub(crate) fn write_schema(cache: &Path) -> anyhow::Result<()> {
    let path = cache.join("manifest.schema.json");
    let text = serde_json::to_string_pretty(&manifest_schema())?;
    if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    replace(&path, text.as_bytes())
}

fn write_files(folder: &Path, hash: &str) -> std::io::Result<()> {
    for (name, bytes) in FILES {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(path, bytes)?;
    }
    std::fs::write(folder.join(STAMP), hash)
}

/// The interface files of this folder of `wit`, one after the other.
pub(crate) fn wit(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let prefix = format!("wit/{folder}/");
    FILES.iter().filter_map(move |(name, bytes)| Some((name.strip_prefix(&prefix)?, *bytes)))
}

/// SHA-256 of all names and contents, hexadecimal.
pub(crate) fn hash() -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in FILES {
        hash.update(Sha256::digest(name));
        hash.update(Sha256::digest(bytes));
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_is_whole_and_written_again_only_when_it_differs() {
        let cache = tempfile::tempdir().unwrap();
        write_sdk(cache.path()).unwrap();
        let manifest = cache.path().join("sdk/plugins-sdk/Cargo.toml");
        let written: toml::Table = std::fs::read_to_string(&manifest).unwrap().parse().unwrap();
        assert!(written["dependencies"].get("wit-bindgen").is_some(), "{written}");
        assert!(written["dependencies"].get("heddle-marketplace").is_none(), "{written}");
        assert!(cache.path().join("sdk/wit/plugin/plugin.wit").is_file());
        std::fs::write(&manifest, "kept").unwrap();
        write_sdk(cache.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&manifest).unwrap(), "kept");
        std::fs::write(cache.path().join("sdk").join(STAMP), "of another version").unwrap();
        write_sdk(cache.path()).unwrap();
        assert_ne!(std::fs::read_to_string(&manifest).unwrap(), "kept");
    }

    #[test]
    fn the_lock_file_has_what_the_sdk_needs_and_nothing_of_the_host() {
        let lock: toml::Table = LOCK.parse().unwrap();
        let names: Vec<&str> =
            lock["package"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        for name in ["heddle-sdk", "wit-bindgen", "serde_json"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(
            !names.iter().any(|name| ["wasmtime", "heddle-marketplace", "tokio"].contains(name)),
            "{names:?}"
        );
        assert_eq!(wit("plugin").count(), 1);
    }
}
