//! What both plugins do, and the bench natively: the same functions over the same types.

use serde::{Deserialize, Serialize};

/// A text that is answered as it came.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) text: String,
}

/// The devices of a controller, as it lists them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listing {
    pub(crate) devices: Vec<Listed>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) mac: String,
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) ip: String,
    pub(crate) adopted: bool,
    /// 1 where the controller reaches the device.
    pub(crate) state: u8,
    pub(crate) uptime: u64,
    pub(crate) clients: u32,
}

/// The same devices in the words of an inventory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inventory {
    devices: Vec<Device>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Device {
    key: String,
    name: String,
    model: String,
    address: String,
    status: Status,
    uptime_secs: u64,
    clients: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    Online,
    Offline,
    Pending,
}

/// Answers what was said.
pub(crate) fn echo(said: Said) -> Said {
    said
}

/// Answers a record for each device.
pub(crate) fn inventory(listing: Listing) -> Inventory {
    Inventory { devices: listing.devices.into_iter().map(device).collect() }
}

fn device(listed: Listed) -> Device {
    let status = match listed {
        Listed { adopted: false, .. } => Status::Pending,
        Listed { state: 1, .. } => Status::Online,
        Listed { .. } => Status::Offline,
    };
    Device {
        key: listed.mac.replace(':', "-").to_lowercase(),
        name: listed.name,
        model: listed.model,
        address: listed.ip,
        status,
        uptime_secs: listed.uptime,
        clients: listed.clients,
    }
}
