//! When a schedule is due: five fields of cron, read in a time zone of the IANA database.
//!
//! A time that the clocks skip in spring is the first moment after the gap; one that they repeat in autumn is the
//! first of the two. Times of wildcards (`*/15`) follow the real time: skipped in the gap, and both of the repeated.

use chrono::{Datelike as _, Days, MappedLocalTime, NaiveDate, NaiveDateTime, TimeDelta, TimeZone as _};
use chrono_tz::Tz;
use heddle_core::Timestamp;

/// Longest cron, in characters.
pub(super) const CRON_CHARS_MAX: usize = 100;
/// Most characters of a time zone's name; the longest of the IANA database has 32.
pub(super) const TIME_ZONE_CHARS_MAX: usize = 64;
/// The 29th of February is never further away.
const DAYS_MAX: u64 = 9 * 366;
/// The clocks never skip more of a day.
const GAP_MINUTES_MAX: i64 = 180;
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Times by an expression of five fields in a time zone.
#[derive(Debug)]
pub struct Timetable {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
    zone: Tz,
}

/// The values of one field, as bits.
#[derive(Debug, Clone, Copy)]
struct Field {
    bits: u64,
    has_wildcard: bool,
}

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
struct Range {
    name: &'static str,
    min: u32,
    max: u32,
    /// Words for values from `min` on.
    words: &'static [&'static str],
}

const MINUTE: Range = Range { name: "minute", min: 0, max: 59, words: &[] };
const HOUR: Range = Range { name: "hour", min: 0, max: 23, words: &[] };
const DAY: Range = Range { name: "day", min: 1, max: 31, words: &[] };
const MONTH: Range = Range { name: "month", min: 1, max: 12, words: MONTHS };
/// 7 is Sunday, as 0 is.
const WEEKDAY: Range = Range { name: "weekday", min: 0, max: 7, words: WEEKDAYS };

impl Field {
    fn has(self, value: u32) -> bool {
        self.bits & (1 << value) != 0
    }

    fn values(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |value| self.has(*value))
    }
}

impl Range {
    /// Reads `*`, `*/5`, `1-5`, `1-5/2`, `mon,wed`.
    fn parse(self, text: &str) -> Result<Field, String> {
        let mut field = Field { bits: 0, has_wildcard: false };
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => {
                    (range, step.parse().ok().filter(|step| (1..=self.max).contains(step)))
                }
                None => (part, Some(1)),
            };
            let bounds = match range.split_once('-') {
                _ if range == "*" => Some((self.min, self.max)),
                Some((from, to)) => self.value(from).zip(self.value(to)),
                // A step needs something to step through.
                None if part.contains('/') => None,
                None => self.value(range).map(|value| (value, value)),
            };
            let (Some((from, to)), Some(step)) = (bounds.filter(|(from, to)| from <= to), step) else {
                return Err(self.refusal(part));
            };
            field.has_wildcard |= range == "*";
            for value in (from..=to).step_by(step as usize) {
                field.bits |= 1 << value;
            }
        }
        Ok(field)
    }

    fn value(self, text: &str) -> Option<u32> {
        let word = self.words.iter().position(|word| word.eq_ignore_ascii_case(text));
        let named = word.and_then(|at| u32::try_from(at).ok()).map(|at| at + self.min);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = || if is_number { text.parse().ok() } else { None };
        named.or_else(number).filter(|value| (self.min..=self.max).contains(value))
    }

    fn refusal(self, part: &str) -> String {
        let Self { name, min, max, .. } = self;
        format!("'{part}' is no {name}: give {min} to {max}, '*', '*/5', '1-5' or a list of such")
    }
}

impl Timetable {
    /// Reads an expression and the name of a time zone.
    ///
    /// # Errors
    /// The field that is wrong, and how.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, (&'static str, String)> {
        if zone.chars().count() > TIME_ZONE_CHARS_MAX {
            return Err(("time_zone", format!("must not have more than {TIME_ZONE_CHARS_MAX} characters")));
        }
        let zone: Tz = zone.parse().map_err(|_| {
            ("time_zone", format!("'{zone}' is not a time zone; give one such as 'Europe/Berlin' or 'UTC'"))
        })?;
        if cron.chars().count() > CRON_CHARS_MAX {
            return Err(("cron", format!("must not have more than {CRON_CHARS_MAX} characters")));
        }
        let fields: Vec<&str> = cron.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            let message =
                "must have five fields: minute, hour, day, month, weekday, such as '30 2 * * mon-fri'";
            return Err(("cron", message.to_owned()));
        };
        let read = |range: Range, text: &str| range.parse(text).map_err(|message| ("cron", message));
        let mut weekdays = read(WEEKDAY, weekday)?;
        if weekdays.has(7) {
            weekdays.bits |= 1;
        }
        Ok(Self {
            minutes: read(MINUTE, minute)?,
            hours: read(HOUR, hour)?,
            days: read(DAY, day)?,
            months: read(MONTH, month)?,
            weekdays,
            zone,
        })
    }

    /// Returns the next time after this one; `None` when there is none, as for the 30th of February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let first = after.with_timezone(&self.zone).date_naive();
        (0..DAYS_MAX)
            .filter_map(|offset| first.checked_add_days(Days::new(offset)))
            .filter(|date| self.has_day(*date))
            .find_map(|date| self.times_of(date).into_iter().find(|time| *time > after))
    }

    /// Returns the next times after this one, at most so many.
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next(after), |last| self.next(*last)).take(count).collect()
    }

    /// Whether the day fits. If a day and a weekday are both given, one of them is enough.
    fn has_day(&self, date: NaiveDate) -> bool {
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().num_days_from_sunday());
        let fits = if self.days.has_wildcard || self.weekdays.has_wildcard {
            day && weekday
        } else {
            day || weekday
        };
        self.months.has(date.month()) && fits
    }

    /// The times of a day there, in their real order.
    fn times_of(&self, date: NaiveDate) -> Vec<Timestamp> {
        let is_fixed = !self.minutes.has_wildcard && !self.hours.has_wildcard;
        let mut times = Vec::new();
        for hour in self.hours.values() {
            for minute in self.minutes.values() {
                let Some(local) = date.and_hms_opt(hour, minute, 0) else { continue };
                match self.zone.from_local_datetime(&local) {
                    MappedLocalTime::Single(time) => times.push(time.to_utc()),
                    MappedLocalTime::Ambiguous(first, second) => {
                        times.push(first.to_utc());
                        if !is_fixed {
                            times.push(second.to_utc());
                        }
                    }
                    MappedLocalTime::None if is_fixed => times.extend(self.after_gap(local)),
                    MappedLocalTime::None => {}
                }
            }
        }
        times.sort_unstable();
        times.dedup();
        times
    }

    fn after_gap(&self, local: NaiveDateTime) -> Option<Timestamp> {
        (1..=GAP_MINUTES_MAX)
            .filter_map(|minutes| {
                self.zone.from_local_datetime(&(local + TimeDelta::minutes(minutes))).earliest()
            })
            .map(|time| time.to_utc())
            .next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cron: &str, zone: &str, after: &str, expected: &[&str]) {
        let timetable = Timetable::parse(cron, zone).unwrap();
        let after: Timestamp = after.parse().unwrap();
        let found = timetable.upcoming(after, expected.len());
        let expected: Vec<Timestamp> = expected.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(found, expected, "{cron} {zone}");
    }

    #[test]
    fn a_time_that_the_clocks_skip_is_the_first_moment_after() {
        // In Berlin 02:00 to 03:00 of 29 March 2026 does not exist: 03:00 there is 01:00 UTC.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        );
        check(
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:29:00Z",
            &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"],
        );
    }

    #[test]
    fn a_time_that_the_clocks_repeat_is_the_first_of_the_two() {
        // 02:00 to 03:00 of 25 October 2026 is there twice, first at 00:00 UTC, then at 01:00 UTC.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
        check(
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
        );
    }

    #[test]
    fn fields_mean_what_they_do_elsewhere() {
        check(
            "0 9 * * mon-fri",
            "UTC",
            "2026-11-20T10:00:00Z",
            &["2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"],
        );
        check("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]);
        check("15 3 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-01T21:45:00Z"]);
        check(
            "0 0 13 * fri",
            "UTC",
            "2026-11-12T00:00:00Z",
            &["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"],
        );
        check("0 0 * * 7", "UTC", "2026-11-20T00:00:00Z", &["2026-11-22T00:00:00Z"]);
        check(
            "1-5/2,58 4 1 Jan *",
            "UTC",
            "2026-12-31T00:00:00Z",
            &["2027-01-01T04:01:00Z", "2027-01-01T04:03:00Z", "2027-01-01T04:05:00Z", "2027-01-01T04:58:00Z"],
        );
        // A time that is due is not its own next.
        check("0 9 * * *", "UTC", "2026-11-20T09:00:00Z", &["2026-11-21T09:00:00Z"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (cron, zone, field) in [
            ("* * * *", "UTC", "cron"),
            ("* * * * * *", "UTC", "cron"),
            ("60 * * * *", "UTC", "cron"),
            ("@daily", "UTC", "cron"),
            ("*/0 * * * *", "UTC", "cron"),
            ("5-1 * * * *", "UTC", "cron"),
            ("5/2 * * * *", "UTC", "cron"),
            ("* * 0 * *", "UTC", "cron"),
            ("* * * * 8", "UTC", "cron"),
            ("+5 * * * *", "UTC", "cron"),
            ("1,,2 * * * *", "UTC", "cron"),
            ("x y z a b", "UTC", "cron"),
            ("* * * * *", "Mars/Olympus", "time_zone"),
        ] {
            assert_eq!(Timetable::parse(cron, zone).unwrap_err().0, field, "{cron} {zone}");
        }
        assert_eq!(
            Timetable::parse("0 0 30 2 *", "UTC").unwrap().next("2026-01-01T00:00:00Z".parse().unwrap()),
            None
        );
    }
}
