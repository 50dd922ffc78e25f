//! Which lists of a controller are read, and in which order. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;
use heddle_core::adapter::Filled;
use heddle_core::{SiteId, Timestamp};
use heddle_marketplace::model::{self, ModelKind};
use heddle_store::model_readings::Row;
use heddle_store::push::wanted;

use super::ListName;
use crate::Scope;

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
    /// A part has no lists but those that messages ask for.
    pub(super) scope: Scope,
}

/// A list that is read.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) kind: &'static ModelKind,
    pub(super) site_ref: Option<String>,
    /// How many objects it may have, however many the other lists of its kind have.
    pub(super) share: usize,
    /// Whether messages ask for it.
    pub(super) is_told: bool,
    /// What messages asked for that ends with this list.
    pub(super) told: Vec<wanted::Row>,
    begun_at: Option<Timestamp>,
    was_stopped: bool,
}

impl Due {
    pub(super) fn name(&self) -> ListName {
        (self.kind.id, self.site_ref.clone())
    }

    /// Whether the list is what a message of its kind asks for. One that names no site asks for all of them, and one that names
    /// a site also for lists of the controller. A list that was read since a reading took the row is done.
    fn answers(&self, told: &wanted::Row) -> bool {
        let site_ref = self.site_ref.as_deref().unwrap_or_default();
        let is_done = told.taken_at.is_some_and(|taken| self.begun_at.is_some_and(|begun| begun >= taken));
        !is_done && (told.site_ref.is_empty() || site_ref.is_empty() || told.site_ref == site_ref)
    }
}

/// What a reading does of the model.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Those whose interval has passed first, the one that was read longest ago before others; then those that only messages
    /// ask for, which are read in between as well. Lists that messages never ask for get their turn by it. Those in which the
    /// component was stopped come last.
    pub(super) due: Vec<Due>,
    /// Lists that are read no more: their site is gone, or the adapter does not fill the kind.
    pub(super) gone: Vec<Row>,
    /// In how many lists the component was stopped not long ago.
    pub(super) stops: usize,
    /// What messages asked for that no list answers: the adapter does not fill it, its site is gone, or the component was
    /// stopped in it.
    pub(super) unplaced: Vec<wanted::Row>,
    /// What messages asked for that lists answer, and that no reading took before.
    pub(super) begun: Vec<wanted::Row>,
}

impl Plan {
    /// Nothing is read, whatever messages ask for.
    pub(super) fn nothing(told: Vec<wanted::Row>) -> Self {
        Self { unplaced: told, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.gone.is_empty()
    }
}

pub(super) fn plan(
    filled: &[Filled],
    places: &[Place],
    states: Vec<Row>,
    told: Vec<wanted::Row>,
    when: When,
) -> Plan {
    let mut known: HashMap<(String, String), Row> =
        states.into_iter().map(|row| ((row.kind.clone(), row.site_ref.clone()), row)).collect();
    let is_within = |at: Timestamp, minutes| at + TimeDelta::minutes(minutes) > when.now;
    let is_recent = |at: Timestamp| is_within(at, STOPS_MINUTES);
    let stops = known.values().filter(|row| row.stopped_at.is_some_and(is_recent)).count();
    let at_controller = [None];
    let mut of_kind: HashMap<&str, Vec<&wanted::Row>> = HashMap::new();
    for row in &told {
        of_kind.entry(&row.kind).or_default().push(row);
    }
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
            let (site_ref, begun_at) = (site_ref.cloned(), state.begun_at);
            let mut list =
                Due { kind, site_ref, share, is_told: false, told: Vec::new(), begun_at, was_stopped };
            list.is_told = of_kind.get(kind.id).into_iter().flatten().any(|told| list.answers(told));
            let has_its_turn = when.scope == Scope::Whole && is_due(&state, when);
            if (list.is_told || has_its_turn) && !state.stopped_at.is_some_and(is_recent) {
                due.push((has_its_turn, list));
            }
        }
    }
    due.sort_by_key(|(has_its_turn, due)| (due.was_stopped, !has_its_turn, due.begun_at));
    let mut due: Vec<Due> = due.into_iter().map(|(_, due)| due).collect();
    let (unplaced, begun) = place(told, &mut due);
    let mut gone: Vec<Row> = known.into_values().filter(|_| when.scope == Scope::Whole).collect();
    gone.sort_by(|one, other| (&one.kind, &one.site_ref).cmp(&(&other.kind, &other.site_ref)));
    Plan { due, gone, stops, unplaced, begun }
}

/// Gives each row to the last of the lists that it asks for: all of them were read when that one ends. Returns the rows that
/// no list answers, and those that no reading took before.
fn place(told: Vec<wanted::Row>, due: &mut [Due]) -> (Vec<wanted::Row>, Vec<wanted::Row>) {
    let (mut unplaced, mut begun) = (Vec::new(), Vec::new());
    let mut of_kind: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, list) in due.iter().enumerate() {
        of_kind.entry(list.kind.id).or_default().push(at);
    }
    for row in told {
        let lists = of_kind.get(row.kind.as_str()).into_iter().flatten().copied();
        let lists: Vec<usize> = lists.filter(|at| due[*at].answers(&row)).collect();
        let Some(last) = lists.last() else {
            unplaced.push(row);
            continue;
        };
        if row.taken_at.is_none() {
            begun.push(row.clone());
        }
        due[*last].told.push(row);
    }
    (unplaced, begun)
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
        let when = When { now, interval_secs: 300, is_requested: false, scope: Scope::Whole };
        let due = plan(&kinds, &places, states(), Vec::new(), when);
        assert_eq!(names(&due), [("nat-rule", None), ("port", None), ("vlan", None)]);
        let asked = plan(&kinds, &places, states(), Vec::new(), When { is_requested: true, ..when });
        assert_eq!(asked.due.len(), 4);
        let always = plan(&kinds, &places, states(), Vec::new(), When { interval_secs: 0, ..when });
        assert_eq!(always.due.len(), 4);
        assert!(plan(&[], &[], Vec::new(), Vec::new(), when).is_empty());
    }

    #[test]
    fn kinds_of_sites_are_read_at_each_site_and_have_a_share_there() {
        let clock = Clock::default();
        let now = clock.now();
        let place = |site_ref: &str| Place { site_ref: Some(site_ref.to_owned()), site_id: clock.new_id() };
        let kinds = [filled("vlan", true), filled("system", false)];
        let left = begun("vlan", "gone", now);
        let when = When { now, interval_secs: 0, is_requested: false, scope: Scope::Whole };
        let due =
            plan(&kinds, &[place("a"), place("b")], vec![begun("vlan", "a", now), left], Vec::new(), when);
        assert_eq!(names(&due), [("vlan", Some("b")), ("system", None), ("vlan", Some("a"))]);
        let shares: Vec<usize> = due.due.iter().map(|due| due.share).collect();
        assert_eq!(shares, [OBJECTS_MAX / 2, OBJECTS_MAX, OBJECTS_MAX / 2]);
        assert_eq!(due.gone.iter().map(|row| row.site_ref.as_str()).collect::<Vec<_>>(), ["gone"]);
    }

    fn told(kind: &str, site_ref: &str) -> wanted::Row {
        let clock = Clock::default();
        let (kind, site_ref) = (kind.to_owned(), site_ref.to_owned());
        let (controller_id, told_at) = (clock.new_id(), clock.now());
        wanted::Row { controller_id, kind, site_ref, number: 1, told_at, taken_at: None, taken_by: None }
    }

    fn ends(plan: &Plan) -> Vec<usize> {
        plan.due.iter().map(|due| due.told.len()).collect()
    }

    #[test]
    fn what_messages_ask_for_is_all_of_a_part_and_keeps_no_other_list_waiting() {
        let clock = Clock::default();
        let now = clock.now();
        let place = |site_ref: &str| Place { site_ref: Some(site_ref.to_owned()), site_id: clock.new_id() };
        let places = [place("a"), place("b")];
        let kinds = [filled("port", false), filled("vlan", true), filled("system", false)];
        let read = || vec![begun("vlan", "a", now), begun("vlan", "b", now - TimeDelta::seconds(9))];
        let when = When { now, interval_secs: 300, is_requested: false, scope: Scope::Whole };
        let part = When { scope: Scope::Part, ..when };
        let asked = || vec![told("vlan", "a"), told("vlan", "")];
        let whole = plan(&kinds, &places, read(), asked(), when);
        assert_eq!(
            names(&whole),
            [("port", None), ("system", None), ("vlan", Some("b")), ("vlan", Some("a"))]
        );
        assert_eq!(ends(&whole), [0, 0, 0, 2], "a row ends with the last list that it asks for");
        let some = plan(&kinds, &places, read(), asked(), part);
        assert_eq!((names(&some).len(), ends(&some)), (2, vec![0, 2]));
        let of_controller = plan(&kinds, &places, read(), vec![told("port", "b")], part);
        assert_eq!((names(&of_controller), ends(&of_controller)), (vec![("port", None)], vec![1]));
        let lost = vec![told("vlan", "gone"), told("ssid", "")];
        let nothing = plan(&kinds, &places, vec![begun("vlan", "gone", now)], lost, part);
        assert_eq!((nothing.due.len(), nothing.gone.len(), nothing.unplaced.len()), (0, 0, 2));
        let stopped = Row { stopped_at: Some(now), ..begun("port", "", now) };
        let waits = plan(&kinds, &places, vec![stopped], vec![told("port", "")], part);
        assert_eq!((waits.due.len(), waits.unplaced.len()), (0, 1));
    }

    #[test]
    fn lists_that_were_read_since_a_row_was_taken_are_not_read_for_it_again() {
        let clock = Clock::default();
        let now = clock.now();
        let ago = |secs| now - TimeDelta::seconds(secs);
        let place = |site_ref: &str| Place { site_ref: Some(site_ref.to_owned()), site_id: clock.new_id() };
        let (places, kinds) = ([place("a"), place("b"), place("c")], [filled("vlan", true)]);
        let part = When { now, interval_secs: 300, is_requested: false, scope: Scope::Part };
        let planned = |row: wanted::Row, begun: [i64; 3]| {
            let states = ["a", "b", "c"].into_iter().zip(begun);
            let states = states.map(|(site, secs)| self::begun("vlan", site, ago(secs))).collect();
            plan(&kinds, &places, states, vec![row], part)
        };
        let first = planned(told("vlan", ""), [30, 20, 10]);
        assert_eq!(
            (names(&first), ends(&first)),
            (vec![("vlan", Some("a")), ("vlan", Some("b")), ("vlan", Some("c"))], vec![0, 0, 1])
        );
        assert_eq!(first.begun.len(), 1, "no reading took it before");
        let taken = wanted::Row { taken_at: Some(ago(9)), ..told("vlan", "") };
        let next = planned(taken.clone(), [8, 20, 10]);
        assert_eq!((names(&next), ends(&next)), (vec![("vlan", Some("b")), ("vlan", Some("c"))], vec![0, 1]));
        assert!(next.begun.is_empty(), "its time is known");
        let last = planned(taken.clone(), [8, 7, 10]);
        assert_eq!((names(&last), ends(&last)), (vec![("vlan", Some("c"))], vec![1]));
        let over = planned(taken, [8, 7, 6]);
        assert_eq!((over.due.len(), over.unplaced.len()), (0, 1));
        assert_eq!(planned(told("vlan", "b"), [30, 20, 10]).begun.len(), 1, "also what one list ends");
        assert!(planned(told("ssid", ""), [30, 20, 10]).begun.is_empty(), "no list answers it");
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
        let due = plan(
            &kinds,
            &places,
            states,
            Vec::new(),
            When { now, interval_secs: 300, is_requested: true, scope: Scope::Whole },
        );
        assert_eq!((names(&due), due.stops), (vec![("ssid", None), ("port", None)], 1));
        let states = vec![begun("vlan", "", now), stopped("port", 61), begun("ssid", "", now)];
        let due = plan(
            &kinds,
            &places,
            states,
            Vec::new(),
            When { now, interval_secs: 0, is_requested: false, scope: Scope::Whole },
        );
        assert_eq!(names(&due)[0], ("port", None), "others may take all the time");
    }
}
