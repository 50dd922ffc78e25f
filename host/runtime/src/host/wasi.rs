//! System interfaces for plugins of languages whose toolchains import them. There is nothing behind them that the other
//! interfaces do not give as well: no files, no sockets, no environment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use wasmtime::component::{HasData, HasSelf, Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr,
    terminal_stdin, terminal_stdout,
};
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::p2::pipe::ClosedInputStream;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, Pollable, subscribe};
use wasmtime_wasi_io::bindings::wasi::io::{error, poll, streams};

use super::base::random_bytes;
use super::stdio::LogStream;
use crate::limits::{WASI_RANDOM_BYTES_MAX, WASI_RANDOM_CALL_BYTES_MAX};
use crate::lines::Stream;
use crate::state::{HeldTurn, State};
use crate::trap::{AskedTooMuch, Exited};

/// What [`add_to_linker`] links. Sockets and HTTP are not among it.
pub(crate) const INTERFACES: &[&str] = &[
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/wall-clock",
    "wasi:clocks/monotonic-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
];

/// Links [`INTERFACES`], one by one: functions that link all of WASI link sockets, too.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    error::add_to_linker::<_, Table>(linker, |state| &mut state.table)?;
    streams::add_to_linker::<_, Table>(linker, |state| &mut state.table)?;
    poll::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    wall_clock::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    monotonic_clock::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    random::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    insecure::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    insecure_seed::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    environment::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    exit::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    stdin::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    stdout::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    stderr::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    terminal_input::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    terminal_output::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    terminal_stdin::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    terminal_stdout::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    terminal_stderr::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    types::add_to_linker::<_, WasiFilesystem>(linker, |state| WasiFilesystemCtxView {
        ctx: &mut state.files,
        table: &mut state.table,
    })?;
    preopens::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
}

/// The resources of an instance, to which streams belong.
struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

impl poll::Host for State {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        // There are no more of them than handles: the engine counts each that is lent.
        let (turn, pausing) = (Arc::clone(&self.turn), Arc::clone(&self.pausing));
        paused(&turn, &pausing, poll::Host::poll(&mut self.table, pollables)).await
    }
}

impl poll::HostPollable for State {
    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        let (turn, pausing) = (Arc::clone(&self.turn), Arc::clone(&self.pausing));
        paused(&turn, &pausing, poll::HostPollable::block(&mut self.table, pollable)).await
    }

    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        poll::HostPollable::ready(&mut self.table, pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        poll::HostPollable::drop(&mut self.table, pollable)
    }
}

/// Waits because the guest wants to. Where there is something to wait for, others may compute meanwhile, and a call that ends in
/// such a wait is the guest's fault.
async fn paused<T>(turn: &HeldTurn, pausing: &AtomicBool, wait: impl Future<Output = T>) -> T {
    let mut wait = std::pin::pin!(wait);
    if let Poll::Ready(done) = futures::poll!(&mut wait) {
        return done;
    }
    drop(turn.lock().unwrap_or_else(PoisonError::into_inner).take());
    pausing.store(true, Ordering::Relaxed);
    let done = wait.await;
    pausing.store(false, Ordering::Relaxed);
    done
}

impl wall_clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        let now = self.clock.now();
        let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        Ok(wall_clock::Datetime { seconds, nanoseconds: now.timestamp_subsec_nanos() })
    }

    /// The host's clock counts microseconds.
    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime { seconds: 0, nanoseconds: 1_000 })
    }
}

impl monotonic_clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<monotonic_clock::Instant> {
        Ok(nanos(self.started.elapsed()))
    }

    fn resolution(&mut self) -> wasmtime::Result<monotonic_clock::Duration> {
        Ok(1)
    }

    fn subscribe_instant(
        &mut self,
        when: monotonic_clock::Instant,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let passed = nanos(self.started.elapsed());
        monotonic_clock::Host::subscribe_duration(self, when.saturating_sub(passed))
    }

    fn subscribe_duration(
        &mut self,
        when: monotonic_clock::Duration,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let until = Instant::now().checked_add(Duration::from_nanos(when));
        let sleep = self.table.push(Sleep { until })?;
        subscribe(&mut self.table, sleep)
    }
}

/// A time that a guest waits for. The deadline of its call ends the wait like any other wait in the host.
struct Sleep {
    /// None where the clock does not reach so far.
    until: Option<Instant>,
}

#[async_trait]
impl Pollable for Sleep {
    async fn ready(&mut self) {
        match self.until {
            Some(until) if until <= Instant::now() => {}
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

impl State {
    fn random(&mut self, asked: u64) -> wasmtime::Result<Vec<u8>> {
        let len = usize::try_from(asked).ok().filter(|len| *len <= WASI_RANDOM_BYTES_MAX);
        let too_much = || AskedTooMuch { what: "random bytes at a time", asked, most: WASI_RANDOM_BYTES_MAX };
        let len = len.ok_or_else(|| wasmtime::Error::new(too_much()))?;
        self.random_bytes += len;
        if self.random_bytes > WASI_RANDOM_CALL_BYTES_MAX {
            let (asked, most) =
                (u64::try_from(self.random_bytes).unwrap_or(u64::MAX), WASI_RANDOM_CALL_BYTES_MAX);
            return Err(wasmtime::Error::new(AskedTooMuch { what: "random bytes in a call", asked, most }));
        }
        let bytes = random_bytes(len);
        self.lower("wasi.random", &bytes);
        Ok(bytes)
    }

    fn random_u64(&self) -> u64 {
        let bytes = heddle_core::secret::random_bytes::<8>();
        self.lower("wasi.random", bytes.as_slice());
        u64::from_le_bytes(*bytes)
    }
}

impl random::Host for State {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.random(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random_u64())
    }
}

/// The same generator: that it could be guessed is allowed and not wanted.
impl insecure::Host for State {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.random(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random_u64())
    }
}

impl insecure_seed::Host for State {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.random_u64(), self.random_u64()))
    }
}

impl environment::Host for State {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for State {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Exited(u8::from(status.is_err()))))
    }

    fn exit_with_code(&mut self, status_code: u8) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Exited(status_code)))
    }
}

impl stdin::Host for State {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<DynInputStream>> {
        let stream: DynInputStream = Box::new(ClosedInputStream);
        Ok(self.table.push(stream)?)
    }
}

impl stdout::Host for State {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.output(Stream::Stdout)
    }
}

impl stderr::Host for State {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.output(Stream::Stderr)
    }
}

impl State {
    fn output(&mut self, stream: Stream) -> wasmtime::Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(LogStream::new(self.lines.clone(), stream));
        Ok(self.table.push(stream)?)
    }
}

impl terminal_input::Host for State {}
impl terminal_output::Host for State {}

/// No guest has a terminal to drop.
impl terminal_input::HostTerminalInput for State {
    fn drop(&mut self, terminal: Resource<terminal_input::TerminalInput>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl terminal_output::HostTerminalOutput for State {
    fn drop(&mut self, terminal: Resource<terminal_output::TerminalOutput>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl terminal_stdin::Host for State {
    fn get_terminal_stdin(&mut self) -> wasmtime::Result<Option<Resource<terminal_input::TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for State {
    fn get_terminal_stdout(&mut self) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for State {
    fn get_terminal_stderr(&mut self) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}

/// Without a directory to begin at, a guest opens nothing.
impl preopens::Host for State {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        Ok(Vec::new())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
