//! The ends of the audit logs, kept in a file of the data folder: out of the reach of those who can write the database.
//!
//! A head that went back, or that has another hash for the same number, is never accepted. Every look reports it in the
//! log, and `GET /audit/validate` reports it, until an operator restores what was lost or removes the file.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use heddle_core::OrgId;
use heddle_store::audit::{AuditKey, Head, Known};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::keys::sync_folder;

pub(crate) struct Kept {
    path: PathBuf,
    heads: Mutex<BTreeMap<OrgId, Known>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    heads: BTreeMap<OrgId, Known>,
    /// HMAC over the heads.
    code: String,
}

pub(crate) fn path(config: &Config) -> PathBuf {
    config.data_dir.join("audit-heads.json")
}

/// Forgets the kept heads: a restored backup starts without them.
pub fn forget(config: &Config) -> io::Result<()> {
    match fs::remove_file(path(config)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn code(key: &AuditKey, heads: &BTreeMap<OrgId, Known>) -> String {
    let text = serde_json::to_string(heads).expect("numbers and texts are JSON");
    key.mac("audit-kept-v1", &text)
}

impl Kept {
    /// Reads the kept heads. A file that this service did not write is reported in the log, and replaced.
    pub(crate) fn open(config: &Config, key: &AuditKey) -> Self {
        let path = path(config);
        let heads = match fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice::<File>(&bytes) {
                Ok(file) if file.code == code(key, &file.heads) => file.heads,
                _ => {
                    tracing::error!(
                        file = %path.display(),
                        "'{}' was not written by this service with this database: the ends of audit logs are kept anew",
                        path.display()
                    );
                    BTreeMap::new()
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => {
                tracing::error!(file = %path.display(), error = %error, "ends of audit logs cannot be read");
                BTreeMap::new()
            }
        };
        Self { path, heads: Mutex::new(heads) }
    }

    pub(crate) fn of(&self, org: OrgId) -> Option<Known> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).get(&org).cloned()
    }

    /// Accepts a head that continues the known one; false when it went back, or has another hash for the same number.
    pub(super) fn take(&self, head: &Head) -> bool {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        let is_behind =
            |known: &Known| head.seq < known.seq || head.seq == known.seq && head.hash != known.hash;
        if heads.get(&head.org_id).is_some_and(is_behind) {
            return false;
        }
        heads.insert(head.org_id, Known { seq: head.seq, hash: head.hash.clone() });
        true
    }

    /// Saves the heads. At any moment there is the old file or the new one, never half of one.
    pub(super) fn save(&self, key: &AuditKey) -> io::Result<()> {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let file = File { code: code(key, &heads), heads };
        // Each process has its own: two processes may keep heads in one folder.
        let staging = self.path.with_extension(format!("new-{}", std::process::id()));
        let mut out =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staging)?;
        out.write_all(&serde_json::to_vec(&file)?)?;
        out.sync_all()?;
        fs::rename(&staging, &self.path)?;
        sync_folder(&self.path)
    }
}
