//! Time that a guest spends in its own code.
//!
//! Host calls do not count, however long they take: ticks of the epoch would
//! count them, so the meter is started and stopped at the border instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub(crate) struct CpuMeter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    base: Instant,
    /// Nanoseconds since `base`, plus one; zero while the host runs.
    entered: AtomicU64,
    used: AtomicU64,
}

impl CpuMeter {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { base: Instant::now(), entered: AtomicU64::new(0), used: AtomicU64::new(0) }))
    }

    /// Guest code begins or goes on.
    pub(crate) fn start(&self) {
        self.0.entered.store(self.now() + 1, Ordering::Relaxed);
    }

    /// Guest code ends or waits. Stopping twice is harmless.
    pub(crate) fn stop(&self) {
        let entered = self.0.entered.swap(0, Ordering::Relaxed);
        if entered > 0 {
            let spent = (self.now() + 1).saturating_sub(entered);
            self.0.used.fetch_add(spent, Ordering::Relaxed);
        }
    }

    /// Sum of the finished stretches.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.0.used.load(Ordering::Relaxed))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.base.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_in_the_host_costs_no_guest_time() {
        let (began, meter) = (Instant::now(), CpuMeter::new());
        let pause = Duration::from_millis(3);
        for _ in 0..10 {
            meter.start();
            meter.stop();
            std::thread::sleep(pause);
        }
        let took = began.elapsed();
        assert!(meter.used() + 10 * pause <= took, "{:?} of {took:?}", meter.used());
    }

    #[test]
    fn short_stretches_add_up() {
        let meter = CpuMeter::new();
        for _ in 0..5 {
            meter.start();
            std::thread::sleep(Duration::from_millis(4));
            meter.stop();
        }
        meter.stop();
        assert!(meter.used() >= Duration::from_millis(20), "{:?}", meter.used());
    }
}
