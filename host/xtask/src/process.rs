//! Child processes that never outlive this one, and what is printed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How often children are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a child may take to end by itself after a signal.
const GRACE: Duration = Duration::from_secs(35);
/// How long what a child has written is waited for once it has ended. A process that it left behind may hold its output open.
const LAST_WORDS: Duration = Duration::from_secs(2);

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

    /// The lines of its standard output, which must be a pipe, as they come.
    fn lines(&mut self) -> anyhow::Result<Receiver<String>> {
        let output = self.child.stdout.take();
        let mut output = BufReader::new(output.with_context(|| format!("'{}' has no output", self.name))?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                if sender.send(text).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Ok(lines)
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

/// Runs a command to its end and gives each line of its standard output to `each` as it comes.
pub(crate) fn lines(
    name: &str,
    command: &mut Command,
    stop: &Stop,
    mut each: impl FnMut(String),
) -> anyhow::Result<ExitStatus> {
    stop.check()?;
    let mut child = Guarded::start(name, command.stdout(Stdio::piped()))?;
    let lines = child.lines()?;
    let mut until = None;
    while until.is_none_or(|until| Instant::now() < until) {
        match lines.recv_timeout(LOOK) {
            Ok(line) => each(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stop.is_set() {
            child.end();
        }
        if until.is_none() && child.finished()?.is_some() {
            until = Some(Instant::now() + LAST_WORDS);
        }
    }
    let status = child.wait(stop)?;
    stop.check()?;
    Ok(status)
}

/// A line for the person at the terminal. Standard output stays free for results.
pub(crate) fn say(line: &str) {
    // When standard error is closed, there is no place left to report to.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(script: &str) -> (Vec<String>, bool) {
        let mut seen = Vec::new();
        let stop = Stop(Arc::default());
        let status = lines("sh", Command::new("sh").args(["-c", script]), &stop, |line| seen.push(line));
        (seen, status.unwrap().success())
    }

    #[test]
    fn each_line_of_a_command_is_given_and_how_it_ended() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(lines_of("echo one; echo; printf two"), (words(&["one", "", "two"]), true));
        assert_eq!(lines_of("printf 'a\\377b\\n'; exit 3"), (words(&["a\u{fffd}b"]), false));
        assert_eq!(lines_of("true"), (Vec::new(), true));
    }

    #[test]
    fn what_a_command_leaves_behind_is_not_waited_for() {
        let began = Instant::now();
        let (lines, is_good) = lines_of("sleep 600 2>/dev/null & echo $!");
        assert!(Command::new("kill").args(&lines).status().unwrap().success(), "it still runs");
        assert!(is_good && began.elapsed() < Duration::from_mins(5));
    }
}
