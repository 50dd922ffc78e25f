//! The reading objects, besides `system`: what the daemons report about the configuration in force.
//!
//! What a configuration decides (interfaces, addresses, host names, networks in the air) follows the committed
//! files; the rest is one believable household.

mod clients;
mod network;
mod system;
mod wireless;

use serde_json::{Value, json};

use crate::args::Args;
use crate::device::Device;
use crate::status::{Reply, Status};

impl Device {
    /// The interfaces, as `network.interface dump` tells them.
    pub(crate) fn interfaces(&self) -> Vec<Value> {
        network::interfaces(self)
    }

    /// The wireless interface that a host is on, and its address. `None` of a host that the house does not have.
    pub(crate) fn host(mac: &str) -> Option<(Option<&'static str>, &'static str)> {
        clients::of(mac).map(|client| (client.ifname, client.address))
    }

    /// One call of an object that only reports.
    pub(crate) fn inventory(&mut self, object: &str, method: &str, args: Args<'_>) -> Reply {
        let data = match (object, method) {
            ("network.interface", "dump") => json!({ "interface": network::interfaces(self) }),
            ("network.device", "status") => return network::status(self, args.text("name")),
            ("luci-rpc", "getNetworkDevices") => network::luci_devices(self),
            ("network.wireless", "status") => wireless::status(self),
            ("iwinfo", "devices") => json!({ "devices": wireless::ifnames(self) }),
            ("iwinfo", "info") => wireless::radio(self, args.required("device")?).ok_or(Status::NotFound)?,
            ("iwinfo", "assoclist") => {
                wireless::assoclist(self, args.required("device")?).ok_or(Status::NotFound)?
            }
            ("hostapd.phy0-ap0" | "hostapd.phy1-ap0", _) => {
                wireless::clients(self, object.trim_start_matches("hostapd."))
            }
            ("luci-rpc", "getDHCPLeases") => clients::leases(self, args.integer("family")),
            ("luci-rpc", "getHostHints") => clients::hints(self),
            ("dhcp", "ipv4leases") if self.settings.has_odhcpd_leases => clients::odhcpd_leases(self),
            ("dhcp", "ipv6leases") => clients::ipv6_leases(),
            ("log", "read") => system::log(self, args.integer("lines")),
            ("rc", "list") => system::init_scripts(args.text("name")),
            ("service", "list") => system::services(args.text("name")),
            _ => return Err(Status::MethodNotFound),
        };
        Ok(Some(data))
    }
}
