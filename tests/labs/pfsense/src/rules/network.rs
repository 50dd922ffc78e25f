//! Interfaces, VLANs and other devices, gateways, routes.

use serde_json::{Value, json};

use super::{refusal, unless};
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::reply::Refusal;
use crate::store::{NAME, Object, is_true, text};
use crate::{checks, hardware, interfaces, net};

pub(crate) fn field(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    match (draft.model.name.as_str(), name) {
        ("NetworkInterface", _) => interface(draft, name),
        ("InterfaceVLAN", "if") => {
            let is_known = hardware::exists(draft.config(), draft.text("if"));
            unless(is_known, "VLAN_INTERFACE_PARENT_NOT_FOUND")
        }
        ("InterfaceVLAN", "vlanif") => {
            let tag = draft.number("tag").unwrap_or_default();
            draft.set("vlanif", json!(format!("{}.{tag}", draft.text("if"))));
            Ok(())
        }
        ("InterfaceLAGG", "members") => {
            let items = draft.value("members").as_array().into_iter().flatten().filter_map(Value::as_str);
            let all = { items }.all(|member| hardware::exists(draft.config(), member));
            unless(all, "INTERFACE_LAGG_MEMBER_DOES_NOT_EXIST")
        }
        ("InterfaceLAGG", "failovermaster") => {
            let own = draft.value("failovermaster");
            let is_member = draft.value("members").as_array().is_some_and(|members| members.contains(own));
            unless(is_member || own == "auto", "INTERFACE_LAGG_MASTER_NOT_MEMBER")
        }
        ("RoutingGateway", _) => gateway(draft, name),
        ("StaticRoute", _) => route(draft, name),
        _ => Ok(()),
    }
}

fn interface(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let id = draft.id.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let config = draft.config();
    let serves = config.having("DHCPServer", NAME, &id).is_some_and(|server| is_true(server, "enable"));
    match name {
        "descr" => {
            let is_tunnel =
                ["ovpn", "ipsec", "gif", "gre"].iter().find(|kind| draft.text("if").starts_with(**kind));
            let is_long = draft.text("descr").len() > 22;
            match is_tunnel.filter(|_| is_long) {
                Some(kind) => {
                    let kind = if *kind == "ovpn" { "OPENVPN".to_owned() } else { kind.to_uppercase() };
                    Err(refusal(400, &format!("NETWORK_INTERFACE_DESCR_{kind}_MAX_LENGTH_EXCEEDED")))
                }
                None => Ok(()),
            }
        }
        "mtu" => {
            let parent = config.having("InterfaceVLAN", "vlanif", draft.text("if"));
            let is_over = parent.is_some() && draft.number("mtu").is_some_and(|mtu| mtu > 1500);
            unless(!is_over, "INTERFACE_WITH_MTU_HIGHER_THAN_PARENT_MTU")
        }
        "media" => {
            let known = ["", "autoselect", "1000baseT", "100baseTX", "10baseT/UTP"];
            unless(known.contains(&draft.text("media")), "NETWORK_INTERFACE_WITH_UNSUPPORTED_MEDIA_TYPE")
        }
        "mediaopt" => {
            let known = ["", "full-duplex"];
            unless(known.contains(&draft.text("mediaopt")), "NETWORK_INTERFACE_WITH_UNSUPPORTED_MEDIA_OPTION")
        }
        "typev4" => {
            let is_static = draft.text("typev4") == "static";
            unless(is_static || !serves, "NETWORK_INTERFACE_CANNOT_CHANGE_TYPEV4_WHILE_DHCP_SERVER_ENABLED")?;
            let holds = has_addresses(draft, &id, net::is_ipv4);
            unless(
                draft.text("typev4") != "none" || !holds,
                "NETWORK_INTERFACE_NO_TYPEV4_NONE_WITH_EXISTING_VIRTUAL_IPS",
            )
        }
        "typev6" => {
            let holds = has_addresses(draft, &id, net::is_ipv6);
            unless(
                draft.text("typev6") != "none" || !holds,
                "NETWORK_INTERFACE_NO_TYPEV6_NONE_WITH_EXISTING_VIRTUAL_IPS",
            )
        }
        "ipaddr" => address4(draft, &id),
        "ipaddrv6" => address6(draft, &id),
        "subnet" => {
            let is_small = draft.number("subnet").is_some_and(|bits| bits > 30);
            unless(
                !is_small || !serves,
                "NETWORK_INTERFACE_SUBNET_MAXIMUM_EXCEEDED_WHILE_DHCP_SERVER_ENABLED",
            )
        }
        _ => Ok(()),
    }
}

fn has_addresses(draft: &Draft, id: &str, is_family: fn(&str) -> bool) -> bool {
    let vips = draft.config().list("VirtualIP").iter();
    { vips }.any(|vip| text(vip, "interface") == id && is_family(text(vip, "subnet")))
}

fn address4(draft: &mut Draft, id: &str) -> Result<(), Refusal> {
    if draft.text("typev4") != "static" {
        // The type stands where the address would.
        let kind = draft.value("typev4").clone();
        draft.set("ipaddr", kind);
        return Ok(());
    }
    let address = draft.text("ipaddr").to_owned();
    let bits = draft.number("subnet").and_then(|bits| u32::try_from(bits).ok()).unwrap_or(32);
    unless(net::is_ipv4(&address), "INTERFACE_IPADDR_NOT_IPV4_WHEN_STATIC")?;
    unless(!is_configured(draft, id, &address, bits), "INTERFACE_IPADDR_ALREADY_IN_USE")?;
    if let Some((first, last)) = net::bounds4(&address, bits).filter(|_| bits < 31) {
        unless(first.to_string() != address, "NETWORK_INTERFACE_IPADDR_CANNOT_USE_NETWORK_ADDRESS")?;
        unless(last.to_string() != address, "NETWORK_INTERFACE_IPADDR_CANNOT_USE_BROADCAST_ADDRESS")?;
    }
    let network = format!("{}/{bits}", net::network_of(&address, bits).unwrap_or_default());
    let is_routed = draft.config().having("StaticRoute", "network", &network).is_some();
    unless(!is_routed, "NETWORK_INTERFACE_IPADDR_CONFLICTS_WITH_STATIC_ROUTE")
}

fn address6(draft: &Draft, id: &str) -> Result<(), Refusal> {
    let address = draft.text("ipaddrv6");
    for kind in ["dhcp6", "slaac", "6rd", "6to4", "track6"] {
        if address == kind && draft.text("typev6") != kind {
            let kind = kind.to_uppercase();
            return Err(refusal(400, &format!("INTERFACE_IPADDRV6_IS_{kind}_WITH_NON_{kind}_TYPEV6")));
        }
    }
    let bits = draft.number("subnetv6").and_then(|bits| u32::try_from(bits).ok()).unwrap_or(128);
    unless(!is_configured(draft, id, address, bits), "INTERFACE_IPADDRV6_ALREADY_IN_USE")
}

/// Whether another interface or a virtual address has the address, or a network that meets its own.
pub(crate) fn is_configured(draft: &Draft, id: &str, address: &str, bits: u32) -> bool {
    let config = draft.config();
    let own = format!("{address}/{bits}");
    let others = config.list(interfaces::INTERFACES).iter().filter(|other| text(other, NAME) != id);
    let meets = |(other, other_bits): (String, u32)| {
        net::contains(&own, &other) || net::contains(&format!("{other}/{other_bits}"), address)
    };
    let is_v6 = address.contains(':');
    let of = |other: &Object| if is_v6 { interfaces::address6(other) } else { interfaces::address4(other) };
    { others }.filter_map(of).any(meets) || config.having("VirtualIP", "subnet", address).is_some()
}

fn gateway(draft: &Draft, name: &str) -> Result<(), Refusal> {
    let config = draft.config();
    let own = draft.text("name");
    let number = |name: &str| draft.number(name).unwrap_or_default();
    match name {
        "disabled" if draft.is_true("disabled") => {
            let groups = config.list("RoutingGatewayGroup").iter();
            let members =
                groups.flat_map(|group| crate::store::Config::children(group, "RoutingGatewayGroupPriority"));
            let is_member = { members }.any(|member| text(&member, "gateway") == own);
            unless(!is_member, "ROUTING_GATEWAY_DISABLED_NOT_ALLOWED_WITH_EXISTING_GW_GROUP")?;
            let mut routes = config.list("StaticRoute").iter();
            let is_routed = routes.any(|route| text(route, "gateway") == own && !is_true(route, "disabled"));
            unless(!is_routed, "ROUTING_GATEWAY_DISABLED_NOT_ALLOWED_WITH_EXISTING_ROUTE")
        }
        "interface" => {
            let interface = interfaces::of_shown(config, draft.text("interface"));
            let has =
                |of: fn(&Object) -> Option<(String, u32)>| interface.is_some_and(|own| of(own).is_some());
            match draft.text("ipprotocol") {
                "inet" => unless(has(interfaces::address4), "ROUTING_GATEWAY_INTERFACE_HAS_NO_IPV4"),
                _ => unless(has(interfaces::address6), "ROUTING_GATEWAY_INTERFACE_HAS_NO_IPV6"),
            }
        }
        "gateway" if draft.text("gateway") != "dynamic" => match draft.text("ipprotocol") {
            "inet" => unless(net::is_ipv4(draft.text("gateway")), "ROUTING_GATEWAY_NO_IPV6_WITH_INET"),
            _ => unless(net::is_ipv6(draft.text("gateway")), "ROUTING_GATEWAY_NO_IPV4_WITH_INET6"),
        },
        "latencyhigh" => unless(
            number("latencylow") <= number("latencyhigh"),
            "ROUTING_GATEWAY_WITH_LATENCY_LOW_GREATER_THAN_HIGH",
        ),
        "losshigh" => {
            unless(number("losslow") <= number("losshigh"), "ROUTING_GATEWAY_WITH_LOSS_LOW_GREATER_THAN_HIGH")
        }
        "loss_interval" => unless(
            number("latencyhigh") <= number("loss_interval"),
            "ROUTING_GATEWAY_WITH_LOSS_INTERVAL_GREATER_THAN_LATENCY_HIGH",
        ),
        "time_period" => unless(
            number("time_period") > 2 * number("interval") + number("loss_interval"),
            "ROUTING_GATEWAY_TIME_PERIOD_UNDER_MINIMUM",
        ),
        "alert_interval" => unless(
            number("alert_interval") > number("interval"),
            "ROUTING_GATEWAY_ALERT_INTERVAL_UNDER_MINIMUM",
        ),
        _ => Ok(()),
    }
}

fn route(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let config = draft.config();
    let network = draft.text("network").to_owned();
    if name == "disabled" {
        let gateway = config.having("RoutingGateway", "name", draft.text("gateway"));
        // The vendor looks among gateways only, and not among groups.
        let Some(gateway) = gateway else {
            let text = "Cannot locate first Model object in a ModelSet with no Model objects";
            return Err(Refusal::server("MODELSET_FIRST_REQUESTED_WITH_NO_MODEL_OBJECTS", text));
        };
        return unless(
            !is_true(gateway, "disabled") || draft.is_true("disabled"),
            "STATIC_ROUTE_GATEWAY_DISABLED",
        );
    }
    if checks::is_alias(config, &network, false) {
        return Ok(());
    }
    match name {
        "network" => {
            let Some((address, bits)) = network.split_once('/') else { return Ok(()) };
            let base = net::network_of(address, bits.parse().unwrap_or(0)).unwrap_or_default();
            let is_v6 = base.contains(':');
            for own in config.list(interfaces::INTERFACES) {
                let found = if is_v6 { fixed(own, "ipaddrv6") } else { fixed(own, "ipaddr") };
                if found
                    .is_some_and(|(address, bits)| net::network_of(&address, bits).as_ref() == Some(&base))
                {
                    let family = if is_v6 { "IPV6" } else { "IPV4" };
                    return Err(refusal(400, &format!("STATIC_ROUTE_CONFLICTS_WITH_{family}_INTERFACE")));
                }
            }
            // The network is written without the bits of a host.
            draft.set("network", json!(format!("{base}/{bits}")));
            Ok(())
        }
        "gateway" => {
            let protocol = config.having("RoutingGateway", "name", draft.text("gateway"));
            match protocol.map(|own| text(own, "ipprotocol")) {
                Some("inet") => {
                    unless(net::is_subnet4(&network), "STATIC_ROUTE_NON_IPV4_NETWORK_WITH_IPV4_GATEWAY")
                }
                Some("inet6") => {
                    unless(net::is_subnet6(&network), "STATIC_ROUTE_NON_IPV6_NETWORK_WITH_IPV6_GATEWAY")
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn fixed(interface: &Object, field: &str) -> Option<(String, u32)> {
    let is_fixed = net::is_ip(text(interface, field));
    let found =
        if field == "ipaddr" { interfaces::address4(interface) } else { interfaces::address6(interface) };
    found.filter(|_| is_fixed)
}

/// Members of a group are of one family.
pub(crate) fn priority(draft: &mut Draft) -> Result<(), Refusal> {
    let own = draft.config().having("RoutingGateway", "name", draft.text("gateway"));
    let own = own.map_or("", |gateway| text(gateway, "ipprotocol"));
    let group = draft.parent_text("ipprotocol");
    let fits = group.is_empty() || group == "unknown" || group == own;
    unless(fits, "ROUTING_GATEWAY_GROUP_PRIORITY_IPPROTOCOL_MISMATCH")
}

/// How an interface is addressed follows from its addresses.
pub(crate) fn show_interface(id: Option<&Value>, object: &Object, out: &mut Object) {
    if text(object, "descr").is_empty() {
        let id = id.and_then(Value::as_str).unwrap_or_default().to_uppercase();
        out.insert("descr".to_owned(), json!(id));
    }
    let kind = match text(object, "ipaddr") {
        address if net::is_ipv4(address) => "static",
        "dhcp" => "dhcp",
        _ => "none",
    };
    out.insert("typev4".to_owned(), json!(kind));
    let kind = match text(object, "ipaddrv6") {
        address if net::is_ipv6(address) => "staticv6",
        kind @ ("dhcp6" | "slaac" | "6rd" | "6to4" | "track6") => kind,
        _ => "none",
    };
    out.insert("typev6".to_owned(), json!(kind));
}

pub(crate) fn show_group(firewall: &Pfsense, out: &mut Object) {
    let members = out.get("priorities").and_then(Value::as_array).into_iter().flatten();
    let gateways = members.filter_map(|member| member["gateway"].as_str());
    let found = { gateways }.find_map(|name| firewall.stored.having("RoutingGateway", "name", name));
    let protocol = found.map_or("unknown", |gateway| text(gateway, "ipprotocol")).to_owned();
    out.insert("ipprotocol".to_owned(), json!(protocol));
}
