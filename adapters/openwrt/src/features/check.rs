//! What texts of options may say, parsed as the daemons of the device parse them. The firewall skips a section
//! that it cannot read and says so only in its log, so that everything is read here first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What one text, or each text of a list, must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// A name for people.
    Title,
    /// Any printable text up to this length.
    Line(usize),
    /// A text without spaces and quotes.
    Token,
    Word,
    Zone,
    ZoneOrAny,
    Interface,
    Device,
    DeviceName,
    HostName,
    Mac,
    Ipv4,
    Ipv4OrIgnore,
    /// With a prefix length or without.
    Ipv4Prefix,
    Ipv6Prefix,
    Prefix,
    Netmask,
    Address,
    /// An address, network or range, negated or not.
    Network,
    Ports,
    Protocol,
    IcmpType,
    Weekdays,
    Time,
    Limit,
    Mark,
    Lease,
    VlanPort,
    /// Hex digits, at most so many.
    Hex(usize),
}

const PROTOCOLS: &[&str] = &[
    "all",
    "any",
    "*",
    "tcp",
    "udp",
    "tcpudp",
    "udplite",
    "icmp",
    "icmpv6",
    "ipv6-icmp",
    "igmp",
    "esp",
    "ah",
    "gre",
    "sctp",
    "dccp",
    "ipip",
    "ipencap",
    "ipv6",
    "ipcomp",
    "ospf",
    "pim",
    "vrrp",
    "eigrp",
    "egp",
    "l2tp",
    "mobility-header",
    "mh",
    "ipv6-route",
    "ipv6-frag",
    "ipv6-nonxt",
    "ipv6-opts",
    "hopopt",
    "rsvp",
    "st",
    "rdp",
];
const ICMP_TYPES: &[&str] = &[
    "address-mask-reply",
    "address-mask-request",
    "any",
    "bad-header",
    "communication-prohibited",
    "destination-unreachable",
    "echo-reply",
    "echo-request",
    "fragmentation-needed",
    "host-precedence-violation",
    "host-prohibited",
    "host-redirect",
    "host-unknown",
    "host-unreachable",
    "ip-header-bad",
    "neighbour-advertisement",
    "neighbour-solicitation",
    "network-prohibited",
    "network-redirect",
    "network-unknown",
    "network-unreachable",
    "no-route",
    "packet-too-big",
    "parameter-problem",
    "ping",
    "pong",
    "port-unreachable",
    "precedence-cutoff",
    "protocol-unreachable",
    "redirect",
    "required-option-missing",
    "router-advertisement",
    "router-solicitation",
    "source-quench",
    "source-route-failed",
    "time-exceeded",
    "timestamp-reply",
    "timestamp-request",
    "TOS-host-redirect",
    "TOS-host-unreachable",
    "TOS-network-redirect",
    "TOS-network-unreachable",
    "ttl-exceeded",
    "ttl-zero-during-reassembly",
    "ttl-zero-during-transit",
    "unknown-header-type",
    "unknown-option",
    "address-unreachable",
    "no-next-header",
];
const DAYS: &[&str] = &["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

impl Check {
    /// The pattern of the schema. It lets through all that [`Check::accepts`] does, and little else.
    pub(crate) fn pattern(self) -> String {
        match self {
            Check::Title => "^[^\\x00-\\x1f'\"\\\\]{1,128}$".to_owned(),
            Check::Line(most) => format!("^[^\\x00-\\x1f'\"\\\\]{{1,{most}}}$"),
            Check::Token => "^[^\\x00-\\x20'\"\\\\]{1,255}$".to_owned(),
            Check::Word => "^[A-Za-z0-9_.+-]{1,64}$".to_owned(),
            Check::Zone => "^[A-Za-z0-9_-]{1,11}$".to_owned(),
            Check::ZoneOrAny => "^(\\*|[A-Za-z0-9_-]{1,11})$".to_owned(),
            Check::Interface => "^[A-Za-z0-9_]{1,15}$".to_owned(),
            Check::Device => "^@?[A-Za-z0-9_.:-]{1,31}$".to_owned(),
            Check::DeviceName => "^[A-Za-z0-9_.-]{1,15}$".to_owned(),
            Check::HostName => "^[A-Za-z0-9_-]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$".to_owned(),
            Check::Mac => "^[0-9A-Fa-f*]{1,2}(:[0-9A-Fa-f*]{1,2}){5}$".to_owned(),
            Check::Ipv4OrIgnore => "^(ignore|[0-9.]{7,15})$".to_owned(),
            Check::Ipv4 | Check::Netmask => "^[0-9.]{7,15}$".to_owned(),
            Check::Ipv4Prefix => "^[0-9./]{7,31}$".to_owned(),
            Check::Ipv6Prefix | Check::Prefix => "^[0-9A-Fa-f.:/]{2,49}$".to_owned(),
            Check::Address => "^[0-9A-Fa-f.:]{2,45}$".to_owned(),
            Check::Network => "^!? ?[0-9A-Fa-f.:/-]{2,100}$".to_owned(),
            Check::Ports => "^[0-9 :!-]{1,255}$".to_owned(),
            Check::Protocol => "^!? ?[A-Za-z0-9*-]{1,20}$".to_owned(),
            Check::IcmpType => "^!? ?[A-Za-z0-9/-]{1,40}$".to_owned(),
            Check::Weekdays => "^[A-Za-z !]{3,80}$".to_owned(),
            Check::Time => "^[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})?$".to_owned(),
            Check::Limit => "^!?[0-9]{1,9}(/[A-Za-z]{1,7})?$".to_owned(),
            Check::Mark => "^!?[0-9A-Fa-fxX]{1,10}(/[0-9A-Fa-fxX]{1,10})?$".to_owned(),
            Check::Lease => "^([0-9]{1,8}[smhdwSMHDW]?|infinite)$".to_owned(),
            Check::VlanPort => "^[A-Za-z0-9_.-]{1,15}(:[utUT]?\\*?)?$".to_owned(),
            Check::Hex(most) => format!("^[0-9A-Fa-f]{{1,{most}}}$"),
        }
    }

    /// What would be accepted, for messages.
    pub(crate) fn wanted(self) -> &'static str {
        match self {
            Check::Title => "a name without quotes, at most 128 characters",
            Check::Line(_) => "a text without quotes and control characters",
            Check::Token => "a text without spaces and quotes",
            Check::Word => "letters, digits and '_.+-'",
            Check::Zone => "a zone's name, at most 11 letters, digits, '_' or '-'",
            Check::ZoneOrAny => "a zone's name, or '*' for any",
            Check::Interface => "an interface's name, at most 15 letters, digits or '_'",
            Check::Device => "a device's name such as 'br-lan.20'",
            Check::DeviceName => "a device's name, at most 15 characters",
            Check::HostName => "a host name",
            Check::Mac => "a MAC address such as '02:00:00:00:00:01'",
            Check::Ipv4 => "an IPv4 address",
            Check::Ipv4OrIgnore => "an IPv4 address, or 'ignore'",
            Check::Ipv4Prefix => "an IPv4 address such as '10.0.0.1' or '10.0.0.1/24'",
            Check::Ipv6Prefix => "an IPv6 address such as 'fd00::1' or 'fd00::1/64'",
            Check::Prefix => "an address such as '10.0.0.1/24' or 'fd00::1/64'",
            Check::Netmask => "a netmask such as '255.255.255.0'",
            Check::Address => "an IP address",
            Check::Network => {
                "an address, a network such as '10.0.0.0/24' or a range 'first-last', with '!' before it to exclude"
            }
            Check::Ports => "ports from 0 to 65535 such as '80' or '80-90'",
            Check::Protocol => "a protocol such as 'tcp', or its number from 0 to 255",
            Check::IcmpType => "an ICMP type such as 'echo-request', '8' or '3/1'",
            Check::Weekdays => "days such as 'Mon Tue'",
            Check::Time => "a time such as '08:30' or '08:30:00'",
            Check::Limit => "a rate such as '10/second'",
            Check::Mark => "a mark such as '0x10' or '0x10/0xff'",
            Check::Lease => "a time such as '12h', '30m' or 'infinite'",
            Check::VlanPort => "a port such as 'lan1', 'lan1:u*' or 'lan2:t'",
            Check::Hex(_) => "hex digits",
        }
    }

    pub(crate) fn accepts(self, text: &str) -> bool {
        let plain = |text: &str, most: usize| {
            (1..=most).contains(&text.chars().count())
                && !text.chars().any(|c| c < ' ' || "'\"\\".contains(c))
        };
        let of = |most: usize, extra: &str| {
            (1..=most).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        match self {
            Check::Title => plain(text, 128),
            Check::Line(most) => plain(text, most),
            Check::Token => plain(text, 255) && !text.contains(' '),
            Check::Word => of(64, "_.+-"),
            Check::Zone => of(11, "_-"),
            Check::ZoneOrAny => text == "*" || of(11, "_-"),
            Check::Interface => of(15, "_"),
            Check::Device => {
                let name = text.strip_prefix('@').unwrap_or(text);
                (1..=31).contains(&name.len())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c))
            }
            Check::DeviceName => of(15, "_.-"),
            Check::HostName => {
                of(253, "_.-")
                    && !text.starts_with('.')
                    && !text.ends_with(['.', '-'])
                    && !text.contains("..")
            }
            Check::Mac => is_mac(text),
            Check::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Check::Ipv4OrIgnore => text == "ignore" || text.parse::<Ipv4Addr>().is_ok(),
            Check::Ipv4Prefix => prefix(text).is_some_and(|(address, _)| address.is_ipv4()),
            Check::Ipv6Prefix => prefix(text).is_some_and(|(address, _)| address.is_ipv6()),
            Check::Prefix => prefix(text).is_some(),
            Check::Netmask => text.parse().is_ok_and(|mask: Ipv4Addr| mask_bits(mask).is_some()),
            Check::Address => text.parse::<IpAddr>().is_ok(),
            Check::Network => network_family(text).is_some(),
            Check::Ports => ports(text).is_some(),
            Check::Protocol => is_protocol(positive(text)),
            Check::IcmpType => is_icmp_type(positive(text)),
            Check::Weekdays => is_weekdays(text),
            Check::Time => is_time(text),
            Check::Limit => is_limit(positive(text)),
            Check::Mark => is_mark(positive(text)),
            Check::Lease => is_lease(text),
            Check::VlanPort => is_vlan_port(text),
            Check::Hex(most) => {
                (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
        }
    }
}

/// Without the '!' that excludes.
fn positive(text: &str) -> &str {
    text.strip_prefix('!').map_or(text, str::trim_start)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    // The DHCP server takes '*' for any byte.
    parts.len() == 6
        && parts.iter().all(|part| {
            *part == "*" || (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        })
}

/// The length that a netmask stands for.
pub(crate) fn mask_bits(mask: Ipv4Addr) -> Option<u8> {
    let bits = u32::from(mask);
    let ones = bits.leading_ones();
    (bits.count_ones() == ones).then(|| u8::try_from(ones).unwrap_or(32))
}

/// An address and its prefix length: of the whole address where none is given.
pub(crate) fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => most,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|length| *length <= most)?
        }
        Some(mask) if address.is_ipv4() => mask_bits(mask.parse().ok()?)?,
        // The firewall takes a mask of its own for IPv6 too, negative lengths and all; an address is enough here.
        Some(mask) => mask.parse::<Ipv6Addr>().ok().map(|_| most)?,
    };
    Some((address, length))
}

/// Whether a network, or range, is of IPv6.
pub(crate) fn network_family(text: &str) -> Option<bool> {
    let text = positive(text);
    if let Some((address, _)) = prefix(text) {
        return Some(address.is_ipv6());
    }
    let (first, last) = text.split_once('-')?;
    let (first, last): (IpAddr, IpAddr) = (first.parse().ok()?, last.parse().ok()?);
    (first.is_ipv6() == last.is_ipv6() && first <= last).then_some(first.is_ipv6())
}

/// The ports and ranges of a text, both ends included; '!' is left out of account.
pub(crate) fn ports(text: &str) -> Option<Vec<(u16, u16)>> {
    let one = |word: &str| {
        let word = positive(word);
        let (first, last) = word.split_once(['-', ':']).unwrap_or((word, word));
        let port = |digits: &str| {
            (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| digits.parse().ok())?
        };
        let (first, last): (u16, u16) = (port(first)?, port(last)?);
        (first <= last).then_some((first, last))
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { None } else { words.into_iter().map(one).collect() }
}

fn is_protocol(text: &str) -> bool {
    PROTOCOLS.iter().any(|known| known.eq_ignore_ascii_case(text))
        || (text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u8>().is_ok())
}

fn is_icmp_type(text: &str) -> bool {
    let number =
        |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u8>().is_ok();
    let numeric =
        text.split_once('/').map_or_else(|| number(text), |(kind, code)| number(kind) && number(code));
    numeric || ICMP_TYPES.contains(&text)
}

fn is_weekdays(text: &str) -> bool {
    let text = positive(text);
    let is_day = |word: &str| {
        let word = word.to_ascii_lowercase();
        word.len() >= 3 && DAYS.iter().any(|day| *day == word || day[..3] == word)
    };
    !text.trim().is_empty() && text.split_whitespace().all(is_day)
}

fn is_time(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let within = |part: &str, most: u8| {
        (1..=2).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|number| number <= most)
    };
    matches!(parts.len(), 2 | 3) && within(parts[0], 23) && parts[1..].iter().all(|part| within(part, 59))
}

fn is_limit(text: &str) -> bool {
    let (rate, unit) = text.split_once('/').unwrap_or((text, "second"));
    let unit = unit.to_ascii_lowercase();
    rate.parse::<u32>().is_ok_and(|rate| rate > 0)
        && ["second", "minute", "hour", "day"]
            .iter()
            .any(|known| !unit.is_empty() && known.starts_with(&unit))
}

fn is_mark(text: &str) -> bool {
    let number = |text: &str| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).is_ok() && !hex.starts_with('+'),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_ok(),
    };
    text.split_once('/').map_or_else(|| number(text), |(mark, mask)| number(mark) && number(mask))
}

fn is_lease(text: &str) -> bool {
    let digits = text.strip_suffix(['s', 'm', 'h', 'd', 'w', 'S', 'M', 'H', 'D', 'W']).unwrap_or(text);
    text == "infinite"
        || ((1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_vlan_port(text: &str) -> bool {
    let (port, flags) = text.split_once(':').map_or((text, ""), |(port, flags)| (port, flags));
    let is_name = (1..=15).contains(&port.len())
        && port.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    is_name && matches!(flags.to_ascii_lowercase().as_str(), "" | "u" | "t" | "*" | "u*" | "t*")
}
