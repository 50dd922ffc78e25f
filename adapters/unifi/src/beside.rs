//! What objects of the model name by ids, and no row joins: the networks of a site, and the profiles of its ports.

use std::collections::BTreeMap;

use heddle_sdk::{Fault, Host, json as sdk_json};
use serde_json::{Map, Value};

use crate::answer::rows;
use crate::model::devices;
use crate::site;

/// Kinds of the model whose objects name networks.
const NAMING: [&str; 8] =
    ["port", "vlan", "ssid", "route", "firewall-rule", "dhcp-reservation", "vpn-tunnel", "dhcp-pool"];
/// Purposes of networks whose packets have a tag.
const TAGGED: [&str; 3] = ["corporate", "guest", "vlan-only"];
/// The network without a number has this one.
const FIRST_VLAN: u64 = 1;

/// The networks and profiles of a site, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) networks: Vec<Network>,
    /// Profiles of ports.
    pub(crate) profiles: Map<String, Value>,
    /// The ports that carry a network, by its id.
    pub(crate) members: BTreeMap<String, Vec<Value>>,
}

/// A network of any purpose.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) id: String,
    pub(crate) name: String,
    /// None of what is no local network.
    pub(crate) vlan: Option<u64>,
}

impl Beside {
    /// Reads what objects of a kind name.
    pub(crate) fn read(host: &dyn Host, kind: &str, site: Option<&str>) -> Result<Self, Fault> {
        if !NAMING.contains(&kind) {
            return Ok(Self::default());
        }
        let site = site::chosen(host, site)?;
        let networks = rows(host, &format!("/api/s/{site}/rest/networkconf"))?;
        let profiles = match kind {
            "port" | "vlan" => rows(host, &format!("/api/s/{site}/rest/portconf"))?,
            _ => Vec::new(),
        };
        let by_id = |row: Value| Some((sdk_json::text(&row, "/_id")?.to_owned(), row));
        let mut beside = Self {
            networks: networks.iter().filter_map(network).collect(),
            profiles: profiles.into_iter().filter_map(by_id).collect(),
            members: BTreeMap::new(),
        };
        if kind == "vlan" {
            let devices = rows(host, &format!("/api/s/{site}/stat/device"))?;
            beside.members = devices::members(&beside, &devices);
        }
        Ok(beside)
    }

    pub(crate) fn of_id(&self, id: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.id == id)
    }

    pub(crate) fn of_name(&self, name: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.name == name)
    }

    pub(crate) fn of_vlan(&self, vlan: u64) -> Option<&Network> {
        self.networks.iter().find(|network| network.vlan == Some(vlan))
    }

    /// The networks whose packets can have a tag.
    pub(crate) fn local(&self) -> impl Iterator<Item = &Network> {
        self.networks.iter().filter(|network| network.vlan.is_some())
    }
}

fn network(row: &Value) -> Option<Network> {
    let is_local = sdk_json::text(row, "/purpose").is_some_and(|purpose| TAGGED.contains(&purpose));
    let vlan = number(row.get("vlan")).unwrap_or(FIRST_VLAN);
    Some(Network {
        id: sdk_json::text(row, "/_id")?.to_owned(),
        name: sdk_json::text(row, "/name").unwrap_or_default().to_owned(),
        vlan: is_local.then_some(vlan),
    })
}

/// A number, also where it is written as text; none where it is empty.
pub(crate) fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
