//! Storages: definitions for the whole cluster, status and volumes on each node.

mod definitions;
mod volumes;

use serde_json::{Value, json};

use volumes::volid_of;

use crate::answer::{Call, Failure, Object, Outcome, field, split_list};
use crate::cluster::Cluster;
use crate::guests::GuestKind;
use crate::store::Row;

/// A disk, an image, or a backup.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) volid: String,
    /// `None` on shared storages.
    pub(crate) node: Option<String>,
    /// `images`, `rootdir`, `iso`, `vztmpl` or `backup`.
    pub(crate) content: String,
    pub(crate) bytes: u64,
    pub(crate) created_secs: u64,
    pub(crate) vmid: Option<u64>,
    pub(crate) notes: Option<String>,
    pub(crate) is_protected: bool,
    /// SHA-256 of the bytes, where they were uploaded.
    pub(crate) sha256: Option<String>,
    /// What a backup holds of its guest.
    pub(crate) archived: Option<(GuestKind, Object)>,
}

impl Volume {
    pub(crate) fn storage(&self) -> &str {
        self.volid.split(':').next().unwrap_or_default()
    }

    fn format(&self) -> &str {
        let ending = self.volid.rsplit('.').next().unwrap_or_default();
        match self.content.as_str() {
            "iso" => "iso",
            "vztmpl" => "tzst",
            "backup" if ending == "vma" || self.volid.ends_with("vma.zst") => "vma.zst",
            "backup" => "tar.zst",
            _ if ending == "qcow2" => "qcow2",
            _ => "raw",
        }
    }

    fn to_json(&self) -> Value {
        let mut row = json!({
            "volid": self.volid, "content": self.content, "format": self.format(), "size": self.bytes,
            "ctime": self.created_secs,
        });
        if let Some(vmid) = self.vmid {
            row["vmid"] = json!(vmid);
        }
        if let Some(notes) = &self.notes {
            row["notes"] = json!(notes);
        }
        if self.is_protected {
            row["protected"] = json!(1);
        }
        row
    }
}

impl Cluster {
    pub(crate) fn find_volume(&self, volid: &str) -> Outcome<&Volume> {
        let found = self.volumes.iter().find(|volume| volume.volid == volid);
        found.ok_or_else(|| Failure::refused(format!("volume '{volid}' does not exist")))
    }

    /// Total and used bytes of a storage on a node.
    fn usage(&self, storage: &Row, node: &str) -> (u64, u64) {
        let total = match field(&storage.body, "type") {
            "dir" => 98 << 30,
            "lvmthin" => 800 << 30,
            _ => 4 << 40,
        };
        if self.faults.full_storages.contains(&storage.id) {
            return (total, total);
        }
        let is_here = |volume: &&Volume| {
            volume.storage() == storage.id && volume.node.as_deref().is_none_or(|own| own == node)
        };
        let used = self.volumes.iter().filter(is_here).map(|volume| volume.bytes).sum::<u64>();
        (total, (used + (11 << 30)).min(total))
    }

    /// Makes a volume of a guest, and gives its id.
    pub(crate) fn allocate(
        &mut self,
        storage: &str,
        node: &str,
        vmid: u64,
        bytes: u64,
        content: &str,
    ) -> Result<String, String> {
        let rows = self.store.rows("/storage");
        let row =
            rows.iter().find(|row| row.id == storage).ok_or(format!("storage '{storage}' does not exist"))?;
        if !split_list(field(&row.body, "content")).any(|kind| kind == content) {
            return Err(format!("storage '{storage}' does not support content-type '{content}'"));
        }
        let (total, used) = self.usage(row, node);
        if used + bytes > total {
            return Err("no space left on device".to_owned());
        }
        let is_directory = matches!(field(&row.body, "type"), "dir" | "nfs" | "cifs");
        let is_shared = row.body.get("shared") == Some(&Value::from(1));
        let name = |number: u32| {
            if is_directory {
                format!(
                    "{storage}:{vmid}/vm-{vmid}-disk-{number}.{}",
                    if content == "images" { "qcow2" } else { "raw" }
                )
            } else {
                format!("{storage}:vm-{vmid}-disk-{number}")
            }
        };
        let is_free =
            |volid: &String| !self.volumes.iter().any(|volume| volume.volid.ends_with(volid.as_str()));
        let mut volid = name(0);
        for number in 1..u32::MAX {
            if is_free(&volid) {
                break;
            }
            volid = name(number);
        }
        self.volumes.push(Volume {
            volid: volid.clone(),
            node: (!is_shared).then(|| node.to_owned()),
            content: content.to_owned(),
            bytes,
            created_secs: self.now_secs(),
            vmid: Some(vmid),
            notes: None,
            is_protected: false,
            sha256: None,
            archived: None,
        });
        Ok(volid)
    }

    pub(crate) fn storage_call(&mut self, call: &Call) -> Option<Outcome> {
        if let Some(tail) = call.route.path.strip_prefix("/storage") {
            return self.definition_call(call, tail);
        }
        let tail = call.route.path.strip_prefix("/nodes/{node}/storage")?;
        if tail.is_empty() {
            return Some(Ok(self.list_storages(call)));
        }
        let tail = tail.strip_prefix("/{storage}")?;
        let storage = call.text("storage");
        let Some(row) = self.store.rows("/storage").iter().find(|row| row.id == storage) else {
            return Some(Err(Failure::refused(format!("storage '{storage}' does not exist"))));
        };
        if !is_on(row, call.node()) {
            let text = format!("storage '{storage}' is not available on node '{}'", call.node());
            return Some(Err(Failure::refused(text)));
        }
        Some(match (call.route.method.as_str(), tail) {
            ("GET", "/status") => {
                let mut shown = self.storage_row(row, call.node());
                shown.shift_remove("storage");
                Ok(Value::Object(shown))
            }
            ("GET", "/content") => Ok(self.list_volumes(call)),
            ("POST", "/content") => self.create_volume(call),
            ("GET", "/content/{volume}") => self.find_volume(&volid_of(call)).map(|volume| {
                let mut row = volume.to_json();
                row["path"] = json!(format!("/var/lib/vz/{}", volume.volid.replace(':', "/")));
                row["used"] = json!(volume.bytes);
                row
            }),
            ("PUT", "/content/{volume}") => self.describe_volume(call),
            ("DELETE", "/content/{volume}") => self.delete_volume(call),
            ("POST", "/upload" | "/download-url" | "/oci-registry-pull") => self.fetch_file(call, tail),
            ("GET", "/prunebackups") => Ok(self.marked(call).into_iter().map(|(row, _)| row).collect()),
            ("DELETE", "/prunebackups") => Ok(self.prune(call)),
            ("GET", "/rrddata") => {
                let (total, used) = self.usage(row, call.node());
                let now = self.now_secs() / 60 * 60;
                let points = (0..70)
                    .rev()
                    .map(|past| json!({ "time": now - past * 60, "total": total, "used": used }));
                Ok(points.collect())
            }
            _ => return None,
        })
    }

    pub(crate) fn storage_row(&self, row: &Row, node: &str) -> Object {
        let (total, used) = self.usage(row, node);
        let is_enabled = row.body.get("disable") != Some(&Value::from(1));
        let mut out = crate::answer::object(json!({
            "storage": row.id, "type": row.body["type"], "content": row.body["content"],
            "enabled": u8::from(is_enabled), "active": u8::from(is_enabled),
            "shared": row.body.get("shared").cloned().unwrap_or(json!(0)),
        }));
        if is_enabled {
            #[expect(clippy::cast_precision_loss, reason = "a share of many bytes")]
            let share = used as f64 / total as f64;
            let numbers =
                json!({ "total": total, "used": used, "avail": total - used, "used_fraction": share });
            out.extend(crate::answer::object(numbers));
        }
        out
    }

    fn list_storages(&self, call: &Call) -> Value {
        let wanted: Vec<String> = call.list("content");
        let seen = self.store.rows("/storage").iter().filter(|row| {
            let content: Vec<&str> = split_list(field(&row.body, "content")).collect();
            let is_enabled = row.body.get("disable") != Some(&Value::from(1));
            is_on(row, call.node())
                && call.find("storage").is_none_or(|only| row.id == only)
                && (wanted.is_empty() || wanted.iter().any(|kind| content.contains(&kind.as_str())))
                && (is_enabled || !call.flag("enabled"))
                && self.may(&call.caller, &format!("/storage/{}", row.id), "Datastore.Audit")
        });
        seen.map(|row| Value::Object(self.storage_row(row, call.node()))).collect()
    }
}

/// Whether a storage is defined for a node.
pub(crate) fn is_on(row: &Row, node: &str) -> bool {
    !row.body.contains_key("nodes") || split_list(field(&row.body, "nodes")).any(|named| named == node)
}
