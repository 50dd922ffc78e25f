//! Judges a package that was sent over the API, whatever it is of, and says why it is refused.

use axum::body::Bytes;
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_marketplace::{TrustedKey, Verified};
use heddle_runtime::{CompileError, LoadError};
use heddle_store::packages::Binding;

use crate::adapters::packages::{Ground, NotLoaded, check};

/// Verifies what was sent.
pub async fn opened(archive: Bytes, trusted: &[TrustedKey]) -> Result<Verified, Error> {
    let keys = trusted.to_vec();
    let opened = task::block(move || Verified::open_archive(&archive, &keys)).await;
    opened.map_err(|error| refused(error.to_string()))
}

/// 400 with the reason for which a package is refused.
pub fn refused(reason: String) -> Error {
    Error::BadRequest { kind: "package_refused", message: reason }
}

/// 409: the package is sound, and does not fit what serves or served.
pub fn conflict(reason: String) -> Error {
    Error::Conflict { kind: "package_conflict", message: reason }
}

/// The error of a package whose component cannot be used. A fault of this machine is no fault of the package.
pub fn unusable(error: LoadError) -> Error {
    match error {
        LoadError::Cache(_) | LoadError::Compile(CompileError::Process(_)) => Error::internal(error),
        other => refused(other.to_string()),
    }
}

impl From<NotLoaded> for Error {
    fn from(not_loaded: NotLoaded) -> Self {
        match not_loaded {
            NotLoaded::Refused(reason) => conflict(reason),
            NotLoaded::Passing(reason) => Error::internal(reason),
            NotLoaded::Unknown(error) => error.into(),
        }
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
