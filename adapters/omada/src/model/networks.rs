//! Interfaces, switch ports and networks.

use std::net::Ipv4Addr;

use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};

use super::{known, list, mac, set, text, texts, vlan_id};

/// Most members of a network that the model takes.
const MEMBERS_MAX: usize = 1_000;
const IPV4_BITS: u32 = 32;

/// The addresses of a port towards the internet, of a network's gateway, or of a switch in a network.
pub(super) fn interface(row: &Value, fields: &mut Map<String, Value>) {
    let mut addresses = Vec::new();
    for own in [&row["wanPortIpv4Config"], &row["ip"]] {
        addresses.extend(address(&text(own, "ip"), &text(own, "netmask")));
    }
    if row.get("lanName").is_some() {
        addresses.extend(address(&text(row, "ip"), ""));
    }
    addresses.extend(Some(text(&row["wanPortIpv6Config"], "addr")).filter(|address| !address.is_empty()));
    set(fields, "addresses", known(addresses));
}

/// An address with the length of its prefix, where the mask tells it. `0.0.0.0` is none.
fn address(ip: &str, mask: &str) -> Option<String> {
    let ip: Ipv4Addr = ip.parse().ok()?;
    if ip.is_unspecified() {
        return None;
    }
    let bits = mask.parse::<Ipv4Addr>().map(|mask| mask.to_bits().leading_ones());
    Some(bits.map_or_else(|_| ip.to_string(), |bits| format!("{ip}/{bits}")))
}

/// What a profile says of a port, and which networks have a tag there.
pub(super) fn port(row: &Value, object: &mut Modelled) {
    // Members of a stack count their ports alike.
    let unit = text(row, "unit");
    if let (Some((mac, port)), false) = (object.key.rsplit_once(':'), matches!(unit.as_str(), "" | "0" | "1"))
    {
        object.key = format!("{mac}:{unit}/{port}");
    }
    let fields = &mut object.fields;
    if row["profileOverrideEnable"] == false {
        let isolated = row["&"]["profile"].get("portIsolationEnable").filter(|value| value.is_boolean());
        set(fields, "isolated", isolated.cloned());
    }
    // What was no VLAN is left out already, and the network may tell which one it is.
    if !fields.contains_key("native_vlan") {
        set(fields, "native_vlan", vlan_id(&text(&row["&"]["native"], "vlan")).map(Value::from));
    }
    if fields.get("tagged_mode").is_some_and(|mode| mode != "list") {
        fields.remove("tagged_vlans");
    }
}

/// The subnet of a network, who gives addresses there, and the switch ports in it.
pub(super) fn vlan(row: &Value, fields: &mut Map<String, Value>) {
    if text(row, "vlanType") == "1" {
        // It is several VLANs.
        fields.remove("vlan_id");
    }
    let subnet = text(row, "gatewaySubnet");
    set(fields, "subnets", prefix(&subnet).map(|prefix| json!([prefix])));
    set(fields, "gateway", subnet.split_once('/').map(|(gateway, _)| json!(gateway)));
    let gives = row["dhcpSettingsVO"].get("enable").and_then(Value::as_bool);
    let dhcp = match (gives, text(row, "purpose").as_str()) {
        _ if row["dhcpL2RelayEnable"] == true => Some("relay"),
        (Some(true), _) => Some("server"),
        (Some(false), "1") => Some("none"),
        // Somebody else may give addresses in a network without a gateway.
        _ => None,
    };
    set(fields, "dhcp", dhcp.map(Value::from));
    if row["&"]["switches"].is_array() {
        let members: Vec<Value> = list(&row["&"], "switches").flat_map(members).collect();
        set(fields, "members", (members.len() <= MEMBERS_MAX).then_some(Value::Array(members)));
    }
}

/// The ports of a switch in a network, by their keys.
fn members(row: &Value) -> Vec<Value> {
    let Some(switch) = mac(&text(&row["$"], "switchMac")) else { return Vec::new() };
    let own = &row["portLagNetworkInfo"];
    let of = |name: &str, is_tagged: bool| -> Vec<Value> {
        let ports = texts(own, name).into_iter();
        ports.map(|port| json!({ "port": format!("{switch}:{port}"), "tagged": is_tagged })).collect()
    };
    [of("nativePorts", false), of("untagPorts", false), of("tagPorts", true)].concat()
}

/// `10.5.0.0/24` of `10.5.0.1/24`.
pub(super) fn prefix(text: &str) -> Option<String> {
    let (ip, bits) = text.split_once('/')?;
    let ip: Ipv4Addr = ip.trim().parse().ok()?;
    let bits: u32 = bits.trim().parse().ok().filter(|bits| *bits <= IPV4_BITS)?;
    let mask = u32::MAX.checked_shl(IPV4_BITS - bits).unwrap_or_default();
    Some(format!("{}/{bits}", Ipv4Addr::from_bits(ip.to_bits() & mask)))
}

/// The name servers that clients are told, where they are not those of the gateway.
pub(super) fn pool(row: &Value, fields: &mut Map<String, Value>) {
    let own = &row["dhcpSettingsVO"];
    let servers: Vec<String> =
        ["priDns", "sndDns"].iter().map(|name| text(own, name)).filter(|server| !server.is_empty()).collect();
    set(fields, "dns_servers", known(servers).filter(|_| text(own, "dhcpns") != "auto"));
}

/// The one VLAN that a text names.
pub(super) fn only_vlan(text: &str) -> Option<Value> {
    vlan_id(text).map(Value::from)
}

#[cfg(test)]
mod tests {
    use heddle_sdk::Origin;

    use super::*;

    #[test]
    fn network_tells_the_native_vlan_where_the_port_has_none() {
        for (known, native) in [(None, Some(json!(20))), (Some(json!(7)), Some(json!(7)))] {
            let fields = known.map(|id| ("native_vlan".to_owned(), id));
            let mut port = Modelled {
                key: "m:1".to_owned(),
                label: "1".to_owned(),
                origin: Origin::Own,
                device: None,
                fields: fields.into_iter().collect(),
            };
            super::port(&json!({ "&": { "native": { "vlan": 20 } } }), &mut port);
            assert_eq!(port.fields.get("native_vlan"), native.as_ref());
        }
    }

    #[test]
    fn subnets_are_prefixes_of_their_gateway() {
        for (gateway, subnet) in [
            ("10.5.0.1/24", Some("10.5.0.0/24")),
            ("10.5.130.1/17", Some("10.5.128.0/17")),
            ("10.5.0.1/0", Some("0.0.0.0/0")),
            ("10.5.0.1/32", Some("10.5.0.1/32")),
            ("10.5.0.1/33", None),
            ("10.5.0.1", None),
            ("fe80::1/64", None),
            ("", None),
        ] {
            assert_eq!(prefix(gateway).as_deref(), subnet, "{gateway}");
        }
        assert_eq!(address("10.4.0.32", "255.255.255.0").as_deref(), Some("10.4.0.32/24"));
        assert_eq!(address("10.4.0.32", "").as_deref(), Some("10.4.0.32"));
        assert_eq!(address("0.0.0.0", "0.0.0.0"), None);
    }
}
