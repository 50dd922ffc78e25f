//! The router itself, and what is behind it.

use heddle_sdk::{Device, DevicePage, Fault, Host, Status, crud, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::answer::{read, read_if_there};
use crate::clients;

/// Everything on one page.
pub(crate) fn list(host: &dyn Host) -> Result<DevicePage, Fault> {
    let interfaces = read(host, "interface")?;
    let rows = sdk_json::items(&interfaces, "");
    let found = clients::gather(host)?;
    let complete = found.complete();
    let own = own_macs(rows);
    let mut items = vec![router(host, rows)?];
    let clients = found.all.into_iter().filter(|(mac, _)| !own.contains(mac));
    items.extend(clients.map(|(mac, client)| client.device(&mac)));
    Ok(DevicePage { items, next: None, complete })
}

/// Addresses of the router's own interfaces.
pub(crate) fn own_macs(rows: &[Value]) -> Vec<String> {
    rows.iter().filter_map(|row| sdk_json::text(row, "/mac-address").and_then(crud::mac)).collect()
}

/// The identity of the router among its devices: its serial number, which hardware has, else the address of its first
/// port, which it keeps through renames and upgrades.
pub(crate) fn identity(host: &dyn Host) -> Result<String, Fault> {
    let board = read_if_there(host, "system/routerboard")?;
    if let Some(serial) = sdk_json::text(&board, "/serial-number").filter(|serial| !serial.is_empty()) {
        return Ok(serial.to_owned());
    }
    let interfaces = read(host, "interface")?;
    if let Some(mac) = first_mac(sdk_json::items(&interfaces, "")) {
        return Ok(mac);
    }
    let identity = read(host, "system/identity")?;
    Ok(sdk_json::text(&identity, "/name").unwrap_or("router").to_owned())
}

fn first_mac(rows: &[Value]) -> Option<String> {
    let is_port = |row: &&Value| sdk_json::text(row, "/type") == Some("ether");
    let mut ports: Vec<&Value> = rows.iter().filter(is_port).collect();
    ports.sort_by_key(|row| sdk_json::text(row, "/default-name").unwrap_or_default().to_owned());
    ports.iter().find_map(|row| sdk_json::text(row, "/mac-address").and_then(crud::mac))
}

fn router(host: &dyn Host, rows: &[Value]) -> Result<Device, Fault> {
    let identity = identity(host)?;
    let name = read_if_there(host, "system/identity")?;
    let resource = read_if_there(host, "system/resource")?;
    let board = read_if_there(host, "system/routerboard")?;
    let addresses = read_if_there(host, "ip/address")?;
    let text = |value: &Value, field: &str| sdk_json::text(value, field).map(str::to_owned);
    let of = |row: &Value| Some(sdk_json::text(row, "/address")?.split('/').next()?.to_owned());
    let shown: Vec<Value> = rows
        .iter()
        .map(|row| {
            let fields = ["name", "default-name", "type", "running", "disabled", "actual-mtu", "comment"];
            let own = fields.iter().filter_map(|field| Some(((*field).to_owned(), row.get(*field)?.clone())));
            Value::Object(own.collect::<Map<_, _>>())
        })
        .collect();
    let measured = ["uptime", "cpu-load", "free-memory", "total-memory", "free-hdd-space", "total-hdd-space"];
    let measured: Map<String, Value> = measured
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), resource.get(*field)?.clone())))
        .collect();
    Ok(Device {
        identity: identity.clone(),
        kind: "router".to_owned(),
        status: Status::Online,
        model: text(&board, "/model").or_else(|| text(&resource, "/board-name")),
        serial: text(&board, "/serial-number"),
        firmware: text(&resource, "/version"),
        mac: first_mac(rows),
        addresses: sdk_json::items(&addresses, "").iter().filter_map(of).collect(),
        attributes: json!({ "interfaces": shown, "architecture": resource.get("architecture-name") })
            .to_string(),
        measurements: Value::Object(measured).to_string(),
        ..Device::named(text(&name, "/name").unwrap_or(identity))
    })
}
