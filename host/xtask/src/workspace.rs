//! Where things are: the checkout, and the target folder that cargo uses for it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo, so that every way to set the target folder is honoured.
    pub(crate) fn locate() -> anyhow::Result<Self> {
        // Asked when it runs: checkouts that share a target folder may share this program, too.
        #[expect(clippy::disallowed_methods, reason = "cargo says which checkout it runs for")]
        let package = std::env::var_os("CARGO_MANIFEST_DIR");
        let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let output = Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"])
            .arg(std::path::Path::new(&package).join("Cargo.toml"))
            .output()
            .context("'cargo' cannot be started")?;
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
        let folder = |key: &str| {
            metadata[key]
                .as_str()
                .map(PathBuf::from)
                .with_context(|| format!("cargo metadata has no '{key}'"))
        };
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")? })
    }

    /// A cargo command that runs at the root of the checkout.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // Variables that `cargo run` sets for this program. Build scripts of libraries look at them, and would rebuild
        // everything that was built without them.
        let of_this_program =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(of_this_program) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Where signed packages are written, one folder each.
    pub(crate) fn packages(&self) -> PathBuf {
        self.target.join("packages")
    }

    /// Vendors that have a practice device, by name: the folders of `tests/labs` with a program.
    pub(crate) fn labs(&self) -> anyhow::Result<Vec<String>> {
        let folder = self.root.join("tests/labs");
        let mut labs = Vec::new();
        for entry in folder.read_dir().with_context(|| format!("'{}' cannot be read", folder.display()))? {
            let lab = entry?;
            if lab.path().join("src/main.rs").is_file() {
                labs.push(lab.file_name().to_string_lossy().into_owned());
            }
        }
        labs.sort();
        Ok(labs)
    }

    /// The folder of a vendor's practice device.
    pub(crate) fn lab(&self, vendor: &str) -> PathBuf {
        self.root.join("tests/labs").join(vendor)
    }

    /// Public keys that the packages are signed with.
    pub(crate) fn trusted_keys(&self) -> PathBuf {
        self.packages().join("trusted-keys.json")
    }

    /// Where unsigned components for tests are written.
    pub(crate) fn guests(&self) -> PathBuf {
        self.target.join("guests")
    }

    /// Where the example plugins are built, one folder each.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.target.join("plugins")
    }

    /// A program of the development profile.
    pub(crate) fn bin(&self, name: &str) -> PathBuf {
        self.program("debug", name)
    }

    /// A program of the release profile.
    pub(crate) fn release_bin(&self, name: &str) -> PathBuf {
        self.program("release", name)
    }

    fn program(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }
}
