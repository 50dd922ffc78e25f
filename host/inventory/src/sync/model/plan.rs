//! Which lists of a controller are read, and in which order. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;
use heddle_core::adapter::Filled;
use heddle_core::{SiteId, Timestamp};
use heddle_marketplace::model::{self, ModelKind};
use heddle_store::model_readings::Row;

/// Most objects of a kind at one controller, all sites of it together.
pub(super) const OBJECTS_MAX: usize = 50_000;
/// Days for which an object is kept that lists of which only a part is shown do not have.
pub(super) const UNSEEN_DAYS: i64 = 7;
/// Lists in which the component may be stopped within [`STOPS_MINUTES`]: with more, the readings of the controller's
/// devices would be suspended with it.
pub(super) const STOPS_MAX: usize = 2;
/// A list in which the component was stopped is not read again before.
const STOPS_MINUTES: i64 = 6;
/// Minutes for which such a list is read after all others. Then it takes its turn again, because the others may use all
/// the time.
const STOPPED_LAST_MINUTES: i64 = 60;

/// A place whose objects are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The vendor's id of the site; none where the vendor has no sites.
    pub(super) site_ref: Option<String>,
    /// The site of ours that it is.
    pub(super) site_id: SiteId,
}

/// When a plan is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    pub(super) now: Timestamp,
    pub(super) interval_secs: u32,
    pub(super) is_requested: bool,
}

/// A list that is read.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) kind: &'static ModelKind,
    pub(super) site_ref: Option<String>,
    /// How many objects it may have, however many the other lists of its kind have.
    pub(super) share: usize,
    begun_at: Option<Timestamp>,
    was_stopped: bool,
}

/// What a reading does of the model.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The one that was read longest ago first; those in which the component was stopped last.
    pub(super) due: Vec<Due>,
    /// Lists that are read no more: their site is gone, or the adapter does not fill the kind.
    pub(super) gone: Vec<Row>,
    /// In how many lists the component was stopped not long ago.
    pub(super) stops: usize,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.gone.is_empty()
    }
}

pub(super) fn plan(filled: &[Filled], places: &[Place], states: Vec<Row>, when: When) -> Plan {
    let mut known: HashMap<(String, String), Row> =
        states.into_iter().map(|row| ((row.kind.clone(), row.site_ref.clone()), row)).collect();
    let is_within = |at: Timestamp, minutes| at + TimeDelta::minutes(minutes) > when.now;
    let is_recent = |at: Timestamp| is_within(at, STOPS_MINUTES);
    let stops = known.values().filter(|row| row.stopped_at.is_some_and(is_recent)).count();
    let at_controller = [None];
    let mut due = Vec::new();
    for filled in filled {
        let Some(kind) = model::find(&filled.kind) else { continue };
        let of_sites = places.iter().map(|place| place.site_ref.as_ref());
        let site_refs: Vec<Option<&String>> =
            if filled.is_of_site { of_sites.collect() } else { at_controller.to_vec() };
        let share = (OBJECTS_MAX / site_refs.len().max(1)).max(1);
        for site_ref in site_refs {
            let key = (filled.kind.clone(), site_ref.cloned().unwrap_or_default());
            let state = known.remove(&key).unwrap_or_else(|| Row::new(&key.0, &key.1));
            let was_stopped = state.stopped_at.is_some_and(|at| is_within(at, STOPPED_LAST_MINUTES));
            if !is_due(&state, when) || state.stopped_at.is_some_and(is_recent) {
                continue;
            }
            due.push(Due { kind, site_ref: site_ref.cloned(), share, begun_at: state.begun_at, was_stopped });
        }
    }
    due.sort_by_key(|due| (due.was_stopped, due.begun_at));
    let mut gone: Vec<Row> = known.into_values().collect();
    gone.sort_by(|one, other| (&one.kind, &one.site_ref).cmp(&(&other.kind, &other.site_ref)));
    Plan { due, gone, stops }
}

/// Whether the list is read now: it waits for its interval, unless a user asked or it was never read.
fn is_due(state: &Row, when: When) -> bool {
    let interval = TimeDelta::seconds(i64::from(when.interval_secs));
    when.is_requested || state.begun_at.is_none_or(|begun| begun + interval <= when.now)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn filled(kind: &str, is_of_site: bool) -> Filled {
        let fields = vec!["name".to_owned()];
        Filled { kind: kind.to_owned(), fields, is_of_site, writes: vec![], releases: None }
    }

    fn names(plan: &Plan) -> Vec<(&str, Option<&str>)> {
        plan.due.iter().map(|due| (due.kind.id, due.site_ref.as_deref())).collect()
    }

    fn begun(kind: &str, site_ref: &str, at: Timestamp) -> Row {
        Row { begun_at: Some(at), ..Row::new(kind, site_ref) }
    }

    #[test]
    fn what_was_read_longest_ago_comes_first() {
        let clock = Clock::default();
        let now = clock.now();
        let ago = |secs| now - TimeDelta::seconds(secs);
        let kinds =
            [filled("vlan", false), filled("port", false), filled("ssid", false), filled("nat-rule", false)];
        let places = [Place { site_ref: None, site_id: clock.new_id() }];
        let states =
            || vec![begun("vlan", "", ago(301)), begun("port", "", ago(400)), begun("ssid", "", ago(299))];
        let when = When { now, interval_secs: 300, is_requested: false };
        let due = plan(&kinds, &places, states(), when);
        assert_eq!(names(&due), [("nat-rule", None), ("port", None), ("vlan", None)]);
        let asked = plan(&kinds, &places, states(), When { is_requested: true, ..when });
        assert_eq!(asked.due.len(), 4);
        let always = plan(&kinds, &places, states(), When { interval_secs: 0, ..when });
        assert_eq!(always.due.len(), 4);
        assert!(plan(&[], &[], Vec::new(), when).is_empty());
    }

    #[test]
    fn kinds_of_sites_are_read_at_each_site_and_have_a_share_there() {
        let clock = Clock::default();
        let now = clock.now();
        let place = |site_ref: &str| Place { site_ref: Some(site_ref.to_owned()), site_id: clock.new_id() };
        let kinds = [filled("vlan", true), filled("system", false)];
        let left = begun("vlan", "gone", now);
        let when = When { now, interval_secs: 0, is_requested: false };
        let due = plan(&kinds, &[place("a"), place("b")], vec![begun("vlan", "a", now), left], when);
        assert_eq!(names(&due), [("vlan", Some("b")), ("system", None), ("vlan", Some("a"))]);
        let shares: Vec<usize> = due.due.iter().map(|due| due.share).collect();
        assert_eq!(shares, [OBJECTS_MAX / 2, OBJECTS_MAX, OBJECTS_MAX / 2]);
        assert_eq!(due.gone.iter().map(|row| row.site_ref.as_str()).collect::<Vec<_>>(), ["gone"]);
    }

    #[test]
    fn a_list_in_which_the_component_stopped_waits_and_comes_last() {
        let clock = Clock::default();
        let now = clock.now();
        let stopped = |kind: &str, minutes| Row {
            stopped_at: Some(now - TimeDelta::minutes(minutes)),
            ..begun(kind, "", now - TimeDelta::hours(1))
        };
        let kinds = [filled("vlan", false), filled("port", false), filled("ssid", false)];
        let places = [Place { site_ref: None, site_id: clock.new_id() }];
        let states = vec![stopped("vlan", 5), stopped("port", 7), begun("ssid", "", now)];
        let due = plan(&kinds, &places, states, When { now, interval_secs: 300, is_requested: true });
        assert_eq!((names(&due), due.stops), (vec![("ssid", None), ("port", None)], 1));
        let states = vec![begun("vlan", "", now), stopped("port", 61), begun("ssid", "", now)];
        let due = plan(&kinds, &places, states, When { now, interval_secs: 0, is_requested: false });
        assert_eq!(names(&due)[0], ("port", None), "others may take all the time");
    }
}
