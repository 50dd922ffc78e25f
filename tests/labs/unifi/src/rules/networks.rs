//! Networks: subnets, VLANs, DHCP, lines, tunnels.

use serde_json::json;

use crate::console::Console;
use crate::net;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, put, text, texts};
use crate::rules::exists;

/// Whether a network may be as it would be after the write.
pub(super) fn check(own: &Console, site: &str, old: Option<&Row>, new: &mut Row) -> Outcome<()> {
    if text(new, "name").is_empty() {
        return Err(Refusal::invalid("name", ".{1,128}"));
    }
    exists(own, site, "usergroup", text(new, "usergroup_id"))?;
    exists(own, site, "radiusprofile", text(new, "radiusprofile_id"))?;
    exists(own, site, "firewall_zone", text(new, "firewall_zone_id"))?;
    match text(new, "purpose") {
        "corporate" | "guest" => local(own, site, old, new),
        "vlan-only" => vlan_only(own, site, new),
        "wan" => line(own, site, new),
        "remote-user-vpn" => server(own, site, new),
        "site-vpn" => tunnel(own, site, new),
        "vpn-client" => Ok(()),
        _ => Err(Refusal::invalid(
            "purpose",
            "corporate|guest|remote-user-vpn|site-vpn|vlan-only|vpn-client|wan",
        )),
    }
}

/// The VLAN of a network: without the flag it is the first one.
fn vlan(row: &Row) -> i64 {
    if flag(row, "vlan_enabled") { number(row, "vlan").unwrap_or(1) } else { 1 }
}

fn others<'a>(own: &'a Console, site: &str, new: &Row) -> Vec<&'a Row> {
    let id = text(new, "_id").to_owned();
    own.store.rows(site, "networkconf").iter().filter(|row| text(row, "_id") != id).collect()
}

fn free_vlan(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    let is_lan = |row: &&&Row| matches!(text(row, "purpose"), "corporate" | "guest" | "vlan-only");
    let taken = others(own, site, new).iter().filter(is_lan).find(|row| vlan(row) == vlan(new)).copied();
    match taken {
        None => Ok(()),
        Some(row) => {
            Err(Refusal::new("VlanUsed").telling("vlan", vlan(new)).telling("name", text(row, "name")))
        }
    }
}

fn local(own: &Console, site: &str, old: Option<&Row>, new: &mut Row) -> Outcome<()> {
    free_vlan(own, site, new)?;
    let subnet = net::subnet(text(new, "ip_subnet"));
    let subnet = match subnet {
        Some(subnet) => subnet,
        None if text(new, "gateway_type") == "switch"
            || !own.has_gateway(site) && text(new, "ip_subnet").is_empty() =>
        {
            return Ok(());
        }
        None => return Err(Refusal::invalid("ip_subnet", "address/prefix")),
    };
    if subnet.addr() == subnet.network() {
        return Err(Refusal::new("InvalidIpSubnet"));
    }
    let overlapping = others(own, site, new)
        .into_iter()
        .find(|row| net::subnet(text(row, "ip_subnet")).is_some_and(|other| net::overlap(subnet, other)));
    if let Some(row) = overlapping {
        return Err(Refusal::new("NetworkSubnetOverlapped").telling("name", text(row, "name")));
    }
    if flag(new, "dhcpd_enabled") && flag(new, "dhcp_relay_enabled") {
        return Err(Refusal::new("DhcpServerAndRelayCannotCoexist"));
    }
    range(own, old, new, subnet)?;
    let needs = [
        ("dhcpd_boot_enabled", "dhcpd_boot_server", "BootFilenameInvalid"),
        ("dhcpd_ntp_enabled", "dhcpd_ntp_1", "NtpAddressInvalid"),
        ("dhcpguard_enabled", "dhcpd_ip_1", "MissingIPAddress"),
    ];
    for (switch, partner, code) in needs {
        if flag(new, switch) && text(new, partner).is_empty() {
            return Err(Refusal::new(code));
        }
    }
    if flag(new, "dhcpd_gateway_enabled") && !net::is_in(subnet, text(new, "dhcpd_gateway")) {
        return Err(Refusal::new("GatewayIpNotInSubnet"));
    }
    if flag(new, "dhcpdv6_enabled") && text(new, "dhcpdv6_start").is_empty() {
        put(new, "dhcpdv6_enabled", false);
    }
    Ok(())
}

/// The range of the DHCP server follows the subnet, unless the body says where it lies.
fn range(own: &Console, old: Option<&Row>, new: &mut Row, subnet: ipnet::Ipv4Net) -> Outcome<()> {
    let is_moved = old.is_some_and(|old| text(old, "ip_subnet") != text(new, "ip_subnet"));
    let fits =
        |row: &Row| ["dhcpd_start", "dhcpd_stop"].iter().all(|name| net::is_in(subnet, text(row, name)));
    if !flag(new, "dhcpd_enabled") || fits(new) {
        return Ok(());
    }
    let is_old = old
        .is_some_and(|old| ["dhcpd_start", "dhcpd_stop"].iter().all(|name| old.get(*name) == new.get(*name)));
    if !(text(new, "dhcpd_start").is_empty() || is_moved && is_old) {
        return Err(Refusal::new("InvalidDhcpRange"));
    }
    if is_moved && !own.settings.release.is_from("10.1") {
        return Err(Refusal::new("InvalidDhcpRange"));
    }
    put(new, "dhcpd_start", net::nth(subnet, 6).to_string());
    put(new, "dhcpd_stop", net::nth(subnet, u32::MAX).to_string());
    Ok(())
}

fn vlan_only(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    if flag(new, "network_isolation_enabled") {
        return Err(Refusal::new("NetworkIsolationAppliedOnNonCorporateNetwork"));
    }
    // Without a number it would be the first VLAN, which the usual network has.
    free_vlan(own, site, new)
}

fn line(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    let group = Some(text(new, "wan_networkgroup")).filter(|group| !group.is_empty()).unwrap_or("WAN");
    let is_taken = others(own, site, new)
        .into_iter()
        .any(|row| text(row, "purpose") == "wan" && text(row, "wan_networkgroup") == group);
    if is_taken {
        return Err(Refusal::new("WanConfigurationForNetworkGroupAlreadyExists"));
    }
    let missing = |name: &str| text(new, name).is_empty();
    match text(new, "wan_type") {
        "static" if missing("wan_ip") || missing("wan_netmask") || missing("wan_gateway") => {
            Err(Refusal::new("InvalidWanStaticConfiguration"))
        }
        "pppoe" if flag(new, "wan_pppoe_username_enabled") && missing("wan_username") => {
            Err(Refusal::new("InvalidWanPppoeCredentials"))
        }
        _ => Ok(()),
    }
}

/// Tunnels that clients dial into.
fn server(own: &Console, site: &str, new: &mut Row) -> Outcome<()> {
    crate::rules::needs_gateway(own, site, "Vpn")?;
    let subnet =
        net::subnet(text(new, "ip_subnet")).ok_or_else(|| Refusal::invalid("ip_subnet", "address/prefix"))?;
    if subnet.addr() == subnet.network() {
        return Err(Refusal::new("InvalidIpSubnet"));
    }
    let overlaps = others(own, site, new)
        .into_iter()
        .any(|row| net::subnet(text(row, "ip_subnet")).is_some_and(|other| net::overlap(subnet, other)));
    if overlaps {
        return Err(Refusal::new("NetworkSubnetOverlapped"));
    }
    match text(new, "vpn_type") {
        "wireguard-server" => {
            if text(new, "x_wireguard_private_key").is_empty() {
                return Err(Refusal::new("WireguardMissingPrivateKey"));
            }
            let port = number(new, "local_port").unwrap_or(51_820);
            let is_used = others(own, site, new).into_iter().any(|row| {
                text(row, "vpn_type") == "wireguard-server" && number(row, "local_port") == Some(port)
            });
            if is_used {
                return Err(Refusal::new("VpnLocalPortUsed"));
            }
            put(new, "local_port", port);
            let key = crate::row::uuid("wireguard", text(new, "x_wireguard_private_key"));
            put(new, "wireguard_public_key", format!("{}=", key.replace('-', "")));
            Ok(())
        }
        "openvpn-server" | "l2tp-server" => {
            let radius = own.store.having(site, "setting", "key", "radius");
            let profile = own.store.find(site, "radiusprofile", text(new, "radiusprofile_id"));
            let is_built_in = profile.is_some_and(|profile| flag(profile, "use_usg_auth_server"));
            if is_built_in && !radius.is_some_and(|setting| flag(setting, "enabled")) {
                return Err(Refusal::new("RadiusServerNotEnabled"));
            }
            Ok(())
        }
        _ => Err(Refusal::invalid("vpn_type", "wireguard-server|openvpn-server|l2tp-server")),
    }
}

/// Tunnels to other sites.
fn tunnel(own: &Console, site: &str, new: &mut Row) -> Outcome<()> {
    crate::rules::needs_gateway(own, site, "Vpn")?;
    if texts(new, "remote_vpn_subnets").is_empty() && !flag(new, "ipsec_dynamic_routing") {
        return Err(Refusal::new("RemoteVpnSubnetsMissing"));
    }
    if text(new, "vpn_type") != "ipsec-vpn" {
        return Ok(());
    }
    let peer = text(new, "ipsec_peer_ip");
    if others(own, site, new).into_iter().any(|row| !peer.is_empty() && text(row, "ipsec_peer_ip") == peer) {
        return Err(Refusal::new("IpsecPeerIpOverlapped"));
    }
    let local = text(new, "ipsec_local_ip");
    let lines = own.store.rows(site, "networkconf").iter().filter(|row| text(row, "purpose") == "wan");
    let mut owned: Vec<String> = lines.map(|row| text(row, "wan_ip").to_owned()).collect();
    owned.extend(["203.0.113.17", "198.51.100.42", "any", ""].map(str::to_owned));
    if !owned.iter().any(|own| own == local) {
        return Err(Refusal::new("UnrecognizedLocalIp"));
    }
    if text(new, "x_ipsec_pre_shared_key").is_empty() {
        return Err(Refusal::invalid("x_ipsec_pre_shared_key", "[^\\\"\\' ]+"));
    }
    if !new.contains_key("route_distance") {
        put(new, "route_distance", json!(30));
    }
    Ok(())
}
