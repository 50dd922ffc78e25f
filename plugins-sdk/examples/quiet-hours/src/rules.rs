//! Which targets are to be off: pure functions over the settings and a minute of the local clock.

use serde::Deserialize;

use super::calendar::{Day, Local, Zone};

const MS_OF_MINUTE: u64 = 60_000;

/// The settings, as `config-schema` describes them.
#[derive(Debug, Deserialize)]
pub(crate) struct Settings {
    pub(crate) zone: Zone,
    pub(crate) targets: Vec<Target>,
    pub(crate) rules: Vec<Rule>,
}

/// Something that is switched.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) controller_id: String,
    pub(crate) site_ref: Option<String>,
    pub(crate) key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A radio of an access point.
    Radio,
    /// The power that a switch port gives.
    Port,
}

/// A span of the day in which targets are off.
#[derive(Debug, Deserialize)]
pub(crate) struct Rule {
    pub(crate) name: String,
    /// On which it begins.
    days: Vec<Day>,
    from: Time,
    to: Time,
    pub(crate) targets: Vec<String>,
}

/// Minutes since midnight, written as `22:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Time(i64);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused = || format!("'{text}' is no time of day such as 22:30");
        let (hour, minute) = text.split_once(':').ok_or_else(refused)?;
        match (hour.parse::<u8>(), minute.parse::<u8>()) {
            (Ok(hour @ 0..24), Ok(minute @ 0..60)) => Ok(Self(i64::from(hour) * 60 + i64::from(minute))),
            _ => Err(refused()),
        }
    }
}

impl Rule {
    /// Whether it holds at this minute. A span that ends at its beginning lasts a whole day.
    fn holds(&self, now: Local) -> bool {
        let minute = Time(now.minute);
        let begins = |day: Day| self.days.contains(&day);
        if self.from < self.to {
            return begins(now.day) && (self.from..self.to).contains(&minute);
        }
        (begins(now.day) && minute >= self.from) || (begins(now.day.before()) && minute < self.to)
    }
}

impl Settings {
    /// The first name that a rule has and no target, or that two targets have.
    pub(crate) fn problem(&self) -> Option<String> {
        let count = |name: &str| self.targets.iter().filter(|target| target.name == name).count();
        if let Some(twice) = self.targets.iter().find(|target| count(&target.name) > 1) {
            return Some(format!("two targets have the name '{}'", twice.name));
        }
        self.rules.iter().find_map(|rule| {
            let unknown = rule.targets.iter().find(|name| count(name) == 0)?;
            Some(format!("the rule '{}' names the target '{unknown}', which there is not", rule.name))
        })
    }

    /// The next time, in milliseconds since 1970, at which another set of rules holds than at this one; `None` where that is
    /// always the same.
    pub(crate) fn next_change_ms(&self, at_ms: u64) -> Option<u64> {
        let holding = |at_ms: u64| {
            let now = self.zone.local(at_ms);
            self.rules.iter().map(move |rule| rule.holds(now)).collect::<Vec<_>>()
        };
        let before = holding(at_ms);
        let first = at_ms / MS_OF_MINUTE + 1;
        // Rules repeat every week; the clock may be changed once in it.
        (first..=first + 8 * 24 * 60).map(|minute| minute * MS_OF_MINUTE).find(|at| holding(*at) != before)
    }

    /// The rules that want a target off at this minute. It is to be on where there are none.
    pub(crate) fn off_by(&self, target: &Target, now: Local) -> Vec<&str> {
        let rules = self.rules.iter().filter(|rule| rule.targets.contains(&target.name) && rule.holds(now));
        rules.map(|rule| rule.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(rules: &Value) -> Settings {
        let target = |name: &str| json!({ "name": name, "kind": "radio", "controller_id": "c", "key": name });
        let zone = json!({ "offset_minutes": 0 });
        serde_json::from_value(json!({ "zone": zone, "targets": [target("a"), target("b")], "rules": rules }))
            .unwrap()
    }

    /// Names of the targets that are off at this minute after Monday, 2026-11-23, 0:00 UTC.
    fn off(settings: &Settings, minutes: u64) -> Vec<&str> {
        let now = settings.zone.local((1_795_392_000 + minutes * 60) * 1_000);
        let off = settings.targets.iter().filter(|target| !settings.off_by(target, now).is_empty());
        off.map(|target| target.name.as_str()).collect()
    }

    const HOUR: u64 = 60;
    const DAY: u64 = 24 * HOUR;

    #[test]
    fn a_span_begins_with_its_first_minute_and_ends_before_its_last() {
        let lunch =
            json!([{ "name": "Lunch", "days": ["mon"], "from": "12:00", "to": "13:00", "targets": ["a"] }]);
        let settings = settings(&lunch);
        for (minutes, expected) in [
            (12 * HOUR - 1, vec![]),
            (12 * HOUR, vec!["a"]),
            (13 * HOUR - 1, vec!["a"]),
            (13 * HOUR, vec![]),
            (DAY + 12 * HOUR, vec![]),
        ] {
            assert_eq!(off(&settings, minutes), expected, "{minutes}");
        }
    }

    #[test]
    fn a_night_belongs_to_the_day_on_which_it_begins() {
        let night = json!([{ "name": "Night", "days": ["mon", "sun"], "from": "22:00", "to": "06:00", "targets": ["a", "b"] }]);
        let settings = settings(&night);
        for (minutes, is_off) in [
            // Of the Sunday before.
            (6 * HOUR - 1, true),
            (6 * HOUR, false),
            (22 * HOUR, true),
            (DAY + 5 * HOUR, true),
            // Of Tuesday, which the rule does not name.
            (DAY + 22 * HOUR, false),
            (2 * DAY + 5 * HOUR, false),
        ] {
            assert_eq!(off(&settings, minutes).len(), if is_off { 2 } else { 0 }, "{minutes}");
        }
    }

    #[test]
    fn a_span_that_ends_at_its_beginning_lasts_a_day() {
        let whole =
            json!([{ "name": "Tuesday", "days": ["tue"], "from": "08:00", "to": "08:00", "targets": ["b"] }]);
        let settings = settings(&whole);
        let at = [DAY + 8 * HOUR - 1, DAY + 8 * HOUR, 2 * DAY + 8 * HOUR - 1, 2 * DAY + 8 * HOUR];
        assert_eq!(at.map(|minutes| off(&settings, minutes).len()), [0, 1, 1, 0]);
    }

    #[test]
    fn names_are_those_of_targets_and_unlike() {
        let rule = |target: &str| json!([{ "name": "R", "days": ["mon"], "from": "00:00", "to": "01:00", "targets": [target] }]);
        assert_eq!(settings(&rule("a")).problem(), None);
        assert!(settings(&rule("c")).problem().unwrap().contains("'c'"));
        let mut twice = settings(&rule("a"));
        twice.targets[1].name = "a".to_owned();
        assert!(twice.problem().unwrap().contains("two targets"));
        for bad in ["24:00", "12:60", "noon", "1200"] {
            assert!(Time::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
