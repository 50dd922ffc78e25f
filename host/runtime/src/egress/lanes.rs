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

use crate::api::Target;

const LANES_KEPT: usize = 4_096;

#[derive(Default)]
pub(super) struct Lanes(Mutex<HashMap<(OrgId, ControllerId), Arc<Lane>>>);

pub(super) struct Lane {
    slots: Arc<Semaphore>,
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
        let new = || Arc::new(Lane { slots: Arc::new(Semaphore::new(width)), free_at: Mutex::default() });
        Arc::clone(lanes.entry((target.org_id, target.controller_id)).or_insert_with(new))
    }
}

impl Lane {
    /// Waits for a slot, which is given back when dropped.
    pub(super) async fn enter(&self, most: Duration) -> Result<OwnedSemaphorePermit, Fault> {
        let slot = Arc::clone(&self.slots).acquire_owned();
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
        Lane { slots: Arc::new(Semaphore::new(width)), free_at: Mutex::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_lane_waits_and_then_gives_up() {
        let lane = lane(1);
        let held = lane.enter(Duration::from_secs(1)).await.unwrap();
        assert_eq!(lane.enter(Duration::from_secs(1)).await.unwrap_err().kind, FaultKind::Timeout);
        drop(held);
        assert!(lane.enter(Duration::from_secs(1)).await.is_ok());
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
