//! Interfaces and VLANs.

use heddle_sdk::crud::Modelled;
use heddle_sdk::json as sdk_json;
use serde_json::{Value, json};

use super::network::addresses;
use super::{items, put, text};

/// What a device is, by how its name begins.
const TYPES: [(&str, &str); 15] = [
    ("lo", "loopback"),
    ("bridge", "bridge"),
    ("lagg", "bond"),
    ("vlan", "vlan"),
    ("qinq", "vlan"),
    ("gif", "tunnel"),
    ("gre", "tunnel"),
    ("wg", "tunnel"),
    ("ovpn", "tunnel"),
    ("ipsec", "tunnel"),
    ("vxlan", "tunnel"),
    ("pppoe", "tunnel"),
    ("tun", "tunnel"),
    ("tap", "tunnel"),
    ("stf", "tunnel"),
];

pub(super) fn interface(row: &Value, object: &mut Modelled) {
    let device = text(row, "device").unwrap_or_default();
    let identifier = text(row, "identifier");
    identifier.unwrap_or(device).clone_into(&mut object.key);
    // What is not assigned has a description in the language of the firewall.
    let name = identifier.and_then(|_| text(row, "description"));
    name.unwrap_or(device).clone_into(&mut object.label);
    let kind = kind_of(row, device);
    put(object, "type", Some(kind));
    put(object, "role", role_of(row, kind));
    put(object, "addresses", Some(addresses(row)));
    put(object, "master", master_of(row, device, identifier));
    let is_up = object.fields.get("link").is_some_and(|link| link == "up");
    // Without a link, and where a device has no line, the rate says nothing.
    if !is_up || object.fields.get("speed_mbps").is_some_and(|speed| speed == 0) {
        object.fields.remove("speed_mbps");
    }
}

fn kind_of(row: &Value, device: &str) -> &'static str {
    let begins = TYPES.iter().find(|(begin, _)| device.starts_with(begin));
    let is_vlan = ["vlan_tag", "vlan"].iter().any(|name| row.get(*name).is_some_and(|tag| !tag.is_null()));
    match begins {
        Some((_, kind)) => kind,
        None if is_vlan => "vlan",
        None if device.contains("_wlan") => "wireless",
        None if row.get("is_physical") == Some(&json!(true)) => "physical",
        None => "unknown",
    }
}

/// The rule of the firewall itself: what has a gateway leads outside.
fn role_of(row: &Value, kind: &str) -> Option<&'static str> {
    text(row, "identifier")?;
    let has_gateway = !sdk_json::items(row, "/gateways").is_empty();
    match kind {
        _ if has_gateway => Some("wan"),
        "physical" | "vlan" | "bridge" | "bond" if !addresses(row).is_empty() => Some("lan"),
        _ => None,
    }
}

/// Bonds name devices as their members, bridges name assignments.
fn master_of(row: &Value, device: &str, identifier: Option<&str>) -> Option<String> {
    let of = |list: &str, name: &str, member: &str| {
        let mut all = sdk_json::items(row, list).iter();
        let found = all.find(|one| items(one, "members", ',').iter().any(|known| known == member))?;
        text(found, name).map(|name| name.split(' ').next().unwrap_or(name).to_owned())
    };
    of("/&/bonds", "laggif", device).or_else(|| of("/&/bridges", "bridgeif", identifier?))
}

pub(super) fn vlan(row: &Value, object: &mut Modelled) {
    let carrier = text(row, "if").map(|carrier| carrier.split(' ').next().unwrap_or(carrier));
    put(object, "members", carrier.map(|carrier| json!([{ "port": carrier, "tagged": true }])));
}
