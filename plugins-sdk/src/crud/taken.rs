//! Values of the model, taken from what a vendor answered. What does not fit is not known, and left out.

use serde_json::{Map, Number, Value, json};

use super::binding::{Taken, TakenAs, TakenForm};
use super::field::{at, plain, put};
use super::units::seconds;

const ON: [&str; 6] = ["1", "true", "yes", "on", "enabled", "up"];
const OFF: [&str; 6] = ["0", "false", "no", "off", "disabled", "down"];
const SECONDS_OF_DAY: i64 = 86_400;
/// The last second of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// The fields of an object; those that are not known are left out.
pub(crate) fn fields<'t>(
    row: &Value,
    taken: impl IntoIterator<Item = (&'t String, &'t Taken)>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, taken) in taken {
        if let Some(value) = value(row, taken) {
            put(&mut out, name, value);
        }
    }
    out
}

/// A value; none where it is not known.
pub(crate) fn value(row: &Value, taken: &Taken) -> Option<Value> {
    match taken {
        Taken::Place(place) => text(at(row, place)?),
        Taken::As(how) => how.constant.clone().or_else(|| of_places(row, how)),
    }
}

fn of_places(row: &Value, how: &TakenAs) -> Option<Value> {
    let found = how.at.all().iter().find_map(|place| at(row, place).filter(|value| !is_empty(value)))?;
    let word = plain(found).to_lowercase();
    let meant = how.values.iter().find(|(name, _)| name.to_lowercase() == word).map(|(_, value)| value);
    if let Some(meant) = meant.or(how.otherwise.as_ref()) {
        return (!meant.is_null()).then(|| meant.clone());
    }
    if !how.values.is_empty() {
        return None;
    }
    formed(found, how)
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == ""
}

fn formed(found: &Value, how: &TakenAs) -> Option<Value> {
    match how.form {
        TakenForm::Json => Some(found.clone()),
        TakenForm::List => list(found, how),
        TakenForm::Flag => flag(found).map(Value::from),
        TakenForm::NotFlag => flag(found).map(|is_on| json!(!is_on)),
        TakenForm::Integer => integer(number(found, how)?).map(Value::from),
        TakenForm::Seconds => integer(seconds(&part(&plain(found), how)?)?).map(Value::from),
        TakenForm::Number => Number::from_f64(number(found, how)?).map(Value::Number),
        TakenForm::Mac => mac(&part(&plain(found), how)?).map(Value::from),
        TakenForm::Time => time(found, how).map(Value::from),
        TakenForm::Text => text(&Value::from(part(&plain(found), how)?)),
    }
}

/// A text that says something.
fn text(value: &Value) -> Option<Value> {
    let text = plain(value);
    (!text.is_empty()).then(|| Value::from(text))
}

/// The part of a text that is meant; none where a mark is missing that the part stands behind.
fn part(text: &str, how: &TakenAs) -> Option<String> {
    let rest = match &how.after {
        Some(mark) => text.split_once(mark.as_str())?.1,
        None => text,
    };
    let kept = how.before.as_ref().and_then(|mark| Some(rest.split_once(mark.as_str())?.0));
    Some(kept.unwrap_or(rest).trim().to_owned())
}

fn flag(value: &Value) -> Option<bool> {
    let word = plain(value).to_lowercase();
    let is = |words: &[&str]| words.contains(&word.as_str());
    if is(&ON) { Some(true) } else { is(&OFF).then_some(false) }
}

fn number(value: &Value, how: &TakenAs) -> Option<f64> {
    let number: f64 = part(&plain(value), how)?.parse().ok()?;
    Some(number * how.times.unwrap_or(1.0)).filter(|number| number.is_finite())
}

/// The whole number next to it, where it is one that JSON carries exactly.
fn integer(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let whole = number.round();
    // Within these bounds every whole number is exact.
    #[expect(clippy::cast_possible_truncation, reason = "it is within the bounds of i64")]
    (whole.abs() <= EXACT_MAX).then_some(whole as i64)
}

fn list(found: &Value, how: &TakenAs) -> Option<Value> {
    let items: Vec<Value> = match found {
        Value::Array(items) => items.clone(),
        Value::Object(parts) => parts.values().cloned().collect(),
        other => {
            let text = plain(other);
            let mark = how.separator.as_deref().unwrap_or(",");
            text.split(mark).map(|one| Value::from(one.trim())).collect()
        }
    };
    let one = |item: &Value| match how.items.get("") {
        Some(taken) => value(item, taken),
        None if how.items.is_empty() => text(&Value::from(part(&plain(item), how)?)),
        None => Some(fields(item, &how.items)).filter(|fields| !fields.is_empty()).map(Value::Object),
    };
    let known: Vec<Value> = items.iter().filter_map(one).collect();
    // A list of nothing says so; one of which nothing fits says nothing.
    (items.is_empty() || !known.is_empty()).then_some(Value::Array(known))
}

/// A hardware address as the model writes it; none where the text is none.
pub fn mac(text: &str) -> Option<String> {
    let digits: String =
        text.chars().filter(|c| !matches!(c, ':' | '-' | '.')).flat_map(char::to_lowercase).collect();
    let is_mac = digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pair = |at: usize| digits.get(at * 2..at * 2 + 2);
    is_mac.then(|| (0..6).filter_map(pair).collect::<Vec<_>>().join(":"))
}

fn time(found: &Value, how: &TakenAs) -> Option<String> {
    let text = plain(found);
    if text.contains('T') {
        return Some(text);
    }
    let seconds = integer(number(found, how)?)?;
    // To vendors, no time is 0.
    (1..=SECONDS_MAX).contains(&seconds).then(|| rfc3339(seconds))
}

/// A time of RFC 3339 in UTC, of seconds since 1970.
pub fn rfc3339(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(SECONDS_OF_DAY), seconds.rem_euclid(SECONDS_OF_DAY));
    // Days are counted from 0000-03-01, so that a leap day ends its year: eras of 400 years repeat.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(row: &Value, how: Value) -> Option<Value> {
        value(row, &serde_json::from_value(how).unwrap())
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, written) in [
            (1, "1970-01-01T00:00:01Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_764_028_799, "2025-11-24T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (SECONDS_MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), written);
        }
        let row = json!({ "ms": 1_764_028_799_000_u64, "none": 0, "text": "2025-11-24T23:59:59+01:00" });
        let at = |place: &str, times: f64| taken(&row, json!({ "at": place, "as": "time", "times": times }));
        assert_eq!(at("ms", 0.001), Some(json!("2025-11-24T23:59:59Z")));
        assert_eq!(at("none", 1.0), None);
        assert_eq!(at("text", 1.0), Some(json!("2025-11-24T23:59:59+01:00")));
        assert_eq!(at("ms", 1.0), None, "it is no time of people");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let row = json!({ "empty": "", "null": null, "word": "perhaps", "big": "1e300" });
        for how in [
            json!("empty"),
            json!("null"),
            json!("absent"),
            json!({ "at": "word", "as": "flag" }),
            json!({ "at": "word", "as": "integer" }),
            json!({ "at": "word", "as": "mac" }),
            json!({ "at": "big", "as": "integer" }),
            json!({ "at": "word", "values": { "yes": true } }),
            json!({ "at": "word", "values": { "perhaps": null } }),
            json!({ "at": "empty", "else": "unknown" }),
            json!({ "at": "word", "after": "/" }),
            json!({ "at": "empty", "as": "list" }),
        ] {
            assert_eq!(taken(&row, how.clone()), None, "{how}");
        }
    }

    #[test]
    fn values_take_the_form_that_is_asked_for() {
        let row = json!({
            "on": "Enabled", "off": 0, "mem": "4", "net": "192.0.2.1/24, 192.0.2.2/24", "mac": "AA-BB-CC-00-11-22",
            "state": "UP", "nested": { "deep": 7 }, "ranges": [{ "from": 1, "to": "9" }, {}], "one": ["a", "", "b"],
            "nobody": [], "up": "1d7h44m20s",
        });
        for (how, is) in [
            (json!({ "at": "on", "as": "flag" }), json!(true)),
            (json!({ "at": "off", "as": "not-flag" }), json!(true)),
            (json!({ "at": "mem", "as": "integer", "times": 1024 }), json!(4096)),
            (json!({ "at": ["absent", "nested.deep"], "as": "number" }), json!(7.0)),
            (json!({ "at": "net", "as": "list", "before": "/" }), json!(["192.0.2.1", "192.0.2.2"])),
            (json!({ "at": "mac", "as": "mac" }), json!("aa:bb:cc:00:11:22")),
            (json!({ "at": "state", "values": { "up": "up" }, "else": "unknown" }), json!("up")),
            (json!({ "at": "on", "values": { "up": "up" }, "else": "unknown" }), json!("unknown")),
            (
                json!({ "at": "ranges", "as": "list", "items": { "from": "from", "to": "to" } }),
                json!([{ "from": "1", "to": "9" }]),
            ),
            (json!({ "at": "one", "as": "list" }), json!(["a", "b"])),
            (
                json!({ "at": "ranges", "as": "list", "items": { "": { "at": "from", "as": "integer" } } }),
                json!([1]),
            ),
            (json!({ "at": "nobody", "as": "list" }), json!([])),
            (json!({ "constant": "wired" }), json!("wired")),
            (json!("nested.deep"), json!("7")),
            (json!({ "at": "up", "as": "seconds" }), json!(114_260)),
        ] {
            assert_eq!(taken(&row, how.clone()), Some(is), "{how}");
        }
    }
}
