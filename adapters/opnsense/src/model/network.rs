//! What the firewall's interfaces tell of other objects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use heddle_sdk::{Fault, Host, ModelObject, json as sdk_json};
use serde_json::{Map, Value, json};

use super::{is_on, text};
use crate::answer::read;
use crate::devices;

/// Kinds that belong to the firewall as a device.
const OF_FIREWALL: [&str; 8] =
    ["system", "interface", "route", "gateway", "service", "certificate", "firmware", "volume"];
/// Fields that name interfaces, by the kind.
const REFERENCES: [(&str, &[&str]); 9] = [
    ("interface", &["lower", "master"]),
    ("vlan", &["interface"]),
    ("route", &["interface"]),
    ("gateway", &["interface"]),
    ("dhcp-pool", &["interface"]),
    ("dhcp-lease", &["scope"]),
    ("vpn-tunnel", &["interface"]),
    ("client", &["interface"]),
    ("neighbour", &["port"]),
];

/// The interfaces, and the identity of the firewall.
pub(super) struct Network {
    identity: String,
    rows: Vec<Value>,
    /// Settings of Kea, where they matter and exist.
    kea: Value,
}

impl Network {
    /// What a kind needs; none where it needs nothing.
    pub(super) fn for_kind(host: &dyn Host, kind: &str) -> Result<Option<Self>, Fault> {
        let is_meant = OF_FIREWALL.contains(&kind) || REFERENCES.iter().any(|(known, _)| *known == kind);
        if is_meant { Self::read(host, kind).map(Some) } else { Ok(None) }
    }

    pub(super) fn read(host: &dyn Host, kind: &str) -> Result<Self, Fault> {
        let rows = devices::interfaces(host)?;
        let identity = devices::identity(host, &rows)?;
        let kea = if kind == "vlan" { settings_of_kea(host)? } else { Value::Null };
        Ok(Self { identity, rows, kea })
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    pub(super) fn rows(&self) -> &[Value] {
        &self.rows
    }

    /// The row of a device or of an assignment.
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        let is = |row: &&Value| text(row, "device") == Some(name) || text(row, "identifier") == Some(name);
        self.rows.iter().find(is)
    }

    /// The key of an interface that the firewall names by its device.
    pub(super) fn key<'n>(&'n self, name: &'n str) -> &'n str {
        self.find(name).and_then(|row| text(row, "identifier")).unwrap_or(name)
    }

    pub(super) fn complete(&self, kind: &str, item: &mut ModelObject) {
        if OF_FIREWALL.contains(&kind) {
            item.device = Some(self.identity.clone());
        }
        let Some((_, names)) = REFERENCES.iter().find(|(known, _)| *known == kind) else { return };
        let Ok(Value::Object(mut fields)) = serde_json::from_str(&item.fields) else { return };
        match kind {
            "vlan" => self.vlan(&mut fields),
            "dhcp-pool" => self.pool(&mut fields),
            _ => {}
        }
        for name in *names {
            let known = fields.get(*name).and_then(Value::as_str).map(|found| self.key(found).to_owned());
            if let Some(key) = known {
                fields.insert((*name).to_owned(), json!(key));
            }
        }
        item.fields = Value::Object(fields).to_string();
    }

    /// A VLAN has the networks of its interface.
    fn vlan(&self, fields: &mut Map<String, Value>) {
        if let Some(Value::Array(members)) = fields.get_mut("members") {
            for member in members {
                let key = member["port"].as_str().map(|port| self.key(port).to_owned());
                member["port"] = json!(key);
            }
        }
        let device = fields.get("interface").and_then(Value::as_str);
        let Some(row) = device.and_then(|device| self.find(device)) else { return };
        let own = addresses(row);
        let subnets: Vec<String> = own.iter().filter_map(|own| network_of(own)).collect();
        let gateway = own.iter().find(|own| !own.contains(':')).or(own.first());
        let gateway = gateway.and_then(|own| own.split('/').next()).map(str::to_owned);
        if !own.is_empty() {
            fields.insert("subnets".to_owned(), json!(subnets));
            fields.insert("gateway".to_owned(), json!(gateway));
        }
        let general = &self.kea["dhcpv4"]["general"];
        let chosen = text(row, "identifier").map(|key| &general["interfaces"][key]);
        if is_on(general, "enabled") && chosen.is_some_and(|one| is_on(one, "selected")) {
            fields.insert("dhcp".to_owned(), json!("server"));
        }
    }

    /// A pool of Kea is at the interface that has an address in its network.
    fn pool(&self, fields: &mut Map<String, Value>) {
        let first = fields.get("ranges").and_then(|ranges| ranges[0]["from"].as_str());
        let Some(first) = first.filter(|_| !fields.contains_key("interface")) else { return };
        let has = |row: &&Value| addresses(row).iter().any(|own| is_within(first, own));
        if let Some(device) = self.rows.iter().find(has).and_then(|row| text(row, "device")) {
            fields.insert("interface".to_owned(), json!(device));
        }
    }
}

/// The settings of Kea; nothing where it is not there, or may not be read.
fn settings_of_kea(host: &dyn Host) -> Result<Value, Fault> {
    match read(host, "/api/kea/dhcpv4/get") {
        Err(Fault::Unsupported(_) | Fault::Denied(_)) => Ok(Value::Null),
        other => other,
    }
}

/// Addresses of an interface, with their prefix lengths.
pub(super) fn addresses(row: &Value) -> Vec<String> {
    let family = |name: &str| sdk_json::items(row, name).iter().filter_map(|one| text(one, "ipaddr"));
    family("/ipv4").chain(family("/ipv6")).map(str::to_owned).collect()
}

/// The prefix that an address is in.
fn network_of(own: &str) -> Option<String> {
    let (address, bits) = own.split_once('/')?;
    let bits: u8 = bits.parse().ok()?;
    Some(format!("{}/{bits}", masked(address.split('%').next()?.parse().ok()?, bits)))
}

fn is_within(address: &str, own: &str) -> bool {
    let bits = own.split_once('/').and_then(|(_, bits)| bits.parse().ok());
    let known =
        address.parse().ok().zip(bits).map(|(address, bits): (IpAddr, u8)| (masked(address, bits), bits));
    known.is_some_and(|(network, bits)| network_of(own) == Some(format!("{network}/{bits}")))
}

/// The address with the bits behind the prefix off.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(own) => {
            let mask = u32::MAX.checked_shl(u32::from(32_u8.saturating_sub(bits))).unwrap_or(0);
            Ipv4Addr::from(u32::from(own) & mask).into()
        }
        IpAddr::V6(own) => {
            let mask = u128::MAX.checked_shl(u32::from(128_u8.saturating_sub(bits))).unwrap_or(0);
            Ipv6Addr::from(u128::from(own) & mask).into()
        }
    }
}
