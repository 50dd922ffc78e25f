//! Wireless networks and radios. Settings stand at the interface, or in profiles that it names; what stands at the interface
//! counts before its profiles.

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{beside, items, put, text};

/// The first channel of a band, and its frequency.
const BANDS: [(&str, i64, i64); 4] =
    [("2.4", 1, 2_412), ("5", 36, 5_180), ("6", 1, 5_955), ("2.4", 14, 2_484)];

/// The band of a word such as `2ghz-ax` or `5ghz-n/ac`.
pub(crate) fn band(word: &str) -> Option<&'static str> {
    [("2ghz", "2.4"), ("5ghz", "5"), ("6ghz", "6")]
        .iter()
        .find(|(begin, _)| word.starts_with(begin))
        .map(|(_, band)| *band)
}

/// The number of the channel at a frequency, in MHz, and its band.
pub(super) fn channel(frequency: i64) -> Option<(&'static str, i64)> {
    let (band, first, base) = match frequency {
        2_484 => BANDS[3],
        2_412..=2_472 => BANDS[0],
        5_160..=5_900 => BANDS[1],
        5_955..=7_125 => BANDS[2],
        _ => return None,
    };
    Some((band, first + (frequency - base) / 5))
}

/// The frequency of a channel, in MHz.
pub(super) fn frequency(band: &str, channel: i64) -> Option<i64> {
    if (band, channel) == ("2.4", 14) {
        return Some(2_484);
    }
    let (_, first, base) = BANDS.iter().find(|(known, ..)| *known == band)?;
    Some(base + (channel - first) * 5)
}

/// A setting of the interface, or of the profile that it names, or of one that this profile names.
pub(super) fn setting<'r>(row: &'r Value, group: &str, name: &str) -> Option<&'r str> {
    let own = format!("{group}.{name}");
    let named = |list: &str, profile: Option<&str>| {
        let all = beside(row, list).and_then(Value::as_array)?;
        all.iter().find(|one| profile.is_some() && text(one, "name") == profile)
    };
    let configuration = named("configurations", text(row, "configuration"));
    let list = match group {
        "configuration" => return text(row, &own).or_else(|| text(configuration?, name)),
        "security" => "securities",
        "datapath" => "datapaths",
        _ => "channels",
    };
    text(row, &own)
        .or_else(|| text(named(list, text(row, group))?, name))
        .or_else(|| text(configuration?, &own))
        .or_else(|| text(named(list, text(configuration?, group))?, name))
}

/// The security of a set of authentication types.
fn security(types: &[&str]) -> &'static str {
    let has = |word: &str| types.contains(&word);
    match () {
        () if types.is_empty() => "open",
        () if has("owe") => "owe",
        () if has("wpa2-psk") && has("wpa3-psk") => "wpa2-wpa3",
        () if has("wpa3-psk") => "wpa3-sae",
        () if has("wpa2-psk") => "wpa2-psk",
        () if has("wpa2-eap") && (has("wpa3-eap") || has("wpa3-eap-192")) => "wpa2-wpa3-enterprise",
        () if has("wpa3-eap") || has("wpa3-eap-192") => "wpa3-enterprise",
        () if has("wpa2-eap") => "wpa2-enterprise",
        () => "unknown",
    }
}

fn words(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

pub(super) fn ssid(row: &Value, object: &mut Modelled) -> bool {
    if row.get("&").is_some_and(|joined| joined.get("profile").is_some()) {
        old(row, object);
    } else {
        let of = |group: &str, name: &str| setting(row, group, name);
        let is_yes = |value: Option<&str>| value.map(|value| value == "true" || value == "yes");
        put(object, "name", of("configuration", "ssid"));
        put(object, "security", Some(security(&words(of("security", "authentication-types")))));
        put(object, "vlan_id", of("datapath", "vlan-id").and_then(|vlan| vlan.parse::<u16>().ok()));
        put(object, "bands", band_of(row).map(|band| json!([band])));
        put(object, "hidden", is_yes(of("configuration", "hide-ssid")));
        put(object, "isolation", is_yes(of("datapath", "client-isolation")));
        put(object, "fast_roaming", is_yes(of("security", "ft")));
        put(object, "multiple_keys", of("security", "multi-passphrase-group").map(|_| true));
        let pmf = of("security", "management-protection").map(|word| match word {
            "disabled" => "off",
            "allowed" => "optional",
            "required" => "required",
            _ => "unknown",
        });
        put(object, "pmf", pmf);
        let has_radius =
            words(of("security", "authentication-types")).iter().any(|word| word.contains("eap"));
        put(object, "radius_profile", has_radius.then_some("wireless"));
    }
    if let Some(name) = super::field(object, "name") {
        object.label = name;
    }
    object.fields.contains_key("name")
}

/// The band of an interface: its own, or that of the radio that carries it.
pub(super) fn band_of(row: &Value) -> Option<&'static str> {
    let own = setting(row, "channel", "band").and_then(band);
    own.or_else(|| {
        let mut carrier = beside(row, "master")?.clone();
        carrier["&"] = row.get("&")?.clone();
        setting(&carrier, "channel", "band").and_then(band)
    })
}

/// The old driver has a profile for keys, and the band at the interface.
fn old(row: &Value, object: &mut Modelled) {
    let profile = beside(row, "profile");
    let types = profile.map(|profile| items(profile, "authentication-types")).unwrap_or_default();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let is_open = profile.is_none_or(|profile| text(profile, "mode").is_none_or(|mode| mode == "none"));
    put(object, "security", Some(if is_open { "open" } else { security(&types) }));
    put(object, "bands", text(row, "band").map(|word| json!([band(word).unwrap_or("unknown")])));
    let is_tagged = text(row, "vlan-mode") == Some("use-tag");
    put(object, "vlan_id", super::number(row, "vlan-id").filter(|_| is_tagged));
}

/// A radio is an interface that no other one carries.
pub(super) fn radio(row: &Value, object: &mut Modelled) -> bool {
    let carrier = text(row, "master-interface").filter(|carrier| *carrier != "none");
    if carrier.is_some() {
        return false;
    }
    if row.get("wireless-protocol").is_some() || row.get("radio-name").is_some() {
        let frequency = super::number(row, "frequency");
        put(object, "band", text(row, "band").and_then(band));
        put(object, "channel", frequency.and_then(channel).map(|(_, number)| number));
        put(object, "channel_auto", text(row, "frequency").map(|frequency| frequency == "auto"));
        put(object, "width_mhz", text(row, "channel-width").and_then(width));
        return true;
    }
    let of = |group: &str, name: &str| setting(row, group, name);
    // Of several frequencies, or of none, the router chooses.
    let frequency = of("channel", "frequency");
    let known = frequency.and_then(|frequency| channel(frequency.parse().ok()?));
    let word = of("channel", "band").and_then(band);
    put(object, "band", word.or(known.map(|(band, _)| band)));
    put(object, "channel", known.map(|(_, number)| number));
    put(object, "channel_auto", Some(known.is_none()));
    put(object, "width_mhz", of("channel", "width").and_then(width));
    put(object, "tx_power_dbm", of("configuration", "tx-power").and_then(decibels));
    true
}

/// A number that is whole where it can be.
pub(super) fn decibels(text: &str) -> Option<Value> {
    text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from)).ok()
}

/// MHz of `20/40/80mhz`: the widest.
fn width(word: &str) -> Option<u16> {
    word.trim_end_matches("mhz").rsplit('/').next()?.split(['-', '+']).next()?.parse().ok()
}
