//! Clones of guests, and their migration to other nodes.

use serde_json::{Value, json};

use super::disks::{is_disk_key, volume_of};
use super::{Guest, GuestKind};
use crate::answer::{Call, Failure, Object, Outcome, text_of};
use crate::cluster::Cluster;
use crate::property;
use crate::tasks::Order;

impl Cluster {
    pub(super) fn clone_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?.clone();
        let (kind, vmid, newid) = (guest.kind, guest.vmid, call.integer("newid").unwrap_or_default());
        self.check_vmid(kind, newid, false)?;
        let is_full = call.integer("full").map_or(!guest.is_template(), |full| full == 1);
        if !is_full && !guest.is_template() {
            return Err(Failure::refused(
                "Linked clone feature is not supported for guests that are no template",
            ));
        }
        if !is_full && (call.params.contains_key("storage") || call.params.contains_key("format")) {
            return Err(Failure::parameter("storage", "parameter 'storage' not allowed for linked clones"));
        }
        if kind == GuestKind::Lxc && guest.run.is_some() && !call.params.contains_key("snapname") {
            return Err(Failure::refused("Cannot do full clones on a running container without snapshots"));
        }
        let target = call.find("target").unwrap_or(call.node()).to_owned();
        self.node(&target)?;
        let source = match call.find("snapname") {
            Some(name) => {
                let snapshot = guest.snapshots.iter().find(|snapshot| snapshot.name == name);
                let missing = || Failure::refused(format!("snapshot '{name}' does not exist"));
                snapshot.ok_or_else(missing)?.config.clone()
            }
            None => guest.config.clone(),
        };
        self.lock(vmid, "clone");
        let mut copy = Guest::new(newid, kind, &target, Object::new());
        copy.config.insert("lock".to_owned(), Value::from("clone"));
        self.guests.insert(newid, copy);
        let kind_name = format!("{}clone", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid).weight(4).locks(vmid).makes(newid);
        let call = call.clone();
        Ok(self.start(&call.caller.clone(), order, move |cluster| {
            let config = cluster.copy_config(&call, kind, source, is_full);
            let config = config.map_err(|error| format!("clone failed: {error}"))?;
            cluster.unlock(vmid);
            if let Some(copy) = cluster.guests.get_mut(&newid) {
                copy.config = config;
            }
            if let Some(pool) = call.find("pool") {
                cluster.add_to_pool(pool, newid);
            }
            Ok(())
        }))
    }

    /// The configuration of a clone: new addresses and ids, its own disks.
    fn copy_config(
        &mut self,
        call: &Call,
        kind: GuestKind,
        source: Object,
        is_full: bool,
    ) -> Result<Object, String> {
        let newid = call.integer("newid").unwrap_or_default();
        let target = call.find("target").unwrap_or(call.node()).to_owned();
        let mut config = Object::new();
        for (key, value) in source {
            let text = text_of(&value);
            let value = match key.as_str() {
                "lock" | "template" | "parent" | "snaptime" => continue,
                key if key.starts_with("unused") => continue,
                key if key.starts_with("net") && key[3..].parse::<u8>().is_ok() => {
                    Value::from(self.renewed(kind, &text))
                }
                key if is_disk_key(key) && !super::config::is_cdrom(&text) => {
                    let old = volume_of(&text).to_owned();
                    let volume = self.volumes.iter().find(|volume| volume.volid == old).cloned();
                    let volume = volume.ok_or_else(|| format!("volume '{old}' does not exist"))?;
                    let (own, name) = old.split_once(':').unwrap_or_default();
                    let storage = call.find("storage").unwrap_or(own).to_owned();
                    let mut volid = self.allocate(&storage, &target, newid, volume.bytes, &volume.content)?;
                    if !is_full && let Some(made) = volid.split_once(':').map(|(_, made)| made.to_owned()) {
                        let linked = format!("{storage}:{name}/{made}");
                        for volume in self.volumes.iter_mut().filter(|volume| volume.volid == volid) {
                            volume.volid.clone_from(&linked);
                        }
                        volid = linked;
                    }
                    Value::from(text.replacen(&old, &volid, 1))
                }
                "vmgenid" => Value::from(self.fresh_uuid()),
                "smbios1" => Value::from(format!("uuid={}", self.fresh_uuid())),
                _ => value,
            };
            config.insert(key, value);
        }
        let (name_key, copied) = match kind {
            GuestKind::Qemu => ("name", "Copy-of-VM"),
            GuestKind::Lxc => ("hostname", "Copy-of-CT"),
        };
        let old_name = config.get(name_key).map(text_of).unwrap_or_default();
        let name = call.find(name_key).map_or_else(|| format!("{copied}-{old_name}"), str::to_owned);
        config.insert(name_key.to_owned(), Value::from(name));
        if let Some(text) = call.find("description") {
            config.insert("description".to_owned(), Value::from(text));
        }
        Ok(config)
    }

    /// A network device with a new hardware address.
    fn renewed(&mut self, kind: GuestKind, text: &str) -> String {
        if kind == GuestKind::Lxc {
            let mac = self.fresh_mac();
            return property::with(text, "hwaddr", &mac);
        }
        let mac = self.fresh_mac();
        match property::parts(text).first() {
            Some((Some(_), old)) if old.contains(':') => text.replacen(old, &mac, 1),
            _ => self.with_mac(kind, text),
        }
    }

    /// `GET migrate`: what stands against it.
    pub(super) fn migration_conditions(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        let others = self.nodes.iter().filter(|node| node.name != guest.node && node.is_online);
        let allowed: Vec<&String> = others.map(|node| &node.name).collect();
        let disks =
            guest.config.iter().filter(|(key, value)| is_disk_key(key) && self.is_local(&text_of(value)));
        let disks: Vec<Value> = disks
            .map(|(key, value)| json!({ "volid": volume_of(&text_of(value)), "drivename": key, "replicatable": 0 }))
            .collect();
        Ok(json!({
            "running": u8::from(guest.run.is_some()),
            "allowed_nodes": allowed,
            "not_allowed_nodes": {},
            "local_disks": disks,
            "local_resources": [],
            "mapped-resources": [],
        }))
    }

    /// Whether a disk lies on a storage that other nodes do not see.
    fn is_local(&self, text: &str) -> bool {
        let storage = volume_of(text).split(':').next().unwrap_or_default();
        let shared = self.store.find("/storage", storage).and_then(|storage| storage.get("shared"));
        shared != Some(&Value::from(1)) && !super::config::is_cdrom(text)
    }

    pub(super) fn migrate_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?.clone();
        let (kind, vmid, target) = (guest.kind, guest.vmid, call.text("target").to_owned());
        if target == guest.node {
            return Err(Failure::parameter("target", "target is local node."));
        }
        if !self.node(&target)?.is_online {
            return Err(Failure::refused(format!("node '{target}' is not online")));
        }
        let is_running = guest.run.is_some();
        if is_running && kind == GuestKind::Qemu && !call.flag("online") {
            return Err(Failure::refused("can't migrate running VM without --online"));
        }
        if is_running && kind == GuestKind::Lxc && !call.flag("restart") {
            return Err(Failure::refused("lxc live migration is currently not implemented"));
        }
        if self.is_managed(kind, vmid) {
            let node = target.clone();
            let delay_ms = self.settings.task_ms * 3;
            return Ok(self.start(
                &call.caller,
                Order::new(call.node(), "hamigrate", vmid),
                move |cluster| {
                    cluster.schedule(delay_ms, Box::new(move |cluster| cluster.move_guest(vmid, &node)));
                    Ok(())
                },
            ));
        }
        self.lock(vmid, "migrate");
        let takes_disks = !is_running || call.flag("with-local-disks") || kind == GuestKind::Lxc;
        let kind_name = format!("{}migrate", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid).weight(4).locks(vmid);
        Ok(self.start(&call.caller, order, move |cluster| {
            let local =
                guest.config.iter().any(|(key, value)| is_disk_key(key) && cluster.is_local(&text_of(value)));
            if local && !takes_disks {
                let text = "can't live migrate attached local disks without with-local-disks option";
                return Err(format!("migration aborted: {text}"));
            }
            if !cluster.node(&target).is_ok_and(|node| node.is_online) {
                return Err(format!("migration aborted: can't connect to node '{target}'"));
            }
            cluster.unlock(vmid);
            cluster.move_guest(vmid, &target);
            Ok(())
        }))
    }

    /// Moves a guest with its local disks.
    pub(crate) fn move_guest(&mut self, vmid: u64, target: &str) {
        if let Some(guest) = self.guests.get_mut(&vmid) {
            target.clone_into(&mut guest.node);
        }
        let own =
            |volume: &&mut crate::storage::Volume| volume.vmid == Some(vmid) && volume.content != "backup";
        for volume in self.volumes.iter_mut().filter(own) {
            if volume.node.is_some() {
                volume.node = Some(target.to_owned());
            }
        }
    }
}
