//! Zones: each network is in one of them.

use serde_json::{Value, json};

use crate::console::{Change, Console};
use crate::policies::ZONES;
use crate::reply::{Outcome, Refusal};
use crate::rewrites;
use crate::row::{Row, put, text};

/// The networks of a zone.
pub(crate) fn networks_of<'a>(own: &'a Console, site: &str, zone: &Row) -> Vec<&'a Row> {
    let id = text(zone, "_id").to_owned();
    let rows = own.store.rows(site, "networkconf").iter();
    rows.filter(|network| text(network, "firewall_zone_id") == id).collect()
}

/// Whether a zone is the vendor's own.
pub(crate) fn is_system(zone: &Row) -> bool {
    !text(zone, "zone_key").is_empty()
}

/// A zone as the second interface shows it.
pub(crate) fn zone_row(own: &Console, site: &str, zone: &Row) -> Row {
    let mut row = Console::shown(ZONES, zone);
    let ids: Vec<Value> =
        networks_of(own, site, zone).into_iter().map(|network| network["_id"].clone()).collect();
    put(&mut row, "network_ids", ids);
    put(&mut row, "default_zone", is_system(zone));
    put(&mut row, "attr_no_edit", is_system(zone));
    row
}

/// Puts these networks into the zone. What leaves it goes to the internal one.
pub(crate) fn put_networks(own: &mut Console, site: &str, zone: &str, networks: &[String]) -> Outcome<()> {
    for id in networks {
        let network = own.store.find(site, "networkconf", id).ok_or_else(Refusal::no_id)?;
        if text(network, "purpose") == "vlan-only" {
            return Err(Refusal::new("FirewallZoneNetworkNotRouted"));
        }
    }
    let internal =
        own.store.having(site, ZONES, "zone_key", "internal").map_or(json!(""), |zone| zone["_id"].clone());
    let rows = own.store.rows(site, "networkconf").to_vec();
    for mut network in rows {
        let id = text(&network, "_id").to_owned();
        let is_in = text(&network, "firewall_zone_id") == zone;
        let target = match (networks.contains(&id), is_in) {
            (true, false) => json!(zone),
            (false, true) => internal.clone(),
            _ => continue,
        };
        put(&mut network, "firewall_zone_id", target);
        rewrites::apply(own, site, "networkconf", &mut network);
        if let Some(stored) = own.store.find_mut(site, "networkconf", &id) {
            stored.clone_from(&network);
        }
        own.changed(site, "networkconf", &network, Change::Update);
    }
    Ok(())
}
