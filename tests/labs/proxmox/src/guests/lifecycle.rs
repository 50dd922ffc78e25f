//! Creating, restoring, destroying guests, and turning them into templates.

use serde_json::{Value, json};

use super::config::Edit;
use super::disks::{is_disk_key, volume_of};
use super::{Guest, GuestKind, kind_of};
use crate::answer::{Call, Failure, Object, Outcome, field, text_of};
use crate::cluster::Cluster;
use crate::tasks::Order;

/// Parameters of a creation that are no keys of the configuration.
const STEERING: [&str; 22] = [
    "node",
    "vmid",
    "archive",
    "force",
    "storage",
    "unique",
    "pool",
    "start",
    "bwlimit",
    "live-restore",
    "ostemplate",
    "restore",
    "password",
    "ssh-public-keys",
    "ignore-unpack-errors",
    "import-working-storage",
    "ha-managed",
    "digest",
    "env",
    "entrypoint",
    "skiplock",
    "background_delay",
];

impl Cluster {
    pub(super) fn create_guest(&mut self, call: &Call) -> Outcome {
        let (kind, vmid) = (kind_of(call), call.vmid());
        let archive = match kind {
            GuestKind::Qemu => call.find("archive"),
            GuestKind::Lxc => call.find("ostemplate").filter(|_| call.flag("restore")),
        };
        self.check_vmid(kind, vmid, archive.is_some() && call.flag("force"))?;
        if let Some(pool) = call.find("pool").filter(|pool| self.store.find("/pools", pool).is_none()) {
            return Err(Failure::refused(format!("pool '{pool}' does not exist")));
        }
        if let Some(template) = call.find("ostemplate") {
            self.find_volume(template)?;
        }
        let work_name = match (kind, archive) {
            (GuestKind::Qemu, None) => "qmcreate",
            (GuestKind::Qemu, Some(_)) => "qmrestore",
            (GuestKind::Lxc, None) => "vzcreate",
            (GuestKind::Lxc, Some(_)) => "vzrestore",
        };
        let stored = archive.map(|archive| self.archived_config(archive)).transpose()?;
        let order = Order::new(call.node(), work_name, vmid).weight(2).makes(vmid);
        self.guests.insert(
            vmid,
            Guest::new(vmid, kind, call.node(), crate::answer::object(json!({ "lock": "create" }))),
        );
        let call = call.clone();
        Ok(self.start(&call.caller.clone(), order, move |cluster| {
            cluster.fill(&call, kind, stored).map_err(|failure| failure.reason)
        }))
    }

    /// Writes the configuration of a new guest.
    fn fill(&mut self, call: &Call, kind: GuestKind, stored: Option<Object>) -> Outcome<()> {
        let vmid = call.vmid();
        let mut changes = defaults(kind);
        if let Some(stored) = stored {
            self.restore_disks(vmid, call, &stored)?;
            changes.extend(stored.into_iter().filter(|(key, _)| !is_disk_key(key)));
        }
        if kind == GuestKind::Lxc && !call.params.contains_key("rootfs") && !call.flag("restore") {
            let storage = call.find("storage").unwrap_or("local");
            changes.insert("rootfs".to_owned(), Value::from(format!("{storage}:4")));
        }
        changes.extend(call.without(&STEERING));
        if kind == GuestKind::Qemu {
            let uuid = self.fresh_uuid();
            changes.entry("smbios1".to_owned()).or_insert_with(|| Value::from(format!("uuid={uuid}")));
            changes.entry("vmgenid".to_owned()).or_insert_with(|| Value::from("1"));
            let created = format!("creation-qemu=10.1.2,ctime={}", self.now_secs());
            changes.insert("meta".to_owned(), Value::from(created));
        }
        self.configure(vmid, Edit { changes, ..Edit::default() })?;
        self.unlock(vmid);
        if let Some(pool) = call.find("pool") {
            self.add_to_pool(pool, vmid);
        }
        if call.flag("start") {
            self.power_on(vmid);
        }
        Ok(())
    }

    /// Refuses a vmid that is taken, unless a restore overwrites a guest that does not run.
    pub(super) fn check_vmid(&self, kind: GuestKind, vmid: u64, overwrites: bool) -> Outcome<()> {
        let Some(guest) = self.guests.get(&vmid) else { return Ok(()) };
        let what = format!("{} {vmid}", kind.title());
        let node = &guest.node;
        if !overwrites {
            let text = format!(
                "unable to create {what} - {} {vmid} already exists on node '{node}'",
                guest.kind.title()
            );
            return Err(Failure::refused(text));
        }
        if guest.run.is_some() {
            return Err(Failure::refused(format!("unable to restore {what} - {what} is running")));
        }
        if guest.text("protection") == "1" {
            return Err(Failure::refused(format!("unable to restore {what} - protection mode enabled")));
        }
        Ok(())
    }

    pub(super) fn destroy_guest(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid, is_running) = (guest.kind, guest.vmid, guest.run.is_some());
        let what = format!("{} {vmid}", kind.title());
        if guest.text("protection") == "1" {
            return Err(Failure::refused(format!("can't remove {what} - protection mode enabled")));
        }
        if is_running && !(kind == GuestKind::Lxc && call.flag("force")) {
            let verb =
                if kind == GuestKind::Qemu { "destroy failed" } else { "destroy failed: CT is running" };
            return Err(Failure::refused(format!("{what} is running - {verb}")));
        }
        let is_purged = call.flag("purge");
        if self.is_managed(kind, vmid) && !is_purged {
            let text = format!("unable to remove {what} - used in HA resources and purge parameter not set.");
            return Err(Failure::refused(text));
        }
        if self.is_replicated(vmid) && !is_purged {
            let text =
                format!("unable to remove {what} - used in replication jobs and purge parameter not set.");
            return Err(Failure::refused(text));
        }
        let kind_name = format!("{}destroy", kind.prefix());
        let order = Order::new(call.node(), &kind_name, vmid).locks(vmid);
        Ok(self.start(&call.caller, order, move |cluster| {
            let base = format!("base-{vmid}-disk");
            let in_use =
                |guest: &Guest| guest.vmid != vmid && json!(guest.config).to_string().contains(&base);
            if cluster.guests.values().any(in_use) {
                return Err(format!("base volume '{base}-0' is still in use by linked cloned"));
            }
            cluster.forget_guest(vmid, is_purged);
            Ok(())
        }))
    }

    /// Removes a guest with its disks, its firewall, and its place in pools.
    pub(crate) fn forget_guest(&mut self, vmid: u64, is_purged: bool) {
        self.guests.remove(&vmid);
        self.volumes.retain(|volume| volume.vmid != Some(vmid) || volume.content == "backup");
        self.firewalls.remove(&format!("guests/{vmid}"));
        self.remove_from_pools(vmid);
        self.access.acl.retain(|grant| grant.path != format!("/vms/{vmid}"));
        if !is_purged {
            return;
        }
        for prefix in ["vm", "ct"] {
            self.store.remove("/cluster/ha/resources", &format!("{prefix}:{vmid}"));
        }
        self.store.rows_mut("/cluster/replication").retain(|row| !row.id.starts_with(&format!("{vmid}-")));
        for row in self.store.rows_mut("/cluster/backup") {
            let kept: Vec<&str> =
                field(&row.body, "vmid").split(',').filter(|named| *named != vmid.to_string()).collect();
            let kept = kept.join(",");
            if row.body.contains_key("vmid") {
                row.body.insert("vmid".to_owned(), Value::from(kept));
            }
        }
    }

    pub(super) fn make_template(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid) = (guest.kind, guest.vmid);
        if guest.run.is_some() {
            return Err(Failure::refused("you can't convert a VM to template if VM is running"));
        }
        if !guest.snapshots.is_empty() {
            return Err(Failure::refused("unable to create template, because VM contains snapshots"));
        }
        let kind_name = format!("{}template", kind.prefix());
        let upid =
            self.start(&call.caller, Order::new(call.node(), &kind_name, vmid).locks(vmid), move |cluster| {
                cluster.convert(vmid);
                Ok(())
            });
        // The call on a container does not tell its task.
        Ok(if kind == GuestKind::Qemu { upid } else { Value::Null })
    }

    /// Marks a template and turns its disks into base volumes.
    fn convert(&mut self, vmid: u64) {
        let Some(guest) = self.guests.get_mut(&vmid) else { return };
        guest.config.insert("template".to_owned(), Value::from(1));
        for (_, value) in guest.config.iter_mut().filter(|(key, _)| is_disk_key(key)) {
            let text = text_of(value);
            let old = volume_of(&text).to_owned();
            let new = old.replacen(":vm-", ":base-", 1).replacen(":subvol-", ":basevol-", 1);
            *value = Value::from(text.replacen(&old, &new, 1));
            for volume in self.volumes.iter_mut().filter(|volume| volume.volid == old) {
                volume.volid.clone_from(&new);
            }
        }
    }
}

fn defaults(kind: GuestKind) -> Object {
    crate::answer::object(match kind {
        GuestKind::Qemu => json!({}),
        GuestKind::Lxc => json!({ "arch": "amd64", "memory": 512, "swap": 512, "ostype": "debian" }),
    })
}
