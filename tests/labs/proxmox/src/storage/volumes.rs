//! Volumes of a storage: lists, uploads, removal, and the pruning of backups.

use heddle_lab::FormPart;
use serde_json::{Value, json};

use crate::answer::{Call, Failure, Outcome, field};
use crate::cluster::Cluster;
use crate::guests::parse_size;
use crate::property;
use crate::storage::Volume;
use crate::tasks::Order;

impl Cluster {
    pub(super) fn list_volumes(&self, call: &Call) -> Value {
        let seen = self.volumes.iter().filter(|volume| {
            volume.storage() == call.text("storage")
                && volume.node.as_deref().is_none_or(|node| node == call.node())
                && call.find("content").is_none_or(|only| volume.content == only)
                && call.integer("vmid").is_none_or(|only| volume.vmid == Some(only))
        });
        seen.map(Volume::to_json).collect()
    }

    pub(super) fn create_volume(&mut self, call: &Call) -> Outcome {
        let (name, vmid) = (call.text("filename"), call.vmid());
        if !name.contains(&format!("-{vmid}-")) {
            return Err(Failure::parameter(
                "filename",
                format!("illegal name '{name}' - should be 'vm-{vmid}-*'"),
            ));
        }
        let bytes = parse_size(call.text("size"))
            .ok_or_else(|| Failure::parameter("size", "unable to parse size"))?;
        // Without a unit the size is in kibibytes.
        let bytes = if call.text("size").ends_with(['M', 'G', 'T', 'K']) { bytes } else { bytes << 10 };
        let made = self
            .allocate(call.text("storage"), call.node(), vmid, bytes, "images")
            .map_err(Failure::refused)?;
        let (storage, _) = made.split_once(':').unwrap_or_default();
        let volid = format!("{storage}:{name}");
        if self.find_volume(&volid).is_ok() {
            self.volumes.pop();
            return Err(Failure::refused(format!("volume '{volid}' already exists")));
        }
        if let Some(volume) = self.volumes.last_mut() {
            volume.volid.clone_from(&volid);
        }
        Ok(Value::from(volid))
    }

    pub(super) fn describe_volume(&mut self, call: &Call) -> Outcome {
        let volid = volid_of(call);
        self.find_volume(&volid)?;
        for volume in self.volumes.iter_mut().filter(|volume| volume.volid == volid) {
            if let Some(notes) = call.find("notes") {
                volume.notes = Some(notes.to_owned());
            }
            if call.params.contains_key("protected") {
                volume.is_protected = call.flag("protected");
            }
        }
        Ok(Value::Null)
    }

    pub(super) fn delete_volume(&mut self, call: &Call) -> Outcome {
        let volid = volid_of(call);
        let volume = self.find_volume(&volid)?;
        if volume.is_protected {
            return Err(Failure::refused(format!("cannot remove protected volume '{volid}'")));
        }
        let owner = volume.vmid.map(|vmid| format!("{vmid}@")).unwrap_or_default();
        let work = move |cluster: &mut Self| {
            cluster.volumes.retain(|volume| volume.volid != volid);
            Ok(())
        };
        if call.params.contains_key("delay") {
            return self.at_once(Box::new(work));
        }
        Ok(self.start(
            &call.caller,
            Order::new(call.node(), "imgdel", format!("{owner}{}", call.text("storage"))),
            work,
        ))
    }

    /// Uploads, and downloads by the node.
    pub(super) fn fetch_file(&mut self, call: &Call, tail: &str) -> Outcome {
        let content = call.find("content").unwrap_or("vztmpl").to_owned();
        let is_upload = tail == "/upload";
        let is_kept =
            |c: char| if is_upload { c.is_ascii_alphanumeric() || "._-".contains(c) } else { c != '/' };
        let name = call.find("filename").unwrap_or_else(|| call.text("reference"));
        let name: String = name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        if is_upload && content == "iso" && !extension.is_some_and(|known| ["iso", "img"].contains(&known)) {
            return Err(Failure::parameter("filename", "wrong file extension"));
        }
        let storage = call.text("storage").to_owned();
        let volid = format!("{storage}:{content}/{name}");
        if self.find_volume(&volid).is_ok() && !is_upload && !call.params.contains_key("checksum") {
            return Err(Failure::refused(format!("refusing to override existing file '{name}'")));
        }
        let upload = call.upload.clone();
        if let Some(upload) = &upload {
            check_upload(call, upload)?;
        } else if is_upload {
            return Err(Failure::parameter("filename", "property is missing and it is not optional"));
        }
        let kind = if is_upload { "imgcopy" } else { "download" };
        let (node, created_secs) = (call.node().to_owned(), self.now_secs());
        Ok(self.start(&call.caller, Order::new(call.node(), kind, "").weight(2), move |cluster| {
            if cluster.faults.full_storages.contains(&storage) {
                return Err("no space left on device".to_owned());
            }
            let shared = cluster.store.find("/storage", &storage).and_then(|body| body.get("shared"));
            let is_shared = shared == Some(&Value::from(1));
            cluster.volumes.retain(|volume| volume.volid != volid);
            cluster.volumes.push(Volume {
                volid,
                node: (!is_shared).then_some(node),
                content,
                bytes: upload.as_ref().map_or(634_388_480, |upload| upload.bytes),
                created_secs,
                vmid: None,
                notes: None,
                is_protected: false,
                sha256: upload.map(|upload| upload.sha256),
                archived: None,
            });
            Ok(())
        }))
    }

    /// The backups of a storage, each with what pruning would make of it, and whether that is removal.
    pub(super) fn marked(&self, call: &Call) -> Vec<(Value, bool)> {
        let of_job =
            self.store.find("/storage", call.text("storage")).map(|body| field(body, "prune-backups"));
        let keep = call.find("prune-backups").or(of_job).unwrap_or("keep-all=1");
        let keep_last = property::find(keep, "keep-last").and_then(|number| number.parse::<usize>().ok());
        let mut backups: Vec<&Volume> = self
            .volumes
            .iter()
            .filter(|volume| volume.content == "backup" && volume.storage() == call.text("storage"))
            .filter(|volume| call.integer("vmid").is_none_or(|only| volume.vmid == Some(only)))
            .collect();
        backups.sort_by_key(|volume| (volume.vmid, std::cmp::Reverse(volume.created_secs)));
        let mut rows = Vec::new();
        for (place, volume) in backups.iter().enumerate() {
            let newer =
                backups[..place].iter().filter(|other| other.vmid == volume.vmid && !other.is_protected);
            let is_removed = !volume.is_protected && keep_last.is_some_and(|keep| newer.count() >= keep);
            let mark = match (volume.is_protected, is_removed) {
                (true, _) => "protected",
                (false, true) => "remove",
                (false, false) => "keep",
            };
            let kind = if volume.format() == "vma.zst" { "qemu" } else { "lxc" };
            let row = json!({
                "volid": volume.volid, "ctime": volume.created_secs, "mark": mark, "type": kind,
                "vmid": volume.vmid,
            });
            rows.push((row, is_removed));
        }
        rows
    }

    pub(super) fn prune(&mut self, call: &Call) -> Value {
        let removed = self.marked(call).into_iter().filter(|(_, is_removed)| *is_removed);
        let removed: Vec<String> =
            removed.filter_map(|(row, _)| row["volid"].as_str().map(str::to_owned)).collect();
        self.start(&call.caller, Order::new(call.node(), "prunebackups", ""), move |cluster| {
            cluster.volumes.retain(|volume| !removed.contains(&volume.volid));
            Ok(())
        })
    }
}

/// Refuses a file whose digest is not the one that was told.
fn check_upload(call: &Call, upload: &FormPart) -> Outcome<()> {
    let Some(wanted) = call.find("checksum") else { return Ok(()) };
    if call.text("checksum-algorithm") != "sha256" {
        return Err(Failure::parameter("checksum-algorithm", "this device computes sha256 alone"));
    }
    if upload.sha256.eq_ignore_ascii_case(wanted) {
        return Ok(());
    }
    Err(Failure::refused(format!("checksum mismatch: got '{}' != expect '{wanted}'", upload.sha256)))
}

/// The volume of a path, which may leave the storage out.
pub(super) fn volid_of(call: &Call) -> String {
    let (storage, volume) = (call.text("storage"), call.text("volume"));
    if volume.starts_with(&format!("{storage}:")) { volume.to_owned() } else { format!("{storage}:{volume}") }
}
