//! Rules of the gateway, translations, and the groups that they use.

use serde_json::{Map, Value, json};

use super::{known, list, said, set, text, texts};
use crate::beside::Beside;

/// What a rule asks for: one of zones, or one of a list of the time before zones.
pub(super) fn rule(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    if row.get("ruleset").is_some() {
        of_list(beside, row, fields);
    } else {
        of_zones(beside, row, fields);
    }
}

fn of_zones(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    let joined = &row["&"];
    let zone = |side: &str| text(&joined[side], "name");
    let (from, to) = (zone("from"), zone("to"));
    if let (false, false, Some(scope)) = (from.is_empty(), to.is_empty(), fields.get_mut("scope")) {
        scope["key"] = json!(format!("{from}>{to}"));
    }
    set(fields, "from", known(vec![from].into_iter().filter(|zone| !zone.is_empty()).collect()));
    set(fields, "to", known(vec![to].into_iter().filter(|zone| !zone.is_empty()).collect()));
    set(fields, "protocol", said(protocol(&text(row, "protocol"))));
    for side in ["source", "destination"] {
        set(fields, side, endpoint(beside, &row[side], &joined[format!("{side}-group")]));
        let group = &joined[format!("{side}-ports")];
        let name = format!("{side}_ports");
        set(fields, &name, ports(&row[side], group));
    }
    set(fields, "partial", known(partial(row)));
}

/// The controller's words for several protocols and for all.
fn protocol(word: &str) -> String {
    match word {
        "all" => "any".to_owned(),
        "tcp_udp" => "tcp,udp".to_owned(),
        other => other.to_owned(),
    }
}

/// One side of a policy.
fn endpoint(beside: &Beside, side: &Value, group: &Value) -> Option<Value> {
    let is = |name: &str| side.get(name) == Some(&Value::Bool(true));
    let (word, names, is_negated) = match text(side, "matching_target").as_str() {
        "" | "ANY" => return Some(json!({ "any": true })),
        "IP" if group.is_object() => ("groups", vec![text(group, "name")], is("match_opposite_ips")),
        "IP" => ("addresses", texts(side, "ips"), is("match_opposite_ips")),
        "NETWORK" => {
            let name = |id: String| beside.of_id(&id).map_or(id, |network| network.name.clone());
            let names = texts(side, "network_ids").into_iter().map(name).collect();
            ("networks", names, is("match_opposite_networks"))
        }
        "CLIENT" => ("addresses", texts(side, "client_macs"), false),
        "MAC" => ("addresses", texts(side, "macs"), false),
        _ => return None,
    };
    let mut out = json!({ word: known(names)? });
    if is_negated {
        out["negated"] = json!(true);
    }
    Some(out)
}

/// Ports, or the name of the group that has them.
fn ports(side: &Value, group: &Value) -> Option<Value> {
    if group.is_object() {
        return known(vec![text(group, "name")]);
    }
    let told = text(side, "port");
    let all = told.split(',').map(str::trim).filter(|port| !port.is_empty() && *port != "0");
    known(all.map(str::to_owned).collect())
}

/// What the model has no word for.
fn partial(row: &Value) -> Vec<String> {
    let is = |of: &Value, name: &str| of.get(name) == Some(&Value::Bool(true));
    let is_other = |side: &str, words: &[&str]| words.contains(&text(&row[side], "matching_target").as_str());
    [
        ("schedule", !matches!(text(&row["schedule"], "mode").as_str(), "" | "ALWAYS")),
        ("state", !matches!(text(row, "connection_state_type").as_str(), "" | "ALL")),
        ("ipsec", is(row, "match_ip_sec")),
        ("protocol-negated", is(row, "match_opposite_protocol")),
        (
            "ports-negated",
            is(&row["source"], "match_opposite_ports") || is(&row["destination"], "match_opposite_ports"),
        ),
        ("application", is_other("destination", &["APP", "APP_CATEGORY", "WEB"])),
        ("region", is_other("source", &["REGION"]) || is_other("destination", &["REGION"])),
    ]
    .into_iter()
    .filter(|(_, is_asked)| *is_asked)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// A rule of a list names where it stands: `LAN_IN`, `WANv6_LOCAL`.
fn of_list(beside: &Beside, row: &Value, fields: &mut Map<String, Value>) {
    let set_of = text(row, "ruleset");
    let (side, way) = set_of.split_once('_').unwrap_or((&set_of, ""));
    let side = side.strip_suffix("v6");
    let version = if side.is_some() { "6" } else { "4" };
    let side = side.unwrap_or_else(|| set_of.split_once('_').map_or("", |(side, _)| side)).to_owned();
    set(fields, "ip_version", Some(json!(version)));
    let direction = match way {
        "IN" | "LOCAL" => "in",
        "OUT" => "out",
        _ => "unknown",
    };
    set(fields, "direction", Some(json!(direction)));
    set(fields, if direction == "out" { "to" } else { "from" }, known(vec![side]));
    let own = if version == "6" { "protocol_v6" } else { "protocol" };
    set(fields, "protocol", said(protocol(&text(row, own))));
    for (name, prefix, joined) in
        [("source", "src", "source-groups"), ("destination", "dst", "destination-groups")]
    {
        let groups: Vec<String> = list(&row["&"], joined).iter().map(|group| text(group, "name")).collect();
        let network = beside.of_id(&text(row, &format!("{prefix}_networkconf_id")));
        let address = text(row, &format!("{prefix}_address{}", if version == "6" { "_ipv6" } else { "" }));
        let side = match (groups.is_empty(), network, address.is_empty()) {
            (false, _, _) => json!({ "groups": groups }),
            (true, Some(network), _) => json!({ "networks": [network.name] }),
            (true, None, false) => json!({ "addresses": [address] }),
            (true, None, true) => json!({ "any": true }),
        };
        fields.insert(name.to_owned(), side);
        let ports = text(row, &format!("{prefix}_port"));
        let all = ports.split(',').map(str::trim).filter(|port| !port.is_empty());
        set(fields, &format!("{name}_ports"), known(all.map(str::to_owned).collect()));
    }
    let is = |name: &str| row.get(name) == Some(&Value::Bool(true));
    let has_state = ["state_new", "state_established", "state_invalid", "state_related"].into_iter().any(is);
    let asked = [
        ("state", has_state),
        ("ipsec", !text(row, "ipsec").is_empty()),
        ("mac", !text(row, "src_mac_address").is_empty()),
    ];
    let names = asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name.to_owned());
    set(fields, "partial", known(names.collect()));
}

/// Fills source and destination of a port forward or a translation.
pub(super) fn translation(row: &Value, fields: &mut Map<String, Value>) {
    let is_said = |text: &String| !text.is_empty() && text != "any";
    if row.get("fwd").is_some() || row.get("pfwd_interface").is_some() {
        set(fields, "source", known(vec![text(row, "src")].into_iter().filter(is_said).collect()));
        let own = known(vec![text(row, "destination_ip")].into_iter().filter(is_said).collect());
        if let Some(own) = own {
            fields.entry("external").or_insert_with(|| json!({}))["addresses"] = own;
        }
        return;
    }
    let side = |of: &str| {
        let filter = &row[of];
        (text(filter, "address"), text(filter, "port"))
    };
    let ((source, source_port), (destination, destination_port)) =
        (side("source_filter"), side("destination_filter"));
    let own = (text(row, "ip_address"), text(row, "port"));
    let is_inward = text(row, "type") == "DNAT";
    let (external, internal) =
        if is_inward { ((destination, destination_port), own) } else { (own, (source.clone(), source_port)) };
    if is_inward {
        set(fields, "source", known(vec![source].into_iter().filter(is_said).collect()));
    }
    for (name, (address, port)) in [("external", external), ("internal", internal)] {
        let mut out = Map::new();
        set(&mut out, "addresses", known(vec![address].into_iter().filter(is_said).collect()));
        set(&mut out, "ports", known(vec![port].into_iter().filter(is_said).collect()));
        if !out.is_empty() {
            fields.insert(name.to_owned(), Value::Object(out));
        }
    }
}

/// The items of a list of the official API; groups have texts.
pub(super) fn group(row: &Value, fields: &mut Map<String, Value>) {
    if row.get("group_type").is_some() {
        return;
    }
    let one = |item: &Value| match (text(item, "value"), text(item, "start"), text(item, "stop")) {
        (value, _, _) if !value.is_empty() => value,
        (_, start, stop) if !start.is_empty() && !stop.is_empty() => format!("{start}-{stop}"),
        _ => String::new(),
    };
    let members: Vec<String> =
        list(row, "items").iter().map(one).filter(|member| !member.is_empty()).collect();
    set(fields, "members", Some(json!(members)));
}
