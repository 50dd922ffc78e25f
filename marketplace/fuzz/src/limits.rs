//! How much memory and time one input may take. libFuzzer's own limit of allocations works with sanitizers alone, and its limit
//! of time counts what a busy machine does meanwhile.

#[path = "../../tests/hostile_archives/memory.rs"]
mod memory;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Most bytes that the readers hold at once for an input: what the tests of hostile archives accept.
const BYTES_MAX: usize = 128 << 20;
/// Most time of a processor, in code that is slowed down by the instrumentation and all checks.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Carries out a call; too much memory or time is a finding.
pub(crate) fn bounded<T>(call: impl FnOnce() -> T) -> T {
    let begins = spent();
    let (result, peak) = memory::peak_bytes(call);
    let took = spent().saturating_sub(begins);
    assert!(peak <= BYTES_MAX, "{peak} bytes were held at once; {BYTES_MAX} are the most");
    assert!(took <= TIME_MAX, "it took {took:?}; {TIME_MAX:?} are the most");
    result
}

/// The time of a processor that this process has spent.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.try_into().expect("it is never negative")
}
