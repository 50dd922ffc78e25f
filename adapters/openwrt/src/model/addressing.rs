//! Addresses and names that dnsmasq gives.

use heddle_sdk::{Completeness, Fault, Host, ModelObject, Origin, crud, json as sdk_json};
use serde_json::{Value, json};

use super::{Fields, Found, flag, natively, object, sections, words};
use crate::inventory::leases;
use crate::rpc;
use crate::uci::{Config, Section};

/// Numbers of options that have a field of their own.
const GATEWAY: &str = "3";
const NAME_SERVERS: &str = "6";

/// Pools: the first address is told as its distance from the network's, so ranges are known only in part.
pub(super) fn pools(config: &Config) -> Vec<ModelObject> {
    let domain = config.of_kind("dnsmasq").find_map(|section| section.text("domain"));
    let one = |(key, section): (String, &Section)| {
        let options: Vec<(String, String)> =
            words(section, "dhcp_option").iter().filter_map(|word| option(word)).collect();
        let of =
            |code: &str| options.iter().find(|(known, _)| known == code).map(|(_, value)| value.as_str());
        let servers = of(NAME_SERVERS).map(|all| all.split(',').map(str::to_owned).collect::<Vec<_>>());
        let others: Vec<Value> = options
            .iter()
            .filter(|(code, _)| ![GATEWAY, NAME_SERVERS].contains(&code.as_str()))
            .filter_map(|(code, value)| Some(json!({ "code": code.parse::<u16>().ok()?, "value": value })))
            .collect();
        let is_off = flag(section, "ignore", false) || section.text("dhcpv4") == Some("disabled");
        let fields = Fields::default()
            .text("interface", section.text("interface"))
            .with("enabled", Some(!is_off))
            .with("lease_seconds", section.text("leasetime").and_then(seconds))
            .text("gateway", of(GATEWAY))
            .with("dns_servers", servers)
            .text("domain", domain)
            .with("options", Some(others));
        natively("dhcp.pool", &key, object(&key, section.text("interface").unwrap_or(&key), None, fields))
    };
    sections(config, "dhcp.pool").into_iter().map(one).collect()
}

/// `6,192.0.2.1,192.0.2.2` or `option:router,192.0.2.1`.
fn option(word: &str) -> Option<(String, String)> {
    let (code, value) = word.split_once(',')?;
    let code = match code.strip_prefix("option:").unwrap_or(code) {
        "router" => GATEWAY,
        "dns-server" => NAME_SERVERS,
        other => other,
    };
    code.bytes().all(|digit| digit.is_ascii_digit()).then(|| (code.to_owned(), value.to_owned()))
}

/// Seconds of `12h`, `30m`, `7d` or a number. Without an end there is none.
fn seconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|seconds| *seconds < 1 << 52)
}

pub(super) fn reservations(config: &Config) -> Vec<ModelObject> {
    let one = |(key, section): (String, &Section)| {
        let mac = words(section, "mac").first().and_then(|mac| crud::mac(mac));
        let name = section.text("name");
        let fields = Fields::default()
            .with("mac", mac)
            .text("address", section.text("ip").filter(|address| *address != "ignore"))
            .text("hostname", name);
        natively("dhcp.host", &key, object(&key, name.unwrap_or(&key), None, fields))
    };
    sections(config, "dhcp.host").into_iter().map(one).collect()
}

/// Names of the file for DHCP that are answered.
pub(super) fn records(config: &Config) -> Vec<ModelObject> {
    let mut out: Vec<ModelObject> = Vec::new();
    let mut add = |name: Option<&str>, kind: &str, value: Option<&str>| {
        let (Some(name), Some(value)) =
            (name.filter(|name| !name.is_empty()), value.filter(|value| !value.is_empty()))
        else {
            return;
        };
        let key = format!("{name}:{kind}:{value}");
        let fields =
            Fields::default().with("name", Some(name)).with("type", Some(kind)).with("value", Some(value));
        if !out.iter().any(|known| known.key == key) {
            out.push(object(&key, name, None, fields));
        }
    };
    for section in config.of_kind("domain") {
        let kind = if section.text("ip").is_some_and(|ip| ip.contains(':')) { "AAAA" } else { "A" };
        add(section.text("name"), kind, section.text("ip"));
    }
    for section in config.of_kind("cname") {
        add(section.text("cname"), "CNAME", section.text("target"));
    }
    for section in config.of_kind("mxhost") {
        add(section.text("domain"), "MX", section.text("relay"));
    }
    // `/corp.example/10.0.0.53` asks another server about a domain.
    for word in config.of_kind("dnsmasq").flat_map(|section| words(section, "server")) {
        if let Some((domain, server)) = word.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) {
            add(Some(domain), "FORWARD", Some(server));
        }
    }
    out
}

pub(super) fn leases(host: &dyn Host) -> Result<Found, Fault> {
    let answers: [_; 2] = rpc::batch(host, &leases::reads())?.try_into().expect("as many answers as reads");
    // What the router calls its time is off by its time zone.
    let now = host.now_ms() / 1_000;
    let all = leases::gather(host, &answers[0], &answers[1])?.or_fault()?;
    let one = |lease: &Value| {
        let mac = sdk_json::text(lease, "/mac").unwrap_or_default();
        let name = sdk_json::text(lease, "/hostname").filter(|name| *name != "*");
        let left = sdk_json::number(lease, "/expires_secs").and_then(|left| now.checked_add(left));
        let ends = sdk_json::number(lease, "/expires_at").or(left).and_then(|ends| i64::try_from(ends).ok());
        // A host may have several addresses.
        let address = sdk_json::text(lease, "/ip");
        let key = address.map_or_else(|| mac.to_owned(), |address| format!("{mac}:{address}"));
        let fields = Fields::default()
            .text("scope", sdk_json::text(lease, "/device"))
            .with("mac", crud::mac(mac))
            .text("address", address)
            .text("hostname", name)
            .with("state", Some("active"))
            .with("ends_at", ends.filter(|ends| *ends < 253_402_300_800).map(crud::rfc3339));
        let object = object(&key, name.unwrap_or(mac), None, fields);
        natively("dhcp.lease", mac, ModelObject { origin: Origin::Derived, ..object })
    };
    Ok((all.iter().map(one).collect(), Completeness::Complete))
}
