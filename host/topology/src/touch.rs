//! What a change touches of the graph, and what of it is lost. In the words of the model this follows from the payload; in a
//! vendor's own words the object is known and not what becomes of it, so that it counts as lost.

use std::collections::{BTreeSet, HashMap, HashSet};

use heddle_core::ControllerId;
use heddle_core::change::Operation;
use serde_json::Value;

use crate::facts::KINDS;
use crate::losses::{Area, Losses};
use crate::names::{covers, folded, is_everything};
use crate::rule;
use crate::site::{Known, Site, Tagged, What};

/// Fields of payloads that only people read, whatever the vendor.
const DESCRIPTIVE: &[&str] =
    &["alias", "comment", "comments", "descr", "description", "label", "note", "notes", "remark", "tags"];
/// Verbs after which things come back by themselves.
const BRIEF: &[&str] = &["poe-cycle", "reboot", "reconnect", "restart"];
/// Words at the end of an action's name that take a device down.
const POWER: &[(&str, bool)] =
    &[("halt", false), ("poweroff", false), ("reboot", true), ("restart", true), ("shutdown", false)];
/// Kinds that may carry the service's way without the graph showing it.
const MAY_CARRY: &[&str] = &["nat-rule", "vpn-peer", "vpn-session", "vpn-tunnel"];

/// A change to be judged.
#[derive(Debug, Clone)]
pub struct Change {
    pub controller: ControllerId,
    /// The vendor's id of the site, where the controller has sites.
    pub site_ref: Option<String>,
    pub words: Words,
    pub payload: Value,
}

/// In which words a change is.
#[derive(Debug, Clone)]
pub enum Words {
    Model { kind: String, verb: String },
    Native(Native),
}

/// A change in a vendor's own words.
#[derive(Debug, Clone)]
pub struct Native {
    pub feature: String,
    /// The vendor's kind of the object.
    pub kind: Option<String>,
    pub operation: Operation,
    /// Kinds of the model that the feature is used for.
    pub kinds: Vec<String>,
    /// What the object may be called.
    pub names: Vec<String>,
    /// Fields that name it.
    pub naming: Vec<String>,
}

/// What changes touch.
#[derive(Debug, Default)]
pub struct Touched {
    /// Labels of objects that carry traffic.
    pub labels: BTreeSet<String>,
    pub losses: Losses,
    /// What is lost comes back by itself.
    pub is_brief: bool,
    /// The devices that are written to.
    pub devices: BTreeSet<usize>,
    /// Why the service's way may be lost although the graph stays.
    pub risks: Vec<String>,
    /// What could not be told.
    pub unknown: Vec<String>,
}

/// Finds what all changes together touch. `rules` are the stored fields of rules of firewalls, by controller and key.
pub(crate) fn touched(
    site: &Site,
    changes: &[Change],
    way: &rule::Way<'_>,
    rules: &HashMap<(ControllerId, String), Value>,
) -> Touched {
    let mut found = Touched { is_brief: !changes.is_empty(), ..Touched::default() };
    let mut by_controller: HashMap<ControllerId, Vec<&Known>> = HashMap::new();
    for known in &site.known {
        by_controller.entry(known.controller).or_default().push(known);
    }
    for change in changes {
        let mut of_controller = by_controller.get(&change.controller).cloned().unwrap_or_default();
        if let Some(site_ref) = &change.site_ref {
            of_controller.retain(|known| known.site_ref.is_empty() || known.site_ref == *site_ref);
        }
        let of_controller = of_controller.as_slice();
        match &change.words {
            Words::Model { kind, verb } => {
                found.is_brief &= BRIEF.contains(&verb.as_str());
                in_model(site, (change, kind, verb), of_controller, &mut found);
                if kind == "firewall-rule" {
                    let key = change.payload.get("key").and_then(Value::as_str).unwrap_or_default();
                    let stored = rules.get(&(change.controller, key.to_owned()));
                    if stored.is_none() && verb != "create" {
                        found.unknown.push(format!(
                            "the rule '{key}' is not in the inventory, so what it stops is not known"
                        ));
                    }
                    found.risks.extend(rule::risk(way, verb, stored, &change.payload));
                } else {
                    beside(change, kind, verb, way, &mut found);
                }
            }
            Words::Native(native) => in_vendor_words(site, (change, native), of_controller, way, &mut found),
        }
    }
    found.risks.extend(found.losses.risks());
    found
}

/// Says where a change may stop what the service comes by, which the graph does not show.
fn beside(change: &Change, kind: &str, verb: &str, way: &rule::Way<'_>, found: &mut Touched) {
    let may_carry = MAY_CARRY.contains(&kind) && !way.is_inside;
    if may_carry || (may_stop(kind, verb) && !says_nothing_new(&change.payload)) {
        found.unknown.push(format!("whether the service comes by what is changed of a {kind} is not known"));
    }
}

/// Whether what a kind is about may be what lets the service in: a service that listens, or addresses that rules name.
fn may_stop(kind: &str, verb: &str) -> bool {
    match kind {
        "address-group" => verb != "create",
        "service" => !matches!(verb, "create" | "start"),
        _ => false,
    }
}

/// Whether a payload names an object and sets only what people read.
fn says_nothing_new(payload: &Value) -> bool {
    let names = || payload.as_object().into_iter().flat_map(|fields| fields.keys());
    let is_descriptive = |name: &String| DESCRIPTIVE.contains(&name.as_str());
    names().any(is_descriptive) && names().all(|name| name == "key" || is_descriptive(name))
}

/// What an object is about, by its key or its label.
fn by_key<'k>(of_controller: &[&'k Known], kind: &str, key: &str) -> Option<&'k Known> {
    let mut of_kind = of_controller.iter().filter(|known| known.kind == kind);
    of_kind.find(|known| known.key == key).copied()
}

fn in_model(
    site: &Site,
    (change, kind, verb): (&Change, &str, &str),
    of_controller: &[&Known],
    found: &mut Touched,
) {
    if !KINDS.contains(&kind) {
        return;
    }
    let payload = &change.payload;
    if verb == "create" {
        created(site, (change, kind), found);
        return;
    }
    let key = payload.get("key").and_then(Value::as_str).unwrap_or_default();
    let Some(known) = by_key(of_controller, kind, key) else {
        found
            .unknown
            .push(format!("the {kind} '{key}' is not in the inventory, so what it carries is not known"));
        return;
    };
    found.labels.insert(format!("{} {}", known.kind, known.label));
    found.devices.extend(device_of(site, &known.what));
    let is_gone =
        matches!(verb, "delete" | "shutdown" | "stop" | "reboot" | "poe-cycle" | "block" | "reconnect")
            || payload.get("enabled") == Some(&Value::Bool(false));
    if is_gone {
        lose(known, &mut found.losses);
        return;
    }
    match &known.what {
        What::Port(port) => port_update(site, *port, payload, &mut found.losses),
        What::Vlan { device, vlan, interface } => {
            let area = area(known, *device);
            vlan_update(site, (area, *vlan, *interface), payload, &mut found.losses);
        }
        What::Ssid { .. } => {
            let is_felt = |name: &&String| {
                !matches!(name.as_str(), "key" | "hidden" | "bands" | "isolation" | "fast_roaming")
            };
            if payload.as_object().is_some_and(|fields| fields.keys().any(|name| is_felt(&name))) {
                lose(known, &mut found.losses);
            }
        }
        What::Route { .. } => {
            let leads = ["destination", "enabled", "interface", "metric", "next_hop", "table", "type"];
            if leads.iter().any(|name| payload.get(name).is_some()) {
                lose(known, &mut found.losses);
            }
            leads_elsewhere(site, payload, "the route", found);
        }
        What::Device(_) | What::Radio { .. } | What::Leaf(_) | What::Nothing => {}
    }
}

/// What is new takes packets without a tag away from where they were, and may take routes over.
fn created(site: &Site, (change, kind): (&Change, &str), found: &mut Touched) {
    let payload = &change.payload;
    match kind {
        "vlan" => {
            let Some(vlan) = number(payload.get("vlan_id")) else { return };
            let is_own = |device: usize| site.devices[device].controller == Some(change.controller);
            let called = called(site, is_own);
            let members = payload.get("members").and_then(Value::as_array).into_iter().flatten();
            for (name, is_tagged) in members.filter_map(member) {
                let Some(port) = called.get(&folded(name)).copied() else { continue };
                let native = site.ports[port].vlans.as_ref().and_then(|vlans| vlans.native);
                if is_tagged == Some(false) && native != Some(vlan) {
                    found.losses.untagged.insert(port);
                    found.labels.insert(format!("port {}", site.ports[port].name));
                    found.devices.insert(site.ports[port].device);
                }
            }
        }
        "route" => {
            leads_elsewhere(site, payload, "a new route", found);
        }
        _ => {}
    }
}

/// Says where a route may take the answers to the service over, once it is as a payload asks.
fn leads_elsewhere(site: &Site, payload: &Value, what: &str, found: &mut Touched) {
    let destination = payload.get("destination").and_then(Value::as_str).unwrap_or_default();
    if payload.get("enabled") == Some(&Value::Bool(false)) {
        return;
    }
    if is_everything(destination) || covers(destination, &site.own_addresses) {
        found.risks.push(format!("{what} to {destination} may lead answers to the service elsewhere"));
    }
}

fn number(value: Option<&Value>) -> Option<u16> {
    value.and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok())
}

fn numbers(value: Option<&Value>) -> Option<Vec<u16>> {
    let mut list: Vec<u16> = value?.as_array()?.iter().filter_map(|one| number(Some(one))).collect();
    list.sort_unstable();
    Some(list)
}

fn area(known: &Known, device: Option<usize>) -> Area {
    match device {
        Some(device) => Area::Device(device),
        None if known.site_ref.is_empty() => Area::Controller(known.controller),
        None => Area::Site(known.controller, known.site_ref.clone()),
    }
}

fn device_of(site: &Site, what: &What) -> Option<usize> {
    match what {
        What::Device(device) | What::Radio { device, .. } => Some(*device),
        What::Port(port) => Some(site.ports[*port].device),
        What::Vlan { device, .. } | What::Ssid { device, .. } | What::Route { device, .. } => *device,
        What::Leaf(_) | What::Nothing => None,
    }
}

/// Takes an object away as a whole.
pub fn lose(known: &Known, losses: &mut Losses) {
    match &known.what {
        What::Device(device) => {
            losses.devices.insert(*device);
        }
        What::Port(port) => {
            losses.ports.insert(*port);
        }
        What::Vlan { device, vlan, interface } => {
            losses.vlans.push((area(known, *device), *vlan));
            losses.doors.extend(interface);
        }
        What::Ssid { device, name } => losses.ssids.push((area(known, *device), folded(name))),
        What::Radio { device, band } => losses.radios.push((*device, band.clone())),
        What::Route { device, is_default, covers_service } => {
            losses.outside.extend(device.filter(|_| *is_default));
            losses.answers.extend(covers_service.then(|| known.label.clone()));
        }
        What::Leaf(leaf) => {
            losses.leaves.insert(*leaf);
        }
        What::Nothing => {}
    }
}

fn port_update(site: &Site, port: usize, payload: &Value, losses: &mut Losses) {
    if payload.pointer("/poe/enabled") == Some(&Value::Bool(false)) {
        // What takes its power from the port is off.
        losses.ports.insert(port);
        return;
    }
    let before = site.ports[port].vlans.as_ref();
    if payload.get("native_vlan").is_some() {
        let native = number(payload.get("native_vlan"));
        if before.is_none_or(|vlans| vlans.native != native) {
            losses.untagged.insert(port);
        }
        if let Some(vlan) = native {
            losses.tagged.insert((port, vlan));
        }
    }
    let list = numbers(payload.get("tagged_vlans"));
    let kept = match (payload.get("tagged_mode").and_then(Value::as_str), list) {
        (Some("all"), _) => Some(Tagged::AllBut(Vec::new())),
        (Some("none"), _) => Some(Tagged::Only(Vec::new())),
        (Some("all_but"), list) => Some(Tagged::AllBut(list.unwrap_or_default())),
        (_, Some(list)) => Some(Tagged::Only(list)),
        (_, None) => None,
    };
    losses.retagged.extend(kept.map(|kept| (port, kept)));
}

fn vlan_update(
    site: &Site,
    (area, vlan, interface): (Area, u16, Option<usize>),
    payload: &Value,
    losses: &mut Losses,
) {
    if number(payload.get("vlan_id")).is_some_and(|new| new != vlan) {
        losses.vlans.push((area, vlan));
        losses.doors.extend(interface);
        return;
    }
    if ["gateway", "interface", "subnets"].iter().any(|name| payload.get(name).is_some()) {
        losses.doors.extend(interface);
    }
    let Some(members) = payload.get("members").and_then(Value::as_array) else { return };
    let called = called(site, |device| area.has(site, device));
    // A member that does not say whether it has a tag stays as it is.
    let mut stay: HashSet<(usize, bool)> = HashSet::new();
    for (name, is_tagged) in members.iter().filter_map(member) {
        let Some(port) = called.get(&folded(name)) else { continue };
        let kept = [true, false].into_iter().filter(|tagged| is_tagged.is_none_or(|own| own == *tagged));
        stay.extend(kept.map(|tagged| (*port, tagged)));
    }
    for (at, port) in site.ports.iter().enumerate() {
        let Some(vlans) = port.vlans.as_ref().filter(|_| area.has(site, port.device)) else { continue };
        if vlans.native == Some(vlan) {
            if !stay.contains(&(at, false)) {
                losses.untagged.insert(at);
            }
        } else if vlans.tagged.has(vlan) && !stay.contains(&(at, true)) {
            losses.tagged.insert((at, vlan));
        }
    }
}

/// Name of a member of a VLAN, and whether it has a tag.
fn member(value: &Value) -> Option<(&str, Option<bool>)> {
    Some((value.get("port")?.as_str()?, value.get("tagged").and_then(Value::as_bool)))
}

/// The ports of devices by all that they are called: their names, their keys, and these with the device in front.
fn called(site: &Site, is_meant: impl Fn(usize) -> bool) -> HashMap<String, usize> {
    let mut all = HashMap::new();
    for (at, port) in site.ports.iter().enumerate().filter(|(_, port)| is_meant(port.device)) {
        let identity = folded(&site.devices[port.device].identity);
        for key in &port.keys {
            all.entry(key.clone()).or_insert(at);
            all.entry(format!("{identity}:{key}")).or_insert(at);
        }
        if !port.name.is_empty() {
            all.entry(folded(&port.name)).or_insert(at);
        }
    }
    all
}

fn in_vendor_words(
    site: &Site,
    (change, native): (&Change, &Native),
    of_controller: &[&Known],
    way: &rule::Way<'_>,
    found: &mut Touched,
) {
    let last = native.feature.rsplit(['.', '-']).next().unwrap_or_default();
    if let Some((_, is_brief)) = POWER.iter().find(|(word, _)| *word == last && is_of_system(native)) {
        found.is_brief &= is_brief;
        power(site, change.controller, native, found);
        return;
    }
    found.is_brief = false;
    let verb = match native.operation {
        _ if last == "start" => "start",
        // Actions on a service are created, too.
        Operation::Create if !native.kinds.iter().any(|kind| kind == "service") => "create",
        _ => "",
    };
    if native.kinds.iter().any(|kind| may_stop(kind, verb)) && !only_describes_update(change, native) {
        found
            .unknown
            .push(format!("whether the service comes by what '{}' changes is not known", native.feature));
    }
    let own: Vec<&Known> = matching(of_controller, native);
    if own.is_empty() {
        let carries =
            native.kinds.iter().any(|kind| KINDS.contains(&kind.as_str()) || kind == "firewall-rule");
        let is_new = native.operation == Operation::Create;
        // A new one of these may take over what others carry, or stop it.
        let takes = |kind: &String| matches!(kind.as_str(), "firewall-rule" | "route" | "vlan");
        if native.kinds.is_empty() || (carries && (!is_new || native.kinds.iter().any(takes))) {
            found.unknown.push(format!(
                "what '{}' does to the network is not known in the words of the model",
                native.feature
            ));
        } else if native.kinds.iter().any(|kind| MAY_CARRY.contains(&kind.as_str())) && !way.is_inside {
            found
                .unknown
                .push(format!("whether the service comes by what '{}' changes is not known", native.feature));
        }
        return;
    }
    let is_described = only_describes_update(change, native);
    for known in own {
        found.labels.insert(format!("{} {}", known.kind, known.label));
        found.devices.extend(device_of(site, &known.what));
        if !is_described {
            lose(known, &mut found.losses);
        }
    }
    if !is_described && native.operation == Operation::Update {
        let words = "what becomes of it is not known in the words of the model, and it counts as lost";
        found.unknown.push(format!("'{}': {words}", native.feature));
    }
}

/// The objects of the model that a change in the vendor's words is about.
fn matching<'k>(of_controller: &[&'k Known], native: &Native) -> Vec<&'k Known> {
    let is_named = |text: &str| native.names.iter().any(|name| name.eq_ignore_ascii_case(text));
    let by_native = |known: &&&Known| {
        let own = known.native.as_ref().filter(|own| native.kind.as_deref() == Some(&own.kind));
        own.is_some_and(|own| is_named(&own.key))
    };
    let found: Vec<&Known> = of_controller.iter().filter(by_native).copied().collect();
    if !found.is_empty() {
        return found;
    }
    let word = native.kind.as_deref().and_then(|kind| kind.rsplit('.').next()).unwrap_or_default();
    let of_kind = |known: &&&Known| known.kind == word || native.kinds.iter().any(|kind| kind == known.kind);
    let called =
        of_controller.iter().filter(of_kind).filter(|known| is_named(&known.key) || is_named(&known.label));
    called.copied().collect()
}

/// Whether an action is about a device as a whole. The firmware's own power actions stand beside those of the model.
fn is_of_system(native: &Native) -> bool {
    let is_system = native.kinds.iter().any(|kind| kind == "system");
    let own = native.feature.rsplit('.').next().unwrap_or_default();
    is_system || (native.kind.is_none() && own.starts_with("firmware-"))
}

/// Whether an update only says what people read, besides what names the object.
fn only_describes_update(change: &Change, native: &Native) -> bool {
    let mut fields = change.payload.as_object().into_iter().flatten();
    let is_update = native.operation == Operation::Update;
    is_update
        && fields.all(|(name, value)| {
            let names_it = native.naming.contains(name)
                || value.as_str().is_some_and(|text| native.names.iter().any(|own| own == text));
            names_it || DESCRIPTIVE.contains(&name.to_lowercase().as_str())
        })
}

/// An action that takes a device down: the one that it names, else the only one of the controller.
fn power(site: &Site, controller: ControllerId, native: &Native, found: &mut Touched) {
    let of_controller = |device: &usize| site.devices[*device].controller == Some(controller);
    let own: Vec<usize> = (0..site.devices.len()).filter(of_controller).collect();
    let is_named = |device: &&usize| {
        let device = &site.devices[**device];
        native.names.iter().any(|name| {
            let name = folded(name);
            let same_mac = crate::names::mac(&name).is_some_and(|mac| folded(&device.identity) == mac);
            same_mac || name == folded(&device.identity) || name == folded(&device.name)
        })
    };
    let named = own.iter().find(is_named).copied();
    let only = if own.len() == 1 { own.first().copied() } else { None };
    match named.or(only) {
        Some(device) => {
            found.labels.insert(format!("system {}", site.devices[device].name));
            found.devices.insert(device);
            found.losses.devices.insert(device);
        }
        None => found.unknown.push(format!("which device '{}' takes down is not known", native.feature)),
    }
}
