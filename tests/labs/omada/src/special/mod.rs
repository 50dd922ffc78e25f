//! Behaviour that the facts do not tell: devices, clients, wireless, and whatever acts.

mod clients;
mod devices;
mod firewall;
mod firmware;
mod hotspot;
mod logs;
mod networks;
mod ports;
mod system;
mod views;
mod vpn;
mod wireless;

pub(crate) use ports::change as change_port;
pub(crate) use wireless::blocks as ssid_blocks;

use crate::call::Call;
use crate::controller::Omada;
use crate::outcome::Outcome;

impl Omada {
    /// The answer of a call that has behaviour of its own.
    pub(crate) fn special(&mut self, call: &Call) -> Option<Outcome> {
        match call.item.id.split('.').next().unwrap_or_default() {
            "device" | "bulk" => self.device_call(call),
            "firmware" => self.firmware_call(call),
            "firewall" => self.firewall_call(call),
            "hotspot" => self.hotspot_call(call),
            "insights" => {
                self.client_call(call).or_else(|| self.log_call(call)).or_else(|| self.view_call(call))
            }
            "wifi" => self.wireless_call(call).or_else(|| self.device_page(call)),
            "switch" => self
                .port_call(call)
                .or_else(|| self.network_call(call))
                .or_else(|| self.device_page(call))
                .or_else(|| self.vlan_interface_write(call))
                .or_else(|| self.view_call(call)),
            "routing" => {
                self.forward_call(call).or_else(|| self.device_page(call)).or_else(|| self.view_call(call))
            }
            "system" => self.system_call(call),
            "profiles" => self.profile_call(call),
            "vpn" => self.vpn_call(call),
            _ => None,
        }
    }
}
