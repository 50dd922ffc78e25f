//! What a reviewer must be told beside a plan: how far it reaches.

use heddle_sdk::{Change, ChangePlan, Fault, Host, Operation, PlanStep, json as sdk_json};
use serde_json::{Map, Value};

use crate::answer::rows;
use crate::beside::number;
use crate::site;

/// Features that reach further than their object, by their ids, of which some end with `*`.
const REACH: [(&str, &str); 16] = [
    ("unifi.wifi.wlan", "the radios of all access points that carry the network restart"),
    ("unifi.wifi.wlan-override", "the radios of the access point restart"),
    ("unifi.wifi.broadcast", "the radios of all access points that carry the network restart"),
    ("unifi.wifi.ap-group", "the Wi-Fi networks of the group appear at, or vanish from, its access points"),
    ("unifi.networks.*", "all switches and access points of the site are provisioned"),
    ("unifi.wan.connection", "the connection to the internet is interrupted"),
    ("unifi.profiles.radius", "all networks and ports that use the profile ask its servers"),
    ("unifi.profiles.client-group", "all clients and Wi-Fi networks in the group"),
    ("unifi.firewall.group", "all rules that name the group"),
    ("unifi.profiles.matching-list", "all policies that name the list"),
    ("unifi.firewall.zone", "all policies of the zone, and the networks in it"),
    ("unifi.firewall.zone-legacy", "all policies of the zone, and the networks in it"),
    ("unifi.setting.super-*", "all sites of the controller"),
    ("unifi.setting.global-*", "all devices of the site"),
    ("unifi.setting.country", "the radios of all access points restart"),
    ("unifi.setting.mgmt", "all devices of the site"),
];
/// Features whose objects have places among others that no write of them tells, and what becomes of the place.
const PLACED: [(&str, &str); 3] = [
    (
        "unifi.firewall.zone-policy",
        "at the end of its pair of zones; unifi.firewall.policy-order has their order",
    ),
    ("unifi.firewall.policy", "at the end of its pair of zones; unifi.firewall.policy-order has their order"),
    ("unifi.firewall.acl-rule", "at the end of all rules; unifi.firewall.acl-order has their order"),
];
const ENABLED: &str = "enabled";
const PROFILE: &str = "unifi.ports.profile";
/// How many switches a sentence names.
const NAMED_MAX: usize = 8;

/// Adds to a plan what it reaches, and takes from its steps what says nothing.
pub(crate) fn complete(host: &dyn Host, plan: &mut ChangePlan, changes: &[Change]) -> Result<(), Fault> {
    for (step, change) in plan.steps.iter_mut().zip(changes) {
        shorten(step, change);
    }
    if plan.native.is_empty() {
        return Ok(());
    }
    for change in changes {
        let known = REACH.iter().find(|(feature, _)| is_meant(feature, &change.feature));
        if let Some((_, reach)) = known {
            plan.also.push((*reach).to_owned());
        }
        let placed = PLACED.iter().find(|(feature, _)| *feature == change.feature);
        if let Some((_, place)) = placed.filter(|_| change.operation == Operation::Delete) {
            plan.warnings.push(format!("what is deleted here comes back {place}"));
        }
        if change.feature == PROFILE && change.operation != Operation::Create {
            plan.also.extend(of_profile(host, change)?);
        }
    }
    plan.also.dedup();
    plan.warnings.dedup();
    Ok(())
}

/// Whether an id is this one, or begins with it where it ends with `*`.
fn is_meant(known: &str, feature: &str) -> bool {
    known.strip_suffix('*').map_or(known == feature, |beginning| feature.starts_with(beginning))
}

/// The ports that take their settings from a profile.
fn of_profile(host: &dyn Host, change: &Change) -> Result<Option<String>, Fault> {
    let payload: Value = serde_json::from_str(&change.payload).unwrap_or_default();
    let site = site::chosen(host, change.site.as_deref())?;
    let profiles = rows(host, &format!("/api/s/{site}/rest/portconf"))?;
    let found = profiles.iter().find(|profile| profile.get("name") == payload.get("name"));
    let Some(id) = found.and_then(|profile| profile.get("_id")) else { return Ok(None) };
    let devices = rows(host, &format!("/api/s/{site}/stat/device"))?;
    let of_device = |device: &Value| {
        let ports = sdk_json::items(device, "/port_overrides");
        let own = ports.iter().filter(|port| port.get("portconf_id") == Some(id));
        let mut numbers: Vec<u64> = own.filter_map(|port| number(port.get("port_idx"))).collect();
        numbers.sort_unstable();
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let name = ["/name", "/mac"].into_iter().find_map(|at| sdk_json::text(device, at))?;
        (!numbers.is_empty()).then(|| format!("'{name}' {}", numbers.join(", ")))
    };
    let switches: Vec<String> = devices.iter().filter_map(of_device).collect();
    if switches.is_empty() {
        return Ok(None);
    }
    let more = switches.len().saturating_sub(NAMED_MAX);
    let named = switches[..switches.len() - more].join("; ");
    let rest = if more == 0 { String::new() } else { format!("; and those of {more} more switches") };
    Ok(Some(format!("it acts at once on the ports that have the profile: {named}{rest}")))
}

/// Takes out of a step what is empty or off, before and after, and was not asked for.
fn shorten(step: &mut PlanStep, change: &Change) {
    let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let asked = read(&change.payload);
    let mut sides = [&step.before, &step.after].map(|side| side.as_deref().map(read));
    let says = |name: &String, side: &Option<Map<String, Value>>| {
        let value = side.as_ref().and_then(|side| side.get(name));
        value.is_some_and(|value| !matches!(value, Value::Bool(false)) && !is_empty(value))
    };
    let names: Vec<String> = sides.iter().flatten().flat_map(|side| side.keys().cloned()).collect();
    // What is off is the other side of what is on where nothing is said.
    let is_kept = |name: &String| asked.contains_key(name) || name == ENABLED;
    for name in names.iter().filter(|name| !is_kept(name)) {
        if sides.iter().all(|side| !says(name, side)) {
            sides.iter_mut().flatten().for_each(|side| drop(side.remove(name)));
        }
    }
    let [before, after] = sides.map(|side| side.map(|side| Value::Object(side).to_string()));
    step.before = before;
    step.after = after;
}

fn is_empty(value: &Value) -> bool {
    value == "" || value.as_array().is_some_and(Vec::is_empty)
}
