//! A package is believed only after its signature, sizes and hashes were checked.
//!
//! The order is the point: sizes bound the work, the signature comes before any
//! parser sees the manifest, and hashes bind every other byte to the manifest.
//! Whether the component is valid and what it imports is the runtime's part.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::description::{self, Description};
use crate::error::PackageError;
use crate::json::{self, StrictError};
use crate::keys::TrustedKey;
use crate::manifest::{Kind, Manifest};
use crate::{DESCRIPTION, MANIFEST, SIGNATURE, archive, names, push_rules, rules, signature};

/// Largest `manifest.json`, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 256 * 1024;
/// Largest `description.json`, in bytes.
const DESCRIPTION_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Largest component, and largest file of any kind, in bytes.
pub const COMPONENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Largest file of signatures, in bytes.
pub(crate) const SIGNATURE_BYTES_MAX: u64 = 16 * 1024;
/// All files of a package together, in bytes.
pub(crate) const PACKAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Files of a package.
pub(crate) const FILES_MAX: usize = 256;
const MANIFEST_DEPTH_MAX: usize = 32;

/// A package whose signature, sizes and hashes were checked. Only the verifier
/// makes one, and the runtime loads nothing else.
#[derive(Debug, Clone)]
pub struct Verified {
    manifest: Manifest,
    manifest_sha256: String,
    description: Description,
    component: Vec<u8>,
    component_sha256: String,
    signers: Vec<TrustedKey>,
    archive_sha256: Option<String>,
}

impl Verified {
    /// Verifies a package that lies in a folder. Links are never followed.
    pub fn open_dir(path: &Path, trusted: &[TrustedKey]) -> Result<Self, PackageError> {
        Self::from_files(read_dir(path)?, trusted)
    }

    /// Verifies a package that is a ZIP archive.
    pub fn open_archive(archive: &[u8], trusted: &[TrustedKey]) -> Result<Self, PackageError> {
        let package = Self::from_files(archive::read_archive(archive)?, trusted)?;
        Ok(Self { archive_sha256: Some(sha256(archive)), ..package })
    }

    /// Verifies a package whose files are in memory, by their names with `/`.
    pub fn from_files(
        mut files: BTreeMap<String, Vec<u8>>,
        trusted: &[TrustedKey],
    ) -> Result<Self, PackageError> {
        check_sizes(&files)?;
        let text = files.remove(MANIFEST).ok_or(PackageError::Missing(MANIFEST))?;
        let detached = files.remove(SIGNATURE).ok_or(PackageError::Missing(SIGNATURE))?;
        let signers = signature::signers(&text, &detached, trusted)?;

        let manifest = parse(&text)?;
        rules::check(&manifest)?;
        let signers = entitled(&manifest, &signers)?;
        check_files(&manifest, &files)?;
        let component = files
            .remove(&manifest.component)
            .ok_or_else(|| PackageError::ComponentNotListed(manifest.component.clone()))?;
        check_component(&manifest.component, &component)?;
        let description = described(&manifest, files.remove(DESCRIPTION))?;
        push_rules::check_reads(&manifest, &description)?;
        Ok(Self {
            manifest_sha256: sha256(&text),
            component_sha256: sha256(&component),
            signers,
            manifest,
            description,
            component,
            archive_sha256: None,
        })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// SHA-256 of the exact manifest, lower-case hex: names this very package.
    pub fn manifest_sha256(&self) -> &str {
        &self.manifest_sha256
    }

    /// What the adapter manages; empty for a plugin. Its schemas are not judged yet: [`crate::judge_schemas`] does that.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Bytes of the component.
    pub fn component(&self) -> &[u8] {
        &self.component
    }

    /// SHA-256 of the component, lower-case hex.
    pub fn component_sha256(&self) -> &str {
        &self.component_sha256
    }

    /// SHA-256 of the archive that it came in, lower-case hex; `None` for one of a folder.
    pub fn archive_sha256(&self) -> Option<&str> {
        self.archive_sha256.as_deref()
    }

    /// The trusted keys that signed and may sign this id for this publisher; at least one.
    pub fn signers(&self) -> &[TrustedKey] {
        &self.signers
    }

    /// Their ids.
    pub fn key_ids(&self) -> Vec<String> {
        self.signers.iter().map(TrustedKey::key_id).collect()
    }
}

/// Parses a manifest of untrusted origin, without judging its rules.
pub(crate) fn parse(text: &[u8]) -> Result<Manifest, PackageError> {
    json::check_strict(text, MANIFEST_DEPTH_MAX).map_err(|error| match error {
        StrictError::Duplicate(key) => PackageError::DuplicateKey(key),
        StrictError::TooDeep => PackageError::TooDeep(MANIFEST_DEPTH_MAX),
        StrictError::Syntax(problem) => PackageError::ManifestFormat(problem),
    })?;
    serde_json::from_slice(text).map_err(|error| PackageError::ManifestFormat(error.to_string()))
}

/// The manifest of a package whose signature is not looked at: for showing it, never for loading it.
pub fn inspect(manifest: &[u8]) -> Result<Manifest, PackageError> {
    if length(manifest) > MANIFEST_BYTES_MAX {
        return Err(PackageError::TooLarge { name: MANIFEST.to_owned(), max: MANIFEST_BYTES_MAX });
    }
    let manifest = parse(manifest)?;
    rules::check(&manifest)?;
    Ok(manifest)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Largest file of this name, in bytes.
pub(crate) fn bytes_max(name: &str) -> u64 {
    match name {
        MANIFEST => MANIFEST_BYTES_MAX,
        SIGNATURE => SIGNATURE_BYTES_MAX,
        DESCRIPTION => DESCRIPTION_BYTES_MAX,
        _ => COMPONENT_BYTES_MAX,
    }
}

pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn check_sizes(files: &BTreeMap<String, Vec<u8>>) -> Result<(), PackageError> {
    if files.len() > FILES_MAX {
        return Err(PackageError::TooManyFiles { max: FILES_MAX });
    }
    let mut total = 0_u64;
    for (name, bytes) in files {
        let max = bytes_max(name);
        if length(bytes) > max {
            return Err(PackageError::TooLarge { name: name.clone(), max });
        }
        total = total.saturating_add(length(bytes));
    }
    if total > PACKAGE_BYTES_MAX {
        return Err(PackageError::PackageTooLarge { max: PACKAGE_BYTES_MAX });
    }
    Ok(())
}

/// The signers that may sign this package: a publisher neither signs in another one's name nor provides an id
/// that its key was not listed for.
fn entitled(manifest: &Manifest, signers: &[&TrustedKey]) -> Result<Vec<TrustedKey>, PackageError> {
    let own: Vec<&&TrustedKey> = signers.iter().filter(|key| key.publisher == manifest.publisher).collect();
    if own.is_empty() {
        let signer = signers.first().map(|key| key.publisher.clone()).unwrap_or_default();
        return Err(PackageError::Publisher { manifest: manifest.publisher.clone(), signer });
    }
    let entitled: Vec<TrustedKey> =
        own.iter().filter(|key| key.may_sign(&manifest.id)).map(|key| TrustedKey::clone(key)).collect();
    if entitled.is_empty() {
        return Err(PackageError::IdNotGranted {
            publisher: manifest.publisher.clone(),
            id: manifest.id.clone(),
            ids: own.iter().flat_map(|key| key.ids.clone()).collect(),
        });
    }
    Ok(entitled)
}

/// What an adapter manages. A plugin declares in its manifest what it does, and has no such file.
fn described(manifest: &Manifest, file: Option<Vec<u8>>) -> Result<Description, PackageError> {
    match (manifest.kind, file) {
        (Kind::Adapter, Some(text)) => description::parse(&text, &manifest.id),
        (Kind::Adapter, None) => Err(PackageError::Missing(DESCRIPTION)),
        (Kind::Plugin, None) => Ok(Description::default()),
        (Kind::Plugin, Some(_)) => Err(PackageError::OtherKind {
            key: DESCRIPTION.to_owned(),
            kind: Kind::Plugin.as_str(),
            advice: "leave it out: a plugin declares its actions in the manifest",
        }),
    }
}

fn check_files(manifest: &Manifest, files: &BTreeMap<String, Vec<u8>>) -> Result<(), PackageError> {
    let listed: BTreeSet<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    if let Some(name) = files.keys().find(|name| !listed.contains(name.as_str())) {
        return Err(PackageError::FileUnlisted(name.clone()));
    }
    for file in &manifest.files {
        let bytes = files.get(&file.path).ok_or_else(|| PackageError::FileMissing(file.path.clone()))?;
        let found = length(bytes);
        if found != file.size {
            return Err(PackageError::FileSize { name: file.path.clone(), listed: file.size, found });
        }
        if sha256(bytes) != file.sha256 {
            return Err(PackageError::FileHash(file.path.clone()));
        }
    }
    Ok(())
}

/// Tells a component by its first bytes from what must never reach a loader.
fn check_component(name: &str, bytes: &[u8]) -> Result<(), PackageError> {
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const ELF: &[u8] = b"\x7fELF";
    if bytes.starts_with(COMPONENT) {
        Ok(())
    } else if bytes.starts_with(CORE_MODULE) {
        Err(PackageError::CoreModule(name.to_owned()))
    } else if bytes.starts_with(ELF) {
        Err(PackageError::Precompiled(name.to_owned()))
    } else {
        Err(PackageError::NotComponent(name.to_owned()))
    }
}

/// Returns the files of a package that lies in a folder, within the bounds of a package and otherwise unjudged. Links
/// are never followed.
pub fn read_dir(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, PackageError> {
    let mut files = BTreeMap::new();
    let mut left = PACKAGE_BYTES_MAX;
    read_folder(path, "", &mut files, &mut left)?;
    Ok(files)
}

/// Reads a folder and those in it; `left` counts down the bytes of the package.
fn read_folder(
    path: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
    left: &mut u64,
) -> Result<(), PackageError> {
    let here = if prefix.is_empty() { "." } else { prefix };
    let unreadable = |name: &str| {
        let name = name.to_owned();
        move |source| PackageError::Unreadable { name, source }
    };
    for entry in std::fs::read_dir(path).map_err(unreadable(here))? {
        let entry = entry.map_err(unreadable(here))?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // A name with bytes that are no UTF-8 shows a replacement character here and is refused.
        names::check_name(&name)?;
        let kind = entry.file_type().map_err(unreadable(&name))?;
        if kind.is_dir() {
            read_folder(&entry.path(), &format!("{name}/"), files, left)?;
        } else if kind.is_file() {
            if files.len() >= FILES_MAX {
                return Err(PackageError::TooManyFiles { max: FILES_MAX });
            }
            let max = bytes_max(&name);
            let file = std::fs::File::open(entry.path()).map_err(unreadable(&name))?;
            let mut bytes = Vec::new();
            file.take(max + 1).read_to_end(&mut bytes).map_err(unreadable(&name))?;
            if length(&bytes) > max {
                return Err(PackageError::TooLarge { name, max });
            }
            *left = left
                .checked_sub(length(&bytes))
                .ok_or(PackageError::PackageTooLarge { max: PACKAGE_BYTES_MAX })?;
            files.insert(name, bytes);
        } else {
            return Err(PackageError::NotRegular(name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
