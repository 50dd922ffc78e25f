//! The example plugins, built with the tool that authors have: for the tests, and for the registry of the demo.
//!
//! They are built in copies below the target folder, once for each state of their sources.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::package::Stamp;
use crate::process::{self, Stop, say};
use crate::tools::{self, find};
use crate::workspace::Workspace;

/// Where the sources are, below the root of the checkout.
const SOURCES: &str = "plugins-sdk/examples";
/// What every component depends on beside its sources: the tool's recipes, and the interface.
const SHARED: [&str; 4] = ["host/author/src/make", "wit/common", "wit/host", "wit/plugin"];
/// What a component of Rust depends on, too.
const SHARED_BY_RUST: [&str; 3] = ["plugins-sdk/src", "plugins-sdk/Cargo.toml", "wit/adapter"];
/// The cache of the author's tool in the folder of a plugin.
const CACHE: &str = ".heddle";

/// An example, with what the catalogue of the demo says of it.
pub(crate) struct Example {
    pub(crate) id: &'static str,
    language: Language,
    pub(crate) summary: &'static str,
    pub(crate) category: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Rust,
    JavaScript,
    Python,
}

pub(crate) const EXAMPLES: [Example; 5] = [
    Example {
        id: "grafana-annotations",
        language: Language::Rust,
        summary: "Marks times in the diagrams of Grafana",
        category: "monitoring",
    },
    Example {
        id: "quiet-hours",
        language: Language::Rust,
        summary: "Switches radios and the PoE of ports off at certain hours",
        category: "wireless",
    },
    Example {
        id: "slack-notices",
        language: Language::JavaScript,
        summary: "Posts messages with fields and buttons to Slack",
        category: "notifications",
    },
    Example {
        id: "threat-feed",
        language: Language::JavaScript,
        summary: "Stages blocks of addresses that AbuseIPDB knows",
        category: "security",
    },
    Example {
        id: "ticket-desk",
        language: Language::Python,
        summary: "Keeps one ticket in Zammad for each device",
        category: "tickets",
    },
];

impl Language {
    /// What its build needs and does not find, in words for a person.
    fn lacks(self) -> Option<&'static str> {
        match self {
            Self::JavaScript if find("npm").is_none() => Some("npm is missing"),
            Self::Python if !tools::has_venv() => {
                Some("Python 3.10 or later with its module 'venv' is missing")
            }
            Self::Rust | Self::JavaScript | Self::Python => None,
        }
    }
}

impl Example {
    /// The copy that is built.
    pub(crate) fn folder(&self, workspace: &Workspace) -> PathBuf {
        workspace.plugins().join(self.id)
    }

    pub(crate) fn component(&self, workspace: &Workspace) -> PathBuf {
        self.folder(workspace).join(CACHE).join("component.wasm")
    }

    fn sources(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join(SOURCES).join(self.id)
    }

    /// Builds the component, unless it is there and made from these sources.
    fn build(&self, workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
        let own = read_all(&self.sources(workspace))?;
        let shared = SHARED_BY_RUST.iter().filter(|_| self.language == Language::Rust).chain(&SHARED);
        let mut inputs = own.clone();
        for name in shared {
            inputs.extend(read_all(&workspace.root.join(name))?);
        }
        let inputs: Vec<&[u8]> =
            inputs.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes.as_slice()]).collect();
        let stamp = Stamp::of(workspace, &format!("plugin-{}", self.id), &inputs);
        if stamp.is_current() && self.component(workspace).is_file() {
            return Ok(());
        }
        say(&format!("building the plugin {}", self.id));
        self.copy(workspace, &own)?;
        let mut tool = Command::new(workspace.bin("heddle"));
        tool.args(["plugin", "build", "--project"]).arg(self.folder(workspace)).stdin(Stdio::null());
        process::run("heddle plugin build", &mut tool, stop)?;
        stamp.write()
    }

    /// Writes the sources anew. What the tool can use again is kept, and shared by all plugins.
    fn copy(&self, workspace: &Workspace, files: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
        let folder = self.folder(workspace);
        std::fs::create_dir_all(folder.join(CACHE))?;
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with(CACHE) {
                std::fs::remove_dir_all(path)?;
            } else if path.is_file() {
                std::fs::remove_file(path)?;
            }
        }
        for (name, bytes) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            std::fs::write(path, bytes)?;
        }
        for name in ["tools", "target"] {
            let shared = workspace.target.join("tools/plugins").join(name);
            std::fs::create_dir_all(&shared)?;
            let link = folder.join(CACHE).join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(&shared, &link)
                    .with_context(|| format!("'{}' cannot be made", link.display()))?;
            }
        }
        Ok(())
    }
}

/// Builds all examples, after installing what is missing for it.
pub(crate) fn build_all(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    tools::prepare_authors(stop)?;
    EXAMPLES.iter().try_for_each(|example| example.build(workspace, stop))
}

/// Builds those for which everything is there, and says which ones are left out.
pub(crate) fn build_possible(workspace: &Workspace, stop: &Stop) -> anyhow::Result<Vec<&'static Example>> {
    let mut built = Vec::new();
    for example in &EXAMPLES {
        match example.language.lacks() {
            None => {
                example.build(workspace, stop)?;
                built.push(example);
            }
            Some(lacking) => say(&format!("the plugin {} is left out: {lacking}", example.id)),
        }
    }
    Ok(built)
}

/// The files of a folder, or the file itself, with their names below it; those that git leaves out are not among them.
fn read_all(root: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let (mut files, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(path) = left.pop() {
        let read = || format!("'{}' cannot be read", path.display());
        if path.is_dir() {
            let is_made = ["target", "dist", "__pycache__", CACHE].iter().any(|name| path.ends_with(name));
            if !is_made {
                for entry in path.read_dir().with_context(read)? {
                    left.push(entry?.path());
                }
            }
        } else {
            let name = path.strip_prefix(root)?.to_str().context("a name is not UTF-8")?.to_owned();
            files.push((name, std::fs::read(&path).with_context(read)?));
        }
    }
    ensure!(!files.is_empty(), "'{}' has no files", root.display());
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_plugin_among_the_examples_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SOURCES);
        let mut found = BTreeSet::new();
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let Ok(manifest) = std::fs::read(path.join("manifest.json")) else { continue };
            let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
            if manifest["kind"] == "plugin" {
                let id = path.file_name().unwrap().to_str().unwrap().to_owned();
                assert_eq!(manifest["id"], id.as_str());
                found.insert(id);
            }
        }
        let listed: BTreeSet<String> = EXAMPLES.iter().map(|example| example.id.to_owned()).collect();
        assert_eq!(listed, found);
    }

    #[test]
    fn what_the_readme_installs_from_the_catalogue_is_in_every_demo() {
        let readme = include_str!("../../../README.md");
        let id = |line: &'static str| Some(line.split_once("$market/")?.1.split_once("/install")?.0);
        let installed: Vec<&str> = readme.lines().filter_map(id).collect();
        assert!(!installed.is_empty(), "the README installs a plugin");
        for id in installed {
            let example = EXAMPLES.iter().find(|example| example.id == id);
            assert!(example.is_some_and(|example| example.language == Language::Rust), "{id}");
        }
    }

    #[test]
    fn what_was_made_in_a_folder_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "manifest.json",
            "src/plugin.js",
            ".heddle/component.wasm",
            "dist/a.zip",
            "target/x",
            "src/__pycache__/a.pyc",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        let names: Vec<String> = read_all(folder.path()).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["manifest.json", "src/plugin.js"]);
        let file = folder.path().join("manifest.json");
        assert_eq!(read_all(&file).unwrap(), [(String::new(), b"manifest.json".to_vec())]);
        assert!(read_all(&folder.path().join("none")).is_err());
    }
}
