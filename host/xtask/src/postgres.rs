//! A `PostgreSQL` of its own for tests: on loopback, in a temporary folder, gone
//! at the end. Nothing in it is worth keeping, so nothing is flushed to disk.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::Signal;

use crate::apt;
use crate::process::{self, Guarded, Stop, say};

const START_LIMIT: Duration = Duration::from_secs(30);
const USER: &str = "heddle";

/// A running server; stops when it goes away.
pub(crate) struct Postgres {
    url: String,
    // Dropped in this order: the server ends before its folder goes.
    server: Guarded,
    _folder: tempfile::TempDir,
}

impl Postgres {
    /// Starts one with these settings in addition to the own ones, after installing it where that is possible.
    pub(crate) fn start(stop: &Stop, settings: &[&str]) -> anyhow::Result<Self> {
        let programs = match find_programs() {
            Some(programs) => programs,
            None => install(stop)?,
        };
        let account = Account::choose()?;
        let folder = tempfile::Builder::new().prefix("heddle-pg-").tempdir()?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        let home = folder.path().join("server");
        std::fs::create_dir(&home)?;
        account.give(&home)?;
        let password = hex::encode(heddle_marketplace::keygen()?.as_bytes());
        initialize(&programs, &account, &home, &password, stop)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = launch(&programs, &account, &home, port, settings)?;
        wait_until_ready(&programs, &mut server, port, stop)?;
        let url = format!("postgres://{USER}:{password}@127.0.0.1:{port}/postgres");
        Ok(Self { url, server, _folder: folder })
    }

    /// URL with a user that may create databases.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// `db`: one that stays until Ctrl-C.
pub(crate) fn serve(stop: &Stop) -> anyhow::Result<ExitCode> {
    let mut postgres = Postgres::start(stop, &[])?;
    writeln!(std::io::stdout(), "{}", postgres.url())?;
    say("stop it with Ctrl-C");
    while !stop.is_set() {
        postgres.server.expect_running()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder with `initdb`, `postgres` and `pg_isready`; the newest of several.
fn find_programs() -> Option<PathBuf> {
    let complete = |folder: &PathBuf| {
        ["initdb", "postgres", "pg_isready"].iter().all(|name| folder.join(name).is_file())
    };
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    let packaged = versions.into_iter().rev().map(|(_, folder)| folder);
    #[expect(
        clippy::disallowed_methods,
        reason = "the search path is the system's, not a setting of the product"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let searched: Vec<PathBuf> = std::env::split_paths(&path).collect();
    packaged.chain(searched).find(complete)
}

fn install(stop: &Stop) -> anyhow::Result<PathBuf> {
    let missing = "PostgreSQL is missing; install your system's package 'postgresql' (server programs initdb and \
                   postgres, on the search path)";
    apt::install(&["postgresql"], missing, stop)?;
    find_programs().context(missing)
}

/// The account that the server runs as: it refuses to run as root.
enum Account {
    Own,
    Other(&'static str),
}

impl Account {
    fn choose() -> anyhow::Result<Self> {
        if !apt::is_root() {
            return Ok(Self::Own);
        }
        let known =
            |name: &str| Command::new("id").arg("-u").arg(name).output().is_ok_and(|o| o.status.success());
        ["postgres", "nobody"]
            .into_iter()
            .find(|name| known(name))
            .map(Self::Other)
            .context("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody'")
    }

    fn give(&self, folder: &Path) -> anyhow::Result<()> {
        let Self::Other(name) = self else { return Ok(()) };
        let status =
            Command::new("chown").arg(name).arg(folder).status().context("'chown' cannot be started")?;
        ensure!(status.success(), "the folder of the database cannot be given to '{name}'");
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        match self {
            Self::Own => Command::new(program),
            Self::Other(name) => {
                let mut command = Command::new("setpriv");
                // It ends with this process, however that ends.
                command.args(["--reuid", name, "--clear-groups", "--pdeathsig", "INT"]).arg(program);
                command
            }
        }
    }
}

fn initialize(
    programs: &Path,
    account: &Account,
    home: &Path,
    password: &str,
    stop: &Stop,
) -> anyhow::Result<()> {
    let mut secret = tempfile::NamedTempFile::new()?;
    secret.write_all(password.as_bytes())?;
    account.give(secret.path())?;
    let mut command = account.command(&programs.join("initdb"));
    command
        .current_dir("/")
        .args(["-A", "scram-sha-256", "--locale=C", "-E", "UTF8", "--no-sync", "-U", USER])
        .arg(format!("--pwfile={}", secret.path().display()))
        .arg("-D")
        .arg(home.join("data"))
        .stdout(Stdio::null());
    process::run("initdb", &mut command, stop)
}

fn launch(
    programs: &Path,
    account: &Account,
    home: &Path,
    port: u16,
    settings: &[&str],
) -> anyhow::Result<Guarded> {
    let log = std::fs::File::create(home.join("log"))?;
    let mut command = account.command(&programs.join("postgres"));
    command.current_dir("/").arg("-D").arg(home.join("data"));
    let own = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        format!("unix_socket_directories={}", home.display()),
        "max_connections=200".to_owned(),
        "fsync=off".to_owned(),
        "synchronous_commit=off".to_owned(),
        "full_page_writes=off".to_owned(),
    ];
    for setting in own.iter().map(String::as_str).chain(settings.iter().copied()) {
        command.args(["-c", setting]);
    }
    // Its own group: Ctrl-C must reach the tests first, and the server after them.
    command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // Asked by SIGTERM it would wait for its clients.
    Ok(Guarded::start("postgres", &mut command)?.ended_by(Signal::INT))
}

fn wait_until_ready(programs: &Path, server: &mut Guarded, port: u16, stop: &Stop) -> anyhow::Result<()> {
    let end = Instant::now() + START_LIMIT;
    while Instant::now() < end {
        server.expect_running()?;
        let port = port.to_string();
        let ready = Command::new(programs.join("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &port])
            .status()
            .context("'pg_isready' cannot be started")?;
        if ready.success() {
            return Ok(());
        }
        stop.sleep(Duration::from_millis(100))?;
    }
    bail!("PostgreSQL was not ready within {} s", START_LIMIT.as_secs())
}
