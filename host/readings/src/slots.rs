//! Controllers that are being read, and controllers that are paused because their last reading could not be recorded.
//! Both belong to this process and end with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use heddle_core::{ControllerId, OrgId};
use heddle_store::controllers::Except;
use tokio::sync::Notify;

use super::Scope;

/// Controllers read at the same time.
const SLOTS: usize = 16;
/// Most controllers of one organization among them, so that no organization takes all.
const SLOTS_PER_ORGANIZATION: usize = 8;
/// Controllers whose objects are read at the same time, after their devices. They take no place of the readings, so that
/// long lists delay nobody's devices.
const MODEL_SLOTS: usize = 8;
/// Most controllers of one organization among them.
const MODEL_SLOTS_PER_ORGANIZATION: usize = 4;
/// The share of these places that readings for messages take at most: controllers that tell much delay none that is due.
const PARTS: usize = 2;
const REST_MIN: Duration = Duration::from_secs(5);
const REST_MAX: Duration = Duration::from_mins(5);
/// Most paused controllers; beyond that, the one whose pause ends first is released.
const RESTING_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Slots {
    state: Mutex<State>,
    /// Notified when a slot is free again.
    freed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    taken: HashMap<ControllerId, Taken>,
    resting: HashMap<ControllerId, Rest>,
}

/// A place that a controller has.
#[derive(Debug, Clone, Copy)]
struct Taken {
    org: OrgId,
    seat: Seat,
}

/// Which places a reading takes one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) stage: Stage,
    pub(super) scope: Scope,
}

impl Seat {
    /// Where a reading of all begins.
    pub(super) const WHOLE: Self = Self { stage: Stage::Devices, scope: Scope::Whole };
}

/// What is read of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Devices,
    Model,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Instant,
    failures: u32,
}

/// A controller's place among those being read. When it is dropped without [`Slot::settle`], also by a panic, it pauses
/// the controller: that is still due, and would be read again at once.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    controller: ControllerId,
    is_settled: bool,
}

impl Slots {
    pub(super) fn new(freed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), freed })
    }

    /// How many readings can begin at such a place.
    pub(super) fn free(&self, seat: Seat) -> u32 {
        u32::try_from(self.state().left(seat, None)).unwrap_or_default()
    }

    /// Returns the controllers and organizations that must not be started now at such a place.
    pub(super) fn except(&self, seat: Seat, now: Instant) -> Except {
        let state = self.state();
        let resting = state.resting.iter().filter(|(_, rest)| rest.until > now).map(|(id, _)| *id);
        let mut organizations: Vec<OrgId> = state
            .taken
            .values()
            .map(|taken| taken.org)
            .filter(|org| state.left(seat, Some(*org)) == 0)
            .collect();
        organizations.sort_unstable();
        organizations.dedup();
        Except { controllers: state.taken.keys().copied().chain(resting).collect(), organizations }
    }

    /// Takes a place, unless the controller has one already or no place is free for it.
    pub(super) fn take(self: &Arc<Self>, controller: ControllerId, org: OrgId, seat: Seat) -> Option<Slot> {
        let mut state = self.state();
        if !state.has_room(seat, org) || state.taken.contains_key(&controller) {
            return None;
        }
        state.taken.insert(controller, Taken { org, seat });
        Some(Slot { slots: self.clone(), controller, is_settled: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl State {
    fn has_room(&self, seat: Seat, org: OrgId) -> bool {
        self.left(seat, None) > 0 && self.left(seat, Some(org)) > 0
    }

    /// Places that can be taken, for one organization or for all.
    fn left(&self, seat: Seat, org: Option<OrgId>) -> usize {
        let most = match (seat.stage, org) {
            (Stage::Devices, None) => SLOTS,
            (Stage::Devices, Some(_)) => SLOTS_PER_ORGANIZATION,
            (Stage::Model, None) => MODEL_SLOTS,
            (Stage::Model, Some(_)) => MODEL_SLOTS_PER_ORGANIZATION,
        };
        let in_stage =
            |taken: &&Taken| taken.seat.stage == seat.stage && org.is_none_or(|org| taken.org == org);
        let left = most.saturating_sub(self.taken.values().filter(in_stage).count());
        if seat.scope == Scope::Whole {
            return left;
        }
        let parts = self.taken.values().filter(in_stage).filter(|taken| taken.seat == seat).count();
        left.min((most / PARTS).saturating_sub(parts))
    }

    fn rest(&mut self, controller: ControllerId, now: Instant) {
        let failures = self.resting.get(&controller).map_or(0, |rest| rest.failures);
        if failures == 0 && self.resting.len() >= RESTING_MAX {
            let shortest = self.resting.iter().min_by_key(|(_, rest)| rest.until).map(|(id, _)| *id);
            if let Some(id) = shortest {
                self.resting.remove(&id);
            }
        }
        let length = REST_MIN.saturating_mul(1 << failures.min(6)).min(REST_MAX);
        self.resting.insert(controller, Rest { until: now + length, failures: failures.saturating_add(1) });
    }
}

impl Slot {
    /// Leaves the place of the readings for one of those whose objects are read, unless it has one; false when none of these
    /// is free.
    pub(super) fn move_on(&self) -> bool {
        let mut state = self.slots.state();
        let Some(taken) = state.taken.get(&self.controller).copied() else { return false };
        if taken.seat.stage == Stage::Model {
            return true;
        }
        let seat = Seat { stage: Stage::Model, ..taken.seat };
        if !state.has_room(seat, taken.org) {
            return false;
        }
        state.taken.insert(self.controller, Taken { seat, ..taken });
        drop(state);
        self.slots.freed.notify_one();
        true
    }

    /// Marks the reading as recorded: the store decides when the next one is due.
    pub(super) fn settle(mut self) {
        self.is_settled = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        state.taken.remove(&self.controller);
        if self.is_settled {
            state.resting.remove(&self.controller);
        } else {
            state.rest(self.controller, Instant::now());
        }
        drop(state);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn an_organization_leaves_places_to_others() {
        let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
        let (a, b): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let of_a: Vec<Slot> = (0..20).filter_map(|_| slots.take(clock.new_id(), a, Seat::WHOLE)).collect();
        assert_eq!((of_a.len(), slots.free(Seat::WHOLE)), (8, 8));
        assert_eq!(slots.except(Seat::WHOLE, Instant::now()).organizations, [a]);
        let of_b: Vec<Slot> = (0..20).filter_map(|_| slots.take(clock.new_id(), b, Seat::WHOLE)).collect();
        assert_eq!((of_b.len(), slots.free(Seat::WHOLE)), (8, 0));
        assert!(slots.take(clock.new_id(), clock.new_id(), Seat::WHOLE).is_none());
        drop(of_a);
        assert_eq!(
            (slots.free(Seat::WHOLE), slots.except(Seat::WHOLE, Instant::now()).organizations),
            (8, vec![b])
        );
    }

    #[test]
    fn long_lists_take_no_place_of_the_readings() {
        let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
        let (a, b): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let take = |org| slots.take(clock.new_id(), org, Seat::WHOLE).unwrap();
        let of_a: Vec<Slot> = (0..8).map(|_| take(a)).collect();
        let moved = of_a.iter().filter(|slot| slot.move_on()).count();
        assert_eq!((moved, slots.free(Seat::WHOLE)), (4, 12));
        assert_eq!(slots.except(Seat::WHOLE, Instant::now()).controllers.len(), 8);
        let more: Vec<Slot> = (0..4).map(|_| take(a)).collect();
        assert!(!more[0].move_on());
        let of_b: Vec<Slot> = (0..8).map(|_| take(b)).collect();
        assert_eq!((of_b.iter().filter(|slot| slot.move_on()).count(), slots.free(Seat::WHOLE)), (4, 4));
        let other = take(clock.new_id());
        assert!(!other.move_on(), "all places are taken");
        drop(of_a);
        assert!(other.move_on());
    }

    #[test]
    fn readings_for_messages_take_half_of_the_places() {
        let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
        let (a, b): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let part = |stage| Seat { stage, scope: Scope::Part };
        let take = |org, seat, most| -> Vec<Slot> {
            (0..most).filter_map(|_| slots.take(clock.new_id(), org, seat)).collect()
        };
        let devices = take(a, part(Stage::Devices), 20);
        let lists = take(a, part(Stage::Model), 20);
        assert_eq!((devices.len(), lists.len()), (4, 2));
        assert!(lists[0].move_on(), "it has its place already");
        assert!(!devices[0].move_on(), "the others have half of the places");
        assert_eq!(slots.except(part(Stage::Model), Instant::now()).organizations, [a]);
        assert_eq!(slots.free(part(Stage::Devices)), 4);
        assert_eq!(take(b, part(Stage::Devices), 20).len(), 4);
        assert_eq!(take(a, Seat::WHOLE, 20).len(), 4);
        drop(lists);
        assert!(devices[0].move_on());
    }

    #[test]
    fn a_controller_is_read_once_at_a_time() {
        let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
        let (controller, org) = (clock.new_id(), clock.new_id());
        let slot = slots.take(controller, org, Seat::WHOLE).unwrap();
        assert!(slots.take(controller, org, Seat::WHOLE).is_none());
        assert_eq!(slots.except(Seat::WHOLE, Instant::now()).controllers, [controller]);
        slot.settle();
        assert!(slots.except(Seat::WHOLE, Instant::now()).controllers.is_empty());
        assert!(slots.take(controller, org, Seat::WHOLE).is_some());
    }

    #[test]
    fn a_controller_whose_reading_is_lost_rests_longer_each_time() {
        let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
        let (controller, org) = (clock.new_id(), clock.new_id());
        let in_secs =
            |secs| slots.except(Seat::WHOLE, Instant::now() + Duration::from_secs(secs)).controllers.len();
        let panicked = slots.take(controller, org, Seat::WHOLE).unwrap();
        let reading = std::thread::spawn(move || {
            let _slot = panicked;
            panic!("a reading panics");
        });
        assert!(reading.join().is_err());
        assert_eq!((in_secs(0), in_secs(6)), (1, 0));
        drop(slots.take(controller, org, Seat::WHOLE));
        assert_eq!((in_secs(6), in_secs(11)), (1, 0));
        for _ in 0..40 {
            drop(slots.take(controller, org, Seat::WHOLE));
        }
        assert_eq!((in_secs(290), in_secs(301)), (1, 0));
        slots.take(controller, org, Seat::WHOLE).unwrap().settle();
        assert_eq!(in_secs(0), 0);
    }

    #[test]
    fn few_controllers_rest_at_once() {
        let (clock, slots) = (Clock::default(), Slots::new(Arc::default()));
        for _ in 0..300 {
            drop(slots.take(clock.new_id(), clock.new_id(), Seat::WHOLE));
        }
        assert_eq!(slots.except(Seat::WHOLE, Instant::now()).controllers.len(), 256);
    }
}
