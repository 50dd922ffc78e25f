//! The firewall itself, and what is behind it.

use heddle_sdk::{Device, DevicePage, Fault, Host, Status, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::answer::read;
use crate::clients;

const INFORMATION: &str = "/api/diagnostics/system/system_information";
const INTERFACES: &str = "/api/interfaces/overview/interfaces_info";

/// Everything on one page.
pub(crate) fn list(host: &dyn Host) -> Result<DevicePage, Fault> {
    let information = read(host, INFORMATION)?;
    let interfaces = read(host, INTERFACES)?;
    let rows = sdk_json::items(&interfaces, "/rows");
    let found = clients::gather(host, rows)?;
    let complete = found.complete();
    let mut items = vec![firewall(host, &information, rows)];
    let own = own_macs(rows);
    items.extend(found.all.into_iter().filter(|client| !own.contains(&client.identity)));
    Ok(DevicePage { items, next: None, complete })
}

/// A MAC address as identities have it.
pub(crate) fn lower_mac(text: &str) -> String {
    text.trim().to_lowercase().replace('-', ":")
}

pub(crate) fn own_macs(rows: &[Value]) -> Vec<String> {
    rows.iter().filter_map(|row| sdk_json::text(row, "/macaddr")).map(lower_mac).collect()
}

/// The interfaces without their prefix lengths.
fn addresses(rows: &[Value]) -> Vec<String> {
    let families = |row: &Value| {
        let all = ["/ipv4", "/ipv6"].map(|family| sdk_json::items(row, family).to_vec());
        all.concat()
    };
    let mut out = Vec::new();
    for entry in rows.iter().flat_map(families) {
        let address = sdk_json::text(&entry, "/ipaddr").and_then(|text| text.split('/').next());
        if let Some(address) = address.map(str::to_owned).filter(|address| !out.contains(address)) {
            out.push(address);
        }
    }
    out
}

/// The address of the first port, which it keeps through renames and upgrades.
fn first_mac(rows: &[Value]) -> Option<String> {
    let is_physical = |row: &&Value| row.get("is_physical") == Some(&json!(true));
    let mut ports: Vec<&Value> = rows.iter().filter(is_physical).collect();
    ports.sort_by_key(|row| sdk_json::text(row, "/device").unwrap_or_default().to_owned());
    ports.iter().find_map(|row| sdk_json::text(row, "/macaddr")).map(lower_mac)
}

fn name_of(information: &Value) -> &str {
    sdk_json::text(information, "/name").unwrap_or("firewall")
}

/// The interfaces, as the overview shows them.
pub(crate) fn interfaces(host: &dyn Host) -> Result<Vec<Value>, Fault> {
    Ok(sdk_json::items(&read(host, INTERFACES)?, "/rows").to_vec())
}

/// The identity of the firewall among its devices.
pub(crate) fn identity(host: &dyn Host, rows: &[Value]) -> Result<String, Fault> {
    match first_mac(rows) {
        Some(mac) => Ok(mac),
        None => Ok(name_of(&read(host, INFORMATION)?).to_owned()),
    }
}

fn firewall(host: &dyn Host, information: &Value, rows: &[Value]) -> Device {
    let name = name_of(information);
    let mac = first_mac(rows);
    let shown: Vec<Value> = rows
        .iter()
        .map(|row| {
            let fields = ["device", "identifier", "description", "enabled", "status", "mtu", "vlan_tag"];
            let own = fields.iter().filter_map(|field| Some(((*field).to_owned(), row.get(*field)?.clone())));
            Value::Object(own.collect::<Map<_, _>>())
        })
        .collect();
    let versions = sdk_json::items(information, "/versions");
    let time = read(host, "/api/diagnostics/system/system_time").unwrap_or_default();
    let measured: Map<String, Value> = [("uptime", "/uptime"), ("load", "/loadavg")]
        .iter()
        .filter_map(|(name, pointer)| Some(((*name).to_owned(), time.pointer(pointer)?.clone())))
        .collect();
    Device {
        identity: mac.clone().unwrap_or_else(|| name.to_owned()),
        kind: "firewall".to_owned(),
        status: Status::Online,
        model: Some("OPNsense".to_owned()),
        firmware: versions.first().and_then(Value::as_str).map(str::to_owned),
        mac,
        addresses: addresses(rows),
        attributes: json!({ "versions": versions, "interfaces": shown }).to_string(),
        measurements: Value::Object(measured).to_string(),
        ..Device::named(name)
    }
}
