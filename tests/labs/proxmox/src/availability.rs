//! High availability: what shall run is written down, and the manager brings it about a little later.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Outcome, field, split_list, text_of};
use crate::cluster::Cluster;
use crate::guests::GuestKind;

const RESOURCES: &str = "/cluster/ha/resources";
const RULES: &str = "/cluster/ha/rules";

impl Cluster {
    /// Whether the manager looks after a guest.
    pub(crate) fn is_managed(&self, kind: GuestKind, vmid: u64) -> bool {
        let sid = format!("{}:{vmid}", kind.title().to_lowercase());
        let resource = self.store.find(RESOURCES, &sid);
        resource.is_some_and(|resource| field(resource, "state") != "ignored")
    }

    pub(crate) fn availability_call(&mut self, call: &Call) -> Option<Outcome> {
        let tail = call.route.path.strip_prefix("/cluster/ha")?;
        let method = call.route.method.as_str();
        if tail.starts_with("/rules") && self.settings.release < (9, 0) {
            return Some(Err(Failure::not_implemented(method, &call.path)));
        }
        Some(match (method, tail) {
            ("POST" | "PUT", "/resources" | "/resources/{sid}") => self.write_resource(call),
            (_, tail) if tail.starts_with("/resources/{sid}") => {
                let sid = match self.resource_id(call) {
                    Ok(sid) => sid,
                    Err(failure) => return Some(Err(failure)),
                };
                match (method, tail) {
                    ("GET", _) => self.read_resource(&sid),
                    ("DELETE", _) => {
                        if call.integer("purge") != Some(0) {
                            self.leave_rules(&sid);
                        }
                        if self.store.remove(RESOURCES, &sid) { Ok(Value::Null) } else { Err(unknown(&sid)) }
                    }
                    _ => self.queue_move(call, &sid),
                }
            }
            ("POST" | "PUT", "/rules" | "/rules/{rule}") => self.write_rule(call),
            ("POST" | "PUT", tail) if tail.starts_with("/groups") && self.settings.release >= (9, 0) => {
                Err(Failure::refused("ha groups have been migrated to rules"))
            }
            ("GET", "/status/current") => Ok(self.availability_status()),
            ("GET", "/status/manager_status") => Ok(json!({
                "manager_status": { "master_node": self.nodes.first().map(|node| &node.name) },
                "quorum": { "quorate": u8::from(self.is_quorate()) },
            })),
            _ => return None,
        })
    }

    /// The id with its prefix, which the call may leave out.
    fn resource_id(&self, call: &Call) -> Outcome<String> {
        let given = call.params.get("sid").map(text_of).unwrap_or_default();
        if given.contains(':') {
            return Ok(given);
        }
        let guest = given.parse().ok().and_then(|vmid: u64| self.guests.get(&vmid));
        let guest = guest.ok_or_else(|| Failure::refused(format!("unable to find service '{given}'")))?;
        Ok(format!("{}:{given}", guest.kind.title().to_lowercase()))
    }

    fn write_resource(&mut self, call: &Call) -> Outcome {
        let sid = self.resource_id(call)?;
        if call.params.contains_key("group") && self.settings.release >= (9, 0) {
            return Err(Failure::parameter("group", "ha groups have been migrated to rules"));
        }
        let vmid = sid.split(':').nth(1).and_then(|vmid| vmid.parse().ok()).unwrap_or_default();
        let guest =
            self.guests.get(&vmid).filter(|guest| sid.starts_with(&guest.kind.title().to_lowercase()));
        if guest.is_none() {
            return Err(Failure::refused(format!("resource '{sid}' does not exist in cluster")));
        }
        let mut call = call.clone();
        call.params.insert("sid".to_owned(), Value::from(sid.clone()));
        if call.route.method == "POST" {
            if self.store.find(RESOURCES, &sid).is_some() {
                return Err(Failure::refused(format!("resource ID '{sid}' already defined")));
            }
            call.params.entry("state".to_owned()).or_insert(Value::from("started"));
            RESOURCES.clone_into(&mut call.path);
        } else {
            call.path = format!("{RESOURCES}/{sid}");
        }
        let outcome = self.generic_call(&call)?;
        if let Some(body) = self.store.find_mut(RESOURCES, &sid) {
            let kind = sid.split(':').next().unwrap_or_default();
            body.insert("type".to_owned(), Value::from(kind));
        }
        if let Some(state) = call.find("state").map(str::to_owned) {
            let delay_ms = self.settings.task_ms * 2;
            self.schedule(delay_ms, Box::new(move |cluster| cluster.fulfil(vmid, &state)));
        }
        Ok(outcome)
    }

    fn read_resource(&self, sid: &str) -> Outcome {
        let mut body = self.store.find(RESOURCES, sid).cloned().ok_or_else(|| unknown(sid))?;
        body.insert("digest".to_owned(), Value::from(self.store.digest(RESOURCES)));
        Ok(Value::Object(body))
    }

    /// A resource that is gone leaves its rules; a rule about it alone goes with it.
    fn leave_rules(&mut self, sid: &str) {
        let rules = self.store.rows_mut(RULES);
        for rule in rules.iter_mut() {
            let left: Vec<&str> =
                split_list(field(&rule.body, "resources")).filter(|own| *own != sid).collect();
            let left = left.join(",");
            rule.body.insert("resources".to_owned(), Value::from(left));
        }
        rules.retain(|rule| !field(&rule.body, "resources").is_empty());
    }

    fn write_rule(&mut self, call: &Call) -> Outcome {
        for sid in call.list("resources") {
            if self.store.find(RESOURCES, &sid).is_none() {
                return Err(Failure::parameter(
                    "resources",
                    format!("cannot use unmanaged resource(s) {sid}."),
                ));
            }
        }
        let old = self.store.find(RULES, call.text("rule")).map(|rule| field(rule, "type"));
        if old.is_some_and(|old| call.route.method == "PUT" && old != call.text("type")) {
            return Err(Failure::parameter("type", "type of a rule cannot change"));
        }
        let outcome = self.generic_call(call)?;
        // Zero is the same as absent, and is not kept.
        if let Some(rule) = self.store.find_mut(RULES, call.text("rule"))
            && rule.get("disable") == Some(&Value::from(0))
        {
            rule.shift_remove("disable");
        }
        Ok(outcome)
    }

    fn queue_move(&mut self, call: &Call, sid: &str) -> Outcome {
        self.read_resource(sid)?;
        let target = call.text("node").to_owned();
        self.node(&target)?;
        let vmid: u64 = sid.split(':').nth(1).and_then(|vmid| vmid.parse().ok()).unwrap_or_default();
        let (delay_ms, node) = (self.settings.task_ms * 3, target.clone());
        self.schedule(delay_ms, Box::new(move |cluster| cluster.move_guest(vmid, &node)));
        Ok(json!({ "sid": sid, "requested-node": target }))
    }

    fn availability_status(&self) -> Value {
        let master = self.nodes.first().map(|node| node.name.clone()).unwrap_or_default();
        let quorum = if self.is_quorate() { "OK" } else { "No quorum on node" };
        let mut rows = vec![
            json!({
                "id": "quorum", "type": "quorum", "node": master, "status": quorum,
                "quorate": u8::from(self.is_quorate()),
            }),
            json!({
                "id": "master", "type": "master", "node": master, "timestamp": self.now_secs(),
                "status": format!("{master} (active)"),
            }),
        ];
        for node in &self.nodes {
            let state = if node.is_online { "active" } else { "old timestamp - dead?" };
            rows.push(json!({
                "id": format!("lrm:{}", node.name), "type": "lrm", "node": node.name,
                "timestamp": self.now_secs(), "status": format!("{} ({state})", node.name),
            }));
        }
        for resource in self.store.rows(RESOURCES) {
            let vmid: u64 =
                resource.id.split(':').nth(1).and_then(|vmid| vmid.parse().ok()).unwrap_or_default();
            let Some(guest) = self.guests.get(&vmid) else { continue };
            let state = if guest.run.is_some() { "started" } else { "stopped" };
            rows.push(json!({
                "id": format!("service:{}", resource.id), "type": "service", "sid": resource.id,
                "node": guest.node,
                "state": state, "request_state": resource.body.get("state"), "crm_state": state,
                "status": format!("{} ({}, {state})", resource.id, guest.node),
            }));
        }
        Value::Array(rows)
    }
}

fn unknown(sid: &str) -> Failure {
    Failure::refused(format!("no such resource '{sid}'"))
}
