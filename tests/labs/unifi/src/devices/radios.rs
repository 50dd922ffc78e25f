//! Radios: the table that is configured, and what the air tells.

use serde_json::{Value, json};

use crate::console::Console;
use crate::row::{Row, flag, number, objects, put, text};

/// The band of a radio in GHz.
pub(super) fn frequency(radio: &str) -> Value {
    match radio {
        "ng" => json!(2.4),
        "na" => json!(5),
        "6e" => json!(6),
        _ => json!(60),
    }
}

/// The channel in use: the one that is configured, or one that the device chose.
fn channel(radio: &Row) -> i64 {
    number(radio, "channel").unwrap_or_else(|| match text(radio, "radio") {
        "ng" => 11,
        "na" => 44,
        _ => 37,
    })
}

/// The tables of radios and of the networks that they send.
pub(super) fn fill(own: &Console, site: &str, device: &Row, row: &mut Row) {
    let radios = objects(device, "radio_table");
    if radios.is_empty() {
        return;
    }
    let is_text = !own.settings.release.is_from("10.1");
    // Before 10.x the channel and the power were texts.
    if is_text && let Some(table) = row.get_mut("radio_table").and_then(Value::as_array_mut) {
        for radio in table {
            if let Some(number) = radio["channel"].as_i64() {
                radio["channel"] = json!(number.to_string());
            }
        }
    }
    let is_on = matches!(number(device, "state"), Some(1 | 5)) && !flag(device, "disabled");
    let clients = crate::clients::on_access_point(own, site, text(device, "mac"));
    let stats = radios.iter().map(|radio| {
        let on_radio = clients.iter().filter(|client| text(client, "radio") == text(radio, "radio")).count();
        let power = number(radio, "tx_power").unwrap_or(if text(radio, "radio") == "ng" { 20 } else { 23 });
        json!({
            "name": text(radio, "name"), "radio": text(radio, "radio"), "channel": channel(radio),
            "tx_power": power,
            "state": if is_on { "RUN" } else { "DOWN" }, "num_sta": on_radio, "user-num_sta": on_radio,
            "guest-num_sta": 0,
            "cu_total": 18, "cu_self_rx": 6, "cu_self_tx": 4, "satisfaction": 97, "bw": number(radio, "ht"),
            "tx_retries_pct": 3.2,
            "last_channel": channel(radio), "gain": 3,
        })
    });
    put(row, "radio_table_stats", Value::Array(stats.collect()));
    put(row, "num_sta", clients.len());
    put(row, "user-num_sta", clients.len());
    put(row, "guest-num_sta", 0);
    put(row, "vap_table", vaps(own, site, device, &radios, is_on));
    put(row, "isolated", false);
    put(row, "scanning", flag(device, "~scanning"));
    put(row, "x_vwirekey", crate::row::uuid("vwire", text(device, "mac")).replace('-', ""));
}

fn vaps(own: &Console, site: &str, device: &Row, radios: &[&Row], is_on: bool) -> Value {
    let mut rows = Vec::new();
    for wlan in own.store.rows(site, "wlanconf").iter().filter(|wlan| flag(wlan, "enabled")) {
        if !crate::wlans::serves(own, site, wlan, text(device, "mac")) {
            continue;
        }
        let bands = crate::wlans::radios_of(wlan);
        for radio in radios.iter().filter(|radio| bands.contains(&text(radio, "radio"))) {
            rows.push(json!({
                "essid": text(wlan, "name"), "radio": text(radio, "radio"),
                "radio_name": text(radio, "name"), "up": is_on,
                "channel": channel(radio), "wlanconf_id": wlan["_id"], "is_guest": flag(wlan, "is_guest"),
                "usage": "user",
                "state": if is_on { "RUN" } else { "DOWN" },
            }));
        }
    }
    Value::Array(rows)
}

/// Radios in the official interface.
pub(crate) fn official_radios(device: &Row) -> Vec<Value> {
    let rows = objects(device, "radio_table").into_iter().map(|radio| {
        let band = text(radio, "radio");
        json!({
            "wlanStandard": if band == "ng" { "802.11ax" } else { "802.11be" },
            "frequencyGHz": frequency(band),
            "channelWidthMHz": number(radio, "ht"), "channel": channel(radio),
        })
    });
    rows.collect()
}
