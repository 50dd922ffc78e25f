//! Rules of the packet filter, translations, and aliases.

use heddle_sdk::Origin;
use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};

use super::{is_on, items, put, text};

/// Matchers that the model has no word for: the field, the values that mean nothing, and what it is about.
const OTHERS: [(&str, &str, &str); 22] = [
    ("icmptype", "", "icmp type"),
    ("icmp6type", "", "icmp type"),
    ("gateway", "", "gateway"),
    ("divert-to", "", "divert"),
    ("replyto", "", "reply"),
    ("allowopts", "0", "options"),
    ("max", "", "limit"),
    ("max-src-nodes", "", "limit"),
    ("max-src-states", "", "limit"),
    ("max-src-conn", "", "limit"),
    ("max-src-conn-rate", "", "limit"),
    ("max-pkt-rate-number", "", "limit"),
    ("overload", "", "limit"),
    ("prio", "", "priority"),
    ("tagged", "", "tag"),
    ("tcpflags1", "", "tcp flags"),
    ("tcpflags2", "", "tcp flags"),
    ("sched", "", "schedule"),
    ("tos", "", "tos"),
    ("shaper1", "", "shaper"),
    ("shaper2", "", "shaper"),
    ("interfacenot", "0", "interface"),
];
/// Most members of a group that the model takes.
const MEMBERS_MAX: usize = 5_000;
const MEMBER_CHARS_MAX: usize = 255;

pub(super) fn rule(row: &Value, object: &mut Modelled) {
    let id = text(row, "uuid");
    // What the firewall makes has no id, and a place that stays.
    let place =
        || format!("automatic:{}", text(row, "sort_order").or(text(row, "description")).unwrap_or_default());
    object.key = id.map_or_else(place, str::to_owned);
    if is_on(row, "is_automatic") || id.is_none() {
        object.origin = if is_on(row, "is_automatic") { Origin::Derived } else { Origin::Vendor };
    }
    let interfaces = items(row, "interface", ',');
    let scope = match interfaces.as_slice() {
        [one] if !is_on(row, "interfacenot") => json!({ "kind": "interface", "key": one }),
        _ => json!({ "kind": "floating" }),
    };
    put(object, "scope", Some(scope));
    // A rule for both ways has no side of its own; its scope names the interface.
    let side = match object.fields.get("direction").and_then(Value::as_str) {
        Some("out") => Some("to"),
        Some("any") => None,
        _ => Some("from"),
    };
    let is_told = !is_on(row, "interfacenot") && !interfaces.is_empty();
    let is_lost = is_told && side.is_none() && interfaces.len() > 1;
    if let Some(side) = side.filter(|_| is_told) {
        put(object, side, Some(interfaces));
    }
    for side in ["source", "destination"] {
        let list = items(row, &format!("{side}_net"), ',');
        put(object, side, endpoint(row, &list, is_on(row, &format!("{side}_not"))));
        let ports = items(row, &format!("{side}_port"), ',');
        put(object, &format!("{side}_ports"), (!ports.is_empty()).then_some(ports));
    }
    put(object, "protocol", text(row, "protocol").map(str::to_lowercase));
    let mut others = others(row);
    if is_lost {
        others.push("interface");
    }
    put(object, "partial", Some(others));
}

/// What else a rule asks for, each once.
fn others(row: &Value) -> Vec<&'static str> {
    let mut out = Vec::new();
    for (name, nothing, about) in OTHERS {
        let is_set = text(row, name).is_some_and(|value| value != nothing);
        if is_set && !out.contains(&about) {
            out.push(about);
        }
    }
    out
}

/// One side of a rule: `any`, addresses, networks of interfaces (`lan`, `lanip`, `(self)`), names of aliases.
fn endpoint(row: &Value, list: &[String], is_negated: bool) -> Option<Value> {
    let mut out = Map::new();
    let mut add = |name: &str, item: &str| {
        if let Value::Array(all) = out.entry(name).or_insert_with(|| json!([])) {
            all.push(json!(item));
        }
    };
    if list.is_empty() {
        return None;
    }
    if list.iter().any(|item| item == "any") {
        return Some(json!({ "any": true }));
    }
    for item in list {
        match item {
            item if is_address(item) => add("addresses", item),
            item if is_network(row, item) => add("networks", item),
            item => add("groups", item),
        }
    }
    if is_negated {
        out.insert("negated".to_owned(), json!(true));
    }
    Some(Value::Object(out))
}

/// An address, a prefix or a range.
fn is_address(text: &str) -> bool {
    let first = text.split(['/', '-']).next().unwrap_or_default();
    first.parse::<std::net::IpAddr>().is_ok()
}

/// Keys of assignments are fixed words with a number; aliases are shown as they are.
fn is_network(row: &Value, name: &str) -> bool {
    let own = name.strip_suffix("ip").unwrap_or(name);
    let is_numbered = own.strip_prefix("opt").is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()));
    let is_of_rule = items(row, "interface", ',').iter().any(|known| known == own);
    name == "(self)" || ["wan", "lan", "lo0"].contains(&own) || is_numbered || is_of_rule
}

/// A translation. What stands outside of a port forward is its destination, of an outbound rule its target.
///
/// The model has no word for addresses that are not meant, so these are left out, and none for rules by which packets are
/// not translated.
pub(super) fn nat(row: &Value, object: &mut Modelled) {
    let id = text(row, "uuid").unwrap_or_default();
    if id.starts_with("lockout") || id.starts_with("automatic") {
        object.origin = Origin::Derived;
    }
    put(object, "protocol", text(row, "protocol").map(str::to_lowercase));
    if is_on(row, "nordr") || is_on(row, "nonat") {
        put(object, "type", Some("unknown"));
        object.fields.remove("passes");
        return;
    }
    let is_port_forward = object.fields.get("type").and_then(Value::as_str) == Some("port-forward");
    if is_port_forward && text(row, "pass").is_none() {
        object.fields.insert("passes".to_owned(), json!(false));
    }
    let first = |names: &[&str]| names.iter().find_map(|name| text(row, name)).map(str::to_owned);
    let meant =
        |names: &[&str], not: [&str; 2]| first(names).filter(|_| !not.iter().any(|not| is_on(row, not)));
    let source = meant(&["source.network", "source_net"], ["source.not", "source_not"]);
    let destination =
        meant(&["destination.network", "destination_net"], ["destination.not", "destination_not"]);
    let (source, external, internal) = match object.fields.get("type").and_then(Value::as_str) {
        Some("port-forward") => (
            source,
            (destination, first(&["destination.port"])),
            (first(&["target"]), first(&["local-port"])),
        ),
        Some("outbound") => {
            (None, (first(&["target"]), first(&["target_port"])), (source, first(&["source_port"])))
        }
        _ => (destination, (first(&["external", "destination_net"]), None), (source, None)),
    };
    put(object, "source", source.map(|source| json!([source])));
    put(object, "external", side(external));
    put(object, "internal", side(internal));
}

fn side((address, ports): (Option<String>, Option<String>)) -> Option<Value> {
    let mut out = Map::new();
    if let Some(address) = address {
        out.insert("addresses".to_owned(), json!([address]));
    }
    if let Some(ports) = ports {
        out.insert("ports".to_owned(), json!([ports]));
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// An alias. Of one that is fetched, only the place is known; too many members are not told in part.
pub(super) fn group(row: &Value, object: &mut Modelled) {
    let is_own = text(row, "uuid").is_some_and(|id| id.len() == 36);
    if !is_own {
        object.origin = Origin::Vendor;
    }
    let kind = text(row, "type").unwrap_or_default();
    let is_fetched =
        kind.starts_with("url") || ["external", "internal", "geoip", "dynipv6host"].contains(&kind);
    let members = items(row, "content", '\n');
    let fits =
        members.len() <= MEMBERS_MAX && members.iter().all(|one| one.chars().count() <= MEMBER_CHARS_MAX);
    put(object, "members", (row.get("content").is_some() && !is_fetched && fits).then_some(members));
}
