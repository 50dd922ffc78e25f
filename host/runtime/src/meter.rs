//! Time that a guest spends in its own code.
//!
//! Host calls do not count, however long they take: ticks of the epoch would
//! count them, so the meter is started and stopped at the border instead.
//!
//! The clock at the border is cheap, and goes on while other threads have the processor. So what it says is a bound, and before a
//! guest is blamed the processor time of its thread is asked, too.

use std::future::poll_fn;
use std::pin::pin;
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
    /// Processor time, in nanoseconds, of the polls that ended.
    polled: AtomicU64,
    /// Processor time of the thread when the poll began that is under way, plus one; zero between polls.
    began: AtomicU64,
}

impl CpuMeter {
    pub(crate) fn new() -> Self {
        let [entered, used, polled, began] = [const { AtomicU64::new(0) }; 4];
        Self(Arc::new(Inner { base: Instant::now(), entered, used, polled, began }))
    }

    /// Counts the processor time of work that calls the guest: [`Self::spent`] needs it.
    pub(crate) async fn watch<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        let watched = poll_fn(|context| {
            self.0.began.store(thread_time() + 1, Ordering::Relaxed);
            let polled = work.as_mut().poll(context);
            self.0.polled.fetch_add(self.of_this_poll(), Ordering::Relaxed);
            self.0.began.store(0, Ordering::Relaxed);
            polled
        });
        watched.await
    }

    /// What the guest really used, at most: without the time in which its thread waited for a processor. Asks the system, on the
    /// thread that runs the guest.
    pub(crate) fn spent(&self) -> Duration {
        let processor = self.0.polled.load(Ordering::Relaxed) + self.of_this_poll();
        self.used().min(Duration::from_nanos(processor))
    }

    /// Processor time since the poll began that is under way.
    fn of_this_poll(&self) -> u64 {
        match self.0.began.load(Ordering::Relaxed) {
            0 => 0,
            began => (thread_time() + 1).saturating_sub(began),
        }
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

    /// Sum of the finished stretches, as a clock on the wall has them.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.0.used.load(Ordering::Relaxed))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.base.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

/// Processor time of this thread, in nanoseconds.
fn thread_time() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that sleeps stands for one that others keep from a processor.
    #[tokio::test]
    async fn waiting_for_a_processor_is_used_and_not_spent() {
        let meter = CpuMeter::new();
        let work = async {
            for _ in 0..5 {
                meter.start();
                std::thread::sleep(Duration::from_millis(10));
                meter.stop();
                tokio::task::yield_now().await;
            }
            meter.spent()
        };
        let within = meter.watch(work).await;
        assert!(meter.used() >= Duration::from_millis(50), "{meter:?}");
        assert!(within < Duration::from_millis(25) && meter.spent() < Duration::from_millis(25), "{meter:?}");
    }

    #[tokio::test]
    async fn computing_is_spent() {
        let meter = CpuMeter::new();
        let target = Duration::from_millis(20);
        meter
            .watch(async {
                meter.start();
                let began = thread_time();
                while thread_time() - began < 20_000_000 {
                    std::hint::spin_loop();
                }
                meter.stop();
                assert!(meter.spent() >= target, "within its poll: {meter:?}");
            })
            .await;
        assert!(meter.spent() >= target, "{meter:?}");
    }

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
