//! Routes: defaults of static ones, the dynamic ones of addresses, and which are active.

use std::net::IpAddr;

use crate::address::Prefix;
use crate::device::Router;
use crate::interfaces;
use crate::refusal::Refusal;
use crate::store::{Record, Row, shown_id};

pub(crate) fn complete(path: &str, row: &mut Row) -> Result<(), Refusal> {
    let is_v4 = path == "ip/route";
    let text = row.text("dst-address").to_owned();
    let text = if text.is_empty() { if is_v4 { "0.0.0.0/0" } else { "::/0" }.to_owned() } else { text };
    let prefix = Prefix::parse(&text).filter(|prefix| prefix.address.is_ipv4() == is_v4);
    let prefix = prefix.ok_or_else(|| Refusal::invalid("dst-address"))?;
    if prefix.network() != prefix.address {
        return Err(Refusal::invalid("dst-address"));
    }
    row.values.insert("dst-address".to_owned(), prefix.show_network().into());
    if row.text("gateway").is_empty() && !row.values.contains_key("blackhole") {
        return Err(Refusal::failure("either gateway or blackhole must be set"));
    }
    if let Some(distance) =
        row.text("distance").parse::<i64>().ok().filter(|distance| !(1..=255).contains(distance))
    {
        return Err(Refusal::unclear(format!("value of distance out of range (1..255): {distance}")));
    }
    Ok(())
}

/// The rows of the router beside the configured ones: a route for each address that is up.
pub(crate) fn connected(router: &Router, path: &str) -> Vec<Record> {
    let store = &router.store;
    let addresses = store.rows(if path == "ip/route" { "ip/address" } else { "ipv6/address" }).iter();
    let up = addresses.filter(|row| !row.is_disabled());
    let made = up.filter_map(|row| {
        let prefix = Prefix::parse(row.text("address"))?;
        let (_, id) = row.links("interface").next()?;
        let (menu, interface) = interfaces::find(store, id)?;
        let name = interface.text("name");
        let is_up = interfaces::is_running(store, menu, interface);
        let pairs = [
            (".id", shown_id(0x2018_3000 + row.id * 0x10)),
            ("dst-address", prefix.show_network()),
            ("gateway", name.to_owned()),
            ("immediate-gw", if is_up { name.to_owned() } else { String::new() }),
            ("local-address", format!("{}%{name}", prefix.address)),
            ("distance", "0".to_owned()),
            ("scope", "10".to_owned()),
            ("target-scope", "5".to_owned()),
            ("routing-table", "main".to_owned()),
            ("dynamic", "true".to_owned()),
            ("active", is_up.to_string()),
            ("inactive", (!is_up).to_string()),
            ("connect", "true".to_owned()),
        ];
        Some(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    });
    made.collect()
}

/// The gateways of a route that are reached, as `address%interface`.
fn immediate(router: &Router, gateway: &str) -> String {
    let store = &router.store;
    let reached = gateway.split(',').filter_map(|part| {
        let (address, on) = part.split_once('%').map_or((part, None), |(address, on)| (address, Some(on)));
        let Ok(ip) = address.parse::<IpAddr>() else {
            let (menu, row) = interfaces::named(store, address)?;
            return interfaces::is_running(store, menu, row).then(|| address.to_owned());
        };
        let menu = if ip.is_ipv4() { "ip/address" } else { "ipv6/address" };
        let near = store.rows(menu).iter().filter(|row| !row.is_disabled()).find_map(|row| {
            let prefix = Prefix::parse(row.text("address")).filter(|prefix| prefix.contains(ip))?;
            let (_, id) = row.links("interface").next()?;
            let (menu, interface) = interfaces::find(store, id)?;
            let fits = on.is_none_or(|on| on == interface.text("name")) && !prefix.is_host();
            (fits && interfaces::is_running(store, menu, interface))
                .then(|| interface.text("name").to_owned())
        });
        near.map(|name| format!("{address}%{name}"))
    });
    reached.collect::<Vec<_>>().join(",")
}

/// A disabled route shows only what was written; an enabled one tells whether it is active.
pub(crate) fn fill(router: &Router, row: &Row, out: &mut Record) {
    out.insert("static".to_owned(), "true".to_owned());
    if row.is_disabled() {
        for name in ["dynamic", "distance", "routing-table", "scope", "target-scope", "invalid"] {
            out.remove(name);
        }
        out.insert("inactive".to_owned(), "false".to_owned());
        return;
    }
    out.remove("invalid");
    let is_blackhole = row.values.contains_key("blackhole");
    let mut put = |name: &str, usual: &str| {
        out.entry(name.to_owned()).or_insert_with(|| usual.to_owned());
    };
    put("distance", "1");
    put("dynamic", "false");
    if !is_blackhole {
        put("scope", "30");
        put("target-scope", "10");
    }
    let immediate = if is_blackhole { String::new() } else { immediate(router, row.text("gateway")) };
    let is_active = is_blackhole || !immediate.is_empty();
    if immediate.contains(',') {
        out.insert("ecmp".to_owned(), "true".to_owned());
    }
    out.insert("immediate-gw".to_owned(), immediate);
    if is_active {
        out.insert("active".to_owned(), "true".to_owned());
    }
    out.insert("inactive".to_owned(), (!is_active).to_string());
}
