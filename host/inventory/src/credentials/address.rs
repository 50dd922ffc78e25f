//! Where a credential is good: a host and a port. They are not secret, and nothing is sent there just because they are
//! stored.

use std::net::{IpAddr, Ipv6Addr};

use heddle_store::Credential;
use url::Host;

/// Most characters of a host name or an address.
pub(super) const HOST_CHARS_MAX: usize = 253;
pub(super) const PORT_MAX: i64 = 65_535;

/// A host name or an address, in its normal form and without brackets.
pub(super) fn parse_host(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.chars().count() > HOST_CHARS_MAX {
        return Err(format!("must not have more than {HOST_CHARS_MAX} characters"));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    match Host::parse(text) {
        Ok(Host::Domain(name)) if name.len() <= HOST_CHARS_MAX => Ok(name),
        _ => Err("must be a host name or an IP address, such as 'router.example' or '192.0.2.1'".to_owned()),
    }
}

pub(super) fn parse_port(port: i64) -> Result<i64, String> {
    if (1..=PORT_MAX).contains(&port) { Ok(port) } else { Err(format!("must be from 1 to {PORT_MAX}")) }
}

/// `https://host:port` of a credential that has a host.
pub(super) fn url_of(credential: &Credential) -> Option<String> {
    let host = credential.host.as_deref()?;
    let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
    Some(match credential.port {
        Some(port) => format!("https://{host}:{port}"),
        None => format!("https://{host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(parse_host(text).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_more() {
        check("Router.Example", Some("router.example"));
        check(" 192.0.2.1 ", Some("192.0.2.1"));
        check("2001:DB8::1", Some("2001:db8::1"));
        check("[2001:db8::1]", Some("2001:db8::1"));
        check("https://router.example", None);
        check("router.example:8443", None);
        check("router.example/path", None);
        check("root@router.example", None);
        check("", None);
        check(&"x".repeat(300), None);
    }

    #[test]
    fn a_port_is_one_that_can_be_connected_to() {
        for (port, fits) in [(1, true), (65_535, true), (0, false), (65_536, false), (-1, false)] {
            assert_eq!(parse_port(port).is_ok(), fits, "{port}");
        }
    }
}
