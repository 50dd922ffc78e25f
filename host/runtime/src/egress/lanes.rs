//! Few requests at a time to one controller, and not too close together, for
//! all calls that talk to it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{ControllerId, OrgId};
use heddle_marketplace::manifest::Pace;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::api::{Target, Urgency};

const LANES_KEPT: usize = 4_096;

#[derive(Default)]
pub(super) struct Lanes(Mutex<HashMap<(OrgId, ControllerId), Arc<Lane>>>);

pub(super) struct Lane {
    slots: Arc<Semaphore>,
    /// One more, for a change that is under way.
    reserved: Arc<Semaphore>,
    left: Mutex<Left>,
}

/// Time for a request to reach the device later than the one before it did.
const MARGIN: Duration = Duration::from_millis(50);

/// Requests that left, or wait for their turn to leave.
#[derive(Default)]
struct Left {
    /// When the next one may leave, as far as distances are concerned.
    free_at: Option<Instant>,
    /// The last ones, as many as windows count; the latest last.
    last: VecDeque<Departure>,
    /// How many there were before them.
    before: u64,
}

struct Departure {
    at: Instant,
    is_under_way: bool,
}

impl Left {
    /// When the next request may leave.
    fn next(&self, pace: &Pace, now: Instant) -> Instant {
        let free = self.free_at.map_or(now, |free| free.max(now));
        // One that is under way may arrive at any time from now on: a login or a handshake can be before it.
        let arrives = |left: &Departure| if left.is_under_way { left.at.max(now) } else { left.at };
        let mut arrivals: Vec<Instant> = self.last.iter().map(arrives).collect();
        arrivals.sort_unstable();
        pace.windows.iter().fold(free, |next, window| {
            // The first of those that fill the window has to be out of it.
            let calls = usize::try_from(window.calls).unwrap_or(usize::MAX);
            let first = arrivals.len().checked_sub(calls).and_then(|first| arrivals.get(first));
            let window = Duration::from_millis(u64::from(window.window_ms)) + MARGIN;
            first.map_or(next, |first| (*first + window).max(next))
        })
    }

    /// Returns the number of the departure.
    fn leave(&mut self, pace: &Pace, at: Instant, gap: Duration) -> u64 {
        self.free_at = Some(at + gap);
        let counted = pace.windows.iter().map(|window| window.calls).max().unwrap_or_default();
        let number = self.before + self.last.len() as u64;
        self.last.push_back(Departure { at, is_under_way: true });
        while self.last.len() > usize::try_from(counted).unwrap_or_default() {
            self.last.pop_front();
            self.before += 1;
        }
        number
    }

    /// The device has had the request for certain.
    fn arrived(&mut self, number: u64, now: Instant) {
        let index = number.checked_sub(self.before).and_then(|index| usize::try_from(index).ok());
        if let Some(left) = index.and_then(|index| self.last.get_mut(index)) {
            *left = Departure { at: left.at.max(now), is_under_way: false };
        }
    }
}

/// A request that keeps the pace; dropped when it was answered.
pub(super) struct Paced {
    lane: Arc<Lane>,
    number: u64,
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.lane.left().arrived(self.number, Instant::now());
    }
}

impl Lanes {
    pub(super) fn lane(&self, target: &Target, parallel: u32) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() > LANES_KEPT {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let width = usize::try_from(parallel).unwrap_or(1);
        let new = || Arc::new(Lane::of(width));
        Arc::clone(lanes.entry((target.org_id, target.controller_id)).or_insert_with(new))
    }
}

impl Lane {
    fn of(width: usize) -> Self {
        let reserved = Arc::new(Semaphore::new(1));
        Self { slots: Arc::new(Semaphore::new(width)), reserved, left: Mutex::default() }
    }

    /// Waits for a slot, which is given back when dropped.
    pub(super) async fn enter(
        &self,
        most: Duration,
        urgency: Urgency,
    ) -> Result<OwnedSemaphorePermit, Fault> {
        let slot = match urgency {
            Urgency::UnderWay if self.slots.available_permits() == 0 => Arc::clone(&self.reserved),
            _ => Arc::clone(&self.slots),
        };
        let slot = slot.acquire_owned();
        match tokio::time::timeout(most, slot).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(Fault::new(
                FaultKind::Timeout,
                "other requests to the same server leave this one no turn in time",
            )
            .with_code("lane-busy")),
        }
    }

    /// Waits for the distance and the windows that the manifest asks for. What it returns is kept until the answer is there.
    pub(super) async fn pace(
        self: &Arc<Self>,
        pace: Option<&Pace>,
        write: bool,
        most: Duration,
    ) -> Result<Option<Paced>, Fault> {
        let Some(pace) = pace else { return Ok(None) };
        let gap = Duration::from_millis(u64::from(if write { pace.write_gap_ms } else { pace.read_gap_ms }));
        let now = Instant::now();
        let (at, paced) = {
            let mut left = self.left();
            let at = left.next(pace, now);
            if at - now > most {
                return Err(Fault::new(
                    FaultKind::Timeout,
                    "the controller's pace leaves no time for this request",
                )
                .with_code("pace"));
            }
            let number = left.leave(pace, at, gap);
            (at, Paced { lane: Arc::clone(self), number })
        };
        tokio::time::sleep_until(at).await;
        Ok(Some(paced))
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use heddle_marketplace::manifest::Window;

    use super::*;

    fn lane(width: usize) -> Arc<Lane> {
        Arc::new(Lane::of(width))
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_lane_waits_and_then_gives_up() {
        let lane = lane(1);
        let held = lane.enter(Duration::from_secs(1), Urgency::Ordinary).await.unwrap();
        assert_eq!(
            lane.enter(Duration::from_secs(1), Urgency::Ordinary).await.unwrap_err().kind,
            FaultKind::Timeout
        );
        assert!(lane.enter(Duration::from_secs(1), Urgency::UnderWay).await.is_ok());
        drop(held);
        assert!(lane.enter(Duration::from_secs(1), Urgency::Ordinary).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_keep_their_distance() {
        let lane = lane(1);
        let pace = Pace { read_gap_ms: 100, write_gap_ms: 1_000, windows: Vec::new() };
        let start = Instant::now();
        for is_write in [false, true, false] {
            lane.pace(Some(&pace), is_write, Duration::from_secs(9)).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::from_millis(1_100));
        assert!(lane.pace(Some(&pace), false, Duration::from_millis(10)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_holds_no_more_requests_than_it_may() {
        let lane = lane(1);
        let windows = vec![Window { calls: 3, window_ms: 1_000 }, Window { calls: 5, window_ms: 10_000 }];
        let pace = Pace { windows, ..Pace::default() };
        let start = Instant::now();
        let mut left = Vec::new();
        for _ in 0..8 {
            drop(lane.pace(Some(&pace), false, Duration::from_mins(1)).await.unwrap());
            left.push(start.elapsed().as_millis());
        }
        assert_eq!(left, [0, 0, 0, 1_050, 1_050, 10_050, 10_050, 10_050]);
        let fault = lane.pace(Some(&pace), true, Duration::from_millis(500)).await.err().unwrap();
        assert_eq!(fault.code.as_deref(), Some("pace"));
    }

    /// The first request of a session waits for its login: it reaches the device later than it left.
    #[tokio::test(start_paused = true)]
    async fn a_window_counts_requests_from_when_they_were_answered() {
        let lane = lane(4);
        let windows = vec![Window { calls: 2, window_ms: 1_000 }];
        let pace = Pace { windows, ..Pace::default() };
        let start = Instant::now();
        let turn = || async { lane.pace(Some(&pace), false, Duration::from_mins(1)).await.unwrap() };
        let first = turn().await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        drop(first);
        let slow = turn().await;
        // The first one was at the device at 400 ms.
        drop(turn().await);
        assert_eq!(start.elapsed().as_millis(), 1_450);
        // The slow one may arrive at any time: it fills the window until it is answered.
        drop(turn().await);
        assert_eq!(start.elapsed().as_millis(), 2_500);
        drop(slow);
    }
}
