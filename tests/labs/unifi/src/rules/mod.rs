//! What may be written beyond the form of single fields: names, references, and fields that need each other.

mod firewall;
mod networks;
mod people;
mod routes;

use crate::console::Console;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, text};
use crate::wlans;

/// Tables whose names are unique, with the code of one that is taken.
const NAMES: [(&str, &str); 6] = [
    ("firewallgroup", "FirewallGroupExisted"),
    ("usergroup", "UserGroupExisted"),
    ("account", "AccountExisted"),
    ("radiusprofile", "RadiusProfileExisted"),
    ("tag", "TagExisted"),
    ("hotspotop", "HotspotOperatorExisted"),
];

/// Refuses a row that the controller does not take. `old` is the stored one; `new` the one after the write.
pub(crate) fn check(own: &Console, site: &str, table: &str, old: Option<&Row>, new: &mut Row) -> Outcome<()> {
    if let Some((_, code)) = NAMES.iter().find(|(own, _)| *own == table) {
        unique(own, site, table, "name", new, code)?;
    }
    match table {
        "networkconf" => networks::check(own, site, old, new),
        "wlanconf" => wlans::check(own, site, old, new),
        "firewallrule" => firewall::rule(own, site, new),
        "firewallgroup" => firewall::group(new),
        "portforward" => routes::port_forward(own, site, new),
        "routing" => routes::route(own, site, new),
        "dynamicdns" => routes::dynamic_dns(own, site, new),
        "portconf" => routes::port_profile(own, site, new),
        "user" => people::user(own, site, new),
        "account" => people::account(own, site, new),
        "radiusprofile" => people::radius(own, site, new),
        "dhcpoption" => unique(own, site, table, "code", new, "DhcpOptionCodeExisted"),
        _ => Ok(()),
    }
}

/// Refuses a value that another row of the table has.
pub(crate) fn unique(
    own: &Console,
    site: &str,
    table: &str,
    field: &str,
    new: &Row,
    code: &str,
) -> Outcome<()> {
    let value = new.get(field).ok_or_else(|| Refusal::invalid(field, ".{1,128}"))?;
    let mut others = own.store.rows(site, table).iter().filter(|row| text(row, "_id") != text(new, "_id"));
    match others.find(|row| row.get(field) == Some(value)) {
        Some(_) => Err(Refusal::new(code)),
        None => Ok(()),
    }
}

/// Refuses an id that leads nowhere. An empty one names nothing.
pub(crate) fn exists(own: &Console, site: &str, table: &str, id: &str) -> Outcome<()> {
    if id.is_empty() || own.store.find(site, table, id).is_some() { Ok(()) } else { Err(Refusal::no_id()) }
}

/// Refuses what needs a gateway where there is none.
pub(crate) fn needs_gateway(own: &Console, site: &str, what: &str) -> Outcome<()> {
    if own.has_gateway(site) {
        return Ok(());
    }
    Err(Refusal::new(&format!("{what}UnsupportedDevice")).with_status(404))
}
