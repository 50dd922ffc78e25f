//! Policies that the controller adds: the default of each pair of zones, and the return traffic of policies that allow.

use serde_json::json;

use crate::console::Console;
use crate::policies::{POLICIES, ZONES, zone_of};
use crate::row::{Row, flag, object, put, row, text, uuid};

/// The index of what a pair does when no other policy matches.
const LAST: u64 = 2_147_483_647;
/// The first index of predefined policies.
const PREDEFINED: u64 = 30_000;

/// What a pair of zones does with traffic that no policy matches.
pub(super) fn default_action(source: &Row, destination: &Row) -> &'static str {
    match (text(source, "zone_key"), text(destination, "zone_key")) {
        ("external", "external") | ("gateway", _) => "ALLOW",
        ("external", _) => "BLOCK",
        ("internal", "") => "BLOCK",
        ("internal" | "vpn", _) => "ALLOW",
        ("hotspot" | "dmz", "external") => "ALLOW",
        ("hotspot" | "dmz", _) => "BLOCK",
        ("", "external") => "ALLOW",
        _ => "BLOCK",
    }
}

/// Every computed policy, in the form of the second interface.
pub(crate) fn all(own: &Console, site: &str) -> Vec<Row> {
    let zones = own.store.rows(site, ZONES);
    let pairs = zones.iter().flat_map(|source| zones.iter().map(move |destination| (source, destination)));
    let mut rows: Vec<Row> = pairs.flat_map(|(source, destination)| of_pair(source, destination)).collect();
    let allowing = own.store.rows(site, POLICIES).iter().filter(|policy| {
        flag(policy, "create_allow_respond") && flag(policy, "enabled") && text(policy, "action") == "ALLOW"
    });
    rows.extend(allowing.zip(1..).map(|(policy, place)| companion(policy, PREDEFINED + place)));
    rows
}

fn of_pair(source: &Row, destination: &Row) -> Vec<Row> {
    let action = default_action(source, destination);
    let name = if action == "ALLOW" { "Allow All Traffic" } else { "Block All Traffic" };
    let ids = (text(source, "_id"), text(destination, "_id"));
    let mut rows = vec![policy(ids, LAST, name, action, "ALL")];
    // What was let out comes back.
    if action == "BLOCK" && default_action(destination, source) == "ALLOW" {
        rows.push(policy(ids, PREDEFINED, "Allow Return Traffic", "ALLOW", "RESPOND_ONLY"));
    }
    rows
}

fn policy((source, destination): (&str, &str), index: u64, name: &str, action: &str, states: &str) -> Row {
    let id = format!("{source}{destination}{index}");
    let side = |zone: &str| json!({ "zone_id": zone, "matching_target": "ANY", "port_matching_type": "ANY" });
    row(json!({
        "_id": id, "name": name, "action": action, "enabled": true, "predefined": true, "index": index,
        "protocol": "all",
        "ip_version": "BOTH", "logging": false, "connection_state_type": states, "connection_states": [],
        "create_allow_respond": false, "match_ip_sec": false, "match_opposite_protocol": false,
        "schedule": { "mode": "ALWAYS" },
        "source": side(source), "destination": side(destination), "icmp_typename": "ANY",
        "icmp_v6_typename": "ANY",
        "description": "", "~uuid": uuid(POLICIES, &id), "~origin": "SYSTEM_DEFINED",
    }))
}

/// The policy that lets answers to an allowing one back.
fn companion(origin: &Row, index: u64) -> Row {
    let ids = (zone_of(origin, "destination"), zone_of(origin, "source"));
    let name = format!("{} (Return)", text(origin, "name"));
    let mut made = policy(ids, index, &name, "ALLOW", "RESPOND_ONLY");
    let (source, destination) = (object(origin, "source").cloned(), object(origin, "destination").cloned());
    put(&mut made, "source", json!(destination));
    put(&mut made, "destination", json!(source));
    put(&mut made, "protocol", text(origin, "protocol"));
    put(&mut made, "ip_version", text(origin, "ip_version"));
    put(&mut made, "origin_id", text(origin, "_id"));
    put(&mut made, "origin_type", "firewall_policy");
    put(&mut made, "~origin", "DERIVED");
    made
}
