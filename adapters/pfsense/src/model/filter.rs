//! Rules of the packet filter, translations, and aliases.

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{is_on, put, text, texts};

/// Matchers that the model has no word for: the field, the value that means nothing, and what it is about.
const OTHERS: [(&str, &str, &str); 9] = [
    ("gateway", "", "gateway"),
    ("sched", "", "schedule"),
    ("dscp", "", "tos"),
    ("tag", "", "tag"),
    ("statetype", "keep state", "state"),
    ("dnpipe", "", "shaper"),
    ("pdnpipe", "", "shaper"),
    ("defaultqueue", "", "shaper"),
    ("ackqueue", "", "shaper"),
];

pub(super) fn rule(row: &Value, object: &mut Modelled) {
    let interfaces = texts(row.get("interface"));
    let is_floating = is_on(row, "floating");
    let scope = match interfaces.as_slice() {
        [one] if !is_floating => json!({ "kind": "interface", "key": one }),
        _ => json!({ "kind": "floating" }),
    };
    put(object, "scope", Some(scope));
    let direction = text(row, "direction").filter(|_| is_floating).unwrap_or("in");
    put(object, "direction", Some(if direction == "any" || direction == "out" { direction } else { "in" }));
    // A rule for both ways has no side of its own.
    let side = match direction {
        "out" => Some("to"),
        "any" => None,
        _ => Some("from"),
    };
    if let Some(side) = side.filter(|_| !interfaces.iter().any(|name| name == "any")) {
        put(object, side, Some(interfaces));
    }
    // Rules of one interface end with the first that fits; a floating one only where it says so.
    put(object, "final", Some(!is_floating || is_on(row, "quick")));
    put(object, "protocol", Some(text(row, "protocol").unwrap_or("any")));
    for side in ["source", "destination"] {
        put(object, side, text(row, side).map(endpoint));
        let ports = texts(row.get(format!("{side}_port")));
        let ports = ports.iter().map(|port| port.replace(':', "-")).collect::<Vec<_>>();
        put(object, &format!("{side}_ports"), (!ports.is_empty()).then_some(ports));
    }
    put(object, "partial", Some(others(row)));
}

/// What else a rule asks for, each once.
fn others(row: &Value) -> Vec<&'static str> {
    let set =
        OTHERS.iter().filter(|(name, nothing, _)| text(row, name).is_some_and(|value| value != *nothing));
    let mut out: Vec<&str> = set.map(|(_, _, about)| *about).collect();
    if texts(row.get("icmptype")).iter().any(|kind| kind != "any") {
        out.push("icmp type");
    }
    if !texts(row.get("tcp_flags_set")).is_empty() || is_on(row, "tcp_flags_any") {
        out.push("tcp flags");
    }
    out.dedup();
    out
}

/// One side of a rule. Names of networks are told from those of aliases where the interfaces are known.
fn endpoint(told: &str) -> Value {
    let (item, is_negated) = told.strip_prefix('!').map_or((told, false), |item| (item, true));
    let mut out = match item {
        "any" => return json!({ "any": true }),
        item if is_address(item) => json!({ "addresses": [item] }),
        item => json!({ "groups": [item] }),
    };
    if is_negated {
        out["negated"] = json!(true);
    }
    out
}

/// An address, a prefix or a range.
fn is_address(text: &str) -> bool {
    let first = text.split(['/', '-']).next().unwrap_or_default();
    first.parse::<std::net::IpAddr>().is_ok()
}

/// A translation. What stands outside of a port forward is its destination, of an outbound rule its target.
pub(super) fn nat(row: &Value, object: &mut Modelled) {
    let side = |address: &str, port: &str| {
        let addresses: Vec<String> =
            texts(row.get(address)).into_iter().filter(|item| item != "any").collect();
        let ports: Vec<String> = texts(row.get(port)).iter().map(|port| port.replace(':', "-")).collect();
        json!({ "addresses": addresses, "ports": ports })
    };
    let kind = object.fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let sources: Vec<String> = texts(row.get("source")).into_iter().filter(|item| item != "any").collect();
    let (external, internal) = match kind.as_str() {
        "port-forward" => {
            put(object, "source", Some(sources));
            (side("destination", "destination_port"), side("target", "local_port"))
        }
        "outbound" => (side("target", "nat_port"), side("source", "source_port")),
        _ => (side("external", ""), side("source", "")),
    };
    put(object, "external", Some(external));
    put(object, "internal", Some(internal));
    let protocol = text(row, "protocol").unwrap_or("any");
    put(object, "protocol", Some(protocol));
    if kind == "port-forward" {
        // Without a rule of its own the packets wait for one that a person makes.
        put(object, "passes", Some(text(row, "associated_rule_id").is_some()));
    }
}

pub(super) fn group(row: &Value, object: &mut Modelled) {
    put(object, "members", Some(texts(row.get("address"))));
}
