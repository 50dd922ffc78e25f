//! The firewall with zones: zones, policies in their order, and the policies that follow from both.
//!
//! Both the second and the official interface write here; a policy is kept in the form of the second one.

mod computed;
mod zones;

use serde_json::{Value, json};

use crate::console::{Change, Console};
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, object, put, shown, text, texts};

pub(crate) use computed::all as computed;
pub(crate) use zones::{is_system, networks_of, put_networks, zone_row};

pub(crate) const POLICIES: &str = "firewall_policy";
pub(crate) const ZONES: &str = "firewall_zone";

/// The zone of one side of a policy.
pub(crate) fn zone_of<'a>(policy: &'a Row, side: &str) -> &'a str {
    object(policy, side).map_or("", |side| text(side, "zone_id"))
}

fn is_between(policy: &Row, source: &str, destination: &str) -> bool {
    zone_of(policy, "source") == source && zone_of(policy, "destination") == destination
}

/// The stored policies of a pair of zones on one side of the predefined ones, in order.
fn of_pair<'a>(
    own: &'a Console,
    site: &str,
    source: &str,
    destination: &str,
    is_after: bool,
) -> Vec<&'a Row> {
    let rows = own.store.rows(site, POLICIES).iter();
    rows.filter(|row| is_between(row, source, destination) && flag(row, "~after") == is_after).collect()
}

/// The index that the controller gives: before the predefined ones from 10,000, after them from 40,000.
pub(crate) fn index_of(own: &Console, site: &str, policy: &Row) -> usize {
    let is_after = flag(policy, "~after");
    let rows = of_pair(own, site, zone_of(policy, "source"), zone_of(policy, "destination"), is_after);
    let place = rows.iter().position(|row| row["_id"] == policy["_id"]).unwrap_or_default();
    place + if is_after { 40_000 } else { 10_000 }
}

/// A stored policy as the second interface shows it.
pub(crate) fn policy_row(own: &Console, site: &str, policy: &Row) -> Row {
    let mut row = shown(policy);
    put(&mut row, "index", index_of(own, site, policy));
    put(&mut row, "predefined", false);
    // What is logged is counted.
    if flag(policy, "logging") {
        put(&mut row, "hits", 17);
    }
    row
}

/// Every policy as the second interface shows it: stored ones, and those that follow from zones and policies.
pub(crate) fn list(own: &Console, site: &str) -> Vec<Row> {
    let mut rows: Vec<Row> =
        own.store.rows(site, POLICIES).iter().map(|row| policy_row(own, site, row)).collect();
    rows.extend(computed(own, site).iter().map(shown));
    rows.sort_by_key(|row| {
        let zones = (zone_of(row, "source").to_owned(), zone_of(row, "destination").to_owned());
        (zones, number(row, "index").unwrap_or(i64::MAX))
    });
    rows
}

/// The ids of the user's policies of a pair: before and after the predefined ones.
pub(crate) fn order(
    own: &Console,
    site: &str,
    source: &str,
    destination: &str,
) -> (Vec<String>, Vec<String>) {
    let ids = |is_after| {
        let rows = of_pair(own, site, source, destination, is_after).into_iter();
        rows.map(|row| text(row, "_id").to_owned()).collect()
    };
    (ids(false), ids(true))
}

/// Puts the user's policies of a pair into an order, which names every one of them.
pub(crate) fn reorder(
    own: &mut Console,
    site: &str,
    pair: (&str, &str),
    before: &[String],
    after: &[String],
) -> Outcome<()> {
    let (first, last) = order(own, site, pair.0, pair.1);
    let mut stored: Vec<&String> = first.iter().chain(&last).collect();
    let mut sent: Vec<&String> = before.iter().chain(after).collect();
    stored.sort();
    sent.sort();
    if stored != sent {
        return Err(Refusal::new("FirewallPolicyOrderIncomplete"));
    }
    let rows = own.store.rows_mut(site, POLICIES);
    let (mut moved, mut kept): (Vec<Row>, Vec<Row>) =
        std::mem::take(rows).into_iter().partition(|row| is_between(row, pair.0, pair.1));
    for (id, is_after) in before.iter().map(|id| (id, false)).chain(after.iter().map(|id| (id, true))) {
        if let Some(place) = moved.iter().position(|row| text(row, "_id") == id) {
            let mut row = moved.remove(place);
            put(&mut row, "~after", is_after);
            kept.push(row);
        }
    }
    *own.store.rows_mut(site, POLICIES) = kept;
    own.provision(site, &["udm"]);
    own.stream.tell(site, "firewallpolicy:sync", &[]);
    Ok(())
}

/// Stores a new policy, the last one of its pair, and returns its id.
pub(crate) fn create(own: &mut Console, site: &str, mut policy: Row) -> Outcome<String> {
    check(own, site, &mut policy)?;
    let id = own.store.add(site, POLICIES, policy);
    let row = own.store.find(site, POLICIES, &id).cloned().unwrap_or_default();
    own.changed(site, POLICIES, &row, Change::Add);
    Ok(id)
}

/// Replaces a stored policy. One that moves to another pair is the last one there.
pub(crate) fn replace(own: &mut Console, site: &str, id: &str, mut policy: Row) -> Outcome<()> {
    let old = own.store.find(site, POLICIES, id).cloned().ok_or_else(not_found)?;
    for name in ["_id", "site_id", "~uuid", "~after"] {
        if let Some(value) = old.get(name) {
            put(&mut policy, name, value.clone());
        }
    }
    check(own, site, &mut policy)?;
    let rows = own.store.rows_mut(site, POLICIES);
    let place = rows.iter().position(|row| text(row, "_id") == id).ok_or_else(not_found)?;
    let is_same_pair = is_between(&old, zone_of(&policy, "source"), zone_of(&policy, "destination"));
    if is_same_pair {
        rows[place].clone_from(&policy);
    } else {
        rows.remove(place);
        rows.push(policy.clone());
    }
    own.changed(site, POLICIES, &policy, Change::Update);
    Ok(())
}

pub(crate) fn delete(own: &mut Console, site: &str, id: &str) -> Outcome<()> {
    let row = own.store.remove(site, POLICIES, id).ok_or_else(not_found)?;
    own.changed(site, POLICIES, &row, Change::Delete);
    Ok(())
}

/// What no policy answers to, computed ones among them.
pub(crate) fn not_found() -> Refusal {
    Refusal::new("FirewallPolicyNotFound").with_status(404)
}

/// Whether a policy may be as it would be after the write.
fn check(own: &Console, site: &str, policy: &mut Row) -> Outcome<()> {
    if text(policy, "name").is_empty() {
        return Err(Refusal::invalid("name", ".{1,128}"));
    }
    let action = text(policy, "action").to_owned();
    if action.is_empty() {
        return Err(Refusal::invalid("action", "ALLOW|BLOCK|REJECT"));
    }
    for (side, word) in [("source", "Source"), ("destination", "Destination")] {
        let inner = object(policy, side).ok_or_else(|| Refusal::invalid(side, "object"))?;
        if own.store.find(site, ZONES, text(inner, "zone_id")).is_none() {
            return Err(Refusal::new("FirewallZoneNotFound").with_status(404));
        }
        check_side(own, site, inner, word)?;
    }
    let protocol = text(policy, "protocol");
    let responds = flag(policy, "create_allow_respond");
    if responds && (action != "ALLOW" || matches!(protocol, "icmp" | "icmpv6")) {
        return Err(Refusal::new("FirewallPolicyCreateRespondTrafficPolicyNotAllowed"));
    }
    if text(policy, "connection_state_type") == "CUSTOM" && texts(policy, "connection_states").is_empty() {
        return Err(Refusal::new("MissingFirewallPolicyConnectionStates"));
    }
    for (name, value) in [
        ("enabled", json!(true)),
        ("description", json!("")),
        ("ip_version", json!("BOTH")),
        ("protocol", json!("all")),
        ("logging", json!(false)),
        ("create_allow_respond", json!(false)),
        ("connection_state_type", json!("ALL")),
        ("connection_states", json!([])),
        ("match_ip_sec", json!(false)),
        ("match_opposite_protocol", json!(false)),
        ("icmp_typename", json!("ANY")),
        ("icmp_v6_typename", json!("ANY")),
        ("schedule", json!({ "mode": "ALWAYS" })),
    ] {
        crate::row::put_default(policy, name, value);
    }
    for name in ["origin_id", "origin_type", "hits", "last_hit", "index", "predefined"] {
        policy.remove(name);
    }
    Ok(())
}

fn check_side(own: &Console, site: &str, end: &Row, word: &str) -> Outcome<()> {
    let kind = text(end, "matching_target_type");
    let is_empty = |name: &str| texts(end, name).is_empty();
    let group = text(end, "ip_group_id");
    let target = text(end, "matching_target");
    if !matches!(target, "ANY" | "") && kind.is_empty() {
        return Err(Refusal::new(&format!("MissingFirewallPolicy{word}MatchingTargetType")));
    }
    match target {
        "IP" if kind == "OBJECT" => {
            ["firewallgroup", "matching_list"]
                .into_iter()
                .find(|table| own.store.find(site, table, group).is_some())
                .ok_or_else(|| Refusal::new("FirewallGroupNotFound"))?;
        }
        "IP" if is_empty("ips") => return Err(Refusal::new(&format!("EmptyFirewall{word}Ips"))),
        "NETWORK" => {
            if is_empty("network_ids") {
                return Err(Refusal::new(&format!("EmptyFirewall{word}NetworkIds")));
            }
            texts(end, "network_ids")
                .into_iter()
                .try_for_each(|id| crate::rules::exists(own, site, "networkconf", id))?;
        }
        "MAC" if is_empty("macs") && text(end, "mac").is_empty() => {
            return Err(Refusal::new(&format!("EmptyFirewall{word}Macs")));
        }
        "CLIENT" if is_empty("client_macs") => {
            return Err(Refusal::new(&format!("EmptyFirewall{word}Clients")));
        }
        "WEB" if is_empty("web_domains") => {
            return Err(Refusal::new(&format!("EmptyFirewall{word}WebDomains")));
        }
        _ => {}
    }
    match text(end, "port_matching_type") {
        "SPECIFIC" if text(end, "port").is_empty() => Err(Refusal::new(&format!("EmptyFirewall{word}Port"))),
        "OBJECT" if text(end, "port_group_id").is_empty() => {
            Err(Refusal::new(&format!("EmptyFirewall{word}PortGroup")))
        }
        _ => Ok(()),
    }
}

/// A policy, stored or computed, by its official id.
pub(crate) fn by_uuid(own: &Console, site: &str, id: &str) -> Option<Row> {
    let stored = own.store.by_uuid(site, POLICIES, id).cloned();
    stored.or_else(|| computed(own, site).into_iter().find(|row| text(row, "~uuid") == id))
}

/// The official id of a policy, stored or computed.
pub(crate) fn by_id_uuid(own: &Console, site: &str, row: &Row) -> String {
    let id = text(row, "_id");
    let stored = own.store.uuid_of(site, POLICIES, id);
    if stored.is_empty() { crate::row::uuid(POLICIES, id) } else { stored }
}

/// Which zones may speak to which, by the last policy of each pair.
pub(crate) fn matrix(own: &Console, site: &str) -> Value {
    let zones = own.store.rows(site, ZONES);
    let row = |source: &Row| {
        let cells = zones.iter().map(|destination| {
            let (before, after) = order(own, site, text(source, "_id"), text(destination, "_id"));
            json!({
                "_id": destination["_id"], "name": text(destination, "name"),
                "action": computed::default_action(source, destination),
                "policy_count": before.len() + after.len(),
            })
        });
        json!({ "_id": source["_id"], "name": text(source, "name"), "data": cells.collect::<Vec<_>>() })
    };
    Value::Array(zones.iter().map(row).collect())
}
