//! Radios, wireless networks, and clients by cable and by air.

use heddle_sdk::{Completeness, Fault, Host, ModelObject, Origin, crud, json as sdk_json};
use serde_json::{Value, json};

use super::live::{self, Live};
use super::{Fields, Found, object};
use crate::inventory::{devices, wireless_names};

const BANDS: [(&str, &str); 3] = [("2g", "2.4"), ("5g", "5"), ("6g", "6")];
/// Longest name of a network that the model takes.
const NAME_CHARS_MAX: usize = 64;

fn band(radio: &Value) -> Option<&'static str> {
    let word = sdk_json::text(radio, "/config/band")?;
    BANDS.iter().find(|(known, _)| *known == word).map(|(_, band)| *band)
}

/// An option of the configuration: the daemons print texts, numbers and flags.
fn option(section: &Value, name: &str) -> Option<String> {
    match section.get("config")?.get(name)? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_on) => Some(if *is_on { "1" } else { "0" }.to_owned()),
        _ => None,
    }
}

pub(super) fn radios(live: &Live) -> Vec<ModelObject> {
    let identity = live.identity();
    let one = |(name, radio): (&str, &Value)| {
        let channel = option(radio, "channel");
        let is_auto = channel.as_deref().map(|channel| channel == "auto");
        let width = option(radio, "htmode").and_then(|mode| {
            let digits = mode.trim_start_matches(|c: char| !c.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|width| *width <= 1000)
        });
        let power = option(radio, "txpower").and_then(|power| power.parse::<f64>().ok());
        let fields = Fields::default()
            .with("enabled", radio.get("disabled").and_then(Value::as_bool).map(|is_off| !is_off))
            .with("band", band(radio))
            .with(
                "channel",
                channel.and_then(|channel| channel.parse::<u64>().ok()).filter(|channel| *channel <= 1000),
            )
            .with("channel_auto", is_auto)
            .with("width_mhz", width)
            .with("tx_power_dbm", power.filter(|power| (-50.0..=100.0).contains(power)));
        object(name, name, Some(&identity), fields)
    };
    live.radios().map(one).collect()
}

/// Networks that the router announces: one for each radio that it is on.
pub(super) fn ssids(live: &Live) -> Vec<ModelObject> {
    let mut out = Vec::new();
    for (radio, status) in live.radios() {
        for (at, network) in sdk_json::items(status, "/interfaces").iter().enumerate() {
            let is_announced = option(network, "mode").is_none_or(|mode| mode == "ap");
            let Some(name) = option(network, "ssid").filter(|_| is_announced) else { continue };
            let flag = |name: &str| option(network, name).map(|word| word == "1");
            let pmf = option(network, "ieee80211w").and_then(|word| match word.as_str() {
                "0" => Some("off"),
                "1" => Some("optional"),
                "2" => Some("required"),
                _ => None,
            });
            let is_off = status.get("disabled").and_then(Value::as_bool);
            let fields = Fields::default()
                .with("name", (name.chars().count() <= NAME_CHARS_MAX).then_some(name.as_str()))
                .with("enabled", is_off.map(|is_off| !is_off))
                .with("security", Some(security(option(network, "encryption").as_deref())))
                .with("bands", band(status).map(|band| json!([band])))
                .with("hidden", flag("hidden"))
                .with("isolation", flag("isolate"))
                .with("fast_roaming", flag("ieee80211r"))
                .with("pmf", pmf);
            let place =
                sdk_json::text(network, "/section").map_or_else(|| format!("{radio}:{at}"), str::to_owned);
            out.push(object(&place, &name, None, fields));
        }
    }
    out
}

/// The words of the configuration; ciphers may stand behind a plus.
fn security(word: Option<&str>) -> &'static str {
    match word.map(|word| word.split('+').next().unwrap_or(word)) {
        None | Some("none") => "open",
        Some("owe") => "owe",
        Some("psk2") => "wpa2-psk",
        Some("sae") => "wpa3-sae",
        Some("sae-mixed") => "wpa2-wpa3",
        Some("wpa2") => "wpa2-enterprise",
        Some("wpa3") => "wpa3-enterprise",
        Some("wpa3-mixed") => "wpa2-wpa3-enterprise",
        Some(_) => "unknown",
    }
}

/// The clients of the device list, in the words of the model.
pub(super) fn clients(host: &dyn Host) -> Result<Found, Fault> {
    let page = devices::list(host)?;
    let live = Live::read(host, &[live::WIRELESS])?;
    let identity = live.identity();
    let mut out = Vec::new();
    for client in page.items.into_iter().filter(|device| device.kind == "client") {
        let attributes: Value = serde_json::from_str(&client.attributes).unwrap_or_default();
        let measured: Value = serde_json::from_str(&client.measurements).unwrap_or_default();
        let station = sdk_json::text(&attributes, "/wireless/interface");
        let radio = station.and_then(|name| {
            live.radios().find(|(_, radio)| {
                wireless_names(&json!({ "radio": radio })).iter().any(|known| known == name)
            })
        });
        let network = radio.and_then(|(_, radio)| {
            let all = sdk_json::items(radio, "/interfaces").iter();
            all.into_iter().find(|one| sdk_json::text(one, "/ifname") == station)
        });
        let is_named = client.name != client.identity && !client.addresses.contains(&client.name);
        let interface = network.and_then(|network| sdk_json::text(network, "/config/network/0"));
        let fields = Fields::default()
            .with("mac", crud::mac(&client.identity))
            .with("addresses", Some(client.addresses))
            .with("hostname", is_named.then_some(client.name.as_str()))
            .with("connection", station.map(|_| "wireless"))
            .with(
                "ssid",
                network
                    .and_then(|network| option(network, "ssid"))
                    .filter(|name| name.chars().count() <= NAME_CHARS_MAX),
            )
            .with("interface", interface)
            .with("band", radio.and_then(|(_, radio)| band(radio)))
            .with(
                "signal_dbm",
                measured.pointer("/wireless/signal_dbm").filter(|signal| signal.is_number()).cloned(),
            );
        let object = object(&client.identity, &client.name, Some(&identity), fields);
        out.push(ModelObject { origin: Origin::Derived, ..object });
    }
    let complete = if live.complete() == Completeness::Complete { page.complete } else { live.complete() };
    Ok((out, complete))
}
