//! The objects of the networks: zones, vnets, subnets, controllers and fabrics.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::answer::{Call, Failure, Object, Outcome, field};
use crate::cluster::{Cluster, check_digest};
use crate::store::{merge, written};

impl Cluster {
    /// The id under which an object is kept.
    pub(super) fn sdn_id(&self, call: &Call, kind: &str, name: &str) -> String {
        match kind {
            "subnets" if call.text("subnet").contains('/') => {
                let zone = self
                    .sdn
                    .find("vnets", call.text("vnet"))
                    .map(|vnet| field(vnet, "zone"))
                    .unwrap_or_default();
                format!("{zone}-{}", call.text("subnet").replace('/', "-"))
            }
            "fabric-nodes" => format!("{}_{}", call.text("fabric_id"), call.text(name)),
            _ => call.text(name).to_owned(),
        }
    }

    pub(super) fn read_sdn(&mut self, call: &Call, kind: &'static str, name: &str) -> Outcome {
        let is_list = !call.route.path.ends_with(&format!("{{{name}}}"));
        let objects = if call.flag("running") { &self.sdn.running } else { &self.sdn.edited };
        let mut ids: Vec<&String> = objects.get(kind).into_iter().flat_map(BTreeMap::keys).collect();
        if call.flag("pending") {
            ids.extend(self.sdn.running.get(kind).into_iter().flat_map(BTreeMap::keys));
            ids.sort();
            ids.dedup();
        }
        let digest = self.sdn.digest(kind);
        let show = |id: &str| {
            let mut shown = if call.flag("pending") {
                self.sdn.with_state(kind, id)?
            } else {
                objects.get(kind)?.get(id)?.clone()
            };
            shown.insert("digest".to_owned(), Value::from(digest.clone()));
            Some(shown)
        };
        if is_list {
            let is_here = |object: &Object| match kind {
                "subnets" => field(object, "vnet") == call.text("vnet"),
                "fabric-nodes" => field(object, "fabric_id") == call.text("fabric_id"),
                _ => call.find("type").is_none_or(|only| field(object, "type") == only),
            };
            let seen = ids.iter().filter_map(|id| show(id)).filter(is_here);
            return Ok(seen.map(Value::Object).collect());
        }
        let id = self.sdn_id(call, kind, name);
        show(&id).map(Value::Object).ok_or_else(|| undefined(kind, &id))
    }

    pub(super) fn create_sdn(&mut self, call: &Call, kind: &'static str, name: &str) -> Outcome {
        let id = self.sdn_id(call, kind, name);
        if self.sdn.find(kind, &id).is_some() {
            return Err(Failure::refused(format!("sdn {} object ID '{id}' already defined", singular(kind))));
        }
        let mut body = written(call);
        body.insert(name.to_owned(), Value::from(if kind == "fabric-nodes" { call.text(name) } else { &id }));
        match kind {
            "vnets" => {
                let zone = self.sdn.find("zones", call.text("zone"));
                let zone = zone
                    .ok_or_else(|| Failure::refused(format!("zone {} does not exist", call.text("zone"))))?;
                if matches!(field(zone, "type"), "vlan" | "qinq" | "vxlan" | "evpn")
                    && !body.contains_key("tag")
                {
                    return Err(Failure::parameter("tag", "missing vlan tag"));
                }
                body.insert("type".to_owned(), Value::from("vnet"));
            }
            "subnets" => {
                let vnet = call.text("vnet");
                let owner = self.sdn.find("vnets", vnet).ok_or_else(|| undefined("vnets", vnet))?;
                body.insert("zone".to_owned(), Value::from(field(owner, "zone")));
                body.insert("vnet".to_owned(), Value::from(vnet));
                body.insert("cidr".to_owned(), Value::from(call.text("subnet")));
                let (network, prefix) = call.text("subnet").split_once('/').unwrap_or_default();
                body.insert("network".to_owned(), Value::from(network));
                body.insert("mask".to_owned(), Value::from(prefix));
            }
            "fabric-nodes" => {
                body.insert("fabric_id".to_owned(), Value::from(call.text("fabric_id")));
            }
            _ => {}
        }
        self.sdn.insert(kind, &id, body);
        Ok(Value::Null)
    }

    pub(super) fn update_sdn(&mut self, call: &Call, kind: &'static str, name: &str) -> Outcome {
        let id = self.sdn_id(call, kind, name);
        check_digest(call, &self.sdn.digest(kind))?;
        let object =
            self.sdn.edited.entry(kind).or_default().get_mut(&id).ok_or_else(|| undefined(kind, &id))?;
        merge(object, written(call), &call.list("delete"));
        Ok(Value::Null)
    }

    pub(super) fn delete_sdn(&mut self, call: &Call, kind: &'static str, name: &str) -> Outcome {
        let id = self.sdn_id(call, kind, name);
        check_digest(call, &self.sdn.digest(kind))?;
        self.sdn.find(kind, &id).ok_or_else(|| undefined(kind, &id))?;
        let users = |kind: &str, by: &str| -> Option<&String> {
            self.sdn.edited.get(kind)?.iter().find(|(_, user)| field(user, by) == id).map(|(user, _)| user)
        };
        let blocked = match kind {
            "zones" => users("vnets", "zone").map(|vnet| format!("zone {id} is used by vnet {vnet}")),
            "vnets" => users("subnets", "vnet").map(|_| format!("Subnets are existing in vnet {id}")),
            "controllers" => {
                users("zones", "controller").map(|zone| format!("controller {id} is used by {zone}"))
            }
            _ => None,
        };
        if let Some(text) = blocked {
            return Err(Failure::refused(text));
        }
        self.sdn.edited.entry(kind).or_default().remove(&id);
        Ok(Value::Null)
    }
}

fn singular(kind: &str) -> &str {
    kind.strip_suffix('s').unwrap_or(kind)
}

fn undefined(kind: &str, id: &str) -> Failure {
    Failure::refused(format!("sdn '{id}' does not exist ({})", singular(kind)))
}

/// The key that names an object of a kind.
pub(super) fn name_of(kind: &str) -> &str {
    match kind {
        "fabrics" => "id",
        "fabric-nodes" => "node_id",
        other => singular(other),
    }
}
