//! Making a package: a manifest without `files` becomes one with them, signed.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::PackageError;
use crate::json::{self as strict, StrictError};
use crate::keys::PublisherKey;
use crate::verify::{Verified, sha256};
use crate::{MANIFEST, SIGNATURE, judge_schemas, sign};

/// Why no package could be made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("manifest cannot be used: {0}")]
    Manifest(String),
    #[error("manifest lists files already; leave 'files' out, it is filled in here")]
    FilesListed,
    /// The result would be refused by every server.
    #[error("the package would be refused: {0}")]
    Refused(#[from] PackageError),
    #[error("the package would be refused: a schema is not accepted: {0}")]
    Schema(String),
}

/// Completes `manifest` (JSON without `files`; `publisher` defaults to the
/// key's) for these files, signs it and returns all files of the package, which
/// has been verified.
pub fn pack(
    manifest: &[u8],
    mut files: BTreeMap<String, Vec<u8>>,
    key: &PublisherKey,
) -> Result<BTreeMap<String, Vec<u8>>, PackError> {
    strict::check_strict(manifest, 32).map_err(|error| {
        PackError::Manifest(match error {
            StrictError::Duplicate(name) => format!("key '{name}' occurs twice in one object"),
            StrictError::TooDeep => "it is nested too deep".to_owned(),
            StrictError::Syntax(problem) => problem,
        })
    })?;
    let mut manifest: Value =
        serde_json::from_slice(manifest).map_err(|error| PackError::Manifest(error.to_string()))?;
    if manifest.get("files").is_some() {
        return Err(PackError::FilesListed);
    }
    if let Some(manifest) = manifest.as_object_mut() {
        // It is for the author's editor.
        manifest.remove("$schema");
    }
    manifest["files"] = files
        .iter()
        .map(|(path, bytes)| json!({ "path": path, "size": bytes.len(), "sha256": sha256(bytes) }))
        .collect();
    if manifest.get("publisher").is_none() {
        manifest["publisher"] = key.publisher().into();
    }
    let text =
        serde_json::to_vec_pretty(&manifest).map_err(|error| PackError::Manifest(error.to_string()))?;
    files.insert(SIGNATURE.to_owned(), sign(&text, key.signing()));
    files.insert(MANIFEST.to_owned(), text);
    let package = Verified::from_files(files.clone(), &[key.trusted()])?;
    judge_schemas(package.manifest(), package.description()).map_err(PackError::Schema)?;
    Ok(files)
}

/// Writes a package as a folder, in place of the one that may be there. A reader
/// sees the old one, none, or the new one, never a mixture.
///
/// # Errors
/// What is there is no package: a folder of something else is not replaced.
pub fn write_dir(files: &BTreeMap<String, Vec<u8>>, dir: &Path) -> std::io::Result<()> {
    let parent = dir.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = dir.file_name().ok_or_else(|| std::io::Error::other("the folder needs a name"))?;
    std::fs::create_dir_all(parent)?;
    if dir.exists() && !(dir.join(MANIFEST).is_file() && dir.join(SIGNATURE).is_file()) {
        return Err(std::io::Error::other("what is there is no package, and is not replaced"));
    }
    let staging = parent.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    if staging.exists() {
        std::fs::remove_dir_all(&staging)?;
    }
    for (name, bytes) in files {
        let path = staging.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&staging))?;
        std::fs::write(path, bytes)?;
    }
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    std::fs::rename(&staging, dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_package_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("acme-1.0.0");
        let package = |text: &str| {
            BTreeMap::from([
                (MANIFEST.to_owned(), text.as_bytes().to_vec()),
                (SIGNATURE.to_owned(), b"{}".to_vec()),
            ])
        };
        write_dir(&package("old"), &dir).unwrap();
        write_dir(&package("new"), &dir).unwrap();
        assert_eq!(std::fs::read(dir.join(MANIFEST)).unwrap(), b"new");
        let work = home.path().join("work");
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join(MANIFEST), "mine").unwrap();
        let refused = write_dir(&package("new"), &work).unwrap_err().to_string();
        assert!(refused.contains("no package"), "{refused}");
        assert_eq!(std::fs::read(work.join(MANIFEST)).unwrap(), b"mine");
    }
}
