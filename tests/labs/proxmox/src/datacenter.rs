//! Reads and actions for the whole cluster: version, status, resources, options, bulk actions.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome};
use crate::cluster::{Cluster, hash};
use crate::guests::GuestKind;
use crate::store::{merge, written};
use crate::tasks::Order;

/// The hardware of every node.
pub(crate) const NODE_CORES: u64 = 16;
/// The memory of every node in bytes.
pub(crate) const NODE_MEMORY: u64 = 64 << 30;

impl Cluster {
    pub(crate) fn datacenter_call(&mut self, call: &Call) -> Option<Outcome> {
        let method = call.route.method.as_str();
        Some(match (method, call.route.path.as_str()) {
            ("GET", "/version" | "/nodes/{node}/version") => Ok(self.version()),
            ("GET", "/cluster/status") => Ok(self.cluster_status()),
            ("GET", "/cluster/resources") => Ok(self.resources(call)),
            ("GET", "/cluster/nextid") => self.next_id(call),
            ("GET", "/cluster/log") => {
                let max = call.integer("max").and_then(|max| usize::try_from(max).ok()).unwrap_or(50);
                Ok(self.lines.iter().rev().take(max).cloned().collect())
            }
            ("GET", "/cluster/options") => {
                let mut options = self.store.single("/cluster/options");
                options.entry("mac_prefix".to_owned()).or_insert(Value::from("BC:24:11"));
                Ok(Value::Object(options))
            }
            ("PUT", "/cluster/options") => {
                let mut changes = written(call);
                let removed = call.list("delete");
                changes.retain(|name, _| !removed.contains(name));
                if let Some(text) =
                    changes.get("description").and_then(Value::as_str).map(|text| format!("{text}\n"))
                {
                    changes.insert("description".to_owned(), Value::from(text));
                }
                merge(self.store.single_mut("/cluster/options"), changes, &removed);
                Ok(Value::Null)
            }
            ("GET", "/cluster/config/nodes") => Ok(self
                .nodes
                .iter()
                .map(|node| {
                    json!({
                        "name": node.name, "node": node.name, "nodeid": node.number.to_string(),
                        "ring0_addr": node.address, "quorum_votes": "1",
                    })
                })
                .collect()),
            ("DELETE", "/cluster/config/nodes/{node}") => {
                let name = call.node().to_owned();
                let is_own = self.nodes.first().is_some_and(|node| node.name == name);
                match self.node(&name) {
                    Err(failure) => Err(failure),
                    Ok(_) if is_own => Err(Failure::refused("Cannot delete myself from cluster!")),
                    Ok(_) => {
                        self.nodes.retain(|node| node.name != name);
                        Ok(Value::Null)
                    }
                }
            }
            ("GET", "/cluster/config/join") => Ok(self.join_conditions()),
            ("GET", "/cluster/notifications/targets") => Ok(self.notification_targets()),
            ("GET", "/cluster/config/totem") => Ok(json!({
                "cluster_name": self.settings.name, "version": "2", "secauth": "on", "ip_version": "ipv4-6",
            })),
            ("GET", "/cluster/config/qdevice") => {
                Ok(json!({ "Model": "Net", "State": "Connected", "Votes": "1" }))
            }
            ("GET", "/cluster/config/apiversion") => Ok(Value::from(1)),
            (_, path) if path.contains("/ceph") && !path.ends_with("/ceph") && !self.settings.has_ceph => {
                Err(Failure::refused("binary not installed: /usr/bin/ceph-mon"))
            }
            ("POST", path) if path.starts_with("/cluster/bulk-action/guest/") => Ok(self.bulk(call)),
            _ => return None,
        })
    }

    fn version(&self) -> Value {
        let (major, minor) = self.settings.release;
        let told = self.settings.told_version.clone();
        json!({
            "release": format!("{major}.{minor}"),
            "version": told.unwrap_or_else(|| format!("{major}.{minor}.3")),
            "repoid": "3b4ae6b2b5a8a1d4", "console": "html5",
        })
    }

    /// The targets of all kinds.
    fn notification_targets(&self) -> Value {
        let kinds = ["gotify", "sendmail", "smtp", "webhook"];
        let rows = kinds.iter().flat_map(|kind| {
            let rows = self.store.rows(&format!("/cluster/notifications/endpoints/{kind}")).iter();
            rows.map(move |row| json!({ "name": row.id, "type": kind, "origin": "user-created" }))
        });
        rows.collect()
    }

    fn cluster_status(&self) -> Value {
        let mut rows = vec![json!({
            "id": "cluster", "type": "cluster", "name": self.settings.name, "nodes": self.nodes.len(),
            "version": 4,
            "quorate": u8::from(self.is_quorate()),
        })];
        rows.extend(self.nodes.iter().enumerate().map(|(place, node)| json!({
            "id": format!("node/{}", node.name), "type": "node", "name": node.name, "nodeid": node.number,
            "ip": node.address, "online": u8::from(node.is_online), "local": u8::from(place == 0), "level": "",
        })));
        Value::Array(rows)
    }

    /// A node as lists show it. Numbers of one that is away are absent.
    pub(crate) fn node_row(&self, name: &str) -> Object {
        let Ok(node) = self.node(name) else { return Object::new() };
        let mut row = crate::answer::object(json!({
            "id": format!("node/{name}"), "type": "node", "node": name, "level": "",
            "status": if node.is_online { "online" } else { "offline" },
            "ssl_fingerprint": fingerprint(name),
        }));
        if node.is_online {
            let used: u64 = self
                .guests
                .values()
                .filter(|guest| guest.node == name && guest.run.is_some())
                .map(crate::guests::memory_bytes)
                .sum();
            let wave = (self.now_secs() / 15 + node.number * 7) % 30;
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let cpu = 0.03 + wave.abs_diff(15) as f64 / 200.0;
            row.extend(crate::answer::object(json!({
                "maxcpu": NODE_CORES, "maxmem": NODE_MEMORY, "cpu": cpu,
                "mem": (4 * (1_u64 << 30) + used / 2).min(NODE_MEMORY),
                "uptime": self.now_ms.saturating_sub(node.booted_ms) / 1000,
                "maxdisk": 98_u64 << 30, "disk": 11_u64 << 30,
            })));
        }
        row
    }

    fn resources(&self, call: &Call) -> Value {
        let wants = |kind: &str| call.find("type").is_none_or(|only| only == kind);
        let mut rows: Vec<Value> = Vec::new();
        if wants("vm") {
            for guest in self.guests.values() {
                if !self.may(&call.caller, &format!("/vms/{}", guest.vmid), "VM.Audit") {
                    continue;
                }
                let mut row = self.guest_row(guest);
                let cpus = row.shift_remove("cpus").unwrap_or_default();
                let kind = guest.kind.name();
                row.extend(crate::answer::object(json!({
                    "id": format!("{kind}/{}", guest.vmid), "type": kind, "node": guest.node, "maxcpu": cpus,
                    "template": u8::from(guest.is_template()),
                })));
                if self.node(&guest.node).is_ok_and(|node| !node.is_online) {
                    row.insert("status".to_owned(), Value::from("unknown"));
                }
                if let Some(pool) = self.pool_of(guest.vmid) {
                    row.insert("pool".to_owned(), Value::from(pool));
                }
                if self.is_managed(guest.kind, guest.vmid) {
                    let state = if guest.run.is_some() { "started" } else { "stopped" };
                    row.insert("hastate".to_owned(), Value::from(state));
                }
                rows.push(Value::Object(row));
            }
        }
        if wants("node") {
            let shown = |row: &mut Object| row.shift_remove("ssl_fingerprint");
            rows.extend(self.nodes.iter().map(|node| {
                let mut row = self.node_row(&node.name);
                shown(&mut row);
                Value::Object(row)
            }));
        }
        if wants("storage") {
            rows.extend(self.storage_resources(call));
        }
        if wants("sdn") {
            for node in &self.nodes {
                for zone in self.sdn.running.get("zones").into_iter().flat_map(|zones| zones.keys()) {
                    rows.push(json!({
                        "id": format!("sdn/{}/{zone}", node.name), "type": "sdn", "sdn": zone, "node": node.name,
                        "status": if node.is_online { "ok" } else { "unknown" },
                    }));
                }
            }
        }
        Value::Array(rows)
    }

    fn storage_resources(&self, call: &Call) -> Vec<Value> {
        let mut rows = Vec::new();
        for node in &self.nodes {
            for storage in
                self.store.rows("/storage").iter().filter(|row| crate::storage::is_on(row, &node.name))
            {
                if !self.may(&call.caller, &format!("/storage/{}", storage.id), "Datastore.Audit") {
                    continue;
                }
                let row = self.storage_row(storage, &node.name);
                let number = |key: &str| row.get(key).cloned().unwrap_or(json!(0));
                rows.push(json!({
                    "id": format!("storage/{}/{}", node.name, storage.id), "type": "storage", "node": node.name,
                    "storage": storage.id, "plugintype": row["type"], "content": row["content"],
                    "shared": row["shared"], "status": if node.is_online { "available" } else { "unknown" },
                    "maxdisk": number("total"), "disk": number("used"),
                }));
            }
        }
        rows
    }

    fn next_id(&self, call: &Call) -> Outcome {
        match call.integer("vmid") {
            Some(vmid) if self.guests.contains_key(&vmid) => {
                Err(Failure::parameter("vmid", format!("VM {vmid} already exists")))
            }
            Some(vmid) => Ok(Value::from(vmid.to_string())),
            None => Ok(Value::from(self.free_vmid().to_string())),
        }
    }

    fn free_vmid(&self) -> u64 {
        let mut vmid = 100;
        while self.guests.contains_key(&vmid) {
            vmid += 1;
        }
        vmid
    }

    fn join_conditions(&self) -> Value {
        let nodes = self.nodes.iter().map(|node| {
            json!({
                "name": node.name, "nodeid": node.number.to_string(), "pve_addr": node.address,
                "pve_fp": fingerprint(&node.name), "ring0_addr": node.address, "quorum_votes": "1",
            })
        });
        json!({
            "config_digest": hash("totem", 40), "preferred_node": self.nodes.first().map(|node| &node.name),
            "nodelist": nodes.collect::<Vec<_>>(), "totem": { "cluster_name": self.settings.name },
        })
    }

    /// Starts or stops many guests in one task.
    pub(crate) fn bulk(&mut self, call: &Call) -> Value {
        let action = call.route.path.rsplit('/').next().unwrap_or_default().to_owned();
        let first = self.nodes.first().map(|node| node.name.clone()).unwrap_or_default();
        let node = call.find("node").unwrap_or(&first).to_owned();
        let named: Vec<u64> = call.list("vms").iter().filter_map(|vmid| vmid.parse().ok()).collect();
        let is_on_node = call.find("node").map(str::to_owned);
        let chosen: Vec<u64> = self
            .guests
            .values()
            .filter(|guest| named.is_empty() || named.contains(&guest.vmid))
            .filter(|guest| {
                is_on_node.as_ref().is_none_or(|node| guest.node == *node) && !guest.is_template()
            })
            .filter(|guest| {
                let has_onboot = guest.config.get("onboot") == Some(&Value::from(1)) || call.flag("force");
                action != "startall" || has_onboot || !named.is_empty()
            })
            .filter(|guest| !action.starts_with("suspend") || guest.kind == GuestKind::Qemu)
            .map(|guest| guest.vmid)
            .collect();
        let target = call.find("target").unwrap_or_default().to_owned();
        let kind = action.clone();
        self.start(&call.caller, Order::new(&node, &kind, "").weight(3), move |cluster| {
            for vmid in chosen {
                match action.as_str() {
                    "start" | "startall" => cluster.power_on(vmid),
                    "migrate" | "migrateall" => cluster.move_guest(vmid, &target),
                    _ => cluster.power_off(vmid),
                }
            }
            Ok(())
        })
    }
}

/// The SHA-256 fingerprint that a node's certificate would have.
pub(crate) fn fingerprint(node: &str) -> String {
    let hex = hash(&format!("certificate of {node}"), 64).to_uppercase();
    let pairs: Vec<&str> = (0..32).map(|place| &hex[place * 2..place * 2 + 2]).collect();
    pairs.join(":")
}
