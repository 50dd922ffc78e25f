//! What requests of controllers ask for, as rows.
//!
//! A request is written before it is answered, so nothing is gathered here but the pace of rules.

use std::collections::HashMap;
use std::sync::Mutex;

use chrono::TimeDelta;
use heddle_core::{ControllerId, Timestamp};
use heddle_kernel::app::App;
use heddle_runtime::Told;
use heddle_store::push::PushSite;
use heddle_store::push::wanted::Want;

use crate::gather::{Gather, Heard};
use crate::plan::site_ref;

/// Most hooks whose rules have their pace remembered; beyond, those that wait for nothing begin anew, or else all of them.
const HOOKS_MAX: usize = 4_096;
/// After how long that is read what requests beyond the rate could have told.
const MISSED_AFTER: TimeDelta = TimeDelta::minutes(1);

/// When rules of hooks are read that are not read more often than a pace, as far as this process took the requests.
#[derive(Debug, Default)]
pub(crate) struct Paces(Mutex<HashMap<(ControllerId, String), Paced>>);

#[derive(Debug, Default)]
struct Paced {
    gather: Gather,
    /// When that is read which requests beyond the rate told.
    missed_at: Option<Timestamp>,
}

impl Paced {
    fn waits(&self, now: Timestamp) -> bool {
        self.gather.waits(now) || self.missed_at.is_some_and(|at| at > now)
    }
}

impl Paces {
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Returns what a request asks for. It is due when more requests that come together with it are written, too.
    pub(crate) fn wants(
        &self,
        (controller, hook): (ControllerId, &str),
        (told, sites): (&[Told], &[PushSite]),
        settle: TimeDelta,
        now: Timestamp,
    ) -> Vec<Want> {
        let mut wants = self.with((controller, hook), now, |paced| {
            for told in told {
                if let Some(site_ref) = site_ref(&told.site, sites) {
                    paced.gather.told(Heard { channel: 0, settle, site_ref: &site_ref }, told, now);
                }
            }
            paced.gather.take(now)
        });
        for want in &mut wants {
            want.due_at = want.due_at.max(now + settle);
        }
        wants
    }

    /// Returns what a request beyond the rate asks for: everything that the hook can tell, once for all of them that come until
    /// it is read. `None` where one before it asked already, which [`Self::asked`] notes.
    pub(crate) fn missed<'k>(
        &self,
        (controller, hook): (ControllerId, &str),
        reads: impl IntoIterator<Item = &'k str>,
        now: Timestamp,
    ) -> Option<Vec<Want>> {
        let is_asked = self.with((controller, hook), now, |paced| paced.missed_at.is_some_and(|at| at > now));
        if is_asked {
            return None;
        }
        let mut gather = Gather::default();
        let heard = Heard { channel: 0, settle: TimeDelta::zero(), site_ref: "" };
        gather.gap(heard, reads, now + MISSED_AFTER, now);
        let mut wants = gather.take(now);
        // Another message may have it read before, and what comes after that is read nevertheless.
        for want in &mut wants {
            want.again_at = Some(want.due_at);
        }
        Some(wants)
    }

    /// Notes that what [`Self::missed`] returned at this time is written.
    pub(crate) fn asked(&self, (controller, hook): (ControllerId, &str), now: Timestamp) {
        self.with((controller, hook), now, |paced| paced.missed_at = Some(now + MISSED_AFTER));
    }

    fn with<T>(
        &self,
        (controller, hook): (ControllerId, &str),
        now: Timestamp,
        act: impl FnOnce(&mut Paced) -> T,
    ) -> T {
        let mut all = self.0.lock().expect("no holder of this lock panics");
        let key = (controller, hook.to_owned());
        if all.len() >= HOOKS_MAX && !all.contains_key(&key) {
            all.retain(|_, paced| paced.waits(now));
            if all.len() >= HOOKS_MAX {
                all.clear();
            }
        }
        act(all.entry(key).or_default())
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_runtime::ToldSite;

    use super::*;

    #[test]
    fn a_request_is_due_at_once_and_a_rule_with_a_pace_at_its_end() {
        let (paces, clock) = (Paces::default(), Clock::default());
        let (id, now): (ControllerId, _) = (clock.new_id(), clock.now());
        let secs = |secs| now + TimeDelta::seconds(secs);
        let settle = TimeDelta::milliseconds(300);
        let site = |site_ref: &str, name: &str| PushSite {
            site_ref: site_ref.to_owned(),
            name: name.to_owned(),
            is_ignored: false,
        };
        let sites = [site("1", "Home"), site("2", "Shop")];
        let told = Told {
            reads: vec!["client".to_owned()],
            site: ToldSite::Name("Shop".to_owned()),
            again_s: None,
            every_s: Some(30),
            rule: Some(0),
        };
        let due = |hook: &str, at: Timestamp| {
            let wants = paces.wants((id, hook), (std::slice::from_ref(&told), &sites), settle, at);
            assert_eq!((wants.len(), &*wants[0].kind, &*wants[0].site_ref), (1, "client", "2"));
            assert_eq!(wants[0].told_at, at);
            wants[0].due_at
        };
        assert_eq!(due("webhook", now), now + settle);
        assert_eq!(due("webhook", secs(1)), secs(30));
        assert_eq!(due("alarms", secs(1)), secs(1) + settle, "another hook has a pace of its own");
        assert_eq!(due("webhook", secs(40)), secs(60), "the one before was due at 30");
        assert!(paces.wants((id, "webhook"), (&[], &sites), settle, now).is_empty());
    }

    #[test]
    fn what_came_beyond_the_rate_is_asked_for_once_until_it_is_read() {
        let (paces, clock) = (Paces::default(), Clock::default());
        let (id, now): (ControllerId, _) = (clock.new_id(), clock.now());
        let secs = |secs| now + TimeDelta::seconds(secs);
        let missed = |at| paces.missed((id, "webhook"), ["device", "client"], at);
        let wants = missed(now).unwrap();
        assert!(wants.iter().all(|want| want.again_at == Some(secs(60))), "however early it is read");
        let asked: Vec<(&str, &str, Timestamp)> =
            wants.iter().map(|want| (&*want.kind, &*want.site_ref, want.due_at)).collect();
        assert_eq!(asked, [("client", "", secs(60)), ("device", "", secs(60))]);
        assert!(missed(secs(1)).is_some(), "the first one was not written");
        paces.asked((id, "webhook"), now);
        assert_eq!(missed(secs(59)), None);
        assert!(missed(secs(60)).is_some(), "what comes now is not read by the one before");
    }

    #[test]
    fn hooks_that_wait_for_nothing_make_room() {
        let (paces, clock) = (Paces::default(), Clock::default());
        let now = clock.now();
        let waiting: ControllerId = clock.new_id();
        paces.asked((waiting, "webhook"), now);
        for _ in 0..=HOOKS_MAX {
            let wants = paces.wants((clock.new_id(), "webhook"), (&[], &[]), TimeDelta::zero(), now);
            assert!(wants.is_empty());
        }
        assert!(paces.0.lock().unwrap().len() < HOOKS_MAX);
        assert_eq!(paces.missed((waiting, "webhook"), ["device"], now), None, "it is remembered");
    }
}
