//! The agent inside virtual machines. Its answers stand one level deeper, below `result`.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Outcome};
use crate::cluster::Cluster;
use crate::property;

impl Cluster {
    pub(super) fn agent_call(&mut self, call: &Call, tail: &str) -> Option<Outcome> {
        let command = tail.strip_prefix("agent/")?;
        let guest = match self.guest(call) {
            Ok(guest) => guest,
            Err(failure) => return Some(Err(failure)),
        };
        let agent = guest.text("agent");
        if property::find(&agent, "enabled").unwrap_or_else(|| property::first(&agent)) != "1" {
            return Some(Err(Failure::refused("No QEMU guest agent configured")));
        }
        if guest.run.is_none() {
            return Some(Err(Failure::refused(format!("VM {} is not running", guest.vmid))));
        }
        if guest.is_unresponsive {
            return Some(Err(Failure::refused("QEMU guest agent is not running")));
        }
        let result = match command {
            "network-get-interfaces" => self.agent_interfaces(call),
            "get-host-name" => json!({ "host-name": guest.name() }),
            "get-osinfo" => json!({
                "id": "debian", "name": "Debian GNU/Linux", "pretty-name": "Debian GNU/Linux 13 (trixie)",
                "version-id": "13", "machine": "x86_64", "kernel-release": "6.12.48+deb13-amd64",
            }),
            "get-timezone" => json!({ "offset": 7200, "zone": "CEST" }),
            "get-time" => json!(self.now_ms * 1_000_000),
            "get-users" | "get-memory-blocks" => json!([]),
            "get-vcpus" => json!([{ "logical-id": 0, "online": true, "can-offline": false }]),
            "get-fsinfo" => json!([{
                "name": "sda1", "mountpoint": "/", "type": "ext4", "used-bytes": 4_812_345_344_u64,
                "total-bytes": 21_003_583_488_u64, "disk": [],
            }]),
            "fsfreeze-status" => json!("thawed"),
            "info" => json!({ "version": "10.1.2", "supported_commands": [] }),
            "exec" => return Some(Ok(json!({ "pid": 4242 }))),
            "exec-status" => return Some(Ok(json!({ "exited": 1, "exitcode": 0, "out-data": "" }))),
            "file-read" => return Some(Ok(json!({ "content": "", "bytes-read": 0 }))),
            "file-write" => return Some(Ok(Value::Null)),
            "shutdown" => {
                self.power_off(call.vmid());
                json!({})
            }
            _ => json!({}),
        };
        Some(Ok(json!({ "result": result })))
    }

    fn agent_interfaces(&self, call: &Call) -> Value {
        let Ok(guest) = self.guest(call) else { return json!([]) };
        let secs = guest.run.as_ref().map_or(0, |run| self.now_ms.saturating_sub(run.since_ms) / 1000);
        let mut rows = vec![json!({
            "name": "lo", "hardware-address": "00:00:00:00:00:00",
            "ip-addresses": [{ "ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8 }],
        })];
        for (place, (_, text)) in guest.networks().enumerate() {
            let tag = property::find(&text, "tag").unwrap_or("1");
            rows.push(json!({
                "name": format!("ens{}", 18 + place),
                "hardware-address": property::first(&text).to_lowercase(),
                "ip-addresses": [{
                    "ip-address": format!("10.{tag}.0.{}", guest.vmid % 250),
                    "ip-address-type": "ipv4",
                    "prefix": 24,
                }],
                "statistics": {
                    "rx-bytes": secs * 900, "tx-bytes": secs * 300, "rx-packets": secs * 2, "tx-packets": secs,
                    "rx-errs": 0, "tx-errs": 0, "rx-dropped": 0, "tx-dropped": 0,
                },
            }));
        }
        Value::Array(rows)
    }
}
