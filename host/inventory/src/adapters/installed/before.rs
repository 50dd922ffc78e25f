//! The package that served before another one is installed: it is kept, so that it can be put back.

use std::path::Path;

use heddle_core::Timestamp;
use heddle_kernel::app::App;
use heddle_kernel::task;
use heddle_marketplace::{ARCHIVE_BYTES_MAX, MANIFEST, Verified, read_dir, write_archive};
use heddle_store::Tx;
use heddle_store::installed_packages::{self, Installed, NewKept};
use sha2::{Digest as _, Sha256};

use crate::adapters::settings::{AdapterSettings, package_folders};

/// The package that served before.
pub(super) enum Before {
    /// Nothing did, or its bytes cannot be found any longer.
    Unknown,
    /// The database keeps it: SHA-256 of its manifest.
    Kept(String),
    /// It is in this process's folder only.
    Folder { manifest_sha256: String, version: String, archive: Vec<u8> },
}

/// Finds what serves before this package is installed.
pub(super) async fn find(app: &App, new: &Verified, installed: Option<&Installed>) -> Before {
    let latest = || latest(new, installed).map_or(Before::Unknown, Before::Kept);
    let Some(adapter) = app.runtime.adapter(&new.manifest().id) else { return latest() };
    let serving = adapter.manifest_sha256();
    if serving == new.manifest_sha256() {
        // It only becomes the installed one now.
        return latest();
    }
    let is_kept = |installed: &Installed| {
        installed.manifest_sha256 == serving || installed.before_sha256.as_deref() == Some(serving)
    };
    if installed.is_some_and(is_kept) {
        return Before::Kept(serving.to_owned());
    }
    let Some(folder) = app.config.of::<AdapterSettings>().packages.clone() else { return latest() };
    let wanted = serving.to_owned();
    match task::block(move || from_folder(&folder, &wanted)).await {
        Some(archive) => Before::Folder {
            manifest_sha256: serving.to_owned(),
            version: adapter.version().to_owned(),
            archive,
        },
        None => latest(),
    }
}

/// The package that was installed last, and where that is this very package, the one before it.
fn latest(new: &Verified, installed: Option<&Installed>) -> Option<String> {
    let installed = installed?;
    if installed.manifest_sha256 == new.manifest_sha256() {
        installed.before_sha256.clone()
    } else {
        Some(installed.manifest_sha256.clone())
    }
}

/// The package of the folder whose manifest has this SHA-256, as an archive.
fn from_folder(folder: &Path, wanted: &str) -> Option<Vec<u8>> {
    let is_wanted = |path: &Path| {
        let manifest = std::fs::read(path.join(MANIFEST));
        manifest.is_ok_and(|manifest| hex::encode(Sha256::digest(manifest)) == wanted)
    };
    let path = package_folders(folder).ok()?.into_iter().find(|path| is_wanted(path))?;
    let archive = read_dir(&path).ok().and_then(|files| write_archive(&files).ok());
    let archive = archive.filter(|archive| archive.len() <= ARCHIVE_BYTES_MAX);
    if archive.is_none() {
        tracing::warn!(
            folder = %path.display(),
            "the package in '{}' cannot be kept, so it cannot be put back over the API", path.display()
        );
    }
    archive
}

impl Before {
    /// Keeps it in the transaction that installs the other one. Returns the SHA-256 of its manifest.
    pub(super) async fn keep(
        &self,
        tx: &mut Tx,
        adapter_id: &str,
        now: Timestamp,
    ) -> heddle_store::Result<Option<String>> {
        match self {
            Before::Unknown => Ok(None),
            Before::Kept(manifest) => Ok(Some(manifest.clone())),
            Before::Folder { manifest_sha256, version, archive } => {
                let kept = NewKept {
                    manifest_sha256,
                    adapter_id,
                    version,
                    archive,
                    installed_at: now,
                    installed_by: None,
                };
                installed_packages::keep(tx, &kept).await?;
                Ok(Some(manifest_sha256.clone()))
            }
        }
    }
}
