//! What a component was made from, beside it: SHA-256 of each source, of the SDK, and the tool.
//!
//! Times of files do not tell: a file that is saved while a build runs is older than the component that lacks it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::make::replace;
use crate::project::{Language, Project};
use crate::tool::read_bounded;
use crate::{sdk, watch};

/// Name of the file, in the cache.
const FILE: &str = "component.json";
/// Most bytes of it: names of files and their digests.
const BYTES_MAX: u64 = 4 << 20;

/// What a component is made from.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    tool: String,
    sdk: String,
    sources: BTreeMap<String, String>,
}

/// The file beside a component.
#[derive(Serialize, Deserialize)]
struct Stamp {
    /// SHA-256 of the component: another one beside this file is not the one that it tells of.
    component: String,
    from: Made,
}

impl Made {
    /// What a build that starts now is made from. To be asked before the build: what is saved meanwhile is not in it.
    pub(crate) fn now(project: &Project) -> anyhow::Result<Self> {
        let tool = match project.language {
            Language::Rust => "cargo",
            Language::JavaScript => super::javascript::TOOL,
            Language::Python => super::python::TOOL,
        };
        Ok(Self { tool: tool.to_owned(), sdk: sdk::hash(), sources: watch::digests(&project.root)? })
    }

    /// Writes what `component` was made from.
    pub(crate) fn save(self, project: &Project, component: &[u8]) -> anyhow::Result<()> {
        let stamp = Stamp { component: digest(component), from: self };
        replace(&project.cache()?.join(FILE), &serde_json::to_vec(&stamp)?)
            .context("what the component is made from")
    }

    /// Whether `component` was made from this very state.
    pub(crate) fn gave(&self, project: &Project, component: &[u8]) -> bool {
        let read = || -> anyhow::Result<Stamp> {
            Ok(serde_json::from_slice(&read_bounded(&project.cache()?.join(FILE), BYTES_MAX)?)?)
        };
        // A file that is missing or damaged costs a build.
        read().is_ok_and(|stamp| stamp.from == *self && stamp.component == digest(component))
    }
}

/// SHA-256, hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_of_the_files_that_were_there_before_its_build() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("greeter");
        crate::start::new(&root, Language::JavaScript, &mut Vec::new()).unwrap();
        let project = Project::open(&root).unwrap();
        let source = root.join("src/plugin.js");
        let first = std::fs::read(&source).unwrap();
        assert!(!Made::now(&project).unwrap().gave(&project, b"component"), "there is none yet");

        let before = Made::now(&project).unwrap();
        std::fs::write(&source, "saved while the build runs").unwrap();
        before.save(&project, b"component").unwrap();
        assert!(!Made::now(&project).unwrap().gave(&project, b"component"));
        std::fs::write(&source, first).unwrap();
        assert!(
            Made::now(&project).unwrap().gave(&project, b"component"),
            "the time of a file does not count"
        );
        assert!(!Made::now(&project).unwrap().gave(&project, b"another component"));

        std::fs::write(root.join("README.md"), "no source").unwrap();
        assert!(Made::now(&project).unwrap().gave(&project, b"component"));
        let other = Made { sdk: "another".to_owned(), ..Made::now(&project).unwrap() };
        assert!(!other.gave(&project, b"component"));
        std::fs::write(root.join("manifest.json"), "{}").unwrap();
        assert!(!Made::now(&project).unwrap().gave(&project, b"component"));
    }
}
