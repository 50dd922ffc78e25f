//! Logs within the process, of a bounded number of principals.
//!
//! There are two generations. A log that is used moves to the young one. When that is full, the old generation is
//! dropped and the young one becomes the old one. So the memory is bounded, and the principals that were seen longest
//! ago are forgotten first.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::limiter::{Limit, Question, Verdict};
use super::window::Log;

/// Logs of one generation; a principal needs two or three. A log takes at most some 500 bytes.
const GENERATION_MAX: usize = 100_000;

#[derive(Debug)]
pub(super) struct Memory {
    generations: Mutex<Generations>,
    generation_max: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<String, Log>,
    old: HashMap<String, Log>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_generation(GENERATION_MAX)
    }
}

impl Memory {
    fn with_generation(generation_max: usize) -> Self {
        Self { generations: Mutex::default(), generation_max }
    }

    pub(super) fn ask(&self, question: Question, limits: &[Limit], now_ms: u64) -> Verdict {
        let mut guard = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::with_capacity(limits.len());
        for (index, limit) in limits.iter().enumerate() {
            let room = match guard.find(&limit.key) {
                Some(log) => log.room(limit.rate, now_ms),
                None => Log::default().room(limit.rate, now_ms),
            };
            match room {
                Some(room) => left.push(room),
                None => return Verdict::Exceeded(index),
            }
        }
        if question == Question::Look {
            return Verdict::Granted(left);
        }
        for limit in limits {
            guard.young(&limit.key).enter(limit.rate, now_ms);
        }
        let dropped = guard.age(self.generation_max);
        drop(guard);
        // Dropped after the unlock: it is large, and other requests wait for the lock.
        drop(dropped);
        Verdict::Granted(left)
    }
}

impl Generations {
    fn find(&self, key: &str) -> Option<&Log> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// The log of this key, moved into the young generation.
    fn young(&mut self, key: &str) -> &mut Log {
        if !self.young.contains_key(key) {
            let (key, log) = self.old.remove_entry(key).unwrap_or_else(|| (key.to_owned(), Log::default()));
            self.young.insert(key, log);
        }
        self.young.get_mut(key).expect("it was put there just now")
    }

    /// Returns the old generation, which is to be dropped, when the young one is full.
    fn age(&mut self, generation_max: usize) -> Option<HashMap<String, Log>> {
        if self.young.len() < generation_max {
            return None;
        }
        // Allocated at full size at once: growing would move all logs while other requests wait.
        let young = HashMap::with_capacity(generation_max + generation_max / 8);
        let aged = std::mem::replace(&mut self.young, young);
        Some(std::mem::replace(&mut self.old, aged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::rate_limit::Rate;

    fn limit(key: &str, requests: u32) -> Limit {
        Limit { key: key.to_owned(), rate: Rate::per_minute(requests) }
    }

    #[test]
    fn a_request_counts_against_all_limits_or_against_none() {
        let memory = Memory::default();
        let (wide, narrow) = (limit("wide", 3), limit("narrow", 1));
        let both = [wide.clone(), narrow];
        assert_eq!(memory.ask(Question::Take, &both, 0), Verdict::Granted(vec![2, 0]));
        for _ in 0..5 {
            assert_eq!(memory.ask(Question::Take, &both, 0), Verdict::Exceeded(1));
        }
        for _ in 0..5 {
            let seen = memory.ask(Question::Look, std::slice::from_ref(&wide), 0);
            assert_eq!(seen, Verdict::Granted(vec![1]), "who looks counts nothing");
        }
        assert_eq!(memory.ask(Question::Take, &[wide], 0), Verdict::Granted(vec![1]));
    }

    #[test]
    fn the_number_of_counters_is_bounded_and_who_is_here_is_remembered() {
        let memory = Memory::with_generation(100);
        let regular = [limit("regular", 2_000)];
        for stranger in 0..1_000 {
            let Verdict::Granted(left) = memory.ask(Question::Take, &regular, 0) else {
                panic!("within the rate")
            };
            assert_eq!(left, [2_000 - 1 - stranger], "the regular is not forgotten");
            memory.ask(Question::Take, &[limit(&format!("stranger {stranger}"), 1)], 0);
            let generations = memory.generations.lock().unwrap();
            assert!(generations.young.len() + generations.old.len() <= 200);
        }
        assert_eq!(
            memory.ask(Question::Take, &[limit("stranger 0", 1)], 0),
            Verdict::Granted(vec![0]),
            "forgotten"
        );
        assert_eq!(
            memory.ask(Question::Take, &[limit("stranger 999", 1)], 0),
            Verdict::Exceeded(0),
            "remembered"
        );
    }
}
