//! Zones, policies and their order in the official interface.

use serde_json::{Value, json};

use crate::console::{Change, Console};
use crate::official::policy::{scope, side, stored};
use crate::official::{Answered, Call, absent, invalid, locked, page, translated};
use crate::policies::{self, POLICIES, ZONES};
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, object, put, text, texts};
use crate::v2;

pub(super) fn answer(own: &mut Console, call: &Call<'_>) -> Answered {
    if !own.has_zones(&call.site) {
        let code = "api.firewall.zone-based-firewall-not-configured";
        return Err(Refusal::of(400, code, "Zone Based Firewall is not configured"));
    }
    let site = call.site.as_str();
    match (call.request.method.as_str(), call.route.path.as_str()) {
        ("GET", "firewall/zones") => {
            let rows = own.store.rows(site, ZONES).iter().map(|zone| self::zone(own, site, zone)).collect();
            page::of(call, rows)
        }
        ("POST", "firewall/zones") => {
            let networks = network_ids(own, call)?;
            let id = v2::add_zone(own, site, text(&call.body, "name"), &networks).map_err(translated)?;
            Ok(zone(own, site, own.store.find(site, ZONES, &id).unwrap_or(&Row::new())))
        }
        ("GET", "firewall/policies") => {
            let rows = policies::list(own, site);
            let shown = rows.iter().map(|row| policy(own, site, row)).collect();
            page::of(call, shown)
        }
        ("POST", "firewall/policies") => {
            let new = stored(own, call)?;
            let id = policies::create(own, site, new).map_err(translated)?;
            shown(own, site, &id)
        }
        ("GET", "firewall/policies/ordering") => ordering(own, call),
        ("PUT", "firewall/policies/ordering") => reorder(own, call),
        (_, "firewall/zones/{firewallZoneId}") => one_zone(own, call),
        _ => one_policy(own, call),
    }
}

fn zone(own: &Console, site: &str, zone: &Row) -> Value {
    let networks: Vec<&str> =
        policies::networks_of(own, site, zone).into_iter().map(|row| text(row, "~uuid")).collect();
    let is_system = policies::is_system(zone);
    let mut made = json!({
        "id": text(zone, "~uuid"), "name": text(zone, "name"), "networkIds": networks,
        "metadata": { "origin": if is_system { "SYSTEM_DEFINED" } else { "USER_DEFINED" } },
    });
    if is_system {
        made["metadata"]["configurable"] = json!(!matches!(text(zone, "zone_key"), "gateway" | "external"));
    }
    made
}

fn network_ids(own: &Console, call: &Call<'_>) -> Outcome<Vec<String>> {
    let ids = texts(&call.body, "networkIds").into_iter();
    ids.map(|id| own.store.id_of(&call.site, "networkconf", id).ok_or_else(|| absent("network", id)))
        .collect()
}

fn one_zone(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    let found = own
        .store
        .by_uuid(site, ZONES, call.id())
        .cloned()
        .ok_or_else(|| absent("firewall zone", call.id()))?;
    let id = text(&found, "_id");
    match call.request.method.as_str() {
        "PUT" => {
            let networks = network_ids(own, call)?;
            let is_fixed = matches!(text(&found, "zone_key"), "gateway" | "external");
            let name = text(&call.body, "name");
            if policies::is_system(&found) && (is_fixed || name != text(&found, "name")) {
                return Err(locked("firewall zone"));
            }
            v2::write_zone(own, site, id, Some(name), Some(&networks)).map_err(translated)?;
        }
        "DELETE" => {
            if policies::is_system(&found) {
                return Err(locked("firewall zone"));
            }
            v2::delete_zone(own, site, id).map_err(translated)?;
            return Ok(Value::Null);
        }
        _ => {}
    }
    Ok(zone(own, site, own.store.find(site, ZONES, id).unwrap_or(&found)))
}

fn shown(own: &Console, site: &str, id: &str) -> Answered {
    let row = own.store.find(site, POLICIES, id).ok_or_else(|| absent("firewall policy", id))?;
    Ok(policy(own, site, &policies::policy_row(own, site, row)))
}

fn one_policy(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    let found =
        policies::by_uuid(own, site, call.id()).ok_or_else(|| absent("firewall policy", call.id()))?;
    let id = text(&found, "_id").to_owned();
    let is_stored = own.store.find(site, POLICIES, &id).is_some();
    match call.request.method.as_str() {
        "GET" if is_stored => shown(own, site, &id),
        "GET" => Ok(policy(own, site, &found)),
        _ if !is_stored => Err(locked("firewall policy")),
        "PATCH" => {
            if let (Some(row), Some(value)) =
                (own.store.find_mut(site, POLICIES, &id), call.body.get("loggingEnabled"))
            {
                put(row, "logging", value.clone());
            }
            let row = own.store.find(site, POLICIES, &id).cloned().unwrap_or_default();
            own.changed(site, POLICIES, &row, Change::Update);
            shown(own, site, &id)
        }
        "PUT" => {
            let new = stored(own, call)?;
            policies::replace(own, site, &id, new).map_err(translated)?;
            shown(own, site, &id)
        }
        _ => policies::delete(own, site, &id).map_err(translated).map(|()| Value::Null),
    }
}

/// A policy in the official form: what was written here, or what the older form tells.
fn policy(own: &Console, site: &str, row: &Row) -> Value {
    let stored = own.store.find(site, POLICIES, text(row, "_id")).unwrap_or(row);
    let official = crate::policies::by_id_uuid(own, site, row);
    let zone = |side: &str| own.store.uuid_of(site, ZONES, policies::zone_of(row, side));
    let raw = object(stored, "~official");
    let one = |name: &str| {
        let mut made =
            raw.and_then(|raw| raw.get(name)).cloned().unwrap_or_else(|| side(own, site, row, name));
        made["zoneId"] = json!(zone(name));
        made
    };
    let action = text(row, "action");
    let mut made = json!({
        "id": official, "enabled": flag(row, "enabled"), "name": text(row, "name"),
        "index": number(row, "index"),
        "action": { "type": action }, "source": one("source"), "destination": one("destination"),
        "ipProtocolScope": raw.and_then(|raw| raw.get("ipProtocolScope")).cloned().unwrap_or_else(|| scope(row)),
        "loggingEnabled": flag(row, "logging"),
        "metadata": { "origin": Some(text(row, "~origin")).filter(|word| !word.is_empty()).unwrap_or(origin(row)) },
    });
    if action == "ALLOW" {
        made["action"]["allowReturnTraffic"] = json!(flag(row, "create_allow_respond"));
    }
    if !text(row, "description").is_empty() {
        made["description"] = json!(text(row, "description"));
    }
    if let Some(states) = raw.and_then(|raw| raw.get("connectionStateFilter")) {
        made["connectionStateFilter"] = states.clone();
    }
    for name in ["ipsecFilter", "schedule"] {
        if let Some(value) = raw.and_then(|raw| raw.get(name)) {
            made[name] = value.clone();
        }
    }
    made
}

fn origin(row: &Row) -> &'static str {
    match (flag(row, "predefined"), row.contains_key("origin_id")) {
        (true, true) => "DERIVED",
        (true, false) => "SYSTEM_DEFINED",
        _ => "USER_DEFINED",
    }
}

fn pair(own: &Console, call: &Call<'_>, read: impl Fn(&str) -> Option<String>) -> Outcome<(String, String)> {
    let zone = |name: &str| {
        let id = read(name).ok_or_else(|| invalid(&format!("'{name}' is required")))?;
        own.store.id_of(&call.site, ZONES, &id).ok_or_else(|| absent("firewall zone", &id))
    };
    Ok((zone("sourceFirewallZoneId")?, zone("destinationFirewallZoneId")?))
}

fn ordering(own: &Console, call: &Call<'_>) -> Answered {
    let (source, destination) = pair(own, call, |name| call.request.query(name))?;
    Ok(ordered(own, &call.site, &source, &destination))
}

fn ordered(own: &Console, site: &str, source: &str, destination: &str) -> Value {
    let (before, after) = policies::order(own, site, source, destination);
    let ids =
        |ids: Vec<String>| ids.iter().map(|id| own.store.uuid_of(site, POLICIES, id)).collect::<Vec<_>>();
    json!({
        "orderedFirewallPolicyIds": { "beforeSystemDefined": ids(before), "afterSystemDefined": ids(after) },
    })
}

fn reorder(own: &mut Console, call: &Call<'_>) -> Answered {
    let (source, destination) = pair(own, call, |name| call.request.query(name))?;
    let lists = object(&call.body, "orderedFirewallPolicyIds").cloned().unwrap_or_default();
    let ids = |name: &str| -> Outcome<Vec<String>> {
        let ids = texts(&lists, name).into_iter();
        ids.map(|id| own.store.id_of(&call.site, POLICIES, id).ok_or_else(|| absent("firewall policy", id)))
            .collect()
    };
    let (before, after) = (ids("beforeSystemDefined")?, ids("afterSystemDefined")?);
    policies::reorder(own, &call.site, (&source, &destination), &before, &after).map_err(translated)?;
    Ok(ordered(own, &call.site, &source, &destination))
}
