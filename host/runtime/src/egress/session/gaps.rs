//! The distance between logins with one credential at one controller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{ControllerId, CredentialId};
use tokio::time::Instant;

const KEPT: usize = 4_096;

/// When the next login may begin.
#[derive(Default)]
pub(super) struct Gaps(Mutex<HashMap<(ControllerId, CredentialId), Instant>>);

impl Gaps {
    /// Waits for the distance to the login before, at most as long as a call has time.
    pub(super) async fn keep(
        &self,
        at: (ControllerId, CredentialId),
        gap: Duration,
        most: Duration,
    ) -> Result<(), Fault> {
        let end = Instant::now() + most;
        loop {
            let Some(next) = self.begin(at, gap) else { return Ok(()) };
            if next >= end {
                return Err(too_soon(next - Instant::now()));
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// Begins a login, or returns when one may begin.
    fn begin(&self, at: (ControllerId, CredentialId), gap: Duration) -> Option<Instant> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(next) = free.get(&at).filter(|next| **next > now) {
            return Some(*next);
        }
        if free.len() > KEPT {
            free.retain(|_, next| *next > now);
        }
        free.insert(at, now + gap);
        None
    }
}

fn too_soon(wait: Duration) -> Fault {
    let mut fault = Fault::new(
        FaultKind::Busy,
        format!("the device takes few logins; the next one may begin in {} ms", wait.as_millis()),
    )
    .with_code("login-gap");
    fault.retry_after_ms = u64::try_from(wait.as_millis()).ok();
    fault
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn logins_keep_their_distance_or_say_when_one_may_begin() {
        let (gaps, clock, started) = (Gaps::default(), Clock::default(), Instant::now());
        let (one, other) = ((clock.new_id(), clock.new_id()), (clock.new_id(), clock.new_id()));
        let gap = Duration::from_secs(10);
        let keep = |at, secs| gaps.keep(at, gap, Duration::from_secs(secs));
        keep(one, 1).await.unwrap();
        keep(other, 1).await.unwrap();
        let fault = keep(one, 5).await.unwrap_err();
        assert_eq!((fault.kind, fault.retry_after_ms), (FaultKind::Busy, Some(10_000)));
        assert_eq!(started.elapsed(), Duration::ZERO);
        keep(one, 15).await.unwrap();
        assert_eq!(started.elapsed(), gap);
        // A call that stops waiting takes no turn.
        assert!(tokio::time::timeout(Duration::from_secs(3), keep(one, 60)).await.is_err());
        keep(one, 8).await.unwrap();
        assert_eq!(started.elapsed(), 2 * gap);
    }
}
