//! Rules of the gateway, the switches and the access points, and the groups that they use.

use serde_json::{Map, Value, json};

use super::{known, list, mac, set, text, texts};

/// The number that stands for all protocols.
const ALL_PROTOCOLS: &str = "256";
/// The built-in group of every address.
const ANY: &str = "IPGroup_Any";
const SSID: &str = "4";

/// What a rule asks for. It is one for all switches, all access points or the gateway.
pub(super) fn rule(row: &Value, fields: &mut Map<String, Value>) {
    // The vendor counts from 1.
    let position = row["index"].as_u64().and_then(|index| index.checked_sub(1));
    fields.remove("position");
    set(fields, "position", position.map(Value::from));
    set(fields, "protocol", protocol(&texts(row, "protocols")));
    let (mut from, to) = zones(&row["direction"]);
    if text(row, "sourceType") == SSID {
        from.extend(names(row, "ssids-from", "ssidId", "name", "sourceIds"));
    } else {
        set(fields, "source", endpoint(row, "from", "sourceType", "sourceIds"));
    }
    set(fields, "destination", endpoint(row, "to", "destinationType", "destinationIds"));
    set(fields, "from", known(from));
    set(fields, "to", known(to));
    set(fields, "partial", known(partial(row)));
}

/// Where a rule of the gateway holds.
fn zones(direction: &Value) -> (Vec<String>, Vec<String>) {
    let is_set = |name: &str| direction[name] == true;
    let has = |name: &str| list(direction, name).next().is_some();
    let of = |all: &[(&str, bool)]| -> Vec<String> {
        all.iter().filter(|(_, is_meant)| *is_meant).map(|(name, _)| (*name).to_owned()).collect()
    };
    let is_of_lan = is_set("lanToWan") || is_set("lanToLan");
    (
        of(&[("LAN", is_of_lan), ("WAN", has("wanInIds")), ("VPN", has("vpnInIds"))]),
        of(&[("WAN", is_set("lanToWan")), ("LAN", is_set("lanToLan"))]),
    )
}

/// Protocols by their numbers.
fn protocol(numbers: &[String]) -> Option<Value> {
    if numbers.iter().any(|number| number == ALL_PROTOCOLS) {
        return Some(json!("any"));
    }
    let name = |number: &String| match number.as_str() {
        "1" => "icmp".to_owned(),
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        "58" => "icmpv6".to_owned(),
        other => other.to_owned(),
    };
    let names = numbers.iter().map(name).collect::<Vec<_>>().join(",");
    // A longer list is not one protocol in any sense.
    (!names.is_empty() && names.len() <= 40).then(|| json!(names))
}

/// A side of a rule: networks or groups by their names.
fn endpoint(row: &Value, side: &str, kind: &str, ids: &str) -> Option<Value> {
    let (word, joined, id) = match text(row, kind).as_str() {
        "0" => ("networks", format!("networks-{side}"), "id"),
        "1" | "2" | "6" | "7" | "10" => ("groups", format!("groups-{side}"), "groupId"),
        SSID => ("networks", format!("ssids-{side}"), "ssidId"),
        _ => return None,
    };
    let wanted = texts(row, ids);
    if wanted.iter().any(|wanted| wanted == ANY) {
        return Some(json!({ "any": true }));
    }
    let names = names(row, &joined, id, "name", ids);
    known(names).map(|names| json!({ word: names }))
}

/// The names of objects that a rule has the ids of; the id of one that is gone.
fn names(row: &Value, joined: &str, id: &str, name: &str, ids: &str) -> Vec<String> {
    let found = list(&row["&"], joined);
    let name_of = |wanted: String| {
        let own = found.clone().find(|one| text(one, id) == wanted).map(|one| text(one, name));
        own.filter(|name| !name.is_empty()).unwrap_or(wanted)
    };
    texts(row, ids).into_iter().map(name_of).collect()
}

/// What the model has no word for.
fn partial(row: &Value) -> Vec<String> {
    let is_bound = matches!(text(row, "bindingType").as_str(), "1" | "2");
    let has = |name: &str| list(row, name).next().is_some();
    let is_limited = has("customAclDevices") || has("customAclOsws") || has("customAclStacks");
    [
        ("state", text(row, "stateMode") == "1"),
        ("schedule", !text(row, "timeRangeId").is_empty()),
        ("ether-type", row["etherType"]["enable"] == true),
        ("ports", is_bound),
        ("devices", is_limited),
    ]
    .into_iter()
    .filter(|(_, is_asked)| *is_asked)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// Whom a port is forwarded for.
pub(super) fn forward(row: &Value, fields: &mut Map<String, Value>) {
    if text(row, "from") == "1" {
        set(fields, "source", known(texts(row, "limitedAddresses")));
    }
}

/// The members of a group, whatever they are.
pub(super) fn group(row: &Value, fields: &mut Map<String, Value>) {
    let pair = |entry: &Value, first: &str, mark: char, second: &str| {
        let (first, second) = (text(entry, first), text(entry, second));
        if second.is_empty() || first.is_empty() { first } else { format!("{first}{mark}{second}") }
    };
    let mut members: Vec<String> = Vec::new();
    members.extend(list(row, "ipList").map(|entry| pair(entry, "ip", '/', "mask")));
    members.extend(list(row, "ipv6List").map(|entry| pair(entry, "ip", '/', "prefix")));
    members.extend(list(row, "macAddressList").filter_map(|entry| mac(&text(entry, "macAddress"))));
    members.extend(list(row, "domainNamePort").map(|entry| pair(entry, "address", ':', "port")));
    members.extend(list(row, "portMaskList").map(|entry| pair(entry, "port", '/', "mask")));
    for name in ["portList", "countryList", "domainName"] {
        members.extend(texts(row, name));
    }
    members.retain(|member| !member.is_empty());
    set(fields, "members", Some(json!(members)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_named_by_their_numbers() {
        let of = |numbers: &[&str]| {
            protocol(&numbers.iter().map(|number| (*number).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["256"]), Some(json!("any")));
        assert_eq!(of(&["6", "17"]), Some(json!("tcp,udp")));
        assert_eq!(of(&["47"]), Some(json!("47")));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["100"; 20]), None);
    }

    #[test]
    fn groups_have_members_of_every_type() {
        for (row, members) in [
            (json!({ "ipList": [{ "ip": "10.0.0.0", "mask": 8 }, {}] }), json!(["10.0.0.0/8"])),
            (json!({ "ipv6List": [{ "ip": "fe80::", "prefix": 64 }] }), json!(["fe80::/64"])),
            (
                json!({ "macAddressList": [{ "macAddress": "AA-BB-CC-00-11-22" }, 7] }),
                json!(["aa:bb:cc:00:11:22"]),
            ),
            (
                json!({ "ipList": [{ "ip": "10.0.0.1", "mask": 32 }], "portList": ["443", "80-90"] }),
                json!(["10.0.0.1/32", "443", "80-90"]),
            ),
            (
                json!({ "domainNamePort": [{ "address": "a.example", "port": "443" }] }),
                json!(["a.example:443"]),
            ),
            (json!({ "countryList": ["DE"] }), json!(["DE"])),
            (json!({}), json!([])),
        ] {
            let mut fields = Map::new();
            group(&row, &mut fields);
            assert_eq!(fields["members"], members, "{row}");
        }
    }
}
