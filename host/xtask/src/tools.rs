//! Programs besides cargo's that tests need: a cache server, a directory, the metrics linter, Python and Node packages, and what
//! authors of plugins have.
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

/// The Node packages, pinned with all that they need, in the same place.
const NODE_PACKAGES: [&str; 2] = ["tests/identity/sso/package.json", "tests/identity/sso/package-lock.json"];

pub(crate) struct Tools {
    redis_server: PathBuf,
    promtool: PathBuf,
    python: PathBuf,
    slapd: PathBuf,
    node: PathBuf,
    node_modules: PathBuf,
    chromium: PathBuf,
}

impl Tools {
    /// Finds all of them, after installing what is missing.
    pub(crate) fn prepare(workspace: &Workspace, stop: &Stop) -> anyhow::Result<Self> {
        // The commands of the README need these, by their names.
        for name in ["curl", "jq", "openssl"] {
            program(name, name, stop)?;
        }
        Ok(Self {
            redis_server: program("redis-server", "redis-server", stop)?,
            promtool: program("promtool", "prometheus", stop)?,
            python: python(workspace, stop)?,
            slapd: slapd(stop)?,
            node: node(workspace, stop)?,
            node_modules: node_modules(workspace, stop)?,
            chromium: program("chromium", "chromium", stop)?,
        })
    }

    /// The variables by which tests find them.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 7] {
        [
            ("TEST_REDIS_SERVER", &self.redis_server),
            ("TEST_PROMTOOL", &self.promtool),
            ("TEST_PYTHON", &self.python),
            ("TEST_SLAPD", &self.slapd),
            ("TEST_NODE", &self.node),
            ("TEST_NODE_MODULES", &self.node_modules),
            ("TEST_CHROMIUM", &self.chromium),
        ]
    }
}

/// Installs what authors of plugins in JavaScript and Python have: npm, and Python with its module for environments.
pub(crate) fn prepare_authors(stop: &Stop) -> anyhow::Result<()> {
    program("npm", "npm", stop)?;
    if has_venv() {
        return Ok(());
    }
    let missing = "Python 3.10 or later with its module 'venv' is missing; install it, on Debian \
                   'apt-get install python3 python3-venv'";
    apt::install(&["python3", "python3-venv"], missing, stop)?;
    ensure!(has_venv(), missing);
    Ok(())
}

/// Whether Python can make environments, with the program that installs packages in them.
pub(crate) fn has_venv() -> bool {
    const ASKED: &str = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))";
    let mut python = Command::new("python3");
    let asked = python.args(["-c", ASKED]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
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

/// A program on the search path.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the search path is the system's, not a setting of the product"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The directory server, which Debian keeps where only administrators look, with the clients that fill it.
///
/// It is never started here: without arguments it would listen on every address.
fn slapd(stop: &Stop) -> anyhow::Result<PathBuf> {
    let here = || {
        let slapd =
            find("slapd").or_else(|| Some(PathBuf::from("/usr/sbin/slapd")).filter(|path| path.is_file()));
        slapd.filter(|_| find("ldapadd").is_some())
    };
    if let Some(found) = here() {
        return Ok(found);
    }
    let missing =
        "'slapd' or 'ldapadd' is missing; install them, on Debian 'apt-get install slapd ldap-utils'";
    apt::install(&["slapd", "ldap-utils"], missing, stop)?;
    here().context(missing)
}

/// The oldest Node.js, by its first two numbers, that the packages run on; Debian 12 has an older one.
const NODE_OLDEST: (u32, u32) = (20, 12);
/// The version that is fetched where the system's is older.
const NODE_VERSION: &str = "22.23.3";

/// The system's Node.js, or one that npm brings where that is too old.
fn node(workspace: &Workspace, stop: &Stop) -> anyhow::Result<PathBuf> {
    let system = program("node", "nodejs", stop)?;
    if node_version(&system).is_some_and(|version| version >= NODE_OLDEST) {
        return Ok(system);
    }
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("node-linux-{machine}");
    let folder = workspace.target.join("tools").join("node-program");
    let own = folder.join("node_modules").join(&package).join("bin").join("node");
    if node_version(&own).is_none() {
        say(&format!(
            "installing Node.js {NODE_VERSION}, once: the system's is older than the tests' packages want"
        ));
        std::fs::create_dir_all(&folder)?;
        let mut npm = Command::new(program("npm", "npm", stop)?);
        npm.current_dir(&folder)
            .args(["install", "--prefix", ".", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error", &format!("{package}@{NODE_VERSION}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        process::run("npm install", &mut npm, stop)?;
    }
    ensure!(node_version(&own).is_some(), "Node.js {NODE_VERSION} was installed but does not run");
    Ok(own)
}

/// The first two numbers of `v20.12.1`; `None` when the program does not run.
fn node_version(node: &Path) -> Option<(u32, u32)> {
    let output = Command::new(node).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The folder with the pinned Node packages, which run no script of theirs when they are installed.
fn node_modules(workspace: &Workspace, stop: &Stop) -> anyhow::Result<PathBuf> {
    let texts: Vec<String> = NODE_PACKAGES
        .iter()
        .map(|path| {
            std::fs::read_to_string(workspace.root.join(path))
                .with_context(|| format!("'{path}' cannot be read"))
        })
        .collect::<anyhow::Result<_>>()?;
    let folder = workspace.target.join("tools").join("node");
    let (modules, stamp) = (folder.join("node_modules"), folder.join("installed"));
    let wanted = texts.concat();
    if modules.is_dir() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(modules);
    }
    say("installing the Node packages of the tests, once");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in ["package.json", "package-lock.json"].iter().zip(&texts) {
        std::fs::write(folder.join(name), text)?;
    }
    let mut npm = Command::new(program("npm", "npm", stop)?);
    npm.current_dir(&folder)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    process::run("npm ci", &mut npm, stop)?;
    // Last: an installation that was cut short begins anew.
    std::fs::write(&stamp, wanted)?;
    Ok(modules)
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
