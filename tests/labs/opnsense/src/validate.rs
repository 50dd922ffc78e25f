//! The vendor's validation, by the facts of each field. The texts are the simulation's own.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::choices::{self, PORT_NAMES, effective, parts};
use crate::config::{Config, Values};
use crate::facts::{Facts, Field};
use crate::release::Release;

/// A field and what is wrong with it.
pub(crate) type Faults = Vec<(String, String)>;

/// What is wrong with an item. Only fields that `is_checked` names are looked at, as the vendor checks what changed.
pub(crate) fn item(
    node: &str,
    id: &str,
    values: &Values,
    config: &Config,
    release: Release,
    is_checked: impl Fn(&str) -> bool,
) -> Faults {
    let facts = Facts::get();
    let mut faults = Faults::new();
    for field in facts.fields(node, release).filter(|field| !field.is_items() && is_checked(&field.name)) {
        let value = effective(node, &field.name, values);
        let fault = match value {
            "" if field.required => Some("A value is required.".to_owned()),
            "" => None,
            value => wrong(node, field, value, values, config),
        };
        faults.extend(fault.map(|text| (field.name.clone(), text)));
    }
    for group in facts.unique(node) {
        let key = |values: &Values| -> Vec<String> {
            group.iter().map(|name| effective(node, name, values).to_owned()).collect()
        };
        let own = key(values);
        let is_taken = config.rows(node).any(|(other, values)| other != id && key(values) == own);
        // A lease is reserved for a MAC address or for a client id: the empty one of the two is no key.
        let is_key = if node.starts_with("Kea/") {
            !own.iter().any(String::is_empty)
        } else {
            !own.concat().is_empty()
        };
        if is_taken && is_key && group.iter().any(|name| is_checked(name)) {
            faults.push((group[0].clone(), "This value exists already.".to_owned()));
        }
    }
    faults
}

/// Why a value of one field is refused.
fn wrong(node: &str, field: &Field, value: &str, values: &Values, config: &Config) -> Option<String> {
    if field.pattern.as_ref().is_some_and(|pattern| !Facts::get().fits(pattern, value)) {
        return Some("The value does not fit the form of this field.".to_owned());
    }
    if let Some(options) = choices::of(node, field, config) {
        let unknown = parts(field, value).into_iter().find(|part| {
            let is_written_out = takes_networks(&field.kind) && is_network(part);
            !is_written_out && options.iter().all(|(key, _)| key != part)
        })?;
        return Some(format!("'{unknown}' is not in the list."));
    }
    let is_right = match field.kind.as_str() {
        "bool01" => value == "0" || value == "1",
        "integer-string"
        | "auto-number"
        | "UidField"
        | "GidField"
        | "VPNIdField"
        | "FilterSequenceField"
        | "DNatSequenceField"
        | "number-string" => return out_of_range(field, value),
        "network" => networks(value).all(|part| is_network(part) || is_alias(node, part, config)),
        "VipNetworkField" => field.name == "subnet_bits" || is_network(value),
        "port" | "PortMappedField" => parts(field, value).iter().all(|part| is_port(node, part, config)),
        "hostname" => parts(field, value).iter().all(|part| is_host(part)),
        "mac" => parts(field, value).iter().all(|part| is_mac(part)),
        "base64" => STANDARD.decode(value).is_ok(),
        "email" => value.contains('@'),
        "url" => value.split_once("://").is_some_and(|(_, host)| !host.is_empty()),
        "AliasNameField" => is_name(value, 31),
        "GroupNameField" => is_name(value, 15) && !value.ends_with(|last: char| last.is_ascii_digit()),
        "AliasContentField" => return alias_content(values, value, config),
        "KeaPoolsField" => value.lines().all(|line| is_pool(line.trim())),
        "RangeAddressField" | "LinkAddressField" | "IKEAddressField" => !value.contains(char::is_whitespace),
        _ => true,
    };
    (!is_right).then(|| "The value is not valid.".to_owned())
}

fn takes_networks(kind: &str) -> bool {
    kind == "network-or-alias" || kind == "NetworkMappedField"
}

fn out_of_range(field: &Field, value: &str) -> Option<String> {
    let bound = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<f64>().ok());
    let is_number = if field.kind == "number-string" {
        value.parse::<f64>().is_ok()
    } else {
        value.parse::<i64>().is_ok()
    };
    let number = value.parse::<f64>().unwrap_or_default();
    let is_low = bound(&field.min).is_some_and(|min| number < min);
    let is_high = bound(&field.max).is_some_and(|max| number > max);
    match (is_number, is_low || is_high) {
        (true, false) => None,
        (false, _) => Some("The value is not a number.".to_owned()),
        (true, true) => Some("The number is out of range.".to_owned()),
    }
}

/// Addresses and networks in a text, joined by comma, space or line end.
fn networks(value: &str) -> impl Iterator<Item = &str> {
    value.split([',', '\n', ' ']).map(str::trim).filter(|part| !part.is_empty())
}

/// An address, a network, or `any`.
pub(crate) fn is_network(text: &str) -> bool {
    let text = text.trim_start_matches('!');
    match text.split_once('/') {
        Some((address, bits)) => match (address.parse::<IpAddr>(), bits.parse::<u8>()) {
            (Ok(IpAddr::V4(_)), Ok(bits)) => bits <= 32,
            (Ok(IpAddr::V6(_)), Ok(bits)) => bits <= 128,
            _ => false,
        },
        None => text == "any" || text.parse::<IpAddr>().is_ok(),
    }
}

fn is_alias(node: &str, name: &str, config: &Config) -> bool {
    let takes_aliases = node.starts_with("Firewall/") || node.starts_with("TrafficShaper/");
    takes_aliases
        && config.rows(choices::ALIASES).any(|(_, values)| values.get("name").is_some_and(|own| own == name))
}

fn is_port(node: &str, text: &str, config: &Config) -> bool {
    let is_number = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    let is_range =
        || text.split_once(['-', ':']).is_some_and(|(low, high)| is_number(low) && is_number(high));
    is_number(text) || is_range() || PORT_NAMES.contains(&text) || is_alias(node, text, config)
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_*".contains(c))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.parse::<IpAddr>().is_ok() || text.trim_end_matches('.').split('.').all(is_label)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_octet = |part: &&str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
    [3, 6].contains(&parts.len()) && parts.iter().all(is_octet)
}

/// Letters, digits and underscores, not starting with a digit.
fn is_name(text: &str, length_max: usize) -> bool {
    text.len() <= length_max
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !["any", "self", "pass", "block", "in", "out"].contains(&text)
}

fn is_pool(line: &str) -> bool {
    match line.split_once('-') {
        Some((from, to)) => from.trim().parse::<IpAddr>().is_ok() && to.trim().parse::<IpAddr>().is_ok(),
        None => line.contains('/') && is_network(line),
    }
}

/// The lines of an alias, judged by its type.
fn alias_content(values: &Values, value: &str, config: &Config) -> Option<String> {
    let is_known = |line: &str| is_alias(choices::ALIASES, line, config);
    let is_right = |line: &str| match values.get("type").map(String::as_str) {
        Some("host") => {
            is_network(line) || is_pool(line) || is_known(line) || (is_host(line) && line.contains('.'))
        }
        Some("network") => is_network(line) || is_pool(line) || is_known(line),
        Some("port") => is_port(choices::ALIASES, line, config),
        Some("networkgroup") => is_known(line),
        Some("url" | "urltable" | "urljson") => line.contains("://"),
        Some("mac") => is_mac(line),
        Some("asn") => line.parse::<u32>().is_ok(),
        _ => true,
    };
    let bad = value.lines().map(str::trim).find(|line| !line.is_empty() && !is_right(line))?;
    Some(format!("Entry '{bad}' is not valid for this type."))
}

/// Fields that an item of a list needs beside its own form: what only the whole item shows.
pub(crate) fn whole(node: &str, values: &Values, config: &Config) -> Faults {
    let value = |field: &str| effective(node, field, values);
    let mut faults = Faults::new();
    let mut refuse = |field: &str, text: &str| faults.push((field.to_owned(), text.to_owned()));
    match node {
        "Firewall/Filter:rules.rule" => {
            let has_ports = !value("source_port").is_empty() || !value("destination_port").is_empty();
            if has_ports && !["TCP", "UDP", "TCP/UDP", "SCTP"].contains(&value("protocol")) {
                refuse("destination_port", "Ports need the protocol TCP or UDP.");
            }
        }
        "Kea/KeaDhcpv4:reservations.reservation" => {
            let subnet = config.value("Kea/KeaDhcpv4:subnets.subnet4", value("subnet"), "subnet");
            if !value("ip_address").is_empty() && !subnet.is_empty() && !contains(subnet, value("ip_address"))
            {
                refuse("ip_address", "The address is outside of the subnet.");
            }
            if value("hw_address").is_empty() == value("client_id").is_empty() {
                refuse("hw_address", "Exactly one of MAC address and client id is needed.");
            }
        }
        "Unbound/Unbound:hosts.host" => match value("rr") {
            "A" | "AAAA" if value("server").is_empty() => refuse("server", "An address is required."),
            "MX" if value("mx").is_empty() => refuse("mx", "A mail server is required."),
            "TXT" if value("txtdata").is_empty() => refuse("txtdata", "A text is required."),
            _ => {}
        },
        "Interfaces/Vip:vip" if value("mode") == "carp" => {
            ["vhid", "password"].iter().filter(|field| value(field).is_empty()).for_each(|field| {
                refuse(field, "CARP needs a value here.");
            });
        }
        _ => {}
    }
    faults
}

/// Whether an address lies in a network.
pub(crate) fn contains(network: &str, address: &str) -> bool {
    let Some((base, bits)) = network.split_once('/') else { return network == address };
    let bits: u32 = bits.parse().unwrap_or(0);
    match (base.parse(), address.parse()) {
        (Ok(IpAddr::V4(base)), Ok(IpAddr::V4(address))) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            u32::from(base) & mask == u32::from(address) & mask
        }
        (Ok(IpAddr::V6(base)), Ok(IpAddr::V6(address))) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            u128::from(base) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}
