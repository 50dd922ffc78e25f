//! Named phases of a command, each with its duration.

use std::process::ExitStatus;
use std::time::Instant;

use crate::process::say;

/// Prints the name before, and the duration after, whatever the result is.
pub(crate) fn phase<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    judged(name, work, |_| true)
}

/// A phase whose program says itself how it went.
pub(crate) fn last_phase(
    name: &str,
    work: impl FnOnce() -> anyhow::Result<ExitStatus>,
) -> anyhow::Result<ExitStatus> {
    judged(name, work, ExitStatus::success)
}

/// A phase whose result tells whether it was good.
pub(crate) fn judged<T>(
    name: &str,
    work: impl FnOnce() -> anyhow::Result<T>,
    is_good: impl FnOnce(&T) -> bool,
) -> anyhow::Result<T> {
    say(&format!("== {name}"));
    let start = Instant::now();
    let result = work();
    let verdict = if result.as_ref().is_ok_and(is_good) { "done" } else { "FAILED" };
    say(&format!("== {name}: {verdict} after {:.1} s", start.elapsed().as_secs_f64()));
    result
}
