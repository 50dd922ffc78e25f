//! Truth values, numbers with units, and times, as vendors write them in texts.

use serde_json::{Value, json};

use super::binding::FieldType;
use super::field::plain;

/// Seconds of the letters that stand behind a number of a time. The longer ones come first.
const TIMES: [(&str, f64); 8] = [
    ("ms", 0.001),
    ("us", 0.000_001),
    ("ns", 0.000_000_001),
    ("w", 604_800.0),
    ("d", 86_400.0),
    ("h", 3_600.0),
    ("m", 60.0),
    ("s", 1.0),
];
/// What a unit multiplies with. The longer ones come first.
const SIZES: [(&str, f64); 8] = [
    ("KiB", 1_024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("k", 1_000.0),
    ("K", 1_000.0),
    ("M", 1_000_000.0),
    ("G", 1_000_000_000.0),
];
/// The largest number of which JSON carries every digit.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A word that says yes or no.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "yes" | "1" => Some(true),
        _ => is_no(text).then_some(false),
    }
}

pub(crate) fn is_no(text: &str) -> bool {
    matches!(text, "false" | "no" | "0")
}

/// A whole number, with a unit behind it or without.
pub(crate) fn size(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let unit = SIZES.iter().find_map(|(unit, times)| Some((text.strip_suffix(unit)?, times)));
    let (digits, times) = unit?;
    let whole = (digits.parse::<f64>().ok()? * times).round();
    // Within these bounds every whole number is exact.
    #[expect(clippy::cast_possible_truncation, reason = "it is within the bounds of i64")]
    (whole.abs() < EXACT_MAX).then_some(whole as i64)
}

/// The seconds of `1d7h44m20s`, `00:10:00`, or of a number alone; none where the text is no time.
#[must_use]
pub fn seconds(text: &str) -> Option<f64> {
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let (mut sum, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if rest[end..].starts_with(':') {
            sum += clock(rest)?;
            break;
        }
        let number: f64 = rest[..end].parse().ok()?;
        let behind = &rest[end..];
        let unit = TIMES.iter().find_map(|(unit, times)| Some((behind.strip_prefix(unit)?, *times)));
        // Only the last number may stand without a unit.
        let (next, times) = unit.or((behind.is_empty()).then_some(("", 1.0)))?;
        sum += number * times;
        rest = next;
    }
    (!text.is_empty()).then_some(sign * sum)
}

/// Seconds of `hours:minutes:seconds`.
fn clock(text: &str) -> Option<f64> {
    let parts: Vec<f64> = text.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    (parts.len() <= 3).then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + part))
}

/// A number that is whole where it can be.
pub(crate) fn number(value: f64) -> Value {
    // A thousandth of a millisecond is finer than vendors count.
    let value = (value * 1e6).round() / 1e6;
    let is_whole = value.fract() == 0.0 && value.abs() < EXACT_MAX;
    #[expect(clippy::cast_possible_truncation, reason = "it is used where nothing is cut off")]
    let whole = value as i64;
    if is_whole { json!(whole) } else { json!(value) }
}

/// One value as a vendor's text.
pub(crate) fn written(kind: FieldType, value: &Value) -> String {
    match (kind, value) {
        (FieldType::Bool, Value::Bool(is_on)) => is_on.to_string(),
        (FieldType::Duration, Value::Number(seconds)) => time(seconds.as_f64().unwrap_or_default()),
        (_, value) => plain(value),
    }
}

/// Seconds as vendors take them, which count parts of a second in units of their own.
fn time(seconds: f64) -> String {
    let micros = (seconds * 1e6).round();
    let unit = [(1e6, "s"), (1e3, "ms"), (1.0, "us")].into_iter().find(|(unit, _)| micros % unit == 0.0);
    let (unit, letters) = unit.unwrap_or((1.0, "us"));
    format!("{}{letters}", micros / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crud::binding::Field;
    use crate::crud::field::{decode, encode, normal};

    fn field(binding: Value) -> Field {
        serde_json::from_value(binding).unwrap()
    }

    #[test]
    fn times_have_one_form_however_they_are_written() {
        for (text, is) in [
            ("30s", json!(30)),
            ("1m30s", json!(90)),
            ("1d7h44m20s", json!(114_260)),
            ("2w3d", json!(1_468_800)),
            ("00:10:00", json!(600)),
            ("1d00:00:10", json!(86_410)),
            ("600", json!(600)),
            ("300ms", json!(0.3)),
            ("3s300ms", json!(3.3)),
            ("-1h", json!(-3_600)),
            ("none-static", json!("none-static")),
            ("auto", json!("auto")),
            ("", Value::Null),
        ] {
            assert_eq!(decode(&field(json!("duration")), &json!(text)), is, "{text}");
        }
        for (value, text) in [
            (json!(90), "90s"),
            (json!(0.3), "300ms"),
            (json!(3.3), "3300ms"),
            (json!("auto"), "auto"),
            (json!(0), "0s"),
        ] {
            let duration = field(json!("duration"));
            assert_eq!(encode(&duration, &value), json!(text));
            assert_eq!(decode(&duration, &json!(text)), value, "{text}");
        }
        assert_eq!(normal(&field(json!("duration")), &json!("1m30s")), json!(90));
    }

    #[test]
    fn numbers_have_one_form_with_units_and_without() {
        for (text, is) in [
            ("1500", json!(1_500)),
            ("10M", json!(10_000_000)),
            ("2.5G", json!(2_500_000_000_u64)),
            ("64k", json!(64_000)),
            ("4KiB", json!(4_096)),
            ("unlimited", json!("unlimited")),
            ("7q", json!("7q")),
        ] {
            assert_eq!(decode(&field(json!("size")), &json!(text)), is, "{text}");
        }
        let pair = field(json!({ "type": "list", "items": "size", "separator": "/" }));
        assert_eq!(decode(&pair, &json!("20M/100M")), json!([20_000_000, 100_000_000]));
        assert_eq!(encode(&pair, &json!([20_000_000, 100_000_000])), json!("20000000/100000000"));
        let times = field(json!({ "type": "list", "items": "duration", "separator": "/" }));
        assert_eq!(encode(&times, &decode(&times, &json!("1m/0s"))), json!("60s/0s"));
    }

    #[test]
    fn truth_is_a_word() {
        let truth = field(json!("bool"));
        for (text, is) in
            [("true", json!(true)), ("yes", json!(true)), ("no", json!(false)), ("maybe", json!("maybe"))]
        {
            assert_eq!(decode(&truth, &json!(text)), is);
        }
        assert_eq!(encode(&truth, &json!(true)), json!("true"));
        assert_eq!(encode(&truth, &json!(false)), json!("false"));
        let mark = field(json!("mark"));
        assert_eq!(decode(&mark, &json!("")), json!(true));
        assert_eq!(decode(&mark, &json!("false")), json!(false));
        assert_eq!(encode(&mark, &json!(true)), json!(""));
    }

    #[test]
    fn negation_stands_before_a_value_and_around_it() {
        for (binding, text, value) in [
            (json!({ "negated": true }), "!192.0.2.0/24", json!({ "not": "192.0.2.0/24" })),
            (json!({ "type": "size", "negated": true }), "!46", json!({ "not": 46 })),
            (
                json!({ "type": "list", "choice": true, "negated": true }),
                "!established,related",
                json!({ "not": ["established", "related"] }),
            ),
            (json!({ "type": "size", "negated": true }), "46", json!(46)),
            (json!("text"), "!x", json!("!x")),
        ] {
            let own = field(binding);
            assert_eq!(decode(&own, &json!(text)), value);
            assert_eq!(encode(&own, &value), json!(text));
            assert_eq!(normal(&own, &value), value);
        }
        let set = field(json!({ "type": "list", "choice": true, "negated": true }));
        assert_eq!(normal(&set, &json!({ "not": ["b", "a"] })), json!({ "not": ["a", "b"] }));
    }
}
