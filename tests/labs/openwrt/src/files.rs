//! The `file` object: a handful of files, and the three commands that an upgrade needs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::args::Args;
use crate::device::{Device, Restart};
use crate::status::{Reply, Status};

/// Bytes that `file.read` gives at most.
const READ_BYTES_MAX: usize = 262_144;

/// What lies on the router from the start.
pub(crate) fn factory_files() -> BTreeMap<String, Vec<u8>> {
    let leases = "1767268800 a4:83:e7:11:22:33 192.168.1.133 phone *\n";
    [
        ("/etc/openwrt_release", "DISTRIB_ID='OpenWrt'\nDISTRIB_TARGET='mediatek/filogic'\n"),
        ("/etc/resolv.conf", "search lan\nnameserver 127.0.0.1\n"),
        ("/tmp/dhcp.leases", leases),
        ("/tmp/empty", ""),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .collect()
}

impl Device {
    /// One `file` call. Reading and running are asked of the file scope of the session, inside rpcd.
    pub(crate) fn file(&mut self, sid: &str, method: &str, args: Args<'_>) -> Reply {
        let (path, function) = match method {
            "exec" => (args.required("command")?, "exec"),
            "stat" => (args.required("path")?, "list"),
            _ => (args.required("path")?, "read"),
        };
        if !self.sessions.may(sid, "file", path, function) {
            return Err(Status::PermissionDenied);
        }
        match method {
            "exec" => self.exec(path, args),
            "stat" => self.stat(path),
            _ => self.read(path),
        }
    }

    /// A file's bytes; a configuration's text is made of its model.
    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        match path.strip_prefix("/etc/config/") {
            Some(name) => self.file_text(name).map(String::into_bytes),
            None => self.files.get(path).cloned(),
        }
    }

    fn read(&self, path: &str) -> Reply {
        match self.bytes(path) {
            None => Err(Status::NotFound),
            Some(bytes) if bytes.is_empty() => Err(Status::NoData),
            Some(bytes) if bytes.len() > READ_BYTES_MAX => Err(Status::NotSupported),
            Some(bytes) => Ok(Some(json!({ "data": String::from_utf8_lossy(&bytes) }))),
        }
    }

    fn stat(&self, path: &str) -> Reply {
        let bytes = self.bytes(path).ok_or(Status::NotFound)?;
        let time = self.settings.epoch_secs;
        Ok(Some(json!({
            "path": path, "type": "file", "size": bytes.len(), "mode": 33188, "atime": time, "mtime": time,
            "ctime": time, "inode": 1204, "uid": 0, "gid": 0, "user": "root", "group": "root",
        })))
    }

    fn exec(&mut self, command: &str, args: Args<'_>) -> Reply {
        let params: Vec<&str> =
            args.array("params").unwrap_or(&[]).iter().filter_map(Value::as_str).collect();
        let (code, stdout, stderr) = match command {
            "/bin/uclient-fetch" => self.fetch(&params),
            "/usr/bin/sha256sum" => self.sha256sum(&params),
            "/sbin/sysupgrade" => self.sysupgrade(&params),
            _ => return Err(Status::NotFound),
        };
        Ok(Some(json!({ "code": code, "stdout": stdout, "stderr": stderr })))
    }

    /// `uclient-fetch -O <path> <url>`. Once a download was laid out, any other address is not found; before, every
    /// address gives an image made up from its text.
    fn fetch(&mut self, params: &[&str]) -> (u8, String, String) {
        let path = params.iter().position(|param| *param == "-O").and_then(|at| params.get(at + 1));
        let url = params.iter().find(|param| param.contains("://"));
        let (Some(path), Some(url)) = (path, url) else {
            return (1, String::new(), "Usage: uclient-fetch [options] <URL>\n".to_owned());
        };
        let bytes = match self.downloads.get(*url) {
            Some(bytes) => bytes.clone(),
            None if self.downloads.is_empty() => format!("image from {url}\n").into_bytes(),
            None => return (8, String::new(), "HTTP error 404\n".to_owned()),
        };
        let report = format!("Downloading '{url}'\nDownload completed ({} bytes)\n", bytes.len());
        self.files.insert((*path).to_owned(), bytes);
        (0, String::new(), report)
    }

    fn sha256sum(&self, params: &[&str]) -> (u8, String, String) {
        let path = params.first().copied().unwrap_or_default();
        match self.files.get(path) {
            Some(bytes) => (0, format!("{}  {path}\n", hex::encode(Sha256::digest(bytes))), String::new()),
            None => {
                (1, String::new(), format!("sha256sum: can't open '{path}': No such file or directory\n"))
            }
        }
    }

    /// `sysupgrade [-n] <path>`; `-n` wipes the configuration. It answers, and acts a little later.
    fn sysupgrade(&mut self, params: &[&str]) -> (u8, String, String) {
        let path = params.last().copied().unwrap_or_default();
        if !self.is_image(path) {
            return (1, String::new(), "Image check failed.\n".to_owned());
        }
        self.schedule_restart(Restart::Upgrade { keeps_config: !params.contains(&"-n") });
        (0, "Commencing upgrade. Closing all shell sessions.\n".to_owned(), String::new())
    }

    /// Any file is an image, except one that begins with `bad`: tests lay that out.
    pub(crate) fn is_image(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|bytes| !bytes.is_empty() && !bytes.starts_with(b"bad"))
    }
}
