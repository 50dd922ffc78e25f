//! The devices of a site, those that wait for adoption, and the clients.

use std::collections::BTreeSet;

use heddle_sdk::{Completeness, Device, DevicePage, Fault, Host, Status, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::{clients, site};

/// Coarse states of a device.
const CONNECTED: u64 = 1;
const DISCONNECTED: u64 = 0;
const PENDING: u64 = 2;
const HEARTBEAT_MISSED: u64 = 3;
const ISOLATED: u64 = 4;

/// Fields of a row that tell how a device is, and change by themselves.
const MEASURED: [&str; 4] = ["uptime", "cpuUtil", "memUtil", "lastSeen"];
/// Fields that describe it.
const DESCRIBED: [&str; 10] = [
    "subtype",
    "modelVersion",
    "tagName",
    "publicIp",
    "uplinkDeviceMac",
    "uplinkDeviceName",
    "uplinkDevicePort",
    "linkSpeed",
    "duplex",
    "licenseStatus",
];

/// Everything on one page.
pub(crate) fn list(host: &dyn Host, wanted: Option<&str>) -> Result<DevicePage, Fault> {
    let controller = site::controller(host)?;
    let chosen = site::chosen(host, &controller, wanted)?;
    let below = format!("/openapi/v1/{controller}/sites/{}", chosen.id);
    let adopted = site::rows(host, &format!("{below}/devices"))?;
    let mut complete = Completeness::Complete;
    // An application without the right to adopt does not see what waits for it.
    let pending = match site::rows(host, &format!("{below}/grid/devices/pending")) {
        Ok(rows) => rows,
        Err(Fault::Unsupported(_)) => Vec::new(),
        Err(Fault::Denied(_)) => {
            complete = Completeness::RightsLimited;
            Vec::new()
        }
        Err(other) => return Err(other),
    };
    let mut items: Vec<Device> =
        adopted.iter().chain(&pending).filter_map(|row| device(row, &chosen.id)).collect();
    let found = clients::gather(host, &controller, &chosen)?;
    if found.is_denied {
        complete = Completeness::RightsLimited;
    }
    let own: BTreeSet<String> = items.iter().map(|item| item.identity.clone()).collect();
    items.extend(found.all.into_iter().filter(|client| !own.contains(&client.identity)));
    Ok(DevicePage { items, next: None, complete })
}

/// A MAC address as identities have it.
pub(crate) fn lower_mac(text: &str) -> String {
    text.trim().to_lowercase().replace('-', ":")
}

/// Fields of a row that have a value.
pub(crate) fn picked(row: &Value, names: &[&str]) -> Map<String, Value> {
    let value = |name: &&str| Some(((*name).to_owned(), row.get(*name)?.clone()));
    names.iter().filter_map(value).filter(|(_, value)| !value.is_null() && *value != "").collect()
}

/// The addresses of a row; one field may be a text or a list.
pub(crate) fn addresses(row: &Value, fields: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for value in fields.iter().filter_map(|field| row.get(*field)) {
        let all = match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            other => other.as_str().into_iter().collect::<Vec<_>>(),
        };
        for address in all {
            if !address.is_empty() && !out.iter().any(|known| known == address) {
                out.push(address.to_owned());
            }
        }
    }
    out
}

fn status(row: &Value) -> Status {
    match sdk_json::number(row, "/status") {
        Some(CONNECTED) => Status::Online,
        Some(DISCONNECTED | HEARTBEAT_MISSED | ISOLATED) => Status::Offline,
        _ => Status::Unknown,
    }
}

fn kind(row: &Value) -> &'static str {
    match sdk_json::text(row, "/type").unwrap_or_default() {
        "gateway" => "gateway",
        "switch" => "switch",
        "ap" => "access-point",
        "bridge" => "bridge",
        "olt" => "olt",
        _ => "device",
    }
}

fn device(row: &Value, site: &str) -> Option<Device> {
    let mac = lower_mac(sdk_json::text(row, "/mac")?);
    let mut attributes = picked(row, &DESCRIBED);
    let state = match sdk_json::number(row, "/status") {
        Some(PENDING) => Some("pending"),
        Some(HEARTBEAT_MISSED) => Some("heartbeat-missed"),
        Some(ISOLATED) => Some("isolated"),
        _ => None,
    };
    attributes.extend(state.map(|state| ("state".to_owned(), json!(state))));
    let text = |pointer: &str| sdk_json::text(row, pointer).map(str::to_owned);
    Some(Device {
        identity: mac.clone(),
        kind: kind(row).to_owned(),
        status: status(row),
        model: text("/model"),
        serial: text("/sn"),
        firmware: text("/firmwareVersion"),
        mac: Some(mac.clone()),
        addresses: addresses(row, &["ip", "ipv6"]),
        site: Some(site.to_owned()),
        attributes: Value::Object(attributes).to_string(),
        measurements: Value::Object(picked(row, &MEASURED)).to_string(),
        ..Device::named(text("/name").unwrap_or(mac))
    })
}
