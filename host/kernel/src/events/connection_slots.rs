//! Slots for connections: how many there may be, in all and of one user, and which caller holds each.
//!
//! A slot is given back when it is dropped, however its connection ends. Each process counts its own: of several
//! processes behind one address, each has as many.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heddle_core::{OrgId, UserId};
use tokio::sync::Notify;

use crate::caller::rights::{Caller, Credential};

/// Connections of one user.
const PER_USER_MAX: usize = 25;
/// Connections in all, also those that have not authenticated yet.
const ALL_MAX: usize = 5000;
/// Of them, connections that have not authenticated yet: they cannot keep all others out.
const UNNAMED_MAX: usize = 500;

#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionSlots(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    next: u64,
    named: HashMap<u64, Named>,
    /// Holds no zeros.
    by_user: HashMap<UserId, usize>,
}

/// The caller that holds a slot.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) user: UserId,
    pub(super) org: OrgId,
    pub(super) credential: Credential,
    /// Notifies the connection that its caller may have changed.
    recheck: Arc<Notify>,
}

/// A slot that is taken while this lives.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    slots: ConnectionSlots,
    id: Option<u64>,
}

impl ConnectionSlots {
    /// Takes a slot for a connection that has no caller yet; `None` when there is none left.
    pub(super) fn take(&self) -> Option<ConnectionSlot> {
        let mut taken = self.lock();
        let unnamed = taken.all.saturating_sub(taken.named.len());
        if taken.all >= ALL_MAX || unnamed >= UNNAMED_MAX {
            return None;
        }
        taken.all += 1;
        Some(ConnectionSlot { slots: self.clone(), id: None })
    }

    /// Returns the number of connections that have authenticated.
    pub(super) fn named(&self) -> usize {
        self.lock().named.len()
    }

    /// Returns the organizations that have connections.
    pub(super) fn organizations(&self) -> HashSet<OrgId> {
        self.lock().named.values().map(|named| named.org).collect()
    }

    /// Makes the connections of these callers read their caller again.
    pub(super) fn recheck(&self, is_meant: impl Fn(&Named) -> bool) {
        self.lock()
            .named
            .values()
            .filter(|named| is_meant(named))
            .for_each(|named| named.recheck.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Counts are consistent between any two statements, so a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Sets the caller of the slot, and returns what notifies of a possible change; `None` when that user has no slot
    /// left.
    pub(super) fn name(&mut self, caller: &Caller) -> Option<Arc<Notify>> {
        let mut taken = self.slots.lock();
        let user = caller.user_id;
        if taken.by_user.get(&user).is_some_and(|own| *own >= PER_USER_MAX) {
            return None;
        }
        *taken.by_user.entry(user).or_default() += 1;
        taken.next += 1;
        let (id, recheck) = (taken.next, Arc::new(Notify::new()));
        let named =
            Named { user, org: caller.org_id, credential: caller.credential, recheck: recheck.clone() };
        taken.named.insert(id, named);
        drop(taken);
        self.id = Some(id);
        Some(recheck)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        taken.all = taken.all.saturating_sub(1);
        let Some(named) = self.id.and_then(|id| taken.named.remove(&id)) else { return };
        let Some(own) = taken.by_user.get_mut(&named.user) else { return };
        *own -= 1;
        if *own == 0 {
            taken.by_user.remove(&named.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Role;

    use super::*;

    fn caller() -> Caller {
        crate::testing::caller(Role::Viewer)
    }

    #[test]
    fn a_user_has_25_places_and_a_dropped_one_is_free_again() {
        let slots = ConnectionSlots::default();
        let (user, other) = (caller(), caller());
        let mut own: Vec<ConnectionSlot> = (0..PER_USER_MAX).map(|_| slots.take().unwrap()).collect();
        assert!(own.iter_mut().all(|slot| slot.name(&user).is_some()));
        let mut more = slots.take().unwrap();
        assert!(more.name(&user).is_none());
        assert!(more.name(&other).is_some(), "another user has slots");
        assert_eq!(slots.named(), PER_USER_MAX + 1);
        drop(more);
        own.pop();
        assert!(slots.take().unwrap().name(&user).is_some());
        own.clear();
        assert_eq!(slots.lock().all, 0);
        assert!(slots.lock().by_user.is_empty(), "nobody who left is remembered");
        assert!(slots.organizations().is_empty());
    }

    #[test]
    fn connections_of_nobody_count_too() {
        let slots = ConnectionSlots::default();
        let mut taken: Vec<ConnectionSlot> = (0..UNNAMED_MAX).map(|_| slots.take().unwrap()).collect();
        assert!(slots.take().is_none());
        assert_eq!(slots.named(), 0);
        // A connection that authenticates makes room, until there are too many in all.
        let mut user = caller();
        for number in 0..ALL_MAX {
            if number % PER_USER_MAX == 0 {
                user = caller();
            }
            taken[number].name(&user).unwrap();
            taken.extend(slots.take());
        }
        assert_eq!((taken.len(), slots.named()), (ALL_MAX, ALL_MAX));
        assert!(slots.take().is_none());
        drop(taken);
        assert!(slots.take().is_some());
    }

    #[test]
    fn a_panic_gives_its_place_back() {
        let slots = ConnectionSlots::default();
        let inner = slots.clone();
        let ended = std::thread::spawn(move || {
            let _place = inner.take().unwrap();
            panic!("a connection breaks");
        });
        assert!(ended.join().is_err());
        assert_eq!(slots.lock().all, 0);
    }

    #[tokio::test]
    async fn a_doubt_reaches_whom_it_is_about() {
        let slots = ConnectionSlots::default();
        let (one, other) = (caller(), caller());
        let (mut first, mut second) = (slots.take().unwrap(), slots.take().unwrap());
        let (meant, spared) = (first.name(&one).unwrap(), second.name(&other).unwrap());
        slots.recheck(|named| named.user == one.user_id);
        meant.notified().await;
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), spared.notified());
        assert!(waits.await.is_err());
    }
}
