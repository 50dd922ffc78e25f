//! Changes in the words of the model, where the bindings of `model.json` do not say everything.

use heddle_sdk::crud::{Asked, Expressed, Vendor, every_object, refused};
use heddle_sdk::{Fault, Host, ObjectRef, Operation, fault};
use serde_json::{Map, Value, json};

use super::{text, texts};

/// Completes what a change is in the controller's own features.
pub(crate) fn expressed(
    vendor: &dyn Vendor,
    host: &dyn Host,
    asked: &Asked<'_>,
    changes: &mut Vec<Expressed>,
) -> Result<(), Fault> {
    let Some(change) = changes.first_mut() else { return Ok(()) };
    match asked.kind {
        "port" => port(asked, changes),
        "ssid" => ssid(vendor, host, asked, change),
        "radio" => radio(asked, change),
        "route" => route(asked, change),
        "dhcp-reservation" => reservation(vendor, host, asked, change),
        "nat-rule" => forward(asked, &mut change.payload),
        "address-group" => group(asked, change),
        _ => Ok(()),
    }
}

/// Name, state and power of a port are features of their own.
fn port(asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let first = changes.remove(0);
    let mut names = first.payload.clone();
    if names.remove("name").is_some() {
        changes.push(first);
    }
    let mut add = |feature: &str, field: &str, value: Value| {
        let mut payload = names.clone();
        payload.insert(field.to_owned(), value);
        let feature = format!("omada.switch.{feature}");
        changes.push(Expressed { feature, operation: Operation::Update, payload });
    };
    if let Some(enabled) = asked.fields.get("enabled") {
        add("port-state", "status", json!(u8::from(enabled == true)));
    }
    if let Some(enabled) = asked.fields.get("poe").and_then(|poe| poe.get("enabled")) {
        let supported = asked.row.is_some_and(|row| !row["&"]["poe"].is_null());
        if !supported {
            return Err(refused("poe/enabled", "is nothing that this port has"));
        }
        add("port-poe", "poeMode", json!(u8::from(enabled == true)));
    }
    Ok(())
}

fn ssid(
    vendor: &dyn Vendor,
    host: &dyn Host,
    asked: &Asked<'_>,
    change: &mut Expressed,
) -> Result<(), Fault> {
    if asked.verb == "create" {
        let groups = every_object(vendor, host, "wifi.wlan-group", asked.site)?;
        let [(_, group)] = groups.as_slice() else {
            let message = format!("the site has {} groups of networks; stage omada.wifi.ssid", groups.len());
            return Err(fault::invalid(message));
        };
        change.payload.insert("wlan".to_owned(), json!(text(group, "name")));
    }
    let fields = asked.fields;
    secure(fields, &mut change.payload)?;
    if let Some(bands) = fields.get("bands") {
        let bit = |band: &String| match band.as_str() {
            "2.4" => 1,
            "5" => 2,
            _ => 4,
        };
        let bits: u64 = texts(&json!({ "bands": bands }), "bands").iter().map(bit).sum();
        change.payload.insert("band".to_owned(), json!(bits));
    }
    match fields.get("vlan_id") {
        None => {}
        Some(Value::Null) => drop(change.payload.insert("vlanEnable".to_owned(), json!(false))),
        Some(vlan) => {
            change.payload.insert("vlanEnable".to_owned(), json!(true));
            let custom = json!({ "customMode": 1, "vlanPoolIds": vlan.to_string() });
            change.payload.insert("vlanSetting".to_owned(), json!({ "mode": 1, "customConfig": custom }));
        }
    }
    Ok(())
}

/// How stations prove themselves: a passphrase goes with the versions that have one.
fn secure(fields: &Map<String, Value>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let passphrase = fields.get("passphrase").filter(|value| !value.is_null());
    let version = match fields.get("security").and_then(Value::as_str) {
        None => None,
        Some("open") => {
            payload.insert("security".to_owned(), json!(0));
            return if passphrase.is_some() {
                Err(refused("passphrase", "is nothing that an open network has"))
            } else {
                Ok(())
            };
        }
        Some("wpa2-psk") => Some(2),
        Some("wpa3-sae") => Some(4),
        Some(_) => {
            return Err(refused(
                "security",
                "can be open, wpa2-psk or wpa3-sae; for others stage omada.wifi.ssid",
            ));
        }
    };
    let mut setting = Map::new();
    if let Some(version) = version {
        payload.insert("security".to_owned(), json!(3));
        setting.extend([
            ("versionPsk".to_owned(), json!(version)),
            ("encryptionPsk".to_owned(), json!(3)),
            ("gikRekeyPskEnable".to_owned(), json!(false)),
        ]);
    }
    if let Some(passphrase) = passphrase {
        setting.insert("securityKey".to_owned(), passphrase.clone());
    }
    if !setting.is_empty() {
        payload.insert("pskSetting".to_owned(), Value::Object(setting));
    }
    Ok(())
}

/// A radio is a part of what is set of its access point.
fn radio(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let part = asked.row.map(|row| text(row, "@")).unwrap_or_default();
    let mut setting = Map::new();
    if let Some(enabled) = asked.fields.get("enabled") {
        setting.insert("radioEnable".to_owned(), enabled.clone());
    }
    if let Some(level) = asked.fields.get("power_level").and_then(Value::as_str) {
        let levels = ["low", "medium", "high", "custom", "auto"];
        let level = levels.iter().position(|known| *known == level);
        let level = level.ok_or_else(|| refused("power_level", "can be low, medium, high or auto"))?;
        setting.insert("txPowerLevel".to_owned(), json!(level));
    }
    change.payload.insert(part, Value::Object(setting));
    Ok(())
}

/// A route of the vendor's may have several destinations, each of which is one of the model's.
fn route(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    if asked.fields.get("type").is_some_and(|kind| kind != "unicast") {
        return Err(refused("type", "can be unicast there"));
    }
    let known = asked.row.and_then(|row| row["^"]["destinations"].as_array()).map_or(1, Vec::len);
    if known > 1 {
        return Err(fault::invalid(format!(
            "the route has {known} destinations, which would all be changed; stage omada.routing.static-route"
        )));
    }
    if let Some(destination) = asked.fields.get("destination") {
        if asked.row.is_some_and(|row| row.get("@") != Some(destination)) {
            return Err(refused("destination", "names the route there; make a new one and delete this one"));
        }
        change.payload.insert("destinations".to_owned(), json!([destination]));
    }
    Ok(())
}

/// A reservation is in a network, which the controller names by an id.
fn reservation(
    vendor: &dyn Vendor,
    host: &dyn Host,
    asked: &Asked<'_>,
    change: &mut Expressed,
) -> Result<(), Fault> {
    if let Some(mac) = asked.fields.get("mac").and_then(Value::as_str) {
        let own = mac.replace(':', "-").to_uppercase();
        if change.operation == Operation::Update && change.payload.get("mac") != Some(&json!(own)) {
            return Err(refused("mac", "names the reservation there; make a new one and delete this one"));
        }
        change.payload.insert("mac".to_owned(), json!(own));
    }
    if change.operation == Operation::Delete {
        return Ok(());
    }
    let networks = match (asked.fields.get("scope"), change.operation) {
        (None, Operation::Update) => return Ok(()),
        _ => every_object(vendor, host, "switch.network", asked.site)?,
    };
    let scope = asked.fields.get("scope").and_then(Value::as_str);
    let meant = networks.iter().filter(|(_, network)| match scope {
        Some(scope) => text(network, "name") == scope,
        None => text(network, "purpose") == "1",
    });
    let meant: Vec<&(ObjectRef, Value)> = meant.collect();
    let [(network, _)] = meant.as_slice() else {
        return Err(refused("scope", "is needed: the name of a network with DHCP"));
    };
    let id = network.locators.first().map(|locator| &locator.value);
    change.payload.insert("netId".to_owned(), json!(id));
    Ok(())
}

fn forward(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    if asked.fields.get("external").is_some_and(|side| !texts(side, "addresses").is_empty()) {
        return Err(refused("external/addresses", "are those of the gateway's ports there"));
    }
    let ports = |side: &Value| json!(texts(side, "ports").join(","));
    if let Some(side) = asked.fields.get("external") {
        payload.insert("externalPort".to_owned(), ports(side));
    }
    if let Some(side) = asked.fields.get("internal") {
        let addresses = texts(side, "addresses");
        let [address] = addresses.as_slice() else {
            return Err(refused("internal/addresses", "is exactly one there"));
        };
        payload.insert("forwardIp".to_owned(), json!(address));
        payload.insert("forwardPort".to_owned(), ports(side));
    }
    Ok(())
}

/// Groups of addresses; the type is a part of what names a group.
fn group(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    if asked.fields.get("type").is_some_and(|kind| kind != "addresses") {
        return Err(refused("type", "can be addresses; for others stage omada.profiles.group"));
    }
    if change.operation == Operation::Create {
        change.payload.insert("type".to_owned(), json!(0));
    }
    let Some(members) = asked.fields.get("members") else { return Ok(()) };
    if change.payload.get("type").is_some_and(|kind| *kind != json!(0)) {
        return Err(refused(
            "members",
            "are those of a group of IPv4 addresses; for others stage omada.profiles.group",
        ));
    }
    let list = texts(&json!({ "members": members }), "members").into_iter().map(|member| {
        let (address, length) = member.split_once('/').unwrap_or((&member, "32"));
        let length: u8 = length.parse().ok().filter(|length| (1..=32).contains(length))?;
        address.parse::<std::net::Ipv4Addr>().ok()?;
        Some(json!({ "ip": address, "mask": length }))
    });
    let list: Option<Vec<Value>> = list.collect();
    let list = list.ok_or_else(|| refused("members", "are IPv4 addresses and prefixes there"))?;
    change.payload.insert("ipList".to_owned(), json!(list));
    Ok(())
}
