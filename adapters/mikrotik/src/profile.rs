//! Who the router is, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
use serde_json::json;

use crate::answer::{read, read_if_there};

/// The oldest release with REST over both protocols.
const OLDEST: (u32, u32) = (7, 9);

/// A menu that a capability stands or falls with, and what it is for.
const PROBES: [(&str, &str, &str); 10] = [
    ("dhcp", "ip/dhcp-server", "the DHCP server; package dhcp"),
    ("ipv6", "ipv6/settings", "IPv6"),
    ("wifi", "interface/wifi", "radios and access points of the new driver; package wifi-qcom"),
    ("wireless", "interface/wireless", "radios of the old driver; package wireless"),
    ("caps-man", "caps-man/manager", "access points of the old driver; package wireless"),
    ("hotspot", "ip/hotspot", "the hotspot; package hotspot"),
    ("user-manager", "user-manager", "the RADIUS server; package user-manager"),
    ("routerboard", "system/routerboard", "serial number and boot loader; not on virtual routers"),
    ("health", "system/health", "sensors; hardware of the vendor"),
    ("poe", "interface/ethernet/poe", "power over Ethernet; hardware"),
];

/// Asks who the router is, and probes what depends on packages and hardware.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let resource = read(host, "system/resource")?;
    let told = sdk_json::text(&resource, "/version");
    let told = told.ok_or_else(|| fault::unsupported("the device does not say that it is a RouterOS"))?;
    // `7.23.7 (long-term)`
    let version = told.split(' ').next().unwrap_or(told);
    fault::refuse_older("RouterOS", version, OLDEST)?;
    let identity = read_if_there(host, "system/identity")?;
    let board = read_if_there(host, "system/routerboard")?;
    let fact = |value: &serde_json::Value, field: &str| sdk_json::text(value, field).map(str::to_owned);
    let capabilities = PROBES.iter().map(|(id, menu, purpose)| {
        Capability::probed(id, purpose, "the user may not read it", &read(host, menu))
    });
    Ok(DeviceProfile::new("RouterOS", version)
        .with_fact("hostname", fact(&identity, "/name"))
        .with_fact("board", fact(&resource, "/board-name"))
        .with_fact("architecture", fact(&resource, "/architecture-name"))
        .with_fact("serial", fact(&board, "/serial-number"))
        .with_capabilities(
            [json!("routeros"), json!(version), json!(fact(&board, "/serial-number"))],
            capabilities.collect(),
        ))
}
