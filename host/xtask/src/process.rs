//! Child processes that never outlive this one, and what is printed.

use std::io::Write as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How often children are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a child may take to end by itself after a signal.
const GRACE: Duration = Duration::from_secs(35);

/// Set by Ctrl-C and by SIGTERM. The process itself goes on, to clean up.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn install() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        ctrlc::set_handler(move || set.store(true, Ordering::SeqCst)).context("no signal handler")?;
        Ok(Self(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits, unless a signal comes first: then it is an error.
    pub(crate) fn sleep(&self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.check()?;
            std::thread::sleep(LOOK.min(time));
        }
        self.check()
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.is_set() {
            bail!("stopped by a signal")
        }
        Ok(())
    }
}

/// A child that is ended when its guard goes away.
pub(crate) struct Guarded {
    name: String,
    child: Child,
    signal: Signal,
}

impl Guarded {
    pub(crate) fn start(name: &str, command: &mut Command) -> anyhow::Result<Self> {
        let child = command.spawn().with_context(|| format!("'{name}' cannot be started"))?;
        Ok(Self { name: name.to_owned(), child, signal: Signal::TERM })
    }

    /// Asks by this signal when it has to end.
    pub(crate) fn ended_by(mut self, signal: Signal) -> Self {
        self.signal = signal;
        self
    }

    pub(crate) fn finished(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end. After a signal it is asked to end, too.
    pub(crate) fn wait(&mut self, stop: &Stop) -> anyhow::Result<ExitStatus> {
        loop {
            if let Some(status) = self.finished()? {
                return Ok(status);
            }
            if stop.is_set() {
                self.end();
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Fails when the child ended without being asked to.
    pub(crate) fn expect_running(&mut self) -> anyhow::Result<()> {
        match self.finished()? {
            Some(status) => bail!("'{}' ended early ({status})", self.name),
            None => Ok(()),
        }
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // The standard library can only kill; servers must be able to finish.
        let asked = kill_process(Pid::from_child(&self.child), self.signal);
        let end = Instant::now() + GRACE;
        while asked.is_ok() && Instant::now() < end {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let killed = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = killed {
            say(&format!("'{}' could not be stopped: {error}", self.name));
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command to its end; anything but success is an error.
pub(crate) fn run(name: &'static str, command: &mut Command, stop: &Stop) -> anyhow::Result<()> {
    let status = status(name, command, stop)?;
    if status.success() { Ok(()) } else { bail!("{name} failed ({status})") }
}

/// Runs a command to its end and says how it ended.
pub(crate) fn status(name: &'static str, command: &mut Command, stop: &Stop) -> anyhow::Result<ExitStatus> {
    stop.check()?;
    let status = Guarded::start(name, command)?.wait(stop)?;
    stop.check()?;
    Ok(status)
}

/// A line for the person at the terminal. Standard output stays free for results.
pub(crate) fn say(line: &str) {
    // When standard error is closed, there is no place left to report to.
    let _ = writeln!(std::io::stderr(), "{line}");
}
