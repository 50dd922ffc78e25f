//! Disks of guests: allocation on write, growth, and moves between storages.

use serde_json::Value;

use super::config::{is_cdrom, keep_unused};
use super::{Guest, GuestKind};
use crate::answer::{Call, Failure, Outcome};
use crate::cluster::{Cluster, check_digest};
use crate::property;
use crate::tasks::Order;

/// Bytes of a gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// Whether a key of a configuration holds a volume.
pub(crate) fn is_disk_key(key: &str) -> bool {
    let prefixes = ["scsi", "virtio", "sata", "ide", "efidisk", "tpmstate", "unused", "mp"];
    key == "rootfs"
        || prefixes
            .iter()
            .any(|prefix| key.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u8>().is_ok()))
}

/// The volume id of a disk's value.
pub(crate) fn volume_of(text: &str) -> &str {
    property::first(text)
}

/// A size as the vendor writes it: `32G`, `512M`, or bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, text.chars().last()),
        None => (text, None),
    };
    let factor = match unit {
        Some('K') => 1 << 10,
        Some('M') => 1 << 20,
        Some('G') => GIB,
        Some('T') => GIB << 10,
        _ => 1,
    };
    number.parse::<u64>().ok().map(|number| number * factor)
}

pub(crate) fn print_size(bytes: u64) -> String {
    if bytes.is_multiple_of(GIB) { format!("{}G", bytes / GIB) } else { format!("{}M", bytes >> 20) }
}

impl Cluster {
    /// The stored form of a disk: `STORAGE:SIZE` allocates a volume, anything else must exist.
    pub(super) fn attach(&mut self, guest: &Guest, key: &str, text: &str) -> Outcome<String> {
        let volume = volume_of(text);
        if matches!(volume, "none" | "cdrom") || volume.starts_with('/') {
            return Ok(text.to_owned());
        }
        let rest: String = property::parts(text)
            .into_iter()
            .skip(1)
            .filter(|(name, _)| !matches!(name, Some("size" | "import-from" | "format")))
            .map(|(name, value)| name.map_or_else(|| format!(",{value}"), |name| format!(",{name}={value}")))
            .collect();
        let Some((storage, name)) = volume.split_once(':') else {
            return Err(Failure::refused(format!("unable to parse volume ID '{volume}'")));
        };
        if self.store.find("/storage", storage).is_none() {
            return Err(Failure::refused(format!("storage '{storage}' does not exist")));
        }
        if name == "cloudinit" {
            let volid = self
                .allocate(storage, &guest.node, guest.vmid, 4 << 20, "images")
                .map_err(Failure::refused)?;
            return Ok(format!("{volid},media=cdrom{rest}"));
        }
        if let Ok(gibibytes) = name.parse::<f64>() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a size that was verified"
            )]
            let bytes = ((gibibytes * 1024.0) as u64) << 20;
            let content = if guest.kind == GuestKind::Lxc { "rootdir" } else { "images" };
            let volid = self.allocate(storage, &guest.node, guest.vmid, bytes, content).map_err(|error| {
                Failure::refused(format!("unable to create {} {} - {error}", guest.kind.title(), guest.vmid))
            })?;
            return Ok(format!("{volid}{rest},size={}", print_size(bytes)));
        }
        let found = self.volumes.iter().find(|found| found.volid == volume);
        let found = found.ok_or_else(|| Failure::refused(format!("volume '{volume}' does not exist")))?;
        if key.starts_with("unused") {
            return Ok(volume.to_owned());
        }
        Ok(format!("{volume}{rest},size={}", print_size(found.bytes)))
    }

    pub(super) fn resize_disk(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        if check_digest(call, &guest.digest()).is_err() {
            return Err(Failure::refused("checksum mismatch (file change by other user?)"));
        }
        let (disk, size, vmid) = (call.text("disk").to_owned(), call.text("size").to_owned(), call.vmid());
        if !guest.config.contains_key(&disk) {
            return Err(Failure::refused(format!("disk '{disk}' does not exist")));
        }
        Ok(self.start(&call.caller, Order::new(call.node(), "resize", vmid), move |cluster| {
            cluster.grow(vmid, &disk, &size)
        }))
    }

    fn grow(&mut self, vmid: u64, disk: &str, size: &str) -> Result<(), String> {
        let guest = self.guests.get(&vmid).ok_or("no such guest")?;
        let text = guest.text(disk);
        let volid = volume_of(&text).to_owned();
        let volume = self.volumes.iter_mut().find(|volume| volume.volid == volid).ok_or("no such volume")?;
        let amount = parse_size(size.trim_start_matches('+')).ok_or("unable to parse size")?;
        let bytes = if size.starts_with('+') { volume.bytes + amount } else { amount };
        if bytes < volume.bytes {
            return Err("shrinking disks is not supported".to_owned());
        }
        volume.bytes = bytes;
        let value = property::with(&text, "size", &print_size(bytes));
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.config.insert(disk.to_owned(), Value::from(value));
        }
        Ok(())
    }

    pub(super) fn move_disk(&mut self, call: &Call) -> Outcome {
        let guest = self.unlocked(call)?;
        let (kind, vmid) = (guest.kind, guest.vmid);
        check_digest(call, &guest.digest())?;
        if kind == GuestKind::Lxc && guest.run.is_some() {
            return Err(Failure::refused("cannot move volumes of a running container"));
        }
        let key = call.find("disk").unwrap_or_else(|| call.text("volume")).to_owned();
        let storage = call.text("storage").to_owned();
        let text = guest.text(&key);
        if text.is_empty() || is_cdrom(&text) {
            return Err(Failure::refused(format!("disk '{key}' does not exist")));
        }
        if volume_of(&text).starts_with(&format!("{storage}:")) {
            return Err(Failure::refused("you can't move to the same storage with same format"));
        }
        if self.store.find("/storage", &storage).is_none() {
            return Err(Failure::refused(format!("storage '{storage}' does not exist")));
        }
        self.lock(vmid, "disk");
        let removes = call.flag("delete");
        let order =
            Order::new(call.node(), if kind == GuestKind::Qemu { "qmmove" } else { "move_volume" }, vmid);
        Ok(self.start(&call.caller, order.weight(3).locks(vmid), move |cluster| {
            let old = volume_of(&text).to_owned();
            let volume = cluster.volumes.iter().find(|volume| volume.volid == old).cloned();
            let volume = volume.ok_or_else(|| format!("volume '{old}' does not exist"))?;
            let node = cluster.guests.get(&vmid).map(|guest| guest.node.clone()).unwrap_or_default();
            let volid = cluster.allocate(&storage, &node, vmid, volume.bytes, &volume.content)?;
            if removes {
                cluster.volumes.retain(|volume| volume.volid != old);
            }
            cluster.unlock(vmid);
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.config.insert(key, Value::from(text.replacen(&old, &volid, 1)));
                if !removes {
                    keep_unused(guest, &old);
                }
            }
            Ok(())
        }))
    }
}
