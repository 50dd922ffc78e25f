//! Interfaces, VLANs, gateways, and what gives out addresses and names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use heddle_sdk::crud::Modelled;
use heddle_sdk::json as sdk_json;
use serde_json::{Value, json};

use super::{beside, is_on, put, system, text, texts};

/// What a device is, by how its name begins.
const TYPES: [(&str, &str); 12] = [
    ("lo", "loopback"),
    ("bridge", "bridge"),
    ("lagg", "bond"),
    ("gif", "tunnel"),
    ("gre", "tunnel"),
    ("tun", "tunnel"),
    ("ovpn", "tunnel"),
    ("ipsec", "tunnel"),
    ("pppoe", "tunnel"),
    ("l2tp", "tunnel"),
    ("stf", "tunnel"),
    ("wg", "tunnel"),
];

/// An assigned interface, or a port to which nothing is assigned.
pub(super) fn interface(row: &Value, object: &mut Modelled) -> bool {
    let port = text(row, "hwif").or(text(row, "if")).unwrap_or_default();
    if row.get("hwif").is_none() && text(row, "in_use_by").is_some() {
        return false;
    }
    text(row, "name").unwrap_or(port).clone_into(&mut object.key);
    text(row, "descr").unwrap_or(port).clone_into(&mut object.label);
    let kind = kind_of(row, port);
    put(object, "type", Some(kind));
    put(object, "master", master_of(row, port));
    if row.get("hwif").is_none() {
        return true;
    }
    let is_wan =
        text(row, "gateway").or(text(row, "gatewayv6")).is_some() || text(row, "name") == Some("wan");
    let own = addresses(row);
    let role = if is_wan { Some("wan") } else { (!own.is_empty() && kind != "tunnel").then_some("lan") };
    put(object, "role", role);
    put(object, "addresses", Some(own));
    put(object, "speed_mbps", text(row, "media").and_then(speed));
    true
}

fn kind_of(row: &Value, port: &str) -> &'static str {
    match TYPES.iter().find(|(begin, _)| port.starts_with(begin)) {
        Some((_, kind)) => kind,
        None if beside(row, "vlan").is_some() || port.contains('.') => "vlan",
        None => "physical",
    }
}

/// Megabits of `1000baseT <full-duplex>` and `10Gbase-T`.
fn speed(media: &str) -> Option<u64> {
    let (number, _) =
        media.trim_start_matches("autoselect").trim_start_matches([' ', '(']).split_once("base")?;
    match number.strip_suffix('G') {
        Some(gigabits) => gigabits.parse::<u64>().ok()?.checked_mul(1_000),
        None => number.parse().ok(),
    }
}

/// Bonds name ports as their members, bridges name interfaces.
fn master_of(row: &Value, port: &str) -> Option<String> {
    let names = [Some(port), text(row, "name"), text(row, "descr")];
    let of = |list: &str, name: &str| {
        let has = |one: &&Value| texts(one.get("members")).iter().any(|member| names.contains(&Some(member)));
        sdk_json::items(row, list).iter().find(has).and_then(|one| text(one, name)).map(str::to_owned)
    };
    of("/&/bonds", "laggif").or_else(|| of("/&/bridges", "bridgeif"))
}

/// Addresses with the length of their prefix.
fn addresses(row: &Value) -> Vec<String> {
    let one = |(address, bits): (&str, &str)| {
        let address = text(row, address)?;
        let bits = match row.get(bits) {
            Some(Value::Number(bits)) => Some(bits.to_string()),
            _ => text(row, bits)
                .map(|bits| length(bits).map_or_else(|| bits.to_owned(), |bits| bits.to_string())),
        };
        // Only what is an address: another word says how one is got.
        address.split('%').next()?.parse::<IpAddr>().ok()?;
        Some(bits.map_or_else(|| address.to_owned(), |bits| format!("{address}/{bits}")))
    };
    [("ipaddr", "subnet"), ("ipaddrv6", "subnetv6")].into_iter().filter_map(one).collect()
}

/// Bits of a dotted mask.
fn length(mask: &str) -> Option<u32> {
    mask.parse::<Ipv4Addr>().ok().map(|mask| u32::from(mask).count_ones())
}

pub(super) fn vlan(row: &Value, object: &mut Modelled) {
    put(object, "members", text(row, "if").map(|port| json!([{ "port": port, "tagged": true }])));
    let Some(interface) = beside(row, "interface") else { return };
    let own = addresses(interface);
    let subnets: Vec<String> = own.iter().filter_map(|own| network_of(own)).collect();
    let gateway = own.iter().find(|own| !own.contains(':')).or(own.first());
    put(object, "gateway", gateway.and_then(|own| own.split('/').next()));
    put(object, "subnets", Some(subnets));
    let id = text(interface, "id");
    let is_served = |server: &Value| text(server, "id") == id && is_on(server, "enable");
    let has_server = sdk_json::items(row, "/&/servers").iter().any(is_served);
    let names = [id, text(interface, "descr"), text(interface, "if")];
    let relays = |relay: &Value| {
        is_on(relay, "enable") && texts(relay.get("interface")).iter().any(|name| names.contains(&Some(name)))
    };
    let is_relayed = beside(row, "relay").is_some_and(relays);
    put(
        object,
        "dhcp",
        Some(if has_server {
            "server"
        } else if is_relayed {
            "relay"
        } else {
            "none"
        }),
    );
}

/// The prefix that an address is in.
fn network_of(own: &str) -> Option<String> {
    let (address, bits) = own.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    let network: IpAddr = match address.split('%').next()?.parse().ok()? {
        IpAddr::V4(own) => {
            Ipv4Addr::from(u32::from(own) & u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0))
                .into()
        }
        IpAddr::V6(own) => {
            Ipv6Addr::from(u128::from(own) & u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0))
                .into()
        }
    };
    Some(format!("{network}/{bits}"))
}

pub(super) fn gateway(row: &Value, object: &mut Modelled) {
    let name = text(row, "name");
    let is_chosen = |one: &Value| ["defaultgw4", "defaultgw6"].iter().any(|family| text(one, family) == name);
    put(object, "active", beside(row, "chosen").map(is_chosen));
}

pub(super) fn pool(row: &Value, object: &mut Modelled) {
    let range = text(row, "range_from").zip(text(row, "range_to"));
    put(
        object,
        "ranges",
        Some(range.map_or_else(|| json!([]), |(from, to)| json!([{ "from": from, "to": to }]))),
    );
    let option =
        |one: &Value| Some(json!({ "code": one.get("number")?.as_u64()?, "value": text(one, "value")? }));
    let options = row.get("numberoptions").and_then(Value::as_array);
    put(object, "options", options.map(|all| json!(all.iter().filter_map(option).collect::<Vec<_>>())));
}

pub(super) fn lease(row: &Value, object: &mut Modelled) {
    put(object, "ends_at", text(row, "ends").and_then(system::time));
}

/// A record of a host, of an alias of one, or of a zone. A host without a name stands for its domain.
pub(super) fn record(row: &Value, object: &mut Modelled) -> bool {
    let owner = row.get("^").unwrap_or(row);
    // Records of a zone: their name is within it.
    if let (Some(kind), Some(zone)) = (text(row, "type"), text(owner, "name")) {
        let name = text(row, "name")
            .filter(|name| *name != "@")
            .map_or_else(|| zone.to_owned(), |name| format!("{name}.{zone}"));
        object.label.clone_from(&name);
        put(object, "name", Some(name));
        put(object, "type", Some(if KINDS.contains(&kind) { kind } else { "other" }));
        return true;
    }
    if text(row, "domain").is_some()
        && text(row, "host").is_none()
        && row.get("forward_tls_upstream").is_some()
    {
        return true;
    }
    let named = if row.get("domain").is_some() { row } else { owner };
    let Some(domain) = text(named, "domain") else { return false };
    let name = text(named, "host").map_or_else(|| domain.to_owned(), |host| format!("{host}.{domain}"));
    object.label.clone_from(&name);
    put(object, "name", Some(name));
    let of_owner = || texts(owner.get("ip")).into_iter().next();
    let value =
        row.get("@").and_then(Value::as_str).map(str::to_owned).filter(|at| at.parse::<IpAddr>().is_ok());
    let value = value.or_else(of_owner);
    put(object, "type", value.as_ref().map(|value| if value.contains(':') { "AAAA" } else { "A" }));
    put(object, "value", value);
    true
}

/// Types of records that the model has a word for.
const KINDS: [&str; 8] = ["A", "AAAA", "CNAME", "MX", "TXT", "SRV", "NS", "PTR"];
