//! The devices of the firewall: physical ports, and what the configuration makes of them.

use serde_json::Value;

use crate::store::{Config, text};

/// The network ports.
pub(crate) const PORTS: [&str; 4] = ["igb0", "igb1", "igb2", "igb3"];

/// A network device.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) mac: String,
}

/// Models that make devices, and the field that names the device.
const MADE: [(&str, &str); 5] = [
    ("InterfaceVLAN", "vlanif"),
    ("InterfaceBridge", "bridgeif"),
    ("InterfaceGRE", "greif"),
    ("InterfaceLAGG", "laggif"),
    ("WireGuardTunnel", "name"),
];

/// All devices that a configuration makes. Members of an aggregate are not listed by themselves.
pub(crate) fn devices(config: &Config) -> Vec<Device> {
    let mut out: Vec<Device> =
        PORTS.iter().map(|name| Device { name: (*name).to_owned(), mac: mac(name) }).collect();
    for (model, field) in MADE {
        let names = config.list(model).iter().map(|own| text(own, field).to_owned());
        out.extend(names.map(|name| Device { name, mac: String::new() }));
    }
    for (model, prefix) in [("OpenVPNServer", "ovpns"), ("OpenVPNClient", "ovpnc")] {
        let ids = config.list(model).iter().filter_map(|own| own.get("vpnid").and_then(Value::as_u64));
        out.extend(ids.map(|id| Device { name: format!("{prefix}{id}"), mac: String::new() }));
    }
    let members: Vec<&Value> = config
        .list("InterfaceLAGG")
        .iter()
        .filter_map(|own| own.get("members").and_then(Value::as_array))
        .flatten()
        .collect();
    out.retain(|device| !members.iter().any(|member| **member == device.name));
    out
}

/// Whether a device exists; members of an aggregate do.
pub(crate) fn exists(config: &Config, name: &str) -> bool {
    PORTS.contains(&name) || devices(config).iter().any(|device| device.name == name)
}

/// The address of a port; a VLAN has that of its port.
pub(crate) fn mac(name: &str) -> String {
    let port = name.split('.').next().unwrap_or_default();
    let at = PORTS.iter().position(|own| *own == port).unwrap_or(9);
    format!("02:00:00:00:01:{at:02x}")
}
