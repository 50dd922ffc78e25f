//! The firewall as a machine: uptime, sensors, storage, versions.

use heddle_sdk::crud::Modelled;
use heddle_sdk::json as sdk_json;
use serde_json::{Value, json};

use super::{put, text};

/// The key of the one system.
pub(super) const SYSTEM: &str = "firewall";

pub(super) fn system(row: &Value, object: &mut Modelled) {
    SYSTEM.clone_into(&mut object.key);
    let version = sdk_json::text(row, "/versions/0").and_then(|text| text.strip_prefix("OPNsense "));
    put(object, "version", version.map(|version| version.split('-').next().unwrap_or(version)));
    put(object, "uptime_s", sdk_json::text(row, "/&/time/uptime").and_then(seconds));
    // The hottest sensor of the processor, else of all.
    let sensors = sdk_json::items(row, "/&/sensors");
    let hottest = |kind: Option<&str>| {
        let own = sensors.iter().filter(|sensor| kind.is_none_or(|kind| text(sensor, "type") == Some(kind)));
        own.filter_map(|sensor| text(sensor, "temperature")?.parse::<f64>().ok()).reduce(f64::max)
    };
    put(object, "temperature_c", hottest(Some("cpu")).or_else(|| hottest(None)));
}

/// Seconds of `3 days, 02:11:14` or `02:11:14`.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once(", ") {
        Some((days, clock)) => (days.split(' ').next()?.parse::<u64>().ok()?, clock),
        None => (0, text),
    };
    let parts: Vec<u64> = clock.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let of_day = hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
    days.checked_mul(86_400)?.checked_add(of_day)
}

/// Bytes of `104857600K` or `3.1G`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].chars().next() {
        None | Some('B') => 0,
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some('P') => 5,
        Some(_) => return None,
    };
    let number: f64 = digits.parse().ok().filter(|number: &f64| (0.0..1e15).contains(number))?;
    let whole = number * 1024_f64.powi(power);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative and exact"
    )]
    (whole < 9e15).then_some(whole.round() as u64)
}

pub(super) fn volume(row: &Value, object: &mut Modelled) {
    put(object, "total_bytes", text(row, "blocks").and_then(bytes));
    put(object, "used_bytes", text(row, "used").and_then(bytes));
}

pub(super) fn snapshot(row: &Value, object: &mut Modelled) {
    of_system(object);
    put(object, "size_bytes", text(row, "size").and_then(bytes));
}

/// What is a state or a copy of the whole firewall.
pub(super) fn of_system(object: &mut Modelled) {
    put(object, "of", Some(json!({ "kind": "system", "key": SYSTEM })));
}

/// A newer version is told only where the last check found one.
pub(super) fn firmware(row: &Value, object: &mut Modelled) {
    SYSTEM.clone_into(&mut object.key);
    let newer = match text(row, "status") {
        Some("upgrade") => text(row, "upgrade_major_version"),
        Some("update") => sdk_json::text(row, "/product/product_latest"),
        _ => None,
    };
    put(object, "available", newer);
}

/// Alternative names stand on lines or between commas.
pub(super) fn certificate(row: &Value, object: &mut Modelled) {
    let names = ["altnames_dns", "altnames_ip"];
    if names.iter().all(|name| row.get(*name).is_none()) {
        return;
    }
    let all = names.iter().filter_map(|name| text(row, name)).flat_map(|text| text.split([',', '\n']));
    let all: Vec<&str> = all.map(str::trim).filter(|name| !name.is_empty()).collect();
    put(object, "alternative_names", Some(all));
}
