//! The registry of `run --demo`: a folder with the example plugins, made by the tool that operators of registries use.
//!
//! Its keys are of this checkout, and good for nothing else. A registry is made once for each state of the plugins: servers
//! never take another package under a version that they know, and another root begins anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use heddle_marketplace::{PublisherKey, pack, write_archive};
use sha2::{Digest as _, Sha256};

use crate::package;
use crate::plugins::Example;
use crate::process::{self, Stop};
use crate::workspace::Workspace;

/// Characters of the digest in a folder's name.
const NAME_CHARS: usize = 16;
const KEYS: [&str; 3] = ["root", "catalog", "timestamp"];

/// A registry in a folder, as a server is told of it.
pub(crate) struct Registry {
    /// What is served.
    pub(crate) served: PathBuf,
    /// The first root.
    pub(crate) root: PathBuf,
}

/// Makes the registry with these plugins, or signs the one that is there again, so that it is not expired.
pub(crate) fn prepare(
    workspace: &Workspace,
    stop: &Stop,
    examples: &[&'static Example],
) -> anyhow::Result<Registry> {
    let home = workspace.target.join("demo-registry");
    std::fs::create_dir_all(&home)?;
    let key = package::publisher_key(workspace)?;
    let mut hash = Sha256::new();
    let mut archives = Vec::new();
    for example in examples {
        let archive = archive(workspace, example, &key)?;
        hash.update(Sha256::digest(&archive));
        archives.push((*example, archive));
    }
    let name: String = hex::encode(hash.finalize()).chars().take(NAME_CHARS).collect();
    let tool = Tool { program: workspace.bin("heddle-marketplace"), home: &home, stop };
    for name in KEYS {
        if !tool.key(name).exists() {
            tool.run(&["keygen", "--name", name, "--out", &text(&tool.key(name))])?;
        }
    }
    let folder = home.join(name);
    let made = folder.join("made");
    if !made.is_file() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        tool.make(&folder, &archives, &package::publisher_key_file(workspace))?;
    }
    tool.run(&[
        "publish",
        &text(&folder),
        "--catalog-key",
        &text(&tool.key("catalog")),
        "--timestamp-key",
        &text(&tool.key("timestamp")),
    ])?;
    // Last: what was cut short begins anew.
    std::fs::write(made, "")?;
    let served = folder.join("public");
    Ok(Registry { root: served.join("1.root.json"), served })
}

/// The signed package of a plugin.
fn archive(workspace: &Workspace, example: &Example, key: &PublisherKey) -> anyhow::Result<Vec<u8>> {
    let read =
        |path: PathBuf| std::fs::read(&path).with_context(|| format!("'{}' cannot be read", path.display()));
    let manifest = read(example.folder(workspace).join("manifest.json"))?;
    let contents = BTreeMap::from([("component.wasm".to_owned(), read(example.component(workspace))?)]);
    let files = pack(&manifest, contents, key).with_context(|| format!("plugin '{}'", example.id))?;
    Ok(write_archive(&files)?)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The tool, with the folder of keys and registries.
struct Tool<'a> {
    program: PathBuf,
    home: &'a Path,
    stop: &'a Stop,
}

impl Tool<'_> {
    fn key(&self, name: &str) -> PathBuf {
        self.home.join(format!("{name}.key"))
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        process::run("heddle-marketplace", &mut command, self.stop)
    }

    /// Makes a registry that lists these packages, without publishing it.
    fn make(
        &self,
        folder: &Path,
        archives: &[(&Example, Vec<u8>)],
        publisher_key: &Path,
    ) -> anyhow::Result<()> {
        let home = text(folder);
        let [root, catalog, timestamp] = KEYS.map(|name| text(&self.key(name)));
        let keys = ["--root-key", &root, "--catalog-key", &catalog, "--timestamp-key", &timestamp];
        self.run(&[&["init", &home], &keys[..], &["--key", &root]].concat())?;
        let (key, publisher) = (text(publisher_key), package::PUBLISHER);
        let mut arguments = vec!["publisher", &home, "--id", publisher, "--name", "Heddle", "--key", &key];
        for (example, _) in archives {
            arguments.extend(["--may-sign", example.id]);
        }
        self.run(&arguments)?;
        let package = self.home.join("package.zip");
        for (example, archive) in archives {
            std::fs::write(&package, archive)?;
            let words = ["--summary", example.summary, "--category", example.category];
            self.run(&[&["add", &home, &text(&package)], &words[..]].concat())?;
        }
        if package.exists() {
            std::fs::remove_file(package)?;
        }
        Ok(())
    }
}
