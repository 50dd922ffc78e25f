//! `network.wireless`, `iwinfo` and `hostapd`.

use serde_json::{Map, Value, json};

use super::clients::present;
use crate::device::Device;
use crate::uci::Section;

/// The networks in the air: interface name, its section, its radio. A disabled radio hides all of its networks.
fn networks(device: &Device) -> Vec<(String, &Section, &Section)> {
    let wireless = device.config("wireless");
    let mut out = Vec::new();
    for (phy, radio) in wireless.of_kind("wifi-device").enumerate() {
        let own =
            wireless.of_kind("wifi-iface").filter(|section| section.text("device") == Some(&radio.name));
        let enabled =
            own.filter(|section| !section.is_on("disabled", false) && !radio.is_on("disabled", false));
        out.extend(enabled.enumerate().map(|(at, section)| (format!("phy{phy}-ap{at}"), section, radio)));
    }
    out
}

pub(super) fn ifnames(device: &Device) -> Vec<String> {
    networks(device).into_iter().map(|(ifname, ..)| ifname).collect()
}

pub(super) fn status(device: &Device) -> Value {
    let networks = networks(device);
    let mut out = Map::new();
    for radio in device.config("wireless").of_kind("wifi-device") {
        let is_off = radio.is_on("disabled", false);
        let interfaces: Vec<Value> = networks
            .iter()
            .filter(|(_, _, of)| of.name == radio.name)
            .map(|(ifname, section, _)| json!({
                "section": section.name, "ifname": ifname, "config": config(section), "vlans": [], "stations": [],
            }))
            .collect();
        out.insert(radio.name.clone(), json!({
            "up": !is_off, "pending": false, "autostart": true, "disabled": is_off, "retry_setup_failed": false,
            "config": config(radio), "interfaces": interfaces,
        }));
    }
    Value::Object(out)
}

/// The options of a section, with `network` as the list that netifd makes of it.
fn config(section: &Section) -> Value {
    let mut out: Map<String, Value> = section
        .options
        .iter()
        .filter(|(name, _)| name != "device")
        .map(|(name, value)| (name.clone(), value.to_json()))
        .collect();
    if section.option("network").is_some() {
        out.insert("network".to_owned(), json!(section.list("network")));
    }
    Value::Object(out)
}

/// `iwinfo.info` of one interface.
pub(super) fn radio(device: &Device, ifname: &str) -> Option<Value> {
    let networks = networks(device);
    let (_, section, radio) = networks.iter().find(|(name, ..)| name == ifname)?;
    let channel = radio.text("channel").and_then(|channel| channel.parse::<u32>().ok()).unwrap_or(1);
    let frequency = if channel > 14 { 5000 + 5 * channel } else { 2407 + 5 * channel };
    let is_5g = channel > 14;
    Some(json!({
        "phy": ifname.split('-').next(), "ssid": section.text("ssid").unwrap_or(""),
        "bssid": if is_5g { "94:83:C4:A0:B1:31" } else { "94:83:C4:A0:B1:30" },
        "country": radio.text("country").unwrap_or("00"), "mode": "Master", "channel": channel,
        "frequency": frequency, "frequency_offset": 0, "txpower": if is_5g { 23 } else { 20 }, "quality": 57,
        "quality_max": 70, "noise": -92, "signal": -53, "bitrate": if is_5g { 1_201_000 } else { 286_800 },
        "encryption": { "enabled": section.text("encryption").is_some_and(|kind| kind != "none") },
        "htmodes": ["HT20", "HT40", "VHT80", "HE20", "HE40", "HE80"], "hwmodes": ["ac", "ax", "n"], "hwmode": "ax",
        "htmode": radio.text("htmode").unwrap_or("HE20"),
        "hardware": { "name": "MediaTek MT7986" },
    }))
}

/// Stations of one interface as iwinfo prints them: MACs in upper case.
pub(super) fn assoclist(device: &Device, ifname: &str) -> Option<Value> {
    ifnames(device).iter().find(|name| *name == ifname)?;
    let results: Vec<Value> = present(device)
        .filter(|client| client.ifname == Some(ifname))
        .map(|client| json!({
            "mac": client.mac.to_uppercase(), "signal": client.signal, "signal_avg": client.signal, "noise": -92,
            "inactive": 40, "connected_time": 3600 + device.age().as_secs(), "thr": 120_000, "authorized": true,
            "authenticated": true, "preamble": "short", "wme": true, "mfp": false, "tdls": false,
            "rx": { "rate": client.rate_kbits, "mhz": 80, "packets": 48_211, "bytes": 31_211_200, "he": true, "mcs": 9, "nss": 2 },
            "tx": { "rate": client.rate_kbits, "mhz": 80, "packets": 90_122, "bytes": 88_002_311, "he": true, "mcs": 9, "nss": 2 },
        }))
        .collect();
    Some(json!({ "results": results }))
}

/// The same stations as hostapd prints them: MACs in lower case.
pub(super) fn clients(device: &Device, ifname: &str) -> Value {
    let own = present(device).filter(|client| client.ifname == Some(ifname));
    let clients: Map<String, Value> = own
        .map(|client| {
            let station = json!({
                "auth": true, "assoc": true, "authorized": true, "preauth": false, "wds": false, "wmm": true,
                "ht": true, "vht": true, "he": true, "wps": false, "mfp": false, "aid": 1, "signal": client.signal,
                "bytes": { "rx": 31_211_200, "tx": 88_002_311 }, "packets": { "rx": 48_211, "tx": 90_122 },
                "rate": { "rx": client.rate_kbits, "tx": client.rate_kbits },
            });
            (client.mac.to_owned(), station)
        })
        .collect();
    json!({ "freq": if ifname.starts_with("phy1") { 5180 } else { 2437 }, "clients": clients })
}
