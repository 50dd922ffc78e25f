//! Routes and gateways.

use std::net::IpAddr;

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{beside, put, text};

/// A route of the configuration, or of the routing table, which has neither an id nor a switch.
pub(super) fn route(row: &Value, object: &mut Modelled) -> bool {
    if text(row, "uuid").is_some() {
        // The older releases say what is off.
        if let Some(disabled) = row.get("disabled") {
            put(object, "enabled", Some(disabled != "1" && disabled != true));
        }
    } else if !of_table(row, object) {
        return false;
    }
    let is_address = |value: &Value| {
        let found = value.as_str().unwrap_or_default();
        found.split('%').next().unwrap_or_default().parse::<IpAddr>().is_ok()
    };
    if object.fields.get("next_hop").is_some_and(|next| !is_address(next)) {
        object.fields.remove("next_hop");
    }
    true
}

/// An entry of the routing table. Own addresses and what the configuration made are no routes of their own.
fn of_table(row: &Value, object: &mut Modelled) -> bool {
    let (flags, device) = (text(row, "flags").unwrap_or_default(), text(row, "netif").unwrap_or_default());
    let destination = text(row, "destination").unwrap_or_default();
    let is_configured = flags.contains('S') && beside(row, "static").is_some();
    let is_local =
        device.starts_with("lo") || destination.starts_with("fe80") || destination.starts_with("ff0");
    if destination.is_empty() || is_configured || is_local {
        return false;
    }
    let is_v6 = text(row, "proto") == Some("ipv6");
    let whole = match (destination, is_v6) {
        ("default", false) => "0.0.0.0/0".to_owned(),
        ("default", true) => "::/0".to_owned(),
        (known, _) if known.contains('/') => known.to_owned(),
        (known, is_v6) => format!("{known}/{}", if is_v6 { 128 } else { 32 }),
    };
    put(object, "destination", Some(whole));
    if flags.contains('B') || flags.contains('R') {
        object.fields.insert("type".to_owned(), json!("blackhole"));
    }
    let is_connected = text(row, "gateway").is_some_and(|gateway| gateway.starts_with("link#"));
    let from = match flags {
        _ if is_connected => "connected",
        flags if flags.contains('S') => "static",
        flags if flags.contains(['1', '2', '3', 'D']) => "dynamic",
        _ => "unknown",
    };
    put(object, "origin_type", Some(from));
    true
}

/// A gateway that is not watched says the word of one that works.
pub(super) fn gateway(object: &mut Modelled) {
    let is_watched = object.fields.get("monitor").is_some_and(|monitor| monitor != "~");
    if !is_watched {
        object.fields.remove("monitor");
        if object.fields.get("state").is_some_and(|state| state != "offline") {
            object.fields.insert("state".to_owned(), json!("unknown"));
        }
    }
    if object.fields.get("address").is_some_and(|address| address == "~") {
        object.fields.remove("address");
    }
}
