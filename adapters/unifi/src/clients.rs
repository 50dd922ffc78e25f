//! Clients: who is online, and who was seen before.

use std::collections::BTreeMap;

use heddle_sdk::{Device, Fault, Host, Status, json as sdk_json};
use serde_json::Value;

use crate::answer::rows;
use crate::devices::picked;

const DESCRIBED: [&str; 10] =
    ["is_wired", "is_guest", "oui", "essid", "network", "vlan", "ap_mac", "sw_mac", "sw_port", "blocked"];
const MEASURED: [&str; 6] = ["uptime", "rx_bytes", "tx_bytes", "signal", "last_seen", "satisfaction"];

/// Those online, and those that are known and not online.
pub(crate) fn gather(host: &dyn Host, site: &str) -> Result<Vec<Device>, Fault> {
    let mut all: BTreeMap<String, Device> = BTreeMap::new();
    let lists = [("stat/sta", Status::Online), ("rest/user", Status::Offline)];
    for (list, status) in lists {
        for row in rows(host, &format!("/api/s/{site}/{list}"))? {
            let Some(mac) = sdk_json::text(&row, "/mac").map(str::to_lowercase) else { continue };
            all.entry(mac.clone()).or_insert_with(|| client(&row, mac, status, site));
        }
    }
    Ok(all.into_values().collect())
}

fn client(row: &Value, mac: String, status: Status, site: &str) -> Device {
    let text = |pointer: &str| sdk_json::text(row, pointer).map(str::to_owned);
    let name = ["/name", "/hostname"].into_iter().find_map(text);
    Device {
        identity: mac.clone(),
        kind: "client".to_owned(),
        status,
        model: None,
        serial: None,
        firmware: None,
        mac: Some(mac.clone()),
        addresses: text("/ip").into_iter().collect(),
        site: Some(site.to_owned()),
        attributes: Value::Object(picked(row, &DESCRIBED)).to_string(),
        measurements: Value::Object(picked(row, &MEASURED)).to_string(),
        ..Device::named(name.unwrap_or(mac))
    }
}
