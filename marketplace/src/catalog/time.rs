//! Times of signed files: UTC, whole seconds, one spelling.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

/// A moment, in UTC.
pub type Time = DateTime<Utc>;

const FORM: &str = "%Y-%m-%dT%H:%M:%SZ";

/// Returns a time as signed files have it, such as `2027-01-15T00:00:00Z`. Fractions of a second are left out.
#[must_use]
pub fn to_text(time: &Time) -> String {
    time.format(FORM).to_string()
}

pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(time))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = NaiveDateTime::parse_from_str(&text, FORM).map(|time| time.and_utc()).ok();
    // The parser takes signs, spaces, other lengths of years and second 60, too.
    let is_plain = |time: &Time| text.len() == 20 && time.timestamp_subsec_nanos() == 0;
    time.filter(|time| is_plain(time) && to_text(time) == text)
        .ok_or_else(|| D::Error::custom("a time is written as '2027-01-15T00:00:00Z'"))
}
