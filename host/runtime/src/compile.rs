//! Compiling, in a child process with limits of its own.
//!
//! A component can be written to make a compiler slow or hungry; here it only
//! takes the child down. The child gets no environment and no arguments but its own.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use heddle_marketplace::COMPONENT_BYTES_MAX;
use rustix::process::{Resource, Rlimit, nice, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

const ADDRESS_SPACE_BYTES: u64 = 2 << 30;
const CPU_SECS: u64 = 60;
const WALL: Duration = Duration::from_secs(90);
const CODE_BYTES_MAX: u64 = 256 << 20;
const MESSAGE_BYTES_MAX: u64 = 4 << 10;

/// How to run the child: a program that ends in [`compile_child`].
#[derive(Debug, Clone)]
pub struct Compiler {
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// Why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("the compile process cannot be used")]
    Process(#[source] std::io::Error),
    #[error("compiling took longer than {} s", WALL.as_secs())]
    Timeout,
    #[error("the component cannot be compiled: {0}")]
    Refused(String),
}

/// The child's side: limits itself, then reads a component and writes its code.
///
/// For a hidden sub-command of the server, with standard input and output.
pub fn compile_child(input: impl Read, mut output: impl Write) -> Result<(), CompileError> {
    limit(Resource::As, ADDRESS_SPACE_BYTES)?;
    limit(Resource::Cpu, CPU_SECS)?;
    limit(Resource::Core, 0)?;
    nice(10).map_err(|errno| CompileError::Process(errno.into()))?;

    let mut component = Vec::new();
    input.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut component).map_err(CompileError::Process)?;
    let engine = crate::engine::compiling().map_err(|error| CompileError::Refused(error.to_string()))?;
    let code = engine
        .precompile_component(&component)
        .map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    output.write_all(&code).and_then(|()| output.flush()).map_err(CompileError::Process)
}

fn limit(resource: Resource, most: u64) -> Result<(), CompileError> {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(resource, limit).map_err(|errno| CompileError::Process(errno.into()))
}

/// The parent's side: compiles a component that was validated before.
pub(crate) async fn compile(compiler: &Compiler, component: &[u8]) -> Result<Vec<u8>, CompileError> {
    tokio::time::timeout(WALL, run(compiler, component)).await.map_err(|_| CompileError::Timeout)?
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
    let message = String::from_utf8_lossy(&message);
    let first = message.lines().next().unwrap_or_default().trim();
    let reason =
        if first.is_empty() { format!("the compile process ended with {status}") } else { first.to_owned() };
    Err(CompileError::Refused(reason))
}
