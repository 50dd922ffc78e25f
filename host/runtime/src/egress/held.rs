//! How many bytes of answers are held: in one call altogether, and of an organization at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use heddle_core::OrgId;
use heddle_core::fault::{Fault, FaultKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{CALL_ANSWER_BYTES_MAX, ORG_HELD_BYTES_MAX};

/// Bytes of one permit.
const UNIT: usize = 1 << 10;
/// How long an answer waits for room that others of its organization hold.
const WAIT: Duration = Duration::from_secs(2);
const ORGS_KEPT: usize = 256;
/// The code of a fault for want of room.
pub(crate) const OVERLOAD: &str = "overload";

/// Room of all organizations.
#[derive(Default)]
pub(super) struct Rooms(Mutex<HashMap<OrgId, Arc<Semaphore>>>);

/// Room for the answers of one call.
pub(super) struct Room {
    /// Bytes that the call may still read.
    left: AtomicUsize,
    /// `None` for what is under way and must not wait for others.
    org: Option<Arc<Semaphore>>,
}

/// Room that an answer takes, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl Rooms {
    pub(super) fn room(&self, org: OrgId, is_under_way: bool) -> Room {
        let mut orgs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if orgs.len() > ORGS_KEPT {
            orgs.retain(|_, room| Arc::strong_count(room) > 1);
        }
        let all = || Arc::new(Semaphore::new(ORG_HELD_BYTES_MAX / UNIT));
        let org = (!is_under_way).then(|| Arc::clone(orgs.entry(org).or_insert_with(all)));
        Room { left: AtomicUsize::new(CALL_ANSWER_BYTES_MAX), org }
    }
}

impl Room {
    /// Bytes of answers that the call took so far.
    pub(super) fn taken(&self) -> usize {
        CALL_ANSWER_BYTES_MAX - self.left.load(Ordering::Relaxed)
    }

    /// Takes room for more bytes of an answer.
    pub(super) async fn take(&self, held: &mut Held, bytes: usize) -> Result<(), Fault> {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if taken.is_err() {
            return Err(Fault::new(
                FaultKind::Generic,
                format!("the answers of a call may have {CALL_ANSWER_BYTES_MAX} bytes together"),
            )
            .with_code("answer-budget"));
        }
        let before = held.bytes.div_ceil(UNIT);
        held.bytes += bytes;
        let more = held.bytes.div_ceil(UNIT) - before;
        let Some(org) = self.org.as_ref().filter(|_| more > 0) else { return Ok(()) };
        let take = Arc::clone(org).acquire_many_owned(u32::try_from(more).unwrap_or(u32::MAX));
        match tokio::time::timeout(WAIT, take).await {
            Ok(Ok(permit)) => {
                match &mut held.permit {
                    Some(whole) => whole.merge(permit),
                    none => *none = Some(permit),
                }
                Ok(())
            }
            _ => Err(Fault::new(
                FaultKind::Busy,
                "other answers of the organization take the room for this one; try again",
            )
            .with_code(OVERLOAD)),
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_organization_waits_for_its_own_answers_and_for_no_others() {
        let (rooms, clock) = (Rooms::default(), Clock::default());
        let (one, two): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let mut held = Held::default();
        rooms.room(one, false).take(&mut held, ORG_HELD_BYTES_MAX - 1).await.unwrap();
        let fault = rooms.room(one, false).take(&mut Held::default(), UNIT).await.unwrap_err();
        assert_eq!(fault.code.as_deref(), Some(OVERLOAD));
        rooms.room(two, false).take(&mut Held::default(), UNIT).await.unwrap();
        rooms.room(one, true).take(&mut Held::default(), UNIT).await.unwrap();
        drop(held);
        rooms.room(one, false).take(&mut Held::default(), UNIT).await.unwrap();
    }

    #[tokio::test]
    async fn the_answers_of_a_call_have_a_sum() {
        let room = Rooms::default().room(Clock::default().new_id(), false);
        for _ in 0..CALL_ANSWER_BYTES_MAX / UNIT {
            room.take(&mut Held::default(), UNIT).await.unwrap();
        }
        let fault = room.take(&mut Held::default(), 1).await.unwrap_err();
        assert_eq!(fault.code.as_deref(), Some("answer-budget"));
    }
}
