//! The client of a request: its address and its scheme, also behind proxies.
//!
//! Forwarding headers are trusted only from a peer in `TRUSTED_PROXIES`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// The edge puts it into the extensions of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    pub ip: IpAddr,
    pub is_https: bool,
}

/// The unit that limits count: one IPv4 address, or one IPv6 network of a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

impl Client {
    pub(super) fn of(request: &Request, trusted: &[IpNet]) -> Self {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip());
        Self::behind(peer, request.headers(), trusted)
    }

    fn behind(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let peer = peer.to_canonical();
        let is_trusted = |ip: &IpAddr| trusted.iter().any(|network| network.contains(ip));
        if !is_trusted(&peer) {
            return Self { ip: peer, is_https: false };
        }
        // Each proxy appends the address of its own peer: the end is trustworthy, the beginning is the client's claim.
        let mut ip = peer;
        for entry in list(headers, FORWARDED_FOR).rev() {
            let Some(named) = entry.and_then(address) else { break };
            ip = named;
            if !is_trusted(&ip) {
                break;
            }
        }
        let scheme = list(headers, FORWARDED_PROTO).next_back().flatten();
        Self { ip, is_https: scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) }
    }

    /// Returns what limits count as one client: the IPv4 address, or the /64 network of the IPv6 address. Its
    /// text is part of the keys of limits.
    pub fn network(&self) -> Network {
        Network::of(self.ip)
    }
}

impl Network {
    /// Returns the network of an address in its canonical form.
    pub(crate) fn of(ip: IpAddr) -> Self {
        Self(match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = if self.0.is_ipv4() { 32 } else { 64 };
        write!(f, "ip:{}/{length}", self.0)
    }
}

/// The entries of a header that may come in several lines; `None` where one is not text.
fn list<'a>(headers: &'a HeaderMap, name: &str) -> impl DoubleEndedIterator<Item = Option<&'a str>> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().ok());
    lines.flat_map(|line| {
        line.map_or_else(|| vec![None], |text| text.split(',').map(|e| Some(e.trim())).collect())
    })
}

/// An address, with or without a port.
fn address(entry: &str) -> Option<IpAddr> {
    let with_port = || entry.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    Some(entry.parse().ok().or_else(with_port).or_else(bracketed)?.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn client(peer: &str, lines: &[(&str, &[u8])]) -> Client {
        let name = |text: &str| text.parse::<HeaderName>().unwrap();
        let headers =
            lines.iter().map(|(n, value)| (name(n), HeaderValue::from_bytes(value).unwrap())).collect();
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        Client::behind(peer.parse().unwrap(), &headers, &trusted)
    }

    #[track_caller]
    fn check_ip(peer: &str, forwarded_for: &[&str], expected: &str) {
        let lines: Vec<_> = forwarded_for.iter().map(|line| (FORWARDED_FOR, line.as_bytes())).collect();
        assert_eq!(client(peer, &lines).ip.to_string(), expected, "{peer} {forwarded_for:?}");
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client() {
        check_ip("203.0.113.7", &["198.51.100.1"], "203.0.113.7");
        check_ip("10.0.0.1", &[], "10.0.0.1");
        check_ip("10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check_ip("fd00::1", &["2001:db8::7"], "2001:db8::7");
    }

    #[test]
    fn the_last_address_that_is_no_proxy_of_ours_is_the_client() {
        check_ip("10.0.0.1", &["192.0.2.66, 198.51.100.1"], "198.51.100.1");
        check_ip("10.0.0.1", &["192.0.2.66, 198.51.100.1, 10.9.9.9,10.0.0.2"], "198.51.100.1");
        check_ip("10.0.0.1", &["192.0.2.66", "198.51.100.1", "10.0.0.2"], "198.51.100.1");
        check_ip("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
    }

    #[test]
    fn what_is_no_address_ends_the_walk_at_the_last_good_one() {
        check_ip("10.0.0.1", &["unknown"], "10.0.0.1");
        check_ip("10.0.0.1", &[""], "10.0.0.1");
        check_ip("10.0.0.1", &["198.51.100.1, what, 10.0.0.2"], "10.0.0.2");
        check_ip("10.0.0.1", &["198.51.100.1,"], "10.0.0.1");
        check_ip("10.0.0.1", &["198.51.100.1, 300.1.1.1"], "10.0.0.1");
        let lines: &[(&str, &[u8])] = &[(FORWARDED_FOR, b"198.51.100.1"), (FORWARDED_FOR, b"\xff")];
        assert_eq!(client("10.0.0.1", lines).ip.to_string(), "10.0.0.1");
    }

    #[test]
    fn addresses_are_read_in_the_forms_that_proxies_write() {
        check_ip("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1");
        check_ip("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7");
        check_ip("10.0.0.1", &["[2001:db8::7]"], "2001:db8::7");
        check_ip("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check_ip("::ffff:203.0.113.7", &["198.51.100.1"], "203.0.113.7");
        check_ip("10.0.0.1", &["198.51.100.1, ::ffff:10.0.0.2"], "198.51.100.1");
        check_ip("10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1");
    }

    #[test]
    fn only_a_trusted_proxy_names_the_scheme() {
        let https: &[(&str, &[u8])] = &[(FORWARDED_PROTO, b"HTTPS")];
        assert!(client("10.0.0.1", https).is_https);
        assert!(!client("203.0.113.7", https).is_https);
        assert!(!client("10.0.0.1", &[]).is_https);
        assert!(!client("10.0.0.1", &[(FORWARDED_PROTO, b"http")]).is_https);
        assert!(!client("10.0.0.1", &[(FORWARDED_PROTO, b"https, http")]).is_https);
        assert!(client("10.0.0.1", &[(FORWARDED_PROTO, b"http"), (FORWARDED_PROTO, b"https")]).is_https);
    }

    #[test]
    fn a_customer_counts_as_one_whatever_addresses_it_has() {
        let network = |ip: &str| Client { ip: ip.parse().unwrap(), is_https: false }.network().to_string();
        assert_eq!(network("198.51.100.1"), "ip:198.51.100.1/32");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "ip:2001:db8:1:2::/64");
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }
}
