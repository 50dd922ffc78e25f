//! Payloads for every feature: made from the facts of the fields, and by hand where fields depend on each other.

use heddle_sdk::testing::conformance::{Sample, schema};
use heddle_sdk::{Adapter as _, FaultExt, Listing, Operation, Stage};
use serde_json::{Map, Value, json};

use super::device::{Device, facts, package};
use super::every::short;
use super::{change, finished, plan, run};
use crate::Opnsense;

/// Values that types or names of fields take; the first that fits the schema is used.
const CANDIDATES: [&str; 14] = [
    "sample",
    "192.0.2.0/24",
    "8080",
    "a.example",
    "https://a.example/x",
    "192.0.2.7",
    "10",
    "02:00:00:00:00:77",
    "sample@a.example",
    "00:11:22",
    "0640",
    "2001:db8::/48",
    "1s",
    "a1",
];

/// Fields that need more than their schema says, by feature.
fn by_hand(feature: &str) -> Value {
    match feature {
        "firewall.alias" => json!({ "name": "sample", "type": "host", "content": ["192.0.2.7"] }),
        "firewall.rule" => json!({ "description": "sample", "interface": ["lan"] }),
        "kea.dhcp4-reservation" => {
            json!({ "subnet": "192.168.1.0/24", "hw_address": "02:00:00:00:00:77", "ip_address": "192.168.1.77",
                "!update": { "hostname": "b.example" }, "!other": { "description": "sample" } })
        }
        "unbound.host-override" => {
            json!({ "hostname": "sample", "domain": "a.example", "rr": "A", "server": "192.0.2.7" })
        }
        "dhcrelay.destination" => json!({ "server": "192.0.2.8", "!update": { "server": "192.0.2.9" } }),
        "dhcrelay.relay" => json!({ "interface": "lan" }),
        "kea.dhcp4-peer" | "kea.dhcp6-peer" => json!({ "!update": { "role": "standby" } }),
        "freeradius.avpair" => json!({ "operator": "==" }),
        "freeradius.lease" => json!({ "ip": "192.0.2.7", "!update": { "ip": "192.0.2.8" } }),
        "haproxy.errorfile" => json!({ "code": "x503" }),
        "openvpn.static-key" => json!({ "!update": { "mode": "auth" }, "!other": null }),
        "routing.gateway-group" => json!({ "!update": { "descr": "sample" } }),
        "interfaces.loopback" => json!({ "!update": { "deviceId": 7 } }),
        "interfaces.lagg" => json!({ "members": ["igb2", "igb3"] }),
        "interfaces.vxlan" => json!({ "!update": { "vxlanid": 77 } }),
        "interfaces.vip" => {
            json!({ "descr": "sample", "mode": "ipalias", "network": "192.0.2.9/32", "!update": { "network": "192.0.2.10/32" } })
        }
        "auth.privilege" => {
            json!({ "id": "page-diagnostics", "!update": { "users": ["root"] }, "!other": { "groups": ["admins"] } })
        }
        "ids.ruleset" => {
            json!({ "filename": "opnsense.test.rules", "!update": { "enabled": false }, "!other": null })
        }
        "interfaces.assignment" => json!({ "if": "igb2", "lock": false, "!update": { "descr": "sample" } }),
        "nat.outbound-mode" => json!({ "!update": { "general_snat_mode": "hybrid" } }),
        "nat.outbound" => json!({ "!mode": "hybrid" }),
        "routing.static-route" => json!({ "network": "192.0.2.0/24", "gateway": "WAN_GW" }),
        _ => json!({}),
    }
}

pub(super) fn feature_of(kind: &str) -> Option<&'static Value> {
    let mut features = package().features().iter();
    features.find(|feature| feature["kind"] == kind && feature["binding"].get("create").is_some())
}

fn kind_of(feature: &Value) -> &'static Value {
    package().kind(feature["kind"].as_str().unwrap())
}

/// A new object, or settings, as the firewall shows it; null where it shows none.
fn template(device: &Device, kind: &Value) -> Value {
    let get = &kind["get"];
    let Some(path) = get["template"].as_str().or(get["path"].as_str()) else { return Value::Null };
    let answer = crate::answer::read(&device.host(), path).unwrap_or_default();
    answer.pointer(get["item"].as_str().unwrap()).cloned().unwrap_or_default()
}

/// The ids that the firewall offers for a field.
fn choices(device: &Device, kind: &Value, field: &str) -> Vec<String> {
    let object = template(device, kind);
    let place = kind["fields"][field]["at"].as_str().unwrap_or(field);
    let found =
        object.get(place).or_else(|| place.split('.').try_fold(&object, |value, part| value.get(part)));
    let named = found.and_then(Value::as_object).into_iter().flatten();
    named.map(|(id, _)| id.clone()).filter(|id| !id.is_empty()).collect()
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// The facts of a field of a feature.
fn fact<'f>(kind: &Value, feature: &Value, field: &str) -> Option<&'f Value> {
    let place = kind["fields"][field]["at"].as_str().unwrap_or(field);
    let binding = &feature["binding"];
    let update = binding["create"]["path"].as_str().or(binding["update"]["path"].as_str())?;
    let parts: Vec<&str> = update.split('/').collect();
    let command = facts()["controllers"].get(parts[2..4].join("/"))?["commands"].get(parts[4])?;
    let fields = facts()["fields"].get(command["fields"].as_str()?)?.as_array()?;
    fields.iter().find(|known| known["name"] == place)
}

/// Values of a type; all that it takes, where some are named.
fn by_type(kind: &str) -> &'static [&'static str] {
    match kind {
        "network" | "network-or-alias" | "NetworkMappedField" => &["192.0.2.0/24", "198.51.100.0/24"],
        "port" | "PortMappedField" => &["8080", "8081"],
        "hostname" | "HostField" | "RemoteHostField" => &["a.example", "b.example"],
        "mac" => &["02:00:00:00:00:77", "02:00:00:00:00:78"],
        "base64" => {
            &["MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
        }
        "email" => &["sample@a.example", "other@a.example"],
        "url" => &["https://a.example/x", "https://b.example/x"],
        "AliasNameField" | "GroupNameField" => &["sample", "other"],
        "KeaPoolsField" => &["192.0.2.10-192.0.2.20"],
        "RangeAddressField" | "LinkAddressField" | "IKEAddressField" => &["192.0.2.7", "192.0.2.8"],
        "VipNetworkField" => &["192.0.2.9"],
        "VlanInterfaceField" => &["igb2", "igb3"],
        "LaggInterfaceField" | "DeviceField" => &["igb2"],
        "VipInterfaceField" | "BridgeMemberField" => &["lan", "opt1"],
        "GatewayGroupItemField" => &["WAN_GW"],
        "PrivField" => &["page-all"],
        _ => &[],
    }
}

/// A value for a field; `nth` asks for another one.
fn value(device: &Device, feature: &Value, field: &str, schema: &Value, nth: usize) -> Option<Value> {
    let kind = kind_of(feature);
    let binding = &kind["fields"][field];
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let text = |schema: &Value| -> Option<String> {
        if binding["choice"] == true && binding["open"] != true {
            let known = choices(device, kind, field);
            if !known.is_empty() || binding.get("of").is_some() {
                return known.get(nth.min(known.len().saturating_sub(1))).cloned();
            }
        }
        if let Some(options) = schema["enum"].as_array() {
            let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
            return options.get(nth.min(options.len() - 1)).map(|option| (*option).to_owned());
        }
        let of_type =
            fact(kind, feature, field).map_or(&[][..], |fact| by_type(fact["type"].as_str().unwrap()));
        let all = if of_type.is_empty() { &CANDIDATES[..] } else { of_type };
        let fitting: Vec<&&str> = all.iter().filter(|text| is_valid(schema, &json!(text))).collect();
        fitting.get(nth.min(fitting.len().saturating_sub(1))).map(|text| (**text).to_owned())
    };
    match *types.first()? {
        "boolean" => Some(json!(nth.is_multiple_of(2))),
        "integer" => {
            let low = schema["minimum"].as_i64().unwrap_or(1);
            Some(json!(low + i64::try_from(nth).unwrap()))
        }
        "array" => text(&schema["items"]).map(|text| json!([text])),
        _ => text(schema).map(Value::from),
    }
}

/// Makes what a feature's fields refer to, where the firewall has none.
fn provide(device: &Device, feature: &Value, needed: &[&str], depth: usize) -> Result<(), String> {
    let kind = kind_of(feature);
    for field in needed {
        let of = kind["fields"][*field]["of"].as_array().cloned().unwrap_or_default();
        let Some(first) = of.first().and_then(Value::as_str) else { continue };
        if !choices(device, kind, field).is_empty() || depth > 3 {
            continue;
        }
        let other = feature_of(first).ok_or_else(|| format!("no feature makes a '{first}'"))?;
        let sample = made(device, other, depth + 1)?;
        let planned =
            plan(device, &change(short(other), Operation::Create, &sample.create)).map_err(|fault| {
                format!("needs '{first}': {} {:?}", fault.info().message, fault.info().fields)
            })?;
        run(device, Stage::Apply, &planned).map_err(|fault| {
            format!("needs '{first}': {} {:?}", fault.info().message, fault.info().fields)
        })?;
    }
    Ok(())
}

fn made(device: &Device, feature: &Value, depth: usize) -> Result<Sample, String> {
    let keys: Vec<&str> =
        feature["natural-key"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let hand = by_hand(short(feature));
    let widest = schema(feature, "create").or(schema(feature, "update")).unwrap();
    let properties = widest["properties"].as_object().unwrap();
    let required = |word: &str| -> Vec<&str> {
        let schema = schema(feature, word);
        schema
            .and_then(|schema| schema["required"].as_array())
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let needed = required("create");
    provide(device, feature, &needed, depth)?;
    if let Some(mode) = hand.get("!mode") {
        // Rules are hidden in the mode that a firewall starts with.
        let payload = json!({ "general_snat_mode": mode });
        let planned = plan(device, &change("nat.outbound-mode", Operation::Update, &payload)).unwrap();
        run(device, Stage::Apply, &planned).unwrap();
    }
    let mut create = Map::new();
    for field in &needed {
        let value =
            hand.get(*field).cloned().or_else(|| value(device, feature, field, &properties[*field], 0));
        create.insert((*field).to_owned(), value.ok_or_else(|| format!("no value for '{field}'"))?);
    }
    for (field, value) in hand.as_object().unwrap() {
        if !field.starts_with('!') {
            create.insert(field.clone(), value.clone());
        }
    }
    if needed.is_empty() {
        for (name, value) in first_key(device, feature, &keys) {
            create.entry(name).or_insert(value);
        }
    }
    let key: Map<String, Value> = create
        .iter()
        .filter(|(name, _)| keys.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let taken = create.clone();
    let mut updates = changeable(device, feature, properties, &keys, &taken);
    let first = hand.get("!update").cloned().or_else(|| updates.next());
    let first = match first {
        None if schema(feature, "update").is_some() => return Err("nothing to update".to_owned()),
        first => first.unwrap_or_else(|| json!({})),
    };
    let with_key = |fields: Value| {
        let mut all = key.clone();
        all.extend(fields.as_object().unwrap().clone());
        Value::Object(all)
    };
    let other = hand.get("!other").map(|other| Some(other.clone()).filter(|other| !other.is_null()));
    let other = other.unwrap_or_else(|| {
        updates.find(|other| other.as_object().unwrap().keys().ne(first.as_object().unwrap().keys()))
    });
    Ok(Sample {
        create: Value::Object(create),
        update: Some(with_key(first)),
        other: other.map(with_key),
        delete: Value::Object(key.clone()),
    })
}

/// The natural key of the first object, where a feature cannot make one.
pub(super) fn first_key(device: &Device, feature: &Value, keys: &[&str]) -> Map<String, Value> {
    let kind = feature["kind"].as_str().unwrap();
    let page = Opnsense::list_objects(&device.host(), &Listing::of(kind, 10)).unwrap();
    let Some(first) = page.items.first() else { return Map::new() };
    let body: Value = serde_json::from_str(&first.body).unwrap();
    keys.iter().map(|name| ((*name).to_owned(), body[*name].clone())).collect()
}

/// Single fields that an update can give another value, those first that depend on nothing.
fn changeable<'a>(
    device: &'a Device,
    feature: &'a Value,
    properties: &'a Map<String, Value>,
    keys: &'a [&str],
    create: &'a Map<String, Value>,
) -> impl Iterator<Item = Value> + 'a {
    let kind = kind_of(feature);
    let free = move |name: &str| {
        let binding = &kind["fields"][name];
        let is_plain =
            binding.get("of").is_none() && binding["unread"] != true && binding["generated"] != true;
        is_plain && !keys.contains(&name)
    };
    let mut names: Vec<&String> = properties.keys().filter(|name| free(name)).collect();
    let rank = move |name: &str| match name {
        "descr" | "description" | "comment" => 0,
        _ if kind["fields"][name] == "flag" => 1,
        _ if kind["fields"][name]["choice"] == true => 3,
        _ => 2,
    };
    names.sort_by_key(|name| rank(name));
    let now = current(device, kind);
    names.into_iter().filter_map(move |name| {
        let is = create.get(name).cloned().or_else(|| now.get(name).cloned()).unwrap_or_default();
        let tries = (0..3).filter_map(|nth| value(device, feature, name, &properties[name], nth));
        let other = tries.into_iter().find(|value| *value != is)?;
        Some(json!({ name: other }))
    })
}

/// What a new object, or the settings, have now.
fn current(device: &Device, kind: &Value) -> Map<String, Value> {
    let object = template(device, kind);
    let fields: std::collections::BTreeMap<String, heddle_sdk::crud::binding::Field> =
        serde_json::from_value(kind["fields"].clone()).unwrap();
    let at = |place: &str| {
        object
            .get(place)
            .or_else(|| place.split('.').try_fold(&object, |value, part| value.get(part)))
            .cloned()
    };
    fields
        .into_iter()
        .filter_map(|(name, field)| {
            let found = at(field.at.as_deref().unwrap_or(&name))?;
            let value = heddle_sdk::crud::field::decode(&field, &found);
            Some((name, value))
        })
        .collect()
}

/// Makes or does something that another feature needs.
pub(super) fn done(
    device: &Device,
    feature: &str,
    operation: Operation,
    payload: &Value,
) -> Result<(), String> {
    let told = |fault: heddle_sdk::Fault| {
        format!("needs '{feature}': {} {:?}", fault.info().message, fault.info().fields)
    };
    let planned = plan(device, &change(feature, operation, payload)).map_err(told)?;
    let outcome = run(device, Stage::Apply, &planned).map_err(told)?;
    finished(device, outcome).map_err(told)
}

/// A sample, and what it needs on the device.
pub(super) fn prepare(device: &Device, feature: &Value) -> Result<Sample, String> {
    made(device, feature, 0)
}
