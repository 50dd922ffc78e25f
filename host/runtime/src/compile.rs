//! Compiling, in a child process with limits of its own.
//!
//! A component can be written to make a compiler slow or hungry; here it only
//! takes the child down. The child gets no environment and no arguments but its own.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use heddle_marketplace::COMPONENT_BYTES_MAX;
use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, setpriority_process, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// Components of more bytes have the limits of large ones: they bring the runtime of a language with them.
const SMALL_BYTES: usize = 4 << 20;
const SMALL_ADDRESS_BYTES: u64 = 2 << 30;
const SMALL_CPU_SECS: u64 = 60;
const SMALL_WALL: Duration = Duration::from_secs(90);
// Python, of 18 MiB, took 10 s of both times and 430 MiB of addresses on two cores, and 28 s while others used them. The
// largest component that is accepted has almost twice as many bytes, and machines are slower.
const LARGE_ADDRESS_BYTES: u64 = 4 << 30;
const LARGE_CPU_SECS: u64 = 180;
const LARGE_WALL: Duration = Duration::from_mins(4);
/// Between the limit of processor time, at which a signal of its own ends the child, and the one at which it is killed like
/// by anything else.
const CPU_GRACE_SECS: u64 = 5;
const CODE_BYTES_MAX: u64 = 256 << 20;
/// Niceness of a child of a server, so that the server can answer requests while it compiles.
const NICENESS: i32 = 10;
/// How many times the wall time a child may take in a tool that does nothing but wait for it.
const PATIENCE: u32 = 5;
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
/// Exit code of a child that this machine gave too little.
const PASSING_EXIT: u8 = 75;
/// How often the child looks whether its parent is still there.
const PARENT_INTERVAL: Duration = Duration::from_secs(1);

/// What compiling one component may take.
#[derive(Debug, PartialEq, Eq)]
struct Limits {
    address_bytes: u64,
    cpu_secs: u64,
    wall: Duration,
}

const SMALL: Limits =
    Limits { address_bytes: SMALL_ADDRESS_BYTES, cpu_secs: SMALL_CPU_SECS, wall: SMALL_WALL };
const LARGE: Limits =
    Limits { address_bytes: LARGE_ADDRESS_BYTES, cpu_secs: LARGE_CPU_SECS, wall: LARGE_WALL };

impl Limits {
    fn of(component: &[u8]) -> &'static Self {
        if component.len() > SMALL_BYTES { &LARGE } else { &SMALL }
    }
}

/// How to run the child: a program that ends in [`compile_child`].
#[derive(Debug, Clone)]
pub struct Compiler {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// True for a tool of an author, which does nothing but wait for the code: the child keeps the tool's priority and has
    /// more time. False for a server, which answers requests meanwhile: the child has a lower priority.
    pub is_awaited: bool,
}

/// Why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("the compile process cannot be used")]
    Process(#[source] std::io::Error),
    /// Its time was over before its processor time was: other work kept it waiting.
    #[error(
        "compiling took longer than a component of its size may take; try again when this machine is less busy"
    )]
    Timeout,
    /// A signal from outside ended the child, for example because the system had no memory left. `said` is the last message of
    /// the child, or how it ended.
    #[error(
        "compiling was cut short: {said}; try again when this machine is less busy and has more memory free"
    )]
    Killed { signal: i32, said: String },
    /// The child used up its own processor time, which does not depend on what else runs.
    #[error(
        "the component cannot be compiled: it takes more than {secs} s of processor time; make it smaller"
    )]
    Cpu { secs: u64 },
    #[error("the component cannot be compiled: {0}")]
    Refused(String),
}

impl CompileError {
    /// Whether this machine is at fault, and not the component: trying again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Process(_) | Self::Timeout | Self::Killed { .. } => true,
            Self::Cpu { .. } | Self::Refused(_) => false,
        }
    }

    /// The exit code by which the child tells its parent whose fault it was.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.is_passing() { PASSING_EXIT } else { 1 }
    }
}

/// The child's side: limits itself, then reads a component and writes its code.
///
/// For a hidden sub-command of the server, with standard input and output.
pub fn compile_child(input: impl Read, mut output: impl Write) -> Result<(), CompileError> {
    limit(Resource::Core, 0)?;
    end_with_parent()?;

    // Its size decides on the limits, and is bounded itself.
    let mut component = Vec::new();
    input.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut component).map_err(CompileError::Process)?;
    let limits = Limits::of(&component);
    limit(Resource::As, limits.address_bytes)?;
    limit_to(Resource::Cpu, limits.cpu_secs, limits.cpu_secs + CPU_GRACE_SECS)?;
    let engine = crate::engine::compiling().map_err(|error| CompileError::Refused(error.to_string()))?;
    let code = engine
        .precompile_component(&component)
        .map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    output.write_all(&code).and_then(|()| output.flush()).map_err(CompileError::Process)
}

/// Ends this process when its parent process ends, also when the parent was killed: then nobody waits for the compiled code.
fn end_with_parent() -> Result<(), CompileError> {
    let parent = getppid();
    let watch = move || {
        wait_for_orphanage(parent, PARENT_INTERVAL);
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().name("parent".to_owned());
    thread.spawn(watch).map(drop).map_err(CompileError::Process)
}

/// Returns once this process has another parent than this one.
fn wait_for_orphanage(parent: Option<Pid>, interval: Duration) {
    while getppid() == parent {
        std::thread::sleep(interval);
    }
}

fn limit(resource: Resource, most: u64) -> Result<(), CompileError> {
    limit_to(resource, most, most)
}

fn limit_to(resource: Resource, current: u64, maximum: u64) -> Result<(), CompileError> {
    let limit = Rlimit { current: Some(current), maximum: Some(maximum) };
    setrlimit(resource, limit).map_err(|errno| CompileError::Process(errno.into()))
}

/// The parent's side: compiles a component that was validated before.
pub(crate) async fn compile(compiler: &Compiler, component: &[u8]) -> Result<Vec<u8>, CompileError> {
    let wall = Limits::of(component).wall * if compiler.is_awaited { PATIENCE } else { 1 };
    let ended = tokio::time::timeout(wall, run(compiler, component)).await;
    ended.map_err(|_| CompileError::Timeout)?
}

async fn run(compiler: &Compiler, component: &[u8]) -> Result<Vec<u8>, CompileError> {
    let mut child = Command::new(&compiler.program)
        .args(&compiler.args)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(CompileError::Process)?;
    // The priority is set before the component is sent: threads that start later inherit it.
    if !compiler.is_awaited
        && let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    {
        setpriority_process(Some(pid), NICENESS).map_err(|errno| CompileError::Process(errno.into()))?;
    }
    let mut stdin = child.stdin.take().expect("the input is piped");
    let stdout = child.stdout.take().expect("the output is piped");
    let stderr = child.stderr.take().expect("the messages are piped");
    let (mut code, mut message) = (Vec::new(), Vec::new());
    let write = async {
        // A child that dies early closes the pipe; its status says why.
        let _ = stdin.write_all(component).await;
        drop(stdin);
    };
    let (mut stdout, mut stderr) = (stdout.take(CODE_BYTES_MAX + 1), stderr.take(MESSAGE_BYTES_MAX));
    let ((), read, _) = tokio::join!(write, stdout.read_to_end(&mut code), stderr.read_to_end(&mut message));
    read.map_err(CompileError::Process)?;
    if u64::try_from(code.len()).unwrap_or(u64::MAX) > CODE_BYTES_MAX {
        return Err(CompileError::Refused(format!("its code is larger than {CODE_BYTES_MAX} bytes")));
    }
    let status = child.wait().await.map_err(CompileError::Process)?;
    if status.success() {
        return Ok(code);
    }
    Err(failed(status, &String::from_utf8_lossy(&message), Limits::of(component).cpu_secs))
}

/// Whose fault it is that the child failed, by how it ended.
fn failed(status: ExitStatus, message: &str, cpu_secs: u64) -> CompileError {
    let said = reason(message, &status.to_string());
    // A child without the memory that its limit gives it, or whose compiler breaks, ends by signals of its own: so it does
    // with this component every time.
    let sent = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].map(Signal::as_raw);
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => CompileError::Cpu { secs: cpu_secs },
        Some(signal) if sent.contains(&signal) => CompileError::Killed { signal, said },
        None if status.code() == Some(PASSING_EXIT.into()) => {
            CompileError::Process(std::io::Error::other(said))
        }
        _ => CompileError::Refused(said),
    }
}

/// Why the child failed: the first thing it said, or how it ended. A panic says what it is about in its second line,
/// behind an empty one and one with its place in the source.
fn reason(message: &str, status: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return format!("the compile process ended with {status}") };
    if !(first.starts_with("thread '") && first.contains("panicked at")) {
        return first.to_owned();
    }
    match lines.next().filter(|line| !line.starts_with("note:")) {
        Some(what) => format!("the compile process panicked: {what}"),
        None => format!("the compile process ended with {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        assert_eq!(reason(message, "signal: 9 (SIGKILL)"), expected);
    }

    #[test]
    fn the_reason_is_what_the_child_said() {
        check("", "the compile process ended with signal: 9 (SIGKILL)");
        check("\n\n", "the compile process ended with signal: 9 (SIGKILL)");
        check("unknown import\nand more", "unknown import");
        check("memory allocation of 4096 bytes failed\n", "memory allocation of 4096 bytes failed");
        let panic =
            "\nthread 'main' (7) panicked at src/a.rs:1:2:\nno thread can be started\nnote: run with\n";
        check(panic, "the compile process panicked: no thread can be started");
        let silent = "\nthread 'main' panicked at src/a.rs:1:2:\n\nnote: run with\n";
        check(silent, "the compile process ended with signal: 9 (SIGKILL)");
    }

    /// What the parent finds of a child that runs these commands.
    async fn error_of(script: &str) -> CompileError {
        compile(&shell(script, false), b"a component").await.unwrap_err()
    }

    fn shell(script: &str, is_awaited: bool) -> Compiler {
        Compiler { program: "/bin/sh".into(), args: vec!["-c".to_owned(), script.to_owned()], is_awaited }
    }

    #[tokio::test]
    async fn a_child_has_a_lower_priority_only_in_a_server() {
        // The 19th field is the niceness. The shell reads its input first, as the compiler does.
        let script = "cat > /dev/null; read -r stat < /proc/$$/stat; set -- $stat; printf %s \"${19}\"";
        let own = rustix::process::getpriority_process(None).unwrap();
        for (is_awaited, expected) in [(false, NICENESS), (true, own)] {
            let said = compile(&shell(script, is_awaited), b"a component").await.unwrap();
            assert_eq!(String::from_utf8(said).unwrap(), expected.to_string());
        }
    }

    #[tokio::test]
    async fn a_child_that_fails_says_why() {
        let error = error_of("printf '\\nthread x panicked at y\\n' >&2; exit 3").await;
        assert_eq!(error.to_string(), "the component cannot be compiled: thread x panicked at y");
        assert!(!error.is_passing());
    }

    #[tokio::test]
    async fn a_child_that_others_killed_is_a_fault_of_the_machine() {
        for (script, number) in [("kill -KILL $$", 9), ("kill -TERM $$", 15)] {
            let error = error_of(script).await;
            assert!(matches!(error, CompileError::Killed { signal, .. } if signal == number), "{error}");
            assert!(error.is_passing() && error.to_string().contains("try again"), "{error}");
        }
        let error = error_of("echo no thread can be started >&2; exit 75").await;
        assert!(matches!(error, CompileError::Process(_)) && error.is_passing(), "{error}");
        assert_eq!((error.exit_code(), CompileError::Timeout.is_passing()), (PASSING_EXIT, true));
    }

    #[tokio::test]
    async fn a_child_that_takes_all_that_it_may_have_or_breaks_is_the_fault_of_its_component() {
        let error = error_of("kill -XCPU $$").await;
        assert!(matches!(error, CompileError::Cpu { secs: SMALL_CPU_SECS }), "{error}");
        assert!(!error.is_passing());
        for script in
            ["echo memory allocation of 4096 bytes failed >&2; kill -ABRT $$", "kill -SEGV $$", "exit 1"]
        {
            let error = error_of(script).await;
            assert!(matches!(error, CompileError::Refused(_)), "{script}: {error}");
            assert!(!error.is_passing() && error.exit_code() == 1, "{script}: {error}");
        }
    }

    #[test]
    fn large_components_have_limits_of_their_own() {
        assert_eq!(Limits::of(&vec![0; SMALL_BYTES]), &SMALL);
        assert_eq!(Limits::of(&vec![0; SMALL_BYTES + 1]), &LARGE);
    }
}
