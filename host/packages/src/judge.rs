//! Judges a package that was sent over the API, whatever it is of, and says why it is refused.

use axum::body::Bytes;
use heddle_core::plugin::PackageOrigin;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_marketplace::{TrustedKey, Verified};
use heddle_runtime::{CompileError, LoadError};
use heddle_store::Tx;
use heddle_store::packages::Binding;
use heddle_store::publisher_keys::{self, PublisherKeyRow};
use serde_json::json;

use crate::fit::check;
use crate::ground::Ground;

/// A package that was opened and may be installed, as far as its signatures and what is revoked say.
pub struct Opened {
    pub package: Verified,
    /// The ZIP archive that it came in.
    pub archive: Bytes,
    /// What it is judged by: with the keys that the catalogue lists for it, where it comes from one.
    pub ground: Ground,
    pub origin: PackageOrigin,
    /// The catalogue lists the keys that opened it, and is believed.
    is_listed: bool,
}

impl Opened {
    /// Opens a package that was sent: a key that a person trusts has to have signed it.
    pub async fn sent(app: &App, archive: Bytes) -> Result<Self, Error> {
        let ground = Ground::of(app).await?;
        let keys = ground.trusted.clone();
        Self::open(archive, keys, ground, (PackageOrigin::Upload, false)).await
    }

    /// Opens a package of a catalogue: one of the keys that the catalogue lists for it has to have signed it; without such
    /// keys, one that a person trusts.
    pub async fn listed(app: &App, archive: Bytes, listed: Option<Vec<TrustedKey>>) -> Result<Self, Error> {
        let mut ground = Ground::of(app).await?;
        let is_listed = listed.is_some();
        let keys = listed.clone().unwrap_or_else(|| ground.trusted.clone());
        ground.listed.extend(listed.unwrap_or_default());
        Self::open(archive, keys, ground, (PackageOrigin::Catalog, is_listed)).await
    }

    async fn open(
        archive: Bytes,
        keys: Vec<TrustedKey>,
        ground: Ground,
        (origin, is_listed): (PackageOrigin, bool),
    ) -> Result<Self, Error> {
        let bytes = archive.clone();
        let opened = task::block(move || Verified::open_archive(&bytes, &keys)).await;
        let package = opened.map_err(|error| refused(error.to_string()))?;
        ground
            .may_install(&package)
            .map_err(|reason| Error::Conflict { kind: "package_revoked", message: reason })?;
        Ok(Self { package, archive, ground, origin, is_listed })
    }

    /// Keeps the keys that the catalogue listed for the package: they open it again at a start.
    pub async fn keep_keys(&self, tx: &mut Tx, app: &App, added_by: &str) -> heddle_store::Result<()> {
        if !self.is_listed {
            return Ok(());
        }
        let id = &self.package.manifest().id;
        for key in self.package.signers() {
            let row = PublisherKeyRow {
                id: app.clock.new_id(),
                key_id: key.key_id(),
                publisher: key.publisher.clone(),
                public_key: hex::encode(key.key),
                ids: json!([id]),
                listed_for: id.clone(),
                added_at: app.clock.now(),
                added_by: added_by.to_owned(),
            };
            publisher_keys::put(tx, &row).await?;
        }
        Ok(())
    }
}

/// 400 with the reason for which a package is refused.
pub fn refused(reason: String) -> Error {
    Error::BadRequest { kind: "package_refused", message: reason }
}

/// 409: the package is sound, and does not fit what serves or served.
pub fn conflict(reason: String) -> Error {
    Error::Conflict { kind: "package_conflict", message: reason }
}

/// The error of a package whose component cannot be used. A fault of this machine is no fault of the package: it is 500 where the
/// machine needs help, and 503 where another try may do.
pub fn unusable(error: LoadError) -> Error {
    match error {
        LoadError::Cache(_) | LoadError::Compile(CompileError::Process(_)) => Error::internal(error),
        passing if passing.is_passing() => Error::Unavailable(passing.to_string()),
        other => refused(other.to_string()),
    }
}

/// The key that an id is bound to where the package has it, else the first of its keys.
pub fn key_of(package: &Verified, bound: Option<&Binding>) -> String {
    let keys = package.key_ids();
    let held = bound.and_then(|bound| keys.iter().find(|key| **key == bound.key_id));
    held.or(keys.first()).cloned().unwrap_or_default()
}

/// Whether a package may serve an id that is bound. A version that served is not replaced by another package of the same
/// version: two packages of one version cannot be told apart.
pub fn may_serve(package: &Verified, bound: &Binding, ground: &Ground) -> Result<(), String> {
    check(package, bound, ground)?;
    let manifest = package.manifest();
    if bound.version == manifest.version.to_string() && bound.manifest_sha256 != package.manifest_sha256() {
        return Err(format!(
            "version {} of '{}' served before with other contents (manifest {}); give the package a higher version",
            manifest.version, manifest.id, bound.manifest_sha256
        ));
    }
    Ok(())
}
