//! Places for work that takes long: few of an organization and of all at a time, so that some stay free for others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use heddle_core::OrgId;

/// What has a place now, and whose it is.
#[derive(Debug)]
pub(super) struct Places<K>(Arc<Mutex<HashMap<K, OrgId>>>);

/// A place, until this is dropped.
#[derive(Debug)]
pub struct Held<K: Copy + Eq + Hash> {
    all: Places<K>,
    key: K,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The same has one already.
    Same,
    /// The organization has its share, or all are taken.
    Full,
}

impl<K> Clone for Places<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Copy + Eq + Hash> Places<K> {
    /// Takes a place for this, where the organization has fewer than `of_org` and all have fewer than `all` of them.
    pub(super) fn take(&self, key: K, org: OrgId, (of_org, all): (usize, usize)) -> Result<Held<K>, NoPlace> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains_key(&key) {
            return Err(NoPlace::Same);
        }
        if held.len() >= all || held.values().filter(|one| **one == org).count() >= of_org {
            return Err(NoPlace::Full);
        }
        held.insert(key, org);
        Ok(Held { all: self.clone(), key })
    }
}

impl<K: Copy + Eq + Hash> Drop for Held<K> {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn an_organization_has_its_share_and_all_have_an_end() {
        let (clock, places) = (Clock::default(), Places::default());
        let (org, limits): (OrgId, _) = (clock.new_id(), (2, 3));
        let first = places.take(1, org, limits).unwrap();
        assert_eq!(places.take(1, org, limits).unwrap_err(), NoPlace::Same);
        let _second = places.take(2, org, limits).unwrap();
        assert_eq!(places.take(3, org, limits).unwrap_err(), NoPlace::Full, "the share is used up");
        let _other = places.take(3, clock.new_id(), limits).unwrap();
        assert_eq!(places.take(4, clock.new_id(), limits).unwrap_err(), NoPlace::Full, "no place is left");
        drop(first);
        assert!(places.take(1, org, limits).is_ok(), "what ended gives its place back");
    }
}
