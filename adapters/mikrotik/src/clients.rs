//! Clients: what leases, neighbour tables, bridges and access points know, joined by MAC address.

use std::collections::BTreeMap;

use heddle_sdk::{Completeness, Device, Fault, Host, Status, crud, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::read;

/// Lists of wireless clients, of which a router has one or two.
const RADIO: [&str; 3] = [
    "interface/wifi/registration-table",
    "interface/wireless/registration-table",
    "caps-man/registration-table",
];

#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) all: BTreeMap<String, Client>,
    is_denied: bool,
    is_partial: bool,
}

/// What is known of one client. Its own direction counts: `down` is towards it.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    pub(crate) addresses: Vec<String>,
    pub(crate) interface: Option<String>,
    pub(crate) port: Option<String>,
    pub(crate) ssid: Option<String>,
    pub(crate) band: Option<String>,
    pub(crate) vlan: Option<i64>,
    pub(crate) signal: Option<i64>,
    pub(crate) bytes: Option<(i64, i64)>,
    pub(crate) connected_secs: Option<f64>,
    pub(crate) is_wireless: bool,
    pub(crate) is_blocked: Option<bool>,
    is_seen: bool,
    has_lease: bool,
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

    /// The rows of a list; what is absent or not permitted makes the clients less, and no failure.
    fn rows(&mut self, host: &dyn Host, menu: &str) -> Result<Vec<Value>, Fault> {
        match read(host, menu) {
            Ok(value) => Ok(sdk_json::items(&value, "").to_vec()),
            Err(Fault::Unsupported(_) | Fault::NotFound(_)) => Ok(Vec::new()),
            Err(Fault::Denied(_)) => {
                self.is_denied = true;
                Ok(Vec::new())
            }
            Err(Fault::Generic(_) | Fault::Invalid(_)) => {
                self.is_partial = true;
                Ok(Vec::new())
            }
            Err(other) => Err(other),
        }
    }

    fn of(&mut self, row: &Value, fields: &[&str]) -> Option<&mut Client> {
        let mac = fields.iter().find_map(|field| sdk_json::text(row, field).and_then(crud::mac))?;
        Some(self.all.entry(mac).or_default())
    }
}

impl Client {
    fn meet(&mut self, address: Option<&str>, interface: Option<&str>) {
        let address = address.filter(|address| !address.is_empty()).map(str::to_owned);
        if let Some(new) = address.filter(|new| !self.addresses.contains(new)) {
            self.addresses.push(new);
        }
        self.interface = self.interface.take().or_else(|| interface.map(str::to_owned));
    }

    pub(crate) fn device(self, mac: &str) -> Device {
        let attributes = json!({
            "interface": self.interface, "port": self.port, "ssid": self.ssid, "dhcp": self.has_lease,
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
pub(crate) fn gather(host: &dyn Host) -> Result<Clients, Fault> {
    let mut out = Clients::default();
    for row in out.rows(host, "ip/dhcp-server/lease")? {
        let Some(client) = out.of(&row, &["/active-mac-address", "/mac-address"]) else { continue };
        let text = |field: &str| sdk_json::text(&row, field);
        client.has_lease = true;
        client.is_seen |= text("/status") == Some("bound");
        client.name =
            client.name.take().or_else(|| text("/host-name").or(text("/comment")).map(str::to_owned));
        client.is_blocked = text("/blocked").map(|blocked| blocked == "true").or(client.is_blocked);
        client.meet(text("/active-address").or(text("/address")), None);
    }
    for menu in ["ip/arp", "ipv6/neighbor"] {
        for row in out.rows(host, menu)? {
            let text = |field: &str| sdk_json::text(&row, field);
            let is_dead = text("/complete") == Some("false") || text("/status") == Some("failed");
            let Some(client) = out.of(&row, &["/mac-address"]).filter(|_| !is_dead) else { continue };
            client.is_seen = true;
            client.meet(text("/address"), text("/interface"));
        }
    }
    for row in out.rows(host, "interface/bridge/host")? {
        // The bridge's own addresses.
        if sdk_json::text(&row, "/local") == Some("true") {
            continue;
        }
        let Some(client) = out.of(&row, &["/mac-address"]) else { continue };
        client.is_seen = true;
        client.port = sdk_json::text(&row, "/on-interface").map(str::to_owned);
        client.vlan = sdk_json::text(&row, "/vid").and_then(|vid| vid.parse().ok());
    }
    for menu in RADIO {
        for row in out.rows(host, menu)? {
            let Some(client) = out.of(&row, &["/mac-address"]) else { continue };
            wireless(client, &row);
        }
    }
    Ok(out)
}

fn wireless(client: &mut Client, row: &Value) {
    let text = |field: &str| sdk_json::text(row, field).map(str::to_owned);
    (client.is_seen, client.is_wireless, client.port) = (true, true, None);
    client.interface = text("/interface").or(client.interface.take());
    client.ssid = text("/ssid");
    client.band = text("/band").and_then(|band| crate::model::band(&band).map(str::to_owned));
    // `-60@6Mbps`
    let signal = ["/signal", "/signal-strength", "/rx-signal"].iter().find_map(|field| text(field));
    client.signal = signal.and_then(|signal| signal.split('@').next()?.parse().ok());
    client.connected_secs = text("/uptime").and_then(|uptime| crud::seconds(&uptime));
    client.vlan = text("/vlan-id").and_then(|vlan| vlan.parse().ok()).or(client.vlan);
    // What the access point sends first, then what it receives.
    let bytes = text("/bytes");
    let pair = bytes.as_deref().and_then(|bytes| bytes.split_once(','));
    client.bytes = pair.and_then(|(sent, received)| Some((sent.parse().ok()?, received.parse().ok()?)));
}
