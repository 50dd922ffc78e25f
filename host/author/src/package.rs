//! `check`, `pack`, `sign`: packages as a server judges them. The rules are those of the package format and of the runtime.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::{
    MANIFEST, PublisherKey, SIGNATURE, Verified, in_words, judge_schemas, read_dir, write_archive, write_dir,
};
use heddle_runtime::{Compiler, LoadError};
use serde::{Deserialize, Serialize};

use crate::command::At;
use crate::project::Project;
use crate::session::{self, Surroundings};
use crate::{host, make};

/// Name of the component in a package.
const COMPONENT: &str = "component.wasm";

/// The form of a file of signatures. What it says is judged by the package format.
#[derive(Default, Serialize, Deserialize)]
struct Signatures {
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
struct Signature {
    keyid: String,
    sig: String,
}

/// Makes a package.
#[derive(Debug, Args)]
pub struct Pack {
    #[command(flatten)]
    at: At,
    /// The publisher's key; the one for development when absent.
    #[arg(long)]
    key: Option<PathBuf>,
    /// Where the package is put, below the folder of the plugin when it is relative.
    #[arg(long, default_value = "dist")]
    out: PathBuf,
}

/// The files of a package, which has been verified.
pub(crate) fn files(
    manifest: &[u8],
    component: Vec<u8>,
    key: &PublisherKey,
) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let contents = BTreeMap::from([(COMPONENT.to_owned(), component)]);
    Ok(heddle_marketplace::pack(manifest, contents, key)?)
}

/// The plugin as a verified package, signed with the key for development. It is built first if a file changed.
pub(crate) fn verified(project: &Project, out: &mut dyn Write) -> anyhow::Result<Verified> {
    let component = make::fresh(project, out)?;
    verified_as(project, &project.manifest()?, component)
}

/// The same with this manifest and this component.
pub(crate) fn verified_as(
    project: &Project,
    manifest: &[u8],
    component: Vec<u8>,
) -> anyhow::Result<Verified> {
    let key = project.key()?;
    let files = files(manifest, component, &key)?;
    Ok(Verified::from_files(files, &[key.trusted()])?)
}

/// Judges the plugin as a server does that is sent its package. False where it would be refused.
pub(crate) fn check(project: &Project, compiler: Compiler, out: &mut dyn Write) -> anyhow::Result<bool> {
    let component = make::fresh(project, out)?;
    let key = project.key()?;
    let files = match files(&project.manifest()?, component, &key) {
        Ok(files) => files,
        Err(error) => return refused(&error, out),
    };
    let package = Verified::from_files(files, &[key.trusted()])?;
    let services = host::Services::new(&Surroundings::default(), package.manifest())?;
    match session::block_on(session::Session::open(project, &package, compiler, services))? {
        Err(error) if is_refusal(&error) => return refused(&error, out),
        opened => drop(opened?),
    }
    let manifest = package.manifest();
    writeln!(
        out,
        "{} {} is accepted: a component of {} bytes; a person is asked for consent to:",
        manifest.id,
        manifest.version,
        package.component().len()
    )?;
    say_words(manifest, out)?;
    Ok(true)
}

/// Whether the plugin is at fault, and not this machine.
fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<LoadError>().is_some_and(|error| !error.is_passing())
}

fn refused(error: &anyhow::Error, out: &mut dyn Write) -> anyhow::Result<bool> {
    writeln!(out, "a server refuses the plugin: {error:#}")?;
    Ok(false)
}

/// Prints what a package may do, a line each.
pub(crate) fn say_words(manifest: &Manifest, out: &mut dyn Write) -> anyhow::Result<()> {
    in_words(manifest).iter().try_for_each(|line| Ok(writeln!(out, "  {line}")?))
}

/// Builds the component and makes a package of it, as a folder and as an archive.
pub(crate) fn pack(arguments: &Pack, out: &mut dyn Write) -> anyhow::Result<()> {
    let project = arguments.at.open()?;
    let key = match &arguments.key {
        Some(path) => load(path)?,
        None => project.key()?,
    };
    let files = files(&project.manifest()?, make::built(&project, out)?, &key)?;
    let package = Verified::from_files(files.clone(), &[key.trusted()])?;
    let manifest = package.manifest();
    let folder = project.root.join(&arguments.out).join(format!("{}-{}", manifest.id, manifest.version));
    write_dir(&files, &folder).with_context(|| format!("'{}' cannot be written", folder.display()))?;
    let archive = PathBuf::from(format!("{}.zip", folder.display()));
    std::fs::write(&archive, write_archive(&files)?)
        .with_context(|| format!("'{}' cannot be written", archive.display()))?;
    writeln!(out, "packed {}, signed as '{}'", archive.display(), key.publisher())?;
    if !key.trusted_for_own().may_sign(&manifest.id) {
        writeln!(
            out,
            "the key of '{}' signs '{}' only where a server's trusted keys name this id",
            key.publisher(),
            manifest.id
        )?;
    }
    Ok(())
}

/// Signs the manifest of a package folder. Signatures of other keys stay; one of the same key is replaced.
///
/// # Errors
/// The package would be refused with the new signature; nothing is written then.
pub(crate) fn sign_folder(key: &Path, folder: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    ensure!(folder.is_dir(), "'{}' is not a folder", folder.display());
    let key = load(key)?;
    let mut files = read_dir(folder)?;
    let manifest =
        files.get(MANIFEST).with_context(|| format!("'{}' has no {MANIFEST}", folder.display()))?;
    let own = heddle_marketplace::sign(manifest, key.signing());
    let (signatures, others) = beside(files.get(SIGNATURE), &own).with_context(|| {
        format!("'{}' holds no signatures; remove it, and sign again", folder.join(SIGNATURE).display())
    })?;
    files.insert(SIGNATURE.to_owned(), signatures.clone());
    let package = Verified::from_files(files, &[key.trusted()])?;
    judge_schemas(package.manifest(), package.description()).map_err(anyhow::Error::msg)?;
    make::replace(&folder.join(SIGNATURE), &signatures)?;
    let manifest = package.manifest();
    writeln!(out, "signed {} {} as '{}'", manifest.id, manifest.version, key.publisher())?;
    if others > 0 {
        writeln!(
            out,
            "signatures of other keys that stay: {others}; one is valid as long as the manifest is the one that it was \
             made for"
        )?;
    }
    Ok(())
}

/// The file of signatures with the one of `own` in it, and how many are by other keys.
fn beside(before: Option<&Vec<u8>>, own: &[u8]) -> anyhow::Result<(Vec<u8>, usize)> {
    let own: Signatures = serde_json::from_slice(own)?;
    let mut all: Signatures =
        before.map(|bytes| serde_json::from_slice(bytes)).transpose()?.unwrap_or_default();
    all.signatures.retain(|one| own.signatures.iter().all(|new| new.keyid != one.keyid));
    let others = all.signatures.len();
    all.signatures.extend(own.signatures);
    Ok((serde_json::to_vec(&all)?, others))
}

fn load(path: &Path) -> anyhow::Result<PublisherKey> {
    PublisherKey::load(path).with_context(|| format!("key file '{}' not accepted", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A package folder whose only file is no component, which is not looked into here.
    fn packed(folder: &Path, key: &PublisherKey) {
        let manifest = include_str!("templates/manifest.json.txt").replace("{id}", "greeter");
        let files = files(manifest.as_bytes(), b"\0asm\x0d\0\x01\0".to_vec(), key).unwrap();
        write_dir(&files, folder).unwrap();
    }

    #[test]
    fn a_signature_stands_beside_those_of_other_keys_and_in_place_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("package");
        let (first, second) =
            (PublisherKey::generate("greeter").unwrap(), PublisherKey::generate("greeter").unwrap());
        packed(&folder, &first);
        let path = home.path().join("second.key");
        second.save(&path).unwrap();
        for _ in 0..2 {
            let mut said = Vec::new();
            sign_folder(&path, &folder, &mut said).unwrap();
            assert!(String::from_utf8(said).unwrap().contains("of other keys that stay: 1"));
            for key in [&first, &second] {
                Verified::open_dir(&folder, &[key.trusted()]).unwrap();
            }
        }
        let written = std::fs::read(folder.join(SIGNATURE)).unwrap();
        assert_eq!(serde_json::from_slice::<Signatures>(&written).unwrap().signatures.len(), 2);
    }

    #[test]
    fn a_signature_that_no_server_takes_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("package");
        packed(&folder, &PublisherKey::generate("greeter").unwrap());
        let before = std::fs::read(folder.join(SIGNATURE)).unwrap();
        let other = home.path().join("other.key");
        PublisherKey::generate("acme").unwrap().save(&other).unwrap();
        sign_folder(&other, &folder, &mut Vec::new()).unwrap_err();
        assert_eq!(std::fs::read(folder.join(SIGNATURE)).unwrap(), before);
        std::fs::write(folder.join(SIGNATURE), json!([]).to_string()).unwrap();
        let refused = sign_folder(&other, &folder, &mut Vec::new()).unwrap_err().to_string();
        assert!(refused.contains("holds no signatures"), "{refused}");
    }
}
