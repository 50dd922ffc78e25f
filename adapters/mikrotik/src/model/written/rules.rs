//! Rules of the filter and translations, with their places.

use heddle_sdk::crud::{self, Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation, json as sdk_json};
use serde_json::{Map, Value, json};

use super::super::text;
use super::{asked_text, change, own, texts};
use crate::VENDOR;

const PLACE: &str = "place-before";

/// The kind that a feature writes.
fn kind_of(change: &Expressed) -> String {
    change.feature.trim_start_matches("mikrotik.").to_owned()
}

fn put(payload: &mut Map<String, Value>, name: &str, value: Value) {
    payload.insert(name.to_owned(), value);
}

/// An empty value is taken away from a rule that is there, and left out of a new one.
fn settle(change: &mut Expressed) {
    if change.operation == Operation::Create {
        change.payload.retain(|_, value| !value.is_null());
    }
}

/// A rule is known by its name.
fn require_name(change: &Expressed) -> Result<(), Fault> {
    let is_named = change.payload.get("comment").is_some_and(|name| !name.is_null() && name != "");
    if change.operation != Operation::Create || is_named {
        return Ok(());
    }
    Err(refused("name", "is needed there: rules are told apart by it"))
}

pub(super) fn rule(host: &dyn Host, asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    if own(changes)?.operation == Operation::Delete {
        return Ok(());
    }
    let change = own(changes)?;
    if change.operation == Operation::Create && asked_text(asked, "ip_version") == Some("6") {
        "mikrotik.firewall.ipv6-filter".clone_into(&mut change.feature);
    }
    let version = if change.feature.ends_with("ipv6-filter") { "6" } else { "4" };
    if asked_text(asked, "ip_version").is_some_and(|asked| asked != version) {
        return Err(refused("ip_version", "is 4 or 6 there, and stays: each has rules of its own"));
    }
    chain(asked, change)?;
    for (field, side) in [("from", "in"), ("to", "out")] {
        if let Some(listed) = asked.fields.get(field).map(texts) {
            interfaces(host, (field, side), &listed, &mut change.payload)?;
        }
    }
    for (field, side) in [("source", "src"), ("destination", "dst")] {
        if let Some(value) = asked.fields.get(field) {
            endpoint((field, side), value, &mut change.payload)?;
        }
    }
    if let Some(protocol) = asked.fields.get("protocol") {
        let is_any = protocol.as_str().is_none_or(|protocol| protocol == "any");
        put(&mut change.payload, "protocol", if is_any { Value::Null } else { protocol.clone() });
    }
    for name in ["src-port", "dst-port"] {
        if change.payload.get(name) == Some(&json!([])) {
            put(&mut change.payload, name, Value::Null);
        }
    }
    settle(change);
    require_name(change)?;
    place(host, asked, changes)
}

/// The chain of a rule: of its scope, or of its direction.
fn chain(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let of_scope = match asked.fields.get("scope") {
        None => None,
        Some(scope) => match (sdk_json::text(scope, "/kind"), sdk_json::text(scope, "/key")) {
            (Some("chain"), Some(key)) => Some(key.to_owned()),
            _ => {
                return Err(refused(
                    "scope/kind",
                    "is chain, with its key: input, forward, output or one of your own",
                ));
            }
        },
    };
    let of_direction = match asked_text(asked, "direction") {
        None => None,
        Some("in") => Some("input"),
        Some("out") => Some("output"),
        Some("forward") => Some("forward"),
        Some(_) => {
            return Err(refused("direction", "can be in, out or forward there: the chain of the rule"));
        }
    };
    if let (Some(scope), Some(direction)) = (&of_scope, of_direction)
        && scope != direction
    {
        return Err(refused("direction", "is another chain than that of the scope"));
    }
    let asked = of_scope.or(of_direction.map(str::to_owned));
    match (asked, change.operation) {
        (Some(chain), _) => put(&mut change.payload, "chain", json!(chain)),
        (None, Operation::Create) => put(&mut change.payload, "chain", json!("forward")),
        (None, _) => {}
    }
    Ok(())
}

/// One interface, or one list of interfaces.
fn interfaces(
    host: &dyn Host,
    (field, side): (&str, &str),
    listed: &[String],
    payload: &mut Map<String, Value>,
) -> Result<(), Fault> {
    let (own, list) = (format!("{side}-interface"), format!("{side}-interface-list"));
    let (mut one, mut of_list) = (Value::Null, Value::Null);
    match listed {
        [] => {}
        [name] => {
            let lists = super::rows(host, "interfaces.list")?;
            let is_list = lists.iter().any(|row| text(row, "name") == Some(name.as_str()));
            if is_list { of_list = json!(name) } else { one = json!(name) }
        }
        _ => {
            return Err(refused(
                field,
                "is one there: an interface, or a list of interfaces that you make first",
            ));
        }
    }
    put(payload, &own, one);
    put(payload, &list, of_list);
    Ok(())
}

/// One address, or one list of addresses.
fn endpoint(
    (field, side): (&str, &str),
    value: &Value,
    payload: &mut Map<String, Value>,
) -> Result<(), Fault> {
    let (addresses, groups) = (texts(&value["addresses"]), texts(&value["groups"]));
    if !texts(&value["networks"]).is_empty() {
        return Err(refused(&format!("{field}/networks"), "are no words there; name addresses, or a group"));
    }
    let negated = |text: &String| {
        if value.get("negated") == Some(&json!(true)) { json!({ "not": text }) } else { json!(text) }
    };
    let (mut address, mut list) = (Value::Null, Value::Null);
    match (addresses.as_slice(), groups.as_slice()) {
        ([], []) => {}
        ([one], []) => address = negated(one),
        ([], [one]) => list = negated(one),
        _ => return Err(refused(field, "takes one address or one group there; make a group of several")),
    }
    put(payload, &format!("{side}-address"), address);
    put(payload, &format!("{side}-address-list"), list);
    Ok(())
}

/// Puts a rule at its place among those of its chain.
fn place(host: &dyn Host, asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let Some(position) = asked.fields.get("position").and_then(Value::as_u64) else { return Ok(()) };
    let own = own(changes)?;
    let kind = kind_of(own);
    let chain = own.payload.get("chain").and_then(Value::as_str).or_else(|| text(asked.row?, "chain"));
    let itself = asked.row.and_then(|row| text(row, ".id"));
    let rules = crud::every_object(&VENDOR, host, &kind, None)?;
    let id =
        |reference: &heddle_sdk::ObjectRef| reference.locators.first().map(|locator| locator.value.clone());
    let others: Vec<Option<String>> = rules
        .iter()
        .filter(|(reference, row)| {
            // Translations are numbered across chains.
            (asked.kind == "nat-rule" || text(row, "chain") == chain)
                && (itself.is_none() || id(reference).as_deref() != itself)
        })
        .map(|(reference, _)| id(reference))
        .collect();
    let at = usize::try_from(position).unwrap_or(usize::MAX);
    let behind = match others.get(at) {
        // The last of its chain.
        None => None,
        Some(Some(id)) => Some(id.clone()),
        Some(None) => return Err(refused("position", "is that of a rule of the router's own")),
    };
    if own.operation == Operation::Create {
        if let Some(behind) = behind {
            put(&mut own.payload, PLACE, json!(behind));
        }
        return Ok(());
    }
    let mut payload = Map::new();
    put(&mut payload, "comment", own.payload.get("comment").cloned().unwrap_or_default());
    put(&mut payload, PLACE, json!(behind));
    // A change of the place alone leaves the rule as it is.
    if own.payload.len() == 1 {
        changes.remove(0);
    }
    changes.push(change(&format!("{kind}-order"), Operation::Create, Value::Object(payload)));
    Ok(())
}

/// A port forward, a translation of what goes out, or of one network into another.
pub(super) fn translation(
    host: &dyn Host,
    asked: &Asked<'_>,
    changes: &mut Vec<Expressed>,
) -> Result<(), Fault> {
    if own(changes)?.operation == Operation::Delete {
        return Ok(());
    }
    let change = own(changes)?;
    let is_new = change.operation == Operation::Create;
    let known = asked.row.and_then(|row| text(row, "chain"));
    let is_outbound = match asked_text(asked, "type") {
        Some(kind) => kind == "outbound",
        None => known == Some("srcnat"),
    };
    let (chain, side) = if is_outbound { ("srcnat", "out") } else { ("dstnat", "in") };
    if !is_new && known != Some(chain) {
        return Err(refused("type", "is that of the chain there; make a new one and delete this one"));
    }
    put(&mut change.payload, "chain", json!(chain));
    if let Some(interface) = asked.fields.get("interface") {
        let listed: Vec<String> = interface.as_str().map(str::to_owned).into_iter().collect();
        interfaces(host, ("interface", side), &listed, &mut change.payload)?;
    }
    let (external, internal) = if is_outbound {
        (("to-addresses", "to-ports"), ("src-address", "src-port"))
    } else {
        (("dst-address", "dst-port"), ("to-addresses", "to-ports"))
    };
    for (field, places) in [("external", external), ("internal", internal)] {
        if let Some(value) = asked.fields.get(field) {
            part(field, value, places, &mut change.payload)?;
        }
    }
    if let Some(source) = asked.fields.get("source").map(texts) {
        if is_outbound {
            return Err(refused("source", "is the internal side of an outbound rule there"));
        }
        match source.as_slice() {
            [] => put(&mut change.payload, "src-address", Value::Null),
            [one] => put(&mut change.payload, "src-address", json!(one)),
            _ => return Err(refused("source", "takes one value there")),
        }
    }
    if is_new || asked.fields.contains_key("type") {
        let has_address = change.payload.get("to-addresses").is_some_and(|value| !value.is_null());
        let action = match asked_text(asked, "type") {
            Some("one-to-one") => "netmap",
            Some("outbound") if !has_address => "masquerade",
            Some("outbound") => "src-nat",
            Some("port-forward") if !has_address && is_new => "redirect",
            Some("port-forward") => "dst-nat",
            _ => return Err(refused("type", "can be port-forward, outbound or one-to-one")),
        };
        put(&mut change.payload, "action", json!(action));
    }
    settle(change);
    require_name(change)?;
    place(host, asked, changes)
}

/// Addresses and ports of a side. Ports are a list where they are matched, and a text where they are put in.
fn part(
    field: &str,
    value: &Value,
    (address, port): (&str, &str),
    payload: &mut Map<String, Value>,
) -> Result<(), Fault> {
    let addresses = texts(&value["addresses"]);
    let ports = texts(&value["ports"]);
    match addresses.as_slice() {
        [] => put(payload, address, Value::Null),
        [one] => put(payload, address, json!(one)),
        _ => return Err(refused(&format!("{field}/addresses"), "takes one value there")),
    }
    let is_list = port != "to-ports";
    let ports = match ports.as_slice() {
        [] => Value::Null,
        all if is_list => json!(all),
        [one] => json!(one),
        _ => return Err(refused(&format!("{field}/ports"), "takes one value there: a port or a range")),
    };
    put(payload, port, ports);
    Ok(())
}
