//! Tunnels, their peers, and what RADIUS servers know.

use serde_json::{Map, Value, json};

use super::networks::prefix;
use super::{known, list, mac, set, text, vlan_id};

/// The networks at both ends of a tunnel.
pub(super) fn tunnel(row: &Value, fields: &mut Map<String, Value>) {
    let custom = texts_of_networks(row, "customNetwork");
    let named = list(&row["&"], "networks").filter_map(|network| prefix(&text(network, "gatewaySubnet")));
    let local = if text(row, "networkType") == "1" { custom } else { named.collect() };
    set(fields, "local_networks", known(local));
    // Releases before 6.2 have objects.
    set(fields, "remote_networks", known(texts_of_networks(row, "remoteSubnet")));
    if fields.get("remote_endpoint").is_some_and(|address| address == "0.0.0.0") {
        fields.remove("remote_endpoint");
    }
}

/// `ip` and `mask` of each object in a list.
fn texts_of_networks(row: &Value, name: &str) -> Vec<String> {
    let one = |network: &Value| match network {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        _ => prefix(&format!("{}/{}", text(network, "ip"), text(network, "mask"))),
    };
    list(row, name).filter_map(one).collect()
}

/// Where a peer is, with its port.
pub(super) fn peer(row: &Value, fields: &mut Map<String, Value>) {
    let either = |names: [&str; 2]| {
        names.iter().map(|name| text(row, name)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let (address, port) = (either(["endPoint", "remoteIp"]), either(["endPointPort", "servicePort"]));
    let endpoint = match (address.is_empty(), port.is_empty()) {
        (true, _) => None,
        (false, true) => Some(address),
        (false, false) if address.contains(':') => Some(format!("[{address}]:{port}")),
        (false, false) => Some(format!("{address}:{port}")),
    };
    set(fields, "endpoint", endpoint.map(Value::from));
}

/// The servers of a profile: those that decide, then those that are told.
pub(super) fn radius_profile(row: &Value, fields: &mut Map<String, Value>) {
    let server = |one: &Value, address: &str, port: &str, is_told: bool| {
        let address = text(one, address);
        let mut server = Map::from_iter([
            ("address".to_owned(), json!(address)),
            ("accounting".to_owned(), json!(is_told)),
        ]);
        set(&mut server, "port", text(one, port).parse::<u16>().ok().map(Value::from));
        (!address.is_empty()).then_some(Value::Object(server))
    };
    let decide = list(row, "authServer").filter_map(|one| server(one, "radiusServerIp", "radiusPort", false));
    let told = list(row, "acctServer")
        .filter(|_| row["radiusAccountingEnable"] == true)
        .filter_map(|one| server(one, "accountingServerIp", "accountingServerPort", true));
    set(fields, "servers", Some(decide.chain(told).collect()));
}

/// A user, or a device that is its hardware address.
pub(super) fn radius_user(row: &Value, fields: &mut Map<String, Value>) {
    set(fields, "vlan_id", vlan_id(&text(row, "vlanId")).map(Value::from));
    if text(row, "type") == "1" {
        set(fields, "mac", mac(&text(row, "username")).map(Value::from));
    }
}
