//! The checks of single values that the vendor attaches to fields.

use serde_json::Value;

use crate::facts::{Check, Facts, Field, Kind};
use crate::interfaces;
use crate::net;
use crate::reply::Refusal;
use crate::store::{Config, text};

/// Names that the packet filter keeps for itself.
const RESERVED: [&str; 12] =
    ["all", "any", "block", "drop", "in", "inet", "inet6", "out", "pass", "port", "quick", "self"];

/// Whether a name is an alias of addresses, or one of ports.
pub(crate) fn is_alias(config: &Config, name: &str, is_port: bool) -> bool {
    config
        .having("FirewallAlias", "name", name)
        .is_some_and(|alias| (text(alias, "type") == "port") == is_port)
}

/// Refuses a value that a check does not let pass.
pub(crate) fn pass(
    config: &Config,
    field: &Field,
    check: &Check,
    value: &str,
    own: Option<&Value>,
) -> Result<(), Refusal> {
    if check.words.iter().any(|word| word == value) {
        return Ok(());
    }
    let takes = |what: &str| check.takes.iter().any(|own| own == what);
    let is_named = takes("alias") && is_alias(config, value, false);
    let (is_right, id) = match check.kind.as_str() {
        "ip" => return address(config, field, check, value),
        "subnet" => (
            is_named || (takes("4") && net::is_subnet4(value)) || (takes("6") && net::is_subnet6(value)),
            "SUBNET_VALIDATOR_FAILED",
        ),
        "host" => (
            (takes("host") && net::is_hostname(value))
                || (takes("domain") && net::is_domain(value))
                || (takes("fqdn") && net::is_fqdn(value)),
            "HOSTNAME_VALIDATOR_FAILED",
        ),
        "mac" => (net::is_mac(value), "MAC_ADDRESS_VALIDATOR_FAILED"),
        "email" => (net::is_email(value), "EMAIL_ADDRESS_VALIDATOR_FAILED"),
        "url" => (net::is_url(value), "URL_VALIDATOR_FAILED"),
        "regex" => (Facts::get().matches(&check.pattern, value) != check.forbids, "REGEX_VALIDATOR_FAILED"),
        "hex" => {
            let digits = value.strip_prefix("0x").unwrap_or(value);
            if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(refuse("HEX_VALIDATOR_VALUE_CONTAINS_NOT_HEX_CHARS", field));
            }
            (digits.len() == check.length, "HEX_VALIDATOR_VALUE_IS_NOT_EXPECTED_LENGTH")
        }
        "length" => (value.len() <= check.length, "LENGTH_VALIDATOR_MAXIMUM_CONSTRAINT"),
        "x509" => (is_pem(check, value), "X509_VALIDATOR_INVALID_VALUE"),
        "name" => return name(config, field, value, own),
        "not-in" => (
            config.having(&check.model, &check.field, value).is_none(),
            "UNIQUE_FROM_FOREIGN_MODEL_VALIDATOR_FAILED",
        ),
        _ => (true, ""),
    };
    if is_right { Ok(()) } else { Err(refuse(id, field)) }
}

fn refuse(id: &str, field: &Field) -> Refusal {
    Refusal::invalid(id, &format!("Field `{}` has a value of the wrong form.", field.name))
}

fn address(config: &Config, field: &Field, check: &Check, value: &str) -> Result<(), Refusal> {
    let takes = |what: &str| check.takes.iter().any(|own| own == what);
    let mut value = value;
    if takes("port")
        && let Some((host, port)) = value.split_once(':')
    {
        if !net::is_port(port) {
            return Err(refuse("IP_ADDRESS_VALIDATOR_INVALID_PORT_SUFFIX", field));
        }
        value = host;
    }
    let is_right = (takes("alias") && is_alias(config, value, false)) || (takes("4") && net::is_ipv4(value));
    if !is_right && takes("6") && takes("global") && net::contains("fe80::/10", value) {
        return Err(refuse("IP_ADDRESS_VALIDATOR_IPV6_LINK_LOCAL_NOT_ALLOWED", field));
    }
    let is_right = is_right || (takes("6") && net::is_ipv6(value)) || (takes("fqdn") && net::is_fqdn(value));
    if is_right { Ok(()) } else { Err(refuse("IP_ADDRESS_VALIDATOR_FAILED", field)) }
}

fn is_pem(check: &Check, value: &str) -> bool {
    let takes = |what: &str| check.takes.iter().any(|own| own == what);
    (takes("crt") && value.contains("-----BEGIN CERTIFICATE-----"))
        || (takes("prv") && value.contains("PRIVATE KEY-----"))
        || (takes("csr") && value.contains("-----BEGIN CERTIFICATE REQUEST-----"))
}

/// Names that the packet filter can use.
fn name(config: &Config, field: &Field, value: &str, own: Option<&Value>) -> Result<(), Refusal> {
    let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_interface = own != Some(&Value::from(value)) && interfaces::of_id(config, value).is_some();
    let groups = config.list("InterfaceGroup").iter().enumerate();
    let is_group = groups
        .filter(|(at, _)| field.name != "ifname" || own != Some(&Value::from(*at)))
        .any(|(_, group)| text(group, "ifname") == value);
    let faults = [
        (!is_plain || value.is_empty(), "FILTER_NAME_VALIDATOR_INVALID_CHARACTERS"),
        (RESERVED.contains(&value), "FILTER_NAME_VALIDATOR_RESERVED_NAME_USED"),
        (value.starts_with("pkg_"), "FILTER_NAME_VALIDATOR_CANNOT_START_WITH_PKG"),
        (value.parse::<f64>().is_ok(), "FILTER_NAME_VALIDATOR_CANNOT_BE_NUMERICAL"),
        (is_interface || is_group, "FILTER_NAME_VALIDATOR_NAME_IN_USE_BY_INTERFACE"),
    ];
    match faults.iter().find(|(is_fault, _)| *is_fault) {
        Some((_, id)) => Err(refuse(id, field)),
        None => Ok(()),
    }
}

/// Refuses what the kind of a field does not take: ports, addresses of rules, dates.
pub(crate) fn fits_kind(config: &Config, field: &Field, value: &str) -> Result<(), Refusal> {
    let takes = |what: &str| field.takes.iter().any(|own| own == what);
    let (is_right, id) = match field.kind {
        Kind::Port => (
            (takes("alias") && is_alias(config, value, true))
                || (takes("range") && net::is_port_range(value))
                || net::is_port(value),
            "PORT_FIELD_INVALID",
        ),
        Kind::FilterAddress => return filter_address(config, field, value),
        Kind::SpecialNetwork => (special_network(config, field, value), "SPECIAL_NETWORK_FIELD_INVALID"),
        Kind::Datetime => {
            (chrono::NaiveDate::parse_from_str(value, "%m/%d/%Y").is_ok(), "DATETIME_FIELD_MUST_MATCH_FORMAT")
        }
        _ => (true, ""),
    };
    if is_right { Ok(()) } else { Err(refuse(id, field)) }
}

fn filter_address(config: &Config, field: &Field, value: &str) -> Result<(), Refusal> {
    let denies = |what: &str| field.denies.iter().any(|own| own == what);
    let mut rest = value;
    if !denies("invert")
        && let Some(inner) = value.strip_prefix('!')
    {
        if inner == "any" {
            return Err(refuse("FILTER_RULE_ADDRESS_FIELD_WITH_INVERT_ANY", field));
        }
        rest = inner;
    }
    let is_word = (!denies("any") && rest == "any")
        || (!denies("self") && rest == "(self)")
        || (!denies("l2tp") && rest == "l2tp")
        || (!denies("pppoe") && rest == "pppoe");
    if is_word || is_other_address(config, field, rest) {
        return Ok(());
    }
    let rest = if denies("interface_ip") { rest } else { rest.strip_suffix(":ip").unwrap_or(rest) };
    let is_interface = !denies("interface") && names_interface(config, field, rest);
    if is_interface { Ok(()) } else { Err(refuse("FILTER_ADDRESS_FIELD_INVALID", field)) }
}

/// Whether a value is an address, a network or an alias: these are stored as they are.
pub(crate) fn is_other_address(config: &Config, field: &Field, value: &str) -> bool {
    let denies = |what: &str| field.denies.iter().any(|own| own == what);
    (!denies("ipaddr") && net::is_ip(value))
        || (!denies("subnet") && net::is_subnet(value))
        || (!denies("alias") && is_alias(config, value, false))
}

fn special_network(config: &Config, field: &Field, value: &str) -> bool {
    let denies = |what: &str| field.denies.iter().any(|own| own == what);
    let is_word = (!denies("self") && value == "(self)")
        || (!denies("l2tp") && value == "l2tp")
        || (!denies("pppoe") && value == "pppoe")
        || field.words.iter().any(|word| word == value);
    let of_interface = value.strip_suffix(":ip").filter(|_| !denies("interface_ip"));
    is_word
        || is_other_address(config, field, value)
        || of_interface.is_some_and(|name| names_interface(config, field, name))
        || (!denies("interface") && names_interface(config, field, value))
}

fn names_interface(config: &Config, field: &Field, value: &str) -> bool {
    interfaces::choices(config, field).iter().any(|choice| choice == value)
}
