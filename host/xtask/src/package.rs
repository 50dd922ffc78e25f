//! `components`: every adapter as a signed package, every test guest as a component.
//!
//! Packages are signed with a key of this checkout, made once and never shared:
//! good for the servers that are started from here, and for nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use heddle_marketplace::{DESCRIPTION, PublisherKey, pack, write_dir, write_trusted_keys};
use sha2::{Digest as _, Sha256};

use crate::guest;
use crate::process::{Stop, say};
use crate::workspace::Workspace;

/// The publisher of what is built here.
pub(crate) const PUBLISHER: &str = "heddle";
/// Raised when packages of the same input come out differently.
const RECIPE: &str = "1";
/// Folders of the crates with guests for tests, some of which misbehave on purpose.
const TEST_GUESTS: &[&str] = &["tests/hostile", "tests/plugin", "tests/watcher"];
/// Crates that ask the SDK for more than others do. Each is built by itself: of one build, all crates get the features of
/// each, and a component may not import what its manifest does not ask for.
const APART: &[&str] = &["heddle-test-watcher"];

struct Guest {
    /// Folder name: the adapter's id, or the guest's name.
    name: String,
    folder: PathBuf,
    /// Name of its crate.
    package: String,
}

/// Builds, encodes and signs what changed.
pub(crate) fn components(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let adapters = find_adapters(workspace)?;
    let guests = find_test_guests(workspace)?;
    let crates: Vec<String> = adapters.iter().chain(&guests).map(|guest| guest.package.clone()).collect();
    let key = publisher_key(workspace)?;
    std::fs::create_dir_all(workspace.packages())?;
    // Each adapter by its name: the key of a checkout may be made anew, and takes over exactly these ids then.
    let ids: Vec<String> = adapters.iter().map(|adapter| adapter.name.clone()).collect();
    let trusted = if ids.is_empty() { Vec::new() } else { vec![key.trusted_for(ids)] };
    std::fs::write(workspace.trusted_keys(), write_trusted_keys(&trusted))?;
    if crates.is_empty() {
        say("no adapters and no test guests to build");
        return Ok(());
    }
    guest::ensure_target(stop)?;
    let (apart, together): (Vec<String>, Vec<String>) =
        crates.into_iter().partition(|name| APART.contains(&name.as_str()));
    guest::build(workspace, &together, stop)?;
    for name in apart {
        guest::build(workspace, &[name], stop)?;
    }
    for adapter in &adapters {
        write_package(workspace, adapter, &key)?;
    }
    for guest in &guests {
        write_guest(workspace, guest)?;
    }
    Ok(())
}

fn find_adapters(workspace: &Workspace) -> anyhow::Result<Vec<Guest>> {
    let mut adapters = Vec::new();
    for entry in std::fs::read_dir(workspace.root.join("adapters")).context("no folder 'adapters'")? {
        let folder = entry?.path();
        if folder.join("manifest.json").is_file() {
            adapters.push(guest(&folder)?);
        }
    }
    adapters.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(adapters)
}

fn find_test_guests(workspace: &Workspace) -> anyhow::Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for folder in TEST_GUESTS.iter().map(|folder| workspace.root.join(folder)) {
        let guest = guest(&folder)?;
        // A crate without code yet has no world and cannot become a component.
        if std::fs::read_to_string(folder.join("src/lib.rs")).is_ok_and(|code| code.trim().is_empty()) {
            say(&format!("test guest '{}' has no code and is left out", guest.name));
        } else {
            guests.push(guest);
        }
    }
    Ok(guests)
}

fn guest(folder: &Path) -> anyhow::Result<Guest> {
    let text = std::fs::read_to_string(folder.join("Cargo.toml"))
        .with_context(|| format!("'{}' has no Cargo.toml", folder.display()))?;
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .with_context(|| format!("Cargo.toml of '{}' names no package", folder.display()))?
        .to_owned();
    let name = folder.file_name().context("the folder has no name")?.to_string_lossy().into_owned();
    Ok(Guest { name, folder: folder.to_owned(), package })
}

/// The file of the key of this checkout.
pub(crate) fn publisher_key_file(workspace: &Workspace) -> PathBuf {
    workspace.root.join(".heddle").join("publisher.key")
}

/// The key of this checkout, made when it is first needed.
pub(crate) fn publisher_key(workspace: &Workspace) -> anyhow::Result<PublisherKey> {
    let path = publisher_key_file(workspace);
    if !path.exists() {
        std::fs::create_dir_all(path.parent().context("the key has no folder")?)?;
        PublisherKey::generate(PUBLISHER)?.save(&path)?;
        say("made a publisher key for this checkout: .heddle/publisher.key");
    }
    PublisherKey::load(&path).context(".heddle/publisher.key is not accepted; remove it to get a new one")
}

fn write_package(workspace: &Workspace, adapter: &Guest, key: &PublisherKey) -> anyhow::Result<()> {
    let module = read_module(workspace, adapter)?;
    let manifest = std::fs::read(adapter.folder.join("manifest.json"))?;
    let folder = workspace.packages().join(&adapter.name);
    let description = std::fs::read(adapter.folder.join(DESCRIPTION))
        .with_context(|| format!("adapter '{}' has no {DESCRIPTION}", adapter.name))?;
    let key_id = key.trusted().key_id();
    let inputs: [&[u8]; 4] = [&module, &manifest, &description, key_id.as_bytes()];
    let stamp = Stamp::of(workspace, &adapter.name, &inputs);
    if stamp.is_current() && folder.join("manifest.sig").is_file() {
        return Ok(());
    }
    let component = guest::encode(&adapter.name, &module)?;
    let size = component.len();
    let contents =
        BTreeMap::from([("component.wasm".to_owned(), component), (DESCRIPTION.to_owned(), description)]);
    let files = pack(&manifest, contents, key).with_context(|| format!("adapter '{}'", adapter.name))?;
    write_dir(&files, &folder)?;
    stamp.write()?;
    say(&format!("package {} ({size} bytes)", adapter.name));
    Ok(())
}

fn write_guest(workspace: &Workspace, guest: &Guest) -> anyhow::Result<()> {
    let module = read_module(workspace, guest)?;
    let path = workspace.guests().join(format!("{}.wasm", guest.name));
    let stamp = Stamp::of(workspace, &format!("guest-{}", guest.name), &[&module]);
    if stamp.is_current() && path.is_file() {
        return Ok(());
    }
    let component = guest::encode(&guest.name, &module)?;
    std::fs::create_dir_all(workspace.guests())?;
    std::fs::write(path, &component)?;
    stamp.write()?;
    say(&format!("guest {} ({} bytes)", guest.name, component.len()));
    Ok(())
}

fn read_module(workspace: &Workspace, guest: &Guest) -> anyhow::Result<Vec<u8>> {
    let path = guest::module_path(workspace, &guest.package);
    let module = std::fs::read(&path).with_context(|| format!("'{}' was not built", path.display()))?;
    ensure!(module.starts_with(b"\0asm"), "'{}' is not a WebAssembly module", path.display());
    Ok(module)
}

/// Remembers from what an output was made, so that it is not made again.
pub(crate) struct Stamp {
    path: PathBuf,
    hash: String,
}

impl Stamp {
    pub(crate) fn of(workspace: &Workspace, name: &str, inputs: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix(RECIPE);
        for input in inputs {
            hash.update(Sha256::digest(input));
        }
        let path = workspace.target.join("package-stamps").join(name);
        Self { path, hash: hex::encode(hash.finalize()) }
    }

    pub(crate) fn is_current(&self) -> bool {
        std::fs::read_to_string(&self.path).is_ok_and(|hash| hash == self.hash)
    }

    pub(crate) fn write(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.path.parent().context("the stamp has no folder")?)?;
        Ok(std::fs::write(&self.path, &self.hash)?)
    }
}
