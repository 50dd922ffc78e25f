//! Ports and radios.

use heddle_sdk::Fault;
use heddle_sdk::crud::{Asked, refused};
use serde_json::{Map, Value, json};

use super::With;
use crate::beside::Network;
use crate::model::{devices, text};

/// The settings of a port are words for which VLANs it carries, and a list of the networks that it does not.
pub(super) fn port(with: With<'_>, asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let row = asked.row.unwrap_or(&Value::Null);
    power(with, row, payload)?;
    if let Some(vlan) = asked.fields.get("native_vlan") {
        // Without one of its own a port has the first network.
        let vlan = if vlan.is_null() { &json!(1) } else { vlan };
        payload.insert("native_networkconf_id".to_owned(), json!(network(with, "native_vlan", vlan)?.id));
    }
    let tagged = tagged(with, asked, payload)?;
    let is_off = devices::is_off(with.beside, row);
    let is_on = asked.fields.get("enabled").and_then(Value::as_bool);
    let word = match &tagged {
        Some((word, _)) => (*word).to_owned(),
        None => devices::tagged(with.beside, row),
    };
    let forward = match is_on {
        Some(false) => (!is_off).then_some("disabled"),
        Some(true) if is_off => Some(forward(&word)),
        // A port that is off stays so, whatever it will carry.
        None if is_off => None,
        Some(true) | None => tagged.is_some().then(|| forward(&word)),
    };
    if let Some((word, excluded)) = tagged {
        payload.insert("tagged_vlan_mgmt".to_owned(), json!(word));
        payload.insert("excluded_networkconf_ids".to_owned(), excluded);
    }
    if let Some(forward) = forward {
        payload.insert("forward".to_owned(), json!(forward));
    }
    Ok(())
}

/// A port that gives power keeps the way in which it does so.
fn power(with: With<'_>, row: &Value, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let Some(wanted) = payload.get("poe_mode") else { return Ok(()) };
    if row.get("port_poe") != Some(&Value::Bool(true)) {
        return Err(refused("poe/enabled", "is nothing that this port has"));
    }
    let now = devices::told(with.beside, row, "poe_mode");
    if wanted != "off" && !["", "off"].contains(&now.as_str()) {
        payload.remove("poe_mode");
    }
    Ok(())
}

/// What a port forwards where it is on, by the word for its VLANs.
fn forward(word: &str) -> &'static str {
    match word {
        "block_all" => "native",
        "custom" => "customize",
        _ => "all",
    }
}

/// The network of a VLAN.
fn network<'w>(with: With<'w>, field: &str, vlan: &Value) -> Result<&'w Network, Fault> {
    let found = vlan.as_u64().and_then(|vlan| with.beside.of_vlan(vlan));
    found.ok_or_else(|| refused(field, &format!("is the VLAN of no network of the site: {vlan}")))
}

/// The word for the VLANs that a port is asked to carry with a tag, and the networks that it excludes.
fn tagged(
    with: With<'_>,
    asked: &Asked<'_>,
    payload: &Map<String, Value>,
) -> Result<Option<(&'static str, Value)>, Fault> {
    let row = asked.row.unwrap_or(&Value::Null);
    let wanted = asked.fields.get("tagged_vlans").and_then(Value::as_array);
    let mode = asked.fields.get("tagged_mode").and_then(Value::as_str).or(wanted.map(|_| "list"));
    let named = |vlans: &Vec<Value>| -> Result<Vec<String>, Fault> {
        vlans.iter().map(|vlan| Ok(network(with, "tagged_vlans", vlan)?.id.clone())).collect()
    };
    Ok(match (mode, wanted) {
        (None, _) => None,
        (Some("all"), _) => Some(("auto", Value::Null)),
        (Some("none"), _) => Some(("block_all", Value::Null)),
        (Some("list"), Some(vlans)) => {
            let carried = named(vlans)?;
            let own = payload.get("native_networkconf_id").and_then(Value::as_str);
            let stays = || devices::native(with.beside, row).map(|network| network.id.clone());
            let native = own.map(str::to_owned).or_else(stays).unwrap_or_default();
            let is_left = |id: &&str| *id != native && !carried.iter().any(|one| one == id);
            let excluded: Vec<&str> =
                with.beside.local().map(|network| network.id.as_str()).filter(is_left).collect();
            Some(("custom", json!(excluded)))
        }
        (Some("all_but"), Some(vlans)) => Some(("custom", json!(named(vlans)?))),
        (Some("list" | "all_but"), None) => return Err(refused("tagged_vlans", "is needed: the list")),
        (Some(_), _) => return Err(refused("tagged_mode", "can be all, none, list or all_but")),
    })
}

pub(super) fn radio(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let fields = asked.fields;
    let is_off = asked.row.is_some_and(|row| text(row, "tx_power_mode") == "disabled");
    let mut set = |name: &str, value: Value| drop(payload.insert(name.to_owned(), value));
    match (fields.get("channel_auto"), fields.get("channel")) {
        (Some(Value::Bool(true)), None) => set("channel", json!("auto")),
        (Some(Value::Bool(true)), Some(_)) => {
            return Err(refused("channel", "is chosen by the controller then"));
        }
        (_, Some(channel)) => set("channel", channel.clone()),
        (Some(Value::Bool(false)), None) => return Err(refused("channel", "is needed then")),
        _ => {}
    }
    let level = fields.get("power_level").and_then(Value::as_str);
    match (level, fields.get("tx_power_dbm")) {
        (None | Some("custom"), Some(power)) => {
            set("tx_power_mode", json!("custom"));
            set("tx_power", json!(power.to_string()));
        }
        (Some("custom"), None) => return Err(refused("tx_power_dbm", "is needed then")),
        (Some(_), Some(_)) => return Err(refused("tx_power_dbm", "goes with the power level custom")),
        (Some(word @ ("auto" | "low" | "medium" | "high")), None) => set("tx_power_mode", json!(word)),
        (Some(_), None) => return Err(refused("power_level", "can be auto, low, medium, high or custom")),
        (None, None) => {}
    }
    match fields.get("enabled") {
        Some(Value::Bool(false)) => set("tx_power_mode", json!("disabled")),
        // A radio that sends keeps its power.
        Some(Value::Bool(true)) if is_off && level.is_none() && !fields.contains_key("tx_power_dbm") => {
            set("tx_power_mode", json!("auto"));
        }
        _ => {}
    }
    Ok(())
}
