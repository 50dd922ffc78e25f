//! Known clients, accounts of the RADIUS server, and its profiles.

use crate::console::Console;
use crate::net;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, objects, put, text};
use crate::rules::exists;

pub(super) fn user(own: &Console, site: &str, new: &mut Row) -> Outcome<()> {
    let mac = text(new, "mac").to_lowercase();
    if mac.is_empty() {
        return Err(Refusal::invalid("mac", "^([0-9A-Fa-f]{2}:){5}([0-9A-Fa-f]{2})$"));
    }
    let id = text(new, "_id").to_owned();
    let others: Vec<&Row> =
        own.store.rows(site, "user").iter().filter(|row| text(row, "_id") != id).collect();
    if others.iter().any(|row| text(row, "mac") == mac) {
        return Err(Refusal::new("MacUsed").telling("mac", mac));
    }
    put(new, "mac", mac);
    exists(own, site, "usergroup", text(new, "usergroup_id"))?;
    exists(own, site, "networkconf", text(new, "network_id"))?;
    exists(own, site, "networkconf", text(new, "virtual_network_override_id"))?;
    if flag(new, "use_fixedip") {
        let address = text(new, "fixed_ip");
        let mut networks = own.store.rows(site, "networkconf").iter();
        let fits =
            |row: &Row| net::subnet(text(row, "ip_subnet")).is_some_and(|subnet| net::is_in(subnet, address));
        // Any network will do, whatever the one that is named.
        if !networks.any(fits) {
            return Err(Refusal::new("InvalidFixedIP"));
        }
        if others.iter().any(|row| flag(row, "use_fixedip") && text(row, "fixed_ip") == address) {
            return Err(Refusal::new("DuplicateFixedIP"));
        }
    }
    if flag(new, "local_dns_record_enabled") {
        if text(new, "local_dns_record").is_empty() {
            return Err(Refusal::new("LocalDnsRecordMissing"));
        }
        if !flag(new, "use_fixedip") {
            return Err(Refusal::new("LocalDnsRecordRequiresFixedIp"));
        }
    }
    Ok(())
}

pub(super) fn account(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    if text(new, "x_password").is_empty() {
        return Err(Refusal::invalid("x_password", ".+"));
    }
    exists(own, site, "networkconf", text(new, "networkconf_id"))
}

pub(super) fn radius(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    if flag(new, "use_usg_auth_server") {
        let setting = own.store.having(site, "setting", "key", "radius");
        if !setting.is_some_and(|setting| flag(setting, "enabled")) {
            return Err(Refusal::new("RadiusServerNotEnabled"));
        }
        return Ok(());
    }
    let servers = objects(new, "auth_servers");
    if servers.is_empty() {
        return Err(Refusal::new("RadiusAuthServerMissing"));
    }
    let is_whole = |server: &&Row| !text(server, "ip").is_empty() && !text(server, "x_secret").is_empty();
    if servers.iter().all(is_whole) { Ok(()) } else { Err(Refusal::invalid("auth_servers", "ip, x_secret")) }
}
