//! Interfaces of nodes, and networks of the SDN.

use serde_json::{Map, Value, json};

use super::{parts, rows, text_of, vlan_id};

/// Addresses of both versions of the Internet Protocol.
pub(super) fn interface(row: &Value, fields: &mut Map<String, Value>) {
    let addresses: Vec<String> =
        ["cidr", "cidr6"].iter().map(|name| text_of(row, name)).filter(|text| !text.is_empty()).collect();
    if !addresses.is_empty() {
        fields.insert("addresses".to_owned(), json!(addresses));
    }
    if vlan_id(&text_of(row, "vlan-id")).is_none() {
        fields.remove("vlan_id");
    }
}

/// A network is a VLAN where its zone is of that type: the numbers of other zones are something else.
pub(super) fn vlan(row: &Value, fields: &mut Map<String, Value>) {
    let zone = &row["&"]["zone"];
    if text_of(zone, "type") == "vlan" {
        fields.extend(vlan_id(&text_of(row, "tag")).map(|id| ("vlan_id".to_owned(), json!(id))));
    }
    let subnets = rows(row, "subnets");
    let gateway = subnets.clone().map(|subnet| text_of(subnet, "gateway")).find(|text| !text.is_empty());
    fields.extend(gateway.map(|address| ("gateway".to_owned(), json!(address))));
    fields.extend(dhcp(row).map(|word| ("dhcp".to_owned(), json!(word))));
}

/// Whether the network gives addresses; none where neither its zone nor its subnets tell.
fn dhcp(row: &Value) -> Option<&'static str> {
    let (zone, subnets) = (&row["&"]["zone"], row["&"]["subnets"].as_array());
    if !zone.is_object() {
        return None;
    }
    if !serves(zone) {
        return Some("none");
    }
    let gives = subnets?.iter().any(|subnet| !ranges(subnet).is_empty());
    Some(if gives { "server" } else { "none" })
}

/// The addresses that a subnet gives; false where it gives none.
pub(super) fn pool(row: &Value, fields: &mut Map<String, Value>) -> bool {
    let ranges = ranges(row);
    if ranges.is_empty() {
        return false;
    }
    fields.insert("ranges".to_owned(), Value::Array(ranges));
    let zone = &row["&"]["zone"];
    if zone.is_object() {
        fields.insert("enabled".to_owned(), json!(serves(zone)));
    }
    true
}

/// Whether the nodes of a zone run a DHCP server.
fn serves(zone: &Value) -> bool {
    !text_of(zone, "dhcp").is_empty()
}

/// `start-address=10.0.0.100,end-address=10.0.0.200`, one or a list of them; newer versions answer their parts.
fn ranges(subnet: &Value) -> Vec<Value> {
    let one = |range: &Value| {
        let part = |name: &str| match range {
            Value::String(text) => {
                let pairs = parts(text).filter_map(|part| part.split_once('='));
                pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
            }
            other => Some(text_of(other, name)).filter(|text| !text.is_empty()),
        };
        Some(json!({ "from": part("start-address")?, "to": part("end-address")? }))
    };
    match &subnet["dhcp-range"] {
        Value::Array(ranges) => ranges.iter().filter_map(one).collect(),
        other => one(other).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_gives_no_addresses_only_where_that_is_known() {
        let zone = json!({ "type": "simple", "dhcp": "dnsmasq" });
        let subnets = json!([{ "dhcp-range": "start-address=10.0.0.100,end-address=10.0.0.200" }]);
        for (beside, word) in [
            (json!({ "zone": zone, "subnets": subnets }), Some("server")),
            (json!({ "zone": zone, "subnets": [] }), Some("none")),
            (json!({ "zone": zone, "subnets": null }), None),
            (json!({ "zone": { "type": "vlan" }, "subnets": null }), Some("none")),
            (json!({ "zone": null, "subnets": subnets }), None),
        ] {
            assert_eq!(dhcp(&json!({ "&": beside })), word, "{beside}");
        }
    }

    #[test]
    fn ranges_are_read_in_every_form_that_versions_answer() {
        let range = json!([{ "from": "10.0.0.100", "to": "10.0.0.200" }]);
        for form in [
            json!("start-address=10.0.0.100,end-address=10.0.0.200"),
            json!(["start-address=10.0.0.100,end-address=10.0.0.200"]),
            json!([{ "start-address": "10.0.0.100", "end-address": "10.0.0.200" }]),
        ] {
            assert_eq!(json!(ranges(&json!({ "dhcp-range": form }))), range);
        }
        for odd in [json!(null), json!(7), json!(""), json!("start-address=10.0.0.100"), json!([[], {}])] {
            assert!(ranges(&json!({ "dhcp-range": odd })).is_empty());
        }
    }
}
