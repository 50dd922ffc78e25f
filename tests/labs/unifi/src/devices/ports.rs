//! Ports: what is configured, by override or by profile, and what is plugged in.

use serde_json::{Value, json};

use crate::console::Console;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, flag_or_true, number, object, objects, put, text};
use crate::timeline::Event;

/// The configuration of one port: its own entry over the profile that it names, or over the usual one.
pub(crate) fn profile_of(own: &Console, site: &str, device: &Row, idx: i64) -> Row {
    let entries = objects(device, "port_overrides");
    let entry = entries.into_iter().find(|entry| number(entry, "port_idx") == Some(idx));
    let named = entry.map(|entry| text(entry, "portconf_id")).filter(|id| !id.is_empty());
    let profile = match named {
        Some(id) => own.store.find(site, "portconf", id),
        None => own.store.having(site, "portconf", "attr_hidden_id", "ALL"),
    };
    let mut merged = profile.cloned().unwrap_or_default();
    let id = merged.get("_id").cloned().unwrap_or_default();
    put(&mut merged, "portconf_id", id);
    merged.remove("name");
    merged.extend(entry.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    merged
}

/// Whether a port passes traffic.
pub(crate) fn is_enabled(own: &Console, site: &str, device: &Row, idx: i64) -> bool {
    let profile = profile_of(own, site, device, idx);
    text(&profile, "forward") != "disabled"
}

/// Whether the port has a link: something is plugged in that is on, and the port is not switched off.
fn is_up(own: &Console, site: &str, device: &Row, port: &Row) -> bool {
    let idx = number(port, "idx").unwrap_or_default();
    if flag(device, &format!("~off:{idx}")) || !is_enabled(own, site, device, idx) {
        return false;
    }
    match port.get("peer").and_then(Value::as_str) {
        None => flag(port, "up"),
        Some(peer) => {
            let above = own.store.having(site, "device", "mac", peer);
            above.is_none_or(|row| matches!(number(row, "state"), Some(1 | 4 | 5 | 6)))
        }
    }
}

fn has_power(profile: &Row, port: &Row) -> bool {
    flag(port, "poe") && text(profile, "poe_mode") != "off"
}

/// The table of ports that a read of a device shows.
pub(super) fn table(own: &Console, site: &str, device: &Row) -> Value {
    let rows = objects(device, "~ports").into_iter().map(|port| {
        let idx = number(port, "idx").unwrap_or_default();
        let profile = profile_of(own, site, device, idx);
        let is_up = is_up(own, site, device, port);
        let name = Some(text(&profile, "name")).filter(|name| !name.is_empty()).unwrap_or(text(port, "name"));
        let speed = if is_up { number(port, "speed").or(number(port, "max")).unwrap_or(1000) } else { 0 };
        let is_uplink = object(device, "~uplink").is_some_and(|uplink| number(uplink, "port") == Some(idx));
        let mut row = json!({
            "port_idx": idx, "name": name, "media": text(port, "media"), "up": is_up,
            "enable": text(&profile, "forward") != "disabled", "speed": speed, "full_duplex": is_up,
            "autoneg": flag_or_true(&profile, "autoneg"),
            "is_uplink": is_uplink, "port_poe": flag(port, "poe"), "portconf_id": profile["portconf_id"],
            "op_mode": Some(text(&profile, "op_mode")).filter(|mode| !mode.is_empty()).unwrap_or("switch"),
            "forward": text(&profile, "forward"), "stp_state": if is_up { "forwarding" } else { "disabled" },
            "stp_pathcost": 20_000, "masked": false, "aggregated_by": aggregated_by(device, idx),
            "flowctrl_rx": false,
            "rx_bytes": if is_up { own.now / 1000 % 1_000_000 * 39 } else { 0 },
            "tx_bytes": if is_up { own.now / 1000 % 1_000_000 * 52 } else { 0 },
            "rx_errors": 0, "tx_errors": 0, "rx_dropped": 0, "tx_dropped": 0, "rx_packets": 0,
            "tx_packets": 0,
            "satisfaction": 100, "jumbo": false, "dot1x_mode": "unknown",
        });
        for name in ["native_networkconf_id", "tagged_vlan_mgmt", "excluded_networkconf_ids", "isolation"] {
            if let Some(value) = profile.get(name) {
                row[name] = value.clone();
            }
        }
        if flag(port, "poe") {
            let is_on = has_power(&profile, port);
            let draws = is_on && is_up && port.contains_key("watts");
            row["poe_enable"] = json!(draws);
            row["poe_caps"] = json!(7);
            row["poe_mode"] = json!(if is_on { "auto" } else { "off" });
            row["poe_good"] = json!(draws);
            row["poe_class"] = json!(if draws { "Class 4" } else { "Unknown" });
            row["poe_power"] = json!(if draws { text(port, "watts") } else { "0.00" });
            row["poe_voltage"] = json!(if draws { "53.21" } else { "0.00" });
        }
        row
    });
    Value::Array(rows.collect())
}

/// The first port of the group that a port belongs to, or false.
fn aggregated_by(device: &Row, idx: i64) -> Value {
    let groups = groups(device);
    let found = groups.into_iter().find(|ports| ports.contains(&idx) && ports.first() != Some(&idx));
    found.map_or(json!(false), |ports| json!(ports.first()))
}

/// The ports of each group, the first one first.
fn groups(device: &Row) -> Vec<Vec<i64>> {
    let entries = objects(device, "port_overrides").into_iter();
    let of_entry = |entry: &Row| {
        let first = number(entry, "port_idx")?;
        let members = entry.get("aggregate_members").and_then(Value::as_array).into_iter().flatten();
        let rest = members.filter_map(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()));
        let mut ports = vec![first];
        ports.extend(rest.filter(|port| *port != first));
        (text(entry, "op_mode") == "aggregate" && ports.len() > 1).then_some(ports)
    };
    entries.filter_map(of_entry).collect()
}

/// The groups of ports of a switch, as the official interface tells them.
pub(crate) fn lags(device: &Row) -> Vec<Value> {
    let of_group = |ports: Vec<i64>| {
        let first = ports.first().copied().unwrap_or_default();
        let id = crate::row::uuid("lag", &format!("{} {first}", text(device, "mac")));
        json!({ "id": id, "portIdxs": ports, "metadata": { "origin": "USER_DEFINED" } })
    };
    groups(device).into_iter().map(of_group).collect()
}

/// Ports in the official interface.
pub(crate) fn official_ports(own: &Console, site: &str, device: &Row) -> Vec<Value> {
    let rows = objects(device, "~ports").into_iter().map(|port| {
        let idx = number(port, "idx").unwrap_or_default();
        let profile = profile_of(own, site, device, idx);
        let is_up = is_up(own, site, device, port);
        let mut row = json!({
            "idx": idx, "state": if is_up { "UP" } else { "DOWN" },
            "connector": if text(port, "media") == "GE" { "RJ45" } else { "SFPPLUS" },
            "maxSpeedMbps": number(port, "max"),
        });
        if is_up {
            row["speedMbps"] = json!(number(port, "speed").or(number(port, "max")));
        }
        if flag(port, "poe") {
            let is_on = has_power(&profile, port);
            let state = if is_on && is_up && port.contains_key("watts") { "UP" } else { "DOWN" };
            row["poe"] = json!({ "standard": "802.3at", "type": 2, "enabled": is_on, "state": state });
        }
        row
    });
    rows.collect()
}

/// Takes the power off a port for a while.
pub(crate) fn power_cycle(own: &mut Console, site: &str, mac: &str, idx: i64) -> Outcome<()> {
    let device =
        own.store.having(site, "device", "mac", mac).cloned().ok_or_else(|| Refusal::new("UnknownDevice"))?;
    let ports = objects(&device, "~ports");
    let port = ports
        .into_iter()
        .find(|port| number(port, "idx") == Some(idx))
        .ok_or_else(|| Refusal::new("InvalidPort"))?;
    if !has_power(&profile_of(own, site, &device, idx), port) {
        return Err(Refusal::new("PoeNotAvailable"));
    }
    if let Some(device) = own.store.having_mut(site, "device", "mac", mac) {
        put(device, &format!("~off:{idx}"), true);
    }
    own.plan(site, mac, &[(1, Event::Powered(idx))]);
    // What hangs on the port starts anew.
    if let Some(peer) = port.get("peer").and_then(Value::as_str).filter(|_| port.contains_key("watts")) {
        own.reboot_device(site, peer);
    }
    own.tell_device(site, mac);
    Ok(())
}
