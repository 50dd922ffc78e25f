//! Addresses, prefixes and ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl Prefix {
    /// An address, or an address with a length or a mask.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.contains('.') => {
                let mask = u32::from(bits.parse::<Ipv4Addr>().ok()?);
                u8::try_from(mask.leading_ones()).ok().filter(|ones| mask.count_ones() == u32::from(*ones))?
            }
            Some(bits) => bits.parse().ok()?,
        };
        (bits <= most).then_some(Self { address, bits })
    }

    /// The first address of the network.
    pub(crate) fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
            }
        }
    }

    /// Whether it is one address.
    pub(crate) fn is_host(self) -> bool {
        self.bits == if self.address.is_ipv4() { 32 } else { 128 }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, bits: self.bits }.network() == self.network()
    }

    /// `network/bits`.
    pub(crate) fn show_network(self) -> String {
        format!("{}/{}", self.network(), self.bits)
    }
}

/// First and last address of an address, a prefix or a range.
pub(crate) fn range4(text: &str) -> Option<(u32, u32)> {
    if let Some((first, last)) = text.split_once('-') {
        let (first, last): (Ipv4Addr, Ipv4Addr) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        return (first <= last).then(|| (u32::from(first), u32::from(last)));
    }
    let prefix = Prefix::parse(text)?;
    let IpAddr::V4(network) = prefix.network() else { return None };
    let size = u32::MAX.checked_shr(u32::from(prefix.bits)).unwrap_or(0);
    Some((u32::from(network), u32::from(network) | size))
}

/// A range in the router's form: one that is a network becomes a prefix, one address stands alone.
pub(crate) fn show_range4(text: &str) -> Option<String> {
    let (first, last) = range4(text)?;
    if first == last {
        return Some(Ipv4Addr::from(first).to_string());
    }
    let size = u64::from(last - first) + 1;
    if size.is_power_of_two() && u64::from(first).is_multiple_of(size) {
        return Some(format!("{}/{}", Ipv4Addr::from(first), 32 - size.trailing_zeros()));
    }
    Some(format!("{}-{}", Ipv4Addr::from(first), Ipv4Addr::from(last)))
}

/// A hardware address in capitals.
pub(crate) fn mac(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let fits = |part: &&str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
    (parts.len() == 6 && parts.iter().all(fits)).then(|| parts.join(":").to_uppercase())
}

/// Numbers of a list with ranges, such as `10,20-30`.
pub(crate) fn numbers(text: &str) -> Option<Vec<(u32, u32)>> {
    let part = |part: &str| match part.split_once('-') {
        Some((first, last)) => {
            Some((first.parse().ok()?, last.parse().ok()?)).filter(|(first, last)| first <= last)
        }
        None => part.parse().ok().map(|number| (number, number)),
    };
    text.split(',').filter(|text| !text.is_empty()).map(part).collect()
}
