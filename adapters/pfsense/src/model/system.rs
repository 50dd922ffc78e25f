//! The firewall as a machine: uptime, version, certificates.

use heddle_sdk::crud::{Modelled, rfc3339};
use heddle_sdk::json as sdk_json;
use serde_json::{Value, json};

use super::{put, text};
use crate::profile;

/// The key of the one system.
const SYSTEM: &str = "firewall";
/// Seconds of a unit in the text of the uptime.
const UNITS: [(&str, u64); 4] = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];

pub(super) fn system(row: &Value, object: &mut Modelled) {
    SYSTEM.clone_into(&mut object.key);
    let parts = ["/&/name/hostname", "/&/name/domain"].iter().filter_map(|at| sdk_json::text(row, at));
    let name = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
    if !name.is_empty() {
        object.label.clone_from(&name);
        put(object, "name", Some(name));
    }
    put(object, "version", row.pointer("/&/version").and_then(profile::version_of));
    put(object, "uptime_s", text(row, "uptime").and_then(seconds));
}

/// Seconds of `3 Days 02 Hours 11 Minutes 14 Seconds`.
fn seconds(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut all = 0_u64;
    for pair in words.chunks(2) {
        let [number, unit] = pair else { return None };
        let unit = unit.to_lowercase();
        let (_, seconds) = UNITS.iter().find(|(name, _)| unit.trim_end_matches('s') == *name)?;
        all = all.checked_add(number.parse::<u64>().ok()?.checked_mul(*seconds)?)?;
    }
    (!words.is_empty()).then_some(all)
}

pub(super) fn firmware(row: &Value, object: &mut Modelled) {
    SYSTEM.clone_into(&mut object.key);
    put(object, "current", profile::version_of(row));
}

/// What is a state or a copy of the whole firewall.
pub(super) fn of_system(object: &mut Modelled) {
    put(object, "of", Some(json!({ "kind": "system", "key": SYSTEM })));
}

/// Times come as text, or as seconds.
pub(super) fn certificate(row: &Value, object: &mut Modelled) {
    for (field, name) in [("not_before", "valid_from"), ("not_after", "valid_until")] {
        let time = match row.get(name) {
            Some(Value::Number(seconds)) => seconds.as_i64().map(rfc3339),
            _ => text(row, name).and_then(time),
        };
        put(object, field, time);
    }
}

/// A time of RFC 3339 of `2026/08/07 12:00:00`, or of one that is nearly so already; the firewall tells them in UTC.
pub(super) fn time(told: &str) -> Option<String> {
    let told = told.replace('/', "-").replacen(' ', "T", 1);
    let is_time = told.len() >= 19 && told.as_bytes()[4] == b'-' && told.as_bytes()[10] == b'T';
    let has_zone = told.ends_with('Z') || told.get(19..).is_some_and(|rest| rest.contains(['+', '-']));
    is_time.then(|| if has_zone { told } else { format!("{told}Z") })
}
