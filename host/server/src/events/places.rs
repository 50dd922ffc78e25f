//! Places among the connections: how many there may be, in all and of one user.
//!
//! A place is given back when it is dropped, however its connection ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heddle_core::UserId;

/// Connections of one user.
const PER_USER_MAX: usize = 25;
/// Connections in all, also those that have not said yet who they are.
const ALL_MAX: usize = 5000;

#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Holds no zeros.
    by_user: HashMap<UserId, usize>,
}

/// A place that is taken while this lives.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    user: Option<UserId>,
}

impl Places {
    /// A place for a connection of nobody yet; `None` when there is none left.
    pub(super) fn take(&self) -> Option<Place> {
        let mut taken = self.lock();
        if taken.all >= ALL_MAX {
            return None;
        }
        taken.all += 1;
        Some(Place { places: self.clone(), user: None })
    }

    /// Connections that have said who they are.
    pub(super) fn named(&self) -> usize {
        self.lock().by_user.values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Counts are whole between any two statements, so a panic elsewhere spoils nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Says whose the place is; false when that user has no more.
    pub(super) fn name(&mut self, user: UserId) -> bool {
        let mut taken = self.places.lock();
        if taken.by_user.get(&user).is_some_and(|own| *own >= PER_USER_MAX) {
            return false;
        }
        *taken.by_user.entry(user).or_default() += 1;
        drop(taken);
        self.user = Some(user);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        let Some(user) = self.user else { return };
        let Some(own) = taken.by_user.get_mut(&user) else { return };
        *own -= 1;
        if *own == 0 {
            taken.by_user.remove(&user);
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_user_has_25_places_and_a_dropped_one_is_free_again() {
        let places = Places::default();
        let (user, other) = (Clock::default().new_id(), Clock::default().new_id());
        let mut own: Vec<Place> = (0..PER_USER_MAX).map(|_| places.take().unwrap()).collect();
        assert!(own.iter_mut().all(|place| place.name(user)));
        let mut more = places.take().unwrap();
        assert!(!more.name(user));
        assert!(more.name(other), "another user has places");
        assert_eq!(places.named(), PER_USER_MAX + 1);
        drop(more);
        own.pop();
        assert!(places.take().unwrap().name(user));
        own.clear();
        assert_eq!(places.lock().all, 0);
        assert!(places.lock().by_user.is_empty(), "nobody who left is remembered");
    }

    #[test]
    fn connections_of_nobody_count_too() {
        let places = Places::default();
        let taken: Vec<Place> = (0..ALL_MAX).map(|_| places.take().unwrap()).collect();
        assert!(places.take().is_none());
        assert_eq!(places.named(), 0);
        drop(taken);
        assert!(places.take().is_some());
    }

    #[test]
    fn a_panic_gives_its_place_back() {
        let places = Places::default();
        let inner = places.clone();
        let ended = std::thread::spawn(move || {
            let _place = inner.take().unwrap();
            panic!("a connection breaks");
        });
        assert!(ended.join().is_err());
        assert_eq!(places.lock().all, 0);
    }
}
