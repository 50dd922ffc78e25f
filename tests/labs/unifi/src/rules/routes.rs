//! Routes, forwards, names at providers, and profiles of ports.

use std::net::Ipv4Addr;

use crate::console::Console;
use crate::net;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, text, texts};
use crate::rules::{exists, needs_gateway};

pub(super) fn port_forward(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    needs_gateway(own, site, "PortForward")?;
    if text(new, "fwd").parse::<Ipv4Addr>().is_err() {
        return Err(Refusal::invalid("fwd", "address"));
    }
    for name in ["dst_port", "fwd_port"] {
        if text(new, name).is_empty() {
            return Err(Refusal::invalid(name, "ports"));
        }
    }
    exists(own, site, "firewallgroup", text(new, "src_firewall_group_id"))?;
    let same = |row: &&Row| {
        text(row, "_id") != text(new, "_id")
            && ["dst_port", "proto", "pfwd_interface", "src"]
                .iter()
                .all(|name| row.get(*name) == new.get(*name))
    };
    match own.store.rows(site, "portforward").iter().find(same) {
        Some(_) => Err(Refusal::new("PortForwardOverlapped")),
        None => Ok(()),
    }
}

pub(super) fn route(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    let target = text(new, "static-route_network");
    if net::subnet(target).is_none() && target.parse::<ipnet::Ipv6Net>().is_err() {
        return Err(Refusal::invalid("static-route_network", "network/prefix"));
    }
    match text(new, "static-route_type") {
        "nexthop-route" if text(new, "static-route_nexthop").parse::<std::net::IpAddr>().is_err() => {
            return Err(Refusal::invalid("static-route_nexthop", "address"));
        }
        "interface-route" => {
            let interface = text(new, "static-route_interface");
            let is_line = interface.starts_with("WAN");
            if !is_line && own.store.find(site, "networkconf", interface).is_none() {
                return Err(Refusal::invalid("static-route_interface", "WAN[1-9]?|[\\d\\w]+"));
            }
        }
        "nexthop-route" | "blackhole" => {}
        _ => return Err(Refusal::invalid("static-route_type", "nexthop-route|interface-route|blackhole")),
    }
    if text(new, "gateway_type") == "switch" {
        let device = own.store.having(site, "device", "mac", text(new, "gateway_device"));
        return if device.is_some() { Ok(()) } else { Err(Refusal::invalid("gateway_device", "MAC")) };
    }
    needs_gateway(own, site, "StaticRoute")
}

pub(super) fn dynamic_dns(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    needs_gateway(own, site, "DynamicDns")?;
    let same = |row: &&Row| {
        text(row, "_id") != text(new, "_id")
            && ["interface", "service"].iter().all(|name| row.get(*name) == new.get(*name))
    };
    match own.store.rows(site, "dynamicdns").iter().find(same) {
        Some(_) => Err(Refusal::new("DynamicDnsExisted")),
        None => Ok(()),
    }
}

pub(super) fn port_profile(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    if text(new, "name").is_empty() {
        return Err(Refusal::invalid("name", ".{1,128}"));
    }
    for name in ["native_networkconf_id", "voice_networkconf_id"] {
        exists(own, site, "networkconf", text(new, name))?;
    }
    texts(new, "excluded_networkconf_ids").into_iter().try_for_each(|id| exists(own, site, "networkconf", id))
}
