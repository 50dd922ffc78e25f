//! Rules of the firewall and port forwards.

use std::collections::BTreeMap;

use heddle_sdk::ModelObject;
use serde_json::{Map, Value, json};

use super::{Fields, flag, natively, object, sections, words};
use crate::uci::{Config, Section};

/// Options of a rule that its fields tell, and those that change nothing of what it matches and does.
const KNOWN: [&str; 16] = [
    "_name",
    "counter",
    "dest",
    "dest_ip",
    "dest_port",
    "enabled",
    "family",
    "log",
    "log_limit",
    "name",
    "proto",
    "src",
    "src_ip",
    "src_port",
    "target",
    "utc_time",
];
/// What others are about; an option that is in neither list speaks for itself.
const OTHERS: [(&str, &str); 15] = [
    ("icmp_type", "icmp type"),
    ("src_mac", "mac"),
    ("limit", "limit"),
    ("limit_burst", "limit"),
    ("start_date", "schedule"),
    ("stop_date", "schedule"),
    ("start_time", "schedule"),
    ("stop_time", "schedule"),
    ("weekdays", "schedule"),
    ("monthdays", "schedule"),
    ("set_mark", "mark"),
    ("set_xmark", "mark"),
    ("set_dscp", "dscp"),
    ("set_helper", "helper"),
    ("direction", "device"),
];
/// Most of them, and characters of one, that the model takes.
const OTHERS_MAX: usize = 50;
const OTHER_CHARS_MAX: usize = 80;
/// Targets after which later rules are asked.
const PASSING: [&str; 4] = ["log", "mark", "dscp", "helper"];

pub(super) fn rules(config: &Config) -> Vec<ModelObject> {
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let one = |(key, section): (String, &Section)| {
        let (from, to) = (section.text("src"), section.text("dest"));
        let pair = format!("{}>{}", from.unwrap_or("device"), to.unwrap_or("device"));
        let place = places.entry(pair.clone()).or_default();
        let position = *place;
        *place += 1;
        let (name, target) = (section.text("name"), target(section));
        let fields = Fields::default()
            .with("scope", Some(json!({ "kind": "zone-pair", "key": pair })))
            .with("position", Some(position))
            .text("name", name)
            .with("enabled", Some(flag(section, "enabled", true)))
            .with("action", Some(action(&target)))
            .with("direction", Some(direction(from, to)))
            .with("ip_version", Some(version(section.text("family"))))
            .with("from", from.map(zones))
            .with("to", to.map(zones))
            .with("source", endpoint(section, "src_ip"))
            .with("destination", endpoint(section, "dest_ip"))
            .with("protocol", protocol(section, "tcp udp"))
            .with("source_ports", ports(section, "src_port"))
            .with("destination_ports", ports(section, "dest_port"))
            .with("log", Some(flag(section, "log", false)))
            .with("final", Some(!PASSING.contains(&target.as_str())))
            .with("partial", Some(others(section)));
        natively("firewall.rule", &key, object(&key, name.unwrap_or(&key), None, fields))
    };
    sections(config, "firewall.rule").into_iter().map(one).collect()
}

/// `*` is every zone.
fn zones(zone: &str) -> Value {
    json!([zone])
}

/// The target in small letters: the firewall takes both.
fn target(section: &Section) -> String {
    section.text("target").unwrap_or_default().to_ascii_lowercase()
}

fn action(target: &str) -> &'static str {
    match target {
        "accept" => "accept",
        "drop" => "drop",
        "reject" => "reject",
        _ => "unknown",
    }
}

fn direction(from: Option<&str>, to: Option<&str>) -> &'static str {
    match (from, to) {
        (Some(_), Some(_)) => "forward",
        (Some(_), None) => "in",
        (None, _) => "out",
    }
}

/// The firewall takes `ipv4`, `IPv4`, `inet` and `4` alike.
fn version(family: Option<&str>) -> &'static str {
    let Some(family) = family.map(str::to_ascii_lowercase) else { return "both" };
    match family.as_str() {
        "any" | "all" | "*" => "both",
        "inet" => "4",
        word if word.contains('4') => "4",
        word if word.contains('6') => "6",
        _ => "unknown",
    }
}

/// The protocols of a section, or those that the firewall takes where none are said.
fn protocol(section: &Section, default: &str) -> Option<String> {
    let own = words(section, "proto");
    let all = if own.is_empty() { default.to_owned() } else { own.join(" ") };
    (all.len() <= 40).then_some(all)
}

/// Addresses; an exclamation mark turns one around.
fn endpoint(section: &Section, option: &str) -> Option<Value> {
    let all = words(section, option);
    if all.is_empty() {
        return Some(json!({ "any": true }));
    }
    let is_negated = all.iter().all(|one| one.starts_with('!'));
    if !is_negated && all.iter().any(|one| one.starts_with('!')) {
        return None;
    }
    let mut out = Map::new();
    let plain: Vec<&str> = all.iter().map(|one| one.trim_start_matches('!')).collect();
    out.insert("addresses".to_owned(), json!(plain));
    if is_negated {
        out.insert("negated".to_owned(), json!(true));
    }
    Some(Value::Object(out))
}

/// Ports and ranges; the device takes both signs.
fn ports(section: &Section, option: &str) -> Option<Vec<String>> {
    let all: Vec<String> = words(section, option).iter().map(|one| one.replace(':', "-")).collect();
    (!all.is_empty()).then_some(all)
}

/// What a rule says beside its fields, each once.
fn others(section: &Section) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for option in section.options.keys().filter(|option| !KNOWN.contains(&option.as_str())) {
        let about = OTHERS.iter().find(|(known, _)| known == option).map(|(_, about)| *about);
        let about = about.unwrap_or(option).trim_matches('_');
        if !out.contains(&about) && about.len() <= OTHER_CHARS_MAX && out.len() < OTHERS_MAX - 1 {
            out.push(about);
        }
    }
    if ["src_ip", "dest_ip"].iter().any(|option| endpoint(section, option).is_none()) {
        out.push("addresses");
    }
    out
}

/// Port forwards and other redirects. Zones with masquerading translate too, by a switch of the zone.
pub(super) fn translations(config: &Config) -> Vec<ModelObject> {
    let one = |(position, (key, section)): (usize, (String, &Section))| {
        let is_outbound = target(section) == "snat";
        let name = section.text("name");
        let of = |address: &str, port: &str| {
            let mut out = Map::new();
            let addresses = words(section, address);
            if !addresses.is_empty() {
                out.insert("addresses".to_owned(), json!(addresses));
            }
            if let Some(ports) = ports(section, port) {
                out.insert("ports".to_owned(), json!(ports));
            }
            (!out.is_empty()).then_some(Value::Object(out))
        };
        let (external, internal) = if is_outbound {
            (of("src_dip", "src_dport"), of("src_ip", "src_port"))
        } else {
            (of("src_dip", "src_dport"), of("dest_ip", "dest_port"))
        };
        let source = words(section, "src_ip");
        let fields = Fields::default()
            .text("name", name)
            .with("position", u64::try_from(position).ok())
            .with("type", Some(if is_outbound { "outbound" } else { "port-forward" }))
            .text("interface", section.text("src"))
            .with("protocol", protocol(section, "tcp udp"))
            .with("source", (!is_outbound && !source.is_empty()).then_some(source))
            .with("external", external)
            .with("internal", internal)
            .with("passes", (!is_outbound).then_some(true))
            .with("enabled", Some(flag(section, "enabled", true)));
        natively("firewall.redirect", &key, object(&key, name.unwrap_or(&key), None, fields))
    };
    sections(config, "firewall.redirect").into_iter().enumerate().map(one).collect()
}
