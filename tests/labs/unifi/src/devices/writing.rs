//! A write to a device: it is checked, stored, delivered, and shown a moment later.

use serde_json::Value;

use crate::check;
use crate::console::{Console, duration};
use crate::facts::Facts;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, object, objects, put, text, texts};
use crate::timeline::Event;

/// Writes to the device with this id, and returns its record.
pub(crate) fn write(own: &mut Console, site: &str, id: &str, body: &Row) -> Outcome<Row> {
    let device = own.store.find(site, "device", id).cloned().ok_or_else(Refusal::no_id)?;
    // States are no configuration: a gateway refuses a body that says otherwise.
    for name in ["state", "adopted"] {
        if body.get(name).is_some_and(|value| Some(value) != device.get(name))
            && crate::devices::is_gateway(&device)
        {
            return Err(Refusal::invalid(name, ""));
        }
    }
    let facts = &Facts::get().rest["device"];
    let mut sent = check::known(&facts.fields, body, own.settings.release)?;
    if let Some(overrides) = body.get("wlan_overrides") {
        put(&mut sent, "wlan_overrides", overrides.clone());
    }
    check_references(own, site, &device, &sent)?;
    keep_parts(&device, &mut sent);
    let mut old = object(&device, "~old").cloned().unwrap_or_default();
    for name in sent.keys() {
        if !old.contains_key(name) {
            put(&mut old, name, device.get(name).cloned().unwrap_or(Value::Null));
        }
    }
    let mac = text(&device, "mac").to_owned();
    let settle = duration(own.settings.settle);
    if let Some(stored) = own.store.find_mut(site, "device", id) {
        stored.extend(sent);
        if settle > 0 {
            put(stored, "~old", old);
        }
    }
    if settle > 0 {
        own.plan_in(settle, site, &mac, Event::Settled);
    }
    own.provision_one(site, &mac);
    let stored = own.store.find(site, "device", id).cloned().unwrap_or_default();
    Ok(crate::row::shown(&stored))
}

/// What the sent lists may not say.
fn check_references(own: &Console, site: &str, device: &Row, sent: &Row) -> Outcome<()> {
    let count = objects(device, "~ports").len();
    let has_network = |id: &str| id.is_empty() || own.store.find(site, "networkconf", id).is_some();
    for entry in objects(sent, "port_overrides") {
        if let Some(idx) = number(entry, "port_idx")
            && usize::try_from(idx).is_ok_and(|idx| idx > count)
        {
            return Err(Refusal::invalid("port_overrides.port_idx", &format!("1 to {count}")));
        }
        let profile = text(entry, "portconf_id");
        if !profile.is_empty() && own.store.find(site, "portconf", profile).is_none() {
            return Err(Refusal::new("IdInvalid"));
        }
        let networks = ["native_networkconf_id", "voice_networkconf_id"].map(|name| text(entry, name));
        let excluded = texts(entry, "excluded_networkconf_ids");
        if !networks.into_iter().chain(excluded).all(has_network) {
            return Err(Refusal::new("IdInvalid"));
        }
        if entry.contains_key("op_mode")
            && crate::devices::is_gateway(device)
            && matches!(text(entry, "op_mode"), "aggregate" | "mirror")
        {
            return Err(Refusal::invalid("port_overrides.op_mode", "switch"));
        }
    }
    let has_outlet =
        |index: Option<i64>| objects(device, "~outlets").iter().any(|own| number(own, "index") == index);
    if objects(sent, "outlet_overrides").iter().any(|entry| !has_outlet(number(entry, "index"))) {
        return Err(Refusal::invalid("outlet_overrides.index", ""));
    }
    for radio in objects(sent, "radio_table") {
        let band = text(radio, "radio");
        if !objects(device, "~radios").iter().any(|own| text(own, "radio") == band) {
            return Err(Refusal::invalid("radio_table.radio", ""));
        }
        if let Some(channel) = number(radio, "channel")
            && !has_channel(band, channel)
        {
            return Err(Refusal::new("InvalidChannel"));
        }
    }
    if !has_network(text(sent, "mgmt_network_id")) {
        return Err(Refusal::new("IdInvalid"));
    }
    if flag(sent, "disabled") && text(device, "type") != "uap" {
        return Err(Refusal::invalid("disabled", ""));
    }
    Ok(())
}

fn has_channel(band: &str, channel: i64) -> bool {
    match band {
        "ng" => (1..=13).contains(&channel),
        "na" => {
            (36..=64).contains(&channel) && channel % 4 == 0
                || (100..=144).contains(&channel)
                || (149..=165).contains(&channel)
        }
        _ => true,
    }
}

/// A list is replaced whole, but a radio keeps the parts that the body does not name.
fn keep_parts(device: &Row, sent: &mut Row) {
    let Some(table) = sent.get_mut("radio_table").and_then(Value::as_array_mut) else { return };
    for radio in table {
        let old =
            objects(device, "radio_table").into_iter().find(|old| old.get("radio") == radio.get("radio"));
        let Some(old) = old else { continue };
        for name in ["name", "antenna_gain", "antenna_id"] {
            if radio.get(name).is_none() {
                radio[name] = old.get(name).cloned().unwrap_or_default();
            }
        }
    }
}
