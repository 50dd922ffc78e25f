//! A server in a process of its own, which can be killed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Api, Database, Options, PASSWORD, PATIENCE, environment, heddle_binary};

/// How much of a server's log a failed test shows.
const LOG_SHOWN_BYTES: usize = 8 << 10;

/// A server process that dies with this value.
pub(crate) struct Process {
    child: Child,
    /// What it logs, also once its folder is gone.
    log: File,
    pub(crate) api: Api,
}

impl Process {
    pub(crate) async fn start(folder: &Path, database: &Database, options: &Options) -> Self {
        let mut command = Command::new(heddle_binary());
        command.arg("serve");
        Self::spawn(command, folder, database, options).await
    }

    /// Completes setup with an organization, an administrator and a site. Answers the process with the administrator's
    /// token, and the token.
    pub(crate) async fn set_up(self) -> (Self, String) {
        let setup = json!({
            "organization": { "name": "Acme" },
            "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
            "site": { "name": "Head office" },
        });
        let answer = self.api.post("/setup/complete", &setup).await.expect_status(201);
        let token = answer.body["access_token"].as_str().expect("a token").to_owned();
        (self.with_token(&token), token)
    }

    /// With a disk of its own for its data, of which a file `filler` takes the most.
    pub(crate) async fn start_on_small_disk(folder: &Path, size_kib: u32, options: &Options) -> Self {
        let script = format!(
            "mount -t tmpfs -o size={size_kib}k tmpfs \"$DATA_DIR\" && head -c {} /dev/zero > \"$DATA_DIR/filler\" && exec \"$0\" serve",
            u64::from(size_kib) * 512
        );
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]).arg(heddle_binary());
        Self::spawn(command, folder, &Database::Sqlite, options).await
    }

    async fn spawn(mut command: Command, folder: &Path, database: &Database, options: &Options) -> Self {
        let port = free_port();
        let options = options.clone().with("BIND_ADDR", format!("127.0.0.1:{port}"));
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("log"))
            .expect("a log can be written");
        let mut environment = environment(folder, database, &options);
        environment.insert("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        let read = File::open(folder.join("log")).expect("a log can be read");
        let child = command
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the heddle binary is built");
        let process = Self { child, log: read, api: Api::new(&format!("http://127.0.0.1:{port}")) };
        process.wait_ready(folder).await;
        process
    }

    async fn wait_ready(&self, folder: &Path) {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.api.try_send("GET", "/health/live", None).await.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        panic!("the server does not come up: {log}");
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.api = self.api.with_token(token);
        self
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM, and waits until the process has ended; fails the test when that takes more than 30 s.
    pub(crate) async fn terminate(&mut self) {
        self.ask_to_end();
        let started = Instant::now();
        while self.child.try_wait().expect("the process can be waited for").is_none() {
            assert!(started.elapsed() < Duration::from_mins(2), "the process does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// SIGTERM.
    pub(crate) fn ask_to_end(&self) {
        let status = Command::new("kill").arg("-TERM").arg(self.id().to_string()).status();
        assert!(status.expect("kill runs").success());
    }

    /// SIGHUP: the packages are read again.
    pub(crate) fn hang_up(&self) {
        let status = Command::new("kill").arg("-HUP").arg(self.id().to_string()).status();
        assert!(status.expect("kill runs").success());
    }

    /// SIGKILL: nothing is flushed, nothing is said.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the process runs");
        self.child.wait().expect("the process ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let mut log = String::new();
            let _ = self.log.read_to_string(&mut log);
            let begin = log.len().saturating_sub(LOG_SHOWN_BYTES);
            eprintln!(
                "the server that the failed test used logged: {}",
                &log[log.ceil_char_boundary(begin)..]
            );
        }
    }
}

pub(crate) fn free_port() -> u16 {
    /// Below the ports that Linux gives by itself: a connection or a listener of another test, which takes any port, cannot
    /// get one of these before its server listens.
    const PORTS: std::ops::Range<u32> = 20_000..32_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Another run of the tests at the same time begins elsewhere.
    let begin = std::process::id();
    loop {
        let step = begin.wrapping_mul(97).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + step % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).expect("ports have 16 bits");
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
