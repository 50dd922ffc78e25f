//! DHCP: servers, networks and leases, and clients of the box itself.

use crate::address::{Prefix, numbers, range4};
use crate::call::{Answered, Call, Done};
use crate::device::Router;
use crate::duration;
use crate::refusal::Refusal;
use crate::store::{Origin, Record, Row};

pub(crate) const LEASES: &str = "ip/dhcp-server/lease";
/// When a lease ends, in seconds since 1970.
pub(crate) const ENDS: &str = "ends";
/// When a client was last heard.
pub(crate) const SEEN: &str = "seen";

pub(crate) fn complete(router: &Router, path: &str, row: &mut Row) -> Result<(), Refusal> {
    match path {
        "ip/dhcp-server" => server(router, row),
        "ip/dhcp-server/network" => network(row),
        "ip/dhcp-server/lease" => lease(router, row),
        _ => Ok(()),
    }
}

fn server(router: &Router, row: &mut Row) -> Result<(), Refusal> {
    let key = |row: &Row| (row.links("interface").next(), row.text("relay").to_owned());
    let mut others =
        router.store.rows("ip/dhcp-server").iter().filter(|other| other.id != row.id && !other.is_disabled());
    if !row.is_disabled() && others.any(|other| key(other) == key(row)) {
        return Err(Refusal::failure("such interface already has a server"));
    }
    for (field, usual, since) in [
        ("use-reconfigure", "false", 19),
        ("dynamic-lease-identifiers", "client-mac,client-id", 21),
        ("support-broadband-tr101", "false", 21),
        ("add-dns-entries-suffix", "lan", 23),
        ("address-lists", "", 17),
    ] {
        if router.release.minor() >= since {
            row.values.entry(field.to_owned()).or_insert_with(|| usual.into());
        }
    }
    Ok(())
}

fn network(row: &mut Row) -> Result<(), Refusal> {
    let text = row.text("address").to_owned();
    if text.is_empty() {
        return Err(Refusal::missing("address"));
    }
    let prefix =
        Prefix::parse(&text).filter(|prefix| prefix.address.is_ipv4() && prefix.address == prefix.network());
    let prefix = prefix.ok_or_else(|| Refusal::invalid("address"))?;
    row.values.insert("address".to_owned(), prefix.show_network().into());
    if row.text("netmask").parse::<u8>().is_ok_and(|bits| bits > 32) {
        return Err(Refusal::unclear("value of netmask out of range (0..32)"));
    }
    Ok(())
}

fn lease(router: &Router, row: &mut Row) -> Result<(), Refusal> {
    let server = |row: &Row| row.links("server").next();
    let same_server = |other: &Row| match (server(other), server(row)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let others = router.store.rows(LEASES).iter().filter(|other| other.id != row.id && !other.is_disabled());
    let others: Vec<&Row> = others.map(|row| &**row).collect();
    if row.is_disabled() {
        return Ok(());
    }
    let address = row.text("address");
    let is_pool = router.store.having("ip/pool", "name", address).is_some();
    if !address.is_empty() && range4(address).is_none_or(|(first, last)| first != last) && !is_pool {
        return Err(Refusal::invalid("address"));
    }
    let mac = row.text("mac-address");
    let own = |other: &&&Row| other.origin == Origin::Own;
    if !mac.is_empty()
        && others.iter().filter(own).any(|other| other.text("mac-address") == mac && same_server(other))
    {
        return Err(Refusal::failure("already have static lease for this client"));
    }
    if !address.is_empty()
        && !is_pool
        && others.iter().filter(own).any(|other| other.text("address") == address)
    {
        return Err(Refusal::failure("already have static lease with this IP address"));
    }
    let is_bound = |other: &&Row| {
        other.origin == Origin::Dynamic
            && (other.text("mac-address") == mac || other.text("address") == address)
    };
    if row.origin == Origin::Own && others.iter().any(is_bound) {
        return Err(Refusal::failure("dynamic lease for this client or address exists"));
    }
    Ok(())
}

pub(crate) fn fill_lease(router: &Router, row: &Row, out: &mut Record) {
    let minor = router.release.minor();
    let mut put = |name: &str, value: String| drop(out.insert(name.to_owned(), value));
    put("radius", "false".to_owned());
    put("blocked", (row.text("block-access") == "true").to_string());
    if minor >= 21 {
        for name in
            ["active-agent-circuit-id", "active-agent-remote-id", "agent-circuit-id", "agent-remote-id"]
        {
            put(name, row.text(name).to_owned());
        }
    }
    let seen = row.text(SEEN).parse::<u64>().ok();
    put(
        "last-seen",
        seen.map_or_else(|| "never".to_owned(), |seen| duration::show_secs(router.unix.saturating_sub(seen))),
    );
    match row.text(ENDS).parse::<u64>() {
        Ok(ends) if ends > router.unix => {
            put("status", "bound".to_owned());
            put("expires-after", duration::show_secs(ends - router.unix));
            put("active-address", row.text("address").to_owned());
            put("active-mac-address", row.text("mac-address").to_owned());
            put("active-server", router.store.value(row, "server"));
            put("age", duration::show_secs(router.unix.saturating_sub(seen.unwrap_or(router.unix)) + 600));
        }
        _ => {
            put("status", "waiting".to_owned());
            for name in
                ["host-name", "expires-after", "active-address", "active-mac-address", "active-client-id"]
            {
                out.remove(name);
            }
        }
    }
    if row.links("server").next().is_none() {
        out.remove("server");
    }
    out.remove("invalid");
}

/// How many addresses a pool has, and how many of them are bound.
pub(crate) fn fill_pool(router: &Router, row: &Row, out: &mut Record) {
    let ranges: Vec<(u32, u32)> = row.text("ranges").split(',').filter_map(range4).collect();
    let total: u64 = ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum();
    let is_in = |address: &str| {
        range4(address).is_some_and(|(at, _)| ranges.iter().any(|(a, b)| (*a..=*b).contains(&at)))
    };
    let used = router
        .store
        .rows(LEASES)
        .iter()
        .filter(|lease| lease.origin == Origin::Dynamic && is_in(lease.text("address")));
    let used = used.count() as u64;
    for (name, number) in [("total", total), ("used", used), ("available", total.saturating_sub(used))] {
        out.insert(name.to_owned(), number.to_string());
    }
}

/// A client of the box: bound while it is on.
pub(crate) fn fill_client(router: &Router, row: &Row, out: &mut Record) {
    let is_released = router.resets.contains_key(&("ip/dhcp-client/release", row.id));
    let is_up = row.links("interface").any(|(_, id)| {
        crate::interfaces::find(&router.store, id)
            .is_some_and(|(menu, row)| crate::interfaces::is_running(&router.store, menu, row))
    });
    let is_bound = !row.is_disabled() && !is_released && is_up;
    let mut put = |name: &str, value: &str| drop(out.insert(name.to_owned(), value.to_owned()));
    if !is_bound {
        put("status", if row.is_disabled() { "stopped" } else { "searching..." });
        return;
    }
    put("status", "bound");
    put("address", "198.51.100.23/24");
    put("gateway", "198.51.100.1");
    put("dhcp-server", "198.51.100.1");
    put("primary-dns", "198.51.100.1");
    put("expires-after", &duration::show_secs(86_400 - router.uptime_secs() % 43_200));
}

/// Whether the box got its address and route from outside.
pub(crate) fn is_client_bound(router: &Router) -> bool {
    router.store.rows("ip/dhcp-client").iter().any(|row| {
        let mut out = Record::new();
        fill_client(router, row, &mut out);
        out.get("status").is_some_and(|status| status == "bound")
    })
}

/// The address from outside comes and goes with the client.
pub(crate) fn follow(router: &mut Router) {
    let is_there = router.store.rows("ip/address").iter().any(|row| row.origin == Origin::Dynamic);
    match (is_client_bound(router), is_there) {
        (false, true) => router.store.retain("ip/address", |row| row.origin != Origin::Dynamic),
        (true, false) => crate::live::outside(router),
        _ => {}
    }
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("ip/dhcp-server/lease" | "ipv6/dhcp-server/binding", "make-static") => make_static(router, call),
        ("ip/dhcp-server/lease", "check-status" | "send-reconfigure") => {
            call.ids(router).map(|_| Done::nothing())
        }
        ("ip/dhcp-client", "release" | "renew") => call.ids(router).map(|ids| {
            for id in ids {
                let key = ("ip/dhcp-client/release", id);
                if call.command == "release" {
                    router.resets.insert(key, router.unix);
                } else {
                    router.resets.remove(&key);
                }
            }
            Done::nothing()
        }),
        ("ip/dns/cache", "flush") => {
            router.resets.insert(("ip/dns/cache", 0), router.unix);
            Ok(Done::nothing())
        }
        ("ip/hotspot/host", "make-binding") => make_binding(router, call),
        ("ip/dhcp-server" | "ip/hotspot", "setup") => Err(Refusal::unclear("no such command")),
        _ => return None,
    })
}

/// The id of a lease stays.
fn make_static(router: &mut Router, call: &Call) -> Answered {
    for id in call.ids(router)? {
        let row = router.store.find(call.path, id).ok_or(Refusal::NoSuchItem)?;
        if row.origin != Origin::Dynamic {
            return Err(Refusal::failure("already static"));
        }
        let mut row = Row::clone(row);
        row.origin = Origin::Own;
        row.values.insert("disabled".to_owned(), "false".into());
        router.store.put(call.path, row);
    }
    Ok(Done::nothing())
}

fn make_binding(router: &mut Router, call: &Call) -> Answered {
    for id in call.ids(router)? {
        let host = router.store.find(call.path, id).ok_or(Refusal::NoSuchItem)?.clone();
        let fields = ["mac-address", "address"];
        let values = fields.map(|field| (field.to_owned(), host.text(field).into())).into();
        router.store.add("ip/hotspot/ip-binding", Origin::Own, values);
    }
    Ok(Done::nothing())
}

/// The ids of a list with ranges, one by one.
pub(crate) fn expanded(text: &str) -> Vec<u32> {
    numbers(text).unwrap_or_default().into_iter().flat_map(|(first, last)| first..=last).collect()
}
