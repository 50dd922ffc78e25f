//! What is not changed or removed, and what a removal takes along.

use crate::call::Call;
use crate::device::Router;
use crate::refusal::Refusal;
use crate::store::{Origin, Row};
use crate::{access, interfaces, views};

/// Lists whose dynamic rows a user may remove: that ends a session, a binding or an entry of a cache.
const ENDED_BY_REMOVAL: [&str; 17] = [
    "ip/dhcp-server/lease",
    "ip/arp",
    "ipv6/neighbor",
    "ip/firewall/connection",
    "ipv6/firewall/connection",
    "ip/firewall/address-list",
    "ipv6/firewall/address-list",
    "ppp/active",
    "ip/hotspot/active",
    "ip/hotspot/host",
    "ip/hotspot/cookie",
    "ip/ipsec/active-peers",
    "interface/wifi/registration-table",
    "interface/wireless/registration-table",
    "caps-man/registration-table",
    "interface/bridge/host",
    "user-manager/session",
];

/// Refuses a change of a row that the router made.
pub(crate) fn may_change(path: &str, row: &Row) -> Result<(), Refusal> {
    match row.origin {
        Origin::Dynamic => Err(Refusal::failure("can not change dynamic")),
        Origin::BuiltIn if path == "user/group" || path == "interface/list" => {
            Err(Refusal::failure("can not change builtin"))
        }
        _ => Ok(()),
    }
}

/// Whether no other user has full rights.
pub(crate) fn is_last_full(router: &Router, row: &Row) -> bool {
    let is_full = |row: &Row| {
        let who = access::who_of(router, row);
        !row.is_disabled() && ["policy", "write", "rest-api", "api"].iter().all(|policy| who.may(policy))
    };
    is_full(row) && !router.store.rows("user").iter().any(|other| other.id != row.id && is_full(other))
}

pub(crate) fn remove(router: &mut Router, call: &Call, id: u64) -> Result<(), Refusal> {
    if call.path == "user/active" {
        return Err(Refusal::unclear("action failed (6)"));
    }
    let Some(row) = router.store.find(call.path, id).cloned() else {
        return views::remove(router, call, id);
    };
    match row.origin {
        Origin::BuiltIn => return Err(Refusal::failure("can not remove builtin")),
        Origin::Dynamic if !ENDED_BY_REMOVAL.contains(&call.path) => {
            return Err(Refusal::failure("can not remove dynamic"));
        }
        _ => {}
    }
    match call.path {
        "user" if is_last_full(router, &row) => {
            return Err(Refusal::failure("can not remove last user with full rights"));
        }
        "user/group"
            if router
                .store
                .rows("user")
                .iter()
                .any(|user| user.links("group").any(|(_, group)| group == id)) =>
        {
            return Err(Refusal::failure("group is in use"));
        }
        "file" => crate::files::forget(router, id),
        "certificate" => crate::certificates::forget(router, id),
        "system/scheduler" => drop(router.schedules.remove(&id)),
        _ => {}
    }
    router.store.remove(call.path, id);
    if interfaces::is_type(call.path) {
        // Peers have no interface left to belong to.
        router
            .store
            .retain("interface/wireguard/peers", |peer| !peer.links("interface").any(|(_, own)| own == id));
        router.store.retain("ip/address", |row| {
            row.origin != Origin::Dynamic || !row.links("interface").any(|(_, own)| own == id)
        });
    }
    Ok(())
}
