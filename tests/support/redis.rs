//! A Redis of a test's own, which can be killed, frozen and started again.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{free_port, variable};

/// With characters that a URL must write otherwise.
const PASSWORD: &str = "redis/secret@it";

/// A Redis that ends with this value.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let port = free_port();
        let redis = Self { child: spawn(&folder, port), port, folder };
        redis.wait_ready();
        redis
    }

    /// Where nothing listens yet.
    pub(crate) fn not_yet_started() -> Self {
        let mut redis = Self::start();
        redis.kill();
        redis
    }

    pub(crate) fn url(&self) -> String {
        let password = PASSWORD.replace('/', "%2F").replace('@', "%40");
        format!("redis://default:{password}@127.0.0.1:{}/0", self.port)
    }

    /// What must not be seen anywhere.
    pub(crate) fn password() -> &'static str {
        PASSWORD
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the process runs");
        self.child.wait().expect("the process ends");
    }

    /// Starts it again on the same port, empty.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, self.port);
        self.wait_ready();
    }

    /// Takes connections, as the kernel does for it, and answers nothing.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("ids are small");
        kill_process(Pid::from_raw(id).expect("ids are positive"), signal).expect("the process runs");
    }

    /// Says one command, without blanks in its arguments, and answers what came back.
    pub(crate) fn command(&self, command: &str) -> String {
        self.call(&command.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> String {
        self.try_call(arguments).expect("Redis answers")
    }

    fn try_call(&self, arguments: &[&str]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let commands = [&["AUTH", "default", PASSWORD], arguments, &["QUIT"]];
        stream.write_all(commands.map(encoded).concat().as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let answer = answer.strip_prefix("+OK\r\n").and_then(|rest| rest.strip_suffix("+OK\r\n"));
        answer.map(str::to_owned).ok_or_else(|| std::io::Error::other("the password was refused"))
    }

    fn wait_ready(&self) {
        let started = Instant::now();
        while self.try_call(&["PING"]).is_err() {
            assert!(started.elapsed() < super::PATIENCE, "Redis does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have been killed already. A frozen process dies of this, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As Redis's protocol writes a command.
fn encoded(arguments: &[&str]) -> String {
    let parts = arguments.iter().map(|argument| format!("${}\r\n{argument}\r\n", argument.len()));
    format!("*{}\r\n{}", arguments.len(), parts.collect::<String>())
}

fn spawn(folder: &TempDir, port: u16) -> Child {
    let program = variable("TEST_REDIS_SERVER").map_or_else(|| PathBuf::from("redis-server"), PathBuf::from);
    let spawned = Command::new(&program)
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--requirepass", PASSWORD])
        .args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    spawned.unwrap_or_else(|cause| {
        panic!(
            "'{}' cannot be started ({cause}): install the package redis-server \
             (apt-get install redis-server), or name the program in TEST_REDIS_SERVER",
            program.display()
        )
    })
}
