//! Reads that are computed from other rows: links, power, neighbours, leases, routes.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::Outcome;
use crate::page::{page, show};
use crate::store::is;
use crate::timeline::{CLIENTS, DEVICES};

const NETWORKS: &str = "switch.network";
const LEASE_SECS: u64 = 7200;

impl Omada {
    pub(crate) fn view_call(&mut self, call: &Call) -> Option<Outcome> {
        if call.is_write() {
            return None;
        }
        let result = match (call.item.id.as_str(), call.last()) {
            ("insights.poe", "poe-usage") => self.poe_usage(call),
            ("insights.topology", "topology") if call.route.role == Role::Read => self.topology(call),
            ("insights.dashboard", "overview-diagram") => self.overview(call),
            ("switch.neighbours", "lldp-neighbors") => self.neighbours(call),
            ("switch.vlan-interface", "networks") if call.route.role == Role::List => {
                self.switch_networks(call)
            }
            ("routing.wan-status", "wan-status") if !call.mac().is_empty() => self.wan_status(call),
            ("routing.gateway", "lan-status") => self.lan_status(call),
            ("routing.dhcp-leases", "user-list") if call.route.role == Role::List => self.leases(call),
            ("routing.table", _) if call.route.role == Role::List => self.routes(call),
            _ => return None,
        };
        Some(Ok(result))
    }

    /// Keeps what was set of the interface of a switch in a network, whose row is otherwise that of the network.
    pub(crate) fn vlan_interface_write(&mut self, call: &Call) -> Option<Outcome> {
        let id =
            call.parameters.get("networkId").filter(|_| call.item.id == "switch.vlan-interface")?.clone();
        if !call.is_write() {
            return None;
        }
        let name = call.collection();
        let mut row = call.body.clone();
        row["id"] = json!(id);
        let rows = self.store.rows_mut(call.scope(), &name);
        match rows.iter_mut().find(|known| known["id"] == id.as_str()) {
            Some(known) => crate::shape::lay_over(known, &row),
            None => rows.push(row),
        }
        Some(Ok(Value::Null))
    }

    /// Answers rows that are stored nowhere.
    fn computed(call: &Call, rows: &[Value]) -> Value {
        page(call, rows.iter().collect(), Clone::clone)
    }

    fn poe_usage(&self, call: &Call) -> Value {
        let switches =
            self.store.rows(call.scope(), DEVICES).iter().filter(|row| row["poeBudget"].is_number());
        let rows: Vec<Value> = switches
            .map(|switch| {
                let mac = switch["mac"].as_str().unwrap_or_default();
                let ports: Vec<Value> = self
                    .ports_of(call.scope(), mac)
                    .map(|port| {
                        json!({
                            "portId": port["port"], "poeSupported": port["supportPoe"],
                            "poeEnabled": port["poe"] == 1,
                            "poePower": whole(&port["power"]), "poePercent": whole(&port["power"]),
                        })
                    })
                    .collect();
                let used: u64 = ports.iter().filter_map(|port| port["poePower"].as_u64()).sum();
                let budget = switch["poeBudget"].as_u64().unwrap_or(1);
                json!({
                    "mac": mac, "name": switch["name"], "portNum": ports.len(), "totalPowerUsed": used,
                    "totalPower": budget, "totalPercentUsed": used * 100 / budget.max(1), "poePorts": ports,
                })
            })
            .collect();
        Self::computed(call, &rows)
    }

    fn topology(&self, call: &Call) -> Value {
        let devices = self.store.rows(call.scope(), DEVICES);
        let nodes: Vec<Value> = devices
            .iter()
            .map(|device| {
                let mut node = self.device_view(device, false);
                node["clientCount"] =
                    json!(self.clients_of(call.scope(), device["mac"].as_str().unwrap_or_default()));
                node["healthScore"] = json!(9);
                node
            })
            .collect();
        let linked = devices.iter().filter(|device| device["uplinkDeviceMac"].is_string());
        let edges: Vec<Value> = linked
            .map(|device| {
                json!({
                    "upLinkMac": device["uplinkDeviceMac"], "downLinkMac": device["mac"], "blockedType": 0,
                    "upLinkPort": {"port": device["uplinkDevicePort"], "name": format!("Port{}",
                    text(&device["uplinkDevicePort"]))},
                    "port": {"port": "1", "name": "Port1"},
                })
            })
            .collect();
        let view = json!({
            "siteId": call.scope(), "lastUpdateTime": self.now, "topologyNodes": nodes,
            "topologyEdges": edges,
        });
        show(call, &view)
    }

    fn overview(&self, call: &Call) -> Value {
        let devices = self.store.rows(call.scope(), DEVICES);
        let of = |kind: &str| devices.iter().filter(|row| row["type"] == kind).count();
        let up = |kind: &str| {
            devices.iter().filter(|row| row["type"] == kind && row["detailStatus"] == 14).count()
        };
        let clients: Vec<&Value> =
            self.store.rows(call.scope(), CLIENTS).iter().filter(|row| row["active"] == true).collect();
        let wireless = clients.iter().filter(|row| row["wireless"] == true).count();
        let ports = self.store.rows(call.scope(), "switch.port");
        let view = json!({
            "totalGatewayNum": of("gateway"), "connectedGatewayNum": up("gateway"),
            "disconnectedGatewayNum": of("gateway") - up("gateway"), "netCapacity": 1000, "netUsage": 12.5,
            "totalSwitchNum": of("switch"), "connectedSwitchNum": up("switch"),
            "disconnectedSwitchNum": of("switch") - up("switch"), "totalPorts": ports.len(),
            "availablePorts": ports.iter().filter(|port| port["portStatus"]["linkStatus"] == 0).count(),
            "powerConsumption": 41.5, "totalApNum": of("ap"), "connectedApNum": up("ap"), "isolatedApNum": 0,
            "disconnectedApNum": of("ap") - up("ap"), "totalClientNum": clients.len(),
            "wiredClientNum": clients.len() - wireless, "wirelessClientNum": wireless,
            "guestNum": clients.iter().filter(|row| row["guest"] == true).count(),
        });
        show(call, &view)
    }

    fn neighbours(&self, call: &Call) -> Value {
        let devices = self.store.rows(call.scope(), DEVICES);
        let own = |row: &&Value| is(row, "uplinkDeviceMac", call.mac());
        let rows: Vec<Value> = devices
            .iter()
            .filter(own)
            .map(|device| {
                let port = text(&device["uplinkDevicePort"]);
                json!({
                    "portId": port.parse::<u64>().unwrap_or(1), "standardPort": format!("1/0/{port}"),
                    "deviceId": device["mac"], "neighborPortId": "1", "systemName": device["name"],
                    "ttl": 120,
                    "capabilities": if device["type"] == "ap" { "WLAN Access Point" } else { "Bridge" },
                })
            })
            .collect();
        Self::computed(call, &rows)
    }

    fn switch_networks(&self, call: &Call) -> Value {
        let device = self.store.find(call.scope(), DEVICES, "mac", call.mac()).cloned().unwrap_or_default();
        let stored = self.store.rows(call.scope(), &call.collection());
        let rows: Vec<Value> = self
            .store
            .rows(call.scope(), NETWORKS)
            .iter()
            .map(|network| {
                let own = stored.iter().find(|row| row["id"] == network["id"]);
                let is_management = network["primary"] == true;
                let mut row = json!({
                    "id": network["id"], "vlan": network["vlan"], "name": network["name"],
                    "status": is_management, "mvlan": is_management, "ipv6Enable": false, "mode": 0,
                });
                if is_management {
                    row["ip"] = json!({"mode": 1, "ip": device["ip"], "netmask": "255.255.255.0"});
                }
                if let Some(own) = own {
                    crate::shape::lay_over(&mut row, own);
                }
                row
            })
            .collect();
        Self::computed(call, &rows)
    }

    fn wan_status(&self, call: &Call) -> Value {
        let device = self.store.find(call.scope(), DEVICES, "mac", call.mac()).cloned().unwrap_or_default();
        let is_up = device["detailStatus"] == 14;
        let seconds = self.now / 1000 % 10_000_000;
        let rows = [json!({
            "port": 1, "name": "WAN/LAN1", "mac": device["mac"], "portDesc": "", "type": 0, "physicalType": 1,
            "mode": 0,
            "poe": false, "status": i32::from(is_up), "internetState": i32::from(is_up),
            "ip": device["publicIp"],
            "onlineDetection": 1, "speed": 3, "duplex": 2, "rx": seconds * 40_000, "tx": seconds * 9000,
            "rxPkt": seconds * 40, "txPkt": seconds * 12, "rxRate": 320, "txRate": 72, "proto": "dhcp",
            "wanPortIpv4Config": {
                "ip": device["publicIp"], "netmask": "255.255.255.0", "gateway": "203.0.113.1",
                "priDns": "203.0.113.53", "sndDns": "0.0.0.0", "mac": device["mac"],
            },
            "latency": 11, "loss": 0.0, "isp": "Example ISP", "healthLevel": 2,
        })];
        Self::computed(call, &rows)
    }

    fn lan_status(&self, call: &Call) -> Value {
        let seconds = self.now / 1000 % 10_000_000;
        let networks = self.store.rows(call.scope(), NETWORKS).iter().filter(|row| row["purpose"] == 1);
        let rows: Vec<Value> = networks
            .map(|network| {
                let clients = self.store.rows(call.scope(), CLIENTS).iter();
                let count =
                    clients.filter(|row| row["active"] == true && row["vid"] == network["vlan"]).count();
                let subnet = text(&network["gatewaySubnet"]);
                json!({
                    "vlan": network["vlan"], "lanName": network["name"], "ip": subnet.split('/').next(),
                    "rx": seconds * 9000, "tx": seconds * 40_000, "clientNum": count,
                })
            })
            .collect();
        Self::computed(call, &rows)
    }

    fn leases(&self, call: &Call) -> Value {
        let gateway = self.store.rows(call.scope(), DEVICES).iter().find(|row| row["type"] == "gateway");
        let gateway = gateway.cloned().unwrap_or_default();
        let clients = self.store.rows(call.scope(), CLIENTS).iter().filter(|row| row["active"] == true);
        let rows: Vec<Value> = clients
            .map(|client| {
                json!({
                    "macAddress": client["mac"], "ipAddress": client["ip"], "name": client["name"],
                    "status": 1, "type": 0,
                    "netName": client["networkName"], "serverMac": gateway["mac"],
                    "serverName": gateway["name"],
                    "leftLeaseTime": (LEASE_SECS - self.now / 1000 % LEASE_SECS).to_string(),
                })
            })
            .collect();
        Self::computed(call, &rows)
    }

    fn routes(&self, call: &Call) -> Value {
        let gateway = self.store.rows(call.scope(), DEVICES).iter().find(|row| row["type"] == "gateway");
        let gateway = gateway.cloned().unwrap_or_default();
        let row = |destination: Value, hop: Value, distance: u64, name: &Value| {
            json!({
                "mac": gateway["mac"], "name": name, "distance": distance, "destinationIp": destination,
                "nextHop": hop,
            })
        };
        let mut rows = vec![row(json!("0.0.0.0/0"), json!("203.0.113.1"), 1, &json!("WAN/LAN1"))];
        for network in self.store.rows(call.scope(), NETWORKS).iter().filter(|row| row["purpose"] == 1) {
            rows.push(row(network["gatewaySubnet"].clone(), json!("0.0.0.0"), 0, &network["name"]));
        }
        for route in
            self.store.rows(call.scope(), "routing.static-route").iter().filter(|row| row["status"] == true)
        {
            for destination in route["destinations"].as_array().into_iter().flatten() {
                let distance = route["metric"].as_u64().unwrap_or_default();
                rows.push(row(destination.clone(), route["nextHopIp"].clone(), distance, &route["name"]));
            }
        }
        Self::computed(call, &rows)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "watts of a port are small and positive"
)]
fn whole(value: &Value) -> u64 {
    value.as_f64().unwrap_or_default() as u64
}
