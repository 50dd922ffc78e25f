//! Tunnels and their peers.

use heddle_sdk::crud::Modelled;
use heddle_sdk::json as sdk_json;
use serde_json::{Value, json};

use super::{items, put, text};

pub(super) fn tunnel(row: &Value, object: &mut Modelled) {
    match object.fields.get("type").and_then(Value::as_str) {
        Some("wireguard") => {
            put(object, "interface", text(row, "instance").map(|number| format!("wg{number}")));
        }
        Some("ipsec") if row.get("proposals").is_some() => ipsec(row, object),
        Some("ipsec") => object.key = format!("phase1:{}", object.key),
        Some("openvpn") => openvpn(row, object),
        _ => {}
    }
    // What is off does not run.
    if object.fields.get("enabled").is_some_and(|is_on| is_on == false) {
        put(object, "state", Some("down"));
    }
}

/// The networks of a connection are those of its children.
fn ipsec(row: &Value, object: &mut Modelled) {
    let children = sdk_json::items(row, "/&/children");
    for (field, name) in [("local_networks", "local_ts"), ("remote_networks", "remote_ts")] {
        let all: Vec<String> = children.iter().flat_map(|child| items(child, name, ',')).collect();
        put(object, field, (!children.is_empty()).then_some(all));
    }
    for (field, port) in [("local_endpoint", "local_port"), ("remote_endpoint", "remote_port")] {
        let address = object.fields.get(field).and_then(Value::as_str).map(str::to_owned);
        let whole = address.zip(text(row, port)).map(|(address, port)| format!("{address}:{port}"));
        put(object, field, whole);
    }
}

/// A server that has clients stands in the list of sessions by its clients alone.
fn openvpn(row: &Value, object: &mut Modelled) {
    let id = text(row, "uuid").unwrap_or_default();
    let role = if text(row, "role") == Some("client") { 'c' } else { 's' };
    put(object, "interface", text(row, "vpnid").map(|number| format!("ovpn{role}{number}")));
    let local = [text(row, "local"), text(row, "port")];
    put(
        object,
        "local_endpoint",
        if let [Some(own), Some(port)] = local { Some(format!("{own}:{port}")) } else { None },
    );
    let is_own =
        |session: &&Value| text(session, "id").is_some_and(|known| known.split('_').next() == Some(id));
    let found = sdk_json::items(row, "/&/sessions").iter().find(is_own);
    let state = found.map(|session| match text(session, "status") {
        Some("ok" | "connected") => "up",
        None | Some("failed") => "down",
        Some(_) => "unknown",
    });
    put(object, "state", state);
    let own: Vec<&str> = ["server", "server_ipv6"].iter().filter_map(|name| text(row, name)).collect();
    if !own.is_empty() {
        let routed =
            object.fields.get("remote_networks").and_then(Value::as_array).cloned().unwrap_or_default();
        let all: Vec<Value> = own.into_iter().map(|network| json!(network)).chain(routed).collect();
        put(object, "remote_networks", Some(all));
    }
}

/// A peer that was never heard has no endpoint.
pub(super) fn peer(object: &mut Modelled) {
    if object.fields.get("endpoint").is_some_and(|endpoint| endpoint == "(none)") {
        object.fields.remove("endpoint");
    }
}
