//! Objects by kind: live state, and sections of the configuration.

use heddle_sdk::{
    Completeness, Fault, Host, Locator, Object, ObjectKind, ObjectPage, ObjectRef, Stability, fault,
    json as sdk_json,
};
use serde_json::{Value, json};

use super::{Survey, client_reads, clients, devices, plain, wireless_names};
use crate::features::{SECTIONS, SectionFeature, section};
use crate::plan::read_configs;
use crate::rpc;

/// A kind of object that can be read.
pub(crate) struct Kind {
    id: &'static str,
    area: &'static str,
    title: &'static str,
}

impl Kind {
    pub(crate) fn describe(&self) -> ObjectKind {
        ObjectKind { id: self.id.to_owned(), area: self.area.to_owned(), title: self.title.to_owned() }
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
    let found = read(host, kind)?.into_iter().find(|object| object.reference.key.eq_ignore_ascii_case(key));
    found.ok_or_else(|| fault::not_found(format!("there is no '{key}' of kind '{kind}'")))
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
        ("network.device", _) => {
            let live = live(host, "network.device", "status")?;
            Ok(devices::ports(&live).iter().map(|(name, body)| object(kind, name, body)).collect())
        }
        (_, Some(feature)) => sections(host, feature, |_| None),
        ("wireless.client", None) => {
            let status = live(host, "network.wireless", "status")?;
            let (stations, _) = clients::stations(host, &wireless_names(&status))?;
            Ok(stations.iter().map(|(mac, facts)| object(kind, mac, facts)).collect())
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

/// Sections of a table; `live` adds what the running system says of a key.
fn sections(
    host: &dyn Host,
    feature: &SectionFeature,
    live: impl Fn(&str) -> Option<Value>,
) -> Result<Vec<Object>, Fault> {
    let configs = read_configs(host, std::iter::once(feature.config))?;
    let config = &configs[feature.config];
    let mut objects = Vec::new();
    for (index, found) in config.of_kind(feature.section).enumerate() {
        let key = section::key_of(feature, found);
        let mut body = found.options_json();
        body["position"] = json!(index);
        if let Some(live) = live(&key) {
            body["live"] = live;
        }
        let stability = if found.is_anonymous { Stability::UntilWrite } else { Stability::Durable };
        let mut object = object(feature.kind, if key.is_empty() { &found.id } else { &key }, &body);
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

fn system(host: &dyn Host, feature: &SectionFeature) -> Result<Vec<Object>, Fault> {
    let survey = Survey::take(host, &[plain("system", "board"), plain("system", "info")])?;
    let live = json!({"board": survey.answer(0), "info": survey.answer(1)});
    sections(host, feature, |_| Some(live.clone()))
}

fn neighbours_or_leases(host: &dyn Host, kind: &str) -> Result<Vec<Object>, Fault> {
    let mut reads = vec![plain("system", "board")];
    reads.extend(client_reads());
    let survey = Survey::take(host, &reads)?;
    if kind == "dhcp.lease" {
        let leases = clients::all_leases(survey.answer(1), survey.answer(2));
        return Ok(leases
            .iter()
            .map(|lease| object(kind, sdk_json::text(lease, "/mac").unwrap_or_default(), lease))
            .collect());
    }
    let found = clients::gather(&Value::Null, &Value::Null, survey.answer(3));
    Ok(found
        .iter()
        .map(|(mac, client)| {
            object(kind, mac, &json!({"mac": mac, "name": client.name, "addresses": client.addresses}))
        })
        .collect())
}
