//! Durations in the router's own form: `90s` is stored as `1m30s`, `7d` as `1w`.

/// Microseconds in each unit, largest first.
const UNITS: [(&str, u64); 7] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Microseconds of a duration such as `1d2h`, `00:01:30`, `2.5s` or `90`, which are seconds.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (days, clock) = text
        .rsplit_once('d')
        .filter(|(_, rest)| rest.contains(':'))
        .map_or((None, text), |(days, clock)| (Some(days), clock));
    if clock.contains(':') {
        let parts: Vec<&str> = clock.split(':').collect();
        let [hours, minutes, seconds] = parts.as_slice() else { return None };
        let whole: u64 = hours.parse::<u64>().ok()? * 3600 + minutes.parse::<u64>().ok()? * 60;
        let days = days.map_or(Some(0), |days| parse(&format!("{days}d")))?;
        return Some(days + whole * 1_000_000 + fraction(seconds, 1_000_000)?);
    }
    let mut rest = text;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = if unit.is_empty() { "s" } else { unit };
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(fraction(number, *size)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(sum)
}

/// A decimal number times a unit.
fn fraction(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = part.get(..part.len().min(6)).unwrap_or_default();
    let scale = 10_u64.pow(u32::try_from(digits.len()).ok()?);
    let part = if digits.is_empty() { 0 } else { digits.parse::<u64>().ok()? * unit / scale };
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(part)
}

/// The router's form of a number of microseconds.
pub(crate) fn show(micros: u64) -> String {
    let mut rest = micros;
    let mut out = String::new();
    for (name, size) in UNITS {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            out.push_str(&format!("{count}{name}"));
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

/// The router's form of a number of seconds.
pub(crate) fn show_secs(secs: u64) -> String {
    show(secs.saturating_mul(1_000_000))
}

/// Seconds of a stored duration; `None` for words.
pub(crate) fn secs(text: &str) -> Option<u64> {
    parse(text).map(|micros| micros / 1_000_000)
}
