//! Rules of the filter, translations, and lists of addresses.

use std::collections::BTreeMap;

use heddle_sdk::ModelObject;
use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};

use super::{items, put, text};

/// What the model has words for, and what a rule shows beside its matchers.
const KNOWN: [&str; 31] = [
    ".id",
    ".nextid",
    "&",
    "$",
    "place-before",
    "chain",
    "action",
    "comment",
    "disabled",
    "dynamic",
    "invalid",
    "builtin",
    "bytes",
    "packets",
    "log",
    "log-prefix",
    "protocol",
    "src-address",
    "dst-address",
    "src-address-list",
    "dst-address-list",
    "src-port",
    "dst-port",
    "in-interface",
    "out-interface",
    "in-interface-list",
    "out-interface-list",
    "to-addresses",
    "to-ports",
    "reject-with",
    "hw-offload",
];
/// Actions of rules that are judged no further.
const FINAL: [&str; 5] = ["accept", "drop", "reject", "tarpit", "fasttrack-connection"];

pub(super) fn rule(row: &Value, object: &mut Modelled) {
    let chain = text(row, "chain").unwrap_or_default();
    put(object, "scope", Some(json!({ "kind": "chain", "key": chain })));
    let direction = match chain {
        "input" => "in",
        "output" => "out",
        "forward" => "forward",
        _ => "unknown",
    };
    put(object, "direction", Some(direction));
    if !object.fields.contains_key("action") {
        // A rule without an action accepts.
        put(object, "action", Some("accept"));
    }
    put(object, "enabled", Some(!super::is_on(row, "disabled")));
    put(object, "final", Some(FINAL.contains(&text(row, "action").unwrap_or("accept"))));
    let mut others = others(row);
    for (field, side) in [("from", "in"), ("to", "out")] {
        let named = [format!("{side}-interface"), format!("{side}-interface-list")];
        let all: Vec<&str> = named.iter().filter_map(|name| text(row, name)).collect();
        match all.as_slice() {
            [] => {}
            [one] if !one.starts_with('!') => put(object, field, Some(json!([one]))),
            // The model has no word for all interfaces but one.
            _ => others.push("interface".to_owned()),
        }
    }
    put(object, "source", Some(endpoint(row, "src", &mut others)));
    put(object, "destination", Some(endpoint(row, "dst", &mut others)));
    plain_list(row, object, ("src-port", "source_ports"), &mut others);
    plain_list(row, object, ("dst-port", "destination_ports"), &mut others);
    match text(row, "protocol") {
        Some(protocol) if protocol.starts_with('!') => others.push("protocol".to_owned()),
        protocol => put(object, "protocol", protocol),
    }
    others.dedup();
    put(object, "partial", Some(others));
}

/// A list without a negation, which the model has no word for.
fn plain_list(row: &Value, object: &mut Modelled, (name, field): (&str, &str), others: &mut Vec<String>) {
    match text(row, name) {
        Some(ports) if ports.starts_with('!') => others.push(name.to_owned()),
        Some(_) => put(object, field, Some(items(row, name))),
        None => {}
    }
}

/// What else a rule asks for, by the router's names.
fn others(row: &Value) -> Vec<String> {
    let fields = row.as_object().into_iter().flatten();
    let is_other = |(name, value): &(&String, &Value)| !KNOWN.contains(&name.as_str()) && *value != "";
    fields.filter(is_other).map(|(name, _)| name.replace('-', " ")).collect()
}

/// One side of a rule: an address, or a list of addresses by its name. Both together have no word in the model.
fn endpoint(row: &Value, side: &str, others: &mut Vec<String>) -> Value {
    let address = text(row, &format!("{side}-address"));
    let list = text(row, &format!("{side}-address-list"));
    let (name, value) = match (address, list) {
        (None, None) => return json!({ "any": true }),
        (Some(address), list) => {
            if list.is_some() {
                others.push(format!("{side} address list"));
            }
            ("addresses", address)
        }
        (None, Some(list)) => ("groups", list),
    };
    let mut out = Map::new();
    let plain = value.strip_prefix('!');
    out.insert(name.to_owned(), json!([plain.unwrap_or(value)]));
    if plain.is_some() {
        out.insert("negated".to_owned(), json!(true));
    }
    Value::Object(out)
}

/// A translation: what stands outside of a port forward is its destination, and of an outbound rule what it becomes.
pub(super) fn nat(row: &Value, object: &mut Modelled) {
    put(object, "enabled", Some(!super::is_on(row, "disabled")));
    let (chain, action) = (text(row, "chain").unwrap_or_default(), text(row, "action").unwrap_or("accept"));
    let kind = match (chain, action) {
        ("dstnat", "dst-nat" | "redirect") => "port-forward",
        ("srcnat", "masquerade" | "src-nat") => "outbound",
        (_, "netmap" | "same") => "one-to-one",
        _ => "unknown",
    };
    put(object, "type", Some(kind));
    let plain = |name: &str| text(row, name).filter(|value| !value.starts_with('!'));
    let side = if chain == "srcnat" { "out" } else { "in" };
    let interface = plain(&format!("{side}-interface")).or_else(|| plain(&format!("{side}-interface-list")));
    put(object, "interface", interface);
    let part = |address: Option<&str>, ports: Option<&str>| {
        let mut out = Map::new();
        if let Some(address) = address {
            out.insert("addresses".to_owned(), json!([address]));
        }
        if let Some(ports) = ports {
            out.insert("ports".to_owned(), json!(ports.split(',').collect::<Vec<_>>()));
        }
        (!out.is_empty()).then_some(Value::Object(out))
    };
    let (source, destination) = (plain("src-address"), plain("dst-address"));
    let becomes = part(plain("to-addresses"), plain("to-ports"));
    if kind == "outbound" {
        put(object, "external", becomes);
        put(object, "internal", part(source, plain("src-port")));
    } else if kind != "unknown" {
        put(object, "source", source.map(|source| json!([source])));
        put(object, "external", part(destination, plain("dst-port")));
        put(object, "internal", becomes);
    }
    if object.fields.get("protocol").and_then(Value::as_str).is_some_and(|protocol| protocol.starts_with('!'))
    {
        object.fields.remove("protocol");
    }
}

/// Before the names of lists of IPv6, which may have the same names as those of IPv4.
const IPV6: &str = "ipv6:";

/// One row of a list, which is a group of one until the rows are put together.
pub(super) fn member(row: &Value, object: &mut Modelled) {
    let address = text(row, "address").unwrap_or_default();
    if address.contains(':') {
        object.key = format!("{IPV6}{}", object.key);
    }
    put(object, "type", Some(if is_address(address) { "addresses" } else { "names" }));
}

/// An address, a prefix or a range.
pub(super) fn is_address(text: &str) -> bool {
    let first = text.split(['/', '-']).next().unwrap_or_default();
    first.parse::<std::net::IpAddr>().is_ok()
}

/// One group of the rows with the same list.
pub(super) fn grouped(items: &mut Vec<ModelObject>) {
    let mut groups: BTreeMap<String, (ModelObject, Vec<Value>, Vec<Value>)> = BTreeMap::new();
    for item in items.drain(..) {
        let fields: Value = serde_json::from_str(&item.fields).unwrap_or_default();
        let is_ipv6 = item.native.as_ref().is_some_and(|native| native.kind.contains("ipv6"));
        // A name in a list of IPv6 belongs to no list of IPv4.
        if is_ipv6 && !item.key.starts_with(IPV6) {
            continue;
        }
        let group = groups.entry(item.key.clone()).or_insert_with(|| (item, Vec::new(), Vec::new()));
        group.1.extend(fields["members"].as_array().cloned().unwrap_or_default());
        group.2.push(fields["type"].clone());
    }
    items.extend(groups.into_values().map(|(item, members, types)| {
        let mut fields: Value = serde_json::from_str(&item.fields).unwrap_or_default();
        let is_mixed = types.iter().any(|kind| *kind != types[0]);
        fields["type"] = if is_mixed { json!("mixed") } else { types[0].clone() };
        fields["members"] = json!(members);
        ModelObject { fields: fields.to_string(), native: None, ..item }
    }));
}

/// What stands between the cursor of the list and the counts.
const MARK: char = '#';

/// How many rules of each chain were seen so far. Chains stand among each other in one list, and only the order within a
/// chain counts.
#[derive(Default)]
pub(super) struct Order(BTreeMap<String, u64>);

impl Order {
    /// The counts in a cursor, and the rest of it.
    pub(super) fn of(cursor: Option<&str>) -> (Self, Option<&str>) {
        let Some((inner, counts)) = cursor.and_then(|cursor| cursor.split_once(MARK)) else {
            return (Self::default(), cursor);
        };
        (Self(serde_json::from_str(counts).unwrap_or_default()), Some(inner))
    }

    /// The cursor of the next page with the counts.
    pub(super) fn cursor(&self, next: &str) -> String {
        if self.0.is_empty() { next.to_owned() } else { format!("{next}{MARK}{}", json!(self.0)) }
    }

    /// Gives the rules of a page their places.
    pub(super) fn number(&mut self, kind: &str, items: &mut [ModelObject]) {
        if kind != "firewall-rule" && kind != "nat-rule" {
            return;
        }
        for item in items {
            let Ok(Value::Object(mut fields)) = serde_json::from_str(&item.fields) else { continue };
            let native = item.native.as_ref().map(|native| native.kind.as_str()).unwrap_or_default();
            let list = format!("{native} {}", fields.get("scope").unwrap_or(&Value::Null));
            let seen = self.0.entry(list).or_default();
            fields.insert("position".to_owned(), json!(seen));
            *seen += 1;
            item.fields = Value::Object(fields).to_string();
        }
    }
}
