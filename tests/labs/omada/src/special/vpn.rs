//! VPN: the list over all its tables, keys that a read makes, and tunnels that run.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::Outcome;
use crate::page::page;

/// The tables of VPNs, in the order of the list over all.
const TABLES: [&str; 3] = ["vpn.site-to-site", "vpn.server", "vpn.client"];

impl Omada {
    pub(crate) fn vpn_call(&mut self, call: &Call) -> Option<Outcome> {
        let site = call.scope().to_owned();
        match (call.item.id.as_str(), call.route.role, call.last()) {
            ("vpn.site-to-site", Role::List, "vpn" | "vpns") => {
                let rows = TABLES.iter().flat_map(|table| self.store.rows(&site, table));
                Some(Ok(page(call, rows.collect(), Clone::clone)))
            }
            ("vpn.site-to-site", Role::Read, "psk") => Some(Ok(json!({"key": self.key()}))),
            ("vpn.wireguard", Role::Read, "wireguard-key") => {
                Some(Ok(json!({"privateKey": self.key(), "publicKey": self.key()})))
            }
            ("vpn.wireguard", Role::Read, "wireguard-summarys") => {
                let rows = self.store.rows(&site, "vpn.wireguard").iter().collect();
                Some(Ok(page(call, rows, Clone::clone)))
            }
            ("vpn.status", Role::List, "tunnel") => {
                let seconds = self.now / 1000 % 1_000_000;
                let tunnel = |row: &Value, number: u64| {
                    json!({
                        "vpnId": number, "vpnName": row["name"], "interfaceName": "WAN/LAN1", "vpnType": 1,
                        "localIp": "203.0.113.10", "remoteIp": row["remoteIp"], "downBytes": seconds * 800,
                        "upBytes": seconds * 300, "downPkts": seconds, "upPkts": seconds,
                        "uptime": "1h 2m 3s",
                    })
                };
                let is_up = |row: &&Value| row["status"] == true;
                let tunnels = TABLES.iter().flat_map(|table| self.store.rows(&site, table)).filter(is_up);
                let mut rows: Vec<Value> =
                    tunnels.zip(1_u64..).map(|(row, number)| tunnel(row, number)).collect();
                // Every user who may is connected to the first server.
                let server = self.store.rows(&site, "vpn.server").iter().find(is_up);
                let users = self.store.rows(&site, "vpn.user").iter().zip(1_u64..);
                rows.extend(server.into_iter().flat_map(|server| {
                    users.clone().map(move |(user, number)| {
                        let mut row = tunnel(server, 100);
                        row["userId"] = json!(number);
                        row["userName"] = user["username"].clone();
                        row["remoteIp"] = json!(format!("198.51.100.{}", number % 250 + 1));
                        row
                    })
                }));
                Some(Ok(page(call, rows.iter().collect(), Clone::clone)))
            }
            _ => None,
        }
    }

    /// 32 bytes as text, different in every call.
    fn key(&mut self) -> String {
        let id = self.store.new_id();
        format!("{}=", &hex::encode(Sha256::digest(id))[..43])
    }
}
