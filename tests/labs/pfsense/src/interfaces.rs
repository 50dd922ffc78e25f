//! Interfaces under the three names that they have: id, description and device.

use serde_json::{Value, json};

use crate::facts::Field;
use crate::store::{Config, NAME, Object, text};

pub(crate) const INTERFACES: &str = "NetworkInterface";

/// The name under which an interface is shown.
pub(crate) fn shown_name(config: &Config, interface: &Object) -> String {
    match represented_as(config) {
        "id" => text(interface, NAME).to_owned(),
        "if" => text(interface, "if").to_owned(),
        _ => description(interface),
    }
}

/// The setting that says how interfaces are named.
pub(crate) fn represented_as(config: &Config) -> &str {
    config.setting("RESTAPISettings", "represent_interfaces_as").and_then(Value::as_str).unwrap_or("descr")
}

/// The description; the id in capitals where there is none.
pub(crate) fn description(interface: &Object) -> String {
    match text(interface, "descr") {
        "" => text(interface, NAME).to_uppercase(),
        descr => descr.to_owned(),
    }
}

pub(crate) fn of_id<'c>(config: &'c Config, id: &str) -> Option<&'c Object> {
    config.having(INTERFACES, NAME, id)
}

/// The interface that a value of the API names.
pub(crate) fn of_shown<'c>(config: &'c Config, shown: &str) -> Option<&'c Object> {
    config.list(INTERFACES).iter().find(|interface| shown_name(config, interface) == shown)
}

/// A stored value as it is shown: ids become names, all else stays.
pub(crate) fn show(config: &Config, stored: &str) -> String {
    of_id(config, stored).map_or_else(|| stored.to_owned(), |interface| shown_name(config, interface))
}

/// A shown value as it is stored.
pub(crate) fn store(config: &Config, shown: &str) -> String {
    of_shown(config, shown).map_or_else(|| shown.to_owned(), |interface| text(interface, NAME).to_owned())
}

/// An address of a rule as it is stored: `!` before and `:ip` behind stay.
pub(crate) fn store_address(config: &Config, shown: &str, is_other: bool) -> String {
    let (sign, rest) = shown.strip_prefix('!').map_or(("", shown), |rest| ("!", rest));
    if is_other {
        return shown.to_owned();
    }
    match rest.strip_suffix(":ip") {
        Some(name) => format!("{sign}{}:ip", store(config, name)),
        None => format!("{sign}{}", store(config, rest)),
    }
}

pub(crate) fn show_address(config: &Config, stored: &str) -> String {
    let (sign, rest) = stored.strip_prefix('!').map_or(("", stored), |rest| ("!", rest));
    match rest.strip_suffix(":ip") {
        Some(id) => format!("{sign}{}:ip", show(config, id)),
        None => format!("{sign}{}", show(config, rest)),
    }
}

/// A special network is stored with `ip` behind an interface: a name of another kind that ends so reads differently.
pub(crate) fn show_special(config: &Config, stored: &str) -> String {
    match stored.strip_suffix("ip") {
        Some(id) => format!("{}:ip", show(config, id)),
        None => show(config, stored),
    }
}

pub(crate) fn store_special(config: &Config, shown: &str) -> String {
    match shown.strip_suffix(":ip") {
        Some(name) => format!("{}ip", store(config, name)),
        None => store(config, shown),
    }
}

/// The values that a field for interfaces takes.
pub(crate) fn choices(config: &Config, field: &Field) -> Vec<Value> {
    let takes = |what: &str| field.takes.iter().any(|own| own == what);
    let mut out: Vec<String> =
        config.list(INTERFACES).iter().map(|interface| shown_name(config, interface)).collect();
    // Addresses of rules take groups unless they say otherwise.
    let denies_groups = field.denies.iter().any(|own| own == "interface_groups");
    let is_address =
        matches!(field.kind, crate::facts::Kind::FilterAddress | crate::facts::Kind::SpecialNetwork);
    if takes("interface_groups") || (is_address && !denies_groups) {
        out.extend(config.list("InterfaceGroup").iter().map(|group| text(group, "ifname").to_owned()));
    }
    if takes("carp_interface") {
        let carp = config.list("VirtualIP").iter().filter(|vip| text(vip, "mode") == "carp");
        out.extend(carp.map(|vip| format!("_vip{}", text(vip, "uniqid"))));
    }
    for (what, name) in
        [("ipsec_interface", "enc0"), ("openvpn_interface", "openvpn"), ("localhost_interface", "lo0")]
    {
        if takes(what) {
            out.push(name.to_owned());
        }
    }
    out.extend(field.words.iter().cloned());
    out.into_iter().map(|name| json!(name)).collect()
}

/// Address and bits of an interface, fixed or leased.
pub(crate) fn address4(interface: &Object) -> Option<(String, u32)> {
    match text(interface, "ipaddr") {
        "" => None,
        "dhcp" => Some(("198.51.100.20".to_owned(), 24)),
        address => {
            let bits = interface.get("subnet").and_then(Value::as_u64).unwrap_or(32);
            Some((address.to_owned(), u32::try_from(bits).unwrap_or(32)))
        }
    }
}

pub(crate) fn address6(interface: &Object) -> Option<(String, u32)> {
    match text(interface, "ipaddrv6") {
        "" => None,
        address if address.contains(':') => {
            let bits = interface.get("subnetv6").and_then(Value::as_u64).unwrap_or(128);
            Some((address.to_owned(), u32::try_from(bits).unwrap_or(128)))
        }
        _ => Some(("2001:db8:1::20".to_owned(), 64)),
    }
}

/// Whether an IPv4 address lies in the network of an interface.
pub(crate) fn holds(interface: &Object, address: &str) -> bool {
    address4(interface).is_some_and(|(own, bits)| crate::net::contains(&format!("{own}/{bits}"), address))
}
