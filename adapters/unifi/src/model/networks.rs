//! Local networks, what they give addresses to, and routes.

use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};

use super::{known, said, set, text};
use crate::beside::{Beside, number};

/// The network without a number has this one.
const FIRST_VLAN: u64 = 1;
/// Most members of a network that the model takes.
pub(crate) const MEMBERS_MAX: usize = 1_000;

/// The address of the gateway and the prefix of its network, of `192.0.2.1/24`.
pub(super) fn subnet(told: &str) -> Option<(String, String)> {
    let (address, length) = told.split_once('/')?;
    let own: Ipv4Addr = address.parse().ok()?;
    let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    Some((own.to_string(), format!("{}/{length}", Ipv4Addr::from(u32::from(own) & mask))))
}

pub(super) fn vlan(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    let number = number(row.get("vlan")).unwrap_or(FIRST_VLAN);
    fields.insert("vlan_id".to_owned(), json!(number));
    if let Some((gateway, prefix)) = subnet(&text(row, "ip_subnet")) {
        set(fields, "gateway", said(gateway));
        set(fields, "subnets", Some(json!([prefix])));
    }
    let is = |name: &str| row.get(name) == Some(&Value::Bool(true));
    let dhcp = match () {
        () if is("dhcpd_enabled") => "server",
        () if is("dhcp_relay_enabled") => "relay",
        () => "none",
    };
    fields.insert("dhcp".to_owned(), json!(dhcp));
    let members = beside.members.get(&text(row, "_id")).filter(|all| all.len() <= MEMBERS_MAX);
    set(fields, "members", members.map(|members| json!(members)));
}

/// Of a network that gives addresses, or did. False for others.
pub(super) fn pool(row: &Value, fields: &mut Map<String, Value>) -> bool {
    let (from, to) = (text(row, "dhcpd_start"), text(row, "dhcpd_stop"));
    if from.is_empty() || to.is_empty() {
        return false;
    }
    fields.insert("ranges".to_owned(), json!([{ "from": from, "to": to }]));
    let own = text(row, "dhcpd_gateway");
    let gateway =
        if own.is_empty() { subnet(&text(row, "ip_subnet")).map(|(gateway, _)| gateway) } else { Some(own) };
    set(fields, "gateway", gateway.and_then(said));
    if row.get("dhcpd_dns_enabled") == Some(&Value::Bool(true)) {
        let servers =
            (1..=4).map(|at| text(row, &format!("dhcpd_dns_{at}"))).filter(|server| !server.is_empty());
        set(fields, "dns_servers", known(servers.collect()));
    }
    true
}

/// A route may leave by a network, which it names by its id.
pub(super) fn route(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    let interface = text(row, "static-route_interface");
    let name = beside.of_id(&interface).map_or(interface, |network| network.name.clone());
    set(fields, "interface", said(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_the_gateway_stands_for_the_prefix() {
        let of = |told: &str| subnet(told).map(|(gateway, prefix)| format!("{gateway} {prefix}"));
        assert_eq!(of("10.5.0.1/24").as_deref(), Some("10.5.0.1 10.5.0.0/24"));
        assert_eq!(of("10.5.3.1/22").as_deref(), Some("10.5.3.1 10.5.0.0/22"));
        assert_eq!(of("10.5.0.1/0").as_deref(), Some("10.5.0.1 0.0.0.0/0"));
        for odd in ["", "10.5.0.1", "10.5.0.1/33", "a/24", "fe80::1/64"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
