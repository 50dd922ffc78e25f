//! Programs beside cargo's that tests need: a cache server, the metrics linter, and Python packages.
//!
//! Tests find them by environment variables. Nothing here is part of the product.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::apt;
use crate::process::{self, Stop, say};
use crate::workspace::Workspace;

/// The Python packages, pinned, below the root of the checkout.
const REQUIREMENTS: &str = "tests/surface/client/requirements.txt";

pub(crate) struct Tools {
    redis_server: PathBuf,
    promtool: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// Finds all of them, after installing what is missing.
    pub(crate) fn prepare(workspace: &Workspace, stop: &Stop) -> anyhow::Result<Self> {
        Ok(Self {
            redis_server: program("redis-server", "redis-server", stop)?,
            promtool: program("promtool", "prometheus", stop)?,
            python: python(workspace, stop)?,
        })
    }

    /// The variables by which tests find them.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 3] {
        [
            ("TEST_REDIS_SERVER", &self.redis_server),
            ("TEST_PROMTOOL", &self.promtool),
            ("TEST_PYTHON", &self.python),
        ]
    }
}

/// A program on the search path, or of this Debian package.
fn program(name: &str, package: &str, stop: &Stop) -> anyhow::Result<PathBuf> {
    if let Some(found) = find(name) {
        return Ok(found);
    }
    let missing = format!(
        "'{name}' is missing; install the package that has it, on Debian 'apt-get install {package}'"
    );
    apt::install(&[package], &missing, stop)?;
    find(name).context(missing)
}

fn find(name: &str) -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the search path is the system's, not a setting of the product"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The interpreter of a virtual environment that has the pinned packages.
fn python(workspace: &Workspace, stop: &Stop) -> anyhow::Result<PathBuf> {
    let wanted = std::fs::read_to_string(workspace.root.join(REQUIREMENTS))
        .with_context(|| format!("'{REQUIREMENTS}' cannot be read"))?;
    let folder = workspace.target.join("tools").join("python");
    let python = folder.join("bin").join("python");
    let stamp = folder.join("requirements.txt");
    if python.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    say("installing the Python packages of the tests, once");
    if !make_environment(&folder, stop)? {
        let missing = "Python 3.11 or later with its module 'venv' is missing; install it, on Debian \
                       'apt-get install python3 python3-venv'";
        apt::install(&["python3", "python3-venv"], missing, stop)?;
        ensure!(make_environment(&folder, stop)?, missing);
    }
    let mut pip = Command::new(&python);
    pip.current_dir(&workspace.root)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
            REQUIREMENTS,
        ])
        .stdin(Stdio::null());
    process::run("pip install", &mut pip, stop)?;
    // Last: an installation that was cut short begins anew.
    std::fs::write(&stamp, wanted)?;
    Ok(python)
}

/// False when Python is missing, or its module for environments.
fn make_environment(folder: &Path, stop: &Stop) -> anyhow::Result<bool> {
    if find("python3").is_none() {
        return Ok(false);
    }
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear"]).arg(folder).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(process::status("python3 -m venv", &mut command, stop)?.success())
}
