//! Clients, put together from leases, host hints and wireless stations by MAC.

use std::collections::BTreeMap;

use heddle_sdk::{Device, Fault, Host, Status};
use serde_json::{Map, Value, json};

use super::{Survey, lower_mac};
use crate::rpc::Read;

/// What is known of one client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    pub(crate) addresses: Vec<String>,
    pub(crate) lease: Option<Value>,
    pub(crate) wireless: Option<Value>,
}

impl Client {
    fn add_address(&mut self, address: Option<&str>) {
        if let Some(address) = address.filter(|address| !self.addresses.iter().any(|known| known == address))
        {
            self.addresses.push(address.to_owned());
        }
    }
    fn add_name(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| !name.is_empty() && *name != "*" && self.name.is_none()) {
            self.name = Some(name.to_owned());
        }
    }
}

pub(crate) type Clients = BTreeMap<String, Client>;

/// Puts leases and host hints together.
pub(crate) fn gather(leases: &[Value], hints: &Value) -> Clients {
    let mut clients = Clients::new();
    for lease in leases {
        let Some(mac) = lease.get("mac").and_then(Value::as_str) else { continue };
        let client = clients.entry(mac.to_owned()).or_default();
        client.add_address(lease.get("ip").and_then(Value::as_str));
        client.add_name(lease.get("hostname").and_then(Value::as_str));
        client.lease = Some(lease.clone());
    }
    for (mac, hint) in hints.as_object().into_iter().flatten() {
        let client = clients.entry(lower_mac(mac)).or_default();
        client.add_address(hint.get("ipv4").and_then(Value::as_str));
        for list in ["ipaddrs", "ip6addrs"] {
            for address in hint.get(list).and_then(Value::as_array).into_iter().flatten() {
                client.add_address(address.as_str());
            }
        }
        client.add_address(hint.get("ipv6").and_then(Value::as_str));
        client.add_name(hint.get("name").and_then(Value::as_str));
    }
    clients
}

/// Stations of the wireless interfaces, and what did not answer.
#[derive(Debug, Default)]
pub(crate) struct Stations {
    /// MAC and facts.
    pub(crate) all: Vec<(String, Value)>,
    pub(crate) absent: Vec<String>,
    pub(crate) denied: Vec<String>,
    /// Nothing told of any interface.
    pub(crate) is_blind: bool,
    /// Nothing told of one of them, because a call failed.
    pub(crate) is_cut: bool,
}

/// Asks both sources of each wireless interface.
pub(crate) fn stations(host: &dyn Host, names: &[String]) -> Result<Stations, Fault> {
    if names.is_empty() {
        return Ok(Stations::default());
    }
    let objects: Vec<String> = names.iter().map(|name| format!("hostapd.{name}")).collect();
    // The first read of a survey must work; nothing here must.
    let mut reads: Vec<Read<'_>> = vec![super::plain("system", "board")];
    for (name, object) in names.iter().zip(&objects) {
        reads.push(("iwinfo", "assoclist", json!({"device": name})));
        reads.push((object, "get_clients", json!({})));
    }
    let survey = Survey::take(host, &reads)?;
    let mut found: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        for station in
            survey.answer(1 + index * 2).get("results").and_then(Value::as_array).into_iter().flatten()
        {
            let Some(mac) = station.get("mac").and_then(Value::as_str) else { continue };
            let facts = found.entry(lower_mac(mac)).or_default();
            facts.insert("interface".to_owned(), json!(name));
            for (from, to) in [
                ("signal", "signal_dbm"),
                ("noise", "noise_dbm"),
                ("inactive", "inactive_ms"),
                ("connected_time", "connected_secs"),
            ] {
                facts.insert(to.to_owned(), station.get(from).cloned().unwrap_or_default());
            }
            facts.insert("rx_kbps".to_owned(), station.pointer("/rx/rate").cloned().unwrap_or_default());
            facts.insert("tx_kbps".to_owned(), station.pointer("/tx/rate").cloned().unwrap_or_default());
        }
        for (mac, station) in
            survey.answer(2 + index * 2).get("clients").and_then(Value::as_object).into_iter().flatten()
        {
            let facts = found.entry(lower_mac(mac)).or_default();
            facts.insert("interface".to_owned(), json!(name));
            facts.insert("authorized".to_owned(), station.get("authorized").cloned().unwrap_or_default());
            if let (None, Some(signal)) = (facts.get("signal_dbm"), station.get("signal")) {
                facts.insert("signal_dbm".to_owned(), signal.clone());
            }
        }
    }
    let is_blind = (1..reads.len()).all(|index| survey.result(index).is_err());
    let is_cut = (0..names.len()).any(|at| {
        let reads = [1 + at * 2, 2 + at * 2];
        reads.iter().all(|index| survey.result(*index).is_err())
            && reads.iter().any(|index| survey.failure(*index).is_some())
    });
    let all = found.into_iter().map(|(mac, facts)| (mac, Value::Object(facts))).collect();
    Ok(Stations { all, absent: survey.absent, denied: survey.denied, is_blind, is_cut })
}

/// What a client is, and what is only measured of it.
fn apart(facts: Option<Value>, lasting: &[&str]) -> (Option<Value>, Option<Value>) {
    let Some(Value::Object(facts)) = facts else { return (None, None) };
    let (is, measured): (Map<_, _>, Map<_, _>) = facts
        .into_iter()
        .filter(|(name, _)| name != "mac")
        .partition(|(name, _)| lasting.contains(&name.as_str()));
    (Some(is.into()), Some(measured.into()))
}

/// A client as a device. A lease alone does not say that it is there.
pub(crate) fn device(mac: &str, client: Client) -> Device {
    let status = if client.wireless.is_some() { Status::Online } else { Status::Unknown };
    let (lease, lease_measured) = apart(client.lease, &["ip", "hostname", "device"]);
    let (wireless, wireless_measured) = apart(client.wireless, &["interface", "authorized"]);
    let attributes = json!({"lease": lease, "wireless": wireless});
    let measurements = json!({"lease": lease_measured, "wireless": wireless_measured});
    Device {
        identity: mac.to_owned(),
        name: client
            .name
            .unwrap_or_else(|| client.addresses.first().cloned().unwrap_or_else(|| mac.to_owned())),
        kind: "client".to_owned(),
        status,
        mac: Some(mac.to_owned()),
        addresses: client.addresses,
        attributes: attributes.to_string(),
        measurements: measurements.to_string(),
        ..Device::named("")
    }
}
