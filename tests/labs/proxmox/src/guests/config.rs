//! Reading and writing a guest's configuration: what applies at once, and what waits for the next start.

use serde_json::{Value, json};

use super::{Guest, GuestKind};
use crate::answer::{Call, Failure, Object, Outcome, text_of};
use crate::cluster::{Cluster, check_digest};
use crate::guests::disks::{is_disk_key, volume_of};
use crate::property;
use crate::store::sorted_set;
use crate::tasks::Order;

/// Parameters of a configuration write that are no keys of it.
const STEERING: [&str; 9] = [
    "node",
    "vmid",
    "digest",
    "delete",
    "revert",
    "force",
    "skiplock",
    "background_delay",
    "import-working-storage",
];

/// Keys of a running virtual machine that apply at once.
const QEMU_LIVE: [&str; 16] = [
    "name",
    "onboot",
    "description",
    "protection",
    "shares",
    "startup",
    "tags",
    "hookscript",
    "lock",
    "balloon",
    "migrate_downtime",
    "migrate_speed",
    "vmstatestorage",
    "cpulimit",
    "cpuunits",
    "affinity",
];

/// Keys of a running container that wait for its next start.
const LXC_WAITING: [&str; 8] =
    ["rootfs", "features", "unprivileged", "ostype", "arch", "cmode", "console", "tty"];

/// What a write asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edit {
    pub(crate) changes: Object,
    pub(crate) removed: Vec<String>,
    pub(crate) reverted: Vec<String>,
    /// Removed disks are destroyed, not kept as unused.
    pub(crate) destroys: bool,
}

impl Edit {
    fn of(call: &Call) -> Self {
        Self {
            changes: call.without(&STEERING),
            removed: call.list("delete"),
            reverted: call.list("revert"),
            destroys: call.flag("force"),
        }
    }
}

impl Cluster {
    pub(super) fn read_config(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        let mut config = match call.find("snapshot") {
            Some(name) => {
                let snapshot = guest.snapshots.iter().find(|snapshot| snapshot.name == name);
                let missing = || Failure::refused(format!("snapshot '{name}' does not exist"));
                snapshot.ok_or_else(missing)?.config.clone()
            }
            None if call.flag("current") => guest.config.clone(),
            None => guest.wanted(),
        };
        mask(&mut config);
        config.insert("digest".to_owned(), Value::from(guest.digest()));
        Ok(Value::Object(config))
    }

    pub(super) fn read_pending(&mut self, call: &Call) -> Outcome {
        let guest = self.guest(call)?;
        let mut current = guest.config.clone();
        mask(&mut current);
        let mut rows: Vec<Value> = Vec::new();
        for (key, value) in &current {
            let mut row = json!({ "key": key, "value": value });
            match guest.pending.iter().find(|(name, _)| name == key) {
                Some((_, Some(value))) => row["pending"] = value.clone(),
                Some((_, None)) => row["delete"] = json!(1),
                None => {}
            }
            rows.push(row);
        }
        let new = guest.pending.iter().filter(|(key, _)| !current.contains_key(key));
        rows.extend(new.filter_map(|(key, value)| Some(json!({ "key": key, "pending": value.as_ref()? }))));
        rows.push(json!({ "key": "digest", "value": guest.digest() }));
        Ok(Value::Array(rows))
    }

    pub(super) fn write_config(&mut self, call: &Call) -> Outcome {
        self.check_write(call)?;
        self.configure(call.vmid(), Edit::of(call))?;
        Ok(Value::Null)
    }

    pub(super) fn write_config_as_task(&mut self, call: &Call) -> Outcome {
        self.check_write(call)?;
        let (vmid, edit) = (call.vmid(), Edit::of(call));
        if call.params.contains_key("background_delay") {
            return self.configure(vmid, edit).map(|()| Value::Null);
        }
        let order = Order::new(call.node(), "qmconfig", vmid);
        Ok(self.start(&call.caller, order, move |cluster| {
            cluster.configure(vmid, edit).map_err(|failure| failure.reason)
        }))
    }

    pub(super) fn unlink(&mut self, call: &Call) -> Outcome {
        self.unlocked(call)?;
        let edit = Edit { removed: call.list("idlist"), destroys: call.flag("force"), ..Edit::default() };
        self.configure(call.vmid(), edit)?;
        Ok(Value::Null)
    }

    fn check_write(&self, call: &Call) -> Outcome<()> {
        let guest = self.unlocked(call)?;
        check_digest(call, &guest.digest())?;
        if call.params.contains_key("args") && call.caller.id() != "root@pam" {
            return Err(Failure::refused("only root can set 'args' config"));
        }
        for key in call.list("delete") {
            if call.params.contains_key(&key) {
                let text = format!("you can't use '-{key}' and -delete {key}' at the same time");
                return Err(Failure::parameter("delete", text));
            }
            let known = format!("unknown option '{key}'");
            if call.route.field(&key).is_none() {
                return Err(Failure::parameter("delete", known));
            }
            if guest.text("protection") == "1" && is_disk_key(&key) {
                return Err(Failure::refused(format!(
                    "can't remove drive '{key}' - protection mode enabled"
                )));
            }
        }
        Ok(())
    }

    /// Carries out a write. A fault in one key writes nothing.
    pub(crate) fn configure(&mut self, vmid: u64, edit: Edit) -> Outcome<()> {
        let guest = self.guests.get(&vmid).cloned();
        let guest = guest
            .ok_or_else(|| Failure::refused(format!("unable to find configuration file for VM {vmid}")))?;
        let mut prepared = Object::new();
        for (key, value) in edit.changes {
            let (key, value) = self.prepare(&guest, &key, value)?;
            prepared.insert(key, value);
        }
        let is_running = guest.run.is_some();
        let Some(target) = self.guests.get_mut(&vmid) else { return Ok(()) };
        target.pending.retain(|(key, _)| !edit.reverted.contains(key));
        let mut destroyed = Vec::new();
        for key in edit.removed {
            target.pending.retain(|(name, _)| *name != key);
            if !target.config.contains_key(&key) {
                continue;
            }
            if is_running && !is_live(target.kind, &key) {
                target.pending.push((key, None));
                continue;
            }
            let old = target.config.shift_remove(&key).map(|value| text_of(&value)).unwrap_or_default();
            if !is_disk_key(&key) || is_cdrom(&old) {
                continue;
            }
            if edit.destroys || key.starts_with("unused") {
                destroyed.push(volume_of(&old).to_owned());
            } else {
                keep_unused(target, &old);
            }
        }
        for (key, value) in prepared {
            target.pending.retain(|(name, _)| *name != key);
            if target.config.get(&key) == Some(&value) {
                continue;
            }
            if is_running && !is_live(target.kind, &key) {
                target.pending.push((key, Some(value)));
                continue;
            }
            let old = target.config.insert(key.clone(), value.clone()).map(|old| text_of(&old));
            if let Some(old) = old.filter(|_| is_disk_key(&key))
                && !is_cdrom(&old)
                && volume_of(&old) != volume_of(&text_of(&value))
            {
                keep_unused(target, &old);
            }
        }
        self.volumes.retain(|volume| !destroyed.contains(&volume.volid));
        Ok(())
    }

    /// A value as it is stored: with what the vendor makes up, sorts or allocates.
    pub(super) fn prepare(&mut self, guest: &Guest, key: &str, value: Value) -> Outcome<(String, Value)> {
        let key = if key == "cdrom" { "ide2" } else { key };
        let text = text_of(&value);
        let is_net = key.starts_with("net") && key[3..].parse::<u8>().is_ok();
        let value = match key {
            _ if is_net => Value::from(self.with_mac(guest.kind, &text)),
            _ if is_disk_key(key) => Value::from(self.attach(guest, key, &text)?),
            "tags" => Value::from(sorted_set(&text.to_lowercase()).join(";")),
            "vmgenid" if text == "1" => Value::from(self.fresh_uuid()),
            "description" => Value::from(text.trim_end()),
            "cpuunits" => Value::from(value.as_u64().unwrap_or(100).clamp(1, 10_000)),
            _ => value,
        };
        Ok((key.to_owned(), value))
    }

    /// A network device with a hardware address; one is made up where none is given.
    pub(super) fn with_mac(&mut self, kind: GuestKind, text: &str) -> String {
        if kind == GuestKind::Lxc {
            if property::find(text, "hwaddr").is_some() {
                return text.to_owned();
            }
            let mac = self.fresh_mac();
            return property::with(text, "hwaddr", &mac);
        }
        let parts = property::parts(text);
        let model = match parts.first() {
            // The short form names the model alone, or has it in front of the address.
            Some((None, model)) => (*model).to_owned(),
            Some((Some("model"), model)) => (*model).to_owned(),
            Some((Some(name), mac)) if mac.contains(':') => {
                return text.replacen(&format!("{name}={mac}"), &format!("{name}={}", mac.to_uppercase()), 1);
            }
            _ => "virtio".to_owned(),
        };
        let mac = property::find(text, "macaddr").map_or_else(|| self.fresh_mac(), str::to_uppercase);
        let rest = parts.into_iter().filter_map(|(name, value)| {
            name.filter(|name| !matches!(*name, "macaddr" | "model")).map(|name| format!(",{name}={value}"))
        });
        format!("{model}={mac}{}", rest.collect::<String>())
    }
}

/// Takes over what waited for the start.
pub(super) fn apply_pending(guest: &mut Guest) {
    guest.config = guest.wanted();
    guest.pending.clear();
}

fn is_live(kind: GuestKind, key: &str) -> bool {
    match kind {
        GuestKind::Qemu => {
            let plugs = ["net", "scsi", "virtio", "usb", "unused"];
            let is_plug =
                |prefix: &str| key.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u8>().is_ok());
            QEMU_LIVE.contains(&key) || plugs.iter().any(|prefix| is_plug(prefix))
        }
        GuestKind::Lxc => !LXC_WAITING.contains(&key),
    }
}

pub(super) fn is_cdrom(text: &str) -> bool {
    property::find(text, "media") == Some("cdrom") || property::first(text) == "none"
}

/// Keeps a detached disk under the first free `unused` key.
pub(super) fn keep_unused(guest: &mut Guest, old: &str) {
    let key = (0..256).map(|number| format!("unused{number}")).find(|key| !guest.config.contains_key(key));
    if let Some(key) = key {
        guest.config.insert(key, Value::from(volume_of(old)));
    }
}

fn mask(config: &mut Object) {
    if let Some(password) = config.get_mut("cipassword") {
        *password = Value::from("**********");
    }
}
