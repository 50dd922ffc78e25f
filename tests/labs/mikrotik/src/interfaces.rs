//! One row for every interface of any type: the menu `interface` shows the rows of the menus of the types.

use std::collections::BTreeMap;

use crate::device::Router;
use crate::store::{Link, Origin, Record, Row, Store, Target, Value, shown_id};

/// The menus of the types, the word that the list shows for the type, and the start of new names.
pub(crate) const TYPES: [(&str, &str, &str); 36] = [
    ("interface/ethernet", "ether", "ether"),
    ("interface/bridge", "bridge", "bridge"),
    ("interface/vlan", "vlan", "vlan"),
    ("interface/bonding", "bond", "bonding"),
    ("interface/vrrp", "vrrp", "vrrp"),
    ("interface/macvlan", "macvlan", "macvlan"),
    ("interface/veth", "veth", "veth"),
    ("interface/macsec", "macsec", "macsec"),
    ("interface/mesh", "mesh", "mesh"),
    ("interface/wireguard", "wg", "wireguard"),
    ("interface/gre", "gre-tunnel", "gre-tunnel"),
    ("interface/gre6", "gre6-tunnel", "gre6-tunnel"),
    ("interface/ipip", "ipip-tunnel", "ipip-tunnel"),
    ("interface/ipipv6", "ipipv6-tunnel", "ipipv6-tunnel"),
    ("interface/eoip", "eoip", "eoip-tunnel"),
    ("interface/eoipv6", "eoipv6", "eoipv6-tunnel"),
    ("interface/6to4", "6to4-tunnel", "sit"),
    ("interface/vxlan", "vxlan", "vxlan"),
    ("interface/vpls", "vpls", "vpls"),
    ("interface/l2tp-client", "l2tp-out", "l2tp-out"),
    ("interface/l2tp-server", "l2tp-in", "l2tp-in"),
    ("interface/l2tp-ether", "l2tp-ether", "l2tp-ether"),
    ("interface/pptp-client", "pptp-out", "pptp-out"),
    ("interface/pptp-server", "pptp-in", "pptp-in"),
    ("interface/sstp-client", "sstp-out", "sstp-out"),
    ("interface/sstp-server", "sstp-in", "sstp-in"),
    ("interface/ovpn-client", "ovpn-out", "ovpn-out"),
    ("interface/ovpn-server", "ovpn-in", "ovpn-in"),
    ("interface/pppoe-client", "pppoe-out", "pppoe-out"),
    ("interface/pppoe-server", "pppoe-in", "pppoe-in"),
    ("interface/ppp-client", "ppp-out", "ppp-out"),
    ("interface/ppp-server", "ppp-in", "ppp-in"),
    ("interface/wifi", "wifi", "wifi"),
    ("interface/wireless", "wlan", "wlan"),
    ("interface/lte", "lte", "lte"),
    ("caps-man/interface", "cap", "cap"),
];
/// Types without a hardware address.
const WITHOUT_MAC: [&str; 9] = [
    "wg",
    "gre-tunnel",
    "gre6-tunnel",
    "ipip-tunnel",
    "ipipv6-tunnel",
    "6to4-tunnel",
    "l2tp-out",
    "sstp-out",
    "ovpn-out",
];
/// Where the loopback interface is kept, which no menu of a type shows.
pub(crate) const LOOPBACK: &str = "interface";

pub(crate) fn is_type(menu: &str) -> bool {
    menu == LOOPBACK || TYPES.iter().any(|(own, _, _)| *own == menu)
}

fn menus() -> impl Iterator<Item = &'static str> {
    std::iter::once(LOOPBACK).chain(TYPES.iter().map(|(menu, _, _)| *menu))
}

/// Every interface with the menu of its type, by id.
pub(crate) fn all(store: &Store) -> Vec<(&'static str, &Row)> {
    let rows = menus().flat_map(|menu| store.rows(menu).iter().map(move |row| (menu, &**row)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, row)| row.id);
    rows
}

pub(crate) fn find(store: &Store, id: u64) -> Option<(&'static str, &Row)> {
    menus().find_map(|menu| store.find(menu, id).map(|row| (menu, &**row)))
}

pub(crate) fn named<'s>(store: &'s Store, name: &str) -> Option<(&'static str, &'s Row)> {
    menus().find_map(|menu| {
        store.rows(menu).iter().find(|row| row.text("name") == name).map(|row| (menu, &**row))
    })
}

/// The first name with a number that no interface has.
pub(crate) fn free_name(store: &Store, menu: &str) -> String {
    let start = TYPES.iter().find(|(own, _, _)| *own == menu).map_or("if", |(_, _, start)| start);
    let mut names = (1..).map(|number: u32| format!("{start}{number}"));
    names.find(|name| named(store, name).is_none()).unwrap_or_default()
}

/// A hardware address that is always the same for the same number.
pub(crate) fn mac(number: u64) -> String {
    format!("48:A9:8A:{:02X}:{:02X}:{:02X}", (number >> 16) & 0xFF, (number >> 8) & 0xFF, number & 0xFF)
}

/// The hardware address of an interface: its own, or that of what carries it.
pub(crate) fn mac_of(store: &Store, menu: &str, row: &Row) -> Option<String> {
    let word = TYPES.iter().find(|(own, _, _)| *own == menu).map_or("loopback", |(_, word, _)| word);
    if WITHOUT_MAC.contains(&word) {
        return None;
    }
    let own =
        ["admin-mac", "mac-address"].map(|field| row.text(field)).into_iter().find(|mac| !mac.is_empty());
    if let Some(own) = own {
        return Some(own.to_owned());
    }
    let carrier = row
        .links("interface")
        .next()
        .and_then(|(_, id)| find(store, id))
        .filter(|(_, lower)| lower.id != row.id);
    match (menu, carrier) {
        (LOOPBACK, _) => Some("00:00:00:00:00:00".to_owned()),
        ("interface/vrrp", _) => {
            let number = row.text("vrid").parse::<u8>().unwrap_or(1);
            Some(format!("00:00:5E:00:01:{number:02X}"))
        }
        ("interface/vlan", Some((menu, lower))) => mac_of(store, menu, lower),
        _ => Some(mac(0x10_0000 + row.id)),
    }
}

/// Whether frames or packets pass: cables are in the ports below the fifth, and what is carried follows what carries.
pub(crate) fn is_running(store: &Store, menu: &str, row: &Row) -> bool {
    if row.is_disabled() {
        return false;
    }
    let lower = |field: &str| {
        let all = row.links(field).filter_map(|(_, id)| find(store, id));
        all.filter(|(_, lower)| lower.id != row.id).collect::<Vec<_>>()
    };
    match menu {
        "interface/ethernet" => !matches!(row.text("default-name"), "ether5" | "sfp1"),
        "interface/vlan" | "interface/macvlan" | "interface/macsec" | "interface/vrrp" => {
            lower("interface").into_iter().any(|(menu, lower)| is_running(store, menu, lower))
        }
        "interface/bonding" => {
            lower("slaves").into_iter().any(|(menu, lower)| is_running(store, menu, lower))
        }
        "interface/lte" | "interface/ppp-client" | "interface/ppp-server" => false,
        _ => true,
    }
}

/// The row of the list of all interfaces.
pub(crate) fn record(router: &Router, menu: &str, row: &Row) -> Record {
    let store = &router.store;
    let word = TYPES.iter().find(|(own, _, _)| *own == menu).map_or("loopback", |(_, word, _)| word);
    let is_running = is_running(store, menu, row);
    let mut out = Record::new();
    let mut put = |name: &str, value: String| drop(out.insert(name.to_owned(), value));
    put(".id", shown_id(row.id));
    put("name", row.text("name").to_owned());
    put("type", word.to_owned());
    put("disabled", row.is_disabled().to_string());
    put("running", is_running.to_string());
    if menu == "interface/ethernet" {
        put("default-name", row.text("default-name").to_owned());
    } else {
        put("dynamic", (row.origin == Origin::Dynamic).to_string());
    }
    if let Some(mac) = mac_of(store, menu, row) {
        put("mac-address", mac);
    }
    let mtu = mtu(menu, row);
    put("actual-mtu", if mtu == "auto" { "1500".to_owned() } else { mtu.clone() });
    put("mtu", mtu);
    if ["ether", "bridge", "vlan", "bond", "wifi", "wlan"].contains(&word) {
        put("l2mtu", if word == "vlan" { "1592" } else { "1596" }.to_owned());
    }
    let comment = row.text("comment");
    if !comment.is_empty() {
        put("comment", comment.to_owned());
    }
    let is_port = store
        .rows("interface/bridge/port")
        .iter()
        .any(|port| port.links("interface").any(|(_, id)| id == row.id));
    let is_slave =
        store.rows("interface/bonding").iter().any(|bond| bond.links("slaves").any(|(_, id)| id == row.id));
    if is_port || is_slave {
        put("slave", "true".to_owned());
    }
    if row.is_disabled() {
        put("link-downs", "1".to_owned());
    } else {
        put("link-downs", "0".to_owned());
        put("last-link-up-time", crate::device::time_text(router.booted_unix + 9));
    }
    out.extend(counters(router, menu, row));
    out
}

fn mtu(menu: &str, row: &Row) -> String {
    let own = row.text("mtu");
    match (own, menu) {
        ("", "interface/bridge") => "auto".to_owned(),
        ("", "interface/wireguard") => "1420".to_owned(),
        ("", LOOPBACK) => "65536".to_owned(),
        ("", _) => "1500".to_owned(),
        (own, _) => own.to_owned(),
    }
}

/// What passed since the counters were last reset.
pub(crate) fn counters(router: &Router, menu: &str, row: &Row) -> BTreeMap<String, String> {
    let secs =
        if is_running(&router.store, menu, row) { router.counted_secs("interface", row.id) } else { 0 };
    let pace = 40 + row.id % 13;
    let numbers = [
        ("rx-byte", secs * pace * 620),
        ("tx-byte", secs * pace * 910),
        ("rx-packet", secs * pace),
        ("tx-packet", secs * (pace + 7)),
        ("rx-error", 0),
        ("tx-error", 0),
        ("rx-drop", secs / 3_600),
        ("tx-drop", 0),
        ("tx-queue-drop", 0),
        ("fp-rx-byte", secs * pace * 600),
        ("fp-tx-byte", secs * pace * 880),
        ("fp-rx-packet", secs * pace),
        ("fp-tx-packet", secs * pace),
    ];
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number.to_string())).collect()
}

/// The interfaces of a list, with those of the lists that it includes and without those that it excludes.
pub(crate) fn members(store: &Store, list: u64) -> Vec<u64> {
    gathered(store, list, 0)
}

fn gathered(store: &Store, list: u64, depth: u8) -> Vec<u64> {
    let Some(row) = store.find("interface/list", list).filter(|_| depth < 8) else { return Vec::new() };
    let all = || all(store).into_iter().filter(|(_, row)| row.text("name") != "lo");
    let mut out: Vec<u64> = match row.text("name") {
        "all" => all().map(|(_, row)| row.id).collect(),
        "dynamic" => all().filter(|(_, row)| row.origin == Origin::Dynamic).map(|(_, row)| row.id).collect(),
        "static" => all().filter(|(_, row)| row.origin != Origin::Dynamic).map(|(_, row)| row.id).collect(),
        _ => {
            let own = store.rows("interface/list/member").iter();
            let own =
                own.filter(|member| !member.is_disabled() && member.links("list").any(|(_, id)| id == list));
            own.flat_map(|member| member.links("interface").map(|(_, id)| id).collect::<Vec<_>>()).collect()
        }
    };
    out.extend(row.links("include").flat_map(|(_, id)| gathered(store, id, depth + 1)));
    let without: Vec<u64> = row.links("exclude").flat_map(|(_, id)| gathered(store, id, depth + 1)).collect();
    out.retain(|id| !without.contains(id));
    out
}

/// A value that names one interface.
pub(crate) fn link(id: u64) -> Value {
    links(&[id])
}

/// A value that names several interfaces.
pub(crate) fn links(ids: &[u64]) -> Value {
    row_links("interface", ids)
}

/// A value that names rows of a menu.
pub(crate) fn row_links(menu: &'static str, ids: &[u64]) -> Value {
    Value::Links(ids.iter().map(|id| Link { negated: false, to: Target::Row(menu, *id) }).collect())
}
