//! Backups: jobs, runs, and what archives hold.

use serde_json::{Value, json};

use crate::answer::{Call, Failure, Object, Outcome, field, text_of};
use crate::cluster::Cluster;
use crate::guests::{GIB, GuestKind, is_disk_key};
use crate::property;
use crate::storage::Volume;
use crate::tasks::Order;

impl Cluster {
    pub(crate) fn backup_call(&mut self, call: &Call) -> Option<Outcome> {
        match (call.route.method.as_str(), call.route.path.as_str()) {
            ("POST" | "PUT", "/cluster/backup" | "/cluster/backup/{id}") => {
                let outcome = self.generic_call(call);
                let newest = self.store.rows("/cluster/backup").last().map(|row| row.id.clone());
                let id = call.find("id").map(str::to_owned).or(newest).unwrap_or_default();
                if let (Ok(_), Some(job)) = (&outcome, self.store.find_mut("/cluster/backup", &id)) {
                    normalize(job, call);
                }
                Some(outcome)
            }
            ("GET", "/cluster/backup/{id}/included_volumes") => Some(self.included(call)),
            ("GET", "/cluster/backup-info/not-backed-up") => {
                let jobs = self.store.rows("/cluster/backup");
                let has_job = |vmid: u64| jobs.iter().any(|job| self.covers(&job.body, vmid));
                let rest = self.guests.values().filter(|guest| !has_job(guest.vmid));
                Some(Ok(rest
                    .map(|guest| json!({ "vmid": guest.vmid, "name": guest.name(), "type": guest.kind.name() }))
                    .collect()))
            }
            ("POST", "/nodes/{node}/vzdump") => Some(self.back_up(call)),
            ("GET", "/nodes/{node}/vzdump/defaults") => {
                Some(Ok(json!({ "mode": "snapshot", "compress": "zstd", "storage": "local" })))
            }
            ("GET", "/nodes/{node}/vzdump/extractconfig") => {
                Some(self.archived_config(call.text("volume")).map(|config| {
                    let lines = config.iter().map(|(key, value)| format!("{key}: {}\n", text_of(value)));
                    Value::from(lines.collect::<String>())
                }))
            }
            _ => None,
        }
    }

    /// Whether a job takes a guest along.
    fn covers(&self, job: &Object, vmid: u64) -> bool {
        let names =
            |key: &str| crate::answer::split_list(field(job, key)).any(|named| named == vmid.to_string());
        if job.get("all") == Some(&Value::from(1)) {
            return !names("exclude");
        }
        names("vmid") || job.contains_key("pool") && self.pool_of(vmid) == Some(field(job, "pool"))
    }

    fn included(&self, call: &Call) -> Outcome {
        let job = self.store.find("/cluster/backup", call.text("id"));
        let job = job.ok_or_else(|| Failure::refused("No such job"))?;
        let children = self.guests.values().filter(|guest| self.covers(job, guest.vmid)).map(|guest| {
            let disks =
                guest.config.keys().filter(|key| is_disk_key(key)).map(
                    |key| json!({ "id": key, "name": guest.text(key), "included": 1, "reason": "enabled" }),
                );
            json!({
                "id": guest.vmid, "name": guest.name(), "type": guest.kind.name(),
                "children": disks.collect::<Vec<_>>(),
            })
        });
        Ok(json!({ "children": children.collect::<Vec<_>>() }))
    }

    /// A run. One task is for many guests, and ends in error when one of them failed.
    fn back_up(&mut self, call: &Call) -> Outcome {
        let (node, storage) = (call.node().to_owned(), call.find("storage").unwrap_or("local").to_owned());
        let content = self.store.find("/storage", &storage).map(|body| field(body, "content").to_owned());
        let content =
            content.ok_or_else(|| Failure::refused(format!("storage '{storage}' does not exist")))?;
        if !content.split(',').any(|kind| kind == "backup") {
            return Err(Failure::refused(format!(
                "storage '{storage}' does not support 'backup' content type"
            )));
        }
        let here = self.guests.values().filter(|guest| guest.node == node);
        let chosen: Vec<u64> =
            here.filter(|guest| self.covers(&call.params, guest.vmid)).map(|guest| guest.vmid).collect();
        if chosen.is_empty() {
            return Ok(Value::from("OK"));
        }
        if let [vmid] = chosen.as_slice()
            && !self.guests[vmid].text("lock").is_empty()
        {
            return Err(Failure::refused(format!("VM is locked ({})", self.guests[vmid].text("lock"))));
        }
        let mut order = Order::new(&node, "vzdump", "").weight(5);
        if let [vmid] = chosen.as_slice() {
            order = Order { id: vmid.to_string(), ..order }.locks(*vmid);
        }
        for vmid in &chosen {
            self.lock(*vmid, "backup");
        }
        let (notes, is_protected) = (call.find("notes-template").map(str::to_owned), call.flag("protected"));
        Ok(self.start(&call.caller, order, move |cluster| {
            for vmid in &chosen {
                cluster.unlock(*vmid);
            }
            if cluster.faults.full_storages.contains(&storage) {
                return Err("job errors".to_owned());
            }
            for vmid in chosen {
                cluster.archive(vmid, &storage, notes.clone(), is_protected);
            }
            Ok(())
        }))
    }

    /// Writes one archive.
    pub(crate) fn archive(&mut self, vmid: u64, storage: &str, notes: Option<String>, is_protected: bool) {
        let Some(guest) = self.guests.get(&vmid) else { return };
        let shared = self.store.find("/storage", storage).and_then(|body| body.get("shared"));
        let ending = if guest.kind == GuestKind::Qemu { "vma.zst" } else { "tar.zst" };
        let created_secs = self.now_secs();
        self.volumes.push(Volume {
            volid: format!("{storage}:backup/vzdump-{}-{vmid}-{created_secs}.{ending}", guest.kind.name()),
            node: (shared != Some(&Value::from(1))).then(|| guest.node.clone()),
            content: "backup".to_owned(),
            bytes: 2 * GIB + vmid * 1_048_576,
            created_secs,
            vmid: Some(vmid),
            notes: notes.or_else(|| Some(guest.name())),
            is_protected,
            sha256: None,
            archived: Some((guest.kind, guest.config.clone())),
        });
    }

    /// The configuration inside an archive.
    pub(crate) fn archived_config(&self, volid: &str) -> Outcome<Object> {
        let volume = self.find_volume(volid)?;
        let (_, config) = volume
            .archived
            .as_ref()
            .ok_or_else(|| Failure::refused(format!("unable to restore '{volid}': no archive")))?;
        let mut config = config.clone();
        config.shift_remove("lock");
        Ok(config)
    }

    /// New disks of the sizes that an archive holds.
    pub(crate) fn restore_disks(&mut self, vmid: u64, call: &Call, stored: &Object) -> Outcome<()> {
        self.volumes.retain(|volume| volume.vmid != Some(vmid) || volume.content == "backup");
        for (key, value) in stored.iter().filter(|(key, _)| is_disk_key(key)) {
            let text = text_of(value);
            let old = property::first(&text);
            let own = old.split(':').next().unwrap_or_default();
            let Some(bytes) = property::find(&text, "size").and_then(crate::guests::parse_size) else {
                continue;
            };
            let content = if call.route.path.contains("/lxc") { "rootdir" } else { "images" };
            let storage = call.find("storage").unwrap_or(own).to_owned();
            let volid =
                self.allocate(&storage, call.node(), vmid, bytes, content).map_err(Failure::refused)?;
            if let Some(guest) = self.guests.get_mut(&vmid) {
                guest.config.insert(key.clone(), Value::from(text.replacen(old, &volid, 1)));
            }
        }
        Ok(())
    }
}

/// A job selects guests in one way only, and has a schedule, whatever it was given.
fn normalize(job: &mut Object, call: &Call) {
    let given = |name: &str| call.params.contains_key(name);
    let dropped: &[&str] = match () {
        () if given("vmid") => &["all", "exclude", "pool"],
        () if given("pool") => &["all", "exclude", "vmid"],
        () if given("all") || given("exclude") => &["vmid", "pool"],
        () => &[],
    };
    for name in dropped {
        job.shift_remove(*name);
    }
    if given("exclude") {
        job.insert("all".to_owned(), Value::from(1));
    }
    if let Some(time) = job.shift_remove("starttime") {
        let days = job.shift_remove("dow").map(|days| format!("{} ", text_of(&days))).unwrap_or_default();
        job.insert("schedule".to_owned(), Value::from(format!("{days}{}", text_of(&time))));
    }
    // The file has text; what is read back is an object.
    if let Some(keep) = job.get("prune-backups").and_then(Value::as_str).map(str::to_owned) {
        let parts = property::parts(&keep).into_iter();
        let parts = parts.filter_map(|(name, value)| Some((name?.to_owned(), Value::from(value))));
        job.insert("prune-backups".to_owned(), parts.collect());
    }
    job.entry("enabled".to_owned()).or_insert(Value::from(1));
    job.insert("type".to_owned(), Value::from("vzdump"));
}
