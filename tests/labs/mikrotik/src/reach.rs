//! Whether a manager inside still reaches the box: its port, the bridge, the address, the service and the filter.

use crate::access::{client, is_near};
use crate::address::{Prefix, numbers, range4};
use crate::bridge;
use crate::device::Router;
use crate::interfaces;
use crate::store::{Row, Store};

/// The port to which the manager is connected, and where its frames end.
const PORT: &str = "ether2";
const ADDRESS: &str = "192.168.88.1";
/// Jumps that a packet may take.
const JUMPS_MAX: u8 = 16;

/// The service that carries requests.
fn service(router: &Router) -> &'static str {
    if router.settings.is_secure { "www-ssl" } else { "www" }
}

/// Whether a new connection of a manager at its usual place gets through.
pub(crate) fn is_reachable(router: &Router) -> bool {
    let store = &router.store;
    let port = store.rows("interface/ethernet").iter().find(|row| row.text("default-name") == PORT);
    let Some(port) = port.filter(|port| !port.is_disabled()) else { return false };
    let Some(service) = store.having("ip/service", "name", service(router)) else { return false };
    if service.is_disabled() || !is_near(service.text("address"), client()) {
        return false;
    }
    // The way in is the port itself, or the bridge of which it is a port.
    let is_port = store
        .rows("interface/bridge/port")
        .iter()
        .any(|row| row.links("interface").any(|(_, id)| id == port.id));
    if is_port && !bridge::reaches(store, port.id) {
        return false;
    }
    let Some(inside) = holder(store) else { return false };
    is_accepted(store, inside, service.text("port"))
}

/// The interface that has the address of the box inside, while it is up.
fn holder(store: &Store) -> Option<u64> {
    let rows = store.rows("ip/address").iter().filter(|row| !row.is_disabled());
    let mut rows = rows.filter(|row| {
        Prefix::parse(row.text("address")).is_some_and(|prefix| prefix.address.to_string() == ADDRESS)
    });
    let (_, id) = rows.find_map(|row| row.links("interface").next())?;
    let (menu, interface) = interfaces::find(store, id)?;
    interfaces::is_running(store, menu, interface).then_some(id)
}

/// What the filter says of a new TCP connection to a port of the box.
fn is_accepted(store: &Store, inside: u64, port: &str) -> bool {
    verdict(store, "input", inside, port, 0).unwrap_or(true)
}

/// The verdict of a chain; `None` when it ends without one.
fn verdict(store: &Store, chain: &str, inside: u64, port: &str, depth: u8) -> Option<bool> {
    if depth > JUMPS_MAX {
        return None;
    }
    let rules = store.rows("ip/firewall/filter").iter();
    for rule in rules
        .filter(|rule| rule.text("chain") == chain && !rule.is_disabled() && meets(store, rule, inside, port))
    {
        match rule.text("action") {
            "accept" | "fasttrack-connection" => return Some(true),
            "drop" | "reject" | "tarpit" => return Some(false),
            "return" => return None,
            "jump" => {
                if let Some(found) = verdict(store, rule.text("jump-target"), inside, port, depth + 1) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a rule meets the packet. A rule with a matcher that the simulation does not follow meets nothing.
fn meets(store: &Store, rule: &Row, inside: u64, port: &str) -> bool {
    rule.values.keys().all(|field| {
        let text = store.value(rule, field);
        let (is_negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.to_owned()),
            None => (false, text),
        };
        let lists = || store.rows("ip/firewall/address-list").iter().filter(|row| !row.is_disabled());
        let holds = match field.as_str() {
            "chain" | "action" | "comment" | "disabled" | "log" | "log-prefix" | "jump-target"
            | "reject-with" => return true,
            "connection-state" => text.split(',').any(|state| state == "new"),
            "protocol" => ["tcp", "6"].contains(&text.as_str()),
            "dst-port" | "port" => {
                let wanted: u32 = port.parse().unwrap_or(0);
                numbers(&text).is_some_and(|ranges| {
                    ranges.iter().any(|(first, last)| (*first..=*last).contains(&wanted))
                })
            }
            "src-address" => is_in(&text, &client().to_string()),
            "dst-address" => is_in(&text, ADDRESS),
            "src-address-list" => lists()
                .any(|row| row.text("list") == text && is_in(row.text("address"), &client().to_string())),
            "dst-address-list" => {
                lists().any(|row| row.text("list") == text && is_in(row.text("address"), ADDRESS))
            }
            "in-interface" => rule.links("in-interface").any(|(_, id)| id == inside),
            "in-interface-list" => rule
                .links("in-interface-list")
                .any(|(_, id)| interfaces::members(store, id).contains(&inside)),
            _ => return false,
        };
        holds != is_negated
    })
}

fn is_in(range: &str, address: &str) -> bool {
    range4(range).zip(range4(address)).is_some_and(|((first, last), (at, _))| (first..=last).contains(&at))
}
