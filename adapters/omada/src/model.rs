//! Objects of the model, for what `model.json` cannot say: numbers that are sets, ids that stand for names, and what
//! several fields tell together.

mod networks;
mod rules;
mod seen;
mod tunnels;
mod wireless;
mod written;

use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};
pub(crate) use written::expressed;

const VLAN_MAX: u64 = 4_094;

/// Has the last word on an object of the model; false leaves it out.
pub(crate) fn complete(kind: &str, row: &Value, object: &mut Modelled) -> bool {
    object.key = with_mac(&object.key);
    let fields = &mut object.fields;
    vlans(fields);
    match kind {
        "system" => seen::system(row, fields),
        "firmware" => seen::firmware(row, fields),
        "client" => return seen::client(row, fields),
        "neighbour" => seen::neighbour(fields),
        "interface" => networks::interface(row, fields),
        "port" => networks::port(row, object),
        "vlan" => networks::vlan(row, fields),
        "dhcp-pool" => networks::pool(row, fields),
        "ssid" => wireless::ssid(row, fields),
        "radio" => return wireless::radio(row, object),
        "firewall-rule" => rules::rule(row, fields),
        "nat-rule" => rules::forward(row, fields),
        "address-group" => rules::group(row, fields),
        "vpn-tunnel" => tunnels::tunnel(row, fields),
        "vpn-peer" => tunnels::peer(row, fields),
        "radius-profile" => tunnels::radius_profile(row, fields),
        "radius-user" => tunnels::radius_user(row, fields),
        _ => {}
    }
    true
}

/// Takes out numbers that are of no VLAN: the vendor has 0 for none, and numbers of its own for bridges.
fn vlans(fields: &mut Map<String, Value>) {
    let is_vlan = |value: &Value| value.as_u64().is_some_and(|id| (1..=VLAN_MAX).contains(&id));
    for name in ["vlan_id", "native_vlan"] {
        if fields.get(name).is_some_and(|value| !is_vlan(value)) {
            fields.remove(name);
        }
    }
    if let Some(Value::Array(tagged)) = fields.get_mut("tagged_vlans") {
        tagged.retain(is_vlan);
    }
}

/// A key that begins with a hardware address, with that address as identities have it.
fn with_mac(key: &str) -> String {
    let (first, rest) = key.split_once(':').map_or((key, None), |(first, rest)| (first, Some(rest)));
    match (mac(first), rest) {
        (Some(mac), Some(rest)) => format!("{mac}:{rest}"),
        (Some(mac), None) => mac,
        (None, _) => key.to_owned(),
    }
}

/// A hardware address as the model writes it, of one that the vendor writes with hyphens.
fn mac(text: &str) -> Option<String> {
    let bytes: Vec<&str> = text.split('-').collect();
    let is_byte = |byte: &&str| byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
    (bytes.len() == 6 && bytes.iter().all(is_byte)).then(|| bytes.join(":").to_ascii_lowercase())
}

/// A text or number of a row, as text; empty where there is none.
fn text(row: &Value, name: &str) -> String {
    match row.get(name) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn list<'v>(row: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + Clone {
    row.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The texts and numbers of a list.
fn texts(row: &Value, name: &str) -> Vec<String> {
    let one = |item: &Value| match item {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    list(row, name).filter_map(one).filter(|text| !text.is_empty()).collect()
}

/// A number of a VLAN.
fn vlan_id(text: &str) -> Option<u64> {
    text.parse().ok().filter(|id| (1..=VLAN_MAX).contains(id))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_begin_with_the_address_that_identities_have() {
        assert_eq!(with_mac("3C-6A-D2-00-01-10"), "3c:6a:d2:00:01:10");
        assert_eq!(with_mac("3C-6A-D2-00-01-10:7"), "3c:6a:d2:00:01:10:7");
        for other in ["", ":", "Default:Office", "3C-6A-D2-00-01", "3C-6A-D2-00-01-1é", "a-b-c-d-e-f:1"] {
            assert_eq!(with_mac(other), other);
        }
    }
}
