//! Rules of the firewall, and the names that they use.

use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};

use super::{is_set, parts, rows, text_of};

/// Longest name of a matcher that the model has no word for.
const PARTIAL_CHARS: usize = 80;

/// What a rule asks for, and what becomes of packets.
pub(super) fn rule(row: &Value, object: &mut Modelled) {
    let scope = object.fields.get("scope").map(|scope| text_of(scope, "key")).unwrap_or_default();
    // Places in the list are all that rules are known by.
    object.key = format!("{scope}:{}", object.key);
    let fields = &mut object.fields;
    let is_group = text_of(row, "type") == "group";
    let action = match text_of(row, "action").as_str() {
        _ if is_group => "unknown",
        "ACCEPT" => "accept",
        "DROP" => "drop",
        "REJECT" => "reject",
        _ => "unknown",
    };
    fields.insert("action".to_owned(), json!(action));
    if !is_group {
        fields.insert("final".to_owned(), json!(true));
    }
    let side = if fields.get("direction") == Some(&json!("out")) { "to" } else { "from" };
    let interfaces: Vec<String> = parts(&text_of(row, "iface")).map(str::to_owned).collect();
    if !interfaces.is_empty() {
        fields.insert(side.to_owned(), json!(interfaces));
    }
    fields.insert("source".to_owned(), endpoint(&text_of(row, "source")));
    fields.insert("destination".to_owned(), endpoint(&text_of(row, "dest")));
    for (name, place) in [("source_ports", "sport"), ("destination_ports", "dport")] {
        let ports: Vec<String> = parts(&text_of(row, place)).map(|port| port.replace(':', "-")).collect();
        if !ports.is_empty() {
            fields.insert(name.to_owned(), json!(ports));
        }
    }
    partial(row, is_group, fields);
}

/// What the model has no word for: a macro stands for protocol and ports, and a group for rules of its own.
fn partial(row: &Value, is_group: bool, fields: &mut Map<String, Value>) {
    let named = |word: &str, place: &str| {
        let text = text_of(row, place);
        let whole: String = format!("{word} {text}").chars().take(PARTIAL_CHARS).collect();
        (!text.is_empty()).then_some(whole)
    };
    let group = if is_group { named("group", "action") } else { None };
    let all: Vec<String> =
        [group, named("macro", "macro"), named("icmp-type", "icmp-type")].into_iter().flatten().collect();
    if !all.is_empty() {
        fields.insert("partial".to_owned(), json!(all));
    }
}

/// Addresses, ranges and prefixes; names of aliases, and of sets behind a plus sign.
fn endpoint(text: &str) -> Value {
    let (mut addresses, mut groups) = (Vec::new(), Vec::new());
    for part in parts(text) {
        if part.starts_with(|first: char| first.is_ascii_digit()) || part.contains(':') {
            addresses.push(part);
        } else {
            let name = part.trim_start_matches('+');
            // A name may say which list it is of: `dc/office`.
            groups.push(name.rsplit_once('/').map_or(name, |(_, own)| own));
        }
    }
    match (addresses.is_empty(), groups.is_empty()) {
        (true, true) => json!({ "any": true }),
        (false, true) => json!({ "addresses": addresses }),
        (true, false) => json!({ "groups": groups }),
        (false, false) => json!({ "addresses": addresses, "groups": groups }),
    }
}

/// An alias has one address. A set has entries, of which some are exceptions, and may be named as an alias is.
pub(super) fn group(row: &Value, object: &mut Modelled) {
    if row["&"].get("entries").is_none() {
        return;
    }
    let member = |entry: &Value| {
        let address = text_of(entry, "cidr");
        let sign = if is_set(entry, "nomatch") { "!" } else { "" };
        (!address.is_empty()).then(|| format!("{sign}{address}"))
    };
    let members: Vec<String> = rows(row, "entries").filter_map(member).collect();
    object.fields.insert("members".to_owned(), json!(members));
    object.key = format!("+{}", object.key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_a_rule_are_addresses_and_names() {
        for (text, side) in [
            ("", json!({ "any": true })),
            (
                "192.0.2.0/24, 198.51.100.1-198.51.100.9",
                json!({ "addresses": ["192.0.2.0/24", "198.51.100.1-198.51.100.9"] }),
            ),
            ("2001:db8::/32,fe80::1", json!({ "addresses": ["2001:db8::/32", "fe80::1"] })),
            ("+dc/management", json!({ "groups": ["management"] })),
            ("office,10.0.0.1", json!({ "addresses": ["10.0.0.1"], "groups": ["office"] })),
        ] {
            assert_eq!(endpoint(text), side, "{text}");
        }
    }
}
