//! Tunnels, their peers, and RADIUS.

use serde_json::{Map, Value, json};

use super::{list, set, text, texts};
use crate::beside::number;

/// Networks stand for their prefix; only the tunnels of the vendor's own service tell whether they are up.
pub(super) fn tunnel(row: &Value, fields: &mut Map<String, Value>) {
    // The controller stores no word of a server that is on.
    if row.get("purpose").is_some() && !fields.contains_key("enabled") {
        fields.insert("enabled".to_owned(), json!(true));
    }
    if let Some((_, prefix)) = super::networks::subnet(&text(row, "ip_subnet")) {
        set(fields, "local_networks", Some(json!([prefix])));
    }
    let states: Vec<&Value> = list(row, "status")
        .iter()
        .flat_map(|site| list(site, "connections"))
        .filter_map(|one| one.get("connected"))
        .collect();
    if !states.is_empty() {
        let is_up = states.into_iter().any(|state| state == &Value::Bool(true));
        set(fields, "state", Some(json!(if is_up { "up" } else { "down" })));
    }
    let ends = list(row, "connections").iter().flat_map(|one| list(one, "sites"));
    let ends: Vec<String> =
        ends.map(|site| text(site, "wanIp")).filter(|address| !address.is_empty()).collect();
    if let [local, remote] = ends.as_slice() {
        set(fields, "local_endpoint", Some(json!(local)));
        set(fields, "remote_endpoint", Some(json!(remote)));
    }
}

/// The address of a peer in the tunnel, and the networks behind it.
pub(super) fn peer(row: &Value, fields: &mut Map<String, Value>) {
    let own = [text(row, "interface_ip"), text(row, "interface_ipv6")]
        .into_iter()
        .filter(|address| !address.is_empty());
    let all: Vec<String> = own.chain(texts(row, "allowed_ips")).collect();
    set(fields, "allowed", super::known(all));
}

/// The servers that prove users; one that counts as well stands in both lists.
pub(super) fn radius_profile(row: &Value, fields: &mut Map<String, Value>) {
    let counting: Vec<String> = list(row, "acct_servers").iter().map(|server| text(server, "ip")).collect();
    let one = |server: &Value| {
        let address = text(server, "ip");
        let port = number(server.get("port"))?;
        let counts = counting.contains(&address);
        (!address.is_empty()).then(|| json!({ "address": address, "port": port, "accounting": counts }))
    };
    let servers: Vec<Value> = list(row, "auth_servers").iter().filter_map(one).collect();
    set(fields, "servers", Some(json!(servers)));
}

/// A user whose name is an address is a device.
pub(super) fn radius_user(row: &Value, fields: &mut Map<String, Value>) {
    set(fields, "mac", heddle_sdk::crud::mac(&text(row, "name")).map(Value::from));
}
