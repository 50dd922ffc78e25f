//! What single menus compute, rewrite or refuse when a row is written.

use crate::address::{self, Prefix};
use crate::call::Call;
use crate::device::{Router, date_time};
use crate::interfaces;
use crate::refusal::Refusal;
use crate::store::{Origin, Row};
use crate::{access, dhcp, dns, firewall, routes, vpn, vrrp};

/// Completes a row before it is stored. `old` is the row as it was.
pub(crate) fn complete(
    router: &mut Router,
    call: &Call,
    row: &mut Row,
    old: Option<&Row>,
) -> Result<(), Refusal> {
    let path = call.path;
    if interfaces::is_type(path) {
        interface(router, path, row, old)?;
    }
    match path {
        "interface/bridge/port" => bridge_port(router, row),
        "interface/bridge/vlan" => bridge_vlan(router, row),
        "interface/vlan" => vlan(row),
        "interface/vrrp" => vrrp::complete(row),
        "interface/list" | "interface/list/member" => interface_list(router, path, row),
        "interface/wireguard" | "interface/wireguard/peers" => vpn::wireguard(router, path, row, old),
        "ip/address" => ip_address(router, row),
        "ipv6/address" => ipv6_address(row),
        "ip/route" | "ipv6/route" => routes::complete(path, row),
        "routing/table" => table(row, old),
        "queue/simple" | "queue/tree" | "queue/type" => queue(path, row),
        "user" => user(router, row, old),
        "user/group" => group(call, row, old),
        "system/script" | "system/scheduler" => script(router, call, row, old),
        "system/identity" if row.text("name").is_empty() => Err(Refusal::invalid("name")),
        "system/clock" => crate::system::set_clock(router, row),
        "ppp/secret" => vpn::secret(router, row),
        "ip/dns/static" => dns::complete(router, row),
        "ip/firewall/address-list" | "ipv6/firewall/address-list" => {
            crate::address_lists::complete(router, path, row, old)
        }
        "file" => crate::files::complete(router, row),
        "certificate" => crate::certificates::complete(row, old),
        path if path.starts_with("ip/dhcp-server") => dhcp::complete(router, path, row),
        path if firewall::is_table(path) => firewall::complete(path, row),
        _ => Ok(()),
    }?;
    name(router, path, row);
    Ok(())
}

/// What follows a write.
pub(crate) fn stored(router: &mut Router, call: &Call, id: u64) {
    match call.path {
        "system/scheduler" => crate::scheduler::planned(router, id),
        "file" => crate::files::written(router, call, id),
        _ => {}
    }
}

/// Whether a create must name the field. Some fields that the contract calls required have a default at the router.
pub(crate) fn is_needed(call: &Call, name: &str) -> bool {
    !matches!((call.path, name), ("interface/wireless", "master-interface") | ("ip/dns/static", _))
}

/// Menus whose duplicates are found by their own code.
pub(crate) fn has_own_key(path: &str) -> bool {
    matches!(path, "ip/dns/static" | "ip/dhcp-server/lease" | "user")
}

/// What a duplicate is told.
pub(crate) fn taken(path: &str) -> &'static str {
    match path {
        "ip/dhcp-server/network" => "such network already exists",
        "interface/bridge/port" => "device already added as bridge port",
        "ip/firewall/address-list" | "ipv6/firewall/address-list" => "already have such entry",
        _ => "entry already exists",
    }
}

/// Gives a new row the name that it was not given.
fn name(router: &Router, path: &str, row: &mut Row) {
    let start = match path {
        "ip/dhcp-server" => "dhcp",
        "ip/dhcp-client" if router.release >= crate::Release::V7_22 => "client",
        "ip/dhcp-relay" => "relay",
        "ip/hotspot" => "hotspot",
        "ip/pool" => "pool",
        "queue/simple" | "queue/tree" => "queue",
        "interface/wireguard/peers" => "peer",
        "ip/ipsec/peer" => "peer",
        "ip/ipsec/profile" | "ppp/profile" => "profile",
        "ip/ipsec/proposal" => "proposal",
        "routing/table" => "table",
        "routing/ospf/instance" => "ospf-instance-",
        "routing/ospf/area" => "ospf-area-",
        "routing/bgp/instance" => "bgp-instance-",
        "routing/bgp/template" => "bgp-template-",
        "routing/bgp/connection" => "bgp-connection-",
        "interface/wifi/configuration" => "cfg",
        "interface/wifi/security" => "sec",
        "interface/wifi/channel" => "ch",
        "interface/wifi/datapath" => "dp",
        "certificate" => "cert",
        _ => return,
    };
    if row.text("name").is_empty() {
        let mut names = (1..).map(|number: u32| format!("{start}{number}"));
        let free = names.find(|name| router.store.having(path, "name", name).is_none());
        row.values.insert("name".to_owned(), free.unwrap_or_default().into());
    }
}

fn interface(router: &mut Router, path: &str, row: &mut Row, old: Option<&Row>) -> Result<(), Refusal> {
    if row.text("name").is_empty() {
        let name = match old {
            Some(old) => old.text("name").to_owned(),
            None => interfaces::free_name(&router.store, path),
        };
        row.values.insert("name".to_owned(), name.into());
    }
    let carries_itself =
        row.id != 0 && row.links("interface").any(|(menu, id)| menu == "interface" && id == row.id);
    if carries_itself {
        return Err(Refusal::failure("interface can not be its own parent"));
    }
    if let Some(mtu) = row.text("mtu").parse::<u32>().ok().filter(|mtu| !(32..=65_535).contains(mtu)) {
        return Err(Refusal::unclear(format!("value of mtu out of range (32..65535): {mtu}")));
    }
    Ok(())
}

fn vlan(row: &Row) -> Result<(), Refusal> {
    let id: u32 = row.text("vlan-id").parse().unwrap_or(0);
    if (1..=4095).contains(&id) {
        Ok(())
    } else {
        Err(Refusal::unclear("value of vlan-id out of range (1..4095)"))
    }
}

/// The row of a bridge by a link to it.
fn is_bridge(router: &Router, row: &Row) -> bool {
    row.links("bridge").all(|(_, id)| router.store.find("interface/bridge", id).is_some())
}

fn bridge_port(router: &Router, row: &Row) -> Result<(), Refusal> {
    if !is_bridge(router, row) {
        return Err(Refusal::no_match("bridge"));
    }
    let pvid = row.text("pvid").parse().unwrap_or(1);
    if !(1..=4094).contains(&pvid) {
        return Err(Refusal::unclear("value of pvid out of range (1..4094)"));
    }
    let is_self = row.links("interface").any(|(_, id)| row.links("bridge").any(|(_, bridge)| bridge == id));
    if is_self { Err(Refusal::failure("can not add bridge to itself")) } else { Ok(()) }
}

fn bridge_vlan(router: &Router, row: &Row) -> Result<(), Refusal> {
    if !is_bridge(router, row) {
        return Err(Refusal::no_match("bridge"));
    }
    let ids = address::numbers(row.text("vlan-ids")).filter(|ids| !ids.is_empty());
    let ids = ids.ok_or_else(|| Refusal::invalid("vlan-ids"))?;
    if ids.iter().any(|(first, last)| *first < 1 || *last > 4094) {
        return Err(Refusal::unclear("value of vlan-ids out of range (1..4094)"));
    }
    let bridge = |row: &Row| row.links("bridge").next();
    let others = router.store.rows("interface/bridge/vlan").iter();
    let mut others = others.filter(|other| {
        other.id != row.id
            && other.origin == Origin::Own
            && !other.is_disabled()
            && bridge(other) == bridge(row)
    });
    let overlaps = |other: &Row| {
        let theirs = address::numbers(other.text("vlan-ids")).unwrap_or_default();
        ids.iter().any(|(first, last)| theirs.iter().any(|(from, to)| first <= to && from <= last))
    };
    if !row.is_disabled() && others.any(|other| overlaps(other)) {
        return Err(Refusal::failure("vlan already added"));
    }
    Ok(())
}

fn interface_list(router: &Router, path: &str, row: &Row) -> Result<(), Refusal> {
    if path == "interface/list" {
        let mut others = router.store.rows(path).iter().filter(|other| other.id != row.id);
        let taken = others.any(|other| other.text("name") == row.text("name"));
        return if taken { Err(Refusal::failure("already have such list")) } else { Ok(()) };
    }
    let list = row.links("list").next().and_then(|(_, id)| router.store.find("interface/list", id));
    if list.is_some_and(|list| list.origin == Origin::BuiltIn) {
        return Err(Refusal::failure("can not change builtin list"));
    }
    let key = |row: &Row| (row.links("list").next(), row.links("interface").next());
    let mut others = router.store.rows(path).iter().filter(|other| other.id != row.id);
    if others.any(|other| key(other) == key(row)) {
        return Err(Refusal::failure("already have such member"));
    }
    Ok(())
}

fn ip_address(router: &Router, row: &mut Row) -> Result<(), Refusal> {
    let text = row.text("address").to_owned();
    let mask = row.text("netmask").to_owned();
    let whole = if text.contains('/') || mask.is_empty() { text } else { format!("{text}/{mask}") };
    let prefix = Prefix::parse(&whole).filter(|prefix| prefix.address.is_ipv4());
    let prefix = prefix.ok_or_else(|| Refusal::invalid("address"))?;
    row.values.remove("netmask");
    row.values.remove("broadcast");
    row.values.insert("address".to_owned(), format!("{}/{}", prefix.address, prefix.bits).into());
    let is_given = row.text("network");
    if is_given.is_empty() || !prefix.is_host() {
        row.values.insert("network".to_owned(), prefix.network().to_string().into());
    }
    let key = |row: &Row| (row.text("address").to_owned(), row.links("interface").next());
    let mut others =
        router.store.rows("ip/address").iter().filter(|other| other.id != row.id && !other.is_disabled());
    if !row.is_disabled() && others.any(|other| key(other) == key(row)) {
        return Err(Refusal::failure("already have such address"));
    }
    Ok(())
}

fn ipv6_address(row: &mut Row) -> Result<(), Refusal> {
    let text = row.text("address");
    if text.is_empty() {
        return if row.links("from-pool").next().is_some() {
            Ok(())
        } else {
            Err(Refusal::missing("address"))
        };
    }
    let text = if text.contains('/') { text.to_owned() } else { format!("{text}/64") };
    let prefix = Prefix::parse(&text).filter(|prefix| prefix.address.is_ipv6());
    let prefix = prefix.ok_or_else(|| Refusal::invalid("address"))?;
    row.values.insert("address".to_owned(), format!("{}/{}", prefix.address, prefix.bits).into());
    Ok(())
}

fn table(row: &Row, old: Option<&Row>) -> Result<(), Refusal> {
    let is_fib = |row: &Row| row.values.contains_key("fib");
    if old.is_some_and(|old| is_fib(old) != is_fib(row)) {
        return Err(Refusal::failure("fib can not be changed"));
    }
    Ok(())
}

/// `20M` becomes `20000000`.
pub(crate) fn rate(text: &str) -> Option<String> {
    let unit = |suffix: char, factor: u64| text.strip_suffix(suffix).map(|number| (number, factor));
    let (number, factor) = unit('k', 1_000)
        .or_else(|| unit('M', 1_000_000))
        .or_else(|| unit('G', 1_000_000_000))
        .unwrap_or((text, 1));
    number.parse::<u64>().ok().map(|number| (number * factor).to_string())
}

/// One value stands for both directions.
fn pair(row: &mut Row, field: &str, shown: impl Fn(&str) -> Option<String>) -> Result<(), Refusal> {
    let text = row.text(field).to_owned();
    if text.is_empty() {
        return Ok(());
    }
    let (up, down) = text.split_once('/').unwrap_or((&text, &text));
    let (up, down) = shown(up).zip(shown(down)).ok_or_else(|| Refusal::invalid(field))?;
    row.values.insert(field.to_owned(), format!("{up}/{down}").into());
    Ok(())
}

fn queue(path: &str, row: &mut Row) -> Result<(), Refusal> {
    let rates = ["max-limit", "limit-at", "burst-limit", "burst-threshold"];
    if path != "queue/simple" {
        for field in rates.into_iter().chain(["pcq-rate", "pcq-burst-rate"]) {
            let text = row.text(field).to_owned();
            if !text.is_empty() {
                let shown = rate(&text).ok_or_else(|| Refusal::invalid(field))?;
                row.values.insert(field.to_owned(), shown.into());
            }
        }
        return Ok(());
    }
    for field in rates {
        pair(row, field, rate)?;
    }
    pair(row, "priority", |text| {
        text.parse::<u8>().ok().filter(|n| (1..=8).contains(n)).map(|n| n.to_string())
    })?;
    pair(row, "burst-time", |text| crate::duration::parse(text).map(crate::duration::show))?;
    let target = row.text("target").to_owned();
    let hosts = target.split(',').map(|part| match Prefix::parse(part) {
        Some(prefix) if prefix.is_host() => format!("{}/{}", prefix.address, prefix.bits),
        Some(prefix) => prefix.show_network(),
        None => part.to_owned(),
    });
    row.values.insert("target".to_owned(), hosts.collect::<Vec<_>>().join(",").into());
    Ok(())
}

fn user(router: &Router, row: &mut Row, old: Option<&Row>) -> Result<(), Refusal> {
    let name = row.text("name").to_owned();
    if name.is_empty() {
        return Err(Refusal::missing("name"));
    }
    let mut others = router.store.rows("user").iter().filter(|other| other.id != row.id);
    if others.any(|other| other.text("name") == name) {
        return Err(Refusal::failure("user with the same name already exists"));
    }
    if row.text("address").split(',').any(|part| !part.is_empty() && Prefix::parse(part).is_none()) {
        return Err(Refusal::invalid("address"));
    }
    let loses =
        row.is_disabled() || row.links("group").next() != old.and_then(|old| old.links("group").next());
    if loses && old.is_some_and(|old| crate::removal::is_last_full(router, old)) {
        return Err(Refusal::failure("last user with full rights can not be changed so"));
    }
    for (field, usual) in [("address", ""), ("inactivity-policy", "none"), ("inactivity-timeout", "10m")] {
        row.values.entry(field.to_owned()).or_insert_with(|| usual.into());
    }
    Ok(())
}

fn group(call: &Call, row: &mut Row, old: Option<&Row>) -> Result<(), Refusal> {
    let before = old.map(|old| old.text("policy").to_owned());
    let shown = match (call.args.get("policy"), &before) {
        (None, Some(before)) => before.clone(),
        (given, before) => access::policies(given.map_or("", String::as_str), before.as_deref())?,
    };
    row.values.insert("policy".to_owned(), shown.into());
    if row.text("name").is_empty() { Err(Refusal::missing("name")) } else { Ok(()) }
}

fn script(router: &Router, call: &Call, row: &mut Row, old: Option<&Row>) -> Result<(), Refusal> {
    if row.text("name").is_empty() {
        let start = if call.path == "system/script" { "script" } else { "schedule" };
        let mut names = (1..).map(|number: u32| format!("{start}{number}"));
        let free = names.find(|name| router.store.having(call.path, "name", name).is_none());
        row.values.insert("name".to_owned(), free.unwrap_or_default().into());
    }
    let mut others = router.store.rows(call.path).iter().filter(|other| other.id != row.id);
    if others.any(|other| other.text("name") == row.text("name")) {
        return Err(Refusal::failure("item with this name already exists"));
    }
    if old.is_none() {
        row.values.insert("owner".to_owned(), call.who.name.as_str().into());
        row.values.insert("run-count".to_owned(), "0".into());
    }
    if call.path == "system/scheduler" {
        let now = date_time(router.unix);
        let day = now.format("%Y-%m-%d").to_string();
        row.values.entry("start-date".to_owned()).or_insert_with(|| day.into());
        let time = now.format("%H:%M:%S").to_string();
        row.values.entry("start-time".to_owned()).or_insert_with(|| time.into());
        crate::scheduler::check(row)?;
    }
    Ok(())
}
