//! Whether a rule of a firewall may stop the service's own way. A rule counts where it cannot be shown that it does not.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use crate::names::{address, folded};

/// The service's own way, as rules speak of it.
#[derive(Debug, Default)]
pub struct Way<'w> {
    /// Address of the controller, where it is one.
    pub host: Option<IpAddr>,
    /// Port of the controller's address.
    pub port: u16,
    /// The service is known to be inside of the site.
    pub is_inside: bool,
    pub own_addresses: &'w [IpAddr],
    /// Names of the interfaces that the way passes, in small letters; empty where the way is not known.
    pub passed: HashSet<String>,
    /// Names of all interfaces of the site, in small letters.
    pub all: HashSet<String>,
}

/// What is to be said of a rule that is created, changed or deleted, if it may stop the way. `stored` has its fields before.
pub fn risk(way: &Way<'_>, verb: &str, stored: Option<&Value>, payload: &Value) -> Option<String> {
    let stored = stored.unwrap_or(&Value::Null);
    let after = merged(stored, payload);
    let name = after.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.map_or_else(|| "the rule".to_owned(), |name| format!("rule '{name}'"));
    let before = (verb != "create" && !stored.is_null()).then_some(stored);
    let allowed =
        before.is_some_and(|fields| is_on(fields) && action(fields) == "accept" && meets(way, fields));
    match verb {
        "delete" if allowed => Some(format!("{name} lets the service in, and would be gone")),
        "delete" => None,
        "create" | "update" => {
            let stops = is_on(&after) && matches!(action(&after), "drop" | "reject" | "unknown");
            if stops && meets(way, &after) {
                return Some(format!("{name} may stop the service on its way"));
            }
            let stays = is_on(&after) && action(&after) == "accept" && meets(way, &after);
            let moves = payload.get("position").is_some_and(|at| stored.get("position") != Some(at));
            if allowed && stays && moves {
                return Some(format!("{name} lets the service in, and may come behind one that does not"));
            }
            (allowed && !stays).then(|| format!("{name} lets the service in, and would not any more"))
        }
        _ => None,
    }
}

/// The fields with those that a change sets.
fn merged(stored: &Value, payload: &Value) -> Value {
    let mut fields = stored.as_object().cloned().unwrap_or_default();
    fields.extend(payload.as_object().cloned().unwrap_or_default());
    Value::Object(fields)
}

fn is_on(fields: &Value) -> bool {
    fields.get("enabled") != Some(&Value::Bool(false))
}

/// Returns `unknown` where the rule does not say; that counts as a rule that stops.
fn action(fields: &Value) -> &str {
    fields.get("action").and_then(Value::as_str).unwrap_or("unknown")
}

fn meets(way: &Way<'_>, fields: &Value) -> bool {
    let direction = fields.get("direction").and_then(Value::as_str);
    direction != Some("out")
        && passes_interface(way, fields)
        && has_address(
            fields.get("source"),
            way.own_addresses.iter().copied().filter(|own| !own.is_loopback()),
        )
        && has_address(fields.get("destination"), way.host)
        && has_port(fields.get("destination_ports"), way.port)
        && fields.get("protocol").and_then(Value::as_str).is_none_or(is_tcp)
}

fn is_tcp(protocol: &str) -> bool {
    let words = protocol.to_lowercase();
    let mut words = words.split([' ', ',', '/']).filter(|word| !word.is_empty()).peekable();
    words.peek().is_none()
        || words.any(|word| word.contains("tcp") || matches!(word, "any" | "all" | "ip" | "6" | "*"))
}

/// An interface or zone that is none of the way's passes only where it is known to be another one.
fn passes_interface(way: &Way<'_>, fields: &Value) -> bool {
    let from: Vec<String> = texts(fields.get("from")).map(folded).collect();
    from.is_empty()
        || way.passed.is_empty()
        || from.iter().any(|name| way.passed.contains(name) || !way.all.contains(name))
}

/// Whether one of these addresses may be meant. Where none is known, any may be.
fn has_address(endpoint: Option<&Value>, own: impl IntoIterator<Item = IpAddr>) -> bool {
    let Some(endpoint) = endpoint else { return true };
    let own: Vec<IpAddr> = own.into_iter().collect();
    let has_names = ["groups", "networks"].iter().any(|list| texts(endpoint.get(list)).next().is_some());
    let listed: Vec<&str> = texts(endpoint.get("addresses")).collect();
    if own.is_empty() || has_names || listed.is_empty() || endpoint.get("any") == Some(&Value::Bool(true)) {
        return true;
    }
    let is_single = |text: &str| address(text).filter(|_| !text.contains('/'));
    // A range or a name may mean anything.
    if listed.iter().any(|text| text.parse::<IpNet>().is_err() && is_single(text).is_none()) {
        return true;
    }
    let is_in = |text: &&str| match text.parse::<IpNet>() {
        Ok(net) => own.iter().any(|own| net.contains(own)),
        Err(_) => is_single(text).is_some_and(|one| own.contains(&one)),
    };
    listed.iter().any(is_in) != (endpoint.get("negated") == Some(&Value::Bool(true)))
}

fn has_port(ports: Option<&Value>, own: u16) -> bool {
    let mut listed = texts(ports).peekable();
    let is_in = |text: &str| match text.split_once('-') {
        Some((from, to)) => match (from.trim().parse::<u16>(), to.trim().parse::<u16>()) {
            (Ok(from), Ok(to)) => (from..=to).contains(&own),
            _ => true,
        },
        None => text.trim().parse::<u16>().map_or(true, |port| port == own),
    };
    listed.peek().is_none() || listed.any(is_in)
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn way(own: &[IpAddr]) -> Way<'_> {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Way {
            host: "10.0.0.1".parse().ok(),
            port: 443,
            is_inside: true,
            own_addresses: own,
            passed: names(&["lan"]),
            all: names(&["lan", "wan", "guest"]),
        }
    }

    #[track_caller]
    fn check(payload: Value, is_risk: bool) {
        let own = ["10.0.0.5".parse().unwrap()];
        assert_eq!(risk(&way(&own), "create", None, &payload).is_some(), is_risk, "{payload}");
    }

    #[test]
    fn a_new_rule_counts_unless_it_is_known_to_be_about_something_else() {
        check(json!({ "action": "drop" }), true);
        check(json!({ "action": "accept" }), false);
        check(json!({ "action": "drop", "enabled": false }), false);
        check(json!({ "action": "reject", "from": ["lan"] }), true);
        check(json!({ "action": "reject", "from": ["guest"] }), false);
        check(json!({ "action": "reject", "from": ["trusted"] }), true);
        check(json!({ "action": "drop", "direction": "out" }), false);
        check(json!({ "action": "drop", "source": { "addresses": ["10.0.0.0/24"] } }), true);
        check(json!({ "action": "drop", "source": { "addresses": ["10.0.9.0/24"] } }), false);
        check(json!({ "action": "drop", "source": { "addresses": ["10.0.9.0/24"], "negated": true } }), true);
        check(json!({ "action": "drop", "source": { "groups": ["staff"] } }), true);
        check(
            json!({ "action": "drop", "source": { "addresses": ["10.0.9.1-10.0.9.9"], "negated": true } }),
            true,
        );
        check(json!({ "action": "drop", "destination": { "addresses": ["10.0.0.1"] } }), true);
        check(json!({ "action": "drop", "destination": { "addresses": ["10.0.0.2"] } }), false);
        check(json!({ "action": "drop", "destination_ports": ["80", "400-500"] }), true);
        check(json!({ "action": "drop", "destination_ports": ["22"] }), false);
        check(json!({ "action": "drop", "protocol": "udp" }), false);
        check(json!({ "action": "drop", "protocol": "tcp udp" }), true);
    }

    #[test]
    fn a_rule_that_lets_the_service_in_is_missed() {
        let own = ["10.0.0.5".parse().unwrap()];
        let way = way(&own);
        let stored =
            json!({ "name": "Admin", "action": "accept", "from": ["lan"], "destination_ports": ["443"] });
        for (verb, payload, is_risk) in [
            ("delete", json!({ "key": "r" }), true),
            ("update", json!({ "key": "r", "enabled": false }), true),
            ("update", json!({ "key": "r", "action": "drop" }), true),
            ("update", json!({ "key": "r", "destination_ports": ["22"] }), true),
            ("update", json!({ "key": "r", "name": "Administration" }), false),
        ] {
            let said = risk(&way, verb, Some(&stored), &payload);
            assert_eq!(said.is_some(), is_risk, "{verb} {payload}: {said:?}");
        }
        let other = json!({ "action": "accept", "from": ["guest"] });
        assert_eq!(risk(&way, "delete", Some(&other), &json!({ "key": "r" })), None);
        assert_eq!(risk(&way, "delete", None, &json!({ "key": "r" })), None, "nothing is known of it");
    }
}
