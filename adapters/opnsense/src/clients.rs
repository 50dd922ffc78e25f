//! Clients: what the neighbour tables and the DHCP servers know, joined by MAC address.

use std::collections::BTreeMap;

use heddle_sdk::{Completeness, Device, Fault, Host, Status, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::read;
use crate::devices::lower_mac;

const ARP: &str = "/api/diagnostics/interface/get_arp";
/// Lists of leases; each is there only with its server.
const LEASES: [&str; 3] =
    ["/api/kea/leases4/search", "/api/dnsmasq/leases/search", "/api/dhcpv4/leases/search_lease"];

#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) all: Vec<Device>,
    pub(crate) is_denied: bool,
    pub(crate) is_partial: bool,
}

impl Clients {
    /// Whether all tables could be read.
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
struct Client {
    name: Option<String>,
    addresses: Vec<String>,
    interface: Option<String>,
    manufacturer: Option<String>,
    is_seen: bool,
    has_lease: bool,
}

impl Client {
    fn meet(&mut self, row: &Value, address: Option<&str>) {
        if let Some(address) = address.map(str::to_owned).filter(|new| !self.addresses.contains(new)) {
            self.addresses.push(address);
        }
        let text = |field: &str| sdk_json::text(row, field).map(str::to_owned);
        self.name = self.name.take().or_else(|| text("/hostname").filter(|name| name != "?"));
        self.interface =
            self.interface.take().or_else(|| text("/intf_description")).or_else(|| text("/if_descr"));
        self.manufacturer = self.manufacturer.take().or_else(|| text("/manufacturer"));
    }

    fn device(self, mac: &str) -> Device {
        let attributes = json!({
            "interface": self.interface, "manufacturer": self.manufacturer, "dhcp": self.has_lease,
        });
        Device {
            identity: mac.to_owned(),
            kind: "client".to_owned(),
            status: if self.is_seen { Status::Online } else { Status::Unknown },
            mac: Some(mac.to_owned()),
            addresses: self.addresses,
            attributes: attributes.to_string(),
            ..Device::named(self.name.unwrap_or_else(|| mac.to_owned()))
        }
    }
}

/// Everything that the tables name by a MAC address.
pub(crate) fn gather(host: &dyn Host, interfaces: &[Value]) -> Result<Clients, Fault> {
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut out = Clients::default();
    let arp = tolerate(read(host, ARP), &mut out)?;
    for row in sdk_json::items(&arp, "") {
        // Permanent entries are the firewall's own.
        if row.get("permanent") == Some(&json!(true)) {
            continue;
        }
        let Some(mac) = sdk_json::text(row, "/mac").map(lower_mac).filter(|mac| is_mac(mac)) else {
            continue;
        };
        let client = clients.entry(mac).or_default();
        client.is_seen |= row.get("expired") != Some(&json!(true));
        client.meet(row, sdk_json::text(row, "/ip"));
    }
    for path in LEASES {
        let leases = tolerate(read(host, path), &mut out)?;
        for row in sdk_json::items(&leases, "/rows") {
            let mac = ["/hwaddr", "/mac"].iter().find_map(|field| sdk_json::text(row, field));
            let Some(mac) = mac.map(lower_mac).filter(|mac| is_mac(mac)) else { continue };
            let client = clients.entry(mac).or_default();
            client.has_lease = true;
            client.meet(row, sdk_json::text(row, "/address"));
        }
    }
    name_interfaces(&mut clients, interfaces);
    out.all = clients.into_iter().map(|(mac, client)| client.device(&mac)).collect();
    Ok(out)
}

fn is_mac(text: &str) -> bool {
    text.len() == 17 && text.split(':').count() == 6
}

/// Leases name the interface by its device or key.
fn name_interfaces(clients: &mut BTreeMap<String, Client>, interfaces: &[Value]) {
    for client in clients.values_mut() {
        let known = interfaces.iter().find(|row| {
            let names = ["/device", "/identifier"].map(|field| sdk_json::text(row, field));
            client.interface.is_some() && names.contains(&client.interface.as_deref())
        });
        if let Some(name) = known.and_then(|row| sdk_json::text(row, "/description")) {
            client.interface = Some(name.to_owned());
        }
    }
}

/// What is absent or not permitted makes the list less, and no failure.
fn tolerate(answer: Result<Value, Fault>, out: &mut Clients) -> Result<Value, Fault> {
    match answer {
        Ok(value) => Ok(value),
        Err(Fault::Unsupported(_)) => Ok(Value::Null),
        Err(Fault::Denied(_)) => {
            out.is_denied = true;
            Ok(Value::Null)
        }
        Err(Fault::Generic(_) | Fault::Invalid(_)) => {
            out.is_partial = true;
            Ok(Value::Null)
        }
        Err(other) => Err(other),
    }
}
