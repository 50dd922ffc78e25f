//! What a plan knows of the device besides the section that it edits: the other files, and the devices that run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use crate::features::{SectionFeature, check};
use crate::uci::{Config, Entry, Section};

#[derive(Debug, Default, Clone)]
pub(crate) struct World {
    /// Files by name; those that could not be read are absent.
    pub(crate) configs: BTreeMap<String, Config>,
    /// Names of network devices; none when the device does not tell.
    pub(crate) devices: Option<BTreeSet<String>>,
}

impl World {
    /// Whether a device runs that has no section of its own.
    pub(crate) fn is_bare_device(&self, feature: &SectionFeature, key: &[String]) -> bool {
        let Some(devices) = &self.devices else { return false };
        feature.kind == "network.device" && key.first().is_some_and(|name| devices.contains(name))
    }

    pub(crate) fn interface(&self, name: &str) -> Option<&Section> {
        self.configs.get("network")?.by_id(name).filter(|section| section.kind == "interface")
    }

    /// Whether the interfaces are known at all.
    pub(crate) fn knows_network(&self) -> bool {
        self.configs.contains_key("network")
    }

    /// IPv4 subnets of interfaces with fixed addresses: name, address, prefix length.
    pub(crate) fn subnets(&self) -> Vec<(String, Ipv4Addr, u8)> {
        let Some(network) = self.configs.get("network") else { return Vec::new() };
        network
            .of_kind("interface")
            .filter(|interface| interface.text("proto") == Some("static"))
            .flat_map(|interface| {
                subnets_of(interface).into_iter().map(|(ip, bits)| (interface.id.clone(), ip, bits))
            })
            .collect()
    }
}

/// The IPv4 addresses of an interface with their prefix lengths.
pub(crate) fn subnets_of(interface: &Section) -> Vec<(Ipv4Addr, u8)> {
    let mask = interface.text("netmask").and_then(|mask| mask.parse().ok()).and_then(check::mask_bits);
    let words = interface.options.get("ipaddr").map(Entry::words).unwrap_or_default();
    words
        .into_iter()
        .filter_map(|word| match check::prefix(word)? {
            (IpAddr::V4(address), 32) if !word.contains('/') => Some((address, mask.unwrap_or(32))),
            (IpAddr::V4(address), bits) => Some((address, bits)),
            (IpAddr::V6(_), _) => None,
        })
        .collect()
}

/// Whether an address is in the subnet of another.
pub(crate) fn is_in(address: Ipv4Addr, of: Ipv4Addr, bits: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
    u32::from(address) & mask == u32::from(of) & mask
}
