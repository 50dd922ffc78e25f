//! Things that will happen, in order of time.

use tokio::time::Instant;

/// Entries that come due at an instant of the lab's clock. Entries of the same instant keep their order.
#[derive(Clone, Debug)]
pub struct Schedule<T>(Vec<(Instant, T)>);

impl<T> Default for Schedule<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Schedule<T> {
    /// Adds an entry.
    pub fn at(&mut self, instant: Instant, entry: T) {
        self.0.push((instant, entry));
    }

    /// Removes and returns the earliest entry that is due at `now`, with its own instant.
    ///
    /// A caller loops over it, so that what an entry schedules in turn comes at its place in time.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        let (index, (instant, _)) = self.0.iter().enumerate().min_by_key(|(_, (at, _))| *at)?;
        (*instant <= now).then(|| self.0.remove(index))
    }

    /// Removes the entries for which `keeps` is false.
    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.0.retain(|(_, entry)| keeps(entry));
    }

    /// Removes every entry.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The entries, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.0.iter().map(|(at, entry)| (*at, entry))
    }
}
