//! Few requests at a time to one controller, and not too close together, for
//! all calls that talk to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
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
    /// When the next request may leave.
    free_at: Mutex<Option<Instant>>,
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
        Self { slots: Arc::new(Semaphore::new(width)), reserved, free_at: Mutex::default() }
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
            _ => Err(Fault::new(FaultKind::Timeout, "other requests keep the controller busy")
                .with_code("lane-busy")),
        }
    }

    /// Waits for the distance that the manifest asks for.
    pub(super) async fn pace(&self, pace: Option<&Pace>, write: bool, most: Duration) -> Result<(), Fault> {
        let Some(pace) = pace else { return Ok(()) };
        let gap = Duration::from_millis(u64::from(if write { pace.write_gap_ms } else { pace.read_gap_ms }));
        let now = Instant::now();
        let at = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            let at = free_at.map_or(now, |free| free.max(now));
            if at - now > most {
                return Err(Fault::new(
                    FaultKind::Timeout,
                    "the controller's pace leaves no time for this request",
                )
                .with_code("pace"));
            }
            *free_at = Some(at + gap);
            at
        };
        tokio::time::sleep_until(at).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(width: usize) -> Lane {
        Lane::of(width)
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
        let pace = Pace { read_gap_ms: 100, write_gap_ms: 1_000 };
        let start = Instant::now();
        lane.pace(Some(&pace), false, Duration::from_secs(9)).await.unwrap();
        lane.pace(Some(&pace), true, Duration::from_secs(9)).await.unwrap();
        lane.pace(Some(&pace), false, Duration::from_secs(9)).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(1_100));
        assert!(lane.pace(Some(&pace), false, Duration::from_millis(10)).await.is_err());
    }
}
