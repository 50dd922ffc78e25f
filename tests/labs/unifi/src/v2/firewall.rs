//! Zones and policies on the second interface.

use serde_json::{Value, json};

use crate::check;
use crate::console::{Change, Console};
use crate::facts::Facts;
use crate::policies::{self, POLICIES, ZONES};
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, row, text, texts};
use crate::v2::Call;

/// The fields that a write of a policy has to bring.
const NEEDED: [&str; 4] = ["name", "action", "source", "destination"];

pub(super) fn answer(own: &mut Console, call: &Call<'_>, parts: &[&str]) -> Outcome<Value> {
    let site = call.site;
    if !own.has_zones(site) {
        return match (call.request.method.as_str(), parts) {
            ("GET", _) => Ok(json!([])),
            _ => Err(Refusal::new("FirewallZonesUnsupportedDevice").with_status(404)),
        };
    }
    match (call.request.method.as_str(), parts) {
        ("GET", ["firewall-policies"]) => Ok(json!(policies::list(own, site))),
        ("POST", ["firewall-policies"]) => {
            let policy = policy(own, call)?;
            let id = policies::create(own, site, policy)?;
            Ok(stored(own, site, &id))
        }
        // It answers well, and changes nothing.
        ("PUT", ["firewall-policies", "batch"]) => Ok(call.body.clone()),
        ("PUT", ["firewall-policies", "batch-reorder"]) => reorder(own, call),
        ("PUT", ["firewall-policies", id]) => {
            let policy = policy(own, call)?;
            policies::replace(own, site, id, policy)?;
            Ok(stored(own, site, id))
        }
        ("DELETE", ["firewall-policies", id]) => policies::delete(own, site, id).map(|()| json!({})),
        ("GET", ["firewall", "zone"]) => {
            let rows = own.store.rows(site, ZONES).iter();
            Ok(Value::Array(rows.map(|zone| Value::Object(policies::zone_row(own, site, zone))).collect()))
        }
        ("GET", ["firewall", "zone-matrix"]) => Ok(policies::matrix(own, site)),
        ("POST", ["firewall", "zone"]) => create_zone(own, call),
        ("PUT", ["firewall", "zone", id]) => update_zone(own, call, id),
        ("DELETE", ["firewall", "zone", id]) => delete_zone(own, site, id).map(|()| json!({})),
        _ => Err(Refusal::not_found()),
    }
}

fn stored(own: &Console, site: &str, id: &str) -> Value {
    let row = own.store.find(site, POLICIES, id);
    row.map_or(Value::Null, |row| Value::Object(policies::policy_row(own, site, row)))
}

fn policy(own: &Console, call: &Call<'_>) -> Outcome<Row> {
    let body = call.fields()?;
    if let Some(name) = NEEDED.iter().find(|name| !body.contains_key(**name)) {
        return Err(Refusal::new("InvalidPayload").with_message(&format!("{name}: must not be null")));
    }
    let mut known = check::known(&Facts::get().v2["firewall-policies"].fields, body, own.settings.release)?;
    // Kept when sent, though the contract does not name them.
    for name in ["icmp_typename", "icmp_v6_typename"] {
        if let Some(value) = body.get(name) {
            known.insert(name.to_owned(), value.clone());
        }
    }
    Ok(known)
}

fn reorder(own: &mut Console, call: &Call<'_>) -> Outcome<Value> {
    let body = call.fields()?;
    let list = |name: &str| {
        let is_list = body.get(name).is_some_and(Value::is_array);
        let ids = || texts(body, name).into_iter().map(str::to_owned).collect::<Vec<_>>();
        is_list
            .then(ids)
            .ok_or_else(|| Refusal::new("InvalidPayload").with_message(&format!("{name}: must not be null")))
    };
    let (before, after) = (list("before_predefined_ids")?, list("after_predefined_ids")?);
    let pair = (text(body, "source_zone_id"), text(body, "destination_zone_id"));
    policies::reorder(own, call.site, pair, &before, &after)?;
    Ok(json!(policies::list(own, call.site)))
}

/// The fields of a zone: the write takes three, and refuses each other one.
fn zone_fields(call: &Call<'_>) -> Outcome<Row> {
    let body = call.fields()?;
    if let Some(name) = body.keys().find(|name| !["_id", "name", "network_ids"].contains(&name.as_str())) {
        return Err(Refusal::new("InvalidPayload").with_message(&format!("Unrecognized field \"{name}\"")));
    }
    Ok(body.clone())
}

fn create_zone(own: &mut Console, call: &Call<'_>) -> Outcome<Value> {
    let body = zone_fields(call)?;
    if !body.get("network_ids").is_some_and(Value::is_array) {
        return Err(Refusal::new("InternalServerError").with_status(500));
    }
    let networks: Vec<String> = texts(&body, "network_ids").into_iter().map(str::to_owned).collect();
    let id = add_zone(own, call.site, text(&body, "name"), &networks)?;
    // Without the zone of the hotspot it fails, and has stored the new one all the same.
    has_hotspot(own, call.site)?;
    let zone = own.store.find(call.site, ZONES, &id).cloned().unwrap_or_default();
    Ok(Value::Object(policies::zone_row(own, call.site, &zone)))
}

fn has_hotspot(own: &Console, site: &str) -> Outcome<()> {
    match own.store.having(site, ZONES, "zone_key", "hotspot") {
        Some(_) => Ok(()),
        None => Err(Refusal::new("CouldNotFindHotspotFirewallZone").with_status(404)),
    }
}

/// Adds a zone with these networks, and returns its id.
pub(crate) fn add_zone(own: &mut Console, site: &str, name: &str, networks: &[String]) -> Outcome<String> {
    if name.is_empty() {
        return Err(Refusal::invalid("name", ".+"));
    }
    if own.store.having(site, ZONES, "name", name).is_some() {
        return Err(Refusal::new("FirewallZoneNameExisted"));
    }
    let id = own.store.add(site, ZONES, row(json!({ "name": name })));
    if let Err(refusal) = policies::put_networks(own, site, &id, networks) {
        own.store.remove(site, ZONES, &id);
        return Err(refusal);
    }
    let zone = own.store.find(site, ZONES, &id).cloned().unwrap_or_default();
    own.changed(site, ZONES, &zone, Change::Add);
    Ok(id)
}

fn update_zone(own: &mut Console, call: &Call<'_>, id: &str) -> Outcome<Value> {
    let body = zone_fields(call)?;
    has_hotspot(own, call.site)?;
    let networks = body
        .get("network_ids")
        .map(|_| texts(&body, "network_ids").into_iter().map(str::to_owned).collect::<Vec<_>>());
    write_zone(
        own,
        call.site,
        id,
        Some(text(&body, "name")).filter(|name| !name.is_empty()),
        networks.as_deref(),
    )?;
    let zone = own.store.find(call.site, ZONES, id).cloned().unwrap_or_default();
    Ok(Value::Object(policies::zone_row(own, call.site, &zone)))
}

/// Renames a zone, changes its networks, or both.
pub(crate) fn write_zone(
    own: &mut Console,
    site: &str,
    id: &str,
    name: Option<&str>,
    networks: Option<&[String]>,
) -> Outcome<()> {
    let zone = own
        .store
        .find(site, ZONES, id)
        .cloned()
        .ok_or_else(|| Refusal::new("FirewallZoneNotFound").with_status(404))?;
    if policies::is_system(&zone) && name.is_some_and(|name| name != text(&zone, "name")) {
        return Err(Refusal::new("CannotModifyPredefinedFirewallZone"));
    }
    if matches!(text(&zone, "zone_key"), "gateway" | "external") && networks.is_some() {
        return Err(Refusal::new("CannotModifyPredefinedFirewallZone"));
    }
    if let Some(networks) = networks {
        policies::put_networks(own, site, id, networks)?;
    }
    if let (Some(zone), Some(name)) = (own.store.find_mut(site, ZONES, id), name) {
        crate::row::put(zone, "name", name);
    }
    let zone = own.store.find(site, ZONES, id).cloned().unwrap_or_default();
    own.changed(site, ZONES, &zone, Change::Update);
    Ok(())
}

/// Removes a zone of the user. Its networks go to the internal one, its policies with it.
pub(crate) fn delete_zone(own: &mut Console, site: &str, id: &str) -> Outcome<()> {
    let zone = own
        .store
        .find(site, ZONES, id)
        .cloned()
        .ok_or_else(|| Refusal::new("FirewallZoneNotFound").with_status(404))?;
    if policies::is_system(&zone) {
        return Err(Refusal::new("CannotDeletePredefinedFirewallZone"));
    }
    policies::put_networks(own, site, id, &[])?;
    let is_of_zone =
        |row: &Row| ["source", "destination"].iter().any(|side| policies::zone_of(row, side) == id);
    own.store.rows_mut(site, POLICIES).retain(|row| !is_of_zone(row));
    own.store.remove(site, ZONES, id);
    own.changed(site, ZONES, &zone, Change::Delete);
    Ok(())
}
