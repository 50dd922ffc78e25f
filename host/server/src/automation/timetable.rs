//! When a schedule is due: five fields of cron, read in a time zone of the IANA database.
//!
//! A time that the clocks skip in spring is the first moment after the gap; one that they repeat in autumn is the
//! first of the two. Times of wildcards (`*/15`) follow the real time: skipped in the gap, and both of the repeated.

use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use heddle_core::Timestamp;

/// Longest cron, in characters.
const CRON_CHARS_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Timetable {
    cron: Cron,
    zone: Tz,
}

impl Timetable {
    /// # Errors
    /// The field that is wrong, and how.
    pub(super) fn parse(cron: &str, zone: &str) -> Result<Self, (&'static str, String)> {
        let zone: Tz = zone.parse().map_err(|_| {
            ("time_zone", format!("'{zone}' is not a time zone; give one such as 'Europe/Berlin' or 'UTC'"))
        })?;
        if cron.chars().count() > CRON_CHARS_MAX || cron.split_whitespace().count() != 5 {
            let message = "must have five fields: minute, hour, day, month, weekday, such as '30 2 * * mon-fri'";
            return Err(("cron", message.to_owned()));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(cron).map_err(|error| ("cron", format!("is not a cron pattern: {error}")))?;
        Ok(Self { cron, zone })
    }

    /// The next time behind this one; `None` when there is none, as for the 30th of February.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let found = self.cron.find_next_occurrence(&after.with_timezone(&self.zone), false).ok()?;
        Some(found.to_utc())
    }

    pub(super) fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next(after), |last| self.next(*last)).take(count).collect()
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
        check("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        check("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:29:00Z", &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"]);
    }

    #[test]
    fn a_time_that_the_clocks_repeat_is_the_first_of_the_two() {
        // 02:00 to 03:00 of 25 October 2026 is there twice, first at 00:00 UTC, then at 01:00 UTC.
        check("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        check("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"]);
    }

    #[test]
    fn fields_mean_what_they_do_elsewhere() {
        check("0 9 * * mon-fri", "UTC", "2026-11-20T10:00:00Z", &["2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"]);
        check("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]);
        check("15 3 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-01T21:45:00Z"]);
        // A time that is due is not its own next.
        check("0 9 * * *", "UTC", "2026-11-20T09:00:00Z", &["2026-11-21T09:00:00Z"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (cron, zone, field) in [
            ("* * * *", "UTC", "cron"), ("* * * * * *", "UTC", "cron"), ("60 * * * *", "UTC", "cron"),
            ("@daily", "UTC", "cron"), ("x y z a b", "UTC", "cron"), ("* * * * *", "Mars/Olympus", "time_zone"),
        ] {
            assert_eq!(Timetable::parse(cron, zone).unwrap_err().0, field, "{cron} {zone}");
        }
        assert_eq!(Timetable::parse("0 0 30 2 *", "UTC").unwrap().next("2026-01-01T00:00:00Z".parse().unwrap()), None);
    }
}
