//! What the vendor checks, computes or rewrites beyond single fields, a file for each subject.

mod accounts;
mod filter;
mod network;
mod services;
mod tunnels;

use serde_json::Value;

use crate::device::Pfsense;
use crate::draft::Draft;
use crate::facts::Model;
use crate::reply::Refusal;
use crate::store::Object;

/// One field of a draft, after all fields were checked by themselves.
pub(crate) fn field(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let model = draft.model.name.as_str();
    match model {
        _ if model.starts_with("Firewall") || model.starts_with("TrafficShaper") => {
            filter::field(draft, name)
        }
        "VirtualIP" | "OutboundNATMapping" | "OneToOneNATMapping" => filter::field(draft, name),
        "User" | "UserGroup" | "RESTAPIKey" | "Certificate" | "CertificateAuthority" => {
            accounts::field(draft, name)
        }
        _ if model.starts_with("WireGuard") || model.starts_with("OpenVPN") || model.starts_with("IPsec") => {
            tunnels::field(draft, name)
        }
        _ if model.starts_with("DHCP") || model.starts_with("DNS") || model.starts_with("NTP") => {
            services::field(draft, name)
        }
        _ => network::field(draft, name),
    }
}

/// The whole object, after all of its fields.
pub(crate) fn whole(draft: &mut Draft) -> Result<(), Refusal> {
    match draft.model.name.as_str() {
        "FirewallScheduleTimeRange" => filter::time_range(draft),
        "DHCPServer" | "DHCPServerAddressPool" => services::range(draft),
        "RoutingGatewayGroupPriority" => network::priority(draft),
        "WireGuardTunnel" | "WireGuardTunnelAddress" | "OpenVPNServer" | "OpenVPNClient" => {
            tunnels::whole(draft)
        }
        _ => Ok(()),
    }
}

/// Values that are computed when an object is read.
pub(crate) fn show(firewall: &Pfsense, model: &Model, id: Option<&Value>, object: &Object, out: &mut Object) {
    match model.name.as_str() {
        "NetworkInterface" => network::show_interface(id, object, out),
        "RoutingGatewayGroup" => network::show_group(firewall, out),
        "TrafficShaper" | "FirewallSchedule" | "FirewallStatesSize" | "VirtualIP" => {
            filter::show(firewall, model, object, out);
        }
        "DHCPServer" => services::show_server(firewall, id, out),
        "OpenVPNServer" | "OpenVPNClient" => tunnels::show(model, out),
        "Certificate" => accounts::show_certificate(firewall, object, out),
        _ => {}
    }
}

/// A refusal of 400 with the vendor's id, where something is wrong.
fn unless(is_right: bool, id: &str) -> Result<(), Refusal> {
    if is_right { Ok(()) } else { Err(refusal(400, id)) }
}

fn refusal(code: u16, id: &str) -> Refusal {
    // The ids say in words what is wrong.
    let text = id.to_lowercase().replace('_', " ");
    Refusal::new(code, id, &format!("The request was refused: {text}."))
}
