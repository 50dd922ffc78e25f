//! Devices and what they have: interfaces, ports, radios, neighbours, firmware.

use std::collections::{BTreeMap, HashSet};

use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};

use super::networks::MEMBERS_MAX;
use super::{list, set, text, texts};
use crate::beside::{Beside, Network, number};

/// Names of the connections to the internet in the record of a gateway.
const CONNECTIONS: &str = "wan";
const UPLINK: &str = "uplink";

/// Whether a part of the record of a gateway is a connection to the internet.
pub(super) fn is_connection(row: &Value) -> bool {
    row.get("@").and_then(Value::as_str).is_some_and(|name| {
        name.strip_prefix(CONNECTIONS).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Of the parts of a record that are objects, only connections to the internet are interfaces.
pub(super) fn interface(row: &Value, fields: &mut Map<String, Value>) -> bool {
    let is_named = row.get("@").is_some_and(Value::is_string);
    if let Some(addresses) = fields.get_mut("addresses").and_then(Value::as_array_mut) {
        addresses.retain(|address| address != "0.0.0.0");
    }
    !is_named || is_connection(row)
}

/// Settings of a port, the nearest first: its own, what its device tells, those of its profile.
struct Settings<'a> {
    all: [&'a Value; 3],
}

/// Which networks a port carries.
struct Carried<'a> {
    native: Option<&'a Network>,
    mode: &'static str,
    /// None where the controller has a word for it that is not known.
    tagged: Option<Vec<&'a Network>>,
}

impl<'a> Settings<'a> {
    fn of(beside: &'a Beside, device: &'a Value, row: &'a Value) -> Self {
        let number = text(row, "port_idx");
        let own = list(device, "port_overrides").iter().find(|one| text(one, "port_idx") == number);
        let own = own.unwrap_or(&Value::Null);
        let id = [own, row].into_iter().map(|of| text(of, "portconf_id")).find(|id| !id.is_empty());
        let profile = id.and_then(|id| beside.profiles.get(&id)).unwrap_or(&Value::Null);
        Self { all: [own, row, profile] }
    }

    fn text(&self, name: &str) -> String {
        let told = self.all.iter().map(|of| text(of, name)).find(|text| !text.is_empty());
        told.unwrap_or_default()
    }

    fn is_disabled(&self) -> bool {
        self.text("forward") == "disabled"
    }

    /// The network whose packets have no tag. A port or a profile that names none has none; one that says nothing has
    /// the first network.
    fn native(&self, beside: &'a Beside) -> Option<&'a Network> {
        const NATIVE: &str = "native_networkconf_id";
        let [own, row, profile] = self.all.map(|of| of.get(NATIVE).and_then(Value::as_str).map(str::trim));
        // What a device tells is empty also where its profile says more.
        let row = row.filter(|id| !id.is_empty());
        own.or(row).or(profile).map_or_else(|| beside.of_vlan(1), |id| beside.of_id(id))
    }

    /// The word for the networks that a port carries with a tag; where there is none, what it forwards says the same.
    fn tagged(&self) -> String {
        let told = self.text("tagged_vlan_mgmt");
        if !told.is_empty() {
            return told;
        }
        // That it is switched off says nothing of what it carries when it is on.
        let mut forwards = self.all.iter().map(|of| text(of, "forward"));
        let on = forwards.find(|word| !word.is_empty() && word != "disabled");
        let word = match on.as_deref() {
            Some("native") => "block_all",
            Some("customize") => "custom",
            _ => "auto",
        };
        word.to_owned()
    }

    /// The controller stores which networks are excluded.
    fn carried(&self, beside: &'a Beside) -> Carried<'a> {
        let native = self.native(beside);
        let stored = self.all.iter().find(|of| of.get("excluded_networkconf_ids").is_some());
        let excluded = stored.map(|of| texts(of, "excluded_networkconf_ids")).unwrap_or_default();
        let excluded: HashSet<String> = excluded.into_iter().collect();
        let is_other = |network: &&Network| native.is_none_or(|native| native.id != network.id);
        let others = beside.local().filter(is_other);
        let (mode, tagged) = match self.tagged().as_str() {
            "block_all" => ("none", Some(Vec::new())),
            "custom" => ("list", Some(others.filter(|network| !excluded.contains(&network.id)).collect())),
            "auto" => ("all", Some(others.collect())),
            _ => ("unknown", None),
        };
        Carried { native, mode, tagged }
    }
}

/// The VLANs of a port: its own settings come before those of its profile.
pub(super) fn port(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    let settings = Settings::of(beside, &row["^"], row);
    if settings.is_disabled() {
        fields.insert("enabled".to_owned(), json!(false));
    }
    set(fields, "profile", super::said(text(settings.all[2], "name")));
    let carried = settings.carried(beside);
    set(fields, "native_vlan", carried.native.and_then(|native| native.vlan).map(Value::from));
    set(fields, "tagged_mode", Some(json!(carried.mode)));
    if carried.mode != "all" {
        let numbers = |networks: Vec<&Network>| {
            let mut all: Vec<u64> = networks.into_iter().filter_map(|network| network.vlan).collect();
            all.sort_unstable();
            all.dedup();
            json!(all)
        };
        set(fields, "tagged_vlans", carried.tagged.map(numbers));
    }
    set(fields, "lag", aggregation(&row["aggregated_by"]));
}

/// The network whose packets have no tag at a port.
pub(crate) fn native<'a>(beside: &'a Beside, row: &'a Value) -> Option<&'a Network> {
    Settings::of(beside, &row["^"], row).carried(beside).native
}

/// What the settings of a port say in a field, the nearest first; empty where none of them does.
pub(crate) fn told(beside: &Beside, row: &Value, name: &str) -> String {
    Settings::of(beside, &row["^"], row).text(name)
}

/// The word for the networks that a port carries with a tag.
pub(crate) fn tagged(beside: &Beside, row: &Value) -> String {
    Settings::of(beside, &row["^"], row).tagged()
}

/// Whether a port is switched off.
pub(crate) fn is_off(beside: &Beside, row: &Value) -> bool {
    row.get("enable") == Some(&Value::Bool(false)) || Settings::of(beside, &row["^"], row).is_disabled()
}

/// The ports that carry each network, by its id.
pub(crate) fn members(beside: &Beside, devices: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut out = BTreeMap::<String, Vec<Value>>::new();
    for device in devices {
        let Some(mac) = heddle_sdk::crud::mac(&text(device, "mac")) else { continue };
        for row in list(device, "port_table") {
            let settings = Settings::of(beside, device, row);
            let is_line = text(row, "network_name").starts_with(CONNECTIONS);
            if settings.is_disabled() || is_line {
                continue;
            }
            let port = format!("{mac}:{}", text(row, "port_idx"));
            let mut add = |network: &Network, is_tagged: bool| {
                let all = out.entry(network.id.clone()).or_default();
                // One more than the model takes tells that they are too many.
                if all.len() <= MEMBERS_MAX {
                    all.push(json!({ "port": port, "tagged": is_tagged }));
                }
            };
            let carried = settings.carried(beside);
            carried.native.into_iter().for_each(|network| add(network, false));
            carried.tagged.into_iter().flatten().for_each(|network| add(network, true));
        }
    }
    out
}

/// The first port of an aggregation that the port is in.
fn aggregation(of: &Value) -> Option<Value> {
    number(Some(of)).map(|first| json!(first.to_string()))
}

/// What a radio does now, and what it was told.
pub(super) fn radio(row: &Value, object: &mut Modelled) {
    let (name, radio) = (text(row, "name"), text(row, "radio"));
    let stats = list(&row["^"], "radio_table_stats");
    let is_own = |one: &&Value| {
        if name.is_empty() { text(one, "radio") == radio } else { text(one, "name") == name }
    };
    let now = stats.iter().find(is_own).unwrap_or(&Value::Null);
    let fields = &mut object.fields;
    let asked = text(row, "channel");
    let channel = number(now.get("channel")).or_else(|| asked.parse().ok()).filter(|channel| *channel > 0);
    set(fields, "channel", channel.map(Value::from));
    set(fields, "channel_auto", Some(json!(asked.is_empty() || asked == "auto")));
    let power = |of: &Value| text(of, "tx_power").parse::<i64>().ok();
    set(fields, "tx_power_dbm", power(now).or_else(|| power(row)).map(Value::from));
    set(fields, "enabled", Some(json!(text(row, "tx_power_mode") != "disabled")));
    set(fields, "clients", number(now.get("num_sta")).map(Value::from));
    set(fields, "utilization_percent", now.get("cu_total").filter(|used| used.is_number()).cloned());
    let band = fields.get("band").and_then(Value::as_str).unwrap_or_default();
    object.label = format!("{band} GHz");
}

/// Neighbours stand in a list of the device, in a list of each port, or are what the device itself goes up to.
pub(super) fn neighbour(row: &Value, fields: &mut Map<String, Value>) -> bool {
    match row.get("@").and_then(Value::as_str) {
        Some(part) => return part == UPLINK && row.get("uplink_mac").is_some(),
        None if row.get("chassis_id").is_some() => {}
        None => {
            let Some(seen) = list(row, "lldp_table").first() else { return false };
            for (name, at) in [
                ("remote_chassis", "lldp_chassis_id"),
                ("remote_port", "lldp_port_id"),
                ("remote_name", "lldp_system_name"),
            ] {
                set(fields, name, super::said(text(seen, at)));
            }
        }
    }
    fields.contains_key("remote_chassis")
}

pub(super) fn firmware(row: &Value, fields: &mut Map<String, Value>) {
    let is_behind = row.get("upgradable") == Some(&Value::Bool(true));
    let state = match (number(row.get("state")), is_behind) {
        (Some(4), _) => "installing",
        (_, true) => "available",
        (_, false) => "current",
    };
    set(fields, "state", Some(json!(state)));
    if is_behind {
        set(fields, "available", super::said(text(row, "upgrade_to_firmware")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside() -> Beside {
        let network =
            |id: &str, vlan: u64| Network { id: id.to_owned(), name: id.to_owned(), vlan: Some(vlan) };
        let mut beside = Beside {
            networks: vec![network("first", 1), network("staff", 20), network("things", 30)],
            ..Beside::default()
        };
        let profile = json!({ "_id": "desk", "native_networkconf_id": "staff", "forward": "all" });
        beside.profiles.insert("desk".to_owned(), profile);
        beside
    }

    /// Native VLAN, mode and tagged VLANs of a port with settings of its own.
    fn carried(own: &Value) -> (Option<u64>, String, Option<Vec<u64>>) {
        let beside = beside();
        let mut own = own.clone();
        own["port_idx"] = json!(3);
        let device = json!({ "port_overrides": [own] });
        let row = json!({ "port_idx": 3, "native_networkconf_id": "" });
        let settings = Settings::of(&beside, &device, &row);
        let carried = settings.carried(&beside);
        let numbers = |all: Vec<&Network>| all.into_iter().filter_map(|network| network.vlan).collect();
        (carried.native.and_then(|native| native.vlan), carried.mode.to_owned(), carried.tagged.map(numbers))
    }

    #[track_caller]
    fn check(own: &Value, mode: &str, tagged: &[u64]) {
        assert_eq!(carried(own), (Some(1), mode.to_owned(), Some(tagged.to_vec())), "{own}");
    }

    #[test]
    fn port_without_a_word_for_tags_carries_what_it_forwards() {
        check(&json!({}), "all", &[20, 30]);
        check(&json!({ "forward": "native" }), "none", &[]);
        let customized = json!({ "forward": "customize", "excluded_networkconf_ids": ["things"] });
        check(&customized, "list", &[20]);
        check(&json!({ "forward": "native", "tagged_vlan_mgmt": "auto" }), "all", &[20, 30]);
        // What is off carries what its profile says when it is on.
        let mut beside = beside();
        beside.profiles["desk"]["forward"] = json!("native");
        let device =
            json!({ "port_overrides": [{ "port_idx": 3, "portconf_id": "desk", "forward": "disabled" }] });
        assert_eq!(tagged(&beside, &json!({ "port_idx": 3, "^": device })), "block_all");
    }

    #[test]
    fn port_whose_own_network_is_none_has_none() {
        assert_eq!(carried(&json!({ "portconf_id": "desk" })).0, Some(20), "that of its profile");
        assert_eq!(carried(&json!({ "portconf_id": "desk", "native_networkconf_id": "" })).0, None);
        assert_eq!(carried(&json!({ "portconf_id": "desk", "native_networkconf_id": "things" })).0, Some(30));
    }

    #[test]
    fn members_of_a_network_end_where_they_are_too_many() {
        let ports: Vec<Value> = (1..=MEMBERS_MAX + 9).map(|number| json!({ "port_idx": number })).collect();
        let device = json!({ "mac": "02:00:5e:00:00:01", "port_table": ports });
        let found = members(&beside(), &[device]);
        let counts: Vec<usize> = found.values().map(Vec::len).collect();
        assert_eq!(counts, [MEMBERS_MAX + 1; 3]);
    }
}
