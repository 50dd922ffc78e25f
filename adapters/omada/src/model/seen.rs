//! Devices, clients and neighbours, as the controller sees them.

use serde_json::{Map, Value, json};

use super::{known, list, mac, set, text, texts};

/// How long the device is up, which the vendor says in words.
pub(super) fn system(row: &Value, fields: &mut Map<String, Value>) {
    set(fields, "uptime_s", seconds(&text(row, "uptime")).map(Value::from));
}

/// `12day(s) 3h 1m 9s` in seconds.
fn seconds(words: &str) -> Option<u64> {
    let mut total: u64 = 0;
    for word in words.split_whitespace() {
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = word.split_at(digits);
        let unit = match unit {
            "day(s)" | "day" | "days" | "d" => 86_400,
            "h" => 3_600,
            "m" => 60,
            "s" => 1,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
    }
    (!words.trim().is_empty()).then_some(total)
}

/// The version that runs, and the newer one that is offered.
pub(super) fn firmware(row: &Value, fields: &mut Map<String, Value>) {
    let (current, offered) = (text(row, "curFwVer"), text(row, "lastFwVer"));
    if current.is_empty() || offered.is_empty() {
        return;
    }
    let is_newest = current == offered;
    set(fields, "state", Some(json!(if is_newest { "current" } else { "available" })));
    set(fields, "available", (!is_newest).then(|| json!(offered)));
}

/// The addresses of a client. False for one without a hardware address, which is its identity.
pub(super) fn client(row: &Value, fields: &mut Map<String, Value>) -> bool {
    let mut addresses = vec![text(row, "ip")];
    addresses.extend(texts(row, "ipv6List"));
    addresses.retain(|address| !address.is_empty());
    set(fields, "addresses", known(addresses));
    if list(row, "multiLink").next().is_some() {
        // It is in several bands at a time.
        fields.remove("band");
    }
    fields.contains_key("mac")
}

/// The other device as identities have it, where it is known by its hardware address.
pub(super) fn neighbour(fields: &mut Map<String, Value>) {
    let own = fields.get("remote_chassis").and_then(Value::as_str).and_then(mac);
    set(fields, "remote_chassis", own.map(Value::from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_time_are_seconds() {
        assert_eq!(seconds("12day(s) 3h 1m 9s"), Some(12 * 86_400 + 3 * 3_600 + 69));
        assert_eq!(seconds("9s"), Some(9));
        for odd in ["", " ", "soon", "3", "h", "99999999999999999999d", "9999999999999999999day(s)", "é1s"] {
            assert_eq!(seconds(odd), None, "{odd}");
        }
    }
}
