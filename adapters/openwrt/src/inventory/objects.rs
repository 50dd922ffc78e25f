//! Objects by kind: live state, and sections of the configuration.

use heddle_sdk::{
    Completeness, Fault, Host, Locator, Object, ObjectPage, ObjectRef, Stability, fault, json as sdk_json,
};
use serde_json::{Value, json};

use super::{Survey, clients, devices, leases, plain, wireless_names};
use crate::features::{Naming, SECTIONS, SectionFeature, naming};
use crate::read;
use crate::rpc;

/// A kind of object that can be read.
pub(crate) struct Kind {
    pub(crate) id: &'static str,
    area: &'static str,
    title: &'static str,
}

impl Kind {
    pub(crate) fn describe(&self) -> Value {
        json!({ "id": self.id, "area": self.area, "title": self.title })
    }
}

const fn kind(id: &'static str, area: &'static str, title: &'static str) -> Kind {
    Kind { id, area, title }
}

pub(crate) const KINDS: &[Kind] = &[
    kind("system", "base", "System"),
    kind("network.interface", "base", "Network interfaces"),
    kind("network.vlan", "base", "VLANs"),
    kind("network.device", "base", "Network devices"),
    kind("wireless.client", "base", "Wireless clients"),
    kind("neighbour", "base", "Neighbours"),
    kind("firewall.rule", "firewall", "Firewall rules"),
    kind("firewall.redirect", "firewall", "Port forwards"),
    kind("firewall.zone", "firewall", "Firewall zones"),
    kind("firewall.forwarding", "firewall", "Forwardings"),
    kind("firewall.defaults", "firewall", "Firewall defaults"),
    kind("dhcp.lease", "dhcp", "DHCP leases"),
    kind("dhcp.pool", "dhcp", "DHCP pools"),
    kind("dhcp.host", "dhcp", "Static DHCP hosts"),
];

fn object(kind: &str, key: &str, body: &Value) -> Object {
    Object {
        reference: ObjectRef { kind: kind.to_owned(), site: None, key: key.to_owned(), locators: Vec::new() },
        revision: None,
        body: body.to_string(),
    }
}

/// All objects of a kind. The device has no pages, so they are cut here.
pub(crate) fn list(
    host: &dyn Host,
    kind: &str,
    cursor: Option<&str>,
    limit: u32,
) -> Result<ObjectPage, Fault> {
    let all = read(host, kind)?;
    let total = all.len();
    let start = match cursor {
        None => 0,
        Some(text) => text
            .parse::<usize>()
            .map_err(|_| fault::invalid(format!("the cursor '{text}' is not one of this adapter")))?,
    };
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let items: Vec<Object> = all.into_iter().skip(start).take(limit).collect();
    let end = start.saturating_add(items.len());
    let next = (end < total).then(|| end.to_string());
    Ok(ObjectPage { items, next, total: u64::try_from(total).ok(), complete: Completeness::Complete })
}

pub(crate) fn get(host: &dyn Host, kind: &str, key: &str) -> Result<Object, Fault> {
    let all = read(host, kind)?;
    let exact = all.iter().position(|object| object.reference.key == key);
    // MAC addresses are written in both cases.
    let at = exact.or_else(|| all.iter().position(|object| object.reference.key.eq_ignore_ascii_case(key)));
    at.and_then(|at| all.into_iter().nth(at))
        .ok_or_else(|| fault::not_found(format!("there is no '{key}' of kind '{kind}'")))
}

fn read(host: &dyn Host, kind: &str) -> Result<Vec<Object>, Fault> {
    if !KINDS.iter().any(|known| known.id == kind) {
        return Err(fault::not_found(format!("there is no kind '{kind}'")));
    }
    let feature = SECTIONS.iter().copied().find(|feature| feature.kind == kind);
    match (kind, feature) {
        ("system", Some(feature)) => system(host, feature),
        ("network.interface", Some(feature)) => {
            let live = live(host, "network.interface", "dump")?;
            let live = devices::interfaces(&live);
            let of = |key: &str| {
                live.iter().find(|interface| interface.get("interface") == Some(&json!(key))).cloned()
            };
            sections(host, feature, of)
        }
        ("network.device", Some(feature)) => network_devices(host, feature),
        (_, Some(feature)) => sections(host, feature, |_| None),
        ("wireless.client", None) => {
            let status = live(host, "network.wireless", "status")?;
            let stations = clients::stations(host, &wireless_names(&status))?;
            if stations.is_blind {
                return Err(blind(&stations));
            }
            Ok(stations.all.iter().map(|(mac, facts)| object(kind, mac, facts)).collect())
        }
        _ => neighbours_or_leases(host, kind),
    }
}

fn live(host: &dyn Host, name: &str, method: &str) -> Result<Value, Fault> {
    match rpc::call(host, name, method, &json!({})) {
        Err(error) if error.is_absent() => Ok(Value::Null),
        other => other.map_err(|error| error.into_fault(&format!("{name}.{method}"))),
    }
}

fn blind(stations: &clients::Stations) -> Fault {
    let missing: Vec<&str> = stations.denied.iter().chain(&stations.absent).map(String::as_str).collect();
    let missing = missing.join("', '");
    if stations.denied.is_empty() {
        fault::unsupported(format!("the device does not have '{missing}'; install 'rpcd-mod-iwinfo'"))
    } else {
        fault::denied(format!("the user may not call '{missing}'; add them to an access group of the user"))
    }
}

/// Sections of a table; `live` adds what the running system says of a key.
fn sections(
    host: &dyn Host,
    feature: &SectionFeature,
    live: impl Fn(&str) -> Option<Value>,
) -> Result<Vec<Object>, Fault> {
    let configs = read::configs(host, &[feature.config])?;
    let config = &configs[feature.config];
    let mut objects = Vec::new();
    for (index, (uid, name)) in naming::names(feature, config).into_iter().enumerate() {
        // Of sections that are there once only the first counts at the device.
        if feature.naming == Naming::Single && index > 0 {
            break;
        }
        let found = config.section(uid).expect("a name is of a section");
        let key = if feature.naming == Naming::Single { feature.section.to_owned() } else { name.join(":") };
        let mut body = naming::body(feature, found, &name);
        if feature.naming != Naming::Single {
            body.insert("position".to_owned(), json!(index));
        }
        if let Some(live) = live(&key) {
            body.insert("live".to_owned(), live);
        }
        // An unnamed section's number, and a name made of its place or content, change with the next write.
        let is_lasting =
            !found.is_anonymous && naming::natural(feature, found).is_some_and(|own| own == name);
        let stability = if is_lasting { Stability::Durable } else { Stability::UntilWrite };
        let mut object = object(feature.kind, &key, &Value::Object(body));
        object.revision = Some(hex::encode(sdk_json::digest(&found.options_json())));
        object.reference.locators.push(Locator {
            surface: "uci".to_owned(),
            value: found.id.clone(),
            stability,
        });
        objects.push(object);
    }
    Ok(objects)
}

/// Devices that have a section, and those that only run: an update gives one of these its section.
fn network_devices(host: &dyn Host, feature: &SectionFeature) -> Result<Vec<Object>, Fault> {
    let live = devices::ports(&live(host, "network.device", "status")?);
    let mut objects = sections(host, feature, |key| live.get(key).cloned())?;
    for (name, body) in &live {
        if !objects.iter().any(|object| object.reference.key == *name) {
            objects.push(object(feature.kind, name, &json!({"name": name, "live": body})));
        }
    }
    Ok(objects)
}

fn system(host: &dyn Host, feature: &SectionFeature) -> Result<Vec<Object>, Fault> {
    let survey = Survey::take(host, &[plain("system", "board"), plain("system", "info")])?;
    let live = json!({"board": survey.answer(0), "info": survey.answer(1)});
    sections(host, feature, |_| Some(live.clone()))
}

fn neighbours_or_leases(host: &dyn Host, kind: &str) -> Result<Vec<Object>, Fault> {
    if kind == "dhcp.lease" {
        let answers: [_; 2] =
            rpc::batch(host, &leases::reads())?.try_into().expect("as many answers as reads");
        let leases = leases::gather(host, &answers[0], &answers[1])?.or_fault()?;
        return Ok(leases
            .iter()
            .map(|lease| object(kind, sdk_json::text(lease, "/mac").unwrap_or_default(), lease))
            .collect());
    }
    let hints = rpc::call(host, "luci-rpc", "getHostHints", &json!({}))
        .map_err(|error| error.into_fault("luci-rpc.getHostHints"))?;
    Ok(clients::gather(&[], &hints)
        .iter()
        .map(|(mac, client)| {
            object(kind, mac, &json!({"mac": mac, "name": client.name, "addresses": client.addresses}))
        })
        .collect())
}
