//! Gathers what the channels of one controller tell, so that messages that come together are one writing. Pure.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_runtime::Told;
use heddle_store::push::wanted::Want;

/// Least time between two writings. The first of several messages is not delayed by it, and readings for messages rest as
/// long.
const WRITINGS_EVERY: TimeDelta = TimeDelta::seconds(1);
/// Most rules whose pace is remembered; beyond, all of them begin anew.
const PACED_MAX: usize = 4_096;

/// What was told and is not written yet.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    wants: BTreeMap<(String, String), Want>,
    /// When what a rule asks for at a site is read, by channel, rule and site. It may lie ahead.
    paced: HashMap<(usize, usize, String), Timestamp>,
    /// When what was told is written.
    write_at: Option<Timestamp>,
    written_at: Option<Timestamp>,
}

/// Something that a channel told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard<'a> {
    /// The place of the channel's connection among those of the controller.
    pub(crate) channel: usize,
    pub(crate) settle: TimeDelta,
    /// The vendor's site that it is about; empty for all of them.
    pub(crate) site_ref: &'a str,
}

impl Gather {
    /// Takes what a message means.
    pub(crate) fn told(&mut self, heard: Heard<'_>, told: &Told, now: Timestamp) {
        let due_at = match (told.rule, told.every_s) {
            (Some(rule), Some(secs)) => {
                let key = (heard.channel, rule, heard.site_ref.to_owned());
                self.paced(key, TimeDelta::seconds(secs.into()), now)
            }
            _ => now,
        };
        let again_at = told.again_s.map(|secs| due_at + TimeDelta::seconds(secs.into()));
        for kind in &told.reads {
            self.want(kind, heard.site_ref, (due_at, again_at), now);
        }
        self.write_after(heard.settle, now);
    }

    /// Takes that messages may have been missed: everything that the channel could have told. It is read at `due_at`, which
    /// may lie ahead.
    pub(crate) fn gap<'k>(
        &mut self,
        heard: Heard<'_>,
        reads: impl IntoIterator<Item = &'k str>,
        due_at: Timestamp,
        now: Timestamp,
    ) {
        for kind in reads {
            self.want(kind, heard.site_ref, (due_at, None), due_at);
        }
        self.write_after(TimeDelta::zero(), now);
    }

    /// When a rule that is read not more often than this is read next: now, or at the end of its time.
    fn paced(&mut self, key: (usize, usize, String), every: TimeDelta, now: Timestamp) -> Timestamp {
        if self.paced.len() >= PACED_MAX && !self.paced.contains_key(&key) {
            self.paced.clear();
        }
        let last = self.paced.entry(key).or_insert(now - every);
        // A reading that lies ahead takes this message along.
        if *last <= now {
            *last = now.max(*last + every);
        }
        *last
    }

    fn want(
        &mut self,
        kind: &str,
        site_ref: &str,
        (due_at, again_at): (Timestamp, Option<Timestamp>),
        now: Timestamp,
    ) {
        let key = (kind.to_owned(), site_ref.to_owned());
        let want = self.wants.entry(key).or_insert_with_key(|(kind, site_ref)| Want {
            kind: kind.clone(),
            site_ref: site_ref.clone(),
            due_at,
            told_at: now,
            again_at: None,
        });
        want.due_at = want.due_at.min(due_at);
        want.again_at = want.again_at.max(again_at);
    }

    fn write_after(&mut self, settle: TimeDelta, now: Timestamp) {
        let at = now + settle;
        let at = self.written_at.map_or(at, |written| at.max(written + WRITINGS_EVERY));
        self.write_at = Some(self.write_at.map_or(at, |before| before.min(at)));
    }

    /// When what was told is to be written; `None` where nothing was told.
    pub(crate) fn write_at(&self) -> Option<Timestamp> {
        self.write_at
    }

    /// Whether a rule is read later, and not before.
    pub(crate) fn waits(&self, now: Timestamp) -> bool {
        self.paced.values().any(|at| *at > now)
    }

    /// Takes out what is to be written.
    pub(crate) fn take(&mut self, now: Timestamp) -> Vec<Want> {
        self.write_at = None;
        self.written_at = Some(now);
        std::mem::take(&mut self.wants).into_values().collect()
    }

    /// Takes back what could not be written, to be written later.
    pub(crate) fn give_back(&mut self, wants: Vec<Want>, now: Timestamp) {
        for want in wants {
            let key = (want.kind.clone(), want.site_ref.clone());
            let kept = self.wants.entry(key).or_insert_with(|| want.clone());
            kept.take(&want);
        }
        self.write_after(WRITINGS_EVERY, now);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_runtime::ToldSite;

    use super::*;

    const SETTLE: TimeDelta = TimeDelta::milliseconds(100);

    fn heard(site_ref: &str) -> Heard<'_> {
        Heard { channel: 0, settle: SETTLE, site_ref }
    }

    fn told(reads: &[&str]) -> Told {
        let reads = reads.iter().map(|kind| (*kind).to_owned()).collect();
        Told { reads, site: ToldSite::All, again_s: None, every_s: None, rule: Some(0) }
    }

    fn names(wants: &[Want]) -> Vec<(&str, &str)> {
        wants.iter().map(|want| (want.kind.as_str(), want.site_ref.as_str())).collect()
    }

    #[test]
    fn messages_that_come_together_are_written_once() {
        let (mut gather, now) = (Gather::default(), Clock::default().now());
        let millis = |millis| now + TimeDelta::milliseconds(millis);
        assert_eq!(gather.write_at(), None);
        gather.told(heard(""), &told(&["device", "port"]), now);
        gather.told(heard("a"), &told(&["device"]), millis(40));
        gather.told(heard(""), &told(&["device"]), millis(80));
        assert_eq!(gather.write_at(), Some(now + SETTLE), "behind the first one");
        let wants = gather.take(millis(100));
        assert_eq!(names(&wants), [("device", ""), ("device", "a"), ("port", "")]);
        assert!(wants.iter().all(|want| want.due_at == want.told_at && want.again_at.is_none()));
        assert_eq!(wants[1].told_at, millis(40));
        assert_eq!(gather.write_at(), None);
        gather.told(heard(""), &told(&["device"]), millis(200));
        assert_eq!(gather.write_at(), Some(millis(1_100)), "one writing a second");
        gather.take(millis(1_100));
        gather.told(heard(""), &told(&["device"]), millis(5_000));
        assert_eq!(gather.write_at(), Some(millis(5_100)));
    }

    #[test]
    fn a_rule_with_a_pace_is_read_at_its_end() {
        let (mut gather, now) = (Gather::default(), Clock::default().now());
        let secs = |secs| now + TimeDelta::seconds(secs);
        let paced = Told { every_s: Some(30), again_s: Some(5), ..told(&["client"]) };
        let mut due = |site_ref: &str, at: Timestamp| {
            gather.told(heard(site_ref), &paced, at);
            let want = gather.take(at).remove(0);
            (want.due_at, want.again_at)
        };
        assert_eq!(due("a", now), (now, Some(secs(5))));
        assert_eq!(due("a", secs(10)), (secs(30), Some(secs(35))));
        assert_eq!(due("a", secs(20)), (secs(30), Some(secs(35))), "it is taken along");
        assert_eq!(due("a", secs(31)), (secs(60), Some(secs(65))));
        assert_eq!(due("a", secs(100)), (secs(100), Some(secs(105))));
        assert_eq!(due("b", secs(101)).0, secs(101), "another site has a pace of its own");
    }

    #[test]
    fn after_a_gap_everything_is_read_at_once() {
        let (mut gather, now) = (Gather::default(), Clock::default().now());
        gather.gap(heard("a"), ["device", "client"], now, now);
        assert_eq!(gather.write_at(), Some(now));
        assert_eq!(names(&gather.take(now)), [("client", "a"), ("device", "a")]);
        let later = now + TimeDelta::seconds(40);
        gather.gap(heard("a"), ["device"], later, now);
        let wants = gather.take(now + TimeDelta::seconds(1));
        assert_eq!((wants[0].due_at, wants[0].told_at), (later, later), "it is written now and read then");
    }

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let (mut gather, now) = (Gather::default(), Clock::default().now());
        gather.told(heard(""), &told(&["device"]), now);
        let wants = gather.take(now + SETTLE);
        gather.told(heard(""), &told(&["device"]), now + TimeDelta::seconds(2));
        gather.give_back(wants.clone(), now + TimeDelta::seconds(2));
        assert_eq!(gather.take(now + TimeDelta::seconds(3)), wants);
    }
}
