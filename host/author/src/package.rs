//! `check`, `pack`, `sign`: packages as a server judges them. The rules are those of the package format and of the runtime.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::{
    MANIFEST, MANIFEST_BYTES_MAX, PublisherKey, SIGNATURE, Verified, in_words, judge_schemas, write_archive,
    write_dir,
};
use heddle_runtime::{CompileError, Compiler, LoadError};

use crate::command::At;
use crate::project::Project;
use crate::session::{self, Surroundings};
use crate::tool::read_bounded;
use crate::{host, make};

/// Name of the component in a package.
const COMPONENT: &str = "component.wasm";

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
    verified_as(project, &project.manifest()?, out)
}

/// The same with another manifest.
pub(crate) fn verified_as(
    project: &Project,
    manifest: &[u8],
    out: &mut dyn Write,
) -> anyhow::Result<Verified> {
    let (component, key) = (make::fresh(project, out)?, project.key()?);
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
    match error.downcast_ref::<LoadError>() {
        None | Some(LoadError::Cache(_) | LoadError::Compile(CompileError::Process(_))) => false,
        Some(_) => true,
    }
}

fn refused(error: &anyhow::Error, out: &mut dyn Write) -> anyhow::Result<bool> {
    writeln!(out, "a server refuses the plugin: {error:#}")?;
    Ok(false)
}

/// Prints what a package may do, a line each.
pub(crate) fn say_words(manifest: &Manifest, out: &mut dyn Write) -> anyhow::Result<()> {
    in_words(manifest).iter().try_for_each(|line| Ok(writeln!(out, "  {line}")?))
}

/// Makes a package as a folder and as an archive.
pub(crate) fn pack(arguments: &Pack, out: &mut dyn Write) -> anyhow::Result<()> {
    let project = arguments.at.open()?;
    let key = match &arguments.key {
        Some(path) => load(path)?,
        None => project.key()?,
    };
    let files = files(&project.manifest()?, make::fresh(&project, out)?, &key)?;
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

/// Signs the manifest of a package folder again.
pub(crate) fn sign_folder(key: &Path, folder: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    ensure!(folder.is_dir(), "'{}' is not a folder", folder.display());
    let key = load(key)?;
    let manifest = read_bounded(&folder.join(MANIFEST), MANIFEST_BYTES_MAX)?;
    std::fs::write(folder.join(SIGNATURE), heddle_marketplace::sign(&manifest, key.signing()))?;
    let package = Verified::open_dir(folder, &[key.trusted()])?;
    judge_schemas(package.manifest(), package.description()).map_err(anyhow::Error::msg)?;
    writeln!(
        out,
        "signed {} {} as '{}'",
        package.manifest().id,
        package.manifest().version,
        key.publisher()
    )?;
    Ok(())
}

fn load(path: &Path) -> anyhow::Result<PublisherKey> {
    PublisherKey::load(path).with_context(|| format!("key file '{}' not accepted", path.display()))
}
