//! What each Connection must do about each event, computed from the test's own data: it knows none of the service's
//! code.

use std::collections::BTreeMap;

use heddle_core::OrgId;
use heddle_core::event::EventType;
use serde_json::{Value, json};

use crate::support::{Random, event_type};

/// An event as it was written.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) event_type: EventType,
    pub(super) name: String,
    pub(super) level: u64,
    pub(super) zone: Option<&'static str>,
}

const ZONES: &[Option<&str>] = &[Some("north"), Some("south"), Some("east"), None];
/// As often as they stand here.
const TYPES: &[&str] = &[
    "device.offline",
    "device.offline",
    "device.status.changed",
    "device.status.changed",
    "controller.status.changed",
    "controller.status.changed",
    "device.state_changed",
    "user.updated",
    "ingest.external",
];

impl Fact {
    pub(super) fn random(random: &mut Random, name: String) -> Self {
        let (event_type, zone) = (event_type(random.pick::<&str>(TYPES)), *random.pick(ZONES));
        Self { event_type, name, level: random.next(50), zone }
    }

    pub(super) fn plain(event_type: EventType, name: &str) -> Self {
        Self { event_type, name: name.to_owned(), level: 0, zone: None }
    }

    /// What happened outside names its fields below `data`.
    fn is_external(&self) -> bool {
        self.event_type == event_type("ingest.external")
    }

    pub(super) fn fields(&self) -> Value {
        let mut fields = json!({ "level": self.level });
        if let Some(zone) = self.zone {
            fields["zone"] = json!(zone);
        }
        fields
    }

    pub(super) fn payload(&self) -> Value {
        let mut payload = if self.is_external() { json!({ "data": self.fields() }) } else { self.fields() };
        payload["name"] = json!(self.name);
        payload
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    LevelBelow(u64),
    LevelFrom(u64),
    ZoneIs(&'static str),
    ZoneIsNot(&'static str),
    ZoneIn(&'static [&'static str]),
    ZoneNotIn(&'static [&'static str]),
    ZoneThere,
    ZoneMissing,
    NameEnds(&'static str),
    NameHas(&'static str),
    TypeIs(EventType),
}

impl Test {
    fn random(random: &mut Random) -> Self {
        match random.next(10) {
            0 => Self::LevelBelow(random.next(30)),
            1 => Self::LevelFrom(20 + random.next(30)),
            2 => Self::ZoneIs("north"),
            3 => Self::ZoneIsNot("south"),
            4 => Self::ZoneIn(&["north", "east"]),
            5 => Self::ZoneNotIn(&["north", "south"]),
            6 => Self::ZoneThere,
            7 => Self::ZoneMissing,
            8 => Self::NameEnds("7"),
            _ => Self::NameHas("3"),
        }
    }

    fn body(self, path: &str) -> Value {
        let (field, operator, value) = match self {
            Self::LevelBelow(level) => ("level", "lt", json!(level)),
            Self::LevelFrom(level) => ("level", "gte", json!(level)),
            Self::ZoneIs(zone) => ("zone", "eq", json!(zone)),
            Self::ZoneIsNot(zone) => ("zone", "ne", json!(zone)),
            Self::ZoneIn(zones) => ("zone", "in", json!(zones)),
            Self::ZoneNotIn(zones) => ("zone", "not_in", json!(zones)),
            Self::ZoneThere => ("zone", "exists", Value::Null),
            Self::ZoneMissing => ("zone", "not_exists", Value::Null),
            Self::NameEnds(text) => ("name", "ends_with", json!(text)),
            Self::NameHas(text) => ("name", "contains", json!(text)),
            Self::TypeIs(event_type) => ("event_type", "eq", json!(event_type)),
        };
        let field =
            if matches!(field, "level" | "zone") { format!("{path}{field}") } else { field.to_owned() };
        json!({ "field": field, "operator": operator, "value": value })
    }

    /// Whether it holds, for a Connection that looks for fields below `data`, or not below it.
    fn holds(self, fact: &Fact, is_below: bool) -> bool {
        let level = (fact.is_external() == is_below).then_some(fact.level);
        let zone = fact.zone.filter(|_| fact.is_external() == is_below);
        match self {
            Self::LevelBelow(limit) => level.is_some_and(|level| level < limit),
            Self::LevelFrom(limit) => level.is_some_and(|level| level >= limit),
            Self::ZoneIs(wanted) => zone == Some(wanted),
            Self::ZoneIsNot(wanted) => zone != Some(wanted),
            Self::ZoneIn(wanted) => zone.is_some_and(|zone| wanted.contains(&zone)),
            Self::ZoneNotIn(wanted) => zone.is_none_or(|zone| !wanted.contains(&zone)),
            Self::ZoneThere => zone.is_some(),
            Self::ZoneMissing => zone.is_none(),
            Self::NameEnds(text) => fact.name.ends_with(text),
            Self::NameHas(text) => fact.name.contains(text),
            Self::TypeIs(event_type) => fact.event_type == event_type,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Log,
    Stage,
}

/// A Connection of the test.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub(super) name: String,
    pub(super) org: OrgId,
    pattern: &'static str,
    is_or: bool,
    tests: Vec<Test>,
    pub(super) cooldown_secs: i64,
    is_paused: bool,
    pub(super) work: Work,
}

/// The outcome of an event at a Connection that waits for its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Fires,
    /// It does not; the reason begins so.
    Skipped(String),
    /// The conditions hold, and the clock decides.
    Timed,
}

impl Wire {
    /// The fields of its body, with a place for the controller that it writes to.
    pub(super) fn body(&self, controller: &str) -> Value {
        let path = if self.pattern.starts_with("ingest.") { "data." } else { "" };
        let conditions: Vec<Value> = self.tests.iter().map(|test| test.body(path)).collect();
        let steps = match self.work {
            Work::Log => json!([{
                "operation_id": "fabric.log",
                "params": { "message": format!("did {} {{{{event.seq}}}}", self.name) },
            }]),
            Work::Stage => json!([{
                "operation_id": "openwrt.firewall.rule.create",
                "params": { "controller_id": controller, "payload": {
                    "name": format!("{}-{{{{trigger.name}}}}", self.name),
                    "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
                } },
            }]),
        };
        json!({
            "name": self.name,
            "organization_id": self.org,
            "source_event": self.pattern,
            "conditions": { "logic": if self.is_or { "or" } else { "and" }, "conditions": conditions },
            "cooldown": self.cooldown_secs,
            "state": if self.is_paused { "paused" } else { "enabled" },
            "steps": steps,
        })
    }

    /// Whether it waits for events of this type.
    fn covers(&self, event_type: &str) -> bool {
        let mut pattern = self.pattern.split('.');
        let mut words = event_type.split('.');
        loop {
            match (pattern.next(), words.next()) {
                (Some("*"), Some(_)) | (None, None) => return true,
                (Some(wanted), Some(word)) if wanted == word => {}
                _ => return false,
            }
        }
    }

    /// The outcome of these events, the organization's in their order, by number.
    pub(super) fn fates(&self, events: &[(i64, &Fact)]) -> BTreeMap<i64, Fate> {
        let mut fates = BTreeMap::new();
        let mut has_fired = false;
        for (seq, fact) in events {
            if self.is_paused || !self.covers(fact.event_type.as_str()) {
                continue;
            }
            let fate = match self.refusal(fact) {
                Some(reason) => Fate::Skipped(reason),
                None if self.cooldown_secs == 0 => Fate::Fires,
                None if self.cooldown_secs < FOR_THE_TEST => Fate::Timed,
                None if has_fired => Fate::Skipped("cooldown: ".to_owned()),
                None => Fate::Fires,
            };
            has_fired |= fate == Fate::Fires;
            fates.insert(*seq, fate);
        }
        fates
    }

    fn refusal(&self, fact: &Fact) -> Option<String> {
        let is_below = self.pattern.starts_with("ingest.");
        let mut failing = (0..).zip(&self.tests).filter(|(_, test)| !test.holds(fact, is_below));
        if self.is_or {
            let count = self.tests.len();
            let is_refused = count > 0 && failing.count() == count;
            is_refused.then(|| format!("none of {count} conditions holds: "))
        } else {
            failing.next().map(|(at, _): (usize, _)| format!("condition {at} is false: "))
        }
    }
}

/// A cooldown that outlasts the test.
const FOR_THE_TEST: i64 = 86_400;

/// How a Connection chooses among the events that it waits for.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Every,
    /// So many conditions, all of which must hold.
    All(usize),
    /// So many, of which one must hold.
    Any(usize),
    /// Every one, with a cooldown of so many seconds.
    EveryAfter(i64),
    Paused,
    /// A change for a few of them.
    Staging,
}

/// Most of what happens is of no interest: about one and a quarter of an organization's Connections fire for an event.
const CHOICES: &[(&str, Choice)] = &[
    ("*", Choice::All(3)),
    ("controller.*", Choice::All(2)),
    ("device.*", Choice::All(2)),
    ("device.*", Choice::Paused),
    ("device.status.*", Choice::All(1)),
    ("device.status.*", Choice::Any(2)),
    ("device.status.changed", Choice::All(2)),
    ("device.status.changed", Choice::All(1)),
    ("device.state_changed", Choice::EveryAfter(2)),
    ("device.state_changed", Choice::Any(2)),
    ("device.offline", Choice::All(1)),
    ("device.offline", Choice::All(1)),
    ("device.offline", Choice::All(2)),
    ("device.offline", Choice::All(3)),
    ("device.offline", Choice::EveryAfter(FOR_THE_TEST)),
    ("device.offline", Choice::Staging),
    ("controller.status.*", Choice::All(2)),
    ("controller.status.changed", Choice::EveryAfter(2)),
    ("controller.change.applied", Choice::Every),
    ("user.*", Choice::All(1)),
    ("user.updated", Choice::EveryAfter(FOR_THE_TEST)),
    ("ingest.*", Choice::All(1)),
    ("ingest.external", Choice::Every),
    ("ingest.external", Choice::Any(2)),
    ("automation.*", Choice::Every),
];

/// Connections of an organization. Those of the first write, and none of them hears of what they wrote.
pub(super) fn wires(random: &mut Random, at: usize, org: OrgId) -> Vec<Wire> {
    let is_first = at == 0;
    let mut wires = Vec::new();
    for (number, (pattern, choice)) in CHOICES.iter().enumerate() {
        let mut some = |count: usize| (0..count).map(|_| Test::random(random)).collect();
        let tests = match choice {
            Choice::Every | Choice::EveryAfter(_) | Choice::Paused => Vec::new(),
            Choice::All(count) | Choice::Any(count) => some(*count),
            Choice::Staging => {
                vec![Test::NameEnds("7"), Test::LevelBelow(12), Test::TypeIs(event_type("device.offline"))]
            }
        };
        wires.push(Wire {
            name: format!("w-{at}-{number}"),
            org,
            pattern: match *pattern {
                "*" if is_first => "device.*",
                "controller.*" if is_first => "controller.status.*",
                pattern => pattern,
            },
            is_or: matches!(choice, Choice::Any(_)),
            tests,
            cooldown_secs: if let Choice::EveryAfter(secs) = choice { *secs } else { 0 },
            is_paused: matches!(choice, Choice::Paused),
            work: if is_first && matches!(choice, Choice::Staging) { Work::Stage } else { Work::Log },
        });
    }
    wires
}
