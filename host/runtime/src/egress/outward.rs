//! The addresses that requests to the public network may go to: webhooks, notices.
//!
//! A user who may write a URL must not see the network of the service through the service. So only addresses of the
//! public network are reached, unless the operator has listed the host: then private ones, too. Metadata services of
//! clouds are never reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::address::{DENIED, OWN, Rules, canonical};

pub(super) const METADATA: &str = "it is a metadata service";

const UNENCRYPTED: &str = "it is public, and http is for private networks; write https";
const NOT_ASKED: &str = "it is private, and the manifest does not ask for private networks";
const NOT_LISTED: &str =
    "it is private; the operator lists the network in PLUGIN_PRIVATE_NETWORKS to let plugins reach it";

/// Names under which clouds offer their metadata to machines.
const METADATA_NAMES: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.oraclecloud.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
];

const METADATA_V4: &[Ipv4Addr] = &[
    Ipv4Addr::new(169, 254, 169, 254),
    // Containers and pods of Amazon, Tencent, Alibaba, Oracle, and the platform of Azure.
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

const METADATA_V6: &[Ipv6Addr] = &[
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    // Of Scaleway.
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Listing the host lifts it.
    Private(&'static str),
    /// Listing the host lifts it where the operator has opened the network for controllers, too.
    Machine(&'static str),
    /// Nothing lifts it.
    Never(&'static str),
}

impl Rules {
    /// Judges an address of the world. `is_listed` says that the operator has listed the host.
    pub(super) fn judge_outward(&self, address: IpAddr, is_listed: bool) -> Result<(), &'static str> {
        if is_metadata(canonical(address)) {
            return Err(METADATA);
        }
        if self.denies(canonical(address)) {
            return Err(DENIED);
        }
        let address = address.to_canonical();
        // First: a private address of this machine is not opened by listing its host.
        let own = self.is_own(address).then_some(Class::Machine(OWN));
        let is_opened = |network: &IpNet| network.contains(&address);
        match own.or_else(|| class(address)) {
            None => Ok(()),
            Some(Class::Private(_)) if is_listed => Ok(()),
            Some(Class::Machine(_)) if is_listed && self.extra().iter().any(is_opened) => Ok(()),
            Some(Class::Private(what) | Class::Machine(what) | Class::Never(what)) => Err(what),
        }
    }
}

impl Rules {
    /// Judges an address of a plugin's target. A private one needs a target that asks for private networks, and a network
    /// that the operator has listed; an address without encryption is only for those.
    pub(super) fn judge_for_plugin(
        &self,
        address: IpAddr,
        is_private: bool,
        is_encrypted: bool,
    ) -> Result<(), &'static str> {
        let of_premises = |address: IpAddr| match class(address) {
            Some(Class::Private(_) | Class::Machine(_)) => true,
            None | Some(Class::Never(_)) => self.is_own(address),
        };
        let is_open = self.is_open_to_plugins(address);
        let judged = self.judge_outward(address, is_private && is_open);
        let is_of_premises = of_premises(address.to_canonical());
        match judged {
            Ok(()) if !is_encrypted && !is_of_premises => Err(UNENCRYPTED),
            Err(what) if [METADATA, DENIED].contains(&what) => Err(what),
            Err(_) if is_of_premises && !is_private => Err(NOT_ASKED),
            Err(_) if is_of_premises && !is_open => Err(NOT_LISTED),
            judged => judged,
        }
    }
}

/// Whether a cloud offers its metadata under this name.
pub(super) fn is_metadata_name(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    METADATA_NAMES.contains(&name.as_str())
}

pub(super) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => METADATA_V4.contains(&v4),
        IpAddr::V6(v6) => METADATA_V6.contains(&v6),
    }
}

fn class(address: IpAddr) -> Option<Class> {
    match address {
        IpAddr::V4(v4) => class_v4(v4),
        IpAddr::V6(v6) => class_v6(v6),
    }
}

/// By the registry of special addresses (RFC 6890).
fn class_v4(v4: Ipv4Addr) -> Option<Class> {
    let [a, b, c, _] = v4.octets();
    Some(match (a, b, c) {
        (0, ..) => Class::Never("it is unspecified"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Class::Private("it is in a private network"),
        (100, 64..=127, _) => Class::Private("it is in a provider's shared network"),
        (127, ..) => Class::Machine(OWN),
        (169, 254, _) => Class::Never("it is link-local"),
        (192, 0, 0) => Class::Never("it is reserved for protocols"),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Class::Never("it is for documentation"),
        (192, 88, 99) => Class::Never("it is a relay of 6to4"),
        (198, 18..=19, _) => Class::Never("it is for measuring networks"),
        (224..=239, ..) => Class::Never("it is multicast"),
        (240..=255, ..) => Class::Never("it is reserved"),
        _ => return None,
    })
}

fn class_v6(v6: Ipv6Addr) -> Option<Class> {
    Some(match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Never("it is unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Machine(OWN),
        [0xfc00..=0xfdff, ..] => Class::Private("it is in a private network"),
        [0xfe80..=0xfebf, ..] => Class::Never("it is link-local"),
        [0xfec0..=0xfeff, ..] => Class::Never("it is site-local, which is not used any more"),
        [0xff00..=0xffff, ..] => Class::Never("it is multicast"),
        [0x64, 0xff9b, ..] => Class::Never("it is a translated address"),
        [0x100, 0, 0, 0, ..] => Class::Never("it is discarded"),
        [0x2001, 0, ..] => Class::Never("it is a Teredo tunnel"),
        // Benchmarks, ORCHID, drones and anycast of protocols.
        [0x2001, 0..=0x1ff, ..] => Class::Never("it is reserved for protocols"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Never("it is for documentation"),
        [0x2002, ..] => Class::Never("it is a 6to4 tunnel"),
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Class::Never("it is an ISATAP tunnel"),
        [0x2000..=0x3fff, ..] => return None,
        _ => Class::Never("it is reserved"),
    })
}

#[cfg(test)]
mod tests;
