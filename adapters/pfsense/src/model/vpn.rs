//! Tunnels and peers.

use heddle_sdk::crud::Modelled;
use heddle_sdk::json as sdk_json;
use serde_json::{Value, json};

use super::{beside, put, text, texts};

pub(super) fn tunnel(row: &Value, object: &mut Modelled) {
    if row.get("privatekey").is_some() || row.get("listenport").is_some() {
        put(object, "local_networks", prefixes(row.get("addresses")));
    } else if row.get("ikeid").is_some() {
        ipsec(row, object);
    } else {
        openvpn(row, object);
    }
}

/// `10.9.0.1` and `24` as a prefix.
fn prefixes(list: Option<&Value>) -> Option<Value> {
    let one = |entry: &Value| Some(format!("{}/{}", text(entry, "address")?, entry.get("mask")?));
    let all: Vec<String> = list?.as_array()?.iter().filter_map(one).collect();
    Some(json!(all))
}

/// A connection is called `con` and the number of its phase 1.
fn ipsec(row: &Value, object: &mut Modelled) {
    let ikeid = row.get("ikeid").map(Value::to_string).unwrap_or_default();
    let names = [format!("con{ikeid}"), format!("con{ikeid}00000")];
    let all = beside(row, "sessions").and_then(Value::as_array);
    let is_own = |one: &&Value| text(one, "con_id").is_some_and(|id| names.iter().any(|name| name == id));
    let session = all.and_then(|all| all.iter().find(is_own));
    let state = session.and_then(|session| text(session, "state"));
    put(object, "state", all.map(|_| if state == Some("ESTABLISHED") { "up" } else { "down" }));
    put(object, "local_endpoint", session.and_then(|session| text(session, "local_host")));
    let children = session.map(|session| sdk_json::items(session, "/child_sas")).unwrap_or_default();
    let sum = |name: &str| children.iter().filter_map(|child| child.get(name)?.as_u64()).sum::<u64>();
    if !children.is_empty() {
        put(object, "rx_bytes", Some(sum("bytes_in")));
        put(object, "tx_bytes", Some(sum("bytes_out")));
    }
    let phases = sdk_json::items(row, "/&/phases");
    for (field, side) in [("local_networks", "localid"), ("remote_networks", "remoteid")] {
        let network = |phase: &Value| {
            let address = text(phase, &format!("{side}_address"))?;
            let bits = phase.get(format!("{side}_netbits")).and_then(Value::as_u64);
            Some(bits.map_or_else(|| address.to_owned(), |bits| format!("{address}/{bits}")))
        };
        put(object, field, Some(json!(phases.iter().filter_map(network).collect::<Vec<_>>())));
    }
}

fn openvpn(row: &Value, object: &mut Modelled) {
    let listed =
        |names: [&str; 2]| -> Vec<String> { names.iter().flat_map(|name| texts(row.get(*name))).collect() };
    put(object, "local_networks", Some(json!(listed(["local_network", "local_networkv6"]))));
    put(object, "remote_networks", Some(json!(listed(["remote_network", "remote_networkv6"]))));
    if let Some(server) = text(row, "server_addr") {
        let port = text(row, "server_port").map(|port| format!(":{port}")).unwrap_or_default();
        put(object, "remote_endpoint", Some(format!("{server}{port}")));
    }
}

pub(super) fn peer(row: &Value, object: &mut Modelled) {
    put(object, "allowed", prefixes(row.get("allowedips")));
    if let Some(address) = text(row, "endpoint") {
        let port = text(row, "port").map(|port| format!(":{port}")).unwrap_or_default();
        put(object, "endpoint", Some(format!("{address}{port}")));
    }
    let key = text(row, "publickey");
    let tunnels = sdk_json::items(row, "/&/tunnels");
    let mut peers = tunnels.iter().flat_map(|tunnel| sdk_json::items(tunnel, "/peers"));
    let Some(seen) = peers.find(|peer| text(peer, "public_key") == key) else { return };
    for (field, name) in [("rx_bytes", "transfer_rx"), ("tx_bytes", "transfer_tx")] {
        put(object, field, seen.get(name).and_then(Value::as_u64));
    }
    let handshake = seen.get("latest_handshake").and_then(Value::as_i64).filter(|seconds| *seconds > 0);
    put(object, "last_handshake_at", handshake.map(heddle_sdk::crud::rfc3339));
}
