//! Ceph, where a cluster has it: pools, daemons, file systems and flags. No data are stored.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome};
use crate::cluster::Cluster;
use crate::store::merge;
use crate::tasks::Order;

const FLAGS: &str = "/ceph/flags";
const POOLS: &str = "/ceph/pool";
const NAMES: [&str; 11] = [
    "nobackfill",
    "nodeep-scrub",
    "nodown",
    "noin",
    "noout",
    "norebalance",
    "norecover",
    "noscrub",
    "notieragent",
    "noup",
    "pause",
];

impl Cluster {
    /// Fills a Ceph that was just set up.
    pub(crate) fn seed_ceph(&mut self) {
        for (folder, name, host) in [
            ("mon", "pve1", "pve1"),
            ("mon", "pve2", "pve2"),
            ("mgr", "pve1", "pve1"),
            ("mds", "pve1", "pve1"),
        ] {
            let body = crate::answer::object(json!({ "name": name, "host": host }));
            self.store.insert(&format!("/ceph/{folder}"), name, body);
        }
        let body = crate::answer::object(json!({
            "size": 3, "min_size": 2, "pg_num": 128, "pg_autoscale_mode": "on", "application": "rbd",
            "crush_rule": "replicated_rule",
        }));
        self.store.insert(POOLS, "rbd", body);
    }

    pub(crate) fn ceph_call(&mut self, call: &Call) -> Option<Outcome> {
        let tail = call.route.path.split_once("/ceph/").filter(|_| self.settings.has_ceph)?.1;
        let folder = tail.split('/').next().unwrap_or_default();
        Some(match (call.route.method.as_str(), folder) {
            ("GET", "status") => Ok(json!({ "fsid": "5d4c", "health": { "status": "HEALTH_OK" } })),
            (_, "flags") => Ok(self.flag_call(call)),
            (_, "pool") => self.ceph_pool_call(call, tail),
            ("GET", "mon" | "mgr" | "mds" | "fs") => Ok(self.daemons(folder)),
            ("POST" | "DELETE", "mon" | "mgr" | "mds" | "fs") => self.change_daemon(call, folder),
            ("GET", "rules") => Ok(json!([{ "name": "replicated_rule" }])),
            ("GET", "osd") if tail == "osd" => Ok(json!({ "flags": "", "root": { "children": [] } })),
            ("DELETE", "osd") => Ok(self.done(call)),
            _ => return None,
        })
    }

    fn flag_call(&mut self, call: &Call) -> Value {
        let on = self.store.single(FLAGS);
        let row = |name: &str| json!({ "name": name, "value": on.get(name).cloned().unwrap_or(json!(0)) });
        let one = call.find("flag").map(str::to_owned);
        match (call.route.method.as_str(), one) {
            ("GET", None) => NAMES.iter().map(|name| row(name)).collect(),
            ("GET", Some(name)) => row(&name)["value"].take(),
            (_, Some(name)) => {
                let value = call.params.get("value").cloned().unwrap_or_default();
                let flags = self.store.single_mut(FLAGS);
                if value == 1 {
                    flags.insert(name, value);
                } else {
                    flags.shift_remove(&name);
                }
                Value::Null
            }
            (_, None) => {
                let changes = call.params.clone();
                let node = self.nodes.first().map(|node| node.name.clone()).unwrap_or_default();
                self.start(&call.caller, Order::new(&node, "cephsetflags", ""), move |cluster| {
                    cluster.store.single_mut(FLAGS).extend(changes);
                    Ok(())
                })
            }
        }
    }

    fn ceph_pool_call(&mut self, call: &Call, tail: &str) -> Outcome {
        let name = call.text("name").to_owned();
        let gone = || Failure::refused(format!("pool '{name}' does not exist"));
        let order = |kind: &'static str| Order::new(call.node(), kind, &name);
        match (call.route.method.as_str(), tail) {
            ("GET", "pool") => Ok(self
                .store
                .rows(POOLS)
                .iter()
                .map(|row| {
                    let mut body = row.body.clone();
                    body.insert("pool_name".to_owned(), Value::from(row.id.clone()));
                    Value::Object(body)
                })
                .collect()),
            ("GET", _) => {
                let mut body = self.store.find(POOLS, &name).cloned().ok_or_else(gone)?;
                body.insert("name".to_owned(), Value::from(name.clone()));
                Ok(Value::Object(body))
            }
            ("POST", _) if self.store.find(POOLS, &name).is_some() => {
                Err(Failure::refused(format!("pool '{name}' already exists")))
            }
            ("POST", _) => {
                let body = pool_fields(call);
                Ok(self.start(&call.caller, order("cephcreatepool"), {
                    let name = name.clone();
                    move |cluster| {
                        cluster.store.insert(POOLS, &name, body);
                        Ok(())
                    }
                }))
            }
            ("PUT", _) => {
                self.store.find(POOLS, &name).ok_or_else(gone)?;
                let changes = pool_fields(call);
                Ok(self.start(&call.caller, order("cephsetpool"), {
                    let name = name.clone();
                    move |cluster| {
                        if let Some(body) = cluster.store.find_mut(POOLS, &name) {
                            merge(body, changes, &[]);
                        }
                        Ok(())
                    }
                }))
            }
            _ => {
                self.store.find(POOLS, &name).ok_or_else(gone)?;
                Ok(self.start(&call.caller, order("cephdestroypool"), {
                    let name = name.clone();
                    move |cluster| {
                        cluster.store.remove(POOLS, &name);
                        Ok(())
                    }
                }))
            }
        }
    }

    fn daemons(&self, folder: &str) -> Value {
        let rows = self.store.rows(&format!("/ceph/{folder}")).iter();
        rows.map(|row| Value::Object(row.body.clone())).collect()
    }

    fn change_daemon(&mut self, call: &Call, folder: &str) -> Outcome {
        let variable = call.route.last_variable().unwrap_or_default().to_owned();
        let (path, name) = (format!("/ceph/{folder}"), call.text(&variable).to_owned());
        let (host, is_there) = (call.node().to_owned(), self.store.find(&path, &name).is_some());
        let is_create = call.route.method == "POST";
        match (is_create, is_there) {
            (true, true) => return Err(Failure::refused(format!("{folder} '{name}' already exists"))),
            (false, false) => return Err(Failure::refused(format!("no such {folder} id '{name}'"))),
            _ => {}
        }
        let kind = format!("ceph{}{folder}", if is_create { "create" } else { "destroy" });
        Ok(self.start(&call.caller, Order::new(call.node(), &kind, name.clone()), move |cluster| {
            if is_create {
                let body = crate::answer::object(json!({ "name": name, "host": host }));
                cluster.store.insert(&path, &name, body);
            } else {
                cluster.store.remove(&path, &name);
            }
            Ok(())
        }))
    }
}

/// What a pool keeps of the parameters.
fn pool_fields(call: &Call) -> Object {
    call.without(&["node", "name", "add_storages", "erasure-coding"])
}
