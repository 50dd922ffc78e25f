//! Wireless networks and radios.

use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};

use super::networks::only_vlan;
use super::{set, text};

/// Bits of the bands of a wireless network.
const BANDS: [(u64, &str); 3] = [(1, "2.4"), (2, "5"), (4, "6")];
/// Names of a radio in what is set and in what is measured.
const RADIOS: [(&str, &str); 5] = [
    ("radioSetting2g", "wp2g"),
    ("radioSetting5g", "wp5g"),
    ("radioSetting5g1", "wp5g"),
    ("radioSetting5g2", "wp5g2"),
    ("radioSetting6g", "wp6g"),
];

/// How stations prove themselves, in which bands, and in which VLAN they are.
pub(super) fn ssid(row: &Value, fields: &mut Map<String, Value>) {
    set(fields, "security", row.get("security").map(|_| json!(security(row))));
    if let Some(band) = row["band"].as_u64() {
        let bands = BANDS.iter().filter(|(bit, _)| band & bit != 0).map(|(_, name)| json!(name));
        set(fields, "bands", Some(bands.collect()));
    }
    if row["vlanEnable"] == true {
        let custom = &row["vlanSetting"]["customConfig"];
        let texts = [text(row, "vlanId"), text(custom, "vlanPoolIds"), text(custom, "vlanId")];
        set(fields, "vlan_id", texts.iter().find_map(|text| only_vlan(text)));
    }
}

/// Mixtures with the first WPA have no word.
fn security(row: &Value) -> &'static str {
    let version = |of: &str, name: &str| row[of][name].as_u64();
    match row["security"].as_u64() {
        Some(0) if row["oweEnable"] == true => "owe",
        Some(0) => "open",
        Some(2) if version("entSetting", "versionEnt") == Some(2) => "wpa2-enterprise",
        Some(3) => match version("pskSetting", "versionPsk") {
            Some(2) => "wpa2-psk",
            Some(4) => "wpa3-sae",
            _ => "unknown",
        },
        _ => "unknown",
    }
}

/// What a radio does now. False for what is no radio.
pub(super) fn radio(row: &Value, object: &mut Modelled) -> bool {
    let name = text(row, "@");
    let Some((_, measured)) = RADIOS.iter().find(|(set, _)| *set == name) else { return false };
    let now = &row["&"]["status"][*measured];
    let fields = &mut object.fields;
    set(fields, "channel", first_number(&text(now, "actualChannel")));
    set(fields, "width_mhz", first_number(&text(now, "bandWidth")));
    for (name, of) in [("tx_power_dbm", "txPower"), ("utilization_percent", "busyUtil")] {
        set(fields, name, now.get(of).filter(|value| value.is_number()).cloned());
    }
    let band = fields.get("band").and_then(Value::as_str).unwrap_or_default();
    object.label = format!("{band} GHz");
    true
}

/// `36` of `36 / 5180MHz`.
fn first_number(text: &str) -> Option<Value> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u16>().ok().filter(|number| *number <= 1_000).map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_vendor_are_ways_to_prove_oneself() {
        for (row, word) in [
            (json!({ "security": 0 }), "open"),
            (json!({ "security": 0, "oweEnable": true }), "owe"),
            (json!({ "security": 2, "entSetting": { "versionEnt": 2 } }), "wpa2-enterprise"),
            (json!({ "security": 2, "entSetting": { "versionEnt": 3 } }), "unknown"),
            (json!({ "security": 3, "pskSetting": { "versionPsk": 2 } }), "wpa2-psk"),
            (json!({ "security": 3, "pskSetting": { "versionPsk": 4 } }), "wpa3-sae"),
            (json!({ "security": 3, "pskSetting": { "versionPsk": 3 } }), "unknown"),
            (json!({ "security": 4 }), "unknown"),
            (json!({}), "unknown"),
        ] {
            assert_eq!(security(&row), word, "{row}");
        }
    }

    #[test]
    fn channel_is_the_number_that_comes_first() {
        assert_eq!(first_number("36 / 5180MHz"), Some(json!(36)));
        assert_eq!(first_number("40MHz"), Some(json!(40)));
        for odd in ["", "auto", "-1", "99999999999"] {
            assert_eq!(first_number(odd), None);
        }
    }
}
