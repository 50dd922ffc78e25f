//! Objects of the model, for what `model.json` cannot say: ids that stand for networks, lists of what is excluded, and
//! what several fields tell together.

pub(crate) mod devices;
pub(crate) mod networks;
mod rules;
mod vpn;
mod wireless;
mod written;

use heddle_sdk::crud::Modelled;
use heddle_sdk::{ModelObject, json as sdk_json};
use serde_json::{Map, Value, json};
pub(crate) use written::expressed;

use crate::beside::Beside;

const VLAN_MAX: u64 = 4_094;

/// Has the last word on an object of the model; false leaves it out.
pub(crate) fn complete(beside: &Beside, kind: &str, row: &Value, object: &mut Modelled) -> bool {
    let fields = &mut object.fields;
    numbers(fields);
    match kind {
        "interface" => return devices::interface(row, fields),
        "port" => devices::port(beside, row, fields),
        "radio" => devices::radio(row, object),
        "neighbour" => return devices::neighbour(row, fields),
        "gateway" => return devices::is_connection(row) && row.get("gateway").is_some(),
        "firmware" => devices::firmware(row, fields),
        "client" => wireless::client(fields),
        "ssid" => wireless::ssid(beside, row, fields),
        "vlan" => networks::vlan(beside, row, fields),
        "dhcp-pool" => return networks::pool(row, fields),
        "route" => networks::route(beside, row, fields),
        "firewall-rule" => rules::rule(beside, row, fields),
        "nat-rule" => rules::translation(row, fields),
        "address-group" => rules::group(row, fields),
        "vpn-tunnel" => vpn::tunnel(row, fields),
        "vpn-peer" => vpn::peer(row, fields),
        "radius-profile" => vpn::radius_profile(row, fields),
        "radius-user" => vpn::radius_user(row, fields),
        _ => {}
    }
    true
}

/// Takes out numbers that stand for none: 0 is no speed, and no number of a VLAN.
fn numbers(fields: &mut Map<String, Value>) {
    let is_vlan = |value: &Value| value.as_u64().is_some_and(|id| (1..=VLAN_MAX).contains(&id));
    if fields.get("vlan_id").is_some_and(|value| !is_vlan(value)) {
        fields.remove("vlan_id");
    }
    for name in ["speed_mbps", "ttl_seconds"] {
        if fields.get(name).is_some_and(|value| value == 0) {
            fields.remove(name);
        }
    }
}

/// Places of rules in their lists, counted from 0: the vendor has numbers with gaps.
pub(crate) fn rank(kind: &str, items: &mut [ModelObject]) {
    if kind != "firewall-rule" {
        return;
    }
    let read = |item: &ModelObject| serde_json::from_str::<Value>(&item.fields).unwrap_or_default();
    let mut known: Vec<(usize, Value)> = items.iter().map(read).enumerate().collect();
    let scope = |fields: &Value| sdk_json::text(fields, "/scope/key").unwrap_or_default().to_owned();
    known.sort_by_key(|(_, fields)| {
        (scope(fields), sdk_json::number(fields, "/position").unwrap_or(u64::MAX))
    });
    let (mut last, mut next) = (None, 0_u64);
    for (at, mut fields) in known {
        let own = scope(&fields);
        next = if last.as_ref() == Some(&own) { next + 1 } else { 0 };
        last = Some(own);
        if fields.get("position").is_some() {
            fields["position"] = json!(next);
            items[at].fields = fields.to_string();
        }
    }
}

/// A text or number of a row, as text; empty where there is none.
pub(crate) fn text(row: &Value, name: &str) -> String {
    match row.get(name) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

pub(crate) fn list<'v>(row: &'v Value, name: &str) -> &'v [Value] {
    row.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts and numbers of a list.
fn texts(row: &Value, name: &str) -> Vec<String> {
    let one = |item: &Value| match item {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    list(row, name).iter().filter_map(one).filter(|text| !text.is_empty()).collect()
}

/// Sets a field where its value is known.
fn set(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value);
    }
}

/// A list that says something; none where there is nothing in it.
fn known(items: Vec<String>) -> Option<Value> {
    (!items.is_empty()).then(|| json!(items))
}

/// A text that says something.
fn said(text: String) -> Option<Value> {
    (!text.is_empty()).then(|| json!(text))
}
