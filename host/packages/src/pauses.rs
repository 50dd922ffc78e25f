//! Pauses before installed packages are tried again that a fault of this machine kept from serving.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use heddle_store::installed_packages::Installed;

/// The first pause. Each one is twice as long as the one before: a compilation takes a core.
const PAUSE_MIN: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// The pauses of this process, by the id of the adapter.
#[derive(Debug, Default)]
pub struct Pauses(BTreeMap<String, Pause>);

#[derive(Debug)]
struct Pause {
    of: Installed,
    length: Duration,
    until: Instant,
}

impl Pauses {
    /// Whether this package is not tried again yet. Another package of the same adapter is not held up by it.
    pub fn last(&self, installed: &Installed, now: Instant) -> bool {
        self.0.get(&installed.adapter_id).is_some_and(|pause| pause.of == *installed && now < pause.until)
    }

    /// Begins the next pause of this package.
    pub fn prolong(&mut self, installed: &Installed, now: Instant) {
        let before = self.0.get(&installed.adapter_id).filter(|pause| pause.of == *installed);
        let length = before.map_or(PAUSE_MIN, |pause| pause.length.saturating_mul(2).min(PAUSE_MAX));
        let pause = Pause { of: installed.clone(), length, until: now + length };
        self.0.insert(installed.adapter_id.clone(), pause);
    }

    /// Ends the pause of an adapter or plugin that was loaded.
    pub fn end(&mut self, adapter_id: &str) {
        self.0.remove(adapter_id);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn pauses_grow_and_are_of_one_package() {
        let installed = |version: &str| Installed {
            adapter_id: "acme".to_owned(),
            manifest_sha256: version.to_owned(),
            version: version.to_owned(),
            before_sha256: None,
            is_pinned: false,
            changed_at: Clock::default().now(),
        };
        let (one, two) = (installed("1.0.0"), installed("2.0.0"));
        let (begun, mut pauses) = (Instant::now(), Pauses::default());
        let at = |secs| begun + Duration::from_secs(secs);
        assert!(!pauses.last(&one, begun));
        pauses.prolong(&one, begun);
        assert!(pauses.last(&one, at(1)) && !pauses.last(&one, at(2)) && !pauses.last(&two, at(1)));
        pauses.prolong(&one, at(2));
        assert!(pauses.last(&one, at(5)) && !pauses.last(&one, at(6)));
        for _ in 0..20 {
            pauses.prolong(&one, begun);
        }
        assert!(pauses.last(&one, at(299)) && !pauses.last(&one, at(300)));
        pauses.prolong(&two, begun);
        assert!(!pauses.last(&two, at(2)), "another package begins with a short one");
        pauses.prolong(&one, begun);
        pauses.end("acme");
        assert!(!pauses.last(&one, begun));
    }
}
