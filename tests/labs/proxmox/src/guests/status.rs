//! What is read of guests: lists, current state, counters that grow with the time they run.

use serde_json::{Value, json};

use super::disks::{is_disk_key, parse_size};
use super::{Guest, GuestKind, kind_of};
use crate::answer::{Call, Failure, Object, Outcome};
use crate::cluster::Cluster;
use crate::property;

/// The memory of a guest in bytes.
pub(crate) fn memory_bytes(guest: &Guest) -> u64 {
    let text = guest.text("memory");
    let text = property::find(&text, "current").unwrap_or_else(|| property::first(&text));
    text.parse::<u64>().unwrap_or(512) << 20
}

/// Counters of a guest that has run for `secs`: repeatable, and never falling while it runs.
fn counters(vmid: u64, secs: u64) -> [(&'static str, u64); 4] {
    let rate = 700 + vmid * 37 % 9000;
    [
        ("netin", secs * rate),
        ("netout", secs * rate / 3),
        ("diskread", secs * rate * 2),
        ("diskwrite", secs * rate * 4),
    ]
}

/// The share of its processors that a guest uses: between 1 and 20 per cent, slowly changing.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn processor_share(vmid: u64, now_secs: u64) -> f64 {
    let wave = (now_secs / 10 + vmid * 13) % 40;
    0.01 + wave.abs_diff(20) as f64 / 100.0
}

impl Cluster {
    /// What lists and the current state of a guest have in common.
    pub(crate) fn guest_row(&self, guest: &Guest) -> Object {
        let secs = guest.run.as_ref().map_or(0, |run| self.now_ms.saturating_sub(run.since_ms) / 1000);
        let (memory, is_running) = (memory_bytes(guest), guest.run.is_some());
        let disk_key = guest.config.keys().find(|key| is_disk_key(key) && !key.starts_with("ide"));
        let disk =
            disk_key.and_then(|key| parse_size(property::find(&guest.text(key), "size")?)).unwrap_or(0);
        let number = |key: &str| guest.text(key).parse::<u64>().unwrap_or(1);
        let cpus = number("cores") * if guest.kind == GuestKind::Qemu { number("sockets") } else { 1 };
        let mut row = crate::answer::object(json!({
            "vmid": guest.vmid,
            "name": guest.name(),
            "status": if is_running { "running" } else { "stopped" },
            "cpus": cpus,
            "maxmem": memory,
            "maxdisk": disk,
            "uptime": secs,
            "cpu": if is_running { processor_share(guest.vmid, self.now_secs()) } else { 0.0 },
            "mem": if is_running { memory / 100 * (35 + guest.vmid % 40) } else { 0 },
            "disk": if guest.kind == GuestKind::Lxc { disk / 4 } else { 0 },
        }));
        for (name, value) in counters(guest.vmid, secs) {
            row.insert(name.to_owned(), Value::from(value));
        }
        for key in ["tags", "lock", "template"] {
            if let Some(value) = guest.config.get(key) {
                row.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(run) = &guest.run {
            row.insert("pid".to_owned(), Value::from(run.pid));
        }
        if guest.kind == GuestKind::Lxc {
            row.insert("type".to_owned(), Value::from("lxc"));
            row.insert(
                "maxswap".to_owned(),
                Value::from(guest.text("swap").parse::<u64>().unwrap_or(0) << 20),
            );
        }
        row
    }

    pub(super) fn list_guests(&self, call: &Call) -> Value {
        let kind = kind_of(call);
        let here = self.guests.values().filter(|guest| guest.kind == kind && guest.node == call.node());
        let seen = here.filter(|guest| self.may(&call.caller, &format!("/vms/{}", guest.vmid), "VM.Audit"));
        seen.map(|guest| Value::Object(self.guest_row(guest))).collect()
    }

    pub(super) fn read_status(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        let mut row = self.guest_row(guest);
        let sid = format!("{}:{}", guest.kind.title().to_lowercase(), guest.vmid);
        let managed = self.store.find("/cluster/ha/resources", &sid);
        row.insert("ha".to_owned(), json!({ "managed": u8::from(managed.is_some()) }));
        if guest.kind == GuestKind::Qemu {
            let state = match &guest.run {
                Some(run) if run.is_paused => "paused",
                Some(_) => "running",
                None => "stopped",
            };
            row.insert("qmpstatus".to_owned(), Value::from(state));
            if guest.run.is_some() {
                row.insert("running-machine".to_owned(), Value::from("pc-i440fx-10.1+pve0"));
                row.insert("running-qemu".to_owned(), Value::from("10.1.2"));
            }
            if guest.text("agent").starts_with('1') || guest.text("agent").contains("enabled=1") {
                row.insert("agent".to_owned(), Value::from(1));
            }
        }
        Ok(Value::Object(row))
    }

    /// The last hour, a point a minute; while a guest did not run there is only the time.
    pub(super) fn guest_series(&mut self, call: &Call) -> Value {
        let Ok(guest) = self.guest(call) else { return json!([]) };
        let since = guest.run.as_ref().map_or(u64::MAX, |run| run.since_ms / 1000);
        let now = self.now_secs() / 60 * 60;
        let points = (0..70).rev().map(|minutes| {
            let time = now - minutes * 60;
            let mut point = json!({ "time": time });
            if time >= since {
                let rate = counters(guest.vmid, 1);
                point["cpu"] = json!(processor_share(guest.vmid, time));
                point["mem"] = json!(memory_bytes(guest) / 2);
                point["maxmem"] = json!(memory_bytes(guest));
                point["netin"] = json!(rate[0].1);
                point["netout"] = json!(rate[1].1);
            }
            point
        });
        points.collect()
    }

    /// The addresses of a container, which the node reads from outside.
    pub(super) fn container_interfaces(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        if guest.run.is_none() {
            return Err(Failure::refused(format!("CT {} not running", guest.vmid)));
        }
        let mut rows = vec![json!({
            "name": "lo", "hardware-address": "00:00:00:00:00:00", "hwaddr": "00:00:00:00:00:00",
            "inet": "127.0.0.1/8",
            "ip-addresses": [{ "ip-address": "127.0.0.1", "prefix": "8", "ip-address-type": "inet" }],
        })];
        for (_, text) in guest.networks() {
            let mac = property::find(&text, "hwaddr").unwrap_or_default().to_lowercase();
            let given = property::find(&text, "ip").filter(|ip| ip.contains('/')).map(str::to_owned);
            let cidr = given.unwrap_or_else(|| format!("10.20.0.{}/24", guest.vmid % 250));
            let (address, prefix) = cidr.split_once('/').unwrap_or_default();
            rows.push(json!({
                "name": property::find(&text, "name"), "hardware-address": mac, "hwaddr": mac, "inet": cidr,
                "ip-addresses": [{ "ip-address": address, "prefix": prefix, "ip-address-type": "inet" }],
            }));
        }
        Ok(Value::Array(rows))
    }
}
