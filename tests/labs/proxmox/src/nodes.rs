//! What is read of a node, and its few settings and actions.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, field};
use crate::cluster::{Cluster, check_digest, hash};
use crate::datacenter::{NODE_CORES, NODE_MEMORY, fingerprint};
use crate::guests::GuestKind;
use crate::store::written;
use crate::tasks::Order;

/// Services that cannot be stopped over the API which they serve.
const NEEDED: [&str; 3] = ["pveproxy", "pvedaemon", "pve-cluster"];

impl Cluster {
    pub(crate) fn node_call(&mut self, call: &Call) -> Option<Outcome> {
        let method = call.route.method.as_str();
        if call.is("GET", "/nodes") {
            return Some(Ok(self
                .nodes
                .iter()
                .map(|node| Value::Object(self.node_row(&node.name)))
                .collect()));
        }
        let tail = call.route.path.strip_prefix("/nodes/{node}")?;
        if tail.starts_with("/services") {
            return self.service_call(call, tail);
        }
        Some(match (method, tail) {
            ("GET", "/status") => Ok(self.node_status(call)),
            ("POST", "/status") => {
                self.restart_node(call.node(), call.text("command") == "reboot");
                Ok(Value::Null)
            }
            ("POST", "/startall" | "/stopall" | "/suspendall" | "/migrateall") => Ok(self.bulk(call)),
            ("GET", "/time") => {
                let zone = self.store.single(&call.path).get("timezone").cloned();
                let now = self.now_secs();
                Ok(json!({
                    "time": now, "localtime": now + 3600,
                    "timezone": zone.unwrap_or(json!("Europe/Berlin")),
                }))
            }
            ("PUT", "/dns") => {
                // A server that is left out is removed.
                *self.store.single_mut(&call.path) = written(call);
                Ok(Value::Null)
            }
            ("GET", "/hosts") => {
                let data = field(&self.store.single(&call.path), "data").to_owned();
                Ok(json!({ "data": data, "digest": hash(&data, 40) }))
            }
            ("POST", "/hosts") => {
                let data = field(&self.store.single(&call.path), "data").to_owned();
                check_digest(call, &hash(&data, 40)).map(|()| {
                    *self.store.single_mut(&call.path) = written(call);
                    Value::Null
                })
            }
            ("GET", "/netstat") => Ok(self.guest_traffic(call)),
            ("GET", "/disks/lvm") => {
                let rows = self.store.rows(&call.path).iter();
                let groups =
                    rows.map(|row| json!({ "name": row.id, "leaf": 0, "size": 4_000_787_030_016_u64 }));
                Ok(json!({ "leaf": 0, "children": groups.collect::<Vec<_>>() }))
            }
            ("GET", "/disks/lvmthin") => {
                let rows = self.store.rows(&call.path).iter();
                Ok(rows
                    .map(|row| json!({ "lv": row.id, "vg": row.id, "lv_size": 4_000_000_000_000_u64 }))
                    .collect())
            }
            ("GET", "/rrddata") => Ok(self.node_series()),
            ("GET", "/syslog" | "/journal") => Ok(self.node_log(tail)),
            _ => return self.inventory(call, tail),
        })
    }

    /// Reads whose answers hardly change: packages, templates, subscription, disks, certificates.
    fn inventory(&self, call: &Call, tail: &str) -> Option<Outcome> {
        static ANSWERS: LazyLock<Object> = LazyLock::new(|| {
            serde_json::from_str(include_str!("../inventory.json")).expect("the file is valid JSON")
        });
        if call.route.method == "POST" && tail == "/wakeonlan" {
            return Some(Ok(Value::from("BC:24:11:AA:00:02")));
        }
        if call.route.method != "GET" {
            return None;
        }
        let mut answer = ANSWERS.get(tail)?.clone();
        if tail == "/disks/list" {
            for (place, disk) in answer.as_array_mut().into_iter().flatten().enumerate() {
                disk["serial"] = Value::from(hash(&format!("{} {place}", call.node()), 14));
            }
        }
        if tail == "/certificates/info" {
            let (certificate, now) = (&mut answer[0], self.now_secs());
            certificate["fingerprint"] = Value::from(fingerprint(call.node()));
            certificate["subject"] =
                Value::from(format!("/OU=PVE Cluster Node/O=Proxmox/CN={}", call.node()));
            certificate["san"] = json!([call.node(), "localhost", "127.0.0.1"]);
            certificate["notbefore"] = Value::from(now - 90 * 86_400);
            certificate["notafter"] = Value::from(now + 640 * 86_400);
        }
        Some(Ok(answer))
    }

    fn service_call(&mut self, call: &Call, tail: &str) -> Option<Outcome> {
        let service = call.text("service").to_owned();
        let node = self.node(call.node()).ok()?;
        let row = |name: &str, runs: bool| {
            json!({
                "service": name, "name": name, "desc": format!("{name} daemon"),
                "state": if runs { "running" } else { "dead" },
                "active-state": if runs { "active" } else { "inactive" }, "unit-state": "enabled",
            })
        };
        if tail == "/services" {
            return Some(Ok(node.services.iter().map(|(name, runs)| row(name, *runs)).collect()));
        }
        let Some(runs) = node.services.get(&service).copied() else {
            return Some(Err(Failure::parameter(
                "service",
                format!("value '{service}' does not have a value in the enumeration"),
            )));
        };
        let action = tail.rsplit('/').next().unwrap_or_default().to_owned();
        match action.as_str() {
            "state" => Some(Ok(row(&service, runs))),
            "start" | "stop" | "restart" | "reload" => {
                if action == "stop" && NEEDED.contains(&service.as_str()) {
                    return Some(Err(Failure::refused(format!("cannot stop service '{service}'"))));
                }
                let (kind, name) = (format!("srv{action}"), call.node().to_owned());
                let id = service.clone();
                Some(Ok(self.start(&call.caller, Order::new(call.node(), &kind, id), move |cluster| {
                    if let Ok(node) = cluster.node_mut(&name) {
                        node.services.insert(service, action != "stop");
                    }
                    Ok(())
                })))
            }
            _ => None,
        }
    }

    fn node_status(&self, call: &Call) -> Value {
        let row = self.node_row(call.node());
        let used = row.get("mem").and_then(Value::as_u64).unwrap_or(0);
        let free = NODE_MEMORY - used;
        let (major, minor) = self.settings.release;
        json!({
            "uptime": row.get("uptime"), "cpu": row.get("cpu"), "wait": 0.001, "idle": 0,
            "loadavg": ["0.42", "0.51", "0.47"],
            "memory": { "total": NODE_MEMORY, "used": used, "free": free, "available": free },
            "swap": { "total": 8_u64 << 30, "used": 0, "free": 8_u64 << 30 },
            "rootfs": { "total": 98_u64 << 30, "used": 11_u64 << 30, "avail": 87_u64 << 30, "free": 87_u64 << 30 },
            "cpuinfo": {
                "model": "AMD Ryzen 7 PRO 8700GE", "cpus": NODE_CORES, "cores": NODE_CORES / 2, "sockets": 1,
                "mhz": "3650.000", "hvm": "1", "user_hz": 100, "flags": "fpu vme",
            },
            "ksm": { "shared": 0 },
            "boot-info": { "mode": "efi", "secureboot": 0 },
            "current-kernel": { "sysname": "Linux", "release": "6.17.2-1-pve", "machine": "x86_64" },
            "kversion": "Linux 6.17.2-1-pve #1 SMP",
            "pveversion": format!("pve-manager/{major}.{minor}.3/3b4ae6b2b5a8a1d4"),
        })
    }

    /// What guests received and sent, by network device.
    fn guest_traffic(&self, call: &Call) -> Value {
        let mut rows = Vec::new();
        for guest in self.guests.values().filter(|guest| guest.node == call.node() && guest.run.is_some()) {
            let row = self.guest_row(guest);
            for (device, _) in guest.networks() {
                let number = |key: &str| row.get(key).map(crate::answer::text_of).unwrap_or_default();
                // The vendor sends these three as text.
                rows.push(json!({
                    "vmid": guest.vmid.to_string(), "dev": device, "in": number("netin"), "out": number("netout"),
                }));
            }
        }
        Value::Array(rows)
    }

    fn node_series(&self) -> Value {
        let now = self.now_secs() / 60 * 60;
        let points = (0..70).rev().map(|past| {
            json!({
                "time": now - past * 60, "cpu": 0.05, "maxcpu": NODE_CORES,
                "memused": 20_u64 << 30, "memtotal": NODE_MEMORY,
                "netin": 81_234.5, "netout": 20_111.25, "loadavg": 0.44, "iowait": 0.001,
            })
        });
        points.collect()
    }

    fn node_log(&self, tail: &str) -> Value {
        let guests =
            self.guests.values().filter(|guest| guest.run.is_some() && guest.kind == GuestKind::Qemu);
        let lines: Vec<String> =
            guests.take(20).map(|guest| format!("pvestatd: VM {} is up", guest.vmid)).collect();
        if tail == "/journal" {
            return json!(lines);
        }
        lines.iter().enumerate().map(|(place, line)| json!({ "n": place + 1, "t": line })).collect()
    }
}
