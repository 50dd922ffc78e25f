//! Snapshots of guests.

use serde_json::{Value, json};

use super::{GuestKind, Snapshot};
use crate::answer::{Call, Failure, Outcome};
use crate::cluster::Cluster;
use crate::tasks::Order;

impl Cluster {
    pub(super) fn snapshot_call(&mut self, call: &Call, tail: &str) -> Option<Outcome> {
        Some(match (call.route.method.as_str(), tail) {
            ("GET", "snapshot") => self.list_snapshots(call),
            ("POST", "snapshot") => self.take_snapshot(call),
            ("DELETE", "snapshot/{snapname}") => self.delete_snapshot(call),
            ("POST", "snapshot/{snapname}/rollback") => self.roll_back(call),
            ("GET", "snapshot/{snapname}/config") => self.find_snapshot(call).map(|snapshot| {
                let mut config = snapshot.config.clone();
                config.insert("description".to_owned(), Value::from(snapshot.description.clone()));
                config.insert("snaptime".to_owned(), Value::from(snapshot.taken_secs));
                Value::Object(config)
            }),
            ("PUT", "snapshot/{snapname}/config") => self.describe_snapshot(call),
            _ => return None,
        })
    }

    fn find_snapshot(&self, call: &Call) -> Outcome<&Snapshot> {
        let name = call.text("snapname");
        let found = self.guest(call)?.snapshots.iter().find(|snapshot| snapshot.name == name);
        found.ok_or_else(|| Failure::refused(format!("snapshot '{name}' does not exist")))
    }

    fn list_snapshots(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        let mut rows: Vec<Value> = Vec::new();
        for snapshot in &guest.snapshots {
            let mut row = json!({
                "name": snapshot.name, "description": snapshot.description, "snaptime": snapshot.taken_secs,
            });
            if let Some(parent) = &snapshot.parent {
                row["parent"] = json!(parent);
            }
            if guest.kind == GuestKind::Qemu {
                row["vmstate"] = json!(u8::from(snapshot.has_memory));
            }
            rows.push(row);
        }
        let mut current = json!({
            "name": "current", "description": "You are here!", "digest": guest.digest(),
            "running": u8::from(guest.run.is_some()),
        });
        if let Some(parent) = &guest.parent {
            current["parent"] = json!(parent);
        }
        rows.push(current);
        Ok(Value::Array(rows))
    }

    fn take_snapshot(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid, name) = (guest.kind, guest.vmid, call.text("snapname").to_owned());
        let reserved = if kind == GuestKind::Qemu { "pending" } else { "vzdump" };
        if name == "current" || name == reserved {
            let text = format!("unable to use snapshot name '{name}' (reserved name)");
            return Err(Failure::parameter("snapname", text));
        }
        if guest.snapshots.iter().any(|snapshot| snapshot.name == name) {
            return Err(Failure::refused(format!("snapshot name '{name}' already used")));
        }
        self.lock(vmid, "snapshot");
        let (description, has_memory) = (call.text("description").to_owned(), call.flag("vmstate"));
        let kind_name = format!("{}snapshot", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid).weight(2).locks(vmid);
        Ok(self.start(&call.caller, order, move |cluster| {
            cluster.unlock(vmid);
            let taken_secs = cluster.now_secs();
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                let has_memory = has_memory && guest.run.is_some();
                let config = guest.config.clone();
                let parent = guest.parent.replace(name.clone());
                guest.snapshots.push(Snapshot { name, description, taken_secs, parent, has_memory, config });
            }
            Ok(())
        }))
    }

    fn delete_snapshot(&mut self, call: &Call) -> Outcome {
        self.unlocked(call)?;
        self.find_snapshot(call)?;
        let (kind, vmid, name) = (self.guest(call)?.kind, call.vmid(), call.text("snapname").to_owned());
        self.lock(vmid, "snapshot-delete");
        let kind_name = format!("{}delsnapshot", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid).locks(vmid);
        Ok(self.start(&call.caller, order, move |cluster| {
            cluster.unlock(vmid);
            let Some(guest) = cluster.guests.get_mut(&vmid) else { return Ok(()) };
            let gone = guest.snapshots.iter().position(|snapshot| snapshot.name == name);
            let Some(gone) = gone.map(|place| guest.snapshots.remove(place)) else { return Ok(()) };
            // Those that came after it descend from what it came after.
            for parent in
                guest.snapshots.iter_mut().map(|snapshot| &mut snapshot.parent).chain([&mut guest.parent])
            {
                if parent.as_ref() == Some(&gone.name) {
                    parent.clone_from(&gone.parent);
                }
            }
            Ok(())
        }))
    }

    fn roll_back(&mut self, call: &Call) -> Outcome {
        self.unlocked(call)?;
        let snapshot = self.find_snapshot(call)?.clone();
        let (kind, vmid, starts) = (self.guest(call)?.kind, call.vmid(), call.flag("start"));
        self.lock(vmid, "rollback");
        let kind_name = format!("{}rollback", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid).weight(2).locks(vmid);
        Ok(self.start(&call.caller, order, move |cluster| {
            cluster.power_off(vmid);
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.config = snapshot.config;
                guest.config.shift_remove("lock");
                guest.pending.clear();
                guest.parent = Some(snapshot.name);
            }
            if starts || snapshot.has_memory {
                cluster.power_on(vmid);
            }
            Ok(())
        }))
    }

    fn describe_snapshot(&mut self, call: &Call) -> Outcome {
        self.find_snapshot(call)?;
        let (name, text) = (call.text("snapname").to_owned(), call.text("description").to_owned());
        let guest = self.guest_mut(call)?;
        for snapshot in guest.snapshots.iter_mut().filter(|snapshot| snapshot.name == name) {
            snapshot.description.clone_from(&text);
        }
        Ok(Value::Null)
    }
}
