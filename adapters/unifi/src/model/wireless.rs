//! Wireless networks, and the clients in them.

use serde_json::{Map, Value, json};

use super::{set, text, texts};
use crate::beside::Beside;

/// How stations prove themselves, in which bands, and in which VLAN they are.
pub(super) fn ssid(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    set(fields, "security", row.get("security").map(|_| json!(security(row))));
    let bands = match (texts(row, "wlan_bands"), text(row, "wlan_band").as_str()) {
        (bands, _) if !bands.is_empty() => bands,
        (_, "both") => vec!["2g".to_owned(), "5g".to_owned()],
        (_, "") => Vec::new(),
        (_, band) => vec![band.to_owned()],
    };
    let names: Vec<String> = bands.iter().map(|band| of_band(band).to_owned()).collect();
    set(fields, "bands", super::known(names));
    let network = beside.of_id(&text(row, "networkconf_id"));
    set(fields, "vlan_id", network.and_then(|network| network.vlan).map(Value::from));
}

fn of_band(band: &str) -> &'static str {
    match band {
        "2g" => "2.4",
        "5g" => "5",
        "6g" => "6",
        _ => "unknown",
    }
}

/// The first WPA, and the keys before it, have no word.
fn security(row: &Value) -> &'static str {
    let is = |name: &str| row.get(name) == Some(&Value::Bool(true));
    let is_second = matches!(text(row, "wpa_mode").as_str(), "wpa2" | "");
    match text(row, "security").as_str() {
        "open" => "open",
        "wpapsk" if is("wpa3_support") && is("wpa3_transition") => "wpa2-wpa3",
        "wpapsk" if is("wpa3_support") => "wpa3-sae",
        "wpapsk" if is_second => "wpa2-psk",
        "wpaeap" if is("wpa3_support") && is("wpa3_transition") => "wpa2-wpa3-enterprise",
        "wpaeap" if is("wpa3_support") => "wpa3-enterprise",
        "wpaeap" if is_second => "wpa2-enterprise",
        _ => "unknown",
    }
}

/// A client at a cable has no radio.
pub(super) fn client(fields: &mut Map<String, Value>) {
    if fields.get("connection").is_some_and(|connection| connection == "wired") {
        for name in ["band", "ssid", "signal_dbm"] {
            fields.remove(name);
        }
    }
    if fields.get("signal_dbm").is_some_and(|signal| signal == 0 || signal == 0.0) {
        fields.remove("signal_dbm");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_fields_say_how_stations_prove_themselves() {
        for (row, word) in [
            (json!({ "security": "open" }), "open"),
            (json!({ "security": "wpapsk", "wpa_mode": "wpa2" }), "wpa2-psk"),
            (json!({ "security": "wpapsk", "wpa3_support": true, "wpa3_transition": true }), "wpa2-wpa3"),
            (json!({ "security": "wpapsk", "wpa3_support": true }), "wpa3-sae"),
            (json!({ "security": "wpapsk", "wpa_mode": "wpa1" }), "unknown"),
            (json!({ "security": "wpaeap", "wpa_mode": "wpa2" }), "wpa2-enterprise"),
            (json!({ "security": "wpaeap", "wpa3_support": true }), "wpa3-enterprise"),
            (json!({ "security": "wep" }), "unknown"),
            (json!({}), "unknown"),
        ] {
            assert_eq!(security(&row), word, "{row}");
        }
    }
}
