//! The firewall itself, and what is behind it.

use heddle_sdk::{Device, DevicePage, Fault, Host, Status, crud, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::answer::{read, rows};
use crate::{clients, profile};

/// Everything on one page.
pub(crate) fn list(host: &dyn Host) -> Result<DevicePage, Fault> {
    let interfaces = interfaces(host)?;
    let found = clients::gather(host)?;
    let own: Vec<String> = interfaces.iter().filter_map(mac_of).collect();
    let mut items = vec![firewall(host, &interfaces)?];
    let complete = found.complete();
    items.extend(
        found.all.into_iter().filter(|client| !own.contains(&client.mac)).map(clients::Client::device),
    );
    Ok(DevicePage { items, next: None, complete })
}

/// The state of the assigned interfaces.
pub(crate) fn interfaces(host: &dyn Host) -> Result<Vec<Value>, Fault> {
    rows(host, "/status/interfaces")
}

pub(crate) fn mac_of(row: &Value) -> Option<String> {
    sdk_json::text(row, "/macaddr").and_then(crud::mac)
}

/// The address of the first port, which it keeps through renames and upgrades.
fn first_mac(interfaces: &[Value]) -> Option<String> {
    let port = |row: &Value| sdk_json::text(row, "/hwif").unwrap_or_default().to_owned();
    // A VLAN has the address of its port, and a tunnel none.
    let mut ports: Vec<&Value> =
        interfaces.iter().filter(|row| mac_of(row).is_some() && !port(row).contains('.')).collect();
    ports.sort_by_key(|row| port(row));
    ports.first().and_then(|row| mac_of(row))
}

/// The identity of the firewall among its devices.
pub(crate) fn identity(host: &dyn Host, interfaces: &[Value]) -> Result<String, Fault> {
    match first_mac(interfaces) {
        Some(mac) => Ok(mac),
        None => Ok(name_of(&read(host, "/system/hostname")?)),
    }
}

fn name_of(hostname: &Value) -> String {
    let parts = ["/hostname", "/domain"].iter().filter_map(|part| sdk_json::text(hostname, part));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

fn firewall(host: &dyn Host, interfaces: &[Value]) -> Result<Device, Fault> {
    let name = name_of(&read(host, "/system/hostname")?);
    let version = read(host, "/system/version")?;
    let status = read(host, "/status/system").unwrap_or_default();
    let mac = first_mac(interfaces);
    let fields = ["name", "descr", "hwif", "enable", "status", "mtu"];
    let shown: Vec<Value> = interfaces.iter().map(|row| some_of(row, &fields)).collect();
    let addresses =
        interfaces.iter().flat_map(|row| ["/ipaddr", "/ipaddrv6"].map(|at| sdk_json::text(row, at)));
    let addresses = addresses.flatten().filter(|text| !text.is_empty()).map(str::to_owned).collect();
    let measured = ["uptime", "cpu_usage", "cpu_load_avg", "mem_usage", "swap_usage", "disk_usage", "temp_c"];
    Ok(Device {
        identity: mac.clone().unwrap_or_else(|| name.clone()),
        kind: "firewall".to_owned(),
        status: Status::Online,
        model: Some(sdk_json::text(&status, "/platform").unwrap_or("pfSense").to_owned()),
        serial: sdk_json::text(&status, "/serial").filter(|serial| !serial.is_empty()).map(str::to_owned),
        firmware: profile::version_of(&version).map(str::to_owned),
        mac,
        addresses,
        attributes: json!({ "interfaces": shown }).to_string(),
        measurements: some_of(&status, &measured).to_string(),
        ..Device::named(name)
    })
}

/// Those of the fields that are known.
fn some_of(row: &Value, fields: &[&str]) -> Value {
    let known = fields.iter().filter_map(|field| Some(((*field).to_owned(), row.get(*field)?.clone())));
    Value::Object(known.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}
