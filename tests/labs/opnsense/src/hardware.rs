//! The devices of the box: physical ports, and what the configuration makes of them.

use crate::choices::{ASSIGNMENTS, effective};
use crate::config::Config;

/// The network ports of the simulated box.
pub(crate) const PORTS: [&str; 4] = ["igb0", "igb1", "igb2", "igb3"];

/// Tables that the firewall keeps by itself.
pub(crate) const BUILT_IN_ALIASES: [&str; 4] = ["bogons", "bogonsv6", "virusprot", "sshlockout"];

/// What a person set at an interface: addresses and switches. No route of the API writes it.
pub(crate) const ADDRESSES: &str = "interfaces";

/// A network device.
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// The device below, and the tag of a VLAN.
    pub(crate) parent: String,
    pub(crate) tag: String,
}

/// Lists of items that make devices: the field that names the device, and the kind.
const MADE: [(&str, &str, &str); 6] = [
    ("Interfaces/Lagg:lagg", "laggif", "lagg"),
    ("Interfaces/Vlan:vlan", "vlanif", "vlan"),
    ("Interfaces/Bridge:bridged", "bridgeif", "bridge"),
    ("Interfaces/Gif:gif", "gifif", "gif"),
    ("Interfaces/Gre:gre", "greif", "gre"),
    ("Interfaces/VxLan:vxlan", "deviceId", "vxlan"),
];

/// All devices that a configuration makes.
pub(crate) fn devices(config: &Config) -> Vec<Device> {
    let device = |name: String, kind| Device { name, kind, parent: String::new(), tag: String::new() };
    let mut out: Vec<Device> = PORTS.iter().map(|name| device((*name).to_owned(), "physical")).collect();
    out.push(device("lo0".to_owned(), "loopback"));
    for (node, field, kind) in MADE {
        for (_, values) in config.rows(node) {
            let name = effective(node, field, values);
            let name = if kind == "vxlan" { format!("vxlan{name}") } else { name.to_owned() };
            out.push(Device {
                parent: effective(node, "if", values).to_owned(),
                tag: effective(node, "tag", values).to_owned(),
                ..device(name, kind)
            });
        }
    }
    let wireguard = config.value("Wireguard/General:", "", "enabled") == "1";
    for (_, values) in config.rows("Wireguard/Server:servers.server").filter(|_| wireguard) {
        out.push(device(format!("wg{}", values.get("instance").map_or("0", String::as_str)), "wireguard"));
    }
    for (_, values) in config.rows("OpenVPN/OpenVPN:Instances.Instance") {
        let role = if effective("OpenVPN/OpenVPN:Instances.Instance", "role", values) == "client" {
            'c'
        } else {
            's'
        };
        out.push(device(format!("ovpn{role}{}", values.get("vpnid").map_or("1", String::as_str)), "openvpn"));
    }
    out
}

/// The key of the interface that a device is assigned to.
pub(crate) fn assigned<'c>(config: &'c Config, device: &str) -> Option<&'c str> {
    config
        .rows(ASSIGNMENTS)
        .find(|(_, values)| values.get("if").is_some_and(|name| name == device))
        .map(|(key, _)| key)
}

/// A MAC address that is always the same for the same name.
pub(crate) fn mac(seed: &str) -> String {
    let sum = seed.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let [a, b, c, d] = sum.to_be_bytes();
    format!("02:10:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}
