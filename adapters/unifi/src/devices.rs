//! The devices of a site, those that wait for adoption, and the clients.

use std::collections::BTreeSet;

use heddle_sdk::{Completeness, Device, DevicePage, Fault, Host, Status, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::answer::rows;
use crate::{clients, site};

/// Fields of a row that tell how a device is, and change by themselves.
const MEASURED: [&str; 5] = ["uptime", "num_sta", "satisfaction", "last_seen", "general_temperature"];
/// Fields that describe it.
const DESCRIBED: [&str; 7] =
    ["model", "type", "adopted", "disabled", "upgradable", "upgrade_to_firmware", "inform_ip"];
/// States of a device by their numbers.
const STATES: [(u64, Status, &str); 12] = [
    (0, Status::Offline, "disconnected"),
    (1, Status::Online, "connected"),
    (2, Status::Unknown, "pending"),
    (3, Status::Unknown, "firmware-mismatch"),
    (4, Status::Unknown, "upgrading"),
    (5, Status::Online, "provisioning"),
    (6, Status::Offline, "heartbeat-missed"),
    (7, Status::Unknown, "adopting"),
    (8, Status::Unknown, "deleting"),
    (9, Status::Offline, "inform-error"),
    (10, Status::Unknown, "adoption-failed"),
    (11, Status::Offline, "isolated"),
];

/// Everything on one page.
pub(crate) fn list(host: &dyn Host, wanted: Option<&str>) -> Result<DevicePage, Fault> {
    let site = site::chosen(host, wanted)?;
    let devices = rows(host, &format!("/api/s/{site}/stat/device"))?;
    let mut items: Vec<Device> = devices.iter().filter_map(|row| device(row, &site)).collect();
    let own: BTreeSet<String> = items.iter().map(|item| item.identity.clone()).collect();
    let clients = clients::gather(host, &site)?;
    items.extend(clients.into_iter().filter(|client| !own.contains(&client.identity)));
    Ok(DevicePage { items, next: None, complete: Completeness::Complete })
}

/// Fields of a row that have a value.
pub(crate) fn picked(row: &Value, names: &[&str]) -> Map<String, Value> {
    let value = |name: &&str| Some(((*name).to_owned(), row.get(*name)?.clone()));
    names.iter().filter_map(value).filter(|(_, value)| !value.is_null() && *value != "").collect()
}

/// What a type of device is.
pub(crate) fn kind(row: &Value) -> &'static str {
    match sdk_json::text(row, "/type").unwrap_or_default() {
        "ugw" | "udm" | "uxg" | "ucg" => "gateway",
        "usw" => "switch",
        "uap" => "access-point",
        "ubb" | "udb" => "bridge",
        "uck" | "uas" => "controller",
        "uph" => "phone",
        _ => "device",
    }
}

fn device(row: &Value, site: &str) -> Option<Device> {
    let mac = sdk_json::text(row, "/mac")?.to_lowercase();
    let mut attributes = picked(row, &DESCRIBED);
    let state = sdk_json::number(row, "/state");
    let known = STATES.iter().find(|(number, ..)| Some(*number) == state);
    if let Some((_, _, word)) = known {
        attributes.insert("state".to_owned(), json!(word));
    }
    let text = |pointer: &str| sdk_json::text(row, pointer).map(str::to_owned);
    Some(Device {
        identity: mac.clone(),
        kind: kind(row).to_owned(),
        status: known.map_or(Status::Unknown, |(_, status, _)| *status),
        model: text("/model"),
        serial: text("/serial"),
        firmware: text("/version"),
        mac: Some(mac.clone()),
        addresses: text("/ip").into_iter().collect(),
        site: Some(site.to_owned()),
        attributes: Value::Object(attributes).to_string(),
        measurements: Value::Object(picked(row, &MEASURED)).to_string(),
        ..Device::named(text("/name").unwrap_or(mac))
    })
}
