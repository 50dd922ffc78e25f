//! What the stored objects of a site say, as far as it tells how things are connected. Pure: no database, no names of vendors.

use heddle_core::{ControllerId, DeviceId, Timestamp};
use heddle_store::model_objects::ModelObjectId;
use heddle_store::topology::NativeName;
use serde::Deserialize;

/// Kinds of the model that the graph is made of.
pub const KINDS: &[&str] = &[
    "client",
    "gateway",
    "guest",
    "interface",
    "neighbour",
    "port",
    "radio",
    "route",
    "ssid",
    "system",
    "vlan",
];

/// Everything that is known of a site.
#[derive(Debug, Default)]
pub struct Facts {
    pub controllers: Vec<ControllerFact>,
    pub devices: Vec<DeviceFact>,
    pub objects: Vec<Object>,
    /// What could not be read, a sentence each.
    pub gaps: Vec<String>,
    /// When the oldest list was read.
    pub observed_at: Option<Timestamp>,
    /// Addresses of the machine that the service runs on.
    pub own_addresses: Vec<std::net::IpAddr>,
}

/// A controller of the site.
#[derive(Debug, Clone)]
pub struct ControllerFact {
    pub id: ControllerId,
    pub name: String,
    /// Host of its address: an IP address or a name.
    pub host: String,
    /// Port of its address.
    pub port: u16,
}

/// A device as the list of devices has it.
#[derive(Debug, Clone)]
pub struct DeviceFact {
    pub controller: ControllerId,
    pub id: Option<DeviceId>,
    pub identity: String,
    pub name: String,
    pub mac: Option<String>,
    pub addresses: Vec<String>,
}

/// An object of the model.
#[derive(Debug)]
pub struct Object {
    pub id: ModelObjectId,
    pub controller: ControllerId,
    /// The vendor's id of its site; empty where it is the controller's.
    pub site_ref: String,
    pub key: String,
    pub label: String,
    pub device_key: Option<String>,
    pub native: Option<NativeName>,
    pub fact: Fact,
}

/// The fields of an object that count here.
#[derive(Debug)]
pub enum Fact {
    Client(ClientFact),
    Gateway(GatewayFact),
    Guest(GuestFact),
    Interface(InterfaceFact),
    Neighbour(NeighbourFact),
    Port(PortFact),
    Radio(RadioFact),
    Route(RouteFact),
    Ssid(SsidFact),
    System(SystemFact),
    Vlan(VlanFact),
}

impl Fact {
    /// Reads the fields of an object; `None` for a kind that says nothing of connections, or fields that do not fit.
    pub fn parse(kind: &str, fields: &str) -> Option<Self> {
        let parsed = match kind {
            "client" => serde_json::from_str(fields).map(Fact::Client),
            "gateway" => serde_json::from_str(fields).map(Fact::Gateway),
            "guest" => serde_json::from_str(fields).map(Fact::Guest),
            "interface" => serde_json::from_str(fields).map(Fact::Interface),
            "neighbour" => serde_json::from_str(fields).map(Fact::Neighbour),
            "port" => serde_json::from_str(fields).map(Fact::Port),
            "radio" => serde_json::from_str(fields).map(Fact::Radio),
            "route" => serde_json::from_str(fields).map(Fact::Route),
            "ssid" => serde_json::from_str(fields).map(Fact::Ssid),
            "system" => serde_json::from_str(fields).map(Fact::System),
            "vlan" => serde_json::from_str(fields).map(Fact::Vlan),
            _ => return None,
        };
        parsed.ok()
    }

    /// Kind of the model.
    pub fn kind(&self) -> &'static str {
        match self {
            Fact::Client(_) => "client",
            Fact::Gateway(_) => "gateway",
            Fact::Guest(_) => "guest",
            Fact::Interface(_) => "interface",
            Fact::Neighbour(_) => "neighbour",
            Fact::Port(_) => "port",
            Fact::Radio(_) => "radio",
            Fact::Route(_) => "route",
            Fact::Ssid(_) => "ssid",
            Fact::System(_) => "system",
            Fact::Vlan(_) => "vlan",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SystemFact {
    pub role: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InterfaceFact {
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub form: Option<String>,
    pub role: Option<String>,
    pub mac: Option<String>,
    pub enabled: Option<bool>,
    pub addresses: Vec<String>,
    pub vlan_id: Option<u16>,
    pub lower: Option<String>,
    pub master: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PortFact {
    pub number: Option<u32>,
    pub name: Option<String>,
    pub enabled: Option<bool>,
    pub link: Option<String>,
    pub native_vlan: Option<u16>,
    pub tagged_vlans: Option<Vec<u16>>,
    pub tagged_mode: Option<String>,
    pub uplink: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct VlanFact {
    pub vlan_id: Option<u16>,
    pub name: Option<String>,
    pub subnets: Vec<String>,
    pub gateway: Option<String>,
    pub interface: Option<String>,
    pub members: Option<Vec<MemberFact>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct MemberFact {
    pub port: String,
    pub tagged: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SsidFact {
    pub name: Option<String>,
    pub vlan_id: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RadioFact {
    pub band: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClientFact {
    pub mac: Option<String>,
    pub addresses: Vec<String>,
    pub connection: Option<String>,
    pub port: Option<String>,
    pub ssid: Option<String>,
    pub interface: Option<String>,
    pub vlan_id: Option<u16>,
    pub band: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NeighbourFact {
    pub port: Option<String>,
    pub remote_chassis: Option<String>,
    pub remote_port: Option<String>,
    pub remote_name: Option<String>,
    pub protocol: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RouteFact {
    pub destination: Option<String>,
    #[serde(rename = "type")]
    pub form: Option<String>,
    pub next_hop: Option<String>,
    pub interface: Option<String>,
    pub enabled: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GatewayFact {
    pub interface: Option<String>,
    pub address: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GuestFact {
    pub name: Option<String>,
    pub system: Option<String>,
    pub template: Option<bool>,
    pub addresses: Vec<String>,
    pub nics: Vec<NicFact>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct NicFact {
    pub mac: Option<String>,
    pub network: Option<String>,
    pub vlan_id: Option<u16>,
}

#[cfg(test)]
mod tests {
    use heddle_inventory::model::kind_of;

    use super::*;

    #[test]
    fn each_kind_of_the_graph_is_one_of_the_model_and_is_read() {
        for kind in KINDS {
            assert!(kind_of(kind).is_ok(), "{kind}");
            assert_eq!(Fact::parse(kind, "{}").map(|fact| fact.kind()), Some(*kind));
        }
        assert!(Fact::parse("service", "{}").is_none());
    }

    #[test]
    fn fields_that_do_not_count_are_passed_over() {
        let fields = r#"{"name":"lan","type":"bridge","mtu":1500,"counters":{"rx_bytes":1},"addresses":["10.0.0.1/24"]}"#;
        let Some(Fact::Interface(found)) = Fact::parse("interface", fields) else {
            panic!("it is an interface")
        };
        assert_eq!(
            (found.form.as_deref(), found.addresses.as_slice()),
            (Some("bridge"), &["10.0.0.1/24".to_owned()][..])
        );
        assert!(Fact::parse("port", r#"{"native_vlan":"one"}"#).is_none(), "it does not fit");
    }
}
