//! How soon the release program serves, and how much memory it holds when it is idle.
//!
//! Compiled components and the database are there already, as at every start
//! but the first. The baseline is the same program when it only says its version.

use std::fmt::Display;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::measure::{Report, Samples, timed};
use crate::support::{Database, Options, environment, heddle_binary};

const RUNS: usize = 10;
const IDLE: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn measure(_: &tokio::runtime::Runtime, report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    drop(Served::start(folder.path(), Options::default()));
    let (mut starts, mut versions, mut memories) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        versions.push(timed(version).0);
        let (elapsed, served) = timed(|| Served::start(folder.path(), Options::default()));
        std::thread::sleep(IDLE);
        starts.push(elapsed);
        memories.push(served.memory());
    }
    let (starts, versions) = (Samples::of(starts), Samples::of(versions));
    report.row("start, only the program", &versions, "", "");
    report.row("start, until ready", &starts, "", "< 1 s");
    report.value("memory after 3 s idle", Memory::median(&memories), "< 80 MB");
}

fn version() {
    let status = Command::new(heddle_binary()).arg("--version").stdout(Stdio::null()).status();
    assert!(status.expect("the program is built").success(), "the program says its version");
}

/// A server process that ends with this value.
pub(crate) struct Served {
    child: Child,
    address: String,
}

impl Served {
    /// Comes back as soon as the server is ready.
    pub(crate) fn start(folder: &Path, options: Options) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        drop(listener);
        let options = options.with("BIND_ADDR", address.clone()).with("DB_POOL_SIZE", "20");
        let mut command = Command::new(heddle_binary());
        command.arg("serve").env_clear().envs(environment(folder, &Database::Sqlite, &options));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let served = Self { child: child.expect("the program is built"), address };
        let started = Instant::now();
        while !is_ready(&served.address) {
            assert!(started.elapsed() < LIMIT, "the server does not come up");
            std::thread::sleep(Duration::from_millis(2));
        }
        served
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// In user mode and in the system, of all its threads.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        // What precedes the last bracket is the program's name.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        let ticks = |at: usize| -> u64 {
            fields.split_whitespace().nth(at).and_then(|field| field.parse().ok()).expect("it is a number")
        };
        // Fields 14 and 15 of the line, in hundredths of a second.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    pub(crate) fn memory(&self) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("it has memory");
            line.trim().trim_end_matches(" kB").parse().expect("a number")
        };
        Memory { resident_kib: kib("VmRSS:"), own_kib: kib("RssAnon:") }
    }
}

/// The memory of a process.
pub(crate) struct Memory {
    pub(crate) resident_kib: u64,
    /// What of it is not read from files, as the program and compiled code are: the system cannot free it.
    pub(crate) own_kib: u64,
}

impl Memory {
    /// The median of each.
    pub(crate) fn median(samples: &[Self]) -> Self {
        let median = |kib: fn(&Self) -> u64| {
            let mut kibs: Vec<u64> = samples.iter().map(kib).collect();
            kibs.sort_unstable();
            kibs[kibs.len() / 2]
        };
        Self { resident_kib: median(|memory| memory.resident_kib), own_kib: median(|memory| memory.own_kib) }
    }
}

impl Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (all, own) = (self.resident_kib >> 10, self.own_kib >> 10);
        write!(f, "{all} MiB, {own} without files")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_ready(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let request =
        format!("GET /api/v1/health/ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut answer = [0; 12];
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && &answer == b"HTTP/1.1 200"
}
