//! The package that served before another one is installed: it is kept, so that it can be put back.

use std::path::Path;

use heddle_core::Timestamp;
use heddle_kernel::app::App;
use heddle_kernel::task;
use heddle_marketplace::{ARCHIVE_BYTES_MAX, MANIFEST, TrustedKey, Verified, read_dir, write_archive};
use heddle_packages::settings::{AdapterSettings, package_folders};
use heddle_store::Tx;
use heddle_store::installed_packages::{self, Installed, NewKept};
use sha2::{Digest as _, Sha256};

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
pub(super) async fn find(
    app: &App,
    new: &Verified,
    installed: Option<&Installed>,
    trusted: &[TrustedKey],
) -> Before {
    let latest = || Before::latest(new, installed);
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
    let (wanted, keys) = (serving.to_owned(), trusted.to_vec());
    match task::block(move || from_folder(&folder, &wanted, &keys)).await {
        Some(archive) => Before::Folder {
            manifest_sha256: serving.to_owned(),
            version: adapter.version().to_owned(),
            archive,
        },
        None => latest(),
    }
}

/// The package of the folder whose manifest has this SHA-256, as an archive that can be put back: its other files may have
/// been changed since it was loaded.
fn from_folder(folder: &Path, wanted: &str, trusted: &[TrustedKey]) -> Option<Vec<u8>> {
    let is_wanted = |path: &Path| {
        let manifest = std::fs::read(path.join(MANIFEST));
        manifest.is_ok_and(|manifest| hex::encode(Sha256::digest(manifest)) == wanted)
    };
    let path = package_folders(folder).ok()?.into_iter().find(|path| is_wanted(path))?;
    let kept = archived(&path, trusted);
    kept.inspect_err(|reason| {
        tracing::warn!(
            folder = %path.display(), reason,
            "the package in '{}' cannot be kept, so it cannot be put back over the API: {reason}", path.display()
        );
    })
    .ok()
}

/// The package of this folder as an archive that an installation would accept; else why not.
fn archived(path: &Path, trusted: &[TrustedKey]) -> Result<Vec<u8>, String> {
    let files = read_dir(path).map_err(|error| error.to_string())?;
    let archive = write_archive(&files).map_err(|error| error.to_string())?;
    if archive.len() > ARCHIVE_BYTES_MAX {
        return Err(format!("its archive is larger than {ARCHIVE_BYTES_MAX} bytes"));
    }
    Verified::open_archive(&archive, trusted).map_err(|error| error.to_string())?;
    Ok(archive)
}

impl Before {
    /// The package that was installed last, and where that is this very package, the one before it.
    pub(super) fn latest(new: &Verified, installed: Option<&Installed>) -> Self {
        let manifest = installed.and_then(|installed| {
            let is_new = installed.manifest_sha256 == new.manifest_sha256();
            if is_new { installed.before_sha256.clone() } else { Some(installed.manifest_sha256.clone()) }
        });
        manifest.map_or(Before::Unknown, Before::Kept)
    }

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
