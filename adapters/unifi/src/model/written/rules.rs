//! Rules of the gateway, port forwards, and groups.

use heddle_sdk::crud::{Asked, Expressed, refused};
use heddle_sdk::{Fault, Operation};
use serde_json::{Map, Value, json};

use super::{With, asked_text, named, texts};

const ZONE: (&str, &str) = ("firewall.zone-legacy", "zone");
const GROUP: (&str, &str) = ("firewall.group", "group");

/// A rule of zones: each side is an object of what matches.
pub(super) fn rule(with: With<'_>, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let is_of_list = asked.row.is_some_and(|row| row.get("ruleset").is_some());
    if change.operation == Operation::Delete || is_of_list {
        return Ok(());
    }
    let is_new = change.operation == Operation::Create;
    named(change, "rule");
    if let Some(protocol) = asked_text(asked, "protocol") {
        let word = match protocol {
            "any" => "all",
            "tcp,udp" => "tcp_udp",
            other => other,
        };
        change.payload.insert("protocol".to_owned(), json!(word));
    }
    for (side, zone) in [("source", "from"), ("destination", "to")] {
        let mut out = Map::new();
        match asked.fields.get(zone).map(texts) {
            None if is_new => return Err(refused(zone, "is needed: the name of one zone")),
            None => {}
            Some(zones) => {
                let [name] = zones.as_slice() else {
                    return Err(refused(zone, "is the name of one zone there"));
                };
                out.insert("zone_id".to_owned(), json!(with.id(zone, ZONE, asked.site, name)?));
            }
        }
        match asked.fields.get(side) {
            Some(endpoint) => out.extend(matching(with, asked, side, endpoint)?),
            None if is_new => out.extend([("matching_target".to_owned(), json!("ANY"))]),
            None => {}
        }
        let name = format!("{side}_ports");
        match asked.fields.get(&name).map(texts) {
            Some(ports) if !ports.is_empty() => out.extend([
                ("port_matching_type".to_owned(), json!("SPECIFIC")),
                ("port".to_owned(), json!(ports.join(","))),
            ]),
            Some(_) => out
                .extend([("port_matching_type".to_owned(), json!("ANY")), ("port".to_owned(), Value::Null)]),
            None if is_new => out.extend([("port_matching_type".to_owned(), json!("ANY"))]),
            None => {}
        }
        if !out.is_empty() {
            change.payload.insert(side.to_owned(), Value::Object(out));
        }
    }
    Ok(())
}

/// What one side asks for; what it asked for before is taken out.
fn matching(
    with: With<'_>,
    asked: &Asked<'_>,
    side: &str,
    endpoint: &Value,
) -> Result<Map<String, Value>, Fault> {
    let mut out = Map::new();
    let mut set = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
    let lists =
        ["addresses", "groups", "networks"].map(|name| endpoint.get(name).map(texts).unwrap_or_default());
    let is_negated = endpoint.get("negated") == Some(&Value::Bool(true));
    if asked.row.is_some() {
        for name in ["ips", "ip_group_id", "network_ids", "client_macs", "macs", "regions"] {
            set(name, Value::Null);
        }
    }
    match lists {
        [addresses, groups, networks] if addresses.is_empty() && groups.is_empty() && networks.is_empty() => {
            if is_negated {
                return Err(refused(side, "cannot be nothing"));
            }
            set("matching_target", json!("ANY"));
            // A source that is anything has no word for how it is named.
            let is_source = side == "source";
            if asked.row.is_some() || !is_source {
                set("matching_target_type", if is_source { Value::Null } else { json!("ANY") });
            }
        }
        [addresses, groups, networks] if groups.is_empty() && networks.is_empty() => {
            set("matching_target", json!("IP"));
            set("matching_target_type", json!("SPECIFIC"));
            set("ips", json!(addresses));
            set("match_opposite_ips", json!(is_negated));
        }
        [addresses, groups, networks] if addresses.is_empty() && networks.is_empty() => {
            let field = format!("{side}/groups");
            let [name] = groups.as_slice() else {
                return Err(refused(&field, "is one group there"));
            };
            set("matching_target", json!("IP"));
            set("matching_target_type", json!("OBJECT"));
            set("ip_group_id", json!(with.id(&field, GROUP, asked.site, name)?));
            set("match_opposite_ips", json!(is_negated));
        }
        [addresses, groups, networks] if addresses.is_empty() && groups.is_empty() => {
            let id = |name: &String| {
                let found = with.beside.of_name(name).map(|network| network.id.clone());
                found.ok_or_else(|| refused(&format!("{side}/networks"), "names no network of the site"))
            };
            let ids: Result<Vec<String>, Fault> = networks.iter().map(id).collect();
            set("matching_target", json!("NETWORK"));
            set("matching_target_type", json!("OBJECT"));
            set("network_ids", json!(ids?));
            set("match_opposite_networks", json!(is_negated));
        }
        _ => return Err(refused(side, "is either of addresses, of a group, or of networks there")),
    }
    Ok(out)
}

pub(super) fn forward(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let ports = |side: &Value| texts(&side["ports"]).join(",");
    let one = |field: &str, list: &Value| match texts(list).as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        _ => Err(refused(field, "is one there")),
    };
    if let Some(source) = asked.fields.get("source") {
        payload.insert("src".to_owned(), json!(one("source", source)?.unwrap_or_else(|| "any".to_owned())));
    }
    if let Some(side) = asked.fields.get("external") {
        let address = one("external/addresses", &side["addresses"])?;
        payload.insert("destination_ip".to_owned(), json!(address.unwrap_or_else(|| "any".to_owned())));
        payload.insert("dst_port".to_owned(), json!(ports(side)));
    }
    if let Some(side) = asked.fields.get("internal") {
        let address = one("internal/addresses", &side["addresses"])?;
        let address = address.ok_or_else(|| refused("internal/addresses", "is exactly one there"))?;
        payload.insert("fwd".to_owned(), json!(address));
        payload.insert("fwd_port".to_owned(), json!(ports(side)));
    }
    if asked.verb == "create" && !payload.contains_key("name") {
        let port = payload.get("dst_port").and_then(Value::as_str).unwrap_or_default();
        payload.insert("name".to_owned(), json!(format!("port {port}")));
    }
    Ok(())
}

/// Addresses of the two versions are groups of two types.
pub(super) fn group(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let members = asked.fields.get("members").map(texts);
    if let Some(members) = &members {
        change.payload.insert("group_members".to_owned(), json!(members));
    }
    let word = asked_text(asked, "type").or((change.operation == Operation::Create).then_some("addresses"));
    let is_sixth = members.iter().flatten().any(|member| member.contains(':'));
    let kind = match word {
        None => return Ok(()),
        Some("addresses") if is_sixth => "ipv6-address-group",
        Some("addresses") => "address-group",
        Some("ports") => "port-group",
        Some(_) => return Err(refused("type", "can be addresses or ports")),
    };
    if change.operation == Operation::Create {
        change.payload.insert("group_type".to_owned(), json!(kind));
        return Ok(());
    }
    let own = asked.row.map(|row| crate::model::text(row, "group_type")).unwrap_or_default();
    if change.operation == Operation::Update && own != kind {
        return Err(refused("type", "stays as it is there; make a new group and delete this one"));
    }
    Ok(())
}
