//! Software-defined networks: edits wait until they are applied, and a lock keeps other editors out.

mod objects;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, field};
use crate::cluster::{Cluster, hash};
use crate::store::{Row, merge, written};
use crate::tasks::Order;

/// Objects by kind and id.
type Objects = BTreeMap<&'static str, BTreeMap<String, Object>>;

/// What is edited, what runs, and who holds the lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sdn {
    pub(crate) edited: Objects,
    pub(crate) running: Objects,
    pub(crate) lock: Option<String>,
    /// Reserved addresses of the built-in IPAM. They are live at once.
    pub(crate) addresses: Vec<Object>,
}

impl Sdn {
    fn find(&self, kind: &str, id: &str) -> Option<&Object> {
        self.edited.get(kind)?.get(id)
    }

    pub(crate) fn has_running_vnet(&self, name: &str) -> bool {
        self.running.get("vnets").is_some_and(|vnets| vnets.contains_key(name))
    }

    pub(crate) fn insert(&mut self, kind: &'static str, id: &str, body: Object) {
        self.edited.entry(kind).or_default().insert(id.to_owned(), body);
    }

    fn digest(&self, kind: &str) -> String {
        hash(&json!(self.edited.get(kind)).to_string(), 40)
    }

    /// Every edited object of a kind.
    fn all(&self, kind: &str) -> Vec<&Object> {
        self.edited.get(kind).into_iter().flat_map(BTreeMap::values).collect()
    }

    /// An object as `pending=1` shows it.
    fn with_state(&self, kind: &str, id: &str) -> Option<Object> {
        let new = self.find(kind, id);
        let old = self.running.get(kind).and_then(|objects| objects.get(id));
        let mut shown = old.or(new)?.clone();
        let state = match (old, new) {
            (None, Some(new)) => {
                // Only what names it stands outside of what is pending.
                let own = objects::name_of(kind);
                shown.retain(|name, _| {
                    name == own || matches!(name.as_str(), "type" | "zone" | "vnet" | "fabric_id")
                });
                let mut pending = new.clone();
                pending.retain(|name, _| name != own && name != "type");
                shown.insert("pending".to_owned(), Value::Object(pending));
                "new"
            }
            (Some(_), None) => "deleted",
            (Some(old), Some(new)) if old != new => {
                let mut pending: Object = new
                    .iter()
                    .filter(|(name, value)| old.get(*name) != Some(value))
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect();
                for name in old.keys().filter(|name| !new.contains_key(*name)) {
                    pending.insert(name.clone(), Value::from("deleted"));
                }
                shown.insert("pending".to_owned(), Value::Object(pending));
                "changed"
            }
            _ => return Some(shown),
        };
        shown.insert("state".to_owned(), Value::from(state));
        Some(shown)
    }
}

/// The kind of objects below a path, and the parameter that names one.
fn kind_of(tail: &str) -> Option<(&'static str, &'static str)> {
    let tail = tail.trim_start_matches('/');
    Some(match tail {
        "zones" | "zones/{zone}" => ("zones", "zone"),
        "vnets" | "vnets/{vnet}" => ("vnets", "vnet"),
        "controllers" | "controllers/{controller}" => ("controllers", "controller"),
        "vnets/{vnet}/subnets" | "vnets/{vnet}/subnets/{subnet}" => ("subnets", "subnet"),
        "fabrics/fabric" | "fabrics/fabric/{id}" => ("fabrics", "id"),
        _ if tail.starts_with("fabrics/node/{fabric_id}") => ("fabric-nodes", "node_id"),
        _ => return None,
    })
}

impl Cluster {
    pub(crate) fn sdn_call(&mut self, call: &Call) -> Option<Outcome> {
        if let Some(tail) = call.route.path.strip_prefix("/nodes/{node}/sdn") {
            return self.node_sdn(call, tail);
        }
        let tail = call.route.path.strip_prefix("/cluster/sdn")?;
        let method = call.route.method.as_str();
        let is_locked_write =
            method != "GET" && !tail.ends_with("/ips") && (method, tail) != ("DELETE", "/lock");
        if is_locked_write
            && let Some(lock) = &self.sdn.lock
            && call.find("lock-token") != Some(lock)
        {
            return Some(Err(Failure::refused(
                "SDN configuration is locked and the lock token is not valid",
            )));
        }
        if let Some((kind, name)) = kind_of(tail) {
            return Some(match method {
                "GET" => self.read_sdn(call, kind, name),
                "POST" => self.create_sdn(call, kind, name),
                "PUT" => self.update_sdn(call, kind, name),
                _ => self.delete_sdn(call, kind, name),
            });
        }
        Some(match (method, tail) {
            ("PUT", "") => Ok(self.apply_sdn(call)),
            ("POST", "/lock") => self.take_sdn_lock(call),
            ("DELETE", "/lock") => {
                if !call.flag("force") && call.find("lock-token").map(str::to_owned) != self.sdn.lock {
                    return Some(Err(Failure::refused("the lock token is not valid")));
                }
                self.sdn.lock = None;
                Ok(Value::Null)
            }
            ("POST", "/rollback") => {
                self.sdn.edited = self.sdn.running.clone();
                self.release_sdn_lock(call);
                Ok(Value::Null)
            }
            ("GET", "/dry-run") => Ok(self.preview_sdn()),
            ("GET", "/fabrics/all") => Ok(json!({
                "fabrics": self.sdn.all("fabrics"), "nodes": self.sdn.all("fabric-nodes"),
            })),
            ("GET", "/ipams/{ipam}/status") => self.addresses(call),
            (_, "/vnets/{vnet}/ips") => self.write_address(call),
            (_, tail) if tail.starts_with("/route-maps") => self.route_map_call(call, tail),
            _ => return None,
        })
    }

    fn take_sdn_lock(&mut self, call: &Call) -> Outcome {
        if self.sdn.lock.is_some() {
            return Err(Failure::refused("SDN configuration is already locked"));
        }
        if self.sdn.edited != self.sdn.running && !call.flag("allow-pending") {
            return Err(Failure::refused("configuration has pending changes"));
        }
        let token = self.fresh_uuid();
        self.sdn.lock = Some(token.clone());
        Ok(Value::from(token))
    }

    fn release_sdn_lock(&mut self, call: &Call) {
        if call.integer("release-lock") != Some(0) {
            self.sdn.lock = None;
        }
    }

    /// Commits in the call itself. The task then reloads every node, and takes their pending interfaces along.
    fn apply_sdn(&mut self, call: &Call) -> Value {
        self.sdn.running = self.sdn.edited.clone();
        self.release_sdn_lock(call);
        let node = self.nodes.first().map(|node| node.name.clone()).unwrap_or_default();
        self.start(&call.caller, Order::new(&node, "reloadnetworkall", "").weight(2), |cluster| {
            for node in cluster.nodes.iter_mut().filter(|node| node.is_online) {
                node.network.reload();
            }
            Ok(())
        })
    }

    fn preview_sdn(&self) -> Value {
        let mut lines = String::new();
        for (sign, objects) in [("-", &self.sdn.running), ("+", &self.sdn.edited)] {
            for vnet in objects.get("vnets").into_iter().flatten() {
                lines.push_str(&format!("{sign}iface {} {}\n", vnet.0, json!(vnet.1)));
            }
        }
        if self.sdn.running == self.sdn.edited { json!({}) } else { json!({ "interfaces-diff": lines }) }
    }

    /// The reserved addresses of the built-in IPAM, gateways of subnets among them.
    fn addresses(&self, call: &Call) -> Outcome {
        if call.text("ipam") != "pve" {
            return Err(Failure::refused("Currently only PVE IPAM is supported"));
        }
        let mut rows: Vec<Value> = self.sdn.addresses.iter().cloned().map(Value::Object).collect();
        for (id, subnet) in self.sdn.edited.get("subnets").into_iter().flatten() {
            if subnet.contains_key("gateway") {
                rows.push(json!({
                    "zone": subnet["zone"], "vnet": subnet["vnet"], "subnet": id, "gateway": 1,
                    "ip": subnet["gateway"],
                }));
            }
        }
        Ok(Value::Array(rows))
    }

    fn write_address(&mut self, call: &Call) -> Outcome {
        let ip = call.text("ip");
        let is_this = |row: &Object| field(row, "ip") == ip && field(row, "vnet") == call.text("vnet");
        match call.route.method.as_str() {
            "POST" if self.sdn.addresses.iter().any(is_this) => {
                return Err(Failure::refused(format!("IP '{ip}' already exist")));
            }
            "POST" => {}
            "PUT" => {
                let mac = call.text("mac");
                self.sdn
                    .addresses
                    .retain(|row| field(row, "mac") != mac || field(row, "vnet") != call.text("vnet"));
            }
            _ => {
                self.sdn.addresses.retain(|row| !is_this(row));
                return Ok(Value::Null);
            }
        }
        let mut row = written(call);
        row.insert("vnet".to_owned(), Value::from(call.text("vnet")));
        self.sdn.addresses.push(row);
        Ok(Value::Null)
    }

    /// Entries of route maps: each has its map and its place in it as a name.
    fn route_map_call(&mut self, call: &Call, tail: &str) -> Outcome {
        const ENTRIES: &str = "/cluster/sdn/route-maps/entries";
        let map = call.text("route-map-id");
        let order = call.params.get("order").map(crate::answer::text_of).unwrap_or_default();
        let id = format!("{map} {order}");
        let missing = || Failure::refused(format!("route map entry '{id}' does not exist"));
        let shown = |rows: &[Row]| -> Value {
            let own = rows.iter().filter(|row| map.is_empty() || field(&row.body, "route-map-id") == map);
            own.map(|row| Value::Object(row.body.clone())).collect()
        };
        match (call.route.method.as_str(), tail) {
            ("GET", "/route-maps/entries" | "/route-maps/entries/{route-map-id}") => {
                Ok(shown(self.store.rows(ENTRIES)))
            }
            ("GET", "/route-maps") => {
                let rows = self.store.rows(ENTRIES).iter();
                let mut maps: Vec<&str> = rows.map(|row| field(&row.body, "route-map-id")).collect();
                maps.dedup();
                Ok(maps.into_iter().map(|map| json!({ "id": map })).collect())
            }
            ("GET", _) => self.store.find(ENTRIES, &id).cloned().map(Value::Object).ok_or_else(missing),
            ("POST", _) if self.store.find(ENTRIES, &id).is_some() => {
                Err(Failure::refused(format!("route map entry '{id}' already exists")))
            }
            ("POST", _) => {
                self.store.insert(ENTRIES, &id, call.without(&["lock-token"]));
                Ok(Value::Null)
            }
            ("PUT", _) => {
                let (changes, removed) = (written(call), call.list("delete"));
                self.store.find_mut(ENTRIES, &id).map_or_else(
                    || Err(missing()),
                    |body| {
                        merge(body, changes, &removed);
                        Ok(Value::Null)
                    },
                )
            }
            _ if self.store.remove(ENTRIES, &id) => Ok(Value::Null),
            _ => Err(missing()),
        }
    }

    fn node_sdn(&mut self, call: &Call, tail: &str) -> Option<Outcome> {
        let running = |kind: &str| self.sdn.running.get(kind).into_iter().flatten();
        Some(match tail {
            "/zones" => Ok(running("zones")
                .map(|(id, zone)| {
                    let is_same = self.sdn.find("zones", id) == Some(zone);
                    json!({ "zone": id, "status": if is_same { "available" } else { "pending" } })
                })
                .collect()),
            "/zones/{zone}/content" => Ok(running("vnets")
                .filter(|(_, vnet)| field(vnet, "zone") == call.text("zone"))
                .map(|(id, _)| json!({ "vnet": id, "status": "available" }))
                .collect()),
            _ => return None,
        })
    }
}
