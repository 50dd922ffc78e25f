//! Clients: what the ARP table and the leases of the DHCP server know, joined by MAC address.

use std::collections::BTreeMap;

use heddle_sdk::{Completeness, Device, Fault, Host, Status, crud, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::rows;

const ARP: &str = "/diagnostics/arp_table";
const LEASES: &str = "/status/dhcp_server/leases";

#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) all: Vec<Client>,
    is_denied: bool,
    is_partial: bool,
}

impl Clients {
    /// Whether both tables could be read.
    pub(crate) fn complete(&self) -> Completeness {
        if self.is_denied {
            Completeness::RightsLimited
        } else if self.is_partial {
            Completeness::Partial
        } else {
            Completeness::Complete
        }
    }
}

#[derive(Default)]
pub(crate) struct Client {
    pub(crate) mac: String,
    pub(crate) name: Option<String>,
    pub(crate) addresses: Vec<String>,
    /// As the firewall names it.
    pub(crate) interface: Option<String>,
    is_seen: bool,
    has_lease: bool,
}

impl Client {
    fn meet(&mut self, row: &Value, (address, interface): (&str, &str)) {
        let text = |at: &str| sdk_json::text(row, at).filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(address) = text(address).filter(|new| !self.addresses.contains(new)) {
            self.addresses.push(address);
        }
        self.name = self.name.take().or_else(|| text("/hostname").filter(|name| name != "?"));
        self.interface = self.interface.take().or_else(|| text(interface));
    }

    pub(crate) fn device(self) -> Device {
        let attributes = json!({ "interface": self.interface, "dhcp": self.has_lease });
        Device {
            identity: self.mac.clone(),
            kind: "client".to_owned(),
            status: if self.is_seen { Status::Online } else { Status::Unknown },
            addresses: self.addresses,
            attributes: attributes.to_string(),
            ..Device { mac: Some(self.mac.clone()), ..Device::named(self.name.unwrap_or(self.mac)) }
        }
    }
}

/// Everything that the tables name by a MAC address.
pub(crate) fn gather(host: &dyn Host) -> Result<Clients, Fault> {
    let (mut clients, mut out) = (BTreeMap::<String, Client>::new(), Clients::default());
    // Permanent entries are the firewall's own.
    let is_own = |row: &Value| row.get("permanent") == Some(&json!(true));
    for row in tolerate(rows(host, ARP), &mut out)?.iter().filter(|row| !is_own(row)) {
        let Some(mac) = sdk_json::text(row, "/mac_address").and_then(crud::mac) else { continue };
        let client = clients.entry(mac).or_default();
        client.is_seen |= !sdk_json::text(row, "/expires").unwrap_or_default().starts_with("Expired");
        client.meet(row, ("/ip_address", "/interface"));
    }
    for row in tolerate(rows(host, LEASES), &mut out)? {
        let Some(mac) = sdk_json::text(&row, "/mac").and_then(crud::mac) else { continue };
        let client = clients.entry(mac).or_default();
        client.has_lease = true;
        client.meet(&row, ("/ip", "/if"));
    }
    out.all = clients.into_iter().map(|(mac, client)| Client { mac, ..client }).collect();
    Ok(out)
}

/// What is absent or not permitted makes the list less, and no failure.
fn tolerate(answer: Result<Vec<Value>, Fault>, out: &mut Clients) -> Result<Vec<Value>, Fault> {
    match answer {
        Ok(rows) => return Ok(rows),
        Err(Fault::Unsupported(_)) => {}
        Err(Fault::Denied(_)) => out.is_denied = true,
        Err(Fault::Generic(_) | Fault::Invalid(_)) => out.is_partial = true,
        Err(other) => return Err(other),
    }
    Ok(Vec::new())
}
