//! Networks of a site, and profiles whose rows have forms of their own.

use serde_json::{Value, json};

use crate::call::{Call, Release};
use crate::controller::Omada;
use crate::facts::Role;
use crate::generic::not_found;
use crate::outcome::{Failure, INVALID, Outcome, UNSUPPORTED};
use crate::page::{page, show};

const NETWORKS: &str = "switch.network";

impl Omada {
    pub(crate) fn network_call(&mut self, call: &Call) -> Option<Outcome> {
        if call.item.id == "switch.port-profile" {
            return self.port_profile_call(call);
        }
        if call.item.id != NETWORKS {
            return None;
        }
        match call.route.role {
            Role::List => {
                let rows = self.store.rows(call.scope(), NETWORKS).iter().collect();
                Some(Ok(page(call, rows, |row| view(row, call.route.is_web))))
            }
            Role::Read if call.route.name.ends_with("lan-networks/interface") => {
                let networks =
                    self.store.rows(call.scope(), NETWORKS).iter().filter(|row| row["purpose"] == 1);
                Some(Ok(page(call, networks.collect(), |row| view(row, false))))
            }
            Role::Get => {
                let row = self.row(call).ok_or_else(|| not_found(call));
                Some(row.map(|row| show(call, &view(row, call.route.is_web))))
            }
            Role::Create | Role::Update if call.last() == "confirm" || call.last() == "es" => None,
            Role::Create | Role::Update => Some(self.write_network(call)),
            Role::Delete => {
                let is_default = self.row(call).is_some_and(|row| row["primary"] == true);
                is_default.then(|| Err(Failure::new(-33503)))
            }
            _ => None,
        }
    }

    fn write_network(&mut self, call: &Call) -> Outcome {
        let is_create = call.route.role == Role::Create;
        // 6.2 creates networks on the Open API only.
        if call.route.is_web && is_create && self.seed.release == Release::V62 {
            return Err(Failure::new(UNSUPPORTED));
        }
        let mut body = call.body.clone();
        if call.route.is_web {
            if let Some(purpose) = body["purpose"].as_str() {
                body["purpose"] = json!(i32::from(purpose == "interface"));
            }
            let settings = body["dhcpSettings"].take();
            if settings.is_object() {
                body["dhcpSettingsVO"] = settings;
            }
            // The web surface wants back what its own read does not show.
            if !is_create && body["lanNetworkIpv6Config"]["proto"].is_null() {
                return Err(Failure::with(
                    INVALID,
                    "Invalid request parameters: lanNetworkIpv6Config.proto.",
                ));
            }
            if let Some(fields) = body.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
        }
        if body["purpose"] == 1 {
            if body["interfaceIds"].as_array().is_none_or(Vec::is_empty) {
                return Err(Failure::with(-33515, "An interface is required."));
            }
            if !body["gatewaySubnet"].as_str().is_some_and(is_subnet) {
                return Err(Failure::with(-35930, "The gateway and subnet are required."));
            }
        }
        let own = self.row(call).map(|row| row["id"].clone());
        let vlan = &body["vlan"];
        let is_taken =
            |row: &&Value| !vlan.is_null() && row["vlan"] == *vlan && own.as_ref() != Some(&row["id"]);
        if self.store.rows(call.scope(), NETWORKS).iter().any(|row| is_taken(&row)) {
            return Err(Failure::with(-33501, "The VLAN is used by another network."));
        }
        let call = Call::new(call.route, call.parameters.clone(), call.query.clone(), body);
        self.generic(&call)
    }

    fn port_profile_call(&mut self, call: &Call) -> Option<Outcome> {
        let row = self.row(call)?;
        let is_built_in = row["flag"] == 0 || row["flag"] == 1;
        let code = if call.route.role == Role::Delete { -33507 } else { INVALID };
        (call.is_write() && is_built_in)
            .then(|| Err(Failure::with(code, "A built-in profile cannot be changed.")))
    }

    /// Groups name their type in the path; schedules and the like are as the facts say.
    pub(crate) fn profile_call(&mut self, call: &Call) -> Option<Outcome> {
        if call.item.id != "profiles.group" || !matches!(call.route.role, Role::Update | Role::Delete) {
            return None;
        }
        let group = self.row(call)?;
        let is_other = !crate::store::is(group, "type", call.parameter("groupType"));
        let is_built_in = group["buildIn"] == true;
        (is_other || is_built_in).then(|| Err(Failure::new(INVALID)))
    }
}

/// The network as one surface shows it: each has its own names for DHCP and IPv6.
fn view(row: &Value, is_web: bool) -> Value {
    let mut view = row.clone();
    view["dhcpSettings"] = row["dhcpSettingsVO"].clone();
    view["lanNeworkIpv6Config"] = row["lanNetworkIpv6Config"].clone();
    if is_web {
        view["purpose"] = json!(if row["purpose"] == 1 { "interface" } else { "vlan" });
        if let Some(config) = view["lanNetworkIpv6Config"].as_object_mut() {
            config.remove("proto");
        }
        if let Some(fields) = view.as_object_mut() {
            fields.remove("dhcpSettingsVO");
        }
    }
    if let Some(fields) = view.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    view
}

/// `10.5.0.1/24`.
fn is_subnet(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    address.parse::<std::net::Ipv4Addr>().is_ok() && prefix.parse::<u8>().is_ok_and(|prefix| prefix <= 30)
}
