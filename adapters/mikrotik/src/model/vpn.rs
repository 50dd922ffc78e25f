//! Tunnels and their peers.

use heddle_sdk::crud::Modelled;
use serde_json::Value;

use super::{is_on, items, put, several, text};

pub(super) fn tunnel(row: &Value, object: &mut Modelled) {
    match object.fields.get("type").and_then(Value::as_str) {
        Some("wireguard") => wireguard(row, object),
        Some("ipsec") => ipsec(row, object),
        _ => {}
    }
    // What is off does not run.
    if object.fields.get("enabled").is_some_and(|is_on| is_on == false) {
        put(object, "state", Some("down"));
    }
}

/// An interface of `WireGuard` runs whether or not a peer is there: one was heard, or none is known to be.
fn wireguard(row: &Value, object: &mut Modelled) {
    let peers: Vec<&Value> = several(row, "peers").iter().filter(|peer| !is_on(peer, "disabled")).collect();
    let is_heard = peers.iter().any(|peer| text(peer, "last-handshake").is_some());
    put(object, "state", Some(if is_heard { "up" } else { "unknown" }));
    put(object, "local_endpoint", text(row, "listen-port").map(|port| format!(":{port}")));
    let networks: Vec<String> = peers.iter().flat_map(|peer| items(peer, "allowed-address")).collect();
    put(object, "remote_networks", (!networks.is_empty()).then_some(networks));
    if let [one] = peers[..] {
        put(object, "remote_endpoint", endpoint(one));
    }
}

/// The networks of a peer are those of its policies.
fn ipsec(row: &Value, object: &mut Modelled) {
    object.key = format!("ipsec:{}", object.key);
    if super::beside(row, "session").is_none() {
        put(object, "state", Some("down"));
    }
    let policies = several(row, "policies");
    for (field, name) in [("local_networks", "src-address"), ("remote_networks", "dst-address")] {
        let all: Vec<&str> = policies.iter().filter_map(|policy| text(policy, name)).collect();
        put(object, field, (!all.is_empty()).then_some(all));
    }
}

/// Where a peer was last heard, else where it is looked for.
fn endpoint(row: &Value) -> Option<String> {
    let of = |address: &str, port: &str| Some((text(row, address)?, text(row, port).unwrap_or_default()));
    let (address, port) = of("current-endpoint-address", "current-endpoint-port")
        .or_else(|| of("endpoint-address", "endpoint-port"))?;
    let is_v6 = address.contains(':');
    let address = if is_v6 { format!("[{address}]") } else { address.to_owned() };
    Some(if port.is_empty() || port == "0" { address } else { format!("{address}:{port}") })
}

pub(super) fn peer(row: &Value, object: &mut Modelled) {
    put(object, "endpoint", endpoint(row));
}
