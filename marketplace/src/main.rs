//! `heddle-package`: makes keys, signs, packs and verifies packages of adapters and plugins.
//!
//! A package is a folder here, or a ZIP archive of its files, as a server takes it. Nothing is uploaded anywhere.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use clap::{Parser, Subcommand};
use heddle_marketplace::manifest::{Kind, Manifest};
use heddle_marketplace::{
    DESCRIPTION, MANIFEST, PublisherKey, SIGNATURE, Verified, grant, in_words, inspect, judge_schemas, pack,
    parse_trusted_keys, sign, write_archive, write_dir, write_trusted_keys,
};

#[derive(Parser)]
#[command(name = "heddle-package", about = "Make and verify packages of adapters and plugins", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a publisher's key; prints the entry for a server's trusted keys
    Keygen {
        /// Name of the publisher, as manifests give it
        #[arg(long)]
        publisher: String,
        /// New file for the key; keep it secret
        #[arg(long)]
        out: PathBuf,
    },
    /// Sign the manifest of a package folder again
    Sign {
        #[arg(long)]
        key: PathBuf,
        folder: PathBuf,
    },
    /// Check a package as a server would
    Verify {
        /// The server's list of trusted keys
        #[arg(long)]
        trusted: PathBuf,
        /// Its folder, or its ZIP archive
        package: PathBuf,
    },
    /// Print what a package folder may do; its signature is not looked at
    Show { folder: PathBuf },
    /// Complete and sign a manifest and write the package folder
    Pack {
        #[arg(long)]
        key: PathBuf,
        /// Manifest without `files`
        #[arg(long)]
        manifest: PathBuf,
        /// What an adapter manages: areas, kinds and features; a plugin has none
        #[arg(long)]
        description: Option<PathBuf>,
        #[arg(long)]
        component: PathBuf,
        /// A further file, as `name in the package=file to read`
        #[arg(long = "file")]
        files: Vec<String>,
        #[arg(long)]
        out: PathBuf,
        /// Also write the package as a ZIP archive, which a server takes over its API
        #[arg(long)]
        zip: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // When standard error is closed, there is no place left to report to.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Keygen { publisher, out } => {
            let key = PublisherKey::generate(&publisher)?;
            key.save(&out).with_context(|| format!("key file '{}' not written", out.display()))?;
            say(&write_trusted_keys(&[key.trusted_for_own()]))
        }
        Command::Sign { key, folder } => sign_folder(&load_key(&key)?, &folder),
        Command::Verify { trusted, package } => {
            let trusted = parse_trusted_keys(&read(&trusted)?)?;
            let package = if package.is_dir() {
                Verified::open_dir(&package, &trusted)?
            } else {
                Verified::open_archive(&read(&package)?, &trusted)?
            };
            describe(&package)
        }
        Command::Show { folder } => {
            let manifest = inspect(&read(&folder.join(MANIFEST))?)?;
            say(&format!(
                "{} {} by {}; the signature was not looked at, 'verify' does that",
                manifest.id, manifest.version, manifest.publisher
            ))?;
            rules(&manifest)
        }
        Command::Pack { key, manifest, description, component, files, out, zip } => {
            let key = load_key(&key)?;
            let mut contents = BTreeMap::from([("component.wasm".to_owned(), read(&component)?)]);
            if let Some(description) = description {
                contents.insert(DESCRIPTION.to_owned(), read(&description)?);
            }
            for file in files {
                let (name, path) =
                    file.split_once('=').with_context(|| format!("'{file}' is not name=file"))?;
                contents.insert(name.to_owned(), read(Path::new(path))?);
            }
            let files = pack(&read(&manifest)?, contents, &key)?;
            write_dir(&files, &out)?;
            if let Some(zip) = zip {
                let archive = write_archive(&files)?;
                std::fs::write(&zip, archive)
                    .with_context(|| format!("archive '{}' not written", zip.display()))?;
            }
            describe(&Verified::open_dir(&out, &[key.trusted()])?)
        }
    }
}

fn sign_folder(key: &PublisherKey, folder: &Path) -> anyhow::Result<()> {
    ensure!(folder.is_dir(), "'{}' is not a folder", folder.display());
    let manifest = read(&folder.join(MANIFEST))?;
    std::fs::write(folder.join(SIGNATURE), sign(&manifest, key.signing()))?;
    describe(&Verified::open_dir(folder, &[key.trusted()])?)
}

fn describe(package: &Verified) -> anyhow::Result<()> {
    let (manifest, description) = (package.manifest(), package.description());
    judge_schemas(manifest, description).map_err(|problem| anyhow!("a schema is not accepted: {problem}"))?;
    say(&format!(
        "{} {} by {}, signed by key {}",
        manifest.id,
        manifest.version,
        manifest.publisher,
        package.key_ids().join(", ")
    ))?;
    match manifest.kind {
        Kind::Adapter => say(&format!(
            "  has {} areas, {} kinds of object and {} features",
            description.areas.len(),
            description.kinds.len(),
            description.features.len()
        ))?,
        Kind::Plugin => say(&format!(
            "  has {} actions, {} types of events and {} permissions; consent is to the grant {}",
            manifest.actions.len(),
            manifest.event_types.len(),
            manifest.permissions.len(),
            grant::of(manifest).hash()
        ))?,
    }
    rules(manifest)
}

/// What the package may do, for the person who decides whether to install it.
fn rules(manifest: &Manifest) -> anyhow::Result<()> {
    in_words(manifest).iter().try_for_each(|line| say(&format!("  {line}")))
}

fn load_key(path: &Path) -> anyhow::Result<PublisherKey> {
    PublisherKey::load(path).with_context(|| format!("key file '{}' not accepted", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("'{}' cannot be read", path.display()))
}

fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
