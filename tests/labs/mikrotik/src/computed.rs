//! What the router adds to stored rows when they are read.

use crate::device::Router;
use crate::interfaces;
use crate::store::{Record, Row};
use crate::{
    address_lists, bridge, certificates, dhcp, duration, files, firewall, routes, scheduler, vpn, vrrp, wifi,
};

/// Seconds after a start in which watched hosts are not judged.
const WATCH_DELAY_SECS: u64 = 300;

pub(crate) fn fill(router: &Router, path: &'static str, row: &Row, out: &mut Record) {
    match path {
        "interface/ethernet" => ethernet(router, row, out),
        "interface/vrrp" => {
            mac(router, path, row, out);
            let running = interfaces::is_running(&router.store, path, row);
            out.insert("running".to_owned(), running.to_string());
            vrrp::fill(row, out);
        }
        "interface/bridge/vlan" => bridge::fill_vlan(router, row, out),
        "interface/bridge/port" => bridge::fill_port(router, row, out),
        "interface/wifi" => {
            mac(router, path, row, out);
            wifi::fill(router, row, out);
        }
        "interface/wireguard/peers" => vpn::fill_peer(router, row, out),
        path if interfaces::is_type(path) => mac(router, path, row, out),
        "ip/address" | "ipv6/address" => address(router, path, row, out),
        "ip/route" | "ipv6/route" => routes::fill(router, row, out),
        "ip/pool" => dhcp::fill_pool(router, row, out),
        "ip/dhcp-server/lease" => dhcp::fill_lease(router, row, out),
        "ip/dhcp-server/network" => drop(out.remove("invalid")),
        "ip/dhcp-client" => dhcp::fill_client(router, row, out),
        "ip/firewall/address-list" | "ipv6/firewall/address-list" => address_lists::fill(router, row, out),
        "file" => files::fill(router, row, out),
        "certificate" => certificates::fill(router, row, out),
        "system/scheduler" => scheduler::fill(router, row, out),
        "system/script" => {
            out.entry("run-count".to_owned()).or_insert_with(|| "0".to_owned());
        }
        "user" => {
            out.insert("expired".to_owned(), (row.text("expired") == "true").to_string());
        }
        "tool/netwatch" => netwatch(router, row, out),
        "ip/service" => service(row, out),
        "queue/simple" => queue(router, path, row, out),
        path if firewall::is_table(path) => firewall::fill(router, path, row, out),
        path if path.ends_with("registration-table") => client(router, path, row, out),
        _ => {}
    }
}

fn mac(router: &Router, path: &str, row: &Row, out: &mut Record) {
    if let Some(mac) = interfaces::mac_of(&router.store, path, row) {
        out.insert("mac-address".to_owned(), mac);
    }
    if path == "interface/bridge" {
        out.insert("actual-mtu".to_owned(), "1500".to_owned());
    }
}

fn ethernet(router: &Router, row: &Row, out: &mut Record) {
    mac(router, "interface/ethernet", row, out);
    out.remove("invalid");
    let running = interfaces::is_running(&router.store, "interface/ethernet", row);
    out.insert("running".to_owned(), running.to_string());
    let counters = interfaces::counters(router, "interface/ethernet", row);
    for (name, own) in [
        ("rx-bytes", "rx-byte"),
        ("tx-bytes", "tx-byte"),
        ("rx-packet", "rx-packet"),
        ("tx-packet", "tx-packet"),
    ] {
        out.insert(name.to_owned(), counters.get(own).cloned().unwrap_or_default());
    }
    if !router.settings.is_virtual && row.text("default-name") == "ether5" {
        let poe = router.store.having("interface/ethernet/poe", "name", row.text("name"));
        let poe = poe.map_or("auto-on", |poe| poe.text("poe-out"));
        out.insert("poe-out".to_owned(), poe.to_owned());
    }
}

fn address(router: &Router, path: &str, row: &Row, out: &mut Record) {
    let store = &router.store;
    let interface = row.links("interface").next().and_then(|(_, id)| interfaces::find(store, id));
    let is_valid = interface.is_some_and(|(menu, row)| interfaces::is_running(store, menu, row));
    out.insert("invalid".to_owned(), (!is_valid && !row.is_disabled()).to_string());
    let bridge = interface.and_then(|(_, interface)| {
        let rows = store.rows("interface/bridge/port").iter();
        let mut rows = rows
            .filter(|port| !port.is_disabled() && port.links("interface").any(|(_, id)| id == interface.id));
        rows.next().map(|port| store.value(port, "bridge"))
    });
    out.insert("slave".to_owned(), bridge.is_some().to_string());
    let actual = bridge.unwrap_or_else(|| store.value(row, "interface"));
    out.insert("actual-interface".to_owned(), actual);
    out.insert("vrf".to_owned(), "main".to_owned());
    out.remove("netmask");
    out.remove("broadcast");
    if path == "ipv6/address" {
        let is_local = row.text("address").to_lowercase().starts_with("fe80");
        out.insert("link-local".to_owned(), is_local.to_string());
    }
}

/// A watched host is unknown for five minutes after a start; then those inside are up.
fn netwatch(router: &Router, row: &Row, out: &mut Record) {
    out.remove("invalid");
    let uptime = router.uptime_secs();
    if uptime < WATCH_DELAY_SECS {
        out.insert("status".to_owned(), "unknown".to_owned());
        let left = duration::show_secs(WATCH_DELAY_SECS - uptime);
        out.insert(".about".to_owned(), format!("Warning: probe waiting startup-delay=5m; {left} remaining"));
        return;
    }
    let is_up = !row.text("host").starts_with("192.0.2.");
    out.insert("status".to_owned(), if is_up { "up" } else { "down" }.to_owned());
    out.insert("since".to_owned(), crate::device::time_text(router.booted_unix + WATCH_DELAY_SECS));
    let tests = uptime / 10;
    out.insert("done-tests".to_owned(), tests.to_string());
    out.insert("failed-tests".to_owned(), if is_up { 0 } else { tests }.to_string());
}

fn service(row: &Row, out: &mut Record) {
    let is_tls = ["www-ssl", "api-ssl", "reverse-proxy"].contains(&row.text("name"));
    if is_tls {
        out.entry("certificate".to_owned()).or_insert_with(|| "none".to_owned());
        out.entry("tls-version".to_owned()).or_insert_with(|| "any".to_owned());
    }
    out.insert("proto".to_owned(), "tcp".to_owned());
    out.entry("address".to_owned()).or_default();
}

fn queue(router: &Router, path: &'static str, row: &Row, out: &mut Record) {
    let secs = if row.is_disabled() { 0 } else { router.counted_secs(path, row.id) };
    out.insert("bytes".to_owned(), format!("{}/{}", secs * 900, secs * 5_200));
    out.insert("packets".to_owned(), format!("{}/{}", secs * 3, secs * 9));
    out.insert("rate".to_owned(), if row.is_disabled() { "0/0" } else { "7200/41600" }.to_owned());
}

/// Times and counters of a wireless client, since it came.
fn client(router: &Router, path: &'static str, row: &Row, out: &mut Record) {
    let since = row.text("came").parse::<u64>().unwrap_or(router.booted_unix);
    let secs = router.unix.saturating_sub(since);
    out.insert("uptime".to_owned(), duration::show_secs(secs));
    out.insert("last-activity".to_owned(), "120ms".to_owned());
    let pace = 40 + row.id % 5;
    out.insert("bytes".to_owned(), format!("{},{}", secs * pace * 80, secs * pace * 400));
    out.insert("packets".to_owned(), format!("{},{}", secs * pace, secs * pace * 2));
    if path == wifi::CLIENTS && out.get("vlan-id").is_some_and(String::is_empty) {
        out.remove("vlan-id");
    }
}
