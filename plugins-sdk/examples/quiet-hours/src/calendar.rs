//! Local time without a database of time zones: an offset, and whose rule says when the clock is an hour ahead.

use serde::Deserialize;

const MINUTES_OF_DAY: i64 = 24 * 60;
const MS_OF_MINUTE: u64 = 60_000;

/// A day of the week, the first one being Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    const ALL: [Self; 7] = [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    /// The day before.
    pub(crate) fn before(self) -> Self {
        Self::ALL[(self as usize + 6) % 7]
    }
}

/// Whose rule says when the clock is an hour ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SummerTime {
    #[default]
    None,
    /// From the last Sunday of March to the last Sunday of October, both at 1:00 UTC (Directive 2000/84/EC).
    Eu,
    /// From the second Sunday of March at 2:00 to the first Sunday of November at 2:00, local time (15 U.S.C. 260a).
    Us,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Zone {
    /// In winter, ahead of UTC.
    pub(crate) offset_minutes: i64,
    #[serde(default)]
    pub(crate) summer_time: SummerTime,
}

/// A minute of a local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day_of_month: i64,
    pub(crate) day: Day,
    /// Since midnight.
    pub(crate) minute: i64,
}

impl std::fmt::Display for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { year, month, day_of_month, minute, .. } = self;
        write!(f, "{year:04}-{month:02}-{day_of_month:02}T{:02}:{:02}", minute / 60, minute % 60)
    }
}

impl Zone {
    /// What the local clock shows at this time, in milliseconds since 1970.
    pub(crate) fn local(self, at_ms: u64) -> Local {
        let utc = i64::try_from(at_ms / MS_OF_MINUTE).unwrap_or(i64::MAX / 2);
        let ahead = if self.is_summer(utc) { 60 } else { 0 };
        of_minutes(utc + self.offset_minutes + ahead)
    }

    /// Whether the clock is an hour ahead at this minute of UTC.
    fn is_summer(self, utc: i64) -> bool {
        let winter = utc + self.offset_minutes;
        let year = of_minutes(winter).year;
        let (begin, end) = match self.summer_time {
            SummerTime::None => return false,
            SummerTime::Eu => (sunday(year, 4, -1) + 60, sunday(year, 11, -1) + 60),
            // In winter time: the clock shows 2:00 of summer time at the end, which is 1:00.
            SummerTime::Us => {
                let of = |day: i64, hour: i64| day + hour * 60 - self.offset_minutes;
                (of(sunday(year, 3, 1), 2), of(sunday(year, 11, 0), 1))
            }
        };
        (begin..end).contains(&utc)
    }
}

/// The date and time of this many minutes since 1970.
fn of_minutes(minutes: i64) -> Local {
    let days = minutes.div_euclid(MINUTES_OF_DAY);
    let (year, month, day_of_month) = date(days);
    Local { year, month, day_of_month, day: weekday(days), minute: minutes.rem_euclid(MINUTES_OF_DAY) }
}

/// 1970-01-01 was a Thursday.
fn weekday(days: i64) -> Day {
    let index = usize::try_from((days + 3).rem_euclid(7)).unwrap_or_default();
    Day::ALL[index]
}

/// Minutes since 1970 at the beginning of a Sunday: the first one of the month and `weeks` more.
fn sunday(year: i64, month: i64, weeks: i64) -> i64 {
    let first = days_before(year, month);
    let ahead = 6 - weekday(first) as i64;
    (first + ahead + 7 * weeks) * MINUTES_OF_DAY
}

/// Days from 1970-01-01 to the first of a month of the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last one.
fn days_before(year: i64, month: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let months = (month + 9) % 12;
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * months + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of month of a day since 1970: the way back of [`days_before`].
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let months = (5 * of_year + 2) / 153;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * months + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BERLIN: Zone = Zone { offset_minutes: 60, summer_time: SummerTime::Eu };
    const DENVER: Zone = Zone { offset_minutes: -420, summer_time: SummerTime::Us };

    #[track_caller]
    fn shows(zone: Zone, at_s: u64, expected: &str, day: Day) {
        let local = zone.local(at_s * 1_000);
        assert_eq!((local.to_string().as_str(), local.day), (expected, day));
    }

    #[test]
    fn a_clock_shows_the_date_of_its_zone() {
        let utc = Zone { offset_minutes: 0, summer_time: SummerTime::None };
        shows(utc, 0, "1970-01-01T00:00", Day::Thu);
        shows(utc, 951_782_399, "2000-02-28T23:59", Day::Mon);
        shows(utc, 951_782_400, "2000-02-29T00:00", Day::Tue);
        shows(utc, 4_107_542_400, "2100-03-01T00:00", Day::Mon);
        shows(Zone { offset_minutes: -30, ..utc }, 0, "1969-12-31T23:30", Day::Wed);
        shows(Zone { offset_minutes: 345, ..utc }, 1_700_000_000, "2023-11-15T03:58", Day::Wed);
    }

    #[test]
    fn the_clock_is_an_hour_ahead_in_a_european_summer() {
        shows(BERLIN, 1_774_745_999, "2026-03-29T01:59", Day::Sun);
        shows(BERLIN, 1_774_746_000, "2026-03-29T03:00", Day::Sun);
        shows(BERLIN, 1_792_889_999, "2026-10-25T02:59", Day::Sun);
        shows(BERLIN, 1_792_890_000, "2026-10-25T02:00", Day::Sun);
    }

    #[test]
    fn the_clock_is_an_hour_ahead_in_an_american_summer() {
        shows(DENVER, 1_772_960_399, "2026-03-08T01:59", Day::Sun);
        shows(DENVER, 1_772_960_400, "2026-03-08T03:00", Day::Sun);
        shows(DENVER, 1_793_519_999, "2026-11-01T01:59", Day::Sun);
        shows(DENVER, 1_793_520_000, "2026-11-01T01:00", Day::Sun);
    }

    #[test]
    fn every_day_of_four_centuries_has_the_date_after_that_of_the_day_before() {
        let mut last = date(-1);
        for days in 0..146_097 {
            let (year, month, day) = date(days);
            assert_eq!(days_before(year, month) + day - 1, days, "{year}-{month}-{day}");
            let follows = (year, month, day) == (last.0, last.1, last.2 + 1)
                || (day == 1 && (year, month) == (last.0 + last.1 / 12, last.1 % 12 + 1));
            assert!(follows, "{last:?} {year}-{month}-{day}");
            last = (year, month, day);
        }
    }

    #[test]
    fn sunday_is_followed_by_monday() {
        assert_eq!((Day::Mon.before(), Day::Sun.before()), (Day::Sun, Day::Sat));
    }
}
