//! Which addresses may be reached.
//!
//! Controllers live in private networks, so those are allowed; the machine
//! itself, its neighbours by link, and the metadata services of clouds are not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use heddle_core::fault::{Fault, FaultKind};
use ipnet::IpNet;
use url::{Host, Url};

use super::interfaces::Interfaces;
use super::outward::{METADATA, is_metadata};
use super::request::denied;

/// Why an address in a denied network is refused.
pub(super) const DENIED: &str = "the operator has denied its network";
/// Why an address of an interface is refused.
pub(super) const OWN: &str = "it is this machine";

/// The rules, with the networks that the operator opened and denied.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    extra: Vec<IpNet>,
    denied: Vec<IpNet>,
    /// Private networks that plugins may reach.
    plugins: Vec<IpNet>,
    interfaces: Interfaces,
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// An operator may open it.
    Local(&'static str),
    /// No operator may open it.
    Never(&'static str),
}

impl Rules {
    /// `extra` lifts the refusal of loopback and link-local networks, never of metadata services.
    ///
    /// Nothing lifts what is in `denied`.
    pub(crate) fn new(extra: Vec<IpNet>, denied: Vec<IpNet>) -> Self {
        Self { extra, denied, ..Self::default() }
    }

    /// The same rules, with the private networks that plugins may reach.
    pub(crate) fn with_plugin_networks(self, plugins: Vec<IpNet>) -> Self {
        Self { plugins, ..self }
    }

    /// Whether plugins may reach the network of an address, if it is private.
    pub(super) fn is_open_to_plugins(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.plugins.iter().any(|network| network.contains(&address))
    }

    /// Whether the operator has denied the network of an address in its canonical form.
    pub(super) fn denies(&self, address: IpAddr) -> bool {
        self.denied.iter().any(|network| network.contains(&address))
    }

    /// Whether this machine has the address, which is in its canonical form.
    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        self.interfaces.have(address)
    }

    /// Networks that the operator opened.
    pub(super) fn extra(&self) -> &[IpNet] {
        &self.extra
    }

    /// Judges an address in its canonical form.
    pub(super) fn judge(&self, address: IpAddr) -> Result<(), &'static str> {
        let given = address;
        let address = canonical(address);
        if is_metadata(address) {
            return Err(METADATA);
        }
        if self.denies(given) || self.denies(address) {
            return Err(DENIED);
        }
        // What listens on this machine alone may listen on any of its addresses.
        let own = || self.is_own(address).then_some(Class::Local(OWN));
        match class(address).or_else(own) {
            None => Ok(()),
            Some(Class::Local(_)) if self.extra.iter().any(|network| network.contains(&address)) => Ok(()),
            Some(Class::Local(what) | Class::Never(what)) => Err(what),
        }
    }
}

/// The addresses of a controller, all of them allowed.
pub(super) async fn resolve(url: &Url, rules: &Rules) -> Result<Vec<SocketAddr>, Fault> {
    let port = url.port_or_known_default().unwrap_or(443);
    let found = match url.host() {
        Some(Host::Ipv4(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Ipv6(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Domain(name)) => tokio::net::lookup_host((name, port))
            .await
            .map_err(|_| {
                Fault::new(FaultKind::Connection, format!("host name '{name}' cannot be resolved"))
                    .with_code("unresolved")
            })?
            .collect(),
        None => Vec::new(),
    };
    if found.is_empty() {
        return Err(
            Fault::new(FaultKind::Connection, "the controller's host has no address").with_code("unresolved")
        );
    }
    judge_all(&found, rules)?;
    Ok(found)
}

/// One refused address refuses all: which one is connected to is not ours to predict.
fn judge_all(found: &[SocketAddr], rules: &Rules) -> Result<(), Fault> {
    found.iter().try_for_each(|address| {
        rules.judge(address.ip()).map_err(|what| {
            denied(
                "address",
                format!("address {} of the controller is not reachable for adapters: {what}", address.ip()),
            )
        })
    })
}

/// The address that is really reached, with every wrapping taken off.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    match embedded(v6) {
        Some(v4) => IpAddr::V4(v4),
        None => address,
    }
}

fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = v6.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        // Translated (RFC 2765) and NAT64.
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        // Compatible; `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Some(v4(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => Some(v4(high, low)),
        // Teredo: the client's address, inverted.
        [0x2001, 0, _, _, _, _, high, low] => Some(v4(!high, !low)),
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

fn class(address: IpAddr) -> Option<Class> {
    match address {
        IpAddr::V4(v4) => class_v4(v4),
        IpAddr::V6(v6) => class_v6(v6),
    }
}

fn class_v4(v4: Ipv4Addr) -> Option<Class> {
    let [a, b, c, _] = v4.octets();
    match (a, b, c) {
        (0, ..) => Some(Class::Never("it is unspecified")),
        (127, ..) => Some(Class::Local(OWN)),
        (169, 254, _) => Some(Class::Local("it is link-local")),
        (192, 0, 0) => Some(Class::Never("it is reserved for protocols")),
        (224..=239, ..) => Some(Class::Never("it is multicast")),
        (240..=255, ..) => Some(Class::Never("it is reserved")),
        _ => None,
    }
}

fn class_v6(v6: Ipv6Addr) -> Option<Class> {
    let s = v6.segments();
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Class::Never("it is unspecified")),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Class::Local(OWN)),
        [0xfe80..=0xfebf, ..] => Some(Class::Local("it is link-local")),
        [0xfec0..=0xfeff, ..] => Some(Class::Never("it is site-local, which is not used any more")),
        [0xff00..=0xffff, ..] => Some(Class::Never("it is multicast")),
        // Local NAT64 hides an address whose place in it is unknown.
        [0x64, 0xff9b, 1, ..] => Some(Class::Never("it is a translated address")),
        [0x100, 0, 0, 0, ..] => Some(Class::Never("it is discarded")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &Rules, address: &str, allowed: bool) {
        let judged = rules.judge(address.parse().unwrap());
        assert_eq!(judged.is_ok(), allowed, "{address}: {judged:?}");
    }

    #[test]
    fn controllers_may_be_public_or_private() {
        let rules = Rules::default();
        for address in [
            "10.0.0.1",
            "172.16.3.4",
            "192.168.1.1",
            "100.64.0.1",
            "203.0.113.5",
            "8.8.8.8",
            "198.18.0.1",
            "fd12:3456::1",
            "2a00:1450::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "fc00::1",
        ] {
            check(&rules, address, true);
        }
    }

    #[test]
    fn this_machine_links_metadata_and_reserved_are_refused_in_every_dress() {
        let rules = Rules::default();
        for address in [
            "127.0.0.1",
            "127.8.9.10",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "192.0.0.8",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:1:2:3:4:80ff:fffe",
            "2001:0:1:2:3:4:5601:5601",
            "::ffff:0:127.0.0.1",
            "fe80::5efe:7f00:1",
            "2a00::5efe:127.0.0.1",
            "100::1",
            "::2",
        ] {
            check(&rules, address, false);
        }
    }

    #[test]
    fn an_opened_network_lifts_loopback_but_never_metadata() {
        let rules = Rules::new(
            vec![
                "127.0.0.0/8".parse().unwrap(),
                "169.254.0.0/16".parse().unwrap(),
                "::/0".parse().unwrap(),
                "0.0.0.0/0".parse().unwrap(),
            ],
            Vec::new(),
        );
        for address in ["127.0.0.1", "::1", "169.254.1.1", "::ffff:127.0.0.1"] {
            check(&rules, address, true);
        }
        for address in ["169.254.169.254", "fd00:ec2::254", "224.0.0.1", "0.0.0.0", "255.255.255.255"] {
            check(&rules, address, false);
        }
        check(&Rules::new(vec!["127.0.0.1/32".parse().unwrap()], Vec::new()), "127.0.0.2", false);
    }

    /// Of a machine with a private address, a public one, and one of IPv6.
    fn machine(extra: &[&str], denied: &[&str]) -> Rules {
        let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let look =
            || Ok(["10.0.0.5", "203.0.113.9", "2a00:1450::9"].map(|text| text.parse().unwrap()).into());
        Rules { interfaces: Interfaces::fixed(look), ..Rules::new(networks(extra), networks(denied)) }
    }

    #[test]
    fn the_addresses_of_this_machine_are_local_in_every_dress() {
        let rules = machine(&[], &[]);
        for address in ["10.0.0.5", "203.0.113.9", "2a00:1450::9", "::ffff:10.0.0.5", "64:ff9b::a00:5"] {
            check(&rules, address, false);
        }
        for address in ["10.0.0.6", "203.0.113.8", "2a00:1450::8"] {
            check(&rules, address, true);
        }
        let outward = |rules: &Rules, address: &str, is_listed| {
            rules.judge_outward(address.parse().unwrap(), is_listed).is_ok()
        };
        assert!(!outward(&rules, "2a00:1450::9", false) && !outward(&rules, "10.0.0.5", true));
        assert!(outward(&rules, "2a00:1450::8", false) && outward(&rules, "10.0.0.6", true));
        // An operator may open them, as loopback.
        let opened = machine(&["10.0.0.5/32"], &[]);
        check(&opened, "10.0.0.5", true);
        assert!(outward(&opened, "10.0.0.5", true) && !outward(&opened, "10.0.0.5", false));
    }

    #[test]
    fn a_denied_network_is_denied_whatever_else_is_opened_or_listed() {
        let rules = machine(&["10.9.0.0/16", "127.0.0.0/8"], &["10.9.0.0/16", "127.0.0.2/32", "2a00::/16"]);
        for address in ["10.9.1.1", "::ffff:10.9.1.1", "127.0.0.2", "2a00:1450::1", "64:ff9b::a09:101"] {
            check(&rules, address, false);
        }
        for address in ["10.8.1.1", "127.0.0.1"] {
            check(&rules, address, true);
        }
        for address in ["10.9.1.1", "2a00:1450::1"] {
            assert!(rules.judge_outward(address.parse().unwrap(), true).is_err(), "{address}");
        }
    }

    #[test]
    fn one_refused_address_refuses_all() {
        let found = ["10.0.0.1:443".parse().unwrap(), "127.0.0.1:443".parse().unwrap()];
        assert_eq!(judge_all(&found, &Rules::default()).unwrap_err().code.as_deref(), Some("address"));
        assert!(judge_all(&found[..1], &Rules::default()).is_ok());
    }

    #[tokio::test]
    async fn numbers_in_other_clothes_are_the_same_address() {
        for url in [
            "http://0x7f.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://localhost/",
            "http://[::1]/",
        ] {
            let fault = resolve(&Url::parse(url).unwrap(), &Rules::default()).await.unwrap_err();
            assert_eq!(fault.code.as_deref(), Some("address"), "{url}");
        }
    }
}
