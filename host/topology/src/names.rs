//! Names by which devices tell of each other: hardware addresses, names of ports, addresses with a prefix.

use std::net::IpAddr;

use ipnet::IpNet;

/// A hardware address in lower case with colons, of any of the ways in which devices write it.
pub(crate) fn mac(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_parted = text.contains([':', '-', '.']);
    if !is_plain && !is_parted {
        return None;
    }
    let digits: String = text.chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect();
    if digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let bytes: Vec<&str> = (0..6).map(|at| &lower[2 * at..2 * at + 2]).collect();
    Some(bytes.join(":"))
}

/// The name by which something is looked up.
pub(crate) fn folded(text: &str) -> String {
    text.trim().to_lowercase()
}

/// The number at the end of a port's name: 7 of `1/0/7`, `Port 7` and `ge-0/0/7`.
pub(crate) fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    text[text.len() - digits..].parse().ok()
}

/// An address, without its zone and the length of its prefix.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    let bare = text.split(['/', '%']).next().unwrap_or_default();
    let address: IpAddr = bare.trim().parse().ok()?;
    Some(address.to_canonical())
}

/// The network that an address with a prefix is in; none of single addresses, and of those that every link has.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    let (bare, bits) = text.split_once('/')?;
    let net = IpNet::new(address(bare)?, bits.trim().parse().ok()?).ok()?;
    let is_local = match net.addr() {
        IpAddr::V4(own) => own.is_link_local() || own.is_loopback(),
        IpAddr::V6(own) => own.is_loopback() || (own.segments()[0] & 0xffc0) == 0xfe80,
    };
    (!is_local && net.prefix_len() < net.max_prefix_len() && net.prefix_len() > 0).then(|| net.trunc())
}

/// Whether every address is of the network: a default route.
pub(crate) fn is_everything(destination: &str) -> bool {
    destination.trim().eq_ignore_ascii_case("default")
        || destination.split_once('/').is_some_and(|(_, bits)| bits.trim() == "0")
}

/// Whether a destination that is not everything has one of these addresses.
pub(crate) fn covers(destination: &str, own: &[IpAddr]) -> bool {
    let text = destination.trim();
    if text.is_empty() || is_everything(text) {
        return false;
    }
    let has_one = |net: IpNet| own.iter().any(|own| !own.is_loopback() && net.contains(own));
    // A name of addresses may have any.
    destination_of(text).is_none_or(has_one)
}

/// The network of a destination: with the length of its prefix, with a mask, or one address.
fn destination_of(text: &str) -> Option<IpNet> {
    let Some((bare, rest)) = text.split_once(['/', ' ']) else { return address(text).map(IpNet::from) };
    let own = address(bare)?;
    let rest = rest.trim();
    let bits = rest.parse().ok().or_else(|| ipnet::ip_mask_to_prefix(rest.parse().ok()?).ok())?;
    IpNet::new(own, bits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_are_the_same_however_they_are_written() {
        for text in ["3C-6A-D2-00-01-10", "3c:6a:d2:00:01:10", "3c6a.d200.0110", "3C6AD2000110"] {
            assert_eq!(mac(text).as_deref(), Some("3c:6a:d2:00:01:10"), "{text}");
        }
        for odd in ["", "switch-1", "3c:6a:d2:00:01", "3c:6a:d2:00:01:1g", "192.0.2.1", "é-é-é-é-é-é"] {
            assert_eq!(mac(odd), None, "{odd}");
        }
    }

    #[test]
    fn ports_end_with_their_number() {
        for (text, found) in
            [("1/0/7", Some(7)), ("Port 12 ", Some(12)), ("lan", None), ("", None), ("9", Some(9))]
        {
            assert_eq!(number(text), found, "{text}");
        }
        assert_eq!(number("99999999999"), None);
    }

    #[test]
    fn networks_are_those_that_several_can_be_in() {
        let shown = |text: &str| network(text).map(|net| net.to_string());
        assert_eq!(shown("10.5.0.9/24").as_deref(), Some("10.5.0.0/24"));
        assert_eq!(shown("2001:db8::1/64").as_deref(), Some("2001:db8::/64"));
        for odd in [
            "10.5.0.9",
            "10.5.0.9/32",
            "127.0.0.1/8",
            "fe80::1/64",
            "169.254.1.1/16",
            "0.0.0.0/0",
            "x/8",
            "10.0.0.0/33",
        ] {
            assert_eq!(shown(odd), None, "{odd}");
        }
        assert_eq!(address("fe80::1%eth0"), "fe80::1".parse().ok());
        assert!(is_everything("0.0.0.0/0") && is_everything("::/0") && is_everything("default"));
        assert!(!is_everything("10.0.0.0/8"));
    }

    #[test]
    fn destinations_cover_what_is_in_them() {
        let own: Vec<IpAddr> = ["127.0.0.1", "10.9.0.5"].map(|text| text.parse().unwrap()).into();
        for text in [
            "10.9.0.0/16",
            "10.9.0.5",
            " 10.9.0.5/32",
            "10.9.0.0/255.255.0.0",
            "10.9.0.0 255.255.0.0",
            "offices",
        ] {
            assert!(covers(text, &own), "{text}");
        }
        for text in ["0.0.0.0/0", "default", "10.8.0.0/16", "127.0.0.0/8", "10.9.0.6", "2001:db8::/32", ""] {
            assert!(!covers(text, &own), "{text}");
        }
    }
}
