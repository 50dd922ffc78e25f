//! Which sections of its file the firewall skips. It says so in the log and goes on: the apply does not fail.
//!
//! Only what a rule says by itself is looked at: the real parser knows more.

use std::net::IpAddr;

use crate::uci::{Config, Section};

const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const PROTOCOLS: [&str; 16] = [
    "all",
    "any",
    "*",
    "tcp",
    "udp",
    "tcpudp",
    "icmp",
    "icmpv6",
    "ipv6-icmp",
    "igmp",
    "esp",
    "ah",
    "gre",
    "sctp",
    "ipip",
    "udplite",
];

/// One line for each section that is skipped.
pub(crate) fn skipped(config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in ["rule", "redirect"] {
        for (index, section) in config.of_kind(kind).enumerate() {
            if let Some(reason) = fault(section) {
                let name = section.text("name").map(|name| format!(" ({name})")).unwrap_or_default();
                lines.push(format!("Section @{kind}[{index}]{name} {reason}, ignoring section"));
            }
        }
    }
    lines
}

fn fault(section: &Section) -> Option<String> {
    let bad =
        |option: &str, value: &str| Some(format!("option '{option}' specifies invalid value '{value}'"));
    for (option, is_valid) in [
        ("src_ip", is_network as fn(&str) -> bool),
        ("dest_ip", is_network),
        ("src_dip", is_network),
        ("src_port", is_port),
        ("dest_port", is_port),
        ("src_dport", is_port),
        ("proto", is_protocol),
        ("weekdays", is_day),
        ("start_time", is_time),
        ("stop_time", is_time),
    ] {
        if let Some(value) =
            section.list(option).into_iter().find(|value| !is_valid(value.trim_start_matches('!')))
        {
            return bad(option, value);
        }
    }
    let family = section.text("family").unwrap_or("any");
    for option in ["src_ip", "dest_ip"] {
        for value in section.list(option) {
            let is_v6 = value.contains(':');
            if (family == "ipv6" && !is_v6) || (family == "ipv4" && is_v6) {
                return Some("is restricted to one family but uses an address of the other".to_owned());
            }
        }
    }
    let target = section.text("target").unwrap_or_default().to_ascii_uppercase();
    if target == "MARK" && section.option("set_mark").is_none() && section.option("set_xmark").is_none() {
        return Some("must specify option 'set_mark' or 'set_xmark' for target 'mark'".to_owned());
    }
    let has_ports =
        ["src_port", "dest_port", "src_dport"].iter().any(|option| section.option(option).is_some());
    let carries =
        |protocol: &&str| matches!(*protocol, "tcp" | "udp" | "tcpudp" | "sctp" | "udplite" | "6" | "17");
    if has_ports && section.option("proto").is_some() && !section.list("proto").iter().all(carries) {
        return Some("specifies ports for a protocol that has none".to_owned());
    }
    None
}

fn is_network(value: &str) -> bool {
    if let Some((first, last)) = value.split_once('-') {
        return first.parse::<IpAddr>().is_ok() && last.parse::<IpAddr>().is_ok();
    }
    let (address, length) = value.split_once('/').unwrap_or((value, "0"));
    let is_mask = length.parse::<IpAddr>().is_ok();
    address.parse::<IpAddr>().is_ok_and(|address| {
        is_mask || length.parse::<u8>().is_ok_and(|length| length <= if address.is_ipv4() { 32 } else { 128 })
    })
}

fn is_port(value: &str) -> bool {
    let (first, last) = value.split_once(['-', ':']).unwrap_or((value, value));
    matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(first), Ok(last)) if first <= last)
}

fn is_protocol(value: &str) -> bool {
    PROTOCOLS.contains(&value.to_ascii_lowercase().as_str()) || value.parse::<u8>().is_ok()
}

fn is_day(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    DAYS.iter().any(|day| *day == value || day[..3] == value)
}

fn is_time(value: &str) -> bool {
    let parts: Vec<Option<u8>> = value.split(':').map(|part| part.parse().ok()).collect();
    matches!(parts.as_slice(), [Some(hour), rest @ ..] if *hour < 24
        && (1..=2).contains(&rest.len())
        && rest.iter().all(|part| part.is_some_and(|part| part < 60)))
}
